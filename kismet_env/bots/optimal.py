"""Perfect solitaire play: every action is one with the highest exact value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.bots.player import Actions, Masks, Observations, Shares
from kismet_env.engine import ALL_BOXES
from kismet_env.exact import TurnPolicy
from kismet_env.observation import decode
from kismet_env.rules import Rules
from kismet_env.solver import solve
from kismet_env.turn import best_actions

_NUM_ACTIONS = actions_of("keeps").num_actions


class Optimal:
    """Plays the best action, the lowest number among equals. The first use under some rules solves them: seconds."""

    def __init__(self, rules: Rules) -> None:
        self._optimum = solve(rules, progress=True)

    def action_values(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return the exact expected points still to come after each action, (N, 225); -inf where illegal.

        Where the game is over nothing is illegal, and nothing comes.
        """
        decision = decode(observations)
        going_on = decision.filled != ALL_BOXES
        values = np.zeros((len(observations), _NUM_ACTIONS))
        values[going_on] = self._optimum.action_values(*decision.at(going_on))
        return values

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row."""
        return best_actions(self.action_values(observations))

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("best", write_worths=self._optimum.write_worths)
