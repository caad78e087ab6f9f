"""Golden games: the files in `golden/` tell games roll by roll, and playing their actions must tell them again.

A game begins with its rules, its seed and perhaps a position; each line after that is a roll and what was done with
it, and each entry shows the cards it changed: points, the boxes of both sections, the bonus once there is one, and the
total. When a file no longer fits, read the difference as you would read code; if it is meant, `python
tests/test_golden.py` tells the games anew. A new game is a head and the actions; the dice may be left to that command.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kismet_env.batch import Batch
from kismet_env.dice import ROLL_DICE
from kismet_env.rules import NUM_BASIC_BOXES

FILES = sorted((Path(__file__).parent / "golden").glob("*.txt"))
BETWEEN_GAMES = "\n----\n"
MOVE = re.compile(r"^player \d, roll \d: [\d-]*, (?P<action>.+)$", re.MULTILINE)
HEAD = re.compile(r"(?P<comment>(?:# .*\n)+)rules (?P<rules>.+)\nseed (?P<seed>\d+)\nposition (?P<position>.+)\n")


def card_line(batch: Batch, seat: int, points: float) -> str:
    """Return the points that an entry brought a player and his card after it."""
    card = batch.state.cards[0, seat]
    entries = [str(entry) if entry >= 0 else "." for entry in card["points"]]
    basic, kismet = " ".join(entries[:NUM_BASIC_BOXES]), " ".join(entries[NUM_BASIC_BOXES:])
    bonus = int(card["total"]) - sum(entry for entry in card["points"].tolist() if entry >= 0)
    return f"  player {seat} +{points:.0f}: {basic} | {kismet}{f' + {bonus}' if bonus else ''} = {card['total']}"


def told(game: str) -> Iterator[str]:
    """Play the actions of a game as it is written and yield its lines as they should be."""
    head = HEAD.match(game)
    assert head, f"a game begins with a comment, rules, seed and position, not with {game[:200]}"
    yield head[0].rstrip("\n")
    position = json.loads(head["position"])
    batch = Batch(1, len(position["cards"]), rules=json.loads(head["rules"]), illegal_action="raise")
    batch.seed([int(head["seed"])])
    out = batch.deal_positions([position])
    for move in MOVE.finditer(game):
        state, before = batch.state.games[0], batch.state.cards["filled"][0].copy()
        roll, player = int(state["roll"]), int(state["player"])
        legal = {batch.actions.text(int(action), roll): int(action) for action in np.flatnonzero(out.masks[0])}
        assert move["action"] in legal, f"{move[0]} with {ROLL_DICE[roll]}; legal: {', '.join(legal)}"
        dice = "-".join(map(str, ROLL_DICE[roll]))
        yield f"player {player}, roll {3 - state['rolls_left']}: {dice}, {move['action']}"
        out = batch.step([legal[move["action"]]])
        for seat in np.flatnonzero(batch.state.cards["filled"][0] != before):
            yield card_line(batch, int(seat), out.rewards[0, seat])
    if batch.state.games["over"][0]:
        yield f"game over: {', '.join(map(str, batch.state.cards['total'][0]))}"


def tell(text: str) -> str:
    return BETWEEN_GAMES.join("\n".join(told(game)) for game in text.rstrip("\n").split(BETWEEN_GAMES)) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_game(path: Path) -> None:
    text = path.read_text()
    assert tell(text).splitlines() == text.splitlines()


def test_there_are_golden_games() -> None:
    assert len(FILES) >= 3


if __name__ == "__main__":
    for path in FILES:
        path.write_text(tell(path.read_text()))
