"""Behaviour cloning: a network learns from games of an expert and is asked about positions that it has not seen.

The one argument is the number of games to learn from.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from kismet_env.bots import make
from kismet_env.dataset import Config, read, write
from kismet_env.value_suite import load, measure

EPOCHS, BATCH = 10, 256


class Clone:
    """Plays what the expert would most probably have played."""

    def __init__(self, network):
        self.network = network

    def act(self, observations, masks, u=None):
        """Return an action for every row."""
        with torch.no_grad():
            scores = self.network(torch.from_numpy(observations)).numpy()
        return np.where(masks > 0, scores, -np.inf).argmax(1)


def main(episodes):
    """Write data, learn, compare."""
    with tempfile.TemporaryDirectory() as folder:
        write(Config(Path(folder), episodes, mix=("expert=1",), action_values=False))
        shards = list(read(folder))
    names = ("observations", "action_masks", "actions")
    seen, legal, actions = (torch.from_numpy(np.concatenate([shard[name] for shard in shards])) for name in names)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(
        torch.nn.Linear(seen.shape[1], 256), torch.nn.ReLU(), torch.nn.Linear(256, legal.shape[1])
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(seen)).split(BATCH):
            scores = network(seen[rows]).masked_fill(~legal[rows], -1e9)
            loss = torch.nn.functional.cross_entropy(scores, actions[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"learned from {len(seen):,} decisions; points lost by a decision in the value suite:")
    for name, player in (("clone", Clone(network)), ("random", make("random")), ("turn_greedy", make("turn_greedy"))):
        report = measure(player, load())
        print(f"{name}: {report['regret']:.2f}, the best action in {report['best_share']:.0%} of the positions")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
