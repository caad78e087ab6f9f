"""The single environment, Gymnasium's own vector of it and the native batch are one and the same, exactly."""

from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from reference import BOXES
from reference_game import HOLD_NUMBER, KEEP_NUMBER

import kismet_env  # noqa: F401 (registers the environments)

ID = "kismet_env/Kismet-v0"
MODES = ("NextStep", "SameStep", "Disabled")
FORMS = ("features", "raw", "dict")
OPTIONS = [
    {"observation": observation, "reward": reward, "illegal_action": illegal_action}
    for observation, reward, illegal_action in product(FORMS, ("points", "final"), ("penalty", "terminate", "raise"))
]
KEEPS = {number: keep for keep, number in KEEP_NUMBER.items()}


def check_same(ours: Any, theirs: Any, what: str) -> None:
    """Compare observations, infos or arrays, however they are nested."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), what
        for name in theirs:
            check_same(ours[name], theirs[name], f"{what}, {name}")
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert ours.dtype == object, what
        for row, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            check_same(one, other, f"{what}, row {row}")
    elif theirs is None:
        assert ours is None, what
    else:
        assert np.array_equal(ours, theirs), f"{what}: native {ours}, sync {theirs}"


def actions_for(masks: np.ndarray, rng: np.random.Generator, may_be_illegal: bool) -> np.ndarray:
    """Return boxes where they are legal, other legal actions else, now and then any action at all."""
    num_actions = masks.shape[1]
    weights = masks * (rng.random(masks.shape) + (np.arange(num_actions) >= num_actions - len(BOXES)))
    any_action = rng.integers(num_actions, size=len(masks))
    return np.where(may_be_illegal & (rng.random(len(masks)) < 0.2), any_action, weights.argmax(1))


def pair(mode: str, num_envs: int, **options: Any) -> tuple[gym.vector.VectorEnv, gym.vector.VectorEnv]:
    native = gym.make_vec(ID, num_envs=num_envs, autoreset_mode=mode, **options)
    sync = gym.make_vec(
        ID,
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode(mode)},
        **options,
    )
    return native, sync


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))
@pytest.mark.parametrize("mode", MODES)
def test_batch_rows_equal_single_environments(mode: str, options: dict[str, str]) -> None:
    """Observations, masks, rewards, ends and infos over several episodes, automatic resets included."""
    actions = ("keeps", "holds")[OPTIONS.index(options) % 2]
    native, sync = pair(mode, 3, start="open:2", actions=actions, **options)
    rng = np.random.default_rng(OPTIONS.index(options))
    ours, theirs = native.reset(seed=11), sync.reset(seed=11)
    for seen, expected in zip(ours, theirs, strict=True):
        check_same(seen, expected, "reset")
    episodes = 0
    for number in range(50):
        chosen = actions_for(ours[-1]["action_mask"], rng, options["illegal_action"] != "raise")
        ours, theirs = native.step(chosen), sync.step(chosen)
        for name, seen, expected in zip(
            ("observation", "reward", "terminated", "truncated", "info"), ours, theirs, strict=True
        ):
            check_same(seen, expected, f"step {number}, {name}")
        ended = ours[2] | ours[3]
        episodes += int(ended.sum())
        if mode == "Disabled" and ended.any():
            ours = native.reset(options={"reset_mask": ended.copy()})
            theirs = sync.reset(options={"reset_mask": ended.copy()})
            check_same(ours[0], theirs[0], f"reset after step {number}, observation")
            for name in ("action_mask", "scorecard", "total"):  # Sync tells of the rows that were reset alone
                check_same(ours[1][name][ended], theirs[1][name][ended], f"reset after step {number}, {name}")
    assert episodes >= 6


@pytest.mark.parametrize("mode", MODES)
def test_whole_games_are_equal(mode: str) -> None:
    native, sync = pair(mode, 2)
    rng = np.random.default_rng(1)
    ours, theirs = native.reset(seed=2**70), sync.reset(seed=2**70)
    for number in range(60):
        chosen = actions_for(ours[-1]["action_mask"], rng, may_be_illegal=True)
        if mode == "Disabled" and number and (ours[2] | ours[3]).any():
            break
        ours, theirs = native.step(chosen), sync.step(chosen)
        for seen, expected in zip(ours, theirs, strict=True):
            check_same(seen, expected, f"step {number}")
    assert number > 14


@pytest.mark.parametrize("observation", FORMS)
def test_holds_play_the_same_game_as_keeps(observation: str) -> None:
    keeps, holds = (gym.make(ID, actions=actions, observation=observation) for actions in ("keeps", "holds"))
    rng = np.random.default_rng(3)
    for episode in range(4):
        one, other = (env.reset(seed=5 if episode == 0 else None) for env in (keeps, holds))
        check_same(one[0], other[0], "observation at reset")
        ended = False
        while not ended:
            dice = tuple(keeps.unwrapped.position()["dice"])
            number_of = HOLD_NUMBER[dice]
            mask = one[-1]["action_mask"]
            translated = [number_of[KEEPS[keep]] for keep in np.flatnonzero(mask[:210])]
            assert sorted(translated) == np.flatnonzero(other[-1]["action_mask"][:31]).tolist(), f"dice {dice}"
            assert np.array_equal(mask[210:], other[-1]["action_mask"][31:])
            action = int(rng.choice(np.flatnonzero(mask)[-30:]))
            same_action = number_of[KEEPS[action]] if action < 210 else action - 210 + 31
            one, other = keeps.step(action), holds.step(same_action)
            for seen, expected in zip(one[:4], other[:4], strict=True):
                check_same(seen, expected, f"dice {dice}, action {action}")
            for name in ("illegal_action", "scorecard", "total"):
                check_same(one[4][name], other[4][name], name)
            ended = one[2]


@pytest.mark.parametrize("observation", FORMS)
def test_observation_forms_and_rewards_show_the_same_game(observation: str) -> None:
    points, final = (gym.make(ID, observation=observation, reward=reward) for reward in ("points", "final"))
    points.reset(seed=9)
    final.reset(seed=9)
    total, ended = 0.0, False
    while not ended:
        action = int(np.flatnonzero(points.get_wrapper_attr("action_masks")())[-1])
        one, other = points.step(action), final.step(action)
        total += one[1]
        ended = one[2]
        check_same(one[0], other[0], "observation")
        check_same(one[4], other[4], "info")
        assert other[1] == (total if ended else 0.0)
    assert total == one[4]["total"]
