"""Tabular Q-learning (Watkins 1989) of games with one open box, against the best play there is.

The one argument is the number of rounds of a thousand games each; fewer are faster and worse.
"""

import sys

import numpy as np

from kismet_env.batch import Batch
from kismet_env.dice import KEEPS_OF_ROLL, roll_indices
from kismet_env.rules import Box, Rules
from kismet_env.solver import solve

ROLLING = 210  # actions below keep dice and roll the others; from here on they fill a box
CHOICES = np.c_[KEEPS_OF_ROLL, ROLLING + np.arange(252)]  # [roll]: dice to keep, or -1; all five: to fill the box
CURIOSITY = 80  # points by which an untried choice seems better; falls with the root of its trials
Q = np.zeros(15 * 7**3 * 3 * 462 + 1)  # [box, card, rolls left, dice kept]: points to come; the last place: illegal
Q[-1], trials = -np.inf, np.zeros(len(Q), np.int32)


def look(games, masks):
    """Return the places in Q of the choices in each game, and their actions, (N, 32) both."""
    filled, basic_total, armed, dice, left = games.decisions()
    box = (filled[:, None] >> np.arange(15) & 1).argmin(1)
    # What matters of a card: dice of the box's face that each bonus tier needs, 6 being too many; a full house's joker.
    needs = [np.clip(-((basic_total - tier) // (box + 1)), 0, 6) for tier, _ in Rules().bonus_tiers]
    joker = armed & np.isin(box, (Box.FULL_HOUSE, Box.FULL_HOUSE_SAME_COLOR))
    card = 7**3 * box + np.where(box <= Box.SIXES, np.array([1, 7, 49]) @ needs, joker)
    kept = CHOICES[roll_indices(dice)]
    actions = np.where(kept < ROLLING, kept, ROLLING + box[:, None])
    places = (card[:, None] * 3 + np.where(kept < ROLLING, left[:, None], 0)) * 462 + kept
    return np.where((kept >= 0) & (np.take_along_axis(masks, actions, 1) == 1), places, -1), actions


def play(games, curiosity=0):
    """Play a game in each row; return of each move: decision, action, place in Q, reward, the end?, places after it."""
    moves, (places, actions) = [], look(games, games.deal().masks)
    while (rows := np.flatnonzero(~games.over)).size:
        choice = (Q[places] + curiosity / np.sqrt(1 + trials[places])).argmax(1)
        before, place, action = games.decisions(rows), places[games.all_rows, choice], actions[games.all_rows, choice]
        step = games.step(action)
        places, actions = look(games, step.masks)
        moves.append((before, action[rows], place[rows], step.rewards[rows, 0], step.terminated[rows], places[rows]))
    return moves


games, tests = Batch(1000, start="open:1"), Batch(20_000, start="open:1")
games.seed(range(1000))
tests.seed(range(1_000_000, 1_020_000))
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3000):
    for _, _, place, reward, is_end, following in reversed(play(games, CURIOSITY)):
        target = reward + np.where(is_end, 0, Q[following].max(1))
        np.add.at(trials, place, 1)
        np.add.at(Q, place, (target - Q[place]) / trials[place])  # the mean of all targets so far
optimum = solve()
truths = [(optimum.action_values(*before), action) for before, action, *_ in play(tests)]
lost = sum((truth.max(1) - truth[np.arange(len(truth)), action]).sum() for truth, action in truths) / 20_000
best = optimum.start_value("open:1")
print(f"best play: {best:.2f} points, exactly; learned: {best - lost:.2f} in 20,000 games, {1 - lost / best:.1%}")
