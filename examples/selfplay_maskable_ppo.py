"""MaskablePPO in a random seat: first against a random player, then against frozen copies of itself.

The one argument is the number of steps in each of five generations.
"""

import io
import sys

import numpy as np
from sb3_contrib import MaskablePPO

from kismet_env.sb3 import KismetVecEnv


class Frozen:
    """The learner as it is now."""

    def __init__(self, model):
        file = io.BytesIO()
        model.save(file)
        self.policy = MaskablePPO.load(file, device="cpu").policy

    def act(self, observations, masks, u=None):
        """Return an action for every row."""
        return self.policy.predict(observations, action_masks=masks.astype(bool))[0]


env = KismetVecEnv(128, seed=0, opponents=["random"], seat="random")
model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=1024, n_epochs=4, gamma=1.0, seed=0, device="cpu")
pool, rng = [], np.random.default_rng(0)
for generation in range(5):
    model.learn(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000, reset_num_timesteps=False)
    results = [episode["r"] for episode in model.ep_info_buffer]
    print(f"generation {generation}: mean result {np.mean(results):+.2f} in the last {len(results)} games")
    pool.append(Frozen(model))
    env.set_opponents([rng.choice(pool)])
