"""Plays like a beginner: takes what the dice are worth now, and hopes for more of a kind.

1. Dice that are worth `GOOD_ENOUGH` points in an open box are taken at once.
2. Else, while there are rolls left: keep the face of which most dice show (the highest among equals) and roll the
   others. Only faces that are still of use count: their Basic box is open, or a box for dice of a kind is.
3. After the last roll: fill the box that brings the most points, the nearest to the top among equals.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kismet_env.bots.player import Actions, Masks, Observations, Shares
from kismet_env.dice import NUM_DICE, NUM_FACES, NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_COUNTS, keep_index, roll_indices
from kismet_env.engine import ROLLS_PER_TURN, fill_box, legal_boxes
from kismet_env.exact import TurnPolicy
from kismet_env.jit import Table, compiled
from kismet_env.observation import decode
from kismet_env.rules import NUM_BOXES, Box, Rules
from kismet_env.tables import Record, Tables, tables_of

GOOD_ENOUGH = 30  # points: a straight, a flush, most full houses and fours of a kind

_KEEP_OF_KIND = np.array(
    [[keep_index([face] * count) for count in range(NUM_DICE)] for face in range(1, NUM_FACES + 1)]
)  # [face - 1, count]
_OF_A_KIND = sum(1 << box for box in (Box.THREE_OF_A_KIND, Box.FOUR_OF_A_KIND, Box.KISMET))


class Greedy:
    """Takes the best box now, see the rules above."""

    def __init__(self, rules: Rules) -> None:
        self._tables = tables_of(rules)

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return an action for every row."""
        decision = decode(observations)
        actions = np.empty(len(observations), np.int64)
        _choose_all(self._tables, *decision[:3], roll_indices(decision.dice), decision.rolls_left, actions)
        return actions

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("table", write_table=partial(_write_table, self._tables))


@compiled
def _write_table(tables_array: Record, cards: Table, table: Table) -> None:
    """Write the action on each card, [card, rolls left, roll]."""
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        for left in range(ROLLS_PER_TURN):
            for roll in range(NUM_ROLLS):
                table[index, left, roll] = _choose(tables_array[0], filled, basic_total, armed, roll, left)


@compiled
def _choose_all(
    tables_array: Record,
    filled: Table,
    basic_total: Table,
    armed: Table,
    roll: Table,
    rolls_left: Table,
    actions: Table,
) -> None:
    for row in range(len(actions)):
        actions[row] = _choose(tables_array[0], filled[row], basic_total[row], armed[row], roll[row], rolls_left[row])


@compiled
def _choose(tables: Tables, filled: int, basic_total: int, armed: bool, roll: int, rolls_left: int) -> int:
    boxes = legal_boxes(tables, filled, armed, roll, rolls_left)
    best_box, most = 0, -1
    for box in range(NUM_BOXES):
        if boxes >> box & 1:
            points, bonus, _, _, _ = fill_box(tables, filled, basic_total, armed, roll, box)
            if points + bonus > most:
                best_box, most = box, points + bonus
    promising, count = -1, 0
    for face in range(NUM_FACES):
        is_of_use = not filled >> face & 1 or filled & _OF_A_KIND != _OF_A_KIND
        if is_of_use and 0 < ROLL_COUNTS[roll, face] >= count:
            promising, count = face, ROLL_COUNTS[roll, face]
    if rolls_left == 0 or most >= GOOD_ENOUGH or count == NUM_DICE:
        return NUM_REROLL_KEEPS + best_box
    return int(_KEEP_OF_KIND[promising, count])
