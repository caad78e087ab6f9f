"""Train a player: `python train.py ALGORITHM [options]`; `python train.py ALGORITHM --help` lists the options."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the imports run: the end, without a traceback

import importlib
import sys
from collections.abc import Sequence
from dataclasses import field, make_dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from agents import ALGORITHMS
from kismet_env.command_line import DONE, INTERRUPTED, WRONG_INPUT, Refusal, parse, refusing

if TYPE_CHECKING:
    from agents.run import Run

_USAGE = f"""\
usage: python train.py ALGORITHM [options]
algorithms: {", ".join(ALGORITHMS)}
options of an algorithm: python train.py ALGORITHM --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line `argv` says.

    Returns the exit code: 0, 2 after one line that says what is wrong with the input or what it has led to,
    130 after Ctrl-C.
    """
    name, *options = (sys.argv[1:] if argv is None else argv) or [""]
    if name in ("-h", "--help"):
        print(_USAGE)
        return DONE
    try:
        with refusing():
            learner = _learner(name)
            training = _run_of(name, learner, options)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on there is something to tell
        try:
            learner.train(training.config, training)
        except KeyboardInterrupt:
            training.interrupted = True
    except (Refusal, OSError) as refusal:  # the latter: a disk that is full, a folder that has gone
        print(f"train.py: {refusal}", file=sys.stderr)
        return WRONG_INPUT
    if training.interrupted:
        go_on = f"go on with: python train.py {name} --resume {training.folder}"
        print(f"stopped; {go_on if training.can_go_on else 'nothing has been saved yet'}", file=sys.stderr)
        return INTERRUPTED
    print(f"{training.folder}: {training.summary}")
    return DONE


def _learner(name: str) -> ModuleType:
    if name not in ALGORITHMS:
        what = f"unknown algorithm {name!r}" if name else "no algorithm given"
        raise ValueError(f"{what}; algorithms: {', '.join(ALGORITHMS)}")
    try:
        return importlib.import_module(ALGORITHMS[name])
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else f"more than there is ({error})"
        extras = "train,rllib" if name == "rllib_ppo" else "train"
        raise ValueError(f"{name} needs {missing}; install it with pip install -e '.[{extras}]'") from None


def _options(config: type[Any], default: Any = None) -> type[Any]:
    """Return the dataclass of the whole command line: where the run is kept, and the options of the learner."""
    import tyro

    return make_dataclass(
        "Options",
        [
            ("run", Path | None, _option(None, "Folder of the run; None: runs/ALGORITHM_1, _2, ...")),
            ("overwrite", bool, _option(False, "Replace a run that is in the folder.")),
            ("resume", Path | None, _option(None, "Folder of a run to go on with; its options are kept.")),
            ("config", Annotated[config, tyro.conf.arg(name="")], field(default=default) if default else field()),
        ],
        kw_only=True,
        namespace={"__doc__": config.__doc__},
    )


def _option(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


def _run_of(name: str, learner: ModuleType, options: Sequence[str]) -> Run:
    """Return the run that is asked for, new or resumed; ValueError for what cannot be done."""
    from agents.run import Run, free_folder, resumed_config, saved_config  # not above: seconds, for one line of usage

    given = parse(_options(learner.Config), options, program="train.py")
    if given.resume is None:
        return Run.begin(given.run or free_folder(name), given.config, overwrite=given.overwrite)
    if given.run is not None or given.overwrite:
        raise ValueError("--resume goes on in its own folder; leave out --run and --overwrite")
    saved = saved_config(given.resume, learner.Config)
    given = parse(_options(learner.Config, saved), options, program="train.py")  # again: what is not given is as saved
    return Run.resume(given.resume, resumed_config(saved, given.config))


if __name__ == "__main__":
    sys.exit(main())
