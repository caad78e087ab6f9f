"""Rules of thumb a person could play by; they never look beyond the turn.

1. A box is worth what you write into it minus its PAR: what you would usually get there later. Take the box, or go for
   the one, that beats its par by most. Early in the game pars are high, because you can wait for the right dice; with
   few boxes left they fall, because you have to take what comes (two columns, blended by the number of open boxes).
2. Never look at the Basic bonus as lost or won before it is. Add up the Basic Section as it would end if every open
   Basic box got DICE_EXPECTED dice, allow for SPREAD dice up or down a box, and count each bonus tier by its chance.
   An entry that moves this expected bonus is worth so much more or less. So three of a face are about par, four are a
   gift, and a weak entry hurts most where it costs a tier.
3. Within the turn, keep the dice that make the best of 1 and 2 on average: the exact odds of the dice, nothing more.

The numbers were found by searching for the least regret against the exact optimum under the standard rules; under
other rules the advice stays sensible, but the numbers are not adapted.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from kismet_env.bots.player import Actions, Masks, Observations, Shares, turn_values
from kismet_env.dice import NUM_ROLLS
from kismet_env.engine import BASIC_SECTION, count_boxes, fill_box
from kismet_env.exact import TurnPolicy
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BASIC_BOXES, NUM_BOXES, Box, Rules
from kismet_env.tables import Record, Tables, tables_of
from kismet_env.turn import best_actions

PAR = {  # with all boxes open, with one box open
    Box.ACES: (6.1, 3.7),
    Box.DEUCES: (8.3, 1.9),
    Box.TREYS: (8.8, 6.0),
    Box.FOURS: (10.6, 9.8),
    Box.FIVES: (13.4, 10.4),
    Box.SIXES: (16.1, 12.7),
    Box.TWO_PAIR_SAME_COLOR: (18.3, 12.0),
    Box.THREE_OF_A_KIND: (22.9, 19.5),
    Box.STRAIGHT: (16.2, 10.0),
    Box.FLUSH: (21.4, 11.8),
    Box.FULL_HOUSE: (25.9, 16.1),
    Box.FULL_HOUSE_SAME_COLOR: (17.3, 9.0),
    Box.FOUR_OF_A_KIND: (31.0, 19.3),
    Box.YARBOROUGH: (27.4, 23.7),
    Box.KISMET: (16.2, 4.7),
}
"""Points that a box usually brings later, early and late in the game."""
DICE_EXPECTED = 2.7
"""Dice of its face that an open Basic box is expected to get."""
SPREAD = 1.1
"""Standard deviation of that number, in dice."""


class RuleBased:
    """Plays by pars and by the chances of the Basic bonus, best within the turn; the lowest number among equals."""

    def __init__(self, rules: Rules) -> None:
        self._tables = tables_of(rules)
        self._write_worths = partial(_write_worths, self._tables, np.array([PAR[box] for box in Box]))

    def action_worths(self, observations: Observations) -> npt.NDArray[np.float64]:
        """Return what each action is worth by the rules of thumb, in points above par, (N, 225); -inf where illegal."""
        return turn_values(observations, self._tables, self._write_worths)

    def act(self, observations: Observations, masks: Masks, u: Shares | None = None) -> Actions:
        """Return the best action for every row."""
        return best_actions(self.action_worths(observations))

    def turn_policy(self) -> TurnPolicy:
        """Return how he chooses."""
        return TurnPolicy("best", write_worths=self._write_worths)


@compiled
def _expected_bonus(tables: Tables, filled: int, basic_total: int) -> float:
    """Return the Basic bonus still to be paid, each tier by its chance (normal approximation)."""
    if filled & BASIC_SECTION == BASIC_SECTION:
        return 0.0  # paid, or not to be had
    mean, variance = float(basic_total), 0.0
    for box in range(NUM_BASIC_BOXES):
        if not filled >> box & 1:
            face = box + 1
            mean += DICE_EXPECTED * face
            variance += (SPREAD * face) ** 2
    expected, below = 0.0, 0
    for tier in range(tables.num_tiers):
        asked = tables.tier_totals[tier]
        missing = asked - 0.5 - mean
        chance = 0.5 * math.erfc(missing / math.sqrt(2 * variance))
        expected += (tables.bonus[asked] - below) * chance
        below = tables.bonus[asked]
    return expected


@compiled
def _write_worths(tables_array: Record, pars: Table, cards: Table, worths: Table) -> None:
    """Write what filling each open box with each roll is worth above par into `worths` [card, box, roll]."""
    tables = tables_array[0]
    for index in range(len(cards)):
        filled, basic_total, armed = cards[index, 0], cards[index, 1], cards[index, 2] != 0
        early = (NUM_BOXES - count_boxes(filled) - 1) / (NUM_BOXES - 1)
        for box in range(NUM_BOXES):
            if filled >> box & 1:
                continue
            par = early * pars[box, 0] + (1 - early) * pars[box, 1]
            known_total, hope = -1, 0.0
            for roll in range(NUM_ROLLS):
                points, bonus, filled_after, total_after, _ = fill_box(tables, filled, basic_total, armed, roll, box)
                if total_after != known_total:  # rolls come in runs that bring a box the same
                    known_total, hope = total_after, _expected_bonus(tables, filled_after, total_after)
                worths[index, box, roll] = points + bonus + hope - par
