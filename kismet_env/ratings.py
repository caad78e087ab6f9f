"""Ratings of players from their contests: the model of Bradley and Terry, on the scale of Elo.

A player of strength w wins against one of strength v with chance w / (w + v); of several at a table each has the
chance that his strength has among theirs. Ratings are 400 log10 of strength, so that 400 points are odds of ten to
one. Strengths are those under which the win rates of all tables are most likely (`choix`, Maystre and Grossglauser
2015), with half a win of everybody against everybody else on top: whoever has never won has a rating too, but it is
that of the half win and has no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.contest import Contest
from kismet_env.evaluation import CONFIDENCE

ANCHOR = "optimal"
"""The player whose rating is 0; the first one where it does not play."""
_WINS_ON_TOP = 0.5
_POINTS = 400 / np.log(10)  # of a rating for a factor e of strength
_RESAMPLES, _RESAMPLES_AT_ONCE = 1_000, 50


def rate(contests: Mapping[tuple[str, ...], Contest]) -> dict[str, Any] | None:
    """Return the ratings of all players in `contests` on the same deals, by the names of their players; for JSON.

    They rest on win rates without luck where these are known and less spread than the plain ones. Intervals (95 %) are
    those of a bootstrap over deals, the same ones for all tables at a time, since they share their dice; None for one
    deal, and for who has won nothing or everything. The cross table has the win rate of every player against every
    other: of the games that one of the two has won. Returns None for a single name.
    """
    names = list(dict.fromkeys(name for table in contests for name in table))
    if len(names) < 2:
        return None
    tables = [[names.index(name) for name in table] for table in contests]
    rates = [_rates(contest) for contest in contests.values()]  # (D, P) each
    deals, games = len(rates[0]), len(rates[0]) * rates[0].shape[1]
    anchor = names.index(ANCHOR) if ANCHOR in names else 0
    wins = _wins(tables, [deal.mean(0) for deal in rates], games, len(names))
    strengths = _strengths(wins)
    intervals: list[tuple[float, float] | None] = [None] * len(names)
    if deals > 1:
        resampled = np.array(
            [
                _strengths(_wins(tables, means, games, len(names)), strengths)
                for means in _resampled_means(rates, np.random.default_rng(0))
            ]
        )
        ends = np.quantile(_ratings(resampled, anchor), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
        has_both = (wins.sum(1) > 0) & (wins.sum(0) > 0)
        intervals = [
            (float(low), float(high)) if both else None for low, high, both in zip(*ends, has_both, strict=True)
        ]
    ratings = _ratings(strengths, anchor)
    either = wins + wins.T
    cross = np.divide(wins, either, out=np.full_like(wins, np.nan), where=either > 0)
    return {
        "anchor": names[anchor],
        "players": [
            {"player": names[index], "rating": float(ratings[index]), "ci95": intervals[index]}
            for index in np.argsort(-ratings, kind="stable")
        ],
        "cross": {
            names[a]: {names[b]: float(cross[a, b]) for b in range(len(names)) if either[a, b] > 0}
            for a in range(len(names))
        },
    }


def _rates(contest: Contest) -> npt.NDArray[np.float64]:
    """Return what each player has of the wins of each deal, (D, P): without luck, where that is less spread."""
    rates = [shares.mean(1) for shares in (contest.shares, contest.adjusted) if shares is not None]
    return min(rates, key=lambda each: float(each.var(0).sum()))


def _wins(
    tables: list[list[int]], means: Sequence[npt.NDArray[np.float64]], games: int, count: int
) -> npt.NDArray[np.float64]:
    """Return how many games [a, b] player a has won where b played too, (N, N); players are numbers at `tables`."""
    wins = np.zeros((count, count))
    for players, rates in zip(tables, means, strict=True):
        for a, rate_of_a in zip(players, rates, strict=True):
            for b in players:
                if a != b:
                    wins[a, b] += games * max(float(rate_of_a), 0.0)  # one without luck may fall below
    return wins


def _strengths(wins: npt.NDArray[np.float64], start: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
    """Return the logarithms of the strengths under which `wins` (N, N) are most likely, (N,)."""
    import choix  # loads scipy

    return np.asarray(choix.ilsr_pairwise_dense(wins, alpha=_WINS_ON_TOP, initial_params=start, max_iter=10_000))


def _ratings(strengths: npt.NDArray[np.float64], anchor: int) -> npt.NDArray[np.float64]:
    ratings: npt.NDArray[np.float64] = _POINTS * (strengths - strengths[..., anchor, None])
    return ratings


def _resampled_means(rates: list[npt.NDArray[np.float64]], chance: np.random.Generator) -> Any:
    """Yield the mean rates at each table, (P,) each, over as many deals drawn with replacement, again and again."""
    deals, columns = len(rates[0]), np.concatenate(rates, axis=1)
    bounds = np.cumsum([rate.shape[1] for rate in rates])[:-1]
    for first in range(0, _RESAMPLES, _RESAMPLES_AT_ONCE):
        some = min(_RESAMPLES_AT_ONCE, _RESAMPLES - first)
        drawn = chance.multinomial(deals, np.full(deals, 1 / deals), size=some)
        for means in drawn @ columns / deals:
            yield np.split(means, bounds)
