"""A sitting in lines of text: for screen readers, pipes and terminals that can do no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.advice import Advised
from kismet_env.analysis import NO_LOSS
from kismet_env.dice import COLOR_OF_FACE, COLORS, NUM_DICE, NUM_FACES, roll_index
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.render.sheet import contents_of, tiers_of, worth_of
from kismet_env.rules import NUM_BOXES, Box
from kismet_env.sitting import Sitting

HELP = (
    'Type the dice to keep, such as "55", and the others are rolled; "roll" for all of them; or the box to fill, such '
    'as "flush". "?" names the best actions, "card" reads the cards out, "help" says this again, "quit" leaves.'
)
_KEEPS = actions_of("keeps")
_ROLL_ALL = ("roll", "rollall", "rollalldice")
_FACES = set(map(str, range(1, NUM_FACES + 1)))


def talk(sitting: Sitting, *, ask: Callable[[str], str] = input, say: Callable[[str], None] = print) -> None:
    """Ask for one decision after the other until there is none left, or nobody answers."""
    say(HELP)
    while not sitting.over:
        for line in _situation(sitting):
            say(line)
        action = None
        while action is None:
            try:
                words = ask("> ").strip().lower()
            except (EOFError, KeyboardInterrupt):  # as on the screen, Ctrl-C leaves
                say("")
                return
            if words in ("q", "quit", "exit", "leave"):
                return
            answer = _answer(words, sitting)
            if not answer:
                try:
                    action = understood(words, sitting.position(), sitting.legal)
                except ValueError as error:
                    answer = [str(error)]
            for line in answer:
                say(line)
        for line in sitting.choose(action):
            say(line)


def _situation(sitting: Sitting) -> list[str]:
    """Return what there is to decide."""
    position = sitting.position()
    contents = contents_of(position, sitting.rules)
    turn, roll = len(contents.columns[sitting.seat].card) + 1, ROLLS_PER_TURN - position["rolls_left"]
    colors = Counter(COLORS[COLOR_OF_FACE[face - 1]] for face in position["dice"])
    told = [sitting.title()] if sitting.title() else []
    told.append(f"Turn {turn} of {NUM_BOXES}, roll {roll} of {ROLLS_PER_TURN}")
    dice = " ".join(map(str, position["dice"]))
    offers = ", ".join(f"{box.title} {points}" for box, points in contents.offers.items())
    return [
        "",
        ". ".join(told) + ".",
        f"Dice {dice}: {', '.join(f'{count} {color}' for color, count in colors.items())}.",
        f"Open: {offers}.",
    ]


def _answer(words: str, sitting: Sitting) -> list[str]:
    """Return the answer to a question; nothing if it is none."""
    if words in ("?", "advice"):
        return [*_told(sitting.advice()), *filter(None, [sitting.caveat])]
    if words == "card":
        return _cards(sitting)
    return [HELP] if words in ("", "help", "h") else []


def _told(advice: tuple[Advised, ...]) -> list[str]:
    """Return the best actions, a line each."""
    lines = []
    for place, each in enumerate(advice, 1):
        points = f"{each.score:.1f} points expected at the end"
        loss = f", {each.loss:.2f} less than the most" if each.loss >= NO_LOSS else ""
        win = "" if each.win is None else f", wins {each.win:.1%}"
        lines.append(f"{place}. {each.text}: {points}{loss}{win}.")
    return lines


def _cards(sitting: Sitting) -> list[str]:
    """Return all cards, a box a line."""
    contents, rules = contents_of(sitting.position(), sitting.rules), sitting.rules
    alone = len(sitting.players) == 1

    def line(title: str, values: list[object]) -> str:
        told = values if alone else [f"{name} {value}" for name, value in zip(sitting.players, values, strict=True)]
        return f"{title}: {', '.join(map(str, told))}."

    columns = contents.columns
    return [
        *(
            line(f"{box.title} ({worth_of(box, rules)})", [column.card.get(box, "open") for column in columns])
            for box in Box
        ),
        line("Basic total", [column.basic_total for column in columns]),
        line(f"Bonus ({tiers_of(rules)})", ["open" if column.bonus is None else column.bonus for column in columns]),
        line("Game total", [column.total for column in columns]),
    ]


def understood(words: str, position: dict[str, Any], legal: npt.NDArray[np.bool_]) -> int:
    """Return the action (numbering "keeps") that `words` name; ValueError, in a line, for none that is legal now.

    Args:
        words: dice to keep ("55", "keep 5-5"), "roll", or a box or the beginning of its name ("flush", "fill fl").
        position: where one is.
        legal: which actions are legal there, (225,).
    """
    plain = "".join(letter for letter in words.lower() if letter.isalnum())
    faces = plain.removeprefix("keep") or "0"
    roll, dice = roll_index(position["dice"]), " ".join(map(str, position["dice"]))
    if plain in _ROLL_ALL or set(faces) <= _FACES:
        kept = [] if plain in _ROLL_ALL else [int(face) for face in faces]
        if not position["rolls_left"]:
            raise ValueError(f"No roll is left; name a box: {_named(legal)}.")
        if len(kept) >= NUM_DICE:
            raise ValueError("That leaves no die to roll; keep fewer, or name a box.")
        if Counter(kept) - Counter(position["dice"]):
            raise ValueError(f"You cannot keep {' '.join(map(str, kept))}: the dice are {dice}.")
        return _KEEPS.keep_action(roll, kept)
    names = {box: "".join(filter(str.isalpha, box.title.lower())) for box in Box}
    wanted = plain.removeprefix("fill")
    found = [box for box, name in names.items() if name == wanted]
    if not found and wanted:
        found = [box for box, name in names.items() if name.startswith(wanted)]
        open_ones = [box for box in found if legal[_KEEPS.box_action(box)]]
        found = open_ones or found
    if not found:
        raise ValueError(f'"{words}" is neither dice to keep nor a box; "help" says what can be said.')
    if len(found) > 1:
        raise ValueError(f'"{words}" can be {" or ".join(box.title for box in found)}.')
    action = _KEEPS.box_action(found[0])
    if not legal[action]:
        raise ValueError(f"{found[0].title} cannot be filled now; what can: {_named(legal)}.")
    return action


def _named(legal: npt.NDArray[np.bool_]) -> str:
    """Return the boxes that can be filled."""
    return ", ".join(box.title for box in Box if legal[_KEEPS.box_action(box)]) or "none"
