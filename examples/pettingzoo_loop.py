"""Three players at one table: the loop of PettingZoo, with masks."""

import numpy as np

from kismet_env import kismet_v0

env = kismet_v0.env(num_players=3, reward="points", render_mode="ansi")
env.reset(seed=0)
rng = np.random.default_rng(0)

for agent in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    action = None
    if terminated or truncated:
        print(agent, "has", info["total"], "points")
    else:
        action = rng.choice(np.flatnonzero(observation["action_mask"]))
    env.step(action)

print(env.unwrapped.render())
