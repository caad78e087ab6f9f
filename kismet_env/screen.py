"""A game in a terminal: dice with coloured pips, cards, and what decisions are worth, drawn with rich."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from kismet_env.advice import Advised
from kismet_env.analysis import MISTAKE, NO_LOSS, Judged, Outlook, Sums, Verdict
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.record import Move
from kismet_env.render.palette import GOLD, IVORY, PIP_OF_FACE, hex_of
from kismet_env.render.sheet import contents_of
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, NUM_BOXES, Box, Rules

_PIPS = [hex_of(color) for color in PIP_OF_FACE]
_IVORY, _GOLD = hex_of(IVORY), hex_of(GOLD)
_FACES = {1: "   / ● /   ", 2: "●  /   /  ●", 3: "●  / ● /  ●", 4: "● ●/   /● ●", 5: "● ●/ ● /● ●", 6: "● ●/● ●/● ●"}
_LEFT = 43  # columns beside the card: five dice; with one player all fits into 80
_SHOWN = 3  # of the best actions
_SHOWN_PAST = 5  # actions


def game_screen(
    position: Mapping[str, Any],
    rules: Rules,
    players: Sequence[str],
    *,
    kept: Sequence[int] = (),
    outlook: Outlook | None = None,
    move: Move | None = None,
    verdict: Verdict | None = None,
    past: Sequence[Text] = (),
    hint: str = "",
) -> RenderableType:
    """Return a game as it stands: dice, what the decision is worth, the action, the past, and the cards beside.

    Args:
        position: what lies on the table (see `kismet_env.position`).
        rules: those of the game.
        players: their names.
        kept: the dice that were kept before the last roll.
        outlook: what is decided about; None after the end.
        move: the action taken, if one is taken already.
        verdict: what it meant.
        past: what has happened, a line each; the last ones are shown.
        hint: what the user may do.
    """
    contents = contents_of(position, rules)
    parts: list[RenderableType] = []
    if contents.mover is None or outlook is None:
        parts.append(Text("The game is over.", "bold"))
    else:
        turn = len(contents.columns[contents.mover].card) + 1
        roll = ROLLS_PER_TURN - position["rolls_left"]
        who = f"{players[contents.mover]} · " if len(players) > 1 else ""
        parts.append(Text(f"{who}turn {turn} of {NUM_BOXES} · roll {roll} of {ROLLS_PER_TURN}", "bold"))
        marked = places_of(kept, position["dice"])
        parts += [Text(), dice_lines(position["dice"], marked), _expectation(outlook), _choices(outlook, move, verdict)]
    if past:
        parts += [Text("before", "dim"), *past[-_SHOWN_PAST:]]
    grid = Table.grid(padding=(0, 0, 0, 1))
    grid.add_column(width=_LEFT)
    grid.add_column()
    grid.add_row(Group(*parts), card_table(position, rules, players))
    return Panel(grid, title="[bold]Kismet", subtitle=hint or None, border_style="dim", padding=(0, 1), expand=False)


def places_of(kept: Sequence[int], dice: Sequence[int]) -> tuple[int, ...]:
    """Return where among `dice` the faces `kept` lie, from the left."""
    left, places = list(kept), []
    for place, face in enumerate(dice):
        if face in left:
            left.remove(face)
            places.append(place)
    return tuple(places)


def dice_lines(
    dice: Sequence[int], marked: Collection[int] = (), *, mark: str = "kept", numbered: bool = False
) -> Text:
    """Return dice as three lines of pips, and a line with a `mark` below those at the places `marked`.

    `numbered`: the others have their numbers there, from 1. All that belongs to a die has its place as "die" in the
    meta data of the style, for whoever follows a mouse.
    """
    text = Text()
    for row in range(3):
        for place, face in enumerate(dice):
            pips = " ".join(_FACES[face].split("/")[row])
            text.append(f" {pips} ", Style.parse(f"{_PIPS[face - 1]} on {_IVORY}") + _about(die=place))
            text.append("  ")
        text.right_crop(2)
        text.append("\n")
    for place in range(len(dice)):
        label, style = (mark, _GOLD) if place in marked else (str(place + 1) if numbered else "", "dim")
        text.append(f"{label:^7}", Style.parse(style) + _about(die=place))
        text.append("  ")
    text.right_crop(2)
    return text


def _about(**what: int) -> Style:
    """Return a style that shows nothing and says what is drawn in it."""
    return Style(meta=what)


def small_dice(dice: Sequence[int]) -> Text:
    """Return dice as coloured figures."""
    text = Text()
    for face in dice:
        text.append(f" {face} ", f"bold {_PIPS[face - 1]} on {_IVORY}")
        text.append(" ")
    return text


def _expectation(outlook: Outlook) -> Text:
    return Text.assemble(
        ("expected score ", "dim"), (f"{outlook.value:.1f}", "bold"), ("   luck ", "dim"), _signed(outlook.luck)
    )


def _signed(luck: float) -> tuple[str, str]:
    return f"{luck:+.1f}", "green" if luck > 0 else "red"


def _choices(outlook: Outlook, move: Move | None, verdict: Verdict | None) -> Table:
    """Return the best actions and, below them, one that was taken and is none of these."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=True, header_style="dim")
    table.add_column(" ", width=1)
    table.add_column("best actions", width=24, no_wrap=True)
    table.add_column("points", justify="right")
    table.add_column("loss", justify="right")
    shown = outlook.choices[:_SHOWN]
    for choice in shown:
        taken = move is not None and move.action == choice.action
        loss = f"{choice.loss:.2f}" if choice.loss >= NO_LOSS else "best"
        table.add_row("▸" if taken else " ", choice.text, f"{choice.value:.1f}", loss, style="bold" if taken else "")
    while table.row_count < _SHOWN:
        table.add_row()
    if move is not None and verdict is not None and all(move.action != choice.action for choice in shown):
        best = outlook.choices[0].value
        style = "bold red" if verdict.regret >= MISTAKE else "bold"
        table.add_row("▸", move.text, f"{best - verdict.regret:.1f}", f"{verdict.regret:.2f}", style=style)
    else:
        table.add_row()
    return table


def line_of(judged: Judged, players: Sequence[str]) -> Text:
    """Return what happened in a line."""
    move, outlook, verdict = judged
    name = f"{players[move.player]:12.12} " if len(players) > 1 else ""
    turn = len(move.before["cards"][move.player]) + 1
    text = Text.assemble((f"{turn:2} ", "dim"), name, small_dice(move.before["dice"]), " ", f"{move.said:26} ")
    text.append(*_signed(outlook.luck))
    if verdict.regret >= NO_LOSS:
        style = "bold red" if verdict.regret >= MISTAKE else ""
        text.append(f"  -{verdict.regret:.1f}: {outlook.choices[0].text}", style)
    for seat, loss in verdict.zeros:
        (forced,) = [filled for victim, filled in move.forced_zeros if victim == seat]
        text.append(f"  {players[seat]}: 0 in {forced.title}, {-loss:+.1f}", "yellow")
    return text


def short_line_of(judged: Judged, players: Sequence[str]) -> Text:
    """Return what happened in a line of 43 columns."""
    move, _, verdict = judged
    name = f"{players[move.player]:8.8} " if len(players) > 1 else ""
    text = Text.assemble((f"{name + move.said:36.36}", "dim"))
    if verdict.regret >= NO_LOSS:
        text.append(f" -{verdict.regret:.1f}", "red" if verdict.regret >= MISTAKE else "dim")
    return text


def card_table(
    position: Mapping[str, Any], rules: Rules, players: Sequence[str], *, chosen: Box | None = None
) -> Table:
    """Return the cards, a column a player; in brackets what the dice would bring to the player to move.

    The row of the box that is `chosen` stands out. Rows of boxes have the number of the box as "box" in the meta data
    of their style, for whoever follows a mouse.
    """
    contents = contents_of(position, rules)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("Basic Section", style="dim")  # what gives way where all does not fit
    for seat, name in enumerate(players):
        mark = "bold " + _GOLD if seat == contents.mover else "default"
        heading = "points" if len(players) == 1 else f"{name:.4}"
        table.add_column(Text(heading, mark), justify="right", no_wrap=True)

    def entry(seat: int, filled: Box) -> Text:
        card = contents.columns[seat].card
        if filled in card:
            return Text(str(card[filled]), "bold")
        if seat != contents.mover:
            return Text()
        points = contents.offers[filled]
        if filled == chosen:
            return Text(f"▸ {points}", f"bold {_GOLD}")
        return Text(f"({points})", _GOLD if points else "dim")

    def add(title: str | Text, values: Sequence[object], **options: Any) -> None:
        label = Text(title) if isinstance(title, str) else title
        label.no_wrap, label.overflow = True, "ellipsis"
        table.add_row(
            label,
            *(value if isinstance(value, Text) else Text(str(value)) for value in values),
            **options,
        )

    columns = contents.columns

    def add_box(each: Box, **options: Any) -> None:
        title = Text(each.title, f"bold not dim {_GOLD}" if each == chosen else "")
        add(title, [entry(seat, each) for seat in range(len(columns))], style=_about(box=int(each)), **options)

    for each in BASIC_BOXES:
        add_box(each)
    add("Bonus", ["" if column.bonus is None else column.bonus for column in columns], end_section=True)
    for each in KISMET_BOXES:
        add_box(each, end_section=each is KISMET_BOXES[-1])
    add("Game total", [Text(str(column.total), "bold") for column in columns])
    return table


def advice_table(advice: Sequence[Advised], *, still: bool = False) -> Table:
    """Return the best actions with what they are worth; `still`: in points to come, and not as final scores."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("best actions", no_wrap=True)
    table.add_column("to come" if still else "score", justify="right")
    table.add_column("loss", justify="right")
    to_win = advice[0].win is not None
    if to_win:
        table.add_column("win", justify="right")
    for place, each in enumerate(advice):
        loss = f"{each.loss:.2f}" if each.loss >= NO_LOSS else "-"
        win = [] if each.win is None else [f"{each.win:.1%}"]
        table.add_row(each.text, f"{each.score:.1f}", loss, *win, style="bold" if place == 0 else "")
    return table


def sums_table(sums: Sequence[Sums], players: Sequence[str], *, over: bool) -> Table:
    """Return where the scores come from or, in a game that is not `over`, what is expected of them."""
    forced = any(each.zeros for each in sums)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("player")
    for heading in ("start", "luck", "regret", *["forced zeros"] * forced, "score" if over else "expected"):
        table.add_column(heading, justify="right")
    for name, each in zip(players, sums, strict=True):
        zeros = [f"{0.0 - round(each.zeros, 1):.1f}"] * forced
        table.add_row(
            name,
            f"{each.start:.1f}",
            f"{each.luck:+.1f}",
            f"{0.0 - round(each.regret, 1):.1f}",
            *zeros,
            f"{each.expected:.1f}",
        )
    return table
