"""play, advise and quiz in lines of text: what can be said, what comes of it, and that it is true."""

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rough import rough_judges

from kismet_env import __main__ as command_line
from kismet_env.actions import actions_of
from kismet_env.analysis import analyse
from kismet_env.bots import make
from kismet_env.dialogue import talk, understood
from kismet_env.record import Game
from kismet_env.rules import Box
from kismet_env.sitting import YOU, Match, Quiz
from kismet_env.solver import solve
from kismet_env.value_suite import load, measure

pytest.importorskip("rich")
pytest.importorskip("tyro")
KEEPS = actions_of("keeps")
ALL_BUT_KISMET = {  # 216 points
    "ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15, "SIXES": 18, "TWO_PAIR_SAME_COLOR": 20,
    "THREE_OF_A_KIND": 22, "STRAIGHT": 30, "FLUSH": 0, "FULL_HOUSE": 0, "FULL_HOUSE_SAME_COLOR": 0,
    "FOUR_OF_A_KIND": 0, "YARBOROUGH": 21,
}  # fmt: skip


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *options: str, typed: str = ""
) -> tuple[int, str, str]:
    """Run a command with what is typed coming through a pipe; return exit code, output and error output."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    code = command_line.main(list(options))
    return code, *capsys.readouterr()


def game_at(dice: list[int], rolls_left: int, card: dict[str, int] | None = None) -> Game:
    return Game([YOU], key=None, start={"cards": [card or {}], "dice": dice, "rolls_left": rolls_left})


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("225", "keep 2-2-5"),
        ("keep 5-2-2", "keep 2-2-5"),
        ("5 2,2", "keep 2-2-5"),
        ("roll", "roll all dice"),
        ("roll all dice", "roll all dice"),
        ("fill Full House", "fill Full House"),
        ("full house same color", "fill Full House Same Color"),
        ("full-house same", "fill Full House Same Color"),
        ("yar", "fill Yarborough"),
        ("thr", "fill Three of a Kind"),
        ("22255", "That leaves no die to roll; keep fewer, or name a box."),
        ("5551", "You cannot keep 5 5 5 1: the dice are 2 2 2 5 5."),
        ("full", '"full" can be Full House or Full House Same Color.'),
        ("deuces", "Deuces cannot be filled now; what can: "),
        ("straight", "Straight cannot be filled now; what can: "),
        ("77", '"77" is neither dice to keep nor a box; "help" says what can be said.'),
        ("fill", '"fill" is neither dice to keep nor a box'),
    ],
)
def test_words_are_understood_or_refused_in_a_line(words: str, text: str) -> None:
    game = game_at([2, 2, 2, 5, 5], 1, {"DEUCES": 4})
    legal = game.look().masks[0] > 0
    if text[0] in "rkf":
        assert KEEPS.text(understood(words, game.position(), legal)) == text
    else:
        with pytest.raises(ValueError, match=re.escape(text)):
            understood(words, game.position(), legal)


def test_without_rolls_only_boxes_are_left() -> None:
    game = game_at([2, 2, 2, 5, 5], 0)
    with pytest.raises(ValueError, match="No roll is left; name a box: Aces, "):
        understood("22", game.position(), game.look().masks[0] > 0)


def terminal(*options: str, typed: list[str], environment: dict[str, str]) -> str:
    """What a command shows in a terminal of its own while these lines are typed, each after a prompt."""
    ours, theirs = pty.openpty()
    command, environment = [sys.executable, "-m", "kismet_env", *options], os.environ | environment
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        text = b""
        for line in [*typed, ""]:
            while not text.endswith(b"> "):
                assert select.select([ours], [], [], 120)[0], text
                try:
                    text += os.read(ours, 1024)
                except OSError:  # the other end is closed
                    break
            if line:
                os.write(ours, f"{line}\n".encode())
                text += b"\n"
        assert process.wait() == 0
    os.close(ours)
    return text.decode()


def test_a_game_is_left_in_a_terminal_and_goes_on_in_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = {"KISMET_DATA_DIR": str(tmp_path)}
    shown = terminal("play", "--seed", "5", "--plain", typed=["nonsense", "?", "yar", "quit"], environment=where)
    assert '"nonsense" is neither dice to keep nor a box' in shown
    dice = re.search(r"Dice ([\d ]+): ", shown)
    assert dice is not None
    (path,) = (tmp_path / "games").iterdir()
    game = Game.from_json(path.read_text())
    assert [move.said.split(" in ")[1] for move in game.moves] == ["Yarborough"]
    assert " ".join(map(str, game.beginning["dice"])) == dice[1]
    choices = solve().explain(0, 0, False, game.beginning["dice"], 2, count=3).choices
    for place, choice in enumerate(choices, 1):
        assert f"{place}. {choice.text}: {choice.value:.1f} points expected at the end" in shown
    assert "left; to go on: python -m kismet_env play --resume" in shown

    monkeypatch.setenv("KISMET_DATA_DIR", str(tmp_path))
    rest = [box.title for box in Box if box is not Box.YARBOROUGH]
    typed = "card\n" + "".join(f"roll\nroll\n{title}\n" for title in rest)
    code, out, error = run(capsys, monkeypatch, "play", "--resume", typed=typed)
    assert (code, error) == (0, "")
    game = Game.from_json(path.read_text())
    assert game.over
    assert f"Yarborough (sum): {game.moves[0].points}." in out
    judged, (sums,) = analyse(game, solve())
    report = out.split("> ")[-1].splitlines()
    assert report[-7:-4] == [
        f"Perfect play can expect {sums.start:.1f} points.",
        f"Your dice brought {sums.luck:+.1f}, your decisions {-sums.regret:+.1f}.",
        "Your costliest decisions:",
    ]
    worst = max(judged, key=lambda one: one.verdict.regret)
    assert report[-4].endswith(f"cost {worst.verdict.regret:.1f}; best was {worst.outlook.choices[0].text}.")
    assert report[-1] == f"written: {path}"
    code, out, error = run(capsys, monkeypatch, "play", "--resume")
    assert code == 2
    assert f"no game was left in {tmp_path / 'games'}" in error


def test_decisions_that_could_not_be_better_cost_plus_nothing(tmp_path: Path) -> None:
    start = {"cards": [ALL_BUT_KISMET], "dice": [1, 2, 3, 4, 6], "rolls_left": 0}
    match = Match(Game([YOU], key=1, start=start), tmp_path / "game.json")
    match.begin()
    match.choose(KEEPS.box_action(Box.KISMET))
    said = match.report()[2:]
    assert said[0].endswith(", your decisions +0.0.")
    assert said[1:] == ["Not one decision could have been better."]


def test_others_play_while_one_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    match = Match(Game(["turn_greedy", YOU], key=4), tmp_path / "game.json", chances_known=lambda: len(asked) == 2)
    told = match.begin()
    assert told == [f"turn_greedy: {match.game.moves[-1].said}"]
    answers: Iterator[str] = iter(["?", "?", "yarborough"])
    said: list[str] = []

    def ask(prompt: str) -> str:
        try:
            asked.append(prompt)
            return next(answers)
        except StopIteration:
            raise EOFError from None

    with rough_judges(monkeypatch):
        talk(match, ask=ask, say=said.append)
    first, second = (place for place, line in enumerate(said) if line.startswith("1. "))
    assert said[first + 3] == match.caveat
    assert not re.search(r"wins \d", said[first])
    assert re.search(r", wins \d+\.\d%\.$", said[second])
    points = match.game.position()["cards"][1]["YARBOROUGH"]
    place = said.index(f"you: {points} in Yarborough")
    assert said[place + 1].startswith("turn_greedy: ")
    again = Match(Game.from_json(match.path.read_text()), match.path)
    assert again.position() == match.position()
    assert again.seat == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("play", "--against", "nobody"), "player 'nobody' is unknown; players are random"),
        (("play", "--against", YOU), "one player of the game has to be 'you'"),
        (("play", "--resume", "--seed", "3"), "leave out --against, --rules and --seed"),
        (("play", "--resume", "--record", "no.json"), "No such file or directory"),
        (("play", "--record", "."), ". is a folder; give the name of a file"),
        (("quiz", "--positions", "0"), "--positions 0 is not a whole number from 1 to 200"),
        (("quiz", "--beside", "nobody"), "player 'nobody' is unknown"),
        (("advise",), "--dice and --rolls-left are needed"),
        (("advise", "--dice", "22557", "--rolls-left", "1"), "--dice 22557 are not five faces from 1 to 6"),
        (("advise", "--dice", "2255", "--rolls-left", "1"), "--dice 2255 are not five faces"),
        (("advise", "--dice", "22555", "--rolls-left", "3"), "--rolls-left 3 is not 2, 1 or 0"),
        (("advise", "--dice", "22555", "--rolls-left", "1", "--open", "SEVENS"), "--open: unknown box SEVENS; boxes"),
        (
            ("advise", "--dice", "22555", "--rolls-left", "1", "--filled", "fives", "--basic", "41"),
            "--basic 41 cannot be with FIVES filled; try 20 or 25",
        ),
        (("advise", "--dice", "22555", "--rolls-left", "1", "--basic", "4"), "with no Basic box filled; try 0"),
        (("advise", "--dice", "22555", "--rolls-left", "1", "--armed"), "--armed cannot be before the Kismet box"),
        (("advise", "--dice", "22555", "--rolls-left", "1", "--against", "9"), "--against needs --total"),
        (("advise", "--dice", "22555", "--rolls-left", "1", "--filled", *(b.name for b in Box)), "the game is over"),
        (("advise", "--position", "p.json", "--dice", "22555"), "--position says everything"),
        (("quiz", "--rules", "strict"), "Unrecognized options: --rules, strict; all options: "),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KISMET_DATA_DIR", str(tmp_path))
    code, out, error = run(capsys, monkeypatch, *options)
    assert (code, out) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("card", "total", "said"),
    [
        (("--filled", "ACES", "STRAIGHT", "FLUSH", "--basic", "3"), 70, "try 38 or 68"),
        (("--filled", "ACES", "STRAIGHT", "FLUSH", "--basic", "3"), 68, None),
        ((), 5, "try 0"),
        (("--filled", *ALL_BUT_KISMET, "--basic", "63"), 63, "try 98 or 103"),  # 35 of bonus; five Aces as Yarborough
        (("--filled", "KISMET"), 65, "try 0, or add --armed if the Kismet box holds points"),
        (("--filled", "KISMET", "--armed"), 65, None),
        (("--filled", "STRAIGHT", "--rules", "long_straight"), 30, "try 0 or 60"),
    ],
)
def test_a_total_has_to_fit_the_card(
    card: tuple[str, ...],
    total: int,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, error = run(
        capsys, monkeypatch, "advise", "--dice", "22556", "--rolls-left", "1", *card, "--total", str(total)
    )
    if said is None:
        assert (code, error) == (0, "")
    else:
        assert (code, out) == (2, "")
        assert error.endswith(f"--total {total} cannot be with these boxes filled; {said}\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 100_000, "no JSON that anybody would write"),
        (b'{"cards": [{"ACES": 2, "ACES": 3}], "dice": [1, 2, 3, 4, 5]}', "the field 'ACES' is there twice"),
        (b'{"cards": [], "dice": [1, 2, 3, 4, 5]}', '"cards" are those of 0 players; it takes 1 to 6'),
        (b'{"cards": [{}]}', 'the position holds no "dice"'),
        (b"\xff", "can't decode byte 0xff"),
        (b'\xef\xbb\xbf{"cards": [{}], "dice": [1, 2, 3, 4, 5]}', None),  # as Windows marks UTF-8
    ],
)
def test_files_of_positions_are_read_or_refused_by_name(
    content: bytes,
    said: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "position.json"
    file.write_bytes(content)
    code, _, error = run(capsys, monkeypatch, "advise", "--position", str(file))
    if said is None:
        assert (code, error) == (0, "")
    else:
        assert code == 2
        assert f"{file}: " in error
        assert said in error
        assert error.count("\n") == 1


def test_nobody_has_to_read_to_the_end() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "kismet_env", "quiz", "--positions", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_damaged_game_is_named_and_one_of_others_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KISMET_DATA_DIR", str(tmp_path))
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "2000-01-01-000000.json").write_text(Game([YOU], key=1).to_json(), "utf-8")
    (tmp_path / "games" / "2000-01-02-000000.json").write_text(Game(["greedy"], key=1).to_json(), "utf-8-sig")
    code, out, error = run(capsys, monkeypatch, "play", "--resume")
    assert (code, error) == (0, "")
    assert "left; to go on: python -m kismet_env play --resume\n" in out
    damaged = tmp_path / "games" / "2000-01-03-000000.json"
    damaged.write_text('{"record"')
    code, _, error = run(capsys, monkeypatch, "play", "--resume")
    assert code == 2
    assert f"{damaged}: the record is no JSON" in error
    assert error.endswith("; to go on with another game name it by --record\n")


def test_ctrl_c_leaves_a_game_as_the_end_of_the_lines_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press_ctrl_c(prompt: str = "") -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("kismet_env.commands.play.talk", lambda sitting: talk(sitting, ask=press_ctrl_c))
    path = tmp_path / "a game.json"
    code, out, error = run(capsys, monkeypatch, "play", "--plain", "--record", str(path))
    assert (code, error) == (0, "")
    assert out.endswith(f"left; to go on: python -m kismet_env play --resume --record '{path}'\n")
    assert not Game.from_json(path.read_text()).moves


def test_advice_on_a_last_roll_is_what_the_dice_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # only Kismet is open: 80 points for five sixes, one chance in six, and the Basic bonus has been paid
    filled = ("--filled", *ALL_BUT_KISMET, "--basic", "63")
    code, out, error = run(
        capsys, monkeypatch, "advise", "--dice", "66166", "--rolls-left", "1", *filled, "--json", "--count", "1"
    )
    assert (code, error) == (0, "")
    told = json.loads(out)
    assert told["dice"] == [1, 6, 6, 6, 6]
    (action,) = told["actions"]
    assert action["text"] == "keep 6-6-6-6"
    assert action["score"] == pytest.approx(80 / 6)

    # 216 points of mine against 290: the same throw decides the match
    rival: dict[str, Any] = ALL_BUT_KISMET | {"KISMET": 0, "FLUSH": 35, "FULL_HOUSE": 39}
    position = {"cards": [ALL_BUT_KISMET, rival], "player": 0, "dice": [1, 6, 6, 6, 6], "rolls_left": 1}
    file = tmp_path / "position.json"
    file.write_text(json.dumps(position))
    with rough_judges(monkeypatch):
        code, out, error = run(capsys, monkeypatch, "advise", "--position", str(file), "--json")
    assert (code, error) == (0, "")
    first, second, *_ = json.loads(out)["actions"]
    totals = Game([YOU, "other"], key=None, start=position).totals
    assert first["text"] == "keep 6-6-6-6"
    assert first["score"] == pytest.approx(totals[0] + 80 / 6)
    assert totals[0] < totals[1] < totals[0] + 80
    assert first["win"] == pytest.approx(1 / 6)
    assert second["win"] < 1 / 6


def test_the_quiz_counts_as_the_suite_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # who answers as greedy does has the score of greedy, which is that of the value suite
    rows = np.random.default_rng(1).choice(len(load().rolls), 4, replace=False)
    suite = load().at(rows)
    quiz, typed = Quiz(suite, ["greedy"]), []
    for game in quiz._games:
        seen = game.look()
        typed.append(KEEPS.text(int(make("greedy").act(seen.observations, seen.masks)[0])))
    code, out, error = run(
        capsys, monkeypatch, "quiz", "--positions", "4", "--seed", "1", "--beside", "greedy", typed="\n".join(typed)
    )
    assert (code, error) == (0, "")
    regret = f"{measure(make('greedy'), suite)['regret']:.2f}"
    assert out.splitlines()[-1] == f"Lost by a decision: you {regret}, greedy {regret}."
