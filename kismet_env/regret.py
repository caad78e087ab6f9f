"""What a decision cost and what the dice brought, measured against the exact optimum.

The regret of a decision is the exact value it gave away, the luck of a roll the exact value of the dice that came
minus what was to be expected. In every solitaire game

    final score = value of the start + sum of luck - sum of regret

and luck has mean zero whoever plays, so that value of the start minus regret estimates a player's expected score
without the noise of the dice (Zinkevich et al. 2006; AIVAT, Burch et al. 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.actions import Actions
from kismet_env.dice import roll_indices
from kismet_env.observation import Decision
from kismet_env.solver import Optimum
from kismet_env.turn import best_actions


class Judgement(NamedTuple):
    """What one move cost and what the dice brought after it, in points; arrays (n,) float64."""

    regret: npt.NDArray[np.float64]  # not negative; 0 for an illegal action
    luck: npt.NDArray[np.float64]  # 0 for an illegal action and where no dice were rolled


class Judge:
    """Follows N solitaire games move by move.

    Args:
        optimum: the truth, of the rules that are played.
        actions: the numbering in which actions are given.
        num_games: N.

    `rows` (n,) says which of the games the other arguments, (n,) each, belong to.
    """

    def __init__(self, optimum: Optimum, actions: Actions, num_games: int) -> None:
        self._optimum, self._actions = optimum, actions
        self.values = np.full((num_games, actions.num_actions), -np.inf)
        """Exact value of each action now, [game, action] (N, A) in points still to come; -inf where illegal."""

    def begin(self, rows: npt.NDArray[np.int64], start: Decision) -> npt.NDArray[np.float64]:
        """Begin games that start with the decisions `start` and return the luck of the dice on the table."""
        self.values[rows] = self._action_values(start)
        luck: npt.NDArray[np.float64] = self.values[rows].max(1) - self._optimum.card_value(*start[:3])
        return luck

    def follow(
        self,
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        after: Decision,
        over: npt.NDArray[np.bool_],
    ) -> Judgement:
        """Judge the `actions` that led to the decisions `after`, or to the end where a game is `over`.

        Actions are judged illegal by the values, as they were by the mask, and move nothing on.
        """
        before = self.values[rows]
        chosen = before[np.arange(len(rows)), actions]
        legal = chosen > -np.inf
        regret = np.where(legal, before.max(1) - np.where(legal, chosen, 0.0), 0.0)
        luck = np.zeros(len(rows))
        goes_on = legal & ~over
        if goes_on.any():
            now = after.at(goes_on)
            values = self._action_values(now)
            self.values[rows[goes_on]] = values
            rolled_on = actions[goes_on] < self._actions.num_rolls
            expected = np.where(rolled_on, chosen[goes_on], self._optimum.card_value(*now[:3]))
            luck[goes_on] = values.max(1) - expected
        return Judgement(regret, luck)

    def best_actions(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the best action now, (n,); among equals the lowest number."""
        return best_actions(self.values[rows])

    def _action_values(self, decision: Decision) -> npt.NDArray[np.float64]:
        values = self._optimum.action_values(*decision)
        if self._actions.numbering == "keeps":
            return values
        keeps = self._actions.keep_of[roll_indices(decision.dice)]
        rolling = np.where(keeps >= 0, np.take_along_axis(values, np.maximum(keeps, 0).astype(np.int64), 1), -np.inf)
        return np.concatenate([rolling, values[:, -self._actions.num_boxes :]], axis=1)
