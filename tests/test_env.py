"""The Gymnasium environment: its conventions, its arguments, its errors, its randomness."""

import copy
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import reference
from gymnasium.utils.env_checker import check_env
from reference import BOXES
from reference_game import Game, key_of, roll

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.env import KismetEnv
from kismet_env.observation import decode, layout_of
from kismet_env.rules import Rules

ID = "kismet_env/Kismet-v0"
CHECKED: list[dict[str, Any]] = [
    {},
    {"observation": "raw", "reward": "final"},
    {"observation": "dict", "actions": "holds"},
    {"illegal_action": "terminate", "start": "uniform"},
    {"rules": {"bonus_tiers": [], "zeros": "any_time"}, "start": "open:2"},
    {"render_mode": "ansi"},
]


def make(**options: Any) -> KismetEnv:
    """Return the environment itself: no wrapper looks over its shoulder."""
    env = gym.make(ID, **options).unwrapped
    assert isinstance(env, KismetEnv)
    return env


def play(env: KismetEnv, steps: int, seed: int = 0) -> list[Any]:
    """Play random legal actions, through the ends of episodes, and return all that comes back."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        out = env.step(int(rng.choice(np.flatnonzero(env.action_masks())[-20:])))
        seen.append(out)
        if out[2] or out[3]:
            seen.append(env.reset())
    return seen


def equal(one: Any, other: Any) -> bool:
    """Compare what environments return, types included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


# Conventions


@pytest.mark.parametrize("options", CHECKED, ids=str)
def test_gymnasium_check_env_has_nothing_to_say(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without_pictures = find_spec("PIL") is None  # the core is also tested without its extras
        check_env(gym.make(ID, **options).unwrapped, skip_render_check=without_pictures, skip_close_check=True)


@pytest.mark.parametrize("options", CHECKED, ids=str)
def test_sb3_check_env_has_nothing_to_say(options: dict[str, Any]) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make(ID, **options))


def test_sb3_make_vec_env_makes_environments_from_the_id() -> None:
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = env_util.make_vec_env(ID, n_envs=2, seed=3)
    assert env.reset().shape == (2, 79)


@pytest.mark.parametrize("options", CHECKED, ids=str)
def test_types_and_spaces_through_whole_episodes(options: dict[str, Any]) -> None:
    env = make(**options)
    observation, info = env.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(150):
        assert env.observation_space.contains(observation)
        assert set(info) == {"action_mask", "illegal_action", "scorecard", "total"}
        mask = info["action_mask"]
        assert (mask.dtype, mask.shape) == (np.int8, (env.action_space.n,))
        assert env.action_masks().dtype == np.bool_
        assert np.array_equal(env.action_masks(), mask)
        assert (type(info["illegal_action"]), type(info["total"])) == (bool, int)
        assert (info["scorecard"].dtype, info["scorecard"].shape) == (np.int16, (15,))
        action = env.action_space.sample(mask=mask)
        assert mask[action]
        observation, reward, terminated, truncated, info = env.step(action)
        assert [type(value) for value in (reward, terminated, truncated)] == [float, bool, bool]
        if terminated or truncated:
            assert env.observation_space.contains(observation)
            assert (info["action_mask"] == 1).all()
            observation, info = env.reset()
        elif rng.random() < 0.02:
            observation, info = env.reset()


@pytest.mark.parametrize("observation", ["features", "raw", "dict"])
def test_nothing_returned_is_ever_used_again(observation: str) -> None:
    env = make(observation=observation)
    arrays: list[np.ndarray] = []
    for out in [env.reset(seed=1), *play(env, 30), env.restore(env.save())]:
        seen, info = out[0], out[-1]
        new = list(seen.values()) if isinstance(seen, dict) else [seen]
        new = [array for array in [*new, info["action_mask"], info["scorecard"]] if isinstance(array, np.ndarray)]
        assert not any(np.shares_memory(array, old) for array in new for old in arrays[-10:])
        arrays += new
    env.action_masks()[:] = False
    assert env.action_masks().any()


def test_an_episode_is_the_game_of_the_reference() -> None:
    """Dice, card, points and end, from the seed alone."""
    env = make()
    env.reset(seed=21)
    for episode in range(3):
        game = Game(1, reference.STANDARD, key_of(21, episode))
        returned = 0.0
        while not game.over:
            position = env.position()
            assert (tuple(position["dice"]), position["rolls_left"]) == (game.dice, game.rolls_left)
            box = min(game.boxes(), key=BOXES.index, default=None)
            if box is None or game.rolls_left == 2:
                game.keep(())
                action = 0
            else:
                game.fill(box)
                action = 210 + BOXES.index(box)
            _, reward, terminated, truncated, info = env.step(action)
            returned += reward
            assert reward == game.paid[0]
            assert (terminated, truncated) == (game.over, False)
        assert returned == info["total"] == game.totals[0]
        assert info["scorecard"].tolist() == [game.cards[0][box] for box in BOXES]
        env.reset()


def test_final_reward_is_the_total_at_the_end() -> None:
    env = make(reward="final")
    env.reset(seed=1)
    rewards = [out for out in play(env, 200) if len(out) == 5]
    assert all(out[1] == (out[4]["total"] if out[2] else 0.0) for out in rewards)
    assert any(out[2] for out in rewards)


def test_docstring_shows_the_layout() -> None:
    assert layout_of(Rules()).table() in re.sub(r"\n +", "\n", KismetEnv.__doc__ or "")


# Registration


def test_module_and_id_in_one_string() -> None:
    assert gym.make(f"kismet_env:{ID}").spec.id == ID


def test_a_fresh_process_needs_nothing_but_the_id_with_its_module() -> None:
    code = f"import gymnasium as gym; print(gym.make('kismet_env:{ID}').reset(seed=3)[1]['total'])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


@pytest.mark.parametrize(
    "rules", [None, {"joker": "natural"}, {"bonus_tiers": ((40, 10), (60, 30))}, Rules(zeros="any_time")], ids=str
)
def test_a_spec_goes_through_json(rules: Any) -> None:
    options = {"observation": "raw", "actions": "holds", "reward": "final", "start": "open:3"}
    env = gym.make(ID, rules=rules, **options)
    text = env.spec.to_json()
    assert json.loads(text)["kwargs"]["observation"] == "raw"
    again = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert again.unwrapped.rules == env.unwrapped.rules == Rules.of(rules)
    assert equal(again.reset(seed=4), env.reset(seed=4))
    assert equal(play(again.unwrapped, 60), play(env.unwrapped, 60))


# Arguments


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rules": {"jokers": 1}}, "unknown field 'jokers'; fields are zeros, yarborough"),
        ({"rules": {"joker": "none"}}, "joker='none' is not one of full, natural, always"),
        ({"rules": 3}, "rules=3 is not a Rules"),
        ({"observation": "pixels"}, "observation='pixels' is not one of features, raw, dict"),
        ({"reward": "win"}, "reward='win' needs opponents; solitaire rewards are points, final"),
        ({"reward": "money"}, "reward='money' is not one of points, final"),
        ({"actions": "bits"}, "actions='bits' is not one of keeps, holds"),
        ({"illegal_action": "ignore"}, "illegal_action='ignore' is not one of penalty, terminate, raise"),
        ({"start": "half"}, "start='half' is not one of full, uniform, open:k with k from 1 to 15"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        KismetEnv(**wrong)


def test_rules_are_shown_and_used() -> None:
    env = make(rules={"straight_score": 40})
    assert env.rules == Rules(straight_score=40)
    env.reset(options={"position": {"cards": [{}], "dice": [1, 2, 3, 4, 5], "rolls_left": 0}})
    assert env.step(210 + BOXES.index("STRAIGHT"))[1] == 40.0


# Actions


@pytest.mark.parametrize("number", [-1, 225, 10**6, 2**63, 2**64, 10**30, -(2**63)])
@pytest.mark.parametrize("illegal_action", ["penalty", "terminate", "raise"])
def test_numbers_outside_the_space_always_raise_and_change_nothing(illegal_action: str, number: int) -> None:
    env = make(illegal_action=illegal_action)
    env.reset(seed=0)
    before = env.save()
    with pytest.raises(ValueError, match=rf"action {number} is not (one of 0\.\.224|a whole number from 0 to 224)"):
        env.step(number)
    assert equal(env.save(), before)


@pytest.mark.parametrize(
    "action", [1.0, np.float32(1), "1", None, [1], (1,), {1}, np.array([1.0]), np.array([1, 2]), np.array([])], ids=repr
)
def test_what_is_no_whole_number_is_refused_and_changes_nothing(action: Any) -> None:
    env = make()
    env.reset(seed=0)
    before = env.save()
    with pytest.raises(ValueError, match="is not a whole number from 0 to 224"):
        env.step(action)
    assert equal(env.save(), before)


@pytest.mark.parametrize(
    "action", [0, np.int8(0), np.int64(0), np.uint16(0), np.array(0), np.array(0, np.int32)], ids=repr
)
def test_whole_numbers_of_every_type_are_taken(action: Any) -> None:
    env = make()
    env.reset(seed=0)
    assert not env.step(action)[4]["illegal_action"]
    assert env.position()["rolls_left"] == 1


def test_an_illegal_action_costs_a_point_and_changes_nothing() -> None:
    env = make()
    before = env.reset(seed=0)
    illegal = np.flatnonzero(before[1]["action_mask"] == 0)
    for action in illegal[:50]:
        observation, reward, terminated, truncated, info = env.step(int(action))
        assert (reward, terminated, truncated, info["illegal_action"]) == (-1.0, False, False, True)
        assert np.array_equal(observation, before[0])
        assert equal({**info, "illegal_action": False}, before[1])
    assert not env.step(0)[4]["illegal_action"]


def test_the_hundredth_illegal_action_of_an_episode_truncates_it() -> None:
    env = make()
    for _ in range(2):  # and the next episode counts anew
        mask = env.reset(seed=0)[1]["action_mask"]
        illegal = int(np.flatnonzero(mask == 0)[0])
        outs = [env.step(illegal) for _ in range(100)]
        assert [out[3] for out in outs] == [False] * 99 + [True]
        assert not any(out[2] for out in outs)
        assert sum(out[1] for out in outs) == -100
        with pytest.raises(gym.error.ResetNeeded):
            env.step(illegal)


def test_terminate_ends_the_episode_with_the_first_illegal_action() -> None:
    env = make(illegal_action="terminate")
    mask = env.reset(seed=0)[1]["action_mask"]
    _, reward, terminated, truncated, info = env.step(int(np.flatnonzero(mask == 0)[0]))
    assert (reward, terminated, truncated, info["illegal_action"]) == (-1.0, True, False, True)
    assert (info["action_mask"] == 1).all()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("actions", ["keeps", "holds"])
def test_raise_names_the_legal_actions_and_changes_nothing(actions: str) -> None:
    env = make(illegal_action="raise", actions=actions)
    env.reset(seed=0, options={"position": {"cards": [{}], "dice": [1, 1, 1, 1, 1], "rolls_left": 1}})
    before = env.save()
    straight = env.action_space.n - 15 + BOXES.index("STRAIGHT")
    with pytest.raises(
        ValueError, match=r"action \d+ \(fill Straight\) is illegal with dice 1-1-1-1-1 and 1 roll"
    ) as error:
        env.step(straight)
    legal = {int(number) for number in re.findall(r"(\d+) \((?:keep|fill|roll)", str(error.value).split("legal: ")[1])}
    assert legal == set(np.flatnonzero(env.action_masks()))
    for text in ("roll all dice", "keep 1-1-1-1)", "fill Aces", "fill Kismet"):
        assert text in str(error.value)
    assert equal(env.save(), before)
    env.step(int(np.flatnonzero(env.action_masks())[0]))


def test_a_step_needs_an_episode() -> None:
    env = make(start="open:1")
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    while not env.step(int(np.flatnonzero(env.action_masks())[-1]))[2]:
        pass
    assert not env.position()["cards"][0].keys() ^ set(BOXES)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset()
    env.step(0)


# Randomness


def test_a_seed_gives_one_sequence_of_games() -> None:
    one, other = make(), make()
    assert equal(one.reset(seed=8), other.reset(seed=8))
    assert equal(play(one, 150), play(other, 150))
    other.reset(seed=99)
    assert equal(one.reset(seed=8), other.reset(seed=8)), "a seeding leaves something behind"
    assert equal(play(one, 150), play(other, 150))


def test_breaking_a_game_off_moves_on_to_the_next_one() -> None:
    env = make()
    dice = [tuple(env.reset(seed=8 if not number else None) and env.position()["dice"]) for number in range(4)]
    assert dice == [roll(key_of(8, number), 0, 0, 0) for number in range(4)]


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63 - 1, 2**64, 2**64 + 1, 2**200])
def test_seeds_of_any_size(seed: int) -> None:
    one, other = make(), make()
    assert equal(one.reset(seed=seed), other.reset(seed=seed))
    assert one.np_random_seed == seed
    assert not equal(one.reset(), other.reset(seed=seed + 1))


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_what_is_no_seed_is_refused_and_changes_nothing(seed: Any) -> None:
    env = make()
    env.reset(seed=3)
    before = env.save()
    with pytest.raises((gym.error.Error, ValueError, TypeError)):
        env.reset(seed=seed)
    assert equal(env.save(), before)
    assert env.np_random_seed == 3


def test_without_a_seed_games_differ_and_the_seed_can_be_read() -> None:
    envs = [make() for _ in range(8)]
    first = [tuple(env.reset()[0]) for env in envs]
    assert len(set(first)) > 1
    again = make()
    assert np.array_equal(again.reset(seed=envs[0].np_random_seed)[0], first[0])


def test_a_generator_of_ones_own_decides_an_unseeded_game() -> None:
    games = []
    for number in (1, 1, 2):
        env = make()
        env.np_random = np.random.default_rng(number)
        games.append(tuple(env.reset()[0]) + tuple(env.reset()[0]))
    assert games[0] == games[1] != games[2]


def test_other_randomness_is_neither_used_nor_disturbed() -> None:
    one, other = make(render_mode="ansi"), make()
    np.random.seed(1)  # noqa: NPY002 (the global generator is what must not matter)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    one.reset(seed=5)
    seen = []
    for action in [0] * 2 + [210] * 3:
        one.render()
        one.action_masks()
        one.position()
        one.action_space.sample()
        seen.append(one.step(action))
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    other.reset(seed=5)
    assert equal(seen, [other.step(action) for action in [0] * 2 + [210] * 3])


def test_another_process_with_another_hash_seed_plays_the_same_game() -> None:
    code = (
        "import gymnasium as gym, kismet_env\n"
        f"env = gym.make('{ID}', start='uniform'); env.reset(seed=6)\n"
        "print(env.unwrapped.position())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    env = make(start="uniform")
    env.reset(seed=6)
    assert done.stdout.strip() == str(env.position())


# Keeping a game


@pytest.mark.parametrize("steps", [0, 1, 20])
@pytest.mark.parametrize("how", ["deepcopy", "pickle", "pickle of the wrapped"])
@pytest.mark.parametrize("options", CHECKED[:4], ids=str)
def test_a_copy_in_mid_game_goes_on_in_the_same_way(options: dict[str, Any], how: str, steps: int) -> None:
    wrapped = gym.make(ID, **options)
    env = wrapped.unwrapped
    assert isinstance(env, KismetEnv)
    wrapped.reset(seed=4)
    play(env, steps)
    if how == "deepcopy":
        again = copy.deepcopy(env)
    elif how == "pickle":
        again = pickle.loads(pickle.dumps(env))
    else:
        again = pickle.loads(pickle.dumps(wrapped)).unwrapped
    assert equal(again.position(), env.position())
    assert np.array_equal(again.action_masks(), env.action_masks())
    assert equal(play(again, 90), play(env, 90))
    env.reset(seed=1)
    assert not equal(again.save(), env.save())


def test_a_copy_before_the_first_reset_is_as_good_as_new() -> None:
    env = pickle.loads(pickle.dumps(make()))
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    assert equal(env.reset(seed=2), make().reset(seed=2))


def test_restore_goes_back_exactly() -> None:
    env = make()
    env.reset(seed=4)
    play(env, 10)
    state, position, mask = env.save(), env.position(), env.action_masks()
    first = play(env, 100)
    observation, info = env.restore(state)
    assert env.position() == position
    assert np.array_equal(info["action_mask"], mask)
    assert np.array_equal(env.action_masks(), mask)
    assert decode(observation).dice.tolist() == position["dice"]
    assert equal(play(env, 100), first)
    assert equal(make().restore(state), env.restore(state)), "a new environment can take a state up too"


def test_a_planner_with_a_key_learns_nothing_of_the_dice_to_come() -> None:
    """What it sees is the same whatever the hidden dice are, and new with every key."""
    position = {"cards": [{"ACES": 3}], "dice": [1, 2, 2, 4, 6], "rolls_left": 2}
    lines: dict[tuple[int, int], list[Any]] = {}
    for seed in (1, 2):
        env = make()
        env.reset(seed=seed, options={"position": position})
        state = env.save()
        for key in (10, 11):
            observation, _ = env.restore(state, key=key)
            assert env.position()["dice"] == position["dice"]
            lines[seed, key] = [observation, *play(env, 12)]
    assert equal(lines[1, 10], lines[2, 10])
    assert not equal(lines[1, 10], lines[1, 11])


def test_restoring_without_a_key_brings_the_real_dice() -> None:
    env = make()
    env.reset(seed=1)
    state = env.save()
    first = env.step(0)
    env.restore(state)
    assert equal(env.step(0), first)


# Positions


def test_reset_to_a_position() -> None:
    env = make()
    position = {
        "cards": [{"ACES": 3, "KISMET": 65}],
        "player": 0,
        "dice": [2, 2, 5, 5, 6],
        "rolls_left": 1,
        "kismets_rolled": [1],
    }
    _, info = env.reset(seed=0, options={"position": position})
    assert env.position() == position
    assert info["total"] == 68
    assert info["scorecard"].tolist() == [3] + [-1] * 13 + [65]


def test_only_new_points_are_paid_after_a_position() -> None:
    env = make()
    _, info = env.reset(seed=0, options={"position": {"cards": [{"ACES": 3, "KISMET": 65}]}})
    returned, terminated = 0.0, False
    while not terminated:
        _, reward, terminated, _, info = env.step(int(np.flatnonzero(env.action_masks())[-1]))
        returned += reward
    assert returned == info["total"] - 68


def test_a_reset_to_a_position_counts_as_an_episode() -> None:
    env = make()
    env.reset(seed=8)
    env.reset(options={"position": {"cards": [{}]}})
    assert tuple(env.position()["dice"]) == roll(key_of(8, 1), 0, 0, 0)
    env.reset()
    assert tuple(env.position()["dice"]) == roll(key_of(8, 2), 0, 0, 0)


def test_options_are_left_as_they_are() -> None:
    position = {"cards": [{"ACES": 3}], "dice": [6, 5, 4, 3, 2]}
    options = {"position": position}
    before = copy.deepcopy(options)
    make().reset(options=options)
    assert options == before


# Wrappers


def test_record_episode_statistics_counts_the_total() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(ID))
    env.reset(seed=0)
    terminated = False
    while not terminated:
        action = int(np.flatnonzero(env.get_wrapper_attr("action_masks")())[-1])
        _, _, terminated, _, info = env.step(action)
    assert info["episode"]["r"] == info["total"]
    assert 15 <= info["episode"]["l"] <= 45


def test_flatten_observation_takes_the_dict_form() -> None:
    env = gym.wrappers.FlattenObservation(gym.make(ID, observation="dict"))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert observation.shape == (5 + 5 + 3 + 15 + 2,)


def test_a_time_limit_truncates_and_does_not_terminate() -> None:
    env = gym.make(ID, max_episode_steps=3)
    env.reset(seed=0)
    outs = [env.step(0) for _ in range(3)]
    assert [out[3] for out in outs] == [False, False, True]
    assert not any(out[2] for out in outs)


def test_the_mask_is_reached_through_wrappers() -> None:
    env = gym.wrappers.TimeAwareObservation(gym.make(ID, max_episode_steps=50))
    _, info = env.reset(seed=0)
    assert np.array_equal(env.get_wrapper_attr("action_masks")(), info["action_mask"])
