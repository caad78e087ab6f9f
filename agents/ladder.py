"""What limits maskable_ppo? Four learners that differ in one thing each, from the truth down to dice alone.

    clone     is told what every action is worth under optimal play, and imitates: what the network can hold
    exact     PPO that is told how much better its action was than its own mean, in these values: what the optimiser
              can do with a perfect advantage
    expected  PPO with its own critic, for which the dice are worked out: in every difference between the values of two
              decisions the value after the dice is the mean over all the dice that could have come; nothing is told
    plain     maskable_ppo itself

Games, features, networks, steps, passes over a rollout and learning rates are the same. clone and exact learn from
what they meet in their own games, as the others do (DAgger, Ross et al. 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from torch import Tensor

from agents import maskable_ppo
from agents.run import Run
from kismet_env.batch import Batch
from kismet_env.bots import MostProbable
from kismet_env.bots.actor import Actor
from kismet_env.dice import NUM_REROLL_KEEPS, NUM_ROLLS, REROLL_PROBABILITY, ROLL_DICE, keep_index
from kismet_env.evaluation import SELECTION_DICE, Regrets, play
from kismet_env.observation import Decision, decode
from kismet_env.provenance import Provenance
from kismet_env.sb3 import KismetVecEnv
from kismet_env.solver import solve

Array = npt.NDArray[Any]
Values = npt.NDArray[np.float64]
_NO_DICE = keep_index(())
_DICE = ROLL_DICE.astype(np.int64)
_AT_ONCE = 64  # decisions whose dice are worked out together: up to 16,128 rolls, which stay in the processor's cache


@dataclass(frozen=True)
class Config(maskable_ppo.Config):
    """Train as maskable_ppo does, with more of the truth, to see what it is that limits it."""

    rung: Literal["clone", "exact", "expected", "plain"] = "expected"
    """What is known: what every action is worth (clone) | how good the action was (exact) | which dice could have come
    (expected) | nothing (plain)."""
    clone_temperature: float = 1.0
    """Of clone: points by which an action has to be worse to be imitated a factor e less."""
    actions: Literal["keeps"] = "keeps"
    """Numbering of the actions, that of the exact values."""
    observation: Literal["features", "raw"] = "features"
    """Form of the observations, from which a decision can be read."""
    reward: Literal["points"] = "points"
    """What for."""
    illegal_action: Literal["masked"] = "masked"
    """What keeps the policy from illegal actions."""
    start: Literal["full"] = "full"
    """Where games begin."""
    selection_games: int = 512
    """Games by which the best policy of the run is chosen: most probable actions, dice of their own, without luck."""
    selection_every: int = 10
    """Updates between two such evaluations; fewer where they would take more than a tenth of the time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.clone_temperature < float("inf"):
            raise ValueError(f"clone_temperature={self.clone_temperature} is not a number above 0")
        if self.opponents:
            raise ValueError(f"opponents={self.opponents}: the ladder is about solitaire; leave them out")

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return replace(super().provenance(), algorithm="ladder")


def train(config: Config, run: Run) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`."""
    learners: dict[str, Callable[..., MaskablePPO]] = {
        "clone": partial(Clone, temperature=config.clone_temperature),
        "exact": ExactAdvantage,
        "expected": ExpectedDice,
        "plain": MaskablePPO,
    }
    maskable_ppo.train(config, run, learner=learners[config.rung], score_of=score_without_luck)


def score_without_luck(model: MaskablePPO, config: Config) -> float:
    """Return the mean score of the most probable actions of `model` in the selection games, without the dice's luck."""
    optimum = solve(config.rules)
    games = play(
        MostProbable(Actor(maskable_ppo.portable(model, config.provenance()))),
        config.selection_games,
        seed=0,
        rules=config.rules,
        domain=SELECTION_DICE,
        watcher=partial(Regrets, optimum),
    )
    return optimum.expected_score - float(games.measures["regret_by_turn"].sum(1).mean())


class Learner(MaskablePPO):
    """What the rungs have in common: they know the rules of their games."""

    @property
    def games(self) -> KismetVecEnv:
        """The games it learns from."""
        assert self.env is not None
        games = self.env.unwrapped
        assert isinstance(games, KismetVecEnv)
        return games

    def log_probabilities(self, observations: Array, masks: Array) -> Tensor:
        """Return the logarithms (n, A) of the probabilities of all actions; far below 0 where they are illegal."""
        seen, legal = torch.from_numpy(observations), torch.from_numpy(masks) > 0
        logits = self.policy.action_net(self.policy.mlp_extractor.forward_actor(seen))
        return torch.where(legal, logits, -1e8).log_softmax(-1)

    def exact_values(self, observations: Array) -> Values:
        """Return what every action is worth in points under optimal play, (n, A); -inf where it is illegal."""
        return solve(self.games.rules).action_values(*decode(observations))


class Clone(Learner):
    """Imitates optimal play: all actions, the better ones the more; how much more says `temperature`, in points."""

    def __init__(self, *args: Any, temperature: float = 1.0, **options: Any) -> None:
        self.temperature = temperature
        super().__init__(*args, **options)

    def train(self) -> None:
        """Go through the rollout, as often as PPO does, and move towards softmax(exact values / temperature)."""
        self._update_learning_rate(self.policy.optimizer)
        observations, masks = (
            _flat(each) for each in (self.rollout_buffer.observations, self.rollout_buffer.action_masks)
        )
        wanted = torch.from_numpy(self.exact_values(observations) / self.temperature).softmax(-1).float()
        losses, entropies = [], []
        for _ in range(self.n_epochs):
            for rows in torch.randperm(len(wanted)).split(self.batch_size or len(wanted)):
                logarithms = self.log_probabilities(observations[rows], masks[rows])
                loss = -(wanted[rows] * logarithms).sum(-1).mean()
                self.policy.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()
                losses.append(loss.item())
                entropies.append(-(logarithms.softmax(-1) * logarithms).sum(-1).mean().item())
            self._n_updates += 1
        self.logger.record("train/policy_gradient_loss", np.mean(losses))
        self.logger.record("train/entropy_loss", -np.mean(entropies))


class ExactAdvantage(Learner):
    """PPO whose advantages are exact, with optimal play to follow; its critic learns, and nobody listens to it."""

    def collect_rollouts(self, *args: Any, **options: Any) -> bool:
        """Play a rollout and put exact advantages in the place of the estimated ones."""
        goes_on = super().collect_rollouts(*args, **options)
        buffer = self.rollout_buffer
        for step in range(buffer.buffer_size):
            observations = buffer.observations[step]
            with torch.no_grad():
                logarithms = self.log_probabilities(observations, buffer.action_masks[step])
            probabilities = logarithms.softmax(-1).double().numpy()
            actions = buffer.actions[step, :, 0].astype(np.int64)
            buffer.advantages[step] = advantages(self.exact_values(observations), probabilities, actions)
        return goes_on


def advantages(values: Values, probabilities: Values, actions: npt.NDArray[np.int64]) -> Values:
    """Return by how much `actions` (n,) are worth more than who acts with `probabilities` (n, A) can expect.

    `values` (n, A) are those of the actions, -inf where they are illegal.
    """
    expected = (probabilities * np.where(probabilities > 0, values, 0.0)).sum(1)
    return np.asarray(values[np.arange(len(actions)), actions] - expected)


class ExpectedDice(Learner):
    """PPO from whose rewards the luck of the dice has been taken, by its own critic.

    Luck is what the critic says after a roll beyond its mean over all rolls that could have come. Without it the
    difference between two decisions is reward + E V(next) - V, in the advantages and in what the critic learns.
    """

    def collect_rollouts(self, *args: Any, **options: Any) -> bool:
        """Play a rollout and take the luck out of it."""
        goes_on = super().collect_rollouts(*args, **options)
        buffer, last, ended = self.rollout_buffer, self._last_obs, self._last_episode_starts
        assert isinstance(last, np.ndarray)
        assert ended is not None
        following = np.concatenate([buffer.observations[1:], last[None]])
        rolled = np.concatenate([buffer.episode_starts[1:], ended[None]]) == 0  # else the game was over
        decisions = decode(following[rolled])
        batch = Batch(_AT_ONCE * NUM_ROLLS, rules=self.games.rules, observation=self.games.batch.layout.form)
        keeps = keeps_of(buffer.actions[..., 0].astype(np.int64)[rolled])
        buffer.rewards[rolled] -= self.gamma * (
            self.judge(following[rolled]) - expectations(decisions, keeps, judge=self.judge, batch=batch)
        )
        with torch.no_grad():
            last_values = self.policy.predict_values(torch.from_numpy(last))
        buffer.compute_returns_and_advantage(last_values=last_values, dones=ended)
        return goes_on

    def judge(self, observations: Array) -> Values:
        """Return what the critic says of `observations` (n, D), (n,)."""
        with torch.no_grad():
            return self.policy.predict_values(torch.from_numpy(observations))[:, 0].double().numpy()


def keeps_of(actions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return what `actions` (n,) keep while the dice are rolled, (n,): a box that is filled leaves no dice."""
    return np.where(actions < NUM_REROLL_KEEPS, actions, _NO_DICE)


def expectations(
    decisions: Decision, keeps: npt.NDArray[np.int64], *, judge: Callable[[Array], Values], batch: Batch
) -> Values:
    """Return the mean of what `judge` says of `decisions` (n,) over all rolls that can come from `keeps` (n,), (n,).

    The dice of `decisions` do not count. `batch` shows them, with the games it has for it (see `Batch.show`).
    """
    cases = np.stack([*decisions._replace(dice=keeps)], axis=1).astype(np.int64)
    distinct, where = np.unique(cases, axis=0, return_inverse=True)
    means = []
    for some in np.array_split(distinct, -(-len(distinct) * NUM_ROLLS // batch.num_games)):
        filled, basic_total, armed, keep, left = some.T
        chances = REROLL_PROBABILITY[keep]
        case, roll = np.nonzero(chances)
        shown = batch.show(Decision(filled[case], basic_total[case], armed[case], _DICE[roll], left[case]))
        weighed = chances[case, roll] * judge(shown.observations)
        means.append(np.bincount(case, weighed).astype(np.float64, copy=False))
    return np.concatenate(means)[where.reshape(-1)]


def _flat(rollout: Array) -> Array:
    """Return the steps (T, N, ...) of a rollout as rows, (T * N, ...)."""
    return rollout.reshape(-1, rollout.shape[-1])
