"""What a card with few open boxes still brings, as an exact distribution over points under optimal solitaire play.

Early in a game a normal distribution with the right mean and variance will do. Near the end it does not: there is a
bonus or there is none, a Kismet or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice

import numpy as np
import numpy.typing as npt

from kismet_env.cache import kept
from kismet_env.cards import Cards
from kismet_env.exact import TurnPolicy, distributions
from kismet_env.solver import Optimum, sources

MOST_OPEN = 3
"""How many open boxes such a card has at most: 60,858 cards and 64 MB under the standard rules."""
NO_ROW = -1


def late_layers(optimum: Optimum) -> Iterator[Cards]:
    """Yield the cards with one open box, then those with two, up to MOST_OPEN."""
    return islice(optimum.numbers.layers(), MOST_OPEN)


def late_cards(
    optimum: Optimum, report: Callable[[float], None] = lambda share: None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the row of each card, in the order of `optimum.numbers`, and the distributions by [row, points].

    Cards with more open boxes have NO_ROW. The distributions come from the cache, or are worked out in some seconds
    and put there; `report` hears the share done.
    """
    numbers, rules = optimum.numbers, optimum.rules
    layers = list(late_layers(optimum))
    row_of = np.full(numbers.size, NO_ROW, np.int32)
    row_of[numbers.places(np.concatenate(layers))] = np.arange(sum(map(len, layers)))

    def chances() -> npt.NDArray[np.float32]:
        policy, blocks = TurnPolicy("best", write_worths=optimum.write_worths), []
        for block in distributions(policy, numbers, layers):
            blocks.append(block.astype(np.float32))
            report(len(blocks) / len(layers))
        widest = blocks[-1].shape[1]
        return np.concatenate([np.pad(block, ((0, 0), (0, widest - block.shape[1]))) for block in blocks])

    about = {"sources": sources("late_cards.py"), "distributions": json.dumps(asdict(rules))}
    return row_of, kept("late_cards", about, chances)
