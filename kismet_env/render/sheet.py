"""The score sheet as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kismet_env.dice import COLOR_OF_FACE, COLORS, roll_index
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.position import is_armed
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, NUM_BOXES, Box, Rules, basic_bonus
from kismet_env.tables import box_points

_LABEL_WIDTH, _COLUMN_WIDTH = 36, 11


def sheet(position: Mapping[str, Any], rules: Rules) -> str:
    """Return dice and score cards of a `position` (see `kismet_env.position`) as lines of text.

    One column a player; in brackets, for the player to move: what the dice would bring in the open boxes.
    """
    cards = [{Box[name]: points for name, points in card.items()} for card in position["cards"]]
    is_over = all(len(card) == NUM_BOXES for card in cards)
    mover = None if is_over else position["player"]
    basics = [sum(card.get(box, 0) for box in BASIC_BOXES) for card in cards]
    bonuses = [
        basic_bonus(basic, rules) if all(box in card for box in BASIC_BOXES) else None
        for basic, card in zip(basics, cards, strict=True)
    ]
    kismets = [sum(card.get(box, 0) for box in KISMET_BOXES) for card in cards]
    totals = [basic + (bonus or 0) + kismet for basic, bonus, kismet in zip(basics, bonuses, kismets, strict=True)]
    offers = None if mover is None else _offers(position, cards[mover], rules)

    def entries(box: Box) -> list[object]:
        shown: list[object] = [card.get(box, ".") for card in cards]
        if mover is not None and offers is not None and box not in cards[mover]:
            shown[mover] = f"({offers[box]})"
        return shown

    tiers = ", ".join(f"{total}: {bonus}" for total, bonus in rules.bonus_tiers) or "none"
    seats = [f"Player {seat + 1}{'*' if seat == mover else ' '}" for seat in range(len(cards))]
    line = "+" + "-" * _LABEL_WIDTH + ("+" + "-" * _COLUMN_WIDTH) * len(cards) + "+"
    return "\n".join(
        [
            line.replace("+", "-"),
            f" K I S M E T     {_dice_line(position, is_over)}",
            line,
            _row("BASIC SECTION", seats),
            line,
            *(_row(f"{box.title:<10}{box + 1} for each {box + 1}", entries(box)) for box in BASIC_BOXES),
            _row("Basic total", basics),
            _row(f"Bonus     {tiers}", ["." if bonus is None else bonus for bonus in bonuses]),
            line,
            _row("KISMET SECTION", [""] * len(cards)),
            line,
            *(_row(f"{box.title:<23}{_worth(box, rules)}", entries(box)) for box in KISMET_BOXES),
            _row("Kismet total", kismets),
            line,
            _row("GAME TOTAL", totals),
            line,
        ]
    )


def _row(label: str, values: list[Any]) -> str:
    if len(label) > _LABEL_WIDTH - 2:  # house rules may have many bonus tiers
        label = label[: _LABEL_WIDTH - 5] + "..."
    return f"| {label:<{_LABEL_WIDTH - 2}} " + "".join(f"|{value!s:>{_COLUMN_WIDTH - 2}}  " for value in values) + "|"


def _offers(position: Mapping[str, Any], card: dict[Box, int], rules: Rules) -> list[int]:
    """Return what the dice are worth in each box of the player to move."""
    is_second = len(set(position["dice"])) == 1 and is_armed(
        card, position["kismets_rolled"][position["player"]], rules
    )
    joker = int(is_second and Box.KISMET in card)
    offers: list[int] = box_points(rules)[joker, roll_index(position["dice"])].tolist()
    return offers


def _worth(box: Box, rules: Rules) -> str:
    """Return the worth of a Kismet Section box in the words of the sheet."""
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
