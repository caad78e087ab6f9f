"""Where a game begins: a full sheet, or one that is partly filled (small games, curricula).

A filled box of such a sheet holds what a player gets in one turn who wants that box and nothing else: the boxes are
independent of one another, so the distribution of the cards is known exactly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kismet_env.dice import CAN_KEEP, NUM_ROLLS, REROLL_PROBABILITY, ROLL_PROBABILITY
from kismet_env.engine import ROLLS_PER_TURN, fill_box
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES, Box, Rules
from kismet_env.tables import Record, box_points, tables_of
from kismet_env.turn import TIE

STARTS = ("full", "uniform", "open:k")


def open_boxes_of(start: str) -> int:
    """Return how many boxes `start` leaves open on every card: 15 for "full", k for "open:k", 0 for "uniform".

    0 stands for a number drawn evenly from 1..15. Raises ValueError for another name or number.
    """
    if start == "full":
        return NUM_BOXES
    if start == "uniform":
        return 0
    name, _, number = str(start).partition(":")
    if name == "open" and number.isdecimal() and 1 <= int(number) <= NUM_BOXES:
        return int(number)
    raise ValueError(f"start={start!r} is not one of {', '.join(STARTS)} with k from 1 to {NUM_BOXES}")


@lru_cache(maxsize=64)
def roll_distribution(rules: Rules) -> npt.NDArray[np.float64]:
    """Return the distribution of the dice at the end of a turn played for one box alone, [box, roll] (15, 252).

    Such a player keeps what gives that box the highest expected points and rolls whenever it gains; among equals the
    keep with the lowest number. Rows sum to 1.
    """
    points = box_points(rules)[0].astype(np.float64)
    distribution = np.empty((NUM_BOXES, NUM_ROLLS))
    for box in Box:
        value, plans = points[:, box], []
        for _ in range(ROLLS_PER_TURN - 1):
            rolled = np.where(CAN_KEEP, REROLL_PROBABILITY @ value, -1.0)
            best = rolled.max(1)
            keep = (rolled >= best[:, None] - TIE).argmax(1)
            plans.append(np.where(best > points[:, box] + TIE, keep, -1))
            value = np.maximum(points[:, box], best)
        shown = ROLL_PROBABILITY
        for plan in reversed(plans):
            rolls_on = plan >= 0
            after = np.where(rolls_on, 0.0, shown)
            np.add(after, shown[rolls_on] @ REROLL_PROBABILITY[plan[rolls_on]], out=after)
            shown = after
        distribution[box] = shown
    return distribution


@lru_cache(maxsize=64)
def start_rolls(rules: Rules) -> npt.NDArray[np.float64]:
    """Return `roll_distribution` cumulated over the rolls and rounded up to end at 1, [box, roll] (15, 252)."""
    cumulated = roll_distribution(rules).cumsum(1)
    cumulated[:, -1] = 1.0
    return cumulated


def card_distribution(rules: Rules) -> npt.NDArray[np.float64]:
    """Return how the cards of each set of filled boxes are dealt, [filled, armed, basic_total] (32768, 2, C) float64.

    Basic totals count up to the top tier. The probabilities of each `filled` sum to 1.
    """
    tables = tables_of(rules)
    most, cap = int(tables["max_points"].max()), int(tables["basic_cap"][0])
    outcomes = np.zeros((NUM_BOXES, 2, 2, most + 1))
    _write_outcomes(tables, roll_distribution(rules), outcomes)
    shares = np.zeros((1 << NUM_BOXES, 2, cap + 1))
    shares[0, 0, 0] = 1.0
    for box in Box:  # the boxes are filled in order: `box` comes last in the sets from 1 << box to 2 << box
        before, after = shares[: 1 << box], shares[1 << box : 2 << box]
        for armed, armed_after, gained in np.argwhere(outcomes[box]):
            moved = outcomes[box, armed, armed_after, gained] * before[:, armed]
            below_cap = max(cap + 1 - gained, 0)
            after[:, armed_after, cap + 1 - below_cap :] += moved[:, :below_cap]
            after[:, armed_after, cap] += moved[:, below_cap:].sum(1)
    return shares


@compiled
def _write_outcomes(tables_array: Record, distribution: Table, outcomes: Table) -> None:
    """Add up what each box does to a card that is dealt, [box, armed, armed after, rise of the Basic total]."""
    for box in range(NUM_BOXES):
        for armed in range(2):
            for roll in range(NUM_ROLLS):
                # On an empty card: of the filled boxes only Kismet changes what dice bring, and Kismet is dealt last.
                _, _, _, gained, armed_after = fill_box(tables_array[0], 0, 0, armed != 0, roll, box)
                outcomes[box, armed, int(armed_after), gained] += distribution[box, roll]
