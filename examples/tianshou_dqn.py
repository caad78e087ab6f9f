"""Masked DQN in Tianshou: on the single environment, and as player_0 of PettingZoo's game against a random player.

The one argument is the number of environment steps of each.
"""

import sys

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from kismet_env import kismet_v0
from kismet_env.wrappers import MaskInObservation

ENVS, STEPS = 8, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
np.random.seed(0)  # noqa: NPY002 (what Tianshou explores with)
torch.manual_seed(0)


def dqn(env, inputs):
    """Return a learner for `env`, who sees `inputs` numbers."""
    network = Net(state_shape=inputs, action_shape=225, hidden_sizes=[128])
    policy = DiscreteQLearningPolicy(model=network, action_space=env.action_space, eps_training=0.1)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=1.0, target_update_freq=500)


def learn(algorithm, make):
    """Let it learn, and return the returns of 20 games that it then plays, (games,) or (games, players)."""
    training, tests = (DummyVectorEnv([make] * ENVS) for _ in range(2))
    training.seed(0)
    tests.seed(1_000_000)
    collector = Collector(algorithm, training, VectorReplayBuffer(100_000, ENVS), exploration_noise=True)
    collector.reset()
    how = {"max_epochs": 1, "epoch_num_steps": STEPS, "update_step_num_gradient_steps_per_sample": 0.1}
    how |= {"collection_step_num_env_steps": ENVS * 10, "show_progress": False}
    algorithm.run_training(OffPolicyTrainerParams(training_collector=collector, **how))
    return Collector(algorithm, tests).collect(n_episode=20, reset_before_collect=True).returns


def single():
    """Return the environment in the form that Tianshou's policies look for."""
    return MaskInObservation(gym.make("kismet_env/Kismet-v0"), obs_key="obs", mask_key="mask", dtype=np.bool_)


scores = learn(dqn(single(), 79), single)
print(f"one player: mean {scores.mean():.1f} points in {len(scores)} games")

two = PettingZooEnv(kismet_v0.env(num_players=2))
seats = [dqn(two, 98), MARLRandomDiscreteMaskedOffPolicyAlgorithm(two.action_space)]
algorithm = MultiAgentOffPolicyAlgorithm(algorithms=seats, env=two)
results = learn(algorithm, lambda: PettingZooEnv(kismet_v0.env(num_players=2)))[:, 0]
print(f"two players: player_0 wins {(results > 0).mean():.0%} of {len(results)} games against a random player")
