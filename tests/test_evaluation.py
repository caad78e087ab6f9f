"""Evaluation: the same games for everybody, however they are played, and statistics that say what they claim."""

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kismet_env import evaluation
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import Player, StochasticPlayer, make
from kismet_env.dice import hash_words, roll_index
from kismet_env.evaluation import (
    EVALUATION_DICE,
    SELECTION_DICE,
    TRAINING_DICE,
    Games,
    Moves,
    Regrets,
    bootstrap_interval,
    game_keys,
    mean_interval,
    play,
    rate_interval,
    summarise,
    yardstick,
)
from kismet_env.observation import Decision
from kismet_env.plots import pdf, plot_boxes, plot_curve, plot_distributions, plot_regret, plot_scores, png
from kismet_env.rules import NUM_BOXES, SUITE, Box, Rules
from kismet_env.solver import Optimum, Sds, solve
from kismet_env.tables import box_points

COUNT = 60


class Stubborn:
    """Keeps nothing and rolls on, legal or not."""

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return np.zeros(len(masks), np.int64)


@pytest.fixture(autouse=True)
def _spread_is_known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard deviations of the optimum take half a minute to work out; test_optimum.py does it."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(Optimum, "prepare_sds", lambda self: Sds(56.142, 1.0, np.zeros(0, np.uint16)))


@pytest.fixture(scope="module")
def watched() -> dict[str, Games]:
    """Games of players of both kinds that were held against the optimum."""
    watcher = partial(Regrets, solve())
    return {name: play(make(name), 300, seed=6, watcher=watcher) for name in ("greedy", "epsilon:0.2", "optimal")}


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


# --- against the optimum ---


class Auditor:
    """Adds up what every move costs in its own way: one decision after the other."""

    def __init__(self, start: Decision) -> None:
        self.regret = np.zeros((len(start.filled), 2, NUM_BOXES))  # of keeps and boxes by turn, and
        self.by_box = np.zeros((len(start.filled), NUM_BOXES))

    def watch(self, moves: Moves) -> None:
        for row, game in enumerate(moves.games):
            values = solve().action_values(*(column[row] for column in moves.before))
            shares = np.eye(225)[moves.actions[row]] if moves.probabilities is None else moves.probabilities[row]
            turn = int(moves.before.filled[row]).bit_count()
            for action in np.flatnonzero(shares):
                cost = shares[action] * (values.max() - values[action])
                self.regret[game, int(action >= 210), turn] += cost
                if action >= 210:
                    self.by_box[game, action - 210] += cost

    def measures(self) -> dict[str, np.ndarray]:
        return {"regret": self.regret, "regret_by_box": self.by_box}


@pytest.mark.parametrize("name", ["greedy", "epsilon:0.2"])
def test_regret_is_the_exact_value_that_decisions_gave_away(name: str, watched: dict[str, Games]) -> None:
    audit, actual = play(make(name), 5, seed=6, watcher=Auditor).measures, watched[name].measures
    np.testing.assert_allclose(actual["regret_by_turn"][:5], audit["regret"].sum(1), rtol=0, atol=1e-9)
    np.testing.assert_allclose(actual["regret_by_box"][:5], audit["regret_by_box"], rtol=0, atol=1e-9)


def test_score_is_the_value_of_the_start_plus_luck_minus_regret(watched: dict[str, Games]) -> None:
    for name, played in watched.items():
        regret = played.measures["regret_by_turn"].sum(1)
        expected = solve().expected_score + played.measures["luck"] - regret
        np.testing.assert_allclose(played.totals, expected, rtol=0, atol=1e-6, err_msg=name)
        assert (played.measures["regret_by_turn"] >= 0).all()
        assert (played.measures["regret_by_box"].sum(1) <= regret + 1e-9).all()
        assert (regret.max() < 1e-6) == (name == "optimal")


def test_luck_has_the_mean_nought(watched: dict[str, Games]) -> None:
    for played in watched.values():
        luck = played.measures["luck"]
        assert abs(luck.mean()) < 3.3 * luck.std() / len(luck) ** 0.5


def test_who_names_the_probabilities_of_what_he_does_has_the_same_regret(watched: dict[str, Games]) -> None:
    class Certain(StochasticPlayer):
        def probabilities(self, observations: Any, masks: Any) -> Any:
            return np.eye(225)[make("greedy").act(observations, masks)]

    certain = play(Certain(), 20, seed=6, watcher=partial(Regrets, solve()))
    for name, values in certain.measures.items():
        np.testing.assert_allclose(values, watched["greedy"].measures[name][:20], rtol=0, atol=1e-9, err_msg=name)


class Drifter(StochasticPlayer):
    """Tries everything, legal or not."""

    def probabilities(self, observations: Any, masks: Any) -> Any:
        return np.full((len(masks), 225), 1 / 225)


@pytest.mark.parametrize("player", [Stubborn(), Drifter()])
def test_a_game_that_is_cut_off_costs_what_was_still_to_come(player: Player) -> None:
    played = play(player, 20, seed=0, watcher=partial(Regrets, solve()))
    assert (played.illegal == 100).any()
    assert (played.points == -1).any()
    expected = solve().expected_score + played.measures["luck"] - played.measures["regret_by_turn"].sum(1)
    np.testing.assert_allclose(played.totals, expected, rtol=0, atol=1e-6)


def test_regret_does_not_depend_on_processes_or_how_many_are_played_side_by_side(watched: dict[str, Games]) -> None:
    for chunk, processes in ((7, 1), (150, 2)):
        again = play(
            make("epsilon:0.2"), 300, seed=6, watcher=partial(Regrets, solve()), chunk=chunk, processes=processes
        )
        for name, values in again.measures.items():
            assert (values == watched["epsilon:0.2"].measures[name]).all(), name


def test_the_report_holds_players_against_the_optimum(watched: dict[str, Games]) -> None:
    report = json.loads(json.dumps(summarise(watched, seed=6), allow_nan=False))
    best = solve().expected_score
    assert report["optimum"] == {"mean": best, "sd": 56.142}
    for agent, played in zip(report["agents"], watched.values(), strict=True):
        regret = agent["regret_per_game"]
        assert regret == pytest.approx(played.measures["regret_by_turn"].sum() / 300)
        assert agent["regret_ci95"][0] <= regret <= agent["regret_ci95"][1]
        assert agent["regret_by"]["keep"] + agent["regret_by"]["box"] == pytest.approx(regret)
        assert sum(agent["regret_by_turn"]) == pytest.approx(regret)
        assert len(agent["regret_by_turn"]) == NUM_BOXES
        assert sum(box["regret"] for box in agent["boxes"].values()) == pytest.approx(agent["regret_by"]["box"])
        assert agent["luck_adjusted_mean"] == pytest.approx(best - regret)
        assert agent["luck_adjusted_ci95"] == pytest.approx([best - end for end in reversed(agent["regret_ci95"])])
        assert agent["exact_mean"] is None
        assert agent["percent_of_optimum"] == pytest.approx(100 * (best - regret) / best)
        assert agent["gap_closed"] == pytest.approx(1 - regret / (best - yardstick()))
    assert report["agents"][2]["gap_closed"] == pytest.approx(1.0)
    assert report["agents"][0]["gap_closed"] < 0, "greedy plays worse than turn_greedy"


def test_the_exact_mean_takes_the_place_of_the_measured_one(watched: dict[str, Games]) -> None:
    class Known:
        expected_score, score_sd = 245.25, 55.5

    agents = summarise(watched, seed=6, exact_values={"greedy": Known()})["agents"]  # type: ignore[dict-item]
    best = solve().expected_score
    assert [agent["exact_mean"] for agent in agents] == [245.25, None, None]
    assert [agent["exact_sd"] for agent in agents] == [55.5, None, None]
    assert agents[0]["percent_of_optimum"] == pytest.approx(100 * 245.25 / best)
    assert agents[0]["gap_closed"] == pytest.approx(1 - (best - 245.25) / (best - yardstick()))
    assert agents[0]["regret_per_game"] != pytest.approx(best - 245.25, abs=0.01), "which is still measured"


def test_without_a_watcher_nothing_is_said_of_the_optimum(games: dict[str, Games]) -> None:
    report = summarise(games, seed=1)
    assert report["optimum"] == {"mean": None, "sd": None}
    for agent in report["agents"]:
        assert agent["regret_per_game"] is agent["gap_closed"] is agent["percent_of_optimum"] is None
    assert report["paired"][0]["luck_adjusted_difference"] is None


def test_pairs_are_compared_without_luck_too(watched: dict[str, Games]) -> None:
    pair = summarise(watched, seed=6)["paired"][1]
    assert (pair["a"], pair["b"]) == ("greedy", "optimal")
    regret = watched["greedy"].measures["regret_by_turn"].sum() / 300
    assert pair["luck_adjusted_difference"] == pytest.approx(-regret)
    low, high = pair["luck_adjusted_ci95"]
    assert low < -regret < high
    assert high - low < pair["ci95"][1] - pair["ci95"][0]


def test_one_watched_game_has_a_regret_and_no_interval() -> None:
    games = play(make("greedy"), 1, seed=0, watcher=partial(Regrets, solve()))
    (agent,) = json.loads(json.dumps(summarise({"greedy": games}, seed=0), allow_nan=False))["agents"]
    assert agent["regret_per_game"] > 0
    assert agent["regret_ci95"] is agent["luck_adjusted_ci95"] is None


def test_the_yardstick_is_worked_out_once_for_each_set_of_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Rules] = []

    class Known:
        expected_score = 200.5

    def stand_in(player: Player, rules: Rules, report: Any) -> Known:
        calls.append(rules)
        return Known()

    monkeypatch.setenv("KISMET_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(evaluation, "exact", stand_in)
    for rules in (SUITE["no_bonus"], SUITE["no_bonus"], replace(SUITE["no_bonus"], second_kismet_penalty=False)):
        assert yardstick(rules) == 200.5
    assert calls == [SUITE["no_bonus"]]
    assert yardstick() == yardstick(Rules(second_kismet_penalty=False)) == pytest.approx(288.577689, abs=1e-6)
    assert len(calls) == 1


@pytest.mark.slow
def test_intervals_without_luck_are_narrower_and_cover_the_exact_mean_of_turn_greedy() -> None:
    """300 samples of 100 games: 95 % of the intervals, within 3.3 standard errors of that rate."""
    played = play(make("turn_greedy"), 30_000, seed=8, watcher=partial(Regrets, solve()))
    adjusted = solve().expected_score - played.measures["regret_by_turn"].sum(1)
    assert adjusted.std() == pytest.approx(12.2, abs=0.2)
    assert played.totals.std() / adjusted.std() == pytest.approx(4.3, abs=0.1)
    interval = bootstrap_interval(adjusted.reshape(300, 100).T)
    assert interval is not None
    covered = (interval[0] <= yardstick()) & (yardstick() <= interval[1])
    assert abs(covered.mean() - 0.95) < 3.3 * (0.95 * 0.05 / 300) ** 0.5


# --- intervals ---


def test_bootstrap_intervals_cover_the_mean_of_skewed_values_as_often_as_they_say() -> None:
    """Samples of 60 from a population of which four in five are 0: at least as often as Student's, and nearly 95 %."""
    chance = np.random.default_rng(0)
    samples = chance.exponential(1.0, (60, 600)) * (chance.random((60, 600)) < 0.2)
    interval = bootstrap_interval(samples)
    assert interval is not None
    covered = ((interval[0] <= 0.2) & (interval[1] >= 0.2)).mean()
    low, high = np.array([_interval(sample) for sample in samples.T]).T
    assert covered >= ((low <= 0.2) & (high >= 0.2)).mean()
    assert covered > 0.9
    assert (interval[1] - samples.mean(0) > samples.mean(0) - interval[0]).mean() > 0.95, "the tail is above"


@pytest.mark.parametrize("count", [10, 999, 9_000, 100_000])
def test_any_number_of_values_has_a_bootstrap_interval_around_its_mean(count: int) -> None:
    values = np.random.default_rng(1).exponential(26.0, count)
    interval = bootstrap_interval(values)
    assert interval is not None
    low, high = map(float, interval)
    assert low < values.mean() < high
    student = _interval(values)
    assert high - low == pytest.approx(student[1] - student[0], rel=0.2 if count < 100 else 0.08)
    assert bootstrap_interval(values) == interval, "the same values, the same interval"


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], [0.0, 0.0, 5.0], [0.0] * 999 + [300.0], [0.0, 1e-300], [3.0, 3.0, 3.0 + 1e-15]], ids=str
)
def test_few_and_nearly_equal_values_have_an_interval_without_a_warning(values: list[float]) -> None:
    interval = bootstrap_interval(np.array(values))
    assert interval is not None
    assert interval[0] <= np.mean(values) <= interval[1]


def test_columns_have_the_bootstrap_intervals_that_each_would_have_alone() -> None:
    values = np.random.default_rng(2).exponential(1.0, (50, 2, 3))
    values[:, 1, 1] = 7.0
    interval = bootstrap_interval(values)
    assert interval is not None
    low, high = interval
    assert low.shape == high.shape == (2, 3)
    assert low[1, 1] == high[1, 1] == 7.0, "what never changes has no width"
    alone = _interval(values[:, 0, 0])
    assert (low[0, 0], high[0, 0]) == pytest.approx(alone, rel=0.15)
    assert bootstrap_interval(values[:1]) is None


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
            *("luck_adjusted_mean", "luck_adjusted_ci95", "exact_mean", "exact_sd", "exact_quantiles"),
            *("exact_distribution", "percent_of_optimum", "regret_by"),
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


@pytest.mark.parametrize("count", [1, 300])
def test_the_plot_of_lost_points_is_a_picture_of_all_players(watched: dict[str, Games], count: int) -> None:
    some = {
        name: played._replace(
            totals=played.totals[:count],
            measures={measure: values[:count] for measure, values in played.measures.items()},
        )
        for name, played in watched.items()
    }
    figure = plot_regret(some)
    assert png(figure).startswith(b"\x89PNG")
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert [label.rpartition(": ")[0] for label in labels] == list(watched)
    assert labels[-1] == "optimal: nothing"
    by_turn, by_box = figure.axes
    assert by_turn.get_yscale() == by_box.get_xscale() == "log"
    assert "points" in by_turn.get_ylabel()
    assert "points" in by_box.get_xlabel()


def test_a_learning_curve_shows_the_best_selection_score_and_what_others_score() -> None:
    rows = [
        {"steps": "1000000", "minutes": "1.5", "mean_return": "100", "selection_score": ""},
        {"steps": "2000000", "minutes": "3", "mean_return": "250.5", "selection_score": "280.25"},
        {"steps": "3000000", "minutes": "5", "mean_return": "260", "selection_score": "279"},
    ]
    figure = plot_curve(rows, "a learner", {"optimal": 315.1})
    assert pdf(figure).startswith(b"%PDF")
    assert pdf(figure) == pdf(figure)
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels[0] == "optimal: 315.1"
    (axes,) = figure.axes
    assert labels[2].endswith(": at best 280.2")
    assert axes.get_xlim() == (0, 3)


def test_the_plot_of_exact_distributions_names_players_and_their_means() -> None:
    chances = np.zeros(400)
    chances[[100, 300]] = 0.5
    figure = plot_distributions({"one": chances, "other": chances[::-1]})
    assert png(figure).startswith(b"\x89PNG")
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels == ["one: mean 200.00, SD 100.00", "other: mean 199.00, SD 100.00"]
