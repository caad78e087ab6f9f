"""The exact value of a player, without sampling: his expected score, its distribution, and what each action is worth.

It works for every player whose action depends on (filled boxes, Basic total up to the top tier, armed, dice, rolls
left) alone. Such a player is described by a `TurnPolicy`: how he chooses among the 756 rolls that a card can meet. The
rest is backward induction as in the solver, with his choices in the place of the best ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.cards import PARTS, CardNumbers, Cards, place_of, write_worth
from kismet_env.dice import (
    CAN_KEEP,
    KEEP_AND_ONE,
    KEEP_LESS_ONE,
    KEEPS_OF_ROLL,
    MOST_KEEPS,
    NUM_FACES,
    NUM_KEEPS,
    NUM_REROLL_KEEPS,
    NUM_ROLLS,
    ROLL_DICE,
    ROLL_PROBABILITY,
    roll_indices,
)
from kismet_env.engine import ALL_BOXES, ROLLS_PER_TURN, fill_box, legal_boxes
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, Tables, tables_of
from kismet_env.turn import CARDS_AT_ONCE, TIE, Plan, allow, mean_over_rolls, new_plan, plan_card, write_best_actions

STYLES = ("best", "epsilon", "boltzmann", "table", "shares")
_BEST, _EPSILON, _BOLTZMANN, _TABLE, _SHARES = range(len(STYLES))
MOST_ACTIONS = MOST_KEEPS + NUM_BOXES
"""Places for the actions of one decision: for the keeps in the order of KEEPS_OF_ROLL, then for the boxes."""
UNMET = 255
"""What stands in a table in place of an action where a decision is never met and nobody knows what the player does."""
# The weights of "boltzmann" span as many powers of e as numbers can hold: with dice for which all of them are too
# small to be told apart, the best with other dice being so much better, they are worked out anew.
_TOP_EXPONENT, _LEAST_TOTAL = 600.0, 1e-200
_Common = tuple[Record, int, float, Cards, Table, Table, Table, Table, Table]
"""Tables, style, strength, cards, worths, choices, shares, starts and ranks: what the kernels have in common."""


@dataclass(frozen=True)
class TurnPolicy:
    """How a player chooses, as data.

    Attributes:
        style: "best" plays the action he thinks best, the lowest number among equals; "epsilon" does so but for a
            share `strength` of the time, when he plays any legal action; "boltzmann" plays each with probability
            proportional to exp(worth / `strength`); "table" plays what his table says; "shares" draws lots
            with the probabilities that he names.
        strength: see above.
        write_worths: for the first three: what filling each box with each roll is worth to him on each card, from
            which turn.plan_turn makes the worth of every action; see turn.action_values.
        write_table: for "table": writes his action for every card, rolls left and roll, [card, left, roll]
            (C, 3, 252) int64, or UNMET. An illegal one is a ValueError when it is met.
        write_shares: for "shares": writes the probabilities of his actions, [card, left, roll, place]
            (C, 3, 252, 46) float64; for the places see MOST_ACTIONS. They sum to 1, and to 0 beyond the legal actions.
        full_totals: whether he tells cards apart by the total of a full Basic Section, which decides nothing any more.

    Raises ValueError for an unknown style and for one without what it needs.
    """

    style: str
    strength: float = 0.0
    write_worths: Callable[[Cards, npt.NDArray[np.float64]], None] | None = None
    write_table: Callable[[Cards, npt.NDArray[np.int64]], None] | None = None
    write_shares: Callable[[Cards, npt.NDArray[np.float64]], None] | None = None
    full_totals: bool = False

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ValueError(f"style={self.style!r} is not one of {', '.join(STYLES)}")
        if (self.write_table is None) == (self.style == "table"):
            raise ValueError(f'write_table is for style "table" and needed there; the style is {self.style!r}')
        if (self.write_shares is None) == (self.style == "shares"):
            raise ValueError(f'write_shares is for style "shares" and needed there; the style is {self.style!r}')
        judges = self.style not in ("table", "shares") and (self.style, self.strength) != ("epsilon", 1.0)
        if judges and self.write_worths is None:
            raise ValueError(f"style {self.style!r} needs write_worths")


class _Turn(NamedTuple):
    """The turn of one card under a policy, and scratch; means are points still to come, squares their mean square."""

    plan: Plan  # what the player thinks
    roll_means: Table  # [left, roll] (3, 252): what it brings
    roll_squares: Table  # [left, roll] (3, 252)
    keep_means: Table  # [left, keep] (3, 462)
    keep_squares: Table  # [left, keep] (3, 462)
    table: Table  # [left, roll] (3, 252): what a player does who draws no lots, or when he draws none
    keep_weights: Table  # [left, keep] (3, 462): how probable beside one another keeps are to one who draws lots
    box_weights: Table  # [box, roll] (15, 252): and boxes
    actions: Table  # (46,): what such a player may do in one decision
    shares: Table  # (46,): and how probable each of these is
    named: Table  # [left, roll, place] (3, 252, 46): the probabilities of a player of style "shares"
    sums: Table  # (3, 462): scratch


@compiled
def _new_turn() -> _Turn:
    return _Turn(
        new_plan(),
        np.empty((ROLLS_PER_TURN, NUM_ROLLS)),
        np.empty((ROLLS_PER_TURN, NUM_ROLLS)),
        np.zeros((ROLLS_PER_TURN, NUM_KEEPS)),
        np.zeros((ROLLS_PER_TURN, NUM_KEEPS)),
        np.empty((ROLLS_PER_TURN, NUM_ROLLS), np.int64),
        np.ones((ROLLS_PER_TURN, NUM_KEEPS)),
        np.ones((NUM_BOXES, NUM_ROLLS)),
        np.empty(MOST_ACTIONS, np.int64),
        np.empty(MOST_ACTIONS),
        np.zeros((ROLLS_PER_TURN, NUM_ROLLS, MOST_ACTIONS)),
        np.empty((3, NUM_KEEPS)),
    )


@compiled
def _first_illegal(tables_array: Record, cards: Table, choices: Table, can_keep: Table) -> int:
    """Return where, counted flat, the first illegal action among `choices` [card, left, roll] is; -1: nowhere."""
    for index in range(len(cards)):
        filled, armed = cards[index, 0], cards[index, 2] != 0
        for left in range(ROLLS_PER_TURN):
            for roll in range(NUM_ROLLS):
                action = choices[index, left, roll]
                if action == UNMET:
                    continue
                box = action - NUM_REROLL_KEEPS
                if 0 <= action < NUM_REROLL_KEEPS:
                    legal = left > 0 and can_keep[roll, action]
                else:
                    boxes = legal_boxes(tables_array[0], filled, armed, roll, left)
                    legal = 0 <= box < NUM_BOXES and boxes >> box & 1 == 1
                if not legal:
                    return (index * ROLLS_PER_TURN + left) * NUM_ROLLS + roll
    return -1


@compiled
def _choose(
    style: int,
    strength: float,
    filled: int,
    roll: int,
    left: int,
    keep_worths: Table,
    worth: Table,
    barriers: Table,
    actions: Table,
    shares: Table,
) -> int:
    """Write the actions that a player who draws lots may take in one decision and their probabilities, (46,) each.

    Returns how many. `keep_worths` (462,) and `worth` [box, roll] are what he thinks keeps and boxes worth, `barriers`
    says what is legal (turn.write_barriers).
    """
    count = 0
    if left > 0:
        for index in range(MOST_KEEPS):
            keep = KEEPS_OF_ROLL[roll, index]
            if keep < 0:
                break
            actions[count], shares[count] = keep, keep_worths[keep]
            count += 1
    for box in range(NUM_BOXES):
        if not filled >> box & 1 and barriers[box, roll] == 0.0:
            actions[count], shares[count] = NUM_REROLL_KEEPS + box, worth[box, roll]
            count += 1
    highest = shares[0]
    for index in range(1, count):
        highest = max(highest, shares[index])
    if style == _BOLTZMANN:
        total = 0.0
        for index in range(count):
            shares[index] = np.exp((shares[index] - highest) / strength)
            total += shares[index]
        for index in range(count):
            shares[index] /= total
        return count
    first = 0
    while shares[first] < highest - TIE:
        first += 1
    for index in range(count):
        shares[index] = strength / count
    shares[first] += 1.0 - strength
    return count


@compiled
def _write_weights(strength: float, filled: int, wanted: Table, turn: _Turn) -> None:
    """Write how probable the actions on a card are beside one another to a player of style "boltzmann"."""
    roll_values, keep_values = turn.plan.roll_values, turn.plan.keep_values
    keep_weights, box_weights = turn.keep_weights, turn.box_weights
    top = roll_values[0, 0]
    for left in range(ROLLS_PER_TURN):
        for roll in range(NUM_ROLLS):
            top = max(top, roll_values[left, roll])
    for left in range(1, ROLLS_PER_TURN):
        for keep in range(NUM_REROLL_KEEPS):
            keep_weights[left, keep] = np.exp((keep_values[left, keep] - top) / strength + _TOP_EXPONENT)
    for box in range(NUM_BOXES):
        if not filled >> box & 1:
            for roll in range(NUM_ROLLS):
                box_weights[box, roll] = np.exp((wanted[box, roll] - top) / strength + _TOP_EXPONENT)


@compiled
def _think(
    tables: Tables, style: int, strength: float, card: Table, wanted: Table, choices: Table, shares: Table, turn: _Turn
) -> None:
    """Work out what a player does in his turn on `card`; `wanted` [box, roll] is the worth of its ends to him."""
    if style == _TABLE:
        turn.table[:] = choices
        return
    if style == _SHARES:
        turn.named[:] = shares
        return
    filled = card[0]
    allow(tables, filled, card[2] != 0, turn.plan)
    plan_card(filled, wanted, turn.plan)
    if style == _BOLTZMANN:
        _write_weights(strength, filled, wanted, turn)
    else:
        write_best_actions(filled, wanted, turn.plan, turn.table)


@compiled
def _follow_table(left: int, worth: Table, square: Table, turn: _Turn) -> None:
    """Work out what the actions of the table bring with `left` rolls left; see _play_turn."""
    table, roll_means, roll_squares = turn.table[left], turn.roll_means[left], turn.roll_squares[left]
    keep_means, keep_squares = turn.keep_means[left], turn.keep_squares[left]
    for roll in range(NUM_ROLLS):
        action = table[roll]
        if action == UNMET:  # and what would come of it is unknown, too
            roll_means[roll] = roll_squares[roll] = np.nan
        elif action < NUM_REROLL_KEEPS:
            roll_means[roll] = keep_means[action]
            roll_squares[roll] = keep_squares[action]
        else:
            roll_means[roll] = worth[action - NUM_REROLL_KEEPS, roll]
            roll_squares[roll] = square[action - NUM_REROLL_KEEPS, roll]


@compiled
def _follow_shares(left: int, worth: Table, square: Table, turn: _Turn) -> None:
    """Work out what lots of known probabilities bring with `left` rolls left; see _play_turn."""
    keep_means, keep_squares = turn.keep_means[left], turn.keep_squares[left]
    for roll in range(NUM_ROLLS):
        mean, mean_square = 0.0, 0.0
        for index in range(MOST_KEEPS):
            share = turn.named[left, roll, index]
            if share > 0.0:
                keep = KEEPS_OF_ROLL[roll, index]
                mean += share * keep_means[keep]
                mean_square += share * keep_squares[keep]
        for box in range(NUM_BOXES):
            share = turn.named[left, roll, MOST_KEEPS + box]
            if share > 0.0:
                mean += share * worth[box, roll]
                mean_square += share * square[box, roll]
        turn.roll_means[left, roll], turn.roll_squares[left, roll] = mean, mean_square


@compiled
def _draw_lots(
    style: int, strength: float, filled: int, left: int, wanted: Table, worth: Table, square: Table, turn: _Turn
) -> None:
    """Work out what lots bring with `left` rolls left, the mean over what _choose tells; see _play_turn.

    Keeps are not gone through roll by roll, but summed up for all rolls at once.
    """
    barriers = turn.plan.early if left > 0 else turn.plan.late
    keep_weights, box_weights = turn.keep_weights[left], turn.box_weights
    keep_means, keep_squares = turn.keep_means[left], turn.keep_squares[left]
    roll_means, roll_squares = turn.roll_means[left], turn.roll_squares[left]
    totals, means, squares = turn.sums[0], turn.sums[1], turn.sums[2]
    totals[:] = 0.0
    means[:] = 0.0
    squares[:] = 0.0
    if left > 0:
        for keep in range(NUM_REROLL_KEEPS):
            totals[keep] = keep_weights[keep]
            means[keep] = keep_weights[keep] * keep_means[keep]
            squares[keep] = keep_weights[keep] * keep_squares[keep]
        sum_over_keeps(totals)
        sum_over_keeps(means)
        sum_over_keeps(squares)
    for box in range(NUM_BOXES):
        if not filled >> box & 1:
            for roll in range(NUM_ROLLS):
                if barriers[box, roll] == 0.0:
                    weight = box_weights[box, roll]
                    totals[NUM_REROLL_KEEPS + roll] += weight
                    means[NUM_REROLL_KEEPS + roll] += weight * worth[box, roll]
                    squares[NUM_REROLL_KEEPS + roll] += weight * square[box, roll]
    for roll in range(NUM_ROLLS):
        total = totals[NUM_REROLL_KEEPS + roll]
        mean, mean_square = 0.0, 0.0
        if total > _LEAST_TOTAL:
            mean, mean_square = means[NUM_REROLL_KEEPS + roll] / total, squares[NUM_REROLL_KEEPS + roll] / total
        else:
            count = _choose(
                style,
                strength,
                filled,
                roll,
                left,
                turn.plan.keep_values[left],
                wanted,
                barriers,
                turn.actions,
                turn.shares,
            )
            for index in range(count):
                action, share = turn.actions[index], turn.shares[index]
                if action < NUM_REROLL_KEEPS:
                    mean += share * keep_means[action]
                    mean_square += share * keep_squares[action]
                else:
                    mean += share * worth[action - NUM_REROLL_KEEPS, roll]
                    mean_square += share * square[action - NUM_REROLL_KEEPS, roll]
        if style == _EPSILON:  # else the best action, which the table told
            mean = strength * mean + (1.0 - strength) * roll_means[roll]
            mean_square = strength * mean_square + (1.0 - strength) * roll_squares[roll]
        roll_means[roll], roll_squares[roll] = mean, mean_square


@compiled
def sum_over_keeps(values: Table) -> None:
    """Put in place of each of `values` (462,) the sum over all keeps that a keep holds, itself included.

    Face by face: with one die less of it the sum is there already.
    """
    for face in range(NUM_FACES):
        for keep in range(NUM_KEEPS):
            less = KEEP_LESS_ONE[keep, face]
            if less >= 0:
                values[keep] += values[less]


@compiled
def _play_turn(
    style: int, strength: float, filled: int, wanted: Table, worth: Table, square: Table, turn: _Turn
) -> None:
    """Work out what a thought-out turn brings, roll by roll; `worth` and `square` are what its ends bring."""
    for left in range(ROLLS_PER_TURN):
        if style == _SHARES:
            _follow_shares(left, worth, square, turn)
        elif style != _BOLTZMANN:
            _follow_table(left, worth, square, turn)
        if style in (_EPSILON, _BOLTZMANN):
            _draw_lots(style, strength, filled, left, wanted, worth, square, turn)
        if left + 1 < ROLLS_PER_TURN:
            mean_over_rolls(turn.roll_means[left], turn.keep_means[left + 1])
            mean_over_rolls(turn.roll_squares[left], turn.keep_squares[left + 1])


@compiled
def _evaluate(
    tables_array: Record,
    style: int,
    strength: float,
    cards: Table,
    wanteds: Table,
    choices: Table,
    shares: Table,
    starts: Table,
    ranks: Table,
    means: Table,
    squares: Table,
) -> None:
    """Write mean and mean square of what still comes on `cards` whose successors are known."""
    tables, turn = tables_array[0], _new_turn()
    worth, square = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((NUM_BOXES, NUM_ROLLS))
    for index in range(len(cards)):
        card, wanted = cards[index], wanteds[index]
        write_worth(tables, starts, ranks, means, card, worth, squares, square)
        _think(tables, style, strength, card, wanted, choices[index], shares[index], turn)
        _play_turn(style, strength, card[0], wanted, worth, square, turn)
        mean, mean_square = 0.0, 0.0
        for roll in range(NUM_ROLLS):
            mean += ROLL_PROBABILITY[roll] * turn.roll_means[-1, roll]
            mean_square += ROLL_PROBABILITY[roll] * turn.roll_squares[-1, roll]
        place = place_of(starts, ranks, card[0], card[1], card[2] != 0)
        means[place], squares[place] = mean, mean_square


@compiled
def _write_action_values(
    tables_array: Record,
    style: int,
    strength: float,
    cards: Table,
    wanteds: Table,
    choices: Table,
    shares: Table,
    starts: Table,
    ranks: Table,
    means: Table,
    squares: Table,
    rolls: Table,
    lefts: Table,
    out: Table,
) -> None:
    """Write what each action brings in the decisions (card, roll, rolls left), (C, 225); -inf where illegal."""
    tables, turn = tables_array[0], _new_turn()
    worth, square = np.empty((NUM_BOXES, NUM_ROLLS)), np.empty((NUM_BOXES, NUM_ROLLS))
    for index in range(len(cards)):
        card, wanted, roll, left = cards[index], wanteds[index], rolls[index], lefts[index]
        filled = card[0]
        write_worth(tables, starts, ranks, means, card, worth, squares, square)
        _think(tables, style, strength, card, wanted, choices[index], shares[index], turn)
        _play_turn(style, strength, filled, wanted, worth, square, turn)
        out[index] = -np.inf
        if left > 0:
            for keep in KEEPS_OF_ROLL[roll]:
                if keep >= 0:
                    out[index, keep] = turn.keep_means[left, keep]
        boxes = legal_boxes(tables, filled, card[2] != 0, roll, left)
        for box in range(NUM_BOXES):
            if boxes >> box & 1:
                out[index, NUM_REROLL_KEEPS + box] = worth[box, roll]


@compiled
def _end_turn(style: int, strength: float, filled: int, wanted: Table, turn: _Turn, mass: Table, ends: Table) -> None:
    """Write the probability that a thought-out turn ends by filling a box with a roll, `ends` [box, roll] (15, 252).

    `mass` (2, 462) is scratch: the probability of keeping a keep and of a roll after it.
    """
    table, actions, shares = turn.table, turn.actions, turn.shares
    rolled, kept = mass[0], mass[1]
    ends[:] = 0.0
    for roll in range(NUM_ROLLS):
        rolled[roll] = ROLL_PROBABILITY[roll]
    for left in range(ROLLS_PER_TURN - 1, -1, -1):
        barriers = turn.plan.early if left > 0 else turn.plan.late
        keep_worths = turn.plan.keep_values[left]
        kept[:] = 0.0
        for roll in range(NUM_ROLLS):
            if rolled[roll] == 0.0:
                continue
            if style in (_BEST, _TABLE):
                action = table[left, roll]
                if action < NUM_REROLL_KEEPS:
                    kept[action] += rolled[roll]
                else:
                    ends[action - NUM_REROLL_KEEPS, roll] += rolled[roll]
                continue
            if style == _SHARES:
                for index in range(MOST_ACTIONS):
                    share = rolled[roll] * turn.named[left, roll, index]
                    if index >= MOST_KEEPS:
                        ends[index - MOST_KEEPS, roll] += share
                    elif share > 0.0:
                        kept[KEEPS_OF_ROLL[roll, index]] += share
                continue
            count = _choose(
                style,
                strength,
                filled,
                roll,
                left,
                keep_worths,
                wanted,
                barriers,
                actions,
                shares,
            )
            for index in range(count):
                share = rolled[roll] * shares[index]
                if actions[index] < NUM_REROLL_KEEPS:
                    kept[actions[index]] += share
                else:
                    ends[actions[index] - NUM_REROLL_KEEPS, roll] += share
        for keep in range(NUM_REROLL_KEEPS):  # die by die: each face of the next one has its sixth
            for face in range(NUM_FACES):
                kept[KEEP_AND_ONE[keep, face]] += kept[keep] / NUM_FACES
        for roll in range(NUM_ROLLS):
            rolled[roll] = kept[NUM_REROLL_KEEPS + roll]


@compiled
def _distribute(
    tables_array: Record,
    style: int,
    strength: float,
    cards: Table,
    wanteds: Table,
    choices: Table,
    shares: Table,
    starts: Table,
    ranks: Table,
    rows: Table,
    after: Table,
    out: Table,
) -> None:
    """Write the distribution of the points still to come on `cards`, out[row, points], from that `after` the turn.

    `rows` [place] says in which row of its layer a card is.
    """
    tables, turn = tables_array[0], _new_turn()
    mass, ends = np.empty((2, NUM_KEEPS)), np.empty((NUM_BOXES, NUM_ROLLS))
    most = out.shape[1]
    chance, row_after = np.zeros((2, most)), np.zeros((2, most), np.int64)
    for index in range(len(cards)):
        card, wanted = cards[index], wanteds[index]
        filled, basic_total, armed = card[0], card[1], card[2] != 0
        _think(tables, style, strength, card, wanted, choices[index], shares[index], turn)
        _end_turn(style, strength, filled, wanted, turn, mass, ends)
        row = rows[place_of(starts, ranks, filled, basic_total, armed)]
        for points in range(most):
            out[row, points] = 0.0
        for box in range(NUM_BOXES):
            if filled >> box & 1:
                continue
            chance[:] = 0.0  # of each gain; gain and `armed` decide the card after it
            for roll in range(NUM_ROLLS):
                if ends[box, roll] > 0.0:
                    points, bonus, filled_after, total_after, armed_after = fill_box(
                        tables, filled, basic_total, armed, roll, box
                    )
                    gain = points + bonus
                    chance[int(armed_after), gain] += ends[box, roll]
                    if filled_after != ALL_BOXES:
                        place = place_of(starts, ranks, filled_after, total_after, armed_after)
                        row_after[int(armed_after), gain] = rows[place]
            is_last = filled | 1 << box == ALL_BOXES
            for arms in range(2):
                for gain in range(most):
                    share = chance[arms, gain]
                    if share > 0.0:
                        if is_last:
                            out[row, gain] += share
                        else:
                            source = row_after[arms, gain]
                            for points in range(min(after.shape[1], most - gain)):
                                out[row, gain + points] += share * after[source, points]


def _check_table(tables: Record, cards: Cards, choices: npt.NDArray[np.int64]) -> None:
    """Raise ValueError for an illegal action among the `choices` on `cards`."""
    illegal = _first_illegal(tables, cards, choices, CAN_KEEP)
    if illegal >= 0:
        index, left, roll = map(int, np.unravel_index(illegal, (len(cards), *choices.shape[1:])))
        filled, basic_total, armed = cards[index].tolist()
        raise ValueError(
            f"action {choices[index, left, roll]} is illegal with dice {ROLL_DICE[roll].tolist()}, "
            f"rolls_left={left} on the card filled={filled}, basic_total={basic_total}, armed={armed}"
        )


def _in_parts(policy: TurnPolicy, numbers: CardNumbers, cards: Cards, write: Callable[[slice, _Common], None]) -> None:
    """Call `write` with parts of `cards` and the arguments that the kernels have in common for each."""
    worths = np.zeros((CARDS_AT_ONCE, NUM_BOXES, NUM_ROLLS))
    choices = np.zeros((CARDS_AT_ONCE, ROLLS_PER_TURN, NUM_ROLLS), np.int64)
    shares = np.zeros((CARDS_AT_ONCE, ROLLS_PER_TURN, NUM_ROLLS, MOST_ACTIONS if policy.write_shares else 0))
    style = STYLES.index(policy.style)
    for first in range(0, len(cards), CARDS_AT_ONCE):
        part = slice(first, min(first + CARDS_AT_ONCE, len(cards)))
        some = cards[part]
        if policy.write_worths is not None:
            policy.write_worths(some, worths[: len(some)])
        if policy.write_table is not None:
            policy.write_table(some, choices[: len(some)])
            _check_table(numbers.tables, some, choices)
        if policy.write_shares is not None:
            policy.write_shares(some, shares[: len(some)])
        write(
            part, (numbers.tables, style, policy.strength, some, worths, choices, shares, numbers.starts, numbers.ranks)
        )


def distributions(
    policy: TurnPolicy, numbers: CardNumbers, layers: Iterable[Cards]
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the probability of each number of points still to come on the cards of each layer, [card, points] float64.

    `layers` are those of `numbers.layers`, all or the first ones.
    """
    rows = np.zeros(numbers.size, np.int32)
    most = np.sort(numbers.tables["max_points"][0])[::-1]
    best_bonus = int(numbers.tables["bonus"].max())
    after = np.zeros((1, 1))
    for num_open, layer in enumerate(layers, start=1):
        rows[numbers.places(layer)] = np.arange(len(layer))
        out = np.zeros((len(layer), int(most[:num_open].sum()) + best_bonus + 1))

        def write(part: slice, arguments: _Common, after: Table = after, out: Table = out) -> None:
            _distribute(*arguments, rows, after, out)

        with ThreadPoolExecutor() as pool:
            parts = np.array_split(layer, min(len(layer), PARTS))
            for job in [pool.submit(_in_parts, policy, numbers, part, write) for part in parts]:
                job.result()
        yield out
        after = out


Moments = npt.NDArray[np.float64]
"""Means and mean squares of cards, (2, C)."""


class PolicyValue:
    """What a policy is worth under some rules, exactly; get it from `evaluate`.

    Cards and decisions are given as to `kismet_env.solver.Optimum`. What follows a card or a decision that is not known
    (see `only` and UNMET) is nan.

    Args:
        policy: how the player chooses.
        tables: the rules.
        report: hears the share done.
        closed: a bit per box; only cards that have these filled are worked out.
        only: bools in the order of CardNumbers: and only these of them; a turn on one has to lead to another.
        page: given some cards and what works out their means and mean squares, (2, C), returns these: who keeps them
            somewhere need not work them out again.
        most: how many cards that gives to it at once, at most.
        threads: how many work at the same time; None: as many as there are cores.
    """

    def __init__(
        self,
        policy: TurnPolicy,
        tables: Record,
        report: Callable[[float], None] = lambda share: None,
        *,
        closed: int = 0,
        only: npt.NDArray[np.bool_] | None = None,
        page: Callable[[Cards, Callable[[], Moments]], Moments] = lambda cards, work_out: work_out(),
        most: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._policy, self._only, self._page = policy, only, page
        self._numbers = numbers = CardNumbers(tables, full_totals=policy.full_totals)
        self._means = np.full(numbers.size, np.nan)
        self._squares = np.full(numbers.size, np.nan)
        numbers.sweep(self._evaluate, report, closed=closed, only=only, most=most, threads=threads)

    @cached_property
    def card_sds(self) -> npt.NDArray[np.float64]:
        """The standard deviations of all cards, in the order of CardNumbers."""
        sds: npt.NDArray[np.float64] = np.sqrt(np.maximum(self._squares - self._means**2, 0.0))
        return sds

    @property
    def expected_score(self) -> float:
        """The expected final score from an empty sheet, in points."""
        return float(self.card_value(0, 0, False))

    @property
    def score_sd(self) -> float:
        """The standard deviation of the final score from an empty sheet, in points."""
        return float(self.card_sd(0, 0, False))

    def card_value(
        self, filled: npt.ArrayLike, basic_total: npt.ArrayLike, armed: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the expected points still to come before the first roll of a turn, (...) float64."""
        return self._numbers.value(self._means, filled, basic_total, armed)

    def card_sd(
        self, filled: npt.ArrayLike, basic_total: npt.ArrayLike, armed: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the standard deviation of the points still to come before the first roll of a turn, (...) float64."""
        return self._numbers.value(self.card_sds, filled, basic_total, armed)

    def action_values(
        self,
        filled: npt.ArrayLike,
        basic_total: npt.ArrayLike,
        armed: npt.ArrayLike,
        dice: npt.ArrayLike,
        rolls_left: npt.ArrayLike,
    ) -> npt.NDArray[np.float64]:
        """Return the expected points still to come after each action if the player plays on, (..., 225) float64.

        -inf where an action is illegal.
        """
        rolls, lefts = roll_indices(dice), np.asarray(rolls_left)
        cards, shape = self._numbers.checked(filled, basic_total, armed, rolls, lefts)
        rolls = np.ascontiguousarray(np.broadcast_to(rolls, shape).reshape(-1))
        lefts = np.broadcast_to(lefts, shape).reshape(-1).astype(np.int64)
        out = np.empty((len(cards), NUM_REROLL_KEEPS + NUM_BOXES))

        def write(part: slice, arguments: _Common) -> None:
            _write_action_values(*arguments, self._means, self._squares, rolls[part], lefts[part], out[part])

        _in_parts(self._policy, self._numbers, cards, write)
        return out.reshape(*shape, out.shape[1])

    def distribution(
        self, report: Callable[[float], None] = lambda share: None, *, closed: int = 0, basic_total: int = 0
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each number of points still to come from an empty sheet, [points] float64.

        `closed` (a bit per box) and `basic_total`: from a card with these boxes filled instead. Holds a layer of the
        sweep and the one after it in memory: about 3 GB for a whole game.
        """
        layers = list(self._numbers.layers(closed, self._only))
        for done, chances in enumerate(distributions(self._policy, self._numbers, layers), start=1):
            of_last = chances
            report(done / len(layers))
        start = np.array([[closed, basic_total, 0]])
        row = np.flatnonzero(self._numbers.places(layers[-1]) == self._numbers.places(start))[0]
        return np.asarray(of_last[row])

    def _evaluate(self, cards: Cards) -> None:
        places = self._numbers.places(cards)

        def work_out() -> Moments:
            _in_parts(
                self._policy,
                self._numbers,
                cards,
                lambda part, arguments: _evaluate(*arguments, self._means, self._squares),
            )
            return np.stack([self._means[places], self._squares[places]])

        self._means[places], self._squares[places] = self._page(cards, work_out)


def evaluate(
    policy: TurnPolicy, rules: Rules | None = None, report: Callable[[float], None] = lambda share: None
) -> PolicyValue:
    """Return what `policy` is worth under `rules`, exactly, in about a minute; `report` hears the share done."""
    return PolicyValue(policy, tables_of(rules or Rules()), report)
