"""What a policy is worth, estimated from games of another one: importance sampling beside the exact value.

Per-decision importance sampling, plain and weighted (Precup, Sutton and Singh 2000), and the doubly robust estimate
(Jiang and Li 2016), whose model here is the optimum's action values: not those of the target, but not far from them.
The one argument is the number of games. The exact value takes a minute or two.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from kismet_env.bots import make
from kismet_env.dataset import Config, read, write
from kismet_env.evaluation import exact, mean_interval

BEHAVIOUR, TARGET = "boltzmann:2", 1.5  # who has played, and the temperature of whom we want to know
STEPS = 45  # at most, in a game


def steps_of(shard):
    """Return (games, STEPS) arrays: probability ratios, rewards, the model's value of action and decision."""
    values = shard["action_values"].astype(np.float64)
    rows, played, game = np.arange(len(values)), shard["actions"], shard["episode_ids"] - shard["episode_ids"][0]
    target = np.exp((values - values.max(1, keepdims=True)) / TARGET)
    target /= target.sum(1, keepdims=True)
    model = (target * np.where(shard["action_masks"], values, 0)).sum(1)
    ratios = target[rows, played] / shard["behavior_probabilities"]
    step = rows - np.searchsorted(game, game)
    padded = []
    for column, rest in ((ratios, 1), (shard["rewards"], 0), (values[rows, played], 0), (model, 0)):
        padded.append(np.full((game[-1] + 1, STEPS), rest, np.float64))
        padded[-1][game, step] = column
    return padded


def main(episodes):
    """Write data, estimate, compare."""
    with tempfile.TemporaryDirectory() as folder:
        write(Config(Path(folder), episodes, mix=(f"{BEHAVIOUR}=1",)))
        ratios, rewards, action_values, values = map(np.concatenate, zip(*map(steps_of, read(folder)), strict=True))
    weights = ratios.cumprod(1)
    robust = np.zeros(len(weights))
    for step in reversed(range(STEPS)):
        robust = values[:, step] + ratios[:, step] * (rewards[:, step] + robust - action_values[:, step])
    for name, estimates in (
        (f"mean of {BEHAVIOUR} itself", rewards.sum(1)),
        ("per-decision importance sampling", (weights * rewards).sum(1)),
        ("doubly robust", robust),
    ):
        low, high = mean_interval(estimates)
        print(f"{name}: {estimates.mean():.1f} +- {(high - low) / 2:.1f}")
    print(f"weighted per-decision importance sampling: {((weights * rewards).sum(0) / weights.sum(0)).sum():.1f}")
    print(f"effective sample size at the end: {weights[:, -1].sum() ** 2 / (weights[:, -1] ** 2).sum():.0f} games")
    print(f"exact value of boltzmann:{TARGET}: {exact(make(f'boltzmann:{TARGET}')).expected_score:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
