"""Kismet against built-in players, for one learner: a `Match`, translated like the solitaire game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from kismet_env.batch import Step, whole_number
from kismet_env.env import KismetEnv
from kismet_env.match import Match, News, Opponents
from kismet_env.observation import layout_of
from kismet_env.rules import Rules
from kismet_env.vector_env import KismetVectorEnv, autoreset_name, with_presence


class KismetVersusEnv(KismetEnv):
    """Kismet for a learner in one seat and built-in players, or players of one's own, in the others.

    ## Description
    As in `KismetEnv`, with up to five opponents. A second Kismet puts a zero into the first open box of everybody else
    and costs them a turn (RULES.md 6), so cards may change by more than one box between two turns of one's own.

    ## Action Space
    That of `KismetEnv`. There is no action while others play.

    ## Observation Space
    That of `KismetEnv` with a second block: own total and, for each opponent in playing order, open boxes, Basic
    total, second-Kismet state and total; in the "dict" form `opponents`, (17 (P - 1),). Opponents always see
    "features" and "keeps". For two players, "features":

    {layout}

    ## Starting State
    As in `KismetEnv`. Who sits before the learner has played when `reset` returns. `options={"position": p}` takes the
    cards of all players by seat; opponents play on from there until it is the learner's turn.

    ## Rewards
    `reward="win"`: at the end k winners of P players get (P - k) / (k (P - 1)) each, losers -1 / (P - 1): 1 and -1
    with two, 0 for a tie. `"points"`: the points of one's own card, among them a bonus that an opponent's second Kismet
    completes by a forced zero; it comes with the next step. `"final"`: the sum of these, at the end.

    An illegal action brings -1. It ends the game by default under `"win"` (`illegal_action="terminate"`; nobody else is
    paid or pays), and otherwise changes nothing (`"penalty"`, the 100th truncates the episode); `"raise"` is a
    ValueError.

    ## Episode End
    Terminated when all cards are full. After the learner's last decision the opponents play to the end within the
    step. (A game that is over before the learner has a decision, because a position or `start` left it no box or
    zeros filled them, ends with its first step, whatever the action.)

    ## Information
    As in `KismetEnv`, and of what has happened since the decision before: `forced_zeros` bool (15,), `turns_lost` int;
    `seat` int; `opponent_totals` int16 (P - 1,) in playing order.

    ## Arguments
    `opponents`: names for `kismet_env.bots.make` or players with `act(observations, masks, u)` made for the same rules,
    the first sits on the learner's left; a model file needs your trust, so give the player itself,
    `make("sb3:FILE.zip", rules, trust=True)`; `seat`: 0..P-1 (seat 0 plays first) or "random", drawn anew for every
    game. The others as in `KismetEnv`. `set_opponents` replaces the players while games go on.

    ## Randomness
    As in `KismetEnv`; seat and lots of stochastic opponents come from the same key.

    ## Version History
    v0: initial version.
    """

    batch: Match

    def __init__(
        self,
        opponents: Opponents = ("turn_greedy",),
        seat: int | str = 0,
        reward: str = "win",
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        illegal_action: str | None = None,
        start: str = "full",
        render_mode: str | None = None,
    ) -> None:
        match = Match(
            1,
            opponents,
            seat=seat,
            rules=rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
        )
        self._set_up(match, render_mode)

    def set_opponents(self, opponents: Opponents) -> None:
        """Let as many other players take the opponents' seats from now on, also in the game that is going on."""
        self.batch.set_opponents(opponents)

    def _names(self) -> list[str]:
        """Return "learner" and the opponents' names, by seat."""
        others = [one if isinstance(one, str) else type(one).__name__ for one in self.batch.opponents]
        first = len(others) + 1 - int(self.batch.learners["seat"][0])
        in_playing_order = ["learner", *others]
        return in_playing_order[first:] + in_playing_order[:first]

    def _info(self, out: Step) -> dict[str, Any]:
        news = self.batch.news()
        return super()._info(out) | {
            "seat": int(news.seat[0]),
            "forced_zeros": news.forced_zeros[0],
            "turns_lost": int(news.turns_lost[0]),
            "opponent_totals": news.opponent_totals[0],
        }


KismetVersusEnv.__doc__ = (KismetVersusEnv.__doc__ or "").replace(
    "{layout}", layout_of(Rules(), 2).table().replace("\n", "\n    ")
)


class KismetVersusVectorEnv(KismetVectorEnv):
    """N games of a learner against the same opponents; row i equals `KismetVersusEnv` with the same seed, exactly.

    Arguments are those of `KismetVersusEnv` besides `num_envs` and `autoreset_mode`, which are those of
    `KismetVectorEnv`. Each opponent answers for all rows in which it is his turn in one call. Infos hold, as arrays
    with an entry for each row, what those of `KismetVersusEnv` hold.
    """

    batch: Match

    def __init__(
        self,
        num_envs: int = 1,
        opponents: Opponents = ("turn_greedy",),
        seat: int | str = 0,
        reward: str = "win",
        rules: Rules | Mapping[str, Any] | str | None = None,
        actions: str = "keeps",
        observation: str = "features",
        illegal_action: str | None = None,
        start: str = "full",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        match = Match(
            whole_number("num_envs", num_envs, 1),
            opponents,
            seat=seat,
            rules=rules,
            actions=actions,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            start=start,
            autoreset=autoreset_name(autoreset_mode),
        )
        self._set_up(match, autoreset_mode, render_mode)

    def set_opponents(self, opponents: Opponents) -> None:
        """Let as many other players take the opponents' seats from now on, also in games that are going on."""
        self.batch.set_opponents(opponents)

    def _infos(self, out: Step) -> dict[str, Any]:
        return super()._infos(out) | _with_news(np.ones(self.num_envs, np.bool_), self.batch.news())

    def _final(self, out: Step, ended: npt.NDArray[np.bool_]) -> dict[str, Any]:
        final = super()._final(out, ended)
        final["final_info"] |= _with_news(ended.copy(), self.batch.final_news)
        return final


def _with_news(present: npt.NDArray[np.bool_], news: News) -> dict[str, Any]:
    return with_presence(present, **{name: (array.T * present).T for name, array in news._asdict().items()})
