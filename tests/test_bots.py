"""The built-in players: legal everywhere, the same in every company, and doing what each of them claims."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import GRADED, PLAYERS, MostProbable, Player, StochasticPlayer, make
from kismet_env.bots.network_player import NetworkPlayer
from kismet_env.bots.player import sample
from kismet_env.bots.turn_greedy import TurnGreedy
from kismet_env.dice import (
    CAN_KEEP,
    KEEP_COUNTS,
    NUM_FACES,
    NUM_REROLL_KEEPS,
    NUM_ROLLS,
    REROLL_PROBABILITY,
    ROLL_DICE,
    keep_index,
    roll_index,
)
from kismet_env.rules import BASIC_BOXES, SUITE, Box, Rules, basic_bonus, score

SOLVERS = ("optimal", "win_probability", *(f"{name}:0.5" for name in GRADED))  # seconds for each set of rules
NAMES = [*(name for name in PLAYERS if name not in SOLVERS), *SOLVERS]
VARIANTS = {
    "standard": Rules(),
    "strict": SUITE["strict"],
    "any_time": Rules(zeros="any_time", joker="always", second_kismet="rolled"),
    "no_bonus": SUITE["no_bonus"],
}
CASES = [(name, variant) for name, variant in product(NAMES, VARIANTS) if variant == "standard" or name not in SOLVERS]
KEEPS = actions_of("keeps")


def random_decisions(rules: Rules, *, seed: int = 0, num_players: int = 1, count: int = 512) -> Batch:
    """A batch of games of all lengths, in the middle of a turn, some of them over."""
    batch = Batch(count, num_players, rules=rules, start="uniform")
    batch.seed(range(seed, seed + count))
    step = batch.deal()
    chance = np.random.default_rng(seed)
    for _ in range(4):
        weights = chance.random(step.masks.shape) * step.masks
        step = batch.step(weights.argmax(1))
    return batch


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_players_play_legal_actions(name: str, variant: str) -> None:
    rules = VARIANTS[variant]
    batch = random_decisions(rules)
    seen = batch.look()
    actions = make(name, rules).act(seen.observations, seen.masks, batch.choice_shares())
    assert actions.shape == (512,)
    assert actions.dtype.kind == "i"
    illegal = np.flatnonzero(seen.masks[np.arange(512), actions] != 1)
    assert not illegal.size, f"action {actions[illegal[0]]} in {batch.position(int(illegal[0]))}"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_player_does_in_a_row_does_not_depend_on_the_other_rows(name: str) -> None:
    batch, player = random_decisions(Rules()), make(name)
    seen, u = batch.look(), batch.choice_shares()
    together = player.act(seen.observations, seen.masks, u)
    for rows in np.array_split(np.random.default_rng(0).permutation(512), 9):
        assert (player.act(seen.observations[rows], seen.masks[rows], u[rows]) == together[rows]).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "win_probability"])
def test_players_sit_in_matches_and_play_as_if_alone(name: str) -> None:
    batch, player = random_decisions(Rules(), num_players=3), make(name)
    seen, u = batch.look(), batch.choice_shares()
    own_block = seen.observations[:, : Batch(1).layout.size]
    assert (player.act(seen.observations, seen.masks, u) == player.act(own_block, seen.masks, u)).all()


@pytest.mark.parametrize("name", NAMES)
def test_players_draw_from_the_probabilities_they_name_or_not_at_all(name: str) -> None:
    batch, player = random_decisions(Rules()), make(name)
    seen = batch.look()
    if not isinstance(player, StochasticPlayer):
        shares = np.zeros(len(seen.masks)), np.full(len(seen.masks), 0.99)
        low, high = (player.act(seen.observations, seen.masks, u) for u in shares)
        assert (low == high).all()
        return
    probabilities = player.probabilities(seen.observations, seen.masks)
    assert probabilities.shape == seen.masks.shape
    assert not probabilities[seen.masks == 0].any()
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    row = int(np.flatnonzero(~batch.over)[0])
    u = (np.arange(20_000) + 0.5) / 20_000
    same = np.full(len(u), row)
    actions = player.act(seen.observations[same], seen.masks[same], u)
    np.testing.assert_allclose(np.bincount(actions, minlength=225) / len(u), probabilities[row], atol=1e-4)


def test_without_u_a_stochastic_player_has_chance_of_its_own_that_repeats() -> None:
    seen = random_decisions(Rules()).look()
    one, other = make("random"), make("random")
    first = one.act(seen.observations, seen.masks)
    assert (first == other.act(seen.observations, seen.masks)).all()
    assert (first != one.act(seen.observations, seen.masks)).any()


@given(
    st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.25, 1 / 3, 1.0]), min_size=1, max_size=8).filter(any),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_sampling_never_draws_what_has_no_probability(weights: list[float], u: float) -> None:
    probabilities = np.array([weights]) / sum(weights)
    assert probabilities[0, sample(probabilities, np.array([u]))[0]] > 0


def test_sampling_reaches_both_ends() -> None:
    probabilities = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]] * 2)
    assert sample(probabilities, np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [1, 3]


class Indifferent(NetworkPlayer):
    """A network to which all actions are the same."""

    def own_probabilities(self, seen: Any, legal: Any) -> Any:
        return legal / legal.sum(1, keepdims=True)

    def weights(self) -> Any:
        return ()


def test_the_most_probable_action_is_the_lowest_number_among_equals() -> None:
    seen = random_decisions(Rules()).look()
    player = MostProbable(Indifferent("features", "keeps", Rules()))
    assert (player.act(seen.observations, seen.masks) == seen.masks.argmax(1)).all()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nobody",
        "Random",
        "random:sample",
        "turn_greedy:1",
        "epsilon",
        "epsilon:",
        "sb3:",
        "sb3::sample",
        "policy:",
        "policy::sample",
    ],
)
def test_unknown_players_are_refused_in_one_line_that_names_the_valid_ones(name: str) -> None:
    with pytest.raises(ValueError, match="players are " + ", ".join(PLAYERS)) as refusal:
        make(name)
    assert repr(name) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["epsilon:1.5", "epsilon:nan", "epsilon:x", "boltzmann:0", "boltzmann:-inf"])
def test_impossible_numbers_behind_a_name_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name.partition(":")[0]) as refusal:
        make(name)
    assert "\n" not in str(refusal.value)


def decide(player: Player, position: dict[str, object], rules: Rules | None = None) -> str:
    """What a player does in a position, in words."""
    batch = Batch(1, rules=rules)
    seen = batch.deal_positions([position])
    return KEEPS.text(int(player.act(seen.observations, seen.masks, batch.choice_shares())[0]))


FIRST_FIVE_FILLED = {"ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15}
ALIKE_FILLED = {"THREE_OF_A_KIND": 20, "FOUR_OF_A_KIND": 0, "KISMET": 0}


@pytest.mark.parametrize(
    ("cards", "dice", "rolls_left", "expected"),
    [
        ({}, [2, 2, 2, 5, 6], 2, "keep 2-2-2"),
        ({}, [1, 2, 2, 6, 6], 1, "keep 6-6"),  # the highest among equals
        ({}, [1, 2, 3, 4, 5], 2, "fill Straight"),  # good enough
        ({}, [1, 1, 6, 6, 6], 2, "fill Full House Same Color"),
        ({}, [1, 2, 4, 5, 6], 0, "fill Yarborough"),  # the most points: 18
        ({"YARBOROUGH": 20}, [1, 2, 4, 5, 6], 0, "fill Sixes"),
        ({}, [1, 1, 1, 1, 1], 2, "fill Kismet"),
        (ALIKE_FILLED | {"SIXES": 18}, [3, 3, 6, 6, 6], 2, "fill Full House"),  # 39 points are good enough
        (ALIKE_FILLED | {"SIXES": 18}, [2, 3, 5, 6, 6], 2, "keep 5"),  # sixes are of no use any more
        (FIRST_FIVE_FILLED, [1, 2, 6, 6, 6], 1, "fill Sixes"),  # the bonus of 35 belongs to the entry
    ],
)
def test_greedy_follows_its_three_rules(cards: dict[str, int], dice: list[int], rolls_left: int, expected: str) -> None:
    position = {"cards": [cards], "dice": dice, "rolls_left": rolls_left}
    assert decide(make("greedy"), position) == expected, position


def gains(card: dict[Box, int], dice: tuple[int, ...], rules: Rules) -> dict[Box, int]:
    """What filling each open box brings, by the score sheet in plain Python."""
    joker = len(set(dice)) == 1 and card.get(Box.KISMET, 0) > 0
    brought = {}
    for box in Box:
        if box not in card:
            points = score(dice, box, rules, joker=joker)
            completes = box in BASIC_BOXES and all(other in card for other in BASIC_BOXES if other != box)
            total = sum(card.get(other, 0) for other in BASIC_BOXES) + points
            brought[box] = points + (basic_bonus(total, rules) if completes else 0)
    return brought


CARDS: list[dict[str, int]] = [
    {},
    FIRST_FIVE_FILLED | {"YARBOROUGH": 21, "FULL_HOUSE": 35},  # sixes complete the Basic Section
    {"KISMET": 65, "ACES": 2, "STRAIGHT": 0, "FLUSH": 35},  # five alike would be a joker
    {box.name: 0 for box in Box if box not in (Box.FULL_HOUSE_SAME_COLOR, Box.YARBOROUGH)} | {"KISMET": 80},
    {box.name: 0 for box in Box if box not in (Box.SIXES, Box.YARBOROUGH)} | FIRST_FIVE_FILLED,
]
DICE = [(1, 2, 3, 4, 6), (2, 2, 5, 5, 6), (6, 6, 6, 6, 6), (1, 1, 3, 4, 4), (1, 6, 6, 6, 6)]


def turn_values(card: dict[str, int], dice: tuple[int, ...], rolls_left: int) -> np.ndarray:
    """What turn_greedy thinks of each action in one position."""
    batch, player = Batch(1), make("turn_greedy")
    assert isinstance(player, TurnGreedy)
    seen = batch.deal_positions([{"cards": [card], "dice": list(dice), "rolls_left": rolls_left}])
    values = player.action_worths(seen.observations)[0]
    assert ((values > -np.inf) == (seen.masks[0] == 1)).all(), "not the actions of the mask"
    assert player.act(seen.observations, seen.masks)[0] == np.flatnonzero(values > values.max() - 1e-9)[0]
    return values


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("dice", DICE)
def test_turn_greedy_knows_every_throw_of_the_last_roll(card: dict[str, int], dice: tuple[int, ...]) -> None:
    """One roll left: the mean over all ordered throws of the best box after each, by brute force."""
    rules, boxes = Rules(), {Box[name]: points for name, points in card.items()}
    best_of: dict[tuple[int, ...], int] = {}

    def best(rolled: tuple[int, ...]) -> int:
        rolled = tuple(sorted(rolled))
        if rolled not in best_of:
            best_of[rolled] = max(gains(boxes, rolled, rules).values())
        return best_of[rolled]

    values = turn_values(card, dice, rolls_left=1)
    for held in product((False, True), repeat=len(dice)):
        kept = tuple(face for face, is_held in zip(dice, held, strict=True) if is_held)
        if len(kept) < len(dice):
            throws = list(product(range(1, NUM_FACES + 1), repeat=len(dice) - len(kept)))
            expected = sum(best(kept + throw) for throw in throws) / len(throws)
            assert values[keep_index(kept)] == pytest.approx(expected, abs=1e-9), f"keeping {kept} of {dice}"
    for box, points in gains(boxes, dice, rules).items():
        value = values[KEEPS.box_action(box)]
        assert value == (points if score(dice, box, rules, joker=Box.KISMET in boxes) > 0 else -np.inf), box.name


@pytest.mark.parametrize("card", CARDS)
def test_turn_greedy_looks_through_two_rolls(card: dict[str, int]) -> None:
    """Two rolls left: the probabilities of all rolls, twice, over what each roll is worth."""
    rules, boxes = Rules(), {Box[name]: points for name, points in card.items()}
    early, late = np.empty(NUM_ROLLS), np.empty(NUM_ROLLS)
    for roll, dice in enumerate(ROLL_DICE.tolist()):
        brought = gains(boxes, tuple(dice), rules)
        joker = len(set(dice)) == 1 and boxes.get(Box.KISMET, 0) > 0
        late[roll] = max(brought.values())
        early[roll] = max((brought[box] for box in brought if score(dice, box, rules, joker=joker)), default=-np.inf)
    one_left = np.maximum(early, np.where(CAN_KEEP, REROLL_PROBABILITY @ late, -np.inf).max(1))
    expected = REROLL_PROBABILITY @ one_left
    for dice in DICE:
        keeps = turn_values(card, dice, rolls_left=2)[:NUM_REROLL_KEEPS]
        legal = CAN_KEEP[roll_index(dice)]
        np.testing.assert_allclose(keeps[legal], expected[legal], atol=1e-9, err_msg=str(dice))


def test_turn_greedy_takes_the_bonus_that_completes_the_section() -> None:
    """45 points in five Basic boxes: three sixes bring 18 + 35, more than the 20 or so of any other box."""
    position = {"cards": [FIRST_FIVE_FILLED], "dice": [1, 2, 6, 6, 6], "rolls_left": 0}
    assert decide(make("turn_greedy"), position) == "fill Sixes"
    assert decide(make("turn_greedy", "no_bonus"), position, SUITE["no_bonus"]) != "fill Sixes"


def test_the_kept_dice_of_an_action_are_those_of_its_number() -> None:
    """What the tests above take for granted: the number of a keep names its dice."""
    assert KEEP_COUNTS[keep_index((2, 2, 6))].tolist() == [0, 2, 0, 0, 0, 1]
