"""The cards that a solitaire game can lead to, numbered, and the way back through them, layer by layer.

To the rules a card is (filled boxes, Basic total up to the top tier, armed). A value for every card is a vector in the
order of `CardNumbers`; sweeps go from full cards to the empty one, because a turn fills exactly one box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np
import numpy.typing as npt

from kismet_env.dice import NUM_ROLLS
from kismet_env.engine import ALL_BOXES, BASIC_SECTION, fill_box
from kismet_env.jit import Table, compiled
from kismet_env.rules import MAX_BASIC_TOTAL, NUM_BASIC_BOXES, NUM_BOXES, SECOND_KISMET, Box
from kismet_env.tables import Record, Tables

NUM_SETS = 1 << NUM_BOXES
PARTS = 16
"""Jobs that a layer is cut into: enough to keep all cores busy to its end."""

Cards = npt.NDArray[np.int64]
"""Cards as rows (filled, basic_total, armed), (C, 3)."""


@compiled
def place_of(starts: Table, ranks: Table, filled: int, basic_total: int, armed: bool) -> int:
    """Return the number of a card that is not full; see `CardNumbers`."""
    return int(starts[int(armed), filled]) + int(ranks[filled & BASIC_SECTION, basic_total])


@compiled
def write_worth(
    tables: Tables,
    starts: Table,
    ranks: Table,
    values: Table,
    card: Table,
    worth: Table,
    squares: Table | None = None,
    square: Table | None = None,
) -> None:
    """Write what filling each open box with each roll is worth on a `card`, points and what follows, into `worth`.

    `card` is (filled, basic_total, armed) as int64; `values` are those of all cards, in the order of CardNumbers;
    `worth` is [box, roll] (15, 252), untouched for filled boxes. Where `values` are means of a random number and
    `squares` its mean squares, those of points and what follows go into `square` [box, roll].
    """
    filled, basic_total, armed = card[0], card[1], card[2] != 0
    for box in range(NUM_BOXES):
        if filled >> box & 1:
            continue
        for roll in range(NUM_ROLLS):
            like = tables.like[box, roll]
            if like != roll:
                worth[box, roll] = worth[box, like]
                if square is not None:
                    square[box, roll] = square[box, like]
                continue
            points, bonus, filled_after, total_after, armed_after = fill_box(
                tables, filled, basic_total, armed, roll, box
            )
            gain, place = float(points + bonus), -1
            if filled_after != ALL_BOXES:
                place = place_of(starts, ranks, filled_after, total_after, armed_after)
            after = values[place] if place >= 0 else 0.0
            worth[box, roll] = gain + after
            if squares is not None and square is not None:
                square[box, roll] = gain * gain + 2.0 * gain * after + (squares[place] if place >= 0 else 0.0)


@compiled
def write_worths(tables_array: Record, starts: Table, ranks: Table, values: Table, some: Table, worths: Table) -> None:
    """Write what filling each open box with each roll is worth on each of `some` cards into `worths`."""
    for index in range(len(some)):
        write_worth(tables_array[0], starts, ranks, values, some[index], worths[index])


class CardNumbers:
    """Numbers the cards that the rules of a score table (dtype TABLES, shape (1,)) can lead to, full ones excepted.

    The total of a full Basic Section decides nothing any more, but can be seen. Without `full_totals` cards that differ
    in it alone are one card, with total 0.

    Attributes:
        starts: [armed, filled] (2, 32768) int32: number of the first card with these boxes, -1 where no game leads.
        ranks: [basic set, total] (64, 106) int16: place of a Basic total among those that the filled Basic boxes can
            have, what goes beyond the top tier as the top tier; without `full_totals` 0 for a full section.
        size: how many numbers there are.
    """

    def __init__(self, tables: Record, *, full_totals: bool = False) -> None:
        self.tables = tables
        self.cap = int(tables["basic_cap"][0])
        reachable = reachable_totals(tables, self.cap)
        self._possible_totals = reachable_totals(tables, MAX_BASIC_TOTAL)
        self._possible_totals[:, self.cap] |= reachable[:, self.cap]  # the cap may stand for more, as in observations
        if not full_totals:
            reachable[BASIC_SECTION] = np.arange(self.cap + 1) == 0
        self._totals = [np.flatnonzero(row) for row in reachable]
        capped = np.minimum(np.arange(MAX_BASIC_TOTAL + 1), self.cap)
        ranks = np.maximum(reachable.cumsum(1) - 1, 0)[:, capped]
        if not full_totals:
            ranks[BASIC_SECTION] = 0
        self.ranks = ranks.astype(np.int16)
        sets = np.arange(NUM_SETS)
        kismet = sets >> Box.KISMET & 1 == 1
        can_be = {  # what a card says of its past, RULES.md 6.1
            "scored": (np.ones(NUM_SETS, np.bool_), kismet),
            "filled": (~kismet, kismet),
            "rolled": (np.ones(NUM_SETS, np.bool_), sets > 0),
        }[SECOND_KISMET[int(tables["second_kismet"][0])]]
        widths = reachable.sum(1)[sets & BASIC_SECTION]
        sizes = np.where(can_be, widths, 0)
        sizes[:, ALL_BOXES] = 0
        ends = sizes.ravel().cumsum().reshape(2, NUM_SETS)
        self.starts = np.where(sizes > 0, ends - sizes, -1).astype(np.int32)
        self.size = int(ends[-1, -1])

    def places(self, cards: Cards) -> npt.NDArray[np.int64]:
        """Return the numbers of cards, (C,) int64; those of full cards mean nothing."""
        filled, basic_total, armed = cards.T
        return np.asarray(self.starts[armed, filled] + self.ranks[filled & BASIC_SECTION, basic_total], np.int64)

    def checked(
        self,
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
        *others: npt.NDArray[np.int64],
        full: bool = False,
    ) -> tuple[Cards, tuple[int, ...]]:
        """Return cards as rows and the shape in which they, and `others` beside them, were given.

        Raises ValueError, naming the first row, for a card that no game leads to; `full` ones only where allowed.
        """
        columns = np.broadcast_arrays(np.asarray(filled), np.asarray(basic_total), np.asarray(armed), *others)
        for name, column in zip(("filled", "basic_total", "armed"), columns, strict=False):
            if column.dtype.kind not in "iub":
                raise ValueError(f"{name} of type {column.dtype} are not whole numbers")
        cards = np.stack([column.reshape(-1).astype(np.int64) for column in columns[:3]], axis=1)
        boxes, totals, is_armed = cards.T
        valid = (boxes >= 0) & (boxes < NUM_SETS) & (totals >= 0) & (totals <= MAX_BASIC_TOTAL)
        valid &= (is_armed >= 0) & (is_armed <= 1)
        safe = np.where(valid, boxes, 0)
        valid &= self._possible_totals[safe & BASIC_SECTION, np.where(valid, totals, 0)]
        is_full = safe == ALL_BOXES
        valid &= np.where(is_full, full, self.starts[np.where(valid, is_armed, 0), safe] >= 0)
        if not valid.all():
            row = int(np.flatnonzero(~valid)[0])
            box, total, arm = (int(column.reshape(-1)[row]) for column in columns[:3])
            raise ValueError(f"row {row}: no game has a card with filled={box}, basic_total={total}, armed={arm}")
        return cards, columns[0].shape

    def value(
        self,
        values: npt.NDArray[np.float64] | npt.NDArray[np.uint16],
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
    ) -> npt.NDArray[np.float64]:
        """Return the `values` of cards, (...) float64; 0 for full ones. Raises ValueError as `checked` does."""
        cards, shape = self.checked(filled, basic_total, armed, full=True)
        is_full = cards[:, 0] == ALL_BOXES
        places = np.where(is_full, 0, self.places(cards))
        return np.where(is_full, 0.0, values[places]).reshape(shape)

    def layers(self, closed: int = 0, only: npt.NDArray[np.bool_] | None = None) -> Iterator[Cards]:
        """Yield the cards with 14 boxes filled, then those with 13, and so on: a turn leads to the layer before.

        Cards of the same boxes stand together, armed ones last. With boxes in `closed` (a bit each) only cards that
        have these filled are visited: the end of a game, or a game of fewer boxes. `only` (size,): these alone.
        """
        sets = np.arange(NUM_SETS)
        sets = sets[sets & closed == closed]
        num_filled = (sets[:, None] >> np.arange(NUM_BOXES) & 1).sum(1)
        for count in range(NUM_BOXES - 1, closed.bit_count() - 1, -1):
            layer = np.concatenate(
                [
                    np.stack(np.broadcast_arrays(filled, self._totals[filled & BASIC_SECTION], armed), axis=1)
                    for filled in sets[num_filled == count]
                    for armed in (0, 1)
                    if self.starts[armed, filled] >= 0
                ]
            )
            yield layer if only is None else layer[only[self.places(layer)]]

    def sweep(
        self,
        job: Callable[[Cards], None],
        report: Callable[[float], None] = lambda share: None,
        *,
        closed: int = 0,
        only: npt.NDArray[np.bool_] | None = None,
        most: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Give `job` all cards, layer by layer, many at once, in several threads; `report` hears the share done.

        Cards of one layer do not depend on one another; for `closed` and `only` see `layers`. A job is given at most
        `most` cards.
        """
        layers = list(self.layers(closed, only))
        total, done = sum(map(len, layers)), 0
        with ThreadPoolExecutor(threads or cpu_count()) as pool:
            run = map if threads == 1 else pool.map  # a single thread is the user's, whose Ctrl-C ends it at once
            for layer in layers:
                num_parts = max(min(PARTS, len(layer)), -(-len(layer) // (most or len(layer))))
                parts = np.array_split(layer, num_parts)
                for part, _ in zip(parts, run(job, parts), strict=True):
                    done += len(part)
                    report(done / total)


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
