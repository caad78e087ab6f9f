"""One number for each of many positions, learned from lessons: what afterstate and selfplay have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents.networks import check_widths, dense, layers_of
from agents.run import Config, check_options

Positions = npt.NDArray[np.int64]
"""Positions as whole numbers, which fit into 16 bits, (N, C)."""
Targets = npt.NDArray[np.float64]
"""What the positions are worth, (N,)."""


_MOST_AT_ONCE = 1 << 20  # games, positions: more of them do not fit into memory


class Options(Config, Protocol):
    """What a learner's options say of learning."""

    games: int
    backwards_share: float
    hidden_sizes: tuple[int, ...]
    updates: int
    batch_size: int
    memory: int
    averaging: float


def check_learning(options: Options, inputs: int, *, selection: str, above_0: str) -> None:
    """Raise ValueError for the first of a learner's options that has no such value.

    `inputs`: of the network. `selection` and `above_0` are names of options that not every learner has: by how many
    games or deals the best policy is chosen, and a number above 0.
    """
    check_options(
        options,
        at_least_1=("steps", "updates", "batch_size", "memory", selection, "selection_every", "threads"),
        above_0=("minutes", "learning_rate", above_0),
        from_0=("seed", "checkpoint_minutes"),
        shares=("td_lambda", "backwards_share", "averaging"),
    )
    if options.games < 2:
        raise ValueError(f"games={options.games} is not at least 2")
    if options.backwards_share == 1:
        raise ValueError("backwards_share=1 leaves own games no share of the run; give less")
    for name in ("games", "batch_size", selection):
        if (value := getattr(options, name)) > _MOST_AT_ONCE:
            raise ValueError(f"{name}={value} is not at most {_MOST_AT_ONCE:,}")
    check_widths(inputs, options.hidden_sizes, 1)


class Regression:
    """A network that learns, a running average of it that judges, and the lessons of the last rounds.

    Args:
        options: of the learner.
        sizes: of the layers; the last one begins with zeros.
        columns: whole numbers of a position, C.
    """

    def __init__(self, options: Options, sizes: Sequence[int], *, columns: int) -> None:
        self._options = options
        self.network = dense(sizes)
        for last in self.network[-1].parameters():
            nn.init.zeros_(last)
        self.average = AveragedModel(self.network, multi_avg_fn=get_ema_multi_avg_fn(options.averaging))
        self._optimizer = torch.optim.Adam(self.network.parameters())
        self._positions, self._targets = np.empty((0, columns), np.int64), np.empty(0)

    def learn(
        self,
        positions: Positions,
        targets: Targets,
        *,
        loss: Callable[[Positions, Targets], Tensor],
        learning_rate: float,
        chance: np.random.Generator,
    ) -> float:
        """Do the steps of Adam of a round, half on these lessons, half on all that are kept.

        `loss` is that of `network`, a mean of squares. Returns the root of its mean on the way.
        """
        options = self._options
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        num_new = len(positions)
        self._positions = np.concatenate([self._positions, positions])[-options.memory :]
        self._targets = np.concatenate([self._targets, targets])[-options.memory :]
        size = len(self._positions)
        total = 0.0
        for _ in range(options.updates):
            new = chance.integers(max(0, size - num_new), size, size=options.batch_size - options.batch_size // 2)
            rows = np.concatenate([new, chance.integers(size, size=options.batch_size // 2)])
            error = loss(self._positions[rows], self._targets[rows])
            self._optimizer.zero_grad()
            error.backward()
            self._optimizer.step()
            self.average.update_parameters(self.network)
            total += error.item()
        return (total / options.updates) ** 0.5

    def layers(self) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return weight and bias of each layer of what judges."""
        return layers_of(self.average.module)

    def state(self) -> dict[str, Any]:
        """Return all that has been learned, and the lessons."""
        return {
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "positions": torch.from_numpy(self._positions.astype(np.int16)),
            "targets": torch.from_numpy(self._targets),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new one of the same options where `state` was taken."""
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._positions = state["positions"].numpy().astype(np.int64)
        self._targets = state["targets"].numpy()
