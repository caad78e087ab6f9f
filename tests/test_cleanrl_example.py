"""The PPO example learns from the same decisions under either autoreset mode, and from nothing else."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from example_modules import example

torch = pytest.importorskip("torch")

COLUMNS = ("seen", "mask", "action", "log_prob", "target", "advantage")
LENGTH = 120


def judged(seen: Any) -> Any:
    """Stand in for the network: one action always likelier than the next, and a value that the observation decides."""
    preferences = torch.arange(225.0).expand(len(seen), -1) * 1000
    return torch.cat([preferences, seen.sum(1, keepdim=True)], dim=1)


def test_both_modes_learn_from_the_same_decisions() -> None:
    """With the last box of a game as its end, the batch of one game at a time is a list of complete games."""
    rollout, batches, ends = example("cleanrl_ppo").rollout, {}, {}
    for mode in ("NextStep", "SameStep"):
        env = gym.make_vec("kismet_env:kismet_env/Kismet-v0", num_envs=1, start="open:3", autoreset_mode=mode)
        seen, infos = env.reset(seed=4)
        now = [torch.from_numpy(array) for array in (seen, infos["action_mask"], np.zeros(1, bool))]
        batch = []
        for _ in range(2):  # what was going on at the end of a rollout goes on in the next one
            more, now = rollout(env, judged, now, LENGTH // 2)
            batch.append(more)
        batches[mode] = [torch.cat(columns) for columns in zip(*batch, strict=True)]
        ends[mode] = now
    count = len(batches["NextStep"][0])
    assert LENGTH // 2 < count < len(batches["SameStep"][0]) == LENGTH
    for name, one, other in zip(COLUMNS, batches["NextStep"], batches["SameStep"], strict=True):
        if name in ("target", "advantage"):
            continue  # they look ahead, over the end of a rollout, which comes earlier under NextStep
        np.testing.assert_array_equal(one, other[:count], err_msg=name)
    assert torch.take_along_dim(batches["NextStep"][1], batches["NextStep"][2][:, None], 1).all()  # legal


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_advantages_end_with_the_game(mode: str) -> None:
    """Held against GAE as it is defined, game by game: the sum of (0.95)^k times what each decision changed."""
    rows = 2
    env = gym.make_vec("kismet_env:kismet_env/Kismet-v0", num_envs=rows, start="open:2", autoreset_mode=mode)
    seen, infos = env.reset(seed=0)
    now = [torch.from_numpy(array) for array in (seen, infos["action_mask"], np.zeros(rows, bool))]
    log: list[tuple[Any, ...]] = []

    class Logged(gym.vector.VectorWrapper):
        def step(self, actions: Any) -> tuple[Any, ...]:
            out = self.env.step(actions)
            log.append((out[1], out[2] | out[3]))
            return out

    (seen, _, _, _, target, advantage), _ = example("cleanrl_ppo").rollout(Logged(env), judged, now, LENGTH)
    values = seen.sum(1)
    torch.testing.assert_close(target, advantage + values)
    at = 0
    kept = np.ones((LENGTH, rows), bool)
    if mode == "NextStep":
        kept[1:] = ~np.array([over for _, over in log])[:-1]
    place = np.full((LENGTH, rows), -1)
    for step in range(LENGTH):
        for row in range(rows):
            if kept[step, row]:
                place[step, row], at = at, at + 1
    assert at == len(advantage)
    checked = 0
    for row in range(rows):
        game: list[int] = []
        for step in range(LENGTH):
            if not kept[step, row]:
                continue
            game.append(step)
            if log[step][1][row]:  # a whole game
                for first in range(len(game)):
                    expected = 0.0
                    for k, now_step in enumerate(game[first:]):
                        value = float(values[place[now_step, row]])
                        is_last = now_step == game[-1]
                        after = 0.0 if is_last else float(values[place[game[first + k + 1], row]])
                        expected += 0.95**k * (float(log[now_step][0][row]) / 100 + after - value)
                    assert float(advantage[place[game[first], row]]) == pytest.approx(expected, abs=1e-4)
                    checked += 1
                game = []
    assert checked > LENGTH
