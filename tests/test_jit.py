"""Compiled code: equal to plain Python, never older than its sources, and usable whatever the cache folder is."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kismet_env.batch import Batch

ROOT = Path(__file__).parent.parent


def start(code: str, *, project: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    """Start a fresh interpreter that takes kismet_env from the folder `project`."""
    environment |= {"PYTHONPATH": f"{project}{os.pathsep}{ROOT / 'tests'}", "PYTHONWARNINGS": "error"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], cwd=project, env=os.environ | environment, text=True, **pipes)


def output_of(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate()
    assert process.returncode == 0, error
    return out


def python(code: str, *, project: Path = ROOT, **environment: str) -> str:
    """Return what a fresh interpreter prints that takes kismet_env from the folder `project`."""
    return output_of(start(code, project=project, **environment))


# Plain Python

GAMES: dict[str, tuple[dict[str, Any], str]] = {  # arguments of Batch, and how actions are chosen
    "solitaire": ({}, "legal"),
    "holds, dict, final": ({"actions": "holds", "observation": "dict", "reward": "final"}, "legal"),
    "two players, win": ({"num_players": 2, "reward": "win"}, "legal"),
    "three players, raw, second Kismets": ({"num_players": 3, "observation": "raw"}, "kismets"),
    "dict of four, rolled": (
        {"num_players": 4, "observation": "dict", "rules": {"second_kismet": "rolled", "joker": "always"}},
        "kismets",
    ),
    "zeros, Yarborough, tiers": (
        {
            "rules": {
                "zeros": "only_if_nothing_scores",
                "yarborough": "only_if_nothing_else",
                "bonus_tiers": [[7, 5], [41, 20]],
            }
        },
        "legal",
    ),
    "open:4": ({"start": "open:4", "autoreset": "SameStep"}, "legal"),
    "uniform, two players": ({"num_players": 2, "start": "uniform", "autoreset": "NextStep"}, "legal"),
    "any action, penalty": ({"autoreset": "SameStep"}, "any"),
    "any action, terminate": ({"illegal_action": "terminate", "autoreset": "NextStep"}, "any"),
}


def log_of(name: str) -> Iterator[dict[str, str]]:
    """Yield, step by step, what a few games show: digests of every array."""
    arguments, choice = GAMES[name]
    batch = Batch(3, **arguments)
    batch.seed([5, 2**64 + 1, 7])
    out = batch.deal()
    boxes = batch.actions.num_rolls
    for number in range(60):
        arrays = {**out._asdict(), **batch.state._asdict(), "shares": batch.choice_shares()}
        yield {field: sha256(array.tobytes()).hexdigest()[:8] for field, array in arrays.items()}
        actions = []
        for row, mask in enumerate(out.masks):
            legal = np.flatnonzero(mask)
            if choice == "any":
                legal = np.arange(len(mask))
            elif choice == "kismets" and not batch.state.games["over"][row]:
                batch.state.games["roll"][row] = (0, 126, 251)[row]  # 1-1-1-1-1 and others
                batch.state.games["rolls_left"][row] = 0
                legal = boxes + np.flatnonzero(batch.look().masks[row, boxes:])[-1:]
            actions.append(legal[(7 * number + row) * 31 % len(legal)])
        out = batch.step(np.array(actions))


def test_plain_python_plays_the_same_games_as_the_compiled_code() -> None:
    code = "import json, test_jit as t; print(json.dumps({name: list(t.log_of(name)) for name in t.GAMES}))"
    plain = json.loads(python(code, NUMBA_DISABLE_JIT="1"))
    for name in GAMES:
        for number, (compiled_step, plain_step) in enumerate(zip(log_of(name), plain[name], strict=True)):
            different = [field for field in compiled_step if compiled_step[field] != plain_step[field]]
            assert not different, f"{name}, step {number}: {different} differ"


# The cache

PROBE = """
from kismet_env.engine import ROLLS_PER_TURN, count_boxes
from kismet_env.jit import compiled

@compiled
def probe(filled):
    return ROLLS_PER_TURN * count_boxes(filled)
"""
RUN_PROBE = """
from kismet_env.probe import probe
print(probe(0b1011), sum(probe.stats.cache_hits.values()), sum(probe.stats.cache_misses.values()))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a copy of the package in which one more kernel uses a function and a constant of another file."""
    copy = shutil.copytree(ROOT / "kismet_env", tmp_path / "kismet_env", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "probe.py").write_text(PROBE)
    return tmp_path


def test_a_kernel_is_kept_until_a_function_or_a_constant_of_any_file_changes(project: Path) -> None:
    engine = project / "kismet_env" / "engine.py"
    first = engine.read_text()
    edited = first.replace("count += 1", "count += 2")
    edited_again = edited.replace("ROLLS_PER_TURN = 3 ", "ROLLS_PER_TURN = 4 ")
    assert len({first, edited, edited_again}) == 3
    unused = project / "cache" / "kernels" / "unused" / "folder"
    unused.mkdir(parents=True)
    os.utime(unused.parent, (0, 0))
    for source, expected in [(first, "9 0 1"), (edited, "18 0 1"), (edited_again, "24 0 1"), (first, "9 1 0")]:
        engine.write_text(source)
        actual = python(RUN_PROBE, project=project, KISMET_CACHE_DIR=str(project / "cache"))
        assert actual.strip() == expected, f"result, loaded, compiled: expected {expected}, actual {actual}"
    assert len(list(unused.parent.parent.iterdir())) == 3, "one for each version, and no longer that of 1970"


def test_a_cache_folder_that_cannot_be_written_is_done_without(project: Path) -> None:
    no_folder = project / "a file"
    no_folder.touch()
    assert python(RUN_PROBE, project=project, KISMET_CACHE_DIR=str(no_folder)).split() == ["9", "0", "1"]
    assert not list(project.rglob("*.nb?")), "numba has found itself another folder"


def test_a_full_disk_is_done_without(project: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
    assert python(full + RUN_PROBE, project=project, KISMET_CACHE_DIR=str(project / "cache")).split() == ["9", "0", "1"]
    assert python(RUN_PROBE, project=project, KISMET_CACHE_DIR=str(project / "cache")).split() == ["9", "0", "1"]
    assert python(RUN_PROBE, project=project, KISMET_CACHE_DIR=str(project / "cache")).split() == ["9", "1", "0"]


def test_only_one_module_knows_numba() -> None:
    """CONTRIBUTING: who decorates with numba's own decorator gets its stale cache."""
    imports = re.compile(r"^ *(import|from) numba\b", re.MULTILINE)
    users = [path.name for path in (ROOT / "kismet_env").rglob("*.py") if imports.search(path.read_text())]
    assert users == ["jit.py"]


@pytest.mark.slow
def test_two_processes_may_fill_one_cold_cache(tmp_path: Path) -> None:
    code = "import json, test_jit as t; print(json.dumps(list(t.log_of('solitaire'))))"
    processes = [start(code, KISMET_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    logs = [output_of(process) for process in processes]
    assert logs[0] == logs[1] == python(code, KISMET_CACHE_DIR=str(tmp_path))
    assert json.loads(logs[0]) == list(log_of("solitaire"))
