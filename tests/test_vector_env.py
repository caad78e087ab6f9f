"""The native vector environment: autoreset modes, seeds, positions and masks of rows, infos (parity: test_parity)."""

import copy
import json
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from reference import BOXES
from reference_game import key_of

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.vector_env import KismetVectorEnv

ID = "kismet_env/Kismet-v0"
KEYS = ("action_mask", "illegal_action", "scorecard", "total")
MODES = ("NextStep", "SameStep", "Disabled")


def make(num_envs: int = 3, **options: Any) -> KismetVectorEnv:
    env = gym.make_vec(ID, num_envs=num_envs, **options)
    assert isinstance(env, KismetVectorEnv)
    return env


def last_legal(infos: dict[str, Any]) -> np.ndarray:
    """Return the last legal action of each row: the box nearest the end of the sheet that may be filled."""
    mask = infos["action_mask"]
    return np.asarray(mask.shape[1] - 1 - mask[:, ::-1].argmax(1))


def dice_of(env: KismetVectorEnv) -> list[list[int]]:
    return [env.position(row)["dice"] for row in range(env.num_envs)]


def play(env: KismetVectorEnv, infos: dict[str, Any], steps: int) -> list[Any]:
    outs = []
    for _ in range(steps):
        outs.append(env.step(last_legal(infos)))
        infos = outs[-1][-1]
    return outs


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return all(map(equal, one, other))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


# What comes back


@pytest.mark.parametrize("observation", ["features", "raw", "dict"])
@pytest.mark.parametrize("mode", MODES)
def test_spaces_types_and_infos(mode: str, observation: str) -> None:
    env = make(autoreset_mode=mode, observation=observation, start="open:1")
    observations, infos = env.reset(seed=1)
    for _ in range(10):
        assert env.observation_space.contains(observations)
        assert set(infos) >= {*KEYS, *(f"_{key}" for key in KEYS)}
        for key in KEYS:
            assert infos[f"_{key}"].tolist() == [True] * 3
        assert (infos["action_mask"].dtype, infos["action_mask"].shape) == (np.int8, (3, 225))
        assert (infos["illegal_action"].dtype, infos["illegal_action"].shape) == (np.bool_, (3,))
        assert (infos["scorecard"].dtype, infos["scorecard"].shape) == (np.int16, (3, 15))
        assert infos["total"].shape == (3,)
        assert (env.action_masks().dtype, env.action_masks().shape) == (np.bool_, (3, 225))
        assert np.array_equal(env.action_masks(), infos["action_mask"])
        observations, rewards, terminated, truncated, infos = env.step(last_legal(infos))
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, np.bool_, np.bool_)
        assert rewards.shape == terminated.shape == truncated.shape == (3,)
        assert ("final_obs" in infos) == (mode == "SameStep" and terminated.any())
        if mode == "Disabled" and terminated.any():
            break


@pytest.mark.parametrize("observation", ["features", "dict"])
def test_final_infos_tell_how_the_games_ended_and_nothing_of_the_others(observation: str) -> None:
    """Rows that go on hold None and zeros, as with Gymnasium's own vectors."""
    env = make(4, autoreset_mode="SameStep", observation=observation, start="uniform")
    _, infos = env.reset(seed=3)
    some = False
    for out in play(env, infos, 80):
        _, _, terminated, truncated, infos = out
        ended = terminated | truncated
        if not ended.any():
            assert "final_info" not in infos
            continue
        some |= not ended.all()
        assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == ended.tolist()
        final = infos["final_info"]
        assert infos["final_obs"].dtype == object
        for row in range(4):
            if ended[row]:
                assert env.single_observation_space.contains(infos["final_obs"][row])
                assert final["scorecard"][row].min() >= 0
                assert final["action_mask"][row].all()
                assert (infos["scorecard"][row] < 0).any(), "the new game is shown"
            else:
                assert infos["final_obs"][row] is None
                assert not any(np.any(final[key][row]) for key in KEYS)
        for key in KEYS:
            assert final[f"_{key}"].tolist() == ended.tolist()
    assert some


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("observation", ["features", "dict"])
def test_nothing_returned_is_ever_used_again(observation: str, mode: str) -> None:
    env = make(autoreset_mode=mode, observation=observation)
    outs = [env.reset(seed=1)]
    outs += play(env, outs[0][-1], 14)
    before = copy.deepcopy(outs)
    play(env, outs[-1][-1], 1)
    env.action_masks()[:] = False
    assert equal(outs, before)
    assert env.action_masks().any()


# Autoreset


def test_next_step_ignores_the_action_of_a_reset() -> None:
    env = make(2, start="open:1", illegal_action="raise")
    _, infos = env.reset(seed=1)
    while not (out := env.step(last_legal(infos)))[2].any():
        infos = out[-1]
    over = np.flatnonzero(out[2])
    actions = last_legal(out[-1])
    actions[over] = 10**9
    _, rewards, terminated, _, infos = env.step(actions)
    assert not rewards[over].any()
    assert not terminated[over].any()
    assert not infos["illegal_action"].any()
    assert not infos["total"].all() or (infos["scorecard"][over] < 0).any()


def test_an_illegal_action_that_ends_a_game_is_told_in_its_final_info() -> None:
    env = make(2, autoreset_mode="SameStep", illegal_action="terminate")
    _, infos = env.reset(seed=1)
    illegal = int(np.flatnonzero(infos["action_mask"][0] == 0)[0])
    _, rewards, terminated, _, infos = env.step(np.array([illegal, last_legal(infos)[1]]))
    assert rewards.tolist()[0] == -1.0
    assert terminated.tolist() == [True, False]
    assert infos["final_info"]["illegal_action"].tolist() == [True, False]
    assert infos["illegal_action"].tolist() == [False, False], "the new game has seen no illegal action"


def test_under_disabled_rows_that_are_over_cannot_be_stepped() -> None:
    env = make(2, autoreset_mode="Disabled", start="open:1")
    _, infos = env.reset(seed=1)
    while not (out := env.step(last_legal(infos)))[2].any():
        infos = out[-1]
    (over,) = np.flatnonzero(out[2])[:1]
    positions = [env.position(row) for row in range(2)]
    with pytest.raises(ValueError, match=rf"rows \[.*{over}.*\] are over"):
        env.step(np.zeros(2, np.int64))
    assert [env.position(row) for row in range(2)] == positions


def test_reset_mask_begins_the_games_of_those_rows_alone() -> None:
    env = make(4, autoreset_mode="Disabled")
    _, infos = env.reset(seed=5)
    outs = play(env, infos, 5)
    before = [env.position(row) for row in range(4)]
    mask = np.array([True, False, False, True])
    options = {"reset_mask": mask}
    observations, infos = env.reset(options=options)
    assert options["reset_mask"] is mask, "the caller's options are left alone"
    for row in range(4):
        if mask[row]:
            assert infos["scorecard"][row].max() == -1
        else:
            assert env.position(row) == before[row]
            assert np.array_equal(observations[row], outs[-1][0][row])
            assert np.array_equal(infos["action_mask"][row], outs[-1][-1]["action_mask"][row])
    assert env.batch.state.games["key"].tolist() == [key_of(5 + row, int(mask[row])) for row in range(4)]


@pytest.mark.parametrize(
    "mask", [[True], np.ones(2, bool), np.ones(3, int), np.ones((3, 1), bool), "yes", [1, 0, 1]], ids=repr
)
def test_what_is_no_reset_mask_is_refused(mask: Any) -> None:
    env = make(autoreset_mode="Disabled")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"reset_mask .* is not 3 bools"):
        env.reset(options={"reset_mask": mask})


def test_a_first_reset_of_some_rows_seeds_them_all() -> None:
    """Else the rows left out would all play one and the same game."""
    env = make(4, autoreset_mode="Disabled")
    env.reset(seed=9, options={"reset_mask": np.array([True, False, False, False])})
    env.reset(options={"reset_mask": np.array([False, True, True, True])})
    assert env.batch.state.games["key"].tolist() == [key_of(9 + row) for row in range(4)]


@pytest.mark.parametrize("mode", MODES)
def test_a_step_needs_a_reset(mode: str) -> None:
    with pytest.raises((gym.error.ResetNeeded, ValueError), match="reset"):
        make(autoreset_mode=mode).step(np.zeros(3, np.int64))


@pytest.mark.parametrize("mode", [*MODES, *AutoresetMode])
def test_the_mode_may_be_a_word_or_a_member(mode: Any) -> None:
    env = make(autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert "autoreset_mode" not in KismetVectorEnv.metadata, "the metadata of the class stay as they are"


# Seeds


@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**64 - 1, 2**100])
def test_row_i_of_a_seed_has_the_seed_plus_i(seed: int) -> None:
    env = make(3)
    env.reset(seed=seed)
    rows = dice_of(env)
    env.reset(seed=[seed, seed + 1, seed + 2])
    assert dice_of(env) == rows
    for row in range(3):
        single = gym.make(ID)
        single.reset(seed=seed + row)
        assert single.unwrapped.position()["dice"] == rows[row]


@pytest.mark.parametrize("seeds", [[3, 3, 9], (3, 3, 9), np.array([3, 3, 9])], ids=repr)
def test_a_list_gives_each_row_its_seed(seeds: Any) -> None:
    env = make(3)
    env.reset(seed=seeds)
    assert env.batch.state.games["key"].tolist() == [key_of(3), key_of(3), key_of(9)]


@pytest.mark.parametrize("seed", [[1, 2], [1, None, 3], [1, -1, 2], -1, [[1, 2, 3]], []], ids=repr)
def test_what_are_no_seeds_is_refused_and_changes_nothing(seed: Any) -> None:
    env = make(3)
    env.reset(seed=0)
    before = env.batch.save()
    with pytest.raises((ValueError, TypeError, gym.error.Error)):
        env.reset(seed=seed)
    assert equal(env.batch.save(), before)


def test_a_seed_decides_all_automatic_resets() -> None:
    one, other = make(3, start="open:2"), make(3, start="open:2")
    other.reset(seed=1)
    outs = [env.reset(seed=4) for env in (one, other)]
    assert equal(*outs)
    assert equal(play(one, outs[0][-1], 60), play(other, outs[1][-1], 60))


def test_without_a_seed_rows_and_environments_differ() -> None:
    dice = []
    for _ in range(3):
        env = make(4)
        env.reset()
        dice += dice_of(env)
        keys = env.batch.state.games["key"].tolist()
        assert len(set(keys)) == 4
        assert keys == [key_of(env.np_random_seed + row) for row in range(4)]
    assert len(set(map(tuple, dice))) > 1


# Positions


def test_one_position_for_all_or_one_for_each_row() -> None:
    env = make(3)
    position = {"cards": [{"ACES": 3}]}
    env.reset(seed=2, options={"position": position})
    assert [env.position(row)["cards"] for row in range(3)] == [[{"ACES": 3}]] * 3
    assert len({tuple(dice) for dice in dice_of(env)}) > 1, "each row rolls its own dice"
    positions = [{"cards": [{"ACES": n}], "dice": [n] * 5, "rolls_left": 1, "kismets_rolled": [0]} for n in (1, 2, 3)]
    env.reset(options={"position": positions})
    assert [env.position(row) for row in range(3)] == [{**position, "player": 0} for position in positions]
    env.reset(options={"position": positions[::-1], "reset_mask": np.array([True, False, False])})
    assert [env.position(row)["cards"][0]["ACES"] for row in range(3)] == [3, 2, 3]


# Actions


@pytest.mark.parametrize(
    "actions", [[0, 0], np.zeros(3), np.zeros((3, 1), int), np.array([True] * 3), ["0"] * 3, None, 0], ids=repr
)
def test_what_are_no_actions_is_refused(actions: Any) -> None:
    env = make(3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="are not 3 whole numbers"):
        env.step(actions)


def test_a_number_outside_the_space_names_its_row() -> None:
    env = make(3)
    env.reset(seed=0)
    before = env.batch.save()
    with pytest.raises(ValueError, match=r"game 2: action 225 is not one of 0\.\.224"):
        env.step(np.array([0, 0, 225]))
    assert equal(env.batch.save(), before)


def test_raise_names_row_and_legal_actions() -> None:
    env = make(3, illegal_action="raise")
    env.reset(seed=0, options={"position": {"cards": [{}], "dice": [1, 1, 2, 3, 4]}})
    with pytest.raises(ValueError, match=r"game 1: action 218 \(fill Straight\) is illegal .*210 \(fill Aces\)"):
        env.step(np.array([0, 210 + BOXES.index("STRAIGHT"), 0]))


# The rest of the conventions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_envs": 0}, "num_envs=0 is not a whole number of at least 1"),
        ({"autoreset_mode": "Never"}, "autoreset_mode='Never' is not one of NextStep, SameStep, Disabled"),
        ({"observation": "pixels"}, "observation='pixels' is not one of"),
        ({"reward": "win"}, "reward='win' needs opponents"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        KismetVectorEnv(**wrong)


@pytest.mark.parametrize("mode", MODES)
def test_a_copy_goes_on_in_the_same_way(mode: str) -> None:
    env = make(3, autoreset_mode=mode, start="uniform" if mode != "Disabled" else "full")
    _, infos = env.reset(seed=2)
    infos = play(env, infos, 8)[-1][-1]
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert np.array_equal(again.action_masks(), env.action_masks())
        assert equal(play(again, infos, 5), play(copy.deepcopy(env), infos, 5))


def test_a_spec_with_the_mode_as_a_word_goes_through_json() -> None:
    env = make(2, autoreset_mode="SameStep", rules={"joker": "natural"})
    assert json.loads(env.spec.to_json())["kwargs"]["autoreset_mode"] == "SameStep"


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_record_episode_statistics_counts_the_totals(mode: str) -> None:
    env = gym.wrappers.vector.RecordEpisodeStatistics(make(2, autoreset_mode=mode))
    _, infos = env.reset(seed=3)
    episodes = 0
    for _ in range(60):
        _, _, terminated, _, infos = env.step(last_legal(infos))
        if terminated.any():
            row = int(np.flatnonzero(terminated)[0])
            totals = infos["final_info"]["total"] if mode == "SameStep" else infos["total"]
            if episodes == 0:  # later episodes are miscounted by Gymnasium 1.2.2 itself
                assert infos["episode"]["r"][row] == totals[row]
            episodes += 1
    assert episodes > 1


def test_gymnasium_finds_nothing_to_warn_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make(2)
        env.reset(seed=0)
        env.close()


def test_render_gives_the_sheet_of_every_row() -> None:
    assert make(2).render() is None
    env = make(2, render_mode="ansi")
    env.reset(seed=0)
    sheets = env.render()
    assert len(sheets) == 2
    assert all("K I S M E T" in sheet for sheet in sheets)


def test_render_gives_the_picture_of_every_row_also_to_videos(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    pytest.importorskip("moviepy")
    env = gym.make_vec("kismet_env/Kismet-v0", num_envs=2, render_mode="rgb_array")
    recorded = gym.wrappers.vector.RecordVideo(env, str(tmp_path / "new"), video_length=3, disable_logger=True)
    _, infos = recorded.reset(seed=5)
    for row, frame in enumerate(env.render()):
        single = gym.make("kismet_env/Kismet-v0", render_mode="rgb_array")
        single.reset(seed=5 + row)
        assert np.array_equal(frame, single.render())
    for _ in range(4):
        _, _, _, _, infos = recorded.step(infos["action_mask"].argmax(1))
    recorded.close()
    assert len(list((tmp_path / "new").glob("*.mp4"))) == 1
