"""The value suite: its positions are pinned and spread as they should be, and what it measures is what was lost."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import Solitaire, card_of
from reference import STANDARD
from reference_game import KEEP_NUMBER

from kismet_env import value_suite
from kismet_env.actions import actions_of
from kismet_env.bots import make
from kismet_env.dice import ROLL_DICE
from kismet_env.rules import Box
from kismet_env.value_suite import FINGERPRINT, ORIGINS, SIZE, ValueSuite, deal, load, measure

PINNED = "075beba05fea1bba567951002fc1c9d7cf0264a0d8aa818131403ce1a2291d5a"
KEEPS = actions_of("keeps")


def test_the_positions_are_pinned() -> None:
    suite = load()
    assert len(suite.rolls) == SIZE == 10_000
    assert suite.fingerprint == FINGERPRINT == PINNED


def test_the_positions_are_spread_over_turns_rolls_and_strengths_and_all_differ() -> None:
    suite = load()
    turns = (suite.scorecards != 255).sum(1)
    counts = np.zeros((15, 3, len(ORIGINS)), int)
    np.add.at(counts, (turns, suite.rolls_left, suite.origins), 1)
    assert counts[14, 0].sum() == 0, "no choice"
    counts = np.delete(counts.reshape(45, -1), 14 * 3, 0)
    assert counts.min() >= SIZE // counts.size
    assert counts.max() <= SIZE // counts.size + 1
    together = np.column_stack([suite.scorecards, suite.rolls, suite.rolls_left])
    assert len(np.unique(together, axis=0)) == SIZE
    assert (suite.seen.masks.sum(1) > 1).all()


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: data[:-1] + b"!", lambda data: b"", None])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Any) -> None:
    path = tmp_path / "value_suite.safetensors"
    if harm:
        path.write_bytes(harm(value_suite.PATH.read_bytes()))
    monkeypatch.setattr(value_suite, "PATH", path)
    with pytest.raises(ValueError, match=r"value_suite\.safetensors is damaged: .*; install the package again$"):
        load.__wrapped__()


@pytest.mark.slow
def test_the_positions_can_be_dealt_again() -> None:
    assert deal().fingerprint == FINGERPRINT


def with_one_open_box(count: int) -> ValueSuite:
    """Some positions of the last turn, from all over the suite."""
    suite = load()
    some = np.flatnonzero((suite.scorecards == 255).sum(1) == 1)
    return suite.at(some[:: len(some) // count][:count])


def truths(suite: ValueSuite) -> list[dict[int, float]]:
    """What each legal action is worth in positions with few open boxes, by trying everything."""
    game, found = Solitaire(STANDARD), []
    for card, roll, left in zip(suite.scorecards.tolist(), suite.rolls, suite.rolls_left.tolist(), strict=True):
        boxes = tuple(Box(box).name for box in range(15) if card[box] == 255)
        basic_total = sum(points for points in card[:6] if points != 255)
        kismet = card[Box.KISMET]
        start = card_of(boxes, basic_total, kismet=None if kismet == 255 else kismet)
        worth = game.actions(start, tuple(ROLL_DICE[roll].tolist()), left)
        number = {True: lambda box: KEEPS.box_action(Box[box]), False: KEEP_NUMBER.__getitem__}
        found.append({int(number[isinstance(what, str)](what)): value for what, value in worth.items()})  # type: ignore[operator]
    return found


class Scripted:
    """Plays given actions and thinks as it is told."""

    def __init__(self, actions: list[int], values: Any) -> None:
        self.actions, self.values = np.array(actions), values

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return self.actions

    def action_values(self, observations: Any) -> Any:
        return self.values


def test_what_is_lost_is_what_trying_everything_says() -> None:
    suite = with_one_open_box(30)
    worths = truths(suite)
    chance = np.random.default_rng(1)
    every_second = [list(worth) if row % 2 else [max(worth)] for row, worth in enumerate(worths)]  # the one box is last
    chosen = [int(chance.choice(actions)) for actions in every_second]
    own = np.full((30, 225), np.nan)
    errors = []
    for row, worth in enumerate(worths):
        noise = dict(zip(worth, chance.normal(1.5, 2.0, len(worth)), strict=True))
        for action, value in worth.items():
            own[row, action] = value + noise[action]
        thinks = max(worth, key=lambda action: own[row, action])
        errors.append((list(noise.values()), noise[thinks]))
    report = measure(Scripted(chosen, own), suite)
    lost = np.array([max(worth.values()) - worth[action] for worth, action in zip(worths, chosen, strict=True)])
    kept = np.array(chosen) < KEEPS.num_rolls
    assert report["regret"] == pytest.approx(lost.mean())
    assert report["best_share"] == (lost < 1e-9).mean()
    assert report["blunder_share"] == (lost > 3).mean() > 0
    assert report["keep"] == {"share": kept.mean(), "regret": pytest.approx(lost[kept].mean())}
    assert report["box"] == {"share": pytest.approx(1 - kept.mean()), "regret": pytest.approx(lost[~kept].mean())}
    for left in range(3):
        of_these = lost[suite.rolls_left == left]
        mean = report["regret_by_rolls_left"][str(left)]
        assert mean == (pytest.approx(of_these.mean()) if len(of_these) else None)
    assert report["values"] == {
        "legal": {
            "bias": pytest.approx(np.mean([np.mean(all_) for all_, _ in errors])),
            "rmse": pytest.approx(np.mean([np.mean(np.square(all_)) for all_, _ in errors]) ** 0.5),
        },
        "chosen": {
            "bias": pytest.approx(np.mean([one for _, one in errors])),
            "rmse": pytest.approx(np.mean([one**2 for _, one in errors]) ** 0.5),
        },
    }


def test_a_stochastic_player_loses_what_he_must_expect_to_lose() -> None:
    suite = with_one_open_box(30)
    worths = truths(suite)
    lost = [max(worth.values()) - np.mean(list(worth.values())) for worth in worths]
    report = measure(make("random"), suite)
    assert report["regret"] == pytest.approx(np.mean(lost))
    assert report["values"] is None


def test_an_illegal_action_gives_everything_away() -> None:
    suite = with_one_open_box(10)
    suite = replace(suite, rolls_left=np.zeros(10, np.uint8))
    report = measure(Scripted([0] * 10, np.zeros((10, 225))), suite)
    assert report["illegal_share"] == 1
    assert report["regret"] == pytest.approx(np.mean([max(worth.values()) for worth in truths(suite)]))


def test_perfect_play_loses_nothing_and_worse_players_more() -> None:
    every_tenth = load().at(slice(None, None, 10))
    reports = {name: measure(make(name), every_tenth) for name in ("optimal", "rule_based", "turn_greedy", "random")}
    regrets = [report["regret"] for report in reports.values()]
    assert regrets[0] == pytest.approx(0, abs=1e-9)
    assert reports["optimal"]["values"]["legal"] == {"bias": 0, "rmse": 0}
    assert regrets == sorted(regrets)
