"""Play any number of players on the same dice and compare them: python evaluate.py NAME... --help."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from kismet_env.bots import make
from kismet_env.command_line import check_writable, progress_bar, refusing, run, write_whole
from kismet_env.dice import hash_words
from kismet_env.evaluation import Games, play, summarise
from kismet_env.rules import SUITE, Rules


@dataclass(frozen=True)
class Config:
    """Play solitaire Kismet with any number of players on the same dice and compare them."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Players: random, greedy, turn_greedy, rule_based, optimal, epsilon:E and boltzmann:T (perfect but for slips), or
    sb3:FILE.zip for a model of MaskablePPO (its most probable actions; with :sample behind it, it draws lots)."""
    games: int = 1000
    """How many games each of them plays, to the end."""
    seed: int = 0
    """Which dice: the same seed, the same games."""
    rules: Rules = field(default_factory=Rules)
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to write the report."""
    plots: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plots scores.png and boxes.png."""
    processes: int = 1
    """How many processes play; the results are the same for any number."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code."""


def main(config: Config) -> None:
    """Play, print, write."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: its threads shall not spin on a busy machine
    with refusing():
        _check(config)
        players = {name: make(name, config.rules, trust=config.trust) for name in config.names}
    results = {}
    with progress_bar() as bar:
        for name, player in players.items():
            advance = partial(bar.advance, bar.add_task(name, total=config.games))
            results[name] = play(
                player, config.games, seed=config.seed, rules=config.rules, processes=config.processes, report=advance
            )
    report = summarise(results, seed=config.seed, rules=config.rules)
    _show(report, config.rules)
    with refusing():
        _write(config, report, results)


def _check(config: Config) -> None:
    """Raise ValueError for what cannot be played or written, before anything is."""
    if not config.names:
        raise ValueError("no player is named; for example: evaluate.py greedy turn_greedy")
    if twice := [name for name in config.names if config.names.count(name) > 1]:
        raise ValueError(f"player {twice[0]!r} is named twice; name every player once")
    for option in ("games", "processes"):
        if getattr(config, option) < 1:
            raise ValueError(f"--{option} {getattr(config, option)} is not at least 1")
    hash_words(config.seed)  # refuses what is no seed
    if config.json is not None:
        check_writable(config.json, folder=False)
    if config.plots is not None:
        check_writable(config.plots, folder=True)


def _show(report: dict[str, Any], rules: Rules) -> None:
    """Print the report as tables."""
    console = Console()
    played = f"{report['games']:,} games of seed {report['seed']}"
    headings = ("player", "mean", "SD", "5 %", "median", "95 %", "bonus", "illegal")
    table = _table(f"{played}, {_describe(rules)}", headings, num_names=1)
    for agent in report["agents"]:
        quantiles = (f"{agent['quantiles'][percent]:.0f}" for percent in ("5", "50", "95"))
        table.add_row(
            agent["agent"],
            _with_reach(agent["mean"], agent["ci95"]),
            "-" if agent["sd"] is None else f"{agent['sd']:.1f}",
            *quantiles,
            f"{1 - agent['bonus_rates']['0']:.1%}",
            f"{agent['illegal_actions']:,}",
        )
    console.print(table)
    if report["paired"]:
        pairs = _table("Differences on the same dice", ("a", "b", "a - b", "a higher", "equal"), num_names=2)
        for pair in report["paired"]:
            difference = _with_reach(pair["difference"], pair["ci95"])
            pairs.add_row(pair["a"], pair["b"], difference, f"{pair['a_higher']:.1%}", f"{pair['equal']:.1%}")
        console.print(pairs)


def _table(title: str, headings: tuple[str, ...], *, num_names: int) -> Table:
    """Return an empty table; names come first and may be folded, numbers never are."""
    table = Table(title=title, caption="±: 95 % intervals", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        if index < num_names:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _with_reach(mean: float, interval: tuple[float, float] | None) -> str:
    return f"{mean:.1f}" if interval is None else f"{mean:.1f} ± {(interval[1] - interval[0]) / 2:.1f}"


def _describe(rules: Rules) -> str:
    """Return the name of `rules`, or in what they differ from the standard game."""
    for name, named in SUITE.items():
        if rules == named:
            return f"rules {name}"
    changed = [
        f"{each.name} {getattr(rules, each.name)}"
        for each in fields(Rules)
        if getattr(rules, each.name) != each.default
    ]
    return ", ".join(changed) or "standard rules"


def _write(config: Config, report: dict[str, Any], results: dict[str, Games]) -> None:
    """Write what was asked for."""
    if config.json is not None:
        write_whole(config.json, json.dumps(report, indent=2, allow_nan=False) + "\n")
        print(f"report: {config.json}")
    if config.plots is not None:
        from kismet_env.plots import plot_boxes, plot_scores, png

        for name, plot in (("scores", plot_scores), ("boxes", plot_boxes)):
            write_whole(config.plots / f"{name}.png", png(plot(results)))
        print(f"plots: {config.plots}")


if __name__ == "__main__":
    sys.exit(run(main, Config))
