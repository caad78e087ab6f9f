"""A window on the screen that shows pictures, by pygame-ce (`pip install "kismet-env[render]"`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Window:
    """Opens with the first picture and stays until `close`; a copy, or one from another process, is a closed window."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._window: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Window, (self._title,)

    def show(self, frame: npt.NDArray[np.uint8], fps: float) -> None:
        """Show a picture (height, width, 3), RGB, and wait until a `fps`-th of a second has passed since the last."""
        try:
            import pygame
        except ImportError:
            raise ImportError("a window needs pygame-ce: pip install 'kismet-env[render]'") from None
        if self._window is None or not pygame.display.get_init():  # whoever ends the display closes all windows
            pygame.display.init()
            self._window = pygame.Window(self._title, (frame.shape[1], frame.shape[0]))
            self._clock = pygame.time.Clock()
        pygame.surfarray.blit_array(self._window.get_surface(), frame.swapaxes(0, 1))
        pygame.event.pump()  # or the system takes the window for hung
        self._window.flip()
        self._clock.tick(fps)

    def close(self) -> None:
        """Close the window, and no other one; nothing happens to one that is closed."""
        if self._window is not None:
            self._window.destroy()
            self._window = None
