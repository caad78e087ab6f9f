"""Masked PPO in TorchRL on the native batch. The one argument is the number of updates."""

import sys

import gymnasium as gym
import numpy as np
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.envs import ActionMask, Compose, GymWrapper, RewardScaling, RewardSum, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from kismet_env.wrappers import VectorMaskInObservation

torch.manual_seed(0)

# TorchRL begins games itself, hence "Disabled", and wants masks as bools.
games = gym.make_vec("kismet_env:kismet_env/Kismet-v0", num_envs=64, autoreset_mode="Disabled")
games = GymWrapper(VectorMaskInObservation(games, dtype=np.bool_), categorical_action_encoding=True)
env = TransformedEnv(games, Compose(ActionMask(), RewardSum(), RewardScaling(0, 0.01)))
check_env_specs(env)

actor = ProbabilisticActor(
    TensorDictModule(nn.Sequential(nn.Linear(79, 256), nn.ReLU(), nn.Linear(256, 225)), ["observation"], ["logits"]),
    in_keys={"logits": "logits", "mask": "action_mask"},
    distribution_class=MaskedCategorical,
    return_log_prob=True,
)
critic = ValueOperator(nn.Sequential(nn.Linear(79, 256), nn.ReLU(), nn.Linear(256, 1)), ["observation"])
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01, normalize_advantage=True)
advantages = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
    with torch.no_grad():
        data = env.rollout(90, actor, break_when_any_done=False)  # two games or more in each row
        decisions = advantages(data).flatten()
    for rows in [rows for _ in range(4) for rows in torch.randperm(len(decisions)).split(1024)]:
        losses = loss(decisions[rows])
        optimizer.zero_grad()
        sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
        optimizer.step()

after = data["next"]
scores = after["episode_reward"][after["done"]]
print(f"mean {scores.mean():.1f} points in the last {len(scores)} games, {(after['reward'] < 0).sum()} illegal actions")
