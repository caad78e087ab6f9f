"""The best play of one turn, given what each way to end it is worth. No search goes beyond the turn.

Who wants a turn played well says what filling each box with each roll is worth to him: its points (turn_greedy), its
points and more (rule_based), its points and the value of the card after it (the solver). The dice inside the turn are
then exact expectations: 462 keeps, twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.dice import (
    CAN_KEEP,
    KEEP_AND_ONE,
    KEEP_LESS_ONE,
    KEEPS_OF_ROLL,
    MOST_KEEPS,
    NUM_FACES,
    NUM_KEEPS,
    NUM_REROLL_KEEPS,
    NUM_ROLLS,
    ROLL_PROBABILITY,
)
from kismet_env.engine import ROLLS_PER_TURN, legal_boxes
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES
from kismet_env.tables import Record, Tables

CARDS_AT_ONCE = 64  # whose worths, 30 kB a card, stay in the processor's cache
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


class Plan(NamedTuple):
    """The best play of one turn, and scratch. Make one with `new_plan`, then `allow` and `plan_card`."""

    about: Table  # (2,): filled and armed of the cards that it is about, -1 before the first
    early: Table  # [box, roll] (15, 252): barriers while rolls are left, see write_barriers
    late: Table  # [box, roll] (15, 252): and after the last one
    best_early: Table  # [roll] (252,): the best that filling a box is worth then
    best_late: Table  # [roll] (252,)
    roll_values: Table  # [left, roll] (3, 252): see plan_turn
    keep_values: Table  # [left, keep] (3, 462)
    best: Table  # [keep] (462,): scratch


@compiled
def new_plan() -> Plan:
    """Return a plan of nothing yet."""
    return Plan(
        np.full(2, -1),
        np.empty((NUM_BOXES, NUM_ROLLS)),
        np.empty((NUM_BOXES, NUM_ROLLS)),
        np.empty(NUM_ROLLS),
        np.empty(NUM_ROLLS),
        np.empty((ROLLS_PER_TURN, NUM_ROLLS)),
        np.zeros((ROLLS_PER_TURN, NUM_KEEPS)),
        np.empty(NUM_KEEPS),
    )


@compiled
def allow(tables: Tables, filled: int, armed: bool, plan: Plan) -> None:
    """Let a plan be about cards with these boxes filled: write down what is legal, unless it is there already."""
    about = plan.about
    if about[0] != filled or about[1] != int(armed):
        about[0], about[1] = filled, int(armed)
        write_barriers(tables, filled, armed, plan.early, plan.late)


@compiled
def plan_card(filled: int, worth: Table, plan: Plan) -> None:
    """Work out the best turn of an allowed card, given what filling each box with each roll is worth [box, roll]."""
    best_box(filled, worth, plan.early, plan.best_early)
    best_box(filled, worth, plan.late, plan.best_late)
    plan_turn(plan.best_early, plan.best_late, plan.roll_values, plan.keep_values, plan.best)


@compiled
def best_action(filled: int, worth: Table, plan: Plan, left: int, roll: int) -> int:
    """Return the best action of a planned turn with this roll and so many rolls left.

    Among equals (TIE) the lowest number; 0 on a full card, where nothing can be done.
    """
    enough = plan.roll_values[left, roll] - TIE
    if left > 0:
        for index in range(MOST_KEEPS):
            keep = KEEPS_OF_ROLL[roll, index]
            if keep < 0:
                break
            if plan.keep_values[left, keep] >= enough:
                return int(keep)
    barriers = plan.early if left > 0 else plan.late
    for box in range(NUM_BOXES):
        if not filled >> box & 1 and worth[box, roll] + barriers[box, roll] >= enough:
            return NUM_REROLL_KEEPS + box
    return 0


@compiled
def write_best_actions(filled: int, worth: Table, plan: Plan, actions: Table) -> None:
    """Write the best action of a planned turn for every roll into `actions` [left, roll] (3, 252)."""
    for left in range(ROLLS_PER_TURN):
        for roll in range(NUM_ROLLS):
            actions[left, roll] = best_action(filled, worth, plan, left, roll)


@compiled
def _write_values(
    tables_array: Record,
    cards: Table,
    worths: Table,
    order: Table,
    bounds: Table,
    rolls: Table,
    rolls_left: Table,
    can_keep: Table,
    out: Table,
) -> None:
    """Write the values of the decisions order[bounds[c] : bounds[c + 1]], which are on card c, into their rows."""
    tables, plan = tables_array[0], new_plan()
    keep_values = plan.keep_values
    for index in range(len(cards)):
        filled, worth = cards[index, 0], worths[index]
        allow(tables, filled, cards[index, 2] != 0, plan)
        plan_card(filled, worth, plan)
        for place in range(bounds[index], bounds[index + 1]):
            row = order[place]
            roll, left = rolls[row], rolls_left[row]
            for keep in range(NUM_REROLL_KEEPS):
                out[row, keep] = keep_values[left, keep] if left > 0 and can_keep[roll, keep] else -np.inf
            barriers = plan.early if left > 0 else plan.late
            for box in range(NUM_BOXES):
                is_open = not filled >> box & 1
                out[row, NUM_REROLL_KEEPS + box] = worth[box, roll] + barriers[box, roll] if is_open else -np.inf


def action_values(
    tables: Record,
    cards: npt.NDArray[np.int64],
    rolls: npt.NDArray[np.int64],
    rolls_left: npt.NDArray[np.int64],
    write_worths: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], None],
) -> npt.NDArray[np.float64]:
    """Return what each action ("keeps" numbering) is worth to a player of turns, (N, 225) float64; -inf where illegal.

    The decisions are `cards` (N, 3) int64, rows (filled, basic_total, armed) with an open box, `rolls` (N,) 0..251 and
    `rolls_left` (N,) 0..2. `write_worths(cards, worths)` says what filling each box with each roll is worth on each
    of C distinct cards, into [card, box, roll] (C, 15, 252); what it writes for filled boxes is not read.
    """
    order = np.lexsort(cards.T)
    in_order = cards[order]
    is_first = np.ones(len(cards), np.bool_)
    is_first[1:] = (in_order[1:] != in_order[:-1]).any(1)
    firsts = np.flatnonzero(is_first)
    distinct, bounds = in_order[firsts], np.append(firsts, len(cards))
    worths = np.empty((min(CARDS_AT_ONCE, len(distinct)), NUM_BOXES, NUM_ROLLS))
    out = np.empty((len(cards), NUM_REROLL_KEEPS + NUM_BOXES))
    for first in range(0, len(distinct), CARDS_AT_ONCE):
        some = distinct[first : first + CARDS_AT_ONCE]
        write_worths(some, worths[: len(some)])
        their_bounds = bounds[first : first + len(some) + 1]
        _write_values(tables, some, worths, order, their_bounds, rolls, rolls_left, CAN_KEEP, out)
    return out


@compiled
def _write_means(tables_array: Record, cards: Table, worths: Table, out: Table) -> None:
    """Write the mean over the first roll of the best play of each card's turn into `out` (C,)."""
    plan = new_plan()
    roll_values = plan.roll_values
    for index in range(len(cards)):
        allow(tables_array[0], cards[index, 0], cards[index, 2] != 0, plan)
        plan_card(cards[index, 0], worths[index], plan)
        out[index] = 0.0
        for roll in range(NUM_ROLLS):
            out[index] += ROLL_PROBABILITY[roll] * roll_values[-1, roll]


def card_values(
    tables: Record,
    cards: npt.NDArray[np.int64],
    write_worths: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], None],
) -> npt.NDArray[np.float64]:
    """Return what `cards` (C, 3) are worth to a player of turns before the first roll, (C,) float64.

    He plays the turn best. None of the cards is full; for `write_worths` see `action_values`.
    """
    order = np.lexsort(cards.T[[1, 2, 0]])  # what is legal depends on filled boxes and armed: the same side by side
    worths = np.empty((min(CARDS_AT_ONCE, len(cards)), NUM_BOXES, NUM_ROLLS))
    out = np.empty(len(cards))
    for first in range(0, len(cards), CARDS_AT_ONCE):
        rows = order[first : first + CARDS_AT_ONCE]
        some, means = cards[rows], np.empty(len(rows))
        write_worths(some, worths[: len(rows)])
        _write_means(tables, some, worths, means)
        out[rows] = means
    return out


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


@compiled
def _write_first_best(values: Table, out: Table) -> None:
    for row in range(len(out)):
        out[row] = first_best(values[row])


def best_actions(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the best action of each row of values, (..., A) -> (...) int64; among equals (TIE) the lowest number."""
    rows = values.reshape(-1, values.shape[-1])
    best = np.empty(len(rows), np.int64)
    _write_first_best(rows, best)
    return best.reshape(values.shape[:-1])
