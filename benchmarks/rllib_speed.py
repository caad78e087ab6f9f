"""What an update of rllib_ppo takes with 1 and 2 env runners: decisions a second, the learner's share, memory.

`PYTHONPATH=. python benchmarks/rllib_speed.py` where Ray is installed (docs/cluster.md); elsewhere it says so. The
processor time of each process is counted, which a busy machine does not blur; what an update takes on the clock with
N env runners, each with a core of its own, is then

    decisions / (N * decisions a second of one env runner) + seconds of the learner
"""

import resource
import sys
import time
from contextlib import closing
from pathlib import Path

from machine import machine

try:
    from agents.rllib_ppo import Config, Learner, cluster
    from agents.run import Run
except ModuleNotFoundError as missing:
    print(f"not measured: there is no {missing.name} here; docs/cluster.md says how to install Ray and start this")
    sys.exit()

UPDATES = 2  # after a first one


def clocks(_: object) -> tuple[float, float]:
    """Return processor time in seconds and the most memory so far in GB, of the process it runs in."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(config: Config) -> str:
    """Return what updates with these options take, as a line."""
    run = Run(Path("nowhere"), config)  # only for its clock: what is not entered writes nothing
    with cluster(config), closing(Learner(config, run)) as learner:
        learner.round()
        env_runners = learner.algorithm.env_runner_group
        before, learner_before = env_runners.foreach_env_runner(clocks, local_env_runner=False), clocks(None)
        started, steps_before = time.perf_counter(), learner.steps
        for _ in range(UPDATES):
            learner.round()
        seconds, steps = time.perf_counter() - started, learner.steps - steps_before
        after, learner_after = env_runners.foreach_env_runner(clocks, local_env_runner=False), clocks(None)
    played = sum(now - then for (now, _), (then, _) in zip(after, before, strict=True))
    return (
        f"{config.num_env_runners} env runner(s): {steps / seconds:,.0f} decisions a second on the clock; "
        f"{steps / played:,.0f} in a second of processor time of an env runner, "
        f"{(learner_after[0] - learner_before[0]) / UPDATES:.1f} s of the learner for {steps // UPDATES:,}; "
        f"memory of an env runner {max(memory for _, memory in after):.2f} GB, "
        f"of the learner {learner_after[1]:.2f} GB"
    )


def main() -> None:
    """Measure and print."""
    print(machine())
    for count in (1, 2):
        print(measured(Config(num_env_runners=count, threads=1)))


if __name__ == "__main__":
    main()
