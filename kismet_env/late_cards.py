"""What a card with few open boxes still brings, as an exact distribution over points under optimal solitaire play.

Early in a game a normal distribution with the right mean and variance will do. Near the end it does not: there is a
bonus or there is none, a Kismet or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import islice
from os import cpu_count

import numpy as np
import numpy.typing as npt

from kismet_env.cache import kept
from kismet_env.cards import PARTS, Cards, place_of, write_worth
from kismet_env.dice import KEEP_AND_ONE, NUM_FACES, NUM_KEEPS, NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_PROBABILITY
from kismet_env.engine import ALL_BOXES, ROLLS_PER_TURN, fill_box
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES
from kismet_env.solver import Optimum, sources
from kismet_env.tables import Record
from kismet_env.turn import allow, new_plan, plan_card, write_best_actions

MOST_OPEN = 3
"""How many open boxes such a card has at most: 60,858 cards and 64 MB under the standard rules."""
NO_ROW = -1


@compiled
def _write_ends(actions: Table, mass: Table, ends: Table) -> None:
    """Write the chance that a turn played by `actions` [left, roll] ends by filling a box with a roll, into `ends`.

    `ends` is [box, roll] (15, 252); `mass` (2, 462) is scratch: the chances of rolls and of keeps.
    """
    rolled, kept_dice = mass[0], mass[1]
    ends[:] = 0.0
    for roll in range(NUM_ROLLS):
        rolled[roll] = ROLL_PROBABILITY[roll]
    for left in range(ROLLS_PER_TURN - 1, -1, -1):
        kept_dice[:] = 0.0
        for roll in range(NUM_ROLLS):
            action = actions[left, roll]
            if action < NUM_REROLL_KEEPS:
                kept_dice[action] += rolled[roll]
            else:
                ends[action - NUM_REROLL_KEEPS, roll] += rolled[roll]
        for keep in range(NUM_REROLL_KEEPS):
            for face in range(NUM_FACES):
                kept_dice[KEEP_AND_ONE[keep, face]] += kept_dice[keep] / NUM_FACES
        for roll in range(NUM_ROLLS):
            rolled[roll] = kept_dice[NUM_REROLL_KEEPS + roll]


@compiled
def _distribute(
    tables_array: Record, starts: Table, ranks: Table, values: Table, cards: Table, row_of: Table, chances: Table
) -> None:
    """Write the distributions of `cards` whose successors are known into `chances` [row, points]."""
    tables, plan = tables_array[0], new_plan()
    worth, ends = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((NUM_BOXES, NUM_ROLLS))
    mass, actions = np.empty((2, NUM_KEEPS)), np.empty((ROLLS_PER_TURN, NUM_ROLLS), np.int64)
    width = chances.shape[1]
    for index in range(len(cards)):
        card = cards[index]
        filled, basic_total, armed = card[0], card[1], card[2] != 0
        allow(tables, filled, armed, plan)
        write_worth(tables, starts, ranks, values, card, worth)
        plan_card(filled, worth, plan)
        write_best_actions(filled, worth, plan, actions)
        _write_ends(actions, mass, ends)
        out = chances[row_of[place_of(starts, ranks, filled, basic_total, armed)]]
        for box in range(NUM_BOXES):
            for roll in range(NUM_ROLLS):
                share = ends[box, roll]
                if share == 0.0:
                    continue
                points, bonus, filled_after, total_after, armed_after = fill_box(
                    tables, filled, basic_total, armed, roll, box
                )
                gain = points + bonus
                if filled_after == ALL_BOXES:
                    out[gain] += share
                    continue
                after = chances[row_of[place_of(starts, ranks, filled_after, total_after, armed_after)]]
                for later in range(width - gain):
                    out[gain + later] += share * after[later]


def late_layers(optimum: Optimum) -> Iterator[Cards]:
    """Yield the cards with one open box, then those with two, up to MOST_OPEN."""
    return islice(optimum.numbers.layers(), MOST_OPEN)


def late_cards(
    optimum: Optimum, report: Callable[[float], None] = lambda share: None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the row of each card, in the order of `optimum.numbers`, and the distributions by [row, points].

    Cards with more open boxes have NO_ROW. The distributions come from the cache, or are worked out in some seconds
    and put there; `report` hears the share done.
    """
    numbers, rules = optimum.numbers, optimum.rules
    layers = list(late_layers(optimum))
    row_of = np.full(numbers.size, NO_ROW, np.int32)
    row_of[numbers.places(np.concatenate(layers))] = np.arange(sum(map(len, layers)))

    def distributions() -> npt.NDArray[np.float32]:
        tables = numbers.tables
        most = np.sort(tables["max_points"][0])[-MOST_OPEN:].sum() + tables["bonus"].max()
        chances = np.zeros((sum(map(len, layers)), int(most) + 1))
        with ThreadPoolExecutor(cpu_count()) as pool:
            for done, layer in enumerate(layers):
                parts = np.array_split(layer, PARTS)

                def job(cards: Cards) -> None:
                    _distribute(tables, numbers.starts, numbers.ranks, optimum.values, cards, row_of, chances)

                list(pool.map(job, parts))
                report((done + 1) / len(layers))
        return chances.astype(np.float32)

    about = {"sources": sources("late_cards.py"), "distributions": json.dumps(asdict(rules))}
    return row_of, kept("late_cards", about, distributions)
