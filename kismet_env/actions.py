"""The actions: number, meaning, text.

Two numberings of one game. "keeps" (default): action k < 210 keeps the dice of keep k (see `dice`) and rolls the
others, action 210 + box fills a box; the same kept dice are the same action in every roll. "holds": the dice lie
sorted, action a < 31 keeps the dice whose bit is set (bit 0 = lowest die) and 31 + box fills a box; of the holds that
leave the same dice only the lowest number is legal. Whatever the numbering, the engine sees keeps and boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kismet_env.dice import (
    CAN_KEEP,
    KEEP_COUNTS,
    NUM_DICE,
    NUM_FACES,
    NUM_REROLL_KEEPS,
    NUM_ROLLS,
    ROLL_DICE,
    keep_index,
)
from kismet_env.rules import NUM_BOXES, Box

NUMBERINGS = ("keeps", "holds")


@dataclass(frozen=True, eq=False)
class Actions:
    """One numbering of the actions; get it from `actions_of`."""

    numbering: str
    keep_of: npt.NDArray[np.int16]  # [roll, action] (252, R): the keep an action leaves, -1 where it is never legal
    can_roll: npt.NDArray[np.int8]  # [roll, action] (252, R): 1 where the action leaves a keep, else 0

    @property
    def num_rolls(self) -> int:
        """How many actions roll dice (R: 210 keeps or 31 holds); the boxes follow."""
        return int(self.keep_of.shape[1])

    @property
    def num_boxes(self) -> int:
        """How many actions fill a box, the last ones."""
        return NUM_BOXES

    @property
    def num_actions(self) -> int:
        """Number of actions, 225 or 46."""
        return self.num_rolls + self.num_boxes

    def box_action(self, box: Box | int) -> int:
        """Return the number of the action that fills `box`."""
        return self.num_rolls + int(box)

    def keep_action(self, roll: int, kept: Sequence[int]) -> int:
        """Return the number of the action that keeps the faces `kept` of `roll` and rolls the other dice.

        Raises ValueError if the roll does not hold them or nothing is left to roll.
        """
        found = np.flatnonzero(self.keep_of[roll] == keep_index(kept))
        if found.size == 0:
            raise ValueError(f"cannot keep {list(kept)} of {ROLL_DICE[roll].tolist()} and roll the other dice")
        return int(found[0])

    def kept(self, action: int, roll: int) -> tuple[int, ...] | None:
        """Return the faces that `action` keeps of `roll`, ascending; None for one that keeps none, as it fills a box.

        Raises ValueError for a number that is no action, and for one that this roll does not allow.
        """
        self._check(action)
        if action >= self.num_rolls:
            return None
        keep = self.keep_of[roll, action]
        if keep < 0:
            raise ValueError(f"action {action} keeps dice that {ROLL_DICE[roll].tolist()} do not have")
        return tuple(face + 1 for face in range(NUM_FACES) for _ in range(KEEP_COUNTS[keep][face]))

    def _check(self, action: int) -> None:
        if not 0 <= action < self.num_actions:
            raise ValueError(f"action {action} is not one of 0..{self.num_actions - 1}")

    def text(self, action: int, roll: int | None = None) -> str:
        """Return `action` in words, such as "keep 5-5-5" or "fill Full House".

        A hold needs the `roll` it is taken in; without one its bits are shown. Raises ValueError for a number that
        is no action.
        """
        self._check(action)
        if action >= self.num_rolls:
            return f"fill {Box(action - self.num_rolls).title}"
        if self.numbering == "holds":
            held = [bit for bit in range(NUM_DICE) if action >> bit & 1]
            if roll is None:
                return f"hold dice {held}" if held else "roll all dice"
            faces = [int(ROLL_DICE[roll][bit]) for bit in held]
        else:
            faces = [face + 1 for face in range(NUM_FACES) for _ in range(KEEP_COUNTS[action][face])]
        return "keep " + "-".join(map(str, faces)) if faces else "roll all dice"


@lru_cache(maxsize=len(NUMBERINGS))
def actions_of(numbering: str) -> Actions:
    """Return the numbering "keeps" (225 actions) or "holds" (46 actions); ValueError for another name."""
    if numbering == "keeps":
        keep_of = np.where(CAN_KEEP, np.arange(NUM_REROLL_KEEPS, dtype=np.int16), np.int16(-1))
    elif numbering == "holds":
        keep_of = np.full((NUM_ROLLS, 2**NUM_DICE - 1), -1, np.int16)
        for roll, dice in enumerate(ROLL_DICE):
            seen: set[int] = set()
            for hold in range(2**NUM_DICE - 1):
                keep = keep_index([int(face) for bit, face in enumerate(dice) if hold >> bit & 1])
                if keep not in seen:
                    keep_of[roll, hold] = keep
                    seen.add(keep)
    else:
        raise ValueError(f"actions={numbering!r} is not one of {', '.join(NUMBERINGS)}")
    can_roll = (keep_of >= 0).astype(np.int8)
    keep_of.flags.writeable = can_roll.flags.writeable = False
    return Actions(numbering, keep_of, can_roll)
