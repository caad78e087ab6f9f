"""The chance to win a game of several players, judged from the cards after a turn.

What a card still brings is known from the optimum of the solitaire game: its mean and its standard deviation under
optimal play, both exact, and with few open boxes the whole distribution. Final totals are taken for independent, and
for normally distributed where only mean and standard deviation are known. When two players have at most one open box
each the exact chance takes its place, both playing to win. Nothing in this is fitted. docs/two-players.md has the
formulas.

A turn can be planned by this as by points: `write_turn_worths` says what filling each box with each roll is worth in
both ways, the zeros that a second Kismet forces on the others included.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.cards import place_of
from kismet_env.dice import IS_FIVE_ALIKE, NUM_ROLLS
from kismet_env.endgame import FULL, LONG, Endgame, endgame_of, share_of_end
from kismet_env.engine import ALL_BOXES, fill_box, first_open_box, is_second_kismet, write_points
from kismet_env.jit import Table, compiled
from kismet_env.late_cards import NO_ROW, late_cards
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import solve
from kismet_env.tables import Record, Tables, box_points, tables_of
from kismet_env.turn import action_values

FILLED, BASIC_TOTAL, ARMED, TOTAL = range(4)
"""Columns of a player's card in this module: an (N, P, 4) int64 array has the cards of N games of P players."""
SCALE = 1e3
"""Turns are planned in thousandths of a win, so that turn.TIE is far below what a point is worth ..."""
POINT = 1e-6
"""... which decides where no chance is left to be won: a millionth of a thousandth."""
_NODES = 24  # of the integral over one player's total; with it the players' chances sum to 1 within 0.002
_FULL_ROW = -2  # instead of a row of late_cards: a full card
MEAN, VARIANCE, ROW = range(3)
"""What is judged of a card: mean and variance of its final total, and the row of its distribution in late_cards."""


class Judge(NamedTuple):
    """What is known about cards, for the kernels; get it from `judge_of`."""

    starts: Table  # see cards.CardNumbers
    ranks: Table
    values: Table  # [card] mean of the points still to come
    variances: Table  # [card] float32
    row_of: Table  # [card]: see late_cards
    late: Table  # [row, points]
    same: Table  # [box, roll] (15, 252) int16: the first roll that does to every card what this one does
    nodes: Table  # [node] (24,): where, in standard deviations, a normal distribution is looked at
    weights: Table  # [node] (24,): sum 1
    endgame: Endgame


class Scratch(NamedTuple):
    """Room for judging one turn; [hit] is 0 for the others as they are, 1 for after a second Kismet."""

    judgements: Table  # [hit, what, player] (2, 3, P)
    kinds: Table  # [hit]: with one opponent his card's kind in the endgame, else LONG
    totals: Table  # [hit]: and his total
    rows: Table  # [hit]: and his card's row in late_cards, else NO_ROW or less
    half_cumulated: Table  # [hit, points]: of the distribution there


@compiled
def new_scratch(num_players: int, judge: Judge) -> Scratch:
    """Return room for judging turns."""
    return Scratch(
        np.empty((2, 3, num_players)),
        np.empty(2, np.int64),
        np.empty(2, np.int64),
        np.empty(2, np.int64),
        np.empty((2, judge.late.shape[1])),
    )


@lru_cache(maxsize=4)
def judge_of(rules: Rules) -> Judge:
    """Return what is known about cards under `rules`; the first time it is worked out, in some minutes."""
    optimum = solve(rules)
    numbers, points = optimum.numbers, box_points(rules)
    sds = optimum.prepare_sds()
    does = np.stack([points[0], points[1], np.broadcast_to(IS_FIVE_ALIKE[:, None], points[0].shape)], axis=-1)
    same = np.empty((NUM_BOXES, NUM_ROLLS), np.int16)
    for box in range(NUM_BOXES):
        _, first, kind = np.unique(does[:, box], axis=0, return_index=True, return_inverse=True)
        same[box] = first[kind.reshape(-1)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    row_of, late = late_cards(optimum)
    endgame = endgame_of(rules)
    return Judge(
        numbers.starts,
        numbers.ranks,
        optimum.values,
        ((sds.codes * sds.step) ** 2).astype(np.float32),
        row_of,
        _read_only(late),
        same,
        nodes,
        weights / weights.sum(),
        endgame._replace(both=_read_only(endgame.both)),
    )


def _read_only(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return `array` as it comes from the cache: kernels are compiled anew for arrays that can be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


@compiled
def exceeds(mean: float, variance: float) -> float:
    """Return the chance that a normal number is positive, ties half."""
    if variance > 0.0:
        return 0.5 * math.erfc(-mean / math.sqrt(2.0 * variance))
    if mean == 0.0:
        return 0.5
    return 1.0 if mean > 0.0 else 0.0


@compiled
def win_share(means: Table, variances: Table, player: int, nodes: Table, weights: Table) -> float:
    """Return what `player` is to be expected to have of the win, given all final totals' means and variances, (P,).

    The chance to be alone on top; of what is certain, k players on top have one k-th each. Two players have a closed
    form; more are an integral over the player's own total, because given that, the others are independent.
    """
    num_players = len(means)
    mean, variance = means[player], variances[player]
    if num_players == 2:
        return exceeds(mean - means[1 - player], variance + variances[1 - player])
    rest, most, equals = 0.0, -np.inf, 1
    for other in range(num_players):
        if other != player:
            rest += variances[other]
            most = max(most, means[other])
            equals += means[other] == mean
    if rest == 0.0 and variance == 0.0:
        return 0.0 if most > mean else 1.0 / equals
    if rest == 0.0:
        return exceeds(mean - most, variance)
    share, sd = 0.0, math.sqrt(variance)
    for node in range(len(nodes)):
        ahead = 1.0
        for other in range(num_players):
            if other != player:
                ahead *= exceeds(mean + sd * nodes[node] - means[other], variances[other])
        share += weights[node] * ahead
        if variance == 0.0:
            return ahead
    return share


@compiled
def write_half_cumulated(late: Table, row: int, out: Table) -> None:
    """Write the chance of fewer points, and half that of as many, into `out` [points]."""
    below = 0.0
    for points in range(len(out)):
        chance = late[row, points]
        out[points] = below + 0.5 * chance
        below += chance


@compiled
def late_share(late: Table, row: int, half_cumulated: Table, ahead: int) -> float:
    """Return the share of the win of one who is `ahead`, his card and the other's having these distributions."""
    share, width = 0.0, len(half_cumulated)
    for points in range(max(0, -ahead), width):
        if points + ahead < width:
            share += late[row, points] * half_cumulated[points + ahead]
        else:
            share += late[row, points]
    return share


@compiled
def card_worth(judge: Judge, filled: int, basic_total: int, armed: bool) -> float:
    """Return the mean of the points that a card still brings in the solitaire game."""
    if filled == ALL_BOXES:
        return 0.0
    return float(judge.values[place_of(judge.starts, judge.ranks, filled, basic_total, armed)])


@compiled
def write_judgements(tables: Tables, judge: Judge, cards: Table, punished: bool, judgements: Table) -> tuple[int, int]:
    """Write what is judged of one game's `cards` (P, 4) into (3, P); return kind and total of the last one.

    `punished`: after a zero for everybody but the first.
    """
    kind, total = LONG, 0
    for player in range(len(cards)):
        filled, basic_total, armed = cards[player, FILLED], cards[player, BASIC_TOTAL], cards[player, ARMED] != 0
        total, kind = cards[player, TOTAL], FULL
        if punished and player > 0 and filled != ALL_BOXES:
            bonus, filled, basic_total, armed = write_points(
                tables, filled, basic_total, armed, first_open_box(filled), 0, False
            )
            total += bonus
        judgements[MEAN, player], judgements[VARIANCE, player], judgements[ROW, player] = total, 0.0, _FULL_ROW
        if filled != ALL_BOXES:
            place = place_of(judge.starts, judge.ranks, filled, basic_total, armed)
            judgements[MEAN, player] += judge.values[place]
            judgements[VARIANCE, player] = judge.variances[place]
            judgements[ROW, player] = judge.row_of[place]
            kind = judge.endgame.kind_of[place]
    return int(kind), int(total)


@compiled
def write_turn_worths(
    tables: Tables, judge: Judge, cards: Table, scratch: Scratch, chances: Table, points_worth: Table
) -> None:
    """Write what filling each open box with each roll is worth to the first of `cards` (P, 4), who is to move.

    `chances` [box, roll] (15, 252): his share of the win, as it is judged after this turn; `points_worth` (15, 252):
    the points, the bonus and the value of the card after them. The other cards are those on his left, in playing
    order. Filled boxes are left as they are.
    """
    starts, ranks, values, variances, row_of = judge.starts, judge.ranks, judge.values, judge.variances, judge.row_of
    same, nodes, weights, endgame, late = judge.same, judge.nodes, judge.weights, judge.endgame, judge.late
    filled, basic_total, armed, total = cards[0, FILLED], cards[0, BASIC_TOTAL], cards[0, ARMED] != 0, cards[0, TOTAL]
    is_pair = len(cards) == 2
    for hit in range(2):  # the others as they are, and after a second Kismet
        judgements = scratch.judgements[hit]
        kind, other_total = write_judgements(tables, judge, cards, hit == 1, judgements)
        scratch.kinds[hit], scratch.totals[hit] = kind if is_pair else LONG, other_total
        scratch.rows[hit] = np.int64(judgements[ROW, 1]) if is_pair else NO_ROW
        if scratch.rows[hit] >= 0:
            write_half_cumulated(late, scratch.rows[hit], scratch.half_cumulated[hit])
    for box in range(NUM_BOXES):
        if filled >> box & 1:
            continue
        for roll in range(NUM_ROLLS):
            if same[box, roll] < roll:
                chances[box, roll] = chances[box, same[box, roll]]
                points_worth[box, roll] = points_worth[box, same[box, roll]]
                continue
            points, bonus, filled_after, total_after, armed_after = fill_box(
                tables, filled, basic_total, armed, roll, box
            )
            hit = 1 if tables.penalty and is_second_kismet(tables, armed, roll) else 0
            gain, worth, variance, kind, row = points + bonus, 0.0, 0.0, FULL, _FULL_ROW
            if filled_after != ALL_BOXES:
                place = place_of(starts, ranks, filled_after, total_after, armed_after)
                worth, variance, kind, row = values[place], variances[place], endgame.kind_of[place], row_of[place]
            points_worth[box, roll] = gain + worth
            lead = scratch.totals[hit] - total - gain
            if kind != LONG and scratch.kinds[hit] != LONG:
                chances[box, roll] = share_of_end(endgame, kind, scratch.kinds[hit], lead, hit == 1)
            elif row >= 0 and scratch.rows[hit] >= 0:
                chances[box, roll] = late_share(late, row, scratch.half_cumulated[hit], -lead)
            else:
                judgements = scratch.judgements[hit]
                judgements[MEAN, 0], judgements[VARIANCE, 0] = total + gain + worth, variance
                chances[box, roll] = win_share(judgements[MEAN], judgements[VARIANCE], 0, nodes, weights)


@compiled
def _write_turn_worths(tables_array: Record, judge: Judge, cards: Table, chances: Table, points_worth: Table) -> None:
    scratch = new_scratch(len(cards), judge)
    write_turn_worths(tables_array[0], judge, cards, scratch, chances, points_worth)


def turn_worths(cards: npt.NDArray[np.int64], rules: Rules) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what `write_turn_worths` says of one game's `cards` (P, 4): chances and points, [box, roll] (15, 252).

    NaN in filled boxes.
    """
    chances, points_worth = np.full((2, NUM_BOXES, NUM_ROLLS), np.nan)
    _write_turn_worths(tables_of(rules), judge_of(rules), cards, chances, points_worth)
    return chances, points_worth


def action_chances(
    cards: npt.NDArray[np.int64], rules: Rules, *, roll: int, rolls_left: int
) -> npt.NDArray[np.float64]:
    """Return his share of the win after each action of the first of one game's `cards` (P, 4), who is to move: (225,).

    The rest of the turn is played to win, and what comes after it is judged as in `turn_worths`. Numbering "keeps";
    -inf where illegal.
    """
    chances, _ = turn_worths(cards, rules)

    def write(_: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
        worths[0] = chances

    decision = np.array([roll]), np.array([rolls_left])
    values: npt.NDArray[np.float64] = action_values(tables_of(rules), cards[:1, :TOTAL], *decision, write)[0]
    return values
