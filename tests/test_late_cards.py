"""Distributions of cards with few open boxes: against the exact value of the same policy, and in the chance to win."""

import numpy as np
import pytest

from kismet_env.dice import roll_index
from kismet_env.exact import PolicyValue, TurnPolicy
from kismet_env.late_cards import late_cards, late_layers
from kismet_env.rules import Box, Rules
from kismet_env.solver import solve
from kismet_env.tables import tables_of
from kismet_env.win_chance import turn_worths

pytestmark = pytest.mark.slow


def closed(*open_boxes: Box) -> int:
    return 32767 & ~sum(1 << box for box in open_boxes)


def distribution(filled: int, basic_total: int) -> np.ndarray:
    """The same by another program: the value of optimal play as a policy, for games that begin with these boxes."""
    policy = TurnPolicy("best", write_worths=solve().write_worths)
    return PolicyValue(policy, tables_of(Rules()), closed=filled).distribution(closed=filled, basic_total=basic_total)


def test_means_spreads_and_distributions_are_those_of_optimal_play() -> None:
    optimum = solve()
    row_of, late = late_cards(optimum)
    points = np.arange(late.shape[1])
    for layer in late_layers(optimum):
        chances = late[row_of[optimum.numbers.places(layer)]].astype(float)
        means = chances @ points
        np.testing.assert_allclose(chances.sum(1), 1.0, atol=1e-6)
        np.testing.assert_allclose(means, optimum.card_value(*layer.T), atol=1e-4)
        np.testing.assert_allclose(np.sqrt(chances @ points**2 - means**2), optimum.card_sd(*layer.T), atol=2e-3)
    filled = closed(Box.SIXES, Box.FULL_HOUSE, Box.KISMET)
    expected = distribution(filled, 45)
    row = row_of[optimum.numbers.places(np.array([[filled, 45, 0]]))[0]]
    np.testing.assert_allclose(late[row, : len(expected)], expected, atol=1e-6)


def test_the_chance_to_win_is_that_of_the_distributions() -> None:
    mine, other = closed(Box.FLUSH, Box.SIXES, Box.YARBOROUGH), closed(Box.FIVES, Box.KISMET)
    chances, _ = turn_worths(np.array([[mine, 45, 0, 200], [other, 55, 0, 190]]), Rules())
    first, second = distribution(mine | 1 << Box.FLUSH, 45), distribution(other, 55)
    my_points, their_points = 235 + np.arange(len(first)), 190 + np.arange(len(second))
    wins = (np.sign(my_points[:, None] - their_points) + 1) / 2
    assert chances[Box.FLUSH, roll_index([6, 6, 6, 1, 1])] == pytest.approx(first @ wins @ second, abs=1e-6)
