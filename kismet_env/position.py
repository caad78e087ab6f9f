"""Positions: one readable form for every API, checked before it touches a game.

    {"cards": [{"ACES": 3, "KISMET": 65}], "player": 0, "dice": [2, 2, 5, 5, 6], "rolls_left": 1, "kismets_rolled": [1]}

`cards` holds the filled boxes of each player. Missing `dice` are rolled, `rolls_left` is then 2 unless given; missing
`kismets_rolled` is 1 for a card whose Kismet box holds points, else 0; `player` may be left out: the cards decide it,
and where all hold equally many boxes it is seat 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kismet_env.dice import IS_FIVE_ALIKE, ROLL_DICE, roll_index
from kismet_env.engine import BASIC_SECTION, OPEN, ROLLS_PER_TURN, State, arms, roll_dice
from kismet_env.jit import Table, compiled
from kismet_env.rules import BASIC_BOXES, NUM_BOXES, Box, Rules, basic_bonus
from kismet_env.tables import Record, box_points, tables_of

FIELDS = ("cards", "player", "dice", "rolls_left", "kismets_rolled")


class Position(NamedTuple):
    """A checked position."""

    cards: list[dict[Box, int]]
    player: int
    roll: int | None  # None: to be rolled
    rolls_left: int
    kismets_rolled: list[int]


def read_position(position: Mapping[str, Any] | Position, rules: Rules, num_players: int) -> Position:
    """Return `position` checked against the rules; ValueError with the reason where it cannot be.

    Every box holds what some dice are worth there, cards are in step and the player is the one whose turn it is, five
    alike were entered as often as the boxes allow. Whether all entries fit one history, jokers and forced zeros
    included, is not worked out: positions from a real table are taken as they are.

    A Position has been checked already and comes back as it is.
    """
    if isinstance(position, Position):
        return position
    if not isinstance(position, Mapping):
        raise ValueError(f"position {position!r} is not a mapping with the fields {', '.join(FIELDS)}")
    for name in position:
        if name not in FIELDS:
            raise ValueError(f"position: unknown field {name!r}; fields are {', '.join(FIELDS)}")
    cards = [_read_card(card, rules, num_players) for card in _sequence(position, "cards", num_players)]
    if all(len(card) == NUM_BOXES for card in cards):
        raise ValueError("position: every box of every card is filled; the game is over")
    kismets = [int(card.get(Box.KISMET, 0) > 0) for card in cards]
    if position.get("kismets_rolled") is not None:
        kismets = [
            _whole(value, "kismets_rolled", 0, NUM_BOXES)
            for value in _sequence(position, "kismets_rolled", num_players)
        ]
    for seat, (card, count) in enumerate(zip(cards, kismets, strict=True)):
        _check_kismets(seat, card, count, rules)
    roll = None
    if position.get("dice") is not None:
        try:
            roll = roll_index(position["dice"])
        except (ValueError, TypeError):
            raise ValueError(f"position: dice {position['dice']!r} are not five faces from 1 to 6") from None
    left = position.get("rolls_left")
    rolls_left = ROLLS_PER_TURN - 1 if left is None else _whole(left, "rolls_left", 0, ROLLS_PER_TURN - 1)
    return Position(cards, _read_player(position.get("player"), cards), roll, rolls_left, kismets)


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ValueError(f"position: {name} {value!r} is not a whole number from {low} to {high}")
    return int(value)


def _sequence(position: Mapping[str, Any], name: str, length: int) -> Sequence[Any]:
    values = position.get(name)
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or len(values) != length:
        raise ValueError(f"position: {name} {values!r} is not a list with one entry for each of {length} player(s)")
    return values


def _read_card(card: Any, rules: Rules, num_players: int) -> dict[Box, int]:
    if not isinstance(card, Mapping):
        raise ValueError(f"position: card {card!r} is not a mapping of filled boxes to points")
    points_of = box_points(rules)
    read: dict[Box, int] = {}
    for name, value in card.items():
        try:
            box = Box[name] if isinstance(name, str) else Box(name)
        except (KeyError, ValueError):
            raise ValueError(f"position: unknown box {name!r}; boxes are {', '.join(b.name for b in Box)}") from None
        possible = {0, *points_of[:, :, box].ravel().tolist()}
        if box is Box.YARBOROUGH and not (num_players > 1 and rules.second_kismet_penalty):
            possible.discard(0)  # it always scores: only an opponent's second Kismet can put a zero there
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in possible:
            some = ", ".join(map(str, sorted(possible)))
            raise ValueError(f"position: {box.name} cannot hold {value!r}; possible points are {some}")
        if box in read:
            raise ValueError(f"position: {box.name} is there twice")
        read[box] = int(value)
    return read


def _check_kismets(seat: int, card: dict[Box, int], count: int, rules: Rules) -> None:
    """Refuse a number of five-alike turns that the entries of the card contradict."""
    five_alike = box_points(rules)[:, IS_FIVE_ALIKE]
    possible = sum(bool((five_alike[:, :, box] == points).any()) for box, points in card.items())
    needed = int(card.get(Box.KISMET, 0) > 0)
    if not needed <= count <= possible:
        raise ValueError(
            f"position: player {seat} has not entered five alike {count} times; its card allows {needed} to {possible}"
        )


def is_armed(card: Mapping[Box, int], kismets_rolled: int, rules: Rules) -> bool:
    """Return whether five alike would be a second Kismet on a card of these filled boxes (RULES.md 6.1)."""
    box = Box.KISMET if Box.KISMET in card else -1
    return bool(arms(tables_of(rules)[0], box, card.get(Box.KISMET, 0), kismets_rolled > 0))


def _read_player(given: Any, cards: list[dict[Box, int]]) -> int:
    """Return the seat to move: those who have played this round are the seats just before it (RULES.md 6.4)."""
    num_players, sizes = len(cards), [len(card) for card in cards]
    candidates = [
        seat
        for seat in range(num_players)
        if sizes[seat] == min(sizes)
        and [sizes[(seat + step) % num_players] for step in range(num_players)]
        == sorted(sizes[(seat + step) % num_players] for step in range(num_players))
    ]
    if max(sizes) - min(sizes) > 1 or not candidates:
        raise ValueError(
            f"position: cards with {sizes} filled boxes are not in step; in one game they differ by at most one"
        )
    if given is None:
        return candidates[0]
    player = _whole(given, "player", 0, num_players - 1)
    if player not in candidates:
        raise ValueError(f"position: with {sizes} filled boxes it is the turn of player {candidates[0]}, not {player}")
    return player


def set_position(state: State, row: int, position: Position, *, key: np.uint64, rules: Rules) -> None:
    """Put row `row` of the state into `position`, with the dice to come of `key`."""
    game = state.games[row]
    game["key"] = key
    game["player"] = position.player
    game["over"] = False
    game["illegal"] = 0
    for card, entries, kismets in zip(state.cards[row], position.cards, position.kismets_rolled, strict=True):
        filled = sum(1 << box for box in entries)
        basic_total = sum(entries.get(box, 0) for box in BASIC_BOXES)
        bonus = basic_bonus(basic_total, rules) if filled & BASIC_SECTION == BASIC_SECTION else 0
        card["filled"] = filled
        card["basic_total"] = basic_total
        card["armed"] = is_armed(entries, kismets, rules)
        card["kismets_rolled"] = kismets
        card["total"] = sum(entries.values()) + bonus
        card["earned"] = 0
        card["points"] = [entries.get(box, OPEN) for box in Box]
    if position.roll is None:  # all five dice come as the roll that leaves so many
        game["rolls_left"] = position.rolls_left + 1
        _roll_row(state.games, state.cards, tables_of(rules), row)
    else:
        game["roll"] = position.roll
        game["rolls_left"] = position.rolls_left


@compiled
def _roll_row(games: Table, cards: Table, tables_array: Record, row: int) -> None:
    """Roll all five dice for the player to move in game `row`."""
    roll_dice(games[row], cards[row, games[row].player], tables_array[0], 0)


def position_of(state: State, row: int) -> dict[str, Any]:
    """Return the position of row `row` in the form of this module: plain lists, dicts and ints, ready for JSON."""
    game, cards = state.games[row], state.cards[row]
    return {
        "cards": [{box.name: int(points[box]) for box in Box if points[box] != OPEN} for points in cards["points"]],
        "player": int(game["player"]),
        "dice": ROLL_DICE[game["roll"]].tolist(),
        "rolls_left": int(game["rolls_left"]),
        "kismets_rolled": cards["kismets_rolled"].tolist(),
    }
