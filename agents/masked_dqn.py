"""Deep Q-learning (Mnih et al. 2015) with masked actions: double (van Hasselt et al. 2016), n-step, from a memory.

A network says what every action is worth. It plays the best legal one, or now and then any legal one, in many games
side by side, and learns from what it remembers:

    target = rewards of n steps + the slow network's value, n decisions on, of the action that is best to the fast one

where that action too is chosen among the legal ones, and nothing follows the end of a game. The slow network is a
running average of the fast one, and what is played in the end. Remembered are decisions as whole numbers, ten bytes
each; what the network sees of them is what a game would show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents.networks import check_widths, dense, layers_of
from agents.run import Run, arithmetic, check_options, packed, unpacked
from kismet_env.actions import actions_of
from kismet_env.batch import Batch, Step
from kismet_env.bots import MostProbable
from kismet_env.bots.actor import Actor
from kismet_env.dice import ROLL_DICE, hash_words, roll_indices
from kismet_env.evaluation import SELECTION_DICE, TRAINING_DICE, play
from kismet_env.observation import Decision, layout_of
from kismet_env.policy_file import Network, Policy, save_policy
from kismet_env.provenance import Provenance
from kismet_env.rules import Rules

_NUM_ACTIONS = actions_of("keeps").num_actions
_MOST = 1 << 24  # decisions in memory: 280 MB


@dataclass(frozen=True)
class Config:
    """Train a network that says what actions are worth on solitaire Kismet, by double n-step Q-learning with masks."""

    steps: int | None = None
    """Length of the run in steps of the environment, rounded up to whole rounds; None: no limit."""
    minutes: float | None = None
    """Length of the run in minutes on the clock; None: no limit, or 5 without --steps. The earlier of both counts."""
    seed: int = 0
    """Seed of the network and of the training dice, from 0 up."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    num_envs: int = 256
    """Games side by side."""
    round_steps: int = 64
    """Steps of every game in a round, a row of the curve."""
    memory: int = 500_000
    """Decisions that are remembered."""
    n_steps: int = 3
    """Steps whose rewards are counted before the network's own values are trusted."""
    batch_size: int = 1024
    """Decisions behind one gradient; there is one after each step of all games."""
    learning_rate: float = 1e-3
    """Of Adam, at the start; falls linearly to 0 at the end of the run."""
    averaging: float = 0.995
    """Weight of the past in the slow network, after every step of Adam."""
    exploration: float = 0.02
    """Share of actions that are any legal one; falls to this, from 1, linearly."""
    exploration_share: float = 0.1
    """Share of the run in which it does so."""
    discount: float = 1.0
    """Worth of a point one step later; 1, because a game ends after at most 45 steps."""
    max_gradient_norm: float = 10.0
    """Longer gradients are cut to this length."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""
    points_per_unit: float = 20.0
    """Points are divided by this, so that what the network learns is of the order of 1."""
    selection_games: int = 2048
    """Games by which the best policy of the run is chosen, dice of their own."""
    selection_every: int = 20
    """Rounds between two such evaluations."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints, at most so many are lost when the run is killed."""
    threads: int | None = None
    """Threads of the network's arithmetic; None: one for each core. On a busy machine 1 is faster."""

    def __post_init__(self) -> None:
        check_options(
            self,
            at_least_1=(
                "steps",
                "num_envs",
                "round_steps",
                "n_steps",
                "batch_size",
                "threads",
                "selection_games",
                "selection_every",
            ),
            above_0=("minutes", "learning_rate", "points_per_unit", "max_gradient_norm"),
            from_0=("seed", "checkpoint_minutes"),
            shares=("averaging", "exploration", "exploration_share", "discount"),
        )
        if not (self.n_steps + 1) * self.num_envs <= self.memory <= _MOST:
            raise ValueError(
                f"memory={self.memory} is not from (n_steps + 1) x num_envs, {(self.n_steps + 1) * self.num_envs:,}, "
                f"to {_MOST:,} decisions"
            )
        sizes = {name: getattr(self, name) for name in ("batch_size", "selection_games")}
        sizes["num_envs x round_steps"] = self.num_envs * self.round_steps  # between two moments to save and to stop
        for name, size in sizes.items():
            if size > _MOST:
                raise ValueError(f"{name}={size:,} is not at most {_MOST:,}")
        check_widths(layout_of(self.rules).size, self.hidden_sizes, _NUM_ACTIONS)

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return Provenance.of("masked_dqn", rules=self.rules, seed=self.seed, config=asdict(self))


def train(config: Config, run: Run) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`."""
    with arithmetic(config.threads), run:
        run.train(Learner(config, run))


def best_legal(values: Tensor, masks: Tensor) -> Tensor:
    """Return the legal action of the highest value, (n,), of `values` (n, A) where `masks` (n, A) is not 0."""
    return torch.where(masks > 0, values, -torch.inf).argmax(1)


def double_targets(
    rewards: Tensor, over: Tensor, discount: float, *, fast: Tensor, slow: Tensor, masks: Tensor
) -> Tensor:
    """Return what actions are worth by n rewards and what follows them, (B,).

    Args:
        rewards: of n steps from the action on, (B, n).
        over: whether the game ended with each of these steps, (B, n); what comes after that belongs to another game.
        discount: worth of one step later.
        fast, slow: values (B, A) of the decision n steps on: the fast ones choose the action, the slow ones count.
        masks: what is legal there, (B, A).
    """
    goes_on = 1 - over.float().cummax(1).values
    weights = discount ** torch.arange(rewards.shape[1])
    counted = rewards[:, 0] + (rewards[:, 1:] * weights[1:] * goes_on[:, :-1]).sum(1)
    ahead = slow.gather(1, best_legal(fast, masks)[:, None])[:, 0]
    return counted + discount ** rewards.shape[1] * goes_on[:, -1] * ahead


class Memory:
    """The last steps of N games: `length` of them, each N decisions, what was done and what came of it."""

    def __init__(self, length: int, num_games: int) -> None:
        self.decisions = np.zeros((length, num_games, 5), np.int16)  # filled, basic_total, armed, roll, rolls_left
        self.actions = np.zeros((length, num_games), np.int16)
        self.rewards = np.zeros((length, num_games), np.float32)  # points
        self.over = np.zeros((length, num_games), np.bool_)  # the game ended with this step
        self.steps = 0  # so many have been remembered; the last one stands at (steps - 1) % length

    def add(self, before: Decision, actions: npt.NDArray[np.int64], after: Step) -> None:
        """Remember one step of all games in the place of the oldest one."""
        at = self.steps % len(self.actions)
        self.decisions[at] = np.stack([*before._replace(dice=roll_indices(before.dice))], axis=1)
        self.actions[at], self.rewards[at], self.over[at] = actions, after.rewards[:, 0], after.terminated
        self.steps += 1

    def places(self, count: int, ahead: int, chance: np.random.Generator) -> tuple[Any, Any]:
        """Return steps (count, ahead + 1) that follow one another, the first ones random, and games (count, 1)."""
        known = min(self.steps, len(self.actions))
        first = chance.integers(self.steps - known, self.steps - ahead, size=(count, 1))
        games = chance.integers(self.actions.shape[1], size=(count, 1))
        return (first + np.arange(ahead + 1)) % len(self.actions), games

    def decided(self, steps: Any, games: Any) -> Decision:
        """Return the decisions of these steps (n,) in these games (n,)."""
        filled, basic_total, armed, roll, left = self.decisions[steps, games].astype(np.int64).T
        return Decision(filled, basic_total, armed > 0, ROLL_DICE[roll].astype(np.int64), left)


class Learner:
    """Everything that changes in the course of a run."""

    def __init__(self, config: Config, run: Run) -> None:
        self.config, self._run = config, run
        seed, self._dice_seed = np.random.SeedSequence(config.seed).generate_state(2).tolist()
        torch.manual_seed(seed)
        self._fast = dense((layout_of(config.rules).size, *config.hidden_sizes, _NUM_ACTIONS))
        self._slow = AveragedModel(self._fast, multi_avg_fn=get_ema_multi_avg_fn(config.averaging))
        self._optimizer = torch.optim.Adam(self._fast.parameters())
        self._games = Batch(config.num_envs, rules=config.rules, autoreset="SameStep")
        first = int(hash_words(TRAINING_DICE, self._dice_seed))
        self._games.seed([first + row for row in range(config.num_envs)])
        self._seen = self._games.deal()
        self._memory = Memory(config.memory // config.num_envs, config.num_envs)
        self._shown = Batch(config.batch_size, rules=config.rules)
        self.rounds = 0

    @property
    def steps(self) -> int:
        """Steps of the environment so far."""
        return self.rounds * self.config.round_steps * self.config.num_envs

    def round(self) -> dict[str, float | None]:
        """Do a round and return what there is to say of it."""
        config = self.config
        chance = np.random.default_rng((self._dice_seed, self.rounds))
        share_done = self._run.share_done(self.steps)
        risen = min(1.0, share_done / config.exploration_share) if config.exploration_share else 1.0
        exploration = 1 + risen * (config.exploration - 1)
        for group in self._optimizer.param_groups:
            group["lr"] = config.learning_rate * max(0.0, 1 - share_done)
        totals, losses = [], []
        for _ in range(config.round_steps):
            before, actions = self._games.decisions(), self._act(chance, exploration)
            self._seen = self._games.step(actions)
            self._memory.add(before, actions, self._seen)
            totals.append(self._games.final.totals[self._seen.terminated])
            if self._memory.steps > config.n_steps:
                losses.append(self._learn(chance))
        self.rounds += 1
        ended = np.concatenate(totals)
        return {
            "steps": self.steps,
            "mean_return": float(ended.mean()) if len(ended) else None,
            "selection_score": None,
            "games": len(ended),
            "loss": float(np.mean(losses)) if losses else None,
            "exploration": exploration,
            "learning_rate": self._optimizer.param_groups[0]["lr"],
        }

    def _act(self, chance: np.random.Generator, exploration: float) -> npt.NDArray[np.int64]:
        """Return what is done in all games: the best legal action or, for a share of them, any legal one."""
        masks = self._seen.masks
        with torch.no_grad():
            best = best_legal(self._fast(torch.from_numpy(self._seen.observations)), torch.from_numpy(masks)).numpy()
        anything = (chance.random(masks.shape, np.float32) * masks).argmax(1)
        return np.where(chance.random(len(best)) < exploration, anything, best)

    def _learn(self, chance: np.random.Generator) -> float:
        """Do one step of Adam and return the loss."""
        config, memory = self.config, self._memory
        steps, games = memory.places(config.batch_size, config.n_steps, chance)
        following = self._shown.show(memory.decided(steps[:, -1], games[:, 0]))
        masks, observations = torch.from_numpy(following.masks), torch.from_numpy(following.observations)
        with torch.no_grad():
            targets = double_targets(
                torch.from_numpy(memory.rewards[steps[:, :-1], games] / config.points_per_unit),
                torch.from_numpy(memory.over[steps[:, :-1], games]),
                config.discount,
                fast=self._fast(observations),
                slow=self._slow(observations),
                masks=masks,
            )
        seen = self._shown.show(memory.decided(steps[:, 0], games[:, 0])).observations
        actions = torch.from_numpy(memory.actions[steps[:, :1], games].astype(np.int64))
        loss = smooth_l1_loss(self._fast(torch.from_numpy(seen)).gather(1, actions)[:, 0], targets)
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._fast.parameters(), config.max_gradient_norm)
        self._optimizer.step()
        self._slow.update_parameters(self._fast)
        return loss.item()

    def has_diverged(self, row: Mapping[str, float | None]) -> bool:
        """Return whether the loss is no number any more."""
        return not np.isfinite(row["loss"] or 0.0)

    def is_due(self) -> bool:
        """Return whether it is time for a selection score."""
        return self.rounds % self.config.selection_every == 0

    def selection_score(self) -> float:
        """Return the mean score, in points, of the slow network's play in the selection games."""
        player = MostProbable(Actor(self.portable()))
        config = self.config
        games = play(player, config.selection_games, seed=0, rules=config.rules, domain=SELECTION_DICE)
        return float(games.totals.mean())

    def portable(self) -> Policy:
        """Return the slow network, to be played without torch: an actor, whose most probable action is the best one."""
        return Policy("actor", Network(layers_of(self._slow.module), "silu"), self.config.provenance())

    def save(self, folder: Path, name: str) -> None:
        """Write what has been learned into `folder`."""
        save_policy(folder / f"{name}.safetensors", self.portable())

    def state(self) -> dict[str, Any]:
        """Return all it takes to go on as if nothing had been; the chance of a round follows from its number."""
        memory = self._memory
        return {
            "fast": self._fast.state_dict(),
            "slow": self._slow.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "games": [packed(array) for array in self._games.save()],
            "memory": [packed(array) for array in (memory.decisions, memory.actions, memory.rewards, memory.over)],
            "remembered": memory.steps,
            "rounds": self.rounds,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new learner of the same options where `state` was taken."""
        self._fast.load_state_dict(state["fast"])
        self._slow.load_state_dict(state["slow"])
        self._optimizer.load_state_dict(state["optimizer"])
        saved = zip(state["games"], self._games.save(), strict=True)
        self._games.restore(tuple(unpacked(data, like=array) for data, array in saved))
        self._seen = self._games.look()
        memory = self._memory
        for data, array in zip(
            state["memory"], (memory.decisions, memory.actions, memory.rewards, memory.over), strict=True
        ):
            array[...] = unpacked(data, like=array)
        memory.steps, self.rounds = state["remembered"], state["rounds"]
