"""train.py and the learners: runs that resume as if nothing had been, policies that travel, errors in one line."""

import csv
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_runs import at_rows
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategorical

import train
from agents import ALGORITHMS, maskable_ppo
from agents.maskable_ppo import Config, MaskedCategorical
from agents.run import DEFAULT_MINUTES, Run, saved_config
from kismet_env import Rules
from kismet_env.batch import Batch
from kismet_env.bots import READY, StochasticPlayer, make
from kismet_env.contest import play_contest
from kismet_env.evaluation import play
from kismet_env.policy_file import load_policy
from kismet_env.provenance import Provenance
from kismet_env.rules import SUITE
from kismet_env.sb3 import KismetVecEnv

ROOT = Path(__file__).parent.parent
SMALL = [
    *("maskable_ppo", "--num-envs", "16", "--rollout-steps", "16", "--batch-size", "64", "--epochs", "1"),
    *("--hidden-sizes", "16", "--selection-games", "8", "--selection-every", "2", "--threads", "1"),
]
ROLLOUT = 256
ON_THE_CLOCK = ("minutes", "processor_minutes", "steps_per_second")


def curve_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "curve.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def assert_equal_curves(one: Path, other: Path) -> None:
    """Compare all but the clock; which selection scores are left out to save time depends on the clock too."""
    rows, expected = curve_of(one), curve_of(other)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        left_out = {name for name in ("selection_score",) if not (row[name] and wanted[name])}
        for name in row.keys() - {*ON_THE_CLOCK, *left_out}:
            assert row[name] == wanted[name], f"{name} after {row['steps']} steps"


def acts(model: MaskablePPO) -> np.ndarray[Any, Any]:
    env = KismetVecEnv(64, seed=9)
    observations = env.reset()
    return model.predict(observations, deterministic=True, action_masks=env.action_masks())[0]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight updates."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert train.main([*SMALL, "--steps", str(8 * ROLLOUT), "--run", str(folder)]) == 0
    return folder


@pytest.fixture
def at_update(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Call something when a run records its n-th update of a session."""

    def arrange(number: int, call: Callable[[], None]) -> None:
        at_rows(monkeypatch, lambda row: call() if row == number else None)

    return arrange


def test_a_run_leaves_its_whole_story(finished: Path) -> None:
    rows = curve_of(finished)
    assert [int(row["steps"]) for row in rows] == [ROLLOUT * n for n in range(1, 9)]
    assert {row["illegal_actions"] for row in rows} == {"0"}
    assert [bool(row["selection_score"]) for row in rows][-1]
    assert float(rows[-1]["mean_return"]) > 15
    (session,) = json.loads((finished / "sessions.json").read_text())
    assert session["versions"]["torch"] == torch.__version__
    assert len(session["git"]["commit"]) == 40
    assert (finished / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((finished / "tensorboard").glob("events.*"))
    assert {path.name for path in finished.iterdir()} == {
        "config.json", "sessions.json", "curve.csv", "curve.png", "tensorboard",
        "checkpoint.pt", "model.zip", "best.zip", "policy.safetensors", "best.safetensors",
    }  # fmt: skip


def test_the_model_travels_without_the_learner(finished: Path) -> None:
    provenance = Provenance.read_zip(finished / "model.zip")
    assert provenance is not None
    assert provenance == Provenance.from_json((finished / "config.json").read_text())
    assert provenance.algorithm == "maskable_ppo"
    assert provenance.config["num_envs"] == 16
    provenance.check(Rules())
    code = (
        "import sys; from sb3_contrib import MaskablePPO; from kismet_env.sb3 import KismetVecEnv\n"
        f"model = MaskablePPO.load({str(finished / 'model.zip')!r}, device='cpu')\n"
        "env = KismetVecEnv(64, seed=9); seen = env.reset()\n"
        "print(*model.predict(seen, deterministic=True, action_masks=env.action_masks())[0])\n"
        "assert not [name for name in sys.modules if name.startswith('agents')]"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model, _ = maskable_ppo.make(saved_config(finished, Config))
    maskable_ppo.restore(model, KismetVecEnv(16), torch.load(finished / "checkpoint.pt", weights_only=True)["state"])
    np.testing.assert_array_equal(np.array(done.stdout.split(), int), acts(model))


@pytest.mark.parametrize(("archive", "policy"), [("model.zip", "policy.safetensors"), ("best.zip", "best.safetensors")])
def test_the_portable_policy_plays_as_the_model(finished: Path, archive: str, policy: str) -> None:
    """The same actions in thousands of decisions, but for those that rounding decides."""
    theirs, ours = make(f"sb3:{finished / archive}:sample", trust=True), make(f"policy:{finished / policy}:sample")
    assert isinstance(theirs, StochasticPlayer)
    assert isinstance(ours, StochasticPlayer)
    batch, chance = Batch(4000, start="uniform"), np.random.default_rng(0)
    batch.seed(range(4000))
    seen, differ = batch.deal(), 0
    for _ in range(3):
        rows = np.flatnonzero(~batch.over)
        one, other = (each.probabilities(seen.observations[rows], seen.masks[rows]) for each in (ours, theirs))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
        best, preferred = one.argmax(1), other.argmax(1)
        differ += np.sum(best != preferred)
        assert (one.max(1) - one[np.arange(len(rows)), preferred] < 1e-5).all()
        seen = batch.step((chance.random(seen.masks.shape) * seen.masks).argmax(1))
    assert differ <= 10
    assert load_policy(finished / policy).provenance == Provenance.from_json((finished / "config.json").read_text())


@pytest.mark.parametrize(("observation", "actions"), [("raw", "holds"), ("dict", "keeps")])
def test_other_forms_travel_too_but_for_dict(tmp_path: Path, observation: str, actions: str) -> None:
    options = (
        "--steps",
        str(ROLLOUT),
        "--observation",
        observation,
        "--actions",
        actions,
        "--run",
        str(tmp_path / "run"),
    )
    assert train.main([*SMALL, *options]) == 0
    policies = sorted(path.name for path in (tmp_path / "run").glob("*.safetensors"))
    assert policies == ([] if observation == "dict" else ["best.safetensors", "policy.safetensors"])
    if policies:
        ours = make(f"policy:{tmp_path / 'run' / 'policy.safetensors'}")
        theirs = make(f"sb3:{tmp_path / 'run' / 'model.zip'}", trust=True)
        assert (play(ours, 20, seed=0).totals == play(theirs, 20, seed=0).totals).all()


def test_ctrl_c_saves_and_the_resumed_run_equals_the_uninterrupted_one(
    finished: Path,
    tmp_path: Path,
    at_update: Callable[[int, Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    at_update(3, lambda: signal.raise_signal(signal.SIGINT))
    assert train.main([*SMALL, "--steps", str(8 * ROLLOUT), "--run", str(folder)]) == 130
    assert f"go on with: python train.py maskable_ppo --resume {folder}" in capsys.readouterr().err
    assert len(curve_of(folder)) == 3
    assert (folder / "model.zip").exists()

    with (folder / "curve.csv").open("a") as file:  # what a run writes between its last checkpoint and its end
        file.write("1024,0.1,99.9\n1280,0.1")
    assert train.main(["maskable_ppo", "--resume", str(folder)]) == 0
    assert_equal_curves(folder, finished)
    resumed, uninterrupted = (MaskablePPO.load(path / "model.zip", device="cpu") for path in (folder, finished))
    for name, weights in uninterrupted.policy.state_dict().items():
        torch.testing.assert_close(resumed.policy.state_dict()[name], weights, rtol=0, atol=0, msg=name)
    minutes = [float(row["minutes"]) for row in curve_of(folder)]
    assert minutes == sorted(minutes)
    assert [session["steps_before"] for session in json.loads((folder / "sessions.json").read_text())] == [0, 768]


def test_a_second_ctrl_c_stops_at_once(
    tmp_path: Path, at_update: Callable[[int, Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    at_update(2, twice)
    folder = tmp_path / "run"
    assert train.main([*SMALL, "--steps", "9999", "--run", str(folder)]) == 130
    assert "--resume" in capsys.readouterr().err
    assert not (folder / "model.zip").exists()
    assert (
        train.main(["maskable_ppo", "--resume", str(folder), "--steps", "512"]) == 0
    )  # from the very first checkpoint
    assert len(curve_of(folder)) == 2


def test_ctrl_c_before_there_is_a_checkpoint_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def at_once(config: object, run: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.maskable_ppo.train", at_once)
    assert train.main([*SMALL, "--run", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "stopped; nothing has been saved yet\n"


def test_a_run_that_is_killed_before_its_end_is_whole_has_something_left_to_do(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(run: Run, references: dict[str, float], *, unit: str) -> None:
        raise Killed

    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(Run, "plot", kill)
        with pytest.raises(Killed):
            train.main([*SMALL, "--steps", str(8 * ROLLOUT), "--run", str(folder)])
    (folder / "model.zip").unlink()
    (folder / ".checkpoint.pt.1.part").write_text("half of it")
    (folder / "policy.safetensors.0.part").write_text("half of it")
    assert train.main(["maskable_ppo", "--resume", str(folder)]) == 0
    assert_equal_curves(folder, finished)
    assert {path.name for path in folder.iterdir()} == {path.name for path in finished.iterdir()}


def test_ctrl_c_in_the_last_update_leaves_nothing_to_go_on_with(
    tmp_path: Path, at_update: Callable[[int, Callable[[], None]], None]
) -> None:
    at_update(2, lambda: signal.raise_signal(signal.SIGINT))
    assert train.main([*SMALL, "--steps", str(2 * ROLLOUT), "--run", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("options", ["--learning-rate 1e30", "--entropy-bonus 1e300"])
def test_a_training_that_diverges_is_told_in_one_line_and_spoils_nothing(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    short = [*SMALL, "--steps", "1024", "--checkpoint-minutes", "0", "--run", str(folder)]
    assert train.main([*short, *options.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith("train.py: the training has diverged after 256 steps")
    assert err.count("\n") == 1
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)["state"]
    assert all(weights.isfinite().all() for weights in saved["policy"].values())
    assert not list(folder.glob("*.zip"))


def test_a_disk_that_fails_on_the_way_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(run: Run, archive: bytes, *, name: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "save_model", fail)
    assert train.main([*SMALL, "--steps", "256", "--run", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "train.py: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("script", ["train.py", "evaluate.py"])
def test_ctrl_c_during_the_imports_shows_no_traceback(script: str) -> None:
    code = (
        "import runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name in ('tyro', 'agents'): signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"runpy.run_path({script!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_complete_run_can_be_made_longer(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "longer"
    assert train.main([*SMALL, "--steps", "512", "--run", str(folder)]) == 0
    assert train.main(["maskable_ppo", "--resume", str(folder)]) == 2
    assert "is complete: 512 steps" in capsys.readouterr().err
    assert train.main(["maskable_ppo", "--resume", str(folder), "--steps", "1024"]) == 0
    assert saved_config(folder, Config).steps == 1024
    assert [row["steps"] for row in curve_of(folder)] == ["256", "512", "768", "1024"]


def test_a_run_is_replaced_only_on_request(tmp_path: Path) -> None:
    folder, short = tmp_path / "run", [*SMALL, "--steps", "256"]
    for extra, code in (([], 0), ([], 2), (["--overwrite"], 0)):
        assert train.main([*short, "--run", str(folder), *extra]) == code
    assert len(json.loads((folder / "sessions.json").read_text())) == 1


@pytest.mark.parametrize(
    "options",
    [
        "--observation dict --rules.joker natural",
        "--observation raw --actions holds",
        "--start open:2 --rules.bonus-tiers 63 150",
    ],
)
def test_other_forms_of_the_game_are_learned_too(options: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert train.main([*SMALL, *options.split(), "--steps", "512", "--run", str(folder)]) == 0
    assert curve_of(folder)[-1]["illegal_actions"] == "0"
    Provenance.from_json((folder / "config.json").read_text()).check(saved_config(folder, Config).rules)


VERSUS = [*SMALL, "--opponents", "self", "turn_greedy", "--reward", "win"]


def test_a_run_against_itself_and_others_resumes_as_if_nothing_had_been_and_travels(
    tmp_path: Path, at_update: Callable[[int, Callable[[], None]], None]
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "run"
    assert train.main([*VERSUS, "--steps", str(5 * ROLLOUT), "--run", str(whole)]) == 0
    at_update(3, lambda: signal.raise_signal(signal.SIGINT))
    assert train.main([*VERSUS, "--steps", str(5 * ROLLOUT), "--run", str(folder)]) == 130
    assert train.main(["maskable_ppo", "--resume", str(folder)]) == 0
    assert_equal_curves(folder, whole)
    assert curve_of(whole)[-1]["illegal_actions"] == "0"
    assert -0.5 <= float(curve_of(whole)[-1]["selection_score"]) < 0, "of a third of random play against turn_greedy"
    assert load_policy(whole / "policy.safetensors").provenance.num_players == 3

    model, env = maskable_ppo.make(saved_config(whole, Config))
    maskable_ppo.restore(model, env, torch.load(whole / "checkpoint.pt", weights_only=True)["state"])
    batch = Batch(400, 3, start="uniform")
    batch.seed(range(400))
    seen, u = batch.deal(), batch.choice_shares()
    theirs = model.predict(seen.observations, deterministic=True, action_masks=seen.masks)[0]
    ours = make(f"policy:{whole / 'policy.safetensors'}").act(seen.observations, seen.masks)
    assert (ours != theirs).sum() <= 2, "but for what rounding decides"
    itself = env.batch.opponents[0]
    before = itself.act(seen.observations, seen.masks, u)
    drawn = make(f"policy:{whole / 'policy.safetensors'}:sample").act(seen.observations, seen.masks, u)
    assert (before != drawn).sum() <= 2
    model.learn(ROLLOUT, reset_num_timesteps=False, log_interval=2)
    assert (itself.act(seen.observations, seen.masks, u) != before).any(), "who plays against itself plays better too"


def test_a_run_begins_with_the_policy_it_is_given_and_refuses_one_of_other_widths(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Config(opponents=("self",), initial_policy=str(READY["ppo"]))
    ready, (model, env) = make("ppo"), maskable_ppo.make(options)
    maskable_ppo.begin(options, model)
    observations = env.reset()
    ours = model.predict(observations, deterministic=True, action_masks=env.action_masks())[0]
    assert (ours != ready.act(observations, env.action_masks())).sum() <= 5, "one of solitaire plays on as before"

    file, folder = finished / "policy.safetensors", tmp_path / "run"
    arguments = ["--initial-policy", str(file), "--run", str(folder)]
    assert train.main([*SMALL, *arguments, "--steps", str(ROLLOUT), "--learning-rate", "1e-30"]) == 0
    given, kept = (load_policy(path).network.layers for path in (file, folder / "policy.safetensors"))
    for (weight, bias), (same_weight, same_bias) in zip(given, kept, strict=True):
        np.testing.assert_allclose(same_weight, weight, rtol=0, atol=1e-7)
        np.testing.assert_allclose(same_bias, bias, rtol=0, atol=1e-7)
    assert train.main([*SMALL, *arguments[:2], "--hidden-sizes", "8", "--run", str(tmp_path / "other")]) == 2
    assert "is no policy of these games and widths" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_selection_games_against_others_are_those_of_contests() -> None:
    """A bot's mean score there is the one by its total and its share of the wins in as many other games."""
    contest = play_contest([make("rule_based"), make("turn_greedy")], 500, seed=1, watch=False)
    points, wins = (
        maskable_ppo.bot_scores(Config(selection_games=1000, opponents=("self",), reward=reward))["rule_based"]
        for reward in ("points", "win")
    )
    assert abs(points - contest.totals[:, :, 0].mean()) < 10, "four standard errors"
    assert abs(wins - (2 * contest.shares[:, :, 0].mean() - 1)) < 0.18


@pytest.mark.parametrize(
    ("illegal_action", "least", "most"), [("masked", 15, 45), ("penalty", 100, 144), ("terminate", 1, 5)]
)
def test_without_masks_illegal_actions_are_tried_and_games_stay_bounded(
    illegal_action: str, least: int, most: int, tmp_path: Path
) -> None:
    """The policy is random, or as good as: nine actions in ten are illegal."""
    folder, masked = tmp_path / "run", illegal_action == "masked"
    options = ["--illegal-action", illegal_action, "--reward", "final", "--rollout-steps", "160"]
    assert train.main([*SMALL, *options, "--steps", str(2 * 16 * 160), "--run", str(folder)]) == 0
    row = curve_of(folder)[0]
    assert (row["illegal_actions"] == "0") == masked
    assert least <= float(row["mean_length"]) <= most
    assert (float(row["mean_return"]) > 0) == masked
    config = saved_config(folder, Config)
    assert (config.reward, config.illegal_action) == ("final", illegal_action)
    model, _ = maskable_ppo.make(config)
    with torch.no_grad():
        model.policy.action_net.weight[:] = 0.0
        model.policy.action_net.bias[:] = torch.arange(225)  # the last one, to fill the box Kismet, above all
    score = maskable_ppo.selection_score(model, config)
    assert (score > 15) == masked, "by itself it does not go on when the box is filled"


def test_the_bots_to_be_beaten_play_the_selection_games() -> None:
    scores = maskable_ppo.bot_scores(Config(selection_games=500))
    players = {name: play(make(name), 500, seed=0).totals.mean() for name in scores}  # on other dice
    assert list(scores) == ["greedy", "turn_greedy", "rule_based"]
    for name, score in scores.items():
        assert abs(score - players[name]) < 15, name  # four standard errors
    small = maskable_ppo.bot_scores(Config(selection_games=500, start="open:1", observation="dict", actions="holds"))
    assert small["greedy"] < small["turn_greedy"] < scores["greedy"], "one box, on a card of random play"


def test_rates_fall_linearly_over_the_run(finished: Path) -> None:
    rows = curve_of(finished)
    for name, first in (("learning_rate", 1.5e-3), ("entropy_bonus", 0.015)):
        np.testing.assert_allclose([float(row[name]) for row in rows], first * (1 - np.arange(8) / 8), rtol=1e-6)


def test_the_further_of_steps_and_minutes_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, *[60.0] * 10])  # the run is made, and is looked at a minute later
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    run = Run(tmp_path, Config(steps=1000, minutes=4.0))
    assert run.share_done(100) == 0.25
    assert run.share_done(500) == 0.5
    run.config = Config(steps=1000)
    assert run.share_done(100) == 0.1
    run.config = Config()
    assert run.share_done(10**9) == 1 / DEFAULT_MINUTES


def test_the_distribution_is_that_of_the_library() -> None:
    torch.manual_seed(0)
    logits = (3 * torch.randn(50, 225)).requires_grad_()
    masks = np.random.default_rng(0).random((50, 225)) < 0.1
    masks[:, 7] = True
    ours, theirs = MaskedCategorical(225).proba_distribution(logits), MaskableCategorical(logits=logits, masks=masks)
    ours.apply_masking(masks)
    actions = theirs.sample()
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.testing.assert_close(ours.mode(), theirs.probs.argmax(-1))
    gradients = [
        torch.autograd.grad((one.log_prob(actions) - 0.1 * one.entropy()).sum(), logits)[0] for one in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients)


def test_samples_are_legal_and_follow_the_probabilities() -> None:
    torch.manual_seed(0)
    masks = torch.tensor([0, 1, 0, 1, 1, 0]).expand(40_000, 6)
    distribution = MaskedCategorical(6).proba_distribution(
        torch.tensor([9.0, 0.0, 9.0, 1.0, -1.0, 9.0]).expand(40_000, 6)
    )
    distribution.apply_masking(masks)
    rates = np.bincount(distribution.sample().numpy(), minlength=6) / 40_000
    weights = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    np.testing.assert_allclose(rates, [0, weights[0], 0, weights[1], weights[2], 0], atol=0.01)
    assert rates[[0, 2, 5]].sum() == 0


def _foreign(folder: Path) -> None:
    (folder / "target").mkdir()
    (folder / "target" / "config.json").write_text('{"thesis": "years of work"}')


def _not_a_checkpoint(folder: Path) -> None:
    (folder / "target").mkdir()
    (folder / "target" / "config.json").write_text(Config().provenance().to_json())
    (folder / "target" / "checkpoint.pt").write_text("no checkpoint")


def _no_checkpoint(folder: Path) -> None:
    (folder / "target").mkdir()
    (folder / "target" / "config.json").write_text(Config().provenance().to_json())


def _other_learner(folder: Path) -> None:
    (folder / "target").mkdir()
    text = json.loads(Config().provenance().to_json()) | {"algorithm": "sarsa"}
    (folder / "target" / "config.json").write_text(json.dumps(text))


def _a_file(folder: Path) -> None:
    (folder / "target").write_text("a file")


def _nothing(folder: Path) -> None:
    pass


NEW, GO_ON = "maskable_ppo --run TARGET ", "maskable_ppo --resume TARGET "


@pytest.mark.parametrize(
    ("arguments", "message", "prepare"),
    [
        ("", "no algorithm given; algorithms: maskable_ppo", _nothing),
        ("sarsa --run TARGET", "unknown algorithm 'sarsa'; algorithms: maskable_ppo", _nothing),
        (NEW + "--num-envs 0", "num_envs=0 is not at least 1", _nothing),
        (NEW + "--num-envs many", "many", _nothing),
        (NEW + "--minutes -1", "minutes=-1.0 is not a number above 0", _nothing),
        (NEW + "--minutes nan", "minutes=nan", _nothing),
        (NEW + "--steps 0", "steps=0 is not at least 1", _nothing),
        (NEW + "--seed -1", "seed=-1 is not a number from 0 up", _nothing),
        (NEW + "--learning-rate 0", "learning_rate=0.0 is not a number above 0", _nothing),
        (NEW + "--discount 1.5", "discount=1.5 is not from 0 to 1", _nothing),
        (NEW + "--hidden-sizes", "hidden_sizes=()", _nothing),
        (
            NEW + "--hidden-sizes 8 8 8 8 8 8 8",
            "hidden_sizes=(8, 8, 8, 8, 8, 8, ...): the network has 8 layers",
            _nothing,
        ),
        (NEW + "--hidden-sizes 10000000", "are not whole numbers from 1 to 65,536", _nothing),
        (NEW + "--num-envs 1000000000", "64,000,000,000 steps a rollout, at most 4,194,304", _nothing),
        (NEW + "--selection-games 3000000000", "selection_games=3000000000 is not at most 4,194,304", _nothing),
        (NEW + "--num-envs 1 --rollout-steps 1", "batch_size=4096 leaves a single step of a rollout of 1", _nothing),
        (NEW + "--num-envs 3 --rollout-steps 3 --batch-size 8", "a single step of a rollout of 9", _nothing),
        (NEW + "--batch-size 1", "batch_size=1 leaves a single step", _nothing),
        (NEW + "--clip-range 1e300", "clip_range=1e+300 is not a number above 0, at most 1e+30", _nothing),
        (NEW + "--points-per-reward 1e-300", "points_per_reward=1e-300 is not a number above 0", _nothing),
        (NEW + "--threads 0", "threads=0 is not at least 1", _nothing),
        (NEW + "--threads 2000", "threads=2000 is not at most 1,024", _nothing),
        (NEW + "--start open:99", "open:99", _nothing),
        (NEW + "--observation pixels", "features", _nothing),
        (NEW + "--reward money", "points", _nothing),
        (NEW + "--illegal-action raise", "penalty", _nothing),
        (NEW + "--reward win", "reward='win' needs opponents", _nothing),
        (NEW + "--opponents nobody", "player 'nobody' is unknown; players are random", _nothing),
        (NEW + "--opponents self self self self self self", "opponents has 6 entries; valid are 1 to 5", _nothing),
        (NEW + "--opponents self --actions holds", "opponent self sees features and plays keeps, not", _nothing),
        (GO_ON + "--opponents self", "opponents=('self',) (was ())", _no_checkpoint),
        (NEW + "--rules.joker wild", "full, natural, always", _nothing),
        (NEW + "--rules.wild True", "--rules.wild", _nothing),
        (NEW + "--rules.bonus-tiers 63 35 50 60", "bonus_tiers", _nothing),
        (NEW + "--epoch 3", "--epoch", _nothing),
        (NEW, "holds other files", _foreign),
        (NEW + "--overwrite", "holds other files", _foreign),
        (NEW, "already holds a run", _no_checkpoint),
        (NEW, "is a file; give a folder", _a_file),
        ("maskable_ppo --run /proc/nowhere", "/proc/nowhere", _nothing),
        (GO_ON, "holds no run to resume", _nothing),
        (GO_ON, "the provenance of the policy has ['thesis']", _foreign),
        (GO_ON, "has no checkpoint yet", _no_checkpoint),
        (GO_ON, "is not a checkpoint of this version", _not_a_checkpoint),
        (GO_ON, "is a run of sarsa", _other_learner),
        (GO_ON + "--num-envs 8", "num_envs=8 (was 512)", _no_checkpoint),
        (GO_ON + "--overwrite", "leave out --run and --overwrite", _no_checkpoint),
        (GO_ON + "--run elsewhere", "leave out --run and --overwrite", _no_checkpoint),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__.strip("_"),
)
def test_bad_input_is_one_line_and_writes_nothing(
    arguments: str,
    message: str,
    prepare: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    before = contents(tmp_path)
    assert train.main(arguments.replace("TARGET", "target").split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1, printed.err
    assert message in printed.err
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_help_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--help"]) == 0
    assert "maskable_ppo" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        train.main(["maskable_ppo", "--help"])
    out = capsys.readouterr().out
    assert "--learning-rate" in out
    assert f"--rules NAME: {' | '.join(SUITE)}" in out


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run of the command line that was killed somewhere after its fourth update."""
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "train.py", *SMALL, "--steps", "30000", "--checkpoint-minutes", "0", "--run", str(folder)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while not (folder / "curve.csv").exists() or len(curve_of(folder)) < 5:
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return folder


@pytest.mark.slow
def test_a_killed_run_resumes_as_if_nothing_had_been(killed: Path, tmp_path: Path) -> None:
    assert not (killed / "model.zip").exists()
    uninterrupted = tmp_path / "uninterrupted"
    assert train.main(["maskable_ppo", "--resume", str(killed)]) == 0
    assert train.main([*SMALL, "--steps", "30000", "--checkpoint-minutes", "0", "--run", str(uninterrupted)]) == 0
    assert_equal_curves(killed, uninterrupted)


@pytest.mark.slow
def test_the_recipe_learns(tmp_path: Path) -> None:
    assert train.main(["maskable_ppo", "--steps", "400000", "--run", str(tmp_path / "run")]) == 0
    last = curve_of(tmp_path / "run")[-1]
    assert float(last["selection_score"]) > 150  # random play: 60
    assert last["illegal_actions"] == "0"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_its_options_and_its_training(name: str) -> None:
    if name == "rllib_ppo":
        pytest.importorskip("ray")
    learner = importlib.import_module(ALGORITHMS[name])
    assert is_dataclass(learner.Config)
    assert callable(learner.train)
    assert learner.Config.__doc__


def test_a_missing_library_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "agents.rllib_ppo", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert train.main(["rllib_ppo"]) == 2
    assert capsys.readouterr().err == (
        "train.py: rllib_ppo needs ray; install it with pip install -e '.[train,rllib]'\n"
    )


def test_a_library_in_parts_is_named_with_what_installs_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half_installed(name: str) -> None:  # as Ray says it where RLlib's own libraries are missing
        raise ImportError("Can't import ray.tune as some dependencies are missing.")

    monkeypatch.setattr(train.importlib, "import_module", half_installed)
    assert train.main(["rllib_ppo"]) == 2
    assert capsys.readouterr().err == (
        "train.py: rllib_ppo needs more than there is (Can't import ray.tune as some dependencies are missing.); "
        "install it with pip install -e '.[train,rllib]'\n"
    )
