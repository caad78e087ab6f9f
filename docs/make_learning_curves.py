"""Draws learning curves against the optimum: python docs/make_learning_curves.py FILE.png NAME=RUN...

Each RUN is a folder of train.py under the standard rules; its selection scores are drawn as regret, points a game short
of the optimum, over steps and over minutes on the clock.
"""

import csv
import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kismet_env.command_line import write_whole
from kismet_env.evaluation import YARDSTICK, yardstick
from kismet_env.plots import paper, png
from kismet_env.solver import solve


def main(arguments: list[str]) -> None:
    """Draw the runs into the file."""
    file, *named = arguments
    runs = dict(each.split("=", 1) for each in named)
    write_whole(Path(file), png(_curves({name: Path(run) for name, run in runs.items()})))


@paper
def _curves(runs: dict[str, Path]) -> Figure:
    optimum = solve(progress=True).expected_score
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    by_steps, by_minutes = figure.subplots(1, 2, sharey=True)
    for name, run in runs.items():
        with (run / "curve.csv").open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["selection_score"]]
        regrets = [optimum - float(row["selection_score"]) for row in rows]
        _draw(by_steps, [float(row["steps"]) / 1e6 for row in rows], regrets, name)
        _draw(by_minutes, [float(row["minutes"]) for row in rows], regrets, name)
    behind = optimum - yardstick()
    for axes in (by_steps, by_minutes):
        axes.axhline(behind, color="0.5", linewidth=1, linestyle=":")
    where = by_steps.get_xlim()[0], behind
    by_steps.annotate(YARDSTICK, where, xytext=(3, -10), textcoords="offset points", color="0.3", size=8)
    by_steps.set(yscale="log", xlabel="steps (millions)", ylabel="regret (points a game)", title="Short of the optimum")
    by_minutes.set_xlabel("minutes on the clock")
    by_minutes.legend()
    return figure


def _draw(axes: Axes, x: list[float], regrets: list[float], name: str) -> None:
    axes.plot(x, regrets, "o-", markersize=3, linewidth=1.5, label=name)
    axes.grid(axis="y")


if __name__ == "__main__":
    main(sys.argv[1:])
