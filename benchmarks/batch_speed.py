"""How many steps a second the native batch makes on one core, and how many times that is of Gymnasium's own vector.

Random legal play, chosen by a compiled helper outside the timing. What is timed is `step` alone, in CPU time: the
game, fresh observations, masks, infos and automatic resets of every row.
"""

from time import process_time

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from machine import machine

from kismet_env.jit import Table, compiled

NUM_ENVS = 4_096
NUM_SYNC = 256
SECONDS = 4.0  # of CPU time for each row of the table
TARGET, TARGET_TIMES = 5_000_000, 30


@compiled
def choose(masks: Table, shares: Table, actions: Table) -> None:
    """Write a random legal action of each row of `masks` (N, A) into `actions` (N,); `shares` (N,) are uniform."""
    for row in range(len(masks)):
        legal = 0
        for action in range(masks.shape[1]):
            legal += masks[row, action]
        left = int(shares[row] * legal)
        for action in range(masks.shape[1]):
            left -= masks[row, action]
            if left < 0:
                actions[row] = action
                break


def steps_a_second(env: gym.vector.VectorEnv, seconds: float = SECONDS) -> float:
    """Return how many steps of rows the environment makes in a second of CPU time."""
    rng = np.random.default_rng(0)
    actions: npt.NDArray[np.int64] = np.zeros(env.num_envs, np.int64)
    _, infos = env.reset(seed=0)
    steps, spent, warm = 0, 0.0, 50
    while spent < seconds:
        choose(infos["action_mask"], rng.random(env.num_envs), actions)
        start = process_time()
        *_, infos = env.step(actions)
        took = process_time() - start
        if warm > 0:  # compiling, and the first games in step with each other
            warm -= 1
            continue
        spent += took
        steps += env.num_envs
    return steps / spent


def main() -> None:
    """Measure and print."""
    print(machine())
    kismet = "kismet_env:kismet_env/Kismet-v0"
    native = {
        name: steps_a_second(gym.make_vec(kismet, num_envs=NUM_ENVS, **options))
        for name, options in {
            "features, keeps": {},
            "raw, keeps": {"observation": "raw"},
            "features, holds": {"actions": "holds"},
            "dict, holds": {"observation": "dict", "actions": "holds"},
        }.items()
    }
    sync = steps_a_second(gym.make_vec(kismet, num_envs=NUM_SYNC, vectorization_mode="sync"))
    fastest = native["features, keeps"]

    print(f"\n{'steps a CPU second':50}{'measured':>12}{'target':>12}")
    for name, speed in native.items():
        print(f"{f'native, {NUM_ENVS:,} rows, {name}':50}{speed:>12,.0f}{TARGET if speed == fastest else '':>12}")
    print(f"{f'vectorization_mode=sync, {NUM_SYNC} rows, features, keeps':50}{sync:>12,.0f}")
    print(f"{'native over sync':50}{fastest / sync:>11.0f}x{f'{TARGET_TIMES}x':>12}")


if __name__ == "__main__":
    main()
