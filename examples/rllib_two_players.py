"""Two players learn from each other in Ray RLlib: masked PPO through the multi-agent API, over PettingZoo.

Arguments: "shared", one policy in both seats, or "separate", one for each seat; the number of updates.
"""

import sys

import numpy as np
import ray
import torch
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv

from kismet_env import kismet_v0
from kismet_env.rllib import MaskedPPO

kind = sys.argv[1] if len(sys.argv) > 1 else "shared"
updates = int(sys.argv[2]) if len(sys.argv) > 2 else 100
seats = ["player_0", "player_1"]
policy_of = {"shared": dict.fromkeys(seats, "both"), "separate": {seat: seat for seat in seats}}[kind]
network = RLModuleSpec(module_class=MaskedPPO, model_config={"fcnet_hiddens": [128, 128], "vf_share_layers": False})

tune.register_env("kismet_v0", lambda _: PettingZooEnv(kismet_v0.env(num_players=2, illegal_action="raise")))
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
algorithm = (
    PPOConfig()
    .environment("kismet_v0", disable_env_checking=True)  # it would try illegal actions
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16)  # more of them: processes of their own
    .multi_agent(policies=set(policy_of.values()), policy_mapping_fn=lambda agent, episode, **_: policy_of[agent])
    .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=dict.fromkeys(policy_of.values(), network)))
    .training(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4, lr=1e-3, gamma=1.0, lambda_=0.9)
    .training(use_kl_loss=False, entropy_coeff=0.01)
    .debugging(seed=0)
    .build_algo()
)
for update in range(updates):
    played = algorithm.train()["env_runners"]
    games, decisions = played["num_episodes_lifetime"], played["episode_len_mean"]
    print(f"update {update}: {games:.0f} games, {decisions:.1f} decisions each")

# in the first seat against random play
network, rng, results = algorithm.get_module(policy_of["player_0"]), np.random.default_rng(0), []
env = kismet_v0.env(num_players=2, illegal_action="raise")
for game in range(20):
    env.reset(seed=game)
    for seat in env.agent_iter():
        observation, reward, terminated, _, _ = env.last()
        action = None
        if terminated:
            results += [reward] if seat == "player_0" else []
        elif seat == "player_0":
            seen = {name: torch.from_numpy(array)[None] for name, array in observation.items()}
            action = int(network.forward_inference({"obs": seen})["action_dist_inputs"].argmax())
        else:
            action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        env.step(action)
print(f"player_0 wins {np.mean(np.array(results) > 0):.0%} of {len(results)} games against random play")
algorithm.stop()
