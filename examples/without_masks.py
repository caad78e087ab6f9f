"""DQN and PPO of Stable-Baselines3, which know nothing of masks: each illegal action costs a point and does nothing.

The one argument is the number of steps of each. With holds instead of keeps there is less to learn to avoid.
"""

import sys

import numpy as np
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy

from kismet_env.sb3 import KismetVecEnv

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
GAMES = {"start": "open:3", "actions": "holds", "illegal_action": "penalty"}

for name, learner, options in (
    ("DQN", DQN, {"learning_starts": 1000, "train_freq": 8, "gradient_steps": 8, "target_update_interval": 1000}),
    ("PPO", PPO, {"n_steps": 128, "batch_size": 512, "n_epochs": 4, "ent_coef": 0.01}),
):
    env = KismetVecEnv(16, seed=0, **GAMES)
    model = learner("MlpPolicy", env, gamma=1.0, seed=0, device="cpu", **options)
    model.learn(STEPS)
    returns = [episode["r"] for episode in model.ep_info_buffer]
    tests = KismetVecEnv(16, seed=1_000_000, **GAMES)
    mean, _ = evaluate_policy(model, tests, 200, deterministic=False, warn=False)
    print(
        f"{name}: mean return {np.mean(returns):.1f} of the last {len(returns)} games, {mean:.1f} of 200 others; "
        f"{env.illegal_actions / model.num_timesteps:.0%} of all actions were illegal"
    )
