"""Maximises the expected points of the turn, exactly; what the boxes will be needed for later does not matter to him.

The bonus of a completed Basic Section belongs to the turn that completes it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from kismet_env.bots.plan_book import PlanBook
from kismet_env.bots.player import Actions, Masks, Observations, Shares, turn_values
from kismet_env.dice import NUM_ROLLS, roll_indices
from kismet_env.engine import BASIC_SECTION, fill_box
from kismet_env.exact import TurnPolicy
from kismet_env.jit import Table, compiled
from kismet_env.observation import decode
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, tables_of


class TurnGreedy:
    """Plays the action with the most expected points until the end of the turn, the lowest number among equals."""

    def __init__(self, rules: Rules) -> None:
        self._tables = tables_of(rules)
        self._write_worths = partial(_write_worths, self._tables)
        self._book = PlanBook(self._tables, self._write_worths)

    def action_worths(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return the expected points of this turn after each action, (N, 225); -inf where illegal."""
        return turn_values(observations, self._tables, self._write_worths)

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row."""
        filled, basic_total, armed, dice, rolls_left = decode(observations)
        open_basic = BASIC_SECTION & ~filled
        is_last = open_basic & open_basic - 1 == 0  # else the Basic total matters to nobody who looks at one turn
        cards = np.stack([filled, np.where(is_last, basic_total, 0), armed], axis=1)
        return self._book.actions(cards, roll_indices(dice), rolls_left)

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("best", write_worths=self._write_worths)


@compiled
def _write_worths(tables_array: Record, cards: Table, worths: Table) -> None:
    """Write the points and the bonus of filling each open box with each roll into `worths` [card, box, roll]."""
    tables = tables_array[0]
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        for box in range(NUM_BOXES):
            if not filled >> box & 1:
                for roll in range(NUM_ROLLS):
                    points, bonus, _, _, _ = fill_box(tables, filled, basic_total, armed, roll, box)
                    worths[index, box, roll] = points + bonus
