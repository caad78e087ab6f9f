"""The exact optimum of solitaire Kismet: the value of every card, of every action, under any rules.

Backward induction over (filled boxes, Basic total, armed), one turn at a time: a card's value is the expectation,
over the first roll, of the best way to play the turn (`turn`), where filling a box is worth its points and the value
of the card after it. Boxes are filled by the engine's own `fill_box`; no rule is written here.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env import turn
from kismet_env.actions import actions_of
from kismet_env.cache import kept
from kismet_env.cards import CardNumbers, Cards, place_of, write_worth, write_worths
from kismet_env.dice import NUM_ROLLS, ROLL_PROBABILITY, roll_indices
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.exact import PolicyValue, TurnPolicy
from kismet_env.jit import Table, compiled, source_hash
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.starts import card_distribution, open_boxes_of
from kismet_env.tables import Record, tables_of
from kismet_env.turn import allow, new_plan, plan_card

_SOURCES = ("dice.py", "rules.py", "tables.py", "engine.py", "turn.py", "cards.py", "exact.py", "solver.py")
"""What values on disk follow from: they are for these sources and no others, so that no edit meets old values."""


@compiled
def _solve_cards(tables_array: Record, starts: Table, ranks: Table, values: Table, some: Table) -> None:
    """Write the values of `some` cards whose successors are known into `values`."""
    tables, plan = tables_array[0], new_plan()
    worth, roll_values = np.empty((NUM_BOXES, NUM_ROLLS)), plan.roll_values
    for index in range(len(some)):
        card = some[index]
        filled, armed = card[0], card[2] != 0
        allow(tables, filled, armed, plan)
        write_worth(tables, starts, ranks, values, card, worth)
        plan_card(filled, worth, plan)
        mean = 0.0
        for roll in range(NUM_ROLLS):
            mean += ROLL_PROBABILITY[roll] * roll_values[-1, roll]
        values[place_of(starts, ranks, filled, card[1], armed)] = mean


class Choice(NamedTuple):
    """One action and what it is worth."""

    action: int  # numbering "keeps"
    text: str
    value: float  # points still to come, those of the action included
    loss: float  # points less than the best action


class Explanation(NamedTuple):
    """The best actions of a decision, the best one first; its text is a table."""

    dice: tuple[int, ...]
    rolls_left: int
    choices: tuple[Choice, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain dicts, lists and numbers, ready for JSON."""
        choices = [choice._asdict() for choice in self.choices]
        return {"dice": list(self.dice), "rolls_left": self.rolls_left, "choices": choices}

    def __str__(self) -> str:
        title = f"dice {'-'.join(map(str, self.dice))}, rolls left: {self.rolls_left}"
        width = max(len(choice.text) for choice in self.choices)
        rows = [f"{choice.text:{width}} {choice.value:8.2f} {choice.loss:6.2f}" for choice in self.choices]
        return "\n".join([title, f"{'action':{width}} {'points':>8} {'loss':>6}", *rows])


class Sds(NamedTuple):
    """The standard deviations of optimal play, in points."""

    score: float
    step: float
    codes: npt.NDArray[np.uint16]  # (size,): those of all cards, in the order of CardNumbers, counted in steps

    @classmethod
    def of(cls, value: PolicyValue) -> Sds:
        """Return those of `value`."""
        step = float(value.card_sds.max()) / np.iinfo(np.uint16).max
        return cls(value.score_sd, step, np.rint(value.card_sds / step).astype(np.uint16))

    def packed(self) -> npt.NDArray[np.uint8]:
        """Return them as bytes, so few that values and standard deviations together take little room on disk."""
        rises = np.diff(self.codes, prepend=np.uint16(0))  # modulo 2**16; most are small: worth compressing
        high_and_low = np.ascontiguousarray(rises.view(np.uint8).reshape(-1, 2).T)
        return np.frombuffer(np.array(self[:2]).tobytes() + zlib.compress(high_and_low.data), np.uint8)

    @classmethod
    def unpacked(cls, packed: npt.NDArray[np.uint8]) -> Sds:
        """Return those that were `packed`."""
        score, step = packed[:_TWO_FLOATS].view(np.float64).tolist()
        high_and_low = np.frombuffer(zlib.decompress(packed[_TWO_FLOATS:].data), np.uint8).reshape(2, -1)
        rises = np.ascontiguousarray(high_and_low.T).view(np.uint16)[:, 0]
        return cls(score, step, rises.cumsum(dtype=np.uint16))


_TWO_FLOATS = 2 * np.dtype(np.float64).itemsize


class Optimum:
    """The truth about solitaire Kismet under one set of rules; get it from `solve`.

    Cards and decisions are given as in `kismet_env.observation.Decision`, one or a batch: `filled` (bit per box, not
    all), `basic_total` (points in the Basic Section), `armed` (whether five alike would be a second Kismet), `dice`
    (..., 5) faces in any order, `rolls_left` 2, 1 or 0. What no game can lead to is a ValueError that names the first
    such row.
    """

    def __init__(self, rules: Rules, values: npt.NDArray[np.float64]) -> None:
        self.rules = rules
        self.numbers = CardNumbers(tables_of(rules))
        if values.shape != (self.numbers.size,):
            raise ValueError(f"{values.shape} values are not the {self.numbers.size} of these rules")
        self.values = values.view()
        """The expected points still to come on every card, in the order of `numbers`; read-only."""
        self.values.flags.writeable = False
        self._sds: Sds | None = None

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
        return self.numbers.value(self.values, filled, basic_total, armed)

    @property
    def score_sd(self) -> float:
        """The standard deviation of the final score of optimal play from an empty sheet, in points.

        See `prepare_sds`.
        """
        return self.prepare_sds().score

    def card_sd(
        self, filled: npt.ArrayLike, basic_total: npt.ArrayLike, armed: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the standard deviation of what `card_value` is the mean of, (...) float64.

        Rounded to a 65535th of the largest one, less than a thousandth of a point under the standard rules; see
        `prepare_sds`.
        """
        sds = self.prepare_sds()
        return self.numbers.value(sds.codes, filled, basic_total, armed) * sds.step

    def prepare_sds(self, progress: bool = False) -> Sds:
        """Work out the standard deviations of all cards, or load them from the cache: see `exact` and `solve`.

        Their first use does so by itself. It takes about a minute of a core, once for each set of rules.
        """
        if self._sds is None:
            self._sds = cached_sds(self, progress)
        return self._sds

    def write_worths(self, cards: Cards, worths: npt.NDArray[np.float64]) -> None:
        """Write what filling each box with each roll is worth on each of `cards`; see turn.action_values."""
        numbers = self.numbers
        write_worths(numbers.tables, numbers.starts, numbers.ranks, self.values, cards, worths)

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
        cards, shape = self.numbers.checked(filled, basic_total, armed, rolls, left)
        rolls = np.broadcast_to(rolls, shape).reshape(-1)
        lefts = np.broadcast_to(left, shape).reshape(-1)
        if (wrong := (lefts < 0) | (lefts >= ROLLS_PER_TURN)).any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"row {row}: rolls_left {lefts[row]} is not 0, 1 or 2")
        out = turn.action_values(self.numbers.tables, cards, rolls, lefts.astype(np.int64), self.write_worths)
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

    def explain(
        self,
        filled: int,
        basic_total: int,
        armed: bool,
        dice: npt.ArrayLike,
        rolls_left: int,
        *,
        count: int = 5,
    ) -> Explanation:
        """Return the `count` best actions of one decision, or all if there are fewer; print it for a table.

        Raises ValueError for impossible decisions and for a batch of them.
        """
        if count < 1:
            raise ValueError(f"count={count} is not at least 1")
        values = self.action_values(filled, basic_total, armed, dice, rolls_left)
        if values.ndim > 1:
            raise ValueError(f"decisions of shape {values.shape[:-1]} are not one decision")
        best, choices = float(values.max()), []
        for _ in range(min(count, int((values > -np.inf).sum()))):
            action = int(turn.best_actions(values))
            value = float(values[action])
            choices.append(Choice(action, actions_of("keeps").text(action), value, best - value))
            values[action] = -np.inf
        return Explanation(tuple(sorted(np.asarray(dice).tolist())), int(rolls_left), tuple(choices))

    def start_value(self, start: str = "full") -> float:
        """Return the expected points of optimal play from `start` (see `starts`), over all cards it deals; exact.

        ValueError for an unknown start.
        """
        open_boxes = open_boxes_of(start)
        numbers = [open_boxes] if open_boxes else range(1, NUM_BOXES + 1)
        dealt = card_distribution(self.rules)
        num_open = NUM_BOXES - (np.arange(len(dealt))[:, None] >> np.arange(NUM_BOXES) & 1).sum(1)
        means = []
        for number in numbers:
            sets = np.flatnonzero(num_open == number)  # each is equally likely
            place, armed, basic_total = np.nonzero(dealt[sets])
            filled = sets[place]
            means.append(dealt[filled, armed, basic_total] @ self.card_value(filled, basic_total, armed) / len(sets))
        return float(np.mean(means))


def solve_values(
    tables: Record,
    report: Callable[[float], None] = lambda share: None,
    *,
    closed: int = 0,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Return the values of all cards of a score table, in the order of CardNumbers; see CardNumbers.sweep."""
    numbers = CardNumbers(tables)
    values = np.zeros(numbers.size)
    numbers.sweep(
        lambda cards: _solve_cards(tables, numbers.starts, numbers.ranks, values, cards),
        report,
        closed=closed,
        threads=threads,
    )
    return values


def sources(*others: str) -> str:
    """Return hashes of what values on disk follow from, and of `others` among the source files."""
    return "-".join(source_hash(name) for name in (*_SOURCES, *others))


def solve(rules: Rules | Mapping[str, Any] | str | None = None, progress: bool = False) -> Optimum:
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

    def values() -> npt.NDArray[np.float64]:
        with _bar(progress) as report:
            return solve_values(tables_of(rules), report)

    return kept("optimum", {"sources": sources(), "rules": json.dumps(asdict(rules))}, values)


def cached_sds(optimum: Optimum, progress: bool = False) -> Sds:
    """Return the standard deviations of `optimum`: those on disk, or new ones that are put there."""

    def packed() -> npt.NDArray[np.uint8]:
        policy = TurnPolicy("best", write_worths=optimum.write_worths)
        with _bar(progress, "spread") as report:
            return Sds.of(PolicyValue(policy, tables_of(optimum.rules), report)).packed()

    about = {"sources": sources(), "sd of": json.dumps(asdict(optimum.rules))}
    return Sds.unpacked(kept("optimum", about, packed))


@contextmanager
def _bar(progress: bool, doing: str = "solving") -> Iterator[Callable[[float], None]]:
    """Show a bar of the share done on a terminal's error output, where `progress` is wished for."""
    if not (progress and sys.stderr.isatty()):
        yield lambda share: None
        return

    def report(share: float) -> None:
        done = round(40 * share)
        print(f"\r{doing} [{'#' * done}{'.' * (40 - done)}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    report(0.0)
    try:
        yield report
    finally:
        print(file=sys.stderr)
