"""The planner in the examples: it cannot see the dice to come, and more simulations make it stronger."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from example_modules import example

from kismet_env.env import KismetEnv
from kismet_env.wrappers import RegretInfo

Plan = Callable[[Any, int, np.random.Generator], int]


@pytest.fixture(scope="module")
def plan() -> Plan:
    found: Plan = example("mcts").plan
    return found


class Clairvoyant:
    """The environment as a planner that passes no key would use it."""

    def __init__(self, env: KismetEnv) -> None:
        self.save, self.step, self.env = env.save, env.step, env

    def restore(self, state: Any, key: int | None = None) -> Any:
        return self.env.restore(state)


def chosen(plan: Plan, position: dict[str, Any], seeds: range, clairvoyant: bool = False) -> set[int]:
    """Return what is planned in one position with the hidden dice of each seed."""
    actions = set()
    for seed in seeds:
        env = KismetEnv()
        env.reset(seed=seed, options={"position": position})
        game: Any = Clairvoyant(env) if clairvoyant else env
        actions.add(plan(game, 60, np.random.default_rng(0)))
    return actions


def test_plans_are_independent_of_the_dice_to_come(plan: Plan) -> None:
    env, differ = KismetEnv(start="open:2"), 0
    for seed in range(6):
        env.reset(seed=seed)
        position = env.position()
        assert len(chosen(plan, position, range(8))) == 1, position
        differ += len(chosen(plan, position, range(8), clairvoyant=True)) > 1
    assert differ >= 5  # who sees the dice to come plays for them: the test would notice


def test_planning_leaves_the_game_as_it_is(plan: Plan) -> None:
    env, untouched = KismetEnv(start="open:2"), KismetEnv(start="open:2")
    _, info = env.reset(seed=3)
    untouched.reset(seed=3)
    over = False
    while not over:
        action = plan(env, 20, np.random.default_rng(1))
        seen, reward, over, _, info = env.step(action)
        expected = untouched.step(action)
        np.testing.assert_array_equal(seen, expected[0])
        assert (reward, over) == expected[1:3]
        assert not info["illegal_action"]


@pytest.mark.slow
def test_more_simulations_lose_less(plan: Plan) -> None:
    """On the same dice; every step by at least three standard errors of the paired differences."""
    regrets = []
    for simulations in (5, 60, 700):
        env = RegretInfo(gym.make("kismet_env/Kismet-v0", start="open:2"))
        of_games = []
        for seed in range(40):
            env.reset(seed=seed)
            over, regret = False, 0.0
            while not over:
                _, _, over, _, info = env.step(plan(env.unwrapped, simulations, np.random.default_rng(seed)))
                regret += info["regret"]
            of_games.append(regret)
        regrets.append(np.array(of_games))
    for fewer, more in pairwise(regrets):
        gain = fewer - more
        assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain)), [games.mean() for games in regrets]
