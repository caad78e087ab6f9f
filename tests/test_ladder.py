"""agents/ladder.py: what each rung is told is the truth, by other ways to it, and its runs resume exactly."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_runs import assert_same_policy, interrupt_at

import train
from agents import ladder, maskable_ppo
from agents.ladder import Config, ExactAdvantage, ExpectedDice, advantages, expectations, keeps_of
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.dice import keep_index
from kismet_env.observation import decode
from kismet_env.policy_file import load_policy
from kismet_env.rules import Rules
from kismet_env.solver import solve

SIZES = [
    *("--num-envs", "16", "--rollout-steps", "16", "--batch-size", "64", "--epochs", "1", "--hidden-sizes", "16"),
    *("--selection-games", "8", "--selection-every", "2", "--threads", "1", "--steps", str(6 * 256)),
]
SMALL = Config(num_envs=12, rollout_steps=50, hidden_sizes=(16,), batch_size=600, gae_lambda=0.0)


def rollout(learner: Any, policy_values: Any = None) -> Any:
    """The buffer of a learner after one rollout, which every game ends in; its critic says `policy_values`."""
    model, _ = maskable_ppo.make(SMALL, learner)
    if policy_values:
        policy, forward = model.policy, model.policy.forward
        policy.predict_values = policy_values

        def act(seen: torch.Tensor, **options: Any) -> Any:
            actions, _, logarithms = forward(seen, **options)
            return actions, policy_values(seen), logarithms

        policy.forward = act
    model.lr_schedule = lambda share: 0.0
    model.n_epochs = 0
    model.train = lambda: None
    model.learn(SMALL.num_envs * SMALL.rollout_steps)
    return model, model.rollout_buffer


def test_an_advantage_is_what_an_action_is_worth_beyond_the_mean_one() -> None:
    values = np.array([[3.0, 1.0, -np.inf], [5.0, -np.inf, 9.0]])
    probabilities = np.array([[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]])
    assert advantages(values, probabilities, np.array([1, 2])).tolist() == [-1.0, 1.0]


def test_exact_advantages_are_those_of_the_optimum_under_the_policy_that_acted() -> None:
    model, buffer = rollout(ExactAdvantage)
    optimum = solve()
    for step in range(0, 50, 7):
        for row in (0, 11):
            seen, mask = buffer.observations[step, row], buffer.action_masks[step, row]
            values = optimum.action_values(*decode(seen))
            logits = model.policy.action_net(model.policy.mlp_extractor.forward_actor(torch.from_numpy(seen)))
            weights = np.where(mask > 0, np.exp(logits.detach().double().numpy()), 0.0)
            mean = sum(w * v for w, v in zip(weights, values, strict=True) if w) / weights.sum()
            action = int(buffer.actions[step, row, 0])
            assert buffer.advantages[step, row] == pytest.approx(values[action] - mean, abs=1e-4)


def judge(observations: Any) -> Any:
    """A critic who sees everything and is linear in nothing."""
    weights = np.random.default_rng(0).normal(size=observations.shape[1])
    return np.sin(observations @ weights)


@pytest.mark.parametrize(
    ("kept", "left"),
    [((), 2), ((6,), 1), ((3, 4), 0), ((5, 5, 5), 1), ((1, 2, 3, 4), 0)],
)
def test_the_mean_over_dice_is_that_over_all_throws(kept: tuple[int, ...], left: int) -> None:
    """Of 6 to 7,776 throws, in the positions that they lead to; beside other cards and keeps."""
    cards = [{"ACES": 3, "FIVES": 10}, {"KISMET": 65, "FLUSH": 0, "SIXES": 24}]
    means = []
    for card in cards:
        throws = [sorted((*kept, *others)) for others in product(range(1, 7), repeat=5 - len(kept))]
        batch = Batch(len(throws))
        positions = [{"cards": [card], "dice": dice, "rolls_left": left} for dice in throws]
        means.append(judge(batch.deal_positions(positions).observations).mean())
    seen = Batch(5)
    dice = {"dice": [1, 1, 1, 1, 1], "rolls_left": left}
    where = np.array([0, 1, 1, 0, 1])
    decisions = decode(seen.deal_positions([{"cards": [cards[i]], **dice} for i in where]).observations)
    others = keep_index((2, 2))
    keeps = np.array([keep_index(kept)] * 3 + [others] * 2)
    for rows in (252, 600):  # one case at a time, and several
        found = expectations(decisions, keeps, judge=judge, batch=Batch(rows))
        np.testing.assert_allclose(found[:3], np.array(means)[where[:3]], rtol=0, atol=1e-6)
        assert found[3] != found[4]


def test_after_a_box_all_dice_are_rolled() -> None:
    actions = actions_of("keeps")
    keep, box = keep_index((4, 4)), actions.box_action(3)
    assert keeps_of(np.array([keep, box])).tolist() == [keep, keep_index(())]


def test_with_a_critic_who_knows_the_truth_expected_advantages_are_regret() -> None:
    """One step: reward + E V(next) - V is what the action is worth less than the best one, whatever dice came."""
    scale = SMALL.points_per_reward

    def truth(seen: torch.Tensor) -> torch.Tensor:
        best = solve().action_values(*decode(seen.numpy())).max(1) / scale
        return torch.from_numpy(best.astype(np.float32))[:, None]

    _, buffer = rollout(ExpectedDice, truth)
    values = solve().action_values(*decode(buffer.observations))
    values = values.reshape(-1, values.shape[-1])
    actions = buffer.actions.reshape(-1).astype(int)
    regret = values.max(1) - values[np.arange(len(actions)), actions]
    assert (buffer.episode_starts[1:] > 0).any(), "games end in it"
    assert regret.max() > 20
    np.testing.assert_allclose(-scale * buffer.advantages.reshape(-1), regret, rtol=0, atol=1e-3)


@pytest.mark.parametrize("rung", ["clone", "exact", "expected"])
def test_a_resumed_run_equals_the_uninterrupted_one(rung: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    command = ["ladder", "--rung", rung, *SIZES]
    assert train.main([*command, "--run", str(whole)]) == 0
    rows = interrupt_at(monkeypatch, 3)
    assert train.main([*command, "--run", str(broken)]) == 130
    assert train.main(["ladder", "--resume", str(broken)]) == 0
    assert len(rows) == 6
    assert_same_policy(whole, broken)


def test_the_plain_rung_is_maskable_ppo_itself(tmp_path: Path) -> None:
    for name in ("maskable_ppo", "ladder"):
        rung = ["--rung", "plain"] if name == "ladder" else []
        assert train.main([name, *rung, *SIZES, "--run", str(tmp_path / name)]) == 0
    assert_same_policy(tmp_path / "maskable_ppo", tmp_path / "ladder")
    assert load_policy(tmp_path / "ladder" / "policy.safetensors").provenance.algorithm == "ladder"


def test_imitating_the_truth_for_a_second_is_better_than_chance(tmp_path: Path) -> None:
    """The selection score is without luck: of eight games within a few points."""
    folder = tmp_path / "run"
    assert (
        train.main(
            ["ladder", "--rung", "clone", *SIZES, "--epochs", "20", "--hidden-sizes", "64", "--run", str(folder)]
        )
        == 0
    )
    last = (folder / "curve.csv").read_text().splitlines()
    score = float(dict(zip(last[0].split(","), last[-1].split(","), strict=True))["selection_score"])
    assert 90 < score < solve(Rules()).expected_score, "random play: 60"


def test_only_what_the_exact_values_speak_of_can_be_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ("--actions holds", "--observation dict", "--clone-temperature 0", "--opponents greedy"):
        assert train.main(["ladder", *options.split(), "--run", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "run").exists()
    assert ladder.Config().rung == "expected"
