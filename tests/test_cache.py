"""What is kept on disk: it appears whole or not at all, is checked before use, and its loss only costs time."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs
import pytest

from kismet_env import solver
from kismet_env.cache import cache_root, load_array, save_array
from kismet_env.cards import CardNumbers
from kismet_env.rules import SECOND_KISMET, Rules
from kismet_env.tensor_file import DamagedFileError

ROOT = Path(__file__).parent.parent
ABOUT = {"format": "1", "rules": "standard"}
VALUES = np.arange(1000) / 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some" / "folder" / "values.safetensors"


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- one file ---


@pytest.mark.parametrize("array", [VALUES, np.arange(65536, dtype=np.uint16)], ids=["float64", "uint16"])
def test_an_array_comes_back_mapped_into_memory_and_read_only(path: Path, array: npt.NDArray[Any]) -> None:
    save_array(path, array, ABOUT)
    loaded = load_array(path, ABOUT)
    assert loaded.dtype == array.dtype
    assert (loaded == array).all()
    assert isinstance(loaded.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        loaded[0] = 1
    assert files_in(path.parent) == [path]


def test_no_file_is_no_damage(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_array(path, ABOUT)


@pytest.mark.parametrize(
    "about", [{}, ABOUT | {"format": "2"}, ABOUT | {"rules": "other"}, ABOUT | {"more": "x"}], ids=str
)
def test_a_file_about_something_else_is_refused(path: Path, about: dict[str, str]) -> None:
    save_array(path, VALUES, about)
    with pytest.raises(DamagedFileError, match="is about"):
        load_array(path, ABOUT)


def test_a_file_cut_off_anywhere_is_refused(path: Path) -> None:
    save_array(path, VALUES[:20], ABOUT)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError):
            load_array(path, ABOUT)
    path.write_bytes(whole + b"\0")
    with pytest.raises(DamagedFileError):
        load_array(path, ABOUT)


def test_a_flipped_bit_is_refused_or_means_nothing(path: Path) -> None:
    save_array(path, VALUES[:20], ABOUT)
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                loaded = load_array(path, ABOUT)
            except DamagedFileError:
                refused += 1
            else:
                assert loaded.dtype == np.float64
                assert (loaded == VALUES[:20]).all(), f"bit {bit} of byte {place}"
    assert refused > 7 * len(whole)


GARBAGE = {
    "nothing": b"",
    "zeros": bytes(1000),
    "text": b"no file of ours, but long enough to have a header\n" * 100,
    "endless header": (2**63).to_bytes(8, "little") + b"{}",
    "a list": (2).to_bytes(8, "little") + b"[]",
    "deep": (100_000).to_bytes(8, "little") + b"[" * 100_000,
    "no array": (2).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_refused(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(DamagedFileError):
        load_array(path, ABOUT)


def test_what_is_mapped_stays_when_the_file_is_replaced(path: Path) -> None:
    save_array(path, VALUES, ABOUT)
    before = load_array(path, ABOUT)
    save_array(path, VALUES + 1, ABOUT)
    assert (before == VALUES).all()
    assert (load_array(path, ABOUT) == VALUES + 1).all()


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o700, 0o600), (0o775, 0o664)])
def test_who_shares_the_folder_shares_the_file(path: Path, folder: int, file: int) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(folder)
    save_array(path, VALUES, ABOUT)
    assert path.stat().st_mode & 0o777 == file


DIES_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from kismet_env import cache, tensor_file

write = tensor_file.save_file

def write_and_die(arrays, path, metadata):
    write(arrays, path, metadata)
    os.truncate(path, int(os.path.getsize(path) * float(sys.argv[2])))
    os.kill(os.getpid(), signal.SIGKILL)

tensor_file.save_file = write_and_die
cache.save_array(Path(sys.argv[1]), np.ones(1000), {"format": "1", "rules": "standard"})
"""


@pytest.mark.parametrize("written", [0.5, 1.0])
def test_a_process_killed_while_it_writes_leaves_the_file_as_it_was(path: Path, written: float) -> None:
    save_array(path, VALUES, ABOUT)
    done = subprocess.run([sys.executable, "-c", DIES_WHILE_WRITING, path, str(written)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert (load_array(path, ABOUT) == VALUES).all()


SAVES_FOR_EVER = """
import sys
from itertools import count
from pathlib import Path
import numpy as np
from kismet_env.cache import save_array

for number in count():
    save_array(Path(sys.argv[1]), np.full(500_000, number / 3), {"format": "1", "rules": "standard"})
    if number == 1:
        print("begun", flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_a_whole_file(path: Path) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", SAVES_FOR_EVER, path], cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, 0.2))
        process.kill()
        process.communicate()
        values = load_array(path, ABOUT)
        assert (values == values[0]).all()


def test_the_folder_is_the_users_unless_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KISMET_CACHE_DIR", "elsewhere")
    assert cache_root() == Path("elsewhere")
    monkeypatch.delenv("KISMET_CACHE_DIR")
    assert cache_root() == Path(platformdirs.user_cache_dir("kismet_env", appauthor=False))


# --- optima; what is not about solving is tried with values that are not solved ---


class Solver:
    """Stands in for `solve_values` and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tables: Any, report: Callable[[float], None]) -> npt.NDArray[np.float64]:
        self.calls += 1
        report(1.0)
        return np.arange(CardNumbers(tables).size) + 0.5


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Solver:
    """A cache of its own, and a solver that takes no time."""
    monkeypatch.setenv("KISMET_CACHE_DIR", str(tmp_path))
    stand_in = Solver()
    monkeypatch.setattr(solver, "solve_values", stand_in)
    return stand_in


RULES = Rules(bonus_tiers=())


def test_rules_are_solved_once(stand_in: Solver, tmp_path: Path) -> None:
    solved = solver.cached_values(RULES)
    loaded = solver.cached_values(RULES)
    assert stand_in.calls == 1
    assert isinstance(loaded.base, np.memmap)
    assert (loaded == solved).all()
    assert len(files_in(tmp_path)) == 1
    solver.cached_values(Rules(bonus_tiers=(), joker="always"))
    assert stand_in.calls == 2
    assert len(files_in(tmp_path)) == 2


def test_values_of_other_sources_are_not_used(stand_in: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    solver.cached_values(RULES)
    edited = solver.source_hash
    monkeypatch.setattr(solver, "source_hash", lambda name: edited(name) + "+" * (name == "engine.py"))
    solver.cached_values(RULES)
    assert stand_in.calls == 2


def test_what_was_not_used_for_a_month_goes_when_something_new_is_kept(stand_in: Solver, tmp_path: Path) -> None:
    solver.cached_values(RULES)
    (used,) = files_in(tmp_path)
    month_ago = time.time() - 31 * 24 * 60 * 60
    older, younger, half_written = (used.with_name(name) for name in ("older", "younger", "x.part"))
    for path in (older, younger, half_written):
        path.touch()
    for path in (older, half_written, used):
        os.utime(path, (month_ago, month_ago))
    os.utime(younger, (month_ago + 2 * 24 * 60 * 60,) * 2)
    solver.cached_values(RULES)  # is asked for
    assert len(files_in(tmp_path)) == 4, "what is only read changes nothing"
    solver.cached_values(Rules(joker="always"))
    assert len(files_in(tmp_path)) == 3
    assert {used, younger} < set(files_in(tmp_path))


def damaged(whole: bytes) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "cut off", whole[:-1]
    yield "half", whole[: len(whole) // 2]
    yield "garbage", bytes(len(whole))
    yield "flipped", whole[:-1] + bytes([whole[-1] ^ 1])
    yield "other sources", whole.replace(b'"sources":"', b'"sources":"x', 1)
    yield "other rules", whole.replace(b"after_third_roll", b"any_timeanytime!", 1)


@pytest.mark.parametrize("damage", [name for name, _ in damaged(b"__")])
def test_a_damaged_file_is_solved_anew_with_a_warning(stand_in: Solver, tmp_path: Path, damage: str) -> None:
    solved = solver.cached_values(RULES)
    (file,) = files_in(tmp_path)
    content = dict(damaged(file.read_bytes()))[damage]
    assert content != file.read_bytes()
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="solving anew"):
        again = solver.cached_values(RULES)
    assert (again == solved).all()
    assert (solver.cached_values(RULES) == solved).all()  # no warning any more
    assert stand_in.calls == 2


def test_the_file_of_other_rules_is_not_taken_for_these(stand_in: Solver, tmp_path: Path) -> None:
    solver.cached_values(Rules(bonus_tiers=(), flush_score=40))
    (others,) = files_in(tmp_path)
    content = others.read_bytes()
    others.unlink()
    solver.cached_values(RULES)
    (file,) = files_in(tmp_path)
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="is about .*solving anew"):
        solver.cached_values(RULES)
    assert stand_in.calls == 3


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond 10,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_values_stay_in_memory_with_a_warning(stand_in: Solver, tmp_path: Path) -> None:
    with full_disk(), pytest.warns(UserWarning, match="cannot keep the optimum .* it stays in memory"):
        values = solver.cached_values(RULES)
    assert values[7] == 7.5
    assert not files_in(tmp_path)


def test_in_a_folder_that_cannot_be_written_values_stay_in_memory_with_a_warning(
    stand_in: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KISMET_CACHE_DIR", "/proc/kismet")  # where not even the superuser makes a folder
    with pytest.warns(UserWarning, match="cannot keep the optimum .* it stays in memory"):
        values = solver.cached_values(RULES)
    assert values[7] == 7.5


def test_with_a_file_in_the_place_of_the_folder_values_stay_in_memory_with_warnings(
    stand_in: Solver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KISMET_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="solving anew|it stays in memory") as caught:
        values = solver.cached_values(RULES)
    assert len(caught) == 2
    assert values[7] == 7.5


def test_warnings_point_at_who_asked_for_the_optimum(stand_in: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KISMET_CACHE_DIR", "/proc/kismet")
    with pytest.warns(UserWarning, match="it stays in memory") as caught:
        solver.solve(Rules(bonus_tiers=(), straight_score=1))
    assert [warning.filename for warning in caught] == [__file__]


def test_the_penalty_makes_no_other_optimum_and_no_other_file(stand_in: Solver, tmp_path: Path) -> None:
    one = solver.solve(Rules(bonus_tiers=(), straight_score=2))
    other = solver.solve({"bonus_tiers": [], "straight_score": 2, "second_kismet_penalty": False})
    assert one is other
    assert stand_in.calls == 1
    assert len(files_in(tmp_path)) == 1


ASKS = """
import time, numpy as np
from kismet_env import solver
from kismet_env.rules import Rules

def solve_values(tables, report):
    time.sleep(1)
    return np.arange(500_000) / 3

solver.solve_values = solve_values
for _ in range(5):
    assert (solver.cached_values(Rules()) == np.arange(500_000) / 3).all()
"""


def test_many_processes_may_ask_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"KISMET_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", ASKS]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    assert [file.suffix for file in files_in(tmp_path)] == [".safetensors"]


@pytest.mark.parametrize("second_kismet", SECOND_KISMET)
def test_the_largest_file_of_any_rules_is_small(stand_in: Solver, tmp_path: Path, second_kismet: str) -> None:
    solver.cached_values(Rules(second_kismet=second_kismet, bonus_tiers=((105, 1),)))  # every total counts
    (file,) = files_in(tmp_path)
    assert file.stat().st_size <= 30_000_000


def test_the_file_of_the_standard_rules_is_small(stand_in: Solver, tmp_path: Path) -> None:
    solver.cached_values(Rules())
    (file,) = files_in(tmp_path)
    assert file.stat().st_size <= 25_000_000


class Terminal(list[str]):
    """An error output that people look at."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.append(text)

    def flush(self) -> None:
        pass


def test_a_bar_of_progress_is_for_terminals_alone(
    stand_in: Solver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solver.cached_values(RULES, progress=True)
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    solver.cached_values(Rules(bonus_tiers=(), flush_score=1))
    assert not terminal
    solver.cached_values(Rules(bonus_tiers=(), flush_score=2), progress=True)
    assert "".join(terminal) == f"\rsolving [{'.' * 40}]   0%\rsolving [{'#' * 40}] 100%\n"
