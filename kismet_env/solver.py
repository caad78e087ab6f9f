"""The exact optimum of solitaire Kismet: the value of every card, of every action, under any rules.

Backward induction over (filled boxes, Basic total, armed), one turn at a time: a card's value is the expectation,
over the first roll, of the best way to play the turn (`turn`), where filling a box is worth its points and the value
of the card after it. Boxes are filled by the engine's own `fill_box`; no rule is written here.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from os import cpu_count
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env import turn
from kismet_env.cache import cache_root, load_array, save_array
from kismet_env.dice import NUM_KEEPS, NUM_ROLLS, ROLL_PROBABILITY, roll_indices
from kismet_env.engine import ALL_BOXES, BASIC_SECTION, ROLLS_PER_TURN, fill_box
from kismet_env.jit import Table, compiled
from kismet_env.rules import MAX_BASIC_TOTAL, NUM_BASIC_BOXES, NUM_BOXES, SECOND_KISMET, Box, Rules
from kismet_env.tables import Record, Tables, tables_of
from kismet_env.turn import best_box, plan_turn, write_barriers

NUM_CARDS = 1 << NUM_BOXES
_FORMAT = "1"  # of the values on disk: raised whenever their order or meaning changes
_PARTS = 16  # jobs of one layer: enough to keep all cores busy to its end


def reachable_totals(tables: Record, cap: int) -> npt.NDArray[np.bool_]:
    """Return which Basic totals each set of filled Basic boxes can have; [set, total] (64, cap + 1).

    What goes beyond `cap` counts as `cap`.
    """
    reachable = np.zeros((1 << NUM_BASIC_BOXES, cap + 1), np.bool_)
    reachable[0, 0] = True
    for filled in range(1, 1 << NUM_BASIC_BOXES):
        box = filled.bit_length() - 1
        before = np.flatnonzero(reachable[filled & ~(1 << box)])
        for points in np.unique(tables["points"][0, :, :, box]):
            reachable[filled, np.minimum(before + points, cap)] = True
    return reachable


def value_starts(tables: Record, reachable: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int32], int]:
    """Return where the values of each card begin, [armed, filled] (2, 32768), -1 where no game leads, and their number.

    A card with a full Basic Section has one value, whatever its total; the others one for each total.
    """
    filled = np.arange(NUM_CARDS)
    kismet = filled >> Box.KISMET & 1 == 1
    can_be = {  # what a card says of its past, RULES.md 6.1
        "scored": (np.ones(NUM_CARDS, np.bool_), kismet),
        "filled": (~kismet, kismet),
        "rolled": (np.ones(NUM_CARDS, np.bool_), filled > 0),
    }[SECOND_KISMET[int(tables["second_kismet"][0])]]
    highest = np.array([np.flatnonzero(totals)[-1] for totals in reachable])
    widths = np.where(filled & BASIC_SECTION == BASIC_SECTION, 1, highest[filled & BASIC_SECTION] + 1)
    sizes = np.where(can_be, widths, 0).ravel()
    starts = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1).astype(np.int32)
    return starts.reshape(2, NUM_CARDS), int(sizes.sum())


@compiled
def value_index(starts: Table, cap: int, filled: int, basic_total: int, armed: bool) -> int:
    """Return the place of a card's value."""
    start = int(starts[int(armed), filled])
    if filled & BASIC_SECTION == BASIC_SECTION:
        return start
    return start + min(basic_total, cap)


@compiled
def write_worth(tables: Tables, starts: Table, values: Table, card: Table, worth: Table) -> None:
    """Write what filling each open box with each roll is worth on a `card`, points and what follows, into `worth`.

    `card` is (filled, basic_total, armed) as int64; `worth` is [box, roll] (15, 252), untouched for filled boxes.
    """
    filled, basic_total, armed = card[0], card[1], card[2] != 0
    cap = tables.basic_cap
    for box in range(NUM_BOXES):
        if filled >> box & 1:
            continue
        for roll in range(NUM_ROLLS):
            points, bonus, filled_after, total_after, armed_after = fill_box(
                tables, filled, basic_total, armed, roll, box
            )
            after = 0.0
            if filled_after != ALL_BOXES:
                after = values[value_index(starts, cap, filled_after, total_after, armed_after)]
            worth[box, roll] = points + bonus + after


@compiled
def _solve_cards(
    tables_array: Record, starts: Table, values: Table, reachable: Table, cards: Table, armed: bool
) -> None:
    """Write the values of all totals of the `cards` (filled sets) whose successors are known."""
    tables = tables_array[0]
    worth = np.empty((NUM_BOXES, NUM_ROLLS))
    early, late = np.empty(NUM_ROLLS), np.empty(NUM_ROLLS)
    early_barriers, late_barriers = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((NUM_BOXES, NUM_ROLLS))
    roll_values, keep_values = np.empty((ROLLS_PER_TURN, NUM_ROLLS)), np.empty((ROLLS_PER_TURN, NUM_KEEPS))
    best, card = np.empty(NUM_KEEPS), np.empty(3, np.int64)
    for filled in cards:
        write_barriers(tables, filled, armed, early_barriers, late_barriers)
        basic_set = filled & BASIC_SECTION
        card[0], card[2] = filled, armed
        for total in range(reachable.shape[1]):
            if reachable[basic_set, total]:
                card[1] = total
                write_worth(tables, starts, values, card, worth)
                best_box(filled, worth, early_barriers, early)
                best_box(filled, worth, late_barriers, late)
                plan_turn(early, late, roll_values, keep_values, best)
                mean = 0.0
                for roll in range(NUM_ROLLS):
                    mean += ROLL_PROBABILITY[roll] * roll_values[-1, roll]
                values[value_index(starts, tables.basic_cap, filled, total, armed)] = mean
                if basic_set == BASIC_SECTION:
                    break


@compiled
def _write_worths(tables_array: Record, starts: Table, values: Table, cards: Table, worths: Table) -> None:
    for index in range(len(cards)):
        write_worth(tables_array[0], starts, values, cards[index], worths[index])


class Optimum:
    """The truth about solitaire Kismet under one set of rules; get it from `solve`.

    Cards and decisions are given as in `kismet_env.observation.Decision`, one or a batch: `filled` (bit per box, not
    all), `basic_total` (points in the Basic Section), `armed` (whether five alike would be a second Kismet), `dice`
    (..., 5) faces in any order, `rolls_left` 2, 1 or 0. What no game can lead to is a ValueError that names the first
    such row.
    """

    def __init__(self, rules: Rules, values: npt.NDArray[np.float64]) -> None:
        self.rules = rules
        self._tables = tables_of(rules)
        reachable = reachable_totals(self._tables, self._cap)
        self._starts, size = value_starts(self._tables, reachable)
        self._possible_totals = reachable_totals(self._tables, MAX_BASIC_TOTAL)  # [set, total]
        self._possible_totals[:, self._cap] |= reachable[:, self._cap]  # the cap may stand for more, as in observations
        if values.shape != (size,):
            raise ValueError(f"{values.shape} values are not the {size} of these rules")
        self._values = values.view()
        self._values.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as a question: the cache there has the answer."""
        return solve, (self.rules,)

    @property
    def expected_score(self) -> float:
        """The expected final score of optimal play from an empty sheet, in points."""
        return float(self.card_value(0, 0, False))

    def card_value(
        self, filled: npt.ArrayLike, basic_total: npt.ArrayLike, armed: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the expected points still to come before the first roll of a turn, (...) float64.

        The Basic bonus is among them until the sixth Basic box is filled. A full card (32767) is worth 0.
        """
        cards, shape = self._checked_cards(filled, basic_total, armed, full=True)
        is_full = cards[:, 0] == ALL_BOXES
        totals = np.where(cards[:, 0] & BASIC_SECTION == BASIC_SECTION, 0, np.minimum(cards[:, 1], self._cap))
        places = self._starts[cards[:, 2], cards[:, 0]] + totals
        return np.where(is_full, 0.0, self._values[np.where(is_full, 0, places)]).reshape(shape)

    def action_values(
        self,
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
        dice: npt.ArrayLike,
        rolls_left: npt.ArrayLike,
    ) -> npt.NDArray[np.float64]:
        """Return the expected points still to come after each action of the "keeps" numbering, (..., 225) float64.

        Points of the action included; -inf where it is illegal, exactly as the environment's mask says.
        """
        rolls, left = roll_indices(dice), np.asarray(rolls_left)
        if left.dtype.kind not in "iu":
            raise ValueError(f"rolls_left of type {left.dtype} are not whole numbers")
        cards, shape = self._checked_cards(filled, basic_total, armed, full=False, like=(rolls, left))
        rolls = np.broadcast_to(rolls, shape).reshape(-1)
        lefts = np.broadcast_to(left, shape).reshape(-1)
        if (wrong := (lefts < 0) | (lefts >= ROLLS_PER_TURN)).any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"row {row}: rolls_left {lefts[row]} is not 0, 1 or 2")

        def write_worths(some: npt.NDArray[np.int64], worths: npt.NDArray[np.float64]) -> None:
            _write_worths(self._tables, self._starts, self._values, some, worths)

        out = turn.action_values(self._tables, cards, rolls, lefts.astype(np.int64), write_worths)
        return out.reshape(*shape, out.shape[1])

    def best_action(
        self,
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
        dice: npt.ArrayLike,
        rolls_left: npt.ArrayLike,
    ) -> npt.NDArray[np.int64]:
        """Return the best action of the "keeps" numbering, (...) int64; among equals (1e-9) the lowest number."""
        return turn.best_actions(self.action_values(filled, basic_total, armed, dice, rolls_left))

    @property
    def _cap(self) -> int:
        return int(self._tables["basic_cap"][0])

    def _checked_cards(
        self,
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
        *,
        full: bool,
        like: tuple[npt.NDArray[Any], ...] = (),
    ) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
        """Return cards as rows (filled, basic_total, armed) int64 and the shape they were given in."""
        columns = np.broadcast_arrays(np.asarray(filled), np.asarray(basic_total), np.asarray(armed), *like)
        shape = columns[0].shape
        for name, column in zip(("filled", "basic_total", "armed"), columns, strict=False):
            if column.dtype.kind not in "iub":
                raise ValueError(f"{name} of type {column.dtype} are not whole numbers")
        cards = np.stack([column.reshape(-1) for column in columns[:3]], axis=1).astype(np.int64)
        boxes, totals, is_armed = cards.T
        last = ALL_BOXES if full else ALL_BOXES - 1
        valid = (boxes >= 0) & (boxes <= last) & (totals >= 0) & (is_armed >= 0) & (is_armed <= 1)
        valid &= totals <= MAX_BASIC_TOTAL
        safe = np.where(valid, boxes, 0)
        valid &= self._possible_totals[safe & BASIC_SECTION, np.where(valid, totals, 0)]
        valid &= self._starts[np.where(valid, is_armed, 0), safe] >= 0
        if not valid.all():
            row = int(np.flatnonzero(~valid)[0])
            box, total, arm = cards[row].tolist()
            raise ValueError(f"row {row}: no game has a card with filled={box}, basic_total={total}, armed={arm}")
        return cards, shape


def _bits(filled: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return filled[:, None] >> np.arange(NUM_BOXES) & 1


def solve_values(
    tables: Record,
    report: Callable[[float], None] = lambda share: None,
    *,
    closed: int = 0,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Return the values of all cards of a score table, in the order of `value_starts`; `report` hears the share done.

    Cards with more boxes filled come first; those with equally many do not depend on one another. With boxes in
    `closed` (a bit each) only cards that have these filled are solved, the others stay 0: the end of a game, or a game
    of fewer boxes.
    """
    reachable = reachable_totals(tables, int(tables["basic_cap"][0]))
    starts, size = value_starts(tables, reachable)
    values = np.zeros(size)
    filled = np.arange(NUM_CARDS)
    filled = filled[filled & closed == closed]
    num_filled = _bits(filled).sum(1)
    weights = np.bincount(num_filled, minlength=NUM_BOXES + 1)
    done = 1  # the full card: it is worth 0
    with ThreadPoolExecutor(threads or cpu_count()) as pool:
        for count in range(NUM_BOXES - 1, -1, -1):
            jobs = []
            for armed in (False, True):
                cards = filled[(num_filled == count) & (starts[int(armed), filled] >= 0)]
                for part in range(_PARTS):
                    share = cards[part::_PARTS]
                    jobs.append(pool.submit(_solve_cards, tables, starts, values, reachable, share, armed))
            for job in jobs:
                job.result()
            done += int(weights[count])
            report(done / len(filled))
    return values


def solve(rules: Rules | Mapping[str, Any] | None = None, progress: bool = False) -> Optimum:
    """Return the optimum of solitaire Kismet under `rules`: from the cache, or solved in seconds and put there.

    `progress` shows a bar while solving. A damaged file is solved anew with a warning; where the cache cannot be
    written the values stay in memory, also with a warning. Many processes may ask at once.
    """
    alone = replace(Rules.of(rules), second_kismet_penalty=True)  # solitaire knows no penalty
    if alone not in _solved:
        _solved[alone] = Optimum(alone, cached_values(alone, progress))
    return _solved[alone]


_solved: dict[Rules, Optimum] = {}


def cached_values(rules: Rules, progress: bool = False) -> npt.NDArray[np.float64]:
    """Return what `solve` makes an Optimum of: the values on disk, or new ones that are put there."""
    about = {"format": _FORMAT, "rules": json.dumps(asdict(rules))}
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    path = cache_root() / "optimum" / f"{name}.safetensors"
    try:
        return load_array(path, about)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        warnings.warn(f"{error}; solving anew", stacklevel=3)
    with _bar(progress) as report:
        values = solve_values(tables_of(rules), report)
    try:
        save_array(path, values, about)
    except OSError as error:
        warnings.warn(f"cannot keep the optimum in {path.parent}: {error}; it stays in memory", stacklevel=3)
    return values


@contextmanager
def _bar(progress: bool) -> Iterator[Callable[[float], None]]:
    """Show a bar of the share done on a terminal's error output, where `progress` is wished for."""
    if not (progress and sys.stderr.isatty()):
        yield lambda share: None
        return

    def report(share: float) -> None:
        done = round(40 * share)
        print(f"\rsolving [{'#' * done}{'.' * (40 - done)}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    report(0.0)
    try:
        yield report
    finally:
        print(file=sys.stderr)
