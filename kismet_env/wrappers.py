"""Wrappers that tell a learner, or whoever watches it, the truth."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv, VectorWrapper

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
