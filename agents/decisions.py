"""Decisions shown to networks as a game would show them, whether or not any game has come to them."""

from __future__ import annotations

import numpy as np

from kismet_env.batch import Batch, Step
from kismet_env.dice import roll_indices
from kismet_env.observation import Decision


def show(batch: Batch, decisions: Decision) -> Step:
    """Return what is seen of `decisions` (n,) with an open box: they take the place of the first n games of `batch`.

    It is a batch of solitaire games with at least n rows, whose form of observation and numbering of actions count.
    """
    rows = np.arange(len(decisions.filled))
    games, cards = batch.state.games[: len(rows)], batch.state.cards[: len(rows), 0]
    games["over"], games["roll"], games["rolls_left"] = False, roll_indices(decisions.dice), decisions.rolls_left
    for name in ("filled", "basic_total", "armed"):
        cards[name] = getattr(decisions, name)
    return batch.look(rows)
