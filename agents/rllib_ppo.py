"""The recipe of maskable_ppo in Ray RLlib: env runners play, in processes of their own and on any number of machines.

An update is: every env runner plays its share of the games for a while, all at the same time; the learner, in the
process of train.py, learns from all their steps; the env runners get the new weights. An env runner that dies is
replaced. So the playing is what more machines make faster; docs/cluster.md says by how much.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import ray
import torch
from ray._private.services import get_ray_address_from_environment
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.utils.schedules.scheduler import Scheduler

from agents import maskable_ppo
from agents.networks import has_diverged, layers_of
from agents.run import Run, arithmetic
from kismet_env.bots.actor import Actor
from kismet_env.bots.network_player import MostProbable
from kismet_env.command_line import Refusal
from kismet_env.policy_file import Network, Policy, save_policy
from kismet_env.provenance import Provenance
from kismet_env.rllib import MaskedBatch, MaskedPPO

_HOST_AND_PORT = re.compile(r"(?P<host>[^:/]+):(?P<port>\d{1,5})")
_SECONDS_TO_ANSWER = 5.0  # of a cluster
_SECONDS_TO_BE_FREE = 20.0  # of CPUs, after the end of a run that held them
_SECONDS_TO_PLAY = 600.0  # of an env runner, that has to compile first
_MOST_TRIES = 20  # to get steps from env runners; where all are lost, each waits half a minute for new ones


@dataclass(frozen=True)
class Config(maskable_ppo.Config):
    """Train a policy network on solitaire Kismet by PPO with masked actions, in Ray RLlib."""

    observation: Literal["features", "raw"] = "features"
    """Form of the observations."""
    reward: Literal["points", "final"] = "points"
    """What for: points, paid with the box they are entered in; or the same, all at the end of the game (final)."""
    illegal_action: Literal["masked"] = "masked"
    """What keeps the policy from illegal actions."""
    num_env_runners: int = 2
    """Processes that play, each with its share of the games and one CPU; 0: the learner plays itself."""
    address: str = "local"
    """Where they are: local, a Ray of this run alone | auto, the cluster that this machine is part of | HOST:PORT, the
    head of such a cluster."""

    def __post_init__(self) -> None:
        for name in ("opponents", "initial_policy"):
            if value := getattr(self, name):
                raise ValueError(f"{name}={value!r}: rllib_ppo plays solitaire, from random weights; leave it out")
        super().__post_init__()
        if not 0 <= self.num_env_runners <= self.num_envs:
            raise ValueError(
                f"num_env_runners={self.num_env_runners} is not from 0 to num_envs={self.num_envs}, a game each"
            )
        if self.address not in ("local", "auto") and not _HOST_AND_PORT.fullmatch(self.address):
            raise ValueError(f"address={self.address!r} is not one of local, auto, HOST:PORT")

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return replace(super().provenance(), algorithm="rllib_ppo")


def train(config: Config, run: Run) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`."""
    with arithmetic(config.threads), cluster(config), run, contextlib.closing(Learner(config, run)) as learner:
        run.train(learner, references=partial(maskable_ppo.bot_scores, config))


@contextlib.contextmanager
def cluster(config: Config) -> Iterator[None]:
    """Be connected to Ray as `config` says; Refusal where it cannot be reached or has too few CPUs."""
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # what it says is about itself
    here = {}
    if config.address == "local":  # no more processes than are needed, nor than the machine is good for
        cpus = min(max(1, config.num_env_runners), os.cpu_count() or 1)
        here = {"num_cpus": cpus, "include_dashboard": False}
    try:
        address = get_ray_address_from_environment("auto", None) if config.address == "auto" else config.address
        if match := _HOST_AND_PORT.fullmatch(address):
            _check_answers(match["host"], int(match["port"]))
        ray.init(address=config.address, logging_level=logging.ERROR, log_to_driver=False, **here)
    except (OSError, RuntimeError, SystemExit) as error:  # the last: what answers is not Ray
        reason = " ".join(str(error).split()).split(". ")[0]
        raise Refusal(
            f"address={config.address!r}: {reason}; start a cluster with ray start --head, or leave out --address"
        ) from None
    try:
        _check_cpus(config.num_env_runners)
        yield
    finally:
        ray.shutdown()


def _check_answers(host: str, port: int) -> None:
    """Raise Refusal unless something listens there: Ray itself would try for two minutes."""
    try:
        socket.create_connection((host, port), _SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise Refusal(
            f"no Ray cluster answers at {host}:{port} ({error}); give the address that ray start --head has printed"
        ) from None


def _check_cpus(needed: int) -> None:
    """Raise Refusal unless there are so many CPUs, and free: Ray itself would wait for them without a word."""
    there = int(ray.cluster_resources().get("CPU", 0))
    if needed > there:
        raise Refusal(f"num_env_runners={needed} need a CPU each, there are {there}; give fewer")
    deadline = time.monotonic() + _SECONDS_TO_BE_FREE
    while needed > (free := int(ray.available_resources().get("CPU", 0))):
        if time.monotonic() > deadline:
            raise Refusal(
                f"num_env_runners={needed} need a CPU each, of {there} others hold {there - free}; give fewer, or wait"
            )
        time.sleep(0.5)


class Learner:
    """RLlib's `algorithm`, and how far it is, in `steps` and `updates`.

    Args:
        config: the options.
        run: where it is kept. One that goes on begins its games anew.
    """

    def __init__(self, config: Config, run: Run) -> None:
        self.config, self._run = config, run
        self._steps_before: int = run.state["steps"] if run.state else 0
        self.steps = self._steps_before
        self.updates = 0
        seed = int(np.random.SeedSequence((config.seed, self.steps)).generate_state(1)[0] >> 1)  # RLlib counts it up
        self.algorithm = _built(config, seed)

    def close(self) -> None:
        """End the env runners."""
        self.algorithm.stop()

    def _each(self, call: Any, **values: Any) -> Any:
        """Return what `call` does to the learner."""
        (result,) = self.algorithm.learner_group.foreach_learner(call, **values)
        return result.get()

    def round(self) -> dict[str, float | None]:
        """Play, learn, and return what there is to say of it."""
        share_left = max(0.0, 1 - self._run.share_done(self.steps))
        learning_rate, entropy_bonus = self.config.learning_rate * share_left, self.config.entropy_bonus * share_left
        self._each(_set_rates, learning_rate=learning_rate, entropy_bonus=entropy_bonus)
        try:
            result = self._train()
        except ValueError:  # what torch says of a distribution that is none
            if not self.has_diverged({}):
                raise
            return {}
        played, learned = result["env_runners"], result["learners"][DEFAULT_MODULE_ID]
        self.updates += 1
        env_runners = self.algorithm.env_runner_group
        mean_return = played.get("episode_return_mean")  # None before the first game has ended
        return {
            "steps": self.steps,
            "mean_return": None if mean_return is None else self.config.points_per_reward * mean_return,
            "selection_score": None,
            "games": int(played["num_episodes"]),
            "mean_length": played.get("episode_len_mean"),
            "entropy": learned["entropy"],
            "policy_loss": learned["policy_loss"],
            "value_loss": learned["vf_loss"],
            "explained_variance": learned["vf_explained_var"],
            "learning_rate": learning_rate,
            "entropy_bonus": entropy_bonus,
            "env_runners": env_runners.num_healthy_remote_workers(),
            "replaced_env_runners": env_runners.num_remote_worker_restarts(),
        }

    def _train(self) -> dict[str, Any]:
        """Return what RLlib says of an update; where all env runners were lost it first has to replace them."""
        for _ in range(_MOST_TRIES):
            result: dict[str, Any] = self.algorithm.train()
            steps = self._steps_before + int(result.get("env_runners", {}).get("num_env_steps_sampled_lifetime", 0))
            if steps > self.steps:
                self.steps = steps
                return result
        raise Refusal(f"no env runner has answered in {_MOST_TRIES} tries; look after the cluster, then --resume")

    def has_diverged(self, row: Mapping[str, float | None]) -> bool:
        """Return whether there are weights far from those of any network that plays."""
        return has_diverged(self.state()["module"].values())

    def is_due(self) -> bool:
        """Return whether it is time for a selection score."""
        return self.updates % self.config.selection_every == 0

    def portable(self) -> Policy:
        """Return what the policy network has learned, to be played without torch."""
        return Policy("actor", Network(self._each(_layers), "silu"), self.config.provenance())

    def selection_score(self) -> float:
        """Return the mean score, in points, of the most probable actions in the selection games."""
        return maskable_ppo.player_score(MostProbable(Actor(self.portable())), self.config)

    def save(self, folder: Path, name: str) -> None:
        """Write what has been learned into `folder`."""
        save_policy(folder / f"{name}.safetensors", self.portable())

    def state(self) -> dict[str, Any]:
        """Return all that has been learned, and how far the run is."""
        return {"steps": self.steps, "updates": self.updates, **self._each(_state)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put a new one of the same run where `state` was taken."""
        self.updates = state["updates"]
        self._each(_restore, state=state)
        self.algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.algorithm.learner_group, inference_only=True
        )


def _built(config: Config, seed: int) -> Algorithm:
    """Return RLlib's PPO for these options."""
    steps = config.num_envs * config.rollout_steps
    options = {
        name: getattr(config, name) for name in ("actions", "observation", "reward", "start", "points_per_reward")
    }
    algorithm = (
        PPOConfig()
        .environment(MaskedBatch, env_config={"rules": config.rules, **options})
        .env_runners(
            num_env_runners=config.num_env_runners,
            num_envs_per_env_runner=-(-config.num_envs // max(1, config.num_env_runners)),
            gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
            sample_timeout_s=_SECONDS_TO_PLAY,
        )
        .fault_tolerance(restart_failed_env_runners=True)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=steps,
            minibatch_size=min(steps, config.batch_size),
            num_epochs=config.epochs,
            lr=config.learning_rate,
            entropy_coeff=config.entropy_bonus,
            gamma=config.discount,
            lambda_=config.gae_lambda,
            clip_param=config.clip_range,
            use_kl_loss=False,
            vf_loss_coeff=config.value_weight,
            vf_clip_param=float("inf"),
            grad_clip=config.max_gradient_norm,
            grad_clip_by="global_norm",
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=MaskedPPO,
                model_config={
                    "fcnet_hiddens": list(config.hidden_sizes),
                    "fcnet_activation": "silu",
                    "head_fcnet_hiddens": [],
                    "vf_share_layers": False,
                },
            )
        )
        .reporting(metrics_num_episodes_for_smoothing=config.num_envs)
        .debugging(seed=seed, log_level="ERROR")
        .build_algo()
    )
    with contextlib.suppress(OSError):
        Path(algorithm.logdir).rmdir()  # an empty one in the user's home
    return algorithm


def _set_rates(learner: Any, *, learning_rate: float, entropy_bonus: float) -> None:
    for group in learner.get_optimizer(DEFAULT_MODULE_ID).param_groups:
        group["lr"] = learning_rate
    schedules = learner.entropy_coeff_schedulers_per_module
    schedules[DEFAULT_MODULE_ID] = Scheduler(fixed_value_or_schedule=entropy_bonus)


def _layers(learner: Any) -> list[tuple[Any, Any]]:
    """Return weight and bias of each layer of the policy network."""
    module = learner.module[DEFAULT_MODULE_ID]
    parts = (*module.encoder.actor_encoder.modules(), *module.pi.modules())
    return layers_of(parts)


def _state(learner: Any) -> dict[str, Any]:
    return {
        "module": learner.module[DEFAULT_MODULE_ID].state_dict(),
        "optimizer": learner.get_optimizer(DEFAULT_MODULE_ID).state_dict(),
        "torch_random": torch.get_rng_state(),
    }


def _restore(learner: Any, *, state: Mapping[str, Any]) -> None:
    learner.module[DEFAULT_MODULE_ID].load_state_dict(state["module"])
    learner.get_optimizer(DEFAULT_MODULE_ID).load_state_dict(state["optimizer"])
    torch.set_rng_state(state["torch_random"])
