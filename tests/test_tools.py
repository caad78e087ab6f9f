"""Tools of Gymnasium and Stable-Baselines3 around the environment: nothing is lost or changed on the way."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, NormalizeReward, RecordEpisodeStatistics, TransformObservation

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.wrappers import MaskInObservation, VectorMaskInObservation

ID = "kismet_env:kismet_env/Kismet-v0"  # spawned processes import nothing else
VERSUS = "kismet_env:kismet_env/KismetVersus-v0"
ROWS, STEPS = 3, 120


def play(env: gym.Env[Any, Any], seed: int) -> list[tuple[Any, float, dict[str, Any]]]:
    """Play one episode, the first legal action of a fixed order always; return observations, rewards, infos."""
    order = np.random.default_rng(0).random(int(env.action_space.n))
    seen, info = env.reset(seed=seed)
    steps = [(seen, 0.0, info)]
    over = False
    while not over:
        seen, reward, terminated, truncated, info = env.step(int((order * info["action_mask"]).argmax()))
        steps.append((seen, float(reward), info))
        over = terminated or truncated
    return steps


def test_normalised_rewards_are_the_rewards_over_the_spread_of_returns() -> None:
    plain, env = gym.make(ID), NormalizeReward(gym.make(ID), gamma=1.0)
    expected, seen = play(plain, 3), play(env, 3)
    count, mean, squares, so_far = 1e-4, 0.0, 0.0, 0.0  # Gymnasium begins with a pseudo-count and a variance of 1
    squares = count
    for (_, reward, _), (_, scaled, _) in zip(expected[1:], seen[1:], strict=True):
        so_far += reward  # undiscounted: the return so far
        delta, total = so_far - mean, count + 1
        squares += delta**2 * count / total
        mean, count = mean + delta / total, total
        assert scaled == pytest.approx(reward / math.sqrt(squares / count + 1e-8), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("env_id", [ID, VERSUS])
def test_flattened_whole_numbers_are_the_dict(env_id: str) -> None:
    plain, env = gym.make(env_id, observation="dict"), FlattenObservation(gym.make(env_id, observation="dict"))
    for (seen, *_), (flat, *_) in zip(play(plain, 0), play(env, 0), strict=True):
        assert env.observation_space.contains(flat)
        np.testing.assert_equal(gym.spaces.unflatten(plain.observation_space, flat), seen)


def test_transformed_observations_and_statistics_above_the_mask() -> None:
    space = gym.spaces.Box(0, 1, (56,), np.float32)
    raw = gym.make(ID, observation="raw")
    env = RecordEpisodeStatistics(TransformObservation(gym.make(ID), lambda seen: seen[:56], space))
    for (seen, *_), (expected, *_) in zip(steps := play(env, 1), play(raw, 1), strict=True):
        np.testing.assert_array_equal(seen, expected)  # "raw" is "features" up to there
    assert steps[-1][2]["episode"]["r"] == steps[-1][2]["total"]
    assert steps[-1][2]["episode"]["l"] == len(steps) - 1


def follow(envs: Any, policy: np.random.Generator) -> list[Any]:
    """Step a Gymnasium vector environment with masked random actions; return all that it said."""
    seen, infos = envs.reset(seed=11)
    said = [(seen, infos)]
    for _ in range(STEPS):
        actions = (policy.random(infos["action_mask"].shape) * infos["action_mask"]).argmax(1)
        seen, rewards, terminated, truncated, infos = envs.step(actions)
        said.append((seen, rewards, terminated, truncated, infos))
    return said


@pytest.mark.slow
@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("observation", ["features", "dict"])
def test_processes_of_gymnasium_play_the_same_games(observation: str, context: str, shared_memory: bool) -> None:
    """And what they play is what the rows of the native batch play."""

    def games(**vector: Any) -> list[Any]:
        envs = gym.make_vec(ID, num_envs=ROWS, start="open:3", observation=observation, **vector)
        try:
            return follow(envs, np.random.default_rng(2))
        finally:
            envs.close()

    there = games(vectorization_mode="async", vector_kwargs={"context": context, "shared_memory": shared_memory})
    here, native = games(vectorization_mode="sync"), games()
    assert sum(step[2].sum() for step in here[1:]) > ROWS  # games ended
    np.testing.assert_equal(there, here)
    for (*ours, our_infos), (*theirs, their_infos) in zip(native, here, strict=True):
        np.testing.assert_equal(ours, theirs)
        for name in ("action_mask", "illegal_action", "scorecard", "total"):
            np.testing.assert_array_equal(our_infos[name], their_infos[name])


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_processes_of_stable_baselines_play_the_same_games(start_method: str) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

    from kismet_env.sb3 import KismetVecEnv

    def games(envs: VecEnv) -> list[Any]:
        rng, said = np.random.default_rng(5), []
        try:
            envs.seed(7)
            said.append(envs.reset())
            for _ in range(STEPS):
                masks = np.stack(envs.env_method("action_masks"))
                seen, rewards, dones, infos = envs.step((rng.random(masks.shape) * masks).argmax(1))
                last = [info.get("terminal_observation") for info in infos]
                said.append((masks, seen, rewards, dones, last))
            return said
        finally:
            envs.close()

    def made(kind: type[VecEnv], **options: Any) -> VecEnv:
        return make_vec_env(ID, ROWS, env_kwargs={"start": "open:3"}, vec_env_cls=kind, vec_env_kwargs=options)

    here = games(made(DummyVecEnv))
    assert sum(step[3].sum() for step in here[1:]) > ROWS
    np.testing.assert_equal(games(made(SubprocVecEnv, start_method=start_method)), here)
    np.testing.assert_equal(games(KismetVecEnv(ROWS, start="open:3")), here)


@pytest.mark.slow
def test_masks_in_observations_come_through_processes() -> None:
    envs = gym.vector.AsyncVectorEnv([masked] * 2, context="spawn")
    batch = VectorMaskInObservation(gym.make_vec(ID, num_envs=2), dtype=np.float32)
    try:
        np.testing.assert_equal(envs.reset(seed=0)[0], batch.reset(seed=0)[0])
        seen = envs.step(np.array([0, 224]))[0]
        np.testing.assert_equal(seen, batch.step(np.array([0, 224]))[0])
    finally:
        envs.close()


def masked() -> gym.Env[Any, Any]:
    return MaskInObservation(gym.make(ID), dtype=np.float32)
