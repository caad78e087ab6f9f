"""Draws what the parts of a recipe are worth: python docs/make_ablations.py FILE.png RUNS ARM...

RUNS is a folder of runs of train.py under the standard rules, named base_0, base_1, ... and ARM_0, ARM_1, ... after
their seeds; those of the seeds that every arm has come to an end with are taken. Every arm has a panel of its own,
beside the base: the mean selection score and, as a band, the lowest and the highest seed.

The table that is printed is about the policies at the ends of the runs: what they score in games on other dice,
masked, without luck, by seed and in the mean, with Student's 95 % interval over the seeds; the same where they draw
lots instead of playing their most probable action; what they lose against the optimum; the last selection scores, of
unmasked games where there were no masks in training; and the illegal actions a game in the last rollout.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from make_learning_curves import curve_of, draw_seeds, scored
from matplotlib.figure import Figure

from kismet_env.bots import make
from kismet_env.command_line import progress_bar, write_whole
from kismet_env.evaluation import Regrets, mean_interval, play
from kismet_env.plots import paper, png
from kismet_env.solver import solve

GAMES, SEED = 10_000, 0
_BASE = "base"


def main(arguments: list[str]) -> None:
    """Draw the arms into the file and print their table."""
    file, folder, *arms = arguments
    names = [_BASE, *arms]
    ended = [{path.parent.name for path in Path(folder).glob(f"{name}_*/policy.safetensors")} for name in names]
    seeds = [{int(run.rpartition("_")[2]) for run in runs} for runs in ended]
    shared = sorted(set.intersection(*seeds))
    if not shared:
        raise SystemExit(
            f"make_ablations.py: there is no seed in {folder} with which all of {names} have come to an end"
        )
    folders = {name: [Path(folder) / f"{name}_{seed}" for seed in shared] for name in names}
    write_whole(Path(file), png(_panels({name: scored(paths, "selection_score") for name, paths in folders.items()})))
    optimum = solve(progress=True).expected_score
    columns = (
        *("arm", "without luck, by seed", "mean", "drawing lots", "regret: keeps", "boxes"),
        *("last selection score", "illegal a game"),
    )
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with progress_bar() as bar:
        for name, paths in folders.items():
            task = bar.add_task(name, total=2 * GAMES * len(paths))
            regrets, drawn = (
                np.array([_regrets(path, play_by, partial(bar.advance, task)) for path in paths])
                for play_by in ("", ":sample")
            )
            scores = optimum - regrets.sum(1)
            keeps, boxes = regrets.mean(0)
            last = [curve_of(path)[-2:] for path in paths]
            illegal = [_illegal(*rows) for rows in last]
            alone = [float(rows[-1]["selection_score"]) for rows in last]
            by_seed = ", ".join(f"{score:.1f}" for score in scores)
            print(
                f"| {name} | {by_seed} | {_mean(scores)} | {_mean(optimum - drawn.sum(1))} | {keeps:.1f} | {boxes:.1f} "
                f"| {np.mean(alone):.1f} | {np.mean(illegal):.1f} |"
            )


def _mean(scores: np.ndarray) -> str:
    """Return the mean of scores by seed (n,), with Student's 95 % interval where there is one."""
    interval = mean_interval(scores)
    reach = f" ± {(interval[1] - interval[0]) / 2:.1f}" if interval else ""
    return f"{scores.mean():.1f}{reach}"


def _regrets(run: Path, play_by: str, report: partial[None]) -> tuple[float, float]:
    """Return the points a game that the policy at the end of a run loses by its keeps, and by the boxes it fills.

    `play_by` stands behind its name: "" for its most probable actions, ":sample" where it draws lots.
    """
    player = make(f"policy:{run / 'policy.safetensors'}{play_by}")
    games = play(player, GAMES, seed=SEED, watcher=partial(Regrets, solve()), report=report)
    lost, by_boxes = (games.measures[name].sum(1).mean() for name in ("regret_by_turn", "regret_by_box"))
    return float(lost - by_boxes), float(by_boxes)


def _illegal(before: dict[str, str], last: dict[str, str]) -> float:
    """Return the illegal actions a game in the last rollout of training."""
    return (int(last["illegal_actions"]) - int(before["illegal_actions"])) / int(last["games"])


@paper
def _panels(curves: dict[str, tuple[np.ndarray, ...]]) -> Figure:
    arms = [name for name in curves if name != _BASE]
    figure = Figure(figsize=(2.6 * len(arms), 3.2), layout="constrained")
    panels = figure.subplots(1, len(arms), sharex=True, sharey=True, squeeze=False)[0]
    for axes, arm in zip(panels, arms, strict=True):
        for name, style in ((_BASE, {"color": "0.55", "linestyle": "--"}), (arm, {"color": "#14323f"})):
            steps, scores = curves[name]
            draw_seeds(axes, steps / 1e6, scores, label=name, **style)
        axes.grid(axis="y")
        axes.legend(loc="lower right")
        axes.set_xlabel("steps (millions)")
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(0)
    panels[0].set_ylabel("selection score (points a game)")
    return figure


if __name__ == "__main__":
    main(sys.argv[1:])
