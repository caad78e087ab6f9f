"""How many steps a second a learner makes against built-in players, on one core.

A learner step is one decision of the learner and all that the others play until its next one. As in `batch_speed`:
random legal play, `step` alone is timed, in CPU time.
"""

from batch_speed import steps_a_second
from machine import machine

from kismet_env.versus_env import KismetVersusVectorEnv

MATCHES = [  # opponents, rows, target
    (("turn_greedy",), 4_096, 200_000),
    (("turn_greedy",), 1_024, 200_000),
    (("turn_greedy",), 64, None),
    (("turn_greedy",), 1, None),
    (("turn_greedy",) * 3, 4_096, None),
    (("greedy",), 4_096, None),
    (("random",), 4_096, None),
]
SECONDS = 2.0  # of CPU time for each row of the table


def main() -> None:
    """Measure and print."""
    print(machine())
    print(f"\n{'learner steps a CPU second':50}{'measured':>12}{'target':>12}")
    for opponents, rows, target in MATCHES:
        env = KismetVersusVectorEnv(rows, opponents, autoreset_mode="SameStep")
        what = f"{rows:,} rows against {len(opponents)} x {opponents[0]}"
        print(f"{what:50}{steps_a_second(env, SECONDS):>12,.0f}{f'{target:,}' if target else '':>12}", flush=True)


if __name__ == "__main__":
    main()
