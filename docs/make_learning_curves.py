"""Draws learning curves against the optimum: python docs/make_learning_curves.py FILE.png NAME=RUN...

Each RUN is a folder of train.py under the standard rules; its selection scores are drawn as regret, points a game short
of the optimum, over steps and over minutes of the processor, on the clock where an older run has counted no others.
Where `evaluate.py policy:RUN/policy.safetensors --json RUN/evaluation.json` has judged runs, what they lose in each
turn stands beside it.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kismet_env.command_line import write_whole
from kismet_env.evaluation import YARDSTICK, yardstick
from kismet_env.plots import paper, png
from kismet_env.rules import NUM_BOXES
from kismet_env.solver import solve


def main(arguments: list[str]) -> None:
    """Draw the runs into the file."""
    file, *named = arguments
    runs = dict(each.split("=", 1) for each in named)
    write_whole(Path(file), png(_curves({name: Path(run) for name, run in runs.items()})))


@paper
def _curves(runs: dict[str, Path]) -> Figure:
    optimum = solve(progress=True).expected_score
    curves = {name: _scored(run) for name, run in runs.items()}
    judged = {name: path for name, run in runs.items() if (path := run / "evaluation.json").exists()}
    clock = "processor_minutes" if all("processor_minutes" in rows[0] for rows in curves.values()) else "minutes"
    figure = Figure(figsize=(12 if judged else 9, 3.6), layout="constrained")
    by_steps, by_minutes, *by_turn = figure.subplots(1, 3 if judged else 2)
    by_minutes.sharey(by_steps)
    for name, rows in curves.items():
        regrets = [optimum - float(row["selection_score"]) for row in rows]
        _draw(by_steps, [float(row["steps"]) / 1e6 for row in rows], regrets, name)
        _draw(by_minutes, [float(row[clock]) for row in rows], regrets, name)
    behind = optimum - yardstick()
    for axes in (by_steps, by_minutes):
        axes.axhline(behind, color="0.5", linewidth=1, linestyle=":")
    where = by_steps.get_xlim()[0], behind
    by_steps.annotate(YARDSTICK, where, xytext=(3, -10), textcoords="offset points", color="0.3", size=8)
    by_steps.set(yscale="log", xlabel="steps (millions)", ylabel="regret (points a game)", title="Short of the optimum")
    by_minutes.set_xlabel("minutes of the processor" if clock == "processor_minutes" else "minutes on the clock")
    figure.legend(*by_steps.get_legend_handles_labels(), loc="outside right center")
    for axes in by_turn:
        for name, path in judged.items():
            (agent,) = json.loads(path.read_text())["agents"]
            _draw(axes, range(1, NUM_BOXES + 1), agent["regret_by_turn"], name)
        axes.set_xticks(range(1, NUM_BOXES + 1, 2))
        axes.set(yscale="log", xlabel="turn", ylabel="regret (points a turn)", title="At the end of the run")
    return figure


def _scored(run: Path) -> list[dict[str, str]]:
    """Return the rows of the run's curve that have a selection score."""
    with (run / "curve.csv").open(newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["selection_score"]]


def _draw(axes: Axes, x: Sequence[float], regrets: Sequence[float], name: str) -> None:
    axes.plot(x, regrets, "o-", markersize=3, linewidth=1.5, label=name)
    axes.grid(axis="y")


if __name__ == "__main__":
    main(sys.argv[1:])
