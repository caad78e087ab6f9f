"""Rules compiled to arrays: what the kernels read in place of `rules.score`, once per Rules.

Tables are one record of a structured array, not a tuple of arrays: a kernel that hands a record on hands on a
pointer, where every array of a tuple has its references counted at each call, which costs more than the game.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env import dice
from kismet_env.rules import (
    BASIC_BOXES,
    MAX_BASIC_TOTAL,
    MOST_TIERS,
    NUM_BOXES,
    SECOND_KISMET,
    YARBOROUGH,
    ZEROS,
    Box,
    Rules,
    basic_bonus,
    score,
)

Record = npt.NDArray[Any]
"""A structured array of shape (1,): what kernels take as their tables."""

Tables = Any
"""A record of dtype TABLES in a kernel."""

TABLES = np.dtype(
    [
        (
            "points",
            np.int16,
            (2, dice.NUM_ROLLS, NUM_BOXES),
        ),  # [joker, roll, box]: worth; joker 1: a second Kismet
        (
            "scoring",
            np.int32,
            (2, dice.NUM_ROLLS),
        ),  # [joker, roll]: bit per box that is worth more than nothing
        ("max_points", np.int16, NUM_BOXES),  # [box]: the most that a box can hold
        ("bonus", np.int16, MAX_BASIC_TOTAL + 1),  # [basic_total]: bonus of a full Basic Section
        ("tier_totals", np.int16, MOST_TIERS),  # [tier]: Basic total that each tier asks for, ascending
        ("num_tiers", np.int64),
        ("basic_cap", np.int64),  # the top tier: a Basic total above it brings nothing more; 0 without tiers
        ("zeros", np.int64),  # index into rules.ZEROS
        ("yarborough", np.int64),  # index into rules.YARBOROUGH
        ("second_kismet", np.int64),  # index into rules.SECOND_KISMET
        ("penalty", np.int64),  # 1: a second Kismet hits the opponents
        ("five_alike", np.uint8, dice.NUM_ROLLS),  # [roll]: dice.IS_FIVE_ALIKE
        ("like", np.uint8, (NUM_BOXES, dice.NUM_ROLLS)),  # [box, roll]: first_alike
        ("rolls_after", np.int16, len(dice.ROLLS_AFTER)),  # dice.ROLLS_AFTER
        ("first_roll_after", np.int64, dice.NUM_REROLL_KEEPS),  # [keep]: dice.FIRST_ROLL_AFTER
        ("num_throws", np.int64, dice.NUM_REROLL_KEEPS),  # [keep]: dice.NUM_THROWS
    ],
    align=True,
)


def record_of(dtype: np.dtype[Any], **values: Any) -> Record:
    """Return a read-only structured array of shape (1,) that holds `values`, one for each field."""
    record = np.zeros(1, dtype)
    for name in dtype.names or ():
        record[name][0] = values.pop(name)
    assert not values, values
    record.flags.writeable = False
    return record


@lru_cache(maxsize=64)
def tables_of(rules: Rules) -> Record:
    """Return the tables of `rules`, dtype TABLES and shape (1,); the same object for equal rules."""
    points = np.array(
        [
            [[score(roll, box, rules, joker=joker) for box in Box] for roll in dice.ROLL_DICE.tolist()]
            for joker in (False, True)
        ]
    )
    totals = [total for total, _ in rules.bonus_tiers]
    return record_of(
        TABLES,
        points=points,
        scoring=((points > 0) << np.arange(NUM_BOXES)).sum(-1),
        max_points=points.max((0, 1)),
        bonus=[basic_bonus(total, rules) for total in range(MAX_BASIC_TOTAL + 1)],
        tier_totals=totals + [0] * (MOST_TIERS - len(totals)),
        num_tiers=len(totals),
        basic_cap=totals[-1] if totals else 0,
        zeros=ZEROS.index(rules.zeros),
        yarborough=YARBOROUGH.index(rules.yarborough),
        second_kismet=SECOND_KISMET.index(rules.second_kismet),
        penalty=rules.second_kismet_penalty,
        five_alike=dice.IS_FIVE_ALIKE,
        like=first_alike(points),
        rolls_after=dice.ROLLS_AFTER,
        first_roll_after=dice.FIRST_ROLL_AFTER,
        num_throws=dice.NUM_THROWS,
    )


def first_alike(points: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the first roll that means the same to a box as each roll does, whatever the card, [box, roll] (15, 252).

    Such rolls bring the same `points` [joker, roll, box], joker or not, and are five alike or not. A box knows 31 kinds
    at most, so that a solver fills boxes an eighth as often.
    """
    like = []
    for box in range(NUM_BOXES):
        kinds = np.stack([*points[..., box], dice.IS_FIVE_ALIKE], axis=1)
        _, first, kind = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        like.append(first[kind.reshape(-1)])
    return np.stack(like)


def box_points(rules: Rules) -> npt.NDArray[np.int16]:
    """Return what every roll is worth in every box, [joker, roll, box] (2, 252, 15) int16; joker 1: a second Kismet."""
    points: npt.NDArray[np.int16] = tables_of(rules)["points"][0]
    return points


def max_total(rules: Rules) -> int:
    """Return the highest total a card can reach under `rules`, every box at its best."""
    tables = tables_of(rules)[0]
    basic_total = int(tables["max_points"][list(BASIC_BOXES)].sum())
    return int(tables["max_points"].sum()) + int(tables["bonus"][basic_total])
