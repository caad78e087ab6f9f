"""Pictures of an evaluation, without a screen: score distributions and boxes, readable in grey."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kismet_env.evaluation import Games, mean_interval, rate_interval
from kismet_env.rules import BOX_TITLES, NUM_BASIC_BOXES, NUM_BOXES

_BIN = 10  # points
_LINES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"
_SPREAD = 0.7  # of the distance between two boxes, for the marks of all players


def _styles(count: int) -> list[dict[str, Any]]:
    """Return a colour, a line and a marker for each player; the colours differ in lightness too."""
    lightness = np.linspace(0.0, 0.8, count)
    return [
        {"color": mpl.colormaps["viridis"](light), "linestyle": _LINES[index % len(_LINES)]}
        for index, light in enumerate(lightness)
    ]


def plot_scores(results: Mapping[str, Games]) -> Figure:
    """Return the distribution of the final scores of every player, with the means and their 95 % intervals."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    highest = max(int(games.totals.max()) for games in results.values())
    edges = np.arange(0, highest + 2 * _BIN, _BIN)
    for (name, games), style in zip(results.items(), _styles(len(results)), strict=True):
        shares = np.histogram(games.totals, edges)[0] / len(games.totals)
        mean, interval = games.totals.mean(), mean_interval(games.totals)
        reach = "" if interval is None else f" ± {(interval[1] - interval[0]) / 2:.1f}"
        axes.stairs(shares, edges, linewidth=1.6, label=f"{name}: mean {mean:.1f}{reach}", **style)
        axes.axvline(mean, linewidth=1.0, **style)
        if interval is not None:
            axes.axvspan(*interval, color=style["color"], alpha=0.25, linewidth=0)
    axes.set_xlabel("final score (points)")
    axes.set_ylabel(f"games per {_BIN} points")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlim(0, highest + _BIN)
    axes.set_ylim(0)
    axes.set_title(f"Score distributions, {_games(results)}; bands: 95 % intervals of the means", fontsize="medium")
    _add_legend(figure, axes, ncols=2)
    return figure


def plot_boxes(results: Mapping[str, Games]) -> Figure:
    """Return the mean points and the rate of zeros of every player in every box, with 95 % intervals."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(NUM_BOXES)
    shifts = (np.arange(len(results)) - (len(results) - 1) / 2) * _SPREAD / len(results)
    for index, ((name, games), style) in enumerate(zip(results.items(), _styles(len(results)), strict=True)):
        points = games.points.clip(min=0)
        zeros = games.points == 0
        marks = {"color": style["color"], "marker": _MARKERS[index % len(_MARKERS)], "markersize": 4, "linestyle": ""}
        for axes, values, intervals in (
            (left, points.mean(0), [mean_interval(column) for column in points.T]),
            (right, zeros.mean(0), [rate_interval(column) for column in zeros.T]),
        ):
            bounds = np.array([interval or (value, value) for interval, value in zip(intervals, values, strict=True)])
            reach = np.abs(bounds - values[:, None]).T
            axes.errorbar(values, places + shifts[index], xerr=reach, label=name, elinewidth=1.2, **marks)
    for axes in (left, right):
        for place in places[::2]:
            axes.axhspan(place - 0.5, place + 0.5, color="0.95", zorder=0)
        axes.axhline(NUM_BASIC_BOXES - 0.5, color="0.4", linewidth=0.8)
        axes.margins(y=0.01)
    left.set_yticks(places, BOX_TITLES)
    left.set_ylim(NUM_BOXES - 0.5, -0.5)
    left.set_xlim(-1)
    right.set_xlim(-0.02, 1.02)
    left.set_xlabel("mean (points)")
    right.set_xlabel("filled with a zero (share of games)")
    right.xaxis.set_major_formatter(PercentFormatter(1.0))
    figure.suptitle(f"Boxes, {_games(results)}; lines: 95 % intervals", fontsize="medium")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=min(len(results), 4), frameon=False
    )
    return figure


def _add_legend(figure: Figure, axes: Axes, *, ncols: int) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), ncols), frameon=False)


def _games(results: Mapping[str, Games]) -> str:
    count = len(next(iter(results.values())).totals)
    return f"{count:,} games each" if count != 1 else "1 game each"


def png(figure: Figure) -> bytes:
    """Return the picture as a PNG file of 150 dots an inch."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
