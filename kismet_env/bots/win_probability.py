"""Plays to win, not for points: every action is one with the highest chance to win, as `win_chance` judges it.

Ahead he plays safe, behind he gambles, and he knows what his second Kismet would do to the others' cards.
"""

from __future__ import annotations

import numpy as np

from kismet_env.bots.optimal import Optimal
from kismet_env.bots.player import Actions, Masks, Observations, Shares
from kismet_env.dice import NUM_ROLLS, roll_indices
from kismet_env.engine import ALL_BOXES
from kismet_env.jit import Table, compiled
from kismet_env.observation import decode, decode_table
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, tables_of
from kismet_env.turn import allow, best_action, new_plan, plan_card
from kismet_env.win_chance import ARMED, FILLED, POINT, SCALE, Judge, judge_of, new_scratch, write_turn_worths


class WinProbability:
    """Maximises the chance to win over the dice of the turn, exactly; what comes after it is judged by `win_chance`.

    Among equal chances points count, and among equals of these the lowest number. With nobody to beat, in the solitaire
    game, he plays as Optimal does. The first match under some rules works out what `win_chance` needs: minutes.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules, self._tables = rules, tables_of(rules)
        self._alone = Optimal(rules)

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row."""
        cards = decode_table(observations, self._rules)
        if cards.shape[1] == 1:
            return self._alone.act(observations, masks)
        decision = decode(observations)
        actions = np.zeros(len(cards), np.int64)
        _choose(self._tables, judge_of(self._rules), cards, roll_indices(decision.dice), decision.rolls_left, actions)
        return actions


@compiled
def _choose(tables_array: Record, judge: Judge, games: Table, rolls: Table, rolls_left: Table, actions: Table) -> None:
    """Write the best action of the first of each game's cards, `games` (N, P, 4); those that are full keep theirs."""
    tables, plan = tables_array[0], new_plan()
    scratch, worths = new_scratch(games.shape[1], judge), np.empty((2, NUM_BOXES, NUM_ROLLS))
    chances, points = worths[0], worths[1]
    for row in range(len(games)):
        cards = games[row]
        filled = cards[0, FILLED]
        if filled == ALL_BOXES:
            continue
        write_turn_worths(tables, judge, cards, scratch, chances, points)
        for box in range(NUM_BOXES):
            if not filled >> box & 1:
                for roll in range(NUM_ROLLS):
                    chances[box, roll] = SCALE * chances[box, roll] + POINT * points[box, roll]
        allow(tables, filled, cards[0, ARMED] != 0, plan)
        plan_card(filled, chances, plan)
        actions[row] = best_action(filled, chances, plan, rolls_left[row], rolls[row])
