"""The best play of one turn, given what each way to end it is worth. No search goes beyond the turn.

Who wants a turn played well says what filling each box with each roll is worth to him: its points (turn_greedy), its
points and more (rule_based), its points and the value of the card after it (the solver). The dice inside the turn are
then exact expectations: 462 keeps, twice.
"""

from __future__ import annotations

import numpy as np

from kismet_env.dice import KEEP_AND_ONE, KEEP_LESS_ONE, NUM_FACES, NUM_KEEPS, NUM_REROLL_KEEPS, NUM_ROLLS
from kismet_env.engine import ROLLS_PER_TURN, legal_boxes
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES
from kismet_env.tables import Tables

TIE = 1e-9
"""Actions within this many points of the best are equally good; the lowest number is played."""


@compiled
def mean_over_rolls(roll_values: Table, keep_values: Table) -> None:
    """Write the mean of `roll_values` (252,) after keeping each keep into `keep_values` (462,).

    Die by die: the mean over one more die of a keep is the mean of six keeps with one die more.
    """
    for roll in range(NUM_ROLLS):
        keep_values[NUM_REROLL_KEEPS + roll] = roll_values[roll]
    for keep in range(NUM_REROLL_KEEPS - 1, -1, -1):
        total = 0.0
        for face in range(NUM_FACES):
            total += keep_values[KEEP_AND_ONE[keep, face]]
        keep_values[keep] = total / NUM_FACES


@compiled
def best_over_keeps(keep_values: Table, best: Table) -> None:
    """Write the highest of `keep_values` (462,) among the keeps that each keep holds, itself included, into `best`.

    Only keeps that leave a die to roll count, so `best[210 + roll]` is the best of rolling on from `roll`.
    """
    for keep in range(NUM_KEEPS):
        value = keep_values[keep] if keep < NUM_REROLL_KEEPS else -np.inf
        for face in range(NUM_FACES):
            less = KEEP_LESS_ONE[keep, face]
            if less >= 0 and best[less] > value:
                value = best[less]
        best[keep] = value


@compiled
def plan_turn(early: Table, late: Table, roll_values: Table, keep_values: Table, best: Table) -> None:
    """Work a turn out backwards.

    `early` and `late` (252,): the best that filling a box with each roll is worth while rolls are left and after the
    last one (-inf where no box is legal). Writes `roll_values` (3, 252) and `keep_values` (3, 462), indexed by the
    rolls left: the value of a roll and of keeping a keep; `best` (462,) is scratch.
    """
    for roll in range(NUM_ROLLS):
        roll_values[0, roll] = late[roll]
    for left in range(1, ROLLS_PER_TURN):
        mean_over_rolls(roll_values[left - 1], keep_values[left])
        best_over_keeps(keep_values[left], best)
        for roll in range(NUM_ROLLS):
            roll_values[left, roll] = max(early[roll], best[NUM_REROLL_KEEPS + roll])


@compiled
def write_barriers(tables: Tables, filled: int, armed: bool, early: Table, late: Table) -> None:
    """Write 0 where a box may be filled with a roll and -inf where not, [box, roll] (15, 252).

    `early` is for the time while rolls are left, `late` for after the last one.
    """
    for roll in range(NUM_ROLLS):
        while_rolling = legal_boxes(tables, filled, armed, roll, 1)
        at_the_end = legal_boxes(tables, filled, armed, roll, 0)
        for box in range(NUM_BOXES):
            early[box, roll] = 0.0 if while_rolling >> box & 1 else -np.inf
            late[box, roll] = 0.0 if at_the_end >> box & 1 else -np.inf


@compiled
def best_box(filled: int, worth: Table, barriers: Table, best: Table) -> None:
    """Write the best of `worth` [box, roll] (15, 252) over the legal boxes into `best` (252,); -inf without one."""
    for roll in range(NUM_ROLLS):
        best[roll] = -np.inf
    for box in range(NUM_BOXES):
        if not filled >> box & 1:
            for roll in range(NUM_ROLLS):
                value = worth[box, roll] + barriers[box, roll]
                if value > best[roll]:
                    best[roll] = value


@compiled
def write_action_values(
    tables: Tables,
    filled: int,
    armed: bool,
    roll: int,
    rolls_left: int,
    worth: Table,
    keep_values: Table,
    can_keep: Table,
    out: Table,
) -> None:
    """Write the value of every action ("keeps" numbering) of one decision into `out` (225,); -inf where illegal.

    `worth` is that of the card, [box, roll]; `keep_values` those of plan_turn; `can_keep` is dice.CAN_KEEP.
    """
    for keep in range(NUM_REROLL_KEEPS):
        legal = rolls_left > 0 and can_keep[roll, keep]
        out[keep] = keep_values[rolls_left, keep] if legal else -np.inf
    boxes = legal_boxes(tables, filled, armed, roll, rolls_left)
    for box in range(NUM_BOXES):
        out[NUM_REROLL_KEEPS + box] = worth[box, roll] if boxes >> box & 1 else -np.inf


@compiled
def first_best(values: Table) -> int:
    """Return the lowest index whose value is within TIE of the highest."""
    highest = values[0]
    for value in values:
        highest = max(highest, value)
    index = 0
    while values[index] < highest - TIE:
        index += 1
    return index
