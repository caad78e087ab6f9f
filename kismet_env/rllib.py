"""Kismet for Ray RLlib: the native batch with the mask inside its observations, and a policy that keeps to the mask.

    PPOConfig()
    .environment(MaskedBatch, env_config={"start": "open:3"})
    .env_runners(num_envs_per_env_runner=64, gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT)
    .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedPPO))

`MaskedPPO` also plays what `kismet_v0` shows through RLlib's `PettingZooEnv`. Needs RLlib
(`pip install "kismet-env[rllib]"`), on every machine of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

try:
    import torch
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.columns import Columns
except ImportError:
    raise ImportError("kismet_env.rllib needs Ray RLlib: pip install 'kismet-env[rllib]'") from None

from kismet_env.dice import hash_words
from kismet_env.evaluation import TRAINING_DICE
from kismet_env.vector_env import KismetVectorEnv
from kismet_env.wrappers import VectorMaskInObservation


class MaskedPPO(DefaultPPOTorchRLModule):  # type: ignore[misc] # untyped where mypy runs, which is without Ray
    """RLlib's networks on `{"observation": (N, D), "action_mask": (N, A)}`; what is illegal has no chance.

    `model_config` is that of RLlib's own networks, see its `DefaultModelConfig`.
    """

    def __init__(self, *, observation_space: gym.spaces.Dict, **options: Any) -> None:
        self._seen = observation_space
        super().__init__(observation_space=observation_space["observation"], **options)

    def setup(self) -> None:
        """Make the networks, which never see the mask."""
        super().setup()
        self.observation_space = self._seen

    def _forward(self, batch: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward(_unmasked(batch), **options), batch)

    def _forward_train(self, batch: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward_train(_unmasked(batch), **options), batch)

    def compute_values(self, batch: Mapping[str, Any], embeddings: Any = None) -> Any:
        """Return the values (N,) of the observations."""
        return super().compute_values(_unmasked(batch), embeddings)


def _unmasked(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {**batch, Columns.OBS: batch[Columns.OBS]["observation"]}


def _masked(out: dict[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    logits, legal = out[Columns.ACTION_DIST_INPUTS], batch[Columns.OBS]["action_mask"].bool()
    return {**out, Columns.ACTION_DIST_INPUTS: torch.where(legal, logits, torch.finfo(logits.dtype).min)}


class MaskedBatch(VectorMaskInObservation):
    """The native batch as env runners step it: masks beside the observations, no infos, illegal actions an error.

    `context` is RLlib's `env_config`: the number of rows as `num_envs`, which RLlib puts there, the options of
    `KismetVectorEnv`, and `points_per_reward`, by which points are divided so that values are of the order of 1.

    RLlib counts the seeds of its env runners up, one by one, as a batch does with those of its rows; `reset` spreads
    them, so that no two rows of all env runners play the same dice.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        options = dict(context)
        self._points_per_reward = options.pop("points_per_reward", 1.0)
        super().__init__(KismetVectorEnv(illegal_action="raise", **options))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a game in all rows, on dice for training."""
        dice = None if seed is None else int(hash_words(TRAINING_DICE, seed))
        observations, _ = super().reset(seed=dice, options=options)
        return observations, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one action in every row."""
        observations, rewards, terminated, truncated, _ = super().step(actions)  # RLlib takes infos apart, row by row
        return observations, rewards / self._points_per_reward, terminated, truncated, {}
