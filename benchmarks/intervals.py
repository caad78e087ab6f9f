"""How often the intervals of evaluate.py hold the exact mean of turn_greedy, and how narrow they are without luck.

One long evaluation is cut into many short ones; each has an interval of 95 %.
"""

import os
from functools import partial
from time import perf_counter

import numpy as np
from machine import machine

from kismet_env.bots import make
from kismet_env.evaluation import YARDSTICK, Regrets, bootstrap_interval, mean_interval, play, rate_interval, yardstick
from kismet_env.solver import solve

GAMES, SEED = 200_000, 0


def main() -> None:
    """Measure and print."""
    print(machine())
    optimum, exact = solve(), yardstick()
    begun = perf_counter()
    games = play(make(YARDSTICK), GAMES, seed=SEED, processes=os.cpu_count() or 1, watcher=partial(Regrets, optimum))
    without_luck = optimum.expected_score - games.measures["regret_by_turn"].sum(1)
    print(f"{GAMES:,} games of seed {SEED} in {perf_counter() - begun:.0f} s; exact mean {exact:.4f}\n")
    scores = {"score": games.totals, "score without luck": without_luck}
    print(f"{'':24}{'mean':>10}{'SD':>8}")
    for name, values in scores.items():
        print(f"{name:24}{values.mean():>10.3f}{values.std(ddof=1):>8.2f}")
    print(f"without luck an interval is {games.totals.std() / without_luck.std():.2f} times narrower\n")
    print(f"{'share of intervals that hold the exact mean':48}{'games':>8}{'intervals':>11}{'rate':>8}")
    for size in (100, 1_000):
        for name, values in scores.items():
            samples = values.reshape(-1, size)
            if name == "score":
                low, high = np.array([mean_interval(sample) for sample in samples]).T
            else:
                low, high = bootstrap_interval(samples.T) or (samples.T[0], samples.T[0])
            held = (low <= exact) & (exact <= high)
            lowest, highest = rate_interval(held)
            kind = "Student's" if name == "score" else "bootstrap"
            print(
                f"{f'{name}, {kind}':48}{size:>8,}{len(held):>11,}{held.mean():>8.1%} ({lowest:.1%} to {highest:.1%})"
            )


if __name__ == "__main__":
    main()
