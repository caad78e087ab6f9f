"""A second implementation of a whole game, to hold the engine against. It shares no code with `kismet_env`.

One game of any number of players in dicts and lists. Whose turn it is follows from slots (RULES.md 6.4) and not
from a rule about the next player: slot q belongs to seat q mod n, an ordinary turn uses one slot, a second Kismet
n of them, and the slots it takes from the others are the zeros. The dice come from the game's key in whole numbers.
"""

from collections.abc import Mapping
from functools import cache
from itertools import combinations, combinations_with_replacement
from random import Random
from typing import Any

import reference
from reference import BASIC, BOXES, Dice

WORD = 2**64


def mix(state: int, word: int) -> int:
    """Return `state` with `word` stirred in: one step of SplitMix64."""
    z = ((state ^ word) + 0x9E3779B97F4A7C15) % WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def key_of(seed: int, game: int = 0) -> int:
    """Return the key of a game of a seeding: the words of the seed, the lowest first, and then the game."""
    base = mix(0, seed % WORD)
    while (seed := seed // WORD) > 0:
        base = mix(base, seed % WORD)
    return mix(base, game)


def roll(key: int, seat: int, filled: int, number: int, kept: Dice = ()) -> Dice:
    """Return the sorted dice after keeping `kept` and rolling the others: roll 0, 1 or 2 of a turn."""
    fraction, dice = mix(key, seat * 2**16 + filled * 2**8 + number), list(kept)
    while len(dice) < 5:
        face, fraction = divmod(6 * fraction, WORD)
        dice.append(face + 1)
    return tuple(sorted(dice))


@cache
def keeps_of(dice: Dice) -> frozenset[Dice]:
    """Return all that can be kept of sorted `dice` while at least one die is rolled."""
    return frozenset(kept for size in range(5) for kept in combinations(dice, size))


class Game:
    """One game: cards, whose turn, dice, and what the last step paid."""

    def __init__(self, num_players: int, rules: Mapping[str, Any], key: int) -> None:
        """Begin a game; `rules` holds every field."""
        self.rules, self.key = rules, key
        self.cards: list[dict[str, int]] = [{} for _ in range(num_players)]
        self.bonuses = [0] * num_players
        self.kismets = [0] * num_players
        self.second_kismets = self.forced_zeros = 0
        self.slot = 0
        self.paid = [0] * num_players
        self._begin_turn()

    def _begin_turn(self) -> None:
        self.rolls_left = 2
        if not self.over:
            self.dice = roll(self.key, self.seat, len(self.card), 0)

    @property
    def num_players(self) -> int:
        return len(self.cards)

    @property
    def over(self) -> bool:
        return self.slot >= 15 * self.num_players

    @property
    def seat(self) -> int:
        return self.slot % self.num_players

    @property
    def card(self) -> dict[str, int]:
        return self.cards[self.seat]

    @property
    def totals(self) -> list[int]:
        return [sum(card.values()) + bonus for card, bonus in zip(self.cards, self.bonuses, strict=True)]

    def armed(self, seat: int) -> bool:
        """Return whether five alike would be a second Kismet of this seat."""
        rules = {**self.rules, "second_kismet_penalty": True}
        return reference.second_kismet((1, 1, 1, 1, 1), self.cards[seat].get("KISMET"), self.kismets[seat], rules)[1]

    def _event(self) -> tuple[bool, bool]:
        return reference.second_kismet(self.dice, self.card.get("KISMET"), self.kismets[self.seat], self.rules)

    def boxes(self) -> set[str]:
        """Return the boxes that may be filled now."""
        card = self.card
        open_boxes = [box for box in BOXES if box not in card]
        return reference.boxes_to_fill(self.dice, self.rolls_left, open_boxes, self._event()[0], self.rules)

    def keeps(self) -> frozenset[Dice]:
        """Return what may be kept now, the other dice being rolled."""
        return keeps_of(self.dice) if self.rolls_left else frozenset()

    def keep(self, kept: Dice) -> None:
        """Keep these dice and roll the others."""
        self.paid = [0] * self.num_players
        self.dice = roll(self.key, self.seat, len(self.card), 3 - self.rolls_left, kept)
        self.rolls_left -= 1

    def fill(self, box: str) -> None:
        """Fill a box of the player to move; then zeros, the next turn or the end."""
        self.paid = [0] * self.num_players
        joker, penalty = self._event()
        self._enter(self.seat, box, reference.score(self.dice, box, self.rules, joker))
        self.kismets[self.seat] += len(set(self.dice)) == 1
        self.slot += 1
        if penalty:
            self.second_kismets += 1
            for _ in range(self.num_players - 1):
                if not self.over:
                    self.forced_zeros += 1
                    self._enter(self.seat, next(box for box in BOXES if box not in self.card), 0)
                self.slot += 1
        self._begin_turn()

    def _enter(self, seat: int, box: str, points: int) -> None:
        card = self.cards[seat]
        assert box not in card
        card[box] = points
        self.paid[seat] += points
        if box in BASIC and all(basic in card for basic in BASIC):
            self.bonuses[seat] = reference.bonus(sum(card[basic] for basic in BASIC), self.rules)
            self.paid[seat] += self.bonuses[seat]

    def win_shares(self) -> list[float]:
        """Return what "win" pays at the end: each loser pays 1/(P-1), the winners share it evenly."""
        best = max(self.totals)
        winners = [seat for seat, total in enumerate(self.totals) if total == best]
        losers = self.num_players - len(winners)
        loss = 1 / (self.num_players - 1)
        return [losers * loss / len(winners) if seat in winners else -loss for seat in range(self.num_players)]


# Moves, and their numbers

KEEP_NUMBER = {
    keep: number
    for number, keep in enumerate(
        keep for size in range(5) for keep in combinations_with_replacement(reference.FACES, size)
    )
}
ROLL_NUMBER = {dice: number for number, dice in enumerate(combinations_with_replacement(reference.FACES, 5))}
FIRST_BOX = {"keeps": 210, "holds": 31}


def held(dice: Dice, hold: int) -> Dice:
    return tuple(die for bit, die in enumerate(dice) if hold >> bit & 1)


def lowest_holds(dice: Dice) -> dict[Dice, int]:
    """Return the hold that leaves each part of the dice: of several the lowest."""
    return {held(dice, hold): hold for hold in reversed(range(31))}


HOLD_NUMBER = {dice: lowest_holds(dice) for dice in ROLL_NUMBER}


def numbering_of(actions: str, dice: Dice) -> dict[Dice, int]:
    return KEEP_NUMBER if actions == "keeps" else HOLD_NUMBER[dice]


def choose(game: Game, rng: Random) -> tuple[str, Any]:
    """Return a legal move: five alike are hunted and entered in Kismet, else anything goes."""
    boxes, keeps = sorted(game.boxes()), game.keeps()
    five_alike = len(set(game.dice)) == 1
    if keeps and not five_alike and rng.random() < 0.75:
        face = max(game.dice, key=game.dice.count)
        return "keep", (face,) * game.dice.count(face)
    if keeps and (not boxes or rng.random() < 0.2):
        return "keep", rng.choice(sorted(keeps))
    if five_alike and "KISMET" in boxes and rng.random() < 0.8:
        return "fill", "KISMET"
    return "fill", rng.choice(boxes)


def play(game: Game, move: tuple[str, Any], actions: str) -> int:
    """Make the move in the reference game; return its number."""
    kind, what = move
    if kind == "keep":
        number = numbering_of(actions, game.dice)[what]
        game.keep(what)
        return number
    game.fill(what)
    return FIRST_BOX[actions] + BOXES.index(what)
