"""What a player at a table can be told: the best actions, in points and, with opponents, in chances to win."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.dice import roll_index
from kismet_env.rules import Rules
from kismet_env.solver import solve
from kismet_env.win_chance import action_chances

_KEEPS = actions_of("keeps")
_DIGITS = 9  # to which values are compared: less is rounding


class Advised(NamedTuple):
    """An action and what it is worth."""

    action: int  # numbering "keeps"
    text: str
    score: float  # expected final score, in points, if all that follows is the best in points
    loss: float  # points less than the best
    win: float | None  # share of the win, 0..1, as `win_chance` judges it; None with nobody to beat

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def advise(
    cards: npt.NDArray[np.int64],
    rules: Rules,
    *,
    dice: Sequence[int],
    rolls_left: int,
    count: int | None = None,
    to_win: bool = True,
) -> tuple[Advised, ...]:
    """Return the `count` best actions, or all of them, the best one first.

    The best to win comes first, or, with nobody to beat or not `to_win`, the best in points; among equals the lowest
    number. Points are those of the solitaire game: they know of no zeros that others force.

    Args:
        cards: those of all players, (P, 4) as in `win_chance`, the one to move first, the others in playing order.
        rules: those of the game.
        dice: five faces.
        rolls_left: 2, 1 or 0.
        count: at least 1.
        to_win: judge chances too; the first time under some rules this takes minutes (`win_chance.judge_of`).

    Raises ValueError for a card or dice that cannot be.
    """
    filled, basic_total, armed, total = cards[0].tolist()
    values = solve(rules).action_values(filled, basic_total, armed, dice, rolls_left)
    worth = [np.arange(len(values)), -np.round(values, _DIGITS)]
    chances = None
    if to_win and len(cards) > 1:
        chances = action_chances(cards, rules, roll=roll_index(dice), rolls_left=rolls_left)
        worth.append(-np.round(chances, _DIGITS))
    legal = int((values > -np.inf).sum())
    return tuple(
        Advised(
            int(action),
            _KEEPS.text(int(action)),
            total + float(values[action]),
            float(values.max() - values[action]),
            None if chances is None else float(chances[action]),
        )
        for action in np.lexsort(worth)[:legal][:count]
    )
