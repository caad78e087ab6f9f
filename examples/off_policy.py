"""What a policy is worth, estimated from games of another one: importance sampling beside the exact value.

Per-decision importance sampling, plain and weighted (Precup et al. 2000), and the doubly robust estimate (Jiang and Li
2016), whose model is the optimum's action values. The one argument: how many games. The exact value takes minutes.
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


def estimates(folder):
    """Return what each game says of the target, by the plain and by the doubly robust way, and the weights."""
    ratios, rewards, action_values, values = map(np.concatenate, zip(*map(steps_of, read(folder)), strict=True))
    weights, robust = ratios.cumprod(1), np.zeros(len(ratios))
    for step in reversed(range(STEPS)):
        robust = values[:, step] + ratios[:, step] * (rewards[:, step] + robust - action_values[:, step])
    return (weights * rewards).sum(1), robust, weights, rewards


def main(episodes):
    """Write data, estimate, compare."""
    with tempfile.TemporaryDirectory() as folder:
        write(Config(Path(folder), episodes, mix=(f"{BEHAVIOUR}=1",)))
        plain, robust, weights, rewards = estimates(folder)
    for name, games in (("mean of the data", rewards.sum(1)), ("plain", plain), ("doubly robust", robust)):
        low, high = mean_interval(games)
        print(f"{name}: {games.mean():.1f} +- {(high - low) / 2:.1f}")
    print(f"weighted: {((weights * rewards).sum(0) / weights.sum(0)).sum():.1f}")
    print(f"effective sample size: {weights[:, -1].sum() ** 2 / (weights[:, -1] ** 2).sum():.0f} games")
    print(f"exact value of boltzmann:{TARGET}: {exact(make(f'boltzmann:{TARGET}')).expected_score:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
