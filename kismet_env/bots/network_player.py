"""Networks as players: between what every player is shown and may do, and what a network was trained on.

A network may have seen observations of form "features" or "raw" and know either numbering of the actions; players see
"features" and play "keeps".
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.bots.player import Actions, Masks, Observations, Shares, StochasticPlayer
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
        num_players: how many there are in its games. One who plays for itself, 1, may sit in any match.
    """

    def __init__(self, observation: str, actions: str, rules: Rules, *, num_players: int = 1) -> None:
        super().__init__()
        features, own = (layout_of(rules, num_players, form) for form in ("features", observation))
        self.num_players, self._size = num_players, features.size
        self._columns = np.concatenate([np.r_[features.slices[piece.name]] for piece in own.pieces])
        boxes = np.tile([actions_of("keeps").box_action(box) for box in Box], (NUM_ROLLS, 1))
        self._action_of = np.concatenate([actions_of(actions).keep_of.astype(np.int64), boxes], axis=1)
        # [roll, own action] (252, A): the action of "keeps" that it is, -1 where there is none

    @abstractmethod
    def own_probabilities(
        self, seen: npt.NDArray[np.float32], legal: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.floating]:
        """Return the probabilities of the network's own actions, (N, A); those that are not `legal` are not read."""

    @abstractmethod
    def weights(self) -> Iterable[bytes]:
        """Yield all that the network is made of."""

    def fingerprint(self) -> str:
        """Return a hash of the network and of what it is asked; see AskedPlayer."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for part in (self._columns.tobytes(), self._action_of.tobytes(), *self.weights()):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action of the "keeps" numbering, (N, 225).

        Raises ValueError for observations of matches of another number of players than it knows.
        """
        if self.num_players > 1 and observations.shape[1] != self._size:
            raise ValueError(f"the network knows games of {self.num_players} players alone, these are others")
        actions = self._action_of[roll_indices(decode(observations).dice)]
        legal = (actions >= 0) & (np.take_along_axis(masks, np.maximum(actions, 0), axis=1) > 0)
        own = self.own_probabilities(observations[:, self._columns], legal)
        probabilities = np.zeros(masks.shape)
        rows, columns = np.nonzero(legal)
        probabilities[rows, actions[rows, columns]] = own[rows, columns]
        return probabilities


class MostProbable:
    """Plays the most probable action of a network, the lowest number among equals."""

    def __init__(self, player: NetworkPlayer) -> None:
        self._player = player

    @property
    def num_players(self) -> int:
        """How many players there are in its games, 1 for one who plays for itself."""
        return self._player.num_players

    def fingerprint(self) -> str:
        """Return that of the network, with a word more."""
        return f"argmax {self._player.fingerprint()}"

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return an action for every row."""
        actions: Actions = self._player.probabilities(observations, masks).argmax(1)
        return actions
