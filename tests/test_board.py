"""The screen to play on: everything by keys alone, everything by the mouse alone, in 80 columns and 24 lines."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from rough import rough_judges

from kismet_env.actions import actions_of
from kismet_env.dice import roll_index
from kismet_env.record import Game
from kismet_env.rules import Box
from kismet_env.sitting import YOU, Match, Quiz, Sitting
from kismet_env.value_suite import load

pytest.importorskip("textual")
from textual.pilot import Pilot
from textual.widgets import Button

from kismet_env.board import Board

KEEPS = actions_of("keeps")
LATE = {  # three boxes are open
    "ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15, "TWO_PAIR_SAME_COLOR": 20, "THREE_OF_A_KIND": 22,
    "STRAIGHT": 30, "FLUSH": 35, "FULL_HOUSE": 33, "FULL_HOUSE_SAME_COLOR": 0, "YARBOROUGH": 21,
}  # fmt: skip


def match(
    path: Path, others: tuple[str, ...] = (), *, card: Mapping[str, int] = MappingProxyType({}), **options: Any
) -> Match:
    names = (YOU, *others)
    start = {"cards": [dict(card) for _ in names], "player": 0}
    sitting = Match(Game(names, key=7, start=start), path, **options)
    sitting.begin()
    return sitting


def best(sitting: Sitting) -> tuple[tuple[int, ...] | None, Box | None]:
    """The best action: the dice to keep, or the box to fill."""
    action = sitting.advice(1)[0].action
    if action >= KEEPS.num_rolls:
        return None, Box(action - KEEPS.num_rolls)
    return KEEPS.kept(action, roll_index(sitting.position()["dice"])), None


def changed(board: Board, sitting: Sitting, kept: tuple[int, ...]) -> list[int]:
    """The places of the dice that must be kept or taken up so that `kept` are kept."""
    wanted, left = set(), list(kept)
    for place, face in enumerate(sitting.position()["dice"]):
        if face in left:
            left.remove(face)
            wanted.add(place)
    lines = shown(board, "#dice")[3]
    are_kept = {place for place in range(5) if lines[9 * place : 9 * place + 7].strip() == "keep"}
    return sorted(wanted ^ are_kept)


def shown(board: Board, selector: str) -> list[str]:
    """The lines that a part of the screen shows."""
    widget = board.query_one(selector)
    return [widget.render_line(line).text for line in range(widget.size.height)]


def label(board: Board) -> str:
    return str(board.query_one("#act", Button).label)


def run(sitting: Sitting, play: Any, *, told: tuple[str, ...] = (), size: tuple[int, int] = (80, 24)) -> Board:
    """Play on a board of this size and return it as it was in the end."""
    board = Board(sitting, told)

    async def sit() -> None:
        async with board.run_test(size=size) as pilot:
            await play(board, pilot)

    asyncio.run(sit())
    return board


def test_a_game_is_played_by_keys_alone(tmp_path: Path) -> None:
    sitting = match(tmp_path / "game.json", card=dict(list(LATE.items())[:10]))

    async def play(board: Board, pilot: Pilot[None]) -> None:
        while not sitting.over:
            kept, box = best(sitting)
            if box is None:
                assert kept is not None
                await pilot.press(*(str(place + 1) for place in changed(board, sitting, kept)), "enter")
            else:
                while not label(board).startswith(f"Fill {box.title}: "):
                    await pilot.press("down")
                await pilot.press("enter")
            assert Game.from_json(sitting.path.read_text()).position() == sitting.position()
        await pilot.pause()
        report = " ".join(" ".join(shown(board, "#past")).split())
        assert report.startswith(f"{sitting.game.totals[0]} points. Perfect play can expect ")
        assert report.endswith("Not one decision could have been better.")
        await pilot.press("enter")  # which says "Leave"
        assert not board.is_running

    run(sitting, play)
    assert sitting.game.over


def test_a_match_is_played_by_the_mouse_alone(tmp_path: Path) -> None:
    sitting = match(tmp_path / "game.json", ("turn_greedy",), card=LATE)

    async def play(board: Board, pilot: Pilot[None]) -> None:
        while not sitting.over:
            kept, box = best(sitting)
            if box is None:
                assert kept is not None
                for place in changed(board, sitting, kept):
                    await pilot.click("#dice", offset=(9 * place + 3, 1))
                if len(kept):
                    assert label(board) == f"Roll {5 - len(kept)} {'die' if len(kept) == 4 else 'dice'}"
            else:
                line = [text.startswith(box.title) for text in shown(board, "#card Static")].index(True)
                await pilot.click("#card Static", offset=(30, line))
                assert label(board).startswith(f"Fill {box.title}: ")
            await pilot.click("#act")
            await pilot.pause()

    board = run(sitting, play)
    assert [move.player for move in sitting.game.moves if move.box is not None] == [0, 1] * 3
    assert board.size == (80, 24)
    assert sitting.report()[-1] == "Not one decision could have been better."


def test_what_cannot_be_done_is_not_done(tmp_path: Path) -> None:
    sitting = match(tmp_path / "game.json")

    async def play(board: Board, pilot: Pilot[None]) -> None:
        kismet = [text.startswith("Kismet") for text in shown(board, "#card Static")].index(True)
        await pilot.click("#card Static", offset=(1, kismet))  # it would be 0, before the last roll
        assert label(board) == "Roll all dice"
        await pilot.press("1", "2", "3", "4", "5", "enter", "r")
        assert label(board) == "Keep fewer dice, or choose a box"
        assert not sitting.game.moves
        await pilot.press("1", "down")
        assert label(board).startswith("Fill ")
        await pilot.press("escape", "enter", "r", "enter", "r")
        assert label(board) == "Choose a box to fill"
        assert [move.box for move in sitting.game.moves] == [None, None]

    run(sitting, play)


def test_advice_names_points_and_chances_to_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready: list[bool] = []
    with rough_judges(monkeypatch):
        sitting = match(tmp_path / "game.json", ("greedy",), card=LATE, chances_known=lambda: bool(ready))

        async def play(board: Board, pilot: Pilot[None]) -> None:
            await pilot.press("?")
            first = shown(board, "#advice")
            assert first[0].split() == ["best", "actions", "score", "loss"]
            assert "being worked out" in first[4]
            ready.append(True)
            await pilot.press("?", "?")
            lines = shown(board, "#advice")
            assert lines[0].split() == ["best", "actions", "score", "loss", "win"]
            for line, advised in zip(lines[1:], sitting.advice(), strict=False):
                assert line.startswith(advised.text)
                assert f" {advised.score:.1f} " in line
                assert line.rstrip().endswith(f"{advised.win:.1%}")

        run(sitting, play)


def test_a_quiz_shows_the_price_before_it_goes_on() -> None:
    quiz = Quiz(load().at(np.arange(2)), ["greedy"])

    async def play(board: Board, pilot: Pilot[None]) -> None:
        before = quiz.position()
        await pilot.press("down", "enter")
        dice = shown(board, "#dice")
        price = " ".join(shown(board, "#advice"))
        assert "gives away" in price or "nothing is better" in price
        assert "Lost by a decision: you" in price
        assert label(board) == "Go on"
        assert quiz.position() != before
        await pilot.press("1", "down", "?")  # nothing to decide yet
        assert shown(board, "#dice") == dice
        await pilot.press("enter")
        assert shown(board, "#dice") != dice
        await pilot.press("up", "enter", "enter")
        assert "2 positions" in " ".join(shown(board, "#past"))

    run(quiz, play)


@pytest.mark.parametrize("others", [1, 3, 5])
def test_the_screen_is_whole_in_80_columns_and_without_colour(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    sitting = match(tmp_path / "game.json", ("greedy",) * others)

    async def play(board: Board, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        card = shown(board, "#card Static")
        assert card[0].split()[:4] == ["Basic", "Section", YOU, "gree"]
        assert card[-1].split()[:2] == ["Game", "total"]
        assert sum("▸" in line for line in card) == 1  # the box that is chosen
        assert shown(board, "#dice")[3].split() == ["1", "keep", "3", "4", "5"]
        right = board.query_one("#card").region.right
        assert right <= 80
        assert board.query_one("#left").region.right <= board.query_one("#card").region.x
        await pilot.press(*["right"] * 5)
        assert board.query_one("#card").max_scroll_x == board.query_one("#card").scroll_x

    run(sitting, play)
