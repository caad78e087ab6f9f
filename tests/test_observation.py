"""Observations: every piece worked out again from the position, the way back, the layout and its fingerprint."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import reference
from reference import BASIC, BOXES

from kismet_env.batch import Batch
from kismet_env.engine import BASIC_SECTION
from kismet_env.observation import Layout, card_layout, decode, layout_of, observe_cards
from kismet_env.rules import Rules
from kismet_env.tables import tables_of

RULES: dict[str, dict[str, Any]] = {
    "standard": {},
    "rolled, flat": {"second_kismet": "rolled", "kismet_score": "flat_50", "joker": "always"},
    "filled, high straight": {"second_kismet": "filled", "straight_score": 100, "joker": "natural"},
    "two tiers": {"bonus_tiers": [[40, 10], [60, 30]]},
    "no tiers": {"bonus_tiers": []},
    "eight tiers": {"bonus_tiers": [[10 * n, n] for n in range(1, 9)]},
}
COLOR = {1: 0, 6: 0, 2: 1, 5: 1, 3: 2, 4: 2}
Pieces = dict[str, list[float]]


def random_games(observation: str, num_players: int, rules: dict[str, Any], count: int = 40) -> Batch:
    """Return games some random moves after random partly filled cards; in one of eight lies a second Kismet."""
    rng = np.random.default_rng(count + num_players)
    batch = Batch(count, num_players, rules=rules, observation=observation, start="uniform")
    batch.seed(range(count))
    masks = batch.deal().masks
    for number in range(12):
        before, choices = batch.save(), [rng.choice(np.flatnonzero(mask)[-4:]) for mask in masks]
        batch.step(np.array(choices))
        stays = batch.state.games["over"] | (np.arange(count) % 12 <= number)  # row r makes about r % 12 moves
        for array, old in zip(batch.state, before, strict=True):
            array[stays] = old[stays]
        masks = batch.look().masks
    assert not batch.state.games["over"].any()
    kismet = 50 if rules.get("kismet_score") == "flat_50" else 65
    joker = {"cards": [{"SIXES": 12, "KISMET": kismet}] * num_players, "dice": [4] * 5}
    batch.deal_positions([joker] * count, np.arange(count) % 8 == 0)
    return batch


def armed(position: dict[str, Any], seat: int, rules: dict[str, Any]) -> bool:
    card, kismets = position["cards"][seat], position["kismets_rolled"][seat]
    fields = {**reference.STANDARD, **rules, "second_kismet_penalty": True}
    return reference.second_kismet((1,) * 5, card.get("KISMET"), kismets, fields)[1]


def capped_basic_total(card: dict[str, int], fields: dict[str, Any]) -> int:
    top = max((total for total, _ in fields["bonus_tiers"]), default=0)
    return min(sum(card.get(box, 0) for box in BASIC), top)


def total_of(card: dict[str, int], fields: dict[str, Any]) -> int:
    full = all(box in card for box in BASIC)
    return sum(card.values()) + (reference.bonus(sum(card[box] for box in BASIC), fields) if full else 0)


def best_of_each_box(rules: dict[str, Any]) -> list[int]:
    """Return the most that each box can hold."""
    fields, rolls = {**reference.STANDARD, **rules}, {tuple(sorted(roll)) for roll in reference.ALL_ROLLS}
    return [max(reference.score(roll, box, fields, joker=True) for roll in rolls) for box in BOXES]


def vector_pieces(position: dict[str, Any], rules: dict[str, Any], best: list[int], helping: bool) -> Pieces:
    """Return the pieces of the vector forms as the documentation defines them; `best` is the most of each box."""
    fields = {**reference.STANDARD, **rules}
    dice, mover, cards = position["dice"], position["player"], position["cards"]
    card = cards[mover]
    open_boxes = [float(box not in card) for box in BOXES]
    basic_total = capped_basic_total(card, fields)
    pieces = {
        "dice": [float(die == face) for die in dice for face in range(1, 7)],
        "face_counts": [dice.count(face) / 5 for face in range(1, 7)],
        "rolls_left": [float(position["rolls_left"] == left) for left in (0, 1, 2)],
        "open_boxes": open_boxes,
        "basic_total": [basic_total / 105],
        "armed": [float(armed(position, mover, rules))],
    }
    if helping:
        joker, _ = reference.second_kismet(tuple(dice), card.get("KISMET"), position["kismets_rolled"][mover], fields)
        points = [reference.score(tuple(dice), box, fields, joker) for box in BOXES]
        par = sum(3 * face for face, box in enumerate(BASIC, start=1) if box in card)
        pieces |= {
            "color_counts": [sum(COLOR[die] == color for die in dice) / 5 for color in range(3)],
            "box_points": [p * is_open / max(best) for p, is_open in zip(points, open_boxes, strict=True)],
            "tier_needs": [max(0, total - basic_total) / total for total, _ in fields["bonus_tiers"]],
            "basic_surplus": [0.5 + (basic_total - par) / 126],
            "boxes_filled": [len(card) / 15],
        }
    if len(cards) > 1:
        most = sum(best) + reference.bonus(sum(best[: len(BASIC)]), fields)
        pieces["total"] = [total_of(card, fields) / most]
        for distance in range(1, len(cards)):
            seat = (mover + distance) % len(cards)
            pieces |= {
                f"opponent_{distance}_open_boxes": [float(box not in cards[seat]) for box in BOXES],
                f"opponent_{distance}_basic_total": [capped_basic_total(cards[seat], fields) / 105],
                f"opponent_{distance}_armed": [float(armed(position, seat, rules))],
                f"opponent_{distance}_total": [total_of(cards[seat], fields) / most],
            }
    return pieces


@pytest.mark.parametrize("num_players", [1, 2, 3])
@pytest.mark.parametrize("form", ["features", "raw"])
@pytest.mark.parametrize("name", RULES)
def test_every_piece_is_what_its_meaning_says(name: str, form: str, num_players: int) -> None:
    rules = RULES[name]
    batch = random_games(form, num_players, rules)
    layout = batch.layout
    best = best_of_each_box(rules)
    observations = batch.look().observations
    assert observations.dtype == np.float32
    assert observations.shape == (40, layout.size)
    assert ((observations >= 0) & (observations <= 1)).all()
    for row, vector in enumerate(observations):
        position = batch.position(row)
        expected = vector_pieces(position, rules, best, helping=form == "features")
        assert list(layout.slices) == list(expected)
        for piece, where in layout.slices.items():
            np.testing.assert_allclose(
                vector[where], expected[piece], rtol=0, atol=1e-7, err_msg=f"{piece}, position {position}"
            )


@pytest.mark.parametrize("num_players", [1, 2, 3])
@pytest.mark.parametrize("form", ["features", "raw"])
@pytest.mark.parametrize("name", RULES)
def test_decode_gives_the_position_back_exactly(name: str, form: str, num_players: int) -> None:
    rules = RULES[name]
    fields = {**reference.STANDARD, **rules}
    batch = random_games(form, num_players, rules, count=300)
    decision = decode(batch.look().observations)
    for row in range(300):
        position = batch.position(row)
        card = position["cards"][position["player"]]
        expected = (
            sum(1 << BOXES.index(box) for box in card),
            capped_basic_total(card, fields),
            armed(position, position["player"], rules),
            position["dice"],
            position["rolls_left"],
        )
        actual = tuple(values[row].tolist() for values in decision)
        assert actual == expected, f"position {position}"


def test_decode_takes_any_batch_shape() -> None:
    observations = random_games("features", 1, {}).look().observations
    flat, square, one = decode(observations), decode(observations.reshape(4, 10, -1)), decode(observations[7])
    for values, squares, single in zip(flat, square, one, strict=True):
        assert squares.shape[:2] == (4, 10)
        assert np.array_equal(squares.reshape(values.shape), values)
        assert np.array_equal(single, values[7])
    assert flat.dice.shape == (40, 5)
    assert [values.dtype.kind for values in flat] == ["i", "i", "b", "i", "i"]


def test_decode_is_exact_for_every_basic_total() -> None:
    vector = np.zeros((106, 79), np.float32)
    vector[:, layout_of(Rules()).slices["basic_total"]] = (np.arange(106)[:, None] / 105).astype(np.float32)
    assert decode(vector).basic_total.tolist() == list(range(106))


@pytest.mark.parametrize("num_players", [1, 2, 3])
@pytest.mark.parametrize("name", RULES)
def test_dict_form_is_the_position_in_whole_numbers(name: str, num_players: int) -> None:
    rules = RULES[name]
    fields = {**reference.STANDARD, **rules}
    batch = random_games("dict", num_players, rules)
    shown = batch.layout.present(batch.look().observations)
    assert isinstance(shown, dict)
    space = batch.layout.space
    for row in range(40):
        position = batch.position(row)
        seats = [(position["player"] + step) % num_players for step in range(num_players)]
        cards = [[position["cards"][seat].get(box, -1) for box in BOXES] for seat in seats]
        flags = [int(armed(position, seat, rules)) for seat in seats]
        totals = [total_of(position["cards"][seat], fields) for seat in seats]
        expected: dict[str, Any] = {
            "dice": position["dice"],
            "colors": [COLOR[die] for die in position["dice"]],
            "rolls_left": position["rolls_left"],
            "scorecard": cards[0],
            "armed": flags[0],
        }
        if num_players > 1:
            others = zip(cards[1:], flags[1:], totals[1:], strict=True)
            expected["opponents"] = [number for points, flag, total in others for number in (*points, flag, total)]
        actual = {piece: values[row].tolist() for piece, values in shown.items()}
        assert actual == expected, f"position {position}"
        assert space.contains({piece: values[row] for piece, values in shown.items()})


@pytest.mark.parametrize("form", ["features", "raw"])
def test_first_block_is_the_same_for_every_number_of_players(form: str) -> None:
    """The same card and dice, whatever opponents there are and whatever they hold."""
    alone = random_games(form, 1, {})
    size = alone.layout.size
    for num_players in (2, 3, 6):
        others = [{"ACES": 3}, {}, {"SIXES": 18, "KISMET": 80}, {"STRAIGHT": 0}, {"FLUSH": 35}]
        together = Batch(1, num_players, observation=form)
        for row, vector in enumerate(alone.look().observations):
            position = alone.position(row)
            full = {**dict.fromkeys(BOXES, 0), "YARBOROUGH": 20}
            seats = [position["cards"][0]]
            while len(seats) < num_players:  # opponents with as many boxes filled
                card = {**full, **others[len(seats) - 1]}
                seats.append({box: card[box] for box in BOXES[-1::-1][: len(seats[0])]})
            together.deal_positions([{**position, "cards": seats, "kismets_rolled": None}])
            assert np.array_equal(together.look().observations[0, :size], vector), f"position {position}"


def test_first_block_knows_only_filled_basic_total_armed_dice_and_rolls_left() -> None:
    """What else differs between cards, points of filled boxes and how Basic points are made up, is not seen."""
    rest = {"dice": [2, 2, 5, 5, 6], "rolls_left": 1}
    one = {"ACES": 4, "SIXES": 30, "FIVES": 25, "FOURS": 20, "THREE_OF_A_KIND": 0, "KISMET": 80, "STRAIGHT": 30}
    other = {"ACES": 3, "SIXES": 30, "FIVES": 25, "FOURS": 20, "THREE_OF_A_KIND": 22, "KISMET": 55, "STRAIGHT": 0}
    batch = Batch(2)
    positions = [{"cards": [card], **rest} for card in (one, other)]
    observations = batch.deal_positions(positions).observations
    assert np.array_equal(*observations)
    assert decode(observations).basic_total.tolist() == [78, 78]


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_cards_alone_show_what_they_show_in_observations(rules: dict[str, Any]) -> None:
    batch = random_games("features", 1, rules)
    decision = batch.decisions()
    cards = np.stack([decision.filled, batch.state.cards["basic_total"][:, 0], decision.armed], axis=1)
    layout = card_layout(batch.rules)
    shown = np.full((len(cards), layout.size), np.nan, np.float32)
    observe_cards(tables_of(batch.rules), cards, shown)
    is_full = decision.filled & BASIC_SECTION == BASIC_SECTION
    assert is_full.any()
    for name in set(layout.slices) - {"surplus_steps"}:
        seen = batch.look().observations[~is_full, batch.layout.slices[name]]
        assert np.array_equal(shown[~is_full, layout.slices[name]], seen), name
    assert set(batch.layout.slices) - set(layout.slices) == {
        "dice", "face_counts", "rolls_left", "color_counts", "box_points"
    }  # fmt: skip
    steps, surplus = shown[:, layout.slices["surplus_steps"]], shown[:, layout.slices["basic_surplus"]][:, 0]
    assert (np.sort(steps, axis=1) == np.arange(106) // 105).all()
    np.testing.assert_allclose(steps.argmax(1) - 63, (surplus - 0.5) * 126, atol=1e-4)
    paid = np.empty((is_full.sum(), layout.size), np.float32)
    observe_cards(tables_of(batch.rules), cards[is_full] * [1, 0, 1], paid)
    assert np.array_equal(shown[is_full], paid), "a full Basic Section shows a total that no longer matters"


# Layout


def every_layout() -> list[Layout]:
    return [
        layout_of(Rules.of(rules), num_players, form)
        for rules, num_players, form in product(RULES.values(), (1, 2, 3), ("features", "raw", "dict"))
    ] + [card_layout(Rules.of(rules)) for rules in RULES.values()]


def test_table_covers_every_index_once() -> None:
    for layout in every_layout():
        indices = []
        for line in layout.table().splitlines()[2:]:
            first, _, last = line.split("|")[1].strip().partition("..")
            indices += range(int(first), int(last or first) + 1)
        assert indices == list(range(layout.size)), layout.table()


def test_spaces_match_the_layout() -> None:
    features, raw = layout_of(Rules()), layout_of(Rules(), form="raw")
    assert (features.size, raw.size) == (79, 56)
    assert list(raw.slices.items()) == list(features.slices.items())[: len(raw.slices)]
    assert layout_of(Rules(), 3).size == 79 + 1 + 2 * 18
    numbers = layout_of(Rules(), 2, "dict").space
    assert {name: space.shape for name, space in numbers.spaces.items()} == {
        "dice": (5,), "colors": (5,), "rolls_left": (), "scorecard": (15,), "armed": (), "opponents": (17,),
    }  # fmt: skip


def test_fingerprints_differ_where_the_meaning_of_an_index_differs() -> None:
    layouts = every_layout()
    prints = {(layout.form, layout.num_players, layout.pieces): layout.fingerprint for layout in layouts}
    assert len(set(prints.values())) == len(prints)
    assert all(len(fingerprint) == 16 for fingerprint in prints.values())
    # the pieces say in words what the numbers are divided by
    for form, rules in product(("features", "dict"), ({"straight_score": 100}, {"kismet_score": "flat_50"})):
        changed = layout_of(Rules.of(rules), form=form).fingerprint
        assert changed != layout_of(Rules(), form=form).fingerprint, f"{form}: {rules} changes the scale of points"


def test_fingerprints_agree_where_the_meaning_is_the_same() -> None:
    for form, num_players in product(("features", "raw", "dict"), (1, 2)):
        for rules in ({"zeros": "any_time"}, {"yarborough": "only_if_nothing_else"}, {"second_kismet": "filled"}):
            same = layout_of(Rules.of(rules), num_players, form).fingerprint
            assert same == layout_of(Rules(), num_players, form).fingerprint, f"{form}, {num_players} players, {rules}"


def test_unknown_form_names_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="observation='pixels' is not one of features, raw, dict"):
        layout_of(Rules(), form="pixels")
