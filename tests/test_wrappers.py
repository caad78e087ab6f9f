"""Regret and luck: the identity that defines them, alone and in the batch, in both numberings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.solver import solve
from kismet_env.wrappers import RegretInfo, VectorRegretInfo

ID = "kismet_env/Kismet-v0"
ROUNDING = 1e-9


def mixed_action(info: dict[str, Any], rng: np.random.Generator) -> int:
    """Play the best action half of the time, else a random legal or illegal one."""
    kind = rng.random()
    if kind < 0.5:
        return int(info["best_action"])
    mask = info["action_mask"]
    return int(rng.choice(np.flatnonzero(mask))) if kind < 0.95 else int(rng.integers(len(mask)))


def play(env: gym.Env, choose: Callable[[dict[str, Any]], int], **reset: Any) -> list[dict[str, Any]]:
    """Play one episode and return its infos, that of the reset first."""
    infos = [env.reset(**reset)[1]]
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(choose(infos[-1]))
        infos.append(info)
        over = terminated or truncated
    return infos


@pytest.mark.parametrize("actions", ["keeps", "holds"])
@pytest.mark.parametrize("observation", ["features", "dict"])
def test_score_is_value_of_the_start_plus_luck_minus_regret(actions: str, observation: str) -> None:
    env = RegretInfo(gym.make(ID, actions=actions, observation=observation))
    rng = np.random.default_rng(0)
    for seed in range(10):
        infos = play(env, lambda info: mixed_action(info, rng), seed=seed)
        luck, regret = (sum(info[name] for info in infos) for name in ("luck", "regret"))
        assert infos[-1]["total"] == pytest.approx(solve().expected_score + luck - regret, abs=ROUNDING)
        assert min(info["regret"] for info in infos) >= 0
        assert infos[-1]["best_action"] == -1


def test_the_identity_holds_from_any_card() -> None:
    env = RegretInfo(gym.make(ID, start="uniform", reward="final"))
    rng = np.random.default_rng(1)
    for seed in range(20):
        infos = play(env, lambda info: mixed_action(info, rng), seed=seed)
        luck, regret = (sum(info[name] for info in infos) for name in ("luck", "regret"))
        env.reset(seed=seed)
        card = env.unwrapped.batch.decisions().at(np.array([0]))
        value = float(solve().card_value(*card[:3])[0])
        earned = infos[-1]["total"] - infos[0]["total"]
        assert earned == pytest.approx(value + luck - regret, abs=ROUNDING)


def test_actions_after_a_restore_are_judged_where_they_are_taken() -> None:
    env = RegretInfo(gym.make(ID))
    _, info = env.reset(seed=4)
    saved, actions, infos = env.unwrapped.save(), [], []
    for _ in range(6):
        actions.append(int(info["action_mask"].argmax()))
        info = env.step(actions[-1])[4]
        infos.append(info)
    env.unwrapped.restore(saved)
    for action, first in zip(actions, infos, strict=True):
        again = env.step(action)[4]
        for name in ("regret", "luck", "best_action"):
            assert again[name] == first[name], name
    assert sum(info["regret"] for info in infos) > 0


def test_the_best_action_costs_nothing() -> None:
    env = RegretInfo(gym.make(ID))
    infos = play(env, lambda info: info["best_action"], seed=3)
    assert [info["regret"] for info in infos] == [0.0] * len(infos)


def test_an_illegal_action_costs_and_brings_nothing() -> None:
    env = RegretInfo(gym.make(ID))
    _, info = env.reset(seed=0)
    for bad in np.flatnonzero(info["action_mask"] == 0)[:99]:
        _, _, _, truncated, after = env.step(int(bad))
        assert after["illegal_action"]
        assert (after["regret"], after["luck"], after["best_action"]) == (0.0, 0.0, info["best_action"])
    _, _, _, truncated, after = env.step(int(bad))
    assert truncated
    assert (after["regret"], after["luck"]) == (0.0, 0.0)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("actions", ["keeps", "holds"])
def test_rows_of_the_batch_are_judged_like_single_games(mode: str, actions: str) -> None:
    rows, steps = 8, 120
    batch = VectorRegretInfo(gym.make_vec(ID, num_envs=rows, autoreset_mode=mode, actions=actions))
    singles = [RegretInfo(gym.make(ID, actions=actions)) for _ in range(rows)]
    _, infos = batch.reset(seed=7)
    expected = [env.reset(seed=7 + row)[1] for row, env in enumerate(singles)]
    rngs = [np.random.default_rng(row) for row in range(rows)]
    over = np.zeros(rows, bool)
    ended = 0
    for _ in range(steps):
        for row in range(rows):
            for name in ("regret", "luck", "best_action"):
                assert infos[name][row] == pytest.approx(expected[row][name], abs=ROUNDING), (row, name)
                assert infos[f"_{name}"][row]
        actions_now = np.array([0 if over[row] else mixed_action(expected[row], rngs[row]) for row in range(rows)])
        if mode == "Disabled" and over.any():
            _, infos = batch.reset(options={"reset_mask": over})
            for row in range(rows):
                expected[row] = singles[row].reset()[1] if over[row] else expected[row] | {"regret": 0.0, "luck": 0.0}
            over[:] = False
            continue
        _, _, terminated, truncated, infos = batch.step(actions_now)
        for row, env in enumerate(singles):
            if over[row]:
                expected[row] = env.reset()[1]
                over[row] = False
                continue
            _, _, term, trunc, expected[row] = env.step(int(actions_now[row]))
            over[row] = term or trunc
            assert over[row] == (terminated[row] or truncated[row])
            if over[row] and mode == "SameStep":
                for name in ("regret", "luck"):
                    last = infos["final_info"][name][row]
                    assert last == pytest.approx(expected[row][name], abs=ROUNDING), (row, name)
                expected[row] = env.reset()[1]
        ended += int((terminated | truncated).sum())
        if mode == "SameStep":
            over[:] = False
    assert ended > rows


def test_other_environments_are_refused() -> None:
    with pytest.raises(ValueError, match="RegretInfo needs kismet_env/Kismet-v0"):
        RegretInfo(gym.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match="VectorRegretInfo needs the native batch"):
        VectorRegretInfo(gym.make_vec("FrozenLake-v1", num_envs=2, vectorization_mode="sync"))
