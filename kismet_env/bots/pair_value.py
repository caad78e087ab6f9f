"""Plays to win against one other: each turn exactly, and what comes after it by a network that judges pairs of cards.

The network, that of a portable policy of kind "pair_value", adds to the logit of a prior, the chance to win of two who
play independently for points (`card_pair`). In positions where nobody has more than one open box the truth is known,
and takes the network's place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.bots.plan_book import PlanBook
from kismet_env.bots.player import Actions, Masks, Observations, Shares
from kismet_env.bots.win_probability import WinProbability
from kismet_env.card_pair import MOST_AFTER, Pairs, corrected, observe_pairs, write_pair_worths, write_unknown
from kismet_env.dice import roll_indices
from kismet_env.observation import decode, decode_table, layout_of, pair_layout
from kismet_env.policy_file import Policy
from kismet_env.rules import Rules
from kismet_env.tables import tables_of
from kismet_env.turn import card_values
from kismet_env.win_chance import SCALE, judge_of

_PLANS = 1 << 13  # turns that are remembered: those of games that are played side by side


class PairPlayer(ABC):
    """Plays the action with the highest chance to win by his judgement of the pairs of cards after the turn.

    Where nothing is left to be won or lost points decide. In games of one, or of more than two, he plays as
    win_probability does. The first match under some rules works out what `win_chance` needs: minutes.

    Args:
        rules: those of the games.
        by_table: whether the exact endgame takes the place of his judgement.

    Attributes:
        tables: those of the rules, by which he works out what follows a turn.
    """

    def __init__(self, rules: Rules, *, by_table: bool = True) -> None:
        self._rules, self._by_table = rules, by_table
        self._elsewhere = WinProbability(rules)
        self._begin()

    def _begin(self) -> None:
        self.tables = tables_of(self._rules)
        self._book = PlanBook(self.tables, self.write_worths, _PLANS)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("tables", "_book")}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._begin()

    @abstractmethod
    def correct(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return what he adds to the logits of the priors of pairs, (N,), shown as `pair_layout` has it, (N, D)."""

    def shares(self, pairs: Pairs) -> npt.NDArray[np.float64]:
        """Return the share of the win that he gives to those who are to move on `pairs` (N, 7), (N,)."""
        seen, priors = shown(self._rules, pairs)
        return corrected(priors, self.correct(seen))

    def write_worths(self, pairs: Pairs, worths: npt.NDArray[np.float64]) -> None:
        """Write what filling each box with each roll is worth on each of `pairs`, in SCALE; see turn.action_values."""
        judge, unknown = judge_of(self._rules), np.empty((len(pairs) * MOST_AFTER, 7), np.int64)
        count = write_unknown(self.tables, judge, pairs, self._by_table, unknown)
        write_pair_worths(self.tables, judge, pairs, self._by_table, self.shares(unknown[:count]), worths)

    def turns(self, pairs: Pairs) -> npt.NDArray[np.float64]:
        """Return what the best turn on each of `pairs` (N, 7) is worth in shares of the win, by his judgement, (N,)."""
        return card_values(self.tables, pairs, self.write_worths) / SCALE

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row, the lowest number among equals."""
        if observations.shape[1] != layout_of(self._rules, 2).size:
            return self._elsewhere.act(observations, masks)
        decision = decode(observations)
        pairs = pairs_of(observations, self._rules)
        return self._book.actions(pairs, roll_indices(decision.dice), decision.rolls_left)


def pairs_of(observations: Observations, rules: Rules) -> Pairs:
    """Return the pairs that observations of games of two show, (N, 7)."""
    cards = decode_table(observations, rules)
    return np.concatenate([cards[:, 0, :3], cards[:, 1, :3], cards[:, :1, 3] - cards[:, 1:, 3]], axis=1)


def shown(rules: Rules, pairs: Pairs) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Return what a network sees of `pairs` (N, 7), as `pair_layout` has it, (N, D), and their priors, (N,)."""
    seen, priors = np.empty((len(pairs), pair_layout(rules).size), np.float32), np.empty(len(pairs))
    observe_pairs(tables_of(rules), judge_of(rules), pairs, seen, priors)
    return seen, priors


class PairValue(PairPlayer):
    """Judges pairs by a network.

    Args:
        policy: one of kind "pair_value"; it plays under the rules it was trained for.
        by_table: see PairPlayer.
    """

    def __init__(self, policy: Policy, *, by_table: bool = True) -> None:
        super().__init__(policy.provenance.rules, by_table=by_table)
        self._network = policy.network

    def correct(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return what the network adds to the logits, (N,)."""
        return self._network(seen)[:, 0]
