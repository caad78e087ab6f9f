"""The score sheet in plain Python: the boxes, the rules and what dice are worth.

Effects of one box for one roll live here and nowhere else; what happens across boxes and players is the engine's.
Every branch names its clause of RULES.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from kismet_env.dice import COLOR_OF_FACE, NUM_DICE, NUM_FACES, roll_index


class Box(IntEnum):
    """The fifteen boxes in the order of the score sheet, which is also "nearest the top" (RULES.md 6.3)."""

    ACES = 0
    DEUCES = 1
    TREYS = 2
    FOURS = 3
    FIVES = 4
    SIXES = 5
    TWO_PAIR_SAME_COLOR = 6
    THREE_OF_A_KIND = 7
    STRAIGHT = 8
    FLUSH = 9
    FULL_HOUSE = 10
    FULL_HOUSE_SAME_COLOR = 11
    FOUR_OF_A_KIND = 12
    YARBOROUGH = 13
    KISMET = 14

    @property
    def title(self) -> str:
        """The name printed on the sheet."""
        return BOX_TITLES[self]


BOX_TITLES = (
    "Aces", "Deuces", "Treys", "Fours", "Fives", "Sixes",
    "Two Pair Same Color", "Three of a Kind", "Straight", "Flush", "Full House", "Full House Same Color",
    "Four of a Kind", "Yarborough", "Kismet",
)  # fmt: skip
NUM_BOXES = len(Box)
NUM_BASIC_BOXES = NUM_FACES
BASIC_BOXES = tuple(Box)[:NUM_BASIC_BOXES]
KISMET_BOXES = tuple(Box)[NUM_BASIC_BOXES:]

ZEROS = ("after_third_roll", "any_time", "only_if_nothing_scores")
YARBOROUGH = ("any", "only_if_nothing_else")
KISMET_SCORE = ("sum_plus_50", "flat_50")
JOKER = ("full", "natural", "always")
SECOND_KISMET = ("scored", "filled", "rolled")

_CHOICES = {
    "zeros": ZEROS,
    "yarborough": YARBOROUGH,
    "kismet_score": KISMET_SCORE,
    "joker": JOKER,
    "second_kismet": SECOND_KISMET,
}
MOST_TIERS = 8
_MOST_POINTS = 500  # for one box or bonus: keeps every total far inside int16


@dataclass(frozen=True)
class Rules:
    """A set of rules; `Rules()` is the standard game. House rules: `dataclasses.replace(Rules(), joker="natural")`.

    Frozen and hashable. Raises ValueError for a value that a field cannot take, naming the valid ones.
    """

    zeros: str = "after_third_roll"
    """When a box may get nothing: after_third_roll | any_time | only_if_nothing_scores (RULES.md 4)."""
    yarborough: str = "any"
    """When Yarborough may be filled: any time | only_if_nothing_else open scores with these dice (RULES.md 3.9)."""
    kismet_score: str = "sum_plus_50"
    """What a Kismet is worth: sum_plus_50 | flat_50 (RULES.md 3.10)."""
    joker: str = "full"
    """Five alike as a full house: full (when it is a second Kismet) | natural (never) | always (RULES.md 6.2)."""
    second_kismet: str = "scored"
    """What makes five alike a second Kismet: the Kismet box holds points ("scored"), is "filled", or five alike
    were "rolled" and entered in any box before (RULES.md 6.1)."""
    second_kismet_penalty: bool = True
    """Whether a second Kismet writes zeros into the opponents' cards and costs them a turn (RULES.md 6.3, 6.4)."""
    bonus_tiers: tuple[tuple[int, int], ...] = ((63, 35), (71, 55), (78, 75))
    """(Basic total, bonus points) of up to 8 tiers, ascending; the highest one reached is paid (RULES.md 5)."""
    straight_score: int = 30
    """Points of a straight, 1..500 (RULES.md 3.4)."""
    flush_score: int = 35
    """Points of a flush, 1..500 (RULES.md 3.5)."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"rules: {name}={getattr(self, name)!r} is not one of {', '.join(choices)}")
        if not isinstance(self.second_kismet_penalty, bool):
            raise ValueError(f"rules: second_kismet_penalty={self.second_kismet_penalty!r} is not True or False")
        for name in ("straight_score", "flush_score"):
            if not _is_whole(getattr(self, name), 1, _MOST_POINTS):
                raise ValueError(
                    f"rules: {name}={getattr(self, name)!r} is not a whole number from 1 to {_MOST_POINTS}"
                )
        object.__setattr__(self, "bonus_tiers", _checked_tiers(self.bonus_tiers))

    @classmethod
    def of(cls, value: Rules | Mapping[str, Any] | str | None) -> Rules:
        """Return `value` as Rules: itself, a mapping of fields (lists become tuples), a name of SUITE, or None.

        None is the standard game. Raises ValueError for an unknown name, field or value, naming the valid ones.
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            if value not in SUITE:
                raise ValueError(f"rules {value!r} are not one of the suite: {', '.join(SUITE)}")
            return SUITE[value]
        if not isinstance(value, Mapping):
            raise ValueError(f"rules={value!r} is not a Rules, a mapping of its fields, a name of the suite or None")
        valid = [field.name for field in fields(cls)]
        for name in value:
            if name not in valid:
                raise ValueError(f"rules: unknown field {name!r}; fields are {', '.join(valid)}")
        return cls(**value)


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _checked_tiers(tiers: Any) -> tuple[tuple[int, int], ...]:
    message = (
        f"rules: bonus_tiers={tiers!r} are not at most {MOST_TIERS} pairs"
        f" (Basic total 1..{MAX_BASIC_TOTAL}, bonus 1..{_MOST_POINTS}), both ascending"
    )
    try:
        pairs = tuple((total, bonus) for total, bonus in tiers)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if len(pairs) > MOST_TIERS:
        raise ValueError(message)
    last = (0, 0)
    for total, bonus in pairs:
        whole = _is_whole(total, 1, MAX_BASIC_TOTAL) and _is_whole(bonus, 1, _MOST_POINTS)
        if not (whole and total > last[0] and bonus > last[1]):
            raise ValueError(message)
        last = (total, bonus)
    return pairs


MAX_BASIC_TOTAL = NUM_DICE * sum(range(1, NUM_FACES + 1))
"""The most that six Basic boxes can hold: five of each face."""


def score(dice: Sequence[int], box: Box | int, rules: Rules = Rules(), joker: bool = False) -> int:
    """Return the points that five `dice` (faces 1..6, any order) are worth in `box`, open or not.

    `joker` says that these dice are a second Kismet (RULES.md 6.1). Raises ValueError for impossible dice.
    """
    roll_index(dice)  # refuses what is not a roll
    counts = [list(dice).count(face) for face in range(1, NUM_FACES + 1)]
    most, total = max(counts), sum(dice)
    one_color = len({COLOR_OF_FACE[face - 1] for face in dice}) == 1
    full_house = sorted(counts)[-2:] == [2, 3]
    if most == NUM_DICE:  # RULES.md 6.2
        full_house = rules.joker == "always" or (rules.joker == "full" and joker)
    match Box(box):
        case Box.TWO_PAIR_SAME_COLOR:  # RULES.md 3.2: faces of one colour sum to seven; four alike are two pairs
            paired = any(counts[face] >= 2 and counts[NUM_FACES - 1 - face] >= 2 for face in range(NUM_FACES // 2))
            return total if paired or most >= 4 else 0
        case Box.THREE_OF_A_KIND:  # RULES.md 3.3
            return total if most >= 3 else 0
        case Box.STRAIGHT:  # RULES.md 3.4
            return rules.straight_score if most == 1 and max(dice) - min(dice) == NUM_DICE - 1 else 0
        case Box.FLUSH:  # RULES.md 3.5
            return rules.flush_score if one_color else 0
        case Box.FULL_HOUSE:  # RULES.md 3.6
            return total + 15 if full_house else 0
        case Box.FULL_HOUSE_SAME_COLOR:  # RULES.md 3.7
            return total + 20 if full_house and one_color else 0
        case Box.FOUR_OF_A_KIND:  # RULES.md 3.8
            return total + 25 if most >= 4 else 0
        case Box.YARBOROUGH:  # RULES.md 3.9
            return total
        case Box.KISMET:  # RULES.md 3.10
            if most < NUM_DICE:
                return 0
            return 50 if rules.kismet_score == "flat_50" else total + 50
        case basic:  # RULES.md 3.1
            face = basic + 1
            return face * counts[basic]


def basic_bonus(basic_total: int, rules: Rules = Rules()) -> int:
    """Return the bonus for six filled Basic boxes that hold `basic_total` points (RULES.md 5)."""
    return max((bonus for total, bonus in rules.bonus_tiers if basic_total >= total), default=0)


SUITE: dict[str, Rules] = {
    "long_straight": Rules(straight_score=60),
    "royal_flush": Rules(flush_score=100),
    "one_bonus": Rules(bonus_tiers=((63, 150),)),
    "no_bonus": Rules(bonus_tiers=()),
    "strict": Rules(zeros="only_if_nothing_scores", yarborough="only_if_nothing_else", kismet_score="flat_50"),
}
"""Five named rules that ask for different play, for learners that are to adapt or to generalise:

* long_straight: a straight is worth 60, twice as much: worth breaking pairs for;
* royal_flush: a flush is worth 100: one colour before all else;
* one_bonus: the only bonus is 150 points at 63: the Basic Section decides the game;
* no_bonus: nothing of that kind: low Basic boxes become the place for bad rolls;
* strict: the strict readings of the sources: no free zeros, Yarborough only in need, a flat Kismet.
"""
