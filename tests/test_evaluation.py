"""Evaluation: the same games for everybody, however they are played, and statistics that say what they claim."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import Player, make
from kismet_env.dice import hash_words, roll_index
from kismet_env.evaluation import (
    EVALUATION_DICE,
    SELECTION_DICE,
    TRAINING_DICE,
    Games,
    Moves,
    game_keys,
    mean_interval,
    play,
    rate_interval,
    summarise,
)
from kismet_env.observation import Decision
from kismet_env.plots import plot_boxes, plot_scores, png
from kismet_env.rules import SUITE, Box, Rules
from kismet_env.tables import box_points

COUNT = 60


class Stubborn:
    """Keeps nothing and rolls on, legal or not."""

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return np.zeros(len(masks), np.int64)


@pytest.fixture(scope="module")
def games() -> dict[str, Games]:
    """A thousand games of each bot on the same dice."""
    return {name: play(make(name), 1000, seed=1) for name in ("random", "greedy", "turn_greedy")}


def assert_same_games(some: Games, others: Games) -> None:
    for name in ("totals", "points", "bonuses", "illegal", "decisions"):
        assert (getattr(some, name) == getattr(others, name)).all(), name


@pytest.mark.parametrize("name", ["random", "greedy", "turn_greedy"])
@pytest.mark.parametrize("chunk", [1, 7, 59])
def test_games_do_not_depend_on_how_many_are_played_side_by_side(name: str, chunk: int) -> None:
    assert_same_games(play(make(name), COUNT, seed=5, chunk=chunk), play(make(name), COUNT, seed=5))


def test_games_do_not_depend_on_the_number_of_processes(games: dict[str, Games]) -> None:
    done: list[int] = []
    in_two = play(make("random"), 1000, seed=1, processes=2, chunk=300, report=done.append)
    assert_same_games(in_two, games["random"])
    assert done == [300, 300, 300, 100]


def test_the_first_games_are_the_same_however_many_follow(games: dict[str, Games]) -> None:
    few = play(make("greedy"), 30, seed=1)
    assert (few.totals == games["greedy"].totals[:30]).all()


def test_a_game_is_that_of_its_key() -> None:
    """Replayed one by one through a batch of one."""
    player, batch = make("greedy"), Batch(1)
    expected = play(player, 5, seed=9)
    for game in range(5):
        step = batch.deal_keys(np.array([hash_words(EVALUATION_DICE, 9, game)]))
        while not batch.over[0]:
            step = batch.step(player.act(step.observations, step.masks))
        assert step.totals[0] == expected.totals[game]
        assert (step.scorecards[0] == expected.points[game]).all()


def test_keys_are_hashes_of_domain_seed_and_game() -> None:
    keys = game_keys(SELECTION_DICE, 2**70, range(3, 6))
    assert keys.tolist() == [hash_words(SELECTION_DICE, 2**70, game) for game in range(3, 6)]


def test_no_game_is_in_two_domains_or_seeds() -> None:
    domains = (TRAINING_DICE, SELECTION_DICE, EVALUATION_DICE)
    keys = np.concatenate([game_keys(domain, seed, range(2000)) for domain in domains for seed in range(5)])
    assert len(np.unique(keys)) == len(keys)


def test_other_seeds_and_domains_are_other_games(games: dict[str, Games]) -> None:
    for others in (play(make("greedy"), 50, seed=2), play(make("greedy"), 50, seed=1, domain=SELECTION_DICE)):
        assert (others.totals != games["greedy"].totals[:50]).any()


def test_rules_are_those_of_the_games() -> None:
    rules = SUITE["royal_flush"]
    flushes = play(make("turn_greedy", rules), 50, seed=0, rules=rules).points[:, Box.FLUSH]
    assert 100 in flushes
    assert set(flushes.tolist()) <= {0, 100}


def test_every_game_is_played_to_its_end_and_adds_up(games: dict[str, Games]) -> None:
    for played in games.values():
        assert (played.points >= 0).all()
        assert (played.totals == played.points.sum(1) + played.bonuses).all()
        assert set(played.bonuses.tolist()) <= {0, 35, 55, 75}
        assert ((played.decisions >= 15) & (played.decisions <= 45)).all()
        assert not played.illegal.any()


def test_each_bot_plays_better_than_the_one_before(games: dict[str, Games]) -> None:
    intervals = [mean_interval(games[name].totals) for name in ("random", "greedy", "turn_greedy")]
    for worse, better in pairwise(intervals):
        assert worse is not None
        assert better is not None
        assert worse[1] < better[0]


def test_turn_greedy_has_its_exact_mean(games: dict[str, Games]) -> None:
    """288.5, computed elsewhere; within 3.3 standard errors, so that one honest run in a thousand fails."""
    totals = games["turn_greedy"].totals
    assert abs(totals.mean() - 288.5) < 3.3 * totals.std() / len(totals) ** 0.5


def test_illegal_actions_are_counted_and_cut_a_game_off() -> None:
    played = play(Stubborn(), 3, seed=0)
    assert played.illegal.tolist() == [100] * 3
    assert played.decisions.tolist() == [102] * 3  # two rolls first
    assert played.totals.tolist() == [0] * 3
    assert (played.points == -1).all()
    (agent,) = summarise({"stubborn": played}, seed=0)["agents"]
    assert agent["illegal_actions"] == 300
    assert agent["boxes"]["ACES"] == {"mean": 0.0, "zero_rate": 0.0, "regret": None}


class Bookkeeper:
    """Adds up the points of every move from what a Watcher sees."""

    def __init__(self, start: Decision) -> None:
        self.at, self.points = start, np.zeros(len(start.filled), np.int64)
        self.moves = np.zeros(len(start.filled), np.int64)

    def watch(self, moves: Moves) -> None:
        first_box = actions_of("keeps").num_rolls
        for mine, theirs in zip(self.at.at(moves.games), moves.before, strict=True):
            assert (mine == theirs).all(), "a move begins where the last one has ended"
        self.moves[moves.games] += 1
        fills = moves.actions >= first_box
        joker = moves.before.armed & (moves.before.dice.min(1) == moves.before.dice.max(1))
        for row in np.flatnonzero(fills):
            dice, box = moves.before.dice[row], moves.actions[row] - first_box
            worth = box_points(Rules())[int(joker[row]), roll_index(dice.tolist()), box]
            self.points[moves.games[row]] += worth
            assert moves.after.filled[row] == moves.before.filled[row] | 1 << box
        assert (moves.after.filled[~fills] == moves.before.filled[~fills]).all()
        assert ((moves.after.filled == 2**15 - 1) == moves.over).all()
        for mine, theirs in zip(self.at, moves.after, strict=True):
            mine[moves.games] = theirs

    def measures(self) -> dict[str, np.ndarray]:
        return {"points": self.points, "moves": self.moves}


@pytest.mark.parametrize("name", ["random", "turn_greedy"])
def test_a_watcher_sees_every_move_and_changes_nothing(name: str, games: dict[str, Games]) -> None:
    watched = play(make(name), 60, seed=1, chunk=25, watcher=Bookkeeper)
    assert (watched.totals == games[name].totals[:60]).all()
    assert (watched.measures["points"] == watched.points.sum(1)).all()
    assert (watched.measures["moves"] == watched.decisions).all()


def test_a_watcher_sees_the_probabilities_of_stochastic_players() -> None:
    seen: list[Moves] = []

    class Witness(Bookkeeper):
        def watch(self, moves: Moves) -> None:
            seen.append(moves)

    play(make("random"), 4, seed=0, watcher=Witness)
    play(make("greedy"), 4, seed=0, watcher=Witness)
    assert seen[0].probabilities is not None
    assert seen[-1].probabilities is None
    drawn = seen[0].probabilities[np.arange(4), seen[0].actions]
    assert (drawn > 0).all()


def test_mean_intervals_cover_the_mean_as_often_as_they_say(games: dict[str, Games]) -> None:
    """Samples of 40 from a known population: 95 % of 2,000 intervals, within 3.3 standard errors of that rate."""
    population = games["turn_greedy"].totals
    samples = np.random.default_rng(0).choice(population, (2000, 40))
    covered = [low <= population.mean() <= high for low, high in map(_interval, samples)]
    assert abs(np.mean(covered) - 0.95) < 3.3 * (0.95 * 0.05 / 2000) ** 0.5


def _interval(values: np.ndarray) -> tuple[float, float]:
    interval = mean_interval(values)
    assert interval is not None
    return interval


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_rate_intervals_cover_the_rate_as_often_as_they_say(rate: float) -> None:
    """Wilson's interval is right on the average over rates, not at each: between 93 % and 98 % at these."""
    chance = np.random.default_rng(0)
    intervals = [rate_interval(chance.random(300) < rate) for _ in range(500)]
    assert 0.93 <= np.mean([low <= rate <= high for low, high in intervals]) <= 0.98


def test_a_report_has_every_key_and_is_json(games: dict[str, Games]) -> None:
    report = summarise(games, seed=1)
    assert json.loads(json.dumps(report, allow_nan=False)).keys() == {
        *("schema", "rules", "seed", "games", "optimum", "agents", "paired"),
    }
    assert (report["schema"], report["seed"], report["games"]) == (1, 1, 1000)
    assert Rules.of(json.loads(json.dumps(report["rules"]))) == Rules()
    assert report["optimum"].keys() == {"mean", "sd"}
    assert [agent["agent"] for agent in report["agents"]] == ["random", "greedy", "turn_greedy"]
    for agent in report["agents"]:
        assert agent.keys() == {
            *("agent", "mean", "ci95", "sd", "regret_per_game", "regret_ci95", "gap_closed"),
            *("luck_adjusted_mean", "luck_adjusted_ci95", "exact_mean", "percent_of_optimum", "regret_by"),
            *("regret_by_turn", "quantiles", "bonus_rates", "boxes", "illegal_actions", "seconds"),
        }
        assert agent["regret_by"].keys() == {"keep", "box"}
        assert agent["quantiles"].keys() == {"5", "25", "50", "75", "95"}
        assert agent["boxes"].keys() == {box.name for box in Box}
        assert agent["boxes"]["KISMET"].keys() == {"mean", "zero_rate", "regret"}
        assert agent["bonus_rates"].keys() == {"0", "35", "55", "75"}


def test_the_numbers_of_a_report_belong_together(games: dict[str, Games]) -> None:
    report = summarise(games, seed=1)
    for agent, played in zip(report["agents"], games.values(), strict=True):
        assert agent["ci95"][0] < agent["mean"] < agent["ci95"][1]
        assert sum(agent["bonus_rates"].values()) == pytest.approx(1.0)
        bonus = sum(int(points) * rate for points, rate in agent["bonus_rates"].items())
        assert sum(box["mean"] for box in agent["boxes"].values()) + bonus == pytest.approx(agent["mean"])
        assert list(agent["quantiles"].values()) == sorted(agent["quantiles"].values())
        assert agent["boxes"]["FLUSH"]["zero_rate"] == pytest.approx((played.points[:, Box.FLUSH] == 0).mean())
        assert agent["seconds"] > 0


def test_players_are_compared_in_pairs_on_the_same_dice(games: dict[str, Games]) -> None:
    paired = summarise(games, seed=1)["paired"]
    assert [(pair["a"], pair["b"]) for pair in paired] == [
        ("random", "greedy"),
        ("random", "turn_greedy"),
        ("greedy", "turn_greedy"),
    ]
    for pair in paired:
        a, b = games[pair["a"]].totals, games[pair["b"]].totals
        assert pair["difference"] == pytest.approx(a.mean() - b.mean())
        assert pair["ci95"][0] < pair["difference"] < pair["ci95"][1]
        assert pair["sd"] < np.hypot(a.std(), b.std()), "the dice they share should narrow the interval"
        assert pair["a_higher"] == (a > b).mean()


def test_one_game_has_a_mean_and_no_interval() -> None:
    games = play(make("greedy"), 1, seed=0)
    report = json.loads(json.dumps(summarise({"greedy": games}, seed=0), allow_nan=False))
    assert report["agents"][0]["mean"] == games.totals[0]
    assert report["agents"][0]["ci95"] is None
    assert report["agents"][0]["sd"] is None


def test_bonus_rates_are_those_of_the_rules() -> None:
    rules = replace(Rules(), bonus_tiers=((20, 5), (40, 50)))
    games = play(make("greedy", rules), 50, seed=0, rules=rules)
    (agent,) = summarise({"greedy": games}, seed=0, rules=rules)["agents"]
    assert agent["bonus_rates"].keys() == {"0", "5", "50"}
    assert sum(agent["bonus_rates"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"games": 0}, "games=0 is not at least 1"),
        ({"processes": 0}, "processes=0 is not at least 1"),
        ({"chunk": -3}, "chunk=-3 is not at least 1"),
        ({"seed": -1}, "seed -1 is negative"),
        ({"rules": {"jokers": "full"}}, "unknown field 'jokers'"),
    ],
)
def test_what_cannot_be_played_is_refused(options: dict[str, Any], message: str) -> None:
    player: Player = make("greedy")
    with pytest.raises(ValueError, match=message):
        play(player, **{"games": 1, "seed": 0} | options)


def test_players_with_different_numbers_of_games_are_not_compared(games: dict[str, Games]) -> None:
    with pytest.raises(ValueError, match="different numbers of games"):
        summarise({"greedy": games["greedy"], "other": play(make("greedy"), 2, seed=1)}, seed=1)


@pytest.mark.parametrize("count", [1, 1000])
def test_plots_are_pictures_for_any_number_of_games(games: dict[str, Games], count: int) -> None:
    some = {
        name: Games(*(array[:count] for array in played[:5]), measures={}, seconds=1.0)
        for name, played in games.items()
    }
    for figure in (plot_scores(some), plot_boxes(some)):
        assert png(figure).startswith(b"\x89PNG")
        labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        assert [label.partition(":")[0] for label in labels] == list(games)
        assert all("points" in axes.get_xlabel() or "share" in axes.get_xlabel() for axes in figure.axes)
