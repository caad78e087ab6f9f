"""Two players with one network learn in TorchRL: masked PPO through PettingZooWrapper. Argument: number of games."""

import sys
import warnings

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss

from kismet_env import kismet_v0

warnings.filterwarnings("ignore", "PettingZoo in TorchRL is tested using")  # an older PettingZoo
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(98, 128), nn.ReLU(), nn.Linear(128, 225))


def actor(observation, *player):
    """Return who acts by the network; the keys of a player's tensors begin with his name."""
    logits = (*player, "logits")
    return ProbabilisticActor(
        TensorDictModule(network, [(*player, *observation)], [logits]),
        in_keys={"logits": logits, "mask": (*player, "action_mask")},
        out_keys=[(*player, "action")],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_keys=[(*player, "action_log_prob")],
    )


env = PettingZooWrapper(kismet_v0.env(num_players=2), use_mask=True)
check_env_specs(env)
both = TensorDictSequential(*(actor(["observation", "observation"], player) for player in env.possible_agents))
critic = ValueOperator(nn.Sequential(nn.Linear(98, 128), nn.ReLU(), nn.Linear(128, 1)), ["observation"])
loss = ClipPPOLoss(actor(["observation"]), critic, entropy_coeff=0.01, normalize_advantage=True)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
    with torch.no_grad():
        game, decisions = env.rollout(100, both), []
        for player in env.possible_agents:
            own = game[player][game[player, "mask"]].select("observation", "action_mask", "action", "action_log_prob")
            own["observation"] = own["observation", "observation"]
            own["value_target"] = game["next", player, "reward"].sum().expand(len(own), 1)  # the result: 1, 0 or -1
            own["advantage"] = own["value_target"] - critic(own.clone())["state_value"]
            decisions.append(own)
    for _ in range(4):
        losses = loss(torch.cat(decisions))
        optimizer.zero_grad()
        sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
        optimizer.step()

illegal = sum(game["next", player, "info", "illegal_action"].sum() for player in env.possible_agents)
result = own["value_target"][0, 0]
print(f"last game: {len(game)} decisions, {illegal:.0f} of them illegal; result of player_1 {result:+.0f}")
