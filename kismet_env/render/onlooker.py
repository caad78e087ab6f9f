"""What an environment shows of its game in its render mode, besides the position: names and the last action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch
from kismet_env.dice import roll_index
from kismet_env.render.last import Last, last_of, names_of
from kismet_env.render.sheet import sheet
from kismet_env.render.window import Window

RENDER_MODES = ("human", "rgb_array", "ansi")
RENDER_FPS = 4
"""Pictures a second, in a window and in videos."""


class Onlooker:
    """Looks at the one game of a `Batch` without ever touching it.

    Args:
        batch: the game.
        mode: None, "ansi" (the sheet as text), "rgb_array" (a picture) or "human" (the same picture in a window).
    """

    def __init__(self, batch: Batch, mode: str | None) -> None:
        self._batch, self._mode = batch, mode
        self._names: Sequence[str] = names_of(batch.num_players)
        self._before: Mapping[str, Any] = {}
        self._last: Last | None = None
        self._window = Window("Kismet")
        self.draws = mode in ("human", "rgb_array")
        """Whether pictures are asked for, and so the calls below."""

    def begin(self, names: Sequence[str] | None = None) -> None:
        """See a game begin, or go on from somewhere else, of players with these `names`."""
        self._names = names or names_of(self._batch.num_players)
        self._last = None
        self._show()

    def before(self) -> None:
        """Look at the position before an action."""
        self._before = self._batch.position()

    def after(self, action: int, *, illegal: bool) -> None:
        """See what the action, and whoever played after it, has brought."""
        roll, actions = roll_index(self._before["dice"]), self._batch.actions
        did = actions.text(action, roll)
        if illegal:
            self._last = Last(f"{self._names[self._before['player']]}: {did} is illegal here")
        else:
            self._last = last_of(
                self._before,
                self._batch.position(),
                did=did,
                kept=actions.kept(action, roll),
                rules=self._batch.rules,
                names=self._names,
            )
        self._show()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the sheet or the picture, or show it in the window."""
        if self._mode == "ansi":
            return sheet(self._batch.position(), self._batch.rules)
        if self._mode == "rgb_array":
            return self._picture()
        self._show()
        return None

    def _show(self) -> None:
        if self._mode == "human":
            self._window.show(self._picture(), RENDER_FPS)

    def _picture(self) -> npt.NDArray[np.uint8]:
        from kismet_env.render.picture import picture  # needs Pillow

        return picture(self._batch.position(), self._batch.rules, names=self._names, last=self._last)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
