"""Data sets: they hold what was played and the truth beside it, and are the same however they are made."""

import json
import multiprocessing
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import Solitaire, card_of
from reference import STANDARD
from reference_game import KEEP_NUMBER

from kismet_env import dataset
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import StochasticPlayer, make
from kismet_env.command_line import DONE, INTERRUPTED, LOST, WRONG_INPUT, run
from kismet_env.dataset import FIELDS, Config, main, policies_of, read, write
from kismet_env.evaluation import DATA_DICE, game_keys
from kismet_env.exact import PolicyValue
from kismet_env.observation import decode
from kismet_env.rules import Box, Rules
from kismet_env.starts import card_distribution
from kismet_env.tables import tables_of

MIX = ("random=1", "turn_greedy=2", "boltzmann:2=1")


@pytest.fixture(autouse=True)
def _called_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kismet_env.dataset"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("data") / "set"
    return folder, write(Config(folder, episodes=50, mix=MIX, seed=4, shard_episodes=20))


def together(folder: Path) -> dict[str, Any]:
    shards = list(read(folder))
    return {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0]}


def test_a_data_set_is_the_games_of_its_keys_replayed(made: tuple[Path, dict[str, Any]]) -> None:
    folder, manifest = made
    steps = together(folder)
    assert list(steps) == list(FIELDS)
    keys = game_keys(DATA_DICE, 4, range(50))
    names = [policy["policy"] for policy in manifest["policies"]]
    players = [make(name) for name in names]
    for episode in range(50):
        rows = np.flatnonzero(steps["episode_ids"] == episode)
        assert (np.diff(rows) == 1).all()
        batch = Batch(1)
        seen = batch.deal_keys(keys[episode : episode + 1])
        for row in rows:
            player = players[steps["policy_ids"][row]]
            assert (steps["observations"][row] == seen.observations[0]).all()
            assert (steps["action_masks"][row] == seen.masks[0]).all()
            action, chance = steps["actions"][row], 1.0
            assert player.act(seen.observations, seen.masks, batch.choice_shares())[0] == action
            if isinstance(player, StochasticPlayer):
                chance = player.probabilities(seen.observations, seen.masks)[0, action]
            assert steps["behavior_probabilities"][row] == pytest.approx(chance)
            seen = batch.step(np.array([action]))
            assert steps["rewards"][row] == seen.rewards[0, 0]
            assert steps["terminations"][row] == seen.terminated[0] == (row == rows[-1])
            assert not steps["truncations"][row]
        assert steps["rewards"][rows].sum() == seen.totals[0]


def test_action_values_are_those_of_trying_everything(tmp_path: Path) -> None:
    write(Config(tmp_path / "set", episodes=40, mix=("random=1",), start="open:1"))
    steps, game, keeps = together(tmp_path / "set"), Solitaire(STANDARD), actions_of("keeps")
    filled, basic_total, armed, dice, left = decode(steps["observations"])
    assert ((15 - (filled[:, None] >> np.arange(15) & 1).sum(1)) == 1).all()
    for row in range(len(filled)):
        box = next(box for box in Box if not filled[row] >> box & 1)
        card = card_of((box.name,), int(basic_total[row]), kismet=int(armed[row]))
        worth = game.actions(card, tuple(dice[row].tolist()), int(left[row]))
        expected = np.full(225, -np.inf)
        for what, value in worth.items():
            expected[keeps.box_action(Box[what]) if isinstance(what, str) else KEEP_NUMBER[what]] = value
        assert steps["action_values"][row] == pytest.approx(expected, abs=2e-5)
        assert ((expected > -np.inf) == steps["action_masks"][row]).all()


def test_data_do_not_depend_on_shards_or_processes(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, manifest = made
    for name, options in (("one", {"shard_episodes": 7}), ("two", {"shard_episodes": 30, "processes": 2})):
        again = write(Config(tmp_path / name, episodes=50, mix=MIX, seed=4, **options))
        assert again["sha256"] == manifest["sha256"]
        for one, other in zip(together(folder).values(), together(tmp_path / name).values(), strict=True):
            assert (one == other).all()
            assert one.dtype == other.dtype
    other_seed = write(Config(tmp_path / "other", episodes=50, mix=MIX, seed=5))
    assert other_seed["sha256"] != manifest["sha256"]


def test_the_manifest_says_what_is_there(made: tuple[Path, dict[str, Any]]) -> None:
    folder, manifest = made
    assert json.loads((folder / "dataset.json").read_text()) == json.loads(json.dumps(manifest))
    steps = together(folder)
    assert manifest["steps"] == len(steps["actions"])
    assert [shard["episodes"] for shard in manifest["shards"]] == [[0, 20], [20, 40], [40, 50]]
    for number, policy in enumerate(manifest["policies"]):
        mine = steps["policy_ids"] == number
        scores = np.bincount(steps["episode_ids"][mine], steps["rewards"][mine], 50)
        scores = scores[np.unique(steps["episode_ids"][mine])]
        assert policy["episodes"] == len(scores)
        assert policy["mean_return"] == pytest.approx(scores.mean())
        assert policy["sd_return"] == pytest.approx(scores.std(ddof=1))
    sheet = (folder / "README.md").read_text()
    for heading in ("Motivation", "Composition", "Collection", "Preprocessing", "Uses", "Distribution"):
        assert f"\n## {heading}" in sheet
    assert manifest["sha256"] in sheet


def test_estimates_from_the_data_are_right_about_another_policy(tmp_path: Path) -> None:
    """Those of the example, in games of one box, where the exact value takes no time."""
    estimates = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "off_policy.py"))["estimates"]
    write(Config(tmp_path / "set", episodes=6000, mix=("boltzmann:2=1",), start="open:1"))
    plain, robust, weights, rewards = estimates(tmp_path / "set")
    policy, dealt, means = make("boltzmann:1.5").turn_policy(), card_distribution(Rules()), []
    for box in Box:
        filled = 2**15 - 1 & ~(1 << box)
        value = PolicyValue(policy, tables_of(Rules()), closed=filled)
        armed, basic_total = np.nonzero(dealt[filled])
        means.append(dealt[filled, armed, basic_total] @ value.card_value(filled, basic_total, armed))
    truth = np.mean(means)
    for games in (plain, robust):
        assert abs(games.mean() - truth) < 3.3 * games.std() / len(games) ** 0.5
    assert robust.std() < plain.std()
    weighted = ((weights * rewards).sum(0) / weights.sum(0)).sum()
    assert abs(weighted - truth) < 3.3 * plain.std() / len(plain) ** 0.5
    assert abs(rewards.sum(1).mean() - truth) > 3.3 * robust.std() / len(robust) ** 0.5, "it tells the two apart"


def test_players_come_in_their_shares() -> None:
    policies = policies_of(("random=1", "greedy=3"), Rules())
    steps = dataset.play_episodes(policies, range(2000), seed=0, start="open:1")
    share = np.mean(steps["policy_ids"][np.unique(steps["episode_ids"], return_index=True)[1]])
    assert abs(share - 0.75) < 3.3 * (0.75 * 0.25 / 2000) ** 0.5
    assert "action_values" not in steps


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '{"schema": 1, "shards": [{}]}', '{"schema": 2, "shards": []}'])
def test_a_manifest_that_is_damaged_or_of_another_schema_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "dataset.json").write_text(text)
    with pytest.raises(ValueError, match=r"dataset\.json (is damaged|has schema 2, this version reads 1)"):
        list(read(tmp_path))


@pytest.mark.slow
def test_what_is_killed_takes_its_workers_along_and_leaves_a_smaller_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    options = "--episodes 1000000 --shard-episodes 10 --mix greedy=1 --no-action-values --processes 2"
    argv = [sys.executable, "-m", "kismet_env.dataset", "--out", str(folder), *options.split()]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not (folder / "dataset.json").exists():
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=120)  # until nobody can write to its stdout any more, workers included
    assert len(set(together(folder)["episode_ids"])) >= 10


def test_every_shard_makes_the_data_set_larger(tmp_path: Path) -> None:
    counts = []

    def look(episodes: int) -> None:
        counts.append(len(set(together(tmp_path / "set")["episode_ids"])))

    write(Config(tmp_path / "set", episodes=7, mix=("greedy=1",), action_values=False, shard_episodes=3), look)
    assert counts == [3, 6, 7]


def test_a_shard_that_has_changed_is_refused(tmp_path: Path) -> None:
    write(Config(tmp_path / "set", episodes=3, mix=("greedy=1",), action_values=False))
    shard = tmp_path / "set" / "shard-00000.npz"
    shard.write_bytes(shard.read_bytes() + b"!")
    with pytest.raises(ValueError, match="checksum"):
        list(read(tmp_path / "set"))


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_leaves_whole_shards_and_says_so(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add, told = dataset.Tally.add, []

    def add_and_interrupt(self: Any, shard: Any) -> None:
        add(self, shard)
        told.append(shard)
        if len(told) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(dataset.Tally, "add", add_and_interrupt)
    argv = ["--out", str(tmp_path / "set"), "--episodes", "40", "--mix", "greedy=1", "--shard-episodes", "5"]
    assert run(main, Config, [*argv, "--no-action-values", "--processes", str(processes)]) == INTERRUPTED
    err = capsys.readouterr().err
    assert "10 of 40 episodes" in err
    assert err.endswith("interrupted\n")
    names = sorted(path.name for path in (tmp_path / "set").iterdir())
    assert names == ["README.md", "dataset.json", "shard-00000.npz", "shard-00001.npz"]
    assert set(together(tmp_path / "set")["episode_ids"]) == set(range(10))


def test_a_killed_worker_ends_it_in_a_line_and_leaves_whole_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add = dataset.Tally.add

    def add_and_kill(self: Any, shard: Any) -> None:
        add(self, shard)
        for worker in multiprocessing.active_children():
            worker.kill()

    monkeypatch.setattr(dataset.Tally, "add", add_and_kill)
    argv = ["--out", str(tmp_path / "set"), "--episodes", "5000", "--mix", "greedy=1", "--shard-episodes", "5"]
    assert run(main, Config, [*argv, "--no-action-values", "--processes", "2"]) == LOST
    told, line = capsys.readouterr().err.splitlines()
    assert "of 5,000 episodes are there" in told
    assert line.endswith("a worker process was killed, perhaps for memory; try fewer --processes")
    there = len(list((tmp_path / "set").glob("shard-*.npz")))
    assert set(together(tmp_path / "set")["episode_ids"]) == set(range(5 * there))


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--mix", "greedy"], ["'greedy'", "NAME=SHARE"]),
        (["--mix", "greedy=0"], ["'greedy=0'", "positive share"]),
        (["--mix", "greedy=nan"], ["'greedy=nan'", "positive share"]),
        (["--mix", "nobody=1"], ["'nobody'", "random"]),
        (["--mix", "medium=1", "boltzmann:2=1"], ["'boltzmann:2'", "twice"]),
        (["--episodes", "0"], ["--episodes 0", "at least 1"]),
        (["--start", "open:16"], ["open:16", "1 to 15"]),
        (["--seed", "-1"], ["seed -1", "0 up"]),
        (["--out", "full"], ["full is not empty"]),
        (["--out", "full/file"], ["file", "give a folder"]),
    ],
)
def test_a_wrong_call_ends_in_one_line_and_writes_nothing(
    argv: list[str],
    named: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    if "--out" not in argv:
        argv = ["--out", "new", *argv]
    assert run(main, Config, argv) == WRONG_INPUT
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    for name in named:
        assert name in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tyro", None)
    assert run(main, Config, ["--out", "new"]) == WRONG_INPUT
    assert capsys.readouterr().err == "kismet_env.dataset needs tyro; install it with pip install 'kismet-env[train]'\n"


def test_the_command_writes_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, Config, ["--out", str(tmp_path / "set"), "--episodes", "5", "--mix", "greedy=1"]) == DONE
    assert "5 episodes" in capsys.readouterr().out
    assert json.loads((tmp_path / "set" / "dataset.json").read_text())["optimum"] == pytest.approx(315.10404)
