"""What has just happened, in words: what two positions of a game and the action between them say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kismet_env.render.sheet import contents_of
from kismet_env.rules import Box, Rules


class Last(NamedTuple):
    """The last action of a game, for those who look at it now."""

    text: str  # "Player 1: fill Fours, 16 points; Player 2: 0 in Aces"
    kept: tuple[int, ...] = ()  # faces that lie on the table since an earlier roll of this turn
    entries: tuple[tuple[int, Box], ...] = ()  # (seat, box): what was filled


def names_of(num_players: int) -> tuple[str, ...]:
    """Return what players without names are called."""
    return tuple(f"Player {seat + 1}" for seat in range(num_players))


def last_of(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    did: str,
    kept: Sequence[int] | None,
    rules: Rules,
    names: Sequence[str],
) -> Last:
    """Return what led from one position to the other.

    Args:
        before, after: positions (see `kismet_env.position`), `after` perhaps some actions of other players later.
        did: the action of the player to move, in words.
        kept: the faces that he kept; None where he filled a box.
        rules: those of the game.
        names: what the players are called, by seat.
    """
    mover, columns = int(before["player"]), contents_of(after, rules).columns
    earlier = contents_of(before, rules).columns
    said, entries = [f"{names[mover]}: {did}"], []
    for step in range(len(columns)):
        seat = (mover + step) % len(columns)
        then, now = earlier[seat], columns[seat]
        new = [box for box in now.card if box not in then.card]
        entries += [(seat, box) for box in new]
        bonus = f", bonus {now.bonus}" if now.bonus and then.bonus is None else ""
        if seat == mover and len(new) == 1:
            points = now.card[new[0]]
            said[0] += f", {points} point{'s' * (points != 1)}{bonus}"
        elif new:
            said.append(f"{names[seat]}: {', '.join(f'{now.card[box]} in {box.title}' for box in new)}{bonus}")
    goes_on = not entries and after["player"] == mover
    return Last("; ".join(said), tuple(kept or ()) if goes_on else (), tuple(entries))
