"""One learner against players: a batch in which the others have always played when the learner is to decide.

The games are those of a `Batch` of P players. The learner sits in one seat; everybody else is a player of `bots` or of
one's own, and answers for all games in which it is his turn at once. He sees observations of form "features" and
masks of the numbering "keeps", whatever the learner sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.batch import AUTORESETS, MOST_PLAYERS, Batch, Rows, Saved, Step, is_whole, whole_number, whole_numbers
from kismet_env.bots import Player, make
from kismet_env.engine import drawn_seat
from kismet_env.jit import Table, compiled
from kismet_env.position import Position
from kismet_env.rules import NUM_BOXES, Rules

Opponents = Sequence[str | Player] | Player
"""Who plays against the learner, from its left: names for `bots.make` or player objects; one may stand alone."""

LEARNER = np.dtype(
    [
        ("seat", np.int64),  # where the learner sits
        ("filled", np.int32),  # the filled boxes of its card as it last left it, a bit per box
        ("owed", np.float64),  # rewards it has not been given yet
        ("told", np.bool_),  # whether it knows that the game is over
    ],
    align=True,
)


class SavedMatch(NamedTuple):
    """Everything that decides how N games go on."""

    games: npt.NDArray[Any]  # (N,) of dtype engine.GAME
    cards: npt.NDArray[Any]  # (N, P) of dtype engine.CARD
    learners: npt.NDArray[Any]  # (N,) of dtype LEARNER


class News(NamedTuple):
    """What has happened in N games since the learner's last decision, and who sits where."""

    seat: npt.NDArray[np.int64]  # (N,): where the learner sits
    forced_zeros: npt.NDArray[np.bool_]  # (N, 15): boxes in which an opponent's second Kismet has put a zero
    turns_lost: npt.NDArray[np.int64]  # (N,): turns lost to second Kismets
    opponent_totals: npt.NDArray[np.int16]  # (N, P - 1): in playing order, the player on the learner's left first


class Match(Batch):
    """N games of a learner against `opponents`, with the interface of `Batch`; it is shown what the learner sees.

    A step plays the learner's action and then everything up to its next decision or to the end of the game; rewards
    are its own, (N, 1), and hold what it earned while others played. Where a game is over before its first decision,
    a full card or zeros forced on the last boxes, its first step pays what there is to pay and ends the game, whatever
    the action.

    Whatever raises in a step or while games begin, an opponent or an interrupt, leaves all games as they were before.

    Args:
        num_games: N, at least 1.
        opponents: one to five names or players, in playing order from the learner's left.
        seat: where the learner sits, 0..P-1; seat 0 plays first. "random": drawn anew by the key of every game.
        reward: "win", "points" or "final".
        illegal_action: of the learner: "penalty", "terminate", "raise" or None for "terminate" under "win" and
            "penalty" otherwise. An illegal action of an opponent is always a ValueError.
        rules, actions, observation, start, autoreset: as for `Batch`.

    Raises ValueError for a value that is not valid, naming those that are.
    """

    def __init__(
        self,
        num_games: int,
        opponents: Opponents = ("turn_greedy",),
        *,
        seat: int | str = 0,
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        reward: str = "win",
        illegal_action: str | None = None,
        start: str = "full",
        autoreset: str = "Disabled",
    ) -> None:
        if autoreset not in AUTORESETS:
            raise ValueError(f"autoreset_mode={autoreset!r} is not one of {', '.join(AUTORESETS)}")
        num_games = whole_number("num_games", num_games, 1)
        self._autoreset = autoreset
        self._rules = Rules.of(rules)
        self._seat_players(opponents)
        num_players = 1 + len(self.opponents)
        drawn = isinstance(seat, str) and seat == "random"
        if not drawn and not (is_whole(seat) and seat in range(num_players)):
            seats = ", ".join(map(str, range(num_players)))
            raise ValueError(f"seat={seat!r} is not one of {seats} or 'random'")
        self._seat = -1 if drawn else int(seat)
        self.learners = np.zeros(num_games, LEARNER)
        self.learners["told"] = True
        if illegal_action is None:
            illegal_action = "terminate" if reward == "win" else "penalty"
        super().__init__(
            num_games,
            num_players,
            rules=self._rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
        )

    def set_opponents(self, opponents: Opponents) -> None:
        """Let as many other players take the opponents' seats from now on, also in games that are going on.

        Raises ValueError, and changes nothing, for another number of them or an unknown name.
        """
        if len(_listed(opponents)) != len(self.opponents):
            valid = f"{len(self.opponents)}, as many as there are"
            raise ValueError(f"opponents has {len(_listed(opponents))} entries; valid are {valid}")
        self._seat_players(opponents)

    def _seat_players(self, opponents: Opponents) -> None:
        """Make the players; a name or an object that comes more than once is one player."""
        opponents = _listed(opponents)
        if not 1 <= len(opponents) < MOST_PLAYERS:
            valid = f"1 to {MOST_PLAYERS - 1} names or players"
            raise ValueError(f"opponents has {len(opponents)} entries; valid are {valid}")
        keys = [one if isinstance(one, str) else id(one) for one in opponents]
        distinct = list(dict.fromkeys(keys))
        players = [_player(opponents[keys.index(key)], self._rules) for key in distinct]
        self.opponents = opponents
        self._players = players
        self._player_at = np.array([-1] + [distinct.index(key) for key in keys])  # [seats from the learner on]

    def _build(self) -> None:
        super()._build()
        self._table = Batch(
            self.num_games,
            self.num_players,
            rules=self.rules,
            reward=self._options["reward"],
            illegal_action="raise",
        )
        """The same games as the opponents see them."""
        self._table.state = self.state
        self.final_news = self.news()
        """News of the games that the last step under "SameStep" ended, as `final` is for observations."""

    def __getstate__(self) -> dict[str, Any]:
        names = ("_autoreset", "_rules", "_seat", "opponents", "learners")
        return super().__getstate__() | {name: getattr(self, name) for name in names}

    def __setstate__(self, values: dict[str, Any]) -> None:
        super().__setstate__(values)
        self._seat_players(self.opponents)

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games are over, to the learner's knowledge, or have not begun: (N,)."""
        over: npt.NDArray[np.bool_] = self.learners["told"]
        return over

    def news(self) -> News:
        """Return what has happened since the learner's last decision."""
        seats = self.learners["seat"]
        cards = self.state.cards[self.all_rows, seats]
        zeros = cards["filled"] & ~self.learners["filled"]
        forced_zeros = (zeros[:, None] >> np.arange(NUM_BOXES) & 1).astype(np.bool_)
        in_playing_order = (seats[:, None] + np.arange(1, self.num_players)) % self.num_players
        opponent_totals = self.state.cards["total"][self.all_rows[:, None], in_playing_order]
        return News(seats.copy(), forced_zeros, forced_zeros.sum(1), opponent_totals)

    def begin(self, rows: Rows) -> None:
        """Begin a new game in each of `rows` (n,) and play to the learner's first decision."""
        with self.undone_on_error():
            self._begin(rows)

    def _begin(self, rows: Rows) -> None:
        super().begin(rows)
        self._open(rows)

    def deal_keys(self, keys: npt.NDArray[np.uint64]) -> Step:
        """Begin in every row the game of its key, (N,) uint64, and return what the learner sees."""
        with self.undone_on_error():
            super().deal_keys(keys)
            self._open(self.all_rows)
        return self.look()

    def deal_positions(
        self, positions: Sequence[Mapping[str, Any] | Position], rows: npt.NDArray[np.bool_] | None = None
    ) -> Step:
        """Begin in `rows` the games of `positions` and play to the learner's first decision; see `Batch`."""
        with self.undone_on_error():
            super().deal_positions(positions, rows)
            self._open(self.all_rows if rows is None else np.flatnonzero(rows))
        return self.look()

    def _open(self, rows: Rows) -> None:
        """Take a seat in games that have just begun and let those play who come before the learner."""
        seats = np.full(len(rows), self._seat)
        if self._seat < 0:
            _draw_seats(self.state.games, rows, self.num_players, seats)
        self.learners["seat"][rows] = seats
        self.learners["filled"][rows] = self.state.cards["filled"][rows, seats]
        self.learners["owed"][rows] = 0.0
        self.learners["told"][rows] = False
        self._let_others_play(rows)

    def look(self, only: Rows | None = None, seats: npt.NDArray[np.int64] | None = None) -> Step:
        """Return what the learner sees, or who sits in `seats` (n,); see `Batch`."""
        rows = self.all_rows if only is None else only
        return super().look(rows, self.learners["seat"][rows] if seats is None else seats)

    def step(self, actions: npt.ArrayLike, only: Rows | None = None) -> Step:
        """Play the learner's actions (N,) and on to its next decision; see `Batch`."""
        rows = self._rows(only)
        numbers = whole_numbers(actions, len(rows))
        with self.undone_on_error():
            return self._step(numbers, rows)

    def _step(self, numbers: npt.NDArray[np.int64], rows: Rows) -> Step:
        learners, is_over = self.learners, self.state.games["over"]
        going_on = ~learners["told"][rows]
        unsigned, num_actions = numbers.view(np.uint64), self.actions.num_actions  # negative ones are huge
        if unsigned.max(initial=0) >= num_actions:  # asked here too: a game may be over that the learner plays on
            unknown = going_on & (unsigned >= num_actions)
            if unknown.any():
                at = int(unknown.argmax())
                raise ValueError(self._refusal(int(rows[at]), int(numbers[at])))
        acted = rows[going_on]
        seats = learners["seat"][acted]
        own = super().step(numbers[going_on], acted)
        learners["owed"][acted] += own.rewards[np.arange(len(acted)), seats]
        learners["filled"][acted] = self.state.cards["filled"][acted, seats]
        self._let_others_play(acted)

        rewards = np.where(going_on, learners["owed"][rows], 0.0)
        truncated, illegal = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        truncated[going_on], illegal[going_on] = own.truncated, own.illegal
        ended = going_on & is_over[rows]
        learners["owed"][acted] = 0.0
        learners["told"][rows[ended]] = True
        if self._autoreset == "NextStep":
            self._begin(rows[~going_on])
        elif self._autoreset == "SameStep" and ended.any():
            self._begin_anew(rows[ended])
        return self.look(rows)._replace(
            rewards=rewards[:, None], terminated=ended & ~truncated, truncated=truncated, illegal=illegal
        )

    def _begin_anew(self, rows: Rows) -> None:
        """Remember how the games of `rows` have ended and begin new ones."""
        last = self.look(rows)
        self.final.observations[rows] = last.observations
        self.final.scorecards[rows] = last.scorecards
        self.final.totals[rows] = last.totals
        self.final_news = self.news()
        self._begin(rows)

    def _let_others_play(self, rows: Rows) -> None:
        """Play in `rows` until it is the learner's turn or the game is over; note what the learner earns meanwhile."""
        games, seats = self.state.games, self.learners["seat"]
        while True:
            seats_on = (games["player"][rows] - seats[rows]) % self.num_players
            others = (seats_on > 0) & ~games["over"][rows]
            rows = rows[others]
            if not rows.size:
                return
            players = self._player_at[seats_on[others]]
            for number, player in enumerate(self._players):
                mine = rows[players == number]
                if mine.size:
                    seen = self._table.look(mine)
                    actions = player.act(seen.observations, seen.masks, self._table.choice_shares(mine))
                    try:
                        paid = self._table.step(actions, mine).rewards
                    except ValueError as error:
                        raise ValueError(f"opponent {_name(player)}: {error}") from None
                    self.learners["owed"][mine] += paid[np.arange(len(mine)), seats[mine]]

    def save(self) -> SavedMatch:
        """Return a copy of everything that decides how the games go on, but for the opponents themselves."""
        return SavedMatch(*(array.copy() for array in self._kept))

    @property
    def _kept(self) -> Saved:
        return (*self.state, self.learners)


@compiled
def _draw_seats(games: Table, rows: Table, num_players: int, seats: Table) -> None:
    for at, row in enumerate(rows):
        seats[at] = drawn_seat(games[row].key, num_players)


def _listed(opponents: Opponents) -> tuple[str | Player, ...]:
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        return (opponents,)
    return tuple(opponents)


def _player(opponent: str | Player, rules: Rules) -> Player:
    if isinstance(opponent, str):
        return make(opponent, rules)
    if isinstance(opponent, type):
        raise ValueError(f"opponent {opponent.__name__} is a class; give an instance of it")
    if not callable(getattr(opponent, "act", None)):
        raise ValueError(f"opponent {opponent!r} is neither a name nor a player with act(observations, masks, u)")
    return opponent


def _name(player: Player) -> str:
    return type(player).__name__
