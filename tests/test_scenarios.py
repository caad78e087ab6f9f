"""Stretches of games, step by step: second Kismets, forced zeros, lost turns, the end of the game."""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.dice import roll_index
from kismet_env.rules import Box, Rules, basic_bonus

SCENARIOS = json.loads((Path(__file__).parent / "scenarios.json").read_text())
Card = dict[str, int]


class Table:
    """Games of the same rules, one per position; every turn is given its dice, all else is the engine's doing."""

    def __init__(self, positions: Sequence[dict[str, Any]], rules: dict[str, Any], *, reward: str = "points") -> None:
        """Set up the positions: cards, player and, if it matters, kismets_rolled."""
        num_players = len(positions[0]["cards"])
        self.batch = Batch(len(positions), num_players=num_players, rules=rules, reward=reward)
        self.batch.deal_positions(positions)

    def show(self, dice: Sequence[Sequence[int]]) -> None:
        """Lay these dice before the players to move, with no roll left."""
        self.batch.state.games["roll"] = [roll_index(roll) for roll in dice]
        self.batch.state.games["rolls_left"] = 0

    def fill(self, boxes: Sequence[int]) -> np.ndarray:
        """Fill a box in every game and return the rewards (N, P)."""
        masks = self.batch.look().masks
        actions = actions_of("keeps").num_rolls + np.array(boxes)
        assert masks[np.arange(len(actions)), actions].all(), "a box that is to be filled is not legal"
        return self.batch.step(actions).rewards

    def cards(self, row: int = 0) -> list[Card]:
        """Return the filled boxes of every player."""
        return [
            {Box(b).name: int(p) for b, p in enumerate(card) if p >= 0}
            for card in self.batch.state.cards["points"][row]
        ]

    def filled(self, row: int = 0) -> list[int]:
        return [len(card) for card in self.cards(row)]

    def next_player(self, row: int = 0) -> int | None:
        game = self.batch.state.games[row]
        return None if game["over"] else int(game["player"])

    def totals(self, row: int = 0) -> list[int]:
        """Return the totals of every player, bonus included."""
        return self.batch.state.cards["total"][row].tolist()


def total_of(card: Card, rules: Rules) -> tuple[int, int, int]:
    """Return the Basic total, the bonus and the total of the Kismet Section."""
    basic = [card[box] for box in reference.BASIC if box in card]
    bonus = basic_bonus(sum(basic), rules) if len(basic) == len(reference.BASIC) else 0
    return sum(basic), bonus, sum(card.values()) - sum(basic)


@pytest.mark.parametrize(
    ("scenario", "reward"),
    [
        pytest.param(scenario, reward, id=f"{scenario['id']}-{reward}")
        for scenario, reward in product(SCENARIOS, ("points", "win"))
        if reward == "points" or len(scenario["start"]["cards"]) > 1
    ],
)
def test_scenario(scenario: dict[str, Any], reward: str) -> None:
    num_players = len(scenario["start"]["cards"])
    rules, fields = Rules.of(scenario["rules"]), {**reference.STANDARD, **scenario["rules"]}
    table = Table([scenario["start"]], scenario["rules"], reward=reward)
    kismets = [int(card.get("KISMET", 0) > 0) for card in table.cards()]
    kismets = list(scenario["start"].get("kismets_rolled", kismets))
    assert table.cards() == [in_sheet_order(card) for card in scenario["start"]["cards"]]

    for number, step in enumerate(scenario["steps"], start=1):
        player, dice, box = step["player"], tuple(step["dice"]), step["box"]
        what = f"{scenario['id']}, step {number}: player {player} enters {dice} in {box}"
        assert table.next_player() == player, what
        before, totals_before = table.cards(), table.totals()
        _, second_kismet = reference.second_kismet(
            dice, before[player].get("KISMET"), kismets[player], {**fields, "second_kismet_penalty": True}
        )
        assert second_kismet == step["second_kismet"], f"{what}: the scenario and the reference disagree"

        table.show([dice])
        rewards = table.fill([Box[box]])[0].tolist()
        kismets[player] += len(set(dice)) == 1
        after = table.cards()
        new = [{name: card[name] for name in card if name not in old} for card, old in zip(after, before, strict=True)]
        zeros = [{} for _ in new]
        for zero in step["forced_zeros"]:
            zeros[zero["player"]][zero["box"]] = 0
        zeros[player] = {box: step["points"]}
        assert new == zeros, f"{what}: expected entries {zeros}, actual {new}"
        assert table.filled() == step["filled_after"], what
        totals = [sum(total_of(card, rules)) for card in after]
        assert table.totals() == totals == step.get("totals_after", totals), what
        assert table.next_player() == step["next_player"], what
        if reward == "points":
            assert rewards == (np.array(totals) - totals_before).tolist(), what
        elif table.next_player() is not None:
            assert rewards == [0.0] * num_players, what
        if table.next_player() is not None:
            again = Table([table.batch.position()], scenario["rules"]).batch.state.cards
            for name in set(again.dtype.names) - {"earned"}:  # what is not yet paid is no part of a position
                ours = table.batch.state.cards[name]
                assert np.array_equal(again[name], ours), f"{what}: its position gives {name} {again[name]}, not {ours}"

    assert table.cards() == scenario["end_cards"]
    if final := scenario["final"]:
        assert (table.next_player() is None) == final["game_over"]
        basic, bonus, kismet_section = zip(*(total_of(card, rules) for card in table.cards()), strict=True)
        assert list(basic) == final["basic"]
        assert list(bonus) == final["bonus"]
        assert list(kismet_section) == final["kismet_section"]
        assert table.totals() == final["total"]
        best = max(final["total"])
        assert [seat for seat, total in enumerate(final["total"]) if total == best] == final["winners"]
        if reward == "win":  # what the losers pay is shared by the winners; all tied, nobody pays
            winners = final["winners"]
            share = (num_players - len(winners)) / len(winners) / (num_players - 1)
            paid = [share if seat in winners else -1 / (num_players - 1) for seat in range(num_players)]
            assert rewards == pytest.approx(paid)


def in_sheet_order(card: Card) -> Card:
    return {box: card[box] for box in reference.BOXES if box in card}


SECOND_KISMET_RULES = list(product(("scored", "filled", "rolled"), ("full", "natural", "always"), (True, False)))


@pytest.mark.parametrize(("second_kismet", "joker", "penalty"), SECOND_KISMET_RULES)
def test_second_kismet_in_every_state_and_box(second_kismet: str, joker: str, penalty: bool) -> None:
    """RULES.md 6.1, 6.2: what the dice earn and do to the opponent, for every past and every box."""
    rules = {"second_kismet": second_kismet, "joker": joker, "second_kismet_penalty": penalty}
    fields = {**reference.STANDARD, **rules}
    pasts = [
        ({}, 0),
        ({}, 1),
        ({"KISMET": 0}, 0),
        ({"KISMET": 0}, 1),
        ({"KISMET": 65}, 1),
        ({"KISMET": 65}, 2),
    ]
    all_dice = [(5, 5, 5, 5, 5), (2, 5, 5, 5, 5), (2, 2, 2, 3, 3), (2, 2, 2, 5, 5)]
    turns = [
        ({**past, "FLUSH": 35}, earlier, dice, box)
        for (past, earlier), dice, box in product(pasts, all_dice, reference.BOXES)
        if box not in past and box != "FLUSH"
    ]
    opponents = [dict(list({"ACES": 3, "STRAIGHT": 30}.items())[: len(card)]) for card, *_ in turns]
    table = Table(
        [
            {
                "cards": [card, opponent],
                "player": 0,
                "dice": dice,
                "rolls_left": 0,
                "kismets_rolled": [earlier, 0],
            }
            for (card, earlier, dice, _), opponent in zip(turns, opponents, strict=True)
        ],
        rules,
    )
    table.fill([Box[box] for *_, box in turns])
    for row, ((card, earlier, dice, box), opponent) in enumerate(zip(turns, opponents, strict=True)):
        is_joker, penalised = reference.second_kismet(dice, card.get("KISMET"), earlier, fields)
        points = reference.score(dice, box, fields, is_joker)
        expected = [
            in_sheet_order({**card, box: points}),
            in_sheet_order({**opponent, **({"DEUCES": 0} if penalised else {})}),
        ]
        what = f"card {card}, {earlier} five alike before, {dice} in {box}, rules {rules}"
        assert table.cards(row) == expected, what
        assert table.next_player(row) == (0 if penalised else 1), what
        assert table.batch.position(row)["kismets_rolled"] == [earlier + (len(set(dice)) == 1), 0], what


def second_kismets(most_players: int) -> Iterator[tuple[int, int, int]]:
    """Yield (players, round, seat of the roller); a second Kismet takes two turns, so not in round 1."""
    for num_players in range(1, most_players + 1):
        for game_round in (2, 5, 14, 15):
            for seat in range(num_players):
                yield num_players, game_round, seat


@pytest.mark.parametrize(("num_players", "game_round", "seat"), list(second_kismets(most_players=5)))
def test_turns_go_by_slots(num_players: int, game_round: int, seat: int) -> None:
    """RULES.md 6.4: a second Kismet uses n slots, other turns one; cards hold what their seats used."""

    def filled(slots: int) -> list[int]:
        slots = min(slots, 15 * num_players)
        return [slots // num_players + (s < slots % num_players) for s in range(num_players)]

    points = {
        "KISMET": 65,
        "YARBOROUGH": 20,
        "FOUR_OF_A_KIND": 46,
        "FULL_HOUSE_SAME_COLOR": 36,
        "FULL_HOUSE": 28,
    }
    points |= {box: 0 for box in reversed(reference.BOXES) if box not in points}
    slots = (game_round - 1) * num_players + seat
    table = Table([{"cards": [dict(list(points.items())[:count]) for count in filled(slots)]}], {})

    kismets, turns = 2, 0
    while slots < 15 * num_players:
        mover = slots % num_players
        assert table.next_player() == mover, f"slot {slots}"
        # The roller has two second Kismets in a row, all turns after that are ordinary ones.
        again = turns < kismets
        assert not again or mover == seat
        table.show([(6, 6, 6, 6, 6) if again else (1, 2, 3, 4, 6)])
        table.fill([next(box for box in Box if box.name not in table.cards()[mover])])
        slots += num_players if again else 1
        turns += 1
        assert table.filled() == filled(slots), f"after slot {slots}"
    assert table.next_player() is None
    assert table.filled() == [15] * num_players
