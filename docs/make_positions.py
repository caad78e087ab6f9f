"""Finds positions where to play to win is not to play for points: python docs/make_positions.py, or with --games.

The player `selfplay` plays against itself. In every decision the action with the most points to expect, that of
`optimal`, is held against its best: what that would lose of the chance to win is the position's loss. Of each kind, and
of each number of open boxes, the position with the greatest loss is drawn, one a game at most; the pictures go to
images/, the words into two-players.md between their marks.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.bots.pair_value import PairPlayer, pairs_of
from kismet_env.command_line import run, write_whole
from kismet_env.dice import roll_index, roll_indices
from kismet_env.evaluation import EVALUATION_DICE, game_keys
from kismet_env.leaderboard import with_table
from kismet_env.observation import decode
from kismet_env.position import position_of
from kismet_env.render.picture import picture
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.solver import solve
from kismet_env.tables import tables_of
from kismet_env.turn import action_values
from kismet_env.win_chance import SCALE

_FOLDER = Path(__file__).parent
_KINDS = ("Protecting a lead", "Chasing", "The threat of a second Kismet")
_LEAD, _CHASE, _SECOND_KISMET = range(3)
_OPEN = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 9), (10, 15))
"""Numbers of open boxes of him who moves, first and last: a position is chosen for each, of each kind."""
_KEEPS = actions_of("keeps")
_SEED = 4093


@dataclass(frozen=True)
class Config:
    """Find positions where to play to win is not to play for points."""

    games: int = 1000
    """How many games are looked through."""


@dataclass(frozen=True)
class Found:
    """A position and what to do in it."""

    loss: float  # of the chance to win by the action with the most points
    of_zero: float  # the part of the loss that is there because a second Kismet of this turn would write a zero
    game: int
    open_boxes: int  # of him who moves
    position: dict[str, Any]
    chance: float  # to win
    to_win: int
    for_points: int
    points: float  # that the action to win expects less

    @property
    def kind(self) -> int:
        """Where it belongs."""
        if self.of_zero > self.loss / 2:
            return _SECOND_KISMET
        return _LEAD if self.chance > 0.5 else _CHASE


def main(config: Config) -> None:
    """Play, choose, draw, write."""
    found = sorted(_played(config.games), key=lambda each: -each.loss)
    chosen, games = [], set()
    for kind in (_SECOND_KISMET, _LEAD, _CHASE):  # the rarest first
        for first, last in _OPEN:
            for each in found:
                if each.kind == kind and first <= each.open_boxes <= last and each.game not in games:
                    chosen.append((kind, each))
                    games.add(each.game)
                    break
    chosen.sort(key=lambda both: (both[0], both[1].open_boxes))
    words, kinds = [], set()
    for number, (kind, each) in enumerate(chosen, 1):
        if kind not in kinds:
            words.append(f"\n### {_KINDS[kind]}\n\n| | |\n|---|---|\n")
            kinds.add(kind)
        name = f"win_{number:02}.png"
        names = ["they", "they"]
        names[each.position["player"]] = "you"
        image = Image.fromarray(picture(each.position, Rules(), names=names))
        content = io.BytesIO()
        image.quantize(128, kmeans=2, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
        write_whole(_FOLDER / "images" / name, content.getvalue())
        words.append(f"| ![Position {number}](images/{name}) | {_told(number, each)} |\n")
    page = _FOLDER / "two-players.md"
    write_whole(page, with_table(page.read_text(), "".join(words) + "\n", "positions"))
    size = sum((_FOLDER / "images" / f"win_{number:02}.png").stat().st_size for number in range(1, 1 + len(chosen)))
    print(f"{len(chosen)} positions of {len(found)} with a loss, {size // 1000} kB")


def _told(number: int, found: Found) -> str:
    """Return the position in words."""
    roll = roll_index(found.position["dice"])
    dice, left = "-".join(map(str, found.position["dice"])), found.position["rolls_left"]
    rolls = "no roll left" if left == 0 else f"{left} roll{'s' if left > 1 else ''} left"
    boxes = f"{found.open_boxes} open box{'es' if found.open_boxes > 1 else ''}"
    return (
        f"**{number}.** {boxes}, {dice}, {rolls}. To win: **{_KEEPS.text(found.to_win, roll)}**, {found.chance:.1%}. "
        f"For points: {_KEEPS.text(found.for_points, roll)}, {found.chance - found.loss:.1%} and {found.points:.1f} "
        f"points more. Lost: {found.loss:.1%}"
    )


def _played(games: int) -> list[Found]:
    """Return all positions of so many games in which the most points are not the best chance."""
    player, optimal, found = make("selfplay"), make("optimal"), []
    assert isinstance(player, PairPlayer)
    careless = make("selfplay")  # about the zero that a second Kismet of the turn writes
    assert isinstance(careless, PairPlayer)
    careless.tables = tables_of(Rules(second_kismet_penalty=False))
    batch, optimum = Batch(games, 2), solve()
    step, going_on = batch.deal_keys(game_keys(EVALUATION_DICE, _SEED, range(games))), batch.all_rows
    while going_on.size:
        seen, decision = step.observations, decode(step.observations)
        pairs = pairs_of(seen, Rules())
        rolls, rows = roll_indices(decision.dice), np.arange(len(pairs))
        chances, others = (
            action_values(each.tables, pairs, rolls, decision.rolls_left, each.write_worths) / SCALE
            for each in (player, careless)
        )
        actions, for_points = player.act(seen, step.masks), optimal.act(seen, step.masks)
        losses = chances[rows, actions] - chances[rows, for_points]
        of_zero = losses - (others[rows, actions] - others[rows, for_points])
        for at in np.flatnonzero(losses > 1e-3):
            filled, basic_total, armed, dice, left = decision.at(at)
            points = optimum.action_values(filled, basic_total, armed, dice, left)
            found.append(
                Found(
                    loss=float(losses[at]),
                    of_zero=float(of_zero[at]),
                    game=int(going_on[at]),
                    open_boxes=NUM_BOXES - int(filled).bit_count(),
                    position=position_of(batch.state, int(going_on[at])),
                    chance=float(chances[at, actions[at]]),
                    to_win=int(actions[at]),
                    for_points=int(for_points[at]),
                    points=float(points[for_points[at]] - points[actions[at]]),
                )
            )
        step = batch.step(actions, only=going_on)
        goes_on = ~step.terminated
        step = step._replace(observations=step.observations[goes_on], masks=step.masks[goes_on])
        going_on = going_on[goes_on]
    return found


if __name__ == "__main__":
    sys.exit(run(main, Config))
