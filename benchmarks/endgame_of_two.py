"""How well policies that judge pairs of cards know the end of a game of two, held against the exact table.

The positions are those of games of win_probability against itself, nobody with more than one open box. Said are the
mean error of a policy's share of the win before a turn, and, over all decisions of these turns, how often its action is
one of the best and what it gives away; its own judgement plays, not the table that it would use there. A policy of
zeros is the prior. Names are ready policies and files: python benchmarks/endgame_of_two.py selfplay FILE.safetensors
"""

import sys
from pathlib import Path

import numpy as np
from machine import machine

from kismet_env.batch import Batch
from kismet_env.bots import READY, make
from kismet_env.bots.pair_value import PairPlayer, PairValue, pairs_of
from kismet_env.dice import roll_indices
from kismet_env.evaluation import EVALUATION_DICE, game_keys
from kismet_env.observation import decode
from kismet_env.policy_file import load_policy
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import tables_of
from kismet_env.turn import action_values
from kismet_env.win_chance import SCALE

GAMES, SEED = 4000, 4092
MOST_OPEN = 2  # boxes of both cards


class Prior(PairPlayer):
    """Believes the prior."""

    def correct(self, seen: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros(len(seen))


def main(names: list[str]) -> None:
    """Play, measure, print."""
    print(machine())
    seen = late_decisions()
    pairs, decision = pairs_of(seen, Rules()), decode(seen)
    exact, rolls = Prior(Rules()), roll_indices(decision.dice)
    begun = np.unique(pairs[decision.rolls_left == 2], axis=0)
    truth = exact.turns(begun)
    values = action_values(tables_of(Rules()), pairs, rolls, decision.rolls_left, exact.write_worths) / SCALE
    best = values.max(1)
    print(f"{len(begun)} positions, {len(pairs)} decisions\n")
    print(f"{'':24}{'error of the share':>20}{'best actions':>14}{'lost a decision':>17}")
    for name in ("prior", *names):
        player: PairPlayer = Prior(Rules(), by_table=False)
        if name != "prior":
            player = PairValue(load_policy(READY.get(name, Path(name))), by_table=False)
        lost = best - values[np.arange(len(pairs)), player.act(seen, np.empty(0))]
        error = np.abs(player.shares(begun) - truth).mean()
        print(f"{name[-24:]:24}{100 * error:18.3f} %{100 * (lost < 1e-6).mean():12.1f} %{100 * lost.mean():15.4f} %")


def late_decisions() -> np.ndarray:
    """Return what players see in all decisions of the games with so few open boxes, (N, D)."""
    batch, player, found = Batch(GAMES, 2), make("win_probability"), []
    step, going_on = batch.deal_keys(game_keys(EVALUATION_DICE, SEED, range(GAMES))), batch.all_rows
    while going_on.size:
        pairs = pairs_of(step.observations, Rules())
        filled = (pairs[:, [0, 3], None] >> np.arange(NUM_BOXES) & 1).sum((1, 2))
        found.append(step.observations[2 * NUM_BOXES - filled <= MOST_OPEN])
        step = batch.step(player.act(step.observations, step.masks), only=going_on)
        goes_on = ~step.terminated
        step = step._replace(observations=step.observations[goes_on], masks=step.masks[goes_on])
        going_on = going_on[goes_on]
    return np.concatenate(found)


if __name__ == "__main__":
    main(sys.argv[1:] or ["selfplay"])
