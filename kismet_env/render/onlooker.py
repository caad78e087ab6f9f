"""What an environment shows of its game in its render mode, besides the position: names and the last action."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch
from kismet_env.dice import roll_index
from kismet_env.engine import State
from kismet_env.position import position_of
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
        self._now: State | None = None  # before an action that may still be refused
        self._before: State | None = None  # before the last action; None until the first one
        self._action, self._illegal = 0, False
        self._window = Window("Kismet")
        self.draws = mode in ("human", "rgb_array")
        """Whether pictures are asked for, and so the calls below."""

    def begin(self, names: Sequence[str] | None = None) -> None:
        """See a game begin, or go on from somewhere else, of players with these `names`."""
        self._names = names or names_of(self._batch.num_players)
        self._before = None
        self._show()

    def before(self) -> None:
        """Look at the game before an action."""
        self._now = State(*(array.copy() for array in self._batch.state))

    def after(self, action: int, *, illegal: bool) -> None:
        """See that the action, and whatever others did after it, has been played.

        What it means is worked out when somebody looks: Stable-Baselines3 asks for pictures that nobody ever sees.
        """
        self._before, self._action, self._illegal = self._now, action, illegal
        self._show()

    def _last(self) -> Last | None:
        """Return what the action, and whoever played after it, has brought."""
        if self._before is None:
            return None
        before, actions = position_of(self._before, 0), self._batch.actions
        roll = roll_index(before["dice"])
        did = actions.text(self._action, roll)
        if self._illegal:
            return Last(f"{self._names[before['player']]}: {did} is illegal here")
        return last_of(
            before,
            self._batch.position(),
            did=did,
            kept=actions.kept(self._action, roll),
            rules=self._batch.rules,
            names=self._names,
        )

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

        return picture(self._batch.position(), self._batch.rules, names=self._names, last=self._last())

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
