"""Play against the players, or alone, with a coach who knows what every action is worth."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import platformdirs
import tyro

from kismet_env.command_line import Refusal, check_writable, prepare_matches, refusing
from kismet_env.dialogue import talk
from kismet_env.evaluation import EVALUATION_DICE, game_keys
from kismet_env.record import Game
from kismet_env.rules import Rules
from kismet_env.sitting import YOU, Match, Sitting
from kismet_env.solver import solve
from kismet_env.win_chance import action_chances


@dataclass(frozen=True)
class Config:
    """Play Kismet, alone or against players. Every action is written down, so a game can be left and continued.

    For example: python -m kismet_env play --seed 3
    """

    against: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """Whom to play against, in playing order; the names are those of evaluate.py."""
    seed: int | None = None
    """Which dice: the first game of evaluate.py under the same seed. Left out: some that nobody has seen."""
    rules: Rules = field(default_factory=Rules)
    record: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where the game is written down (docs/records.md). Left out: a new file in the user's data folder
    (KISMET_DATA_DIR moves it)."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Go on with the game of --record or, without it, with the one that was left last."""
    plain: tyro.conf.FlagCreatePairsOff[bool] = False
    """Lines of text instead of a screen, for screen readers; so it is without a terminal."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code."""


def main(config: Config) -> None:
    """Play, and say where the game is."""
    with refusing():
        game, path = _resumed(config) if config.resume else _new(config)
        solve(game.rules, progress=True)
        if "win_probability" in game.players:
            prepare_matches(game.rules)
        match = Match(game, path, trust=config.trust, chances_known=_chances(game))
        told = match.begin()
    sit(match, plain=config.plain, told=told)
    if game.over:
        print(f"written: {path}")
    else:
        where = "" if config.record is None else f" --record {shlex.quote(str(path))}"
        print(f"left; to go on: python -m kismet_env play --resume{where}")


def _new(config: Config) -> tuple[Game, Path]:
    """Return a new game and where to write it down; ValueError for one that cannot be."""
    seed = config.seed
    key = secrets.randbits(64) if seed is None else int(game_keys(EVALUATION_DICE, seed, range(1))[0])
    path = config.record or games_folder() / f"{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    check_writable(path, folder=False)
    if path.exists():
        raise ValueError(f"{path} exists; add --resume to go on with it, or give another name")
    return Game((YOU, *config.against), config.rules, key=key), path


def _resumed(config: Config) -> tuple[Game, Path]:
    """Return the game to go on with and where it is; ValueError where there is none."""
    if config.against or config.seed is not None or config.rules != Rules():
        raise ValueError(
            "--resume takes players, rules and dice from the game; leave out --against, --rules and --seed"
        )
    if config.record is not None:
        game = _read(config.record)
        if game.over:
            raise ValueError(f"the game in {config.record} is over; python -m kismet_env analyse {config.record}")
        return game, config.record
    for path in sorted(games_folder().glob("*.json"), reverse=True):
        game = _read(path)
        if YOU in game.players and not game.over:
            return game, path
    raise ValueError(f"no game was left in {games_folder()}; begin one: python -m kismet_env play")


def _read(path: Path) -> Game:
    """Return the game that is written down there; ValueError, with the place, for what is none."""
    try:
        return Game.from_json(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; to go on with another game name it by --record") from None


def games_folder() -> Path:
    """Return the folder for games (it may not exist yet)."""
    folder = os.environ.get("KISMET_DATA_DIR") or platformdirs.user_data_dir("kismet_env", appauthor=False)
    return Path(folder) / "games"


def _chances(game: Game) -> Callable[[], bool]:
    """Begin to work out in the background what chances to win are judged by; return what says whether it is done.

    Another process does it and keeps it on disk: it takes minutes the first time, and ends with this one.
    """
    if len(game.players) == 1:
        return lambda: False
    arguments = (game.rules, len(game.players))
    process = multiprocessing.get_context("spawn").Process(target=_prepare, args=arguments, daemon=True)
    process.start()
    return lambda: process.exitcode == 0


def _prepare(rules: Rules, num_players: int) -> None:
    """Work out and compile all that chances to win need, for the disk to keep."""
    action_chances(np.zeros((num_players, 4), np.int64), rules, roll=0, rolls_left=0)


def sit(sitting: Sitting, *, plain: bool, told: list[str]) -> None:
    """Let the person decide, on a screen or, where it is wished for or there is none, in lines; then report."""
    if plain or not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        for line in told:
            print(line)
        talk(sitting)
    else:
        try:
            from kismet_env.board import Board
        except ModuleNotFoundError as missing:
            if missing.name != "textual":
                raise
            raise Refusal("the screen needs textual; pip install 'kismet-env[render]', or add --plain") from None
        Board(sitting, told).run()
    for line in sitting.report():
        print(line)
