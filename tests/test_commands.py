"""The commands of `python -m kismet_env`: what they print and write, how they refuse, and the page about a game."""

import importlib
import io
import re
import shlex
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rough import rough_judges

from kismet_env import __main__ as command_line
from kismet_env.actions import actions_of
from kismet_env.analysis import analyse
from kismet_env.record import Game
from kismet_env.report import report
from kismet_env.rules import Rules
from kismet_env.solver import solve

Console = pytest.importorskip("rich.console").Console
pytest.importorskip("tyro")
watch = importlib.import_module("kismet_env.commands.watch")
ARMED = {"KISMET": 65, "ACES": 3, "STRAIGHT": 30}


def example_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The example in the help of a command, as words behind `python -m kismet_env`."""
    with pytest.raises(SystemExit, match=r"^0$"):
        command_line.main([command, "--help"])
    (line,) = re.findall(r"For example: python -m kismet_env (.*)", capsys.readouterr().out)
    return shlex.split(line)


def test_the_example_of_every_help_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [example_of(command, capsys) for command in command_line.COMMANDS]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KISMET_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))  # nobody answers
    for example in examples:
        assert command_line.main(example) == 0, example
    out, _ = capsys.readouterr()
    game = Game.from_json(Path("game.json").read_text())
    assert game.over
    assert game.players == ("turn_greedy", "optimal")
    watched, analysed = out.split("written: game.json\n")
    assert analysed.startswith(watched)  # analysing tells what was seen while watching
    lines = watched.split("\n\n")[0].splitlines()
    assert len(lines) == len(game.moves)
    assert all(move.said.split()[-1] in line for move, line in zip(game.moves, lines, strict=True))
    assert f"{game.totals[0]}.0" in watched
    assert "</html>" in Path("report.html").read_text()
    assert "left; to go on: python -m kismet_env play --resume" in analysed
    assert "fill Two Pair Same Color" in analysed
    assert "Position 1 of 5" in analysed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["wach"], "command 'wach' is unknown; commands are watch, analyse"),
        (["watch"], "no player is named; for example: python -m kismet_env watch turn_greedy"),
        (["watch", "nobody"], "player 'nobody' is unknown; players are"),
        (["watch", "greedy", "--seed", "-1"], "seed -1 is negative"),
        (["watch", "greedy", "--video", "game.avi"], "--video game.avi does not end in .mp4"),
        (["watch", "greedy", "--video", "game.mp4", "--record", "game.mp4"], "--record and --video are both game.mp4"),
        (
            ["watch", "greedy", "--step", "--pause", "2"],
            "--step waits for Enter instead of --pause; leave out one of them",
        ),
        (["watch", "greedy", "--game", str(2**64)], "--game 18446744073709551616 is not a whole number from 0 to"),
        (["analyse", "game.json", "--html", "./game.json"], "--html game.json is the game itself; give another place"),
        (["watch", *["greedy"] * 7], "are not a list of 1 to 6 names"),
        (["analyse", "nothing.json"], "No such file or directory: 'nothing.json'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line.main(options) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_players", [1, 2, 3, 4])
def test_every_number_fits_into_80_columns(num_players: int) -> None:
    position = {"cards": [{"FLUSH": 35, "KISMET": 100 + seat} for seat in range(num_players)], "player": 0}
    position |= {"dice": [2, 6, 6, 6, 6], "rolls_left": 2, "kismets_rolled": [1] * num_players}
    from kismet_env.screen import game_screen

    console = Console(width=80, file=io.StringIO())
    console.print(game_screen(position, Rules(), ["turn_greedy"] * num_players))
    text = console.file.getvalue()
    for number in (
        "(24)",
        "(26)",
        "(51)",
        *(str(number + seat) for number in (100, 135) for seat in range(num_players)),
    ):
        assert number in text, text
    assert len(text.splitlines()) <= 24


def test_an_early_interrupt_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "import_module", interrupted)
    assert command_line.main(["watch", "greedy"]) == 130
    assert capsys.readouterr().err == "python -m kismet_env watch: interrupted\n"


def test_what_a_player_to_win_needs_is_prepared_before_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    monkeypatch.setattr(watch, "prepare_matches", prepared.append)
    with rough_judges(monkeypatch):
        assert command_line.main(["watch", "win_probability", "random", "--rules", "no_bonus"]) == 0
    assert prepared == [Rules.of("no_bonus")]


@pytest.mark.slow
def test_a_video_is_written(tmp_path: Path) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    file = tmp_path / "game.mp4"
    assert command_line.main(["watch", "greedy", "--video", str(file)]) == 0
    _, seconds = imageio_ffmpeg.count_frames_and_secs(str(file))
    assert 16 * 1.5 <= seconds <= 46 * 1.5


class Page(HTMLParser):
    """The tags, the words and the pips of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def second_kismet() -> Game:
    """Part of a game in which a second Kismet forces a zero."""
    start = {"cards": [ARMED, {"DEUCES": 4, "FLUSH": 35, "KISMET": 0}], "player": 0, "dice": [4, 4, 4, 4, 4]}
    game = Game(["<Ann>", "Bo"], key=3, start=start)
    keeps = actions_of("keeps")
    game.play(keeps.box_action(13))  # 20 in Yarborough: a mistake
    while len(game.moves) < 9:
        game.play(int(game.look().masks[0].nonzero()[0][-1]))
    return game


def test_the_page_says_everything_and_needs_nothing_else() -> None:
    game = second_kismet()
    judged, sums = analyse(game, solve())
    text = report(game, judged, sums)
    page = Page(text)
    assert page.open == []
    assert not re.search(r"https?:|src=|@import|url\(", text)  # self-contained
    words = " ".join(page.words)
    assert "prefers-color-scheme: dark" in words
    assert "@media print" in words
    assert page.tags.count("h1") == 1
    assert "<Ann> and Bo" in words
    assert "Bo: 0 in Aces" in words
    assert "20 in Yarborough" in words
    labels = [value for name, value in page.attributes if name == "aria-label" and value.startswith("dice ")]
    dice = [" ".join(map(str, one.move.before["dice"])) for one in judged]
    assert [label.removeprefix("dice ").split(",")[0] for label in labels][-len(dice) :] == dice
    for name, each in zip(("start", "luck"), (sums[0].start, sums[0].luck), strict=True):
        assert f"{each:+.1f}".lstrip("+").replace("-", "\N{MINUS SIGN}") in words, name
    for one in judged:
        assert f"{one.outlook.value:.1f}" in words
        assert one.verdict.regret < 0.005 or one.outlook.choices[0].text in words


def test_dice_on_the_page_have_their_pips_in_their_true_colours() -> None:
    game = second_kismet()
    text = report(game, *analyse(game, solve()))
    colors = {1: "#18181c", 2: "#cd1c26", 3: "#12803c", 4: "#12803c", 5: "#cd1c26", 6: "#18181c"}
    symbols = dict(re.findall(r'<symbol id="die(\d)".*?>(.*?)</symbol>', text))
    for face, color in colors.items():
        assert re.findall(r'<circle [^>]*fill="(.*?)"', symbols[str(face)]) == [color] * face
