"""evaluate.py: wrong calls end in one line, right ones in a table, a report and plots that are whole."""

import contextlib
import io
import json
import signal
import subprocess
import sys
import zipfile
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rough import rough_judges

import evaluate
from evaluate import Config, main
from kismet_env import command_line
from kismet_env.bots import make
from kismet_env.command_line import DONE, INTERRUPTED, LOST, WRONG_INPUT, parse, run, write_whole
from kismet_env.evaluation import Regrets, play, summarise
from kismet_env.observation import layout_of
from kismet_env.policy_file import Network, Policy, save_policy
from kismet_env.provenance import Provenance
from kismet_env.rules import SUITE, Rules
from kismet_env.solver import Optimum, Sds, solve
from kismet_env.value_suite import FINGERPRINT

ROOT = Path(__file__).parent.parent


class Known:
    """Stands in for the exact value of a player, which takes a minute to work out."""

    expected_score = 245.25
    score_sd = 55.5

    def distribution(self, report: Any) -> Any:
        return np.array([0.25, 0.5, 0.25])


@pytest.fixture(autouse=True)
def _truth_is_known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a minute to work out is at hand; test_exact.py and test_optimum.py do it."""
    if "slow" not in request.keywords:
        sds = Sds(56.142, 1.0, np.zeros(0, np.uint16))
        monkeypatch.setattr(Optimum, "prepare_sds", lambda self, progress=False: sds)
        monkeypatch.setattr(evaluate, "exact", lambda player, rules, report, *, folder: Known())


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["evaluate.py"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a text file, a zip file that is no model, and a folder."""
    (tmp_path / "text.zip").write_text("not a zip file")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("letter.txt", "no model")
    with zipfile.ZipFile(tmp_path / "broken.zip", "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", "no weights")
    (tmp_path / "folder").mkdir()
    return tmp_path


WRONG_CALLS = [
    # what is asked for, and what the one line must name
    ([], ["no player", "greedy"]),
    (["nobody"], ["'nobody'", "random", "greedy", "turn_greedy"]),
    (["greedy", "Greedy"], ["'Greedy'", "greedy"]),
    (["greedy", "greedy"], ["'greedy'", "twice"]),
    ([""], ["''", "random"]),
    (["greedy:"], ["'greedy:'", "random"]),
    (["turn_greedy:sample"], ["'turn_greedy:sample'", "random"]),
    (["epsilon"], ["'epsilon'", "epsilon:NUMBER"]),
    (["epsilon:lots"], ["'epsilon:lots'", "number"]),
    (["epsilon:2"], ["epsilon:2", "0 to 1"]),
    (["epsilon:nan"], ["epsilon:nan", "0 to 1"]),
    (["boltzmann:0"], ["boltzmann:0", "positive"]),
    (["boltzmann:-inf"], ["boltzmann:-inf", "positive"]),
    (["policy:"], ["'policy:'", "policy:FILE"]),
    (["policy:nothing"], ["'nothing'", "no file", ".safetensors"]),
    (["policy:nothing:sample"], ["'nothing'", "no file"]),
    (["policy:folder"], ["'folder'", "no file"]),
    (["policy:text.zip"], ["'text.zip'", "no .safetensors file"]),
    (["sb3:"], ["'sb3:'", "sb3:FILE.zip"]),
    (["sb3:other.zip"], ["other.zip", "--trust"]),
    (["sb3:nothing.zip", "--trust"], ["nothing.zip", "no file"]),
    (["sb3:nothing.zip:sample", "--trust"], ["'nothing.zip'", "no file"]),
    (["sb3:folder", "--trust"], ["folder", "no file"]),
    (["sb3:text.zip", "--trust"], ["text.zip", "not a zip file"]),
    (["sb3:other.zip", "--trust"], ["other.zip", "MaskablePPO"]),
    (["greedy", "--games", "0"], ["--games 0", "at least 1"]),
    (["greedy", "--games", "-5"], ["--games -5", "at least 1"]),
    (["greedy", "--games", "many"], ["--games", "many", "INT"]),
    (["greedy", "--games", "1.5"], ["--games", "1.5", "INT"]),
    (["greedy", "--games", "nan"], ["--games", "nan", "INT"]),
    (["greedy", "--games"], ["--games", "value"]),
    (["greedy", "--seed", "-1"], ["seed -1", "0 up"]),
    (["greedy", "--seed", "today"], ["--seed", "today", "INT"]),
    (["greedy", "--processes", "0"], ["--processes 0", "at least 1"]),
    (["greedy", "--gmaes", "10"], ["--gmaes", "--games"]),
    (["greedy", "--rules"], ["rules", "strict"]),
    (["greedy", "--rules", "lax"], ["'lax'", "strict"]),
    (["greedy", "--rules.joker", "sometimes"], ["joker", "'sometimes'", "full, natural, always"]),
    (["greedy", "--rules.jokers", "full"], ["--rules.jokers", "--rules.joker"]),
    (["greedy", "--rules.zeros", ""], ["zeros", "after_third_roll"]),
    (["greedy", "--rules.flush_score", "0"], ["flush_score", "1 to 500"]),
    (["greedy", "--rules.flush_score", "x"], ["flush", "'x'", "INT"]),
    (["greedy", "--rules.bonus_tiers", "63"], ["bonus-tiers", "63"]),
    (["greedy", "--rules.bonus_tiers", "63", "35", "60", "70"], ["bonus_tiers", "60", "ascending"]),
    (["greedy", "--rules", "strict", "--rules.joker", "no"], ["joker", "'no'", "natural"]),
    (["greedy", "--exact", "--no-optimum"], ["--exact", "leave out --no-optimum"]),
    (["greedy", "--distribution", "--no-optimum"], ["--distribution", "leave out --no-optimum"]),
    (["--versus", "greedy"], ["1 player", "2 seats"]),
    (["--versus", "greedy", "random", "--seats", "3"], ["2 player", "3 seats"]),
    (["--versus", "greedy", "random", "--seats", "7"], ["--seats 7", "2 to 6"]),
    (["--versus", "greedy", "nobody"], ["'nobody'", "win_probability"]),
    (["optimal", "--versus", "greedy", "random"], ["'optimal'", "behind"]),
    (["--versus", "greedy", "random", "--exact"], ["--exact", "--versus"]),
    (["--versus", "greedy", "random", "--exact-networks", "answers"], ["--exact-networks", "--versus"]),
    (["greedy", "--exact-networks", "text.zip"], ["text.zip", "give a folder"]),
    (["greedy", "--value-suite", "--exact-networks", "answers"], ["--exact-networks", "leave one"]),
    (["--versus", "greedy", "random", "--games", "0"], ["--games 0", "at least 1"]),
    (["--versus", "greedy", "greedy"], ["--plots", "'greedy' is alone"]),
    (["greedy", "random", "--seats", "3"], ["--seats 3", "--versus"]),
    (["greedy", "--value-suite", "--rules", "strict"], ["--value-suite", "standard rules", "leave out --rules"]),
    (["greedy", "--value-suite", "--exact"], ["--exact", "--value-suite", "leave one"]),
    (["greedy", "--value-suite", "--no-optimum"], ["--value-suite", "leave out --no-optimum"]),
    (["greedy", "--value-suite", "--games", "20"], ["--games", "--value-suite", "leave one"]),
    (["greedy", "--value-suite", "--seed", "1"], ["--seed", "--value-suite", "leave one"]),
    (["greedy", "--value-suite", "--processes", "2"], ["--processes", "--value-suite", "leave one"]),
    (["greedy", "--exact-networks", "answers"], ["--exact-networks", "nobody here is one", "--exact will do"]),
    (["greedy", "--json", "folder"], ["folder", "name of a file"]),
    (["greedy", "--json", "text.zip/report.json"], ["text.zip", "another place"]),
    (["greedy", "--json", "/dev/null/report.json"], ["/dev/null", "another place"]),
    (["greedy", "--json"], ["--json", "value"]),
    (["greedy", "--plots", "text.zip"], ["text.zip", "give a folder"]),
    (["greedy", "--plots", "text.zip/plots"], ["text.zip", "another place"]),
]


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(("argv", "named"), WRONG_CALLS, ids=[" ".join(argv) or "nothing" for argv, _ in WRONG_CALLS])
def test_a_wrong_call_ends_in_one_line_and_writes_nothing(
    argv: list[str], named: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--json" not in argv:
        argv = [*argv, "--json", "report.json", "--plots", "plots"] if "--plots" not in argv else argv
    before = contents(folder)
    assert run(main, Config, argv) == WRONG_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("evaluate.py: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    for name in named:
        assert name in err
    assert contents(folder) == before


def test_every_total_is_not_worked_out_where_it_would_go_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, Config, ["greedy", "--distribution"]) == WRONG_INPUT
    assert capsys.readouterr().err.endswith(
        "--distribution goes into the report and a plot; add --json FILE or --plots DIR\n"
    )


def test_where_there_is_only_ascii_a_wrong_option_is_told_as_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    monkeypatch.setattr(sys, "stderr", told)
    assert run(main, Config, ["greedy", "--seats", "x"]) == WRONG_INPUT
    assert told.getvalue().startswith("evaluate.py: --seats: ")
    assert "---" not in told.getvalue()
    assert "For full helptext" not in told.getvalue()


def test_a_model_that_cannot_be_loaded_is_refused_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sb3_contrib")
    assert run(main, Config, ["sb3:broken.zip", "--trust"]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert "'broken.zip'" in err
    assert err.count("\n") == 1


def test_a_right_call_prints_a_table_and_writes_report_and_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["greedy", "random", "--games", "40", "--seed", "3", "--json", "new/report.json", "--plots", "new/plots"]
    assert run(main, Config, argv) == DONE
    out, err = capsys.readouterr()
    assert err == "", "a progress bar is for terminals"
    for word in ("greedy", "random", "40 games of seed 3", "standard rules", "315.10", "new/report.json", "new/plots"):
        assert word in out
    assert all(len(line) <= 80 for line in out.splitlines())
    watcher = partial(Regrets, solve())
    players = {name: play(make(name), 40, seed=3, watcher=watcher) for name in ("greedy", "random")}
    assert_report_is(tmp_path / "new/report.json", summarise(players, seed=3))
    files = sorted(path.name for path in (tmp_path / "new").rglob("*") if path.is_file())
    plots = [f"{plot}.{kind}" for plot in ("boxes", "regret", "scores") for kind in ("pdf", "png")]
    assert files == sorted([*plots, "report.json"])


def assert_report_is(path: Path, expected: dict[str, Any]) -> None:
    report = json.loads(path.read_text())
    for agent in (*report["agents"], *expected["agents"]):
        agent["seconds"] = None
    assert report == json.loads(json.dumps(expected))


def test_a_quick_look_knows_no_optimum_and_solves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluate, "solve", lambda rules, progress: pytest.fail("solves"))
    argv = ["greedy", "random", "--no-optimum", "--games", "40", "--seed", "3", "--json", "new/report.json"]
    assert run(main, Config, [*argv, "--plots", "new", "--rules", "no_bonus"]) == DONE
    assert "regret" not in capsys.readouterr().out
    rules = SUITE["no_bonus"]
    players = {name: play(make(name, rules), 40, seed=3, rules=rules) for name in ("greedy", "random")}
    assert_report_is(tmp_path / "new/report.json", summarise(players, seed=3, rules=rules))
    written = ["boxes.pdf", "boxes.png", "report.json", "scores.pdf", "scores.png"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == written


@pytest.mark.parametrize("seats", [2, 3])
def test_contests_print_tables_of_80_columns_and_write_report_and_map(
    seats: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["turn_greedy", "optimal", "win_probability"]
    argv = ["--versus", *names, "--seats", str(seats), "--games", "31", "--json", "report.json", "--plots", "plots"]
    with rough_judges(monkeypatch):
        assert run(main, Config, argv) == DONE
    out, err = capsys.readouterr()
    assert err == ""
    games = {2: 32, 3: 33}[seats]
    for word in (*names, f"{games} games each", "standard rules", "without luck", f"seat {seats - 1}", "optimal = 0"):
        assert word in out
    assert all(len(line) <= 80 for line in out.splitlines())
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["games"] == games
    assert len(report["matches"]) == {2: 3, 3: 1}[seats]
    assert [each["rating"] for each in report["ratings"]["players"] if each["player"] == "optimal"] == [0.0]
    if seats == 2:
        first = report["matches"][0]
        assert (first["a"], first["b"], first["pairs"]) == ("turn_greedy", "optimal", 16)
        assert first["ci95"][0] <= first["a_win_rate"] <= first["ci95"][1]
        assert first["luck_adjusted_ci95"][0] < first["luck_adjusted_a_win_rate"] < first["luck_adjusted_ci95"][1]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["wins.pdf", "wins.png"]


def test_who_is_named_twice_meets_himself_once_and_everybody_else_once(tmp_path: Path) -> None:
    argv = ["--versus", "greedy", "random", "greedy", "--no-optimum", "--games", "4", "--json", "report.json"]
    assert run(main, Config, argv) == DONE
    matches = json.loads((tmp_path / "report.json").read_text())["matches"]
    assert [(match["a"], match["b"]) for match in matches] == [("greedy", "greedy"), ("greedy", "random")]


@pytest.mark.parametrize(("name", "times"), [("selfplay", 1), ("win_probability", 1), ("optimal", 0)])
def test_what_players_to_win_need_is_prepared_before_they_play(
    name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[Rules] = []
    monkeypatch.setattr(evaluate, "prepare_matches", prepared.append)
    with rough_judges(monkeypatch):
        assert run(main, Config, ["--versus", "greedy", name, "--no-optimum", "--games", "2"]) == DONE
    assert prepared == [Rules()] * times


@pytest.mark.parametrize("option", ["--exact", "--distribution"])
def test_what_is_known_exactly_is_worked_out_where_it_is_asked_for(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["turn_greedy", "--games", "20", option, "--json", "report.json", "--plots", "plots"]
    assert run(main, Config, argv) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert any("turn_greedy" in line and "245.25" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
    (agent,) = json.loads((tmp_path / "report.json").read_text())["agents"]
    assert (agent["exact_mean"], agent["exact_sd"]) == (245.25, 55.5)
    every_total = option == "--distribution"
    assert agent["exact_distribution"] == ([0.25, 0.5, 0.25] if every_total else None)
    assert agent["exact_quantiles"] == ({"5": 0, "25": 0, "50": 1, "75": 1, "95": 2} if every_total else None)
    assert (tmp_path / "plots/distribution.png").exists() == every_total


def test_the_value_suite_is_measured_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, Config, ["--value-suite", "random", "optimal", "--json", "report.json"]) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert any("10,000 positions" in line for line in lines)
    assert any("optimal" in line and "100.0%" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["suite"] == {"positions": 10_000, "sha256": FINGERPRINT}
    by_chance, perfect = report["agents"]
    assert (perfect["agent"], perfect["best_share"]) == ("optimal", 1)
    assert perfect["regret"] == pytest.approx(0, abs=1e-9)
    assert by_chance["regret"] > 5
    assert (by_chance["values"] is None, perfect["values"]["legal"]["rmse"]) == (True, 0)


def test_a_player_without_an_exact_value_is_refused_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Silent:
        def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
            return masks.argmax(1)

    monkeypatch.setattr(evaluate, "make", lambda name, rules, trust: Silent())
    monkeypatch.setattr(evaluate, "play", lambda *arguments, **options: pytest.fail("plays"))
    assert run(main, Config, ["silent", "--exact"]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert "'silent' does not say how it chooses" in err
    assert err.count("\n") == 1


def test_networks_say_what_their_exact_value_costs_and_wait_until_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provenance = Provenance.of("test", rules=Rules(), seed=0, observation="raw", actions="keeps")
    num_inputs = layout_of(Rules(), 1, "raw").size
    layers = [(np.zeros((225, num_inputs)), np.arange(225))]
    save_policy(tmp_path / "actor.safetensors", Policy("actor", Network(layers, "tanh"), provenance))
    name, argv = "policy:actor.safetensors", ["--games", "2", "--json", "report.json"]

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "play", lambda *arguments, **options: pytest.fail("plays"))
        for options in (["--exact"], ["--distribution"], ["--exact-networks", "answers", "--distribution"]):
            lots = ":sample" if len(options) == 3 else ""
            assert run(main, Config, [f"{name}{lots}", *argv, *options]) == WRONG_INPUT
            err = capsys.readouterr().err
            assert err.count("\n") == 1
            for word in ["leave it out"] if lots else ["up to 1.8 billion", "hours", "--exact-networks DIR"]:
                assert word in err
    assert run(main, Config, [name, "greedy", *argv, "--exact-networks", "answers"]) == DONE
    assert "billion decisions" in capsys.readouterr().err
    agents = json.loads((tmp_path / "report.json").read_text())["agents"]
    assert [agent["exact_mean"] for agent in agents] == [245.25, 245.25]


def test_a_report_replaces_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old")
    assert run(main, Config, ["greedy", "--games", "2", "--json", "report.json"]) == DONE
    assert json.loads((tmp_path / "report.json").read_text())["games"] == 2


def test_rules_have_names_and_single_fields(capsys: pytest.CaptureFixture[str]) -> None:
    def rules(*argv: str) -> Rules:
        return parse(Config, ["greedy", *argv], program="evaluate.py").rules

    assert rules() == Rules()
    for name, suite in SUITE.items():
        assert rules("--rules", name) == rules(f"--rules={name}") == suite
    assert rules("--rules.joker", "natural") == Rules(joker="natural")
    assert rules("--rules.bonus_tiers", "63", "35") == Rules(bonus_tiers=((63, 35),))
    assert rules("--rules.no_second_kismet_penalty") == Rules(second_kismet_penalty=False)
    assert rules("--rules", "royal_flush", "--rules.joker", "natural") == Rules(flush_score=100, joker="natural")


def test_help_is_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(main, Config, ["--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    options = "--games --seed --json --plots --rules.joker --processes --trust --no-optimum --exact --distribution"
    options += " --exact-networks"
    for option in options.split():
        assert option in out


def interrupt(*arguments: Any, **options: Any) -> None:
    signal.raise_signal(signal.SIGINT)


def lose_the_interrupt(*arguments: Any, **options: Any) -> None:
    """Do as numba's compiler does: swallow the KeyboardInterrupt and fail over its consequences."""
    with contextlib.suppress(KeyboardInterrupt):
        interrupt()
    raise RuntimeError("no compiled object yet")


@pytest.mark.parametrize("play", [interrupt, lose_the_interrupt])
def test_ctrl_c_ends_in_one_line_and_writes_nothing(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluate, "play", play)
    handler = signal.getsignal(signal.SIGINT)
    assert run(main, Config, ["greedy", "--json", "report.json"]) == INTERRUPTED
    assert capsys.readouterr().err == "evaluate.py: interrupted\n"
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_killed_worker_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose_a_worker(*arguments: Any, **options: Any) -> None:
        raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    monkeypatch.setattr(evaluate, "play", lose_a_worker)
    assert run(main, Config, ["greedy", "--processes", "2"]) == LOST
    err = capsys.readouterr().err
    assert err == "evaluate.py: a worker process was killed, perhaps for memory; try fewer --processes\n"


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(evaluate, "play", fail)
    with pytest.raises(ValueError, match="a bug"):
        run(main, Config, ["greedy"])


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.json").write_text("old")

    def fail(self: Path, target: Path) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="full"):
            write_whole(tmp_path / "report.json", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]
    write_whole(tmp_path / "report.json", "new")
    assert (tmp_path / "report.json").read_text() == "new"


def test_a_write_that_fails_at_the_end_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device", "report.json")

    monkeypatch.setattr(evaluate, "write_whole", fail)
    assert run(main, Config, ["greedy", "--games", "2", "--json", "report.json"]) == WRONG_INPUT
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert err.count("\n") == 1


def test_the_script_itself_exits_with_the_code() -> None:
    done = subprocess.run([sys.executable, "evaluate.py", "nobody"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (WRONG_INPUT, "")
    assert done.stderr.startswith("evaluate.py: player 'nobody' is unknown")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_two_processes_print_the_same_results() -> None:
    def means(processes: str) -> list[float]:
        players = ("random", "turn_greedy")
        options = ("--games", "1100", "--json", f"{processes}.json", "--processes", processes)
        subprocess.run([sys.executable, ROOT / "evaluate.py", *players, *options], check=True, capture_output=True)
        return [agent["mean"] for agent in json.loads(Path(f"{processes}.json").read_text())["agents"]]

    assert means("1") == means("2")


def test_every_bar_of_what_matches_need_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def spread(optimum: Optimum, progress: bool = False) -> None:
        print("\rspread [####", end="", file=sys.stderr, flush=progress)

    def told(about: Any, report: Any) -> None:
        report(0.5)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(Optimum, "prepare_sds", spread)
    monkeypatch.setattr(command_line, "late_cards", told)
    monkeypatch.setattr(command_line, "endgame_of", told)
    command_line.prepare_matches(Rules())
    first, second, third = (terminal.getvalue().find(word) for word in ("\rspread [####", "late cards", "endgame"))
    assert -1 < first < second < third
