"""The engine against `reference_game`: whole games, every step, 1 to 6 players, every rule option."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
import reference
from reference import BOXES
from reference_game import FIRST_BOX, ROLL_NUMBER, Game, choose, keeps_of, key_of, numbering_of, play

from kismet_env.batch import ILLEGAL_ACTIONS, Batch
from kismet_env.rules import Box

CHOICES: dict[str, tuple[Any, ...]] = {
    "zeros": ("after_third_roll", "any_time", "only_if_nothing_scores"),
    "yarborough": ("any", "only_if_nothing_else"),
    "kismet_score": ("sum_plus_50", "flat_50"),
    "joker": ("full", "natural", "always"),
    "second_kismet": ("scored", "filled", "rolled"),
    "second_kismet_penalty": (True, False),
    "bonus_tiers": (((63, 35), (71, 55), (78, 75)), (), ((10, 5), (30, 6), (105, 500))),
    "straight_score": (30, 40),
    "flush_score": (35, 500),
}


def a_variant(rng: random.Random) -> dict[str, Any]:
    return {name: rng.choice(values) for name, values in CHOICES.items()}


@cache
def keeps_mask(dice: reference.Dice, actions: str) -> np.ndarray:
    """Return the mask of the actions that roll: those that leave some of the dice, by their numbers."""
    mask = np.zeros(FIRST_BOX[actions], np.int8)
    mask[[number for kept, number in numbering_of(actions, dice).items() if kept in keeps_of(dice)]] = 1
    return mask


def expected_masks(games: list[Game], actions: str) -> np.ndarray:
    """Return the masks that the reference asks for; all ones after the end."""
    first_box = FIRST_BOX[actions]
    masks = np.ones((len(games), first_box + len(BOXES)), np.int8)
    for mask, game in zip(masks, games, strict=True):
        if not game.over:
            mask[:first_box] = keeps_mask(game.dice, actions) if game.rolls_left else 0
            boxes = game.boxes()
            mask[first_box:] = [box in boxes for box in BOXES]
    return masks


def check_equal(name: str, actual: Any, expected: Any, games: list[Game]) -> None:
    """Fail with the first row in which two arrays over games differ."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if games and not np.array_equal(actual, expected):
        row = int(np.argwhere((actual != expected).reshape(len(games), -1).any(1))[0, 0])
        game = games[row]
        pytest.fail(
            f"{name} of row {row}: expected {expected[row].tolist()}, actual {actual[row].tolist()}; "
            f"seat {game.seat}, dice {game.dice}, rolls left {game.rolls_left}, cards {game.cards}, rules {game.rules}"
        )


def cards_of(game: Game) -> dict[str, list[Any]]:
    """Return the cards of a game as the fields of a CARD, one entry a player."""
    return {
        "points": [[card.get(box, -1) for box in BOXES] for card in game.cards],
        "filled": [sum(1 << BOXES.index(box) for box in card) for card in game.cards],
        "basic_total": [sum(card.get(box, 0) for box in reference.BASIC) for card in game.cards],
        "total": game.totals,
        "kismets_rolled": list(game.kismets),
        "armed": [game.armed(seat) for seat in range(game.num_players)],
    }


class Expected:
    """The cards of all games as the fields of CARD; a card is looked at again when its game has moved on a slot."""

    def __init__(self, games: list[Game]) -> None:
        self.games = games
        self.slots = [-1] * len(games)
        self.cards = {name: np.array([values] * len(games)) for name, values in cards_of(games[0]).items()}

    def check(self, batch: Batch) -> None:
        """The state of the batch is that of the reference games."""
        games = self.games
        for row, game in enumerate(games):
            if self.slots[row] != game.slot:
                self.slots[row] = game.slot
                for name, values in cards_of(game).items():
                    self.cards[name][row] = values
        for name, values in self.cards.items():
            check_equal(name, batch.state.cards[name], values, games)
        state = batch.state.games
        check_equal("over", state["over"], [game.over for game in games], games)
        live = [row for row, game in enumerate(games) if not game.over]
        living = [games[row] for row in live]
        check_equal("player", state["player"][live], [game.seat for game in living], living)
        check_equal("roll", state["roll"][live], [ROLL_NUMBER[game.dice] for game in living], living)
        check_equal("rolls left", state["rolls_left"][live], [game.rolls_left for game in living], living)


def play_through(num_games: int, num_players: int, changed: dict[str, Any], seed: int) -> list[Game]:
    """Play games of one variant to their end in both implementations, compared at every step."""
    rng = random.Random(seed)
    rules = {**reference.STANDARD, **changed}
    reward = rng.choice(("points", "final", "win") if num_players > 1 else ("points", "final"))
    actions = rng.choice(("keeps", "holds"))
    batch = Batch(num_games, num_players, rules=changed, reward=reward, actions=actions)
    seeds = [rng.randrange(2**63) for _ in range(num_games)]
    batch.seed(seeds)
    games = [Game(num_players, rules, key_of(seed)) for seed in seeds]
    expected = Expected(games)
    out = batch.deal()
    expected.check(batch)
    returns = np.zeros((num_games, num_players))
    nothing = [0] * num_players
    while not all(game.over for game in games):
        check_equal("mask", out.masks, expected_masks(games, actions), games)
        numbers, rewards, ended = [], [], []
        for game in games:
            if game.over:
                numbers.append(0)
                rewards.append(nothing)
                ended.append(False)
                continue
            numbers.append(play(game, choose(game, rng), actions))
            ended.append(game.over)
            sizes = [len(card) for card in game.cards]
            assert max(sizes) - min(sizes) <= 1, f"cards with {sizes} filled boxes"
            if reward == "points":
                rewards.append(game.paid)
            elif not game.over:
                rewards.append(nothing)
            else:
                rewards.append(game.totals if reward == "final" else game.win_shares())
        out = batch.step(np.array(numbers))
        np.testing.assert_allclose(out.rewards, rewards, atol=1e-15, err_msg=f"rewards, rules {rules}")
        returns += out.rewards
        check_equal("terminated", out.terminated, ended, games)
        assert not out.truncated.any()
        assert not out.illegal.any()
        expected.check(batch)
        live = [row for row, game in enumerate(games) if not game.over]
        seats = [games[row].seat for row in live]
        living = [games[row] for row in live]
        check_equal("scorecard shown", out.scorecards[live], expected.cards["points"][live, seats], living)
        check_equal("total shown", out.totals[live], expected.cards["total"][live, seats], living)
    assert all(len(card) == 15 for game in games for card in game.cards)
    if reward == "win":
        np.testing.assert_allclose(returns.sum(1), 0, atol=1e-12)
    else:
        check_equal("sum of rewards", returns, [game.totals for game in games], games)
    return games


def variants(count: int) -> list[tuple[int, int, dict[str, Any]]]:
    """Return (number, players, rules): the standard game first, then any mixture of fields."""
    rng = random.Random(0)
    return [(number, 1 + number % 6, {} if number < 6 else a_variant(rng)) for number in range(count)]


@pytest.mark.parametrize("share", range(5))
def test_games_equal_the_reference_at_every_step(share: int) -> None:
    games = [
        game
        for number, num_players, changed in variants(100)[share * 20 : share * 20 + 20]
        for game in play_through(20, num_players, changed, seed=number)
    ]
    # The players above meet what is to be tested.
    assert sum(game.second_kismets for game in games) > 20
    assert sum(game.forced_zeros for game in games) > 40


@pytest.mark.slow
@pytest.mark.parametrize("share", range(20))
def test_many_more_games_equal_the_reference(share: int) -> None:
    for number, num_players, changed in variants(400)[share * 20 : share * 20 + 20]:
        play_through(40, num_players, changed, seed=1000 + number)


# What step() accepts


def sampled_states(count: int, seed: int) -> list[dict[str, Any]]:
    """Return positions met in games of three players with mixed moves."""
    rng = random.Random(seed)
    batch = Batch(count, 3)
    batch.seed([rng.randrange(2**63) for _ in range(count)])
    masks = batch.deal().masks
    positions = [batch.position(row) for row in range(count)]
    for number in range(100):
        numbers = [rng.choice(np.flatnonzero(mask)[-20:]) for mask in masks]
        masks = batch.step(np.array(numbers)).masks
        for row in range(count):
            if number == rng.randrange(100) and not batch.state.games["over"][row]:
                positions[row] = batch.position(row)
    return positions


@pytest.mark.parametrize("illegal_action", ILLEGAL_ACTIONS)
@pytest.mark.parametrize("actions", ["keeps", "holds"])
def test_step_accepts_exactly_the_actions_of_the_mask(actions: str, illegal_action: str) -> None:
    """Every action of the space is tried in each of many states; what is refused changes nothing."""
    for position in sampled_states(25, seed=5):
        num_actions = {"keeps": 225, "holds": 46}[actions]
        batch = Batch(num_actions, 3, actions=actions, illegal_action=illegal_action)
        one = Batch(1, 3)
        one.deal_positions([position])
        for array, of_position in zip(batch.state, one.state, strict=True):
            array[...] = of_position
        mask = batch.look().masks[0]
        before = batch.save()
        every_action = np.arange(num_actions)
        if illegal_action == "raise":
            for action in np.flatnonzero(mask == 0):
                with pytest.raises(ValueError, match=f"action {action} .* is illegal"):
                    batch.step(np.full(num_actions, action))
                assert all(np.array_equal(now, then) for now, then in zip(batch.state, before, strict=True))
            every_action = np.where(mask, every_action, np.flatnonzero(mask)[0])
        out = batch.step(every_action)
        legal = mask[every_action] == 1
        assert np.array_equal(out.illegal, ~legal), f"position {position}"
        assert np.array_equal(out.rewards[~legal, position["player"]], np.full((~legal).sum(), -1.0))
        assert np.array_equal(out.terminated, ~legal & (illegal_action == "terminate"))
        assert not out.truncated.any()
        changed = (batch.state.cards != before.cards).any(1)
        changed |= batch.state.games["rolls_left"] != before.games["rolls_left"]
        assert np.array_equal(changed, legal), f"position {position}"
        for name in set(before.games.dtype.names or ()) - {"illegal", "over"}:
            assert np.array_equal(batch.state.games[name][~legal], before.games[name][~legal]), name


@pytest.mark.parametrize("illegal_action", ILLEGAL_ACTIONS)
@pytest.mark.parametrize("number", [-1, 225, 2**31, -(2**63)])
def test_numbers_outside_the_space_are_always_refused_and_change_nothing(illegal_action: str, number: int) -> None:
    batch = Batch(3, 2, illegal_action=illegal_action)
    batch.seed(range(3))
    batch.deal()
    before = batch.save()
    with pytest.raises(ValueError, match=rf"game 1: action {number} is not one of 0\.\.224"):
        batch.step([0, number, 0])
    assert all(np.array_equal(now, then) for now, then in zip(batch.state, before, strict=True))


# What is paid, and to whom

FULL_BUT_ACES = {"DEUCES": 6, "TREYS": 9, "FOURS": 16, "FIVES": 20, "SIXES": 12}  # 63


@pytest.mark.parametrize("reward", ["points", "final", "win"])
def test_a_forced_zero_that_completes_the_basic_section_pays_its_bonus_to_the_waiting_player(reward: str) -> None:
    roller = {"ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "KISMET": 65}
    cards = [FULL_BUT_ACES, roller, {**FULL_BUT_ACES, "SIXES": 6}]
    batch = Batch(1, 3, reward=reward)
    batch.deal_positions([{"cards": cards, "player": 1, "dice": [5] * 5, "rolls_left": 0}])
    out = batch.step([210 + Box.FIVES])
    expected = {"points": [35.0, 25.0, 0.0], "final": [0.0] * 3, "win": [0.0] * 3}[reward]
    assert out.rewards[0].tolist() == expected
    assert batch.state.cards["total"][0].tolist() == [98, 120, 57]
    assert batch.state.games["player"][0] == 1
    assert [batch.position()["cards"][seat]["ACES"] for seat in (0, 2)] == [0, 0]


ENDS = {  # points in the last open box of each seat on equal cards, and what "win" pays
    (6, 5): (1.0, -1.0),
    (5, 5): (0.0, 0.0),
    (6, 5, 5): (1.0, -0.5, -0.5),
    (5, 6, 6): (-0.5, 0.25, 0.25),
    (5, 5, 5): (0.0, 0.0, 0.0),
    (6, 1, 6, 6, 2, 6): (0.1, -0.2, 0.1, 0.1, -0.2, 0.1),
}


@pytest.mark.parametrize("last", ENDS, ids=str)
def test_winners_share_what_the_losers_pay(last: tuple[int, ...]) -> None:
    full = {box: 0 for box in BOXES if box not in ("YARBOROUGH", "KISMET")}
    num_players = len(last)
    cards = [{**full, "KISMET": 0} for _ in last]
    batch = Batch(1, num_players, reward="win")
    batch.deal_positions([{"cards": cards, "dice": [1] * 5, "rolls_left": 0}])
    for seat, extra in enumerate(last):
        position = {**batch.position(), "dice": [1, 1, 1, 1, extra]}
        assert position["player"] == seat
        batch.deal_positions([{**position, "rolls_left": 0}])
        rewards = batch.step([210 + Box.YARBOROUGH]).rewards[0]
        if seat < num_players - 1:
            assert rewards.tolist() == [0.0] * num_players
    assert rewards.tolist() == pytest.approx(ENDS[last])
