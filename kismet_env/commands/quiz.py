"""Decide about positions of the value suite and hear the price of every choice."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import tyro

from kismet_env.command_line import refusing
from kismet_env.commands.play import sit
from kismet_env.sitting import Quiz
from kismet_env.solver import solve
from kismet_env.value_suite import load

_MOST = 200


@dataclass(frozen=True)
class Config:
    """Decide about positions of the value suite: what every choice gives away, beside what the players do there.

    For example: python -m kismet_env quiz --positions 5 --seed 1
    """

    positions: int = 10
    """How many, 1 to 200."""
    seed: int | None = None
    """Which ones; left out: any."""
    beside: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ("greedy", "turn_greedy", "rule_based")
    """Players who decide about the same positions; the names are those of evaluate.py."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code."""
    plain: tyro.conf.FlagCreatePairsOff[bool] = False
    """Lines of text instead of a screen, for screen readers; so it is without a terminal."""


def main(config: Config) -> None:
    """Ask."""
    with refusing():
        if not 1 <= config.positions <= _MOST:
            raise ValueError(f"--positions {config.positions} is not a whole number from 1 to {_MOST}")
        if config.seed is not None and config.seed < 0:
            raise ValueError(f"--seed {config.seed} is negative")
        suite = load()
        seed = secrets.randbits(32) if config.seed is None else config.seed
        rows = np.random.default_rng(seed).choice(len(suite.rolls), config.positions, replace=False)
        solve(progress=True)
        quiz = Quiz(suite.at(rows), config.beside, trust=config.trust)
    sit(quiz, plain=config.plain, told=[])
