"""Solitaire Kismet as a native Gymnasium vector environment: a `Batch`, translated."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from kismet_env.batch import Batch, Step, whole_number
from kismet_env.env import Observation, seed_of
from kismet_env.position import Position, read_position
from kismet_env.render.onlooker import RENDER_FPS
from kismet_env.render.sheet import sheet
from kismet_env.rules import Rules


def autoreset_name(mode: str | AutoresetMode) -> str:
    """Return the name of an autoreset mode, given by name or as a member; ValueError names the valid ones."""
    try:
        return AutoresetMode(mode).value
    except ValueError:
        names = ", ".join(mode.value for mode in AutoresetMode)
        raise ValueError(f"autoreset_mode={mode!r} is not one of {names}") from None


class KismetVectorEnv(VectorEnv[Observation, npt.NDArray[np.int64], npt.NDArray[Any]]):
    """N games of solitaire Kismet in one compiled call; row i equals `KismetEnv` with the same seed, exactly.

    Arguments are those of `KismetEnv` besides

    * `num_envs`: N.
    * `autoreset_mode`: "NextStep" (default), "SameStep" or "Disabled" (then `reset(options={"reset_mask": ...})`
      begins the games of those rows), or the member of `gymnasium.vector.AutoresetMode`.

    `reset(seed=s)` gives row i the seed s + i; a list gives one to each row. `options={"position": p}` takes one
    position for all rows or a list. Infos hold arrays: `action_mask` int8 (N, A), `illegal_action` bool (N,),
    `scorecard` int16 (N, 15), `total` int16 (N,), each with its presence array `_action_mask` and so on; under
    "SameStep" also `final_obs` and `final_info` in the steps that end a game. All arrays are new at every call.
    `render_mode` "ansi" or "rgb_array" gives the sheet or the picture of every row, the latter without the last action.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": RENDER_FPS}  # noqa: RUF012 (as declared by Gymnasium)

    def __init__(
        self,
        num_envs: int = 1,
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        reward: str = "points",
        illegal_action: str = "penalty",
        start: str = "full",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        batch = Batch(
            whole_number("num_envs", num_envs, 1),
            rules=rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
            autoreset=autoreset_name(autoreset_mode),
        )
        self._set_up(batch, autoreset_mode, render_mode)

    def _set_up(self, batch: Batch, autoreset_mode: str | AutoresetMode, render_mode: str | None) -> None:
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.batch = batch
        self.num_envs = num_envs = batch.num_games
        self._is_seeded = False
        self._mask = np.ones((num_envs, self.batch.actions.num_actions), np.int8)
        self.single_observation_space = self.batch.layout.space
        self.single_action_space = gym.spaces.Discrete(self.batch.actions.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def rules(self) -> Rules:
        """The rules of this environment."""
        return self.batch.rules

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin new episodes in all rows, or in those of `options["reset_mask"]`, (N,) bool."""
        options = options or {}
        rows = self._checked_rows(options.get("reset_mask"))
        seeds = self._checked_seeds(seed)
        positions = self._checked_positions(options.get("position"), rows)
        super().reset(seed=None if seeds is None else seeds[0])
        if seeds is None and not self._is_seeded:
            seeds = _rising(seed_of(self, None), self.num_envs)
        with self.batch.undone_on_error():
            if seeds is not None:
                self.batch.seed(seeds, rows if self._is_seeded else None)  # no row is ever dealt a game without a seed
            out = self.batch.deal(rows) if positions is None else self.batch.deal_positions(positions, rows)
        self._is_seeded = True
        return self.batch.layout.present(out.observations), self._infos(out)

    def _checked_rows(self, reset_mask: Any) -> npt.NDArray[np.bool_] | None:
        if reset_mask is None:
            return None
        rows = np.asarray(reset_mask)
        if rows.shape != (self.num_envs,) or rows.dtype != np.bool_:
            raise ValueError(f"reset_mask of shape {rows.shape} and type {rows.dtype} is not {self.num_envs} bools")
        return rows

    def _checked_positions(
        self, positions: Any, rows: npt.NDArray[np.bool_] | None
    ) -> list[Mapping[str, Any] | Position] | None:
        """Return the positions, one for each row, with those that are to be set read and found possible."""
        if positions is None:
            return None
        num_players = self.batch.num_players
        if isinstance(positions, Mapping):
            return [read_position(positions, self.rules, num_players)] * self.num_envs
        if not isinstance(positions, Sequence) or len(positions) != self.num_envs:
            raise ValueError(f"position={positions!r} is not a position or a list with one for each row")
        chosen = [True] * self.num_envs if rows is None else rows
        return [
            read_position(position, self.rules, num_players) if is_chosen else position
            for position, is_chosen in zip(positions, chosen, strict=True)
        ]

    def _checked_seeds(self, seed: int | Sequence[int | None] | None) -> list[int] | None:
        if seed is None:
            return None
        if not isinstance(seed, Sequence | np.ndarray):
            return _rising(operator.index(seed), self.num_envs)
        if len(seed) != self.num_envs or any(one is None for one in seed):
            raise ValueError(f"seed={seed!r} is not a number or a list with one for each of {self.num_envs} rows")
        return [operator.index(one) for one in seed if one is not None]

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[Observation, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Play one action in every row, (N,) whole numbers; ValueError changes nothing.

        Under "NextStep" the rows whose game had ended begin a new one and ignore their action; under "Disabled" such
        rows are an error.
        """
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP and (over := self.batch.over).any():
            rows = np.flatnonzero(over)[:8].tolist()
            raise ValueError(f"games of rows {rows} are over or have not begun; reset(options={{'reset_mask': ...}})")
        if not self._is_seeded:
            raise gym.error.ResetNeeded("no game has begun; call reset()")
        out = self.batch.step(actions)
        infos = self._infos(out)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            ended = out.terminated | out.truncated
            if ended.any():
                infos.update(self._final(out, ended))
        return (
            self.batch.layout.present(out.observations),
            out.rewards[:, 0],
            out.terminated,
            out.truncated,
            infos,
        )

    def _infos(self, out: Step) -> dict[str, Any]:
        self._mask = out.masks
        return with_presence(
            np.ones(self.num_envs, np.bool_),
            action_mask=out.masks,
            illegal_action=out.illegal,
            scorecard=out.scorecards,
            total=out.totals,
        )

    def _final(self, out: Step, ended: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return how the `ended` games ended: what "SameStep" adds to the infos, those of the games it began."""
        final, count = self.batch.final, int(ended.sum())
        presented = self.batch.layout.present(final.observations[ended])
        if isinstance(presented, dict):
            each = ({name: values[row] for name, values in presented.items()} for row in range(count))
            rows = np.fromiter(each, object, count)
        else:
            rows = np.fromiter(presented, object, count)
        final_obs = np.full(self.num_envs, None, object)
        final_obs[ended] = rows
        final_info = with_presence(
            ended.copy(),
            action_mask=np.ones_like(out.masks) * ended[:, None],
            illegal_action=out.illegal & ended,
            scorecard=final.scorecards * ended[:, None],
            total=final.totals * ended,
        )
        return {
            "illegal_action": out.illegal & ~ended,
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, (N, A) bool."""
        return self._mask.astype(np.bool_)

    def position(self, row: int = 0) -> dict[str, Any]:
        """Return the position of one row in the form that `reset(options={"position": ...})` takes."""
        return self.batch.position(row)

    def render(self) -> tuple[str | npt.NDArray[np.uint8], ...] | None:
        """Return the score sheet ("ansi") or a picture of the table ("rgb_array") of every row; else None."""
        positions = (self.position(row) for row in range(self.num_envs))
        if self.render_mode == "ansi":
            return tuple(sheet(position, self.rules) for position in positions)
        if self.render_mode == "rgb_array":
            from kismet_env.render.picture import picture  # needs Pillow

            return tuple(picture(position, self.rules) for position in positions)
        return None


def _rising(seed: int, count: int) -> list[int]:
    return [seed + row for row in range(count)]


def with_presence(present: npt.NDArray[np.bool_], **arrays: npt.NDArray[Any]) -> dict[str, Any]:
    """Return infos of a vector environment: each array beside the array that says which rows have it, (N,) bool."""
    infos: dict[str, Any] = {}
    for name, array in arrays.items():
        infos[name], infos[f"_{name}"] = array, present
    return infos
