"""A player who makes things happen: hunts five alike, so that second Kismets are common."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.bots.player import sample
from kismet_env.dice import NUM_REROLL_KEEPS, keep_index
from kismet_env.observation import decode
from kismet_env.rules import Box

KEEP_OF = np.array([[keep_index([face] * count) for count in range(6)] for face in range(1, 7)])  # [face - 1, count]


class Hunter:
    """Keeps the face of which there is most; enters five alike in Kismet, and all else in any legal box."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []
        """How many rows each call had, and how long its observations and masks were."""

    def act(self, observations: Any, masks: Any, u: Any = None) -> npt.NDArray[np.int64]:
        """Return an action for every row."""
        assert observations.dtype == np.float32
        assert masks.dtype == np.int8
        assert u.shape == (len(masks),)
        self.calls.append((len(masks), observations.shape[1], masks.shape[1]))
        decision = decode(observations)
        counts = (decision.dice[:, :, None] == np.arange(1, 7)).sum(1)
        face = counts.argmax(1)
        most = counts.max(1)
        boxes = masks[:, NUM_REROLL_KEEPS:].astype(float)
        boxes[(most == 5) & (boxes[:, Box.KISMET] > 0), : Box.KISMET] = 0.0
        fills = (decision.rolls_left == 0) | (most == 5) & boxes.any(1)
        keeps = KEEP_OF[face, np.minimum(most, 4)]
        return np.where(fills, NUM_REROLL_KEEPS + sample(boxes, u), keeps)
