"""Kismet for one to six players as an OpenSpiel game: a `Batch`, translated.

    import kismet_env.open_spiel_game
    game = pyspiel.load_game("kismet", {"players": 2})

Chance is explicit: a chance node has one outcome for each different roll that can come, at most 252, with its exact
probability. The engine plays the actions; the roll that its key would bring is replaced by the outcome.

Parameters: `players` 1 to 6 (default 2); `rules` the name of a variant (`kismet_env.rules.SUITE`) or "standard";
`reward` "win" (as in `kismet_v0`, zero-sum; default for several players) or "final" (the total; default for one);
ValueError for others. Actions are those of `actions="keeps"`, outcomes the rolls of `kismet_env.dice`. What a player
observes are the "features" of his seat, zeros at chance nodes.

Needs OpenSpiel (`pip install "kismet-env[openspiel]"`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.batch import MOST_PLAYERS, Batch
from kismet_env.dice import NUM_ROLLS, REROLL_PROBABILITY, ROLL_DICE, keep_index
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import max_total

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ImportError:
    raise ImportError("kismet_env.open_spiel_game needs OpenSpiel: pip install 'kismet-env[openspiel]'") from None

_DEFAULTS: dict[str, Any] = {"players": 2, "rules": "standard", "reward": "default"}
_NOTHING_KEPT = keep_index([])


def _game_type(utility: Any) -> Any:
    return pyspiel.GameType(
        short_name="kismet",
        long_name="Kismet",
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=utility,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=MOST_PLAYERS,
        min_num_players=1,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=_DEFAULTS,
    )


class _Table(Batch):
    """One game that all states of a KismetGame play on in turn: they bring their own, so a copy of theirs is enough."""

    def __deepcopy__(self, memo: Any) -> _Table:
        return self


class KismetGame(pyspiel.Game):  # type: ignore[misc] # OpenSpiel ships no types
    """Kismet with explicit chance; see the module."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        chosen = _DEFAULTS | dict(params or {})
        players, reward = chosen["players"], chosen["reward"]
        if reward == "default":
            reward = "win" if players > 1 else "final"
        if reward not in ("win", "final"):
            raise ValueError(f"reward={reward!r} is not one of win, final")
        rules = Rules.of(None if chosen["rules"] == "standard" else chosen["rules"])
        self.table = _Table(1, players, rules=rules, reward=reward, illegal_action="raise")
        wins = reward == "win"
        length = players * NUM_BOXES * ROLLS_PER_TURN
        info = pyspiel.GameInfo(
            num_distinct_actions=self.table.actions.num_actions,
            max_chance_outcomes=NUM_ROLLS,
            num_players=players,
            min_utility=-1.0 if wins else 0.0,
            max_utility=1.0 if wins else float(max_total(rules)),
            utility_sum=0.0 if wins else None,
            max_game_length=length,
        )
        utility = pyspiel.GameType.Utility
        super().__init__(_game_type(utility.ZERO_SUM if wins else utility.GENERAL_SUM), info, dict(params or {}))

    def new_initial_state(self) -> KismetState:
        """Return the state before the first roll."""
        return KismetState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return how many times dice can be rolled in a game at most."""
        return int(self.max_game_length())

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
        """Return who observes for a player; ValueError for parameters, there are none."""
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return KismetObserver(self.table, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class KismetState(pyspiel.State):  # type: ignore[misc]
    """A position between two actions or outcomes."""

    def __init__(self, game: KismetGame) -> None:
        super().__init__(game)
        self.table = game.table
        self.table.deal()
        self._saved = self.table.save()
        self._keep = _NOTHING_KEPT  # what lies on the table while the other dice are rolled; -1 when they have been
        self._returns = np.zeros(self.table.num_players)

    def take_table(self) -> _Table:
        """Return the table with this state's game on it."""
        self.table.restore(self._saved)
        return self.table

    def current_player(self) -> int:
        """Return whose turn it is, CHANCE while dice are rolled, TERMINAL at the end."""
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        return int(pyspiel.PlayerId.CHANCE if self._keep >= 0 else self._saved[0]["player"][0])

    def is_terminal(self) -> bool:
        """Return whether all cards are full."""
        return bool(self._saved[0]["over"][0])

    def _legal_actions(self, player: int) -> list[int]:
        legal: list[int] = np.flatnonzero(self.take_table().look().masks[0]).tolist()
        return legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the different rolls that can come and their probabilities."""
        probabilities = REROLL_PROBABILITY[self._keep]
        return [(int(roll), float(probabilities[roll])) for roll in np.flatnonzero(probabilities)]

    def _apply_action(self, action: int) -> None:
        """Play on; ValueError for an illegal action, a roll that cannot come, and after the end."""
        if self.is_terminal():
            raise ValueError(f"the game is over; action {action} comes too late")
        if self._keep >= 0:
            if not (action < NUM_ROLLS and REROLL_PROBABILITY[self._keep, action]):
                raise ValueError(f"outcome {action} cannot come here; chance_outcomes() has those that can")
            self._saved[0]["roll"][0] = action
            self._keep = -1
            return
        table = self.take_table()
        rolls = action < table.actions.num_rolls
        keep = table.actions.keep_of[self._saved[0]["roll"][0], action] if rolls else _NOTHING_KEPT
        self._returns = self._returns + table.step([action]).rewards[0]
        self._saved, self._keep = table.save(), int(keep)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return "roll " + "-".join(map(str, ROLL_DICE[action]))
        return self.table.actions.text(action)

    def returns(self) -> list[float]:
        """Return what every player has got, nothing before the end."""
        returns: list[float] = self._returns.tolist()
        return returns

    def position(self) -> dict[str, Any]:
        """Return the position in the form of `kismet_env.position`, without `dice` while they are rolled.

        There is `keep` then: the number of the keep that stays on the table.
        """
        position = self.take_table().position()
        if self.is_chance_node():
            del position["dice"]
            position["keep"] = self._keep
        return position

    def __str__(self) -> str:
        return json.dumps(self.position())


class KismetObserver:
    """What a player sees: the "features" of his seat."""

    def __init__(self, table: _Table, params: Any) -> None:
        if params:
            raise ValueError(f"observations have no parameters; {params} given")
        self.tensor: npt.NDArray[np.float32] = np.zeros(table.layout.size, np.float32)
        self.dict = {"features": self.tensor}

    def set_from(self, state: KismetState, player: int) -> None:
        """Write what `player` sees of a state into `tensor`; zeros while dice are rolled."""
        self.tensor.fill(0)
        if not state.is_chance_node():
            self.tensor[:] = state.take_table().look(seats=np.array([player])).observations[0]

    def string_from(self, state: KismetState, player: int) -> str:
        """Return the same in words: all that there is lies open."""
        return str(state)


pyspiel.register_game(_game_type(pyspiel.GameType.Utility.GENERAL_SUM), KismetGame)
