"""Play by the exact values with a temperature: the more a mistake costs, the rarer it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kismet_env.bots.optimal import Optimal
from kismet_env.bots.player import Masks, Observations, StochasticPlayer
from kismet_env.exact import TurnPolicy
from kismet_env.rules import Rules


class Boltzmann(StochasticPlayer):
    """Plays each legal action with probability proportional to exp(exact value / temperature in points).

    Raises ValueError unless the temperature is positive and finite.
    """

    def __init__(self, temperature: float, rules: Rules) -> None:
        super().__init__()
        if not (temperature > 0 and math.isfinite(temperature)):
            raise ValueError(f"boltzmann:{temperature:g} is not a temperature; it is a positive number of points")
        self._temperature = temperature
        self._optimal = Optimal(rules)

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action, (N, A)."""
        values = self._optimal.action_values(observations)
        weights = np.exp((values - values.max(1, keepdims=True)) / self._temperature)
        shares: npt.NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        return shares

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return replace(self._optimal.turn_policy(), style="boltzmann", strength=self._temperature)
