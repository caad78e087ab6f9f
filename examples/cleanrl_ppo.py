"""Masked PPO in one file, in the style of CleanRL (Huang et al. 2022), on the native batch.

Arguments: number of steps, autoreset mode. Under NextStep the step after a game's end ignores its action: left out.
"""

import sys

import gymnasium as gym
import torch
from torch.distributions import Categorical

ROWS, LENGTH, EPOCHS, MINIBATCH, POINTS = 128, 64, 4, 2048, 100  # so many points are one unit of reward


def judge(network, seen, mask):
    """Return the distribution over the legal actions and the value: the network's last output."""
    outputs = network(seen)
    return Categorical(logits=outputs[:, :-1].masked_fill(mask == 0, -1e8)), outputs[:, -1]


@torch.no_grad()
def rollout(env, network, now, length):
    """Play on from `now` = (observations, masks, is over); return the decisions that there were, and what is now."""
    steps, advantages = [], [0]
    for _ in range(length):
        choice, value = judge(network, *now[:2])
        action = choice.sample()
        seen, reward, terminated, truncated, infos = env.step(action.numpy())
        steps.append((*now, action, choice.log_prob(action), value, torch.from_numpy(reward / POINTS).float()))
        now = [torch.from_numpy(array) for array in (seen, infos["action_mask"], terminated | truncated)]
    following, over = judge(network, *now[:2])[1], now[2]
    for _, _, was_over, *_, value, reward in reversed(steps):  # advantages by GAE: their sums end with a game
        advantages.insert(0, reward - value + torch.where(over, 0, following + 0.95 * advantages[0]))
        following, over = value, was_over
    seen, mask, was_over, action, log_prob, value, _ = map(torch.cat, zip(*steps, strict=True))
    advantage = torch.cat(advantages[:-1])
    ignored = was_over & (env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP)
    return [column[~ignored] for column in (seen, mask, action, log_prob, advantage + value, advantage)], now


torch.manual_seed(0)
if __name__ == "__main__":
    total, mode = sys.argv[1:] or (1_000_000, "NextStep")
    env = gym.make_vec("kismet_env:kismet_env/Kismet-v0", num_envs=ROWS, autoreset_mode=mode)
    env = gym.wrappers.vector.RecordEpisodeStatistics(env)
    network = torch.nn.Sequential(torch.nn.Linear(79, 256), torch.nn.ReLU(), torch.nn.Linear(256, 225 + 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    seen, infos = env.reset(seed=0)
    now = [torch.from_numpy(seen), torch.from_numpy(infos["action_mask"]), torch.zeros(ROWS, dtype=torch.bool)]
    for _ in range(int(total) // (ROWS * LENGTH)):
        batch, now = rollout(env, network, now, LENGTH)
        for rows in [rows for _ in range(EPOCHS) for rows in torch.randperm(len(batch[0])).split(MINIBATCH)]:
            seen, mask, action, log_prob, target, advantage = (column[rows] for column in batch)
            choice, value = judge(network, seen, mask)
            ratio, scaled = (choice.log_prob(action) - log_prob).exp(), (advantage - advantage.mean()) / advantage.std()
            gain = torch.min(ratio * scaled, ratio.clamp(0.8, 1.2) * scaled).mean()
            optimizer.zero_grad()
            ((value - target).square().mean() / 2 - gain - 0.01 * choice.entropy().mean()).backward()
            optimizer.step()
    print(f"{mode}: mean {sum(env.return_queue) / len(env.return_queue):.1f} of the last {len(env.return_queue)} games")
