"""One number for each of many positions, learned from lessons: what afterstate and selfplay have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents.networks import check_widths, dense, layers_of
from agents.run import Config, Run, check_options
from kismet_env.evaluation import TRAINING_DICE, game_keys
from kismet_env.policy_file import Policy, save_policy

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
    learning_rate: float
    seed: int
    selection_every: int


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


C = TypeVar("C", bound=Options)


class RoundLearner(ABC, Generic[C]):
    """Learns in rounds: from positions that are dealt, backwards from the ends of games, then from those of own games.

    Args:
        config: its options.
        run: says how much of it is done.
        sizes: of the layers of its network.
        columns: whole numbers of a position.
        unit: what 1 for the network is in the curve.

    Attributes:
        config: as above.
        learned: the network.
        steps: positions learned from so far.
    """

    def __init__(self, config: C, run: Run, sizes: Sequence[int], *, columns: int, unit: float) -> None:
        self.config, self._run, self._unit = config, run, unit
        seed, self._dice_seed = np.random.SeedSequence(config.seed).generate_state(2).tolist()
        torch.manual_seed(seed)
        self.learned = Regression(config, sizes, columns=columns)
        self._rounds, self._games, self.steps = 0, 0, 0
        self._is_backwards = False

    @property
    def backwards_share(self) -> float:
        """Share of the run that goes backwards."""
        return self.config.backwards_share

    @abstractmethod
    def dealt_lessons(self, share_done: float, chance: np.random.Generator) -> tuple[Positions, Targets]:
        """Return dealt positions and what they are worth; how far back they lie says `share_done`, from 0 to 1."""

    @abstractmethod
    def own_lessons(self, chance: np.random.Generator) -> tuple[Positions, Targets, float]:
        """Return positions of own games, what they are worth, and the mean result of these games, for the curve."""

    @abstractmethod
    def loss(self, positions: Positions, targets: Targets) -> Tensor:
        """Return the mean of the squared errors of the network."""

    @abstractmethod
    def selection_score(self) -> float:
        """Return how well it plays in games on other dice."""

    @abstractmethod
    def portable(self) -> Policy:
        """Return what has been learned, to be played without torch."""

    def round(self) -> dict[str, float | None]:
        """Do a round and return what there is to say of it."""
        share_done, backwards = self._run.share_done(self.steps), self.backwards_share
        chance = np.random.default_rng((self._dice_seed, self._rounds))
        self._is_backwards, mean_return = share_done < backwards, None
        if self._is_backwards:
            positions, targets = self.dealt_lessons(share_done / backwards, chance)
        else:
            positions, targets, mean_return = self.own_lessons(chance)
        learning_rate = self.config.learning_rate * min(1.0, max(0.0, 1 - share_done) / (1 - backwards))
        error = self.learned.learn(positions, targets, loss=self.loss, learning_rate=learning_rate, chance=chance)
        self._rounds += 1
        self.steps += len(positions)
        return {
            "steps": self.steps,
            "mean_return": mean_return,
            "selection_score": None,
            "error": error * self._unit,
            "learning_rate": learning_rate,
        }

    def new_keys(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the keys of so many new games of training, (count,)."""
        first, self._games = self._games, self._games + int(count)  # numpy's numbers are nothing for checkpoints
        return game_keys(TRAINING_DICE, self._dice_seed, range(first, self._games))

    def has_diverged(self, row: Mapping[str, float | None]) -> bool:
        """Return whether the error is no number any more."""
        return not np.isfinite(row["error"] or 0.0)

    def is_due(self) -> bool:
        """Return whether it is time for a selection score: now and then, in own games."""
        return self._rounds % self.config.selection_every == 0 and not self._is_backwards

    def save(self, folder: Path, name: str) -> None:
        """Write what has been learned into `folder`."""
        save_policy(folder / f"{name}.safetensors", self.portable())

    def state(self) -> dict[str, Any]:
        """Return all it takes to go on as if nothing had been; the chance of a round follows from its number."""
        return {**self.learned.state(), "rounds": self._rounds, "games": self._games, "steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new learner of the same options where `state` was taken."""
        self.learned.restore(state)
        self._rounds, self._games, self.steps = state["rounds"], state["games"], state["steps"]
