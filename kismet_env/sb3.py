"""Kismet as a Stable-Baselines3 `VecEnv`: a `Batch` or `Match`, translated; no Python call or object per game."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError:
    raise ImportError("kismet_env.sb3 needs Stable-Baselines3: pip install 'kismet-env[train]'") from None

from kismet_env.batch import Batch, Step, whole_number
from kismet_env.env import Observation
from kismet_env.match import Match, Opponents
from kismet_env.rules import Rules

Indices = int | Iterable[int] | None
_SAVED = ("games", "cards", "learners")  # names of what a batch saves, the last of a match alone


class KismetVecEnv(VecEnv):
    """N games of Kismet for Stable-Baselines3; MaskablePPO of sb3-contrib takes it as it is.

    Row i plays the games of `KismetVectorEnv(autoreset_mode="SameStep")` with the same seed, with opponents those of
    `KismetVersusVectorEnv`: a game that ends begins anew in the same step.

    Args:
        num_envs: N.
        seed: row i gets the seed + i at the next reset; None leaves the choice to the operating system. `seed()` does
            the same later; models of Stable-Baselines3 call it when they are made with a seed.
        opponents, seat: as for `KismetVersusEnv`; without opponents (None) the game is solitaire and has no seat to
            choose. `set_opponents` replaces them while games go on, for self-play.
        rules, actions, observation, start: as for `KismetEnv`. "dict" observations are for `MultiInputPolicy`.
        reward, illegal_action: as for these environments; None stands for their defaults.

    Infos are empty, and shared, but for the rows whose game ended, which have `terminal_observation`,
    `TimeLimit.truncated`, `scorecard` int16 (15,), `total` and `episode`, what `Monitor` would write: the return "r",
    the length "l" in steps and the seconds "t" since the environment was made; with opponents also `seat` and
    `opponent_totals` int16 (P - 1,) in playing order. `set_options([{"position": p}, ...])`
    puts rows into positions at the next reset. Raises ValueError for an argument that is not valid.
    """

    def __init__(
        self,
        num_envs: int,
        seed: int | None = None,
        *,
        opponents: Opponents | None = None,
        seat: int | str | None = None,
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        reward: str | None = None,
        illegal_action: str | None = None,
        start: str = "full",
    ) -> None:
        options: dict[str, Any] = {
            "rules": rules,
            "actions": actions,
            "observation": observation,
            "start": start,
            "autoreset": "SameStep",
        }
        chosen = {"reward": reward, "illegal_action": illegal_action}
        options |= {name: value for name, value in chosen.items() if value is not None}
        num_envs = whole_number("num_envs", num_envs, 1)
        if opponents is not None:
            self.batch: Batch = Match(num_envs, opponents, seat=0 if seat is None else seat, **options)
        elif seat is None:
            self.batch = Batch(num_envs, **options)
        else:
            raise ValueError(f"seat={seat!r} needs opponents, 1 to 5 names or players; a solitaire game has no seats")
        num_actions = self.batch.actions.num_actions
        self._mask = np.ones((num_envs, num_actions), np.bool_)
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._no_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._is_seeded = False
        self._made = time.perf_counter()
        self.illegal_actions = 0
        """How many illegal actions there have been since the environment was made."""
        super().__init__(num_envs, self.batch.layout.space, gym.spaces.Discrete(num_actions))
        if seed is not None:
            self.seed(seed)

    @property
    def rules(self) -> Rules:
        """The rules of this environment."""
        return self.batch.rules

    def set_opponents(self, opponents: Opponents) -> None:
        """Let as many other players take the opponents' seats from now on, also in games that are going on.

        Raises ValueError, and changes nothing, for another number of them, an unknown name or a solitaire game.
        """
        if not isinstance(self.batch, Match):
            raise ValueError("nobody plays against a solitaire player; make the environment with opponents")
        self.batch.set_opponents(opponents)

    def reset(self) -> Observation:
        """Begin new episodes in all rows and return their observations, (N, D) or a dict of arrays."""
        positions = [options.get("position") for options in self._options]
        seeds: list[int] = [seed for seed in self._seeds if seed is not None]
        if not seeds and not self._is_seeded:
            first = int(np.random.default_rng().integers(2**63))
            seeds = [first + row for row in range(self.num_envs)]
        placed = np.array([position is not None for position in positions])
        with self.batch.undone_on_error():
            if seeds:
                self.batch.seed(seeds)
            out = self.batch.deal(~placed)
            if placed.any():
                out = self.batch.deal_positions([position or {} for position in positions], placed)
        self._is_seeded = True
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0, 0
        return self._observed(out)

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Take the actions, (N,) whole numbers, that `step_wait` plays."""
        self._actions = actions

    def step_wait(self) -> tuple[Observation, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play them: observations, rewards (N,) in points, whether a game ended (N,), infos."""
        out = self.batch.step(self._actions)
        rewards = out.rewards[:, 0]
        self._returns += rewards
        self._lengths += 1
        self.illegal_actions += int(out.illegal.sum())
        ended = out.terminated | out.truncated
        infos = self._no_infos
        if ended.any():
            infos = infos.copy()
            rows = np.flatnonzero(ended)
            for row, info in zip(rows.tolist(), self._final_infos(rows, out.truncated), strict=True):
                infos[row] = info
            self._returns[rows], self._lengths[rows] = 0, 0
        return self._observed(out), rewards.astype(np.float32), ended, infos

    def _final_infos(self, rows: npt.NDArray[np.int64], truncated: npt.NDArray[np.bool_]) -> Iterable[dict[str, Any]]:
        final, seconds = self.batch.final, round(time.perf_counter() - self._made, 6)
        observations = self.batch.layout.present(final.observations[rows])
        for index, row in enumerate(rows.tolist()):
            yield {
                "terminal_observation": _row_of(observations, index),
                "TimeLimit.truncated": bool(truncated[row]),
                "scorecard": final.scorecards[row].copy(),
                "total": int(final.totals[row]),
                "episode": {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": seconds},
                **self._about_opponents(row),
            }

    def _about_opponents(self, row: int) -> dict[str, Any]:
        if not isinstance(self.batch, Match):
            return {}
        news = self.batch.final_news
        return {"seat": int(news.seat[row]), "opponent_totals": news.opponent_totals[row].copy()}

    def _observed(self, out: Step) -> Observation:
        self._mask = out.masks.view(np.bool_)
        return self.batch.layout.present(out.observations)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, (N, A) bool."""
        return self._mask

    def position(self, row: int = 0) -> dict[str, Any]:
        """Return the position of one row in the form that `set_options` takes."""
        return self.batch.position(row)

    def save(self) -> dict[str, npt.NDArray[Any]]:
        """Return a copy of everything that decides how the games go on, dice to come included."""
        saved = dict(zip(_SAVED, self.batch.save(), strict=False))
        return saved | {"returns": self._returns.copy(), "lengths": self._lengths.copy()}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> Observation:
        """Go back to what `save` returned for an environment of the same arguments, and return the observations.

        Raises ValueError for another number of rows.
        """
        self.batch.restore(tuple(saved[name] for name in _SAVED if name in saved))
        self._returns[:], self._lengths[:] = saved["returns"], saved["lengths"]
        self._is_seeded = True
        return self._observed(self.batch.look())

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> Any:
        """Return what a method of single environments returns for rows: "action_masks", (n, A) bool, or "position".

        Any other name is an AttributeError.
        """
        rows = list(self._get_indices(indices))
        if method_name == "action_masks":
            return self._mask if indices is None else self._mask[rows]
        if method_name == "position":
            return [self.position(row) for row in rows]
        raise AttributeError(f"rows of a KismetVecEnv have no method {method_name!r}; action_masks, position")

    def has_attr(self, attr_name: str) -> bool:
        """Return whether single environments would have an attribute or method that rows stand in for."""
        return attr_name in ("action_masks", "position", "render_mode", "rules")

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of each of the rows; AttributeError for one that they do not have."""
        if not self.has_attr(attr_name):
            raise AttributeError(f"rows of a KismetVecEnv have no attribute {attr_name!r}")
        rows = list(self._get_indices(indices))
        match attr_name:
            case "render_mode":
                return [None for _ in rows]
            case "rules":
                return [self.rules for _ in rows]
            case method:
                return [lambda row=row: self.env_method(method, indices=row)[0] for row in rows]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Raise AttributeError: the rows are one batch; what can be chosen are arguments of the constructor."""
        raise AttributeError(f"{attr_name!r} cannot be set for rows of a KismetVecEnv; make another one instead")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Return, for each of the rows, True for `Monitor`, whose statistics are in the infos, else False."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> list[None]:
        """Return None for each row: there are no pictures in training."""
        return [None] * self.num_envs

    def close(self) -> None:
        """Do nothing; there is nothing to release."""


def _row_of(observations: Observation, row: int) -> Observation:
    if isinstance(observations, dict):
        return {name: values[row] for name, values in observations.items()}
    return observations[row]
