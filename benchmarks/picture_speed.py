"""How many pictures of the table one core draws in a second, every position of a game of random players in turn."""

from time import process_time
from typing import Any

import numpy as np
from machine import machine

from kismet_env.batch import Batch
from kismet_env.render.picture import picture
from kismet_env.rules import Rules

PICTURES = 1_000
TARGET = 100


def positions_of_a_game(num_players: int) -> list[dict[str, Any]]:
    """Return all positions of a game, the end included."""
    rng, batch = np.random.default_rng(0), Batch(1, num_players)
    batch.seed([0])
    step, positions = batch.deal(), []
    while not batch.over[0]:
        positions.append(batch.position())
        step = batch.step([rng.choice(np.flatnonzero(step.masks[0]))])
    return [*positions, batch.position()]


def main() -> None:
    """Measure and print."""
    print(machine())
    print(f"\n{'pictures a CPU second, 800 x 600':50}{'measured':>12}{'target':>12}")
    for num_players in (1, 2, 4, 6):
        positions = positions_of_a_game(num_players)
        for position in positions:  # draws every word and die once
            picture(position, Rules())
        start = process_time()
        for number in range(PICTURES):
            picture(positions[number % len(positions)], Rules())
        measured = PICTURES / (process_time() - start)
        print(f"{f'{num_players} player' + 's' * (num_players > 1):50}{measured:>12,.0f}{TARGET:>12}")


if __name__ == "__main__":
    main()
