"""A game as a picture: the dice in their true colours and the score cards, 800 by 600.

Drawn without a screen (`pip install "kismet-env[render]"`). Pillow draws every die and word once, four times larger for
smooth edges; a picture is the table with such stamps on it, put there by numpy in a millisecond or two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from kismet_env.dice import NUM_DICE
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.render.last import Last, names_of
from kismet_env.render.palette import GOLD, IVORY, PIP_OF_FACE, Color
from kismet_env.render.sheet import Column, Contents, contents_of, tiers_of, worth_of
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, Box, Rules, basic_bonus

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:
    raise ImportError("pictures need Pillow: pip install 'kismet-env[render]'") from None

Frame = npt.NDArray[np.uint8]
"""A picture, [y, x, channel], RGB."""

WIDTH, HEIGHT = 800, 600  # even, as video codecs want them
_FELT, _TRAY = (27, 62, 50), (35, 78, 63)
_PAPER, _BAND, _LINE = (250, 247, 238), (241, 236, 222), (221, 214, 196)
_INK, _FAINT = (33, 37, 41), (104, 102, 92)
_PALE_GOLD, _OFFER = (252, 240, 203), (140, 92, 8)
_LIGHT, _SOFT_LIGHT = (244, 240, 226), (173, 196, 184)

_SMOOTH = 4  # dice are drawn so many times larger
_DIE, _GAP, _DICE_X, _DICE_Y = 84, 16, 36, 26
_INFO_X = _DICE_X + NUM_DICE * (_DIE + _GAP) + 16
_CARD_Y, _ROW, _NUM_ROWS = 174, 37, 11
_CARD_WIDTH, _MARGIN, _LABEL, _MOST_COLUMN = 376, 16, 172, 92
_PIP_PLACES = {  # in thirds of a die from its middle
    1: [(0, 0)],
    2: [(-1, -1), (1, 1)],
    3: [(-1, -1), (0, 0), (1, 1)],
    4: [(-1, -1), (-1, 1), (1, -1), (1, 1)],
    5: [(-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)],
    6: [(-1, -1), (-1, 0), (-1, 1), (1, -1), (1, 0), (1, 1)],
}


class _Section(NamedTuple):
    """One of the two sections on the table."""

    title: str
    boxes: tuple[Box, ...]
    x: int


_SECTIONS = (
    _Section("Basic Section", BASIC_BOXES, _MARGIN),
    _Section("Kismet Section", KISMET_BOXES, WIDTH - _MARGIN - _CARD_WIDTH),
)


def picture(
    position: Mapping[str, Any], rules: Rules, *, names: Sequence[str] | None = None, last: Last | None = None
) -> Frame:
    """Return a `position` (see `kismet_env.position`) as a picture, (600, 800, 3) uint8, RGB.

    In brackets, for the player to move: what the dice would bring in the open boxes. Kept dice and the boxes just
    filled are framed in gold.

    Args:
        position: what to show; it is not changed.
        rules: those of the game.
        names: what the players are called, by seat; None: Player 1 and so on. These stand too for names that the font
            of pictures cannot write: it has little more than ASCII, and accents are left out.
        last: what has just happened; letters that the font lacks become question marks.
    """
    numbered = names_of(len(position["cards"]))
    written = [_legible(name) for name in names or numbered]
    names = tuple(other if "?" in name else name for name, other in zip(written, numbered, strict=True))
    contents = contents_of(position, rules)
    frame = _table(rules, names, contents.mover).copy()
    _put_dice(frame, position, contents, last)
    _put_news(frame, position, contents, names, last)
    for section in _SECTIONS:
        _put_entries(frame, section, contents, last)
    _put_sums(frame, contents, rules)
    return frame


def _put_dice(frame: Frame, position: Mapping[str, Any], contents: Contents, last: Last | None) -> None:
    kept = list(last.kept) if last is not None and contents.mover is not None else []
    for place, face in enumerate(position["dice"]):
        is_kept = face in kept
        if is_kept:
            kept.remove(face)
        x, y = _DICE_X + place * (_DIE + _GAP) - _GAP // 2, _DICE_Y - _GAP // 2
        _put(frame, _die(face, is_kept, contents.mover is None), x, y)


@cache
def _die(face: int, is_kept: bool, is_faded: bool) -> _Stamp:
    """Return a die with its frame or shadow, _GAP larger than itself; faded ones are of a game that is over."""
    size, border = (_DIE + _GAP) * _SMOOTH, _GAP // 2 * _SMOOTH
    image = Image.new("RGBA", (size, size), (*_TRAY, 0))
    draw = ImageDraw.Draw(image)
    radius, far = _DIE * _SMOOTH // 6, size - border
    if is_kept:
        reach = 5 * _SMOOTH
        rim = (border - reach, border - reach, far + reach, far + reach)
        draw.rounded_rectangle(rim, radius + reach, fill=GOLD)
    else:
        draw.rounded_rectangle((border, border + 4 * _SMOOTH, far, far + 4 * _SMOOTH), radius, fill=(18, 44, 35))
    draw.rounded_rectangle((border, border, far, far), radius, fill=IVORY)
    middle, third, pip = size / 2, _DIE * _SMOOTH * 0.27, _DIE * _SMOOTH * 0.098
    for across, down in _PIP_PLACES[face]:
        x, y = middle + across * third, middle + down * third
        draw.ellipse((x - pip, y - pip, x + pip, y + pip), fill=PIP_OF_FACE[face - 1])
    if is_faded:
        image.putalpha(image.getchannel("A").point(lambda alpha: alpha // 3))
    return _shrunk(image)


def _put_news(
    frame: Frame,
    position: Mapping[str, Any],
    contents: Contents,
    names: tuple[str, ...],
    last: Last | None,
) -> None:
    """Write whose turn it is, which roll, and what has just happened."""
    space = WIDTH - _MARGIN - 12 - _INFO_X
    if contents.mover is None:
        best = max(column.total for column in contents.columns)
        winners = [name for name, column in zip(names, contents.columns, strict=True) if column.total == best]
        head = f"{best} points" if len(names) == 1 else " and ".join(winners)
        _write(frame, "Game over", _INFO_X, 48, 15, _SOFT_LIGHT)
        _write(frame, _cut(head, space, 25, True), _INFO_X, 76, 25, _LIGHT, bold=True)
        if len(names) > 1:
            _write(frame, f"wins with {best}" if len(winners) == 1 else f"share {best}", _INFO_X, 104, 15, _SOFT_LIGHT)
    else:
        roll = ROLLS_PER_TURN - position["rolls_left"]
        turn = len(contents.columns[contents.mover].card) + 1
        _write(frame, f"Turn {turn} of {len(Box)}", _INFO_X, 44, 15, _SOFT_LIGHT)
        _write(frame, _cut(names[contents.mover], space, 25, True), _INFO_X, 70, 25, _LIGHT, bold=True)
        _write(frame, f"roll {roll} of {ROLLS_PER_TURN}", _INFO_X, 99, 15, _SOFT_LIGHT)
        for number in range(ROLLS_PER_TURN):
            _put(frame, _dot(GOLD if number < roll else _FELT), _INFO_X + 84 + 20 * number, 92)
    if last is not None:
        _write(frame, _cut(_legible(last.text), WIDTH - 2 * _DICE_X, 17, False), _DICE_X, 146, 17, _LIGHT)


def _put_entries(frame: Frame, section: _Section, contents: Contents, last: Last | None) -> None:
    """Write what the boxes of a section hold, and what the dice would bring."""
    new = last.entries if last is not None else ()
    for row, box in enumerate(section.boxes, 1):
        for seat, column in enumerate(contents.columns):
            x, y, width = _cell(section, row, seat, len(contents.columns))
            if box in column.card:
                if (seat, box) in new:
                    _put(frame, _ring(width - 6), x + 3, y - _ROW // 2 + 3)
                _write_middle(frame, str(column.card[box]), x, y, width, 19, _INK, bold=True)
            elif seat == contents.mover:
                points = contents.offers[box]
                _write_middle(frame, f"({points})", x, y, width, 16, _OFFER if points else _FAINT)


def _put_sums(frame: Frame, contents: Contents, rules: Rules) -> None:
    """Write the totals of both sections, the bonus and the total of the game."""
    basic, kismet = _SECTIONS
    players = len(contents.columns)
    first = len(BASIC_BOXES) + 1
    for seat, column in enumerate(contents.columns):
        x, y, width = _cell(basic, first, seat, players)
        _write_middle(frame, str(column.basic_total), x, y, width, 17, _INK)
        x, y, width = _cell(basic, first + 1, seat, players)
        if column.bonus is not None:
            _write_middle(frame, str(column.bonus), x, y, width, 19, _INK, bold=True)
        else:
            _write_middle(frame, _tier(column, rules), x, y, width, min(13, width // 4), _FAINT)
        x, y, width = _cell(basic, first + 2, seat, players)
        _write_middle(frame, str(column.total), x, y + _ROW // 2, width, min(29, width // 2), _INK, bold=True)
        x, y, width = _cell(kismet, len(KISMET_BOXES) + 1, seat, players)
        _write_middle(frame, str(column.kismet_total), x, y, width, 17, _INK)


def _tier(column: Column, rules: Rules) -> str:
    """Return how far the next tier of the bonus is, while the Basic Section is open."""
    missing = [total - column.basic_total for total, _ in rules.bonus_tiers if total > column.basic_total]
    if missing:
        return f"{missing[0]} to go"
    return f"({basic_bonus(column.basic_total, rules)})" if rules.bonus_tiers else ""


def _column_width(players: int) -> int:
    return min(_MOST_COLUMN, (_CARD_WIDTH - _LABEL) // players)


def _cell(section: _Section, row: int, seat: int, players: int) -> tuple[int, int, int]:
    """Return (left end, middle in height, width) of an entry."""
    width = _column_width(players)
    x = section.x + _CARD_WIDTH - (players - seat) * width
    return x, _CARD_Y + row * _ROW + _ROW // 2, width


@lru_cache(maxsize=64)
def _table(rules: Rules, names: tuple[str, ...], mover: int | None) -> Frame:
    """Return all that stays the same while a player is to move."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _FELT)
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((_MARGIN, 14, WIDTH - _MARGIN, 124), 14, fill=_TRAY)
    for section in _SECTIONS:
        _draw_section(draw, section, len(names), mover)
    frame = np.array(image)
    for section in _SECTIONS:
        _put_labels(frame, section, rules, names)
    return frame


def _draw_section(draw: ImageDraw.ImageDraw, section: _Section, players: int, mover: int | None) -> None:
    """Draw the paper of a section, its lines and the column of the player to move."""
    left, right, top, bottom = section.x, section.x + _CARD_WIDTH, _CARD_Y, _CARD_Y + _NUM_ROWS * _ROW
    first_sum = top + (len(section.boxes) + 1) * _ROW
    draw.rounded_rectangle((left, top, right, bottom), 10, fill=_PAPER)
    draw.rounded_rectangle((left, top, right, top + _ROW), 10, fill=_BAND, corners=(True, True, False, False))
    draw.rounded_rectangle((left, first_sum, right, bottom), 10, fill=_BAND, corners=(False, False, True, True))
    if mover is not None:
        x, _, width = _cell(section, 0, mover, players)
        at_edge = mover == players - 1
        end = right if at_edge else x + width - 1
        draw.rounded_rectangle((x, top, end, bottom), 10, fill=_PALE_GOLD, corners=(False, at_edge, at_edge, False))
        draw.rounded_rectangle((x, top, end, top + _ROW), 10, fill=GOLD, corners=(False, at_edge, False, False))
    num_lines = len(section.boxes) + (2 if section.boxes is BASIC_BOXES else 1)
    for row in range(1, num_lines + 1):
        y = top + row * _ROW
        draw.line((left, y, right, y), fill=_LINE)
    if section.boxes is BASIC_BOXES:
        draw.line((left, bottom - 2 * _ROW, right, bottom - 2 * _ROW), fill=_FAINT, width=2)


def _put_labels(frame: Frame, section: _Section, rules: Rules, names: tuple[str, ...]) -> None:
    """Write what stands in the first column and the first row of a section."""
    x, top = section.x + 14, _CARD_Y
    _write(frame, section.title, x, top + _ROW // 2, 17, _INK, bold=True)
    for seat, name in enumerate(names):
        left, y, width = _cell(section, 0, seat, len(names))
        _write_middle(
            frame,
            name if _width(name, 14, True) <= width - 6 else _initial(name, seat),
            left,
            y,
            width,
            14,
            _INK,
            bold=True,
        )
    labels = [(box.title, worth_of(box, rules)) for box in section.boxes]
    if section.boxes is BASIC_BOXES:
        labels += [("Basic total", ""), ("Bonus", tiers_of(rules, " · "))]
        _write(frame, "Game total", x, top + (_NUM_ROWS - 1) * _ROW, 19, _INK, bold=True)
    else:
        labels += [("Kismet total", "")]
    for row, (title, worth) in enumerate(labels, 1):
        y = top + row * _ROW
        if worth:
            _write(frame, title, x, y + 13, 15, _INK)
            _write(frame, _cut(worth, _LABEL - 18, 12, False), x, y + 28, 12, _FAINT)
        else:
            _write(frame, title, x, y + _ROW // 2, 15, _INK)


def _initial(name: str, seat: int) -> str:
    """Return what stands over a narrow column: P2 for "Player 2", P1 for the agent "player_1", else by the seat."""
    numbered = re.fullmatch(r"player[ _](\d)", name, re.IGNORECASE)
    return f"P{numbered[1] if numbered else seat + 1}"


class _Stamp(NamedTuple):
    """Something drawn once, to be put into many pictures: frame = (colors + frame * see_through) / 256."""

    colors: npt.NDArray[np.uint16]  # [y, x, channel], times how much it hides, 0..256
    see_through: npt.NDArray[np.uint16]  # [y, x, 1], 0..256


def _stamp_of(colors: npt.NDArray[Any], alphas: npt.NDArray[np.uint8]) -> _Stamp:
    hides = (alphas.astype(np.uint16) + (alphas > 127))[:, :, None]
    return _Stamp((colors * hides).astype(np.uint16), 256 - hides)


def _shrunk(image: Image.Image) -> _Stamp:
    """Return what was drawn _SMOOTH times larger."""
    small = np.array(image.resize((image.width // _SMOOTH, image.height // _SMOOTH), Image.Resampling.BOX))
    return _stamp_of(small[:, :, :3], small[:, :, 3])


def _put(frame: Frame, stamp: _Stamp, x: int, y: int) -> None:
    height, width, _ = stamp.colors.shape
    place = frame[y : y + height, x : x + width]
    np.copyto(place, (stamp.colors + place * stamp.see_through) >> 8, casting="unsafe")


@cache
def _dot(color: Color) -> _Stamp:
    size = 14 * _SMOOTH
    image = Image.new("RGBA", (size, size), (*color, 0))
    ImageDraw.Draw(image).ellipse((0, 0, size - 1, size - 1), fill=color)
    return _shrunk(image)


@cache
def _ring(width: int) -> _Stamp:
    """Return the frame around a box that was just filled."""
    size = (width * _SMOOTH, (_ROW - 4) * _SMOOTH)
    image = Image.new("RGBA", size, (*GOLD, 0))
    corner = (0, 0, size[0] - 1, size[1] - 1)
    ImageDraw.Draw(image).rounded_rectangle(corner, 7 * _SMOOTH, outline=GOLD, width=2 * _SMOOTH)
    return _shrunk(image)


@lru_cache(maxsize=8192)
def _words(text: str, size: int, color: Color, bold: bool) -> _Stamp:
    """Return words, twice `size` high."""
    stroke = size * _SMOOTH / 40 if bold else 0
    mask = Image.new("L", (_width(text, size, bold) * _SMOOTH, 2 * size * _SMOOTH))
    ImageDraw.Draw(mask).text(
        (stroke, size * _SMOOTH), text, font=_font(size), fill=255, anchor="lm", stroke_width=stroke
    )
    small = mask.resize((mask.width // _SMOOTH, mask.height // _SMOOTH), Image.Resampling.BOX)
    return _stamp_of(np.array(color), np.array(small))


@lru_cache(maxsize=8192)
def _width(text: str, size: int, bold: bool) -> int:
    return int(_font(size).getlength(text) / _SMOOTH + bold * size / 20) + 1


def _legible(text: str) -> str:
    """Return text in letters that the font has: without accents, and with question marks for the rest."""
    bare = "".join(letter if _has(letter) else normalize("NFKD", letter)[0] for letter in text)
    return "".join(letter if _has(letter) else "?" for letter in bare)


@cache
def _has(letter: str) -> bool:
    """Return whether the font has a letter; it draws the same box for all that it lacks."""
    font, nothing = _font(1), "\U0010ffff"  # no letter at all, in any font
    return bytes(font.getmask(letter)) != bytes(font.getmask(nothing))


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size * _SMOOTH)


def _write(frame: Frame, text: str, x: int, y: int, size: int, color: Color, bold: bool = False) -> None:
    """Write words that begin at `x`, `y` being the middle of their height."""
    _put(frame, _words(text, size, color, bold), x, y - size)


def _write_middle(
    frame: Frame, text: str, x: int, y: int, width: int, size: int, color: Color, bold: bool = False
) -> None:
    """Write words into the middle of a cell."""
    _write(frame, text, x + (width - _width(text, size, bold)) // 2, y, size, color, bold)


def _cut(text: str, width: int, size: int, bold: bool) -> str:
    """Return words cut short to what the width holds."""
    if _width(text, size, bold) <= width:
        return text
    while text and _width(f"{text}...", size, bold) > width:
        text = text[:-1]
    return f"{text.rstrip()}..."
