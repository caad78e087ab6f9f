"""Ratings: strengths that are known come back, with intervals, the anchor at 0."""

from itertools import combinations

import numpy as np
import pytest

from kismet_env.contest import Contest
from kismet_env.ratings import rate

STRENGTHS = {"weak": 1.0, "optimal": 4.0, "strong": 6.0}


def contest_of(strengths: list[float], deals: int, rng: np.random.Generator) -> Contest:
    """Games in which everybody wins with the chance that his strength has among those at the table."""
    count = len(strengths)
    winners = rng.choice(count, size=(deals, count), p=np.array(strengths) / sum(strengths))
    zeros = np.zeros((deals, count, count), np.int64)
    return Contest(np.eye(count)[winners], zeros, zeros, luck=None, regret=None, forced=None, errors=None, seconds=0.0)


@pytest.mark.parametrize("seats", [2, 3])
def test_known_strengths_come_back(seats: int) -> None:
    rng = np.random.default_rng(0)
    tables = {
        names: contest_of([STRENGTHS[name] for name in names], 4_000, rng) for names in combinations(STRENGTHS, seats)
    }
    ratings = rate(tables)
    assert ratings is not None
    assert ratings["anchor"] == "optimal"
    assert [each["player"] for each in ratings["players"]] == ["strong", "optimal", "weak"]
    for each in ratings["players"]:
        expected = 400 * np.log10(STRENGTHS[each["player"]] / STRENGTHS["optimal"])
        low, high = each["ci95"]
        assert low - 5 <= expected <= high + 5
        assert high - low < 40
    assert ratings["cross"]["strong"]["weak"] == pytest.approx(6 / 7, abs=0.02)
    assert ratings["cross"]["strong"]["weak"] + ratings["cross"]["weak"]["strong"] == pytest.approx(1.0)


def test_who_always_loses_has_a_rating_too() -> None:
    shares = np.zeros((50, 2, 2))
    shares[:, :, 0] = 1.0
    zeros = np.zeros((50, 2, 2), np.int64)
    ratings = rate(
        {("a", "b"): Contest(shares, zeros, zeros, luck=None, regret=None, forced=None, errors=None, seconds=0.0)}
    )
    assert ratings is not None
    a, b = ratings["players"]
    assert (a["player"], a["rating"], b["player"]) == ("a", 0.0, "b")
    assert -1500 < b["rating"] < -300
    assert a["ci95"] is None
    assert b["ci95"] is None


def test_a_single_name_has_no_rating() -> None:
    zeros = np.zeros((5, 2, 2), np.int64)
    assert rate({("a", "a"): Contest(zeros + 0.5, zeros, zeros)}) is None
