"""The score sheet: printed examples row by row, then every roll, box and variant against `reference`."""

import copy
import dataclasses
import json
import pickle
import random
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.dice import ROLL_DICE, roll_index
from kismet_env.rules import Box, Rules, basic_bonus, score
from kismet_env.tables import box_points, max_total, tables_of

CASES = json.loads((Path(__file__).parent / "rules_cases.json").read_text())
VARIANT_CASES = json.loads((Path(__file__).parent / "variant_cases.json").read_text())
CHOICES: dict[str, tuple[Any, ...]] = {
    "zeros": ("after_third_roll", "any_time", "only_if_nothing_scores"),
    "yarborough": ("any", "only_if_nothing_else"),
    "kismet_score": ("sum_plus_50", "flat_50"),
    "joker": ("full", "natural", "always"),
    "second_kismet": ("scored", "filled", "rolled"),
    "second_kismet_penalty": (True, False),
    "straight_score": (30, 40),
    "flush_score": (35, 45),
}
SCORING_FIELDS = ("kismet_score", "joker", "straight_score", "flush_score")
NUM_ROLLING = actions_of("keeps").num_rolls
# The fields that change the points of one box each, so that one pass over all rolls tries them all.
OTHER_POINTS = {"kismet_score": "flat_50", "straight_score": 40, "flush_score": 45}
SORTED_ROLLS = list(combinations_with_replacement(range(1, 7), 5))
# What a filled box holds where it does not matter what.
ORDINARY_POINTS = {
    "ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15, "SIXES": 18,
    "TWO_PAIR_SAME_COLOR": 20, "THREE_OF_A_KIND": 20, "STRAIGHT": 30, "FLUSH": 35,
    "FULL_HOUSE": 28, "FULL_HOUSE_SAME_COLOR": 36, "FOUR_OF_A_KIND": 46, "YARBOROUGH": 20,
}  # fmt: skip


def masks_at(positions: list[dict[str, Any]], rules: dict[str, Any]) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Put a game into each position: the batch, its masks of rolling (N, 210) and of boxes (N, 15)."""
    batch = Batch(len(positions), rules=rules)
    masks = batch.deal_positions(positions).masks
    return batch, masks[:, :NUM_ROLLING], masks[:, NUM_ROLLING:]


def a_card(open_boxes: set[str], kismet_box: str, rules: dict[str, Any]) -> dict[str, int]:
    """Return a card with these boxes open; a filled Kismet box holds points if `kismet_box` is "scored"."""
    points = {
        **ORDINARY_POINTS,
        "STRAIGHT": rules.get("straight_score", 30),
        "FLUSH": rules.get("flush_score", 35),
    }
    scored = 50 if rules.get("kismet_score") == "flat_50" else 65
    points["KISMET"] = scored if kismet_box == "scored" else 0
    return {box: points[box] for box in reference.BOXES if box not in open_boxes}


def case_id(case: dict[str, Any]) -> str:
    changed = "-".join(str(value) for value in case.get("rules", {}).values())
    dice = "".join(map(str, case["dice"]))
    return "-".join(filter(None, [dice, case["box"], case["kismet_box"], str(case["rolls_left"]), changed]))


@pytest.mark.parametrize("case", CASES + VARIANT_CASES["cases"], ids=case_id)
def test_printed_example(case: dict[str, Any]) -> None:
    """One row: the points of `score`, whether the box may be filled, the points the engine writes down."""
    rules = case.get("rules", {})
    dice, box = tuple(case["dice"]), Box[case["box"]]
    open_boxes = set(case.get("open_boxes") or reference.BOXES)
    if case["kismet_box"] != "open":
        open_boxes.discard("KISMET")
    card = a_card(open_boxes, case["kismet_box"], rules)
    joker, _ = reference.second_kismet(dice, card.get("KISMET"), 0, {**reference.STANDARD, **rules})
    assert case.get("joker", joker) == joker, f"the row contradicts itself: {case}"
    what = f"dice {dice}, box {box.name}, Kismet box {case['kismet_box']}, rules {rules} [{case['source']}]"

    if case["expect"] is not None:
        actual = score(dice, box, Rules.of(rules), joker=joker)
        assert actual == case["expect"], f"{what}: expected {case['expect']}, actual {actual}"

    batch, _, boxes = masks_at([{"cards": [card], "dice": list(dice), "rolls_left": case["rolls_left"]}], rules)
    legal = bool(boxes[0, box])
    assert legal == case["legal"], (
        f"{what}, rolls left {case['rolls_left']}: expected legal={case['legal']}, is {legal}"
    )
    if legal:
        batch.step(np.array([NUM_ROLLING + box]))
        entered = int(batch.state.cards["points"][0, 0, box])
        assert entered == case["expect"], f"{what}: expected {case['expect']} on the card, actual {entered}"


@pytest.mark.parametrize("joker", [False, True], ids=["first", "joker"])
@pytest.mark.parametrize("changed", [{}, {"joker": "natural"}, {"joker": "always"}, OTHER_POINTS], ids=str)
def test_every_ordered_roll_scores_as_in_the_reference(changed: dict[str, Any], joker: bool) -> None:
    rules, fields = Rules.of(changed), {**reference.STANDARD, **changed}
    for dice, box in product(reference.ALL_ROLLS, Box):
        expected, actual = reference.score(dice, box.name, fields, joker), score(dice, box, rules, joker)
        assert actual == expected, f"dice {dice}, box {box.name}: expected {expected}, actual {actual}"


def test_tables_hold_the_points_of_the_reference_for_every_variant() -> None:
    for values in product(*(CHOICES[name] for name in SCORING_FIELDS)):
        changed = dict(zip(SCORING_FIELDS, values, strict=True))
        fields = {**reference.STANDARD, **changed}
        expected = [
            [
                [reference.score(tuple(dice), box, fields, joker) for box in reference.BOXES]
                for dice in ROLL_DICE.tolist()
            ]
            for joker in (False, True)
        ]
        points = box_points(Rules.of(changed))
        for joker, roll, box in np.argwhere(points != np.array(expected)).tolist():
            pytest.fail(
                f"rules {changed}, joker {bool(joker)}, dice {tuple(ROLL_DICE[roll])}, box {Box(box).name}: "
                f"expected {expected[joker][roll][box]}, actual {points[joker, roll, box]}"
            )


def test_order_of_dice_and_sequence_type_do_not_matter() -> None:
    assert score([4, 1, 5, 2, 3], Box.STRAIGHT) == score((5, 4, 3, 2, 1), Box.STRAIGHT) == 30
    assert score(np.array([6, 1, 6, 1, 6]), Box.FULL_HOUSE_SAME_COLOR) == 40


@pytest.mark.parametrize("dice", [(1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 4), (1, 2, 3, 4, 7)], ids=str)
def test_impossible_dice_are_refused(dice: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"dice|die"):
        score(dice, Box.YARBOROUGH)


CHECKSUMS = {  # RULES.md 3.12: rolls that score, sum and highest of their points
    ("ACES", False): (4651, 6480, 5),
    ("DEUCES", False): (4651, 12960, 10),
    ("TREYS", False): (4651, 19440, 15),
    ("FOURS", False): (4651, 25920, 20),
    ("FIVES", False): (4651, 32400, 25),
    ("SIXES", False): (4651, 38880, 30),
    ("TWO_PAIR_SAME_COLOR", False): (576, 10080, 30),
    ("THREE_OF_A_KIND", False): (1656, 28980, 30),
    ("STRAIGHT", False): (240, 7200, 30),
    ("FLUSH", False): (96, 3360, 35),
    ("FULL_HOUSE", False): (300, 9750, 43),
    ("FULL_HOUSE", True): (306, 9945, 45),
    ("FULL_HOUSE_SAME_COLOR", False): (60, 2250, 40),
    ("FULL_HOUSE_SAME_COLOR", True): (66, 2475, 50),
    ("FOUR_OF_A_KIND", False): (156, 6630, 55),
    ("YARBOROUGH", False): (7776, 136080, 30),
    ("KISMET", False): (6, 405, 80),
}


@pytest.mark.parametrize(("box", "joker"), CHECKSUMS, ids=str)
def test_checksums_of_a_box(box: str, joker: bool) -> None:
    points = [score(dice, Box[box], joker=joker) for dice in reference.ALL_ROLLS]
    assert (sum(p > 0 for p in points), sum(points), max(points)) == CHECKSUMS[box, joker]
    if (box, True) not in CHECKSUMS:
        assert points == [score(dice, Box[box], joker=True) for dice in reference.ALL_ROLLS], f"the joker changes {box}"


# RULES.md 3.11 for the Kismet Section, box by box from Two Pair Same Color to Kismet.
FITS = {
    "five alike": ([(1, 1, 1, 1, 1), (5, 5, 5, 5, 5)], False, "yy-y--yyy"),
    "five alike as joker": ([(1, 1, 1, 1, 1), (5, 5, 5, 5, 5)], True, "yy-yyyyyy"),
    "4+1, one color": ([(1, 1, 1, 1, 6), (2, 5, 5, 5, 5)], False, "yy-y--yy-"),
    "4+1, two colors": ([(4, 5, 5, 5, 5), (1, 1, 1, 1, 2)], False, "yy----yy-"),
    "3+2, one color": ([(1, 1, 6, 6, 6), (3, 3, 3, 4, 4)], False, "yy-yyy-y-"),
    "3+2, two colors": ([(1, 1, 1, 2, 2), (4, 4, 6, 6, 6)], False, "-y--y--y-"),
    "3+1+1": ([(1, 1, 1, 5, 6), (2, 3, 5, 5, 5)], False, "-y-----y-"),
    "2+2+1, pairs of one color": ([(1, 1, 3, 6, 6), (1, 2, 2, 5, 5)], False, "y------y-"),
    "2+2+1, pairs of two colors": ([(2, 2, 3, 3, 5), (1, 1, 5, 5, 6)], False, "-------y-"),
    "straight": ([(1, 2, 3, 4, 5), (2, 3, 4, 5, 6)], False, "--y----y-"),
    "any other": ([(1, 3, 4, 5, 6), (1, 1, 2, 4, 6)], False, "-------y-"),
}


@pytest.mark.parametrize("kind", FITS)
def test_which_roll_fits_which_box(kind: str) -> None:
    rolls, joker, expected = FITS[kind]
    for dice in rolls:
        actual = "".join("y" if score(dice, box, joker=joker) else "-" for box in list(Box)[Box.TWO_PAIR_SAME_COLOR :])
        assert actual == expected, f"dice {dice}"


def test_highest_total() -> None:
    best = {box: max(score(dice, box, joker=True) for dice in SORTED_ROLLS) for box in Box}
    basic_total = sum(best[box] for box in Box if box <= Box.SIXES)
    assert basic_total == 105
    assert sum(best.values()) + basic_bonus(basic_total) == max_total(Rules()) == 565
    assert max_total(Rules(joker="natural")) == 553


# Bonus


@pytest.mark.parametrize("case", VARIANT_CASES["bonus"], ids=lambda case: str(case["basic"]))
def test_bonus_row(case: dict[str, int]) -> None:
    assert basic_bonus(case["basic"]) == case["bonus"]


@pytest.mark.parametrize("tiers", [((63, 35), (71, 55), (78, 75)), ((63, 35),), ((1, 1), (105, 500)), ()], ids=str)
def test_bonus_of_every_total(tiers: tuple[tuple[int, int], ...]) -> None:
    rules, fields = Rules(bonus_tiers=tiers), {**reference.STANDARD, "bonus_tiers": tiers}
    for total in range(106):
        expected, actual = reference.bonus(total, fields), basic_bonus(total, rules)
        assert actual == expected, f"Basic total {total}: expected {expected}, actual {actual}"


FIVE_BASIC_BOXES = {60: (6, 9, 12, 15, 18), 67: (8, 9, 12, 20, 18), 74: (8, 12, 16, 20, 18)}  # by their total


@pytest.mark.parametrize(
    ("five_boxes", "aces", "bonus"),
    [(60, 2, 0), (60, 3, 35), (67, 3, 35), (67, 4, 55), (74, 3, 55), (74, 4, 75)],
)
def test_bonus_is_paid_with_the_sixth_basic_box(five_boxes: int, aces: int, bonus: int) -> None:
    card = dict(zip(reference.BASIC[1:], FIVE_BASIC_BOXES[five_boxes], strict=True))
    batch, _, _ = masks_at([{"cards": [card], "dice": [1] * aces + [3] * (5 - aces), "rolls_left": 0}], {})
    assert int(batch.state.cards["total"][0, 0]) == five_boxes
    batch.step(np.array([NUM_ROLLING + Box.ACES]))
    assert int(batch.state.cards["total"][0, 0]) == five_boxes + aces + bonus


# Which boxes may be filled


def cards_to_try() -> list[tuple[set[str], str, int]]:
    """Return (open boxes, Kismet box, kismets_rolled): boxes alone, with Yarborough, all, random sets."""
    rng = random.Random(0)
    sets = (
        [{box} for box in reference.BOXES] + [{box, "YARBOROUGH"} for box in reference.BOXES] + [set(reference.BOXES)]
    )
    sets += [set(rng.sample(reference.BOXES, rng.randint(2, 14))) for _ in range(80)]
    cards = []
    for open_boxes in sets:
        kismet_box = "open" if "KISMET" in open_boxes else rng.choice(["zero", "scored"])
        # An earlier five alike needs a filled box that can have taken it.
        earlier = 1 if kismet_box == "scored" else rng.randint(0, int("FLUSH" not in open_boxes))
        cards.append((open_boxes, kismet_box, earlier))
    rng.shuffle(cards)
    return cards


def masks_of_every_roll(cards: list[dict[str, int]], kismets: list[int], rules: dict[str, Any]) -> np.ndarray:
    """Return the masks of each card with all dice and rolls left: [card, rolls_left, roll, action]."""
    positions = [{"cards": [card], "kismets_rolled": [count]} for card, count in zip(cards, kismets, strict=True)]
    one_each = Batch(len(cards), rules=rules)
    one_each.deal_positions(positions)
    shape = (len(cards), 3, len(SORTED_ROLLS))
    batch = Batch(int(np.prod(shape)), rules=rules)
    for array, of_card in zip(batch.state, one_each.state, strict=True):
        array[:] = np.repeat(of_card, 3 * len(SORTED_ROLLS), axis=0)
    batch.state.games["rolls_left"] = np.broadcast_to(np.arange(3)[:, None], shape).ravel()
    batch.state.games["roll"] = np.broadcast_to([roll_index(dice) for dice in SORTED_ROLLS], shape).ravel()
    return batch.look().masks.reshape(*shape, -1)


@pytest.mark.parametrize("yarborough", CHOICES["yarborough"])
@pytest.mark.parametrize("zeros", CHOICES["zeros"])
def test_boxes_to_fill_are_those_of_the_reference(zeros: str, yarborough: str) -> None:
    """All dice and rolls left on many cards, shared out to the rules of joker and second Kismet."""
    cards = cards_to_try()
    rest_of_rules = list(product(CHOICES["joker"], CHOICES["second_kismet"]))
    for share, (joker_rule, second_kismet) in enumerate(rest_of_rules):
        rules = {
            "zeros": zeros,
            "yarborough": yarborough,
            "joker": joker_rule,
            "second_kismet": second_kismet,
        }
        fields = {**reference.STANDARD, **rules}
        tried = cards[share :: len(rest_of_rules)]
        filled = [a_card(open_boxes, kismet_box, rules) for open_boxes, kismet_box, _ in tried]
        masks = masks_of_every_roll(filled, [earlier for _, _, earlier in tried], rules)
        assert (masks[:, 0, :, :NUM_ROLLING] == 0).all(), "a roll after the third"
        assert (masks[:, 1:, :, :NUM_ROLLING].any(-1)).all(), "no roll although one is left"
        for card, (open_boxes, _, earlier) in enumerate(tried):
            for number, dice in enumerate(SORTED_ROLLS):
                joker, _ = reference.second_kismet(dice, filled[card].get("KISMET"), earlier, fields)
                for rolls_left in range(3):
                    expected = reference.boxes_to_fill(dice, rolls_left, open_boxes, joker, fields)
                    boxes = masks[card, rolls_left, number, NUM_ROLLING:]
                    actual = {reference.BOXES[box] for box in np.flatnonzero(boxes)}
                    what = (
                        f"dice {dice}, rolls left {rolls_left}, card {filled[card]}, "
                        f"{earlier} five alike before, rules {rules}"
                    )
                    assert actual == expected, f"{what}: expected {sorted(expected)}, actual {sorted(actual)}"
                    assert expected or rolls_left, f"{what}: nothing is legal"


# Rules as a value

EVERY_FIELD: dict[str, Any] = {name: values[-1] for name, values in CHOICES.items()} | {"bonus_tiers": ((60, 20),)}


def test_defaults_are_the_standard_game() -> None:
    assert dataclasses.asdict(Rules()) == reference.STANDARD
    assert Rules.of(None) == Rules() == Rules.of({})


def test_rules_of_takes_rules_mappings_and_none() -> None:
    rules = Rules(joker="natural")
    assert Rules.of(rules) is rules
    assert Rules.of({"joker": "natural"}) == rules
    assert Rules.of({"bonus_tiers": [[63, 35], [71, 55], [78, 75]]}) == Rules()


@pytest.mark.parametrize("name", [name for name, values in CHOICES.items() if isinstance(values[0], str)])
def test_unknown_value_names_the_valid_ones(name: str) -> None:
    for make in (
        lambda: Rules.of({name: "nonsense"}),
        lambda: dataclasses.replace(Rules(), **{name: "nonsense"}),
    ):
        with pytest.raises(ValueError, match=name) as error:
            make()
        for value in (*CHOICES[name], "nonsense"):
            assert value in str(error.value)


def test_unknown_field_names_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="jokers") as error:
        Rules.of({"jokers": "full"})
    for name in reference.STANDARD:
        assert name in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"straight_score": "30"},
        {"straight_score": 30.5},
        {"straight_score": -1},
        {"flush_score": None},
        {"flush_score": True},
        {"second_kismet_penalty": "yes"},
        {"second_kismet_penalty": None},
        {"bonus_tiers": 35},
        {"bonus_tiers": [63, 35]},
        {"bonus_tiers": [[63, 35, 1]]},
        {"bonus_tiers": [[71, 55], [63, 35]]},
        {"bonus_tiers": [["63", "35"]]},
        {"joker": ["full"]},
        {"zeros": None},
    ],
    ids=str,
)
def test_value_of_the_wrong_kind_is_a_value_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Rules.of(wrong)


@pytest.mark.parametrize("wrong", ["natural", 3, [("joker", "natural")]], ids=str)
def test_what_is_no_rules_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match="rules"):
        Rules.of(wrong)


@pytest.mark.parametrize("changed", [{}, EVERY_FIELD], ids=["standard", "every field changed"])
def test_rules_survive_json_pickle_and_copy(changed: dict[str, Any]) -> None:
    rules = Rules.of(changed)
    for again in (
        Rules.of(json.loads(json.dumps(dataclasses.asdict(rules)))),
        pickle.loads(pickle.dumps(rules)),
        copy.copy(rules),
        copy.deepcopy(rules),
        dataclasses.replace(rules),
    ):
        assert again == rules
        assert hash(again) == hash(rules)
    assert (rules == Rules()) == (not changed)


def test_rules_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules().joker = "natural"  # type: ignore[misc]


def test_equal_rules_share_their_tables() -> None:
    assert tables_of(Rules.of({"joker": "natural"})) is tables_of(Rules(joker="natural"))
