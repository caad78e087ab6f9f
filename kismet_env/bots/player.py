"""What a player is: a whole batch of decisions in, actions out. Nothing but observations and masks is seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from kismet_env.dice import roll_indices
from kismet_env.exact import TurnPolicy
from kismet_env.observation import decode
from kismet_env.tables import Record
from kismet_env.turn import action_values

Observations = npt.NDArray[np.float32]
"""(N, D), form "features", of solitaire or of any match: players who play for themselves read the first block."""
Masks = npt.NDArray[np.int8]
"""(N, A), 1 where an action of the numbering "keeps" is legal."""
Shares = npt.NDArray[np.float64]
"""(N,) in [0, 1): the uniform number that belongs to each decision (`Batch.choice_shares`)."""
Actions = npt.NDArray[np.int64]
"""(N,), numbering "keeps"."""


class Player(Protocol):
    """Anybody who can play. What comes back for games that are over is any number of an action."""

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return an action for every row; who draws lots draws with `u`, so that a row does not depend on others."""
        ...


@runtime_checkable
class TurnPlayer(Protocol):
    """A player who can say as data how he chooses, so that his value can be worked out; see `kismet_env.exact`."""

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        ...


@runtime_checkable
class AskedPlayer(Player, Protocol):
    """A player who says nothing of how he chooses and has to be asked in every decision; see `kismet_env.asked`.

    What he does, or with what probabilities if he is a StochasticPlayer, depends on the first block of what he sees
    and on nothing else.
    """

    def fingerprint(self) -> str:
        """Return a text that is another one for players who might do something else, and the same in every process."""
        ...


@runtime_checkable
class ValuePlayer(Protocol):
    """A player who says how many points he expects still to come after each action, as the optimum does."""

    def action_values(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return these points, (N, A); what is said of illegal actions is not read."""
        ...


class StochasticPlayer(ABC):
    """A player who draws his actions from probabilities that he can name."""

    def __init__(self) -> None:
        self._own_chance = np.random.default_rng(0)

    @abstractmethod
    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action, (N, A); 0 where illegal, rows sum to 1."""

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return an action for every row, drawn with `u`; without it from a generator of the player's own, seed 0."""
        if u is None:
            u = self._own_chance.random(len(masks))
        return sample(self.probabilities(observations, masks), u)


def sample(probabilities: npt.NDArray[np.floating], u: Shares) -> Actions:
    """Return for every row the first action at which the cumulated probabilities (N, A) exceed `u` (N,).

    Rows need not sum to 1 exactly; an action of probability 0 is never drawn.
    """
    cumulated = probabilities.cumsum(1, dtype=np.float64)
    total = cumulated[:, -1]
    threshold = np.minimum(u * total, np.nextafter(total, 0.0))
    actions: Actions = (cumulated > threshold[:, None]).argmax(1)
    return actions


def turn_values(
    observations: Observations,
    tables: Record,
    write_worths: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], None],
) -> npt.NDArray[np.float64]:
    """Return what each action is worth to a player who judges the cards a turn can end in; see turn.action_values."""
    decision = decode(observations)
    cards = np.stack([decision.filled, decision.basic_total, decision.armed], axis=1)
    return action_values(tables, cards, roll_indices(decision.dice), decision.rolls_left, write_worths)
