"""Maximises the expected points of the turn, exactly; what the boxes will be needed for later does not matter to him.

The bonus of a completed Basic Section belongs to the turn that completes it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.bots.player import Actions, Masks, Observations, Shares
from kismet_env.dice import CAN_KEEP, NUM_KEEPS, NUM_ROLLS, roll_indices
from kismet_env.engine import ROLLS_PER_TURN, fill_box
from kismet_env.jit import Table, compiled
from kismet_env.observation import decode
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import best_actions
from kismet_env.tables import Record, Tables, tables_of
from kismet_env.turn import best_box, plan_turn, write_action_values, write_barriers


class TurnGreedy:
    """Plays the action with the most expected points until the end of the turn, the lowest number among equals."""

    def __init__(self, rules: Rules) -> None:
        self._tables = tables_of(rules)

    def action_values(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return the expected points of this turn after each action, (N, 225); -inf where illegal."""
        filled, basic_total, armed, dice, rolls_left = decode(observations)
        values = np.empty((len(observations), actions_of("keeps").num_actions))
        one_card_after_the_other = np.lexsort((basic_total, armed, filled))
        _write_values(
            self._tables,
            filled,
            basic_total,
            armed,
            roll_indices(dice),
            rolls_left,
            one_card_after_the_other,
            CAN_KEEP,
            values,
        )
        return values

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row."""
        return best_actions(self.action_values(observations))


@compiled
def _write_values(
    tables_array: Record,
    filled: Table,
    basic_total: Table,
    armed: Table,
    roll: Table,
    rolls_left: Table,
    order: Table,
    can_keep: Table,
    values: Table,
) -> None:
    """Write the values of the actions of every row, (N, 225); a plan serves all rows of the same card in `order`."""
    tables = tables_array[0]
    worth = np.empty((NUM_BOXES, NUM_ROLLS))
    early, late = np.empty(NUM_ROLLS), np.empty(NUM_ROLLS)
    early_barriers, late_barriers = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((NUM_BOXES, NUM_ROLLS))
    roll_values, keep_values = np.empty((ROLLS_PER_TURN, NUM_ROLLS)), np.empty((ROLLS_PER_TURN, NUM_KEEPS))
    best = np.empty(NUM_KEEPS)
    planned = -1
    for row in order:
        is_planned = planned >= 0 and (
            filled[planned] == filled[row] and basic_total[planned] == basic_total[row] and armed[planned] == armed[row]
        )
        if not is_planned:
            planned = row
            _write_worth(tables, filled[row], basic_total[row], armed[row], worth)
            write_barriers(tables, filled[row], armed[row], early_barriers, late_barriers)
            best_box(filled[row], worth, early_barriers, early)
            best_box(filled[row], worth, late_barriers, late)
            plan_turn(early, late, roll_values, keep_values, best)
        write_action_values(
            tables, filled[row], armed[row], roll[row], rolls_left[row], worth, keep_values, can_keep, values[row]
        )


@compiled
def _write_worth(tables: Tables, filled: int, basic_total: int, armed: bool, worth: Table) -> None:
    """Write the points and the bonus of filling each open box with each roll into `worth` [box, roll] (15, 252)."""
    for box in range(NUM_BOXES):
        if not filled >> box & 1:
            for roll in range(NUM_ROLLS):
                points, bonus, _, _, _ = fill_box(tables, filled, basic_total, armed, roll, box)
                worth[box, roll] = points + bonus
