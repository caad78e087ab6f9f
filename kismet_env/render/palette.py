"""The colours of the dice on paper, screens and pages."""

from kismet_env.dice import COLOR_OF_FACE, COLORS

Color = tuple[int, int, int]
"""Red, green, blue, 0..255."""

_OF_NAME: dict[str, Color] = {"black": (24, 24, 28), "red": (205, 28, 38), "green": (18, 128, 60)}
PIP_OF_FACE = tuple(_OF_NAME[COLORS[color]] for color in COLOR_OF_FACE)
"""Colour of the pips of each face; index is face - 1."""
IVORY: Color = (255, 253, 246)
"""What dice are made of."""
GOLD: Color = (226, 172, 52)
"""What marks kept dice and the player to move."""


def hex_of(color: Color) -> str:
    """Return a colour as pages and terminals write it, "#cd1c26"."""
    return "#{:02x}{:02x}{:02x}".format(*color)
