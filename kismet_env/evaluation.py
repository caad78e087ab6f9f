"""Games to statistics: players on the same dice, each game to its end, and what can be said about them.

    games = play(make("turn_greedy"), 10_000, seed=0)
    report = summarise({"turn_greedy": games}, seed=0)

Game i of a seed has the same dice for every player, alone or beside others, in whatever number of chunks and processes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kismet_env.dice import hash_words, mix
from kismet_env.jit import Table, compiled

# The key of a game is hash_words(domain, seed, game): no game of one domain is a game of another.
TRAINING_DICE = 1
"""Domain of the dice that learners learn from."""
SELECTION_DICE = 2
"""Domain of the dice by which the best of several policies is chosen."""
EVALUATION_DICE = 3
"""Domain of the dice of reported results."""


def game_keys(domain: int, seed: int, games: range) -> npt.NDArray[np.uint64]:
    """Return the keys hash_words(domain, seed, game) of `games`, (n,) uint64; ValueError for a negative seed."""
    keys = np.array(games, np.uint64)
    _stir_in(hash_words(domain, seed), keys)
    return keys


@compiled
def _stir_in(base: np.uint64, words: Table) -> None:
    for row in range(len(words)):
        words[row] = mix(base, words[row])
