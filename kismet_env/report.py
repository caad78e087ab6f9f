"""The analysis of a game as one HTML page: no outside resources, for light and dark, phone, desktop and paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from kismet_env.analysis import MISTAKE, NO_LOSS, Judged, Sums, costliest
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.record import Game
from kismet_env.render.palette import IVORY, PIP_OF_FACE, hex_of
from kismet_env.render.sheet import contents_of, name_of_rules, tiers_of, worth_of
from kismet_env.rules import BASIC_BOXES, KISMET_BOXES, Box

_WORST = 5  # decisions that are listed by themselves
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 320, 48, 10, 14, 32  # of the graph
_LINES = ("", "7 4", "2 3", "9 3 2 3", "5 5", "1 2")  # dashes: players differ without colour too
_MINUS = "\N{MINUS SIGN}"
_PIP_PLACES: list[list[tuple[float, float]]] = [
    [(10, 10)],
    [(5, 5), (15, 15)],
    [(5, 5), (10, 10), (15, 15)],
    [(5, 5), (5, 15), (15, 5), (15, 15)],
    [(5, 5), (5, 15), (10, 10), (15, 5), (15, 15)],
    [(5, 4.5), (5, 10), (5, 15.5), (15, 4.5), (15, 10), (15, 15.5)],
]

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf6; --card: #ffffff; --ink: #1e2326; --soft: #5c6468; --line: #e2dfd5;
  --accent: #1b5e4b; --bad: #b3261e; --good: #1c6b3c; --gold: #a86c00; --band: #f3f1e9;
  --p0: #1b5e4b; --p1: #b4471f; --p2: #3b55a5; --p3: #8a3a86; --p4: #7a6a00; --p5: #5b5f63; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181a; --card: #1c2224; --ink: #e9e7e0; --soft: #a3abad;
  --line: #333b3e; --accent: #7fd1b5; --bad: #ff9a8f; --good: #85d3a2; --gold: #f0c060; --band: #232a2d;
  --p0: #7fd1b5; --p1: #ffab87; --p2: #a9bcff; --p3: #e5a5e1; --p4: #ddcf70; --p5: #c4c8cb; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 1040px; margin: 0 auto; padding: 2.2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .3rem; }
p { margin: .3rem 0; max-width: 68ch; }
.soft, caption, figcaption { color: var(--soft); font-size: .9rem; }
.rules, h1, p, .legend, .worst, .sums tbody th, .turn th, .score thead th, .zero { overflow-wrap: anywhere; }
.sums tbody th { min-width: 5rem; } .score thead th.number { white-space: normal; min-width: 3.2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin-top: .8rem; }
caption { text-align: left; padding: 0 0 .3rem; caption-side: top; }
th, td { text-align: left; padding: .42rem .6rem; border-bottom: 1px solid var(--line); vertical-align: middle; }
thead th { color: var(--soft); font-size: .82rem; font-weight: 600; border-bottom: 2px solid var(--line); }
.number { text-align: right; white-space: nowrap; }
td.total, .score td.total { font-weight: 700; }
tbody th { font-weight: 600; }
figure { margin: 1rem 0 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: .8rem; }
.graph { display: block; width: 100%; height: auto; }
.graph text { fill: var(--soft); font-size: 12px; }
.graph .grid { stroke: var(--line); }
.graph .step { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.graph .mistake { stroke: var(--card); stroke-width: 1.5; fill: var(--bad); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: 0 0 .4rem; padding: 0; list-style: none;
  font-weight: 600; font-size: .92rem; }
.legend li { min-width: 0; } .legend svg { width: 30px; height: 10px; margin-right: .4rem; vertical-align: middle; }
.legend line { stroke-width: 2.5; }
.scroll { overflow-x: auto; }
.dice { display: inline-block; white-space: nowrap; line-height: 0; vertical-align: middle; }
.dice svg { width: 26px; height: 26px; margin-right: 3px; }
.dice svg.kept { outline: 2px solid var(--gold); outline-offset: 1px; border-radius: 5px; margin: 0 5px 0 2px; }
.moves td:first-child { white-space: nowrap; }
.turn th { background: var(--band); font-size: .9rem; padding: .5rem .6rem; }
.turn .soft { font-weight: 400; margin-left: .6rem; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); } .down { color: var(--bad); }
.instead { color: var(--soft); }
.zero { color: var(--gold); font-size: .9rem; }
.worst { padding-left: 1.4rem; } .worst li { margin: .45rem 0; }
a { color: var(--accent); }
.cards { display: flex; flex-wrap: wrap; gap: 0 2.5rem; } .cards .scroll { flex: 1 1 18rem; max-width: 100%; }
.worth { color: var(--soft); font-weight: 400; font-size: .82rem; margin-left: .5rem; }
@media (max-width: 640px) {
  main { padding: 1.3rem 1rem 3rem; } h1 { font-size: 1.4rem; }
  .graph text { font-size: 20px; } .graph .step { stroke-width: 3; } figure { padding: .8rem .5rem; }
  .moves thead { position: absolute; left: -9999px; }
  .moves, .moves caption, .moves tbody { display: block; }
  .moves tr { display: grid; grid-template-columns: repeat(3, 1fr); gap: .1rem .6rem; padding: .6rem 0;
    border-bottom: 1px solid var(--line); }
  .moves tr.turn { display: block; padding: 0; border: 0; } .moves .turn th { display: block; }
  .moves td, .moves tbody th { border: 0; padding: 0 .2rem; }
  .moves .wide { grid-column: 1 / -1; } .moves .did { font-weight: 600; }
  .moves td.number { text-align: left; } .moves td.number::before { content: attr(data-label) " "; color: var(--soft);
    font-weight: 400; font-size: .82rem; }
  .moves .better:empty { display: none; } .moves .instead::before { content: "better: "; font-size: .82rem; }
  .sums th, .sums td { padding: .4rem .3rem; font-size: .88rem; } .sums thead th { white-space: normal; }
}
@media print { :root { color-scheme: light; --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb;
  --accent: #1b5e4b; --bad: #b3261e; --good: #1c6b3c; --gold: #a86c00; --band: #eee; --p0: #1b5e4b; --p1: #b4471f;
  --p2: #3b55a5; --p3: #8a3a86; --p4: #7a6a00; --p5: #5b5f63; }
  body { font-size: 10.5pt; } .dice svg { width: 20px; height: 20px; }
  main { max-width: none; padding: 0; } tr, figure, li { break-inside: avoid; }
  h2 { break-after: avoid; } .turn { break-after: avoid; } thead { display: table-header-group; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def report(game: Game, judged: Sequence[Judged], sums: Sequence[Sums]) -> str:
    """Return the page about a `game` that was analysed (see `kismet_env.analysis.analyse`)."""
    *others, last = game.players
    title = f"Kismet: {', '.join(others)} and {last}" if others else f"Kismet: a game of {last}"
    body = "\n".join(
        [
            _head(game, title),
            _sums(game, sums),
            _graph(game, judged, sums),
            _worst(game, judged),
            _moves(game, judged),
            _cards(game),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{_symbols()}\n"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(game: Game, title: str) -> str:
    totals = ", ".join(f"{name} {total}" for name, total in zip(game.players, game.totals, strict=True))
    if len(game.players) == 1:
        totals = f"{game.totals[0]} points"
    state = "" if game.over else " The game is not finished."
    key = "dice of a real table" if game.key is None else f"key <code>{game.key:016x}</code>"
    about = f"{len(game.moves)} decisions, {key}, {escape(name_of_rules(game.rules))}."
    return (
        f"<header><h1>{escape(title)}</h1><p><strong>{escape(totals)}</strong>.{state} "
        f'<span class="soft">{about}</span></p></header>'
    )


def _sums(game: Game, sums: Sequence[Sums]) -> str:
    forced = any(each.zeros for each in sums)
    headings = ["start", "luck", "regret", *["forced zeros"] * forced, "score" if game.over else "expected"]
    rows = []
    for name, each in zip(game.players, sums, strict=True):
        cells = [f"{each.start:.1f}", _signed(each.luck), f'<span class="bad">{_lost(each.regret)}</span>']
        if forced:
            cells.append(_signed(-each.zeros))
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th>{numbers}<td class="number total">{each.expected:.1f}</td></tr>'
        )
    head = "".join(f'<th scope="col" class="number">{heading}</th>' for heading in headings)
    explained = (
        "Start is the mean of perfect play; luck is what the dice brought beyond what was to be expected; regret is "
        "what decisions gave away. "
    )
    if forced:
        explained += "Forced zeros are what the second Kismets of others cost. "
    explained += "Together they are the score." if game.over else "Together they are what is expected now."
    return (
        f'<section><h2>Where the points come from</h2><p class="soft">{explained}</p><div class="scroll">'
        f'<table class="sums"><thead><tr><th scope="col">player</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div></section>"
    )


def _signed(points: float) -> str:
    """Return points that were won or lost."""
    shown = f"{points:+.1f}"
    if shown in ("+0.0", "-0.0"):
        return "0.0"
    kind = "good" if points > 0 else "down"
    return f'<span class="{kind}">{shown.replace("-", _MINUS)}</span>'


def _lost(points: float) -> str:
    return f"{_MINUS}{points:.1f}" if f"{points:.1f}" != "0.0" else "0.0"


def _graph(game: Game, judged: Sequence[Judged], sums: Sequence[Sums]) -> str:
    """Return the expected final score of every player, decision by decision, with the mistakes."""
    if not judged:
        return ""
    values = [each.start for each in sums] + [each.expected for each in sums]
    values += [one.outlook.value for one in judged] + [one.verdict.value for one in judged]
    step = next((step for step in (20, 50) if max(values) - min(values) <= 8 * step), 100)
    low, high = int(step * (min(values) // step)), int(step * (max(values) // step + 1))
    across = (_WIDTH - _LEFT - _RIGHT) / len(judged)
    down = (_HEIGHT - _TOP - _BOTTOM) / (high - low)

    def place(number: float, value: float) -> str:
        return f"{_LEFT + across * number:.1f} {_TOP + down * (high - value):.1f}"

    parts = []
    for value in range(low, high + 1, step):
        y = f"{_TOP + down * (high - value):.1f}"
        parts.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y}" dy=".35em" text-anchor="end">{value}</text>')
    seen = 0
    for number, one in enumerate(judged):
        turn = len(one.move.before["cards"][one.move.player]) + 1
        if one.move.player == 0 and turn > seen:
            seen = turn
            if turn % 2 == 0:
                continue
            x = _LEFT + across * number
            parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
            parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 8}">{"turn " if turn == 1 else ""}{turn}</text>')
    legend = []
    for seat, each in enumerate(sums):
        path, marks = [f"M{place(0, each.start)}"], []
        for number, one in enumerate(judged):
            if one.move.player == seat:
                path.append(f"H{_LEFT + across * number:.1f}")  # nothing changes until it is one's turn again
                path += [f"L{place(number, one.outlook.value)}", f"L{place(number + 1, one.verdict.value)}"]
                if one.verdict.regret >= MISTAKE:
                    center_x, center_y = place(number + 1, one.verdict.value).split()
                    size = min(10.0, 3 + one.verdict.regret**0.5)
                    said = f"{one.move.said}: {one.verdict.regret:.1f} less than {one.outlook.choices[0].text}"
                    circle = f'<circle class="mistake" cx="{center_x}" cy="{center_y}" r="{size:.1f}">'
                    marks.append(f'<a href="#d{number + 1}">{circle}<title>{escape(said)}</title></circle></a>')
        path += [f"H{_WIDTH - _RIGHT}", f"L{place(len(judged), each.expected)}"]
        dashes = f' stroke-dasharray="{_LINES[seat]}"' if _LINES[seat] else ""
        parts.append(f'<path class="step" stroke="var(--p{seat})"{dashes} d="{"".join(path)}"/>')
        parts += marks
        line = f'<line x1="0" y1="5" x2="30" y2="5" stroke="var(--p{seat})"{dashes}/>'
        sample = f'<svg viewBox="0 0 30 10" aria-hidden="true">{line}</svg>'
        legend.append(f'<li style="color:var(--p{seat})">{sample}{escape(game.players[seat])}</li>')
    summary = "; ".join(
        f"{name} from {each.start:.0f} to {each.expected:.0f}" for name, each in zip(game.players, sums, strict=True)
    )
    return (
        f'<section><h2>Expected final score</h2><figure><ul class="legend">{"".join(legend)}</ul>'
        f'<svg class="graph" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Expected final score, '
        f'decision by decision: {escape(summary)}">{"".join(parts)}</svg><figcaption>What each player '
        f"can expect by perfect play from there on. Dots are decisions that cost {MISTAKE:.0f} point or more, larger "
        "ones more; they lead to the decision.</figcaption></figure></section>"
    )


def _worst(game: Game, judged: Sequence[Judged]) -> str:
    """Return the decisions that cost most."""
    costly = costliest(judged, _WORST)
    if not costly:
        return (
            "<section><h2>The costliest decisions</h2><p>No decision cost as much as "
            f"{MISTAKE:.0f} point.</p></section>"
        )
    items = []
    for number, one in costly:
        who = f"{escape(game.players[one.move.player])}, " if len(game.players) > 1 else ""
        turn = len(one.move.before["cards"][one.move.player]) + 1
        items.append(
            f'<li><a href="#d{number}">{who}turn {turn}</a>: <strong>{escape(one.move.said)}</strong> with '
            f'{_dice(one.move.before["dice"])} cost <span class="bad">{one.verdict.regret:.1f}</span> points; best was '
            f"<strong>{escape(one.outlook.choices[0].text)}</strong>.</li>"
        )
    return f'<section><h2>The costliest decisions</h2><ol class="worst">{"".join(items)}</ol></section>'


def _moves(game: Game, judged: Sequence[Judged]) -> str:
    """Return every decision, a row each, under the turn that it belongs to."""
    rows, turn_before = [], (-1, -1)
    for number, one in enumerate(judged, 1):
        move = one.move
        card = move.before["cards"][move.player]
        if (move.player, len(card)) != turn_before:
            turn_before = (move.player, len(card))
            who = f"{escape(game.players[move.player])} · " if len(game.players) > 1 else ""
            total = contents_of(move.before, game.rules).columns[move.player].total
            rows.append(
                f'<tr class="turn"><th colspan="6" scope="rowgroup">{who}Turn {len(card) + 1}'
                f'<span class="soft">{total} points so far</span></th></tr>'
            )
        rows.append(_row(number, one, game.players))
    head = "".join(
        f'<th scope="col"{" class=number" * is_number}>{name}</th>'
        for name, is_number in (
            ("dice", False),
            ("decision", False),
            ("expected", True),
            ("luck", True),
            ("regret", True),
            ("better", False),
        )
    )
    return (
        '<section><h2>Every decision</h2><table class="moves"><caption>Expected: final score by perfect play with '
        "these dice. Luck: what these dice are worth beyond what was to be expected. Framed dice are kept.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"
    )


def _row(number: int, one: Judged, players: Sequence[str]) -> str:
    """Return one decision; on a narrow screen its cells stand below one another, each with its label."""
    move, outlook, verdict = one
    numbers = (
        ("expected", f"{outlook.value:.1f}"),
        ("luck", _signed(outlook.luck)),
        ("regret", _regret(verdict.regret)),
    )
    cells = "".join(f'<td class="number" data-label="{label}">{value}</td>' for label, value in numbers)
    better = "" if verdict.regret < NO_LOSS else f'<span class="instead">{escape(outlook.choices[0].text)}</span>'
    boxes = dict(move.forced_zeros)
    for seat, loss in verdict.zeros:
        told = f"{escape(players[seat])}: 0 in {boxes[seat].title}, {_signed(-loss)}"
        better += f'<div class="zero">{told}</div>'
    roll = ROLLS_PER_TURN - move.before["rolls_left"]
    return (
        f'<tr id="d{number}"><td class="wide">{_dice(move.before["dice"], move.kept or ())}'
        f'<span class="soft"> roll {roll}</span></td>'
        f'<th scope="row" class="wide did">{escape(move.said)}</th>{cells}<td class="wide better">{better}</td></tr>'
    )


def _regret(points: float) -> str:
    if points < NO_LOSS:
        return "best"
    return f'<span class="bad">{points:.2f}</span>' if points >= MISTAKE else f"{points:.2f}"


def _dice(dice: Sequence[int], kept: Sequence[int] = ()) -> str:
    """Return dice drawn in their true colours, those that are kept in a frame."""
    left, parts = list(kept), []
    for face in dice:
        is_kept = face in left
        if is_kept:
            left.remove(face)
        kind = " class=kept" * is_kept
        parts.append(f'<svg viewBox="0 0 20 20"{kind} aria-hidden="true"><use href="#die{face}"/></svg>')
    label = " ".join(map(str, dice)) + (f", kept {' '.join(map(str, kept))}" if kept else "")
    return f'<span class="dice" role="img" aria-label="dice {label}">{"".join(parts)}</span>'


def _symbols() -> str:
    """Return the six faces of a die, to be used wherever one is drawn."""
    symbols = []
    for face, places in enumerate(_PIP_PLACES, 1):
        fill = hex_of(PIP_OF_FACE[face - 1])
        pips = "".join(f'<circle cx="{x}" cy="{y}" r="2.1" fill="{fill}"/>' for x, y in places)
        symbols.append(
            f'<symbol id="die{face}" viewBox="0 0 20 20"><rect x=".5" y=".5" width="19" height="19" rx="4" '
            f'fill="{hex_of(IVORY)}" stroke="#b9b3a0"/>{pips}</symbol>'
        )
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{"".join(symbols)}</svg>'


def _cards(game: Game) -> str:
    """Return the score cards at the end, a table for each section."""
    columns = contents_of(game.position(), game.rules).columns
    head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in game.players)

    def row(title: str, worth: str, values: list[Any], total: bool = False) -> str:
        kind = "number total" if total else "number"
        cells = "".join(f'<td class="{kind}">{value}</td>' for value in values)
        hint = f'<span class="worth">{escape(worth)}</span>' if worth else ""
        return f'<tr><th scope="row">{escape(title)}{hint}</th>{cells}</tr>'

    def section(title: str, boxes: Sequence[Box], sums: list[str]) -> str:
        rows = [
            row(box.title, worth_of(box, game.rules), [column.card.get(box, "") for column in columns]) for box in boxes
        ]
        return (
            f'<div class="scroll"><table class="score"><thead><tr><th scope="col">{title}</th>{head}</tr></thead>'
            f"<tbody>{''.join(rows + sums)}</tbody></table></div>"
        )

    bonuses = ["" if column.bonus is None else column.bonus for column in columns]
    basic = [
        row("Basic total", "", [column.basic_total for column in columns], True),
        row("Bonus", tiers_of(game.rules), bonuses, True),
    ]
    kismet = [
        row("Kismet total", "", [column.kismet_total for column in columns], True),
        row("Game total", "", [column.total for column in columns], True),
    ]
    cards = section("Basic Section", BASIC_BOXES, basic) + section("Kismet Section", KISMET_BOXES, kismet)
    return f'<section><h2>Score card{"s" * (len(columns) > 1)}</h2><div class="cards">{cards}</div></section>'
