"""Networks as players: between what every player is shown and may do, and what a network was trained on.

A network may have seen observations of form "features" or "raw" and know either numbering of the actions; players see
"features" and play "keeps".
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.bots.player import Masks, Observations, StochasticPlayer
from kismet_env.dice import NUM_ROLLS, roll_indices
from kismet_env.observation import decode, layout_of
from kismet_env.rules import Box, Rules

FORMS = ("features", "raw")
"""Forms of observation that a network can have seen, which are parts of what players see."""


class NetworkPlayer(StochasticPlayer):
    """A player who asks a network, in its own terms.

    Args:
        observation: form of the observations of the network, one of FORMS.
        actions: numbering of its actions.
        rules: those of the games.
    """

    def __init__(self, observation: str, actions: str, rules: Rules) -> None:
        super().__init__()
        features, own = layout_of(rules, 1, "features"), layout_of(rules, 1, observation)
        self._columns = np.concatenate([np.r_[features.slices[piece.name]] for piece in own.pieces])
        boxes = np.tile([actions_of("keeps").box_action(box) for box in Box], (NUM_ROLLS, 1))
        self._action_of = np.concatenate([actions_of(actions).keep_of.astype(np.int64), boxes], axis=1)
        # [roll, own action] (252, A): the action of "keeps" that it is, -1 where there is none

    @abstractmethod
    def own_probabilities(
        self, seen: npt.NDArray[np.float32], legal: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.floating]:
        """Return the probabilities of the network's own actions, (N, A); those that are not `legal` are not read."""

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action of the "keeps" numbering, (N, 225)."""
        actions = self._action_of[roll_indices(decode(observations).dice)]
        legal = (actions >= 0) & (np.take_along_axis(masks, np.maximum(actions, 0), axis=1) > 0)
        own = self.own_probabilities(observations[:, self._columns], legal)
        probabilities = np.zeros(masks.shape)
        rows, columns = np.nonzero(legal)
        probabilities[rows, actions[rows, columns]] = own[rows, columns]
        return probabilities
