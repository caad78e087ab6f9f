"""How long the exact optimum takes: to solve, to load, and to judge decisions; beside what is asked for.

Compiling is not counted: everything runs once on a small game before.
"""

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import numpy as np
from machine import machine

from kismet_env.batch import Batch
from kismet_env.cards import CardNumbers
from kismet_env.observation import Decision, decode
from kismet_env.rules import Box, Rules
from kismet_env.solver import Optimum, cached_values, solve_values
from kismet_env.tables import tables_of

RULES = Rules()
DECISIONS = 100_000
SIDE_BY_SIDE = 1_024


def random_decisions(count: int) -> Decision:
    """Return `count` decisions of games in which anything legal is played, in random order."""
    batch, rng, found, number = Batch(2_000), np.random.default_rng(0), [], 0
    seen = batch.deal_keys(rng.integers(2**63, size=batch.num_games, dtype=np.uint64))
    while number < count:
        found.append(seen.observations)
        number += batch.num_games
        seen = batch.step((seen.masks * rng.random(seen.masks.shape)).argmax(1))
        if batch.state.games["over"].any():
            seen = batch.deal_keys(rng.integers(2**63, size=batch.num_games, dtype=np.uint64))
    return decode(rng.permutation(np.concatenate(found))[:count])


def seconds(task: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
    """Return the median time of five runs."""
    times = []
    for _ in range(5):
        start = clock()
        task()
        times.append(clock() - start)
    return median(times)


def main() -> None:
    """Measure and print."""
    print(machine())
    decisions = random_decisions(DECISIONS)
    tables = tables_of(RULES)
    solve_values(tables, closed=2**15 - 1 - (1 << Box.FLUSH))
    Optimum(RULES, np.zeros(CardNumbers(tables).size)).best_action(*(column[:9] for column in decisions))

    with tempfile.TemporaryDirectory() as folder:
        os.environ["KISMET_CACHE_DIR"] = folder
        wall, cpu = perf_counter(), process_time()
        cached_values(RULES)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        load = seconds(lambda: Optimum(RULES, cached_values(RULES)), perf_counter)
        optimum = Optimum(RULES, cached_values(RULES))

    at_once = DECISIONS / seconds(lambda: optimum.action_values(*decisions))
    parts = [tuple(column[i : i + SIDE_BY_SIDE] for column in decisions) for i in range(0, 20_480, SIDE_BY_SIDE)]
    by_parts = 20_480 / seconds(lambda: [optimum.action_values(*part) for part in parts])

    print(f"expected score {optimum.expected_score:.10f}\n")
    rows = [
        ("solve and keep, seconds", f"{wall:.1f}", "12"),
        (f"  CPU seconds, in {os.cpu_count()} threads", f"{cpu:.1f}", ""),
        ("  peak memory of the process, GB", f"{memory / 1e9:.2f}", "1"),
        ("load from the cache, seconds", f"{load:.3f}", "0.3"),
        (f"action values a CPU second, {DECISIONS:,} decisions at once", f"{at_once:,.0f}", "100,000"),
        (f"  {SIDE_BY_SIDE:,} at a time", f"{by_parts:,.0f}", "100,000"),
    ]
    print(f"{'':55}{'measured':>10}{'target':>10}")
    for name, value, target in rows:
        print(f"{name:55}{value:>10}{target:>10}")


if __name__ == "__main__":
    main()
