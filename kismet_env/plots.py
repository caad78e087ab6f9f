"""Pictures of an evaluation, without a screen: scores, boxes and lost points, readable in grey."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import cycle
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from kismet_env.evaluation import Games, bootstrap_interval, mean_interval, rate_interval
from kismet_env.rules import BOX_TITLES, NUM_BASIC_BOXES, NUM_BOXES

_BIN = 10  # points
_LINES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"
_SPREAD = 0.7  # of the distance between two boxes, for the marks of all players
_LEAST_CHANCE = 1e-5  # of a total: rarer ones at the upper end are not shown
_LEAST_REGRET = 1e-4  # points a game: less is rounding


_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.3",
    "axes.linewidth": 0.8,
    "axes.labelcolor": "0.15",
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "lines.solid_capstyle": "round",
    "xtick.color": "0.3",
    "ytick.color": "0.3",
    "xtick.labelcolor": "0.15",
    "ytick.labelcolor": "0.15",
    "legend.frameon": False,
    "legend.handlelength": 2.4,
}
_FILES: dict[Any, Any] = {"pdf.fonttype": 42}  # text stays text in a paper
P = ParamSpec("P")


def paper(plot: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let a function that draws a figure draw it in the style of all plots: few lines, quiet axes, room for data."""

    @wraps(plot)
    def styled(*arguments: P.args, **options: P.kwargs) -> Figure:
        with mpl.rc_context(_STYLE):
            return plot(*arguments, **options)

    return styled


def _styles(count: int) -> list[dict[str, Any]]:
    """Return a colour, a line and a marker for each player; the colours differ in lightness too."""
    lightness = np.linspace(0.0, 0.8, count)
    return [
        {"color": mpl.colormaps["viridis"](light), "linestyle": _LINES[index % len(_LINES)]}
        for index, light in enumerate(lightness)
    ]


@paper
def plot_scores(results: Mapping[str, Games]) -> Figure:
    """Return the distribution of the final scores of every player, with the means and their 95 % intervals."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    highest = max(int(games.totals.max()) for games in results.values())
    lowest = min(int(games.totals.min()) for games in results.values()) // _BIN * _BIN
    edges = np.arange(lowest, highest + 2 * _BIN, _BIN)
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
    axes.set_xlim(max(0, lowest - _BIN), highest + _BIN)
    axes.set_ylim(0)
    axes.set_title(f"Score distributions, {_games(results)}; bands: 95 % intervals of the means")
    _add_legend(figure, axes, ncols=2)
    return figure


@paper
def plot_distributions(distributions: Mapping[str, npt.NDArray[np.float64]]) -> Figure:
    """Return the exact probabilities of all totals, [points] for each player by name, and of reaching a total."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for (name, chances), style in zip(distributions.items(), _styles(len(distributions)), strict=True):
        points = np.arange(len(chances))
        mean = chances @ points
        sd = (chances @ (points - mean) ** 2) ** 0.5
        above.plot(points, chances, linewidth=1.2, label=f"{name}: mean {mean:.2f}, SD {sd:.2f}", **style)
        above.axvline(mean, linewidth=0.8, **style)
        below.plot(points, chances[::-1].cumsum()[::-1], linewidth=1.2, **style)
    above.set_ylabel("probability of a total")
    below.set_ylabel("probability of as many or more")
    below.set_xlabel("final score (points)")
    for axes in (above, below):
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_ylim(0)
        axes.grid()
    below.set_xlim(0, max(np.flatnonzero(chances > _LEAST_CHANCE)[-1] for chances in distributions.values()))
    _set_title(figure, "Exact distributions of the final score; vertical lines: means")
    _add_legend(figure, above, ncols=2)
    return figure


@paper
def plot_wins(report: Mapping[str, Any]) -> Figure:
    """Return how often every player of a report on contests wins against every other, as a map in shades of grey."""
    ratings = report["ratings"]
    players = ratings["players"]
    names = [each["player"] for each in players]
    rates = np.array([[ratings["cross"][a].get(b, np.nan) for b in names] for a in names])
    side = 2.6 + 0.8 * len(names)
    figure = Figure(figsize=(side + 1.0, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(rates, cmap="Greys", vmin=0.0, vmax=1.0)
    for a, b in np.argwhere(~np.isnan(rates)):
        color = "white" if rates[a, b] > 0.5 else "black"
        axes.text(b, a, f"{100 * rates[a, b]:.1f}", ha="center", va="center", color=color)
    places = np.arange(len(names))
    axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, [f"{each['player']}: {each['rating']:+.0f}" for each in players])
    axes.set_ylabel(f"player: rating ({ratings['anchor']} = 0)")
    axes.set_xlabel("against")
    bar = figure.colorbar(image, ax=axes, format=PercentFormatter(1.0), shrink=0.8)
    bar.set_label("wins of the games that one of the two has won")
    luck = "" if report["matches"][0]["players"][0]["luck_adjusted_win_rate"] is None else ", without luck"
    axes.set_title(f"{report['games']:,} games a table, {report['seats']} seats{luck}")
    return figure


@paper
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
    _list_boxes(left, right)
    left.set_xlim(-1)
    right.set_xlim(-0.02, 1.02)
    left.set_xlabel("mean (points)")
    right.set_xlabel("filled with a zero (share of games)")
    right.xaxis.set_major_formatter(PercentFormatter(1.0))
    _set_title(figure, f"Boxes, {_games(results)}; lines: 95 % intervals")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=min(len(results), 4))
    return figure


@paper
def plot_regret(results: Mapping[str, Games]) -> Figure:
    """Return where the players, all watched by `Regrets`, lose points: by turn and by box, with 95 % intervals.

    Points are means over all games, on logarithmic axes; what is less than a ten-thousandth of a point is not shown.
    """
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    turns, boxes = np.arange(1, NUM_BOXES + 1), np.arange(NUM_BOXES)
    shifts = (np.arange(len(results)) - (len(results) - 1) / 2) * _SPREAD / len(results)
    for index, ((name, games), style) in enumerate(zip(results.items(), _styles(len(results)), strict=True)):
        by_turn, by_box = games.measures["regret_by_turn"], games.measures["regret_by_box"]
        regret, by_boxes = by_turn.sum(1).mean(), by_box.sum(1).mean()
        label = f"{name}: nothing"
        if regret >= _LEAST_REGRET:
            label = f"{name}: {regret:.3g} a game, {1 - by_boxes / regret:.0%} by what was kept"
        marks = {"color": style["color"], "marker": _MARKERS[index % len(_MARKERS)], "markersize": 4}
        means, reach, shown = _losses(by_turn)
        left.errorbar(
            (turns + shifts[index] / 2)[shown],
            means,
            yerr=reach,
            label=label,
            elinewidth=1.2,
            linewidth=1.0,
            linestyle=style["linestyle"],
            **marks,
        )
        means, reach, shown = _losses(by_box)
        right.errorbar(means, (boxes + shifts[index])[shown], xerr=reach, elinewidth=1.2, linestyle="", **marks)
    left.set_yscale("log")
    right.set_xscale("log")
    for axis in (left.yaxis, right.xaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    left.set_xticks(turns)
    left.set_xlim(0.5, NUM_BOXES + 0.5)
    left.set_xlabel("turn")
    left.set_ylabel("lost by all decisions of the turn (points a game)")
    left.grid(axis="y")
    _list_boxes(right)
    right.grid(axis="x")
    right.set_xlabel("lost by filling the box (points a game)")
    _set_title(figure, f"Regret against the optimum, {_games(results)}; lines: 95 % intervals")
    _add_legend(figure, left, ncols=2)
    return figure


def _losses(regret: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], ...]:
    """Return the means of the columns of `regret` (G, n) that have one to show, how far intervals reach, and which."""
    means = regret.mean(0)
    low, high = bootstrap_interval(regret) or (means, means)
    shown = np.flatnonzero(means >= _LEAST_REGRET)
    low = np.maximum(low, _LEAST_REGRET)
    reach = np.stack([means - low, high - means])[:, shown]
    return means[shown], np.maximum(reach, 0.0), shown


def _list_boxes(*panels: Axes) -> None:
    """Put the boxes, from the top down, on the axis at the left."""
    places = np.arange(NUM_BOXES)
    for axes in panels:
        for place in places[::2]:
            axes.axhspan(place - 0.5, place + 0.5, color="0.95", zorder=0)
        axes.axhline(NUM_BASIC_BOXES - 0.5, color="0.4", linewidth=0.8)
        axes.margins(y=0.01)
    panels[0].set_yticks(places, BOX_TITLES)
    panels[0].set_ylim(NUM_BOXES - 0.5, -0.5)


def _set_title(figure: Figure, title: str) -> None:
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")


def _add_legend(figure: Figure, axes: Axes, *, ncols: int) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), ncols))


def _games(results: Mapping[str, Games]) -> str:
    count = len(next(iter(results.values())).totals)
    return f"{count:,} games each" if count != 1 else "1 game each"


@paper
def plot_curve(
    rows: Sequence[Mapping[str, str]], title: str, references: Mapping[str, float], *, unit: str = "points a game"
) -> Figure:
    """Return a learning curve: mean scores over steps below and minutes above, and what others score.

    Args:
        rows: those of a run's curve.csv; "" where there is no value.
        title: what has learned.
        references: mean scores of others by their names.
        unit: of all scores.
    """

    def column(name: str) -> tuple[list[float], list[float]]:
        kept = [row for row in rows if row[name]]
        return [float(row["steps"]) / 1e6 for row in kept], [float(row[name]) for row in kept]

    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    for (name, score), line in zip(references.items(), cycle((":", "--", "-.")), strict=False):
        axes.axhline(score, color="0.45", linewidth=1.0, linestyle=line, label=f"{name}: {score:.4g}")
    axes.plot(*column("mean_return"), color="#7aa6c2", linewidth=1.4, label="training games, actions sampled")
    steps, scores = column("selection_score")
    label = "selection games, most probable actions" + (f": at best {max(scores):.4g}" if scores else "")
    axes.plot(steps, scores, "o-", color="#14323f", linewidth=1.6, markersize=3.5, clip_on=False, label=label)
    axes.set_xlabel("steps (millions)")
    axes.set_ylabel(f"mean score ({unit})")
    axes.set_title(title)
    axes.grid(axis="y")
    _add_legend(figure, axes, ncols=2)
    steps, minutes = column("minutes")
    if len(steps) > 1:
        axes.set_xlim(0, steps[-1])
        # on beyond the end, where interp() would put all later minutes into one place
        steps, minutes = [0.0, *steps, 2 * steps[-1]], [0.0, *minutes, 2 * minutes[-1]]
        to_minutes, to_steps = (lambda x: np.interp(x, steps, minutes)), (lambda x: np.interp(x, minutes, steps))
        above = axes.secondary_xaxis("top", functions=(to_minutes, to_steps))
        above.set_xlabel("minutes on the clock")
        above.spines["top"].set_visible(True)
    return figure


def png(figure: Figure) -> bytes:
    """Return the picture as a PNG file of 150 dots an inch."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def pdf(figure: Figure) -> bytes:
    """Return the picture as a PDF file, which a paper can show at any size; the same picture, the same file."""
    content = io.BytesIO()
    with mpl.rc_context(_FILES):
        figure.savefig(content, format="pdf", metadata={"CreationDate": None})
    return content.getvalue()
