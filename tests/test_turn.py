"""The best play of one turn: against expectations worked out over all ordered throws."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import reference
from reference import BOXES, Dice
from reference_game import KEEP_NUMBER, ROLL_NUMBER, keeps_of

from kismet_env.dice import KEEP_COUNTS
from kismet_env.rules import Rules
from kismet_env.tables import box_points, tables_of
from kismet_env.turn import TIE, action_values, best_actions, best_over_keeps, card_values, mean_over_rolls, plan_turn

VARIANTS: list[dict[str, Any]] = [
    {},
    {"zeros": "only_if_nothing_scores", "yarborough": "only_if_nothing_else"},
    {"zeros": "any_time", "second_kismet": "rolled"},
]


@cache
def throws(kept: Dice) -> np.ndarray:
    """Return the numbers of the rolls that come of all ordered throws of the other dice."""
    thrown = product(reference.FACES, repeat=5 - len(kept))
    return np.array([ROLL_NUMBER[tuple(sorted(kept + dice))] for dice in thrown])


def means(values: np.ndarray) -> dict[Dice, float]:
    """Return the mean of `values` (252,) after each keep."""
    return {kept: float(values[throws(kept)].mean()) for kept in KEEP_NUMBER}


def random_cards(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return cards (filled, basic_total, armed) with an open box; equal ones may follow each other."""
    filled = rng.integers(2**15 - 1, size=count)
    armed = rng.integers(2, size=count) * (filled >> 14)
    return np.stack([filled, rng.integers(60, size=count), armed], axis=1)


def values_by_brute_force(
    card: np.ndarray, roll: int, rolls_left: int, worth: np.ndarray, fields: dict[str, Any]
) -> np.ndarray:
    """Return the value of each action, (225,), of a turn that ends with `worth` [box, roll]."""
    filled, _, armed = card.tolist()
    open_boxes = [box for number, box in enumerate(BOXES) if not filled >> number & 1]

    def boxes(dice: Dice, left: int) -> list[int]:
        joker = bool(armed and len(set(dice)) == 1 and filled >> 14)
        return [BOXES.index(box) for box in reference.boxes_to_fill(dice, left, open_boxes, joker, fields)]

    def best_box(left: int) -> np.ndarray:
        return np.array(
            [
                max((worth[box, number] for box in boxes(dice, left)), default=-np.inf)
                for dice, number in ROLL_NUMBER.items()
            ]
        )

    value, keep_values = best_box(0), means(best_box(0))
    for _ in range(rolls_left - 1):
        rolled = np.array([max(keep_values[kept] for kept in keeps_of(dice)) for dice in ROLL_NUMBER])
        value = np.maximum(best_box(1), rolled)
        keep_values = means(value)
    out = np.full(225, -np.inf)
    dice = next(dice for dice, number in ROLL_NUMBER.items() if number == roll)
    for kept in keeps_of(dice) if rolls_left else ():
        out[KEEP_NUMBER[kept]] = keep_values[kept]
    for box in boxes(dice, rolls_left):
        out[210 + box] = worth[box, roll]
    return out


@pytest.mark.parametrize("changed", VARIANTS, ids=str)
def test_action_values_are_exact_expectations(changed: dict[str, Any]) -> None:
    """For worths of any kind, on any card; -inf exactly where an action is illegal."""
    rng = np.random.default_rng(4)
    cards, rolls, rolls_left = random_cards(rng, 10), rng.integers(252, size=10), np.arange(10) % 3
    worths = rng.normal(20, 15, size=(15, 252))

    def write_worths(cards: np.ndarray, out: np.ndarray) -> None:
        out[:] = worths + cards[:, 1, None, None]

    actual = action_values(tables_of(Rules.of(changed)), cards, rolls, rolls_left, write_worths)
    for row in range(10):
        worth = worths + cards[row, 1]
        fields = {**reference.STANDARD, **changed}
        expected = values_by_brute_force(cards[row], int(rolls[row]), int(rolls_left[row]), worth, fields)
        np.testing.assert_allclose(actual[row], expected, rtol=1e-12, err_msg=f"card {cards[row]}, roll {rolls[row]}")


def test_a_card_is_worth_the_mean_of_its_first_roll() -> None:
    rng = np.random.default_rng(6)
    cards, tables = random_cards(rng, 70), tables_of(Rules())
    worths = rng.normal(20, 15, size=(15, 252))

    def write_worths(cards: np.ndarray, out: np.ndarray) -> None:
        out[:] = worths + cards[:, 1, None, None]

    for card, value in zip(cards, card_values(tables, cards, write_worths), strict=True):
        decisions = np.repeat(card[None], 252, axis=0), np.arange(252), np.full(252, 2)
        of_rolls = action_values(tables, *decisions, write_worths).max(1)
        np.testing.assert_allclose(value, of_rolls[throws(())].mean())


def test_rows_do_not_depend_on_each_other_nor_on_their_order() -> None:
    """Equal cards are worked out once and many cards in parts; nobody may notice."""
    rng = np.random.default_rng(5)
    cards = np.repeat(random_cards(rng, 100), rng.integers(1, 4, size=100), axis=0)
    rng.shuffle(cards)
    rolls, rolls_left = rng.integers(252, size=len(cards)), rng.integers(3, size=len(cards))
    asked: list[bytes] = []

    def write_worths(cards: np.ndarray, out: np.ndarray) -> None:
        asked.extend(card.tobytes() for card in cards)
        out[:] = box_points(Rules())[0].T + cards.sum(1)[:, None, None]

    together = action_values(tables_of(Rules()), cards, rolls, rolls_left, write_worths)
    assert len(asked) == len(set(asked)) == len(np.unique(cards, axis=0))
    for row in range(0, len(cards), 7):
        one = slice(row, row + 1)
        alone = action_values(tables_of(Rules()), cards[one], rolls[one], rolls_left[one], write_worths)
        assert np.array_equal(alone[0], together[row])


def test_no_decisions_have_no_values() -> None:
    none = np.empty(0, np.int64)
    assert action_values(tables_of(Rules()), np.empty((0, 3), np.int64), none, none, lambda *_: None).shape == (0, 225)


def test_five_alike_in_three_rolls() -> None:
    """A turn played for Kismet alone succeeds with the chance known from Yahtzee: 4.6029 in 100."""
    worth = np.array([float(len(set(dice)) == 1) for dice in ROLL_NUMBER])
    roll_values, keep_values, best = np.empty((3, 252)), np.empty((3, 462)), np.empty(462)
    plan_turn(worth, worth, roll_values, keep_values, best)
    assert keep_values[2, 0] == pytest.approx(roll_values[1][throws(())].mean())
    assert roll_values[2][throws(())].mean() == pytest.approx(0.046028643, abs=1e-9)
    assert roll_values[2, ROLL_NUMBER[(2, 2, 2, 2, 6)]] == pytest.approx(11 / 36)


def test_means_and_best_of_keeps() -> None:
    values = np.random.default_rng(1).normal(size=252)
    keep_values, best = np.empty(462), np.empty(462)
    mean_over_rolls(values, keep_values)
    for kept, mean in means(values).items():
        assert keep_values[KEEP_NUMBER[kept]] == pytest.approx(mean, abs=1e-12)
    assert np.array_equal(keep_values[210:], values)
    best_over_keeps(keep_values, best)
    for keep in range(462):
        inside = (KEEP_COUNTS[:210] <= KEEP_COUNTS[keep]).all(1)
        assert best[keep] == keep_values[:210][inside].max()


def test_among_equals_the_lowest_number_is_played() -> None:
    values = np.array(
        [
            [1.0, 3.0, 3.0, 2.0],
            [3.0 - TIE / 2, 1.0, 3.0, 3.0],
            [3.0 - TIE * 2, 1.0, 3.0, 3.0],
            [-np.inf, -np.inf, -np.inf, -5.0],
            [0.0, 0.0, 0.0, 0.0],
        ]
    )
    assert best_actions(values).tolist() == [1, 0, 2, 3, 0]
    assert best_actions(values.reshape(5, 1, 4)).tolist() == [[1], [0], [2], [3], [0]]
    assert best_actions(values[0]) == 1
