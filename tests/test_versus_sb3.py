"""`KismetVecEnv` with opponents: the rows of the vector environment; MaskablePPO learns and plays itself."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunter import Hunter
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from kismet_env import Rules
from kismet_env.bots.sb3_policy import Sb3Policy
from kismet_env.match import Match
from kismet_env.observation import layout_of
from kismet_env.sb3 import KismetVecEnv
from kismet_env.versus_env import KismetVersusEnv, KismetVersusVectorEnv

FIRST_BLOCK = layout_of(Rules())


class Frozen:
    """A learner as it is now, playing argmax."""

    def __init__(self, model: MaskablePPO) -> None:
        self.model = model

    def act(self, observations: Any, masks: Any, u: Any = None) -> npt.NDArray[np.int64]:
        """Return an action for every row."""
        return self.model.predict(observations, action_masks=masks.astype(bool), deterministic=True)[0]


def some_action(masks: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return (rng.random(masks.shape) * masks).argmax(1)


def small_learner(env: Any) -> MaskablePPO:
    return MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=128, n_epochs=1, seed=0, device="cpu")


@pytest.mark.parametrize(
    "options",
    [
        {"opponents": ("greedy",)},
        {"opponents": (Hunter(), "random"), "seat": "random", "reward": "points", "start": "open:4"},
        {"opponents": ("random",), "seat": 1, "reward": "final", "observation": "dict", "actions": "holds"},
    ],
    ids=range(3),
)
def test_rows_are_those_of_the_vector_env(options: dict[str, Any]) -> None:
    num_envs, rng = 5, np.random.default_rng(0)
    ours = KismetVecEnv(num_envs, seed=3, **options)
    theirs = KismetVersusVectorEnv(num_envs, autoreset_mode="SameStep", **options)
    seen = ours.reset()
    expected, infos = theirs.reset(seed=3)
    ended = 0
    for step in range(120):
        np.testing.assert_equal(seen, expected, err_msg=f"observations, step {step}")
        np.testing.assert_array_equal(ours.env_method("action_masks"), infos["action_mask"].astype(bool))
        actions = some_action(ours.action_masks(), rng)
        if step % 20 == 7:
            actions[1] = ours.action_masks()[1].argmin()  # illegal
        seen, rewards, dones, seen_infos = ours.step(actions)
        expected, expected_rewards, terminated, truncated, infos = theirs.step(actions)
        np.testing.assert_array_equal(rewards, expected_rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        for row in np.flatnonzero(dones):
            ended += 1
            np.testing.assert_equal(seen_infos[row]["terminal_observation"], infos["final_obs"][row])
            for name in ("scorecard", "total", "seat", "opponent_totals"):
                np.testing.assert_array_equal(seen_infos[row][name], infos["final_info"][name][row])
    assert ended > 5


def test_a_saved_match_is_restored() -> None:
    env, rng = KismetVecEnv(6, seed=1, opponents=("random",), seat="random"), np.random.default_rng(0)
    env.reset()
    for _ in range(9):
        env.step(some_action(env.action_masks(), rng))
    saved, masks, lines = env.save(), env.action_masks(), []
    for _ in range(2):
        rng = np.random.default_rng(5)
        env.restore(saved)
        np.testing.assert_array_equal(env.action_masks(), masks)
        lines.append([env.step(some_action(env.action_masks(), rng))[0] for _ in range(20)])
    np.testing.assert_array_equal(lines[0], lines[1])


def test_a_learner_meets_players_and_then_itself() -> None:
    env = KismetVecEnv(16, seed=0, opponents=("random", "greedy"), seat="random")
    model = small_learner(env)
    model.learn(1024)
    frozen = Frozen(model)
    env.set_opponents((frozen, frozen))
    model.learn(1024)
    assert env.illegal_actions == 0
    assert model.ep_info_buffer
    assert all(-0.5 <= episode["r"] <= 1 for episode in model.ep_info_buffer)


def test_what_was_learned_alone_can_sit_in_any_match() -> None:
    learned = Sb3Policy(small_learner(KismetVecEnv(4, seed=0)).policy, Rules())
    match = Match(50, (learned, "greedy", learned), seat="random")
    match.seed(range(50))
    seen = match.deal()
    while not match.over.all():
        u = match.choice_shares()
        actions = learned.act(seen.observations, seen.masks, u)
        np.testing.assert_array_equal(actions, learned.act(seen.observations[:, : FIRST_BLOCK.size], seen.masks, u))
        seen = match.step(np.where(match.over, 0, actions))
    assert not seen.illegal.any()


def test_a_solitaire_player_has_no_opponents_to_replace() -> None:
    with pytest.raises(ValueError, match="solitaire"):
        KismetVecEnv(2).set_opponents(("greedy",))
    with pytest.raises(ValueError, match="'greedier' is unknown"):
        KismetVecEnv(2, opponents=("greedier",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seat": 0}, "seat=0 needs opponents, 1 to 5 names or players; a solitaire game has no seats"),
        ({"opponents": []}, "opponents has 0 entries; valid are 1 to 5 names or players"),
        ({"opponents": ("greedy",), "seat": 2}, "seat=2 is not one of 0, 1 or 'random'"),
    ],
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        KismetVecEnv(2, **wrong)


def test_an_opponent_who_fails_leaves_the_games_and_their_seeds_as_they_were() -> None:
    class Once(Hunter):
        fails = True

        def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
            if self.fails:
                self.fails = False
                raise RuntimeError("lost")
            return super().act(observations, masks, u)

    player = Once()
    env, twin = (KismetVecEnv(4, seed=3, opponents=one, seat=1) for one in (player, Hunter()))
    with pytest.raises(RuntimeError, match="lost"):
        env.reset()
    np.testing.assert_array_equal(env.reset(), twin.reset())
    player.fails, fill = True, 224 - env.action_masks()[:, ::-1].argmax(1)
    with pytest.raises(RuntimeError, match="lost"):
        env.step(fill)
    for _ in range(30):
        fill = 224 - env.action_masks()[:, ::-1].argmax(1)
        for one, other in zip(env.step(fill)[:3], twin.step(fill)[:3], strict=True):
            np.testing.assert_array_equal(one, other)


def test_single_environments_do_as_well() -> None:
    check_env(KismetVersusEnv(("greedy",)))
    env = make_vec_env(KismetVersusEnv, 4, seed=0, env_kwargs={"opponents": ("greedy",), "seat": "random"})
    small_learner(env).learn(256)
    env.env_method("set_opponents", ("random",))
    env.close()
