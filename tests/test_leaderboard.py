"""The README's table of players is that of the stored report, and everybody is in it."""

import json
from pathlib import Path

import pytest

from evaluate import Config, main
from kismet_env import leaderboard
from kismet_env.bots import PLAYERS, READY
from kismet_env.command_line import WRONG_INPUT, run
from kismet_env.leaderboard import table, table_in, with_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
STORED = json.loads((ROOT / "docs" / "leaderboard.json").read_text())


def test_the_readme_shows_the_stored_report() -> None:
    assert table_in(README) == table(STORED), "run python evaluate.py --leaderboard"


def test_every_player_with_a_plain_name_is_in_it() -> None:
    assert [agent["agent"] for agent in STORED["agents"]] == list(leaderboard.PLAYED)
    assert {*PLAYERS, *READY} - set(leaderboard.PLAYED) == set(leaderboard.NEED_OPPONENTS)
    assert (STORED["games"], STORED["seed"]) == (leaderboard.GAMES, leaderboard.SEED)


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


def test_a_new_table_takes_the_place_of_the_old_one() -> None:
    document = "before\n<!-- leaderboard -->\nold\n<!-- end of leaderboard -->\nafter\n"
    assert with_table(document, "new\n") == document.replace("old", "new")
    with pytest.raises(ValueError, match="no place"):
        with_table("nothing", "new\n")


@pytest.mark.parametrize("argv", [["greedy"], ["--games", "10"], ["--rules", "strict"], ["--no-optimum"]])
def test_it_takes_no_players_and_games_but_its_own(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, Config, ["--leaderboard", *argv]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert "--leaderboard has players and games of its own" in err
    assert err.count("\n") == 1
