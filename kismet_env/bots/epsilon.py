"""Perfect play with slips: an opponent of any strength between random and optimal, with known probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kismet_env.bots.optimal import Optimal
from kismet_env.bots.player import Masks, Observations, StochasticPlayer
from kismet_env.exact import TurnPolicy
from kismet_env.rules import Rules


class Epsilon(StochasticPlayer):
    """Plays any legal action with probability `epsilon`, else the best one.

    Raises ValueError unless 0 <= epsilon <= 1.
    """

    def __init__(self, epsilon: float, rules: Rules) -> None:
        super().__init__()
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon:{epsilon:g} is not a probability; it goes from 0 to 1")
        self._epsilon = epsilon
        self._optimal = Optimal(rules)

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action, (N, A)."""
        shares: npt.NDArray[np.float64] = self._epsilon * masks / masks.sum(1, dtype=np.float64, keepdims=True)
        shares[np.arange(len(masks)), self._optimal.act(observations, masks)] += 1 - self._epsilon
        return shares

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return replace(self._optimal.turn_policy(), style="epsilon", strength=self._epsilon)
