"""The two tables of players in the README: who is in them, reports as Markdown, and their places in a document.

`python evaluate.py --leaderboard` makes that of the solitaire game anew, `--ratings` that of matches; the reports that
they show are docs/leaderboard.json and docs/ratings.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kismet_env.bots import PLAYERS, READY

NEED_OPPONENTS = ("win_probability", "selfplay")
PLAYED = tuple(name for name in (*PLAYERS, *READY) if name not in NEED_OPPONENTS)
"""Names of the players in the table: all but those who play to win, and alone as optimal does."""
GAMES = 10_000
SEED = 0

GAMES_AT_TABLE = {2: 4_000, 3: 600, 4: 600}
"""Seats -> games at every table that can be made of those who are rated."""
_FOR_TWO = ("selfplay",)

_HEADINGS = ("player", "mean, 95 % interval", "without luck", "regret a game", "gap closed", "exact mean")


def table(report: dict[str, Any]) -> str:
    """Return a report of `evaluation.summarise` as a Markdown table, the best player last.

    The share of the gap closed is left out for players behind turn_greedy.
    """
    lines = [_row(_HEADINGS), "|---" * len(_HEADINGS) + "|"]
    for agent in sorted(report["agents"], key=lambda agent: agent["luck_adjusted_mean"]):
        lines.append(
            _row(
                (
                    agent["agent"],
                    f"{agent['mean']:.1f} ± {_reach(agent['ci95']):.1f}",
                    f"{agent['luck_adjusted_mean']:.2f} ± {_reach(agent['luck_adjusted_ci95']):.2f}",
                    f"{agent['regret_per_game']:.2f}",
                    f"{agent['gap_closed']:.1%}" if agent["gap_closed"] >= 0 else "",
                    "" if agent["exact_mean"] is None else f"{agent['exact_mean']:.3f}",
                )
            )
        )
    return "".join(line + "\n" for line in lines)


def rated(seats: int) -> tuple[str, ...]:
    """Return the names of those who get ratings at tables of so many: all who do not play there as another does."""
    return tuple(name for name in (*PLAYERS, *READY) if seats == 2 or name not in _FOR_TWO)


def ratings_table(reports: Sequence[dict[str, Any]]) -> str:
    """Return the ratings of reports of `contest.summarise_contests` as a Markdown table, the best player first.

    There is a column for each report, by its number of seats, and the order is that of the first one. Without interval
    is who has won nothing or everything; nothing stands where a player has not played.
    """
    columns = [{each["player"]: each for each in report["ratings"]["players"]} for report in reports]
    head = ("player", *(f"{report['seats']} seats" for report in reports))
    lines = [_row(head), "|---" * len(head) + "|"]
    for name in columns[0]:
        lines.append(_row((name, *(_rating(column[name]) if name in column else "" for column in columns))))
    return "".join(line + "\n" for line in lines)


def _rating(player: dict[str, Any]) -> str:
    rating, interval = player["rating"], player["ci95"]
    if interval is None or interval[0] == interval[1]:  # the anchor
        return f"{rating:.0f}"
    return f"{rating:.1f} ± {_reach(interval):.1f}"


def _row(cells: tuple[str, ...]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _reach(interval: tuple[float, float]) -> float:
    return (interval[1] - interval[0]) / 2


def table_in(document: str, mark: str = "leaderboard") -> str:
    """Return what stands in a document between its two marks, comments of HTML; ValueError without them."""
    begin, end = _marks(mark)
    _, begun, rest = document.partition(begin)
    found, ended, _ = rest.partition(end)
    if not (begun and ended):
        raise ValueError(f"the document has no place for it, between {begin.strip()} and {end.strip()}")
    return found


def with_table(document: str, new: str, mark: str = "leaderboard") -> str:
    """Return the document with what is `new` between its marks; ValueError where it has none."""
    begin, end = _marks(mark)
    return document.replace(f"{begin}{table_in(document, mark)}{end}", f"{begin}{new}{end}")


def _marks(mark: str) -> tuple[str, str]:
    return f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
