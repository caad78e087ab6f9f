"""Kismet as a game of OpenSpiel: its own checks, and the same game as everywhere else."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

import kismet_env.open_spiel_game  # noqa: E402 (registers "kismet")
from kismet_env import Rules  # noqa: E402
from kismet_env.batch import Batch  # noqa: E402
from kismet_env.dice import roll_index  # noqa: E402
from kismet_env.observation import layout_of  # noqa: E402
from kismet_env.position import read_position  # noqa: E402
from kismet_env.solver import solve  # noqa: E402

GAMES = ["kismet", "kismet(players=1)", "kismet(players=3,reward=final,rules=strict)", "kismet(players=6)"]


def rules_of(state: Any) -> Rules:
    name = state.get_game().get_parameters().get("rules", "standard")
    return Rules() if name == "standard" else Rules.of(name)


def walk(state: Any, rng: np.random.Generator) -> None:
    """Apply a random action or outcome."""
    if state.is_chance_node():
        outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(int(rng.choice(outcomes, p=np.array(probabilities) / sum(probabilities))))
    else:
        state.apply_action(int(rng.choice(state.legal_actions())))


@pytest.mark.parametrize("name", GAMES)
def test_open_spiel_has_nothing_to_say(name: str) -> None:
    pyspiel.random_sim_test(pyspiel.load_game(name), num_sims=2, serialize=True, verbose=False)


@pytest.mark.parametrize("name", GAMES)
def test_decisions_are_those_of_the_engine(name: str) -> None:
    """At every decision what may be done and what is seen is what a batch shows that is put into the position."""
    game, rng = pyspiel.load_game(name), np.random.default_rng(0)
    state = game.new_initial_state()
    rules = rules_of(state)
    batch = Batch(1, game.num_players(), rules=rules)
    batch.seed([0])
    decisions = 0
    while not state.is_terminal():
        if not state.is_chance_node():
            position = json.loads(str(state))
            read_position(position, rules, game.num_players())
            seen = batch.deal_positions([position])
            assert state.current_player() == position["player"]
            assert state.legal_actions() == np.flatnonzero(seen.masks[0]).tolist()
            np.testing.assert_array_equal(state.observation_tensor(), seen.observations[0])
            decisions += 1
        walk(state, rng)
    totals = [sum(card.values()) for card in state.position()["cards"]]
    assert decisions <= game.max_game_length()
    assert all(len(card) == 15 for card in state.position()["cards"])
    if "final" in name or game.num_players() == 1:
        bonus = np.array(state.returns()) - totals
        assert set(bonus) <= {0, *(points for _, points in rules.bonus_tiers)}
    else:
        assert sum(state.returns()) == pytest.approx(0)


def test_outcomes_are_the_rolls_that_can_come_with_their_probabilities() -> None:
    """Against all ordered throws, by brute force."""
    state, rng, seen = pyspiel.load_game("kismet").new_initial_state(), np.random.default_rng(2), set()
    kept: tuple[int, ...] = ()
    while not state.is_terminal():
        if not state.is_chance_node():
            roll = roll_index(state.position()["dice"])
            action = int(rng.choice(state.legal_actions()))
            kept = state.get_game().table.actions.kept(action, roll) or ()
            state.apply_action(action)
            continue
        expected: dict[int, float] = {}
        for thrown in product(range(1, 7), repeat=5 - len(kept)):
            roll = roll_index(sorted(kept + thrown))
            expected[roll] = expected.get(roll, 0) + 6.0 ** -(5 - len(kept))
        assert dict(state.chance_outcomes()) == pytest.approx(expected)
        seen.add(len(kept))
        walk(state, rng)
    assert seen == {0, 1, 2, 3, 4}


def best(state: Any) -> float:
    """Return the best expected return, by full search."""
    if state.is_terminal():
        return float(state.returns()[0])
    if state.is_chance_node():
        return sum(probability * best(state.child(outcome)) for outcome, probability in state.chance_outcomes())
    return max(best(state.child(action)) for action in state.legal_actions())


@pytest.mark.parametrize("seed", range(2))
def test_full_search_of_the_last_roll_finds_the_value_of_the_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = pyspiel.load_game("kismet(players=1)").new_initial_state()
    while True:
        walk(state, rng)
        if state.is_chance_node():
            continue
        position = state.position()
        if len(position["cards"][0]) == 14 and position["rolls_left"] <= 1:
            break
    table = state.take_table()
    value = table.state.cards["total"][0, 0] + solve().action_values(*table.decisions()).max()
    assert best(state) == pytest.approx(value, abs=1e-9)


def test_nothing_of_the_dice_to_come_is_seen_while_they_are_rolled() -> None:
    state = pyspiel.load_game("kismet").new_initial_state()
    assert state.is_chance_node()
    assert not np.any(state.observation_tensor(0))
    assert "dice" not in json.loads(str(state))


def test_copies_go_their_own_ways() -> None:
    rng = np.random.default_rng(3)
    state = pyspiel.load_game("kismet").new_initial_state()
    for _ in range(20):
        walk(state, rng)
    before, copy = str(state), state.clone()
    while not copy.is_terminal():
        walk(copy, rng)
    assert str(state) == before
    assert state.returns() == [0, 0]


def test_the_loop_for_learners_and_the_tree_search_play_whole_games() -> None:
    from open_spiel.python.algorithms import evaluate_bots, mcts
    from open_spiel.python.rl_environment import ChanceEventSampler, Environment

    rng = np.random.RandomState(0)
    environment = Environment("kismet(players=2)", chance_event_sampler=ChanceEventSampler(seed=1))
    assert environment.action_spec()["num_actions"] == 225
    step = environment.reset()
    while not step.last():
        player = step.observations["current_player"]
        assert len(step.observations["info_state"][player]) == layout_of(Rules(), 2).size
        step = environment.step([rng.choice(step.observations["legal_actions"][player])])
    assert sum(step.rewards) == 0

    game = pyspiel.load_game("kismet(players=2)")
    bots = [mcts.MCTSBot(game, 1.0, 2, mcts.RandomRolloutEvaluator(1, rng), random_state=rng) for _ in range(2)]
    assert sum(evaluate_bots.evaluate_bots(game.new_initial_state(), bots, rng)) == 0  # it refuses illegal actions


def test_what_cannot_happen_is_refused_and_changes_nothing() -> None:
    state = pyspiel.load_game("kismet(players=1)").new_initial_state()
    state.apply_action(roll_index([1, 1, 1, 1, 1]))
    with pytest.raises(ValueError, match="is illegal with dice 1-1-1-1-1"):
        state.clone().apply_action(209)  # keep 6-6-6-6
    state.apply_action(1)  # keep an ace, so five sixes cannot come
    for outcome in (roll_index([6, 6, 6, 6, 6]), 252):
        copy = state.clone()
        with pytest.raises(ValueError, match=f"outcome {outcome} cannot come here"):
            copy.apply_action(outcome)
        assert str(copy) == str(state)
    rng = np.random.default_rng(0)
    while not state.is_terminal():
        walk(state, rng)
    with pytest.raises(ValueError, match="the game is over; action 0 comes too late"):
        state.apply_action(0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"players": 7}, "num_players=7 is not a whole number from 1 to 6"),
        ({"reward": "points"}, "reward='points' is not one of win, final"),
        ({"rules": "odd"}, "rules 'odd' are not one of the suite"),
        ({"players": 1, "reward": "win"}, "reward='win' needs opponents"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kismet_env.open_spiel_game.KismetGame(parameters)
