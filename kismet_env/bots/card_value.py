"""Plays each turn exactly and leaves what comes after it to a network that judges cards.

Filling a box is worth its points, its bonus and what the network, that of a portable policy of kind "card_value",
expects to come on the card after it; a full card is worth nothing more. With the exact values this is perfect play.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.bots.plan_book import PlanBook
from kismet_env.bots.player import Actions, Masks, Observations, Shares, turn_values
from kismet_env.cards import CardNumbers, place_of, write_worths
from kismet_env.dice import NUM_ROLLS, roll_indices
from kismet_env.engine import ALL_BOXES, fill_box
from kismet_env.exact import TurnPolicy
from kismet_env.jit import Table, compiled
from kismet_env.observation import decode, observe_cards
from kismet_env.policy_file import Policy
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, tables_of

_MOST_AFTER = NUM_BOXES * NUM_ROLLS
"""Cards that one card can become in a turn, at most."""


class CardPlayer(ABC):
    """Plays the action with the most points expected in the turn and, by his judgement of cards, after it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._begin()

    def _begin(self) -> None:
        self._tables = tables_of(self._rules)
        self._book = PlanBook(self._tables, self.write_worths)
        self._numbers = CardNumbers(self._tables)
        self._known = np.full(self._numbers.size, np.nan)  # judgements, each made once

    def __getstate__(self) -> dict[str, Any]:
        worked_out = ("_tables", "_book", "_numbers", "_known")
        return {name: value for name, value in self.__dict__.items() if name not in worked_out}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._begin()

    @abstractmethod
    def judge(self, cards: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the points he expects on `cards`, rows (filled, basic_total, armed) (C, 3), none of them full; (C,).

        He is asked once about every card, and about one for all whose Basic Section is full but for its total.
        """

    def values(self, cards: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the points he expects on `cards`, (C,); 0 on full ones."""
        is_full = cards[:, 0] == ALL_BOXES
        self._learn(cards[~is_full])
        return np.where(is_full, 0.0, self._known[np.where(is_full, 0, self._numbers.places(cards))])

    def _learn(self, cards: npt.NDArray[np.int64]) -> None:
        """Judge those of `cards`, none of them full, that have not been judged yet."""
        places = self._numbers.places(cards)
        unknown = np.flatnonzero(np.isnan(self._known[places]))
        if unknown.size:
            new, firsts = np.unique(places[unknown], return_index=True)
            self._known[new] = self.judge(cards[unknown[firsts]])

    def write_worths(self, cards: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
        """Write what filling each box with each roll is worth on each of `cards`; see turn.action_values."""
        numbers, after = self._numbers, np.empty((len(cards) * _MOST_AFTER, 3), np.int64)
        count = _write_unknown(self._tables, numbers.starts, numbers.ranks, self._known, cards, after)
        self._learn(after[:count])
        write_worths(self._tables, numbers.starts, numbers.ranks, self._known, cards, worths)

    def action_values(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return the points expected of each action and all that follows, (N, 225); -inf where illegal."""
        return turn_values(observations, self._tables, self.write_worths)

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row, the lowest number among equals."""
        filled, basic_total, armed, dice, rolls_left = decode(observations)
        cards = np.stack([filled, basic_total, armed], axis=1)
        return self._book.actions(cards, roll_indices(dice), rolls_left)

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("best", write_worths=self.write_worths)


class CardValue(CardPlayer):
    """Judges cards by a network.

    Args:
        policy: one of kind "card_value"; it plays under the rules it was trained for.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.provenance.rules)
        self._network = policy.network

    def judge(self, cards: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the points that the network expects on `cards`, (C,)."""
        seen = np.empty((len(cards), self._network.sizes[0]), np.float32)
        observe_cards(self._tables, cards, seen)
        return self._network(seen)[:, 0]


@compiled
def _write_unknown(tables_array: Record, starts: Table, ranks: Table, known: Table, cards: Table, after: Table) -> int:
    """Write the cards that a turn can lead to from `cards` and whose `known` value is nan into the rows of `after`.

    Some of them more than once. Returns how many there are.
    """
    tables, count = tables_array[0], 0
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        for box in range(NUM_BOXES):
            if filled >> box & 1:
                continue
            for roll in range(NUM_ROLLS):
                if tables.like[box, roll] != roll:
                    continue
                _, _, filled_after, total_after, armed_after = fill_box(tables, filled, basic_total, armed, roll, box)
                if filled_after == ALL_BOXES:
                    continue
                if np.isnan(known[place_of(starts, ranks, filled_after, total_after, armed_after)]):
                    after[count, 0], after[count, 1], after[count, 2] = filled_after, total_after, int(armed_after)
                    count += 1
    return count
