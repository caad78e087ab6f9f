"""Luck and regret of a recorded game, decision by decision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from kismet_env.analysis import analyse
from kismet_env.command_line import check_writable, refusing, write_whole
from kismet_env.record import Game
from kismet_env.report import report
from kismet_env.screen import line_of, sums_table
from kismet_env.solver import solve


@dataclass(frozen=True)
class Config:
    """Hold a recorded game against the optimum: what every decision cost and what every roll brought.

    For example: python -m kismet_env analyse game.json --html report.html
    """

    record: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="GAME.json")]]
    """The game, as `watch --record` writes it (docs/records.md)."""
    html: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html")] = None
    """Where to write a page about the game, with a graph and every decision."""


def main(config: Config) -> None:
    """Read, judge, print, write."""
    with refusing():
        if config.html is not None:
            check_writable(config.html, folder=False)
            if config.html.resolve() == config.record.resolve():
                raise ValueError(f"--html {config.html} is the game itself; give another place")
        game = Game.from_json(config.record.read_text("utf-8-sig"))
    judged, sums = analyse(game, solve(game.rules, progress=True))
    console = Console()
    for one in judged:
        console.print(line_of(one, game.players), soft_wrap=True)
    console.print()
    console.print(sums_table(sums, game.players, over=game.over))
    if config.html is not None:
        with refusing():
            write_whole(config.html, report(game, judged, sums))
        print(f"report: {config.html}")
