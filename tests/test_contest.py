"""Contests: what is taken off as luck has mean zero, duplicates cancel seats, and all is what a replay says it is."""

from collections.abc import Iterator
from contextlib import nullcontext
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hunter import Hunter
from rough import rough_judges

from kismet_env import contest as contest_module
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.contest import Contest, play_contest, share_interval, summarise_contests
from kismet_env.dice import CAN_KEEP, NUM_REROLL_KEEPS, REROLL_PROBABILITY, ROLL_DICE, roll_index
from kismet_env.evaluation import EVALUATION_DICE, Regrets, game_keys, mean_interval, play
from kismet_env.rules import Box, Rules, score
from kismet_env.solver import solve
from kismet_env.win_chance import judge_of, turn_worths, win_share

RULES = Rules()
FIVE_SIXES, FIVE_TREYS, CHAOS = roll_index([6] * 5), roll_index([3] * 5), roll_index([1, 2, 3, 5, 6])


@pytest.fixture(autouse=True)
def _spread_is_known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with rough_judges(monkeypatch) if "slow" not in request.keywords else nullcontext():
        yield


def card(*open_boxes: Box, basic_total: int = 0, armed: bool = False, total: int = 0) -> list[int]:
    return [32767 & ~sum(1 << box for box in open_boxes), basic_total, int(armed), total]


def test_the_chance_to_win_is_that_of_two_normal_numbers() -> None:
    optimum = solve()
    mine = card(Box.SIXES, Box.FLUSH, Box.YARBOROUGH, basic_total=55, armed=True, total=200)
    other = card(Box.FIVES, Box.KISMET, basic_total=60, total=230)
    chances, points = turn_worths(np.array([mine, other]), RULES)

    def final_total(card: list[int]) -> NormalDist:
        return NormalDist(card[3] + float(optimum.card_value(*card[:3])), float(optimum.card_sd(*card[:3])))

    # the Flush of 24 points is worth 35; Sixes and Yarborough stay open
    after = card(Box.SIXES, Box.YARBOROUGH, basic_total=55, armed=True, total=235)
    ahead = final_total(after) + NormalDist(-final_total(other).mean, final_total(other).stdev)
    flush = roll_index([6, 6, 6, 1, 1])
    assert chances[Box.FLUSH, flush] == pytest.approx(1 - ahead.cdf(0), abs=1e-7)
    assert points[Box.FLUSH, flush] == pytest.approx(35 + float(optimum.card_value(*after[:3])), abs=1e-9)
    # a second Kismet puts a zero into the other's Fives, which completes his Basic Section: 60 points, no bonus
    punished = card(Box.KISMET, basic_total=60, total=230)
    ahead = final_total(after) + NormalDist(-final_total(punished).mean, final_total(punished).stdev)
    assert chances[Box.FLUSH, FIVE_SIXES] == pytest.approx(1 - ahead.cdf(0), abs=1e-7)
    assert np.isnan(chances[Box.ACES]).all()


def test_a_forced_zero_brings_the_bonus_that_it_completes() -> None:
    mine = card(Box.YARBOROUGH, basic_total=55, armed=True, total=270)
    other = card(Box.SIXES, basic_total=70, total=250)  # 35 more for a zero in Sixes, and then all is over
    for total, chance in ((270, 0.0), (269, 1.0)):
        mine[3] = total
        chances, _ = turn_worths(np.array([mine, other]), RULES)
        assert chances[Box.YARBOROUGH, FIVE_TREYS] == (0.5 if total == 270 else 0.0), (total, chance)


def test_chances_of_several_players_are_shares_of_one_win() -> None:
    judge, chance = judge_of(RULES), np.random.default_rng(0)
    for count in (2, 3, 4, 6):
        certain = np.zeros(count)
        for means, variances, expected in (
            (chance.normal(300, 30, count), chance.uniform(200, 3000, count), None),
            (np.full(count, 280.0), certain, [1 / count] * count),  # a tie of all
            (280.0 + np.arange(count), certain, [0.0] * (count - 1) + [1.0]),
        ):
            args = judge.nodes, judge.weights
            shares = [win_share(means, variances, player, *args) for player in range(count)]
            assert sum(shares) == pytest.approx(1.0, abs=2e-3)
            assert expected is None or shares == pytest.approx(expected, abs=1e-12)


def luck_of(key: Any, first: Any, second: Any) -> tuple[float, list[int]]:
    """What chance brings to seat 0 in the game of `key`, throw by throw, with the chances of every roll; the totals."""
    batch = Batch(1, 2)
    step, luck, opened = batch.deal_keys(np.array([key])), 0.0, True
    values = np.empty((3, 252))
    while not step.terminated[0]:
        game, cards = batch.state.games[0].copy(), batch.state.cards[0].copy()
        mover = int(game["player"])
        sign = 1 if mover == 0 else -1
        if opened:
            rows = [
                [each["filled"], min(each["basic_total"], 78), each["armed"], each["total"]]
                for each in (cards[mover], cards[1 - mover])
            ]
            worths, _ = turn_worths(np.array(rows).astype(np.int64), RULES)
            armed = bool(cards[mover]["armed"])
            scores = np.array(
                [[score(dice, box, joker=armed and len(set(dice)) == 1) for dice in ROLL_DICE.tolist()] for box in Box]
            )
            late = np.nanmax(worths, axis=0)
            early = np.nanmax(np.where(scores > 0, worths, -np.inf), axis=0)
            values[0] = late
            for left in (1, 2):
                keeps = REROLL_PROBABILITY @ values[left - 1]
                rolling = np.where(CAN_KEEP, keeps, -np.inf).max(1)
                values[left] = np.maximum(early, rolling)
            luck += sign * (values[2, game["roll"]] - REROLL_PROBABILITY[0] @ values[2])
        player = first if mover == 0 else second
        action = int(player.act(step.observations, step.masks, batch.choice_shares())[0])
        step, left = batch.step([action]), int(game["rolls_left"])
        opened = action >= NUM_REROLL_KEEPS
        if not opened:
            came = batch.state.games["roll"][0]
            luck += sign * (values[left - 1, came] - REROLL_PROBABILITY[action] @ values[left - 1])
    return luck, batch.state.cards["total"][0].tolist()


def test_luck_is_what_a_replay_finds_throw_by_throw() -> None:
    greedy, hunter = make("greedy"), Hunter()
    contest = play_contest([greedy, hunter], 2, seed=5)
    assert contest.luck is not None
    for deal, key in enumerate(game_keys(EVALUATION_DICE, 5, range(2))):
        for rotation, players in enumerate(((greedy, hunter), (hunter, greedy))):
            luck, totals = luck_of(key, *players)
            seats = [(player + rotation) % 2 for player in range(2)]
            assert contest.totals[deal, rotation].tolist() == [totals[seat] for seat in seats]
            signed = [luck if seat == 0 else -luck for seat in seats]
            assert contest.luck[deal, rotation] == pytest.approx(signed, abs=1e-9)


@pytest.mark.parametrize("name", ["turn_greedy", "epsilon:0.3"])
def test_a_player_against_itself_has_exactly_one_half(name: str) -> None:
    player = make(name)
    contest = play_contest([player, player], 20, seed=1)
    report = summarise_contests({(name, name): contest}, seed=1)["matches"][0]
    assert report["a_win_rate"] == 0.5
    assert report["ci95"] == (0.5, 0.5)
    assert report["luck_adjusted_a_win_rate"] == pytest.approx(0.5, abs=1e-12)
    assert np.ptp(report["luck_adjusted_ci95"]) < 1e-12


def test_regret_in_matches_is_that_of_the_solitaire_game_where_nobody_is_hit() -> None:
    player = make("turn_greedy")
    contest = play_contest([player, make("greedy")], 40, seed=3)
    alone = play(player, 40, seed=3, watcher=lambda start: Regrets(solve(), start))
    assert contest.regret is not None
    assert contest.forced is not None
    quiet = contest.second_kismets[:, 0].sum(1) == 0
    assert quiet.sum() > 25
    expected = alone.measures["regret_by_turn"].sum(1)
    np.testing.assert_allclose(contest.regret[quiet, 0, 0], expected[quiet], atol=1e-9)
    assert (contest.totals[quiet, 0, 0] == alone.totals[quiet]).all()
    assert (contest.forced[quiet, 0] == 0).all()


def test_three_players_share_wins_and_luck_and_second_kismets_cost_the_others() -> None:
    contest = play_contest([Hunter(), Hunter(), make("greedy")], 30, seed=0)
    assert contest.luck is not None
    assert contest.forced is not None
    assert contest.shares.shape == (30, 3, 3)
    np.testing.assert_allclose(contest.shares.sum(2), 1.0)
    np.testing.assert_allclose(contest.luck.sum(2), 0.0, atol=1e-12)
    hits = contest.second_kismets
    assert hits.sum() > 15
    hit_by_others = hits.sum(2, keepdims=True) - hits
    assert (contest.forced[hit_by_others == 0] == 0).all()
    assert contest.forced[hit_by_others > 0].mean() > 2  # points
    report = summarise_contests({("a", "b", "c"): contest}, seed=0)["matches"][0]
    assert "a_win_rate" not in report
    assert sum(player["win_rate"] for player in report["players"]) == pytest.approx(1.0)
    assert [len(player["by_seat"]) for player in report["players"]] == [3, 3, 3]


def test_contests_do_not_depend_on_how_many_deals_are_played_nor_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    players = [make("greedy"), make("random")]
    many = play_contest(players, 30, seed=2, watch=False)
    monkeypatch.setattr(contest_module, "_GAMES_AT_ONCE", 8)
    few = play_contest(players, 10, seed=2, watch=False)
    assert many.luck is None
    assert (many.totals[:10] == few.totals).all()
    assert (many.shares[:10] == few.shares).all()


@pytest.mark.slow
def test_contests_do_not_depend_on_processes() -> None:
    players = [make("turn_greedy"), make("epsilon:0.1")]
    one, two = (play_contest(players, 600, seed=2, processes=processes) for processes in (1, 2))
    for name, alone, beside in zip(one._fields[:-1], one[:-1], two[:-1], strict=True):  # but the seconds
        np.testing.assert_array_equal(alone, beside, err_msg=name)


def test_that_nobody_has_lost_yet_has_an_interval() -> None:
    low, high = share_interval(np.ones(50)) or (0.0, 0.0)
    assert 0.9 < low < 0.95  # Wilson: n / (n + z^2)
    assert low == pytest.approx(50 / (50 + 1.959964**2), abs=1e-4)
    assert high == pytest.approx(1.0)
    assert share_interval(np.full(50, 0.5)) == (0.5, 0.5)


@pytest.mark.slow
def test_win_rates_without_luck_are_unbiased_far_more_certain_and_their_intervals_cover() -> None:
    players = [make("turn_greedy"), make("greedy")]
    contest: Contest = play_contest(players, 8_000, seed=11)
    assert contest.luck is not None
    assert contest.adjusted is not None
    luck = contest.luck[:, :, 0]
    assert abs(luck.mean()) < 3.5 * luck.mean(1).std() / sqrt(len(luck))
    for rotation in range(2):  # and for each seat
        assert abs(luck[:, rotation].mean()) < 3.5 * luck[:, rotation].std() / sqrt(len(luck))
    assert contest.adjusted[:, :, 0].std() < contest.shares[:, :, 0].std() / 2
    truth = contest.adjusted[:, :, 0].mean()
    intervals = [mean_interval(part.mean(1)) or (0, 0) for part in np.split(contest.adjusted[:, :, 0], 200)]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.91 <= covered <= 0.985, covered  # of 200 intervals; 0.95 within 2.6 standard deviations
