"""Optimum: what it accepts and in what shapes, ties, starts and explanations."""

import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
from brute_force import ROLLS, Card, Solitaire, card_of
from reference import BASIC, BOXES

from kismet_env import solver
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.cards import CardNumbers
from kismet_env.dice import ROLL_DICE
from kismet_env.exact import PolicyValue, TurnPolicy
from kismet_env.observation import decode
from kismet_env.rules import SECOND_KISMET, Box, Rules
from kismet_env.solver import Choice, Explanation, Optimum, Sds, cached_sds, solve
from kismet_env.starts import card_distribution, roll_distribution
from kismet_env.tables import tables_of

STANDARD = Rules()
ALL_BOXES = 2**15 - 1
DICE = (1, 2, 3, 4, 6)


def bits(*boxes: Box) -> int:
    return sum(1 << box for box in boxes)


def unsolved_values(rules: Rules) -> npt.NDArray[np.float64]:
    return np.zeros(CardNumbers(tables_of(rules)).size)


def unsolved() -> Optimum:
    """An optimum that knows what is legal and possible, but every value is 0."""
    return Optimum(STANDARD, unsolved_values(STANDARD))


@pytest.fixture(scope="module")
def optimum() -> Optimum:
    return solve()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"filled": -1}, "row 1: .*filled=-1"),
        ({"filled": ALL_BOXES}, "row 1: .*filled=32767"),  # no decision is left
        ({"filled": ALL_BOXES + 1}, "row 1: .*filled=32768"),
        ({"basic_total": -1}, "row 1: .*basic_total=-1"),
        ({"basic_total": 1}, "row 1: .*filled=0, basic_total=1"),  # points without a box
        ({"filled": bits(Box.DEUCES), "basic_total": 3}, "row 1: .*basic_total=3"),  # an odd total of twos
        ({"filled": bits(Box.DEUCES), "basic_total": 12}, "row 1: .*basic_total=12"),  # six twos
        ({"filled": bits(Box.FIVES, Box.SIXES), "basic_total": 52}, "row 1: .*basic_total=52"),
        ({"filled": bits(Box.FOURS, Box.FIVES, Box.SIXES), "basic_total": 73}, "row 1: .*basic_total=73"),
        # above the top tier the total is held to the truth too: 90 - 1 is not in threes to sixes
        ({"filled": 0b111100, "basic_total": 89}, "row 1: .*basic_total=89"),
        ({"filled": 0b111111, "basic_total": 106}, "row 1: .*basic_total=106"),
        ({"armed": True}, "row 1: .*armed=1"),  # the Kismet box is open
        ({"filled": bits(Box.FLUSH, Box.STRAIGHT), "armed": True}, "row 1: .*armed=1"),
        ({"filled": bits(Box.KISMET), "armed": 2}, "row 1: .*armed=2"),
        ({"rolls_left": 3}, "row 1: rolls_left 3"),
        ({"rolls_left": -1}, "row 1: rolls_left -1"),
        ({"dice": (0, 1, 1, 1, 1)}, r"row 1: dice \[0, 1, 1, 1, 1\]"),
        ({"dice": (1, 1, 1, 1, 7)}, r"row 1: dice \[1, 1, 1, 1, 7\]"),
    ],
)
def test_what_no_game_leads_to_is_refused_by_its_first_row(changed: dict[str, Any], message: str) -> None:
    optimum = unsolved()
    good = {"filled": 0, "basic_total": 0, "armed": False, "dice": DICE, "rolls_left": 2}
    rows = {name: np.array([value, changed.get(name, value), changed.get(name, value)]) for name, value in good.items()}
    with pytest.raises(ValueError, match=message):
        optimum.action_values(**rows)
    with pytest.raises(ValueError, match=message):
        optimum.best_action(**rows)
    if not {"dice", "rolls_left"} & set(changed) and changed.get("filled") != ALL_BOXES:
        with pytest.raises(ValueError, match=message):
            optimum.card_value(rows["filled"], rows["basic_total"], rows["armed"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"filled": 1.0}, "filled of type float64"),
        ({"basic_total": np.nan}, "basic_total of type float64"),
        ({"armed": "no"}, "armed of type"),
        ({"filled": 2**70}, "filled of type object"),
        ({"rolls_left": 1.5}, "rolls_left of type float64"),
        ({"rolls_left": np.nan}, "rolls_left of type float64"),
        ({"dice": (1.0, 2.0, 3.0, 4.0, 5.0)}, "type float64"),
        ({"dice": (1, 2, 3, 4)}, r"dice of shape \(4,\)"),
        ({"dice": 5}, r"dice of shape \(\)"),
        ({"dice": [DICE] * 2, "rolls_left": [0, 1, 2]}, "mismatch"),
    ],
)
def test_what_are_no_whole_numbers_or_no_common_shape_is_refused(changed: dict[str, Any], message: str) -> None:
    good = {"filled": 0, "basic_total": 0, "armed": False, "dice": DICE, "rolls_left": 2}
    with pytest.raises(ValueError, match=message):
        unsolved().action_values(**(good | changed))


def test_a_number_too_large_to_be_signed_is_named_as_it_was_given() -> None:
    with pytest.raises(ValueError, match=r"row 1: .*filled=9223372036854775808"):
        unsolved().card_value(np.array([0, 2**63], np.uint64), 0, False)


# --- shapes ---


def test_scalars_batches_and_what_broadcasts_give_the_same_numbers(optimum: Optimum) -> None:
    filled = np.array([0, bits(Box.SIXES), bits(Box.SIXES, Box.KISMET)])
    totals, armed = np.array([0, 18, 18]), np.array([False, False, True])
    values = optimum.card_value(filled, totals, armed)
    assert values.shape == (3,)
    assert values.dtype == np.float64
    for row in range(3):
        alone = optimum.card_value(int(filled[row]), int(totals[row]), bool(armed[row]))
        assert alone.shape == ()
        assert alone == values[row]
    assert (optimum.card_value(filled.reshape(3, 1), totals.reshape(3, 1), armed.reshape(3, 1))[:, 0] == values).all()

    dice, left = np.array(ROLL_DICE[::50]), np.array([[0], [1], [2]])
    actions = optimum.action_values(filled[:, None, None], totals[:, None, None], armed[:, None, None], dice, left)
    assert actions.shape == (3, 3, len(dice), 225)
    assert optimum.best_action(filled[0], totals[0], armed[0], dice, left).shape == (3, len(dice))
    for row, place, die in np.ndindex(3, 3, len(dice)):
        card = int(filled[row]), int(totals[row]), bool(armed[row])
        alone = optimum.action_values(*card, dice[die].tolist(), place)
        assert alone.shape == (225,)
        assert (alone == actions[row, place, die]).all()
        best = optimum.best_action(*card, dice[die].tolist(), place)
        assert best.shape == ()
        assert best.dtype == np.int64


def test_a_batch_may_be_empty() -> None:
    none = np.empty(0, np.int64)
    assert unsolved().card_value(none, none, none).shape == (0,)
    assert unsolved().action_values(none, none, none, np.empty((0, 5), np.int64), none).shape == (0, 225)
    assert unsolved().best_action(none, none, none, np.empty((0, 5), np.int64), none).shape == (0,)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_any_type_of_whole_numbers_will_do_and_the_order_of_the_dice_means_nothing(
    optimum: Optimum, dtype: type[np.integer[Any]]
) -> None:
    card = np.array([bits(Box.SIXES), 18, 0]).astype(dtype)
    expected = optimum.action_values(bits(Box.SIXES), 18, False, (1, 2, 5, 5, 6), 1)
    actual = optimum.action_values(*card, np.array([5, 1, 6, 5, 2], dtype), np.array(1, dtype))
    assert (actual == expected).all()


def test_a_full_card_has_nothing_to_come() -> None:
    solved = Optimum(STANDARD, unsolved_values(STANDARD) + 7.0)
    assert solved.card_value(ALL_BOXES, 63, False) == 0
    assert solved.card_value([ALL_BOXES, 0], [78, 0], [True, False]).tolist() == [0, 7]


def test_nobody_can_change_the_values(optimum: Optimum) -> None:
    optimum.card_value([0], [0], [False])[:] = 0
    optimum.action_values([0], [0], [False], [DICE], [2])[:] = 0
    assert optimum.expected_score > 300


def test_values_of_other_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="are not the"):
        Optimum(STANDARD, unsolved_values(Rules(second_kismet="filled")))


# --- ties ---


def test_among_equals_within_1e_9_the_lowest_number_is_played(optimum: Optimum) -> None:
    rng = np.random.default_rng(3)
    batch = Batch(2000, start="open:2")
    batch.deal_keys(rng.integers(2**63, size=2000, dtype=np.uint64))
    batch.state.games["roll"] = rng.integers(252, size=2000)
    batch.state.games["rolls_left"] = rng.integers(3, size=2000)
    decisions = decode(batch.look().observations)
    values, best = optimum.action_values(*decisions), optimum.best_action(*decisions)
    ties = 0
    for row in range(2000):
        equals = np.flatnonzero(values[row] >= values[row].max() - 1e-9)
        assert best[row] == equals[0]
        ties += len(equals) > 1
    assert ties > 10


def test_pairs_that_are_worth_the_same_are_a_tie(optimum: Optimum) -> None:
    only_flush = ALL_BOXES & ~bits(Box.FLUSH)  # a black, a red and a green pair would do, here are two
    kept = actions_of("keeps").text(int(optimum.best_action(only_flush, 0, False, (1, 6, 2, 5, 3), 1)))
    assert kept == "keep 1-6"


# --- starts ---


STARTS = ["open:1", "open:4", "open:11", "open:14", "uniform"]


@pytest.mark.parametrize("start", STARTS)
def test_the_value_of_a_start_is_the_mean_over_what_is_dealt(optimum: Optimum, start: str) -> None:
    deals = 100_000
    batch = Batch(deals, start=start)
    batch.deal_keys(np.random.default_rng(17).integers(2**63, size=deals, dtype=np.uint64))
    card = batch.state.cards[:, 0]
    values = optimum.card_value(card["filled"], card["basic_total"], card["armed"])
    interval = 3.29 * values.std() / np.sqrt(deals)  # 99.9 %
    assert abs(values.mean() - optimum.start_value(start)) < interval


def test_the_full_start_is_the_whole_game_and_the_uniform_one_the_mean_of_all(optimum: Optimum) -> None:
    assert optimum.start_value() == optimum.start_value("full") == optimum.expected_score
    assert optimum.start_value("open:15") == pytest.approx(optimum.expected_score, abs=1e-9)
    mean = np.mean([optimum.start_value(f"open:{number}") for number in range(1, 16)])
    assert optimum.start_value("uniform") == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("start", ["open:0", "open:16", "open:-1", "half"])
def test_an_unknown_start_is_refused(start: str) -> None:
    with pytest.raises(ValueError, match=f"start='{start}' is not one of"):
        unsolved().start_value(start)


def dealt_cards(boxes: tuple[str, ...], **changes: Any) -> dict[tuple[bool, int], float]:
    """How probable each (armed, Basic total) is on a card whose filled boxes are `boxes`, filled in their order."""
    rules = {**reference.STANDARD, **changes}
    game = Solitaire(rules)
    cards: dict[Card, float] = {card_of(BOXES): 1.0}
    for box in boxes:
        after: dict[Card, float] = defaultdict(float)
        for card, share in cards.items():
            for dice, chance in zip(ROLLS, roll_distribution(Rules(**changes))[Box[box]], strict=True):
                after[game.fill(card, dice, box)[1]] += share * float(chance)
        cards = after
    found: dict[tuple[bool, int], float] = defaultdict(float)
    for card, share in cards.items():
        armed = reference.second_kismet((1,) * 5, card.kismet, card.kismets_rolled, rules)[1]
        found[armed, card.basic_total] += share
    return found


@pytest.mark.parametrize("second_kismet", SECOND_KISMET)
@pytest.mark.parametrize(
    "boxes",
    [(), ("FIVES",), ("ACES", "SIXES"), ("SIXES", "FULL_HOUSE_SAME_COLOR"), ("FIVES", "SIXES", "FLUSH", "KISMET")],
    ids="+".join,
)
def test_dealt_cards_are_those_of_brute_force(boxes: tuple[str, ...], second_kismet: str) -> None:
    actual = card_distribution(Rules(second_kismet=second_kismet))[bits(*(Box[box] for box in boxes))]
    expected = np.zeros(actual.shape)
    for (armed, total), share in dealt_cards(boxes, second_kismet=second_kismet).items():
        expected[int(armed), total] += share
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tiers", [(), ((3, 1),), ((105, 1),)], ids=str)
def test_dealt_totals_end_at_the_top_tier(tiers: Any) -> None:
    cap = tiers[-1][0] if tiers else 0
    capped = card_distribution(Rules(bonus_tiers=tiers))
    exact = card_distribution(Rules(bonus_tiers=((105, 1),)))
    assert capped.shape == (2**15, 2, cap + 1)
    np.testing.assert_allclose(capped[..., :cap], exact[..., :cap], rtol=0, atol=1e-14)
    np.testing.assert_allclose(capped[..., cap], exact[..., cap:].sum(-1), rtol=0, atol=1e-14)


def test_one_open_box_is_worth_what_brute_force_says_box_by_box(optimum: Optimum) -> None:
    game, worth = Solitaire(reference.STANDARD), 0.0
    scored = sum(share for (armed, _), share in dealt_cards(("KISMET",)).items() if armed)
    for box in BOXES:
        if box in BASIC:  # what the other five hold matters only by the bonus that nought to five dice then earn
            face, shares, some_total = BASIC.index(box) + 1, defaultdict[Any, float](float), {}
            for (_, total), share in dealt_cards(tuple(other for other in BASIC if other != box)).items():
                bonuses = tuple(reference.bonus(total + face * count) for count in range(6))
                shares[bonuses] += share
                some_total[bonuses] = total
            worth += sum(share * game.value(card_of((box,), some_total[key])) for key, share in shares.items())
        elif box == "KISMET":
            worth += game.value(card_of((box,)))
        else:
            worth += scored * game.value(card_of((box,), kismet=55)) + (1 - scored) * game.value(card_of((box,)))
    assert optimum.start_value("open:1") == pytest.approx(worth / 15, abs=1e-9)


# --- explanations ---


def test_an_explanation_names_the_best_actions_with_their_losses(optimum: Optimum) -> None:
    decision = (bits(Box.SIXES), 18, False, (5, 1, 5, 2, 5), 1)
    explanation = optimum.explain(*decision, count=3)
    values = optimum.action_values(*decision)
    assert explanation.dice == (1, 2, 5, 5, 5)
    assert explanation.rolls_left == 1
    assert explanation.choices[0].action == optimum.best_action(*decision)
    assert [choice.value for choice in explanation.choices] == sorted(values, reverse=True)[:3]
    for choice in explanation.choices:
        assert choice.value == values[choice.action]
        assert choice.loss == values.max() - choice.value
        assert choice.text == actions_of("keeps").text(choice.action)


def test_the_text_of_an_explanation_is_a_table_and_its_dict_is_json() -> None:
    explanation = Explanation(
        (2, 2, 5, 5, 5), 1, (Choice(80, "keep 5-5-5", 312.4, 0.0), Choice(0, "roll all dice", 99.994, 212.406))
    )
    assert str(explanation).splitlines() == [
        "dice 2-2-5-5-5, rolls left: 1",
        "action          points   loss",
        "keep 5-5-5      312.40   0.00",
        "roll all dice    99.99 212.41",
    ]
    assert json.loads(json.dumps(explanation.to_dict())) == {
        "dice": [2, 2, 5, 5, 5],
        "rolls_left": 1,
        "choices": [
            {"action": 80, "text": "keep 5-5-5", "value": 312.4, "loss": 0.0},
            {"action": 0, "text": "roll all dice", "value": 99.994, "loss": 212.406},
        ],
    }


def test_an_explanation_puts_the_lowest_number_first_among_equals_and_ends_with_what_is_legal() -> None:
    explanation = unsolved().explain(ALL_BOXES & ~bits(Box.FLUSH, Box.STRAIGHT), 0, False, (1, 1, 1, 1, 2), 0)
    assert [(choice.text, choice.loss) for choice in explanation.choices] == [("fill Straight", 0), ("fill Flush", 0)]
    assert json.dumps(explanation.to_dict())


def test_what_cannot_be_explained_is_refused() -> None:
    with pytest.raises(ValueError, match="not one decision"):
        unsolved().explain([0, 0], 0, False, DICE, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count=0"):
        unsolved().explain(0, 0, False, DICE, 2, count=0)
    with pytest.raises(ValueError, match="no game has"):
        unsolved().explain(0, 1, False, DICE, 2)


# --- standard deviations ---


class Spread:
    """Stands in for the exact value of optimal play, which takes a minute to work out, and counts how often."""

    calls = 0
    score_sd = 56.25

    def __init__(self, *arguments: Any) -> None:
        type(self).calls += 1
        self.card_sds = np.random.default_rng(0).uniform(0, 80, CardNumbers(tables_of(STANDARD)).size)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Spread]:
    monkeypatch.setenv("KISMET_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(solver, "PolicyValue", Spread)
    monkeypatch.setattr(Spread, "calls", 0)
    return Spread


def test_standard_deviations_come_in_the_shapes_of_values(stand_in: type[Spread]) -> None:
    optimum, numbers = unsolved(), CardNumbers(tables_of(STANDARD))
    expected = Spread().card_sds
    filled, totals, armed = np.array([0, bits(Box.SIXES), ALL_BOXES]), np.array([0, 18, 63]), np.array([False] * 3)
    sds = optimum.card_sd(filled, totals, armed)
    assert sds.dtype == np.float64
    places = numbers.places(np.stack([filled, totals, armed], axis=1)[:2])
    np.testing.assert_allclose(sds, [*expected[places], 0.0], rtol=0, atol=80 / 65535)
    assert optimum.card_sd(0, 0, False).shape == ()
    assert optimum.score_sd == 56.25, "kept exactly"
    with pytest.raises(ValueError, match="no game has"):
        optimum.card_sd(0, 1, False)


def test_standard_deviations_are_packed_without_loss() -> None:
    codes = np.random.default_rng(1).integers(0, 2**16, 5000).astype(np.uint16)
    codes[:3] = 0, 2**16 - 1, 0
    sds = Sds.unpacked(Sds(1 / 3, 1e-3 / 7, codes).packed())
    assert (sds.score, sds.step) == (1 / 3, 1e-3 / 7)
    assert (sds.codes == codes).all()


def test_standard_deviations_are_worked_out_once_and_kept(stand_in: type[Spread], tmp_path: Path) -> None:
    first, again = cached_sds(unsolved()), cached_sds(unsolved())
    assert stand_in.calls == 1
    assert first[:2] == again[:2]
    assert (first.codes == again.codes).all()
    (file,) = tmp_path.rglob("*.safetensors")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damaged)
        with pytest.warns(UserWarning, match="solving anew"):
            assert (cached_sds(unsolved()).codes == first.codes).all()
    assert (cached_sds(unsolved()).codes == first.codes).all(), "and no warning any more"
    assert stand_in.calls == 4


def test_standard_deviations_stay_in_memory_where_nothing_can_be_written(
    stand_in: type[Spread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KISMET_CACHE_DIR", "/proc/kismet")
    optimum = unsolved()
    with pytest.warns(UserWarning, match="cannot keep the optimum .* it stays in memory"):
        assert optimum.score_sd == 56.25
    assert optimum.score_sd == 56.25
    assert stand_in.calls == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "sd", "most"),
    [
        # the standard deviation was also computed elsewhere: tied best actions move its fourth digit
        (STANDARD, 56.142, 25_000_000),
        (Rules(second_kismet="rolled", bonus_tiers=((105, 1),)), None, 30_000_000),  # the most cards of any rules
    ],
    ids=["standard", "largest"],
)
def test_standard_deviations_are_those_of_the_exact_value_of_optimal_play_and_take_little_room(
    rules: Rules, sd: float | None, most: int
) -> None:
    values = solver.cached_values(rules)
    optimum = Optimum(rules, values)
    value = PolicyValue(TurnPolicy("best", write_worths=optimum.write_worths), tables_of(rules))
    packed = Sds.of(value).packed()
    assert values.nbytes + packed.nbytes <= most
    sds = Sds.unpacked(packed)
    assert sds.score == value.score_sd
    np.testing.assert_allclose(sds.codes * sds.step, value.card_sds, rtol=0, atol=sds.step)
    assert value.expected_score == pytest.approx(optimum.expected_score, abs=1e-9)
    if sd:
        assert sds.score == pytest.approx(sd, abs=1e-3)
        assert sds.step < 1e-3


def test_an_optimum_survives_pickle(optimum: Optimum) -> None:
    copy = pickle.loads(pickle.dumps(optimum))
    assert copy.expected_score == optimum.expected_score
    assert copy.rules == optimum.rules
