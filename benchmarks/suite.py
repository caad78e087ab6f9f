"""What it costs to play one set of rules as if it were another: exact regret, in points a game.

The policy of each row is optimal under the rules of its name; each column is a game it plays, see
`kismet_env.evaluation.transfer`. A number takes 26 seconds of processor time, shared by the cores; 30 numbers are to be
found. Names of rules restrict the table to these: python benchmarks/suite.py standard strict
"""

import sys

from machine import machine

from kismet_env.evaluation import transfer
from kismet_env.rules import SUITE, Rules
from kismet_env.solver import solve

NAMED = {"standard": Rules(), **SUITE}


def main(names: list[str]) -> None:
    """Work out and print."""
    print(machine())
    print("\n" + " " * 18 + "".join(f"{name:>14}" for name in names))
    best = [solve(NAMED[name], progress=True).expected_score for name in names]
    print(f"{'expected score':18}" + "".join(f"{score:14.3f}" for score in best) + "\n")
    for own in names:
        print(f"{own:18}", end="")
        for name, score in zip(names, best, strict=True):
            regret = 0.0 if name == own else score - transfer(NAMED[own], NAMED[name]).expected_score
            print(f"{regret:14.3f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMED))
