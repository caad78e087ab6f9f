"""Proximal policy optimisation (Schulman et al. 2017) with masked actions (Huang and Ontañón 2022), by sb3-contrib.

Two networks, one for the policy and one for the value, learn from many games side by side. What is added to the
library's MaskablePPO: learning rate and entropy bonus fall linearly to nothing over the length of the run, in steps
or in minutes; the masked distribution is computed in less than half the time; and the run can go on after a stop as if
nothing had been. The environment takes 1 % of the time, the networks' matrix products two thirds.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from gymnasium.spaces import Dict, Discrete
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution, MaybeMasks
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import Tensor, nn

from agents.networks import check_widths, has_diverged, layers_of
from agents.run import Run, arithmetic, check_options, packed, unpacked
from kismet_env import bots
from kismet_env.batch import Batch, Step
from kismet_env.bots.player import Actions, Masks, Observations, Shares, sample
from kismet_env.dice import hash_words
from kismet_env.evaluation import SELECTION_DICE, TRAINING_DICE, YARDSTICK, game_keys
from kismet_env.match import Match
from kismet_env.policy_file import Network, Policy, load_policy, save_policy
from kismet_env.provenance import Provenance
from kismet_env.rules import Rules
from kismet_env.sb3 import KismetVecEnv

_MOST_STEPS = 1 << 22  # of a rollout: each takes 2 kB of memory
SELF = "self"
"""Name of the opponent who is the learner."""


@dataclass(frozen=True)
class Config:
    """Train a policy network on solitaire Kismet, or against opponents, by PPO with masked actions."""

    steps: int | None = None
    """Length of the run in steps of the environment, rounded up to whole rollouts; None: no limit."""
    minutes: float | None = None
    """Length of the run in minutes on the clock; None: no limit, or 5 without --steps. The earlier of both counts."""
    seed: int = 0
    """Seed of the networks and of the training dice, from 0 up."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    actions: Literal["keeps", "holds"] = "keeps"
    """Numbering of the actions; with "keeps" the same dice kept are the same action in every roll."""
    observation: Literal["features", "raw", "dict"] = "features"
    """Form of the observations."""
    opponents: tuple[str, ...] = ()
    """Who else sits at the table, one to five names as evaluate.py knows them, or self: the policy as it is after the
    last update. The learner's seat is drawn in every game. None: solitaire."""
    reward: Literal["points", "final", "win"] = "points"
    """What for: points, paid with the box they are entered in; the same, all at the end of the game (final); or,
    against opponents, the win: 1, of a lost game -1 between all losers, paid at the end."""
    illegal_action: Literal["masked", "penalty", "terminate"] = "masked"
    """What keeps the policy from illegal actions: masks; or nothing does, and one costs a point, to no other effect but
    that the 100th ends the game (penalty), or ends the game at once (terminate). So it is in the selection games too;
    evaluate.py always masks."""
    start: str = "full"
    """Where games begin: full | open:k (k boxes are open) | uniform."""
    num_envs: int = 512
    """Games side by side."""
    rollout_steps: int = 64
    """Steps of every game between two updates."""
    epochs: int = 3
    """How often an update goes through the steps of its rollout."""
    batch_size: int = 4096
    """Steps behind one gradient."""
    learning_rate: float = 1.5e-3
    """Of Adam, at the start; falls linearly to 0 at the end of the run."""
    entropy_bonus: float = 0.015
    """Weight of the policy's entropy in the objective, at the start; falls likewise."""
    discount: float = 1.0
    """Worth of a point one step later; 1, because a game ends after at most 45 steps."""
    gae_lambda: float = 0.7
    """Between one-step (0) and whole-game (1) estimates of the advantage."""
    clip_range: float = 0.2
    """How far an update may move the probability of an action, as a ratio."""
    value_weight: float = 0.5
    """Weight of the squared error of the value in the objective."""
    max_gradient_norm: float = 0.5
    """Longer gradients are cut to this length."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of both networks."""
    initial_policy: str | None = None
    """Portable policy, of the same games and widths, that the policy network begins with; None: random weights. One of
    solitaire may begin against opponents: what it does not see has no weight at first."""
    points_per_reward: float = 20.0
    """Points are divided by this, so that what the value network learns is of the order of 1; wins are not."""
    selection_games: int = 2048
    """Games by which the best policy of the run is chosen, by the mean of its points or, for reward win, of its
    reward: most probable actions, dice of their own, the same opponents, turn_greedy instead of self."""
    selection_every: int = 20
    """Updates between two such evaluations; fewer where they would take more than a tenth of the time."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints, at most so many are lost when the run is killed."""
    threads: int | None = None
    """Threads of the networks' arithmetic; None: one for each core. On a busy machine 1 is faster."""

    def __post_init__(self) -> None:
        check_options(
            self,
            at_least_1=(
                "steps",
                "num_envs",
                "rollout_steps",
                "epochs",
                "batch_size",
                "selection_games",
                "threads",
                "selection_every",
            ),
            above_0=("minutes", "learning_rate", "points_per_reward", "max_gradient_norm", "clip_range"),
            from_0=("seed", "entropy_bonus", "value_weight", "checkpoint_minutes"),
            shares=("discount", "gae_lambda"),
        )
        if not self.hidden_sizes or min(self.hidden_sizes) < 1:
            raise ValueError(f"hidden_sizes={self.hidden_sizes} are not widths of at least 1")
        if (rollout := self.num_envs * self.rollout_steps) > _MOST_STEPS:
            raise ValueError(
                f"num_envs={self.num_envs} and rollout_steps={self.rollout_steps} give {rollout:,} steps a rollout, "
                f"at most {_MOST_STEPS:,} fit into memory"
            )
        if self.batch_size == 1 or rollout % self.batch_size == 1:  # advantages are divided by their SD
            raise ValueError(
                f"batch_size={self.batch_size} leaves a single step of a rollout of {rollout:,} behind a gradient, "
                "which needs two; give another --batch-size"
            )
        if self.selection_games > _MOST_STEPS:
            raise ValueError(f"selection_games={self.selection_games} is not at most {_MOST_STEPS:,}")
        if self.reward == "win" and not self.opponents:
            raise ValueError("reward='win' needs opponents, one to five of them")
        form = self.actions, self.observation
        if SELF in self.opponents and form != (Config.actions, Config.observation):
            raise ValueError(
                f"opponent {SELF} sees features and plays keeps, not actions={form[0]}, observation={form[1]}"
            )
        batch = selection_batch(self, 1, actions=self.actions, observation=self.observation)  # or ValueError
        check_widths(batch.layout.size, self.hidden_sizes, batch.actions.num_actions)
        if self.initial_policy is not None:
            given = load_policy(self.initial_policy, self.rules)
            made_for, network = given.provenance, given.network
            theirs = made_for.num_players, made_for.observation, made_for.actions, network.activation, network.sizes[1:]
            widths = *self.hidden_sizes, batch.actions.num_actions
            ours = batch.num_players, self.observation, self.actions, "silu", widths
            if theirs not in (ours, (1, *ours[1:])):
                raise ValueError(
                    f"initial_policy={self.initial_policy!r} is no policy of these games and widths: players, "
                    f"observations, actions, activation and widths are {theirs} there, {ours} here"
                )

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return Provenance.of(
            "maskable_ppo",
            rules=self.rules,
            seed=self.seed,
            actions=self.actions,
            observation=self.observation,
            num_players=1 + len(self.opponents),
            config=asdict(self),
        )


def train(
    config: Config,
    run: Run,
    *,
    learner: Callable[..., MaskablePPO] = MaskablePPO,
    score_of: Callable[[MaskablePPO, Any], float] | None = None,
) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`.

    `learner` may learn from something else, and `score_of` say otherwise than `selection_score` how well it plays.
    """
    with arithmetic(config.threads), run:
        trained = Learner(config, run, *make(config, learner), score_of or selection_score)
        run.train(trained, references=partial(bot_scores, config), unit=_unit(config))


class Learner:
    """A `model` and the games it learns from, as a run wants them; `score_of` says how well it plays."""

    def __init__(
        self,
        config: Config,
        run: Run,
        model: MaskablePPO,
        env: KismetVecEnv,
        score_of: Callable[[MaskablePPO, Any], float],
    ) -> None:
        self._config, self._run, self._model, self._env, self._score_of = config, run, model, env, score_of
        self._selection_seconds = self._last_selection = 0.0
        if run.state is None:
            begin(config, model)

    @property
    def steps(self) -> int:
        """Steps of the environment so far."""
        return self._model.num_timesteps

    def round(self) -> dict[str, float | None]:
        """Play a rollout and learn from it; return what there is to say of it."""
        config, model = self._config, self._model
        share_left = max(0.0, 1 - self._run.share_done(self.steps))
        model.lr_schedule = FloatSchedule(config.learning_rate * share_left)
        model.ent_coef = config.entropy_bonus * share_left
        model.ep_info_buffer = None  # begun anew: the games of this rollout
        model.learn(  # one rollout, one update; logs nothing
            config.num_envs * config.rollout_steps,
            reset_num_timesteps=False,
            log_interval=2,
            use_masking=config.illegal_action == "masked",
        )
        return _row(model, self._env)

    def has_diverged(self, row: Mapping[str, float | None]) -> bool:
        """Return whether there are weights far from those of any network that plays."""
        return has_diverged(self._model.policy.parameters())

    def is_due(self) -> bool:
        """Return whether it is time for a selection score, and they have not taken a tenth of the time yet."""
        rollout = self._config.num_envs * self._config.rollout_steps
        is_cheap = self._selection_seconds + self._last_selection < 60 * self._run.minutes / 10
        return self.steps // rollout % self._config.selection_every == 0 and is_cheap

    def selection_score(self) -> float:
        """Return what `score_of` says."""
        started = time.perf_counter()
        score = self._score_of(self._model, self._config)
        self._last_selection = time.perf_counter() - started
        self._selection_seconds += self._last_selection
        return score

    def save(self, folder: Path, name: str) -> None:
        """Write what has been learned into `folder`: for sb3-contrib, and for players without torch."""
        self._run.save_model(_archive(self._model), name="model.zip" if name == "policy" else f"{name}.zip")
        if self._config.observation != "dict":  # its policy is more than layers of numbers
            save_policy(folder / f"{name}.safetensors", portable(self._model, self._run.provenance))

    def state(self) -> dict[str, Any]:
        """Return all it takes to go on as if nothing had been."""
        return state_of(self._model, self._env)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new one of the same options where `state` was taken."""
        restore(self._model, self._env, state)


def selection_score(model: MaskablePPO, config: Config) -> float:
    """Return the mean score of the most probable actions of `model` in the selection games.

    Where it was trained without masks it plays without: a game that ends by illegal actions counts as it stands.
    """
    batch = selection_batch(config, config.selection_games, actions=config.actions, observation=config.observation)
    masked = config.illegal_action == "masked"

    def act(seen: Step) -> Any:
        observations = batch.layout.present(seen.observations)
        return model.predict(observations, deterministic=True, action_masks=seen.masks if masked else None)[0]

    return _mean_score(config, batch, act)


def selection_batch(config: Config, games: int, *, actions: str = "keeps", observation: str = "features") -> Batch:
    """Return room for so many selection games; ValueError for opponents, or a start, that there are not."""
    options: dict[str, Any] = {
        "rules": config.rules,
        "actions": actions,
        "observation": observation,
        "illegal_action": _answer(config),
        "start": config.start,
    }
    if not config.opponents:
        return Batch(games, **options)
    opponents = [YARDSTICK if name == SELF else name for name in config.opponents]  # against itself it wins a half
    return Match(games, opponents, seat="random", reward=config.reward, **options)


def bot_scores(config: Config) -> dict[str, float]:
    """Return the mean scores of the bots to be beaten in the selection games."""
    names = ("greedy", "turn_greedy", "rule_based")
    return {name: player_score(bots.make(name, config.rules), config) for name in names}


def player_score(player: bots.Player, config: Config) -> float:
    """Return the mean score of `player` in the selection games."""
    batch = selection_batch(config, config.selection_games)
    return _mean_score(config, batch, lambda seen: player.act(seen.observations, seen.masks))


def _answer(config: Config) -> str:
    """Return what the environment does about an illegal action; behind masks there are none."""
    return "penalty" if config.illegal_action == "masked" else config.illegal_action


def _mean_score(config: Config, batch: Batch, act: Callable[[Step], Any]) -> float:
    """Return the mean score of who acts by `act` in the selection games, all rows of `batch`: points, or results."""
    seen = batch.deal_keys(game_keys(SELECTION_DICE, 0, range(batch.num_games)))
    results = np.zeros(batch.num_games)
    while not batch.over.all():
        seen = batch.step(act(seen))
        results += seen.rewards[:, 0]
    return float((results if config.reward == "win" else seen.totals).mean())


def _unit(config: Config) -> str:
    return "mean result, 1 a win" if config.reward == "win" else "points a game"


class MaskedCategorical(MaskableCategoricalDistribution):
    """The same probabilities as the library's distribution, normalised once and not checked on the way."""

    def proba_distribution(self, action_logits: Tensor) -> MaskedCategorical:
        """Take the logits (N, A) of all actions."""
        self._logits, self._logarithms = action_logits, None
        return self

    def apply_masking(self, masks: MaybeMasks) -> None:
        """Leave the actions where `masks` (N, A) is not 0; there has to be one in every row."""
        legal = torch.as_tensor(masks, dtype=torch.bool, device=self._logits.device)
        self._logits, self._logarithms = torch.where(legal, self._logits, -1e8), None

    @property
    def log_probabilities(self) -> Tensor:
        """The logarithms (N, A) of the probabilities; far below 0 for what is masked."""
        if self._logarithms is None:
            self._logarithms = self._logits.log_softmax(-1)
        return self._logarithms

    def probabilities(self) -> Tensor:
        """Return the probabilities (N, A)."""
        return self._logits.softmax(-1)  # exp() of the logarithms takes five times as long, so far below zero

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the logarithms (N,) of the probabilities of `actions` (N,)."""
        return self.log_probabilities.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropies (N,) in nats."""
        return -(self.probabilities() * self.log_probabilities).sum(-1)

    def sample(self) -> Tensor:
        """Return random actions (N,)."""
        rising = self.probabilities().cumsum(-1)
        shares = torch.rand_like(rising[:, :1]) * rising[:, -1:]  # below the last sum, which need not be exactly 1
        return torch.searchsorted(rising, shares, right=True).squeeze(-1)

    def mode(self) -> Tensor:
        """Return the most probable actions (N,)."""
        return self._logits.argmax(-1)


class _ScaledRewards(VecEnvWrapper):
    """Divides the rewards that the learner sees; the episode statistics in the infos stay in points."""

    def __init__(self, venv: VecEnv, points_per_reward: float) -> None:
        super().__init__(venv)
        self.points_per_reward = np.float32(points_per_reward)

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards / self.points_per_reward, dones, infos


class Itself:
    """The policy as it is, as an opponent: it draws lots, as the learner does."""

    policy: MaskableActorCriticPolicy

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return an action for every row."""
        assert u is not None
        with torch.no_grad():
            distribution = self.policy.get_distribution(torch.as_tensor(observations), masks)
        return sample(distribution.probabilities().numpy(), u)


def make(config: Config, learner: Callable[..., MaskablePPO] = MaskablePPO) -> tuple[MaskablePPO, KismetVecEnv]:
    """Return an untrained model and the games it learns from."""
    network_seed, dice_seed = np.random.SeedSequence(config.seed).generate_state(2).tolist()
    itself = Itself()
    env = KismetVecEnv(
        config.num_envs,
        rules=config.rules,
        actions=config.actions,
        observation=config.observation,
        opponents=[itself if name == SELF else name for name in config.opponents] or None,
        seat="random" if config.opponents else None,
        reward=config.reward,
        illegal_action=_answer(config),
        start=config.start,
    )
    model = learner(
        "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy",
        _ScaledRewards(env, 1.0 if config.reward == "win" else config.points_per_reward),
        n_steps=config.rollout_steps,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        learning_rate=config.learning_rate,
        ent_coef=config.entropy_bonus,
        gamma=config.discount,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        vf_coef=config.value_weight,
        max_grad_norm=config.max_gradient_norm,
        stats_window_size=config.num_envs * config.rollout_steps,  # all games that a rollout can end
        policy_kwargs={
            "net_arch": {"pi": list(config.hidden_sizes), "vf": list(config.hidden_sizes)},
            "activation_fn": nn.SiLU,
        },
        seed=network_seed,
        device="cpu",
    )
    assert isinstance(env.action_space, Discrete)
    model.policy.action_dist = MaskedCategorical(int(env.action_space.n))
    itself.policy = model.policy
    model.set_logger(Logger(folder=None, output_formats=[]))
    env.seed(int(hash_words(TRAINING_DICE, dice_seed)))  # the model has seeded it too
    return model, env


def _row(model: MaskablePPO, env: KismetVecEnv) -> dict[str, float | None]:
    """Return what there is to say about the last rollout and update."""
    told = dict(model.logger.name_to_value)
    model.logger.dump()  # forgets them
    games = list(model.ep_info_buffer or ())
    return {
        "steps": model.num_timesteps,
        "mean_return": float(np.mean([game["r"] for game in games])) if games else None,
        "selection_score": None,
        "games": len(games),
        "mean_length": float(np.mean([game["l"] for game in games])) if games else None,
        "entropy": -told["train/entropy_loss"],
        "policy_loss": told["train/policy_gradient_loss"],
        "value_loss": told.get("train/value_loss"),
        "explained_variance": told.get("train/explained_variance"),
        "approximate_kl": told.get("train/approx_kl"),
        "clip_fraction": told.get("train/clip_fraction"),
        "learning_rate": told["train/learning_rate"],
        "entropy_bonus": model.ent_coef,
        "illegal_actions": env.illegal_actions,
    }


def portable(model: MaskablePPO, provenance: Provenance) -> Policy:
    """Return what the policy network of a model of `make` has learned, to be played without torch."""
    return Policy("actor", Network(layers_of(_policy_layers(model)), "silu"), provenance)


def _policy_layers(model: MaskablePPO) -> list[nn.Linear]:
    modules = (*model.policy.mlp_extractor.policy_net, model.policy.action_net)
    return [module for module in modules if isinstance(module, nn.Linear)]


def begin(config: Config, model: MaskablePPO) -> None:
    """Let the policy network of a new `model` be the initial one; what that one does not see comes last."""
    if config.initial_policy is None:
        return
    initial = load_policy(config.initial_policy, config.rules).network
    with torch.no_grad():
        for layer, (weight, bias) in zip(_policy_layers(model), initial.layers, strict=True):
            layer.weight.zero_()
            layer.weight[:, : weight.shape[1]] = torch.from_numpy(weight)
            layer.bias.copy_(torch.from_numpy(bias))


def _archive(model: MaskablePPO) -> bytes:
    """Return the policy as `MaskablePPO.load` reads it, without the state of the games."""
    file = io.BytesIO()
    model.save(file, exclude=["_last_obs", "_last_episode_starts", "ep_info_buffer"])
    return file.getvalue()


def state_of(model: MaskablePPO, env: KismetVecEnv) -> dict[str, Any]:
    """Return all it takes to go on as if nothing had been."""
    numpy_random: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (the library draws from it)
    numpy_random["state"]["key"] = torch.from_numpy(numpy_random["state"]["key"].astype(np.int64))
    started = model._last_obs is not None
    return {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "torch_random": torch.get_rng_state(),
        "numpy_random": numpy_random,
        "games": {name: packed(array) for name, array in env.save().items()} if started else None,
        "episode_starts": packed(model._last_episode_starts) if started else None,
        "illegal_actions": env.illegal_actions,
    }


def restore(model: MaskablePPO, env: KismetVecEnv, state: Mapping[str, Any]) -> None:
    """Put `model` and `env`, new ones of the same options, where `state` was taken."""
    model.policy.load_state_dict(state["policy"])
    model.policy.optimizer.load_state_dict(state["optimizer"])
    model.num_timesteps, model._n_updates = state["steps"], state["updates"]
    if state["games"] is not None:
        games = {name: unpacked(state["games"][name], like=array) for name, array in env.save().items()}
        model._last_obs = env.restore(games)
        model._last_episode_starts = unpacked(state["episode_starts"], like=np.empty(env.num_envs, np.bool_))
    env.illegal_actions = state["illegal_actions"]
    torch.set_rng_state(state["torch_random"])
    numpy_random = deepcopy(state["numpy_random"])
    numpy_random["state"]["key"] = numpy_random["state"]["key"].numpy().astype(np.uint32)
    np.random.set_state(numpy_random)  # noqa: NPY002
