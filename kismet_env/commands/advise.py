"""The best actions in a position from a real table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console

from kismet_env.advice import advise
from kismet_env.batch import MOST_PLAYERS
from kismet_env.command_line import prepare_matches, refusing
from kismet_env.dice import roll_index
from kismet_env.observation import decode_table
from kismet_env.record import Game, parsed
from kismet_env.render.last import names_of
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, MAX_BASIC_TOTAL, NUM_BOXES, Box, Rules, basic_bonus
from kismet_env.screen import advice_table, small_dice
from kismet_env.solver import Optimum, solve
from kismet_env.tables import box_points, max_total
from kismet_env.win_chance import TOTAL

_ASSUMED = "Opponents are taken to have the same boxes open, the same Basic total and no second Kismet ahead."


@dataclass(frozen=True)
class Config:
    """Say what is best in a position from a real table, and what the other actions are worth.

    For example: python -m kismet_env advise --dice 22556 --rolls-left 1 --filled ACES FOURS FIVES --basic 30
    """

    dice: Annotated[str | None, tyro.conf.arg(metavar="DICE")] = None
    """The five dice, such as 22556."""
    rolls_left: Annotated[int | None, tyro.conf.arg(metavar="NUMBER")] = None
    """How many rolls are still allowed: 2, 1 or 0."""
    open: Annotated[tuple[str, ...], tyro.conf.arg(metavar="BOX ...")] = ()
    """The open boxes, by the names of kismet_env.Box: ACES ... KISMET."""
    filled: Annotated[tuple[str, ...], tyro.conf.arg(metavar="BOX ...")] = ()
    """Instead: the filled ones. Without either the card is empty."""
    basic: Annotated[int, tyro.conf.arg(metavar="POINTS")] = 0
    """Points in the Basic Section, without the bonus."""
    armed: tyro.conf.FlagCreatePairsOff[bool] = False
    """Five alike would be a second Kismet: under the standard rules, the Kismet box holds points."""
    total: Annotated[int | None, tyro.conf.arg(metavar="POINTS")] = None
    """Points on the whole card, bonus included."""
    against: Annotated[tuple[int, ...], tyro.conf.arg(metavar="TOTAL ...")] = ()
    """Play to win against players with these totals, in playing order; needs --total. They are taken to have the same
    boxes open and the same Basic total; --position knows better."""
    position: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Instead of all above: a position of any number of players, in the form of kismet_env.position."""
    rules: Rules = field(default_factory=Rules)
    count: int = 5
    """How many actions are named, at least 1."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print JSON."""


def main(config: Config) -> None:
    """Check, advise, print."""
    with refusing():
        if config.count < 1:
            raise ValueError(f"--count {config.count} is not at least 1")
        path = config.position
        cards, dice, rolls_left = _told_by_options(config) if path is None else _told_by_file(config, path)
    optimum = solve(config.rules, progress=True)
    with refusing():
        _check_card(optimum, cards)
        if config.total is not None:
            _check_total(cards, config.rules)
    if len(cards) > 1:
        prepare_matches(config.rules)
    with refusing():
        advice = advise(cards, config.rules, dice=dice, rolls_left=rolls_left, count=config.count)
    still = config.position is None and config.total is None
    if config.json:
        told: dict[str, Any] = {"dice": dice, "rolls_left": rolls_left, "scores": "to come" if still else "final"}
        print(json.dumps(told | {"actions": [each.to_dict() for each in advice]}))
        return
    console = Console()
    console.print(small_dice(dice), f" rolls left: {rolls_left}")
    console.print()
    console.print(advice_table(advice, still=still))
    if config.against:
        print(f"\n{_ASSUMED}")


def _told_by_file(config: Config, path: Path) -> tuple[npt.NDArray[np.int64], list[int], int]:
    """Return the cards, (P, 4) as in `win_chance`, the dice and the rolls left of a file; ValueError for others."""
    if config != Config(position=path, rules=config.rules, count=config.count, json=config.json):
        raise ValueError("--position says everything; only --rules, --count and --json can stand beside it")
    try:
        position = parsed(path.read_text("utf-8-sig"), "the position")
        cards = position.get("cards") if isinstance(position, dict) else None
        num_players = len(cards) if isinstance(cards, list) else 1
        if not 1 <= num_players <= MOST_PLAYERS:
            raise ValueError(f'"cards" are those of {num_players} players; it takes 1 to {MOST_PLAYERS}')
        if isinstance(cards, list) and position.get("dice") is None:
            raise ValueError('the position holds no "dice"; give the five that lie on the table')
        game = Game(names_of(num_players), config.rules, key=None, start=position)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    table = decode_table(game.look().observations, game.rules)[0]
    table[0, TOTAL] = game.totals[game.player]  # which the solitaire game does not show
    checked = game.position()
    return table, checked["dice"], checked["rolls_left"]


def _told_by_options(config: Config) -> tuple[npt.NDArray[np.int64], list[int], int]:
    """Return the same of the options; ValueError for what cannot be."""
    if config.dice is None or config.rolls_left is None:
        raise ValueError("--dice and --rolls-left are needed, for example --dice 22556 --rolls-left 1")
    dice = [int(face) for face in config.dice if face in "123456"]
    if len(dice) != len(config.dice) or len(dice) != len("22556"):
        raise ValueError(f"--dice {config.dice} are not five faces from 1 to 6, such as 22556")
    roll_index(dice)
    if config.rolls_left not in (0, 1, 2):
        raise ValueError(f"--rolls-left {config.rolls_left} is not 2, 1 or 0")
    if config.open and config.filled:
        raise ValueError("--open and --filled say the same; give one of them")
    filled = _boxes("--filled", config.filled)
    if config.open:
        filled = set(Box) - _boxes("--open", config.open)
    if len(filled) == NUM_BOXES:
        raise ValueError("--filled names every box; the game is over")
    if config.against and config.total is None:
        raise ValueError("--against needs --total, your own points")
    if len(config.against) >= MOST_PLAYERS:
        raise ValueError(
            f"--against {' '.join(map(str, config.against))}: there are at most {MOST_PLAYERS - 1} opponents"
        )
    for total in (config.total or 0, *config.against):
        if not 0 <= total <= max_total(config.rules):
            raise ValueError(f"a total of {total} cannot be; under these rules it is 0 to {max_total(config.rules)}")
    bits = sum(1 << box for box in filled)
    armed = config.armed or (config.rules.second_kismet == "filled" and Box.KISMET in filled)
    if config.total is not None and config.total < config.basic:
        raise ValueError(f"--total {config.total} is less than --basic {config.basic}")
    own = [bits, config.basic, int(armed), config.total or 0]
    others = [[bits, config.basic, 0, total] for total in config.against]
    return np.array([own, *others]), sorted(dice), config.rolls_left


def _boxes(option: str, names: Sequence[str]) -> set[Box]:
    """Return the boxes of these names; ValueError for another one, or one that is there twice."""
    boxes: set[Box] = set()
    for name in names:
        try:
            box = Box[name.upper().replace("-", "_")]
        except KeyError:
            raise ValueError(f"{option}: unknown box {name}; boxes are {', '.join(box.name for box in Box)}") from None
        if box in boxes:
            raise ValueError(f"{option}: {box.name} is there twice")
        boxes.add(box)
    return boxes


def _check_card(optimum: Optimum, cards: npt.NDArray[np.int64]) -> None:
    """Raise ValueError, with the reason, if no game leads to the card of the player to move."""
    bits, basic, armed, _ = cards[0].tolist()

    def exists(basic: int, armed: int) -> bool:
        try:
            optimum.card_value(bits, basic, armed)
        except ValueError:
            return False
        return True

    if exists(basic, armed):
        return
    possible = [total for total in range(MAX_BASIC_TOTAL + 1) if exists(total, 0) or exists(total, 1)]
    if basic not in possible:
        named = ", ".join(box.name for box in BASIC_BOXES if bits >> box & 1) or "no Basic box"
        near = sorted(sorted(possible, key=lambda total: abs(total - basic))[:2])
        raise ValueError(f"--basic {basic} cannot be with {named} filled; try {' or '.join(map(str, near))}")
    if armed:
        wanted = "a box is filled" if optimum.rules.second_kismet == "rolled" else "the Kismet box is filled"
        raise ValueError(f"--armed cannot be before {wanted}")
    raise ValueError("without --armed this card cannot be")


def _check_total(cards: npt.NDArray[np.int64], rules: Rules) -> None:
    """Raise ValueError, with the nearest ones, for a total that the card of the player to move cannot have.

    The card itself is possible. Others may have forced zeros into it.
    """
    bits, basic, armed, total = cards[0].tolist()
    complete = all(bits >> box & 1 for box in BASIC_BOXES)
    possible = {basic + (basic_bonus(basic, rules) if complete else 0)}
    for box in (box for box in KISMET_BOXES if bits >> box & 1):
        points = {0, *box_points(rules)[:, :, box].ravel().tolist()}
        if box is Box.KISMET and rules.second_kismet == "scored":
            points = {each for each in points if (each > 0) == bool(armed)}
        possible = {before + each for before in possible for each in points}
    if total not in possible:
        near = sorted(sorted(possible, key=lambda each: abs(each - total))[:2])
        hint = ""
        if bits >> Box.KISMET & 1 and not armed and rules.second_kismet == "scored":
            hint = ", or add --armed if the Kismet box holds points"
        raise ValueError(f"--total {total} cannot be with these boxes filled; try {' or '.join(map(str, near))}{hint}")
