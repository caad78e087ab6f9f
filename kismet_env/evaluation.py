"""From players to statistics: games on the same dice, each to its end, and what they say.

    games = play(make("turn_greedy"), 10_000, seed=0)
    report = summarise({"turn_greedy": games}, seed=0)

Game i of a seed meets the same dice with every player, whatever is played beside it, in one process or in many.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch
from kismet_env.bots import Player, StochasticPlayer
from kismet_env.bots.player import sample
from kismet_env.dice import hash_words, mix
from kismet_env.jit import Table, compiled
from kismet_env.observation import Decision, decode
from kismet_env.rules import Box, Rules

# The key of a game is hash_words(domain, seed, game): no game of one domain is a game of another.
TRAINING_DICE = 1
"""Domain of the dice that learners learn from."""
SELECTION_DICE = 2
"""Domain of the dice by which the best of several policies is chosen."""
EVALUATION_DICE = 3
"""Domain of the dice of reported results."""

SCHEMA = 1
"""Version of the form of a report."""
CONFIDENCE = 0.95
QUANTILES = (5, 25, 50, 75, 95)
_CHUNK = 1024  # games side by side: a few megabytes, and about a second between two reports of progress


def game_keys(domain: int, seed: int, games: range) -> npt.NDArray[np.uint64]:
    """Return the keys hash_words(domain, seed, game) of `games`, (n,) uint64; ValueError for a negative seed."""
    keys = np.array(games, np.uint64)
    _stir_in(hash_words(domain, seed), keys)
    return keys


@compiled
def _stir_in(base: np.uint64, words: Table) -> None:
    for row in range(len(words)):
        words[row] = mix(base, words[row])


class Games(NamedTuple):
    """How G games went."""

    totals: npt.NDArray[np.int64]  # (G,): final scores
    points: npt.NDArray[np.int16]  # (G, 15): points in each box, -1 where a game that was cut off left it open
    bonuses: npt.NDArray[np.int64]  # (G,): bonus of the Basic Section
    illegal: npt.NDArray[np.int64]  # (G,): illegal actions; at the 100th a game is cut off
    decisions: npt.NDArray[np.int64]  # (G,): actions, the illegal ones among them
    measures: dict[str, npt.NDArray[Any]]  # what a Watcher measured, each (G, ...)
    seconds: float  # on the clock


class Moves(NamedTuple):
    """One action in each of n games, as a Watcher sees it."""

    games: npt.NDArray[np.int64]  # (n,): which of the games that are played side by side
    before: Decision  # (n,): what was decided about
    probabilities: npt.NDArray[np.float64] | None  # (n, 225): those of a stochastic player
    actions: npt.NDArray[np.int64]  # (n,)
    after: Decision  # (n,): the next decision; the same one after an illegal action
    over: npt.NDArray[np.bool_]  # (n,): there is no next decision


class Watcher(Protocol):
    """Somebody who looks at every move and measures something of every game."""

    def watch(self, moves: Moves) -> None:
        """Take note of the next moves."""
        ...

    def measures(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was measured, one row for each game."""
        ...


def play(
    player: Player,
    games: int,
    *,
    seed: int,
    rules: Rules | Mapping[str, Any] | None = None,
    domain: int = EVALUATION_DICE,
    processes: int = 1,
    chunk: int = _CHUNK,
    watcher: Callable[[Decision], Watcher] | None = None,
    report: Callable[[int], None] = lambda games_done: None,
) -> Games:
    """Play games 0..`games` - 1 of `seed` to their ends and return them in this order.

    Args:
        player: plays every game, `chunk` of them side by side.
        games: how many, at least 1.
        seed: a whole number from 0 up.
        rules: those of the games; the player has to know them too.
        domain: which kind of dice, so that results and training never share a game.
        processes: how many worker processes; the games are the same for any number. More than one needs a player that
            can be pickled and a main module that can be imported (`if __name__ == "__main__":`).
        chunk: for any number the games are the same, but for networks, whose sums may differ in the last digit.
        watcher: makes, of the first decisions of some games, somebody who looks at all their moves.
        report: called with the number of games done since the last call.

    Raises ValueError for numbers outside these ranges.
    """
    for name, value in (("games", games), ("processes", processes), ("chunk", chunk)):
        if value < 1:
            raise ValueError(f"{name}={value} is not at least 1")
    started = time.perf_counter()
    play_part = partial(_play_part, player, Rules.of(rules), domain, seed, watcher)
    parts = [range(first, min(first + chunk, games)) for first in range(0, games, chunk)]
    done = []
    for part in _map(play_part, parts, processes):
        done.append(part)
        report(len(part.totals))
    return Games(
        totals=np.concatenate([part.totals for part in done]),
        points=np.concatenate([part.points for part in done]),
        bonuses=np.concatenate([part.bonuses for part in done]),
        illegal=np.concatenate([part.illegal for part in done]),
        decisions=np.concatenate([part.decisions for part in done]),
        measures={name: np.concatenate([part.measures[name] for part in done]) for name in done[0].measures},
        seconds=time.perf_counter() - started,
    )


def _map(play_part: Callable[[range], Games], parts: list[range], processes: int) -> Iterable[Games]:
    """Yield the games of every part in order, played in as many processes as there is use for."""
    processes = min(processes, len(parts))
    if processes == 1:
        yield from map(play_part, parts)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads, such as torch's, may hang
    pool = ProcessPoolExecutor(processes, context)
    try:
        with _interrupts_ignored():
            job = pickle.dumps(play_part)
            done = [pool.submit(_play_in_worker, job, part) for part in parts]
        for part in done:
            yield part.result()
    except BaseException:  # do not wait for games that nobody will look at
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown()


def _play_in_worker(job: bytes, games: range) -> Games:
    return _unpickled(job)(games)


@lru_cache(maxsize=1)
def _unpickled(job: bytes) -> Callable[[range], Games]:
    """Return the same player at every call, who may have learned something by heart from earlier games."""
    play_part: Callable[[range], Games] = pickle.loads(job)
    return play_part


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C in the block, and for ever in the processes begun there: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():  # others cannot set a handler
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _play_part(
    player: Player, rules: Rules, domain: int, seed: int, watcher: Callable[[Decision], Watcher] | None, games: range
) -> Games:
    """Play some games side by side."""
    batch = Batch(len(games), rules=rules)
    step = batch.deal_keys(game_keys(domain, seed, games))
    seen, masks = step.observations, step.masks
    decisions = np.zeros(len(games), np.int64)
    going_on = np.arange(len(games))
    watching = watcher(decode(seen)) if watcher else None
    while going_on.size:
        u = batch.choice_shares(going_on)
        probabilities = None
        if watching and isinstance(player, StochasticPlayer):
            probabilities = player.probabilities(seen, masks)
            actions = sample(probabilities, u)
        else:
            actions = player.act(seen, masks, u)
        step = batch.step(actions, only=going_on)
        decisions[going_on] += 1
        over = step.terminated | step.truncated
        if watching:
            watching.watch(Moves(going_on, decode(seen), probabilities, actions, decode(step.observations), over))
        seen, masks, going_on = step.observations[~over], step.masks[~over], going_on[~over]
    cards = batch.state.cards[:, 0]
    totals, points = cards["total"].astype(np.int64), cards["points"]
    bonuses = totals - points.clip(min=0).sum(1)
    illegal = batch.state.games["illegal"].astype(np.int64)
    return Games(totals, points, bonuses, illegal, decisions, watching.measures() if watching else {}, 0.0)


def mean_interval(values: npt.NDArray[Any]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of the mean of independent `values` (n,); None for fewer than two."""
    from scipy import stats  # a second to import, which worker processes need not spend

    if len(values) < 2:
        return None
    error = values.std(ddof=1) / len(values) ** 0.5
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * error
    return float(values.mean() - reach), float(values.mean() + reach)


def rate_interval(hits: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the rate of `hits` (n,)."""
    from scipy import stats

    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def summarise(
    results: Mapping[str, Games], *, seed: int, rules: Rules | Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the report on players by name, all of whom have played the same games of `seed`; ready for JSON.

    Means and points are in points, rates are shares of games, intervals cover with 95 %. What needs the optimum of
    the game is None, and so is what one game cannot say. Raises ValueError for players with different numbers of
    games.
    """
    counts = {name: len(games.totals) for name, games in results.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"players have played different numbers of games: {counts}; compare them on the same ones")
    rules = Rules.of(rules)
    return {
        "schema": SCHEMA,
        "rules": asdict(rules),
        "seed": seed,
        "games": next(iter(counts.values())),
        "optimum": {"mean": None, "sd": None},
        "agents": [_agent(name, games, rules) for name, games in results.items()],
        "paired": [_pair(a, b, results[a].totals - results[b].totals) for a, b in combinations(results, 2)],
    }


def _agent(name: str, games: Games, rules: Rules) -> dict[str, Any]:
    totals = games.totals
    bonuses = [0, *(bonus for _, bonus in rules.bonus_tiers)]
    return {
        "agent": name,
        "mean": float(totals.mean()),
        "ci95": mean_interval(totals),
        "sd": _sd(totals),
        "regret_per_game": None,
        "regret_ci95": None,
        "gap_closed": None,
        "luck_adjusted_mean": None,
        "luck_adjusted_ci95": None,
        "exact_mean": None,
        "percent_of_optimum": None,
        "regret_by": {"keep": None, "box": None},
        "regret_by_turn": None,
        "quantiles": {str(percent): float(np.percentile(totals, percent)) for percent in QUANTILES},
        "bonus_rates": {str(bonus): float((games.bonuses == bonus).mean()) for bonus in bonuses},
        "boxes": {
            box.name: {
                "mean": float(points.clip(min=0).mean()),
                "zero_rate": float((points == 0).mean()),
                "regret": None,
            }
            for box, points in zip(Box, games.points.T, strict=True)
        },
        "illegal_actions": int(games.illegal.sum()),
        "seconds": games.seconds,
    }


def _pair(a: str, b: str, differences: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the comparison of two players on the same dice: by how many points `a` is ahead, game by game."""
    return {
        "a": a,
        "b": b,
        "difference": float(differences.mean()),
        "ci95": mean_interval(differences),
        "sd": _sd(differences),
        "a_higher": float((differences > 0).mean()),
        "equal": float((differences == 0).mean()),
    }


def _sd(values: npt.NDArray[Any]) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None
