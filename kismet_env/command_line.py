"""What the project's commands have in common: options from a dataclass, errors in one line, output in one piece.

def main(config: Config) -> None: ...

if __name__ == "__main__":
sys.exit(run(main, Config))
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kismet_env.endgame import endgame_of
from kismet_env.late_cards import late_cards
from kismet_env.rules import SUITE, Rules
from kismet_env.solver import solve

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

C = TypeVar("C")

_NEEDED = ("rich", "tyro")
DONE, LOST, WRONG_INPUT, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141  # exit codes; the last two are those of shells


class Refusal(Exception):  # noqa: N818 (nothing has gone wrong but the input)
    """What the user asked for cannot be done: why, what is valid and what to do, in one line."""


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Turn a ValueError or OSError of the block, which checks what the user gave, into a Refusal."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise Refusal(" ".join(str(error).split())) from error


def run(
    main: Callable[[C], None], config: type[C], argv: Sequence[str] | None = None, *, program: str | None = None
) -> int:
    """Call `main` with the `config` that the command line `argv` (default: that of the process) describes.

    `program` is what the user typed before the options; without it, the name of the script.

    Returns the exit code: 0, 2 after a Refusal, a wrong option or without a package that all commands need, 1 where
    somebody killed a process that worked for this one, 130 after Ctrl-C, these three with one line on stderr, 141 where
    nobody reads the output any more (`| head`). Every other exception is a fault of ours and keeps its traceback.
    """
    program = program or Path(sys.argv[0]).name
    with _interrupts() as interrupted:
        try:
            main(parse(config, sys.argv[1:] if argv is None else argv, program=program))
            sys.stdout.flush()
        except Refusal as refusal:
            print(f"{program}: {refusal}", file=sys.stderr)
            return WRONG_INPUT
        except ModuleNotFoundError as missing:
            if missing.name not in _NEEDED:
                raise
            print(f"{program} needs {missing.name}; install it with pip install 'kismet-env[train]'", file=sys.stderr)
            return WRONG_INPUT
        except BaseException as error:
            if isinstance(error, BrokenPipeError) and _unread():
                return UNREAD
            if interrupted:
                print(f"{program}: interrupted", file=sys.stderr)
                return INTERRUPTED
            if not isinstance(error, BrokenProcessPool):
                raise
            print(f"{program}: a worker process was killed, perhaps for memory; try fewer --processes", file=sys.stderr)
            return LOST
    return DONE


def _unread() -> bool:
    """Return whether nobody reads the output any more; then what is left of it goes nowhere."""
    try:
        print(flush=True)  # a flush alone can be content: what could not be written is forgotten
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once Ctrl-C was pressed, whatever becomes of the KeyboardInterrupt.

    numba's compiler loses one that comes in its callbacks, with a message, and then stumbles over something else.
    """
    pressed: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    def report_lost(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            report(lost)

    handler, report = signal.signal(signal.SIGINT, interrupt), sys.unraisablehook
    sys.unraisablehook = report_lost
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = report


def parse(config: type[C], argv: Sequence[str], *, program: str) -> C:
    """Return the `config` that the options `argv` describe; Refusal where they describe none.

    `--rules NAME` stands for all fields of the rules of that name (see `kismet_env.rules.SUITE`); options behind it
    change single ones. `--help` prints and exits, as always.
    """
    import tyro

    options, description = argv, inspect.getdoc(config)
    if _has_rules(config):
        with refusing():
            options = _with_rules_spelled_out(argv)
        description = f"{description}\n--rules NAME: {' | '.join(SUITE)}"

    def parsed() -> C:
        with refusing():  # tyro lets through what some dataclasses say of their values
            return tyro.cli(config, args=options, prog=program, description=description)

    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return parsed()
    except SystemExit as exit_:
        if not exit_.code:
            raise
    # tyro draws boxes around its errors, as wide as the terminal: once more, without wrapping
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100000"
    try:
        with contextlib.redirect_stderr(io.StringIO()) as box, contextlib.suppress(SystemExit):
            return parsed()
    finally:
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
    raise Refusal(f"{_in_one_line(box.getvalue())}; all options: {program} --help")


def _has_rules(config: type[Any]) -> bool:
    """Return whether there are rules among the options, or among those that a dataclass in it adds."""
    kinds = [getattr(field.type, "__origin__", field.type) for field in fields(config)]
    return any(field.name == "rules" for field in fields(config)) or any(
        isinstance(kind, type) and is_dataclass(kind) and _has_rules(kind) for kind in kinds
    )


def _with_rules_spelled_out(argv: Sequence[str]) -> list[str]:
    """Return `argv` with an option for each field in place of `--rules NAME`; ValueError for an unknown name."""
    options: list[str] = []
    rest = iter(argv)
    for option in rest:
        option, equals, name = option.partition("=")
        if option != "--rules":
            options.append(f"{option}{equals}{name}")
            continue
        name = name if equals else next(rest, "")
        for field, value in asdict(Rules.of(name)).items():
            if isinstance(value, bool):
                options.append(f"--rules.{field}" if value else f"--rules.no_{field}")
            else:
                options += [f"--rules.{field}", *map(str, np.ravel(value))]
    return options


def _in_one_line(box: str) -> str:
    """Return what a box of tyro says, without its frame, its title and its hint to --help."""
    paragraphs: list[list[str]] = [[]]
    for line in box.splitlines()[1:-1]:
        text = line.strip("│ ")
        if text and set(text) <= {"─", "-"}:  # hyphens where there is only ASCII, and below the title too
            paragraphs.append([])
        else:
            paragraphs[-1].append(text)
    told = [" ".join(lines) for lines in paragraphs if lines and not lines[0].startswith("For full helptext")]
    reason = "; ".join(told).replace("Error parsing ", "").replace("Argument helptext: ", "")
    option, _, rest = reason.partition(": ")
    return rest if rest.startswith(f"{option}: ") else reason  # Rules says itself what it is about


def check_writable(path: Path, *, folder: bool) -> None:
    """Raise ValueError unless the `folder`, or file, at `path` can be written; leaves nothing behind.

    Folders that do not exist yet are no hindrance.
    """
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; give a folder")
    if not folder and path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    existing = next(parent for parent in ([path] if folder else []) + list(path.absolute().parents) if parent.exists())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise ValueError(
            f"cannot write {path}: nothing can be put into {existing} ({error.strerror}); give another place"
        ) from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`, making its folder, so that the file is never there by half; OSError where it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def progress_bar() -> Progress:
    """Return a progress bar on stderr that vanishes when it is done and is silent where there is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def teller(bar: Progress, description: str) -> Callable[[float], None]:
    """Return what shows the share done of something that may be in the cache: then it is never called."""
    tasks: list[TaskID] = []

    def tell(share: float) -> None:
        if not tasks:
            tasks.append(bar.add_task(description, total=100))
        bar.update(tasks[0], completed=round(100 * share))

    return tell


def prepare_matches(rules: Rules) -> None:
    """Put into the cache what the chances to win under `rules` are judged by, with bars: minutes, the first time."""
    optimum = solve(rules, progress=True)
    optimum.prepare_sds(progress=True)  # not below: rich holds back what others write while its bar is shown
    with progress_bar() as bar:
        late_cards(optimum, teller(bar, "late cards"))
        endgame_of(rules, teller(bar, "endgame"))
