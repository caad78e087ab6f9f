"""How long a fresh process takes to import the package and to make its first step, with and without compiled code.

Wall time is what a user waits; on a busy machine the CPU time beside it says more.
"""

import os
import resource
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter

from machine import machine

NOTHING = "pass"
IMPORT = "import sys, kismet_env; assert 'torch' not in sys.modules"
FIRST_STEP = "import gymnasium as gym; e = gym.make('kismet_env:kismet_env/Kismet-v0'); e.reset(seed=0); e.step(0)"


def seconds(code: str, cache: str) -> tuple[float, float]:
    """Return wall and CPU time of a fresh interpreter that runs `code` with its compiled code in `cache`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"KISMET_CACHE_DIR": cache}, check=True)
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median_of_five(code: str, cache: str) -> tuple[float, float]:
    """Return the median wall and CPU time of five processes."""
    times = [seconds(code, cache) for _ in range(5)]
    return median(wall for wall, _ in times), median(cpu for _, cpu in times)


def main() -> None:
    """Measure and print."""
    print(machine())
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(FIRST_STEP, cache)
        rows = [
            ("an interpreter that does nothing", median_of_five(NOTHING, cache), ""),
            ("import kismet_env, without torch", median_of_five(IMPORT, cache), "1.5"),
            ("first step, nothing compiled yet", cold, "10"),
            ("first step, compiled before", median_of_five(FIRST_STEP, cache), "2"),
        ]
    print(f"\n{'seconds, interpreter included':40}{'wall':>10}{'CPU':>10}{'target':>10}")
    for name, (wall, cpu), target in rows:
        print(f"{name:40}{wall:>10.2f}{cpu:>10.2f}{target:>10}")


if __name__ == "__main__":
    main()
