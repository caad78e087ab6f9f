"""The built-in players, one file each.

    player = make("turn_greedy")
    actions = player.act(observations, masks)

A new player is a file here and a line in `PLAYERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kismet_env.bots.boltzmann import Boltzmann
from kismet_env.bots.epsilon import Epsilon
from kismet_env.bots.greedy import Greedy
from kismet_env.bots.optimal import Optimal
from kismet_env.bots.player import Player, StochasticPlayer
from kismet_env.bots.random import Random
from kismet_env.bots.rule_based import RuleBased
from kismet_env.bots.turn_greedy import TurnGreedy
from kismet_env.rules import Rules

__all__ = ["GRADED", "PLAYERS", "Player", "StochasticPlayer", "make"]

PLAYERS: dict[str, Callable[[Rules], Player]] = {
    "random": Random,
    "greedy": Greedy,
    "turn_greedy": TurnGreedy,
    "rule_based": RuleBased,
    "optimal": Optimal,
}


GRADED: dict[str, Callable[[float, Rules], Player]] = {
    "epsilon": Epsilon,
    "boltzmann": Boltzmann,
}
"""Players whose strength is a number after their name: "epsilon:0.1"."""


def make(name: str, rules: Rules | Mapping[str, Any] | None = None, *, trust: bool = False) -> Player:
    """Return the player called `name`, ready to play under `rules`.

    Raises ValueError for an unknown name, naming the valid ones.
    """
    rules = Rules.of(rules)
    if name in PLAYERS:
        return PLAYERS[name](rules)
    kind, colon, number = name.partition(":")
    if kind in GRADED and colon:
        try:
            strength = float(number)
        except ValueError:
            raise ValueError(f"player {name!r}: {number!r} is not a number") from None
        return GRADED[kind](strength, rules)
    valid = [*PLAYERS, *(f"{graded}:NUMBER" for graded in GRADED)]
    raise ValueError(f"player {name!r} is unknown; players are {', '.join(valid)}")
