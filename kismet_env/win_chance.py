"""The chance to win a game of several players, judged from the cards between two turns.

What a card still brings is known from the optimum of the solitaire game: its mean and its standard deviation under
optimal play, both exact. The final totals are taken for independent and normally distributed with these. Nothing in
this is fitted, and whose turn it is does not matter. docs/two-players.md has the formulas.

A turn can be planned by this as by points: `write_turn_worths` says what filling each box with each roll is worth in
both ways, the zeros that a second Kismet forces on the others included.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.cards import place_of
from kismet_env.dice import IS_FIVE_ALIKE, NUM_ROLLS
from kismet_env.engine import ALL_BOXES, fill_box, first_open_box, is_second_kismet, write_points
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import solve
from kismet_env.tables import Record, Tables, box_points, tables_of

FILLED, BASIC_TOTAL, ARMED, TOTAL = range(4)
"""Columns of a player's card in this module: an (N, P, 4) int64 array has the cards of N games of P players."""
_NODES = 24  # of the integral over one player's total; with it three players' chances sum to 1 within 0.001


class Judge(NamedTuple):
    """What is known about cards, for the kernels; get it from `judge_of`."""

    starts: Table  # see cards.CardNumbers
    ranks: Table
    values: Table  # [card] mean of the points still to come
    sd_codes: Table  # [card] their standard deviation, in steps
    sd_step: float
    same: Table  # [box, roll] (15, 252) int16: the first roll that does to every card what this one does
    nodes: Table  # [node] (24,): where, in standard deviations, a normal distribution is looked at
    weights: Table  # [node] (24,): sum 1


@lru_cache(maxsize=8)
def judge_of(rules: Rules) -> Judge:
    """Return what is known about cards under `rules`; the first time it is worked out, in one to two minutes."""
    optimum = solve(rules)
    sds = optimum.prepare_sds()
    points = box_points(rules)
    does = np.stack([points[0], points[1], np.broadcast_to(IS_FIVE_ALIKE[:, None], points[0].shape)], axis=-1)
    same = np.empty((NUM_BOXES, NUM_ROLLS), np.int16)
    for box in range(NUM_BOXES):
        _, first, kind = np.unique(does[:, box], axis=0, return_index=True, return_inverse=True)
        same[box] = first[kind.reshape(-1)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    numbers = optimum.numbers
    return Judge(
        numbers.starts, numbers.ranks, optimum.values, sds.codes, sds.step, same, nodes, weights / weights.sum()
    )


@compiled
def _exceeds(mean: float, variance: float) -> float:
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
def judge_card(judge: Judge, filled: int, basic_total: int, armed: bool) -> tuple[float, float]:
    """Return the mean and the variance of the points that a card still brings."""
    if filled == ALL_BOXES:
        return 0.0, 0.0
    place = place_of(judge.starts, judge.ranks, filled, basic_total, armed)
    sd = judge.sd_codes[place] * judge.sd_step
    return float(judge.values[place]), float(sd * sd)


@compiled
def write_judgements(judge: Judge, cards: Table, means: Table, variances: Table) -> None:
    """Write the means and variances of the final totals of one game's `cards` (P, 4) into (P,) each."""
    for player in range(len(cards)):
        mean, variance = judge_card(judge, cards[player, FILLED], cards[player, BASIC_TOTAL], cards[player, ARMED] != 0)
        means[player], variances[player] = cards[player, TOTAL] + mean, variance


@compiled
def _write_punished(tables: Tables, judge: Judge, cards: Table, means: Table, variances: Table) -> None:
    """Write what `write_judgements` does, (P,) each, but after a zero for everybody behind the first of `cards`."""
    for player in range(1, len(cards)):
        filled, basic_total, armed = cards[player, FILLED], cards[player, BASIC_TOTAL], cards[player, ARMED] != 0
        box, bonus = first_open_box(filled), 0
        if box < NUM_BOXES:
            bonus, filled, basic_total, armed = write_points(tables, filled, basic_total, armed, box, 0, False)
        mean, variance = judge_card(judge, filled, basic_total, armed)
        means[player], variances[player] = cards[player, TOTAL] + bonus + mean, variance


@compiled
def write_turn_worths(
    tables: Tables, judge: Judge, cards: Table, scratch: Table, chances: Table, points_worth: Table
) -> None:
    """Write what filling each open box with each roll is worth to the first of `cards` (P, 4), who is to move.

    `chances` [box, roll] (15, 252): his share of the win, as it is judged after this turn; `points_worth` (15, 252):
    the points, the bonus and the value of the card after them. The other cards are those on his left, in playing
    order; `scratch` is (2, 2, P). Filled boxes are left as they are.
    """
    starts, ranks, values, sd_codes, sd_step = judge.starts, judge.ranks, judge.values, judge.sd_codes, judge.sd_step
    same, nodes, weights = judge.same, judge.nodes, judge.weights
    means, variances = scratch[0], scratch[1]  # [kind, player]: as they are, and after zeros for the others
    write_judgements(judge, cards, means[0], variances[0])
    filled, basic_total, armed, total = cards[0, FILLED], cards[0, BASIC_TOTAL], cards[0, ARMED] != 0, cards[0, TOTAL]
    if armed and tables.penalty:
        _write_punished(tables, judge, cards, means[1], variances[1])
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
            after, sd = 0.0, 0.0
            if filled_after != ALL_BOXES:
                place = place_of(starts, ranks, filled_after, total_after, armed_after)
                after, sd = values[place], sd_codes[place] * sd_step
            worth = points + bonus + after
            points_worth[box, roll] = worth
            kind = int(tables.penalty and is_second_kismet(tables, armed, roll))
            means[kind, 0], variances[kind, 0] = total + worth, sd * sd
            chances[box, roll] = win_share(means[kind], variances[kind], 0, nodes, weights)


@compiled
def _write_shares(judge: Judge, games: Table, shares: Table) -> None:
    num_players = games.shape[1]
    means, variances = np.empty(num_players), np.empty(num_players)
    for row in range(len(games)):
        write_judgements(judge, games[row], means, variances)
        for player in range(num_players):
            shares[row, player] = win_share(means, variances, player, judge.nodes, judge.weights)


def win_shares(cards: npt.NDArray[np.int64], rules: Rules) -> npt.NDArray[np.float64]:
    """Return the share of the win that each player is to be expected to have between two turns, (N, P).

    `cards` (N, P, 4): filled boxes (a bit each), Basic total up to the top tier, armed (0 or 1), total.
    """
    shares = np.empty(cards.shape[:2])
    _write_shares(judge_of(rules), cards, shares)
    return shares


def turn_worths(cards: npt.NDArray[np.int64], rules: Rules) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what `write_turn_worths` says of one game's `cards` (P, 4): chances and points, [box, roll] (15, 252).

    NaN in filled boxes.
    """
    chances, points_worth = np.full((2, NUM_BOXES, NUM_ROLLS), np.nan)
    _write_turn_worths(tables_of(rules), judge_of(rules), cards, np.empty((2, 2, len(cards))), chances, points_worth)
    return chances, points_worth


@compiled
def _write_turn_worths(
    tables_array: Record, judge: Judge, cards: Table, scratch: Table, chances: Table, points_worth: Table
) -> None:
    write_turn_worths(tables_array[0], judge, cards, scratch, chances, points_worth)


def columns_of(filled: Any, basic_total: Any, armed: Any, total: Any) -> npt.NDArray[np.int64]:
    """Return the columns of players' cards, (...) each, as one array (..., 4)."""
    return np.stack(np.broadcast_arrays(filled, basic_total, armed, total), axis=-1).astype(np.int64)
