"""agents/afterstate.py: luck that is left out has the mean 0, what is learned is played, runs resume exactly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_runs import assert_same_policy, interrupt_at

import train
from agents.afterstate import Config, Judge, Learner, play
from kismet_env.bots import make
from kismet_env.bots.card_value import CardPlayer, CardValue
from kismet_env.cards import CardNumbers
from kismet_env.evaluation import exact, game_keys
from kismet_env.policy_file import load_policy
from kismet_env.rules import SUITE, Rules
from kismet_env.solver import solve
from kismet_env.tables import tables_of

SMALL = [
    *("afterstate", "--games", "20", "--updates", "3", "--batch-size", "32", "--memory", "900", "--hidden-sizes", "16"),
    *("--threads", "1", "--selection-games", "8", "--selection-every", "2", "--steps", "9000"),
]


def keys(count: int) -> np.ndarray[Any, Any]:
    return game_keys(9, 0, range(count))


def judge_of(rules: Rules) -> Judge:
    """One with strong opinions that nothing has taught it."""
    torch.manual_seed(0)
    learner = Learner(Config(rules=rules, hidden_sizes=(16,)), run=None)  # type: ignore[arg-type]
    torch.nn.init.normal_(learner.learned.average.module[-1].weight, std=0.5)
    return Judge(rules, learner.learned.average, points_per_unit=100.0)


@pytest.mark.slow
def test_a_score_without_luck_has_the_mean_of_the_play_whatever_the_values() -> None:
    """Against the exact value of the same play, and against the scores themselves."""
    rules = SUITE["no_bonus"]
    judge = judge_of(rules)
    games = play(judge, keys(2000), rules)
    without_luck = judge.values(games.cards[:, 0]) + judge.surprises(games).sum(1)
    error = without_luck.std() / 2000**0.5
    assert abs(without_luck.mean() - exact(judge, rules).expected_score) < 4 * error
    assert without_luck.std() > 5, "values that are nearly right prove little"
    assert abs(without_luck.mean() - games.mean) < 5
    assert games.met.all()


class Knowing(Judge):
    """One who judges every card by the optimum."""

    def judge(self, cards: Any) -> Any:
        return solve(self._rules).card_value(*cards.T)


def test_who_knows_the_truth_is_never_surprised() -> None:
    knowing = Knowing(Rules(), torch.nn.Identity(), 1.0)
    games = play(knowing, keys(30), Rules(), start="uniform")
    assert 30 < games.met.sum() < 450
    np.testing.assert_allclose(knowing.surprises(games), 0.0, atol=1e-9)
    for td_lambda in (0.0, 1.0):
        cards, targets = knowing.lessons(games, td_lambda)
        np.testing.assert_allclose(targets, solve().card_value(*cards.T), rtol=1e-12)


def test_lambda_leads_from_the_next_turn_to_the_whole_rest_of_the_game() -> None:
    rules = SUITE["no_bonus"]
    judge = judge_of(rules)
    games = play(judge, keys(5), rules)
    beyond = judge.surprises(games)
    for td_lambda in (0.0, 0.5, 1.0):
        cards, targets = judge.lessons(games, td_lambda)
        targets = targets.reshape(5, 15)
        for filled in range(15):
            weights = td_lambda ** np.arange(15 - filled)
            expected = judge.values(games.cards[:, filled]) + beyond[:, filled:] @ weights
            np.testing.assert_allclose(targets[:, filled], expected)
    np.testing.assert_allclose(judge.lessons(games, 0.0)[1], judge.turns(cards))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert train.main([*SMALL, "--run", str(folder)]) == 0
    return folder


def test_what_is_learned_is_played_without_torch(finished: Path) -> None:
    learner = Learner(Config(hidden_sizes=(16,)), run=None)  # type: ignore[arg-type]
    learner.restore(torch.load(finished / "checkpoint.pt", weights_only=True)["state"])
    judge, player = Judge(Rules(), learner.learned.average, 100.0), make(f"policy:{finished / 'policy.safetensors'}")
    assert isinstance(player, CardValue)
    layers = np.concatenate(list(CardNumbers(tables_of(Rules())).layers()))
    cards = layers[np.random.default_rng(0).integers(len(layers), size=2000)]
    np.testing.assert_allclose(player.values(cards), judge.values(cards), atol=1e-3)
    assert load_policy(finished / "policy.safetensors").provenance.algorithm == "afterstate"
    assert {path.name for path in finished.iterdir()} == {
        "config.json", "sessions.json", "curve.csv", "curve.png", "tensorboard",
        "checkpoint.pt", "policy.safetensors", "best.safetensors",
    }  # fmt: skip


def test_ctrl_c_saves_and_the_resumed_run_equals_the_uninterrupted_one(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted twice: on the way backwards, and among own games."""
    folder = tmp_path / "run"
    rounds = interrupt_at(monkeypatch, 4, 20)
    assert train.main([*SMALL, "--run", str(folder)]) == 130
    assert train.main(["afterstate", "--resume", str(folder)]) == 130
    assert train.main(["afterstate", "--resume", str(folder)]) == 0
    assert len(rounds) > 25
    assert_same_policy(folder, finished)


def test_every_card_player_sees_the_same_card_once_the_basic_section_is_full() -> None:
    """Its total is paid for, and the exact value of a player counts all such cards as one."""
    judge = judge_of(Rules())
    assert isinstance(judge, CardPlayer)
    full_section = np.array([[0b111111, total, 0] for total in (0, 40, 63, 78)])
    player = CardValue(Learner(Config(hidden_sizes=(16,)), run=None).portable())  # type: ignore[arg-type]
    assert np.ptp(judge.values(full_section)) == 0
    assert np.ptp(player.values(full_section)) == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--games 1", "games=1 is not at least 2"),
        ("--games 9999999", "at most 1,048,576"),
        ("--td-lambda 2", "td_lambda=2"),
        ("--updates 0", "updates=0"),
        ("--hidden-sizes 0", "hidden_sizes=(0,)"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(
    options: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["afterstate", *options.split(), "--run", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_three_rounds_of_own_games_play_better_than_greed(tmp_path: Path) -> None:
    options = "--order selfplay --td-lambda 1 --games 1000 --updates 200 --steps 45000 --selection-every 3 --threads 1"
    assert train.main(["afterstate", *options.split(), "--run", str(tmp_path / "run")]) == 0
    last = (tmp_path / "run" / "curve.csv").read_text().splitlines()
    score = dict(zip(last[0].split(","), last[-1].split(","), strict=True))["selection_score"]
    assert float(score) > 300, "turn_greedy has 288.6"
