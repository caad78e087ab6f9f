"""The score sheet as text: every number on it, worked out again, and its shape."""

import copy
from itertools import combinations_with_replacement
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import reference
from reference import BASIC, BOXES
from reference_game import key_of

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.batch import Batch
from kismet_env.render.sheet import sheet
from kismet_env.rules import Box, Rules

POSITION = {
    "cards": [{"ACES": 3, "DEUCES": 6, "TREYS": 9, "FOURS": 12, "FIVES": 15, "SIXES": 18, "KISMET": 65}],
    "player": 0,
    "dice": [5, 5, 5, 5, 5],
    "rolls_left": 1,
    "kismets_rolled": [1],
}
SHEET = """\
--------------------------------------------------
 K I S M E T     [5 red] [5 red] [5 red] [5 red] [5 red]   roll 2 of 3
+------------------------------------+-----------+
| BASIC SECTION                      |Player 1*  |
+------------------------------------+-----------+
| Aces      1 for each 1             |        3  |
| Deuces    2 for each 2             |        6  |
| Treys     3 for each 3             |        9  |
| Fours     4 for each 4             |       12  |
| Fives     5 for each 5             |       15  |
| Sixes     6 for each 6             |       18  |
| Basic total                        |       63  |
| Bonus     63: 35, 71: 55, 78: 75   |       35  |
+------------------------------------+-----------+
| KISMET SECTION                     |           |
+------------------------------------+-----------+
| Two Pair Same Color    sum         |     (25)  |
| Three of a Kind        sum         |     (25)  |
| Straight               30          |      (0)  |
| Flush                  35          |     (35)  |
| Full House             sum + 15    |     (40)  |
| Full House Same Color  sum + 20    |     (45)  |
| Four of a Kind         sum + 25    |     (50)  |
| Yarborough             sum         |     (25)  |
| Kismet                 sum + 50    |       65  |
| Kismet total                       |       65  |
+------------------------------------+-----------+
| GAME TOTAL                         |      163  |
+------------------------------------+-----------+"""


def test_a_sheet_reads_like_this() -> None:
    assert sheet(POSITION, Rules()) == SHEET


def row_of(text: str, title: str) -> list[str]:
    """Return the entries of the row that begins with `title`, one a player."""
    (row,) = [line for line in text.splitlines() if line.startswith((f"| {title}  ", f"| {title} |"))]
    return [entry.strip() for entry in row.split("|")[2:-1]]


def positions(num_players: int, rules: dict[str, Any]) -> list[dict[str, Any]]:
    """Return random positions, the end of a game among them."""
    batch = Batch(30, num_players, rules=rules, start="uniform")
    batch.seed(range(30))
    masks, found = batch.deal().masks, []
    for number in range(30):
        found.append(batch.position(number))
        masks = batch.step(224 - masks[:, ::-1].argmax(1)).masks
    return [*found, *(batch.position(row) for row in range(30) if batch.state.games["over"][row])]


@pytest.mark.parametrize(
    "rules",
    [{}, {"second_kismet": "rolled", "joker": "always", "straight_score": 40}, {"bonus_tiers": [[10, 5], [30, 9]]}],
    ids=str,
)
@pytest.mark.parametrize("num_players", [1, 2, 4])
def test_every_entry_total_and_offer(num_players: int, rules: dict[str, Any]) -> None:
    fields = {**reference.STANDARD, **rules}
    finished = 0
    for position in positions(num_players, rules):
        text, before = sheet(position, Rules.of(rules)), copy.deepcopy(position)
        assert position == before
        cards, mover, dice = position["cards"], position["player"], tuple(position["dice"])
        over = all(len(card) == 15 for card in cards)
        finished += over
        joker, _ = reference.second_kismet(dice, cards[mover].get("KISMET"), position["kismets_rolled"][mover], fields)
        for box in BOXES:
            expected = [str(card.get(box, ".")) for card in cards]
            if not over and box not in cards[mover]:
                expected[mover] = f"({reference.score(dice, box, fields, joker)})"
            assert row_of(text, Box[box].title) == expected, f"{box} of\n{text}"
        basic = [sum(card.get(box, 0) for box in BASIC) for card in cards]
        full = [all(box in card for box in BASIC) for card in cards]
        bonus = [reference.bonus(total, fields) if is_full else 0 for total, is_full in zip(basic, full, strict=True)]
        totals = [sum(card.values()) + extra for card, extra in zip(cards, bonus, strict=True)]
        assert row_of(text, "Basic total") == list(map(str, basic)), text
        shown = [str(extra) if is_full else "." for extra, is_full in zip(bonus, full, strict=True)]
        assert row_of(text, "Bonus") == shown, text
        kismet = [sum(card.values()) - total for card, total in zip(cards, basic, strict=True)]
        assert row_of(text, "Kismet total") == list(map(str, kismet)), text
        assert row_of(text, "GAME TOTAL") == list(map(str, totals)), text
        if over:
            assert "game over" in text
            assert "*" not in text
        else:
            names = {1: "black", 6: "black", 2: "red", 5: "red", 3: "green", 4: "green"}
            assert " ".join(f"[{die} {names[die]}]" for die in dice) in text
            assert f"roll {3 - position['rolls_left']} of 3" in text
            marks = [f"Player {seat + 1}" + "*" * (seat == mover) for seat in range(num_players)]
            assert row_of(text, "BASIC SECTION") == marks
    assert finished


WORTHS = {
    "FLUSH": ({"flush_score": 45}, "45"),
    "STRAIGHT": ({"straight_score": 40}, "40"),
    "KISMET": ({"kismet_score": "flat_50"}, "50"),
    "FULL_HOUSE": ({"joker": "always"}, "sum + 15"),
}


@pytest.mark.parametrize("box", WORTHS)
def test_the_worth_printed_beside_a_box_follows_the_rules(box: str) -> None:
    rules, worth = WORTHS[box]
    assert f"| {Box[box].title:<23}{worth} " in sheet(
        {**POSITION, "cards": [{}], "kismets_rolled": [0]}, Rules.of(rules)
    )


@pytest.mark.parametrize("num_players", range(1, 7))
@pytest.mark.parametrize(
    "rules",
    [{}, {"bonus_tiers": []}, {"bonus_tiers": [[10 * n, 400 + n] for n in range(1, 9)], "flush_score": 500}],
    ids=str,
)
def test_all_rows_have_one_width(num_players: int, rules: dict[str, Any]) -> None:
    text = sheet({**POSITION, "cards": [{}] * num_players, "kismets_rolled": [0] * num_players}, Rules.of(rules))
    rows = [line for line in text.splitlines() if line.startswith(("|", "+"))]
    assert {len(row) for row in rows} == {1 + 36 + 12 * num_players + 1}


def test_every_roll_can_be_shown() -> None:
    for dice in combinations_with_replacement(range(1, 7), 5):
        assert f"({sum(dice)})" in sheet({**POSITION, "dice": list(dice)}, Rules())


def test_render_shows_the_position_and_changes_nothing() -> None:
    env = gym.make("kismet_env/Kismet-v0", render_mode="ansi", start="uniform").unwrapped
    env.reset(seed=3)
    before = env.save()
    assert env.render() == sheet(env.position(), Rules())
    for now, then in zip(env.save(), before, strict=True):
        assert np.array_equal(now, then)
    assert env.save().games["key"] == key_of(3)


def test_render_without_a_mode_says_how_to_get_one() -> None:
    env = gym.make("kismet_env/Kismet-v0").unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode=.*ansi"):
        assert env.render() is None
