"""Solitaire Kismet as a Gymnasium environment: one game of a `Batch`, translated."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch, Saved, Step
from kismet_env.observation import layout_of
from kismet_env.position import read_position
from kismet_env.render.onlooker import RENDER_FPS, RENDER_MODES, Onlooker
from kismet_env.rules import Rules

Observation = Any  # an array or a dict of arrays, by the argument `observation`


def seed_of(env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any], seed: int | None) -> int:
    """Return `seed`, or the seed that Gymnasium chose for an environment that was given none."""
    if seed is not None:
        return int(seed)
    chosen = env.np_random_seed
    if chosen is not None and chosen >= 0:
        return int(chosen)
    return int(env.np_random.integers(2**63))  # somebody has put a generator of their own there


class KismetEnv(gym.Env[Observation, Any]):
    """Solitaire Kismet.

    ## Description
    Five dice with coloured pips, up to three rolls a turn, fifteen boxes of which each turn fills one. The aim is the
    highest total. RULES.md states the rules; `rules` chooses among the readings and house rules.

    ## Action Space
    `Discrete(225)` with `actions="keeps"`: action k < 210 keeps the dice of keep k, one of the 210 multisets of
    nought to four dice (`kismet_env.dice`), and rolls the others; 210 + box fills that box (`kismet_env.Box`).
    `Discrete(46)` with `actions="holds"`: the dice lie sorted, action a < 31 keeps the dice whose bit is set (bit 0 =
    lowest die), 31 + box fills. `info["action_mask"]` and `action_masks()` say exactly which actions are legal.

    ## Observation Space
    `observation="features"`: `Box(0, 1, (79,), float32)`, see the table below; `"raw"`: the same without the pieces
    from `color_counts` on; `"dict"`: whole numbers `dice` (5,), `colors` (5,), `rolls_left`, `scorecard` (15,) with
    -1 for open boxes, `armed`. `kismet_env.observation.decode` turns vectors back into whole numbers.

    {layout}

    ## Starting State
    `start="full"`: an empty sheet. `"open:k"`: k random boxes are open, the others hold plausible points. `"uniform"`:
    the same with k drawn from 1 to 15. The five dice have been rolled once. `reset(options={"position": p})` starts
    from any position (`kismet_env.position`).

    ## Rewards
    `reward="points"`: the points of the step, the bonus included when the sixth Basic box is filled, so the return
    from an empty sheet is the final score. `"final"`: the sum of these, when the last box is filled.

    An illegal action brings -1 and changes nothing; the 100th truncates the episode (`illegal_action="penalty"`). With
    `"terminate"` the first one brings -1 and ends it, with `"raise"` it is a ValueError that names the legal actions.
    Numbers outside the action space are always a ValueError.

    ## Episode End
    Terminated when all fifteen boxes are filled: 15 to 45 legal steps.

    ## Information
    At reset and at every step: `action_mask` int8 (A,), 1 where an action is legal, all ones after the end;
    `illegal_action` bool; `scorecard` int16 (15,), -1 where open; `total` int.

    ## Arguments
    `rules` (a `Rules`, a mapping of its fields, a name in `kismet_env.rules.SUITE`, or None for the standard game),
    `actions`, `observation`, `reward`, `illegal_action`, `start`, `render_mode`; a ValueError names the valid values.

    ## Rendering
    `render_mode="ansi"`: the score sheet as text; `"rgb_array"`: a picture of the table, uint8 (600, 800, 3), with the
    dice in their true colours, kept ones marked, the cards, and the last action in words; `"human"`: the same in a
    window. Pictures need `pip install "kismet-env[render]"`; nothing that is drawn changes the game.

    ## Randomness
    The dice are a pure function of the seed, the number of the episode since that seeding, the number of filled boxes
    and of the roll: the same seed gives the same game here, in a row of the vector environment and in a one-player
    PettingZoo game.

    ## References
    RULES.md with its four sources.

    ## Version History
    v0: initial version.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012 (as declared by Gymnasium)

    def __init__(
        self,
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        reward: str = "points",
        illegal_action: str = "penalty",
        start: str = "full",
        render_mode: str | None = None,
    ) -> None:
        batch = Batch(
            1,
            rules=rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
        )
        self._set_up(batch, render_mode)

    def _set_up(self, batch: Batch, render_mode: str | None) -> None:
        self.render_mode = render_mode
        self.batch = batch
        self._onlooker = Onlooker(batch, render_mode)
        self._is_seeded = False
        self._mask = np.ones(self.batch.actions.num_actions, np.int8)
        self.observation_space = self.batch.layout.space
        self.action_space = gym.spaces.Discrete(self.batch.actions.num_actions)

    @property
    def rules(self) -> Rules:
        """The rules of this environment."""
        return self.batch.rules

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode of the seeding, or the first one of a new `seed`.

        `options={"position": p}` starts from a position; an impossible one is a ValueError and changes nothing.
        """
        position = (options or {}).get("position")
        if position is not None:
            position = read_position(position, self.rules, self.batch.num_players)  # before anything changes
        super().reset(seed=seed)
        with self.batch.undone_on_error():
            if seed is not None or not self._is_seeded:
                self.batch.seed([seed_of(self, seed)])
            out = self.batch.deal() if position is None else self.batch.deal_positions([position])
        self._is_seeded = True
        self._begin_showing()
        return self._observation(out), self._info(out)

    def _begin_showing(self) -> None:
        if self._onlooker.draws:
            self._onlooker.begin(self._names())

    def _names(self) -> Sequence[str] | None:
        """Return what pictures call the players, by seat; None for plain numbers."""
        return None

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one action; ValueError for what is no number of the action space."""
        if self.batch.over[0]:
            raise gym.error.ResetNeeded("the game is over or has not begun; call reset()")
        try:
            actions = np.array((operator.index(action),), np.int64)
        except (TypeError, OverflowError):
            most = self.batch.actions.num_actions - 1
            raise ValueError(f"action {action!r} is not a whole number from 0 to {most}") from None
        if self._onlooker.draws:
            self._onlooker.before()
        out = self.batch.step(actions)
        if self._onlooker.draws:
            self._onlooker.after(int(actions[0]), illegal=bool(out.illegal[0]))
        return (
            self._observation(out),
            float(out.rewards[0, 0]),
            bool(out.terminated[0]),
            bool(out.truncated[0]),
            self._info(out),
        )

    def _observation(self, out: Step) -> Observation:
        presented = self.batch.layout.present(out.observations)
        if isinstance(presented, dict):
            return {name: values[0] for name, values in presented.items()}
        return presented[0]

    def _info(self, out: Step) -> dict[str, Any]:
        self._mask = out.masks[0]
        return {
            "action_mask": out.masks[0],
            "illegal_action": bool(out.illegal[0]),
            "scorecard": out.scorecards[0],
            "total": int(out.totals[0]),
        }

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, (A,) bool: what sb3-contrib's MaskablePPO asks for."""
        return self._mask.astype(np.bool_)

    def position(self) -> dict[str, Any]:
        """Return the position in the form that `reset(options={"position": ...})` takes."""
        return self.batch.position()

    def save(self) -> Saved:
        """Return the exact state of the game, dice to come included."""
        return self.batch.save()

    def restore(self, state: Saved, key: int | None = None) -> tuple[Observation, dict[str, Any]]:
        """Go back to a saved `state` and return observation and info.

        `key` replaces the dice to come, all but those on the table. A planner must pass one, a new one for each line
        it tries: without it the dice that will really come are the ones it sees.
        """
        self.batch.restore(state, key)
        self._is_seeded = True
        self._begin_showing()
        out = self.batch.look()
        return self._observation(out), self._info(out)

    def render(self) -> Any:
        """Return the score sheet as text ("ansi") or the picture of the table ("rgb_array"), or show it ("human").

        A picture is uint8 (600, 800, 3), RGB. None in a window and, with a warning, without a render mode.
        """
        if self.render_mode not in RENDER_MODES:
            valid = ", ".join(RENDER_MODES)
            gym.logger.warn(f"render() needs a render_mode: gym.make(..., render_mode=...) with one of {valid}")
            return None
        return self._onlooker.render()

    def close(self) -> None:
        """Close the window of "human", if there is one."""
        self._onlooker.close()


KismetEnv.__doc__ = (KismetEnv.__doc__ or "").replace("{layout}", layout_of(Rules()).table().replace("\n", "\n    "))
