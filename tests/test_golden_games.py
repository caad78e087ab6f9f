"""Whole games as readable text: the environment and the reference both tell them exactly as they are written.

Each file of `golden` says in its first line what it is about and in its second which game it is. A changed file is to
be read turn by turn, never just written anew.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference import BASIC, BOXES, STANDARD
from reference_game import Game, key_of

from kismet_env import Box, kismet_v0
from kismet_env.actions import actions_of
from kismet_env.dice import roll_index

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
TITLES = {box.name: box.title for box in Box}
BOX_OF = {title: box for box, title in TITLES.items()}
Card = dict[str, int]


class InTheEnvironment:
    """A game of `kismet_v0`."""

    def __init__(self, num_players: int, seed: int, rules: dict[str, Any]) -> None:
        reward = "points"
        self._env = kismet_v0.env(num_players, reward=reward, rules=rules, illegal_action="raise")
        self._env.reset(seed=seed)

    @property
    def over(self) -> bool:
        return any(self._env.terminations.values())

    @property
    def seat(self) -> int:
        return int(self._env.agent_selection.removeprefix("player_"))

    @property
    def dice(self) -> tuple[int, ...]:
        return tuple(self._env.unwrapped.position()["dice"])

    @property
    def cards(self) -> list[Card]:
        return [dict(card) for card in self._env.unwrapped.position()["cards"]]

    @property
    def totals(self) -> list[int]:
        return [info["total"] for info in self._env.infos.values()]

    def play(self, words: str) -> None:
        actions, roll = actions_of("keeps"), roll_index(self.dice)
        legal = self._env.last()[0]["action_mask"].nonzero()[0].tolist()
        (action,) = [action for action in legal if actions.text(action, roll) == words]
        self._env.step(action)


class InTheReference(Game):
    """The same game in the second implementation."""

    def __init__(self, num_players: int, seed: int, rules: dict[str, Any]) -> None:
        super().__init__(num_players, {**STANDARD, **rules}, key_of(seed))

    def play(self, words: str) -> None:
        kind, _, what = words.partition(" ")
        if kind == "fill":
            assert BOX_OF[what] in self.boxes()
            self.fill(BOX_OF[what])
        else:
            kept = tuple(map(int, what.split("-"))) if kind == "keep" else ()
            assert kept in self.keeps()
            self.keep(kept)


def told(game: Any, script: Iterator[str]) -> Iterator[str]:
    """Yield a line for each turn and for each forced zero, and at the end one for each player."""
    while not game.over:
        seat, before, parts = game.seat, [dict(card) for card in game.cards], []
        words = ""
        while not words.startswith("fill"):
            words = next(script)
            parts += ["-".join(map(str, game.dice)), words]
            game.play(words)
        new = [{b: p for b, p in card.items() if b not in old} for card, old in zip(game.cards, before, strict=True)]
        yield "  ".join([f"player_{seat}", *parts, str(new[seat][BOX_OF[words.removeprefix("fill ")]])])
        for other, entries in enumerate(new):
            if other != seat:
                yield from (f"          player_{other} has to enter {p} in {TITLES[b]}" for b, p in entries.items())
    yield ""
    for seat, (card, total) in enumerate(zip(game.cards, game.totals, strict=True)):
        basic = sum(card[box] for box in BASIC)
        yield f"player_{seat}  Basic total {basic}, bonus {total - sum(card.values())}, total {total}"


def test_the_games_are_there() -> None:
    names = {path.stem for path in GOLDEN}
    assert {"three_players_two_second_kismets", *(f"basic_total_{n}" for n in (62, 63, 70, 71, 77, 78))} <= names
    assert list(BOXES) == list(TITLES)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("teller", [InTheEnvironment, InTheReference])
def test_golden_game(path: Path, teller: Any) -> None:
    title, header, _, *lines = path.read_text().splitlines()
    assert title.endswith(".")
    script = [
        words
        for line in lines
        for words in re.split("  +", line)
        if words.startswith(("keep ", "fill ")) or words == "roll all dice"
    ]
    assert list(told(teller(**json.loads(header)), iter(script))) == lines
