"""The score sheet as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from kismet_env.dice import COLOR_OF_FACE, COLORS, roll_index
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.position import is_armed
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, NUM_BOXES, SUITE, Box, Rules, basic_bonus
from kismet_env.tables import box_points

_LABEL_WIDTH, _COLUMN_WIDTH = 36, 11


class Column(NamedTuple):
    """The card of one player as it stands on the sheet."""

    card: dict[Box, int]  # points in the filled boxes
    basic_total: int
    bonus: int | None  # None until the six Basic boxes are filled
    kismet_total: int
    total: int


class Contents(NamedTuple):
    """All that a sheet shows besides the dice."""

    columns: tuple[Column, ...]  # one a player
    mover: int | None  # whose turn it is; None after the end
    offers: dict[Box, int]  # what the dice are worth in the open boxes of the mover; empty after the end


def contents_of(position: Mapping[str, Any], rules: Rules) -> Contents:
    """Return what the sheet of a `position` (see `kismet_env.position`) shows."""
    columns = tuple(_column({Box[name]: points for name, points in card.items()}, rules) for card in position["cards"])
    if all(len(column.card) == NUM_BOXES for column in columns):
        return Contents(columns, None, {})
    mover = int(position["player"])
    card = columns[mover].card
    armed = is_armed(card, position["kismets_rolled"][mover], rules)
    joker = int(armed and Box.KISMET in card and len(set(position["dice"])) == 1)
    worth = box_points(rules)[joker, roll_index(position["dice"])]
    return Contents(columns, mover, {box: int(worth[box]) for box in Box if box not in card})


def _column(card: dict[Box, int], rules: Rules) -> Column:
    basic = sum(card.get(box, 0) for box in BASIC_BOXES)
    kismet = sum(card.get(box, 0) for box in KISMET_BOXES)
    bonus = basic_bonus(basic, rules) if all(box in card for box in BASIC_BOXES) else None
    return Column(card, basic, bonus, kismet, basic + (bonus or 0) + kismet)


def tiers_of(rules: Rules, separator: str = ", ") -> str:
    """Return the tiers of the Basic bonus in the words of the sheet: "63: 35, 71: 55, 78: 75", or "none"."""
    return separator.join(f"{total}: {bonus}" for total, bonus in rules.bonus_tiers) or "none"


def name_of_rules(rules: Rules) -> str:
    """Return the name of `rules`, or in what they differ from the standard game."""
    for name, named in SUITE.items():
        if rules == named:
            return f"rules {name}"
    changed = [
        f"{each.name} {getattr(rules, each.name)}"
        for each in fields(Rules)
        if getattr(rules, each.name) != each.default
    ]
    return ", ".join(changed) or "standard rules"


def sheet(position: Mapping[str, Any], rules: Rules) -> str:
    """Return dice and score cards of a `position` (see `kismet_env.position`) as lines of text.

    One column a player; in brackets, for the player to move: what the dice would bring in the open boxes.
    """
    columns, mover, offers = contents_of(position, rules)

    def entries(box: Box) -> list[object]:
        shown: list[object] = [column.card.get(box, ".") for column in columns]
        if mover is not None and box in offers:
            shown[mover] = f"({offers[box]})"
        return shown

    seats = [f"Player {seat + 1}{'*' if seat == mover else ' '}" for seat in range(len(columns))]
    line = "+" + "-" * _LABEL_WIDTH + ("+" + "-" * _COLUMN_WIDTH) * len(columns) + "+"
    return "\n".join(
        [
            line.replace("+", "-"),
            f" K I S M E T     {_dice_line(position, mover is None)}",
            line,
            _row("BASIC SECTION", seats),
            line,
            *(_row(f"{box.title:<10}{worth_of(box, rules)}", entries(box)) for box in BASIC_BOXES),
            _row("Basic total", [column.basic_total for column in columns]),
            _row(f"Bonus     {tiers_of(rules)}", ["." if col.bonus is None else col.bonus for col in columns]),
            line,
            _row("KISMET SECTION", [""] * len(columns)),
            line,
            *(_row(f"{box.title:<23}{worth_of(box, rules)}", entries(box)) for box in KISMET_BOXES),
            _row("Kismet total", [column.kismet_total for column in columns]),
            line,
            _row("GAME TOTAL", [column.total for column in columns]),
            line,
        ]
    )


def _row(label: str, values: list[Any]) -> str:
    if len(label) > _LABEL_WIDTH - 2:  # house rules may have many bonus tiers
        label = label[: _LABEL_WIDTH - 5] + "..."
    return f"| {label:<{_LABEL_WIDTH - 2}} " + "".join(f"|{value!s:>{_COLUMN_WIDTH - 2}}  " for value in values) + "|"


def worth_of(box: Box, rules: Rules) -> str:
    """Return what a box is worth in the words of the sheet: "3 for each 3", "sum + 15", "30"."""
    if box in BASIC_BOXES:
        return f"{box + 1} for each {box + 1}"
    points = box_points(rules)[0]
    scoring = points[:, box] > 0
    extra = set((points[scoring, box] - points[scoring, Box.YARBOROUGH]).tolist())
    if len(extra) > 1:
        return str(int(points[:, box].max()))
    return f"sum + {extra.pop()}" if extra != {0} else "sum"


def _dice_line(position: Mapping[str, Any], is_over: bool) -> str:
    if is_over:
        return "game over"
    dice = " ".join(f"[{face} {COLORS[COLOR_OF_FACE[face - 1]]}]" for face in position["dice"])
    return f"{dice}   roll {ROLLS_PER_TURN - position['rolls_left']} of {ROLLS_PER_TURN}"
