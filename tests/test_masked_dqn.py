"""agents/masked_dqn.py: targets by hand, a memory that shows what was seen, runs that resume exactly."""

from pathlib import Path

import numpy as np
import pytest
import torch
from broken_runs import assert_same_policy, interrupt_at

import train
from agents.masked_dqn import Config, Learner, Memory, best_legal, double_targets
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.policy_file import load_policy

SMALL = [
    *("masked_dqn", "--num-envs", "16", "--round-steps", "16", "--batch-size", "32", "--memory", "640", "--threads"),
    *("1", "--hidden-sizes", "16", "--selection-games", "8", "--selection-every", "2", "--steps", str(6 * 256)),
]


def test_targets_are_those_worked_out_by_hand() -> None:
    """Two steps, discount 1/2; the action that would be best is illegal, and the slow network knows another best."""
    targets = double_targets(
        torch.tensor([[1.0, 4.0], [1.0, 4.0], [1.0, 4.0]]),
        torch.tensor([[False, False], [True, False], [False, True]]),
        0.5,
        fast=torch.tensor([[9.0, 3.0, 5.0]]).expand(3, 3),
        slow=torch.tensor([[70.0, 90.0, 8.0]]).expand(3, 3),
        masks=torch.tensor([[0, 1, 1]], dtype=torch.int8).expand(3, 3),
    )
    assert targets.tolist() == [1 + 4 / 2 + 8 / 4, 1, 1 + 4 / 2]
    assert best_legal(torch.tensor([[-5.0, -7.0, 2.0]]), torch.tensor([[1, 1, 0]])).tolist() == [0]


def test_the_memory_shows_what_was_seen_and_done() -> None:
    """Longer than it is, so that it has been written over, and over the ends of games."""
    games, memory, chance = Batch(8, autoreset="SameStep", start="open:1"), Memory(20, 8), np.random.default_rng(0)
    games.seed(range(8))
    seen, told = games.deal(), []
    for _ in range(50):
        before, actions = games.decisions(), (chance.random(seen.masks.shape) * seen.masks).argmax(1)
        after = games.step(actions)
        told.append((seen, actions, after))
        memory.add(before, actions, after)
        seen = after
    steps, rows = memory.places(4000, 3, chance)
    assert memory.over[steps, rows].any()
    pairs = set(zip(steps[:, 0].tolist(), rows[:, 0].tolist(), strict=True))
    assert len(pairs) == (20 - 3) * 8, "all that three steps are known of"
    shown = Batch(4000).show(memory.decided(steps[:, 3], rows[:, 0]))
    for index, (step, row) in enumerate(zip(steps[:, 0], rows[:, 0], strict=True)):
        first = next(number for number in range(30, 50) if number % 20 == step)
        for ahead in range(3):
            _, actions, after = told[first + ahead]
            assert memory.actions[(step + ahead) % 20, row] == actions[row]
            assert memory.rewards[(step + ahead) % 20, row] == after.rewards[row, 0]
            assert memory.over[(step + ahead) % 20, row] == after.terminated[row]
        then = told[first + 3][0]
        assert (shown.observations[index] == then.observations[row]).all()
        assert (shown.masks[index] == then.masks[row]).all()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert train.main([*SMALL, "--run", str(folder)]) == 0
    return folder


def test_the_portable_policy_plays_the_best_legal_action_of_the_slow_network(finished: Path) -> None:
    learner = Learner(Config(num_envs=16, hidden_sizes=(16,), memory=640), run=None)  # type: ignore[arg-type]
    learner.restore(torch.load(finished / "checkpoint.pt", weights_only=True)["state"])
    batch = Batch(500, start="uniform")
    batch.seed(range(500))
    seen = batch.deal()
    with torch.no_grad():
        values = torch.where(torch.from_numpy(seen.masks) > 0, learner._slow(torch.from_numpy(seen.observations)), -1e9)
    actions = make(f"policy:{finished / 'policy.safetensors'}").act(seen.observations, seen.masks)
    chosen = values.numpy()[np.arange(500), actions]
    np.testing.assert_allclose(chosen, values.max(1).values, rtol=0, atol=1e-5)
    assert load_policy(finished / "policy.safetensors").provenance.algorithm == "masked_dqn"


def test_a_resumed_run_equals_the_uninterrupted_one(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = interrupt_at(monkeypatch, 3)
    assert train.main([*SMALL, "--run", str(tmp_path / "run")]) == 130
    assert train.main(["masked_dqn", "--resume", str(tmp_path / "run")]) == 0
    assert len(rows) == 6
    assert_same_policy(tmp_path / "run", finished)


def test_options_that_cannot_be_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        "--memory 100",
        "--n-steps 0",
        "--averaging 2",
        "--hidden-sizes 0",
        "--minutes 0",
        "--round-steps 99999999",
    ):
        assert train.main(["masked_dqn", *options.split(), "--run", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_it_learns(tmp_path: Path) -> None:
    assert train.main(["masked_dqn", "--steps", "300000", "--threads", "1", "--run", str(tmp_path / "run")]) == 0
    last = (tmp_path / "run" / "curve.csv").read_text().splitlines()
    score = dict(zip(last[0].split(","), last[-1].split(","), strict=True))["selection_score"]
    assert float(score) > 150, "random play: 60"
