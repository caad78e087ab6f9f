"""Watch players play a game in the terminal, with what every decision is worth."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from kismet_env.analysis import Analyst, Judged
from kismet_env.bots import Player, make
from kismet_env.command_line import Refusal, check_writable, prepare_matches, progress_bar, refusing, write_whole
from kismet_env.evaluation import EVALUATION_DICE, game_keys
from kismet_env.record import Game
from kismet_env.rules import Rules
from kismet_env.screen import game_screen, line_of, short_line_of, sums_table
from kismet_env.solver import solve

_EXAMPLE = "python -m kismet_env watch turn_greedy"
_FPS, _FRAMES_A_PICTURE = 4, 6
_MOST_GAMES = 2**63


@dataclass(frozen=True)
class Config:
    """Watch one to six players play a game: dice, cards, the value of the position, the best actions, luck and regret.

    For example: python -m kismet_env watch turn_greedy optimal --seed 3 --record game.json
    """

    players: tyro.conf.Positional[tuple[str, ...]] = ()
    """Who plays, in the order of the seats; the names are those of evaluate.py."""
    seed: int = 0
    """Which dice: one player meets those of evaluate.py under the same seed."""
    game: int = 0
    """Which of the games of the seed."""
    rules: Rules = field(default_factory=Rules)
    pause: float = 1.0
    """Seconds between two actions; only in a terminal."""
    step: tyro.conf.FlagCreatePairsOff[bool] = False
    """Wait for Enter instead, before and after every action."""
    record: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to write the game (docs/records.md); `analyse` and every version of this package replay it."""
    video: Annotated[Path | None, tyro.conf.arg(metavar="FILE.mp4")] = None
    """Where to write a video of the table."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code."""


def main(config: Config) -> None:
    """Play, show, write; after Ctrl-C what was played is written too."""
    with refusing():
        players = _checked(config)
        key = int(game_keys(EVALUATION_DICE, config.seed, range(config.game, config.game + 1))[0])
        game = Game(config.players, config.rules, key=key)
    analyst = Analyst(solve(config.rules, progress=True), game.beginning)
    if len(players) > 1 and "win_probability" in config.players:
        prepare_matches(config.rules)
    seen = game.look()
    for player in dict.fromkeys(players):  # what is compiled is compiled before the screen is taken
        player.act(seen.observations, seen.masks, np.zeros(1))
    try:
        _play(game, analyst, players, config)
    finally:
        with refusing():
            if config.record is not None:
                write_whole(config.record, game.to_json())
            if config.video is not None and game.moves:
                write_video(game, config.video)
    for path in filter(None, (config.record, config.video)):
        print(f"written: {path}")


def _checked(config: Config) -> list[Player]:
    """Return the players; ValueError for what cannot be played, shown or written."""
    if not config.players:
        raise ValueError(f"no player is named; for example: {_EXAMPLE}")
    if not 0 <= config.game < _MOST_GAMES:
        raise ValueError(f"--game {config.game} is not a whole number from 0 to {_MOST_GAMES - 1}")
    if not config.pause >= 0:
        raise ValueError(f"--pause {config.pause} is not a number of seconds from 0 up")
    if config.step and config.pause != Config.pause:
        raise ValueError("--step waits for Enter instead of --pause; leave out one of them")
    for path in filter(None, (config.record, config.video)):
        check_writable(path, folder=False)
    if config.video is not None:
        if config.video == config.record:
            raise ValueError(f"--record and --video are both {config.video}; give two places")
        if config.video.suffix != ".mp4":
            raise ValueError(f"--video {config.video} does not end in .mp4")
        try:
            import_module("imageio_ffmpeg")
        except ImportError:
            raise ValueError("--video needs imageio-ffmpeg: pip install 'kismet-env[render]'") from None
    made = {name: make(name, config.rules, trust=config.trust) for name in config.players}
    return [made[name] for name in config.players]


def _play(game: Game, analyst: Analyst, players: Sequence[Player], config: Config) -> None:
    """Play the game to its end, on a screen or, where there is no terminal, line by line."""
    console = Console()
    if console.is_terminal:
        _play_on_screen(console, game, analyst, players, config)
    else:
        while not game.over:
            console.print(line_of(_judged(game, analyst, players), config.players), soft_wrap=True)
    console.print()
    console.print(sums_table(analyst.sums(), config.players, over=game.over))


def _play_on_screen(console: Console, game: Game, analyst: Analyst, players: Sequence[Player], config: Config) -> None:
    """Show every decision before and after the action; what was shown last stays in the terminal."""
    past: list[Text] = []
    kept: tuple[int, ...] = ()
    shown: RenderableType = ""
    try:
        with Live(console=console, auto_refresh=False, screen=True) as live:
            while not game.over:
                judged = _judged(game, analyst, players)
                move, outlook, verdict = judged
                hint = "Enter: on, Ctrl-C: stop" if config.step else ""
                show = partial(game_screen, move.before, game.rules, config.players, hint=hint)
                decision = partial(show, kept=kept, outlook=outlook)
                shown = decision(past=past)
                live.update(shown, refresh=True)
                _wait(config)
                shown = decision(past=past, move=move, verdict=verdict)
                live.update(shown, refresh=True)
                _wait(config)
                kept = move.kept or ()
                past.append(short_line_of(judged, config.players))
            shown = game_screen(game.position(), game.rules, config.players, past=past)
    finally:
        console.print(shown)


def _wait(config: Config) -> None:
    if config.step:
        input()
    else:
        time.sleep(config.pause / 2)


def _judged(game: Game, analyst: Analyst, players: Sequence[Player]) -> Judged:
    """Let the player to move play his action."""
    seat = game.player
    outlook = analyst.look(seat, game.decision(), game.totals[seat])
    try:
        move = game.let(players[seat])
    except ValueError as error:
        raise Refusal(f"player {game.players[seat]!r}, action {len(game.moves) + 1}: {error}") from None
    return Judged(move, outlook, analyst.judge(move))


def write_video(game: Game, path: Path) -> None:
    """Write a video of all positions of a game, a whole file or none; OSError where it cannot be written."""
    from imageio_ffmpeg import write_frames

    from kismet_env.render.picture import HEIGHT, WIDTH, picture

    draw = partial(picture, rules=game.rules, names=game.players)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.part.mp4")
    try:
        writer = write_frames(str(beside), (WIDTH, HEIGHT), fps=_FPS, macro_block_size=2)
        writer.send(None)
        _send(writer, draw(game.beginning))
        with progress_bar() as bar:
            for move in bar.track(game.moves, description="video"):
                _send(writer, draw(move.after, last=move.told(game.players, game.rules)))
        writer.close()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _send(writer: Generator[None, npt.NDArray[np.uint8], None], frame: npt.NDArray[np.uint8]) -> None:
    for _ in range(_FRAMES_A_PICTURE):
        writer.send(frame)
