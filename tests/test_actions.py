"""The two numberings of the actions: what each number means in every roll, by brute force, and in words."""

from itertools import combinations, product

import numpy as np
import pytest

from kismet_env.actions import Actions, actions_of
from kismet_env.dice import KEEP_COUNTS, ROLL_DICE, keep_index, roll_index
from kismet_env.rules import Box

KEEPS, HOLDS = actions_of("keeps"), actions_of("holds")
Faces = tuple[int, ...]


def faces_of(keep: int) -> Faces:
    return tuple(face for face in range(1, 7) for _ in range(KEEP_COUNTS[keep, face - 1]))


def held(dice: list[int], hold: int) -> Faces:
    return tuple(die for bit, die in enumerate(dice) if hold & (1 << bit))


def test_sizes() -> None:
    assert (KEEPS.num_rolls, KEEPS.num_actions) == (210, 225)
    assert (HOLDS.num_rolls, HOLDS.num_actions) == (31, 46)
    assert KEEPS.keep_of.shape == (252, 210)
    assert HOLDS.keep_of.shape == (252, 31)


def test_a_keep_means_the_same_dice_in_every_roll_and_is_legal_where_they_lie() -> None:
    for roll, dice in enumerate(ROLL_DICE.tolist()):
        parts = {part for size in range(5) for part in combinations(dice, size)}
        for action in range(210):
            expected = action if faces_of(action) in parts else -1
            actual = KEEPS.keep_of[roll, action]
            assert actual == expected, f"dice {dice}, keep {faces_of(action)}: expected {expected}, actual {actual}"


def test_of_holds_that_leave_the_same_dice_only_the_lowest_is_legal() -> None:
    for roll, dice in enumerate(ROLL_DICE.tolist()):
        for hold in range(31):
            is_lowest = all(held(dice, lower) != held(dice, hold) for lower in range(hold))
            expected = keep_index(held(dice, hold)) if is_lowest else -1
            actual = HOLDS.keep_of[roll, hold]
            assert actual == expected, f"dice {dice}, hold {hold:05b}: expected {expected}, actual {actual}"


def test_both_numberings_leave_the_same_keeps() -> None:
    for roll, dice in enumerate(ROLL_DICE.tolist()):
        keeps = sorted(KEEPS.keep_of[roll][KEEPS.keep_of[roll] >= 0])
        holds = sorted(HOLDS.keep_of[roll][HOLDS.keep_of[roll] >= 0])
        assert keeps == holds, f"dice {dice}"


@pytest.mark.parametrize("actions", [KEEPS, HOLDS], ids=["keeps", "holds"])
def test_can_roll_says_where_an_action_leaves_a_keep(actions: Actions) -> None:
    assert actions.can_roll.dtype == np.int8
    assert (actions.can_roll == (actions.keep_of >= 0)).all()
    for table in (actions.keep_of, actions.can_roll):
        assert not table.flags.writeable


@pytest.mark.parametrize("actions", [KEEPS, HOLDS], ids=["keeps", "holds"])
def test_keep_action_finds_the_legal_number(actions: Actions) -> None:
    for roll, dice in enumerate(ROLL_DICE.tolist()):
        for size in range(5):
            for kept in set(combinations(dice, size)):
                action = actions.keep_action(roll, kept[::-1])
                assert faces_of(actions.keep_of[roll, action]) == kept, f"dice {dice}, keep {kept}, action {action}"


@pytest.mark.parametrize("actions", [KEEPS, HOLDS], ids=["keeps", "holds"])
@pytest.mark.parametrize("kept", [(1, 1, 1), (6,), (1, 1, 2, 3, 4), (1, 1, 1, 2, 3, 4)], ids=str)
def test_what_the_roll_does_not_hold_cannot_be_kept(actions: Actions, kept: Faces) -> None:
    with pytest.raises(ValueError, match=r"keep|dice"):
        actions.keep_action(roll_index((1, 1, 2, 3, 4)), kept)


def test_boxes_follow_the_rolls() -> None:
    for box in Box:
        assert KEEPS.box_action(box) == 210 + box
        assert HOLDS.box_action(box) == 31 + box


TEXTS = [
    ("keeps", (2, 5, 5, 5, 6), 0, "roll all dice"),
    ("keeps", (2, 5, 5, 5, 6), keep_index((5, 5, 5)), "keep 5-5-5"),
    ("keeps", None, keep_index((1, 3, 3, 6)), "keep 1-3-3-6"),
    ("keeps", None, 210, "fill Aces"),
    ("keeps", None, 224, "fill Kismet"),
    ("holds", (2, 5, 5, 5, 6), 0, "roll all dice"),
    ("holds", (2, 5, 5, 5, 6), 0b00110, "keep 5-5"),
    ("holds", (2, 5, 5, 5, 6), 0b10001, "keep 2-6"),
    ("holds", None, 0b10001, "hold dice [0, 4]"),
    ("holds", None, 0, "roll all dice"),
    ("holds", None, 31 + Box.FULL_HOUSE_SAME_COLOR, "fill Full House Same Color"),
]


@pytest.mark.parametrize(("numbering", "dice", "action", "expected"), TEXTS, ids=[row[-1] for row in TEXTS])
def test_text(numbering: str, dice: Faces | None, action: int, expected: str) -> None:
    roll = None if dice is None else roll_index(dice)
    assert actions_of(numbering).text(action, roll) == expected


def test_texts_of_the_legal_actions_of_a_roll_differ() -> None:
    for actions, roll in product((KEEPS, HOLDS), range(252)):
        legal = [action for action in range(actions.num_rolls) if actions.keep_of[roll, action] >= 0]
        texts = {actions.text(action, roll) for action in [*legal, *map(actions.box_action, Box)]}
        assert len(texts) == len(legal) + 15, f"dice {ROLL_DICE[roll]}, {actions.numbering}"


@pytest.mark.parametrize("numbering", ["keeps", "holds"])
def test_text_of_no_action_is_refused(numbering: str) -> None:
    actions = actions_of(numbering)
    for number in (-1, actions.num_actions):
        with pytest.raises(ValueError, match=rf"{number} is not one of 0..{actions.num_actions - 1}"):
            actions.text(number)


def test_unknown_numbering_names_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="actions='bits' is not one of keeps, holds"):
        actions_of("bits")
