"""The exact end of a game of two: against a search by matrices, against play, and what players give away there."""

from functools import cache

import numpy as np
import pytest

from kismet_env import endgame
from kismet_env.bots import make
from kismet_env.contest import play_contest
from kismet_env.dice import CAN_KEEP, REROLL_PROBABILITY, ROLL_DICE
from kismet_env.rules import Box, Rules, basic_bonus, score
from kismet_env.solver import solve
from kismet_env.tables import tables_of

FIVE_ALIKE = np.ptp(ROLL_DICE, axis=1) == 0
One = tuple[Box, int, bool]
"""A card with this one box open, its Basic total and whether it is armed."""


def gains(card: One) -> np.ndarray:
    """What each roll brings in the open box, (252,), bonus included."""
    box, _, armed = card
    points = [score(dice, box, joker=armed and len(set(dice)) == 1) for dice in ROLL_DICE.tolist()]
    return np.array([each + bonus(card, each) for each in points])


def bonus(card: One, points: int) -> int:
    box, basic_total, _ = card
    return basic_bonus(basic_total + points, Rules()) if box <= Box.SIXES else 0


def best_mean(worths: np.ndarray, may_stop: np.ndarray) -> float:
    """The value of a turn with one open box: worths (252,) of filling it; before the last roll only where it scores."""
    value = worths
    for _ in range(2):
        rolling = np.where(CAN_KEEP, REROLL_PROBABILITY @ value, -np.inf).max(1)
        value = np.maximum(np.where(may_stop, worths, -np.inf), rolling)
    return float(REROLL_PROBABILITY[0] @ value)


def may_stop(card: One) -> np.ndarray:
    box, _, armed = card
    return np.array([score(dice, box, joker=armed and len(set(dice)) == 1) > 0 for dice in ROLL_DICE.tolist()])


def share(points: np.ndarray) -> np.ndarray:
    return (np.sign(points) + 1) / 2


@cache
def last(card: One, lead: int) -> float:
    return best_mean(share(gains(card) - lead), may_stop(card))


def both(mine: One, other: One, lead: int) -> float:
    """The share of the win of him who moves, his opponent being `lead` points ahead."""
    worths = np.empty(252)
    for roll, gain in enumerate(gains(mine)):
        if mine[2] and FIVE_ALIKE[roll]:
            worths[roll] = share(np.array(gain - lead - bonus(other, 0)))
        else:
            worths[roll] = 1 - last(other, int(gain) - lead)
    return best_mean(worths, may_stop(mine))


def place(card: One) -> list[int]:
    box, basic_total, armed = card
    return [32767 & ~(1 << box), 0 if box > Box.SIXES else basic_total, int(armed)]


CASES: list[tuple[One, One, int]] = [
    ((Box.YARBOROUGH, 60, False), (Box.THREE_OF_A_KIND, 60, False), 2),
    ((Box.SIXES, 50, True), (Box.FIVES, 52, True), -20),
    ((Box.FLUSH, 63, True), (Box.SIXES, 63, False), -20),
    ((Box.FULL_HOUSE_SAME_COLOR, 63, True), (Box.ACES, 60, True), 1),
    ((Box.KISMET, 63, False), (Box.STRAIGHT, 63, False), 40),
]


def lookup(table: endgame.Endgame, card: One) -> int:
    numbers = solve().numbers
    return int(table.kind_of[numbers.places(np.array([place(card)]))[0]])


def test_the_table_is_what_a_search_finds() -> None:
    table = endgame.kinds_of(Rules())
    for mine, other, lead in CASES:
        kind, other_kind = lookup(table, mine), lookup(table, other)
        assert endgame.share_of_last(table, kind, lead) == pytest.approx(last(mine, lead), abs=1e-12), (mine, lead)
        endgame.write_both(tables_of(Rules()), table, kind)
        expected = both(mine, other, lead)
        assert 0.01 < expected < 0.99, "too easy"
        assert endgame.share_of_both(table, kind, other_kind, lead) == pytest.approx(expected, abs=1e-6), (mine, other)


def test_cards_of_one_kind_are_played_alike() -> None:
    table = endgame.kinds_of(Rules())
    same = [(Box.SIXES, total, False) for total in (10, 32)]  # 63 is out of reach
    assert len({lookup(table, card) for card in same}) == 1
    different = [(Box.SIXES, 33, False), (Box.SIXES, 34, False), (Box.SIXES, 45, False), (Box.SIXES, 45, True)]
    assert len({lookup(table, card) for card in different}) == 3  # 33 and 34 reach 63 with five sixes alone


@pytest.mark.slow
def test_win_probability_gives_nothing_away_in_the_endgame_and_others_do() -> None:
    contest = play_contest([make("win_probability"), make("optimal")], 500, seed=4)
    assert contest.errors is not None
    errors = contest.errors.mean((0, 1))
    assert 0 <= errors[0] < 1e-7
    assert 1e-3 < errors[1] < 0.1
    assert contest.errors.min() > -1e-7
