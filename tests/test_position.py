"""Positions: there and back without loss, and every impossible one refused with its reason, changing nothing."""

import json
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import reference
from reference import BOXES
from reference_game import Game, choose, key_of, play, roll

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.batch import Batch
from kismet_env.position import Position, read_position
from kismet_env.rules import Rules

VARIANTS = [
    {},
    {"second_kismet": "filled", "zeros": "any_time"},
    {"second_kismet": "rolled", "joker": "always"},
    {"second_kismet": "rolled", "second_kismet_penalty": False, "joker": "natural"},
    {"kismet_score": "flat_50", "straight_score": 40, "flush_score": 45, "zeros": "only_if_nothing_scores"},
]
SCORED = {"ACES": 3, "KISMET": 65}


def met_in_games(num_players: int, rules: dict[str, Any], seed: int, moves: int) -> list[dict[str, Any]]:
    """Return the positions of one game in the order of play."""
    rng = random.Random(seed)
    batch = Batch(1, num_players, rules=rules)
    batch.seed([seed])
    batch.deal()
    game = Game(num_players, {**reference.STANDARD, **rules}, key_of(seed))
    positions = []
    for _ in range(moves):
        positions.append(batch.position())
        batch.step([play(game, choose(game, rng), "keeps")])
        if game.over:
            break
    return positions


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
@pytest.mark.parametrize("num_players", [1, 2, 3, 6])
def test_positions_of_games_come_back_as_they_are(num_players: int, rules: dict[str, Any]) -> None:
    """position() -> deal -> position(), and the state that counts is the same as in the game itself."""
    for seed in range(4):
        batch = Batch(1, num_players, rules=rules)
        for position in met_in_games(num_players, rules, seed, moves=300)[seed::7]:
            assert json.loads(json.dumps(position)) == position
            batch.deal_positions([position])
            assert batch.position() == position


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_a_game_goes_on_from_its_position_as_it_would_have(rules: dict[str, Any]) -> None:
    """With the same dice to come: masks, observations and rewards agree to the end of the game."""
    for num_players in (1, 3):
        rng = random.Random(num_players)
        one = Batch(1, num_players, rules=rules)
        out = one.deal_keys(np.array([key_of(3)], np.uint64))
        other = Batch(1, num_players, rules=rules)
        while not one.state.games["over"][0]:
            if rng.random() < 0.3:
                other.deal_positions([one.position()])
                other.state.games["key"] = one.state.games["key"]
                seen = other.look()
                assert np.array_equal(seen.masks, out.masks)
                assert np.array_equal(seen.observations, out.observations)
                assert np.array_equal(seen.scorecards, out.scorecards)
                assert np.array_equal(other.state.cards["total"], one.state.cards["total"])
                assert np.array_equal(other.state.cards["armed"], one.state.cards["armed"])
            action = [rng.choice(np.flatnonzero(out.masks[0])[-25:])]
            if other.state.games["over"][0]:
                out = one.step(action)
            else:
                out, seen = one.step(action), other.step(action)
                assert np.array_equal(out.rewards, seen.rewards)


# What may be left out


def position_after(position: dict[str, Any], num_players: int = 1, rules: dict[str, Any] | None = None) -> Any:
    batch = Batch(1, num_players, rules=rules)
    batch.seed([9])
    batch.deal_positions([position])
    return batch.position()


@pytest.mark.parametrize("rolls_left", [None, 2, 1, 0])
def test_missing_dice_are_rolled(rolls_left: int | None) -> None:
    """As the roll that leaves so many rolls: the dice of the game's key for that place."""
    given = {"cards": [SCORED]} if rolls_left is None else {"cards": [SCORED], "rolls_left": rolls_left}
    position = position_after(given)
    left = 2 if rolls_left is None else rolls_left
    assert position["rolls_left"] == left
    assert tuple(position["dice"]) == roll(key_of(9), 0, 2, 2 - left)


def test_given_dice_have_two_rolls_left_unless_said_otherwise() -> None:
    assert position_after({"cards": [{}], "dice": [6, 2, 5, 5, 2]}) == {
        "cards": [{}],
        "player": 0,
        "dice": [2, 2, 5, 5, 6],
        "rolls_left": 2,
        "kismets_rolled": [0],
    }


@pytest.mark.parametrize(
    ("card", "kismets"), [({}, 0), ({"KISMET": 0}, 0), ({"KISMET": 65}, 1), ({"FIVES": 25, "KISMET": 0}, 0)], ids=str
)
def test_missing_kismets_rolled_is_1_where_kismet_holds_points(card: dict[str, int], kismets: int) -> None:
    assert position_after({"cards": [card]})["kismets_rolled"] == [kismets]


@pytest.mark.parametrize("none", ["player", "dice", "rolls_left", "kismets_rolled"])
def test_none_is_the_same_as_missing(none: str) -> None:
    position = {"cards": [SCORED], "player": 0, "dice": [1, 1, 2, 3, 4], "rolls_left": 2, "kismets_rolled": [1]}
    without = {name: value for name, value in position.items() if name != none}
    assert position_after({**position, none: None}) == position_after(without)


@pytest.mark.parametrize(
    ("sizes", "player"),
    [((1, 0), 1), ((0, 1), 0), ((2, 1, 1), 1), ((2, 2, 1), 2), ((1, 2, 2), 0), ((1, 1, 2), 0), ((3, 3, 3), 0)],
    ids=str,
)
def test_the_cards_decide_whose_turn_it_is(sizes: tuple[int, ...], player: int) -> None:
    points = {"ACES": 3, "DEUCES": 6, "TREYS": 9}
    cards = [dict(list(points.items())[:size]) for size in sizes]
    assert position_after({"cards": cards}, len(sizes))["player"] == player
    assert position_after({"cards": cards, "player": player}, len(sizes))["player"] == player


def test_where_all_cards_are_equal_any_seat_may_be_next() -> None:
    for player in range(3):
        assert position_after({"cards": [{"ACES": 1}] * 3, "player": player}, 3)["player"] == player


def test_a_game_that_begins_with_another_seat_goes_round_from_there() -> None:
    """The order of seats and the beginner of the rounds never move, and everybody gets fifteen boxes."""
    rng = random.Random(1)
    for first in range(3):
        batch = Batch(1, 3)
        batch.seed([first])
        masks = batch.deal_positions([{"cards": [{}] * 3, "player": first}]).masks
        while not batch.state.games["over"][0]:
            sizes = [len(card) for card in batch.position()["cards"]]
            in_order = sizes[first:] + sizes[:first]
            assert in_order == sorted(in_order, reverse=True)
            assert batch.position()["player"] == (first + sum(sizes)) % 3
            masks = batch.step([rng.choice(np.flatnonzero(masks[0])[-25:])]).masks
        assert (batch.state.cards["points"] >= 0).all()


def test_numpy_numbers_and_tuples_are_welcome() -> None:
    position = {
        "cards": ({"ACES": np.int16(3), 14: np.int64(65)},),
        "dice": np.array([1, 2, 2, 5, 5], np.int8),
        "rolls_left": np.int8(1),
        "kismets_rolled": (np.int8(1),),
    }
    assert position_after(position)["cards"] == [SCORED]


def test_a_bonus_is_in_the_total() -> None:
    basic = {"ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15, "SIXES": 18}
    batch = Batch(3)
    cards = [basic, {**basic, "SIXES": 12}, {**basic, "FLUSH": 35}]
    assert batch.deal_positions([{"cards": [card]} for card in cards]).totals.tolist() == [98, 57, 133]


@pytest.mark.parametrize(
    ("rules", "card", "kismets", "armed"),
    [
        ({}, {"KISMET": 65}, 1, True),
        ({}, {"KISMET": 0}, 0, False),
        ({}, {"FIVES": 25}, 1, False),
        ({"second_kismet": "filled"}, {"KISMET": 0}, 0, True),
        ({"second_kismet": "filled"}, {"FIVES": 25}, 1, False),
        ({"second_kismet": "rolled"}, {"KISMET": 0}, 0, False),
        ({"second_kismet": "rolled"}, {"FIVES": 25}, 1, True),
        ({"second_kismet": "rolled"}, {"FIVES": 25}, 0, False),
    ],
    ids=str,
)
def test_what_makes_the_next_five_alike_a_second_kismet(
    rules: dict[str, Any], card: dict[str, int], kismets: int, armed: bool
) -> None:
    batch = Batch(1, rules=rules)
    batch.deal_positions([{"cards": [card], "kismets_rolled": [kismets]}])
    assert batch.state.cards["armed"][0, 0] == armed


# What is refused

FULL = {**dict.fromkeys(BOXES, 0), "YARBOROUGH": 20}
REFUSED: list[tuple[Any, int, str]] = [  # position, number of players, part of the message
    ("ACES 3", 1, "not a mapping"),
    ([{}], 1, "not a mapping"),
    ({}, 1, "cards None"),
    ({"cards": [{}], "die": [1]}, 1, "unknown field 'die'.*cards, player, dice, rolls_left, kismets_rolled"),
    ({"cards": {"ACES": 3}}, 1, "not a list"),
    ({"cards": "ACES"}, 1, "not a list"),
    ({"cards": []}, 1, "each of 1 player"),
    ({"cards": [{}, {}]}, 1, "each of 1 player"),
    ({"cards": [{}]}, 2, "each of 2 player"),
    ({"cards": [["ACES"]]}, 1, "card.*not a mapping"),
    ({"cards": [{"ONES": 3}]}, 1, "unknown box 'ONES'.*ACES.*KISMET"),
    ({"cards": [{15: 3}]}, 1, "unknown box 15"),
    ({"cards": [{None: 3}]}, 1, "unknown box None"),
    ({"cards": [{"ACES": 6}]}, 1, "ACES cannot hold 6; possible points are 0, 1, 2, 3, 4, 5"),
    ({"cards": [{"ACES": -1}]}, 1, "ACES cannot hold -1"),
    ({"cards": [{"ACES": 3.0}]}, 1, "ACES cannot hold 3.0"),
    ({"cards": [{"ACES": "3"}]}, 1, "ACES cannot hold '3'"),
    ({"cards": [{"ACES": True}]}, 1, "ACES cannot hold True"),
    ({"cards": [{"ACES": None}]}, 1, "ACES cannot hold None"),
    ({"cards": [{"ACES": [3]}]}, 1, "ACES cannot hold"),
    ({"cards": [{"STRAIGHT": 40}]}, 1, "STRAIGHT cannot hold 40; possible points are 0, 30"),
    ({"cards": [{"FULL_HOUSE_SAME_COLOR": 22}]}, 1, "FULL_HOUSE_SAME_COLOR cannot hold 22"),
    ({"cards": [{"KISMET": 50}]}, 1, "KISMET cannot hold 50"),
    ({"cards": [{"YARBOROUGH": 0}]}, 1, "YARBOROUGH cannot hold 0"),
    ({"cards": [FULL]}, 1, "the game is over"),
    ({"cards": [FULL, FULL]}, 2, "the game is over"),
    ({"cards": [{}], "dice": [1, 2, 3, 4]}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": [1, 2, 3, 4, 5, 6]}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": [1, 2, 3, 4, 7]}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": [1, 2, 3, 4, 2.5]}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": "12345"}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": 5}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "dice": [1, 2, 3, 4, None]}, 1, "not five faces from 1 to 6"),
    ({"cards": [{}], "rolls_left": 3}, 1, "rolls_left 3 is not a whole number from 0 to 2"),
    ({"cards": [{}], "rolls_left": -1}, 1, "rolls_left -1"),
    ({"cards": [{}], "rolls_left": 1.0}, 1, "rolls_left 1.0"),
    ({"cards": [{}], "rolls_left": True}, 1, "rolls_left True"),
    ({"cards": [{}], "player": 1}, 1, "player 1 is not a whole number from 0 to 0"),
    ({"cards": [{}, {}], "player": 2}, 2, "player 2"),
    ({"cards": [{}, {}], "player": "0"}, 2, "player '0'"),
    ({"cards": [{"ACES": 3}, {}], "player": 0}, 2, "it is the turn of player 1, not 0"),
    ({"cards": [{"ACES": 3, "FLUSH": 35}, {}]}, 2, "not in step"),
    ({"cards": [{"ACES": 3}, {}, {"ACES": 3}, {}]}, 4, "not in step"),
    ({"cards": [{}], "kismets_rolled": 1}, 1, "kismets_rolled 1 is not a list"),
    ({"cards": [{}], "kismets_rolled": [0, 0]}, 1, "kismets_rolled"),
    ({"cards": [{}], "kismets_rolled": [-1]}, 1, "kismets_rolled -1"),
    ({"cards": [{}], "kismets_rolled": [0.0]}, 1, "kismets_rolled 0.0"),
    ({"cards": [{}], "kismets_rolled": [1]}, 1, "five alike 1 times; its card allows 0 to 0"),
    ({"cards": [{"KISMET": 65}], "kismets_rolled": [0]}, 1, "five alike 0 times; its card allows 1 to 1"),
    ({"cards": [{"KISMET": 65}], "kismets_rolled": [2]}, 1, "five alike 2 times; its card allows 1 to 1"),
    ({"cards": [{"ACES": 3, "KISMET": 0}], "kismets_rolled": [1]}, 1, "five alike 1 times"),
]


@pytest.mark.parametrize(("position", "num_players", "reason"), REFUSED, ids=lambda value: str(value)[:60])
def test_an_impossible_position_is_refused_with_its_reason(position: Any, num_players: int, reason: str) -> None:
    with pytest.raises(ValueError, match=f"position: .*{reason}|position .*{reason}"):
        read_position(position, Rules(), num_players)


def test_a_zero_in_yarborough_needs_an_opponent_and_the_penalty() -> None:
    cards = [{"YARBOROUGH": 0}, {"KISMET": 65}]
    assert read_position({"cards": cards}, Rules(), 2).cards
    with pytest.raises(ValueError, match="YARBOROUGH cannot hold 0"):
        read_position({"cards": cards}, Rules(second_kismet_penalty=False), 2)


@pytest.mark.parametrize(
    ("rules", "card"),
    [
        ({"straight_score": 40}, {"STRAIGHT": 40}),
        ({"kismet_score": "flat_50"}, {"KISMET": 50}),
        ({"joker": "always"}, {"FULL_HOUSE": 20}),
    ],
    ids=str,
)
def test_what_a_box_can_hold_follows_the_rules(rules: dict[str, Any], card: dict[str, int]) -> None:
    assert read_position({"cards": [card]}, Rules.of(rules), 1).cards
    with pytest.raises(ValueError, match="cannot hold"):
        read_position({"cards": [card]}, Rules(joker="natural"), 1)


def test_a_position_that_was_read_is_not_read_again() -> None:
    read = read_position({"cards": [SCORED]}, Rules(), 1)
    assert isinstance(read, Position)
    assert read_position(read, Rules(), 1) is read


def test_a_refused_position_changes_nothing_in_a_batch() -> None:
    batch = Batch(3)
    batch.seed([1, 2, 3])
    batch.deal()
    before = batch.save()
    with pytest.raises(ValueError, match="ACES cannot hold 6"):
        batch.deal_positions([{"cards": [{}]}, {"cards": [{"ACES": 6}]}, {"cards": [{}]}])
    for now, then in zip(batch.state, before, strict=True):
        assert np.array_equal(now, then)


def test_a_refused_position_changes_nothing_in_an_environment() -> None:
    """Neither the game, nor the seeding, nor the dice of the episodes to come."""
    bad = {"position": {"cards": [{"ACES": 6}]}}
    env, other = (gym.make("kismet_env/Kismet-v0") for _ in range(2))
    for each in (env, other):
        each.reset(seed=1)
        each.step(0)
    with pytest.raises(ValueError, match="ACES cannot hold 6"):
        env.reset(seed=2, options=bad)
    assert env.unwrapped.position() == other.unwrapped.position()
    assert env.np_random_seed == other.np_random_seed == 1
    assert np.array_equal(env.reset()[0], other.reset()[0])


def test_a_refused_position_changes_nothing_in_a_vector_environment() -> None:
    bad = {"position": [{"cards": [{}]}, {"cards": [{"ACES": 6}]}]}
    env, other = (gym.make_vec("kismet_env/Kismet-v0", num_envs=2) for _ in range(2))
    for each in (env, other):
        each.reset(seed=1)
    with pytest.raises(ValueError, match="ACES cannot hold 6"):
        env.reset(seed=2, options=bad)
    for wrong in ({"cards": 3}, [], [{}], 5, "ab"):
        with pytest.raises(ValueError, match="position"):
            env.reset(seed=2, options={"position": wrong})
    assert np.array_equal(env.reset()[0], other.reset()[0])
