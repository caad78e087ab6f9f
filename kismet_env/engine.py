"""The state of N games of P players, and the one transition. No rule of play is written anywhere else.

Everything compiled here is scalar code for one game. To the rules a card is three numbers: `filled` (bit per box),
`basic_total` (points in the Basic Section) and `armed` (whether five alike would be a second Kismet); `fill_box` takes
a card to the next one and serves the engine and the solver. The other fields of a CARD are book-keeping.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.dice import mix, scaled, throw
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BASIC_BOXES, NUM_BOXES, Box
from kismet_env.tables import Tables

ROLLS_PER_TURN = 3  # RULES.md 2.1
OPEN = -1  # points of an open box
ALL_BOXES = (1 << NUM_BOXES) - 1
BASIC_SECTION = (1 << NUM_BASIC_BOXES) - 1

_KISMET_BIT = 1 << Box.KISMET
_YARBOROUGH_BIT = 1 << Box.YARBOROUGH
_NOTHING_KEPT = 0  # the empty keep
_ANY_TIME, _ONLY_IF_NOTHING_SCORES = 1, 2  # indices into rules.ZEROS
_ONLY_IF_NOTHING_ELSE = 1  # index into rules.YARBOROUGH
_SCORED, _FILLED = 0, 1  # indices into rules.SECOND_KISMET
# Other uses of a game's key than its dice, stirred in before the place: they can never meet a throw of dice.
_CHOICE_STREAM, _START_STREAM, _SEAT_STREAM = 0x63686F696365, 0x7374617274, 0x73656174


GAME = np.dtype(
    [
        ("key", np.uint64),  # what the dice come from
        ("seeding", np.uint64),  # what the keys of the next games in this row come from: mix(seeding, episode)
        ("episode", np.int64),  # games dealt in this row since its seeding
        ("player", np.int64),  # the seat to move
        ("roll", np.int16),  # the dice shown, 0..251
        ("rolls_left", np.int8),  # rolls still allowed, 2, 1 or 0
        ("over", np.bool_),  # whether the game has ended or was cut off
        ("illegal", np.int16),  # illegal actions so far
    ],
    align=True,
)
CARD = np.dtype(
    [
        ("filled", np.int32),  # bit per filled box, Aces lowest
        ("basic_total", np.int16),  # points in the Basic Section, without bonus
        ("armed", np.bool_),  # whether five alike would be a second Kismet
        ("kismets_rolled", np.int8),  # turns that ended with five alike
        ("total", np.int16),  # all points entered, the bonus included once it is earned
        ("earned", np.int16),  # points entered and not yet paid as a reward
        ("points", np.int16, NUM_BOXES),  # points entered, -1 where open
    ],
    align=True,
)


Game = Any
"""A record of dtype GAME in a kernel: written through."""
Card = Any
"""A record of dtype CARD in a kernel: written through."""
Cards = Any
"""The cards of one game, (P,) of dtype CARD."""


class State(NamedTuple):
    """N games of P players as two arrays of records. Nothing else of a game is kept anywhere."""

    games: npt.NDArray[Any]  # [game] (N,) of dtype GAME
    cards: npt.NDArray[Any]  # [game, player] (N, P) of dtype CARD


def new_state(num_games: int, num_players: int) -> State:
    """Return N games of P players, all over: nothing can be played before a deal."""
    state = State(np.zeros(num_games, GAME), np.zeros((num_games, num_players), CARD))
    state.games["over"] = True
    state.cards["points"] = OPEN
    return state


@compiled
def count_boxes(filled: int) -> int:
    """Return how many boxes the bits of `filled` name."""
    count = 0
    while filled:
        filled &= filled - 1
        count += 1
    return count


@compiled
def is_second_kismet(tables: Tables, armed: bool, roll: int) -> bool:
    """Return whether `roll`, entered on a card that is `armed`, is a second Kismet (RULES.md 6.1)."""
    return armed and tables.five_alike[roll]


@compiled
def is_joker(tables: Tables, filled: int, armed: bool, roll: int) -> int:
    """Return 1 where `roll` scores as a joker, else 0: it also needs the Kismet box filled (RULES.md 6.2)."""
    return 1 if is_second_kismet(tables, armed, roll) and filled & _KISMET_BIT else 0


@compiled
def arms(tables: Tables, box: int, points: int, five_alike: bool) -> bool:
    """Return whether entering `points` in `box` makes later five alike a second Kismet (RULES.md 6.1)."""
    if tables.second_kismet == _SCORED:
        return box == Box.KISMET and points > 0
    if tables.second_kismet == _FILLED:
        return box == Box.KISMET
    return five_alike


@compiled
def write_points(
    tables: Tables, filled: int, basic_total: int, armed: bool, box: int, points: int, five_alike: bool
) -> tuple[int, int, int, bool]:
    """Write `points` into the open `box` of a card.

    Returns (bonus, filled, basic_total, armed): the bonus that this entry brings and the card after it.
    """
    bonus = 0
    filled |= 1 << box
    if box < NUM_BASIC_BOXES:
        basic_total += points
        if filled & BASIC_SECTION == BASIC_SECTION:
            bonus = tables.bonus[basic_total]  # RULES.md 5
    return bonus, filled, basic_total, armed or arms(tables, box, points, five_alike)


@compiled
def fill_box(
    tables: Tables, filled: int, basic_total: int, armed: bool, roll: int, box: int
) -> tuple[int, int, int, int, bool]:
    """Fill the open `box` of a card with the dice of `roll`: card in, points and card out.

    Returns (points, bonus, filled, basic_total, armed). Engine and solver both play through this function.
    """
    points = tables.points[is_joker(tables, filled, armed, roll), roll, box]
    bonus, filled, basic_total, armed = write_points(
        tables, filled, basic_total, armed, box, points, tables.five_alike[roll]
    )
    return points, bonus, filled, basic_total, armed


@compiled
def legal_boxes(tables: Tables, filled: int, armed: bool, roll: int, rolls_left: int) -> int:
    """Return the boxes that may be filled with `roll`, a bit per box (RULES.md 4 and 3.9).

    Never 0 on a card with an open box when no roll is left.
    """
    open_boxes = ALL_BOXES & ~filled
    scoring: int = open_boxes & tables.scoring[is_joker(tables, filled, armed, roll), roll]
    if tables.yarborough == _ONLY_IF_NOTHING_ELSE and scoring & ~_YARBOROUGH_BIT:
        open_boxes &= ~_YARBOROUGH_BIT
        scoring &= ~_YARBOROUGH_BIT
    if tables.zeros == _ANY_TIME:
        return open_boxes
    if rolls_left > 0 or (tables.zeros == _ONLY_IF_NOTHING_SCORES and scoring):
        return scoring
    return open_boxes


@compiled
def first_open_box(filled: int) -> int:
    """Return the open box nearest the top of the sheet, or NUM_BOXES when the card is full (RULES.md 6.3)."""
    box = 0
    while filled >> box & 1:
        box += 1
    return box


@compiled
def next_seat(seat: int, num_players: int) -> int:
    """Return the seat to the left."""
    return seat + 1 if seat + 1 < num_players else 0


@compiled
def roll_dice(game: Game, card: Card, tables: Tables, keep: int) -> None:
    """Keep the dice of `keep` and roll the others; `card` is that of the player to move (RULES.md 2.2)."""
    game.roll = throw(
        game.key,
        game.player,
        count_boxes(card.filled),
        ROLLS_PER_TURN - game.rolls_left,
        keep,
        tables.rolls_after,
        tables.first_roll_after,
        tables.num_throws,
    )
    game.rolls_left -= 1


@compiled
def begin_turn(game: Game, card: Card, tables: Tables) -> None:
    """Roll all five dice for the player to move."""
    game.rolls_left = ROLLS_PER_TURN
    roll_dice(game, card, tables, _NOTHING_KEPT)


@compiled
def record_entry(card: Card, box: int, points: int, bonus: int, filled: int, basic_total: int, armed: bool) -> None:
    """Put down an entry of `points` in `box`, the `bonus` it brings and the card after it."""
    card.filled = filled
    card.basic_total = basic_total
    card.armed = armed
    card.points[box] = points
    card.total += points + bonus
    card.earned += points + bonus


@compiled
def enter_roll(card: Card, tables: Tables, box: int, roll: int) -> None:
    """Fill `box` of a card with the dice of `roll`."""
    points, bonus, filled, basic_total, armed = fill_box(tables, card.filled, card.basic_total, card.armed, roll, box)
    record_entry(card, box, points, bonus, filled, basic_total, armed)
    if tables.five_alike[roll]:
        card.kismets_rolled += 1


@compiled
def force_zero(card: Card, tables: Tables) -> None:
    """Write a zero into the first open box of a card, if there is one (RULES.md 6.3)."""
    box = first_open_box(card.filled)
    if box < NUM_BOXES:
        bonus, filled, basic_total, armed = write_points(
            tables, card.filled, card.basic_total, card.armed, box, 0, False
        )
        record_entry(card, box, 0, bonus, filled, basic_total, armed)


@compiled
def fill_and_pass(game: Game, cards: Cards, tables: Tables, box: int) -> None:
    """Fill `box` with the dice shown and pass the turn on: second Kismet, forced zeros, next player, end.

    `cards` are those of this game, (P,).
    """
    player, num_players = game.player, len(cards)
    penalty = tables.penalty and is_second_kismet(tables, cards[player].armed, game.roll)
    enter_roll(cards[player], tables, box, game.roll)
    following = next_seat(player, num_players)
    if penalty:  # RULES.md 6.4: the zero is the content of the lost turn, so the roller plays next
        for victim in range(num_players):
            if victim != player:
                force_zero(cards[victim], tables)
        following = player
    for _ in range(num_players):  # the next seat with an open box
        if cards[following].filled != ALL_BOXES:
            game.player = following
            begin_turn(game, cards[following], tables)
            return
        following = next_seat(following, num_players)
    game.over = True


@compiled
def drawn_seat(key: np.uint64, num_players: int) -> int:
    """Return the seat that a game's key draws where chance decides about a seat."""
    return scaled(mix(key, np.uint64(_SEAT_STREAM)), num_players)


@compiled
def deal(
    game: Game, cards: Cards, tables: Tables, key: np.uint64, first_seat: int, open_boxes: int, start_rolls: Table
) -> None:
    """Begin a new game with the dice of `key`; `first_seat` plays first.

    `open_boxes` boxes of every card are open, chosen by the key; 0: their number is chosen too, 1 to 15. The other
    boxes are filled in order, each with a roll drawn by the key from `start_rolls` (see `starts`).
    """
    game.key = key
    game.player = first_seat
    game.over = False
    game.illegal = 0
    stream = mix(key, np.uint64(_START_STREAM))
    if open_boxes == 0:
        open_boxes = 1 + scaled(mix(stream, np.uint64(ALL_BOXES)), NUM_BOXES)
    for player in range(len(cards)):
        card = cards[player]
        card.filled = 0
        card.basic_total = 0
        card.armed = False
        card.kismets_rolled = 0
        card.total = 0
        for box in range(NUM_BOXES):
            card.points[box] = OPEN
        to_fill = NUM_BOXES - open_boxes
        if to_fill > 0:
            for box in range(NUM_BOXES):  # selection sampling: every set of open boxes is equally likely
                bits = mix(stream, np.uint64(player << 8 | box))
                if scaled(bits, NUM_BOXES - box) < to_fill:
                    to_fill -= 1
                    enter_roll(card, tables, box, _roll_at(start_rolls[box], _share(mix(bits, stream))))
        card.earned = 0
    begin_turn(game, cards[first_seat], tables)


@compiled
def _roll_at(cumulated: Table, share: float) -> int:
    roll = 0
    while cumulated[roll] <= share:
        roll += 1
    return roll


@compiled
def _share(bits: np.uint64) -> float:
    return (bits >> np.uint64(11)) * 2.0**-53


@compiled
def choice_share(game: Game, card: Card) -> float:
    """Return the uniform number in [0, 1) that belongs to the decision to be made: a function of key, seat and place.

    Stochastic players choose with it, so that their games do not depend on how many are played side by side.
    """
    place = game.player << 16 | count_boxes(card.filled) << 8 | game.rolls_left
    return _share(mix(mix(game.key, np.uint64(_CHOICE_STREAM)), np.uint64(place)))
