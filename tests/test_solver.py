"""The solver against numbers from elsewhere: published ones, boxes computed by hand, and `brute_force`."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
import reference
from brute_force import AFTER, KEEPS_OF, ROLLS, Card, Solitaire, card_of
from reference import BASIC, BOXES
from reference_game import KEEP_NUMBER

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.cards import CardNumbers, reachable_totals
from kismet_env.dice import ROLL_DICE
from kismet_env.engine import fill_box
from kismet_env.observation import decode
from kismet_env.rules import JOKER, KISMET_SCORE, SECOND_KISMET, YARBOROUGH, ZEROS, Box, Rules
from kismet_env.solver import Optimum, cached_values, solve, solve_values
from kismet_env.tables import TABLES, first_alike, record_of, tables_of

Changes = dict[str, Any]
ALL_BOXES = 2**15 - 1
KEEPS = actions_of("keeps")
STRICT: Changes = {"zeros": "only_if_nothing_scores", "yarborough": "only_if_nothing_else"}
COMBINATIONS: list[Changes] = [
    dict(zip(("zeros", "yarborough", "kismet_score", "joker", "second_kismet"), values, strict=True))
    for values in product(ZEROS, YARBOROUGH, KISMET_SCORE, JOKER, SECOND_KISMET)
]


def named(changes: Changes) -> str:
    return ",".join(f"{name}={value}" for name, value in changes.items()) or "standard"


def bits(*boxes: str) -> int:
    return sum(1 << Box[box] for box in boxes)


@pytest.fixture(scope="session")
def optimum() -> Optimum:
    """The standard optimum, from the cache where it is there: the tests below hold it against today's sources."""
    return solve()


def end_of_game(changes: Changes, *open_boxes: str) -> Optimum:
    """An optimum that knows the cards on which no other boxes are open."""
    rules = Rules(**changes)
    return Optimum(rules, solve_values(tables_of(rules), closed=ALL_BOXES & ~bits(*open_boxes)))


def value_of(box: str, *, basic_total: int = 0, **changes: Any) -> float:
    """The value of a card with one open box and a zero in Kismet, if that is filled."""
    return float(end_of_game(changes, box).card_value(ALL_BOXES & ~bits(box), basic_total, False))


# --- published values ---

# Expected scores of independent programs.
EXPECTED_SCORES: list[tuple[Changes, float]] = [
    ({}, 315.1040405989),
    ({"joker": "natural"}, 315.0240285888),
    ({"second_kismet": "filled"}, 315.1799959055),
    ({"second_kismet": "rolled"}, 315.1079617507),
    ({"joker": "always"}, 315.1799959055),
    ({"zeros": "any_time"}, 315.1040405989),
    ({"zeros": "only_if_nothing_scores"}, 312.5315246675),
    ({"yarborough": "only_if_nothing_else"}, 309.8842454265),
    (STRICT, 307.1718685269),
    ({"kismet_score": "flat_50"}, 309.2086277091),
]


def test_the_standard_game_is_worth_what_others_found(optimum: Optimum) -> None:
    assert optimum.expected_score == pytest.approx(EXPECTED_SCORES[0][1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "expected"), EXPECTED_SCORES, ids=[named(row[0]) for row in EXPECTED_SCORES])
def test_each_option_is_worth_what_others_found(changes: Changes, expected: float) -> None:
    rules = Rules(**changes)
    solved = Optimum(rules, solve_values(tables_of(rules)))
    assert solved.expected_score == pytest.approx(expected, abs=1e-6)


def yahtzee_points(dice: list[int]) -> list[int]:
    """What dice bring in Yahtzee without jokers, put into those boxes of our sheet that are the most alike."""
    counts = [dice.count(face) for face in range(1, 7)]
    longest = max(sum(face in dice for face in run) for run in ((1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)))
    points = dict.fromkeys(BOXES, 0) | {box: dice.count(face) * face for face, box in enumerate(BASIC, 1)}
    points["THREE_OF_A_KIND"] = sum(dice) if max(counts) >= 3 else 0
    points["FOUR_OF_A_KIND"] = sum(dice) if max(counts) >= 4 else 0
    points["FULL_HOUSE"] = 25 if 3 in counts and 2 in counts else 0
    points["FLUSH"] = 30 if longest == 4 else 0  # the small straight
    points["STRAIGHT"] = 40 if set(dice) in ({1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}) else 0
    points["YARBOROUGH"] = sum(dice)
    points["KISMET"] = 50 if max(counts) == 5 else 0
    return list(points.values())


def test_the_same_induction_fed_with_the_yahtzee_sheet_gives_the_published_value() -> None:
    points = np.array([yahtzee_points(dice) for dice in ROLL_DICE.tolist()])
    base = tables_of(Rules(zeros="any_time", bonus_tiers=((63, 35),)))
    sheet = {name: base[name][0] for name in TABLES.names or ()} | {
        "points": np.stack([points, points]),
        "scoring": ((points > 0) << np.arange(15)).sum(-1),
        "max_points": points.max(0),
        "like": first_alike(np.stack([points, points])),
    }
    tables = record_of(TABLES, **sheet)
    thirteen = bits("TWO_PAIR_SAME_COLOR", "FULL_HOUSE_SAME_COLOR")  # filled from the start
    value = CardNumbers(tables).value(solve_values(tables, closed=thirteen), thirteen, 0, False)
    assert value == pytest.approx(245.8707745, abs=1e-6)


@pytest.mark.parametrize("second_kismet", SECOND_KISMET)
def test_rolls_that_are_alike_to_a_box_bring_every_card_the_same(second_kismet: str) -> None:
    tables, rng = tables_of(Rules(second_kismet=second_kismet)), np.random.default_rng(6)
    kinds = [len(set(like)) for like in tables["like"][0].tolist()]
    assert kinds[Box.SIXES] == 7, "none to five of a face, and other five alike"
    assert kinds[Box.FLUSH] == 3, "no flush, a flush, and five alike"
    for box in range(15):
        filled = int(rng.integers(2**15)) & ~(1 << box)
        for armed in (False, True):
            for roll, like in enumerate(tables["like"][0, box].tolist()):
                one, other = (fill_box(tables[0], filled, 50, armed, dice, box) for dice in (roll, like))
                assert one == other, f"{ROLL_DICE[roll]} and {ROLL_DICE[like]} in box {box} of {filled}, armed={armed}"


# --- boxes computed by hand ---


def test_yarborough_alone_is_five_dice_thrown_up_to_three_times() -> None:
    one_throw = Fraction(1 + 2 + 3 + 4 + 5 + 6, 6)  # 3.5
    two_throws = Fraction(4 + 5 + 6, 6) + Fraction(3, 6) * one_throw  # 4.25: what is below 3.5 is thrown again
    three_throws = Fraction(5 + 6, 6) + Fraction(4, 6) * two_throws  # 14/3: what is below 4.25 is thrown again
    assert value_of("YARBOROUGH") == pytest.approx(5 * float(three_throws), abs=1e-12)


@pytest.mark.parametrize("face", range(1, 7))
def test_a_basic_box_alone_is_what_three_throws_show_of_its_face(face: int) -> None:
    shown = 1 - Fraction(5, 6) ** 3  # that a die shows the face within three throws
    assert value_of(BASIC[face - 1]) == pytest.approx(float(5 * face * shown), abs=1e-12)


@pytest.mark.parametrize(
    ("basic_total", "bonus_of"),
    [  # the other five boxes hold `basic_total`, n sixes bring it to basic_total + 6 n: (least n, bonus)
        (33, [(5, 35)]),  # 33 + 30 = 63
        (32, []),  # 62 at most
        (45, [(3, 35), (5, 55)]),  # 63, 69, 75
        (44, [(4, 35), (5, 55)]),  # 62, 68, 74
        (59, [(1, 35), (2, 55), (4, 75)]),  # 65, 71, 77, 83
        (60, [(1, 35), (2, 55), (3, 75)]),  # 66, 72, 78
        (75, [(0, 55), (1, 75)]),
    ],
)
def test_the_last_basic_box_earns_the_bonus_from_63_71_and_78(
    basic_total: int, bonus_of: list[tuple[int, int]]
) -> None:
    shown = 1 - (5 / 6) ** 3
    expected = 0.0
    for sixes in range(6):
        chance = comb(5, sixes) * shown**sixes * (1 - shown) ** (5 - sixes)
        bonus = max([bonus for least, bonus in bonus_of if sixes >= least], default=0)
        expected += chance * (6 * sixes + bonus)
    assert value_of("SIXES", basic_total=basic_total) == pytest.approx(expected, abs=1e-12)


def test_flush_alone_is_a_chase_of_one_colour_among_three() -> None:
    third = Fraction(1, 3)  # of the dice of each colour; n throws left, k dice of the colour that is chased
    one = {4: third, 3: third**2, 2: third**3}
    two = {
        4: third + 2 * third * one[4],
        3: third**2 + 2 * third * (2 * third) * one[4] + (2 * third) ** 2 * one[3],
        # three dice: all of the colour, two, one; none of it, and then three of one other colour or not
        2: third**3
        + 3 * third**2 * (2 * third) * one[4]
        + 3 * third * (2 * third) ** 2 * one[3]
        + 2 * third**3 * one[3]
        + ((2 * third) ** 3 - 2 * third**3) * one[2],
    }
    first = Counter(max(colors.count(color) for color in colors) for colors in product("brg", repeat=5))
    assert first == {5: 3, 4: 30, 3: 120, 2: 90}
    chance = (3 + 30 * two[4] + 120 * two[3] + 90 * two[2]) / Fraction(243)
    assert value_of("FLUSH") == pytest.approx(35 * float(chance), abs=1e-12)
    assert value_of("FLUSH", flush_score=100) == pytest.approx(100 * float(chance), abs=1e-12)


def test_a_flat_kismet_alone_is_fifty_times_the_chance_of_five_alike() -> None:
    # From k alike to the most alike after throwing the other dice, k = 1 .. 5, once: the well-known matrix.
    step = np.array(
        [
            [120 / 1296, 900 / 1296, 250 / 1296, 25 / 1296, 1 / 1296],
            [0, 120 / 216, 80 / 216, 15 / 216, 1 / 216],
            [0, 0, 25 / 36, 10 / 36, 1 / 36],
            [0, 0, 0, 5 / 6, 1 / 6],
            [0, 0, 0, 0, 1],
        ]
    )
    chance = (step @ step @ step)[0, 4]
    assert chance == pytest.approx(0.046029, abs=5e-7)  # as printed everywhere: 4.6029 %
    assert value_of("KISMET", kismet_score="flat_50") == pytest.approx(50 * chance, abs=1e-12)


# --- brute force ---


def number_of(action: tuple[int, ...] | str) -> int:
    return KEEPS.box_action(Box[action]) if isinstance(action, str) else KEEP_NUMBER[action]


def assert_as_by_brute_force(optimum: Optimum, game: Solitaire, card: Card) -> None:
    """Compare the value of the card and of every action with all dice and rolls left."""
    filled = ALL_BOXES & ~bits(*card.open)
    armed = reference.second_kismet((1,) * 5, card.kismet, card.kismets_rolled, game.rules)[1]
    actual_value, value = optimum.card_value(filled, card.basic_total, armed), game.value(card)
    assert actual_value == pytest.approx(value, abs=1e-9), f"{card}: expected {value}, actual {actual_value}"
    actual = optimum.action_values(filled, card.basic_total, armed, np.array(ROLLS)[:, None], [0, 1, 2])
    for dice, values in zip(ROLLS, actual, strict=True):
        for rolls_left in range(3):
            expected = np.full(KEEPS.num_actions, -np.inf)
            for action, worth in game.actions(card, dice, rolls_left).items():
                expected[number_of(action)] = worth
            differ = np.flatnonzero(~np.isclose(values[rolls_left], expected, rtol=0, atol=1e-9))
            assert not differ.size, (
                f"{card}, dice {dice}, {rolls_left} rolls left, {KEEPS.text(int(differ[0]))}: "
                f"expected {expected[differ[0]]}, actual {values[rolls_left, differ[0]]}"
            )


END_GAMES = [  # open boxes, Basic total, what the Kismet box holds (0: a zero)
    *[((box,), 45, 0) for box in BOXES],
    *[((box,), 60, 75) for box in ("SIXES", "FULL_HOUSE", "FULL_HOUSE_SAME_COLOR", "FOUR_OF_A_KIND")],
    (("ACES", "SIXES"), 56, 55),
    (("FOURS", "FIVES"), 60, 0),  # above the top tier, and on both sides of all three
    (("THREE_OF_A_KIND", "YARBOROUGH"), 78, 0),
    (("FULL_HOUSE", "FULL_HOUSE_SAME_COLOR"), 63, 80),
    (("FULL_HOUSE", "KISMET"), 62, None),
    (("STRAIGHT", "FLUSH"), 0, 65),
    (("SIXES", "FULL_HOUSE_SAME_COLOR", "KISMET"), 57, None),
    (("TWO_PAIR_SAME_COLOR", "STRAIGHT", "FOUR_OF_A_KIND"), 70, 55),
]


@pytest.mark.parametrize(
    ("open_boxes", "basic_total", "kismet"),
    END_GAMES,
    ids=[f"{'+'.join(boxes)}-{total}-{kismet}" for boxes, total, kismet in END_GAMES],
)
def test_all_values_with_few_open_boxes_are_those_of_brute_force(
    open_boxes: tuple[str, ...], basic_total: int, kismet: int | None
) -> None:
    card = card_of(open_boxes, basic_total, kismet=kismet)
    assert_as_by_brute_force(end_of_game({}, *open_boxes), Solitaire(reference.STANDARD), card)


def assert_option_as_by_brute_force(changes: Changes) -> None:
    """Open boxes on which every option tells, with every past that the Kismet box can have."""
    game = Solitaire({**reference.STANDARD, **changes})
    open_boxes = ("FULL_HOUSE", "YARBOROUGH", "KISMET")
    optimum = end_of_game(changes, *open_boxes)
    for rolled in (0, 1):
        assert_as_by_brute_force(optimum, game, card_of(open_boxes, 70, rolled=rolled))
    for kismet, rolled in ((0, 0), (0, 1), (1, 1)):
        assert_as_by_brute_force(optimum, game, card_of(open_boxes[:2], 70, kismet=kismet, rolled=rolled))
    # Where zeros are forbidden while a box scores, one six spoils the Sixes: not to have to roll would be worth a lot.
    assert_as_by_brute_force(end_of_game(changes, "SIXES", "STRAIGHT"), game, card_of(("SIXES", "STRAIGHT"), 45))


OPTIONS: list[Changes] = [
    *[changes for changes, _ in EXPECTED_SCORES],
    {"second_kismet": "rolled", "joker": "natural"},
    {"second_kismet": "rolled", "zeros": "only_if_nothing_scores"},
]


@pytest.mark.parametrize("changes", OPTIONS, ids=named)
def test_each_option_is_that_of_brute_force(changes: Changes) -> None:
    assert_option_as_by_brute_force(changes)


@pytest.mark.slow
@pytest.mark.parametrize("changes", COMBINATIONS, ids=named)
def test_every_combination_of_options_is_that_of_brute_force(changes: Changes) -> None:
    assert_option_as_by_brute_force(changes)


TIERS = [(), ((1, 5),), ((5, 10), (30, 200), (55, 500)), ((62, 1), (105, 500))]


@pytest.mark.parametrize("tiers", TIERS, ids=str)
def test_bonus_tiers_are_those_of_brute_force_although_totals_end_at_the_top_tier(tiers: Any) -> None:
    changes = {"bonus_tiers": tiers}
    game = Solitaire({**reference.STANDARD, **changes})
    for open_boxes, basic_total in ((("ACES", "DEUCES"), 53), (("FIVES", "STRAIGHT"), 0), (("ACES",), 100)):
        assert_as_by_brute_force(end_of_game(changes, *open_boxes), game, card_of(open_boxes, basic_total))


@pytest.mark.slow
@pytest.mark.parametrize(
    "open_boxes",
    [
        ("DEUCES", "FIVES", "SIXES", "KISMET"),
        ("FLUSH", "FULL_HOUSE", "FULL_HOUSE_SAME_COLOR", "KISMET"),
        ("ACES", "THREE_OF_A_KIND", "YARBOROUGH", "KISMET"),
    ],
    ids="+".join,
)
def test_four_open_boxes_are_those_of_brute_force(open_boxes: tuple[str, ...]) -> None:
    card = card_of(open_boxes, 31)
    assert_as_by_brute_force(end_of_game({}, *open_boxes), Solitaire(reference.STANDARD), card)


# --- the whole game: one step of the values against another, by `reference` ---


@pytest.fixture(scope="module")
def reached() -> Any:
    """Decisions of 60 standard games in which anything legal is played."""
    batch, rng = Batch(60), np.random.default_rng(5)
    seen = batch.deal_keys(rng.integers(2**63, size=60, dtype=np.uint64))
    found = []
    while not batch.state.games["over"].all():
        found.append(seen.observations[~batch.state.games["over"]])
        seen = batch.step((seen.masks * rng.random(seen.masks.shape)).argmax(1))
    return decode(np.concatenate(found))


def test_a_card_is_worth_the_mean_of_its_best_actions(optimum: Optimum, reached: Any) -> None:
    cards = np.unique(np.stack(reached[:3], axis=1), axis=0)
    filled, basic_total, armed = np.random.default_rng(0).permutation(cards)[:300].T[..., None]
    best = optimum.action_values(filled, basic_total, armed, [roll for roll, _ in AFTER[()]], 2).max(-1)
    mean = best @ [chance for _, chance in AFTER[()]]
    np.testing.assert_allclose(mean, optimum.card_value(filled, basic_total, armed)[:, 0], rtol=0, atol=1e-9)


def test_keeping_is_worth_the_mean_of_the_best_after_it(optimum: Optimum, reached: Any) -> None:
    rows = np.random.default_rng(1).permutation(np.flatnonzero(reached.rolls_left))[:100]
    for row in rows:
        *card, dice, rolls_left = (column[row] for column in reached)
        values = optimum.action_values(*card, dice, rolls_left)
        best = dict(zip(ROLLS, optimum.action_values(*card, ROLLS, rolls_left - 1).max(-1), strict=True))
        for kept in KEEPS_OF[tuple(dice.tolist())]:
            mean = sum(chance * best[roll] for roll, chance in AFTER[kept])
            assert values[KEEP_NUMBER[kept]] == pytest.approx(mean, abs=1e-9), f"{card}, {dice}, keep {kept}"


def test_filling_is_worth_its_points_and_the_card_after_it(optimum: Optimum, reached: Any) -> None:
    game = Solitaire(reference.STANDARD)
    rows = np.random.default_rng(2).permutation(len(reached.filled))[:1000]
    values = optimum.action_values(*(column[rows] for column in reached))
    for row, worth in zip(rows, values, strict=True):
        filled, basic_total, armed, dice, rolls_left = (column[row].tolist() for column in reached)
        dice = tuple(dice)
        open_boxes = tuple(box for box in BOXES if not filled & bits(box))
        card = card_of(open_boxes, basic_total, kismet=65 if armed else 0)
        for box in reference.boxes_to_fill(dice, rolls_left, open_boxes, len(set(dice)) == 1 and armed):
            points, after = game.fill(card, dice, box)
            ahead = optimum.card_value(ALL_BOXES & ~bits(*after.open), after.basic_total, bool(after.kismet))
            assert worth[Box[box] + 210] == pytest.approx(points + ahead, abs=1e-9), f"{card}, {dice}, {box}"


def test_optimal_play_scores_the_expected_score_on_average(optimum: Optimum) -> None:
    games = 10_000
    batch = Batch(games, reward="final")
    seen = batch.deal_keys(np.random.default_rng(99).integers(2**63, size=games, dtype=np.uint64))
    actions = np.zeros(games, np.int64)
    while (going_on := ~batch.state.games["over"]).any():
        actions[going_on] = optimum.best_action(*decode(seen.observations[going_on]))
        seen = batch.step(actions)
        assert not seen.illegal.any()
    interval = 3.29 * seen.totals.std() / np.sqrt(games)  # 99.9 %
    assert abs(seen.totals.mean() - optimum.expected_score) < interval


# --- legality ---


@pytest.mark.parametrize("changes", COMBINATIONS, ids=named)
def test_only_what_the_mask_forbids_is_worth_minus_infinity(changes: Changes) -> None:
    rules = Rules(**changes)
    optimum = Optimum(rules, np.zeros(CardNumbers(tables_of(rules)).size))
    games = 600
    batch, rng = Batch(games, rules=rules, start="uniform"), np.random.default_rng(7)
    batch.deal_keys(rng.integers(2**63, size=games, dtype=np.uint64))
    state = batch.state
    state.games["roll"] = rng.integers(252, size=games)  # any dice can come with any number of rolls left,
    state.games["roll"][::3] = np.flatnonzero(np.ptp(ROLL_DICE, axis=1) == 0)[rng.integers(6, size=games)[::3]]
    state.games["rolls_left"] = rng.integers(3, size=games)
    card = state.cards[:, 0]
    kismet = card["filled"] & bits("KISMET") > 0
    if rules.second_kismet != "filled":  # and five alike may have come before
        card["armed"] |= (kismet if rules.second_kismet == "scored" else card["filled"] > 0) & (rng.random(games) < 0.5)
    seen = batch.look()
    values = optimum.action_values(*decode(seen.observations))
    wrong = np.argwhere(np.isfinite(values) != (seen.masks == 1))
    assert not wrong.size, f"{batch.position(wrong[0, 0])}: {KEEPS.text(int(wrong[0, 1]))} is {values[tuple(wrong[0])]}"


def test_legal_is_what_the_mask_says_in_every_decision_of_whole_games(optimum: Optimum) -> None:
    games, rng = 200, np.random.default_rng(8)
    batch = Batch(games)
    seen = batch.deal_keys(rng.integers(2**63, size=games, dtype=np.uint64))
    while (going_on := ~batch.state.games["over"]).any():
        values = optimum.action_values(*decode(seen.observations[going_on]))
        assert (np.isfinite(values) == seen.masks[going_on]).all()
        seen = batch.step((seen.masks * rng.random(seen.masks.shape)).argmax(1))


# --- totals, threads, combinations ---


def brute_force_totals() -> dict[int, set[int]]:
    totals: dict[int, set[int]] = {}
    for filled in range(64):
        faces = [face for face in range(1, 7) if filled >> (face - 1) & 1]
        totals[filled] = {
            sum(face * count for face, count in zip(faces, counts, strict=True))
            for counts in product(range(6), repeat=len(faces))
        }
    return totals


@pytest.mark.parametrize("cap", [0, 1, 63, 78, 104, 105])
def test_reachable_totals_are_all_sums_of_nought_to_five_of_each_face(cap: int) -> None:
    actual = reachable_totals(tables_of(Rules()), cap)
    assert actual.shape == (64, cap + 1)
    for filled, totals in brute_force_totals().items():
        assert set(np.flatnonzero(actual[filled])) == {min(total, cap) for total in totals}, f"boxes {filled:06b}"


def test_a_total_above_the_top_tier_is_worth_what_the_tier_is(optimum: Optimum) -> None:
    checked = 0
    for basic, totals in brute_force_totals().items():
        above = np.array(sorted(total for total in totals if total >= 78))
        if above.size:
            for filled in (basic, basic | bits("STRAIGHT", "KISMET"), ALL_BOXES & ~bits("YARBOROUGH") & ~63 | basic):
                values = optimum.card_value(filled, above, False)
                assert (values == optimum.card_value(filled, 78, False)).all()
                actions = optimum.action_values(filled, above, False, (1, 2, 6, 6, 6), 1)
                assert (actions == optimum.action_values(filled, 78, False, (1, 2, 6, 6, 6), 1)).all()
                checked += above.size
    assert checked > 300


def test_the_number_of_threads_changes_no_bit() -> None:
    tables, closed = tables_of(Rules()), bits("ACES", "TREYS", "FIVES", "STRAIGHT", "FLUSH", "FULL_HOUSE")
    alone = solve_values(tables, closed=closed, threads=1)
    assert (solve_values(tables, closed=closed, threads=3) == alone).all()


def test_the_share_done_rises_to_one() -> None:
    shares: list[float] = []
    solve_values(tables_of(Rules()), shares.append, closed=ALL_BOXES & ~bits("FLUSH", "SIXES"))
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.slow
def test_what_is_solved_anew_is_what_is_kept() -> None:
    assert (solve_values(tables_of(Rules())) == cached_values(Rules())).all()


@pytest.mark.slow
def test_every_combination_of_options_solves_and_more_freedom_never_costs() -> None:
    # Without bonus tiers a card has one value, not 79: every set of boxes is solved, in a fraction of the time.
    worth = {}
    for changes in COMBINATIONS:
        rules = Rules(**changes, bonus_tiers=())
        solved = Optimum(rules, solve_values(tables_of(rules)))
        worth[tuple(changes.values())] = solved.expected_score
        assert 200 < solved.expected_score < EXPECTED_SCORES[0][1]  # which has the bonus
    freer: dict[int, list[str]] = {  # by place in a combination, from strict to free
        0: ["only_if_nothing_scores", "after_third_roll", "any_time"],
        1: ["only_if_nothing_else", "any"],
        2: ["flat_50", "sum_plus_50"],
        3: ["natural", "full", "always"],
        4: ["scored", "rolled", "filled"],
    }
    for options, value in worth.items():
        for place, choices in freer.items():
            # a joker that scores in more boxes is less free where what scores forbids other boxes
            forbids = options[0] == "only_if_nothing_scores" or options[1] == "only_if_nothing_else"
            if place >= 3 and forbids:
                continue
            for choice in choices[choices.index(options[place]) + 1 :]:
                other = (*options[:place], choice, *options[place + 1 :])
                assert worth[other] >= value - 1e-9, f"{other} is worth less than {options}"
