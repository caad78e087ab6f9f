"""Dice: numbers and probabilities against all 7,776 ordered rolls, and the dice that a game's key brings."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from chance import far_out
from hypothesis import example, given
from hypothesis import strategies as st

from kismet_env import dice
from kismet_env.dice import (
    CAN_KEEP,
    KEEP_AND_ONE,
    KEEP_COUNTS,
    KEEP_LESS_ONE,
    KEEP_SIZE,
    NUM_KEEPS,
    NUM_REROLL_KEEPS,
    NUM_ROLLS,
    REROLL_PROBABILITY,
    ROLL_COLOR_COUNTS,
    ROLL_COLORS,
    ROLL_COUNTS,
    ROLL_DICE,
    ROLL_PROBABILITY,
    hash_words,
    keep_index,
    mix,
    roll_index,
    roll_indices,
    scaled,
    throw,
)

FACES = range(1, 7)
ORDERED_ROLLS = list(product(FACES, repeat=5))
Faces = tuple[int, ...]
MASK = 2**64 - 1


def keep_faces(keep: int) -> Faces:
    return tuple(face for face in FACES for _ in range(KEEP_COUNTS[keep, face - 1]))


# Numbers


def test_rolls_are_the_252_sorted_rolls_in_lexicographic_order() -> None:
    expected = sorted({tuple(sorted(roll)) for roll in ORDERED_ROLLS})
    assert len(expected) == NUM_ROLLS == 252
    assert [tuple(roll) for roll in ROLL_DICE.tolist()] == expected


def test_keeps_are_the_462_multisets_by_size_then_lexicographic() -> None:
    parts = {tuple(sorted(roll[:size])) for roll in ORDERED_ROLLS for size in range(6)}
    expected = sorted(parts, key=lambda keep: (len(keep), keep))
    assert len(expected) == NUM_KEEPS == 462
    assert [keep_faces(keep) for keep in range(NUM_KEEPS)] == expected
    assert KEEP_SIZE.tolist() == [len(keep) for keep in expected]
    assert sum(len(keep) < 5 for keep in expected) == NUM_REROLL_KEEPS == 210


def test_keep_210_plus_roll_is_all_five_dice_of_the_roll() -> None:
    for roll, faces in enumerate(ROLL_DICE.tolist()):
        assert keep_faces(210 + roll) == tuple(faces)


def test_every_order_of_dice_finds_its_roll() -> None:
    number = {tuple(roll): index for index, roll in enumerate(ROLL_DICE.tolist())}
    expected = [number[tuple(sorted(ordered))] for ordered in ORDERED_ROLLS]
    assert [roll_index(ordered) for ordered in ORDERED_ROLLS] == expected
    assert roll_indices(ORDERED_ROLLS).tolist() == expected
    assert roll_indices(np.reshape(ORDERED_ROLLS, (6, 1296, 5))).ravel().tolist() == expected


@pytest.mark.parametrize(
    "faces",
    [(1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 4), (1, 2, 3, 4, 7), (1.5, 2, 3, 4, 5), "12345", ()],
    ids=str,
)
def test_what_is_no_roll_is_refused(faces: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="dice"):
        roll_index(faces)


@pytest.mark.parametrize("faces", [(1, 2, 3, 4, 5, 6), (0,), (7,), (2.5,), "1"], ids=str)
def test_what_is_no_keep_is_refused(faces: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="dice"):
        keep_index(faces)


def test_counts_and_colors_of_a_roll() -> None:
    color = {1: "black", 6: "black", 2: "red", 5: "red", 3: "green", 4: "green"}
    for roll, faces in enumerate(ROLL_DICE.tolist()):
        assert ROLL_COUNTS[roll].tolist() == [faces.count(face) for face in FACES], f"dice {faces}"
        colors = [color[face] for face in faces]
        assert [dice.COLORS[index] for index in ROLL_COLORS[roll]] == colors, f"dice {faces}"
        assert ROLL_COLOR_COUNTS[roll].tolist() == [colors.count(name) for name in dice.COLORS], f"dice {faces}"
        assert dice.IS_FIVE_ALIKE[roll] == (len(set(faces)) == 1), f"dice {faces}"


# Keeping and rolling on


def test_one_die_more_and_one_die_less() -> None:
    for keep, face in product(range(NUM_KEEPS), FACES):
        faces = list(keep_faces(keep))
        if keep < NUM_REROLL_KEEPS:
            more = keep_faces(KEEP_AND_ONE[keep, face - 1])
            assert more == tuple(sorted([*faces, face])), f"keep {faces} and a {face}: {more}"
        less = KEEP_LESS_ONE[keep, face - 1]
        if face in faces:
            faces.remove(face)
            assert keep_faces(less) == tuple(faces), f"keep {keep_faces(keep)} without a {face}"
        else:
            assert less == -1, f"keep {faces} has no {face}"


def test_a_roll_holds_exactly_the_keeps_that_are_some_of_its_dice() -> None:
    for roll, faces in enumerate(ROLL_DICE.tolist()):
        expected = {part for size in range(5) for part in combinations(faces, size)}
        actual = {keep_faces(keep) for keep in np.flatnonzero(CAN_KEEP[roll])}
        assert actual == expected, f"dice {faces}"


def test_probability_of_a_roll_counts_its_orders() -> None:
    orders = Counter(tuple(sorted(roll)) for roll in ORDERED_ROLLS)
    weights = [orders[tuple(roll)] for roll in ROLL_DICE.tolist()]
    assert sum(weights) == 7776
    np.testing.assert_allclose(ROLL_PROBABILITY, np.array(weights) / 7776, rtol=1e-15)


def test_probability_after_a_keep_counts_the_rolls_that_begin_with_it() -> None:
    after: dict[Faces, Counter[Faces]] = {}
    for roll, size in product(ORDERED_ROLLS, range(5)):
        after.setdefault(roll[:size], Counter())[tuple(sorted(roll))] += 1
    for keep in range(NUM_REROLL_KEEPS):
        counts = after[keep_faces(keep)]
        expected = [counts[tuple(roll)] / counts.total() for roll in ROLL_DICE.tolist()]
        np.testing.assert_allclose(REROLL_PROBABILITY[keep], expected, rtol=1e-15, err_msg=str(keep_faces(keep)))


# Keys


def test_mix_is_splitmix64() -> None:
    """The first numbers of the public generator, from two seeds of its test vectors."""
    gamma = 0x9E3779B97F4A7C15
    vectors = {
        0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC],
        1234567: [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431],
    }
    for seed, expected in vectors.items():
        states = [(seed + number * gamma) & MASK for number in range(len(expected))]
        assert [int(mix(np.uint64(0), np.uint64(state))) for state in states] == expected
        assert [int(mix(np.uint64(state), np.uint64(0))) for state in states] == expected


def splitmix(state: int, word: int) -> int:
    z = ((state ^ word) + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


words = st.integers(0, MASK)


@given(words, words)
def test_mix_in_whole_numbers(state: int, word: int) -> None:
    assert int(mix(np.uint64(state), np.uint64(word))) == splitmix(state, word)


@given(words, st.integers(1, 2**31 - 1))
@example(0x5555_5555_FFFF_FFFF, 3)  # the low half decides
def test_scaled_is_the_exact_share(bits: int, limit: int) -> None:
    assert scaled(np.uint64(bits), limit) == bits * limit // 2**64


def test_hash_of_words_chains_mix() -> None:
    assert int(hash_words(7)) == splitmix(0, 7)
    assert int(hash_words(7, 8, 9)) == splitmix(splitmix(splitmix(0, 7), 8), 9)
    assert int(hash_words(2**64 + 7)) == splitmix(splitmix(0, 7), 1)
    assert hash_words(np.int64(7), np.uint64(8)) == hash_words(7, 8)


def test_seeds_of_any_size_give_different_keys() -> None:
    seeds = [0, 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**65, 2**128, 2**200, 2**200 + 1]
    assert len({int(hash_words(seed)) for seed in seeds}) == len(seeds)
    assert hash_words(1, 2) != hash_words(2, 1)
    with pytest.raises(ValueError, match="-1 is negative"):
        hash_words(-1)
    with pytest.raises(ValueError, match="-1 is negative"):
        hash_words(np.int64(-1))
    with pytest.raises(TypeError):
        hash_words(1.5)  # type: ignore[arg-type]


def roll_of(key: int, seat: int, filled: int, roll: int, kept: Faces) -> Faces:
    tables = (dice.ROLLS_AFTER, dice.FIRST_ROLL_AFTER, dice.NUM_THROWS)
    return tuple(ROLL_DICE[throw(np.uint64(key), seat, filled, roll, keep_index(kept), *tables)].tolist())


places = st.tuples(words, st.integers(0, 5), st.integers(0, 14), st.integers(0, 2))
keeps = st.lists(st.integers(1, 6), max_size=4).map(tuple)


@given(places, keeps)
def test_dice_are_the_base_6_digits_of_one_hash(place: tuple[int, int, int, int], kept: Faces) -> None:
    """So they are a pure function of key, seat, filled boxes, roll and die, and of nothing else."""
    key, seat, filled, roll = place
    fraction = splitmix(key, seat << 16 | filled << 8 | roll)
    rolled = []
    for _ in range(5 - len(kept)):
        digit, fraction = divmod(fraction * 6, 2**64)
        rolled.append(digit + 1)
    assert roll_of(*place, kept) == tuple(sorted([*kept, *rolled]))


@given(places, keeps)
def test_a_die_does_not_depend_on_how_many_are_rolled(place: tuple[int, int, int, int], kept: Faces) -> None:
    all_five = Counter(roll_of(*place, ()))
    came = Counter(roll_of(*place, kept)) - Counter(kept)
    assert came <= all_five, f"{came} is not part of {all_five}"
    for number in range(1, 5):  # one die more at a time: the dice before it stay
        fewer = Counter(roll_of(*place, (1,) * (5 - number))) - Counter({1: 5 - number})
        more = Counter(roll_of(*place, (1,) * (4 - number))) - Counter({1: 4 - number})
        assert fewer <= more


# Chance


def five_dice(key: int, place: tuple[int, int, int]) -> list[int]:
    """Return the dice of a place in the order in which they are rolled, found by rolling one more at a time."""
    seen: Counter[int] = Counter()
    ordered = []
    for number in range(1, 6):
        kept = (1,) * (5 - number)
        (die,) = (Counter(roll_of(key, *place, kept)) - Counter(kept) - seen).elements()
        ordered.append(die)
        seen[die] += 1
    return ordered


def keys_of_games(count: int) -> list[int]:
    """Return keys as they occur: many seeds, and many games of one seed."""
    return [int(hash_words(seed, 0)) for seed in range(count // 2)] + [
        int(hash_words(5, game)) for game in range(count // 2)
    ]


@pytest.mark.parametrize("place", [(0, 0, 0), (0, 0, 1), (0, 14, 2), (5, 7, 1)], ids=str)
def test_each_die_is_uniform_and_no_two_are_related(place: tuple[int, int, int]) -> None:
    rolled = np.array([five_dice(key, place) for key in keys_of_games(6000)]) - 1
    for die in range(5):
        assert far_out(np.bincount(rolled[:, die], minlength=6), np.full(6, 1 / 6)) < 5, f"die {die}"
    for one, other in combinations(range(5), 2):
        pairs = np.bincount(rolled[:, one] * 6 + rolled[:, other], minlength=36)
        assert far_out(pairs, np.full(36, 1 / 36)) < 5, f"dice {one} and {other}"
    assert far_out(np.bincount(rolled @ 6 ** np.arange(5), minlength=7776), np.full(7776, 1 / 7776)) < 5


@pytest.mark.parametrize("size", range(5))
def test_rolls_come_as_often_as_they_should(size: int) -> None:
    kept = (2, 2, 5, 6)[:size]
    rolls = [roll_index(roll_of(key, 0, 3, 1, kept)) for key in keys_of_games(20_000)]
    possible = np.flatnonzero(REROLL_PROBABILITY[keep_index(kept)])
    assert set(rolls) <= set(possible)
    counts = np.bincount(rolls, minlength=NUM_ROLLS)
    assert far_out(counts[possible], REROLL_PROBABILITY[keep_index(kept)][possible]) < 5


NEIGHBOURS = {  # what must be unrelated although key or place are near
    "rolls of a turn": lambda number: ((number, 0), (0, 4, 0), (0, 4, 1)),
    "turns": lambda number: ((number, 0), (0, 4, 0), (0, 5, 0)),
    "seats": lambda number: ((number, 0), (0, 4, 0), (1, 4, 0)),
    "games of a seed": lambda number: ((3, number, 3, number + 1), (0, 4, 0), (0, 4, 0)),
    "seeds": lambda number: ((number, 0, number + 1, 0), (0, 4, 0), (0, 4, 0)),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_dice_are_unrelated(name: str) -> None:
    pairs = []
    for number in range(20_000):
        seeds, one, other = NEIGHBOURS[name](number)
        first, second = hash_words(*seeds[:2]), hash_words(*seeds[-2:])
        kept = (1, 1, 1, 1)
        pairs.append((roll_of(int(first), *one, kept)[-1] - 1) * 6 + roll_of(int(second), *other, kept)[-1] - 1)
    assert far_out(np.bincount(pairs, minlength=36), np.full(36, 1 / 36)) < 5


def test_no_place_shares_its_hash_with_another() -> None:
    key = int(hash_words(1, 2))
    numbers = {splitmix(key, seat << 16 | filled << 8 | roll) for seat, filled, roll in np.ndindex(6, 15, 3)}
    assert len(numbers) == prod((6, 15, 3))
