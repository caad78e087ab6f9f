"""`KismetVecEnv`: the rows of the vector environment in the form of Stable-Baselines3, ready for MaskablePPO."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.spaces import Dict
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from kismet_env import Rules
from kismet_env.batch import MOST_ILLEGAL
from kismet_env.sb3 import KismetVecEnv
from kismet_env.vector_env import KismetVectorEnv


def legal_actions(masks: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return (rng.random(masks.shape) * masks).argmax(1)


def small_learner(env: Any, **options: Any) -> MaskablePPO:
    policy = "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy"
    return MaskablePPO(policy, env, n_steps=32, batch_size=128, n_epochs=1, seed=0, device="cpu", **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"observation": "raw", "actions": "holds", "rules": {"joker": "natural"}},
        {"observation": "dict", "reward": "final", "illegal_action": "terminate"},
        {"start": "open:2"},
    ],
    ids=str,
)
def test_rows_are_those_of_the_vector_env(options: dict[str, Any]) -> None:
    num_envs, rng = 5, np.random.default_rng(0)
    ours = KismetVecEnv(num_envs, seed=3, **options)
    theirs = KismetVectorEnv(num_envs, autoreset_mode="SameStep", **options)
    seen = ours.reset()
    expected, infos = theirs.reset(seed=3)
    ended = 0
    for step in range(150):
        np.testing.assert_equal(seen, expected, err_msg=f"observations, step {step}")
        np.testing.assert_equal(ours.env_method("action_masks"), infos["action_mask"].astype(bool))
        actions = legal_actions(ours.action_masks(), rng)
        if step % 50 == 7:
            actions[1] = 0 if not ours.action_masks()[1, 0] else ours.action_space.n - 1  # mostly illegal
        seen, rewards, dones, seen_infos = ours.step(actions)
        expected, expected_rewards, terminated, truncated, infos = theirs.step(actions)
        np.testing.assert_array_equal(rewards, expected_rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        for row in range(num_envs):
            assert bool(seen_infos[row]) == dones[row]
            if dones[row]:
                ended += 1
                np.testing.assert_equal(seen_infos[row]["terminal_observation"], infos["final_obs"][row])
                np.testing.assert_array_equal(seen_infos[row]["scorecard"], infos["final_info"]["scorecard"][row])
                assert seen_infos[row]["total"] == infos["final_info"]["total"][row]
                assert seen_infos[row]["TimeLimit.truncated"] is bool(truncated[row] and not terminated[row])
    assert ended > 5


def test_episode_statistics_are_those_of_the_games() -> None:
    env, rng = KismetVecEnv(4, seed=0), np.random.default_rng(1)
    env.reset()
    lengths, checked = np.zeros(4, int), 0
    while checked < 12:
        _, _, dones, infos = env.step(legal_actions(env.action_masks(), rng))
        lengths += 1
        for row in np.flatnonzero(dones):
            episode = infos[row]["episode"]
            assert episode["r"] == infos[row]["total"] == infos[row]["scorecard"].sum() + bonus(infos[row])
            assert episode["l"] == lengths[row]
            assert episode["t"] > 0
            lengths[row] = 0
            checked += 1


def bonus(info: dict[str, Any]) -> int:
    basic_total = info["scorecard"][:6].sum()
    return max((points for total, points in Rules().bonus_tiers if basic_total >= total), default=0)


def test_the_hundredth_illegal_action_truncates() -> None:
    env = KismetVecEnv(2, seed=0)
    env.reset()
    masks = env.action_masks()
    actions = np.where(masks[:, 0], np.argmin(masks, axis=1), 0)
    actions[1] = masks[1].argmax()
    for _ in range(MOST_ILLEGAL - 1):
        _, rewards, dones, _ = env.step(actions)
        assert rewards[0] == -1
        assert not dones[0]
        actions[1] = env.action_masks()[1].argmax()
    _, _, dones, infos = env.step(actions)
    assert dones[0]
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["episode"] == {"r": -100.0, "l": 100, "t": infos[0]["episode"]["t"]}
    assert env.illegal_actions == MOST_ILLEGAL


def test_masks_come_without_a_call_per_row() -> None:
    env = KismetVecEnv(6, seed=0)
    env.reset()
    assert is_masking_supported(env)
    masks = env.env_method("action_masks")
    assert masks.shape == (6, 225)
    assert masks.dtype == np.bool_
    np.testing.assert_array_equal(get_action_masks(env), masks)
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[4, 1]), masks[[4, 1]])
    np.testing.assert_array_equal(env.env_method("action_masks", indices=2), masks[[2]])
    np.testing.assert_array_equal(env.get_attr("action_masks", indices=[3])[0](), masks[3])


def test_attributes_of_rows() -> None:
    env = KismetVecEnv(3, rules={"joker": "always"})
    assert env.get_attr("render_mode") == [None] * 3
    assert env.get_attr("rules", indices=[0, 2]) == [Rules(joker="always")] * 2
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(VecMonitor, indices=1) == [False]
    assert not env.has_attr("venv")
    for call in (
        lambda: env.get_attr("seed_of_luck"),
        lambda: env.set_attr("rules", Rules()),
        lambda: env.env_method("render"),
    ):
        with pytest.raises(AttributeError, match="KismetVecEnv"):
            call()


def test_seeding() -> None:
    first, second = KismetVecEnv(4, seed=11), KismetVecEnv(4)
    second.seed(11)
    np.testing.assert_array_equal(first.reset(), second.reset())
    np.testing.assert_array_equal(first.reset(), second.reset())  # the next episodes of the seeding
    assert not np.array_equal(first.reset(), KismetVecEnv(4, seed=12).reset())
    one, other = KismetVecEnv(4), KismetVecEnv(4)
    assert not np.array_equal(one.reset(), other.reset())  # nobody said a seed
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (the generator that must stay untouched)
    KismetVecEnv(4).reset()
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_rows_begin_in_positions() -> None:
    env = KismetVecEnv(3, seed=0)
    position = {"cards": [{"ACES": 3, "KISMET": 65}], "dice": [2, 2, 5, 5, 6], "rolls_left": 1}
    env.set_options([{}, {"position": position}, {}])
    env.reset()
    found = env.env_method("position", indices=[1])[0]
    assert found["cards"] == position["cards"]
    assert found["dice"] == position["dice"]
    assert env.position(0)["cards"] == [{}]
    env.reset()
    assert env.position(1)["cards"] == [{}]  # options are for one reset
    env.set_options({"position": {"cards": [{"ACES": 4}], "dice": [1, 2, 3, 4, 7], "rolls_left": 1}})
    with pytest.raises(ValueError, match="7"):
        env.reset()


def test_save_and_restore_and_pickle_go_on_with_the_same_games() -> None:
    env, rng = KismetVecEnv(4, seed=5), np.random.default_rng(2)
    env.reset()
    for _ in range(50):
        env.step(legal_actions(env.action_masks(), rng))
    saved, copy = env.save(), pickle.loads(pickle.dumps(env))
    other = KismetVecEnv(4)
    observations = other.restore(saved)
    actions = [legal_actions(env.action_masks(), rng)]
    first = env.step(actions[0])
    for twin in (other, copy):
        np.testing.assert_array_equal(twin.step(actions[0])[0], first[0])
    assert observations.shape == (4, env.observation_space.shape[0])
    for _ in range(60):
        actions = legal_actions(env.action_masks(), rng)
        steps = [twin.step(actions) for twin in (env, other, copy)]
        for step in steps[1:]:
            np.testing.assert_array_equal(step[0], steps[0][0])
            np.testing.assert_array_equal(step[1], steps[0][1])
            for info, expected in zip(step[3], steps[0][3], strict=True):
                if expected:
                    assert {**info["episode"], "t": 0} == {**expected["episode"], "t": 0}
    with pytest.raises(ValueError, match="shape"):
        KismetVecEnv(5).restore(saved)


@pytest.mark.parametrize(
    "arguments", [*({"num_envs": n} for n in (-1, 0, 2.5, "3")), {"num_envs": 2, "observation": "pixels"}], ids=str
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^(num_envs|observation)=.* is not"):
        KismetVecEnv(**arguments)


@pytest.mark.parametrize("observation", ["features", "dict"])
def test_maskable_ppo_learns_as_is(observation: str, tmp_path: Path) -> None:
    env = KismetVecEnv(16, seed=0, observation=observation)
    model = small_learner(env)
    model.learn(1024)
    assert env.illegal_actions == 0
    assert model.ep_info_buffer
    assert all(15 <= episode["l"] <= 45 for episode in model.ep_info_buffer)

    # no warning about a missing Monitor: warnings are errors here
    evaluation = KismetVecEnv(8, seed=1, observation=observation)
    mean, _ = evaluate_policy(model, evaluation, n_eval_episodes=16)
    assert mean > 15  # one box at the least
    assert evaluation.illegal_actions == 0

    model.save(tmp_path / "model.zip")
    loaded = MaskablePPO.load(tmp_path / "model.zip", env=KismetVecEnv(4, seed=2, observation=observation))
    observations = evaluation.reset()
    masks = evaluation.action_masks()
    np.testing.assert_array_equal(
        loaded.predict(observations, deterministic=True, action_masks=masks)[0],
        model.predict(observations, deterministic=True, action_masks=masks)[0],
    )
    loaded.learn(256)  # with another number of environments


def test_normalisation_of_stable_baselines_takes_it() -> None:
    env = VecNormalize(KismetVecEnv(8, seed=0), norm_reward=True)
    model = small_learner(env)
    model.learn(512)
    assert model.ep_info_buffer
