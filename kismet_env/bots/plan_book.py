"""What a player of turns does with every roll, worked out once for each card and remembered.

A plan depends on the card alone, and the decisions of a turn are on the same card: one plan serves them all, and again
whenever the card comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.bots.player import Actions
from kismet_env.dice import NUM_ROLLS
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES
from kismet_env.tables import Record
from kismet_env.turn import CARDS_AT_ONCE, allow, new_plan, plan_card, write_best_actions

CAPACITY = 1 << 16
_NO_CARD = -1
_COLUMN_BITS = (15, 7, 1, 15, 7, 1, 12)  # of a card, or of a pair of cards and their lead, +-1,925 at most
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads keys that are close together


class PlanBook:
    """The best actions of a player of turns, as `turn.action_values` and `turn.best_actions` have them, exactly.

    Args:
        tables: those of the rules.
        write_worths: what filling each box with each roll is worth to the player, see `turn.action_values`.
        capacity: how many cards, or pairs of cards, fill the book, 756 bytes each; it is then begun anew.
    """

    def __init__(
        self,
        tables: Record,
        write_worths: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], None],
        capacity: int = CAPACITY,
    ) -> None:
        self._tables = tables
        self._write_worths = write_worths
        self._capacity = capacity
        self._begin()

    def _begin(self) -> None:
        """Forget all plans."""
        self._count = 0
        slots = 2 << (self._capacity - 1).bit_length()  # a power of two, of which at most half is used
        self._keys = np.full(slots, _NO_CARD)  # hash table of cards with linear probing
        self._places = np.empty(slots, np.int64)  # where the plan of a key stands
        self._plans = np.empty((self._capacity, ROLLS_PER_TURN, NUM_ROLLS), np.uint8)  # [place, left, roll]: action

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("_tables", "_write_worths", "_capacity")}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._begin()

    def actions(
        self, cards: npt.NDArray[np.int64], rolls: npt.NDArray[np.int64], rolls_left: npt.NDArray[np.int64]
    ) -> Actions:
        """Return the best action ("keeps" numbering, the lowest number among equals) of each decision, (N,) int64.

        The decisions are `cards` (N, 3) int64, rows (filled, basic_total, armed), or `card_pair.Pairs` (N, 7), in one
        book always the same; `rolls` (N,) 0..251 and `rolls_left` (N,) 0..2. On a full card any action comes back.
        """
        actions = np.empty(len(cards), np.int64)
        for first in range(0, len(cards), self._capacity):
            some = slice(first, first + self._capacity)
            places = self._look_up(cards[some])
            actions[some] = self._plans[places, rolls_left[some], rolls[some]]
        return actions

    def _look_up(self, cards: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where the plans of no more cards than the book holds stand, (N,); the missing ones are written."""
        places, new = np.empty(len(cards), np.int64), np.empty(len(cards), np.int64)
        count = _find(self._keys, self._places, self._count, self._capacity, cards, places, new)
        if count > self._capacity:
            self._begin()
            count = _find(self._keys, self._places, 0, self._capacity, cards, places, new)
        missing = cards[new[: count - self._count]]
        try:
            worths = np.empty((min(CARDS_AT_ONCE, len(missing)), NUM_BOXES, NUM_ROLLS))
            for first in range(0, len(missing), CARDS_AT_ONCE):
                some = missing[first : first + CARDS_AT_ONCE]
                self._write_worths(some, worths[: len(some)])
                _write_plans(self._tables, some, worths, self._plans[self._count + first :])
        except BaseException:  # such as Ctrl-C: their keys are in the table, their plans are not
            self._begin()
            raise
        self._count = count
        return places


@compiled
def _find(
    keys: Table, places_of_keys: Table, count: int, capacity: int, cards: Table, places: Table, new: Table
) -> int:
    """Write the place of each card into `places`; give those that are new the places from `count` on.

    `new` tells in which rows they stand. Returns how many cards there are then, or capacity + 1 if it does not hold
    them; the table must not be used any more then.
    """
    known = count
    last_slot = len(keys) - 1
    for row in range(len(cards)):
        key = 0
        for column in range(cards.shape[1]):
            bits = _COLUMN_BITS[column]
            key = key << bits | cards[row, column] & (1 << bits) - 1
        slot = np.int64(np.uint64(key) * np.uint64(_GOLDEN) >> np.uint64(32)) & last_slot
        while keys[slot] != key and keys[slot] != _NO_CARD:
            slot = slot + 1 & last_slot
        if keys[slot] == _NO_CARD:
            if count == capacity:
                return count + 1
            keys[slot], places_of_keys[slot] = key, count
            new[count - known] = row
            count += 1
        places[row] = places_of_keys[slot]
    return count


@compiled
def _write_plans(tables_array: Record, cards: Table, worths: Table, plans: Table) -> None:
    """Write the best action on each card, [card, rolls left, roll], given what the boxes are worth there."""
    plan = new_plan()
    for index in range(len(cards)):
        filled, worth = cards[index, 0], worths[index]
        allow(tables_array[0], filled, cards[index, 2] != 0, plan)
        plan_card(filled, worth, plan)
        write_best_actions(filled, worth, plan, plans[index])
