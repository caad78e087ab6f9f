"""Models of MaskablePPO as players: they see what they know, do what they mean, and are refused if they do not fit."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from kismet_env.batch import Batch
from kismet_env.bots import StochasticPlayer, make
from kismet_env.evaluation import EVALUATION_DICE, game_keys, play
from kismet_env.provenance import Provenance
from kismet_env.rules import SUITE, Rules
from kismet_env.sb3 import KismetVecEnv

FORMS = [("features", "keeps"), ("features", "holds"), ("raw", "keeps"), ("raw", "holds")]
GAMES = 40


def model(observation: str = "features", actions: str = "keeps", **options: Any) -> MaskablePPO:
    """An untrained model with opinions: its last layer is a hundred times larger than at birth."""
    env = KismetVecEnv(2, observation=observation, actions=actions, **options)
    policy = "MultiInputPolicy" if observation == "dict" else "MlpPolicy"
    made = MaskablePPO(policy, env, n_steps=4, batch_size=8, seed=0, device="cpu", policy_kwargs={"net_arch": [16]})
    with torch.no_grad():
        made.policy.action_net.weight *= 100
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model for each form of observations and actions."""
    folder = tmp_path_factory.mktemp("models")
    for observation, actions in FORMS:
        model(observation, actions).save(folder / f"{observation}_{actions}.zip")
    return folder


@pytest.mark.parametrize(("observation", "actions"), FORMS)
def test_a_model_plays_as_sb3_itself_would_let_it(saved: Path, observation: str, actions: str) -> None:
    """Side by side with `predict` in an environment of the model's own form, whole games long."""
    file = saved / f"{observation}_{actions}.zip"
    player, theirs = make(f"sb3:{file}", trust=True), MaskablePPO.load(file)
    keys = game_keys(EVALUATION_DICE, 4, range(GAMES))
    ours_batch, their_batch = Batch(GAMES), Batch(GAMES, observation=observation, actions=actions)
    ours, their = ours_batch.deal_keys(keys), their_batch.deal_keys(keys)
    while not ours_batch.over.all():
        chosen, _ = theirs.predict(their.observations, action_masks=their.masks == 1, deterministic=True)
        ours = ours_batch.step(player.act(ours.observations, ours.masks))
        their = their_batch.step(chosen)
        assert (ours.scorecards == their.scorecards).all()
        assert (ours_batch.state.games["roll"] == their_batch.state.games["roll"]).all()
        assert not ours.illegal.any()


@pytest.mark.parametrize(("observation", "actions"), FORMS)
def test_a_sampling_model_names_its_probabilities(saved: Path, observation: str, actions: str) -> None:
    player = make(f"sb3:{saved / f'{observation}_{actions}.zip'}:sample", trust=True)
    best = make(f"sb3:{saved / f'{observation}_{actions}.zip'}", trust=True)
    assert isinstance(player, StochasticPlayer)
    seen = Batch(GAMES, 2).deal_keys(game_keys(EVALUATION_DICE, 0, range(GAMES)))
    probabilities = player.probabilities(seen.observations, seen.masks)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-5)
    assert not probabilities[seen.masks == 0].any()
    assert (best.act(seen.observations, seen.masks) == probabilities.argmax(1)).all()
    sampled, argmax = play(player, GAMES, seed=0), play(best, GAMES, seed=0)
    assert not sampled.illegal.any()
    assert (sampled.totals != argmax.totals).any()


def test_a_model_can_be_sent_to_another_process(saved: Path) -> None:
    player = make(f"sb3:{saved / 'raw_holds.zip'}", trust=True)
    copy = pickle.loads(pickle.dumps(player))
    assert (play(copy, 5, seed=0).totals == play(player, 5, seed=0).totals).all()


def refusal(file: Path, rules: Rules | None = None, *, trust: bool = True) -> str:
    with pytest.raises(ValueError, match=file.name) as refused:
        make(f"sb3:{file}", rules, trust=trust)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_without_trust_no_file_is_loaded(saved: Path) -> None:
    assert "--trust" in refusal(saved / "raw_keeps.zip", trust=False)


def test_models_that_see_something_else_are_refused(tmp_path: Path) -> None:
    model("dict").save(tmp_path / "dict.zip")
    assert "79 (features) or 56 (raw)" in refusal(tmp_path / "dict.zip")
    model(rules="one_bonus").save(tmp_path / "one_bonus.zip")
    assert "(77,)" in refusal(tmp_path / "one_bonus.zip")


def test_models_of_other_rules_are_refused_where_they_say_so(tmp_path: Path, saved: Path) -> None:
    file = tmp_path / "strict.zip"
    model(rules="strict").save(file)
    Provenance.of("maskable_ppo", rules=SUITE["strict"], seed=0).write_zip(file)
    message = refusal(file)
    assert "flat_50" in message
    assert "sum_plus_50" in message
    make(f"sb3:{file}", "strict", trust=True)


def test_models_of_another_kind_are_refused(tmp_path: Path) -> None:
    PPO("MlpPolicy", KismetVecEnv(2), n_steps=4, batch_size=8).save(tmp_path / "ppo.zip")
    assert "MaskablePPO" in refusal(tmp_path / "ppo.zip")


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    diverged = model()
    with torch.no_grad():
        diverged.policy.action_net.weight[0, 0] = torch.nan
    diverged.save(tmp_path / "diverged.zip")
    assert "finite" in refusal(tmp_path / "diverged.zip")
