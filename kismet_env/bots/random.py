"""Plays any legal action, each with the same probability."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kismet_env.bots.player import Masks, Observations, StochasticPlayer
from kismet_env.exact import TurnPolicy
from kismet_env.rules import Rules


class Random(StochasticPlayer):
    """Uniform over the legal actions."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return 1 / (number of legal actions) where an action is legal, (N, A)."""
        shares: npt.NDArray[np.float64] = masks / masks.sum(1, dtype=np.float64, keepdims=True)
        return shares

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("epsilon", 1.0)
