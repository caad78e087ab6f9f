"""Where games start: which boxes are open, and what the filled ones hold."""

from collections import Counter
from functools import cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
import reference
from chance import far_out
from reference import BOXES, Dice
from reference_game import KEEP_NUMBER, ROLL_NUMBER, key_of, roll

from kismet_env.batch import Batch
from kismet_env.engine import ALL_BOXES
from kismet_env.position import read_position
from kismet_env.rules import Rules
from kismet_env.starts import open_boxes_of, roll_distribution

WHOLE = 6**5


@cache
def rolls_after(kept: Dice) -> Counter[Dice]:
    """Return how often, of 6^5 times, each sorted roll comes when `kept` stays and the other dice are rolled."""
    rolls = Counter(tuple(sorted(kept + thrown)) for thrown in product(reference.FACES, repeat=5 - len(kept)))
    return Counter({dice: times * 6 ** len(kept) for dice, times in rolls.items()})


def played_for(box: str, rules: dict[str, Any]) -> dict[Dice, float]:
    """Return the distribution of the final dice of a turn played for one box, worked out in whole numbers."""
    points = {dice: reference.score(dice, box, rules) for dice in ROLL_NUMBER}
    plans, value = [], points  # the value is in points times 6^5 for each roll to come
    for rolls in (1, 2):
        expected = {kept: sum(times * value[dice] for dice, times in rolls_after(kept).items()) for kept in KEEP_NUMBER}
        plan, better = {}, {}
        for dice in ROLL_NUMBER:
            keeps = {kept for size in range(5) for kept in combinations(dice, size)}
            best = max(keeps, key=lambda kept: (expected[kept], -KEEP_NUMBER[kept]))
            stop = points[dice] * WHOLE**rolls
            plan[dice] = best if expected[best] > stop else None
            better[dice] = max(expected[best], stop)
        plans.append(plan)
        value = better
    shown: dict[Dice, float] = {dice: times / WHOLE for dice, times in rolls_after(()).items()}
    for plan in reversed(plans):
        after: Counter[Dice] = Counter()
        for dice, probability in shown.items():
            if plan[dice] is None:
                after[dice] += probability  # type: ignore[assignment]
            else:
                for rolled, times in rolls_after(plan[dice]).items():
                    after[rolled] += probability * times / WHOLE  # type: ignore[assignment]
        shown = after
    return shown


@pytest.mark.parametrize("changed", [{}, {"joker": "always", "kismet_score": "flat_50"}], ids=str)
def test_roll_distribution_is_that_of_a_turn_played_for_the_box(changed: dict[str, Any]) -> None:
    actual = roll_distribution(Rules.of(changed))
    assert actual.shape == (15, 252)
    for number, box in enumerate(BOXES):
        expected = np.zeros(252)
        for dice, probability in played_for(box, {**reference.STANDARD, **changed}).items():
            expected[ROLL_NUMBER[dice]] = probability
        np.testing.assert_allclose(actual[number], expected, atol=1e-12, err_msg=box)


def test_known_chances_of_a_turn() -> None:
    """Five alike in three rolls, a die of one face: chances that can be looked up."""
    distribution = roll_distribution(Rules())
    five_alike = [ROLL_NUMBER[(face,) * 5] for face in reference.FACES]
    assert distribution[BOXES.index("KISMET"), five_alike].sum() == pytest.approx(0.046028643, abs=1e-9)
    aces = sum(dice.count(1) * distribution[0, number] for dice, number in ROLL_NUMBER.items())
    assert aces == pytest.approx(5 * (1 - (5 / 6) ** 3))


@pytest.mark.parametrize("open_boxes", [1, 2, 7, 13, 14])
def test_every_set_of_open_boxes_is_equally_likely(open_boxes: int) -> None:
    batch = Batch(20_000, 2, start=f"open:{open_boxes}")
    batch.seed(range(20_000))
    batch.deal()
    for seat in range(2):
        is_open = batch.state.cards["points"][:, seat] < 0
        assert (is_open.sum(1) == open_boxes).all()
        sets = list(combinations(range(15), open_boxes))
        found = Counter(map(tuple, np.nonzero(is_open)[1].reshape(-1, open_boxes).tolist()))
        observed = [found[boxes] for boxes in sets]
        assert far_out(observed, np.full(comb(15, open_boxes), 1 / comb(15, open_boxes))) < 5, f"seat {seat}"
    filled = batch.state.cards["filled"]
    same = (filled[:, 0] == filled[:, 1]).mean()
    assert abs(same - 1 / comb(15, open_boxes)) < 0.01, "the seats have the same boxes open too often"


@pytest.mark.parametrize("changed", [{}, {"second_kismet": "rolled", "straight_score": 40}], ids=str)
def test_filled_boxes_hold_what_a_turn_for_them_brings(changed: dict[str, Any]) -> None:
    fields = {**reference.STANDARD, **changed}
    batch = Batch(30_000, rules=changed, start="open:6")
    batch.seed(range(30_000))
    batch.deal()
    points = batch.state.cards["points"][:, 0]
    distribution = roll_distribution(batch.rules)
    for number, box in enumerate(BOXES):
        probability = np.zeros(100)
        for dice, roll_number in ROLL_NUMBER.items():
            probability[reference.score(dice, box, fields)] += distribution[number, roll_number]
        held = points[:, number][points[:, number] >= 0]
        assert far_out(np.bincount(held, minlength=100), probability) < 5, box
    for one, other in combinations(range(15), 2):  # the boxes are independent
        both = points[(points[:, one] >= 0) & (points[:, other] >= 0)]
        assert abs(np.corrcoef(both[:, one], both[:, other])[0, 1]) < 0.06, f"{BOXES[one]}, {BOXES[other]}"


def test_uniform_opens_1_to_15_boxes_alike_on_all_cards_of_a_game() -> None:
    batch = Batch(15_000, 3, start="uniform")
    batch.seed(range(15_000))
    batch.deal()
    open_boxes = (batch.state.cards["points"] < 0).sum(-1)
    assert (open_boxes == open_boxes[:, :1]).all()
    assert far_out(np.bincount(open_boxes[:, 0], minlength=16)[1:], np.full(15, 1 / 15)) < 5


@pytest.mark.parametrize("start", ["full", "open:15"])
def test_a_full_sheet_has_every_box_open(start: str) -> None:
    batch = Batch(5, 2, start=start)
    batch.seed(range(5))
    batch.deal()
    assert (batch.state.cards["points"] == -1).all()
    assert (batch.state.cards["filled"] != ALL_BOXES).all()
    assert (batch.state.cards["total"] == 0).all()


@pytest.mark.parametrize("second_kismet", ["scored", "filled", "rolled"])
def test_a_start_is_a_possible_position_with_the_dice_of_its_place(second_kismet: str) -> None:
    rules = {"second_kismet": second_kismet}
    batch = Batch(2_000, 2, rules=rules, start="uniform")
    batch.seed(range(2_000))
    batch.deal()
    again = Batch(1, 2, rules=rules)
    for row in range(2_000):
        position = batch.position(row)
        read_position(position, batch.rules, 2)
        assert (position["player"], position["rolls_left"]) == (0, 2)
        assert tuple(position["dice"]) == roll(key_of(row), 0, len(position["cards"][0]), 0)
        if row % 50 == 0:
            again.deal_positions([position])
            for name in set(again.state.cards.dtype.names or ()):
                assert np.array_equal(again.state.cards[name][0], batch.state.cards[name][row]), name
    assert (batch.state.cards["earned"] == 0).all(), "points of the start are not paid as rewards"


def test_starts_of_one_seed_are_the_same_and_its_episodes_differ() -> None:
    one, other = (Batch(20, start="open:5") for _ in range(2))
    for batch in (one, other):
        batch.seed(range(20))
        batch.deal()
    assert np.array_equal(one.state.cards, other.state.cards)
    one.deal()
    assert not np.array_equal(one.state.cards, other.state.cards)


@pytest.mark.parametrize(
    "start", ["", "half", "open", "open:", "open:0", "open:16", "open:-1", "open:2.5", "Open:3", 7]
)
def test_what_is_no_start_names_the_valid_ones(start: Any) -> None:
    with pytest.raises(ValueError, match=r"start=.*full, uniform, open:k with k from 1 to 15"):
        open_boxes_of(start)
