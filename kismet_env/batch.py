"""N games of P players that go forward together: deal, step, observe, save. No API of any library in here.

One compiled call plays a step of all games, ends and begins games where that is asked for, and writes observations
and masks. The single environment is a batch of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.dice import NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_DICE, hash_words, mix, roll_indices
from kismet_env.engine import (
    Card,
    Cards,
    Game,
    State,
    choice_share,
    deal,
    drawn_seat,
    fill_and_pass,
    legal_boxes,
    new_state,
    roll_dice,
)
from kismet_env.jit import Table, compiled
from kismet_env.observation import Decision, layout_of, observe
from kismet_env.position import Position, position_of, read_position, set_position
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.starts import open_boxes_of, start_rolls
from kismet_env.tables import Record, Tables, record_of, tables_of

REWARDS = ("points", "final", "win")
ILLEGAL_ACTIONS = ("penalty", "terminate", "raise")
FIRST_PLAYERS = ("seat0", "random")
AUTORESETS = ("Disabled", "NextStep", "SameStep")
MOST_ILLEGAL = 100  # under "penalty" the game is cut off at this many illegal actions
_POINTS, _FINAL, _WIN = range(3)
_PENALTY, _RAISE = 0, 2
_RANDOM = 1
_NEXT_STEP, _SAME_STEP = 1, 2
_ILLEGAL_REWARD = -1.0
_WHOLE_KINDS = "iu"


Rows = npt.NDArray[np.int64]
"""Numbers of rows of a batch, all different."""
Saved = tuple[npt.NDArray[Any], ...]
"""Copies of all arrays that decide how games go on."""


class Step(NamedTuple):
    """What a step of N games brings; every array is new and belongs to the caller.

    Observations, masks, scorecards and totals are those of the player to move.
    """

    observations: npt.NDArray[np.float32]  # (N, D)
    masks: npt.NDArray[np.int8]  # (N, A): 1 where an action is legal; all ones once the game is over
    rewards: npt.NDArray[np.float64]  # (N, P): paid to each player in this step
    terminated: npt.NDArray[np.bool_]  # (N,)
    truncated: npt.NDArray[np.bool_]  # (N,)
    illegal: npt.NDArray[np.bool_]  # (N,): whether the action was illegal
    scorecards: npt.NDArray[np.int16]  # (N, 15): points, -1 where open
    totals: npt.NDArray[np.int16]  # (N,)


class Final(NamedTuple):
    """How games ended that a step under "SameStep" has already begun anew; rows of other games mean nothing."""

    observations: npt.NDArray[np.float32]  # (N, D)
    scorecards: npt.NDArray[np.int16]  # (N, 15)
    totals: npt.NDArray[np.int16]  # (N,)


_SETTINGS = np.dtype(
    [
        ("first_player", np.int64),  # index into FIRST_PLAYERS
        ("open_boxes", np.int64),  # see starts.open_boxes_of
        ("start_rolls", np.float64, (NUM_BOXES, NUM_ROLLS)),  # see starts.start_rolls; unused on a full sheet
        ("num_rolls", np.int64),  # how many actions roll dice; the boxes follow
        ("keep_of", np.int16, (NUM_ROLLS, NUM_REROLL_KEEPS)),  # actions.Actions.keep_of
        ("can_roll", np.int8, (NUM_ROLLS, NUM_REROLL_KEEPS)),  # actions.Actions.can_roll
        ("reward", np.int64),  # index into REWARDS
        ("illegal_action", np.int64),  # index into ILLEGAL_ACTIONS
        ("autoreset", np.int64),  # index into AUTORESETS
    ],
    align=True,
)


@compiled
def _is_legal(game: Game, card: Card, tables: Tables, settings: Any, action: int) -> bool:
    if action < settings.num_rolls:
        return bool(game.rolls_left > 0 and settings.keep_of[game.roll, action] >= 0)
    boxes = legal_boxes(tables, card.filled, card.armed, game.roll, game.rolls_left)
    return bool(boxes >> (action - settings.num_rolls) & 1)


@compiled
def _next_key(game: Game) -> np.uint64:
    key = mix(game.seeding, np.uint64(game.episode))
    game.episode += 1
    return key


@compiled
def _deal(game: Game, cards: Cards, tables: Tables, settings: Any, key: np.uint64) -> None:
    first_seat = drawn_seat(key, len(cards)) if settings.first_player == _RANDOM else 0
    deal(game, cards, tables, key, first_seat, settings.open_boxes, settings.start_rolls)


@compiled
def _pay(over: bool, cards: Cards, reward: int, rewards: Table, row: int) -> None:
    """Pay every player of a game what he is due under `reward`, into rewards[row]."""
    num_players = len(cards)
    if reward == _POINTS or (reward == _FINAL and over):
        for player in range(num_players):
            rewards[row, player] = cards[player].earned
            cards[player].earned = 0
    elif reward == _WIN and over:
        best, winners = -1, 0
        for player in range(num_players):
            if cards[player].total > best:
                best, winners = cards[player].total, 0
            winners += cards[player].total == best
        for player in range(num_players):
            if cards[player].total == best:
                rewards[row, player] = (num_players - winners) / (winners * (num_players - 1))
            else:
                rewards[row, player] = -1.0 / (num_players - 1)


@compiled
def _step_game(game: Game, cards: Cards, tables: Tables, settings: Any, action: int, out: Step, row: int) -> None:
    """Play `action` in a game that is not over.

    One that is illegal costs him who tries it; when it ends the game nobody else is paid or pays.
    """
    card = cards[game.player]
    if _is_legal(game, card, tables, settings, action):
        if action < settings.num_rolls:
            roll_dice(game, card, tables, settings.keep_of[game.roll, action])
        else:
            fill_and_pass(game, cards, tables, action - settings.num_rolls)
        out.terminated[row] = game.over
        _pay(game.over, cards, settings.reward, out.rewards, row)
    else:
        game.illegal += 1
        out.illegal[row] = True
        out.rewards[row, game.player] = _ILLEGAL_REWARD
        if settings.illegal_action != _PENALTY:
            game.over = out.terminated[row] = True
        elif game.illegal >= MOST_ILLEGAL:
            game.over = out.truncated[row] = True


@compiled
def _show_card(card: Card, scorecards: Table, totals: Table, row: int) -> None:
    for box in range(NUM_BOXES):
        scorecards[row, box] = card.points[box]
    totals[row] = card.total


@compiled
def _show_mask(game: Game, card: Card, tables: Tables, settings: Any, waits: bool, masks: Table, row: int) -> None:
    num_rolls = settings.num_rolls
    if game.over or waits:
        for action in range(num_rolls + NUM_BOXES):
            masks[row, action] = game.over
        return
    roll, rolls_left = game.roll, game.rolls_left  # local: else read again after every byte written
    if rolls_left > 0:
        for action in range(num_rolls):
            masks[row, action] = settings.can_roll[roll, action]
    else:
        for action in range(num_rolls):
            masks[row, action] = 0
    boxes = legal_boxes(tables, card.filled, card.armed, roll, rolls_left)
    for box in range(NUM_BOXES):
        masks[row, num_rolls + box] = boxes >> box & 1


@compiled
def _find_refused(games: Table, cards: Table, tables: Tables, settings: Any, rows: Table, actions: Table) -> int:
    """Return where the first action stands that is no action at all or, under "raise", illegal; -1 without one."""
    for at, row in enumerate(rows):
        game, action = games[row], actions[at]
        if game.over:
            continue
        if action < 0 or action >= settings.num_rolls + NUM_BOXES:
            return at
        if settings.illegal_action == _RAISE and not _is_legal(game, cards[row, game.player], tables, settings, action):
            return at
    return -1


@compiled
def _run(
    games: Table,
    all_cards: Table,
    tables_array: Record,
    layout_array: Record,
    settings_array: Record,
    rows: Table,
    actions: Table,
    seats: Table,
    out: Step,
    final: Final,
) -> int:
    """Step the games of `rows` with `actions`, if there are any, and write what is seen from `seats`.

    Without seats it is what the players to move see. `out` has an entry for each of `rows` and comes with zeros in
    rewards and flags. Returns -1, or where the first action stands that is refused; then nothing has changed.
    """
    tables, layout, settings = tables_array[0], layout_array[0], settings_array[0]
    stepping = len(actions) > 0
    if stepping:
        refused = _find_refused(games, all_cards, tables, settings, rows, actions)
        if refused >= 0:
            return refused
    for at, row in enumerate(rows):
        game, cards = games[row], all_cards[row]
        if stepping and not game.over:
            _step_game(game, cards, tables, settings, actions[at], out, at)
            if game.over and settings.autoreset == _SAME_STEP:
                observe(game, cards, tables, layout, game.player, final.observations, row)
                _show_card(cards[game.player], final.scorecards, final.totals, row)
                _deal(game, cards, tables, settings, _next_key(game))
        elif stepping and settings.autoreset == _NEXT_STEP:
            _deal(game, cards, tables, settings, _next_key(game))
        seat = seats[at] if len(seats) > 0 else game.player
        observe(game, cards, tables, layout, seat, out.observations, at)
        _show_mask(game, cards[seat], tables, settings, seat != game.player, out.masks, at)
        _show_card(cards[seat], out.scorecards, out.totals, at)
    return -1


@compiled
def _deal_rows(
    games: Table, cards: Table, tables_array: Record, settings_array: Record, rows: Table, keys: Table
) -> None:
    """Begin a game in each of `rows`, with `keys` or, if there are none, with the next key of its seeding."""
    tables, settings = tables_array[0], settings_array[0]
    for at, row in enumerate(rows):
        key = keys[at] if len(keys) > 0 else _next_key(games[row])
        _deal(games[row], cards[row], tables, settings, key)


@compiled
def _choice_shares(games: Table, cards: Table, rows: Table, shares: Table) -> None:
    for at, row in enumerate(rows):
        shares[at] = choice_share(games[row], cards[row, games[row].player])


class Batch:
    """N games of P players.

    Args:
        num_games: N, at least 1.
        num_players: P, 1 to 6; 1 is the solitaire game.
        rules: Rules, a mapping of its fields, a name of the suite, or None for the standard game.
        actions: numbering of the actions, "keeps" or "holds".
        observation: "features", "raw" or "dict" (whole numbers, piece after piece of the layout, as float32).
        reward: "points", "final" or "win" (needs opponents).
        illegal_action: "penalty", "terminate" or "raise".
        start: "full", "open:k" or "uniform".
        first_player: who begins a game, "seat0" or "random" (drawn by its key).
        autoreset: "Disabled", "NextStep" or "SameStep": when a game that is over begins anew.

    Raises ValueError for a value that is not valid, naming those that are.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int = 1,
        *,
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        reward: str = "points",
        illegal_action: str = "penalty",
        start: str = "full",
        first_player: str = "seat0",
        autoreset: str = "Disabled",
    ) -> None:
        num_games = whole_number("num_games", num_games, 1)
        num_players = whole_number("num_players", num_players, 1, MOST_PLAYERS)
        if num_players == 1 and reward == "win":
            raise ValueError("reward='win' needs opponents; solitaire rewards are points, final")
        self.num_games, self.num_players = num_games, num_players
        self._options: dict[str, Any] = {
            "rules": Rules.of(rules),
            "actions": actions,
            "observation": observation,
            "reward": reward,
            "illegal_action": illegal_action,
            "start": start,
            "first_player": first_player,
            "autoreset": autoreset,
        }
        self.state = new_state(num_games, num_players)
        self._build()

    def _build(self) -> None:
        """Set everything that follows from the options."""
        options = self._options
        self.rules: Rules = options["rules"]
        self.tables = tables_of(self.rules)
        self.layout = layout_of(self.rules, self.num_players, options["observation"])
        self.actions = actions_of(options["actions"])
        open_boxes = open_boxes_of(options["start"])
        num_rolls = self.actions.num_rolls
        unused = ((0, 0), (0, NUM_REROLL_KEEPS - num_rolls))
        self._settings = record_of(
            _SETTINGS,
            first_player=_choice("first_player", options["first_player"], FIRST_PLAYERS),
            open_boxes=open_boxes,
            start_rolls=0.0 if open_boxes == NUM_BOXES else start_rolls(self.rules),
            num_rolls=num_rolls,
            keep_of=np.pad(self.actions.keep_of, unused),
            can_roll=np.pad(self.actions.can_roll, unused),
            reward=_choice("reward", options["reward"], REWARDS),
            illegal_action=_choice("illegal_action", options["illegal_action"], ILLEGAL_ACTIONS),
            autoreset=_choice("autoreset_mode", options["autoreset"], AUTORESETS),
        )
        self.all_rows = np.arange(self.num_games)
        self._final = Final(
            np.empty((self.num_games, self.layout.size), np.float32),
            np.empty((self.num_games, NUM_BOXES), np.int16),
            np.empty(self.num_games, np.int16),
        )

    def __getstate__(self) -> dict[str, Any]:
        names = ("num_games", "num_players", "_options", "state")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._build()

    @property
    def final(self) -> Final:
        """How the games ended that the last step under "SameStep" ended; overwritten by the next step."""
        return self._final

    def seed(self, seeds: Sequence[int], rows: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin a seeding of `rows` (N,) bool (default: all), with one seed for each row of the batch.

        Game e that row i deals from now on has the key mix(mix(seeds[i]), e). Raises ValueError for a negative seed.
        """
        bases = np.array([hash_words(seed) for seed in seeds], np.uint64)
        chosen = self._chosen(rows)
        self.state.games["seeding"][chosen] = bases[chosen]
        self.state.games["episode"][chosen] = 0

    def _chosen(self, rows: npt.NDArray[np.bool_] | None) -> Rows:
        """Return the numbers of the chosen rows; ValueError for what is no choice of them."""
        if rows is None:
            return self.all_rows
        if np.shape(rows) != (self.num_games,) or np.asarray(rows).dtype != np.bool_:
            raise ValueError(f"rows of shape {np.shape(rows)} are not {self.num_games} bools")
        return np.flatnonzero(rows)

    def deal(self, rows: npt.NDArray[np.bool_] | None = None) -> Step:
        """Begin a new game in `rows` (N,) bool (default: all) and return what all rows see; rewards are 0."""
        self.begin(self._chosen(rows))
        return self.look()

    def begin(self, rows: Rows) -> None:
        """Begin a new game in each of `rows` (n,) without looking at it."""
        _deal_rows(*self.state, self.tables, self._settings, rows, _NO_KEYS)

    def deal_keys(self, keys: npt.NDArray[np.uint64]) -> Step:
        """Begin in every row the game of its key, (N,) uint64, and return what is seen."""
        if keys.shape != (self.num_games,) or keys.dtype != np.uint64:
            raise ValueError(f"keys of shape {keys.shape} and type {keys.dtype} are not {self.num_games} uint64")
        _deal_rows(*self.state, self.tables, self._settings, self.all_rows, keys)
        return self.look()

    def deal_positions(
        self, positions: Sequence[Mapping[str, Any] | Position], rows: npt.NDArray[np.bool_] | None = None
    ) -> Step:
        """Begin in `rows` the games of `positions`, one for each row of the batch; ValueError changes nothing."""
        chosen = self._chosen(rows).tolist()
        checked = {row: read_position(positions[row], self.rules, self.num_players) for row in chosen}
        for row, position in checked.items():
            game = self.state.games[row]
            key = np.uint64(mix(game["seeding"], np.uint64(game["episode"])))
            game["episode"] += 1
            set_position(self.state, row, position, key=key, rules=self.rules)
        return self.look()

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games are over, or have not begun: (N,)."""
        over: npt.NDArray[np.bool_] = self.state.games["over"]
        return over

    def look(self, only: Rows | None = None, seats: npt.NDArray[np.int64] | None = None) -> Step:
        """Return what is seen, without any change; rewards are 0.

        `only` (n,): look at these rows, and the Step has one entry for each of them. `seats` (n,): see with the eyes of
        these players instead of those to move; the masks of players who have to wait are all zeros.
        """
        rows = self._rows(only)
        if seats is None:
            return self._call(rows, _NO_ACTIONS, _TO_MOVE)
        if seats.shape != rows.shape or seats.min(initial=0) < 0 or seats.max(initial=0) >= self.num_players:
            raise ValueError(f"seats {seats} are not one from 0 to {self.num_players - 1} for each of {len(rows)} rows")
        return self._call(rows, _NO_ACTIONS, seats)

    def show(self, decisions: Decision) -> Step:
        """Return what is seen of `decisions` (n,), n <= N, of a solitaire game, whether or not it has come to them.

        They take the place of the first n games, with nothing scored. Nobody may have to decide on a full card.
        """
        rows = np.arange(len(decisions.filled))
        games, cards = self.state.games[: len(rows)], self.state.cards[: len(rows), 0]
        games["over"], games["roll"], games["rolls_left"] = False, roll_indices(decisions.dice), decisions.rolls_left
        for name in ("filled", "basic_total", "armed"):
            cards[name] = getattr(decisions, name)
        return self.look(rows)

    def step(self, actions: npt.ArrayLike, only: Rows | None = None) -> Step:
        """Play one action (N,) in every row; rows of games that are over ignore theirs.

        `only` (n,), all different: step these rows and no others; actions and Step have one entry for each of them.
        Raises ValueError, and changes nothing, for numbers outside the action space, and under "raise" for an illegal
        action, naming the legal ones.
        """
        rows = self._rows(only)
        return self._call(rows, whole_numbers(actions, len(rows)), _TO_MOVE)

    def _rows(self, only: Rows | None) -> Rows:
        """Return the rows meant by `only`; ValueError for numbers of no row, which a kernel would follow anywhere."""
        if only is None:
            return self.all_rows
        if only.ndim != 1 or only.min(initial=0) < 0 or only.max(initial=0) >= self.num_games:
            raise ValueError(f"only={only} are not numbers of rows from 0 to {self.num_games - 1}")
        return only

    def _call(self, rows: Rows, actions: npt.NDArray[np.int64], seats: npt.NDArray[np.int64]) -> Step:
        n = len(rows)
        out = Step(
            np.empty((n, self.layout.size), np.float32),
            np.empty((n, self.actions.num_actions), np.int8),
            np.zeros((n, self.num_players)),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
            np.empty((n, NUM_BOXES), np.int16),
            np.empty(n, np.int16),
        )
        refused = _run(
            *self.state, self.tables, self.layout.tables, self._settings, rows, actions, seats, out, self._final
        )
        if refused >= 0:
            raise ValueError(self._refusal(int(rows[refused]), int(actions[refused])))
        return out

    def _refusal(self, game: int, action: int) -> str:
        where = f"game {game}: " if self.num_games > 1 else ""
        if not 0 <= action < self.actions.num_actions:
            return f"{where}action {action} is not one of 0..{self.actions.num_actions - 1}"
        roll, left = int(self.state.games["roll"][game]), int(self.state.games["rolls_left"][game])
        legal = np.flatnonzero(self.look(np.array([game])).masks)
        names = ", ".join(f"{number} ({self.actions.text(int(number), roll)})" for number in legal)
        dice = "-".join(map(str, ROLL_DICE[roll]))
        what = self.actions.text(action, roll)
        return f"{where}action {action} ({what}) is illegal with dice {dice} and {left} roll(s) left; legal: {names}"

    def choice_shares(self, only: Rows | None = None) -> npt.NDArray[np.float64]:
        """Return the uniform number of the next decision in every row, or in the rows `only` (n,).

        See engine.choice_share.
        """
        rows = self._rows(only)
        shares = np.empty(len(rows))
        _choice_shares(*self.state, rows, shares)
        return shares

    def decisions(self, rows: Rows | slice = slice(None)) -> Decision:
        """Return what the players to move in `rows` decide about, as observations show it; void after the end."""
        games = self.state.games[rows]
        cards = self.state.cards[rows][np.arange(len(games)), games["player"]]
        return Decision(
            filled=cards["filled"].astype(np.int64),
            basic_total=np.minimum(cards["basic_total"], self.tables["basic_cap"]).astype(np.int64),
            armed=cards["armed"],
            dice=ROLL_DICE[games["roll"]].astype(np.int64),
            rolls_left=games["rolls_left"].astype(np.int64),
        )

    def position(self, row: int = 0) -> dict[str, Any]:
        """Return the position of one row in the form of `position`."""
        return position_of(self.state, row)

    def save(self) -> Saved:
        """Return a copy of everything that decides how the games go on."""
        return State(*(array.copy() for array in self._kept))

    @property
    def _kept(self) -> Saved:
        """The arrays that `save` copies."""
        return self.state

    def restore(self, saved: Saved, key: int | None = None) -> None:
        """Go back to `saved`, of a batch of the same shape and options; `key` replaces the dice to come.

        With a key, row i goes on with the dice of mix(mix(key), i), and the games it deals after that are new too: a
        planner passes a new key for each line it tries, or it would see the dice that will really come. ValueError
        for a batch of another kind or shape or a negative key; then nothing changes.
        """
        if len(saved) != len(self._kept):
            kinds = f"{len(saved)} arrays do not fit a {type(self).__name__}, which saves {len(self._kept)}"
            raise ValueError(f"saved games of {kinds}")
        for mine, theirs in zip(self._kept, saved, strict=True):
            if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
                raise ValueError(f"saved games of shape {theirs.shape} do not fit a batch of shape {mine.shape}")
        keys = None if key is None else [int(hash_words(key, row)) for row in range(self.num_games)]
        for mine, theirs in zip(self._kept, saved, strict=True):
            mine[...] = theirs
        if keys is not None:
            self.state.games["key"] = np.array(keys, np.uint64)
            self.seed(keys)

    def undone_on_error(self) -> AbstractContextManager[None]:
        """Leave the games as they were before the block if it raises anything, be it an interrupt."""
        return _UndoneOnError(self._kept)


class _UndoneOnError(AbstractContextManager[None]):
    """A class, and bytes: a generator and copies of structured arrays, field by field, take several times as long."""

    def __init__(self, arrays: Saved) -> None:
        self._arrays = arrays
        self._before = [array.tobytes() for array in arrays]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for array, before in zip(self._arrays, self._before, strict=True):
                array[...] = np.frombuffer(before, array.dtype).reshape(array.shape)


MOST_PLAYERS = 6


def is_whole(value: object) -> bool:
    """Return whether `value` is a whole number; True and 1.0 are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the argument `name` as an int; ValueError unless it is a whole number from `least` to `most`."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        valid = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}={value!r} is not a whole number {valid}")
    return int(value)


def whole_numbers(actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return `actions` as an array of so many whole numbers; ValueError if they are something else."""
    numbers = np.asarray(actions)
    if numbers.shape != (count,) or numbers.dtype.kind not in _WHOLE_KINDS:
        raise ValueError(f"actions of shape {numbers.shape} and type {numbers.dtype} are not {count} whole numbers")
    return numbers.astype(np.int64, copy=False)


_NO_ACTIONS = np.empty(0, np.int64)
_NO_KEYS = np.empty(0, np.uint64)
_TO_MOVE = np.empty(0, np.int64)


def _choice(name: str, value: Any, valid: tuple[str, ...]) -> int:
    if value not in valid:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(valid)}")
    return valid.index(value)
