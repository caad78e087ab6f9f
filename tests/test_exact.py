"""The exact value of players: against brute force that asks the player himself, and against simulation."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from chance import far_out
from crystal import (
    CARDS,
    CHANCES,
    FULL,
    IDS,
    KEEPS,
    PLACE_OF_KEEP,
    assert_foreseen,
    closed_of,
    decisions,
    shares_of,
)
from reference_game import KEEP_NUMBER

from kismet_env.bots import Player, TurnPlayer, make
from kismet_env.bots.player import turn_values
from kismet_env.dice import roll_index
from kismet_env.evaluation import YARDSTICK, Regrets, exact, play, transfer, yardstick
from kismet_env.exact import PolicyValue, TurnPolicy
from kismet_env.observation import decode
from kismet_env.rules import BASIC_BOXES, SUITE, Box, Rules
from kismet_env.solver import solve
from kismet_env.tables import tables_of
from kismet_env.turn import best_actions

PLAYERS = ["random", "greedy", "turn_greedy", "rule_based", "optimal", "epsilon:0.3", "boltzmann:2.0", "boltzmann:0.05"]
PLAIN = ["random", "greedy", "turn_greedy", "rule_based"]  # whose making solves nothing


def assert_exact(
    player: Player, rules: Rules, changes: dict[str, Any], open_boxes: Sequence[Box], changed: dict[str, int]
) -> None:
    assert_foreseen(value_of(player, rules, *open_boxes), player, rules, changes, open_boxes, changed)


def value_of(player: Player, rules: Rules, *open_boxes: Box) -> PolicyValue:
    """The exact value of a player on the cards on which no other boxes are open."""
    assert isinstance(player, TurnPlayer)
    return PolicyValue(player.turn_policy(), tables_of(rules), closed=closed_of(*open_boxes))


@pytest.mark.parametrize(("open_boxes", "changed"), CARDS, ids=IDS)
@pytest.mark.parametrize("name", PLAYERS)
def test_values_and_distributions_are_those_of_brute_force(
    name: str, open_boxes: tuple[Box, ...], changed: dict[str, int]
) -> None:
    assert_exact(make(name), Rules(), {}, open_boxes, changed)


STRICT: dict[str, Any] = {
    "zeros": "only_if_nothing_scores",
    "yarborough": "only_if_nothing_else",
    "kismet_score": "flat_50",
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("open_boxes", "changed"), [CARDS[-2], CARDS[-1]], ids=IDS[-2:])
def test_so_they_are_where_more_is_forbidden(name: str, open_boxes: tuple[Box, ...], changed: dict[str, int]) -> None:
    assert Rules(**STRICT) == SUITE["strict"]
    assert_exact(make(name, SUITE["strict"]), SUITE["strict"], STRICT, open_boxes, changed)


@pytest.mark.parametrize("name", PLAIN)
def test_so_they_are_where_a_full_kismet_box_is_enough(name: str) -> None:
    changes = {"second_kismet": "filled"}
    rules = Rules(second_kismet="filled")
    assert_exact(make(name, rules), rules, changes, (Box.FULL_HOUSE, Box.KISMET), {})


OPEN = (Box.SIXES, Box.FLUSH, Box.FULL_HOUSE, Box.KISMET)


@pytest.mark.parametrize("name", PLAYERS)
def test_a_card_is_worth_what_the_actions_that_are_chosen_are_worth(name: str) -> None:
    """V = the mean of Q under the policy, on cards with four open boxes; illegal actions are those of the mask."""
    player, rules = make(name), Rules()
    value = value_of(player, rules, *OPEN)
    for held in (9, 12, 15):
        points = {box: points for box, points in FULL.items() if Box[box] not in OPEN} | {"FIVES": 5 * held // 3}
        means = []
        for left in (0, 1, 2):
            seen = decisions(points, left, rules)
            values = value.action_values(*decode(seen.observations))
            assert ((values == -np.inf) == (seen.masks == 0)).all()
            shares = shares_of(player, seen)
            means.append(np.where(shares > 0, shares * np.where(shares > 0, values, 0.0), 0.0).sum(1))
            if left:  # what a keep is worth is the mean of what comes of it
                worth = np.full(values.shape, -np.inf)
                worth[:, list(PLACE_OF_KEEP)] = CHANCES @ means[left - 1]
                keeps = np.arange(KEEPS.num_rolls)
                legal = seen.masks[:, keeps] == 1
                np.testing.assert_allclose(values[:, keeps][legal], worth[:, keeps][legal], rtol=0, atol=1e-9)
        card = decode(decisions(points, 2, rules).observations)[:3]
        first = CHANCES[PLACE_OF_KEEP[KEEP_NUMBER[()]]] @ means[2]
        np.testing.assert_allclose(value.card_value(*card), first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PLAYERS)
def test_distributions_have_the_mean_and_the_spread_of_the_moments(name: str) -> None:
    value = value_of(make(name), Rules(), *OPEN)
    for total in (20, 44, 45):
        distribution = value.distribution(closed=closed_of(*OPEN), basic_total=total)
        points = np.arange(len(distribution))
        mean = distribution @ points
        assert (distribution >= 0).all()
        assert distribution.sum() == pytest.approx(1.0, abs=1e-12)
        assert value.card_value(closed_of(*OPEN), total, False) == pytest.approx(mean, abs=1e-9)
        sd = (distribution @ (points - mean) ** 2) ** 0.5
        assert value.card_sd(closed_of(*OPEN), total, False) == pytest.approx(sd, abs=1e-5)


def test_optimal_is_worth_the_optimum_on_every_small_card() -> None:
    value, optimum = value_of(make("optimal"), Rules(), *OPEN), solve()
    for kept in range(16):
        filled = closed_of(*(box for place, box in enumerate(OPEN) if kept >> place & 1))
        totals = [40] if Box.SIXES not in OPEN or filled >> Box.SIXES & 1 else [0, 30, 40, 45]
        for total in totals:
            expected = optimum.card_value(filled, total, False)
            assert value.card_value(filled, total, False) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != "optimal"])
def test_nobody_is_worth_more_than_the_optimum(name: str) -> None:
    value, optimum = value_of(make(name), Rules(), *OPEN), solve()
    totals = np.array([0, 20, 40, 45])
    assert (
        value.card_value(closed_of(*OPEN), totals, False) < optimum.card_value(closed_of(*OPEN), totals, False)
    ).all()


def test_a_player_who_does_not_say_how_he_chooses_has_no_exact_value() -> None:
    class Silent:
        def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
            return masks.argmax(1)

    with pytest.raises(ValueError, match="Silent has no turn_policy"):
        exact(Silent())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"style": "worst"}, "style='worst' is not one of best, epsilon, boltzmann, table, shares"),
        ({"style": "table"}, 'write_table is for style "table" and needed there'),
        ({"style": "best", "write_table": print}, 'write_table is for style "table"'),
        ({"style": "shares"}, 'write_shares is for style "shares" and needed there'),
        ({"style": "best", "write_shares": print}, 'write_shares is for style "shares"'),
        ({"style": "best"}, "style 'best' needs write_worths"),
        ({"style": "epsilon", "strength": 0.5}, "style 'epsilon' needs write_worths"),
    ],
)
def test_a_policy_without_what_its_style_needs_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TurnPolicy(**arguments)


@pytest.mark.parametrize(
    ("action", "left", "dice"),
    [
        (KEEPS.num_rolls + Box.ACES, 0, (1, 1, 1, 1, 1)),  # which is filled
        (KEEPS.num_rolls + Box.FLUSH, 2, (1, 1, 1, 1, 2)),  # a zero before the third roll
        (KEEP_NUMBER[(6,)], 1, (1, 1, 1, 1, 1)),  # dice that are not there
        (KEEP_NUMBER[()], 0, (1, 1, 1, 1, 1)),  # a fourth roll
        (-1, 1, (1, 1, 1, 1, 1)),
        (KEEPS.num_actions, 1, (1, 1, 1, 1, 1)),
    ],
)
def test_an_illegal_action_in_a_table_is_refused(action: int, left: int, dice: tuple[int, ...]) -> None:
    def write_table(cards: npt.NDArray[np.int64], table: npt.NDArray[np.int64]) -> None:
        write(cards, table)
        table[0, left, roll_index(dice)] = action

    write = make("greedy").turn_policy().write_table  # type: ignore[attr-defined]
    with pytest.raises(
        ValueError, match=f"action {action} is illegal with dice .*, rolls_left={left} on the card filled"
    ):
        PolicyValue(TurnPolicy("table", write_table=write_table), tables_of(Rules()), closed=closed_of(Box.FLUSH))


# What exact() says of whole games; a slow test works it out again, but for the graded players.
EXPECTED: dict[str, tuple[float, float]] = {  # mean, SD
    "random": (57.69603702, 22.62105),
    "greedy": (245.29703618, 55.03679),
    "turn_greedy": (288.57768858, 52.28213),
    "rule_based": (313.42308572, 56.17007),
    "optimal": (315.10404060, 56.14207),
    "epsilon:0.1": (274.38439614, 56.58237),
    "boltzmann:2.0": (257.35253324, 53.87923),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_simulated_games_have_the_exact_mean_and_spread(name: str) -> None:
    """Within 3.3 standard errors, so that one honest run in a thousand fails."""
    played = play(make(name), 800, seed=11, watcher=partial(Regrets, solve()))
    mean, sd = EXPECTED[name]
    assert abs(played.totals.mean() - mean) < 3.3 * sd / 800**0.5
    assert played.totals.std() == pytest.approx(sd, rel=3.3 * 0.75 / 800**0.5)  # the tails are a little heavy
    without_luck = solve().expected_score - played.measures["regret_by_turn"].sum(1)
    assert abs(without_luck.mean() - mean) <= 3.3 * without_luck.std() / 800**0.5 + 1e-6


def test_the_yardstick_is_the_exact_mean_of_its_player() -> None:
    assert yardstick() == pytest.approx(EXPECTED[YARDSTICK][0], abs=1e-6)


@lru_cache(maxsize=1)
def whole(name: str) -> tuple[PolicyValue, list[float]]:
    """The exact value of a player in whole games, and the shares reported while it was worked out."""
    shares: list[float] = []
    return exact(make(name), report=shares.append), shares


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLAIN, "optimal"])
def test_whole_games_are_worth_what_is_written_above(name: str) -> None:
    value, shares = whole(name)
    mean, sd = EXPECTED[name]
    assert value.expected_score == pytest.approx(mean, abs=1e-6)
    assert value.score_sd == pytest.approx(sd, abs=1e-3)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.slow
def test_the_distribution_of_the_optimum_is_that_of_its_moments_and_of_simulation() -> None:
    value, _ = whole("optimal")
    assert value.expected_score == pytest.approx(solve().expected_score, abs=1e-6)
    distribution = value.distribution()
    points = np.arange(len(distribution))
    mean = distribution @ points
    assert distribution.sum() == pytest.approx(1.0, abs=1e-12)
    assert mean == pytest.approx(value.expected_score, abs=1e-9)
    assert (distribution @ (points - mean) ** 2) ** 0.5 == pytest.approx(value.score_sd, abs=1e-6)
    edges = np.array([0, *range(160, 480, 10), len(points)])
    totals = play(make("optimal"), 20_000, seed=12).totals
    assert far_out(np.histogram(totals, edges)[0], np.add.reduceat(distribution, edges[:-1])) < 5


# --- the policy that is optimal under one set of rules, under another ---

SCORED = {"standard": Rules(), **SUITE}


@pytest.mark.parametrize("name", ["standard", "no_bonus"])
def test_at_home_the_optimal_policy_is_worth_the_optimum(name: str) -> None:
    rules = SCORED[name]
    totals = np.array([20, 45])
    value = transfer(rules, rules, closed=closed_of(*OPEN)).card_value(closed_of(*OPEN), totals, False)
    np.testing.assert_allclose(value, solve(rules).card_value(closed_of(*OPEN), totals, False), rtol=0, atol=1e-9)


def test_abroad_it_is_worth_less_and_still_plays_for_its_own_bonus() -> None:
    """45 points in five Basic boxes: without a bonus, going for three sixes only costs."""
    standard, no_bonus = Rules(), SUITE["no_bonus"]
    closed = closed_of(Box.SIXES, Box.YARBOROUGH)
    value = transfer(standard, no_bonus, closed=closed).card_value(closed, [32, 45], False)
    best = solve(no_bonus).card_value(closed, [0, 0], False)
    assert best[0] == best[1]
    assert (value < best - 0.1).tolist() == [False, True], "with 32 points there is no bonus to go for"
    assert (value <= best + 1e-9).all()
    back = transfer(no_bonus, standard, closed=closed).card_value(closed, [32, 45], False)
    assert (back <= solve(standard).card_value(closed, [32, 45], False) + 1e-9).all()


class Stranger:
    """Plays the strict rules with the values of the standard game."""

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return best_actions(turn_values(observations, tables_of(SUITE["strict"]), solve().write_worths))

    def turn_policy(self) -> TurnPolicy:
        return TurnPolicy("best", write_worths=solve().write_worths)


def test_abroad_its_value_is_that_of_brute_force() -> None:
    boxes, points = (Box.STRAIGHT, Box.YARBOROUGH), dict(FULL)
    assert_exact(Stranger(), SUITE["strict"], STRICT, boxes, {})
    closed, total = closed_of(*boxes), sum(points[box.name] for box in BASIC_BOXES)
    expected = value_of(Stranger(), SUITE["strict"], *boxes).card_value(closed, total, False)
    assert transfer(Rules(), SUITE["strict"], closed=closed).card_value(closed, total, False) == expected


def test_rules_whose_cards_tell_different_things_have_no_transfer() -> None:
    with pytest.raises(ValueError, match="second_kismet is 'scored' here and 'rolled' there"):
        transfer(Rules(), Rules(second_kismet="rolled"))
