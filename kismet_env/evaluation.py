"""From players to statistics: games on the same dice, each to its end, and what they say.

    games = play(make("turn_greedy"), 10_000, seed=0, watcher=partial(Regrets, solve()))
    report = summarise({"turn_greedy": games}, seed=0)

Game i of a seed meets the same dice with every player, whatever is played beside it, in one process or in many.
With `Regrets` as watcher the report also says what the players lost against the optimum, and their means without the
luck of the dice.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kismet_env import asked
from kismet_env.actions import actions_of
from kismet_env.batch import Batch, Step
from kismet_env.bots import AskedPlayer, Player, StochasticPlayer, TurnPlayer, make
from kismet_env.bots.player import sample
from kismet_env.cache import kept
from kismet_env.dice import hash_words, mix
from kismet_env.exact import PolicyValue, TurnPolicy, evaluate
from kismet_env.jit import Table, compiled
from kismet_env.observation import Decision, decode
from kismet_env.regret import Judge
from kismet_env.rules import NUM_BOXES, Box, Rules
from kismet_env.solver import Optimum, solve, sources
from kismet_env.tables import tables_of

# The key of a game is hash_words(domain, seed, game): no game of one domain is a game of another.
TRAINING_DICE = 1
"""Domain of the dice that learners learn from."""
SELECTION_DICE = 2
"""Domain of the dice by which the best of several policies is chosen."""
EVALUATION_DICE = 3
"""Domain of the dice of reported results."""
SUITE_DICE = 4
"""Domain of the dice of the games that the positions of `value_suite` are from."""
DATA_DICE = 5
"""Domain of the dice of the games in a `dataset`."""

P = TypeVar("P")

SCHEMA = 1
"""Version of the form of a report."""
CONFIDENCE = 0.95
QUANTILES = (5, 25, 50, 75, 95)
YARDSTICK = "turn_greedy"
"""The player whose regret is the gap that others close."""
_STANDARD_YARDSTICK = 288.5776885795  # its exact mean under the standard rules: python evaluate.py turn_greedy --exact
_CHUNK = 1024  # games side by side: a few megabytes, and about a second between two reports of progress
_RESAMPLES, _RESAMPLES_AT_ONCE = 5_000, 100
_FEWEST_BATCHES = 4_000
_ROUNDING = 1e-12


def game_keys(domain: int, seed: int, games: range | npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
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


class Regrets:
    """A Watcher who holds every decision against the optimum; measures in points, each (G, ...).

    * regret_by_turn (G, 15): what the decisions of each turn gave away;
    * regret_by_box (G, 15): how much of it by filling each box; the rest was lost by what was kept;
    * luck (G,): what chance brought more, or less, than was to be expected.

    In every game: final score = value of the start + luck - sum of regret by turn. The regret of a stochastic player
    is what he was to be expected to lose, over his probabilities, and how his lots fell is luck. A game that is cut
    off charges its last, illegal action with all that was still to come.
    """

    def __init__(self, optimum: Optimum, start: Decision) -> None:
        count = len(start.filled)
        self._judge = Judge(optimum, _KEEPS, count)
        self._luck = self._judge.begin(np.arange(count), start)
        self._by_turn = np.zeros((count, NUM_BOXES))
        self._by_box = np.zeros((count, NUM_BOXES))

    def watch(self, moves: Moves) -> None:
        """Judge the next moves."""
        games, rows = moves.games, np.arange(len(moves.games))
        values = self._judge.values[games]
        judgement = self._judge.follow(games, moves.actions, moves.after, moves.over)
        best = values.max(1)
        cut_off = moves.over & (values[rows, moves.actions] == -np.inf)
        lost = np.where(cut_off, best, judgement.regret)  # by what was done
        box = moves.actions - _KEEPS.num_rolls
        by_box = np.where(box[:, None] == np.arange(NUM_BOXES), lost[:, None], 0.0)
        regret = lost
        if moves.probabilities is not None:
            losses = np.where(values > -np.inf, best[:, None] - values, 0.0)
            losses[rows[cut_off], moves.actions[cut_off]] = best[cut_off]
            shares = moves.probabilities * losses
            by_box, regret = shares[:, _KEEPS.num_rolls :], shares.sum(1)
        turn = (moves.before.filled[:, None] >> np.arange(NUM_BOXES) & 1).sum(1)
        self._by_turn[games, turn] += regret
        self._by_box[games] += by_box
        self._luck[games] += judgement.luck + regret - lost

    def measures(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is named above."""
        return {"luck": self._luck, "regret_by_turn": self._by_turn, "regret_by_box": self._by_box}


_KEEPS = actions_of("keeps")


def play(
    player: Player,
    games: int,
    *,
    seed: int,
    rules: Rules | Mapping[str, Any] | str | None = None,
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
    for part in map_parts(play_part, parts, processes):
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


def map_parts(play_part: Callable[[range], P], parts: list[range], processes: int) -> Iterable[P]:
    """Yield what `play_part` makes of every part, in order, in as many processes as there is use for."""
    processes = min(processes, len(parts))
    if processes == 1:
        yield from map(play_part, parts)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads, such as torch's, may hang
    pool = ProcessPoolExecutor(processes, context, _end_with_parent)
    try:
        with _interrupts_ignored():
            job = pickle.dumps(play_part)
            done = deque(pool.submit(_play_in_worker, job, part) for part in parts)
        while done:  # and keep nothing that was given away
            yield done.popleft().result()
    except BaseException:  # do not wait for games that nobody will look at
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown()


def _end_with_parent() -> None:
    """Let this worker end when its parent was killed; else it would wait for the next games for ever."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _play_in_worker(job: bytes, games: range) -> Any:
    return _unpickled(job)(games)


@lru_cache(maxsize=1)
def _unpickled(job: bytes) -> Callable[[range], Any]:
    """Return the same player at every call, who may have learned something by heart from earlier games."""
    play_part: Callable[[range], Any] = pickle.loads(job)
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


class Round(NamedTuple):
    """One action in each of the n games of a batch that go on."""

    games: npt.NDArray[np.int64]  # (n,): their rows in the batch
    before: Step  # what the player saw
    probabilities: npt.NDArray[np.float64] | None  # (n, 225): those of a stochastic player, where they are asked for
    actions: npt.NDArray[np.int64]  # (n,)
    after: Step  # what came of it
    over: npt.NDArray[np.bool_]  # (n,): the game has ended or was cut off


def rounds(player: Player, batch: Batch, start: Step, *, with_probabilities: bool = True) -> Iterator[Round]:
    """Let `player` play all solitaire games of a `batch` from their `start` to their ends; yield every round."""
    games, before = batch.all_rows, start
    while games.size:
        u, probabilities = batch.choice_shares(games), None
        if with_probabilities and isinstance(player, StochasticPlayer):
            probabilities = player.probabilities(before.observations, before.masks)
            actions = sample(probabilities, u)
        else:
            actions = player.act(before.observations, before.masks, u)
        after = batch.step(actions, only=games)
        over = after.terminated | after.truncated
        yield Round(games, before, probabilities, actions, after, over)
        games, before = games[~over], Step._make(array[~over] for array in after)


def _play_part(
    player: Player, rules: Rules, domain: int, seed: int, watcher: Callable[[Decision], Watcher] | None, games: range
) -> Games:
    """Play some games side by side."""
    batch = Batch(len(games), rules=rules)
    start = batch.deal_keys(game_keys(domain, seed, games))
    decisions = np.zeros(len(games), np.int64)
    watching = watcher(decode(start.observations)) if watcher else None
    for played in rounds(player, batch, start, with_probabilities=watching is not None):
        decisions[played.games] += 1
        if watching:
            before, after = decode(played.before.observations), decode(played.after.observations)
            watching.watch(Moves(played.games, before, played.probabilities, played.actions, after, played.over))
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


def bootstrap_interval(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Return the BCa bootstrap 95 % interval of the mean of independent `values` (n, ...), which may be skewed.

    Low and high ends, (...) each; None for fewer than two values. What is always the same, but for rounding, has no
    width. Of many thousand values means of a few each are drawn, which leaves the mean, its spread and the correction
    for skew what they are, so that any number takes no longer. The same values have the same interval, whoever asks.
    """
    from scipy import stats

    if len(values) < 2:
        return None
    mean = values.mean(0)
    size = max(1, len(values) // _FEWEST_BATCHES)
    batches = values[: len(values) // size * size].reshape(-1, size, *values.shape[1:]).mean(1)
    low, high = mean.copy().reshape(-1), mean.copy().reshape(-1)
    columns = batches.reshape(len(batches), -1).T
    vary = np.ptp(columns, axis=1) > _ROUNDING
    if vary.any():
        columns = columns[vary]
        interval = stats.bootstrap(
            (columns,),
            np.mean,
            axis=1,
            n_resamples=_RESAMPLES,
            batch=_RESAMPLES_AT_ONCE,
            confidence_level=CONFIDENCE,
            rng=np.random.default_rng(0),
        ).confidence_interval
        left_over = mean.reshape(-1)[vary] - columns.mean(1)  # the last values, too few for another batch
        low[vary], high[vary] = interval.low + left_over, interval.high + left_over
    return low.reshape(mean.shape), high.reshape(mean.shape)


def rate_interval(hits: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the rate of `hits` (n,)."""
    from scipy import stats

    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def exact(
    player: Player,
    rules: Rules | Mapping[str, Any] | str | None = None,
    report: Callable[[float], None] = lambda share: None,
    *,
    folder: Path | None = None,
) -> PolicyValue:
    """Return what a `player` is worth under `rules` without playing a game; see `kismet_env.exact`.

    Takes one to two minutes of a core; `report` hears the share done. A network has to be asked about every decision,
    which takes hours (`asked.cost`) and a `folder` in which the answers are kept, so that the work can be broken off
    and taken up again; see `asked.value`. Raises ValueError for it without one, and for a player who neither says how
    he chooses (`turn_policy`) nor promises to be the same whenever he is asked (`fingerprint`).
    """
    if isinstance(player, TurnPlayer):
        return evaluate(player.turn_policy(), Rules.of(rules), report)
    if not isinstance(player, AskedPlayer):
        raise ValueError(f"{type(player).__name__} has no turn_policy(), so there is no exact value of it")
    if folder is None:
        raise ValueError(f"{type(player).__name__} has to be asked about every decision; give a folder for the answers")
    return asked.value(player, Rules.of(rules), report, folder=folder)


def transfer(
    own: Rules,
    rules: Rules,
    report: Callable[[float], None] = lambda share: None,
    *,
    closed: int = 0,
) -> PolicyValue:
    """Return what the policy that is optimal under its `own` rules is worth under other `rules`, exactly.

    It sees its whole card, Basic totals up to the higher of the two top tiers, and knows what is legal; what filling a
    box is worth, then and for the rest of the game, it judges by its own rules. `closed`: see PolicyValue. Raises
    ValueError for rules that mean different things by a second Kismet: their cards do not tell the same.
    """
    if own.second_kismet != rules.second_kismet:
        raise ValueError(f"second_kismet is {own.second_kismet!r} here and {rules.second_kismet!r} there")
    tables = tables_of(rules).copy()
    tables["basic_cap"] = max(tables["basic_cap"][0], tables_of(own)["basic_cap"][0])
    return PolicyValue(TurnPolicy("best", write_worths=solve(own).write_worths), tables, report, closed=closed)


def yardstick(
    rules: Rules | Mapping[str, Any] | str | None = None, report: Callable[[float], None] = lambda share: None
) -> float:
    """Return the exact mean of the player called YARDSTICK, in points; worked out once and kept in the user's cache."""
    alone = replace(Rules.of(rules), second_kismet_penalty=True)  # solitaire knows no penalty
    if alone == Rules():
        return _STANDARD_YARDSTICK
    about = {"sources": sources(f"{YARDSTICK}.py"), "mean of": YARDSTICK, "rules": json.dumps(asdict(alone))}
    mean = kept("yardstick", about, lambda: np.array([exact(make(YARDSTICK, alone), alone, report).expected_score]))
    return float(mean[0])


def summarise(
    results: Mapping[str, Games],
    *,
    seed: int,
    rules: Rules | Mapping[str, Any] | str | None = None,
    exact_values: Mapping[str, PolicyValue] | None = None,
    distributions: Mapping[str, npt.NDArray[np.float64]] | None = None,
) -> dict[str, Any]:
    """Return the report on players by name, all of whom have played the same games of `seed`; ready for JSON.

    Means and points are in points, rates are shares of games, intervals cover with 95 %. What needs the optimum of
    the game is None for players who were not watched by `Regrets`, and so is what one game cannot say.

    Args:
        results: the games of each player.
        seed: that of the games.
        rules: those of the games.
        exact_values: what `exact` says of players, by their names. Where it is known, the share of the gap closed and
            the percent of the optimum are those of the exact mean, else of the mean without luck.
        distributions: the exact probabilities of each total, from PolicyValue.distribution, by names as well.

    The first report on watched players under some rules works out the spread of the optimum and the yardstick, half a
    minute each, and keeps them in the user's cache. Raises ValueError for players with different numbers of games.
    """
    counts = {name: len(games.totals) for name, games in results.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"players have played different numbers of games: {counts}; compare them on the same ones")
    rules, exact_values = Rules.of(rules), exact_values or {}
    knows_optimum = exact_values or any(_regret_by_turn(games) is not None for games in results.values())
    optimum = solve(rules) if knows_optimum else None
    agents = [_agent(name, games, rules) for name, games in results.items()]
    for agent, (name, games) in zip(agents, results.items(), strict=True):
        if optimum:
            _add_truth(agent, games, optimum, exact_values.get(name))
        if distributions and name in distributions:
            agent["exact_quantiles"] = _quantiles(distributions[name])
            agent["exact_distribution"] = distributions[name].tolist()
    return {
        "schema": SCHEMA,
        "rules": asdict(rules),
        "seed": seed,
        "games": next(iter(counts.values())),
        "optimum": {
            "mean": optimum.expected_score if optimum else None,
            "sd": optimum.score_sd if optimum else None,
        },
        "agents": agents,
        "paired": [_pair(a, b, results[a], results[b]) for a, b in combinations(results, 2)],
    }


def _agent(name: str, games: Games, rules: Rules) -> dict[str, Any]:
    """Return what the games alone say of a player; what needs the optimum is None."""
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
        "exact_sd": None,
        "exact_quantiles": None,
        "exact_distribution": None,
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


def _add_truth(agent: dict[str, Any], games: Games, optimum: Optimum, exact_value: PolicyValue | None) -> None:
    """Put down what the optimum says of a player who was watched or whose exact value is known."""
    best, mean = optimum.expected_score, None
    by_turn = _regret_by_turn(games)
    if by_turn is not None:
        regret, by_box = by_turn.sum(1), games.measures["regret_by_box"].mean(0)
        interval, mean = bootstrap_interval(regret), best - float(regret.mean())
        agent |= {
            "regret_per_game": float(regret.mean()),
            "luck_adjusted_mean": mean,
            "regret_by": {"keep": float(regret.mean() - by_box.sum()), "box": float(by_box.sum())},
            "regret_by_turn": by_turn.mean(0).tolist(),
        }
        if interval:
            low, high = map(float, interval)
            agent |= {"regret_ci95": (low, high), "luck_adjusted_ci95": (best - high, best - low)}
        for box in Box:
            agent["boxes"][box.name]["regret"] = float(by_box[box])
    if exact_value:
        agent["exact_mean"] = mean = exact_value.expected_score
        agent["exact_sd"] = exact_value.score_sd
    if mean is not None:
        agent["gap_closed"] = 1 - (best - mean) / (best - yardstick(optimum.rules))
        agent["percent_of_optimum"] = 100 * mean / best


def _regret_by_turn(games: Games) -> npt.NDArray[np.float64] | None:
    return games.measures.get("regret_by_turn")


def _pair(a: str, b: str, games_of_a: Games, games_of_b: Games) -> dict[str, Any]:
    """Return the comparison of two players on the same dice: by how many points `a` is ahead, game by game."""
    differences = games_of_a.totals - games_of_b.totals
    lost_by_a, lost_by_b = _regret_by_turn(games_of_a), _regret_by_turn(games_of_b)
    ahead = None if lost_by_a is None or lost_by_b is None else (lost_by_b - lost_by_a).sum(1)
    interval = None if ahead is None else bootstrap_interval(ahead)
    return {
        "a": a,
        "b": b,
        "difference": float(differences.mean()),
        "ci95": mean_interval(differences),
        "sd": _sd(differences),
        "luck_adjusted_difference": None if ahead is None else float(ahead.mean()),
        "luck_adjusted_ci95": interval and tuple(map(float, interval)),
        "a_higher": float((differences > 0).mean()),
        "equal": float((differences == 0).mean()),
    }


def _quantiles(distribution: npt.NDArray[np.float64]) -> dict[str, int]:
    """Return, for each of QUANTILES, the least total that is not exceeded in so many games of a hundred."""
    cumulated = distribution.cumsum()
    return {str(percent): int(np.searchsorted(cumulated, percent / 100)) for percent in QUANTILES}


def _sd(values: npt.NDArray[Any]) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None
