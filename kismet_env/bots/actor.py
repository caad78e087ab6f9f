"""Plays what the network of a portable policy of kind "actor" has learned."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kismet_env.bots.network_player import NetworkPlayer
from kismet_env.policy_file import Policy


class Actor(NetworkPlayer):
    """Draws from the softmax of the network's logits over the legal actions.

    Args:
        policy: one of kind "actor"; it plays under the rules it was trained for.
    """

    def __init__(self, policy: Policy) -> None:
        trained = policy.provenance
        super().__init__(trained.observation, trained.actions, trained.rules, num_players=trained.num_players)
        self._network = policy.network

    def own_probabilities(self, seen: npt.NDArray[np.float32], legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return the probabilities of the network's own actions, (N, A)."""
        logits = np.where(legal, self._network(seen), -np.inf)
        highest = logits.max(1, keepdims=True)
        weights = np.exp(logits - np.where(legal.any(1, keepdims=True), highest, 0.0))
        shares: npt.NDArray[np.float64] = weights / np.maximum(weights.sum(1, keepdims=True), 1.0)
        return shares  # all 0 where nothing is legal, after the end; elsewhere the likeliest action weighs 1

    def weights(self) -> Iterable[bytes]:
        """Yield all that the network is made of."""
        yield self._network.activation.encode()
        for layer in self._network.layers:
            yield from (array.tobytes() for array in layer)
