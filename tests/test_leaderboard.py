"""The README's table of players is that of the stored report, and everybody is in it."""

import json
from pathlib import Path

import pytest
from rough import rough_judges

import evaluate
from evaluate import Config, main
from kismet_env import leaderboard
from kismet_env.bots import PLAYERS, READY
from kismet_env.command_line import DONE, WRONG_INPUT, run
from kismet_env.leaderboard import ratings_table, table, table_in, with_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
STORED = json.loads((ROOT / "docs" / "leaderboard.json").read_text())
RATINGS = json.loads((ROOT / "docs" / "ratings.json").read_text())["tables"]


def test_the_readme_shows_the_stored_reports() -> None:
    assert table_in(README) == table(STORED), "run python evaluate.py --leaderboard"
    assert table_in(README, "ratings") == ratings_table(RATINGS), "run python evaluate.py --ratings"


def test_every_player_with_a_plain_name_is_in_it() -> None:
    assert [agent["agent"] for agent in STORED["agents"]] == list(leaderboard.PLAYED)
    assert {*PLAYERS, *READY} - set(leaderboard.PLAYED) == set(leaderboard.NEED_OPPONENTS)
    assert (STORED["games"], STORED["seed"]) == (leaderboard.GAMES, leaderboard.SEED)


def test_everybody_is_rated_at_the_tables_that_are_known() -> None:
    assert {report["seats"]: report["games"] for report in RATINGS} == leaderboard.GAMES_AT_TABLE
    for report in RATINGS:
        rated = {each["player"] for each in report["ratings"]["players"]}
        assert rated == {*PLAYERS, *READY} - ({"selfplay"} if report["seats"] > 2 else set())
        assert report["ratings"]["anchor"] == "optimal"


def test_rows_are_those_of_the_report_the_best_one_last() -> None:
    one = {
        "agent": "b", "mean": 300.04, "ci95": [299.0, 301.08], "luck_adjusted_mean": 310.128,
        "luck_adjusted_ci95": [310.0, 310.256], "regret_per_game": 5.0, "gap_closed": 0.5, "exact_mean": 310.1234,
    }  # fmt: skip
    other = one | {"agent": "a", "luck_adjusted_mean": 200.0, "gap_closed": -0.1, "exact_mean": None}
    assert table({"agents": [one, other]}).splitlines()[2:] == [
        "| a | 300.0 ± 1.0 | 200.00 ± 0.13 | 5.00 | | |",
        "| b | 300.0 ± 1.0 | 310.13 ± 0.13 | 5.00 | 50.0% | 310.123 |",
    ]


def test_ratings_stand_in_the_order_of_the_first_table() -> None:
    b, a, c = (
        {"player": "b", "rating": 8.44, "ci95": [7.74, 9.14]},
        {"player": "a", "rating": 0.0, "ci95": [0.0, 0.0]},
        {"player": "c", "rating": -1626.2, "ci95": None},
    )
    reports = [{"seats": 2, "ratings": {"players": [b, a, c]}}, {"seats": 3, "ratings": {"players": [a, c]}}]
    assert ratings_table(reports).splitlines() == [
        "| player | 2 seats | 3 seats |",
        "|---|---|---|",
        "| b | 8.4 ± 0.7 | |",
        "| a | 0 | 0 |",
        "| c | -1626 | -1626 |",
    ]


def test_ratings_are_played_shown_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme, stored = tmp_path / "README.md", tmp_path / "ratings.json"
    monkeypatch.setattr(evaluate, "_README", readme)
    monkeypatch.setattr(evaluate, "_RATINGS", stored)
    monkeypatch.setattr(leaderboard, "PLAYERS", ("greedy", "turn_greedy", "optimal"))
    monkeypatch.setattr(leaderboard, "READY", ("selfplay",))
    monkeypatch.setattr(leaderboard, "GAMES_AT_TABLE", {2: 4, 3: 3})
    readme.write_text("before\n<!-- ratings -->\nold\n<!-- end of ratings -->\nafter\n")
    with rough_judges(monkeypatch):
        assert run(main, Config, ["--ratings"]) == DONE
    report = json.loads(stored.read_text())
    two, three = report["tables"]
    assert (two["games"], three["games"], len(report["date"])) == (4, 3, 10)
    assert {each["player"] for each in two["ratings"]["players"]} == {"greedy", "turn_greedy", "optimal", "selfplay"}
    assert {each["player"] for each in three["ratings"]["players"]} == {"greedy", "turn_greedy", "optimal"}
    assert table_in(readme.read_text(), "ratings") == ratings_table(report["tables"])
    *shown, written = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in shown)
    assert written == f"report: {stored}"


def test_a_new_table_takes_the_place_of_the_old_one() -> None:
    document = "before\n<!-- leaderboard -->\nold\n<!-- end of leaderboard -->\nafter\n"
    assert with_table(document, "new\n") == document.replace("old", "new")
    with pytest.raises(ValueError, match="no place"):
        with_table("nothing", "new\n")


@pytest.mark.parametrize("option", ["--leaderboard", "--ratings"])
@pytest.mark.parametrize(
    "argv", [["greedy"], ["--games", "10"], ["--rules", "strict"], ["--no-optimum"], ["--value-suite"]]
)
def test_they_take_no_players_and_games_but_their_own(
    option: str, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(main, Config, [option, *argv]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert f"{option} has players and games of its own" in err
    assert err.count("\n") == 1
