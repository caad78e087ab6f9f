"""Kismet as a game of OpenSpiel: its tree search against a random player, and its loop for learners.

The one argument is the number of simulations for a decision.
"""

import sys

import numpy as np
import pyspiel
from open_spiel.python.algorithms import evaluate_bots, mcts
from open_spiel.python.bots.uniform_random import UniformRandomBot
from open_spiel.python.rl_environment import ChanceEventSampler, Environment

import kismet_env.open_spiel_game  # noqa: F401 (registers "kismet")

rng = np.random.RandomState(0)
game = pyspiel.load_game("kismet(players=2)")
simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 20
searcher = mcts.MCTSBot(game, 1.0, simulations, mcts.RandomRolloutEvaluator(1, rng), random_state=rng)
first, second = evaluate_bots.evaluate_bots(
    game.new_initial_state(), [searcher, UniformRandomBot(1, np.random.RandomState(1))], rng
)
print(f"tree search against random play: {first:+.0f} : {second:+.0f}")

environment = Environment("kismet(players=1,reward=final)", chance_event_sampler=ChanceEventSampler(seed=0))
step = environment.reset()
while not step.last():
    step = environment.step([rng.choice(step.observations["legal_actions"][0])])
print(f"random play: {step.rewards[0]:.0f} points")
