"""The dice: rolls, keeps, their probabilities and colours, and the dice of a game's key.

A roll is a multiset of five faces (252 of them), a keep a multiset of nought to five (462). Both are numbered:
keeps by size, then in lexicographic order of their sorted faces, so that keep `210 + roll` is all five dice of
`roll` and the keeps from which one can roll on are 0..209. No other module sorts or counts dice to build an index.

The dice of a game are a pure function of its key (RULES.md 1): nothing is drawn, so a game replays from its key and
its actions, and players who meet the same key meet the same dice.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from math import factorial

import numpy as np
import numpy.typing as npt

from kismet_env.jit import Table, compiled

NUM_DICE = 5
NUM_FACES = 6
COLORS = ("black", "red", "green")
COLOR_OF_FACE = (
    0,
    1,
    2,
    2,
    1,
    0,
)  # RULES.md 1.2: 1 and 6 black, 2 and 5 red, 3 and 4 green; index is face - 1

_KEEPS = [keep for size in range(NUM_DICE + 1) for keep in combinations_with_replacement(range(1, NUM_FACES + 1), size)]
_KEEP_ID = {keep: index for index, keep in enumerate(_KEEPS)}


def _without(keep: tuple[int, ...], face: int) -> list[int]:
    rest = list(keep)
    rest.remove(face)
    return rest


NUM_KEEPS = len(_KEEPS)
NUM_REROLL_KEEPS = sum(len(keep) < NUM_DICE for keep in _KEEPS)
NUM_ROLLS = NUM_KEEPS - NUM_REROLL_KEEPS

KEEP_COUNTS = np.array([[keep.count(face) for face in range(1, NUM_FACES + 1)] for keep in _KEEPS], np.int8)
"""How many dice of each face a keep holds; (462, 6) int8, indexed [keep, face - 1]."""
_COUNT_PLACES = (NUM_DICE + 1) ** np.arange(NUM_FACES)  # face counts read as the digits of one number
KEEP_SIZE = KEEP_COUNTS.sum(1, dtype=np.int8)
"""Number of dice in a keep; (462,) int8."""
ROLL_DICE = np.array(_KEEPS[NUM_REROLL_KEEPS:], np.int8)
"""Faces of a roll in ascending order; (252, 5) int8, values 1..6."""
ROLL_COUNTS = KEEP_COUNTS[NUM_REROLL_KEEPS:]
"""How many dice of each face a roll shows; (252, 6) int8."""
_ROLL_OF_COUNTS = np.zeros((NUM_DICE + 1) ** NUM_FACES, np.int64)
_ROLL_OF_COUNTS[ROLL_COUNTS @ _COUNT_PLACES] = np.arange(NUM_ROLLS)
ROLL_COLORS = np.array(COLOR_OF_FACE, np.int8)[ROLL_DICE - 1]
"""Pip colour of each die of a roll, index into COLORS; (252, 5) int8."""
ROLL_COLOR_COUNTS = np.eye(len(COLORS), dtype=np.int8)[ROLL_COLORS].sum(1, dtype=np.int8)
"""How many dice of each colour a roll shows; (252, 3) int8."""
IS_FIVE_ALIKE = ROLL_COUNTS.max(1) == NUM_DICE
"""Whether all five dice show one face; (252,) bool."""
ROLL_PROBABILITY = np.array(
    [factorial(NUM_DICE) / np.prod([factorial(int(n)) for n in counts]) / NUM_FACES**NUM_DICE for counts in ROLL_COUNTS]
)
"""Probability of a roll of all five dice; (252,) float64, sum 1."""
KEEP_AND_ONE = np.array(
    [
        [_KEEP_ID[tuple(sorted((*keep, face)))] for face in range(1, NUM_FACES + 1)]
        for keep in _KEEPS[:NUM_REROLL_KEEPS]
    ],
    np.int16,
)
"""The keep that a keep becomes by one more die; (210, 6) int16, indexed [keep, face - 1]."""

KEEP_LESS_ONE = np.array(
    [
        [_KEEP_ID[tuple(_without(keep, face))] if face in keep else -1 for face in range(1, NUM_FACES + 1)]
        for keep in _KEEPS
    ],
    np.int16,
)
"""The keep that a keep becomes by one die less, -1 without such a die; (462, 6) int16, indexed [keep, face - 1]."""


def keep_index(dice: Sequence[int]) -> int:
    """Return the number of the keep that holds `dice` (nought to five faces in any order).

    Raises ValueError for more than five dice or a face outside 1..6.
    """
    faces = tuple(sorted(dice))
    if faces not in _KEEP_ID:
        raise ValueError(f"dice {list(dice)} are not possible; at most five faces, each 1 to 6")
    return _KEEP_ID[faces]


def roll_index(dice: Sequence[int]) -> int:
    """Return the number of the roll that shows `dice` (five faces in any order), 0..251.

    Raises ValueError unless there are five faces from 1 to 6.
    """
    if len(dice) != NUM_DICE:
        raise ValueError(f"dice {list(dice)} are not a roll; five faces, each 1 to 6")
    return keep_index(dice) - NUM_REROLL_KEEPS


def roll_indices(dice: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the numbers of rolls given as faces in any order, (..., 5) whole numbers -> (...) int64.

    Raises ValueError, naming the first row, where a row is not five faces from 1 to 6.
    """
    faces = np.asarray(dice)
    if faces.ndim == 0 or faces.shape[-1] != NUM_DICE or faces.dtype.kind not in "iu":
        raise ValueError(f"dice of shape {faces.shape} and type {faces.dtype} are not (..., {NUM_DICE}) whole numbers")
    possible = ((faces >= 1) & (faces <= NUM_FACES)).all(-1)
    if not possible.all():
        row = int(np.flatnonzero(~possible.ravel())[0])
        raise ValueError(f"row {row}: dice {faces.reshape(-1, NUM_DICE)[row].tolist()} are not faces from 1 to 6")
    counts = (faces[..., None] == np.arange(1, NUM_FACES + 1)).sum(-2)
    return np.asarray(_ROLL_OF_COUNTS[counts @ _COUNT_PLACES])


def _rolls_after() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
    """Return, for all keeps one after the other, the roll that each ordered throw of the other dice gives."""
    rolls: list[int] = []
    first: list[int] = []
    for keep in _KEEPS[:NUM_REROLL_KEEPS]:
        first.append(len(rolls))
        for thrown in product(range(1, NUM_FACES + 1), repeat=NUM_DICE - len(keep)):
            rolls.append(_KEEP_ID[tuple(sorted(keep + thrown))] - NUM_REROLL_KEEPS)
    return np.array(rolls, np.int16), np.array(first, np.int64)


ROLLS_AFTER, FIRST_ROLL_AFTER = _rolls_after()
"""ROLLS_AFTER[FIRST_ROLL_AFTER[keep] + throw]: the roll after rolling 5 - size dice; the base-6 digits of `throw`,
first die first, are the faces that came, minus 1. (22860,) int16 and (210,) int64."""
NUM_THROWS = np.array([NUM_FACES ** (NUM_DICE - int(size)) for size in KEEP_SIZE[:NUM_REROLL_KEEPS]], np.int64)
"""Number of ordered throws of the dice that are not kept; (210,) int64."""
CAN_KEEP = np.asarray((ROLL_COUNTS[:, None, :] >= KEEP_COUNTS[None, :NUM_REROLL_KEEPS, :]).all(-1), np.bool_)
"""Whether a roll holds the dice of a keep; (252, 210) bool."""
MOST_KEEPS = 2**NUM_DICE - 1
"""How many different keeps that leave a die to roll a roll can hold at most: all dice differ."""
KEEPS_OF_ROLL = np.full((NUM_ROLLS, MOST_KEEPS), -1, np.int16)
"""The keeps that a roll holds and that leave a die to roll, ascending, then -1; (252, 31) int16."""
for _roll, _can_keep in enumerate(CAN_KEEP):
    KEEPS_OF_ROLL[_roll, : _can_keep.sum()] = np.flatnonzero(_can_keep)
REROLL_PROBABILITY = np.stack(
    [
        np.bincount(ROLLS_AFTER[first : first + throws], minlength=NUM_ROLLS) / throws
        for first, throws in zip(FIRST_ROLL_AFTER, NUM_THROWS, strict=True)
    ]
)
"""Probability of a roll after keeping a keep and rolling the other dice; (210, 252) float64, rows sum to 1."""


@compiled
def mix(state: np.uint64, word: np.uint64) -> np.uint64:
    """Return uint64 `state` with uint64 `word` stirred in (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def scaled(bits: np.uint64, limit: int) -> int:
    """Return floor(bits / 2**64 * limit) as int64, for uint64 `bits` and 0 < limit < 2**31.

    As a share of all 2**64 words no value is off its fair part by more than limit / 2**64, under 1e-14 here.
    """
    half = np.uint64(32)
    low_half = np.uint64(0xFFFFFFFF)
    factor = np.uint64(limit)
    return np.int64(((bits >> half) * factor + (((bits & low_half) * factor) >> half)) >> half)  # type: ignore[return-value]


@compiled
def throw(
    key: np.uint64,
    seat: int,
    filled: int,
    roll: int,
    keep: int,
    rolls_after: Table,
    first_roll_after: Table,
    num_throws: Table,
) -> int:
    """Return the roll (0..251) that comes when `keep` stays and the other dice are rolled.

    A pure function of the game's key, the seat, how many boxes that seat's card has filled, which roll of the turn it
    is (0, 1, 2) and j, the j-th die being rolled: die j is digit j of one hashed fraction written in base 6, so it
    does not depend on how many dice are rolled.
    """
    place = np.uint64((seat << 16) | (filled << 8) | roll)
    bits = mix(key, place)
    return int(rolls_after[first_roll_after[keep] + scaled(bits, num_throws[keep])])


def hash_words(*words: int) -> np.uint64:
    """Return a uint64 key made of non-negative integers of any size, in order.

    hash_words(seed) is the base of a seeding, hash_words(domain, seed, game) the key of a game in evaluation.
    Raises ValueError for a negative word.
    """
    state = np.uint64(0)
    for word in map(operator.index, words):
        if word < 0:
            raise ValueError(f"seed {word} is negative; seeds are whole numbers from 0 up")
        state = np.uint64(mix(state, np.uint64(word & 0xFFFFFFFFFFFFFFFF)))
        while (word := word >> 64) > 0:
            state = np.uint64(mix(state, np.uint64(word & 0xFFFFFFFFFFFFFFFF)))
    return state
