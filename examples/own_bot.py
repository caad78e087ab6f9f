"""A player of one's own in 2,000 games against turn_greedy."""

import numpy as np

from kismet_env import Rules
from kismet_env.dice import keep_index
from kismet_env.match import Match
from kismet_env.observation import decode, layout_of

WORTH = layout_of(Rules()).slices["box_points"]  # what the dice are worth in each open box, / 80
KEEP = np.array([[keep_index([face] * count) for count in range(6)] for face in range(1, 7)])
FIRST_BOX = 210  # actions below keep dice and roll the others


class Collector:
    """Takes a box that pays 25 points at once, else collects the face it has most of."""

    def act(self, observations, masks, u=None):
        """Return an action for every row."""
        worth = np.where(masks[:, FIRST_BOX:], 80 * observations[:, WORTH], -1)
        counts = (decode(observations).dice[:, :, None] == np.arange(1, 7)).sum(1)
        keep = KEEP[counts.argmax(1), np.minimum(counts.max(1), 4)]
        takes = (worth.max(1) >= 25) | ~masks[:, :FIRST_BOX].any(1)
        return np.where(takes, FIRST_BOX + worth.argmax(1), keep)


match = Match(2000, opponents=["turn_greedy"], seat="random", reward="win")
match.seed(range(2000))
seen, results = match.deal(), np.zeros(2000)
while not match.over.all():
    seen = match.step(Collector().act(seen.observations, seen.masks))
    results += seen.rewards[:, 0]
print(f"Collector wins {(results > 0).mean():.1%} of its games and ties {(results == 0).mean():.1%}")
