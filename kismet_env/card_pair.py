"""Two cards before a turn, what may become of them in it, and what `win_chance` already knows of who will win.

A *pair* is seven whole numbers: the card of him who is to move (filled, basic_total, armed), the other's, and the
lead, his total less the other's. Arrays of pairs are (N, 7) int64; their first three columns are cards, so that what
plans turns of cards plans those of pairs. What a pair is worth is the share of the win of him who is to move; so
whose turn it is needs no word of its own.

The *prior* of a pair is that share for two players who play independently for points: exact with at most three open
boxes each, by the normal approximation before. docs/two-players.md has the formulas.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kismet_env.cards import place_of
from kismet_env.dice import NUM_ROLLS
from kismet_env.endgame import FULL, LONG, share_of_end
from kismet_env.engine import ALL_BOXES, BASIC_SECTION, fill_box, first_open_box, is_second_kismet, write_points
from kismet_env.jit import Table, compiled
from kismet_env.observation import observe_progress
from kismet_env.rules import NUM_BOXES
from kismet_env.tables import Record, Tables
from kismet_env.win_chance import POINT, SCALE, Judge, exceeds, late_share, write_half_cumulated

Pairs = npt.NDArray[np.int64]
"""Rows (filled, basic_total, armed, his filled, his basic_total, his armed, lead), (N, 7)."""
OTHER, LEAD = 3, 6
"""Columns: where the other's card begins, and the lead."""
MOST_AFTER = NUM_BOXES * NUM_ROLLS
"""Pairs that a pair can become in a turn, at most."""
_OVER, _PASSES, _AGAIN = 0, -1, 1


@compiled
def pair_after(tables: Tables, pair: Table, roll: int, box: int, after: Table) -> int:
    """Fill `box` with `roll` and write the pair before the next turn into `after` (7,), the next to move first.

    Returns 1 if he who has moved moves again, -1 if the other does, 0 if the game is over; he then stands first.
    A second Kismet writes its zero into the other card and gives another turn (RULES.md 6.3, 6.4).
    """
    armed = pair[2] != 0
    points, bonus, filled, basic_total, is_armed = fill_box(tables, pair[0], pair[1], armed, roll, box)
    lead = pair[LEAD] + points + bonus
    other_filled, other_total, other_armed = pair[OTHER], pair[OTHER + 1], pair[OTHER + 2] != 0
    hits = tables.penalty and is_second_kismet(tables, armed, roll)
    if hits and other_filled != ALL_BOXES:
        bonus, other_filled, other_total, other_armed = write_points(
            tables, other_filled, other_total, other_armed, first_open_box(other_filled), 0, False
        )
        lead -= bonus
    mine, other, following = 0, OTHER, _AGAIN
    if filled == ALL_BOXES and other_filled == ALL_BOXES:
        following = _OVER
    elif filled == ALL_BOXES or (other_filled != ALL_BOXES and not hits):
        mine, other, lead, following = OTHER, 0, -lead, _PASSES
    after[mine], after[mine + 1], after[mine + 2] = filled, basic_total, int(is_armed)
    after[other], after[other + 1], after[other + 2] = other_filled, other_total, int(other_armed)
    after[LEAD] = lead
    return following


@compiled
def card_kind(judge: Judge, pair: Table, at: int) -> int:
    """Return the kind in the endgame of the card that begins in column `at` of a pair."""
    if pair[at] == ALL_BOXES:
        return FULL
    place = place_of(judge.starts, judge.ranks, pair[at], pair[at + 1], pair[at + 2] != 0)
    return int(judge.endgame.kind_of[place])


@compiled
def _known_share(judge: Judge, after: Table, following: int, by_table: bool) -> float:
    """Return what is known for sure of a pair before the next turn, for him who has moved; NaN for nothing.

    The end of the game is known, and with `by_table` what `endgame` says.
    """
    lead = -after[LEAD] if following == _PASSES else after[LEAD]
    if following == _OVER:
        return 0.5 if lead == 0 else (1.0 if lead > 0 else 0.0)
    if by_table:
        first, second = card_kind(judge, after, 0), card_kind(judge, after, OTHER)
        mine, other = (first, second) if following == _AGAIN else (second, first)
        if mine != LONG and other != LONG:
            return share_of_end(judge.endgame, mine, other, -lead, following == _AGAIN)
    return np.nan


@compiled
def write_unknown(tables_array: Record, judge: Judge, pairs: Table, by_table: bool, unknown: Table) -> int:
    """Write the pairs that a turn on each of `pairs` can lead to, and of which nothing is known for sure.

    One after another into the rows of `unknown` (N * MOST_AFTER, 7). Returns how many there are.
    """
    tables, count = tables_array[0], 0
    for index in range(len(pairs)):
        pair = pairs[index]
        for box in range(NUM_BOXES):
            if pair[0] >> box & 1:
                continue
            for roll in range(NUM_ROLLS):
                if tables.like[box, roll] == roll:
                    following = pair_after(tables, pair, roll, box, unknown[count])
                    if np.isnan(_known_share(judge, unknown[count], following, by_table)):
                        count += 1
    return count


@compiled
def write_pair_worths(
    tables_array: Record, judge: Judge, pairs: Table, by_table: bool, shares: Table, worths: Table
) -> None:
    """Write what filling each box with each roll is worth on each of `pairs`, into `worths` [pair, box, roll].

    In SCALE of a win; a point counts a thousand-millionth of a win. `shares`: what the pairs that `write_unknown` has
    written are worth to those who are to move on them, in this order.
    """
    tables, count, after = tables_array[0], 0, np.empty(7, np.int64)
    for index in range(len(pairs)):
        pair, worth = pairs[index], worths[index]
        for box in range(NUM_BOXES):
            if pair[0] >> box & 1:
                continue
            for roll in range(NUM_ROLLS):
                like = tables.like[box, roll]
                if like != roll:
                    worth[box, roll] = worth[box, like]
                    continue
                following = pair_after(tables, pair, roll, box, after)
                share = _known_share(judge, after, following, by_table)
                if np.isnan(share):
                    share = shares[count] if following == _AGAIN else 1.0 - shares[count]
                    count += 1
                points, bonus, filled, basic_total, armed = fill_box(tables, pair[0], pair[1], pair[2] != 0, roll, box)
                to_come = 0.0
                if filled != ALL_BOXES:
                    to_come = judge.values[place_of(judge.starts, judge.ranks, filled, basic_total, armed)]
                worth[box, roll] = SCALE * share + POINT * (points + bonus + to_come)


@compiled
def observe_pairs(tables_array: Record, judge: Judge, pairs: Table, seen: Table, priors: Table) -> None:
    """Write what a network sees of `pairs` (N, 7) into `seen` (N, pair_layout().size) float32, and their priors (N,).

    The other card may be full, that of him who is to move may not.
    """
    tables, values, variances, row_of, late = tables_array[0], judge.values, judge.variances, judge.row_of, judge.late
    half_cumulated, width = np.empty(late.shape[1]), late.shape[1]
    means, spreads, rows = np.zeros(2), np.zeros(2), np.zeros(2, np.int64)
    for index in range(len(pairs)):
        pair, at = pairs[index], 0
        lead = pair[LEAD]
        for card in range(2):
            filled, armed = pair[OTHER * card], pair[OTHER * card + 2] != 0
            basic_total = min(pair[OTHER * card + 1], tables.basic_cap)
            is_full = filled == ALL_BOXES
            means[card], spreads[card], rows[card] = 0.0, 0.0, -1
            if not is_full:
                place = place_of(judge.starts, judge.ranks, filled, basic_total, armed)
                means[card], spreads[card], rows[card] = values[place], variances[place], row_of[place]
            if filled & BASIC_SECTION == BASIC_SECTION:
                basic_total = 0  # it is paid for
            for box in range(NUM_BOXES):
                seen[index, at + box] = 1 - (filled >> box & 1)
            seen[index, at + NUM_BOXES] = armed
            at = observe_progress(tables, filled, basic_total, seen, index, at + NUM_BOXES + 1)
            seen[index, at] = means[card] / 100.0
            seen[index, at + 1] = math.sqrt(spreads[card]) / 100.0
            at += 2
        margin, spread = lead + means[0] - means[1], math.sqrt(spreads[0] + spreads[1])
        prior = exceeds(margin, spreads[0] + spreads[1])
        if rows[0] >= 0 and (rows[1] >= 0 or pair[OTHER] == ALL_BOXES):
            write_half_cumulated(late, rows[0], half_cumulated)
            if rows[1] >= 0:
                prior = 1.0 - late_share(late, rows[1], half_cumulated, -lead)
            elif lead > 0 or -lead >= width:
                prior = 1.0 if lead > 0 else 0.0
            else:
                prior = 1.0 - half_cumulated[-lead]
        z = margin / spread if spread > 0.0 else 0.0
        seen[index, at] = lead / 100.0
        seen[index, at + 1] = margin / 100.0
        seen[index, at + 2] = min(max(z, -5.0), 5.0)
        seen[index, at + 3] = prior
        priors[index] = prior


CERTAIN = 1e-6
"""Nearer than this to 0 or 1 a prior is left as it is: the game is decided."""


def corrected(priors: npt.NDArray[np.float64], corrections: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return `priors` (N,) with `corrections` (N,) added to their logits, (N,)."""
    is_open = (priors > CERTAIN) & (priors < 1 - CERTAIN)
    inside = np.where(is_open, priors, 0.5)
    odds = inside / (1 - inside) * np.exp(np.clip(corrections, -20, 20))
    return np.where(is_open, odds / (1 + odds), priors)
