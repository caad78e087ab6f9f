"""What a player sees: named pieces, their places in the vector, and the way back.

The first block is about the player's own card and dice and is a function of (filled, basic total capped at the top
tier, armed, dice, rolls left) alone; it is the same for every number of players. With opponents a second block
follows. Offsets, spaces, the table in the documentation, `decode` and the fingerprint all come from `Layout.pieces`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kismet_env import dice
from kismet_env.engine import BASIC_SECTION, OPEN, Cards, Game, count_boxes, is_joker
from kismet_env.jit import Table, compiled
from kismet_env.rules import MAX_BASIC_TOTAL, NUM_BASIC_BOXES, NUM_BOXES, Box, Rules
from kismet_env.tables import Record, Tables, box_points, max_total, record_of

OBSERVATIONS = ("features", "raw", "dict")
_FORM = {name: index for index, name in enumerate(OBSERVATIONS)}
_RAW, _DICT = _FORM["raw"], _FORM["dict"]
_ROLLS_LEFT_VALUES = 3  # 2, 1, 0
_PAR_DICE = 3  # three of each face are par for the first bonus tier: 63 points
_FULL_PAR = _PAR_DICE * sum(range(1, dice.NUM_FACES + 1))


class Piece(NamedTuple):
    """A run of numbers in an observation."""

    name: str
    size: int
    low: int
    high: int  # 1 in the vector forms; the largest whole number in the dict form
    meaning: str


def _vector_pieces(rules: Rules, num_players: int, helping: bool) -> list[Piece]:
    tiers = ", ".join(str(total) for total, _ in rules.bonus_tiers) or "none"
    most_points, most_total = int(box_points(rules).max()), max_total(rules)

    def piece(name: str, size: int, meaning: str) -> Piece:
        return Piece(name, size, 0, 1, meaning)

    pieces = [
        piece("dice", 30, "dice in ascending order, one-hot: 5 dice x faces 1..6"),
        piece("face_counts", 6, "dice of each face 1..6, / 5"),
        piece("rolls_left", 3, "rolls still allowed, one-hot: 0, 1, 2"),
        piece("open_boxes", 15, "1 where the box is open, Aces to Kismet"),
        piece("basic_total", 1, f"points in the Basic Section, at most the top tier, / {MAX_BASIC_TOTAL}"),
        piece("armed", 1, "1 if five alike would be a second Kismet"),
    ]
    if helping:
        pieces += [
            piece("color_counts", 3, "dice of each pip colour (black, red, green), / 5"),
            piece("box_points", 15, f"what the dice are worth in each open box, / {most_points}"),
            piece(
                "tier_needs",
                len(rules.bonus_tiers),
                f"what each bonus tier ({tiers}) still needs, / the tier",
            ),
            piece(
                "basic_surplus",
                1,
                f"1/2 + (Basic total - {_PAR_DICE} x face of each filled Basic box) / {2 * _FULL_PAR}",
            ),
            piece("boxes_filled", 1, "filled boxes, / 15"),
        ]
    if num_players > 1:
        pieces.append(piece("total", 1, f"own total, / {most_total}"))
        for seat in range(1, num_players):
            who = "the next player" if seat == 1 else f"the player {seat} seats on"
            pieces += [
                piece(f"opponent_{seat}_open_boxes", 15, f"open boxes of {who}"),
                piece(
                    f"opponent_{seat}_basic_total",
                    1,
                    f"Basic total of {who}, at most the top tier, / {MAX_BASIC_TOTAL}",
                ),
                piece(f"opponent_{seat}_armed", 1, f"1 if five alike of {who} would be a second Kismet"),
                piece(f"opponent_{seat}_total", 1, f"total of {who}, / {most_total}"),
            ]
    return pieces


def _dict_pieces(rules: Rules, num_players: int) -> list[Piece]:
    most_points, most_total = int(box_points(rules).max()), max_total(rules)
    pieces = [
        Piece("dice", 5, 1, 6, "faces in ascending order"),
        Piece("colors", 5, 0, 2, "pip colour of each die: 0 black, 1 red, 2 green"),
        Piece("rolls_left", 1, 0, 2, "rolls still allowed"),
        Piece("scorecard", 15, OPEN, most_points, "points in each box, -1 where open"),
        Piece("armed", 1, 0, 1, "1 if five alike would be a second Kismet"),
    ]
    if num_players > 1:
        meaning = "per opponent in playing order: 15 points (-1 open), armed, total"
        pieces.append(Piece("opponents", (NUM_BOXES + 2) * (num_players - 1), OPEN, most_total, meaning))
    return pieces


_ROLL_FEATURES = dice.NUM_DICE * dice.NUM_FACES + dice.NUM_FACES

OBSERVATION_TABLES = np.dtype(
    [
        ("form", np.int64),  # index into OBSERVATIONS
        (
            "roll_features",
            np.float32,
            (dice.NUM_ROLLS, _ROLL_FEATURES),
        ),  # [roll]: dice one-hot and face counts
        ("color_features", np.float32, (dice.NUM_ROLLS, len(dice.COLORS))),  # [roll]
        ("box_points", np.float32, (2, dice.NUM_ROLLS, NUM_BOXES)),  # [joker, roll, box], scaled
        ("total_scale", np.float64),  # 1 / the highest total
        ("dice", np.int8, (dice.NUM_ROLLS, dice.NUM_DICE)),  # [roll]: faces
        ("colors", np.int8, (dice.NUM_ROLLS, dice.NUM_DICE)),  # [roll]: pip colours
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class Layout:
    """The form of an observation; get it from `layout_of`."""

    form: str
    num_players: int
    pieces: tuple[Piece, ...]
    tables: Record  # dtype OBSERVATION_TABLES

    @cached_property
    def size(self) -> int:
        """Length of the vector."""
        return sum(piece.size for piece in self.pieces)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each piece lies in the vector."""
        found, start = {}, 0
        for piece in self.pieces:
            found[piece.name] = slice(start, start + piece.size)
            start += piece.size
        return found

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change whenever the meaning of any index changes."""
        text = repr((self.form, self.num_players, self.pieces))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def _number_spaces(self) -> dict[str, spaces.Box | spaces.Discrete]:
        return {piece.name: _number_space(piece) for piece in self.pieces}

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The Gymnasium space of one observation: a Box of float32 in [0, 1], or a Dict of whole numbers."""
        if self.form != "dict":
            return spaces.Box(0.0, 1.0, (self.size,), np.float32)
        return spaces.Dict({piece.name: _number_space(piece) for piece in self.pieces})

    def present(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | dict[str, npt.NDArray[Any]]:
        """Return observations (N, D) as agents get them: the same array, or a new array (N, ...) for each piece."""
        if self.form != "dict":
            return vectors
        presented = {}
        for name, space in self._number_spaces.items():
            column = vectors[:, self.slices[name]].astype(space.dtype)
            presented[name] = column if space.shape else column[:, 0]
        return presented

    def table(self) -> str:
        """Return the per-index table of the documentation, in Markdown."""
        rows = ["| index | piece | range | meaning |", "|---|---|---|---|"]
        for piece in self.pieces:
            where = self.slices[piece.name]
            index = f"{where.start}" if piece.size == 1 else f"{where.start}..{where.stop - 1}"
            if piece.size:
                rows.append(f"| {index} | `{piece.name}` | {piece.low}..{piece.high} | {piece.meaning} |")
        return "\n".join(rows)


def _number_space(piece: Piece) -> spaces.Box | spaces.Discrete:
    if piece.size == 1:
        return spaces.Discrete(piece.high + 1)
    return spaces.Box(piece.low, piece.high, (piece.size,), np.int16)


@lru_cache(maxsize=64)
def layout_of(rules: Rules, num_players: int = 1, form: str = "features") -> Layout:
    """Return the layout "features", "raw" or "dict"; ValueError for another form."""
    if form not in OBSERVATIONS:
        raise ValueError(f"observation={form!r} is not one of {', '.join(OBSERVATIONS)}")
    if form == "dict":
        pieces = _dict_pieces(rules, num_players)
    else:
        pieces = _vector_pieces(rules, num_players, helping=form == "features")
    one_hot = (dice.ROLL_DICE[:, :, None] == np.arange(1, dice.NUM_FACES + 1)).reshape(dice.NUM_ROLLS, -1)
    points = box_points(rules)
    tables = record_of(
        OBSERVATION_TABLES,
        form=_FORM[form],
        roll_features=np.concatenate([one_hot, dice.ROLL_COUNTS / dice.NUM_DICE], axis=1),
        color_features=dice.ROLL_COLOR_COUNTS / dice.NUM_DICE,
        box_points=points / points.max(),
        total_scale=1.0 / max_total(rules),
        dice=dice.ROLL_DICE,
        colors=dice.ROLL_COLORS,
    )
    return Layout(form, num_players, tuple(pieces), tables)


CARD = "card"
_CARD_PIECES = ("open_boxes", "basic_total", "armed", "tier_needs", "basic_surplus", "boxes_filled")
_SURPLUSES = MAX_BASIC_TOTAL + 1  # from -63, all Basic boxes filled with zeros, to 42


@lru_cache(maxsize=64)
def card_layout(rules: Rules) -> Layout:
    """Return the layout "card" of `observe_cards`: the pieces of "features" that are about the own card alone.

    Behind them stands the Basic surplus one-hot, because what a card is worth has steps in it; and once the Basic
    Section is full, and paid for, its total counts as 0. No environment shows it; networks that judge cards read it.
    """
    features = layout_of(rules)
    pieces = tuple(piece for piece in features.pieces if piece.name in _CARD_PIECES)
    meaning = f"Basic total - {_PAR_DICE} x face of each filled Basic box, one-hot: {-_FULL_PAR}.."
    meaning += f"{_SURPLUSES - 1 - _FULL_PAR}; with a full Basic Section its total counts as 0, here and above"
    return Layout(CARD, 1, (*pieces, Piece("surplus_steps", _SURPLUSES, 0, 1, meaning)), features.tables)


PAIR = "pair"
_PAIR_PIECES = ("open_boxes", "armed", "tier_needs", "basic_surplus", "boxes_filled")


@lru_cache(maxsize=64)
def pair_layout(rules: Rules) -> Layout:
    """Return the layout "pair" of `card_pair.observe_pairs`: two cards before a turn, what they bring, who leads.

    No environment shows it; networks that judge pairs of cards read it. A full Basic Section's total counts as 0.
    """
    features = layout_of(rules)
    pieces: list[Piece] = []
    for whose in ("", "other_"):
        pieces += [
            piece._replace(name=whose + piece.name)
            for name in _PAIR_PIECES
            for piece in features.pieces
            if piece.name == name
        ]
        pieces += [
            Piece(f"{whose}mean", 1, 0, 1, "mean of the points to come in optimal solitaire play, / 100"),
            Piece(f"{whose}sd", 1, 0, 1, "and their standard deviation, / 100"),
        ]
    pieces += [
        Piece("lead", 1, -1, 1, "the mover's total less the other's, / 100"),
        Piece("margin", 1, -1, 1, "the lead and the difference of the means to come, / 100"),
        Piece("z", 1, -5, 5, "the margin by the standard deviation of that difference"),
        Piece("prior", 1, 0, 1, "the share of the win of two who play independently for points"),
    ]
    return Layout(PAIR, 2, tuple(pieces), features.tables)


@compiled
def observe(game: Game, cards: Cards, tables: Tables, layout: Any, player: int, out: Table, row: int) -> None:
    """Write what `player` of a game sees into out[row], (N, D) float32.

    `cards` are those of the game, `layout` is a record of OBSERVATION_TABLES. The dict form is written as whole
    numbers, piece after piece. Loops, not slices: array views in here would cost more than the game.
    """
    if layout.form == _DICT:
        _observe_numbers(game, cards, layout, player, out, row)
        return
    card = cards[player]
    roll, rolls_left, filled = game.roll, game.rolls_left, card.filled
    basic_total = min(card.basic_total, tables.basic_cap)
    for feature in range(_ROLL_FEATURES):
        out[row, feature] = layout.roll_features[roll, feature]
    at = _ROLL_FEATURES
    for left in range(_ROLLS_LEFT_VALUES):
        out[row, at + left] = rolls_left == left
    at = _observe_card(filled, basic_total, card.armed, out, row, at + _ROLLS_LEFT_VALUES)
    if layout.form != _RAW:
        for color in range(len(dice.COLORS)):
            out[row, at + color] = layout.color_features[roll, color]
        at += len(dice.COLORS)
        joker = is_joker(tables, filled, card.armed, roll)
        for box in range(NUM_BOXES):
            out[row, at + box] = layout.box_points[joker, roll, box] * (1 - (filled >> box & 1))
        at = observe_progress(tables, filled, basic_total, out, row, at + NUM_BOXES)
    num_players = len(cards)
    if num_players > 1:
        out[row, at] = card.total * layout.total_scale
        at += 1
        for seat in range(1, num_players):
            opponent = cards[(player + seat) % num_players]
            their_total = min(opponent.basic_total, tables.basic_cap)
            at = _observe_card(opponent.filled, their_total, opponent.armed, out, row, at)
            out[row, at] = opponent.total * layout.total_scale
            at += 1


@compiled
def _observe_card(filled: int, basic_total: int, armed: bool, out: Table, row: int, at: int) -> int:
    for box in range(NUM_BOXES):
        out[row, at + box] = 1 - (filled >> box & 1)
    out[row, at + NUM_BOXES] = basic_total / MAX_BASIC_TOTAL
    out[row, at + NUM_BOXES + 1] = armed
    return at + NUM_BOXES + 2


@compiled
def observe_progress(tables: Tables, filled: int, basic_total: int, out: Table, row: int, at: int) -> int:
    """Write "tier_needs", "basic_surplus" and "boxes_filled" of a card from out[row, at] on; return where they end."""
    for tier in range(tables.num_tiers):
        asked = tables.tier_totals[tier]
        out[row, at + tier] = max(0, asked - basic_total) / asked
    at += tables.num_tiers
    out[row, at] = 0.5 + _surplus(filled, basic_total) / (2 * _FULL_PAR)
    out[row, at + 1] = count_boxes(filled) / NUM_BOXES
    return at + 2


@compiled
def _surplus(filled: int, basic_total: int) -> int:
    par = 0
    for box in range(NUM_BASIC_BOXES):
        par += _PAR_DICE * (box + 1) * (filled >> box & 1)
    return basic_total - par


@compiled
def observe_cards(tables_array: Record, cards: Table, out: Table) -> None:
    """Write what `cards` show, rows (filled, basic_total, armed) (C, 3), into `out` (C, card_layout().size) float32."""
    tables = tables_array[0]
    for row in range(len(cards)):
        filled, basic_total = cards[row, 0], min(cards[row, 1], tables.basic_cap)
        if filled & BASIC_SECTION == BASIC_SECTION:
            basic_total = 0
        at = _observe_card(filled, basic_total, cards[row, 2] != 0, out, row, 0)
        at = observe_progress(tables, filled, basic_total, out, row, at)
        surplus = _surplus(filled, basic_total)
        for steps in range(_SURPLUSES):
            out[row, at + steps] = steps - _FULL_PAR == surplus


@compiled
def _observe_numbers(game: Game, cards: Cards, layout: Any, player: int, out: Table, row: int) -> None:
    for die in range(dice.NUM_DICE):
        out[row, die] = layout.dice[game.roll, die]
        out[row, dice.NUM_DICE + die] = layout.colors[game.roll, die]
    at = 2 * dice.NUM_DICE
    out[row, at] = game.rolls_left
    at += 1
    num_players = len(cards)
    for seat in range(num_players):
        card = cards[(player + seat) % num_players]
        for box in range(NUM_BOXES):
            out[row, at + box] = card.points[box]
        out[row, at + NUM_BOXES] = card.armed
        at += NUM_BOXES + 1
        if seat > 0:
            out[row, at] = card.total
            at += 1


class Decision(NamedTuple):
    """A position of solitaire play as whole numbers; arrays over a batch or single values."""

    filled: npt.NDArray[np.int64]  # (...): bit per filled box, Aces lowest
    basic_total: npt.NDArray[np.int64]  # (...): points in the Basic Section, at most the top tier
    armed: npt.NDArray[np.bool_]  # (...): five alike would be a second Kismet
    dice: npt.NDArray[np.int64]  # (..., 5): faces in ascending order
    rolls_left: npt.NDArray[np.int64]  # (...): 2, 1 or 0

    def at(self, rows: npt.NDArray[Any]) -> Decision:
        """Return the decisions of `rows`, an index or mask of the first axis."""
        filled, basic_total, armed, dice, rolls_left = self
        return Decision(filled[rows], basic_total[rows], armed[rows], dice[rows], rolls_left[rows])


_OWN = layout_of(Rules(), 1, "raw").slices  # the same places in every vector form, for all rules and players


def decode(features: npt.ArrayLike) -> Decision:
    """Return the position that observations of form "features" or "raw" show, exactly; (..., D) float32."""
    vector = np.asarray(features)
    one_hot = vector[..., _OWN["dice"]].reshape(*vector.shape[:-1], dice.NUM_DICE, dice.NUM_FACES)
    is_filled = 1 - np.rint(vector[..., _OWN["open_boxes"]]).astype(np.int64)
    return Decision(
        filled=(is_filled << np.arange(len(Box))).sum(-1),
        basic_total=np.rint(vector[..., _OWN["basic_total"].start] * MAX_BASIC_TOTAL).astype(np.int64),
        armed=vector[..., _OWN["armed"].start] > 0.5,
        dice=one_hot.argmax(-1).astype(np.int64) + 1,
        rolls_left=vector[..., _OWN["rolls_left"]].argmax(-1).astype(np.int64),
    )


def decode_table(features: npt.ArrayLike, rules: Rules) -> npt.NDArray[np.int64]:
    """Return the cards of all players that observations (N, D) of form "features" show, (N, P, 4), exactly.

    A card is (filled, basic_total, armed, total) as in `Decision`, the own one first, the others in playing order. In
    observations of the solitaire game there is one card, and its total is 0. Raises ValueError for another width.
    """
    vector = np.asarray(features)
    alone, two, three = (layout_of(rules, count).size for count in (1, 2, 3))
    layout = layout_of(rules, max(1, 2 + (vector.shape[-1] - two) // (three - two)))
    if layout.size != vector.shape[-1]:
        raise ValueError(f"observations of {vector.shape[-1]} numbers do not have {alone}, {two}, {three}, ...")
    cards = np.zeros((len(vector), layout.num_players, 4), np.int64)
    for player in range(layout.num_players):
        prefix = f"opponent_{player}_" if player else ""
        is_open = np.rint(vector[:, layout.slices[f"{prefix}open_boxes"]]).astype(np.int64)
        cards[:, player, 0] = ((1 - is_open) << np.arange(NUM_BOXES)).sum(1)
        for column, name, scale in (
            (1, "basic_total", MAX_BASIC_TOTAL),
            (2, "armed", 1),
            (3, "total", max_total(rules)),
        ):
            if f"{prefix}{name}" in layout.slices:
                cards[:, player, column] = np.rint(vector[:, layout.slices[f"{prefix}{name}"].start] * scale)
    return cards
