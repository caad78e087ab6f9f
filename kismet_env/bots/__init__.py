"""The built-in players, one file each.

    player = make("turn_greedy")
    actions = player.act(observations, masks)

A new player is a file here and a line in `PLAYERS`; a policy that has been learned is a file in `policies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kismet_env.bots.actor import Actor
from kismet_env.bots.boltzmann import Boltzmann
from kismet_env.bots.card_value import CardValue
from kismet_env.bots.epsilon import Epsilon
from kismet_env.bots.greedy import Greedy
from kismet_env.bots.network_player import MostProbable
from kismet_env.bots.optimal import Optimal
from kismet_env.bots.pair_value import PairValue
from kismet_env.bots.player import AskedPlayer, Player, StochasticPlayer, TurnPlayer, ValuePlayer
from kismet_env.bots.random import Random
from kismet_env.bots.rule_based import RuleBased
from kismet_env.bots.sb3_policy import load_sb3
from kismet_env.bots.turn_greedy import TurnGreedy
from kismet_env.bots.win_probability import WinProbability
from kismet_env.policy_file import load_policy
from kismet_env.rules import Rules

__all__ = [
    "GRADED",
    "PLAYERS",
    "READY",
    "AskedPlayer",
    "MostProbable",
    "Player",
    "StochasticPlayer",
    "TurnPlayer",
    "ValuePlayer",
    "make",
]

PLAYERS: dict[str, Callable[[Rules], Player]] = {
    "random": Random,
    "greedy": Greedy,
    "turn_greedy": TurnGreedy,
    "rule_based": RuleBased,
    "optimal": Optimal,
    "win_probability": WinProbability,
}


GRADED: dict[str, Callable[[float, Rules], Player]] = {
    "epsilon": Epsilon,
    "boltzmann": Boltzmann,
}
"""Players whose strength is a number after their name: "epsilon:0.1"."""

READY = {path.stem: path for path in sorted((Path(__file__).parent.parent / "policies").glob("*.safetensors"))}
"""Ready policies: name -> portable policy for the standard rules; the .md file beside each says where it is from."""

_SAMPLE = ":sample"


def make(name: str, rules: Rules | Mapping[str, Any] | str | None = None, *, trust: bool = False) -> Player:
    """Return the player called `name`, ready to play under `rules`.

    Names are those of `PLAYERS`, those of `GRADED` with a number, those of `READY` for policies that come with the
    package, "policy:FILE" for a portable policy and "sb3:FILE.zip" for a model of MaskablePPO. What has been learned
    plays its most probable action, or draws lots with ":sample" behind the name. A model is unpickled, which can run
    any code: it needs `trust`. Raises ValueError for an unknown name, naming the valid ones, and for a number or a file
    that cannot be used.
    """
    rules = Rules.of(rules)
    if name in PLAYERS:
        return PLAYERS[name](rules)
    kind, _, rest = name.partition(":")
    if kind in GRADED and rest:
        try:
            strength = float(rest)
        except ValueError:
            raise ValueError(f"player {name!r}: {rest!r} is not a number") from None
        return GRADED[kind](strength, rules)
    if name.removesuffix(_SAMPLE) in READY:
        kind, rest = "policy", f"{READY[kind]}{name.removeprefix(kind)}"
    file, draws_lots = rest.removesuffix(_SAMPLE), rest.endswith(_SAMPLE)
    if kind == "policy" and file:
        learned = load_policy(file, rules)
        if learned.kind == "actor":
            return Actor(learned) if draws_lots else MostProbable(Actor(learned))
        if draws_lots:
            raise ValueError(f"player {name!r}: a policy of kind {learned.kind} draws no lots; leave out {_SAMPLE}")
        return PairValue(learned) if learned.kind == "pair_value" else CardValue(learned)
    if kind == "sb3" and file:
        if not trust:
            raise ValueError(
                f"player {name!r}: loading the file can run any code that its author put there; "
                f"if you trust it, add --trust (in Python give the player, make({name!r}, rules, trust=True))"
            )
        model = load_sb3(file, rules)
        return model if draws_lots else MostProbable(model)
    valid = [*PLAYERS, *READY, *(f"{graded}:NUMBER" for graded in GRADED), "policy:FILE", "sb3:FILE.zip"]
    raise ValueError(f"player {name!r} is unknown; players are {', '.join(valid)}")
