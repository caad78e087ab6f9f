"""How many steps a second one environment makes through `gym.make`, masks included, on one core.

The games are played once to know legal actions, then played again under the clock (CPU time): the same seed gives the
same games, so nothing but the environment is timed.
"""

from time import process_time
from typing import Any

import gymnasium as gym
import numpy as np
from machine import machine

STEPS = 100_000
TARGET = 60_000
ID = "kismet_env:kismet_env/Kismet-v0"


def random_legal_actions(env: gym.Env[Any, Any], count: int) -> list[int]:
    """Return legal actions of games of seed 0, played one after the other."""
    rng, actions = np.random.default_rng(0), []
    _, info = env.reset(seed=0)
    for _ in range(count):
        actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        _, _, terminated, _, info = env.step(actions[-1])
        if terminated:
            _, info = env.reset()
    return actions


def steps_a_second(env: gym.Env[Any, Any], actions: list[int]) -> float:
    """Return how many of the steps, with the resets between them, are made in a second of CPU time."""
    start = process_time()
    env.reset(seed=0)
    for action in actions:
        _, _, terminated, _, info = env.step(action)
        info["action_mask"]
        if terminated:
            env.reset()
    return len(actions) / (process_time() - start)


def main() -> None:
    """Measure and print."""
    print(machine())
    print(f"\n{'steps a CPU second':50}{'measured':>12}{'target':>12}")
    for name, options in {
        "features, keeps": {},
        "features, holds": {"actions": "holds"},
        "dict": {"observation": "dict"},
    }.items():
        env = gym.make(ID, **options)
        actions = random_legal_actions(env, STEPS)
        through, bare = (max(steps_a_second(each, actions) for _ in range(3)) for each in (env, env.unwrapped))
        print(f"{f'gym.make, {name}':50}{through:>12,.0f}{TARGET if not options else '':>12}")
        print(f"{'  without its wrappers':50}{bare:>12,.0f}")


if __name__ == "__main__":
    main()
