"""Wrappers: what a decision was worth, in the infos; what is legal, in the observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from kismet_env.batch import Batch
from kismet_env.env import KismetEnv
from kismet_env.observation import Decision
from kismet_env.regret import Judge
from kismet_env.solver import solve
from kismet_env.vector_env import KismetVectorEnv

_NONE = -1  # the best action where the game is over


def _judge(batch: Batch) -> Judge:
    return Judge(solve(batch.rules), batch.actions, batch.num_games)


class RegretInfo(gym.Wrapper[Any, Any, Any, Any]):
    """Puts the exact price of every decision into the infos of a solitaire environment, in points.

    * `regret` float: what the action just taken gave away against the best one; 0 at reset and for an illegal action.
    * `luck` float: what the dice that came are worth more (or less) than was to be expected; at reset that of the
      first roll. Over an episode, final score = value of the starting card + sum of luck - sum of regret.
    * `best_action` int: the best action now, in the numbering of the environment; -1 after the end.

    `restore` of the environment may be called at any time: the next action is judged where it is taken.

    The first use under some rules solves them (seconds) or loads them from the user's cache. Raises ValueError for an
    environment that is not solitaire Kismet: against opponents nothing of this is known.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, KismetEnv) or env.unwrapped.batch.num_players > 1:
            raise ValueError(f"RegretInfo needs kismet_env/Kismet-v0, the solitaire game, not {env.unwrapped}")
        self._batch = env.unwrapped.batch
        self._judge = _judge(self._batch)
        self._judged: Decision | None = None  # what the judge knows the actions of

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        luck = self._begin(self._batch.decisions())
        return observation, info | {"regret": 0.0, "luck": float(luck[0]), "best_action": self._best(False)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play and judge one action."""
        before = self._batch.decisions()
        observation, reward, terminated, truncated, info = self.env.step(action)
        over = terminated or truncated
        if not self._knows(before):  # the environment was restored
            self._begin(before)
        self._judged = self._batch.decisions()
        judgement = self._judge.follow(_FIRST, np.array([action]), self._judged, np.array([over]))
        info |= {
            "regret": float(judgement.regret[0]),
            "luck": float(judgement.luck[0]),
            "best_action": self._best(over),
        }
        return observation, reward, terminated, truncated, info

    def _begin(self, now: Decision) -> npt.NDArray[np.float64]:
        self._judged = now
        return self._judge.begin(_FIRST, now)

    def _knows(self, now: Decision) -> bool:
        return self._judged is not None and all(map(np.array_equal, now, self._judged))

    def _best(self, over: bool) -> int:
        return _NONE if over else int(self._judge.best_actions(_FIRST)[0])


_FIRST = np.zeros(1, np.int64)


class VectorRegretInfo(VectorWrapper):
    """`RegretInfo` for the native batch: arrays `regret`, `luck` and `best_action` (N,) in the infos.

    Under "SameStep" the infos of a row whose game has just ended are those of the new game, and `final_info` holds
    regret and luck of the last move.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, KismetVectorEnv) or env.unwrapped.batch.num_players > 1:
            raise ValueError(f"VectorRegretInfo needs the native batch of kismet_env/Kismet-v0, not {env.unwrapped}")
        self._batch = env.unwrapped.batch
        self._judge = _judge(self._batch)
        self._is_over = np.ones(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all rows, or in those of `options["reset_mask"]`."""
        observations, infos = self.env.reset(seed=seed, options=options)
        begun = (options or {}).get("reset_mask")
        rows = np.arange(self.num_envs) if begun is None else np.flatnonzero(begun)
        luck = np.zeros(self.num_envs)
        luck[rows] = self._begin(rows)
        return observations, self._with_truth(infos, np.zeros(self.num_envs), luck)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play and judge one action in every row."""
        was_over = self._is_over
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = terminated | truncated
        regret, luck = np.zeros(self.num_envs), np.zeros(self.num_envs)
        played = np.flatnonzero(~was_over)
        regret[played], luck[played] = self._judge.follow(
            played, np.asarray(actions)[played], self._batch.decisions(played), ended[played]
        )
        self._is_over = ended
        begun = np.flatnonzero(was_over)
        if "final_info" in infos:
            last = {"regret": np.where(ended, regret, 0.0), "luck": np.where(ended, luck, 0.0)}
            for name, values in last.items():
                infos["final_info"] |= {name: values, f"_{name}": ended.copy()}
            regret[ended] = 0.0
            begun = np.flatnonzero(ended)
        luck[begun] = self._begin(begun)
        return observations, rewards, terminated, truncated, self._with_truth(infos, regret, luck)

    def _begin(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        self._is_over[rows] = False
        return self._judge.begin(rows, self._batch.decisions(rows))

    def _with_truth(
        self, infos: dict[str, Any], regret: npt.NDArray[np.float64], luck: npt.NDArray[np.float64]
    ) -> dict[str, Any]:
        best = np.where(self._is_over, _NONE, self._judge.best_actions(np.arange(self.num_envs)))
        for name, values in {"regret": regret, "luck": luck, "best_action": best}.items():
            infos |= {name: values, f"_{name}": np.ones(self.num_envs, np.bool_)}
        return infos


def _masked_space(
    inner: gym.Space[Any], actions: gym.Space[Any], keys: tuple[str, str], dtype: npt.DTypeLike
) -> gym.spaces.Dict:
    if not isinstance(actions, gym.spaces.Discrete):
        raise ValueError(f"a mask needs a Discrete action space, not {actions}")
    if keys[0] == keys[1]:
        raise ValueError(f"obs_key and mask_key are both {keys[0]!r}; give each a name of its own")
    mask = gym.spaces.Box(0, 1, (int(actions.n),), np.dtype(dtype).type)
    return gym.spaces.Dict({keys[0]: inner, keys[1]: mask})


def _mask_of(infos: dict[str, Any], env: object) -> npt.NDArray[np.int8]:
    if "action_mask" not in infos:
        raise ValueError(f'{env} says nothing of what is legal: there is no "action_mask" in its infos')
    mask: npt.NDArray[np.int8] = infos["action_mask"]
    return mask


class MaskInObservation(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Puts the mask beside the observation, under the names and in the type that a library looks for.

    Observations become `{obs_key: observation, mask_key: mask}`, the mask (A,) of `dtype`, 1 or True where an action
    is legal, all ones after the end; infos stay as they are. Any environment with a `Discrete` action space and
    `info["action_mask"]` will do; ValueError for another action space or two equal names, and by `reset` where there is
    no mask. For the native batch: `VectorMaskInObservation`. `docs/frameworks.md` says which library wants what.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        obs_key: str = "observation",
        mask_key: str = "action_mask",
        dtype: npt.DTypeLike = np.int8,
    ) -> None:
        self._keys, self._dtype = (obs_key, mask_key), np.dtype(dtype)
        gym.utils.RecordConstructorArgs.__init__(self, obs_key=obs_key, mask_key=mask_key, dtype=self._dtype.name)
        gym.Wrapper.__init__(self, env)
        self.observation_space = _masked_space(env.observation_space, env.action_space, self._keys, dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._masked(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._masked(observation, info), reward, terminated, truncated, info

    def _masked(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        masks = _mask_of(info, self.env).astype(self._dtype)  # a copy: nothing returned shares memory
        return dict(zip(self._keys, (observation, masks), strict=True))


class VectorMaskInObservation(VectorWrapper):
    """`MaskInObservation` for a vector environment: masks (N, A), under "SameStep" in `final_obs` too."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        obs_key: str = "observation",
        mask_key: str = "action_mask",
        dtype: npt.DTypeLike = np.int8,
    ) -> None:
        super().__init__(env)
        self._keys, self._dtype = (obs_key, mask_key), np.dtype(dtype)
        self.single_observation_space = _masked_space(
            env.single_observation_space, env.single_action_space, self._keys, dtype
        )
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self.autoreset_mode = env.metadata.get("autoreset_mode")  # where TorchRL looks for it

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all rows, or in those of `options["reset_mask"]`."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._masked(observations, _mask_of(infos, self.env)), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one action in every row."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            last = np.full(self.num_envs, None, object)
            for row in np.flatnonzero(infos["_final_obs"]):
                last[row] = self._masked(infos["final_obs"][row], infos["final_info"]["action_mask"][row])
            infos = infos | {"final_obs": last}
        return self._masked(observations, _mask_of(infos, self.env)), rewards, terminated, truncated, infos

    def _masked(self, observations: Any, masks: npt.NDArray[np.int8]) -> dict[str, Any]:
        return dict(zip(self._keys, (observations, masks.astype(self._dtype)), strict=True))
