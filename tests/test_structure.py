"""The shape of the project: imports go one way, importing stays light, the wheel holds the package alone."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kismet_env

ROOT = Path(__file__).parent.parent

# A module imports from its own line and the lines above, never from below, and nobody imports in a circle.
LAYERS = """
    tensor_file cache jit dice rules
    tables
    actions
    engine
    observation starts turn cards
    position batch
    provenance policy_file render exact
    env vector_env kismet_v0 open_spiel_game solver
    regret endgame late_cards
    win_chance
    card_pair
    bots
    match
    versus_env record
    sb3 wrappers asked
    kismet_env
    evaluation
    contest rllib
    ratings
    analysis advice
    plots command_line terminal report screen value_suite dataset leaderboard
    sitting
    board dialogue
    commands
    __main__
    agents
    train evaluate
"""
LAYER = {name: depth for depth, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}


def piece_of(path: Path) -> str:
    """The name in LAYERS that owns a source file; `kismet_env` stands for the package's own `__init__`."""
    package, *rest = path.relative_to(ROOT).with_suffix("").parts
    return rest[0] if package == "kismet_env" and rest[0] != "__init__" else package


def imported_by(path: Path) -> set[str]:
    """The names in LAYERS that a file imports anywhere, in functions and for type checking too."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            # `from kismet_env import dice` is the module, `from kismet_env import Rules` the package
            modules |= {f"{module}.{alias.name}" if module == "kismet_env" else module for alias in node.names}
    pieces = set()
    for module in modules:
        package, *rest = module.split(".")
        inside = package == "kismet_env" and rest and exists(ROOT / package / rest[0])
        if inside or exists(ROOT / package):
            pieces.add(rest[0] if inside else package)
    return pieces


def exists(module: Path) -> bool:
    return module.with_suffix(".py").exists() or (module / "__init__.py").exists()


SOURCES = sorted(
    path
    for pattern in ("kismet_env/**/*.py", "agents/**/*.py", "train.py", "evaluate.py")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_come_from_the_same_layer_or_above(path: Path) -> None:
    piece = piece_of(path)
    assert piece in LAYER, f"{piece} has no place in LAYERS of {Path(__file__).name}"
    below = sorted(name for name in imported_by(path) if LAYER.get(name, 0) > LAYER[piece])
    assert not below, f"{piece} may not import {', '.join(below)}"


def test_no_imports_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        piece = piece_of(path)
        graph.setdefault(piece, set()).update(imported_by(path) - {piece})
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints when it runs `code` from the project's folder."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    # scipy.stats for scipy: numba itself asks the bare scipy for its version
    heavy = {
        "torch",
        "scipy.stats",
        "matplotlib",
        "stable_baselines3",
        "sb3_contrib",
        "pettingzoo",
        "rich",
        "tyro",
        "PIL",
        "pygame",
    }
    loaded = set(python("import sys, kismet_env; print(*sys.modules)").split())
    assert "kismet_env" in loaded
    assert not heavy & loaded


def test_importing_the_package_compiles_and_caches_nothing(tmp_path: Path) -> None:
    compiled = python(
        "from numba.core import event\n"
        "with event.install_recorder('numba:compile') as compiled:\n"
        "    import kismet_env\n"
        "print(len(compiled.buffer))",
        KISMET_CACHE_DIR=str(tmp_path / "kismet"),
        XDG_CACHE_HOME=str(tmp_path / "user"),
    )
    assert int(compiled) == 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_tracked_files_name_no_folder_of_one_machine() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    home = re.compile(rb"/(?:home|root|Users|work|opt)/\w+")
    found = {
        name: hits
        for name in filter(None, tracked.split("\0"))
        if (ROOT / name).is_file() and (hits := home.findall((ROOT / name).read_bytes()))
    }
    assert not found


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    files = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in files} == {"kismet_env"}
    assert {"kismet_env/py.typed", "kismet_env/value_suite.safetensors"} <= set(files)
    sources = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("kismet_env/**/*.py")}
    policies = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("kismet_env/policies/*")}
    assert sources | policies <= set(files)


def test_citation_and_package_have_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert kismet_env.__version__ == project["version"]


def test_whoever_takes_rules_takes_the_name_of_a_variant() -> None:
    """For type checkers too: `solve("no_bonus")` is what the README writes."""
    signatures = [
        line
        for path in ROOT.glob("kismet_env/**/*.py")
        for line in re.findall(r"rules: (Rules \| Mapping.*)", path.read_text())
    ]
    assert len(signatures) > 10
    assert all("| str | None" in line for line in signatures), signatures
