"""The PettingZoo environment: PettingZoo's own tests, the reference at every step, turns, rewards, dead steps."""

import copy
import json
import pickle
import random
import re
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from pettingzoo import AECEnv
from pettingzoo.test import api_test, seed_test
from reference import BOXES, STANDARD
from reference_game import Game, choose, key_of, play
from test_engine import expected_masks
from test_parity import check_same

import kismet_env
from kismet_env import Box, kismet_v0
from kismet_env.dice import roll_index
from kismet_env.observation import decode

OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_players": 1, "reward": "points", "observation": "raw"},
    {"num_players": 3, "reward": "points", "first_player": "random", "actions": "holds"},
    {"num_players": 6, "observation": "dict", "rules": {"second_kismet": "rolled"}, "start": "open:3"},
    {"num_players": 2, "reward": "final", "illegal_action": "penalty", "start": "uniform"},
]
ITS_OWN = (  # a list of names exempts PettingZoo's own games with masks from these two
    "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
    "Observation is not a NumPy array",
)


def begun(seed: int = 0, **options: Any) -> AECEnv:
    env = kismet_v0.env(**options)
    env.reset(seed=seed)
    return env


def a_legal_action(env: AECEnv, rng: np.random.Generator) -> int | None:
    """Return a legal action of the agent whose turn it is; None for its dead step."""
    observation, _, terminated, truncated, _ = env.last()
    if terminated or truncated:
        return None
    return int(rng.choice(np.flatnonzero(observation["action_mask"])))


def set_dice(env: AECEnv, dice: Any) -> None:
    """Lay these dice before the agent whose turn it is, with no roll left."""
    state = env.unwrapped.batch.state
    state.games["roll"], state.games["rolls_left"] = roll_index(dice), 0


# PettingZoo's own tests


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", [kismet_v0.env, kismet_v0.raw_env])
def test_pettingzoo_has_nothing_to_say(make: Any, options: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(make(**options), num_cycles=150)
        seed_test(lambda: make(**options), num_cycles=100)
    assert {str(warning.message) for warning in caught if not str(warning.message).startswith(ITS_OWN)} == set()


def test_spaces_and_names() -> None:
    env = kismet_v0.env(num_players=3)
    assert env.possible_agents == ["player_0", "player_1", "player_2"]
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert env.action_space(agent) == gym.spaces.Discrete(225)
        assert env.observation_space(agent)["action_mask"] == gym.spaces.Box(0, 1, (225,), np.int8)
    assert env.metadata["name"] == "kismet_v0"
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"}


# Whole games


@pytest.mark.parametrize(
    ("num_players", "reward"), [(1, "points"), (1, "final"), *product(range(2, 7), ("points", "final", "win"))]
)
def test_games_are_those_of_the_reference(num_players: int, reward: str) -> None:
    """Turns, masks, rewards, cards and dice of every step; what `last` pays is what was earned since."""
    changed = {"second_kismet": "rolled"} if num_players % 2 else {}
    env = kismet_v0.env(num_players=num_players, reward=reward, rules=changed)
    for seed in range(3):
        rng = random.Random(seed)
        env.reset(seed=seed)
        game = Game(num_players, {**STANDARD, **changed}, key_of(seed))
        unpaid, returns = np.zeros(num_players), np.zeros(num_players)
        while not game.over:
            agent = f"player_{game.seat}"
            assert env.agent_selection == agent
            observation, paid, terminated, truncated, info = env.last()
            assert (terminated, truncated) == (False, False)
            assert paid == pytest.approx(unpaid[game.seat])
            returns[game.seat] += paid
            unpaid[game.seat] = 0
            np.testing.assert_array_equal(observation["action_mask"], expected_masks([game], "keeps")[0])
            assert tuple(decode(observation["observation"]).dice) == game.dice
            assert info["total"] == game.totals[game.seat]
            assert [env.infos[f"player_{seat}"]["scorecard"].tolist() for seat in range(num_players)] == [
                [card.get(box, -1) for box in BOXES] for card in game.cards
            ]
            for other in set(env.agents) - {agent}:
                assert not env.observe(other)["action_mask"].any()
            env.step(play(game, choose(game, rng), "keeps"))
            if reward == "points":
                unpaid += game.paid
            elif game.over:
                unpaid += game.totals if reward == "final" else game.win_shares()
            assert list(env.rewards.values()) == pytest.approx(
                game.paid if reward == "points" else unpaid if game.over else [0] * num_players
            )
        for seat in range(num_players):
            assert env.agent_selection == f"player_{seat}"
            observation, paid, terminated, truncated, info = env.last()
            assert (terminated, truncated) == (True, False)
            assert info["total"] == game.totals[seat]
            assert not observation["action_mask"].any()
            returns[seat] += paid
            env.step(None)
        assert env.agents == []
        expected = game.win_shares() if reward == "win" else game.totals
        assert returns == pytest.approx(np.array(expected, float))


@pytest.mark.parametrize("options", [{}, {"actions": "holds", "reward": "final"}, {"start": "open:4"}], ids=str)
@pytest.mark.parametrize("observation", ["features", "raw", "dict"])
def test_one_player_has_the_game_of_the_solitaire_environment(observation: str, options: dict[str, Any]) -> None:
    options = {"reward": "points", "illegal_action": "penalty", "observation": observation, **options}
    aec, solitaire = kismet_v0.env(num_players=1, **options), gym.make("kismet_env/Kismet-v0", **options)
    rng = np.random.default_rng(0)
    for seed in (5, None, 2**70, None):
        aec.reset(seed=seed)
        expected, info = solitaire.reset(seed=seed)
        paid, terminated, truncated, done = 0.0, False, False, False
        while True:
            seen, reward, *ended, our_info = aec.last()
            check_same(seen["observation"], expected, "observation")
            check_same(our_info, {name: info[name] for name in our_info}, "info")
            assert (reward, *ended) == (paid, terminated, truncated)
            if done:
                break
            check_same(seen["action_mask"], info["action_mask"], "mask")
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
            if rng.random() < 0.05:
                action = int(rng.integers(len(info["action_mask"])))
            aec.step(action)
            expected, paid, terminated, truncated, info = solitaire.step(action)
            done = terminated or truncated
        aec.step(None)
        assert aec.agents == []


def test_nothing_told_is_ever_used_again() -> None:
    env, rng = begun(2, num_players=2), np.random.default_rng(0)
    kept, copies = [], []
    for _ in range(30):
        kept.append((env.last(), dict(env.infos), dict(env.rewards)))
        copies.append(copy.deepcopy(kept[-1]))
        env.step(a_legal_action(env, rng))
    for (last, infos, rewards), (last_then, infos_then, rewards_then) in zip(kept, copies, strict=True):
        check_same(dict(enumerate(last)), dict(enumerate(last_then)), "last")
        check_same(infos, infos_then, "infos")
        assert rewards == rewards_then


def test_everybody_sees_the_table_from_his_own_seat() -> None:
    """Own card first, then the opponents in playing order, whether or not it is the agent's turn."""
    env, rng = begun(num_players=4, observation="dict"), np.random.default_rng(3)
    for _ in range(60):
        cards = np.array([env.infos[agent]["scorecard"] for agent in env.agents])
        totals = np.array([env.infos[agent]["total"] for agent in env.agents])
        for seat, agent in enumerate(env.agents):
            seen = env.observe(agent)["observation"]
            np.testing.assert_array_equal(seen["scorecard"], cards[seat])
            others = seen["opponents"].reshape(3, 17)
            np.testing.assert_array_equal(others[:, :15], np.roll(cards, -seat, axis=0)[1:])
            np.testing.assert_array_equal(others[:, 16], np.roll(totals, -seat)[1:])
            assert env.observe(agent) is not env.observe(agent)
        env.step(a_legal_action(env, rng))


@pytest.mark.parametrize("first_player", ["seat0", "random"])
def test_who_begins(first_player: str) -> None:
    env = kismet_v0.env(num_players=3, first_player=first_player)
    firsts = []
    for seed in range(60):
        env.reset(seed=seed)
        firsts.append(env.agent_selection)
        env.reset(seed=seed)
        assert env.agent_selection == firsts[-1]
    assert set(firsts) == (set(env.possible_agents) if first_player == "random" else {"player_0"})


def test_turns_go_round_from_whoever_begins() -> None:
    rules = {"second_kismet_penalty": False}
    env, rng = kismet_v0.env(num_players=3, first_player="random", rules=rules), np.random.default_rng(0)
    for seed in range(6):
        env.reset(seed=seed)
        seats = []
        while not any(env.terminations.values()):
            action = a_legal_action(env, rng)
            if action >= 210:
                seats.append(int(env.agent_selection[-1]))
            env.step(action)
        assert seats == [(seats[0] + turn) % 3 for turn in range(45)]


# Second Kismets


def two_kismets(num_players: int, **cards: dict[str, int]) -> dict[str, Any]:
    """Return a position in which player_0 has dice for a second Kismet and no roll left."""
    cards = {"player_0": {"KISMET": 65}, **cards}
    return {
        "cards": [cards.get(f"player_{seat}", {"STRAIGHT": 30}) for seat in range(num_players)],
        "player": 0,
        "dice": [4] * 5,
        "rolls_left": 0,
    }


def test_a_lost_turn_is_passed_over_and_asks_for_no_action() -> None:
    env = kismet_v0.env(num_players=3, reward="points")
    env.reset(seed=0, options={"position": two_kismets(3)})
    env.step(210 + Box.FOUR_OF_A_KIND)
    assert env.agent_selection == "player_0"
    assert env.rewards == {"player_0": 45.0, "player_1": 0.0, "player_2": 0.0}
    assert env.last()[1] == 45
    for agent in ("player_1", "player_2"):
        assert env.infos[agent]["scorecard"][Box.ACES] == 0
        assert env.terminations[agent] is False
    set_dice(env, [4] * 5)
    env.step(210 + Box.FOURS)
    assert env.agent_selection == "player_0"
    assert [env.infos[agent]["scorecard"][Box.DEUCES] for agent in env.agents] == [-1, 0, 0]


def test_a_bonus_completed_by_a_forced_zero_waits_for_its_owner() -> None:
    basic = {"DEUCES": 8, "TREYS": 9, "FOURS": 16, "FIVES": 20, "SIXES": 24}
    roller = {"KISMET": 65, "ACES": 3, "DEUCES": 6, "TREYS": 9, "FLUSH": 35}
    env = kismet_v0.env(num_players=2, reward="points")
    env.reset(seed=0, options={"position": two_kismets(2, player_0=roller, player_1=basic)})
    env.step(210 + Box.FOURS)
    assert env.rewards == {"player_0": 20.0, "player_1": 55.0}  # 77 points in the Basic Section, Aces with nought
    assert env.agent_selection == "player_0"
    assert env.last()[1] == 20
    set_dice(env, [1, 2, 3, 4, 6])
    env.step(210 + Box.YARBOROUGH)
    assert env.rewards == {"player_0": 16.0, "player_1": 0.0}
    assert env.agent_selection == "player_1"
    assert env.last()[1] == 55
    assert env.infos["player_1"]["total"] == 77 + 55


SCENARIOS = json.loads((Path(__file__).parent / "scenarios.json").read_text())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_scenario(scenario: dict[str, Any]) -> None:
    """Every step of the scenarios: who is selected, what all the cards hold, what everybody is paid in the end."""
    start = scenario["start"]
    num_players = len(start["cards"])
    env = kismet_v0.env(num_players, reward="points", rules=scenario["rules"])
    env.reset(seed=0, options={"position": {**start, "dice": scenario["steps"][0]["dice"], "rolls_left": 0}})
    received = [float(env.infos[agent]["total"]) for agent in env.agents]
    for step in scenario["steps"]:
        agent = f"player_{step['player']}"
        assert env.agent_selection == agent
        received[step["player"]] += env.last()[1]
        set_dice(env, step["dice"])
        env.step(210 + Box[step["box"]])
        cards = [env.infos[agent]["scorecard"] for agent in env.possible_agents]
        assert cards[step["player"]][Box[step["box"]]] == step["points"]
        for zero in step["forced_zeros"]:
            assert cards[zero["player"]][Box[zero["box"]]] == 0
        assert [int((card >= 0).sum()) for card in cards] == step["filled_after"]
        if step["next_player"] is not None:
            assert env.agent_selection == f"player_{step['next_player']}"
    totals = [env.infos[agent]["total"] for agent in env.possible_agents]
    assert all(env.terminations.values()) == (scenario["steps"][-1]["next_player"] is None)
    if all(env.terminations.values()):
        for agent in env.agent_iter():
            received[int(agent[-1])] += env.last()[1]
            env.step(None)
        assert received == totals
    assert [{box.name: int(card[box]) for box in Box if card[box] >= 0} for card in cards] == [
        {box: card[box] for box in BOXES if box in card} for card in scenario["end_cards"]
    ]
    if final := scenario["final"]:
        assert totals == final["total"]


# Illegal actions


def test_an_illegal_action_ends_the_game_and_costs_nobody_else_anything() -> None:
    env = begun(num_players=3)
    env.step(210 + Box.KISMET)
    assert env.rewards == {"player_0": -1.0, "player_1": 0.0, "player_2": 0.0}
    assert all(value is True for value in env.terminations.values())
    assert all(value is False for value in env.truncations.values())
    assert [info["illegal_action"] for info in env.infos.values()] == [True, False, False]
    paid = {}
    for agent in env.agent_iter():
        paid[agent] = env.last()[1]
        env.step(None)
    assert paid == {"player_0": -1.0, "player_1": 0.0, "player_2": 0.0}


def test_an_illegal_action_may_cost_a_point_and_change_nothing() -> None:
    env = begun(num_players=2, illegal_action="penalty")
    before = env.last()[0]
    for number in range(1, 101):
        env.step(210 + Box.KISMET)
        assert env.rewards == {"player_0": -1.0, "player_1": 0.0}
        assert all(env.truncations.values()) == (number == 100)
        if number < 100:
            assert env.agent_selection == "player_0"
            check_same(env.last()[0], before, "observation")
    assert not any(env.terminations.values())


def test_raise_names_the_legal_actions_and_changes_nothing() -> None:
    env = begun(num_players=2, illegal_action="raise")
    before = env.unwrapped.position()
    with pytest.raises(ValueError, match=r"is illegal with dice .*; legal: .*fill Yarborough"):
        env.step(210 + Box.KISMET)
    assert env.unwrapped.position() == before


@pytest.mark.parametrize("action", [-1, 225, 10**6, 2**70, None, 1.0, 1.5, "keep"])
def test_what_is_no_action_always_raises_and_changes_nothing(action: Any) -> None:
    env = begun(num_players=2, illegal_action="penalty")
    before = env.last()
    with pytest.raises(ValueError, match=r"^action .* is not (one of 0\.\.224|a whole number from 0 to 224)$"):
        env.step(action)
    check_same(env.last()[0], before[0], "observation")
    assert env.last()[1:4] == before[1:4]


# Resets, copies, rendering


def test_before_the_first_reset_there_is_no_game() -> None:
    env = kismet_v0.raw_env(render_mode="ansi")
    for ask in (env.save, env.position, env.render, lambda: env.step(0), lambda: env.observe("player_0")):
        with pytest.raises(gym.error.ResetNeeded, match="no game has begun"):
            ask()
    other = kismet_v0.raw_env()
    other.reset(seed=1)
    env.restore(other.save())
    assert env.position() == other.position()


def test_a_reset_to_a_position() -> None:
    position = two_kismets(3, player_1={"ACES": 2})
    env = kismet_v0.env(num_players=3)
    env.reset(seed=1, options={"position": position})
    seen = env.unwrapped.position()
    assert {name: seen[name] for name in position} == position
    with pytest.raises(ValueError, match="ACES cannot hold 7"):
        env.reset(seed=2, options={"position": {**position, "cards": [{"ACES": 7}, {}, {}]}})
    assert env.unwrapped.position() == seen


def test_without_a_seed_games_differ_and_a_seed_decides_all_that_follow() -> None:
    def dice(env: AECEnv) -> Any:
        return [env.unwrapped.position()["dice"] for _ in range(6) if env.reset() is None]

    assert dice(kismet_v0.env()) != dice(kismet_v0.env())
    one, other = begun(7), begun(7)
    assert dice(one) == dice(other) != dice(one)


def test_restore_goes_back_exactly_and_a_key_changes_the_dice_to_come() -> None:
    env, rng = begun(5, num_players=3, reward="points"), np.random.default_rng(1)
    for _ in range(20):
        env.step(a_legal_action(env, rng))
    saved, seen = env.unwrapped.save(), env.last()

    def line() -> list[Any]:
        rng, steps = np.random.default_rng(2), []
        while env.agents:
            steps.append((env.agent_selection, env.last()[1], env.unwrapped.position()["dice"]))
            env.step(a_legal_action(env, rng))
        return steps

    first = line()
    for key, same in ((None, True), (7, False), (None, True)):
        env.unwrapped.restore(saved, key)
        check_same(dict(enumerate(env.last())), dict(enumerate(seen)), "restored")
        assert (line() == first) == same


@pytest.mark.parametrize("how", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_copy_in_mid_game_goes_on_in_the_same_way(options: dict[str, Any], how: Any) -> None:
    env, rng = begun(3, **options), np.random.default_rng(1)
    for _ in range(4):
        env.step(a_legal_action(env, rng))
    other = how(env)
    while env.agents:
        check_same(dict(enumerate(other.last())), dict(enumerate(env.last())), "last")
        action = a_legal_action(env, rng)
        env.step(action)
        other.step(action)
    assert other.agents == []


def test_the_sheet_is_returned() -> None:
    env = begun(num_players=2, render_mode="ansi")
    assert re.search(r"Player 1\*.*Player 2", env.render())
    with pytest.warns(UserWarning, match="render_mode"):
        begun().render()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"num_players": n}, f"num_players={n!r} is not a whole number from 1 to 6") for n in (0, 7, 2.0, 2.5, "2")),
        ({"num_players": 1}, "reward='win' needs opponents; solitaire rewards are points, final"),
        ({"first_player": "seat1"}, "first_player='seat1' is not one of seat0, random"),
        ({"render_mode": "svg"}, "render_mode='svg' is not one of human, rgb_array, ansi or None"),
        ({"reward": "score"}, "reward='score' is not one of points, final, win"),
        ({"illegal_action": "ignore"}, "illegal_action='ignore' is not one of penalty, terminate, raise"),
    ],
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        kismet_v0.env(**wrong)


def test_without_pettingzoo_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['pettingzoo'] = None; import kismet_env; from kismet_env import kismet_v0"
    project = Path(kismet_env.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: kismet_env.kismet_v0 needs PettingZoo: pip install 'kismet-env[multiplayer]'"
    )
    assert "During handling" not in done.stderr
