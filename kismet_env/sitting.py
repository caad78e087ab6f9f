"""What a person at a table does, whatever the table looks like: decisions, one after the other, and what comes of them.

`Sitting` is what `board` draws and `dialogue` tells; a game against players and a quiz are two of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.advice import Advised, advise
from kismet_env.analysis import NO_LOSS, analyse, costliest, total_of
from kismet_env.batch import Step
from kismet_env.bots import Player, make
from kismet_env.command_line import write_whole
from kismet_env.observation import decode_table
from kismet_env.record import Game, Move
from kismet_env.rules import Rules
from kismet_env.solver import solve
from kismet_env.value_suite import ValueSuite, shares_of
from kismet_env.win_chance import TOTAL

YOU = "you"
"""What the person is called."""
NUM_ADVISED = 3
"""How many of the best actions are named on demand, and how many of the costliest decisions at the end."""
_WAIT = "The chance to win is being worked out, once for these rules, in some minutes; ask again."
_KEEPS = actions_of("keeps")


class Sitting(ABC):
    """A person's decisions.

    Attributes:
        rules: those that are played.
        players: who has a card on the table, by seat.
        seat: which of them the person is.
        explains: whether what an action has brought is to be looked at before the table changes.
    """

    rules: Rules
    players: tuple[str, ...]
    seat: int = 0
    explains: bool = False

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether there is nothing left to decide."""

    @abstractmethod
    def position(self) -> dict[str, Any]:
        """Return what lies on the table, in the form of `kismet_env.position`."""

    @abstractmethod
    def look(self) -> Step:
        """Return what players see of it, one row."""

    @abstractmethod
    def title(self) -> str:
        """Return what this decision is, in a few words."""

    @abstractmethod
    def choose(self, action: int) -> list[str]:
        """Take an action that is legal (numbering "keeps") and return what has happened, a line each."""

    @abstractmethod
    def report(self) -> list[str]:
        """Return what there is to say when the person leaves, a line each."""

    @property
    def knows_chances(self) -> bool:
        """Whether chances to win can be told without a long wait."""
        return False

    @property
    def caveat(self) -> str:
        """What there is to say of the advice, if anything."""
        return _WAIT if len(self.players) > 1 and not self.knows_chances else ""

    @property
    def legal(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now: (225,), numbering "keeps"."""
        legal: npt.NDArray[np.bool_] = self.look().masks[0] > 0
        return legal

    def advice(self, count: int | None = NUM_ADVISED) -> tuple[Advised, ...]:
        """Return the best actions, or all, the best one first."""
        position = self.position()
        cards = decode_table(self.look().observations, self.rules)[0]
        cards[0, TOTAL] = total_of(position, self.seat, self.rules)  # which the solitaire game does not show
        return advise(
            cards,
            self.rules,
            dice=position["dice"],
            rolls_left=position["rolls_left"],
            count=count,
            to_win=self.knows_chances,
        )


class Match(Sitting):
    """A game of the person, alone or against players; written down after every action.

    Args:
        game: with one player called "you"; it may be under way.
        path: where it is written down.
        trust: see `kismet_env.bots.make`.
        chances_known: says whether `win_chance.judge_of` will answer at once.

    Raises ValueError where nobody is called "you", where another player is unknown, and for a game on a real table.
    """

    def __init__(
        self,
        game: Game,
        path: Path,
        *,
        trust: bool = False,
        chances_known: Callable[[], bool] = lambda: False,
    ) -> None:
        if game.players.count(YOU) != 1:
            raise ValueError(f"one player of the game has to be {YOU!r}; they are {', '.join(game.players)}")
        if game.key is None:
            raise ValueError("the dice of this game were rolled on a table; nobody knows how it goes on")
        self.game, self.path = game, path
        self.rules, self.players, self.seat = game.rules, game.players, game.players.index(YOU)
        self._chances_known = chances_known
        names = dict.fromkeys(game.players)
        made = {name: make(name, game.rules, trust=trust) for name in names if name != YOU}
        self._others: Mapping[int, Player] = {
            seat: made[name] for seat, name in enumerate(game.players) if seat != self.seat
        }

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return self.game.over

    def position(self) -> dict[str, Any]:
        """Return what lies on the table."""
        return self.game.position()

    def look(self) -> Step:
        """Return what the person sees."""
        return self.game.look()

    def title(self) -> str:
        """Return the totals, where there is somebody to compare with."""
        if len(self.players) == 1:
            return ""
        return ", ".join(f"{name} {total}" for name, total in zip(self.players, self.game.totals, strict=True))

    @property
    def knows_chances(self) -> bool:
        """Whether chances to win can be told."""
        return len(self.players) > 1 and self._chances_known()

    def begin(self) -> list[str]:
        """Let those play who come before the person, write the game down and return what has happened.

        Raises OSError where it cannot be written.
        """
        told = self._let_others_play()
        write_whole(self.path, self.game.to_json())
        self._warm_up()
        return told

    def _warm_up(self) -> None:
        """Compile, before the person waits for an answer, what answers will need."""
        self.advice()
        seen = self.look()
        for player in self._others.values():
            player.act(seen.observations, seen.masks, np.zeros(1))

    def choose(self, action: int) -> list[str]:
        """Play, let the others play, and write the game down."""
        move = self.game.play(action)
        told = self._told(move) + self._let_others_play()
        try:
            write_whole(self.path, self.game.to_json())
        except OSError as error:
            told.append(f"The game could not be written down: {error}")
        return told

    def _let_others_play(self) -> list[str]:
        """Play until the person is to move; return the entries that were made."""
        told = []
        while not self.over and self.game.player != self.seat:
            move = self.game.let(self._others[self.game.player])
            told += self._told(move)
        return told

    def _told(self, move: Move) -> list[str]:
        """Return what an entry has brought, a line each; nothing where dice were kept."""
        if move.box is None:
            return []
        zeros = [f"{self.players[seat]}: 0 in {box.title}, forced" for seat, box in move.forced_zeros]
        return [f"{self.players[move.player]}: {move.said}", *zeros]

    def report(self) -> list[str]:
        """Return the result, luck and regret of the person, and the costliest decisions; nothing before the end."""
        if not self.over:
            return []
        judged, sums = analyse(self.game, solve(self.rules))
        own, totals = sums[self.seat], self.game.totals
        best = max(totals)
        lines = [f"{totals[self.seat]} points."]
        if len(totals) > 1:
            winners = [name for name, total in zip(self.players, totals, strict=True) if total == best]
            verb = "win" if YOU in winners or len(winners) > 1 else "wins"
            lines = [f"{_listed(winners)} {verb}: {self.title()}."]
        lines.append(f"Perfect play can expect {own.start:.1f} points.")
        luck, cost = (0.0 + round(points, 1) for points in (own.luck, -own.regret))  # never -0.0
        lines.append(f"Your dice brought {luck:+.1f}, your decisions {cost:+.1f}.")
        if own.zeros:
            lines.append(f"Zeros forced on you cost {own.zeros:.1f}.")
        costly = costliest(judged, NUM_ADVISED, player=self.seat, least=NO_LOSS)
        if not costly:
            return [*lines, "Not one decision could have been better."]
        lines.append("Your costliest decisions:")
        for place, (_, one) in enumerate(costly, 1):
            move = one.move
            turn = len(move.before["cards"][self.seat]) + 1
            dice = "-".join(map(str, move.before["dice"]))
            best_one = one.outlook.choices[0].text
            lines.append(
                f"{place}. Turn {turn}, {dice}: {move.said} cost {one.verdict.regret:.1f}; best was {best_one}."
            )
        return lines


class Quiz(Sitting):
    """Positions of the value suite, one after the other, and what the person gives away in them.

    Args:
        suite: the positions.
        beside: names of the players to compare with, who decide about the same positions.
        trust: see `kismet_env.bots.make`.
    """

    explains = True

    def __init__(self, suite: ValueSuite, beside: Sequence[str], *, trust: bool = False) -> None:
        self.rules, self.players = Rules(), (YOU,)
        self._suite = suite
        self._games = [Game([YOU], key=0, start=position) for position in suite.positions()]
        players = {name: make(name, trust=trust) for name in beside}
        self._beside = {name: (shares_of(player, suite) * suite.losses).sum(1) for name, player in players.items()}
        self._lost: list[float] = []

    @property
    def over(self) -> bool:
        """Whether all positions were decided."""
        return len(self._lost) == len(self._games)

    def position(self) -> dict[str, Any]:
        """Return what lies on the table."""
        return self._game.position()

    def look(self) -> Step:
        """Return what players see of it."""
        return self._game.look()

    @property
    def _game(self) -> Game:
        return self._games[min(len(self._lost), len(self._games) - 1)]

    def title(self) -> str:
        """Return how many positions there are, and which this is."""
        return f"Position {min(len(self._lost) + 1, len(self._games))} of {len(self._games)}"

    def choose(self, action: int) -> list[str]:
        """Decide about this position, and return the price and the better actions."""
        ranks = self.advice(None)
        (chosen,) = [each for each in ranks if each.action == action]
        self._lost.append(float(self._suite.losses[len(self._lost), action]))
        if chosen.loss < NO_LOSS:
            return [f"{_capital(chosen.text)}: nothing is better.", self._score()]
        better = ", ".join(f"{each.text} {each.score:.1f}" for each in ranks[:NUM_ADVISED] if each.loss < chosen.loss)
        return [
            f"{_capital(chosen.text)} gives away {chosen.loss:.2f} points.",
            f"Better: {better}; yours {chosen.score:.1f}.",
            self._score(),
        ]

    def _score(self) -> str:
        done = len(self._lost)
        means = {YOU: np.mean(self._lost), **{name: losses[:done].mean() for name, losses in self._beside.items()}}
        return "Lost by a decision: " + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()) + "."

    def report(self) -> list[str]:
        """Return the score."""
        if not self._lost:
            return []
        decided = len(self._lost)
        perfect = sum(lost < NO_LOSS for lost in self._lost)
        return [f"{decided} position{'s' * (decided != 1)}, {perfect} decided perfectly.", self._score()]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
