"""The solitaire game solved a second time, by trying everything. It shares no code with `kismet_env`.

Cards are tuples of box names, dice are sorted tuples of faces, chance is a count of ordered throws, and what is legal
and what it brings comes from `reference`. Good for cards with up to three or four open boxes.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations, combinations_with_replacement, product
from typing import Any, NamedTuple

import reference
from reference import BASIC, BOXES, FACES, Dice

ROLLS: tuple[Dice, ...] = tuple(combinations_with_replacement(FACES, 5))
KEEPS_OF: dict[Dice, frozenset[Dice]] = {
    roll: frozenset(kept for size in range(5) for kept in combinations(roll, size)) for roll in ROLLS
}


def _after(kept: Dice) -> list[tuple[Dice, float]]:
    throws = Counter(tuple(sorted(kept + thrown)) for thrown in product(FACES, repeat=5 - len(kept)))
    return [(roll, ways / throws.total()) for roll, ways in throws.items()]


AFTER: dict[Dice, list[tuple[Dice, float]]] = {
    kept: _after(kept) for size in range(5) for kept in combinations_with_replacement(FACES, size)
}
"""For each keep, every roll that can follow and its probability."""


class Card(NamedTuple):
    """What matters of a card."""

    open: tuple[str, ...]  # in the order of the sheet
    basic_total: int
    kismet: int | None  # what the Kismet box holds, None while it is open
    kismets_rolled: int = 0  # earlier turns that ended with five alike


class Turn(NamedTuple):
    """What one turn on a card is worth, by rolls left: after a roll, and after keeping dice."""

    rolls: list[dict[Dice, float]]
    keeps: list[dict[Dice, float]]


class Solitaire:
    """The game under `rules`, every field given as in `reference`."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules = rules
        self._turns: dict[Card, Turn] = {}

    def value(self, card: Card) -> float:
        """Return the expected points still to come before a roll of all five dice."""
        if not card.open:
            return 0.0
        first = self.turn(card).rolls[2]
        return sum(chance * first[roll] for roll, chance in AFTER[()])

    def fill(self, card: Card, dice: Dice, box: str) -> tuple[int, Card]:
        """Return the points, bonus included, that `dice` bring in `box`, and the card after it."""
        joker, _ = reference.second_kismet(dice, card.kismet, card.kismets_rolled, self.rules)
        points = reference.score(dice, box, self.rules, joker)
        total = card.basic_total + (points if box in BASIC else 0)
        still_open = tuple(other for other in card.open if other != box)
        completed = box in BASIC and not set(BASIC) & set(still_open)
        bonus = reference.bonus(total, self.rules) if completed else 0
        kismet = min(points, 1) if box == "KISMET" else card.kismet  # whether it holds points is all that matters
        kismets_rolled = min(card.kismets_rolled + (len(set(dice)) == 1), 1)
        return points + bonus, Card(still_open, total, kismet, kismets_rolled)

    def boxes(self, card: Card, dice: Dice, rolls_left: int) -> dict[str, float]:
        """Return what each legal box is worth with `dice`."""
        joker, _ = reference.second_kismet(dice, card.kismet, card.kismets_rolled, self.rules)
        worth = {}
        for box in reference.boxes_to_fill(dice, rolls_left, card.open, joker, self.rules):
            points, after = self.fill(card, dice, box)
            worth[box] = points + self.value(after)
        return worth

    def turn(self, card: Card) -> Turn:
        """Return the values of one turn, worked out backwards."""
        if card not in self._turns:
            turn = Turn([{roll: max(self.boxes(card, roll, 0).values()) for roll in ROLLS}], [{}])
            early = {roll: max(self.boxes(card, roll, 1).values(), default=float("-inf")) for roll in ROLLS}
            for _ in range(2):
                ahead = turn.rolls[-1]
                keeps = {kept: sum(chance * ahead[roll] for roll, chance in AFTER[kept]) for kept in AFTER}
                turn.keeps.append(keeps)
                turn.rolls.append({roll: max(early[roll], *map(keeps.__getitem__, KEEPS_OF[roll])) for roll in ROLLS})
            self._turns[card] = turn
        return self._turns[card]

    def actions(self, card: Card, dice: Dice, rolls_left: int) -> dict[Dice | str, float]:
        """Return what each legal action is worth: dice that are kept, or a box that is filled."""
        worth: dict[Dice | str, float] = dict(self.boxes(card, dice, rolls_left))
        if rolls_left:
            keeps = self.turn(card).keeps[rolls_left]
            worth |= {kept: keeps[kept] for kept in KEEPS_OF[dice]}
        return worth


def card_of(open_boxes: tuple[str, ...], basic_total: int = 0, *, kismet: int | None = 0, rolled: int = 0) -> Card:
    """Return a card with these open boxes; its Kismet box holds `kismet` where it is not open."""
    in_order = tuple(box for box in BOXES if box in open_boxes)
    return Card(in_order, basic_total, None if "KISMET" in open_boxes else kismet, rolled)
