"""`PlanBook`: what it remembers is what would be worked out, whatever fits into it."""

import pickle
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kismet_env.bots.plan_book import PlanBook
from kismet_env.bots.turn_greedy import TurnGreedy
from kismet_env.rules import Rules
from kismet_env.tables import Record, max_total, tables_of
from kismet_env.turn import action_values, best_actions

NUM_DECISIONS = 400
Decisions = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


def worths_of_the_dice(tables: Record, cards: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
    """What nobody would want, but other for every card, box and roll, with many ties."""
    rolls, boxes = np.arange(252), np.arange(15)[:, None]
    worths[...] = (cards.sum(1)[:, None, None] * 7 + boxes * 3 + rolls) % 11


def some_decisions(seed: int) -> Decisions:
    """Return (filled, basic_total, armed), roll, rolls left; the cards come up several times."""
    rng = np.random.default_rng(seed)
    cards = np.stack([rng.integers(0, 2**15 - 1, 120), rng.integers(0, 79, 120), rng.integers(0, 2, 120)], 1)
    chosen = cards[rng.integers(0, 120, NUM_DECISIONS)]
    return chosen, rng.integers(0, 252, NUM_DECISIONS), rng.integers(0, 3, NUM_DECISIONS)


@pytest.mark.parametrize("capacity", [1, 7, 100, 1000])
@pytest.mark.parametrize("rules", [Rules(), Rules(zeros="only_if_nothing_scores", yarborough="only_if_nothing_else")])
def test_actions_are_the_best_whatever_fits_in(capacity: int, rules: Rules) -> None:
    write_worths = partial(worths_of_the_dice, tables_of(rules))
    book = PlanBook(tables_of(rules), write_worths, capacity)
    for seed in (1, 2, 1, 3):
        cards, rolls, rolls_left = some_decisions(seed)
        expected = best_actions(action_values(tables_of(rules), cards, rolls, rolls_left, write_worths))
        np.testing.assert_array_equal(book.actions(cards, rolls, rolls_left), expected)


def test_pairs_with_other_leads_have_other_plans() -> None:
    """Leads as far apart as 500 points for a box or a bonus allow."""
    rules = Rules(straight_score=500, flush_score=500, bonus_tiers=((1, 500),))
    most = max_total(rules)
    chance = np.random.default_rng(0)

    def write_worths(pairs: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
        worths[...] = [np.random.default_rng(most + lead).random((15, 252)) for lead in pairs[:, 6]]

    pairs = np.zeros((2 * most + 1, 7), np.int64)
    pairs[:, 6] = chance.permutation(np.arange(-most, most + 1))
    rolls, rolls_left = chance.integers(0, 252, len(pairs)), np.zeros(len(pairs), np.int64)
    expected = best_actions(action_values(tables_of(rules), pairs, rolls, rolls_left, write_worths))
    book = PlanBook(tables_of(rules), write_worths, len(pairs))
    np.testing.assert_array_equal(book.actions(pairs, rolls, rolls_left), expected)


def test_nothing_half_written_is_remembered() -> None:
    """A stop in the middle, such as Ctrl-C, leaves a book that works."""
    rules, stops = Rules(), [True]

    def write_worths(cards: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
        if stops:
            raise KeyboardInterrupt
        worths_of_the_dice(tables_of(rules), cards, worths)

    book = PlanBook(tables_of(rules), write_worths)
    decisions = some_decisions(1)
    with pytest.raises(KeyboardInterrupt):
        book.actions(*decisions)
    stops.clear()
    expected = best_actions(action_values(tables_of(rules), *decisions, write_worths))
    np.testing.assert_array_equal(book.actions(*decisions), expected)


def test_a_full_card_is_no_trouble() -> None:
    book = PlanBook(tables_of(Rules()), partial(worths_of_the_dice, tables_of(Rules())))
    cards = np.array([[2**15 - 1, 63, 1]] * 3)
    actions = book.actions(cards, np.array([0, 100, 251]), np.array([0, 1, 2]))
    assert ((actions >= 0) & (actions < 225)).all()


def test_a_pickled_player_leaves_its_memory_behind() -> None:
    player = TurnGreedy(Rules())
    observations = np.random.default_rng(0).random((50, 79)).astype(np.float32)
    observations[:, 39:54] = observations[:, 39:54] > 0.5
    player.act(observations, np.ones((50, 225), np.int8))
    data = pickle.dumps(player)
    assert len(data) < 1_000_000
    again = pickle.loads(data).act(observations, np.ones((50, 225), np.int8))
    np.testing.assert_array_equal(again, player.act(observations, np.ones((50, 225), np.int8)))
