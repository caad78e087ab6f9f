"""What evaluate.py prints: reports as tables, each of which fits into 80 columns if names are short."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from kismet_env.render.sheet import name_of_rules
from kismet_env.rules import Rules


def show(report: dict[str, Any], rules: Rules) -> None:
    """Print the report on players of the solitaire game."""
    console = Console()
    title = f"{report['games']:,} game{'s' * (report['games'] > 1)} of seed {report['seed']}, {name_of_rules(rules)}"
    if report["optimum"]["mean"] is None:
        console.print(_scores(title, report["agents"], means=True))
    else:
        console.print(_truth(f"{title}, optimum {report['optimum']['mean']:.2f}", report["agents"]))
        console.print(_scores("Scores", report["agents"], means=False))
    if report["paired"]:
        console.print(_pairs(report["paired"]))


def _truth(title: str, agents: list[dict[str, Any]]) -> Table:
    """Return what the optimum says of the players."""
    knows_exactly = any(agent["exact_mean"] is not None for agent in agents)
    headings = ("player", "mean", "without luck", *["exact"] * knows_exactly, "regret", "gap closed", "of best")
    table = _table(title, headings, num_names=1)
    for agent in agents:
        exact_mean = ["-" if agent["exact_mean"] is None else f"{agent['exact_mean']:.2f}"] * knows_exactly
        table.add_row(
            agent["agent"],
            _with_reach(agent["mean"], agent["ci95"]),
            _with_reach(agent["luck_adjusted_mean"], agent["luck_adjusted_ci95"], digits=2),
            *exact_mean,
            f"{agent['regret_per_game']:.2f}",
            f"{agent['gap_closed']:.1%}",
            f"{agent['percent_of_optimum']:.2f}%",
        )
    return table


def _scores(title: str, agents: list[dict[str, Any]], *, means: bool) -> Table:
    """Return how the scores of the players are spread."""
    headings = ("player", *["mean"] * means, "SD", "5 %", "median", "95 %", "bonus", "zeros", "illegal")
    table = _table(title, headings, num_names=1)
    for agent in agents:
        quantiles = (f"{agent['quantiles'][percent]:.0f}" for percent in ("5", "50", "95"))
        table.add_row(
            agent["agent"],
            *[_with_reach(agent["mean"], agent["ci95"])] * means,
            "-" if agent["sd"] is None else f"{agent['sd']:.1f}",
            *quantiles,
            f"{1 - agent['bonus_rates']['0']:.1%}",
            f"{sum(box['zero_rate'] for box in agent['boxes'].values()):.2f}",
            f"{agent['illegal_actions']:,}",
        )
    return table


def _pairs(pairs: list[dict[str, Any]]) -> Table:
    """Return how many points the players are ahead of one another."""
    watched = pairs[0]["luck_adjusted_difference"] is not None
    headings = ("a", "b", "a - b", *["without luck"] * watched, "a higher", "equal")
    table = _table("Differences on the same dice", headings, num_names=2)
    for pair in pairs:
        luck_adjusted = pair["luck_adjusted_difference"], pair["luck_adjusted_ci95"]
        without_luck = [_with_reach(*luck_adjusted, digits=2)] if watched else []
        table.add_row(
            pair["a"],
            pair["b"],
            _with_reach(pair["difference"], pair["ci95"]),
            *without_luck,
            f"{pair['a_higher']:.1%}",
            f"{pair['equal']:.1%}",
        )
    return table


def show_contests(report: dict[str, Any], rules: Rules) -> None:
    """Print the report on contests and the ratings that come of them."""
    console = Console()
    games = f"{report['games']:,} games each, {report['deals']:,} deals of seed {report['seed']}"
    console.print(_contests(f"{games}, {name_of_rules(rules)}", report["matches"]))
    console.print(_seats(report["matches"]))
    if report["ratings"]:
        show_ratings(report["ratings"])


def show_ratings(ratings: dict[str, Any]) -> None:
    """Print ratings, and the win rate of every player against every other."""
    console = Console()
    console.print(_ratings(ratings))
    console.print(_cross(ratings))


def _contests(title: str, matches: list[dict[str, Any]]) -> Table:
    """Return what the contests say of their players."""
    watched = matches[0]["players"][0]["luck_adjusted_win_rate"] is not None
    truth = ("without luck", "points", "regret", "forced") if watched else ("points",)
    table = _table(title, ("player", "wins %", *truth, "2nd K", "ties"), num_names=1)
    for match in matches:
        for player in match["players"]:
            luck_adjusted = _percent(player["luck_adjusted_win_rate"], player["luck_adjusted_ci95"], digits=2)
            table.add_row(
                player["player"],
                _percent(player["win_rate"], player["ci95"]),
                *[luck_adjusted] * watched,
                f"{player['mean']:.1f}",
                *([f"{player['regret_per_game']:.2f}", f"{player['forced_zero_loss']:.2f}"] if watched else []),
                f"{player['second_kismets_per_game']:.3f}",
                f"{match['tie_rate']:.1%}" if player is match["players"][0] else "",
                end_section=player is match["players"][-1],
            )
    return table


def _seats(matches: list[dict[str, Any]]) -> Table:
    """Return how often the players win from each seat; of two, the second one has the rest."""
    count = len(matches[0]["players"])
    watched = matches[0]["players"][0]["luck_adjusted_win_rate"] is not None
    rate, interval = ("luck_adjusted_win_rate", "luck_adjusted_ci95") if watched else ("win_rate", "ci95")
    seats = (f"seat {seat}" for seat in range(count))
    title = f"Wins in % by seat{', without luck' * watched}; seat 0 plays first"
    table = _table(title, ("player", *["against"] * (count == 2), *seats), num_names=1 + (count == 2))
    for match in matches:
        players = match["players"]
        for player in players[:1] if count == 2 else players:
            table.add_row(
                player["player"],
                *[players[1]["player"]] * (count == 2),
                *(_percent(seat[rate], seat[interval]) for seat in player["by_seat"]),
                end_section=count > 2 and player is players[-1],
            )
    return table


def _ratings(ratings: dict[str, Any]) -> Table:
    """Return the ratings, the best player first."""
    table = _table(f"Ratings, {ratings['anchor']} = 0", ("", "player", "rating"), num_names=2)
    for place, player in enumerate(ratings["players"], 1):
        table.add_row(str(place), player["player"], _with_reach(player["rating"], player["ci95"]))
    return table


def _cross(ratings: dict[str, Any]) -> Table:
    """Return who wins how often against whom; players are the numbers of their places, for want of room."""
    names = [each["player"] for each in ratings["players"]]
    places = [str(place) for place in range(1, len(names) + 1)]
    table = _table("Wins in % of who stands at the left, by place, against", ("", *places), num_names=1)
    for place, name in zip(places, names, strict=True):
        cross = ratings["cross"][name]
        table.add_row(place, *(f"{100 * cross[other]:.1f}" if other in cross else "" for other in names))
    return table


def show_measures(report: dict[str, Any]) -> None:
    """Print the report on what players do in the value suite."""
    console, agents = Console(), report["agents"]
    title = f"{report['suite']['positions']:,} positions, standard rules: points lost by a decision"
    console.print(_choices(title, agents, report["blunder"]))
    if estimates := [agent for agent in agents if agent["values"]]:
        console.print(_estimates(estimates))


def _choices(title: str, agents: list[dict[str, Any]], blunder: float) -> Table:
    """Return what the players give away."""
    lefts = [f"{left} left" for left in agents[0]["regret_by_rolls_left"]]
    table = _table(title, ("player", "regret", *lefts, "keep", "box", "best", f"> {blunder:g}"), num_names=1)
    for agent in agents:
        by_kind = [agent[kind]["regret"] for kind in ("keep", "box")]
        table.add_row(
            agent["agent"],
            _with_reach(agent["regret"], agent["regret_ci95"], digits=3),
            *["-" if lost is None else f"{lost:.2f}" for lost in (*agent["regret_by_rolls_left"].values(), *by_kind)],
            f"{agent['best_share']:.1%}",
            f"{agent['blunder_share']:.1%}",
        )
    return table


def _estimates(agents: list[dict[str, Any]]) -> Table:
    """Return how far the action values of players are from the exact ones."""
    headings = ("player", "bias", "RMSE", "bias of the chosen", "RMSE of the chosen")
    table = _table("Action values minus those of the optimum", headings, num_names=1, caption=None)
    for agent in agents:
        errors = [agent["values"][over][kind] for over in ("legal", "chosen") for kind in ("bias", "rmse")]
        table.add_row(agent["agent"], *[f"{error:.3f}" for error in errors])
    return table


def _percent(rate: float | None, interval: tuple[float, float] | None, *, digits: int = 1) -> str:
    """Return a rate as a percentage."""
    if rate is None:
        return ""
    return _with_reach(100 * rate, interval and (100 * interval[0], 100 * interval[1]), digits=digits)


def _table(
    title: str, headings: tuple[str, ...], *, num_names: int, caption: str | None = "±: 95 % intervals"
) -> Table:
    """Return an empty table; names come first and may be folded, numbers never are."""
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, heading in enumerate(headings):
        if index < num_names:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _with_reach(mean: float, interval: tuple[float, float] | None, *, digits: int = 1) -> str:
    reach = "" if interval is None else f" ± {(interval[1] - interval[0]) / 2:.{digits}f}"
    return f"{mean:.{digits}f}{reach}"
