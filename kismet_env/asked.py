"""The exact value of a player who has to be asked what he does, decision by decision: a network.

There are two billion decisions (`cost`). One who draws lots is asked about all of them, from the full cards back to
the empty one, as in `exact`. One who does not meets fewer: he is followed from the start, by numbers of filled boxes,
over the cards that he can come to and the dice that he can come to in their turns, and what he does there is
remembered; the way back is then a matter of a minute.

All of that is kept in a folder, page by page, a thousand cards each, so that it can be broken off at any moment and
taken up again. A page is read only where it is about the same player, rules and cards, worked out by the same code.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch, Step
from kismet_env.bots import AskedPlayer, StochasticPlayer
from kismet_env.cache import load_array, save_array
from kismet_env.cards import CardNumbers, Cards, place_of
from kismet_env.dice import KEEPS_OF_ROLL, MOST_KEEPS, NUM_REROLL_KEEPS, NUM_ROLLS, REROLL_PROBABILITY, ROLL_DICE
from kismet_env.engine import ALL_BOXES, ROLLS_PER_TURN, fill_box
from kismet_env.exact import UNMET, PolicyValue, TurnPolicy
from kismet_env.jit import Table, compiled, source_hash
from kismet_env.observation import Decision
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, tables_of

PAGE = 1024
"""Cards whose results are kept together: half a minute of work, and a megabyte at most."""
_ASKED_AT_ONCE = 32  # cards: 8,000 decisions, whose probabilities are 15 MB
_WAY_BACK = 0.02  # its share of the progress, when all questions have been asked
_TRIED = 4096  # decisions, to see how long one takes
_LEADS_TO = REROLL_PROBABILITY > 0  # [keep, roll] (210, 252)
_SOURCES = """
    dice.py rules.py tables.py actions.py engine.py observation.py batch.py
    policy_file.py player.py network_player.py actor.py sb3_policy.py
    turn.py cards.py exact.py asked.py
"""
"""What pages follow from."""


class Cost(NamedTuple):
    """What it takes at most to ask a player about everything."""

    decisions: int
    seconds: float  # on the clock, at the pace of a short trial
    num_bytes: int  # on disk

    def __str__(self) -> str:
        pace = self.decisions / self.seconds
        return (
            f"up to {self.decisions / 1e9:.1f} billion decisions, {pace:,.0f} a second: "
            f"up to {self.seconds / 3600:.1f} hours, and up to {self.num_bytes / 1e9:.1f} GB of disk"
        )


def cost(player: AskedPlayer, rules: Rules | None = None) -> Cost:
    """Return what the exact value of `player` takes at most. Who draws no lots meets a tenth to two thirds."""
    rules = rules or Rules()
    batch = Batch(_TRIED, rules=rules, start="uniform")
    batch.seed(range(_TRIED))
    seen = batch.deal()
    seconds = []
    for _ in range(2):  # the first one may have to compile something
        started = time.perf_counter()
        _answers(player, seen)
        seconds.append(time.perf_counter() - started)
    num_cards = CardNumbers(tables_of(rules), full_totals=True).size
    decisions = num_cards * ROLLS_PER_TURN * NUM_ROLLS
    bytes_a_card = 2 * 8 if isinstance(player, StochasticPlayer) else ROLLS_PER_TURN * NUM_ROLLS
    return Cost(decisions, decisions * min(seconds) / _TRIED, num_cards * bytes_a_card)


def value(
    player: AskedPlayer,
    rules: Rules | None = None,
    report: Callable[[float], None] = lambda share: None,
    *,
    folder: Path,
    closed: int = 0,
) -> PolicyValue:
    """Return what `player` is worth under `rules`, exactly; for how long that takes see `cost`.

    What is worked out goes into `folder`, for this player and others, and is not worked out again when it is there.
    `closed` (a bit per box): games begin with these boxes filled, on any such card. Of a player who draws no lots
    nothing is known of cards and decisions that he never meets: there values are nan. Holds his actions in memory, 756
    bytes a card. Damaged pages are worked out anew with a warning. OSError where nothing can be written.
    """
    alone = replace(rules or Rules(), second_kismet_penalty=True)  # solitaire knows no penalty
    tables = tables_of(alone)
    pages = _Pages(player, alone, folder)
    if isinstance(player, StochasticPlayer):
        return PolicyValue(
            TurnPolicy("shares", write_shares=partial(_write_shares, player, alone), full_totals=True),
            tables,
            report,
            closed=closed,
            page=pages.page,
            most=PAGE,
            threads=1,  # BLAS and torch use all cores for one question
        )
    met = _Met(player, alone, closed, pages.page, lambda share: report((1 - _WAY_BACK) * share))
    return PolicyValue(
        TurnPolicy("table", write_table=met.write_table, full_totals=True),
        tables,
        lambda share: report(1 - _WAY_BACK + _WAY_BACK * share),
        closed=closed,
        only=met.cards,
    )


class _Pages:
    """A folder with what has been worked out about the cards of some player."""

    def __init__(self, player: AskedPlayer, rules: Rules, folder: Path) -> None:
        sources = hashlib.sha256("".join(map(source_hash, _SOURCES.split())).encode()).hexdigest()
        self._about = {"player": player.fingerprint(), "rules": json.dumps(asdict(rules)), "sources": sources}
        self._folder = folder / hashlib.sha256(json.dumps(self._about).encode()).hexdigest()[:16]

    def page(self, cards: Cards, work_out: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return what is known of `cards`, or what `work_out` returns, written down before."""
        digest = hashlib.sha256(np.ascontiguousarray(cards).data).hexdigest()
        about = {**self._about, "cards": digest}
        path = self._folder / f"{int(cards[0, 0]).bit_count():02}-{digest[:16]}.safetensors"
        try:
            return np.array(load_array(path, about))  # a copy: every file that is mapped stays open
        except FileNotFoundError:
            pass
        except ValueError as error:
            warnings.warn(f"{error}; asking anew", stacklevel=2)
        page = work_out()
        save_array(path, page, about)
        return page


class _Met:
    """The cards that a player who draws no lots can come to, and what he does in the decisions that he can come to.

    Attributes:
        cards: (size,) bool, in the order of CardNumbers.
    """

    def __init__(
        self,
        player: AskedPlayer,
        rules: Rules,
        closed: int,
        page: Callable[[Cards, Callable[[], npt.NDArray[Any]]], npt.NDArray[Any]],
        report: Callable[[float], None],
    ) -> None:
        self._numbers = numbers = CardNumbers(tables_of(rules), full_totals=True)
        self.cards = np.zeros(numbers.size, np.bool_)
        self._where = np.zeros((numbers.size, 2), np.int32)  # which page, which row of it
        self._pages: list[npt.NDArray[np.uint8]] = []
        layers = list(numbers.layers(closed))[::-1]
        self.cards[numbers.places(layers[0])] = True
        total, before = sum(map(len, layers)), 0
        for layer in layers:
            met = layer[self.cards[numbers.places(layer)]]
            parts = np.array_split(met, -(-len(met) // PAGE))
            for done, part in enumerate(parts, start=1):
                choices = page(part, partial(_choices, player, rules, part))
                self._where[numbers.places(part), 0] = len(self._pages)
                self._where[numbers.places(part), 1] = np.arange(len(part))
                self._pages.append(choices)
                _meet_next(numbers.tables, part, choices, numbers.starts, numbers.ranks, self.cards)
                report((before + len(layer) * done / len(parts)) / total)
            before += len(layer)

    def write_table(self, cards: Cards, table: npt.NDArray[np.int64]) -> None:
        """Write what he does on `cards`; see TurnPolicy."""
        places = self._numbers.places(cards)
        for row, place in enumerate(places):
            page, of_page = self._where[place]
            table[row] = self._pages[page][of_page] if self.cards[place] else UNMET


@compiled
def _meet_next(tables_array: Record, cards: Table, choices: Table, starts: Table, ranks: Table, met: Table) -> None:
    """Mark all cards that `cards` become by the boxes filled in `choices` [card, left, roll], (C, 3, 252)."""
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        for left in range(ROLLS_PER_TURN):
            for roll in range(NUM_ROLLS):
                action = choices[index, left, roll]
                if action == UNMET or action < NUM_REROLL_KEEPS:
                    continue
                _, _, filled_after, total_after, armed_after = fill_box(
                    tables_array[0], filled, basic_total, armed, roll, action - NUM_REROLL_KEEPS
                )
                if filled_after != ALL_BOXES:
                    met[place_of(starts, ranks, filled_after, total_after, armed_after)] = True


def _decisions(rules: Rules, cards: Cards, rolls: npt.NDArray[np.int64], left: int) -> Step:
    """Return what a player sees who has these `rolls` (N,) on `cards` (N, 3), as in a game."""
    filled, basic_total, armed = cards.T
    left_of_each = np.full(len(cards), left)
    return Batch(len(cards), rules=rules).show(
        Decision(filled, basic_total, armed > 0, ROLL_DICE[rolls].astype(np.int64), left_of_each)
    )


def _answers(player: AskedPlayer, seen: Step) -> npt.NDArray[Any]:
    """Return the probabilities (N, 225) of who draws lots, else the actions (N,)."""
    if isinstance(player, StochasticPlayer):
        return player.probabilities(seen.observations, seen.masks)
    return player.act(seen.observations, seen.masks)


def _choices(player: AskedPlayer, rules: Rules, cards: Cards) -> npt.NDArray[np.uint8]:
    """Return what a player who draws no lots does on `cards`, [card, left, roll] (C, 3, 252), UNMET elsewhere."""
    choices = np.full((len(cards), ROLLS_PER_TURN, NUM_ROLLS), UNMET, np.uint8)
    for first in range(0, len(cards), _ASKED_AT_ONCE):
        some = cards[first : first + _ASKED_AT_ONCE]
        met = np.ones((len(some), NUM_ROLLS), np.bool_)
        for left in range(ROLLS_PER_TURN - 1, -1, -1):
            index, rolls = np.nonzero(met)
            seen = _decisions(rules, some[index], rolls, left)
            actions = _answers(player, seen)
            if not seen.masks[np.arange(len(actions)), actions].all():
                raise ValueError(f"{type(player).__name__} plays illegal actions")
            choices[first + index, left, rolls] = actions
            goes_on = actions < NUM_REROLL_KEEPS
            kept = np.zeros((len(some), NUM_REROLL_KEEPS), np.bool_)
            kept[index[goes_on], actions[goes_on]] = True
            met = kept @ _LEADS_TO
    return choices


def _write_shares(player: AskedPlayer, rules: Rules, cards: Cards, shares: npt.NDArray[np.float64]) -> None:
    """Write the probabilities of all that a player does on `cards`; see TurnPolicy."""
    for first in range(0, len(cards), _ASKED_AT_ONCE):
        some = cards[first : first + _ASKED_AT_ONCE]
        rolls = np.tile(np.arange(NUM_ROLLS), len(some))
        keeps = KEEPS_OF_ROLL[rolls]
        for left in range(ROLLS_PER_TURN):
            probabilities = _answers(player, _decisions(rules, np.repeat(some, NUM_ROLLS, axis=0), rolls, left))
            named = np.empty((len(rolls), MOST_KEEPS + NUM_BOXES))
            named[:, :MOST_KEEPS] = np.take_along_axis(probabilities, np.maximum(keeps, 0), axis=1) * (keeps >= 0)
            named[:, MOST_KEEPS:] = probabilities[:, NUM_REROLL_KEEPS:]
            named /= named.sum(1, keepdims=True)  # as lots are drawn, though float32 may sum to a little less than 1
            shares[first : first + len(some), left] = named.reshape(len(some), NUM_ROLLS, -1)
