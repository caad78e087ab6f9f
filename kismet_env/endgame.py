"""The end of a game of two players, exactly: the chance to win when no card has more than one open box.

With one open box a card is no more than what each roll brings in it, bonus included, when it may be filled and what a
second Kismet of it does; cards of the same *kind* in this sense are played alike. A table over the two kinds and the
difference of the totals is worked out backwards, turn by turn, with both players playing to win: it is the truth
about these positions, forced zeros included. docs/two-players.md has the equations.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from os import cpu_count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.cache import kept
from kismet_env.dice import NUM_ROLLS, ROLL_PROBABILITY
from kismet_env.engine import fill_box, first_open_box, is_second_kismet, legal_boxes, write_points
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import solve, sources
from kismet_env.tables import Record, tables_of
from kismet_env.turn import Plan, allow, new_plan, plan_card

FULL, LONG = -2, -1
"""Instead of a kind: a card with no open box, and one with more than one, of which no table tells."""


class Endgame(NamedTuple):
    """The truth about two cards with at most one open box each, for the kernels; get it from `endgame_of`."""

    kind_of: Table  # [card] int16, in the order of CardNumbers: the kind of a card with one open box, else LONG
    cards: Table  # [kind] (K, 3) int64: one card of each kind (filled, basic_total, armed)
    gains: Table  # [kind, roll] (K, 252) int64: what filling the box brings, bonus included
    hits: Table  # [kind, roll] (K, 252) int64: 1 where that forces a zero on the other, else 0
    zeros: Table  # [kind] (K,) int64: what a forced zero brings: a bonus, or nothing
    most: Table  # [kind] (K,) int64: the highest gain
    last: Table  # [kind, lead] (K, G + 1): share of the win of him who moves when the other card is full; `lead` is
    # what the other is ahead, G the highest of all gains
    both: Table  # [kind, other kind, lead + G] (K, K, 2 G + 1) float32: his share when it has an open box too


@compiled
def _describe(tables_array: Record, cards: Table, gains: Table, hits: Table, may_stop: Table, zeros: Table) -> None:
    """Write what there is to know about `cards` (C, 3) with one open box each."""
    tables = tables_array[0]
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        box = first_open_box(filled)
        bonus, _, _, _ = write_points(tables, filled, basic_total, armed, box, 0, False)
        zeros[index, 0] = bonus
        for roll in range(NUM_ROLLS):
            points, bonus, _, _, _ = fill_box(tables, filled, basic_total, armed, roll, box)
            gains[index, roll] = points + bonus
            hits[index, roll] = tables.penalty and is_second_kismet(tables, armed, roll)
            may_stop[index, roll] = legal_boxes(tables, filled, armed, roll, 1) >> box & 1


@compiled
def _compared(lead: int) -> float:
    """Return the share of the win of one who is this much behind when all is over."""
    if lead == 0:
        return 0.5
    return 1.0 if lead < 0 else 0.0


@compiled
def share_of_last(endgame: Endgame, kind: int, lead: int) -> float:
    """Return the share of the win of him who has one open box, of this kind, against a full card this much ahead."""
    if lead < 0:
        return 1.0
    return float(endgame.last[kind, lead]) if lead < endgame.last.shape[1] else 0.0


@compiled
def share_of_both(endgame: Endgame, kind: int, other: int, lead: int) -> float:
    """Return the share of the win of him who moves, when both have one open box and the other is this much ahead."""
    most = endgame.last.shape[1] - 1
    if lead < -most:
        return 1.0
    return float(endgame.both[kind, other, lead + most]) if lead <= most else 0.0


@compiled
def _mean(filled: int, worth: Table, plan: Plan) -> float:
    """Return what the best play of the one open box of a card brings, given `worth` [box, roll] (15, 252)."""
    plan_card(filled, worth, plan)
    mean = 0.0
    for roll in range(NUM_ROLLS):
        mean += ROLL_PROBABILITY[roll] * plan.roll_values[-1, roll]
    return mean


@compiled
def _write_last(tables_array: Record, endgame: Endgame, kind: int) -> None:
    """Fill in endgame.last for one kind."""
    plan, worth = new_plan(), np.empty((NUM_BOXES, NUM_ROLLS))
    card = endgame.cards[kind]
    box = first_open_box(card[0])
    allow(tables_array[0], card[0], card[2] != 0, plan)
    for lead in range(endgame.most[kind] + 1):
        for roll in range(NUM_ROLLS):
            worth[box, roll] = _compared(lead - endgame.gains[kind, roll])
        endgame.last[kind, lead] = _mean(card[0], worth, plan)


@compiled
def write_both(tables_array: Record, endgame: Endgame, kind: int) -> None:
    """Fill in endgame.both for one kind of him who moves."""
    plan, worth = new_plan(), np.empty((NUM_BOXES, NUM_ROLLS))
    card, most = endgame.cards[kind], endgame.last.shape[1] - 1
    gains, hits = endgame.gains[kind], endgame.hits[kind]
    box = first_open_box(card[0])
    allow(tables_array[0], card[0], card[2] != 0, plan)
    for other in range(len(endgame.cards)):
        endgame.both[kind, other, : most - endgame.most[other]] = 1.0  # so far behind, the other cannot come up
        endgame.both[kind, other, most + endgame.most[kind] + 1 :] = 0.0
        for lead in range(-endgame.most[other], endgame.most[kind] + 1):
            for roll in range(NUM_ROLLS):
                if hits[roll]:
                    worth[box, roll] = _compared(lead - gains[roll] + endgame.zeros[other])
                else:
                    worth[box, roll] = 1.0 - share_of_last(endgame, other, gains[roll] - lead)
            endgame.both[kind, other, lead + most] = _mean(card[0], worth, plan)


@compiled
def share_of_end(endgame: Endgame, mine: int, other: int, lead: int, again: bool) -> float:
    """Return the share of the win of him who has just filled a box, both playing to win from here.

    The cards are of kind `mine` and `other`, or FULL; `lead` is what the other is ahead. He plays `again` after a
    second Kismet, if he can.
    """
    if mine == FULL and other == FULL:
        return _compared(lead)
    if other == FULL:
        return share_of_last(endgame, mine, lead)
    if mine == FULL:
        return 1.0 - share_of_last(endgame, other, -lead)
    if again:
        return share_of_both(endgame, mine, other, lead)
    return 1.0 - share_of_both(endgame, other, mine, -lead)


def kinds_of(rules: Rules) -> Endgame:
    """Return all that there is to know under `rules` but for the table `both`, which is full of zeros."""
    tables, numbers = tables_of(rules), solve(rules).numbers
    cards = next(numbers.layers())
    gains, hits, may_stop = (np.empty((len(cards), NUM_ROLLS), np.int64) for _ in range(3))
    zeros = np.empty((len(cards), 1), np.int64)
    _describe(tables, cards, gains, hits, may_stop, zeros)
    signs = np.concatenate([gains, hits, may_stop, zeros], axis=1)
    _, firsts, kinds = np.unique(signs, axis=0, return_index=True, return_inverse=True)
    kind_of = np.full(numbers.size, LONG, np.int16)
    kind_of[numbers.places(cards)] = kinds.reshape(-1)
    count, most = len(firsts), int(gains.max())
    last, both = np.zeros((count, most + 1)), np.zeros((count, count, 2 * most + 1), np.float32)
    first_gains = gains[firsts]
    endgame = Endgame(
        kind_of, cards[firsts], first_gains, hits[firsts], zeros[firsts, 0], first_gains.max(1), last, both
    )
    for kind in range(count):
        _write_last(tables, endgame, kind)
    return endgame


def endgame_of(rules: Rules, report: Callable[[float], None] = lambda share: None) -> Endgame:
    """Return the truth under `rules`: from the cache, or worked out in a minute of a core and put there.

    `report` hears the share done.
    """
    endgame = kinds_of(rules)
    count = len(endgame.cards)

    def both() -> npt.NDArray[np.float32]:
        with ThreadPoolExecutor(cpu_count()) as pool:
            for done, _ in enumerate(pool.map(partial(write_both, tables_of(rules), endgame), range(count))):
                report((done + 1) / count)
        table: npt.NDArray[np.float32] = endgame.both
        return table

    about = {"sources": sources("endgame.py"), "both": json.dumps(asdict(rules))}
    return endgame._replace(both=kept("endgame", about, both))
