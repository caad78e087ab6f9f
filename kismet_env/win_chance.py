"""The chance to win a game of several players, judged from the cards after a turn.

What a card still brings is known from the optimum of the solitaire game: its mean and its standard deviation under
optimal play, both exact. From the mean comes off what the others' second Kismets are to be expected to cost: how many
of them are still to come under optimal play, each at what a forced zero costs this card now. The final totals are
taken for independent and normally distributed. Nothing in this is fitted. When two players have at most one open box
each, the exact chance takes its place, both playing to win. docs/two-players.md has the formulas.

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
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import solve
from kismet_env.tables import Record, Tables, box_points, tables_of
from kismet_env.threat import second_kismets

FILLED, BASIC_TOTAL, ARMED, TOTAL = range(4)
"""Columns of a player's card in this module: an (N, P, 4) int64 array has the cards of N games of P players."""
_NODES = 24  # of the integral over one player's total; with it the players' chances sum to 1 within 0.002
MEAN, VARIANCE, THREAT, COST = range(4)
"""What is judged of a card: mean and variance of its final total without the others; how many second Kismets it is to
bring; what a forced zero costs it."""


class Judge(NamedTuple):
    """What is known about cards, for the kernels; get it from `judge_of`."""

    starts: Table  # see cards.CardNumbers
    ranks: Table
    values: Table  # [card] mean of the points still to come
    others: Table  # [card, VARIANCE to COST] (size, 4) float32; the first column is not used
    same: Table  # [box, roll] (15, 252) int16: the first roll that does to every card what this one does
    nodes: Table  # [node] (24,): where, in standard deviations, a normal distribution is looked at
    weights: Table  # [node] (24,): sum 1
    endgame: Endgame


@lru_cache(maxsize=4)
def judge_of(rules: Rules) -> Judge:
    """Return what is known about cards under `rules`; the first time it is worked out, in some minutes."""
    optimum = solve(rules)
    numbers, points = optimum.numbers, box_points(rules)
    sds = optimum.prepare_sds()
    others = np.zeros((numbers.size, 4), np.float32)
    others[:, VARIANCE] = (sds.codes * sds.step) ** 2
    if rules.second_kismet_penalty:
        others[:, THREAT] = second_kismets(optimum)
        for layer in numbers.layers():
            _write_costs(tables_of(rules), numbers.starts, numbers.ranks, optimum.values, layer, others)
    does = np.stack([points[0], points[1], np.broadcast_to(IS_FIVE_ALIKE[:, None], points[0].shape)], axis=-1)
    same = np.empty((NUM_BOXES, NUM_ROLLS), np.int16)
    for box in range(NUM_BOXES):
        _, first, kind = np.unique(does[:, box], axis=0, return_index=True, return_inverse=True)
        same[box] = first[kind.reshape(-1)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return Judge(
        numbers.starts,
        numbers.ranks,
        optimum.values,
        others,
        same,
        nodes,
        weights / weights.sum(),
        endgame_of(rules),
    )


@compiled
def _write_costs(tables_array: Record, starts: Table, ranks: Table, values: Table, some: Table, others: Table) -> None:
    """Write what a forced zero costs `some` cards."""
    for index in range(len(some)):
        filled, basic_total, armed = some[index, 0], some[index, 1], some[index, 2] != 0
        place = place_of(starts, ranks, filled, basic_total, armed)
        bonus, filled, basic_total, armed = write_points(
            tables_array[0], filled, basic_total, armed, first_open_box(filled), 0, False
        )
        after = 0.0
        if filled != ALL_BOXES:
            after = values[place_of(starts, ranks, filled, basic_total, armed)]
        others[place, COST] = values[place] - bonus - after


@compiled
def _exceeds(mean: float, variance: float) -> float:
    """Return the chance that a normal number is positive, ties half."""
    if variance > 0.0:
        return 0.5 * math.erfc(-mean / math.sqrt(2.0 * variance))
    if mean == 0.0:
        return 0.5
    return 1.0 if mean > 0.0 else 0.0


@compiled
def _win_share(means: Table, variances: Table, player: int, nodes: Table, weights: Table) -> float:
    """Return what `player` is to be expected to have of the win, given all final totals' means and variances, (P,).

    The chance to be alone on top; of what is certain, k players on top have one k-th each. Two players have a closed
    form; more are an integral over the player's own total, because given that, the others are independent.
    """
    num_players = len(means)
    mean, variance = means[player], variances[player]
    if num_players == 2:
        return _exceeds(mean - means[1 - player], variance + variances[1 - player])
    rest, most, equals = 0.0, -np.inf, 1
    for other in range(num_players):
        if other != player:
            rest += variances[other]
            most = max(most, means[other])
            equals += means[other] == mean
    if rest == 0.0 and variance == 0.0:
        return 0.0 if most > mean else 1.0 / equals
    if rest == 0.0:
        return _exceeds(mean - most, variance)
    share, sd = 0.0, math.sqrt(variance)
    for node in range(len(nodes)):
        ahead = 1.0
        for other in range(num_players):
            if other != player:
                ahead *= _exceeds(mean + sd * nodes[node] - means[other], variances[other])
        share += weights[node] * ahead
        if variance == 0.0:
            return ahead
    return share


@compiled
def expected_share(judgements: Table, player: int, scratch: Table, nodes: Table, weights: Table) -> float:
    """Return what `player` is to be expected to have of the win, by `judgements` (4, P); `scratch` is (P,)."""
    threats = 0.0
    for other in range(len(scratch)):
        threats += judgements[THREAT, other]
    for other in range(len(scratch)):
        hits = threats - judgements[THREAT, other]
        scratch[other] = judgements[MEAN, other] - hits * judgements[COST, other]
    return _win_share(scratch, judgements[VARIANCE], player, nodes, weights)


@compiled
def card_worth(judge: Judge, filled: int, basic_total: int, armed: bool) -> float:
    """Return the mean of the points that a card still brings in the solitaire game."""
    if filled == ALL_BOXES:
        return 0.0
    return float(judge.values[place_of(judge.starts, judge.ranks, filled, basic_total, armed)])


@compiled
def _write_judgement(
    judge: Judge, filled: int, basic_total: int, armed: bool, total: int, judgements: Table, player: int
) -> int:
    """Write what is judged of a card into judgements[:, player]; return its kind in the endgame."""
    for what in range(4):
        judgements[what, player] = 0.0
    judgements[MEAN, player] = total
    if filled == ALL_BOXES:
        return FULL
    place = place_of(judge.starts, judge.ranks, filled, basic_total, armed)
    judgements[MEAN, player] += judge.values[place]
    for what in range(VARIANCE, COST + 1):
        judgements[what, player] = judge.others[place, what]
    return int(judge.endgame.kind_of[place])


@compiled
def write_judgements(tables: Tables, judge: Judge, cards: Table, punished: bool, judgements: Table) -> tuple[int, int]:
    """Write what is judged of one game's `cards` (P, 4) into (4, P); return the kind and total of the last one.

    `punished`: after a zero for everybody but the first.
    """
    kind, total = LONG, 0
    for player in range(len(cards)):
        filled, basic_total, armed = cards[player, FILLED], cards[player, BASIC_TOTAL], cards[player, ARMED] != 0
        total = cards[player, TOTAL]
        if punished and player > 0 and filled != ALL_BOXES:
            bonus, filled, basic_total, armed = write_points(
                tables, filled, basic_total, armed, first_open_box(filled), 0, False
            )
            total += bonus
        kind = _write_judgement(judge, filled, basic_total, armed, total, judgements, player)
    return kind, total


@compiled
def write_turn_worths(
    tables: Tables, judge: Judge, cards: Table, scratch: Table, chances: Table, points_worth: Table
) -> None:
    """Write what filling each open box with each roll is worth to the first of `cards` (P, 4), who is to move.

    `chances` [box, roll] (15, 252): his share of the win, as it is judged after this turn; `points_worth` (15, 252):
    the points, the bonus and the value of the card after them. The other cards are those on his left, in playing
    order; `scratch` is (2, 5, P). Filled boxes are left as they are.
    """
    starts, ranks, values, others, same = judge.starts, judge.ranks, judge.values, judge.others, judge.same
    nodes, weights, endgame = judge.nodes, judge.weights, judge.endgame
    filled, basic_total, armed, total = cards[0, FILLED], cards[0, BASIC_TOTAL], cards[0, ARMED] != 0, cards[0, TOTAL]
    num_players = len(cards)
    their_kind, their_total = np.empty(2, np.int64), np.empty(2, np.int64)  # [hit]
    for hit in range(2):  # the others as they are, and after a second Kismet
        kind, other_total = write_judgements(tables, judge, cards, hit == 1, scratch[hit])
        their_kind[hit], their_total[hit] = kind if num_players == 2 else LONG, other_total
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
            judgements, gain, my_kind = scratch[hit], points + bonus, FULL
            judgements[MEAN, 0] = gain
            for what in range(VARIANCE, COST + 1):
                judgements[what, 0] = 0.0
            if filled_after != ALL_BOXES:
                place = place_of(starts, ranks, filled_after, total_after, armed_after)
                judgements[MEAN, 0] += values[place]
                for what in range(VARIANCE, COST + 1):
                    judgements[what, 0] = others[place, what]
                my_kind = endgame.kind_of[place]
            points_worth[box, roll] = judgements[MEAN, 0]
            judgements[MEAN, 0] += total
            if my_kind != LONG and their_kind[hit] != LONG:
                lead = their_total[hit] - total - gain
                chances[box, roll] = share_of_end(endgame, my_kind, their_kind[hit], lead, hit == 1)
            else:
                chances[box, roll] = expected_share(judgements, 0, judgements[COST + 1], nodes, weights)


@compiled
def _write_shares(tables_array: Record, judge: Judge, games: Table, shares: Table) -> None:
    judgements = np.empty((5, games.shape[1]))
    for row in range(len(games)):
        write_judgements(tables_array[0], judge, games[row], False, judgements)
        for player in range(games.shape[1]):
            shares[row, player] = expected_share(judgements, player, judgements[COST + 1], judge.nodes, judge.weights)


def win_shares(cards: npt.NDArray[np.int64], rules: Rules) -> npt.NDArray[np.float64]:
    """Return the share of the win that each player is to be expected to have, whoever plays next, (N, P).

    `cards` (N, P, 4): filled boxes (a bit each), Basic total up to the top tier, armed (0 or 1), total.
    """
    shares = np.empty(cards.shape[:2])
    _write_shares(tables_of(rules), judge_of(rules), cards, shares)
    return shares


def turn_worths(cards: npt.NDArray[np.int64], rules: Rules) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what `write_turn_worths` says of one game's `cards` (P, 4): chances and points, [box, roll] (15, 252).

    NaN in filled boxes.
    """
    chances, points_worth = np.full((2, NUM_BOXES, NUM_ROLLS), np.nan)
    _write_turn_worths(tables_of(rules), judge_of(rules), cards, np.empty((2, 5, len(cards))), chances, points_worth)
    return chances, points_worth


@compiled
def _write_turn_worths(
    tables_array: Record, judge: Judge, cards: Table, scratch: Table, chances: Table, points_worth: Table
) -> None:
    write_turn_worths(tables_array[0], judge, cards, scratch, chances, points_worth)
