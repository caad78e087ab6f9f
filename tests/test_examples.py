"""The examples run, and print what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("example", "needs", "printed"),
    [
        ("behaviour_cloning.py 100", ("torch",), r"^clone: [1-4]\.\d\d, the best action in \d\d% of the positions$"),
        pytest.param(
            "cleanrl_ppo.py 65536 NextStep",
            ("torch",),
            r"^NextStep: mean (8|9|1\d)\d\.\d of the last 100 games$",  # random play: 58
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "cleanrl_ppo.py 65536 SameStep",
            ("torch",),
            r"^SameStep: mean (8|9|1\d)\d\.\d of the last 100 games$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "off_policy.py 1000", ("scipy",), r"^exact value of boltzmann:1\.5: 2\d\d\.\d$", marks=pytest.mark.slow
        ),
        pytest.param("gymnasium_tools.py", (), r"^two processes: \[\d+, \d+\] points", marks=pytest.mark.slow),
        ("mcts.py 2 20 2", (), r"^20 simulations: regret \d+\.\d\d points a game, mean of 2 games$"),
        ("openspiel_mcts.py 2", ("pyspiel",), r"^random play: \d+ points$"),
        ("own_bot.py", (), r"^Collector wins \d+\.\d% of its games and ties \d+\.\d%$"),
        ("pettingzoo_loop.py", ("pettingzoo",), r"^player_2 has \d+ points$"),
        ("tabular_q_learning.py 300", (), r"^best play: 10\.46 points, .*, 9\d\.\d%$"),
        pytest.param("tabular_q_learning.py", (), r"^best play: 10\.46 points, .*, 99\.\d%$", marks=pytest.mark.slow),
        pytest.param(
            "selfplay_maskable_ppo.py 64",
            ("sb3_contrib",),
            r"^generation 4: mean result [+-]\d\.\d\d in the last 100 games$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "without_masks.py 20000",
            ("stable_baselines3",),
            r"^PPO: mean return -?\d+\.\d of the last 100 games, .* of all actions were illegal$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "rllib_two_players.py shared 1",
            ("ray", "pettingzoo"),
            r"^player_0 wins \d+% of 20 games against random play$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "rllib_two_players.py separate 1",
            ("ray", "pettingzoo"),
            r"^player_0 wins \d+% of 20 games against random play$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "tianshou_dqn.py 400",
            ("tianshou", "pettingzoo"),
            r"^one player: mean \d+\.\d points in 20 games\n(.*\n)*two players: player_0 wins \d+% of 20 games",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "torchrl_ppo.py 2",
            ("torchrl",),
            r"^mean \d\d\.\d points in the last 1\d\d games, 0 illegal actions$",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "torchrl_two_players.py 3",
            ("torchrl", "pettingzoo"),
            r"^last game: \d+ decisions, 0 of them illegal; result of player_1 [+-]\d$",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_example(example: str, needs: tuple[str, ...], printed: str) -> None:
    for package in needs:
        pytest.importorskip(package)
    script, *arguments = example.split()
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / script), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(printed, done.stdout, re.MULTILINE), done.stdout


def test_every_example_is_tested() -> None:
    marks = next(mark for mark in test_example.pytestmark if mark.name == "parametrize")
    tested = {case.values[0] if hasattr(case, "values") else case[0] for case in marks.args[1]}
    assert {case.split()[0] for case in tested} == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_examples_are_short() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "examples").glob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > 60}
