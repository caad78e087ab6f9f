"""Kismet for one to six players as a PettingZoo AEC environment: one game of a `Batch`, translated.

    from kismet_env import kismet_v0
    env = kismet_v0.env(num_players=3)

Needs PettingZoo (`pip install "kismet-env[multiplayer]"`).
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from kismet_env.batch import Batch
from kismet_env.position import read_position
from kismet_env.render.onlooker import RENDER_FPS, RENDER_MODES, Onlooker
from kismet_env.rules import Rules

try:
    from pettingzoo import AECEnv
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ImportError:
    raise ImportError("kismet_env.kismet_v0 needs PettingZoo: pip install 'kismet-env[multiplayer]'") from None

_OF_A_GAME = (  # what PettingZoo has beside the game itself
    "agents",
    "agent_selection",
    "rewards",
    "_cumulative_rewards",
    "terminations",
    "truncations",
    "infos",
    "_skip_agent_selection",
)
Observation = dict[str, Any]
"""{"observation": ..., "action_mask": int8 (A,)}."""


class KismetAECEnv(AECEnv):  # type: ignore[misc] # PettingZoo ships no types
    """Kismet for `player_0` to `player_5`, who sit in this order.

    ## Description
    As in `KismetEnv`, each with a card of his own. A second Kismet puts a zero into the first open box of everybody
    else and costs them a turn (RULES.md 6): they are passed over, no action is asked of them. So an agent may act twice
    running, and a card may change by more than one box between two turns of its owner.

    ## Action Space
    `Discrete(225)` or, with `actions="holds"`, `Discrete(46)`, as in `KismetEnv`.

    ## Observation Space
    A dict: `observation` as in `KismetVersusEnv`, own card first and then the opponents in playing order, and
    `action_mask` int8 (A,), 1 where an action is legal; all zeros for agents who wait and after the end. `observe`
    answers for all agents at any time; whoever waits sees the dice on the table beside his own card.

    ## Starting State
    Empty cards, or what `start` says. `first_player="seat0"`: player_0 begins; `"random"`: who begins is drawn by the
    game's key. `reset(options={"position": p})` starts from any position (`kismet_env.position`).

    ## Rewards
    `reward="win"`: at the end k winners of P agents get (P - k) / (k (P - 1)) each, losers -1 / (P - 1); not for one
    player. `"points"`: points when they are entered, the bonus included; a zero forced by another agent's second Kismet
    can complete a Basic Section, and its bonus then waits for the owner's next `last()`. `"final"`: the sum of these,
    at the end.

    `illegal_action="terminate"`: an illegal action ends the game; its agent gets -1 and nobody else loses or gains
    anything. `"penalty"`: -1 and nothing changes, the 100th truncates the game. `"raise"`: a ValueError that names the
    legal actions. Numbers outside the action space are always a ValueError.

    ## Episode End
    All agents terminate when all cards are full; each then takes its dead step.

    ## Information
    For every agent at any time: `illegal_action` bool (of the action just taken), `scorecard` int16 (15,), -1 where
    open, `total` int.

    ## Arguments
    `num_players` 1 to 6, `first_player`, `rules`, `actions`, `observation`, `reward`, `illegal_action`, `start`,
    `render_mode`, all but the first two as in `KismetEnv`; a ValueError names the valid values.

    ## Randomness
    As in `KismetEnv`: the same seed gives the same dice, for one player the same game.

    ## Version History
    v0: initial version.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (as declared by PettingZoo)
        "name": "kismet_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 2,
        reward: str = "win",
        first_player: str = "seat0",
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        illegal_action: str = "terminate",
        start: str = "full",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode={render_mode!r} is not one of {', '.join(RENDER_MODES)} or None")
        self.render_mode = render_mode
        self.batch = Batch(
            1,
            num_players,
            rules=rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
            first_player=first_player,
        )
        self._onlooker = Onlooker(self.batch, render_mode)
        num_players = self.batch.num_players
        self._is_seeded = False
        num_actions = self.batch.actions.num_actions
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self.agents: list[str] = []
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {
            agent: gym.spaces.Dict(
                {
                    "observation": self.batch.layout.space,
                    "action_mask": gym.spaces.Box(0, 1, (num_actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: gym.spaces.Discrete(num_actions) for agent in self.possible_agents}

    @property
    def rules(self) -> Rules:
        """The rules of this environment."""
        return self.batch.rules

    def observation_space(self, agent: str) -> gym.spaces.Dict:
        """Return the space of what an agent observes, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Discrete:
        """Return the space of an agent's actions, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin the next game of the seeding, or the first one of a new `seed`.

        `options={"position": p}` starts from a position; an impossible one is a ValueError and changes nothing.
        """
        position = (options or {}).get("position")
        if position is not None:
            position = read_position(position, self.rules, self.batch.num_players)  # before anything changes
        if seed is not None or not self._is_seeded:
            self.batch.seed([int(np.random.default_rng().integers(2**63)) if seed is None else seed])
            self._is_seeded = True
        if position is None:
            self.batch.deal()
        else:
            self.batch.deal_positions([position])
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection: str | None = None
        self._show(illegal=False)
        if self._onlooker.draws:
            self._onlooker.begin(self.possible_agents)

    def step(self, action: int | None) -> None:
        """Play one action of the agent whose turn it is; None once the game is over."""
        self._check_begun()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        try:
            actions = np.array((operator.index(action),), np.int64)  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            most = self.batch.actions.num_actions - 1
            raise ValueError(f"action {action!r} is not a whole number from 0 to {most}") from None
        if self._onlooker.draws:
            self._onlooker.before()
        out = self.batch.step(actions)
        if self._onlooker.draws:
            self._onlooker.after(int(actions[0]), illegal=bool(out.illegal[0]))
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.agents, out.rewards[0].tolist(), strict=True))
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(self.agents, bool(out.terminated[0]))
        self.truncations = dict.fromkeys(self.agents, bool(out.truncated[0]))
        self._show(illegal=bool(out.illegal[0]), mover=agent)
        self._deads_step_first()

    def _check_begun(self) -> None:
        """Raise before the first reset or restore: the arrays hold a game, but nobody has begun it."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("no game has begun; call reset()")

    def _show(self, *, illegal: bool, mover: str | None = None) -> None:
        """Select whose turn it is and tell everybody what the cards hold."""
        cards = self.batch.state.cards[0]
        self.infos = {
            agent: {
                "illegal_action": illegal and agent == mover,
                "scorecard": card["points"].copy(),
                "total": int(card["total"]),
            }
            for agent, card in zip(self.agents, cards, strict=True)
        }
        self.agent_selection = self.possible_agents[int(self.batch.state.games["player"][0])]

    def observe(self, agent: str) -> Observation:
        """Return what an agent sees now, its mask all zeros unless it is to act."""
        self._check_begun()
        out = self.batch.look(seats=np.array([self._seat_of[agent]]))
        presented = self.batch.layout.present(out.observations)
        seen = {name: values[0] for name, values in presented.items()} if isinstance(presented, dict) else presented[0]
        return {"observation": seen, "action_mask": out.masks[0] * np.int8(not self.batch.over[0])}

    def position(self) -> dict[str, Any]:
        """Return the position in the form that `reset(options={"position": ...})` takes."""
        self._check_begun()
        return self.batch.position()

    def save(self) -> dict[str, Any]:
        """Return the exact state of the game, dice to come and rewards not yet taken included."""
        self._check_begun()
        return {"batch": self.batch.save(), **{name: copy.deepcopy(getattr(self, name)) for name in _OF_A_GAME}}

    def restore(self, saved: Mapping[str, Any], key: int | None = None) -> None:
        """Go back to a saved state; `key` replaces the dice to come, all but those on the table.

        A planner must pass one, a new one for each line it tries: without it the dice that will really come are the
        ones it sees.
        """
        self.batch.restore(saved["batch"], key)
        self._is_seeded = True
        for name in _OF_A_GAME:
            setattr(self, name, copy.deepcopy(saved[name]))
        if self._onlooker.draws:
            self._onlooker.begin(self.possible_agents)

    def render(self) -> Any:
        """Return the score sheet as text ("ansi") or the picture of the table ("rgb_array"), or show it ("human").

        A picture is uint8 (600, 800, 3), RGB. None in a window and, with a warning, without a render mode.
        """
        if self.render_mode is None:
            valid = ", ".join(RENDER_MODES)
            gym.logger.warn(f"render() needs a render_mode: kismet_v0.env(..., render_mode=...) with one of {valid}")
            return None
        self._check_begun()
        return self._onlooker.render()

    def close(self) -> None:
        """Close the window of "human", if there is one."""
        self._onlooker.close()


raw_env = KismetAECEnv
"""The environment without PettingZoo's check on the order of calls."""


def env(num_players: int = 2, **options: Any) -> AECEnv:
    """Return the environment with the arguments of `KismetAECEnv`."""
    return OrderEnforcingWrapper(raw_env(num_players, **options))
