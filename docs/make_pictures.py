"""Makes the pictures of the README: python docs/make_pictures.py [--run FOLDER], or `make pictures`.

The report is photographed by a headless Chromium, the learning curve is that of a run of train.py; without a browser
or a run the picture that is there stays.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console

from kismet_env.analysis import analyse
from kismet_env.board import Board
from kismet_env.bots import make
from kismet_env.command_line import refusing, run, write_whole
from kismet_env.evaluation import EVALUATION_DICE, game_keys
from kismet_env.plots import plot_curve, png
from kismet_env.record import Game
from kismet_env.render.picture import picture
from kismet_env.report import report
from kismet_env.screen import game_screen, short_line_of
from kismet_env.sitting import YOU, Match
from kismet_env.solver import solve

_IMAGES = Path(__file__).parent / "images"
_PLAYERS = ("turn_greedy", "optimal")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SEED = 3
_TABLE_MOVE, _SCREEN_MOVE = 42, 23  # of the games, from 0: decisions worth a picture
_BOARD_MOVE, _BOARD_KEYS = (
    40,
    ("1", "2", "3", "?"),
)  # the person's first decision after so many moves, and what is pressed
_YARDSTICK = 288.58  # exact mean of turn_greedy: python evaluate.py turn_greedy --exact


@dataclass(frozen=True)
class Config:
    """Make the pictures of the README."""

    run: Path = Path("runs/ppo")
    """A run of train.py, for the learning curve."""


def main(config: Config) -> None:
    """Make all pictures that can be made here."""
    match, alone = _played(_PLAYERS), _played(_PLAYERS[:1])
    move = match.moves[_TABLE_MOVE]
    last = match.moves[_TABLE_MOVE - 1].told(match.players, match.rules)
    _write_png("table.png", Image.fromarray(picture(move.before, match.rules, names=match.players, last=last)))
    write_whole(_IMAGES / "watch.svg", _screen(alone))
    print("watch.svg")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"report.png and play.png stay: none of {', '.join(_BROWSERS)} is installed")
    else:
        page = report(alone, *analyse(alone, solve()))
        _write_png("report.png", _photographed(browser, page, width=1100, height=1240))
        _write_png("play.png", _photographed(browser, *_board()))
    curve = config.run / "curve.csv"
    if not curve.exists():
        print(f"learning_curve.png stays: there is no {curve}")
        return
    with refusing(), curve.open(newline="") as file:
        rows = list(csv.DictReader(file))
    references = {"turn_greedy": _YARDSTICK, "optimal": solve().expected_score}
    content = png(plot_curve(rows, "Masked PPO", references))
    _write_png("learning_curve.png", Image.open(io.BytesIO(content)).convert("RGB"))


def _played(names: tuple[str, ...]) -> Game:
    """Return a game of these players, the one that `watch` shows under the same seed."""
    game = Game(names, key=int(game_keys(EVALUATION_DICE, _SEED, range(1))[0]))
    players = {name: make(name) for name in names}
    while not game.over:
        game.let(players[names[game.player]])
    return game


def _screen(game: Game) -> str:
    """Return what `watch` shows in a terminal, as SVG without outside resources."""
    judged, _ = analyse(game, solve())
    one, before = judged[_SCREEN_MOVE], judged[:_SCREEN_MOVE]
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(
        game_screen(
            one.move.before,
            game.rules,
            game.players,
            kept=before[-1].move.kept or (),
            outlook=one.outlook,
            move=one.move,
            verdict=one.verdict,
            past=[short_line_of(each, game.players) for each in before],
        )
    )
    svg = console.export_svg(title="python -m kismet_env watch turn_greedy --seed 3", unique_id="watch")
    return _without_fonts(svg)


def _board() -> tuple[str, int, int]:
    """Return what `play` shows in the middle of a match, as a page, and its width and height."""
    with tempfile.TemporaryDirectory() as folder:
        game = Game((YOU, "turn_greedy"), key=int(game_keys(EVALUATION_DICE, _SEED, range(1))[0]))
        person = make("optimal")
        while len(game.moves) < _BOARD_MOVE or game.player > 0:
            game.let(person if game.player == 0 else make("turn_greedy"))
        match = Match(game, Path(folder, "game.json"), chances_known=lambda: True)
        told = [f"{game.players[move.player]}: {move.said}" for move in game.moves if move.box is not None]
        board = Board(match, told)

        async def sit() -> str:
            async with board.run_test(size=(80, 24)) as pilot:
                await pilot.press(*_BOARD_KEYS)
                return board.export_screenshot(title="python -m kismet_env play --against turn_greedy")

        svg = _without_fonts(asyncio.run(sit()))
    width, height = (round(float(side)) for side in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    return f'<body style="margin: 0"><div style="width: {width}px">{svg}</div></body>', width, height


def _without_fonts(svg: str) -> str:
    """Return a picture that needs no resources from outside."""
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def _photographed(browser: str, page: str, width: int, height: int) -> Image.Image:
    """Return the upper part of a page as a screen shows it."""
    with tempfile.TemporaryDirectory() as folder:
        source, picture_file = Path(folder, "report.html"), Path(folder, "report.png")
        source.write_text(page)
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/user")
        size = f"--window-size={width},{height}"
        command = [browser, *options, size, f"--screenshot={picture_file}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return Image.open(picture_file).convert("RGB")


def _write_png(name: str, image: Image.Image) -> None:
    """Write a small file: 256 colours are enough for drawings."""
    content = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
    write_whole(_IMAGES / name, content.getvalue())
    print(f"{name}: {np.asarray(image).shape[1]} wide, {len(content.getvalue()) // 1000} kB")


if __name__ == "__main__":
    sys.exit(run(main, Config))
