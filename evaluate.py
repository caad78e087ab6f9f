"""Play any number of players on the same dice and compare them: python evaluate.py NAME... --help."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the imports run: the end, without a traceback

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

try:
    import tyro
    from rich import box
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table
except ModuleNotFoundError as missing:
    print(f"evaluate.py needs {missing.name}; install it with pip install -e '.[train]'", file=sys.stderr)
    raise SystemExit(2) from None

from kismet_env.bots import Player, TurnPlayer, make
from kismet_env.command_line import check_writable, progress_bar, refusing, run, write_whole
from kismet_env.dice import hash_words
from kismet_env.evaluation import YARDSTICK, Games, Regrets, exact, play, summarise, yardstick
from kismet_env.rules import SUITE, Rules
from kismet_env.solver import solve


@dataclass(frozen=True)
class Config:
    """Play solitaire Kismet with any number of players on the same dice and compare them."""

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME ...")] = ()
    """Players: random, greedy, turn_greedy, rule_based, optimal, epsilon:E and boltzmann:T (perfect but for slips),
    policy:FILE for a portable policy, or sb3:FILE.zip for a model of MaskablePPO (learned ones play their most probable
    actions; with :sample behind it, they draw lots)."""
    games: int = 1000
    """How many games each of them plays, to the end."""
    seed: int = 0
    """Which dice: the same seed, the same games."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to write the report."""
    plots: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plots scores.png, boxes.png and regret.png, and distribution.png where it is worked out."""
    optimum: bool = True
    """Hold every decision against the exact optimum: regret, and means without the luck of the dice. The first time
    under some rules takes one to two minutes. Without it: a quick look at the scores."""
    exact: tyro.conf.FlagCreatePairsOff[bool] = False
    """Work out exact means and standard deviations too, one to two minutes a player: for all players but networks."""
    distribution: tyro.conf.FlagCreatePairsOff[bool] = False
    """Do --exact and work out the probability of every total: another minute or two a player, and 3.5 GB of memory.
    It goes into the report and the plot distribution.png."""
    processes: int = 1
    """How many processes play; the results are the same for any number."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code. Those that train.py did not write are taken to know the rules."""


def main(config: Config) -> None:
    """Play, print, write."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: its threads shall not spin on a busy machine
    with refusing():
        _check(config)
        players = {name: make(name, config.rules, trust=config.trust) for name in config.names}
        if knows_exactly := config.exact or config.distribution:
            _check_exact(players)
    watcher = None
    if config.optimum:
        optimum = solve(config.rules, progress=True)
        optimum.prepare_sds(progress=True)
        watcher = partial(Regrets, optimum)
    results, exact_values, distributions = {}, {}, {}
    with progress_bar() as bar:
        if config.optimum:
            yardstick(config.rules, _teller(bar, f"{YARDSTICK}, exactly"))
        for name, player in players.items():
            results[name] = play(
                player,
                config.games,
                seed=config.seed,
                rules=config.rules,
                processes=config.processes,
                watcher=watcher,
                report=partial(bar.advance, bar.add_task(name, total=config.games)),
            )
        for name, player in players.items() if knows_exactly else ():
            exact_values[name] = exact(player, config.rules, _teller(bar, f"{name}, exactly"))
            if config.distribution:
                distributions[name] = exact_values[name].distribution(_teller(bar, f"{name}, every total"))
    report = summarise(
        results, seed=config.seed, rules=config.rules, exact_values=exact_values, distributions=distributions
    )
    _show(report, config.rules)
    with refusing():
        _write(config, report, results, distributions)


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
    if (config.exact or config.distribution) and not config.optimum:
        option = "--exact" if config.exact else "--distribution"
        raise ValueError(f"{option} measures against the optimum; leave out --no-optimum")
    if config.json is not None:
        check_writable(config.json, folder=False)
    if config.plots is not None:
        check_writable(config.plots, folder=True)


def _check_exact(players: dict[str, Player]) -> None:
    """Raise ValueError for a player who has no exact value."""
    for name, player in players.items():
        if not isinstance(player, TurnPlayer):
            raise ValueError(f"player {name!r} does not say how it chooses, so there is nothing exact to say of it")


def _teller(bar: Progress, description: str) -> Callable[[float], None]:
    """Return what shows the share done of something that may be in the cache: then it is never called."""
    tasks: list[TaskID] = []

    def tell(share: float) -> None:
        if not tasks:
            tasks.append(bar.add_task(description, total=100))
        bar.update(tasks[0], completed=round(100 * share))

    return tell


def _show(report: dict[str, Any], rules: Rules) -> None:
    """Print the report as tables, each of which fits into 80 columns if names are short."""
    console = Console()
    title = f"{report['games']:,} game{'s' * (report['games'] > 1)} of seed {report['seed']}, {_describe(rules)}"
    if report["optimum"]["mean"] is None:
        console.print(_scores(title, report["agents"], means=True))
    else:
        console.print(_truth(f"{title}, optimum {report['optimum']['mean']:.2f}", report["agents"]))
        console.print(_scores("Scores", report["agents"], means=False))
    if report["paired"]:
        console.print(_pairs(report["paired"]))


def _truth(title: str, agents: list[dict[str, Any]]) -> Table:
    """Return what the optimum says of the players."""
    knows_exactly = agents[0]["exact_mean"] is not None
    headings = ("player", "mean", "without luck", *["exact"] * knows_exactly, "regret", "gap closed", "of best")
    table = _table(title, headings, num_names=1)
    for agent in agents:
        exact_mean = [f"{agent['exact_mean']:.2f}"] if knows_exactly else []
        table.add_row(
            agent["agent"],
            _with_reach(agent["mean"], agent["ci95"]),
            _with_reach(agent["luck_adjusted_mean"], agent["luck_adjusted_ci95"], digits=2),
            *exact_mean,
            f"{agent['regret_per_game']:.2f}",
            f"{agent['gap_closed']:.1%}",
            f"{agent['percent_of_optimum']:.2f}%",
        )
    return table


def _scores(title: str, agents: list[dict[str, Any]], *, means: bool) -> Table:
    """Return how the scores of the players are spread."""
    headings = ("player", *["mean"] * means, "SD", "5 %", "median", "95 %", "bonus", "zeros", "illegal")
    table = _table(title, headings, num_names=1)
    for agent in agents:
        quantiles = (f"{agent['quantiles'][percent]:.0f}" for percent in ("5", "50", "95"))
        table.add_row(
            agent["agent"],
            *[_with_reach(agent["mean"], agent["ci95"])] * means,
            "-" if agent["sd"] is None else f"{agent['sd']:.1f}",
            *quantiles,
            f"{1 - agent['bonus_rates']['0']:.1%}",
            f"{sum(box['zero_rate'] for box in agent['boxes'].values()):.2f}",
            f"{agent['illegal_actions']:,}",
        )
    return table


def _pairs(pairs: list[dict[str, Any]]) -> Table:
    """Return how many points the players are ahead of one another."""
    watched = pairs[0]["luck_adjusted_difference"] is not None
    headings = ("a", "b", "a - b", *["without luck"] * watched, "a higher", "equal")
    table = _table("Differences on the same dice", headings, num_names=2)
    for pair in pairs:
        luck_adjusted = pair["luck_adjusted_difference"], pair["luck_adjusted_ci95"]
        without_luck = [_with_reach(*luck_adjusted, digits=2)] if watched else []
        table.add_row(
            pair["a"],
            pair["b"],
            _with_reach(pair["difference"], pair["ci95"]),
            *without_luck,
            f"{pair['a_higher']:.1%}",
            f"{pair['equal']:.1%}",
        )
    return table


def _table(title: str, headings: tuple[str, ...], *, num_names: int) -> Table:
    """Return an empty table; names come first and may be folded, numbers never are."""
    table = Table(title=title, caption="±: 95 % intervals", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, heading in enumerate(headings):
        if index < num_names:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _with_reach(mean: float, interval: tuple[float, float] | None, *, digits: int = 1) -> str:
    reach = "" if interval is None else f" ± {(interval[1] - interval[0]) / 2:.{digits}f}"
    return f"{mean:.{digits}f}{reach}"


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


def _write(
    config: Config,
    report: dict[str, Any],
    results: dict[str, Games],
    distributions: dict[str, npt.NDArray[np.float64]],
) -> None:
    """Write what was asked for."""
    if config.json is not None:
        write_whole(config.json, json.dumps(report, indent=2, allow_nan=False) + "\n")
        print(f"report: {config.json}")
    if config.plots is not None:
        from kismet_env.plots import plot_boxes, plot_distributions, plot_regret, plot_scores, png

        figures = {"scores": plot_scores(results), "boxes": plot_boxes(results)}
        if config.optimum:
            figures["regret"] = plot_regret(results)
        if distributions:
            figures["distribution"] = plot_distributions(distributions)
        for name, figure in figures.items():
            write_whole(config.plots / f"{name}.png", png(figure))
        print(f"plots: {config.plots}")


if __name__ == "__main__":
    sys.exit(run(main, Config))
