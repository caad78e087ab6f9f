"""Distributions of cards with few open boxes: against brute force and the optimum, and in the chance to win."""

import numpy as np
import pytest
from brute_force import card_of
from crystal import FULL, Crystal, closed_of

from kismet_env.bots import make
from kismet_env.dice import roll_index
from kismet_env.late_cards import late_cards, late_layers
from kismet_env.rules import BASIC_BOXES, Box, Rules
from kismet_env.solver import solve
from kismet_env.win_chance import turn_worths

pytestmark = pytest.mark.slow


def distribution(*open_boxes: Box) -> tuple[int, int, np.ndarray]:
    """A card's boxes and Basic total, and the points that brute force sees coming on it."""
    points = {name: held for name, held in FULL.items() if Box[name] not in open_boxes}
    total = sum(points.get(box.name, 0) for box in BASIC_BOXES)
    card = card_of(tuple(box.name for box in open_boxes), total)
    return closed_of(*open_boxes), total, Crystal(make("optimal"), Rules(), {}).future(card, points).card


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
    for open_boxes in [(Box.SIXES, Box.FULL_HOUSE), (Box.SIXES, Box.KISMET)]:
        filled, total, expected = distribution(*open_boxes)
        row = row_of[optimum.numbers.places(np.array([[filled, total, 0]]))[0]]
        np.testing.assert_allclose(late[row], expected[: late.shape[1]], atol=1e-7)


def test_the_chance_to_win_is_that_of_the_distributions() -> None:
    mine, my_total, first = distribution(Box.SIXES, Box.YARBOROUGH)
    other, their_total, second = distribution(Box.FIVES, Box.KISMET)
    chances, _ = turn_worths(
        np.array([[mine & ~(1 << Box.FLUSH), my_total, 0, 200], [other, their_total, 0, 190]]), Rules()
    )
    my_points, their_points = 235 + np.arange(len(first)), 190 + np.arange(len(second))
    wins = (np.sign(my_points[:, None] - their_points) + 1) / 2
    assert chances[Box.FLUSH, roll_index([6, 6, 6, 1, 1])] == pytest.approx(first @ wins @ second, abs=1e-6)
