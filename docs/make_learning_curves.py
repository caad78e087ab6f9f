"""Draws learning curves against the optimum: python docs/make_learning_curves.py FILE.png NAME=RUN...

Each RUN is a folder of train.py under the standard rules; runs of the same name are the seeds of one learner.
Selection scores are drawn as regret, points a game short of the optimum, over steps and over minutes of the
processor, on the clock where an older run has counted no others; of several seeds the mean and, as a band, the lowest
and the highest. Where all runs of a name have been judged, `evaluate.py policy:RUN/policy.safetensors --json
RUN/evaluation.json`, what they lose in each turn stands beside it.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from kismet_env.command_line import write_whole
from kismet_env.evaluation import YARDSTICK, yardstick
from kismet_env.plots import paper, png
from kismet_env.rules import NUM_BOXES
from kismet_env.solver import solve


def main(arguments: list[str]) -> None:
    """Draw the runs into the file."""
    file, *named = arguments
    runs: dict[str, list[Path]] = {}
    for name, run in (each.split("=", 1) for each in named):
        runs.setdefault(name, []).append(Path(run))
    write_whole(Path(file), png(_curves(runs)))


def curve_of(run: Path) -> list[dict[str, str]]:
    """Return the rows of a run's curve, one for every update."""
    with (run / "curve.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def scored(runs: Sequence[Path], *columns: str) -> tuple[np.ndarray, ...]:
    """Return the steps (n,) at which all runs have been scored, and what stands in their `columns` there, (runs, n)."""
    curves = [{int(row["steps"]): row for row in curve_of(run) if row["selection_score"]} for run in runs]
    steps = sorted(set.intersection(*map(set, curves)))
    return np.array(steps), *(
        np.array([[float(rows[step][column]) for step in steps] for rows in curves]) for column in columns
    )


def draw_seeds(axes: Axes, x: Any, values: np.ndarray, **style: Any) -> None:
    """Draw the mean of values (runs, n) over x (n,), and a band from the lowest run to the highest."""
    (line,) = axes.plot(x, values.mean(0), linewidth=1.6, **style)
    axes.fill_between(x, values.min(0), values.max(0), color=line.get_color(), alpha=0.25, linewidth=0)


@paper
def _curves(named: dict[str, list[Path]]) -> Figure:
    optimum = solve(progress=True).expected_score
    judged = {name: runs for name, runs in named.items() if all(_judgement(run).exists() for run in runs)}
    counted = all("processor_minutes" in curve_of(run)[0] for runs in named.values() for run in runs)
    clock = "processor_minutes" if counted else "minutes"
    figure = Figure(figsize=(12 if judged else 9, 3.6), layout="constrained")
    by_steps, by_minutes, *by_turn = figure.subplots(1, 3 if judged else 2)
    by_minutes.sharey(by_steps)
    styles = {name: {"color": f"C{index}", "marker": "o", "markersize": 3} for index, name in enumerate(named)}
    for name, runs in named.items():
        steps, scores, minutes = scored(runs, "selection_score", clock)
        draw_seeds(by_steps, steps / 1e6, optimum - scores, label=name, **styles[name])
        draw_seeds(by_minutes, minutes.mean(0), optimum - scores, label=name, **styles[name])
    behind = optimum - yardstick()
    for axes in (by_steps, by_minutes):
        axes.axhline(behind, color="0.5", linewidth=1, linestyle=":")
    where = by_steps.get_xlim()[0], behind
    by_steps.annotate(YARDSTICK, where, xytext=(3, -10), textcoords="offset points", color="0.3", size=8)
    by_steps.set(yscale="log", xlabel="steps (millions)", ylabel="regret (points a game)", title="Short of the optimum")
    by_minutes.set_xlabel("minutes of the processor" if counted else "minutes on the clock")
    figure.legend(*by_steps.get_legend_handles_labels(), loc="outside right center")
    for axes in by_turn:
        for name, runs in judged.items():
            draw_seeds(axes, range(1, NUM_BOXES + 1), np.array([_regret_by_turn(run) for run in runs]), **styles[name])
        axes.set_xticks(range(1, NUM_BOXES + 1, 2))
        axes.set(yscale="log", xlabel="turn", ylabel="regret (points a turn)", title="At the end of the run")
    for axes in figure.axes:
        axes.grid(axis="y")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    return figure


def _judgement(run: Path) -> Path:
    return run / "evaluation.json"


def _regret_by_turn(run: Path) -> list[float]:
    (agent,) = json.loads(_judgement(run).read_text())["agents"]
    return list(agent["regret_by_turn"])


if __name__ == "__main__":
    main(sys.argv[1:])
