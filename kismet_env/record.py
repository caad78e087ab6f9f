"""Games written down: every action in words and numbers, in JSON that replays exactly (docs/records.md).

    game = Game(["optimal", "turn_greedy"], key=7)
    game.play(action)
    text = game.to_json()
    same = Game.from_json(text)

A `Game` goes forward action by action; the engine plays it, so one that breaks the rules cannot be written down, and
reading it names the action at which it does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, NamedTuple, Self

import numpy as np

from kismet_env.actions import actions_of
from kismet_env.batch import MOST_PLAYERS, Batch, Step, is_whole
from kismet_env.bots import Player
from kismet_env.dice import KEEP_COUNTS, ROLL_COUNTS, ROLL_DICE, roll_index
from kismet_env.observation import Decision
from kismet_env.position import read_position, set_position
from kismet_env.render.last import Last, last_of
from kismet_env.rules import Box, Rules

VERSION = 1
"""Version of the form of a record."""

_FIELDS = ("record", "kismet_env", "rules", "players", "key", "start", "actions", "totals")
_ACTION_FIELDS = ("player", "dice", "rolls_left", "action", "does", "points", "bonus", "forced_zeros")
_KEEPS = actions_of("keeps")
_NUMBER_OF = {_KEEPS.text(action): action for action in range(_KEEPS.num_actions)}


class Move(NamedTuple):
    """One action of a game, and what it brought."""

    player: int
    before: dict[str, Any]  # the position in which it was taken
    decision: Decision  # the same as players see it, one row
    action: int  # numbering "keeps"
    after: dict[str, Any]  # the position that followed
    points: int | None  # entered; None where dice were kept
    bonus: int  # of the Basic Section, earned by this entry
    forced_zeros: tuple[tuple[int, Box], ...]  # (seat, box): written into other cards

    @property
    def text(self) -> str:
        """The action in words: "keep 5-5", "fill Flush"."""
        return _KEEPS.text(self.action)

    @property
    def said(self) -> str:
        """The action with what it brought: "keep 5-5", "35 in Flush", "20 in Fours, bonus 55"."""
        if self.box is None:
            return self.text
        return f"{self.points} in {self.box.title}" + (f", bonus {self.bonus}" if self.bonus else "")

    @property
    def kept(self) -> tuple[int, ...] | None:
        """The faces that were kept; None where a box was filled."""
        return _KEEPS.kept(self.action, roll_index(self.before["dice"]))

    @property
    def box(self) -> Box | None:
        """The box that was filled; None where dice were kept."""
        return Box(self.action - _KEEPS.num_rolls) if self.action >= _KEEPS.num_rolls else None

    def told(self, names: Sequence[str], rules: Rules) -> Last:
        """Return it as pictures tell it."""
        return last_of(self.before, self.after, did=self.text, kept=self.kept, rules=rules, names=names)


class Game:
    """One game of one to six players, going forward.

    Args:
        players: their names, in the order of the seats.
        rules: Rules, a mapping of its fields, a name of the suite, or None for the standard game.
        key: what the dice come from, 0..2**64 - 1; None where they are told, as those of a game on a real table.
        start: the position to start from (see `kismet_env.position`); None: empty cards, seat 0 begins. It has to hold
            the first dice where there is no key.

    Attributes:
        moves: what has been played.
        beginning: the position before the first of them, its dice included.
    """

    def __init__(
        self,
        players: Sequence[str],
        rules: Rules | Mapping[str, Any] | str | None = None,
        *,
        key: int | None,
        start: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(players, str) or not 1 <= len(players) <= MOST_PLAYERS:
            raise ValueError(f"players {players!r} are not a list of 1 to {MOST_PLAYERS} names")
        for name in players:
            if not isinstance(name, str) or not name or not name.isprintable():
                raise ValueError(f"player {name!r} is not a name: some letters, and nothing that does not print")
        if key is not None and not (is_whole(key) and 0 <= key < 2**64):
            raise ValueError(f"key {key!r} is not a whole number from 0 to 2**64 - 1")
        self.players = tuple(players)
        self.rules, self.key, self.start = Rules.of(rules), key, start
        self.moves: list[Move] = []
        self._batch = Batch(1, len(players), rules=self.rules, illegal_action="raise")
        position = start if start is not None else {"cards": [{} for _ in players], "player": 0}
        checked = read_position(position, self.rules, len(players))
        if key is None and checked.roll is None:
            raise ValueError("a game without a key needs its first dice: start with a position that holds them")
        set_position(self._batch.state, 0, checked, key=np.uint64(key or 0), rules=self.rules)
        self.beginning = self.position()

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return bool(self._batch.over[0])

    @property
    def player(self) -> int:
        """The seat to move."""
        return int(self._batch.state.games["player"][0])

    @property
    def totals(self) -> list[int]:
        """The points of all players so far, bonuses included."""
        totals: list[int] = self._batch.state.cards["total"][0].tolist()
        return totals

    def position(self) -> dict[str, Any]:
        """Return the position on the table."""
        return self._batch.position()

    def decision(self) -> Decision:
        """Return what the player to move decides about, one row."""
        return self._batch.decisions()

    def look(self) -> Step:
        """Return what the player to move sees, one row: observations of form "features", masks of "keeps"."""
        return self._batch.look()

    def let(self, player: Player) -> Move:
        """Let a player whose turn it is play; ValueError for an action that is not legal, and nothing changes."""
        seen = self.look()
        return self.play(int(player.act(seen.observations, seen.masks, self._batch.choice_shares())[0]))

    def play(self, action: int, dice: Sequence[int] | None = None) -> Move:
        """Play an action of the numbering "keeps" and return it with what it brought.

        Args:
            action: legal now, else a ValueError, and nothing changes.
            dice: without a key, the five dice that lie on the table afterwards. They hold those that were kept, else
                a ValueError. Where nobody tells them, after the last action that was written down, they are any.
        """
        if self.over:
            raise ValueError("the game is over")
        if not is_whole(action) or not 0 <= action < _KEEPS.num_actions:
            raise ValueError(f"action {action!r} is not a whole number from 0 to {_KEEPS.num_actions - 1}")
        before, decision, roll = self.position(), self.decision(), int(self._batch.state.games["roll"][0])
        if not self.look().masks[0, action]:
            on_table, left = "-".join(map(str, ROLL_DICE[roll])), before["rolls_left"]
            raise ValueError(f"{_KEEPS.text(action)} is not legal with dice {on_table} and {left} roll(s) left")
        come = None if dice is None else _checked_roll(dice, action)
        earlier = self._batch.state.cards[0].copy()
        with self._batch.undone_on_error():
            self._batch.step([action])
            if come is not None and not self.over:
                if self.key is None:
                    self._batch.state.games["roll"][0] = come
                elif come != self._batch.state.games["roll"][0]:
                    on_table = _dashed(self.position()["dice"])
                    raise ValueError(f"the key of this game brings dice {on_table} after it, not {_dashed(dice)}")
        self.moves.append(self._move(before, decision, action, earlier))
        return self.moves[-1]

    def _move(self, before: dict[str, Any], decision: Decision, action: int, earlier: Any) -> Move:
        now, player = self._batch.state.cards[0], before["player"]
        new = [
            (seat, box)
            for seat in range(len(self.players))
            for box in Box
            if earlier["points"][seat, box] != now["points"][seat, box]
        ]
        points = [int(now["points"][seat, box]) for seat, box in new if seat == player]
        gained = int(now["total"][player] - earlier["total"][player])
        return Move(
            player,
            before,
            decision,
            action,
            self.position(),
            points[0] if points else None,
            gained - sum(points),
            tuple((seat, box) for seat, box in new if seat != player),
        )

    def to_json(self) -> str:
        """Return the record of the game so far, an action a line."""
        fields: dict[str, Any] = {"record": VERSION, "kismet_env": version("kismet-env"), "rules": asdict(self.rules)}
        fields["players"] = list(self.players)
        if self.key is not None:
            fields["key"] = f"{self.key:016x}"
        if self.start is not None:
            fields["start"] = dict(self.start)
        head = "".join(f' "{name}": {json.dumps(value)},\n' for name, value in fields.items())
        actions = ",".join(f"\n  {json.dumps(_entry(move))}" for move in self.moves)
        return f'{{\n{head} "actions": [{actions}\n ],\n "totals": {json.dumps(self.totals)}\n}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the game that a record tells, played again by the engine.

        Raises ValueError for what is no record, and where the game breaks the rules or contradicts itself: it names the
        number of the action, the first one being 1.
        """
        record = parsed(text, "the record")
        _check_fields(record)
        key = record.get("key")
        if key is not None:
            if not isinstance(key, str) or not re.fullmatch(r"[0-9a-fA-F]{16}", key):
                raise ValueError(f"record: key {key!r} is not a text of 16 hexadecimal digits")
            key = int(key, 16)
        actions, start = record["actions"], record.get("start")
        if key is None and actions:
            first = actions[0] if isinstance(actions[0], Mapping) else {}
            start = {"cards": [{} for _ in record["players"]], "player": 0, **(start or {})}
            start.setdefault("dice", first.get("dice"))
        game = cls(record["players"], record["rules"], key=key, start=start)
        for number, entry in enumerate(actions, 1):
            following = actions[number] if number < len(actions) else None
            try:
                game._play_entry(entry, following)
            except ValueError as error:
                raise ValueError(f"action {number} of {len(actions)}: {error}") from None
        if "totals" in record and record["totals"] != game.totals:
            raise ValueError(f"record: totals are {game.totals} after the last action, not {record['totals']!r}")
        return game

    def _play_entry(self, entry: Any, following: Any) -> None:
        """Play what an entry says, which `following` comes after, and hold it against all that the entry says."""
        if not isinstance(entry, Mapping):
            raise ValueError(f"{entry!r} is not a mapping with the fields {', '.join(_ACTION_FIELDS)}")
        for name in entry:
            if name not in _ACTION_FIELDS:
                raise ValueError(f"unknown field {name!r}; fields are {', '.join(_ACTION_FIELDS)}")
        if self.over:
            raise ValueError("the game is over before it")
        position = self.position()
        for name in ("player", "rolls_left"):
            _agree(entry, name, position[name])
        if "dice" in entry and _checked_roll(entry["dice"]) != roll_index(position["dice"]):
            raise ValueError(f"the dice on the table are {_dashed(position['dice'])}, not {_dashed(entry['dice'])}")
        told = following.get("dice") if isinstance(following, Mapping) and self.key is None else None
        if self.key is None and following is not None and told is None:
            raise ValueError("the next action does not say on which dice; without a key every action has to")
        move = self.play(_number(entry), told)
        written = _entry(move)
        for name, nothing in (("points", None), ("bonus", 0), ("forced_zeros", [])):
            _agree(entry, name, written.get(name, nothing))


def _entry(move: Move) -> dict[str, Any]:
    """Return a move as it stands in a record."""
    entry: dict[str, Any] = {
        "player": move.player,
        "dice": move.before["dice"],
        "rolls_left": move.before["rolls_left"],
        "action": move.action,
        "does": move.text,
    }
    if move.points is not None:
        entry["points"] = move.points
    if move.bonus:
        entry["bonus"] = move.bonus
    if move.forced_zeros:
        entry["forced_zeros"] = [{"player": seat, "box": box.name} for seat, box in move.forced_zeros]
    return entry


def parsed(text: str, what: str) -> Any:
    """Return what a JSON `text` says; ValueError, which calls it `what`, where it is none or says a thing twice."""
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except ValueError as error:
        raise ValueError(f"{what} is no JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{what} is no JSON that anybody would write: lists in lists without end") from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; ValueError for a field that is there twice, of which readers take one or the other."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} is there twice")
    return fields


def _check_fields(record: Any) -> None:
    """Raise ValueError unless this is a mapping with the fields of a record of this version."""
    if not isinstance(record, Mapping) or "record" not in record:
        raise ValueError(f"this is no record of a game: a JSON object with the fields {', '.join(_FIELDS)}")
    if not is_whole(record["record"]) or record["record"] != VERSION:
        raise ValueError(f"this is a record of version {record['record']!r}; version {VERSION} can be read")
    for name in record:
        if name not in _FIELDS:
            raise ValueError(f"record: unknown field {name!r}; fields are {', '.join(_FIELDS)}")
    for name, kind in (("players", list), ("rules", Mapping), ("actions", list), ("start", Mapping)):
        if not isinstance(record.get(name), kind) and not (name == "start" and record.get(name) is None):
            raise ValueError(f"record: {name} {record.get(name)!r} is not a {'list' if kind is list else 'mapping'}")


def _number(entry: Mapping[str, Any]) -> int:
    """Return the number of the action that an entry names by "action", by "does" in words, or by both."""
    words, number = entry.get("does"), entry.get("action")
    if words is None and number is None:
        raise ValueError('neither "action" nor "does" says what was done')
    if words is None:
        return number  # type: ignore[return-value] # play() checks it
    if not isinstance(words, str) or words not in _NUMBER_OF:
        raise ValueError(f'does {words!r} is no action; actions read like "keep 5-5", "roll all dice", "fill Flush"')
    if number is not None and number != _NUMBER_OF[words]:
        raise ValueError(f"action {number!r} is not {words!r}, which is {_NUMBER_OF[words]}")
    return _NUMBER_OF[words]


def _agree(entry: Mapping[str, Any], name: str, value: Any) -> None:
    if name in entry and entry[name] != value:
        raise ValueError(f"{name} is {value!r} by the rules, not {entry[name]!r}")


def _checked_roll(dice: Any, action: int | None = None) -> int:
    """Return the number of the roll that `dice` show; ValueError where they are none or miss what `action` kept."""
    try:
        roll = roll_index(dice)
    except (ValueError, TypeError):
        raise ValueError(f"dice {dice!r} are not five faces from 1 to 6") from None
    if action is not None and action < _KEEPS.num_rolls and (ROLL_COUNTS[roll] < KEEP_COUNTS[action]).any():
        raise ValueError(f"after {_KEEPS.text(action)} dice {_dashed(dice)} cannot lie on the table")
    return roll


def _dashed(dice: Any) -> str:
    return "-".join(map(str, dice))
