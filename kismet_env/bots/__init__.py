"""The built-in players, one file each.

    player = make("turn_greedy")
    actions = player.act(observations, masks)

A new player is a file here and a line in `PLAYERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kismet_env.bots.greedy import Greedy
from kismet_env.bots.player import Player, StochasticPlayer
from kismet_env.bots.random import Random
from kismet_env.bots.turn_greedy import TurnGreedy
from kismet_env.rules import Rules

__all__ = ["PLAYERS", "Player", "StochasticPlayer", "make"]

PLAYERS: dict[str, Callable[[Rules], Player]] = {
    "random": Random,
    "greedy": Greedy,
    "turn_greedy": TurnGreedy,
}


def make(name: str, rules: Rules | Mapping[str, Any] | None = None, *, trust: bool = False) -> Player:
    """Return the player called `name`, ready to play under `rules`.

    Raises ValueError for an unknown name, naming the valid ones.
    """
    rules = Rules.of(rules)
    if name in PLAYERS:
        return PLAYERS[name](rules)
    raise ValueError(f"player {name!r} is unknown; players are {', '.join(PLAYERS)}")
