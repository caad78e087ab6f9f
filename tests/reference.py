"""A second implementation of RULES.md, to hold `kismet_env` against. It shares no code with it.

Where the package counts faces and branches by box, this file builds for every box the SET of all ordered
rolls that fit it, by writing out the orders of its patterns, and asks whether the dice are in that set. Dice
are tuples in any order, boxes are names, and the rules are a plain dict with the fields of `Rules`.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations, product
from typing import Any

Dice = tuple[int, ...]

FACES = range(1, 7)
COLORS = {1: "black", 6: "black", 2: "red", 5: "red", 3: "green", 4: "green"}
BASIC = ("ACES", "DEUCES", "TREYS", "FOURS", "FIVES", "SIXES")
BOXES = (
    *BASIC,
    "TWO_PAIR_SAME_COLOR",
    "THREE_OF_A_KIND",
    "STRAIGHT",
    "FLUSH",
    "FULL_HOUSE",
    "FULL_HOUSE_SAME_COLOR",
    "FOUR_OF_A_KIND",
    "YARBOROUGH",
    "KISMET",
)
STANDARD: dict[str, Any] = {
    "zeros": "after_third_roll",
    "yarborough": "any",
    "kismet_score": "sum_plus_50",
    "joker": "full",
    "second_kismet": "scored",
    "second_kismet_penalty": True,
    "bonus_tiers": ((63, 35), (71, 55), (78, 75)),
    "straight_score": 30,
    "flush_score": 35,
}

ALL_ROLLS: tuple[Dice, ...] = tuple(product(FACES, repeat=5))


def _orders(patterns: Iterable[Dice]) -> frozenset[Dice]:
    return frozenset(order for pattern in set(patterns) for order in permutations(pattern))


def _same_color_pairs() -> Iterator[Dice]:
    for a, b, fifth in product(FACES, repeat=3):
        if COLORS[a] == COLORS[b]:  # a == b too: four of a kind are two pairs of one color
            yield (a, a, b, b, fifth)


FIVE_ALIKE = frozenset((face,) * 5 for face in FACES)
FLUSHES = frozenset(
    roll
    for color in ("black", "red", "green")
    for roll in product([face for face in FACES if COLORS[face] == color], repeat=5)
)
FULL_HOUSES = _orders((a, a, a, b, b) for a, b in permutations(FACES, 2))
FITTING: dict[str, frozenset[Dice]] = {
    "TWO_PAIR_SAME_COLOR": _orders(_same_color_pairs()),
    "THREE_OF_A_KIND": _orders((a, a, a, x, y) for a, x, y in product(FACES, repeat=3)),
    "STRAIGHT": _orders([(1, 2, 3, 4, 5), (2, 3, 4, 5, 6)]),
    "FLUSH": FLUSHES,
    "FULL_HOUSE": FULL_HOUSES,
    "FULL_HOUSE_SAME_COLOR": FULL_HOUSES & FLUSHES,
    "FOUR_OF_A_KIND": _orders((a, a, a, a, x) for a, x in product(FACES, repeat=2)),
    "YARBOROUGH": frozenset(ALL_ROLLS),
    "KISMET": FIVE_ALIKE,
}


def score(dice: Dice, box: str, rules: Mapping[str, Any] = STANDARD, joker: bool = False) -> int:
    """Return the points of `dice` in `box`; `joker` says that they are a second Kismet."""
    if box in BASIC:
        return sum(die for die in dice if BASIC[die - 1] == box)
    fitting = FITTING[box]
    if box.startswith("FULL_HOUSE") and (rules["joker"] == "always" or (rules["joker"] == "full" and joker)):
        fitting = fitting | FIVE_ALIKE
    if dice not in fitting:
        return 0
    if box == "STRAIGHT":
        return int(rules["straight_score"])
    if box == "FLUSH":
        return int(rules["flush_score"])
    if box == "KISMET" and rules["kismet_score"] == "flat_50":
        return 50
    extra = {"FULL_HOUSE": 15, "FULL_HOUSE_SAME_COLOR": 20, "FOUR_OF_A_KIND": 25, "KISMET": 50}
    return sum(dice) + extra.get(box, 0)


def bonus(basic_total: int, rules: Mapping[str, Any] = STANDARD) -> int:
    """Return the bonus of six filled Basic boxes."""
    return max([0] + [points for needed, points in rules["bonus_tiers"] if basic_total >= needed])


def second_kismet(
    dice: Dice, kismet_box: int | None, kismets_rolled: int, rules: Mapping[str, Any] = STANDARD
) -> tuple[bool, bool]:
    """Return (joker, penalty) for a turn that ends with `dice`.

    `kismet_box` is what the player's Kismet box holds, None while it is open; `kismets_rolled` counts his
    earlier turns that ended with five alike.
    """
    if dice not in FIVE_ALIKE:
        return False, False
    holds_points, filled, again = bool(kismet_box), kismet_box is not None, kismets_rolled > 0
    joker, penalty = {
        "scored": (holds_points, holds_points),
        "filled": (filled, filled),
        "rolled": (again and filled, again),
    }[rules["second_kismet"]]
    return joker, penalty and rules["second_kismet_penalty"]


def boxes_to_fill(
    dice: Dice, rolls_left: int, open_boxes: Iterable[str], joker: bool, rules: Mapping[str, Any] = STANDARD
) -> set[str]:
    """Return the boxes that may be filled now."""
    open_set = set(open_boxes)
    scoring = {box for box in open_set if score(dice, box, rules, joker) > 0}
    zeros = open_set - scoring
    if rules["zeros"] == "only_if_nothing_scores" and scoring:
        zeros = set()
    if rules["zeros"] != "any_time" and rolls_left > 0:
        zeros = set()
    if rules["yarborough"] == "only_if_nothing_else" and scoring - {"YARBOROUGH"}:
        scoring.discard("YARBOROUGH")
    return scoring | zeros
