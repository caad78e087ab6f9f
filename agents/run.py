"""One training run: its folder, its clock, and what it tells the user.

A folder holds

    config.json      what is trained and how: a `Provenance`
    sessions.json    every start: time, command, versions, git commit, machine
    curve.csv        a row for every update; curve.png is its picture, tensorboard/ the same for TensorBoard
    checkpoint.pt    all it takes to go on; replaced in one piece, so there is always a whole one
    model.zip        the policy at the end, best.zip the one with the highest selection score, both for sb3-contrib
                     and from learners that use it;
                     policy.safetensors and best.safetensors are the same for players without torch, see `policy_file`
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from kismet_env.command_line import Refusal, check_writable, write_whole
from kismet_env.provenance import Provenance, package_versions
from kismet_env.rules import Rules


class Config(Protocol):
    """What a run wants to know about the options of a learner; dataclasses all of them."""

    @property
    def steps(self) -> int | None:
        """Length of the run in steps of the environment; None: no limit."""

    @property
    def minutes(self) -> float | None:
        """Length of the run in minutes on the clock; None: no limit."""

    @property
    def checkpoint_minutes(self) -> float:
        """Minutes between two checkpoints."""

    @property
    def threads(self) -> int | None:
        """Threads of the arithmetic; None: one for each core."""

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""


class Learner(Protocol):
    """What a run asks of everything that changes in its course."""

    @property
    def steps(self) -> int:
        """Steps of the environment so far."""

    def round(self) -> dict[str, float | None]:
        """Play and learn for a while; return what there is to say of it, see `Run.record`, "selection_score" None."""

    def has_diverged(self, row: Mapping[str, float | None]) -> bool:
        """Return whether what has been learned is worth nothing, `row` being what there was to say."""

    def is_due(self) -> bool:
        """Return whether it is time for a selection score, in the middle of a run."""

    def selection_score(self) -> float:
        """Return how well it plays in games on other dice."""

    def save(self, folder: Path, name: str) -> None:
        """Write the policy `name`, "best" or "policy", into `folder`."""

    def state(self) -> dict[str, Any]:
        """Return all it takes to go on as if nothing had been."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new learner of the same options where `state` was taken."""


C = TypeVar("C", bound=Config)
_MAY_CHANGE = ("steps", "minutes", "num_env_runners", "address")  # how long and where, in a run that goes on
_CHECKPOINT = "checkpoint.pt"
_LARGEST = 1e30  # learners reckon in float32, which ends at 3e38 and 1e-38
_MOST_THREADS = 1024
DEFAULT_MINUTES = 5.0
"""Length of a run whose options say nothing about it."""


class Run:
    """A run in `folder`; `begin` and `resume` make one, and check what they can.

    Use it as a context: nothing is written before it is entered, and inside Ctrl-C only sets `interrupted`.

    Attributes:
        minutes, processor_minutes: on the clock and of the processor so far, those of earlier sessions included.
        state: what the learner gave to the last checkpoint, None in a new run.
        interrupted: the user wants the learner to save and stop.
    """

    def __init__(self, folder: Path, config: Config, checkpoint: Mapping[str, Any] | None = None) -> None:
        self.folder, self.config = folder, config
        self.provenance = config.provenance()
        self.state: Mapping[str, Any] | None = checkpoint["state"] if checkpoint else None
        self.interrupted = False
        self._is_new = checkpoint is None
        self._steps: int = checkpoint["steps"] if checkpoint else 0
        self._minutes_before: float = checkpoint["minutes"] if checkpoint else 0.0
        self._processor_minutes_before: float = checkpoint["processor_minutes"] if checkpoint else 0.0
        self._started = self._saved = time.perf_counter()
        self._processor_started = time.process_time()
        self._best: float = checkpoint["best"] if checkpoint else float("-inf")
        self._curve = folder / "curve.csv"
        self._latest: dict[str, float | None] = {}

    @classmethod
    def begin(cls, folder: Path, config: Config, *, overwrite: bool = False) -> Self:
        """Return a new run in `folder`, which is made when the run is entered.

        Raises ValueError where it cannot be written or is not empty; `overwrite` replaces another run, nothing else.
        """
        check_writable(folder, folder=True)
        if folder.exists() and any(folder.iterdir()):
            if not _holds_run(folder):
                raise ValueError(f"{folder} holds other files; give a new folder")
            if not overwrite:
                raise ValueError(
                    f"{folder} already holds a run; go on with --resume {folder}, replace it with --overwrite, "
                    "or give another folder"
                )
        return cls(folder, config)

    @classmethod
    def resume(cls, folder: Path, config: Config) -> Self:
        """Go on with the run in `folder`, whose options are `config` (see `saved_config`) but for its length.

        Raises ValueError where there is nothing to go on with.
        """
        check_writable(folder, folder=True)
        path = folder / _CHECKPOINT
        if not path.exists():
            raise ValueError(f"{folder} has no checkpoint yet; begin again with --run {folder} --overwrite")
        try:
            checkpoint = torch.load(path, weights_only=True)  # unpickles nothing but tensors and numbers
            run = cls(folder, config, checkpoint)
        except Exception as error:
            raise ValueError(f"{path} is not a checkpoint of this version: {error}") from None
        if run.share_done(run._steps) >= 1:
            raise ValueError(
                f"{folder} is complete: {run._steps:,} steps, {run.minutes:.1f} minutes; "
                "give a higher --steps or --minutes to go on"
            )
        return run

    def _write_down(self) -> None:
        """Make the folder what it is at the start of a session."""
        if self._is_new:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.folder)  # a run to be replaced, or nothing
        else:
            for half_written in self.folder.glob("*.part"):  # by a session that was killed
                half_written.unlink()
            self._forget_later_rows()
        write_whole(self.folder / "config.json", self.provenance.to_json())
        self._note_session()

    def _note_session(self) -> None:
        path = self.folder / "sessions.json"
        sessions = json.loads(path.read_text()) if path.exists() else []
        sessions.append(
            {
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "steps_before": self._steps,
                "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
                "versions": {"python": platform.python_version(), **package_versions()},
                "git": _git_state(),
                "machine": {
                    "system": platform.platform(),
                    "processor": _processor(),
                    "cores": os.cpu_count(),
                    "torch_threads": torch.get_num_threads(),
                },
            }
        )
        write_whole(path, json.dumps(sessions, indent=2))

    def _forget_later_rows(self) -> None:
        """Drop rows of the curve from after the checkpoint: they will be trained again."""
        if not self._curve.exists():
            return
        with self._curve.open(newline="") as file:
            rows = list(csv.reader(file))
        kept = [row for row in rows[1:] if len(row) == len(rows[0]) and int(row[0]) <= self._steps]
        write_whole(self._curve, "".join(",".join(row) + "\n" for row in [rows[0], *kept]))

    def __enter__(self) -> Self:
        self._write_down()
        self._writer = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self._steps + 1)
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(self.provenance.algorithm, total=1.0, told="")
        self._progress.start()
        self._handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._handler)
        self._progress.stop()
        self._writer.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, self._handler)  # the second time at once
        self._progress.console.print("saving after this update; Ctrl-C again stops at once")

    @property
    def minutes(self) -> float:
        """Minutes on the clock so far, those of earlier sessions included."""
        return self._minutes_before + (time.perf_counter() - self._started) / 60

    @property
    def processor_minutes(self) -> float:
        """Minutes of processor time so far, of all threads; other jobs on the machine do not count."""
        return self._processor_minutes_before + (time.process_time() - self._processor_started) / 60

    def share_done(self, steps: int) -> float:
        """Return the share of the run that is over after `steps` steps: by steps or by minutes, what is further."""
        limit = self.config.minutes or (None if self.config.steps else DEFAULT_MINUTES)
        by_steps = steps / self.config.steps if self.config.steps else 0.0
        by_minutes = self.minutes / limit if limit else 0.0
        return max(by_steps, by_minutes)

    def record(self, row: Mapping[str, float | None]) -> None:
        """Add a row to the curve and show it; `row` has the same names every time, None where there is no value.

        "steps", the abscissa, "mean_return" and "selection_score" are among them, in points a game, or what else is
        learned for; "minutes", "processor_minutes" and "steps_per_second" are added here.
        """
        minutes = self.minutes
        steps = int(row["steps"] or 0)
        speed = steps / (60 * minutes)
        clocks = {"minutes": round(minutes, 4), "processor_minutes": round(self.processor_minutes, 4)}
        row = {"steps": steps, **clocks, **row, "steps_per_second": round(speed)}
        self._steps = steps
        is_new = not self._curve.exists()
        with self._curve.open("a") as file:
            if is_new:
                file.write(",".join(row) + "\n")
            file.write(",".join(map(_cell, row.values())) + "\n")
        for name, value in row.items():
            if value is not None and name != "steps":
                self._writer.add_scalar(name, value, steps)
        share = min(1.0, self.share_done(steps))
        told = [f"{steps / 1e6:.2f} M steps", f"{minutes * (1 - share) / share:.1f} minutes left"]
        for name, unit in (("mean_return", "return"), ("selection_score", "selection")):
            self._latest[name] = row[name] if row[name] is not None else self._latest.get(name)
            if (value := self._latest[name]) is not None:
                told.append(f"{unit} {value:.4g}")
        self._progress.update(self._task, completed=share, told=" · ".join(told))

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Keep all it takes to go on from here: tensors, numbers, strings, and lists and dicts of them."""
        clocks = {"minutes": self.minutes, "processor_minutes": self.processor_minutes}
        checkpoint = {"state": state, "steps": self._steps, **clocks, "best": self._best}
        file = io.BytesIO()
        torch.save(checkpoint, file)
        write_whole(self.folder / _CHECKPOINT, file.getvalue())
        self._saved = time.perf_counter()

    @property
    def can_go_on(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return (self.folder / _CHECKPOINT).exists()

    @property
    def minutes_unsaved(self) -> float:
        """Minutes since the last checkpoint, or since the start."""
        return (time.perf_counter() - self._saved) / 60

    def save_model(self, archive: bytes, *, name: str = "model.zip") -> None:
        """Write a policy, the bytes of a zip archive, with its provenance inside."""
        file = io.BytesIO(archive)
        self.provenance.write_zip(file)
        write_whole(self.folder / name, file.getvalue())

    def is_best(self, score: float) -> bool:
        """Return whether no earlier selection score of this run was as high, and remember this one."""
        if score <= self._best:
            return False
        self._best = score
        return True

    def train(
        self,
        learner: Learner,
        *,
        references: Callable[[], Mapping[str, float]] = dict,
        unit: str = "points a game",
    ) -> None:
        """Let `learner` learn until the run is over or interrupted; it begins where the last checkpoint stands.

        `references` are others' mean scores, in `unit`, for the plot. Raises Refusal where the training diverges.
        """
        if self.state is None:
            self.save_checkpoint(learner.state())
        else:
            learner.restore(self.state)
        is_last = False
        while not (is_last or self.interrupted):
            row = learner.round()
            if learner.has_diverged(row):  # nothing of it may replace what is in the folder
                self.plot(references(), unit=unit)
                raise Refusal(
                    f"the training has diverged after {learner.steps:,} steps; begin again with a lower "
                    f"--learning-rate, or other options; {self.folder} keeps what was saved before"
                )
            is_last = self.share_done(learner.steps) >= 1
            if is_last or learner.is_due():
                row["selection_score"] = learner.selection_score()
            self.record(row)
            if (score := row["selection_score"]) is not None and self.is_best(score):
                learner.save(self.folder, "best")
            if not is_last and (self.interrupted or self.minutes_unsaved >= self.config.checkpoint_minutes):
                self.save_checkpoint(learner.state())
        learner.save(self.folder, "policy")
        self.plot(references(), unit=unit)
        if is_last:  # only now: a run that is killed earlier has something left to do
            self.save_checkpoint(learner.state())
            self.interrupted = False

    @property
    def summary(self) -> str:
        """What has come out so far, in a line."""
        return f"{self._steps:,} steps in {self.minutes:.1f} minutes, best selection score {self._best:.4g}"

    def plot(self, references: Mapping[str, float], *, unit: str = "points a game") -> None:
        """Draw the curve into curve.png, with the mean scores of others, in `unit`, by their names in `references`."""
        if not self._curve.exists():
            return
        with self._curve.open(newline="") as file:
            rows = list(csv.DictReader(file))
        from kismet_env.plots import plot_curve, png  # a second that only the end of a run spends

        named = {f"{name}, selection games": score for name, score in references.items()}
        write_whole(self.folder / "curve.png", png(plot_curve(rows, self.provenance.algorithm, named, unit=unit)))


def _holds_run(folder: Path) -> bool:
    try:
        Provenance.from_json((folder / "config.json").read_text())
    except (OSError, ValueError):
        return False
    return True


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.7g}"


def saved_config(folder: Path, config_type: type[C]) -> C:
    """Return the options of the run in `folder`; ValueError where there is none, or one of another learner."""
    path = folder / "config.json"
    if not path.exists():
        raise ValueError(f"{folder} holds no run to resume")
    provenance = Provenance.from_json(path.read_text())
    kinds = typing.get_type_hints(config_type)
    values = dict(provenance.config)
    if set(values) != set(kinds):
        raise ValueError(f"{path} is of {provenance.algorithm} or of another version; its options do not fit")
    for name, value in values.items():
        if kinds[name] is Rules:
            values[name] = Rules.of(value)
        elif isinstance(value, list):
            values[name] = tuple(value)
    config = config_type(**values)
    if config.provenance().algorithm != provenance.algorithm:
        raise ValueError(f"{folder} is a run of {provenance.algorithm}, not of {config.provenance().algorithm}")
    provenance.check(provenance.rules)
    return config


def resumed_config(saved: C, given: C) -> C:
    """Return what is `given` where it differs from `saved` in how long or where alone; else ValueError."""
    theirs, ours = asdict(typing.cast(Any, saved)), asdict(typing.cast(Any, given))
    if changed := [name for name in ours if ours[name] != theirs[name] and name not in _MAY_CHANGE]:
        free = " and ".join(f"--{name.replace('_', '-')}" for name in _MAY_CHANGE if name in ours)
        raise ValueError(
            f"a resumed run keeps its options, only {free} may change; changed: "
            + ", ".join(f"{name}={ours[name]!r} (was {theirs[name]!r})" for name in changed)
        )
    return given


def check_options(
    config: Config,
    *,
    at_least_1: Iterable[str],
    above_0: Iterable[str],
    from_0: Iterable[str],
    shares: Iterable[str],
) -> None:
    """Raise ValueError for the first of these options, by their names, that has no such value; None is one of any."""
    for name in at_least_1:
        if (value := getattr(config, name)) is not None and value < 1:
            raise ValueError(f"{name}={value} is not at least 1")
    if (config.threads or 1) > _MOST_THREADS:
        raise ValueError(f"threads={config.threads} is not at most {_MOST_THREADS:,}")
    for name in above_0:
        if (value := getattr(config, name)) is not None and not 1 / _LARGEST <= value <= _LARGEST:
            raise ValueError(f"{name}={value} is not a number above 0, at most {_LARGEST} and at least its inverse")
    for name in from_0:
        if not 0 <= getattr(config, name) < float("inf"):
            raise ValueError(f"{name}={getattr(config, name)} is not a number from 0 up")
    for name in shares:
        if not 0 <= getattr(config, name) <= 1:
            raise ValueError(f"{name}={getattr(config, name)} is not from 0 to 1")


def free_folder(algorithm: str, runs: Path = Path("runs")) -> Path:
    """Return the first folder runs/ALGORITHM_1, _2, ... that does not exist."""
    number = 1
    while (folder := runs / f"{algorithm}_{number}").exists():
        number += 1
    return folder


@contextlib.contextmanager
def arithmetic(threads: int | None) -> Iterator[None]:
    """Set up torch's arithmetic for the block."""
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(threads or before[0])
    # Lets torch take oneDNN's matrix products, which on AMD are twice as fast as the default ones and just as exact;
    # processors with AMX round the factors to bfloat16, which changes the course of a run but not how well it learns.
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def packed(array: npt.NDArray[Any]) -> Tensor:
    """Return the bytes of `array`, of any type, as a checkpoint can keep them."""
    return torch.frombuffer(bytearray(array.tobytes()), dtype=torch.uint8)


def unpacked(data: Tensor, *, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array that was `packed`, of the shape and type of `like`."""
    return np.frombuffer(data.numpy().tobytes(), like.dtype).reshape(like.shape).copy()


def _git_state() -> dict[str, Any] | None:
    """Return the commit of the sources and the tracked files that differ from it; None outside of a repository."""

    def git(*arguments: str) -> str:
        root = Path(__file__).parent
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").splitlines()
        return {"commit": git("rev-parse", "HEAD").strip(), "changed": [line[3:] for line in changed]}
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    """Return the name of the processor as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
