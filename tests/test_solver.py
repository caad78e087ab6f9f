"""The solver against numbers from elsewhere: published ones, boxes computed by hand, and `brute_force`."""

from typing import Any

import numpy as np
import pytest

from kismet_env.cards import CardNumbers
from kismet_env.rules import Box, Rules
from kismet_env.solver import Optimum
from kismet_env.tables import tables_of

STANDARD = Rules()
ALL_BOXES = 2**15 - 1
DICE = (1, 2, 3, 4, 6)


def bits(*boxes: Box) -> int:
    return sum(1 << box for box in boxes)


def unsolved(rules: Rules = STANDARD) -> Optimum:
    """An optimum that knows what is legal and possible, but every value is 0."""
    return Optimum(rules, np.zeros(CardNumbers(tables_of(rules)).size))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"filled": -1}, "row 1: .*filled=-1"),
        ({"filled": ALL_BOXES}, "row 1: .*filled=32767"),  # no decision is left
        ({"filled": ALL_BOXES + 1}, "row 1: .*filled=32768"),
        ({"basic_total": -1}, "row 1: .*basic_total=-1"),
        ({"basic_total": 1}, "row 1: .*filled=0, basic_total=1"),  # points without a box
        ({"filled": bits(Box.DEUCES), "basic_total": 3}, "row 1: .*basic_total=3"),  # an odd total of twos
        ({"filled": bits(Box.DEUCES), "basic_total": 12}, "row 1: .*basic_total=12"),  # six twos
        ({"filled": bits(Box.FIVES, Box.SIXES), "basic_total": 52}, "row 1: .*basic_total=52"),
        ({"filled": bits(Box.FOURS, Box.FIVES, Box.SIXES), "basic_total": 73}, "row 1: .*basic_total=73"),
        # above the top tier the total is held to the truth too: 90 - 1 is not in threes to sixes
        ({"filled": 0b111100, "basic_total": 89}, "row 1: .*basic_total=89"),
        ({"filled": 0b111111, "basic_total": 106}, "row 1: .*basic_total=106"),
        ({"armed": True}, "row 1: .*armed=1"),  # the Kismet box is open
        ({"filled": bits(Box.FLUSH, Box.STRAIGHT), "armed": True}, "row 1: .*armed=1"),
        ({"filled": bits(Box.KISMET), "armed": 2}, "row 1: .*armed=2"),
        ({"rolls_left": 3}, "row 1: rolls_left 3"),
        ({"rolls_left": -1}, "row 1: rolls_left -1"),
        ({"dice": (0, 1, 1, 1, 1)}, r"row 1: dice \[0, 1, 1, 1, 1\]"),
        ({"dice": (1, 1, 1, 1, 7)}, r"row 1: dice \[1, 1, 1, 1, 7\]"),
    ],
)
def test_what_no_game_leads_to_is_refused_by_its_first_row(changed: dict[str, Any], message: str) -> None:
    optimum = unsolved()
    good = {"filled": 0, "basic_total": 0, "armed": False, "dice": DICE, "rolls_left": 2}
    rows = {name: np.array([value, changed.get(name, value), changed.get(name, value)]) for name, value in good.items()}
    with pytest.raises(ValueError, match=message):
        optimum.action_values(**rows)
    with pytest.raises(ValueError, match=message):
        optimum.best_action(**rows)
    if not {"dice", "rolls_left"} & set(changed) and changed.get("filled") != ALL_BOXES:
        with pytest.raises(ValueError, match=message):
            optimum.card_value(rows["filled"], rows["basic_total"], rows["armed"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"filled": 1.0}, "filled of type float64"),
        ({"basic_total": np.nan}, "basic_total of type float64"),
        ({"armed": "no"}, "armed of type"),
        ({"filled": 2**70}, "filled of type object"),
        ({"rolls_left": 1.5}, "rolls_left of type float64"),
        ({"rolls_left": np.nan}, "rolls_left of type float64"),
        ({"dice": (1.0, 2.0, 3.0, 4.0, 5.0)}, "type float64"),
        ({"dice": (1, 2, 3, 4)}, r"dice of shape \(4,\)"),
        ({"dice": 5}, r"dice of shape \(\)"),
        ({"dice": [DICE] * 2, "rolls_left": [0, 1, 2]}, "mismatch"),
    ],
)
def test_what_are_no_whole_numbers_or_no_common_shape_is_refused(changed: dict[str, Any], message: str) -> None:
    good = {"filled": 0, "basic_total": 0, "armed": False, "dice": DICE, "rolls_left": 2}
    with pytest.raises(ValueError, match=message):
        unsolved().action_values(**(good | changed))
