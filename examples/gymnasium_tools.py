"""Gymnasium's own wrappers around the environment, and games in processes of their own."""

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FlattenObservation, NormalizeReward, RecordEpisodeStatistics, TransformObservation

ID = "kismet_env:kismet_env/Kismet-v0"  # the module first: processes that have not imported it find it too


def shortened(env):
    """Return the environment with what the dice are worth cut off: only the first 56 numbers are seen."""
    space = gym.spaces.Box(0, 1, (56,), np.float32)
    return TransformObservation(env, lambda observation: observation[:56], space)


def main():
    """Play a game under each of them."""
    rng = np.random.default_rng(0)
    for name, env in (
        ("RecordEpisodeStatistics", RecordEpisodeStatistics(gym.make(ID))),
        ("FlattenObservation", RecordEpisodeStatistics(FlattenObservation(gym.make(ID, observation="dict")))),
        ("NormalizeReward", NormalizeReward(RecordEpisodeStatistics(gym.make(ID)), gamma=1.0)),
        ("TransformObservation", RecordEpisodeStatistics(shortened(gym.make(ID)))),
    ):
        seen, info = env.reset(seed=0)
        while "episode" not in info:
            seen, _, _, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        print(f"{name}: {seen.shape}, {info['episode']['r']:.0f} points in {info['episode']['l']} steps")

    envs = gym.make_vec(ID, num_envs=2, vectorization_mode="async", vector_kwargs={"context": "spawn"})
    _, infos = envs.reset(seed=0)
    for _ in range(20):
        _, _, _, _, infos = envs.step((rng.random((2, 225)) * infos["action_mask"]).argmax(1))
    envs.close()
    print("two processes:", infos["total"].tolist(), "points after 20 steps")


if __name__ == "__main__":  # a spawned process imports this file
    main()
