"""Monte Carlo tree search (UCT, Kocsis and Szepesvari 2006) on `save` and `restore`, judged by the exact regret.

Every simulation has a key of its own: the search knows nothing of the dice that will really come. The arguments are the
numbers of games, of simulations for a decision, and of open boxes.
"""

import sys

import gymnasium as gym
import numpy as np

from kismet_env import Rules
from kismet_env.observation import layout_of
from kismet_env.wrappers import RegretInfo

WORTH = layout_of(Rules()).slices["box_points"]  # what the dice are worth in each open box
CURIOSITY = 20  # points


def plan(game, simulations, rng):
    """Return the most tried action in `game`, an unwrapped environment, which is left as it is."""
    state, tree = game.save(), {}
    for _ in range(simulations):
        observation, info = game.restore(state, key=int(rng.integers(2**63)))
        path, rewards, new, over = [], [], None, False
        while not over:
            mask, place = info["action_mask"], observation.tobytes()
            if new is None and place in tree:
                actions, visits, means = tree[place]
                bonus = CURIOSITY * np.sqrt(np.log(1 + visits.sum()) / np.maximum(visits, 1))
                path.append((len(rewards), visits, means, (means + bonus).argmax()))
                action = int(actions[path[-1][3]])
            else:  # to the end: fill the box that pays most, roll all dice where none may be filled
                new = new or (len(rewards), place, np.flatnonzero(mask))
                action = 210 + int((observation[WORTH] + mask[210:]).argmax()) if mask[210:].any() else 0
            observation, reward, terminated, truncated, info = game.step(action)
            rewards.append(reward)
            over = terminated or truncated
        for step, visits, means, choice in path:
            visits[choice] += 1
            means[choice] += (sum(rewards[step:]) - means[choice]) / visits[choice]
        if new is not None:  # all that could be done there seems as good as what was done
            step, place, actions = new
            tree[place] = actions, np.zeros(len(actions)), np.full(len(actions), sum(rewards[step:]))
    game.restore(state)
    actions, visits, _ = next(iter(tree.values()))
    return int(actions[visits.argmax()])


if __name__ == "__main__":
    games, simulations, open_boxes = map(int, sys.argv[1:] or (20, 400, 3))
    env, regrets = RegretInfo(gym.make("kismet_env/Kismet-v0", start=f"open:{open_boxes}")), []
    for seed in range(games):
        (_, info), over, regret = env.reset(seed=seed), False, 0.0
        while not over:
            _, _, terminated, truncated, info = env.step(plan(env.unwrapped, simulations, np.random.default_rng(seed)))
            over, regret = terminated or truncated, regret + info["regret"]
        regrets.append(regret)
    print(f"{simulations} simulations: regret {np.mean(regrets):.2f} points a game, mean of {games} games")
