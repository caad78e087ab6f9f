"""The mask beside the observation: in every form that a library asks for, in the batch as in the single game."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.wrappers import MaskInObservation, VectorMaskInObservation

SOLITAIRE, VERSUS = "kismet_env/Kismet-v0", "kismet_env/KismetVersus-v0"
FORMS = [
    ("observation", "action_mask", np.int8),
    ("obs", "mask", np.bool_),
    ("observations", "action_mask", np.float32),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
@pytest.mark.parametrize("env_id", [SOLITAIRE, VERSUS])
@pytest.mark.parametrize("observation", ["features", "dict"])
def test_the_observation_holds_what_the_info_says(
    observation: str, env_id: str, form: tuple[str, str, type[Any]]
) -> None:
    obs_key, mask_key, dtype = form
    plain = gym.make(env_id, observation=observation)
    env = MaskInObservation(gym.make(env_id, observation=observation), *form)
    seen, info = env.reset(seed=5)
    expected, _ = plain.reset(seed=5)
    over = False
    while not over:
        np.testing.assert_equal(seen[obs_key], expected)
        assert seen[mask_key].dtype == dtype
        np.testing.assert_array_equal(seen[mask_key], info["action_mask"])
        assert not np.shares_memory(seen[mask_key], info["action_mask"])
        assert env.observation_space.contains(seen)
        action = int(np.flatnonzero(seen[mask_key])[-1])
        seen, _, terminated, truncated, info = env.step(action)
        expected = plain.step(action)[0]
        over = terminated or truncated
    assert seen[mask_key].all()


def test_gymnasium_has_nothing_to_say() -> None:
    with pytest.warns(UserWarning, match="different from the unwrapped version"):  # that it is a wrapper, and no more
        check_env(MaskInObservation(gym.make(SOLITAIRE).unwrapped), skip_render_check=True)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
@pytest.mark.parametrize("vectorization", ["vector_entry_point", "sync"])
def test_rows_are_those_of_the_batch_without_it(
    vectorization: str, form: tuple[str, str, type[Any]], mode: str
) -> None:
    if vectorization == "sync":
        vector: dict[str, Any] = {
            "vectorization_mode": "sync",
            "vector_kwargs": {"autoreset_mode": gym.vector.AutoresetMode(mode)},
        }
    else:
        vector = {"autoreset_mode": mode}
    plain = gym.make_vec(SOLITAIRE, num_envs=3, start="open:3", **vector)
    env = VectorMaskInObservation(gym.make_vec(SOLITAIRE, num_envs=3, start="open:3", **vector), *form)
    obs_key, mask_key, dtype = form
    seen, infos = env.reset(seed=1)
    expected, _ = plain.reset(seed=1)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(40):
        np.testing.assert_array_equal(seen[obs_key], expected)
        np.testing.assert_array_equal(seen[mask_key], infos["action_mask"])
        assert seen[mask_key].dtype == dtype
        assert env.observation_space.contains(seen)
        actions = (rng.random(seen[mask_key].shape) * seen[mask_key]).argmax(1)
        seen, _, terminated, truncated, infos = env.step(actions)
        expected, *_, plain_infos = plain.step(actions)
        over = terminated | truncated
        ended += over.sum()
        if mode == "SameStep" and over.any():
            for row in range(3):
                last = infos["final_obs"][row]
                assert (last is None) == (not over[row])
                if last is not None:
                    np.testing.assert_array_equal(last[obs_key], plain_infos["final_obs"][row])
                    assert last[mask_key].dtype == dtype
                    assert last[mask_key].all()
                    assert env.single_observation_space.contains(last)
        if mode == "Disabled" and over.any():
            seen, infos = env.reset(options={"reset_mask": over.copy()})
            expected, _ = plain.reset(options={"reset_mask": over.copy()})
    assert ended > 6


def test_a_spec_with_it_goes_through_json() -> None:
    env = MaskInObservation(gym.make(SOLITAIRE, observation="raw"), "obs", "mask", bool)
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    seen, _ = gym.make(spec).reset(seed=2)
    np.testing.assert_equal(seen, env.reset(seed=2)[0])


def test_it_goes_with_other_wrappers() -> None:
    env = FlattenObservation(RecordEpisodeStatistics(MaskInObservation(gym.make(SOLITAIRE))))
    seen, _ = env.reset(seed=0)
    assert seen.shape == (225 + 79,)
    assert env.get_wrapper_attr("action_masks")().sum() == seen[:225].sum()  # keys of a Dict are sorted


def test_what_cannot_be_masked_is_refused() -> None:
    with pytest.raises(ValueError, match="a mask needs a Discrete action space, not Box"):
        MaskInObservation(gym.make("MountainCarContinuous-v0"))
    with pytest.raises(ValueError, match="both 'mask'; give each a name of its own"):
        MaskInObservation(gym.make(SOLITAIRE), "mask", "mask")
    with pytest.raises(ValueError, match="a mask needs a Discrete action space, not Box"):
        VectorMaskInObservation(gym.make_vec("MountainCarContinuous-v0", num_envs=2, vectorization_mode="sync"))


def test_where_nothing_is_said_of_legal_actions_is_named() -> None:
    with pytest.raises(ValueError, match=r'CartPole.* says nothing of what is legal: there is no "action_mask"'):
        MaskInObservation(gym.make("CartPole-v1")).reset(seed=0)
    with pytest.raises(ValueError, match=r'CartPole.* says nothing of what is legal: there is no "action_mask"'):
        VectorMaskInObservation(gym.make_vec("CartPole-v1", num_envs=2)).reset(seed=0)
