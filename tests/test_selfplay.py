"""agents/selfplay.py and its players: turns against brute force and the endgame's table, runs that resume exactly."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_runs import assert_same_policy, interrupt_at
from rough import rough_judges

import train
from agents.selfplay import Config, Judge, Learner
from kismet_env import card_pair, endgame
from kismet_env.batch import Batch
from kismet_env.bots import make, pair_value
from kismet_env.bots.pair_value import PairPlayer, PairValue, pairs_of
from kismet_env.dice import CAN_KEEP, REROLL_PROBABILITY, ROLL_DICE
from kismet_env.engine import ALL_BOXES
from kismet_env.observation import pair_layout
from kismet_env.policy_file import load_policy
from kismet_env.rules import SUITE, Box, Rules, basic_bonus, score
from kismet_env.tables import tables_of
from kismet_env.win_chance import judge_of

SMALL = [
    *("selfplay", "--games", "6", "--updates", "2", "--batch-size", "32", "--memory", "900", "--hidden-sizes", "16"),
    *("--threads", "1", "--selection-deals", "2", "--selection-every", "7", "--steps", "12000"),
]


@pytest.fixture(autouse=True, scope="module")
def _rough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch, rough_judges(monkeypatch):
        yield


class Opinionated(PairPlayer):
    """One with strong opinions that nothing has taught him."""

    def correct(self, seen: Any) -> Any:
        return np.sin(seen @ np.arange(1.0, 1 + seen.shape[1]))


def test_pairs_after_a_turn_are_what_the_engine_makes_of_them() -> None:
    rules = Rules(second_kismet="rolled")  # second Kismets are no rarity then
    batch, chance, tables = Batch(3000, 2, rules=rules, start="uniform"), np.random.default_rng(0), tables_of(rules)[0]
    batch.seed(range(3000))
    batch.deal()
    batch.state.games["rolls_left"] = 0
    batch.state.games["roll"][::2] = np.flatnonzero(np.ptp(ROLL_DICE, axis=1) == 0)[chance.integers(0, 6, 1500)]
    before, rolls, seats = (
        pairs_of(batch.look().observations, rules),
        batch.state.games["roll"].copy(),
        batch.state.games["player"].copy(),
    )
    masks = batch.look().masks
    actions = (chance.random(masks.shape) * masks).argmax(1)
    batch.step(actions)
    after, goes_on = pairs_of(batch.look().observations, rules), ~batch.over
    again = batch.state.games["player"] == seats
    ours, following = np.empty_like(before), np.empty(len(before), int)
    for row, pair in enumerate(before):
        following[row] = card_pair.pair_after(tables, pair, rolls[row], actions[row] - 210, ours[row])
    expected = np.where(goes_on, np.where(again, 1, -1), 0)
    assert (following == expected).all()
    ours[:, [1, 4]] = np.minimum(ours[:, [1, 4]], 78)  # as it is seen
    assert (ours[goes_on] == after[goes_on]).all()
    totals = batch.state.cards["total"][np.arange(3000), seats] - batch.state.cards["total"][np.arange(3000), 1 - seats]
    assert (ours[~goes_on, 6] == totals[~goes_on]).all()
    assert (again & goes_on).sum() > 100
    assert (~goes_on).sum() > 20


One = tuple[tuple[Box, ...], int, bool]
"""A card with these boxes open, its Basic total and whether it is armed."""
TWO_EACH: list[tuple[One, One, int]] = [
    (((Box.SIXES, Box.FULL_HOUSE), 45, True), ((Box.FIVES, Box.KISMET), 50, False), -12),
    (((Box.YARBOROUGH, Box.STRAIGHT), 63, False), ((Box.ACES, Box.FLUSH, Box.KISMET), 60, False), 20),
    (((Box.ACES, Box.DEUCES), 56, True), ((Box.SIXES,), 57, True), 5),
]


def row(mine: One, other: One, lead: int) -> list[int]:
    def card(one: One) -> list[int]:
        return [ALL_BOXES & ~sum(1 << box for box in one[0]), one[1], int(one[2])]

    return [*card(mine), *card(other), lead]


def filled(one: One, box: Box, points: int, arms: bool) -> tuple[One, int]:
    """The card after `points` in `box`, and the bonus."""
    boxes, total, armed = one
    total += points if box <= Box.SIXES else 0
    left = tuple(other for other in boxes if other != box)
    completes = box <= Box.SIXES and all(other > Box.SIXES for other in left)
    return (left, total, armed or arms), basic_bonus(total, Rules()) if completes else 0


def test_turns_are_what_trying_everything_finds() -> None:
    player = Opinionated(Rules(), by_table=False)
    for mine, other, lead in TWO_EACH:
        worth, stops = np.full((2, 252), -np.inf), np.full((2, 252), -np.inf)
        for roll, dice in enumerate(ROLL_DICE.tolist()):
            for index, box in enumerate(mine[0]):
                hit = mine[2] and len(set(dice)) == 1
                points = score(dice, box, joker=hit)
                card, bonus = filled(mine, box, points, box == Box.KISMET and points > 0)
                ahead, victim = lead + points + bonus, other
                if hit:
                    victim, bonus = filled(other, min(other[0]), 0, False)
                    ahead -= bonus
                if not card[0] and not victim[0]:
                    share = (np.sign(ahead) + 1) / 2
                elif victim[0] and not (hit and card[0]):
                    share = 1 - player.shares(np.array([row(victim, card, -ahead)]))[0]
                else:
                    share = player.shares(np.array([row(card, victim, ahead)]))[0]
                worth[index, roll] = share
                stops[index, roll] = share if points else -np.inf
        value = worth.max(0)
        for _ in range(2):
            value = np.maximum(stops.max(0), np.where(CAN_KEEP, REROLL_PROBABILITY @ value, -np.inf).max(1))
        assert player.turns(np.array([row(mine, other, lead)]))[0] == pytest.approx(
            REROLL_PROBABILITY[0] @ value, abs=1e-6
        )


def test_with_one_open_box_each_turns_are_those_of_the_endgame(monkeypatch: pytest.MonkeyPatch) -> None:
    table = endgame.kinds_of(Rules())
    judge = judge_of(Rules())._replace(endgame=table)
    monkeypatch.setattr(pair_value, "judge_of", lambda rules: judge)
    player, chance = Opinionated(Rules()), np.random.default_rng(0)
    pairs = []
    for kind in chance.integers(0, len(table.cards), 3):
        endgame.write_both(tables_of(Rules()), table, kind)
        pairs += [
            [*table.cards[kind], *table.cards[chance.integers(len(table.cards))], lead] for lead in (-25, -6, 0, 9)
        ]
        pairs += [[*table.cards[kind], ALL_BOXES, 0, 0, lead] for lead in (-25, -6, 0)]
    kinds = [[card_pair.card_kind(judge, np.array(pair), at) for at in (0, 3)] for pair in pairs]
    truth = [
        endgame.share_of_last(table, mine, -pair[6])
        if other == endgame.FULL
        else endgame.share_of_both(table, mine, other, -pair[6])
        for pair, (mine, other) in zip(pairs, kinds, strict=True)
    ]
    assert 0.1 < np.mean(truth) < 0.9
    np.testing.assert_allclose(player.turns(np.array(pairs)), truth, atol=1e-6)


def learner(rules: Rules | None = None) -> Learner:
    """One with strong opinions."""
    made = Learner(Config(rules=rules or Rules(), hidden_sizes=(16,)), run=None)  # type: ignore[arg-type]
    torch.manual_seed(1)
    for part in (made.learned.average.module, made.learned.network):
        torch.nn.init.normal_(part[-1].weight, std=0.5)
    return made


def test_what_is_learned_is_played_without_torch() -> None:
    chance, made = np.random.default_rng(0), learner()
    pairs = np.concatenate([made.dealt(50, filled, chance) for filled in (0, 7, 16, 25, 28, 29)])
    judge, player = made.judge(), PairValue(made.portable())
    np.testing.assert_allclose(player.shares(pairs), judge.shares(pairs), atol=1e-6)
    assert np.std(player.shares(pairs)) > 0.1
    batch = Batch(300, 2, start="uniform")
    batch.seed(range(300))
    seen = batch.deal()
    ours, theirs = player.act(seen.observations, seen.masks), judge.act(seen.observations, seen.masks)
    assert (ours == theirs).mean() > 0.98
    assert (seen.masks[np.arange(300), ours] == 1).all()
    for rows in np.array_split(chance.permutation(300), 7):
        again = pickle.loads(pickle.dumps(player))
        assert (again.act(seen.observations[rows], seen.masks[rows]) == ours[rows]).all()


@pytest.mark.parametrize("num_players", [1, 3])
def test_with_other_numbers_of_players_it_plays_as_win_probability_does(num_players: int) -> None:
    batch = Batch(40, num_players, start="uniform")
    batch.seed(range(40))
    seen = batch.deal()
    player = PairValue(learner().portable())
    expected = make("win_probability").act(seen.observations, seen.masks)
    assert (player.act(seen.observations, seen.masks) == expected).all()


def test_lessons_without_luck_have_the_mean_of_the_play() -> None:
    """The share of wins of games that are really played to their ends, and TD(1) of their beginnings."""
    rules = SUITE["no_bonus"]
    judge: Judge = learner(rules).judge()
    pairs = np.repeat([[0b111111011111111, 40, 0, 0b111111101111101, 38, 0, 5]], 4000, axis=0)
    met, targets, score_ = judge.lessons(pairs, np.random.default_rng(0), 1.0)
    assert judge.lessons(pairs, np.random.default_rng(0), 0.5)[2] == pytest.approx(score_), "whatever lambda is"
    first = (met == pairs[0]).all(1)
    assert first.sum() == 4000
    assert targets[first].mean() == pytest.approx(score_)
    assert targets[first].std() > 0.05, "shares that are nearly right prove little"
    won, rows, chance, mover = np.zeros(4000), np.arange(4000), np.random.default_rng(1), np.ones(4000)
    while rows.size:
        _, after, following = judge.play(pairs, chance)
        over = following == 0
        won[rows[over]] = (np.sign(mover * after[:, 6])[over] + 1) / 2
        pairs, rows, mover = after[~over], rows[~over], (mover * following)[~over]
    error = (won.std() + targets[first].std()) / 4000**0.5
    assert abs(won.mean() - score_) < 4 * error


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert train.main([*SMALL, "--run", str(folder)]) == 0
    return folder


def test_the_page_says_how_much_the_network_sees() -> None:
    page = Path(__file__).parent.parent / "docs" / "two-players.md"
    assert f"The network sees {pair_layout(Rules()).size} numbers" in page.read_text()


def test_a_run_leaves_a_policy_for_two_players(finished: Path) -> None:
    policy = load_policy(finished / "policy.safetensors")
    assert (policy.kind, policy.provenance.algorithm, policy.provenance.num_players) == ("pair_value", "selfplay", 2)
    assert policy.network.sizes[0] == pair_layout(Rules()).size
    assert isinstance(make(f"policy:{finished / 'policy.safetensors'}"), PairValue)


def test_ctrl_c_saves_and_the_resumed_run_equals_the_uninterrupted_one(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted twice: on the way backwards, and among own games."""
    folder = tmp_path / "run"
    rounds = interrupt_at(monkeypatch, 4, 40)
    assert train.main([*SMALL, "--run", str(folder)]) == 130
    assert train.main(["selfplay", "--resume", str(folder)]) == 130
    assert train.main(["selfplay", "--resume", str(folder)]) == 0
    assert len(rounds) > 45
    assert_same_policy(folder, finished)
