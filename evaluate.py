"""Play any number of players on the same dice and compare them: python evaluate.py NAME... --help."""

from __future__ import annotations

import os
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the imports run: the end, without a traceback
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: on a busy machine its threads wait by spinning

import json
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

try:
    import rich  # noqa: F401 (the tables need it)
    import tyro
except ModuleNotFoundError as missing:
    print(f"evaluate.py needs {missing.name}; install it with pip install -e '.[train]'", file=sys.stderr)
    raise SystemExit(2) from None

from kismet_env import asked, leaderboard
from kismet_env.batch import MOST_PLAYERS
from kismet_env.bots import AskedPlayer, Player, StochasticPlayer, TurnPlayer, make
from kismet_env.bots.pair_value import PairPlayer
from kismet_env.bots.win_probability import WinProbability
from kismet_env.command_line import check_writable, prepare_matches, progress_bar, refusing, run, teller, write_whole
from kismet_env.contest import play_contest, summarise_contests
from kismet_env.dice import hash_words
from kismet_env.evaluation import YARDSTICK, Regrets, exact, play, summarise, yardstick
from kismet_env.provenance import package_versions
from kismet_env.ratings import rate
from kismet_env.rules import Rules
from kismet_env.solver import solve
from kismet_env.terminal import show, show_contests, show_measures, show_ratings
from kismet_env.value_suite import load, measure, summarise_measures

_README = Path(__file__).parent / "README.md"
_LEADERBOARD = Path(__file__).parent / "docs" / "leaderboard.json"
_RATINGS = Path(__file__).parent / "docs" / "ratings.json"


@dataclass(frozen=True)
class Config:
    """Play Kismet with any number of players on the same dice and compare them: alone, or against each other."""

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME ...")] = ()
    """Players of the solitaire game: random, greedy, turn_greedy, rule_based, optimal, epsilon:E and boltzmann:T
    (perfect but for slips), afterstate and ppo (ready policies: networks that have learned what cards, or actions, are
    worth), policy:FILE for a portable policy, or sb3:FILE.zip for a model of MaskablePPO (learned ones play their most
    probable actions; with :sample behind it, they draw lots)."""
    versus: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = ()
    """Instead: players who meet at every table that can be made of them, also win_probability and selfplay (a ready
    policy), who play to win. Every deal is played once from each seat. They get ratings."""
    seats: int = 2
    """How many sit at a table under --versus, 2 to 6. In a deal they rotate through the seats in the order of
    their names: everybody has every seat once, but from three on always the same neighbours (docs/two-players.md)."""
    games: int = 1000
    """How many games each of them plays, to the end; under --versus how many there are at every table, rounded up to
    whole deals."""
    seed: int = 0
    """Which dice: the same seed, the same games."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to write the report."""
    plots: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plots scores, boxes and regret, and distribution where it is worked out; under --versus wins. Each
    of them as .png, for screens, and as .pdf, for papers."""
    optimum: bool = True
    """Hold every decision against the exact optimum: regret, and means or win rates without luck. The first time
    under some rules takes one to two minutes, under --versus another one. Without it: a quick look at the scores."""
    exact: tyro.conf.FlagCreatePairsOff[bool] = False
    """Work out exact means and standard deviations too, one to two minutes a player; networks that act on dice need
    --exact-networks beside it."""
    exact_networks: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Do --exact for networks too. They have to be asked about up to two billion decisions, less if they draw no lots:
    hours, and up to two gigabytes, told more exactly before it begins. The answers are kept in DIR: it can be stopped
    at any time, and the same command goes on from there."""
    distribution: tyro.conf.FlagCreatePairsOff[bool] = False
    """Do --exact and work out the probability of every total: another minute or two a player, and 3.5 GB of memory.
    It goes into the report and the plot distribution."""
    value_suite: tyro.conf.FlagCreatePairsOff[bool] = False
    """Instead of playing games, hold every player's choices in 10,000 pinned positions against the optimum, and the
    action values of those who have some. Standard rules."""
    processes: int = 1
    """How many processes play; the results are the same for any number."""
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    """Load sb3 files, which can run any code. Those that train.py did not write are taken to know the rules."""
    leaderboard: tyro.conf.FlagCreatePairsOff[bool] = False
    """Make the README's table and docs/leaderboard.json anew: all built-in players and ready policies, 10,000 games,
    exact means where there are any; about 15 minutes. Of the other options it takes --processes."""
    ratings: tyro.conf.FlagCreatePairsOff[bool] = False
    """Make the README's ratings and docs/ratings.json anew: all built-in players and ready policies at every table that
    can be made of two, three and four of them; about half an hour. Of the other options it takes --processes."""


def main(config: Config) -> None:
    """Play, print, write."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: its threads shall not spin on a busy machine
    if config.ratings:
        _rate_everybody(config)
        return
    with refusing():
        config = _with_leaderboard(config)
        _check(config)
        names = config.versus or config.names
        players = {name: make(name, config.rules, trust=config.trust) for name in names}
        _check_seats(config, players)
        if _is_exact(config) and not config.leaderboard:
            _check_exact(config, players)
    (_contend if config.versus else _measure if config.value_suite else _play)(config, players)


def _play(config: Config, players: dict[str, Player]) -> None:
    """Let everybody play the solitaire game."""
    watcher = None
    if config.optimum:
        optimum = solve(config.rules, progress=True)
        optimum.prepare_sds(progress=True)
        watcher = partial(Regrets, optimum)
    results, exact_values, distributions = {}, {}, {}
    with progress_bar() as bar:
        if config.optimum:
            yardstick(config.rules, teller(bar, f"{YARDSTICK}, exactly"))
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
        for name, player in players.items() if _is_exact(config) else ():
            if not isinstance(player, TurnPlayer) and config.exact_networks is None:
                continue
            with refusing():  # a folder that has become full
                tell = teller(bar, f"{name}, exactly")
                exact_values[name] = exact(player, config.rules, tell, folder=config.exact_networks)
            if config.distribution:
                distributions[name] = exact_values[name].distribution(teller(bar, f"{name}, every total"))
    report = summarise(
        results, seed=config.seed, rules=config.rules, exact_values=exact_values, distributions=distributions
    )
    show(report, config.rules)
    with refusing():
        if config.leaderboard:
            report = _dated(report)
            write_whole(_README, leaderboard.with_table(_README.read_text(), leaderboard.table(report)))
        _write(config, report)
        if config.plots is not None:
            from kismet_env.plots import plot_boxes, plot_distributions, plot_regret, plot_scores

            figures = {"scores": plot_scores(results), "boxes": plot_boxes(results)}
            if config.optimum:
                figures["regret"] = plot_regret(results)
            if distributions:
                figures["distribution"] = plot_distributions(distributions)
            _draw(config.plots, figures)


def _contend(config: Config, players: dict[str, Player]) -> None:
    """Let everybody play against everybody else."""
    report = _contests(config, players)
    show_contests(report, config.rules)
    with refusing():
        _write(config, report)
        if config.plots is not None:
            from kismet_env.plots import plot_wins

            _draw(config.plots, {"wins": plot_wins(report)})


def _contests(config: Config, players: dict[str, Player]) -> dict[str, Any]:
    """Return the report on the matches at all tables of the players, and their ratings."""
    contests, deals = {}, -(-config.games // config.seats)
    side_by_side = sorted(config.versus, key=config.versus.index)  # who is named twice: a - b and b - a are one table
    tables = list(dict.fromkeys(combinations(side_by_side, config.seats)))
    if config.optimum or any(isinstance(player, WinProbability | PairPlayer) for player in players.values()):
        prepare_matches(config.rules)
    with progress_bar() as bar:
        task = bar.add_task("", total=len(tables) * deals * config.seats)
        for names in tables:
            bar.update(task, description=" - ".join(names))
            contests[names] = play_contest(
                [players[name] for name in names],
                deals,
                seed=config.seed,
                rules=config.rules,
                processes=config.processes,
                watch=config.optimum,
                report=partial(bar.advance, task),
            )
    return summarise_contests(contests, rate(contests), seed=config.seed, rules=config.rules)


def _rate_everybody(config: Config) -> None:
    """Let all players of the README meet at tables of two, three and four, and write down their ratings."""
    with refusing():
        _check_alone(config, "ratings")
        leaderboard.table_in(_README.read_text(), "ratings")  # or ValueError
        config = replace(config, json=_RATINGS)
        tables = [
            replace(config, versus=leaderboard.rated(seats), seats=seats, games=games)
            for seats, games in leaderboard.GAMES_AT_TABLE.items()
        ]
        for table in tables:
            _check(table)
    reports = []
    for table in tables:
        report = _contests(table, {name: make(name) for name in table.versus})
        del report["matches"]  # a megabyte of numbers that the ratings have taken in
        print(f"{table.seats} seats")
        show_ratings(report["ratings"])
        reports.append(report)
    with refusing():
        write_whole(_README, leaderboard.with_table(_README.read_text(), leaderboard.ratings_table(reports), "ratings"))
        _write(config, _dated({"tables": reports}))


def _measure(config: Config, players: dict[str, Player]) -> None:
    """Ask everybody what to do in the positions of the value suite."""
    solve(config.rules, progress=True)
    with progress_bar() as bar:
        measures = {name: measure(player, load()) for name, player in bar.track(players.items(), description="asking")}
    report = summarise_measures(measures, load())
    show_measures(report)
    with refusing():
        _write(config, report)


def _with_leaderboard(config: Config) -> Config:
    """Return what to play for the leaderboard, if it is asked for; ValueError beside options of another kind."""
    if not config.leaderboard:
        return config
    _check_alone(config, "leaderboard")
    leaderboard.table_in(_README.read_text())  # or ValueError
    return replace(
        config,
        names=leaderboard.PLAYED,
        games=leaderboard.GAMES,
        seed=leaderboard.SEED,
        exact=True,
        json=_LEADERBOARD,
    )


def _check_alone(config: Config, table: str) -> None:
    """Raise ValueError for options that mean nothing to who makes a table of the README."""
    own = Config(leaderboard=table == "leaderboard", ratings=table == "ratings", processes=config.processes)
    if config != own:
        raise ValueError(f"--{table} has players and games of its own; of the other options it takes --processes")


def _check(config: Config) -> None:
    """Raise ValueError for what cannot be played or written, before anything is."""
    if config.versus:
        _check_contests(config)
    elif config.seats != Config.seats:
        raise ValueError(f"--seats {config.seats} is about tables; name the players behind --versus, or leave it out")
    elif not config.names:
        raise ValueError("no player is named; for example: evaluate.py greedy turn_greedy")
    elif twice := [name for name in config.names if config.names.count(name) > 1]:
        raise ValueError(f"player {twice[0]!r} is named twice; name every player once")
    if config.value_suite:
        _check_suite(config)
    for option in ("games", "processes"):
        if getattr(config, option) < 1:
            raise ValueError(f"--{option} {getattr(config, option)} is not at least 1")
    hash_words(config.seed)  # refuses what is no seed
    if _is_exact(config) and not config.optimum:
        option = "--exact" if config.exact else "--distribution" if config.distribution else "--exact-networks"
        raise ValueError(f"{option} measures against the optimum; leave out --no-optimum")
    if config.distribution and config.json is None and config.plots is None:
        raise ValueError("--distribution goes into the report and a plot; add --json FILE or --plots DIR")
    if config.json is not None:
        check_writable(config.json, folder=False)
    for folder in (config.plots, config.exact_networks):
        if folder is not None:
            check_writable(folder, folder=True)


def _is_exact(config: Config) -> bool:
    return config.exact or config.distribution or config.exact_networks is not None


def _check_contests(config: Config) -> None:
    """Raise ValueError for what is not to be had under --versus."""
    if config.names:
        raise ValueError(f"player {config.names[0]!r} stands before --versus; name all players behind it")
    if not 2 <= config.seats <= MOST_PLAYERS:
        raise ValueError(f"--seats {config.seats} is not one of 2 to {MOST_PLAYERS}")
    if len(config.versus) < config.seats:
        raise ValueError(f"--versus names {len(config.versus)} player(s) for {config.seats} seats; name more")
    if config.plots is not None and len(set(config.versus)) == 1:
        raise ValueError(f"--plots shows who wins against whom, and {config.versus[0]!r} is alone; leave it out")
    if _is_exact(config):
        option = "--exact" if config.exact else "--distribution" if config.distribution else "--exact-networks"
        raise ValueError(f"{option} is about the solitaire game; leave it out, or leave out --versus")


def _check_seats(config: Config, players: dict[str, Player]) -> None:
    """Raise ValueError for a network that has learned a match of another number of players."""
    seats = config.seats if config.versus else 1
    for name, player in players.items():
        if (known := getattr(player, "num_players", 1)) not in (1, seats):
            raise ValueError(
                f"player {name!r} has learned games of {known} players; let it play --versus at such tables"
            )


def _check_suite(config: Config) -> None:
    """Raise ValueError for options that mean nothing to the value suite."""
    if config.rules != Rules():
        raise ValueError("--value-suite has positions of the standard rules; leave out --rules")
    if not config.optimum:
        raise ValueError("--value-suite measures against the optimum; leave out --no-optimum")
    for option in ("versus", "games", "seed", "processes", "exact", "exact_networks", "distribution", "plots"):
        if getattr(config, option) != getattr(Config, option):
            option = option.replace("_", "-")
            raise ValueError(f"--{option} is about games, --value-suite plays none; leave one of them out")
    load()  # or ValueError


def _check_exact(config: Config, players: dict[str, Player]) -> None:
    """Raise ValueError for a player who has no exact value, or one that takes longer than was asked for."""
    if config.exact_networks is not None and all(isinstance(player, TurnPlayer) for player in players.values()):
        raise ValueError("--exact-networks keeps the answers of networks, and nobody here is one; --exact will do")
    for name, player in players.items():
        if isinstance(player, TurnPlayer):
            continue
        if not isinstance(player, AskedPlayer):
            raise ValueError(f"player {name!r} does not say how it chooses, so there is nothing exact to say of it")
        cost = asked.cost(player, config.rules)
        if config.exact_networks is None:
            raise ValueError(
                f"player {name!r} is a network, which has to be asked about {cost}; if it is worth that to you, add "
                "--exact-networks DIR: the answers are kept in DIR, and what is stopped goes on from there"
            )
        if config.distribution and isinstance(player, StochasticPlayer):
            raise ValueError(f"--distribution would have to ask player {name!r} everything anew; leave it out")
        print(f"{name}: {cost}; Ctrl-C is safe, the same command goes on from there", file=sys.stderr)


def _dated(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report with day and versions, for those that are kept."""
    return report | {"date": datetime.now(UTC).date().isoformat(), "versions": package_versions()}


def _write(config: Config, report: dict[str, Any]) -> None:
    """Write the report, if it is asked for."""
    if config.json is not None:
        write_whole(config.json, json.dumps(report, indent=2, allow_nan=False) + "\n")
        print(f"report: {config.json}")


def _draw(folder: Path, figures: dict[str, Any]) -> None:
    """Write pictures by their names: for screens, and for papers."""
    from kismet_env.plots import pdf, png

    for name, figure in figures.items():
        write_whole(folder / f"{name}.png", png(figure))
        write_whole(folder / f"{name}.pdf", pdf(figure))
    print(f"plots: {folder}")


if __name__ == "__main__":
    sys.exit(run(main, Config))
