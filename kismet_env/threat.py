"""How many second Kismets a card is still to bring under optimal solitaire play, in expectation.

What a card threatens the others with: the solitaire optimum knows nothing of it, and does nothing for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from kismet_env.cache import kept
from kismet_env.cards import CardNumbers, place_of
from kismet_env.dice import NUM_KEEPS, NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_PROBABILITY
from kismet_env.engine import ALL_BOXES, ROLLS_PER_TURN, fill_box, is_second_kismet
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES
from kismet_env.solver import Optimum, sources, write_worth
from kismet_env.tables import Record
from kismet_env.turn import allow, mean_over_rolls, new_plan, plan_card, write_best_actions


@compiled
def _count(tables_array: Record, starts: Table, ranks: Table, values: Table, counts: Table, some: Table) -> None:
    """Write the `counts` of `some` cards whose successors are known."""
    tables, plan = tables_array[0], new_plan()
    worth, means = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((ROLLS_PER_TURN, NUM_ROLLS))
    keep_means = np.empty(NUM_KEEPS)
    actions = np.empty((ROLLS_PER_TURN, NUM_ROLLS), np.int64)
    for index in range(len(some)):
        card = some[index]
        filled, basic_total, armed = card[0], card[1], card[2] != 0
        if index == 0 or some[index - 1, 0] != filled or some[index - 1, 2] != card[2]:
            allow(tables, filled, armed, plan)
        write_worth(tables, starts, ranks, values, card, worth)
        plan_card(filled, worth, plan)
        write_best_actions(filled, worth, plan, actions)
        for left in range(ROLLS_PER_TURN):
            if left > 0:
                mean_over_rolls(means[left - 1], keep_means)
            for roll in range(NUM_ROLLS):
                action = actions[left, roll]
                if action < NUM_REROLL_KEEPS:
                    means[left, roll] = keep_means[action]
                    continue
                _, _, filled_after, total_after, armed_after = fill_box(
                    tables, filled, basic_total, armed, roll, action - NUM_REROLL_KEEPS
                )
                count = 1.0 if is_second_kismet(tables, armed, roll) else 0.0
                if filled_after != ALL_BOXES:
                    count += counts[place_of(starts, ranks, filled_after, total_after, armed_after)]
                means[left, roll] = count
        total = 0.0
        for roll in range(NUM_ROLLS):
            total += ROLL_PROBABILITY[roll] * means[-1, roll]
        counts[place_of(starts, ranks, filled, basic_total, armed)] = total


def second_kismets(optimum: Optimum, report: Callable[[float], None] = lambda share: None) -> npt.NDArray[np.float32]:
    """Return the expected number of second Kismets to come on every card, in the order of `optimum.numbers`.

    From the cache, or worked out in a minute of a core and put there; `report` hears the share done.
    """
    numbers: CardNumbers = optimum.numbers

    def counts() -> npt.NDArray[np.float32]:
        found = np.zeros(numbers.size)
        numbers.sweep(
            lambda cards: _count(numbers.tables, numbers.starts, numbers.ranks, optimum.values, found, cards), report
        )
        return found.astype(np.float32)

    about = {"sources": sources("threat.py"), "second Kismets": json.dumps(asdict(optimum.rules))}
    return kept("threat", about, counts)
