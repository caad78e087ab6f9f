"""A game held against the exact optimum: what every decision cost, what every roll brought, player by player.

Each card is judged as in solitaire, for the points that its owner can expect by the best play: the other players touch
it by forced zeros alone. For every player

    final score = value of the start + luck - regret - lost by forced zeros

(RULES.md 6.3 has the zeros; the identity without them is that of `kismet_env.regret`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kismet_env.actions import actions_of
from kismet_env.observation import Decision
from kismet_env.position import is_armed
from kismet_env.record import Game, Move
from kismet_env.regret import Judge
from kismet_env.render.sheet import contents_of
from kismet_env.rules import BASIC_BOXES, Box, Rules
from kismet_env.solver import Choice, Optimum

NUM_CHOICES = 5
"""How many of the best actions are named beside each decision."""
MISTAKE = 1.0
"""Regret from which a decision is marked where people look at it, in points."""
NO_LOSS = 0.005
"""Regret below which a decision is shown as one of the best, in points."""
_OVER = np.ones(1, np.bool_)
_KEEPS = actions_of("keeps")


class Outlook(NamedTuple):
    """What a decision is about, before it is taken; in points."""

    player: int
    value: float  # expected final score of the player by the best play from here
    luck: float  # what the dice that came are worth more than those to be expected
    choices: tuple[Choice, ...]  # the best actions, the best one first


class Verdict(NamedTuple):
    """What an action meant; in points."""

    value: float  # expected final score of the player by the best play after it
    regret: float  # what it gave away, 0 for the best
    zeros: tuple[tuple[int, float], ...]  # (seat, loss): what forced zeros cost the others, or, negative, brought them


class Judged(NamedTuple):
    """A move with what there was to know before and after it."""

    move: Move
    outlook: Outlook
    verdict: Verdict


class Sums(NamedTuple):
    """Where the score of one player comes from: expected = start + luck - regret - zeros, in points."""

    start: float  # expected final score by the best play, before the first roll
    luck: float
    regret: float
    zeros: float  # lost by zeros that others' second Kismets forced
    expected: float  # expected final score at the end of the record: the total, once the game is over


class Analyst:
    """Follows a game: `look` at every decision, then `judge` the action.

    Args:
        optimum: the truth about one card, under the rules of the game.
        start: the position in which the game begins.
    """

    def __init__(self, optimum: Optimum, start: Mapping[str, Any]) -> None:
        self._optimum = optimum
        num_players = len(start["cards"])
        self._judge = Judge(optimum, _KEEPS, num_players)
        self._kept: int | None = None  # the action that led to the dice on the table, within a turn
        self._start = [self._expected(start, seat) for seat in range(num_players)]
        self._luck, self._regret, self._zeros = (np.zeros(num_players) for _ in range(3))

    def look(self, player: int, decision: Decision, total: int) -> Outlook:
        """Return what `player`, who has `total` points, decides about; once for each decision, in order."""
        row = np.array([player])
        if self._kept is None:
            luck = float(self._judge.begin(row, decision)[0])
        else:
            luck = float(self._judge.follow(row, np.array([self._kept]), decision, ~_OVER).luck[0])
        self._luck[player] += luck
        (filled,), (basic,), (armed,), (dice,), (rolls_left,) = (field.tolist() for field in decision)
        choices = self._optimum.explain(filled, basic, armed, dice, rolls_left, count=NUM_CHOICES).choices
        return Outlook(player, total + float(self._judge.values[player].max()), luck, choices)

    def judge(self, move: Move) -> Verdict:
        """Return what the `move` meant, which was played where one looked last."""
        values = self._judge.values[move.player]
        row, action = np.array([move.player]), np.array([move.action])
        regret = float(self._judge.follow(row, action, move.decision, _OVER).regret[0])
        self._kept = move.action if move.box is None else None
        self._regret[move.player] += regret
        zeros = []
        for seat, _ in move.forced_zeros:
            loss = self._expected(move.before, seat) - self._expected(move.after, seat)
            self._zeros[seat] += loss
            zeros.append((seat, loss))
        value = total_of(move.before, move.player, self._optimum.rules) + float(values[move.action])
        return Verdict(value, regret, tuple(zeros))

    def sums(self) -> list[Sums]:
        """Return where the scores of all players come from, so far."""
        parts = zip(self._start, self._luck.tolist(), self._regret.tolist(), self._zeros.tolist(), strict=True)
        return [Sums(*part, expected=part[0] + part[1] - part[2] - part[3]) for part in parts]

    def _expected(self, position: Mapping[str, Any], seat: int) -> float:
        """Return the expected final score of a player between two turns of his."""
        rules = self._optimum.rules
        card = {Box[name]: points for name, points in position["cards"][seat].items()}
        filled = sum(1 << box for box in card)
        basic = sum(card.get(box, 0) for box in BASIC_BOXES)
        armed = is_armed(card, (position.get("kismets_rolled") or [0] * (seat + 1))[seat], rules)
        return total_of(position, seat, rules) + float(self._optimum.card_value(filled, basic, armed))


def costliest(
    judged: Sequence[Judged], count: int, *, player: int | None = None, least: float = MISTAKE
) -> list[tuple[int, Judged]]:
    """Return the up to `count` decisions that cost most, and `least` at least, with their numbers from 1.

    Those of one `player`, or of all.
    """
    costly = [
        (number, one)
        for number, one in enumerate(judged, 1)
        if one.verdict.regret >= least and player in (None, one.move.player)
    ]
    return sorted(costly, key=lambda each: (-each[1].verdict.regret, each[0]))[:count]


def total_of(position: Mapping[str, Any], seat: int, rules: Rules) -> int:
    """Return the points on the card of one player, the bonus included once it is earned."""
    return contents_of(position, rules).columns[seat].total


def analyse(game: Game, optimum: Optimum) -> tuple[list[Judged], list[Sums]]:
    """Return every move of a game with what there was to know of it, and where each player's score comes from."""
    analyst = Analyst(optimum, game.beginning)
    judged = []
    for move in game.moves:
        outlook = analyst.look(move.player, move.decision, total_of(move.before, move.player, game.rules))
        judged.append(Judged(move, outlook, analyst.judge(move)))
    return judged, analyst.sums()
