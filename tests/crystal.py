"""What a player will get on a card, seen by asking him in every decision and following up every outcome."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import reference
from brute_force import AFTER, ROLLS, Card, Solitaire, card_of
from reference_game import KEEP_NUMBER

from kismet_env.actions import actions_of
from kismet_env.batch import Batch, Step
from kismet_env.bots import Player, StochasticPlayer
from kismet_env.dice import roll_index
from kismet_env.exact import PolicyValue
from kismet_env.observation import decode
from kismet_env.rules import BASIC_BOXES, Box, Rules

ALL_BOXES = 2**15 - 1
MOST = 300  # more points than two turns can bring
KEEPS = actions_of("keeps")
PLACE_OF_KEEP = {KEEP_NUMBER[kept]: place for place, kept in enumerate(AFTER)}  # by the number of the action
ROLL_NUMBER = {roll: number for number, roll in enumerate(ROLLS)}
CHANCES = np.zeros((len(AFTER), len(ROLLS)))
"""Of every roll after every keep, in the orders of AFTER and ROLLS."""
for place, rolls in enumerate(AFTER.values()):
    for roll, chance in rolls:
        CHANCES[place, ROLL_NUMBER[roll]] = chance


class Future(NamedTuple):
    """Distributions of the points still to come on a card, the last axis (MOST,)."""

    card: npt.NDArray[np.float64]  # ()
    actions: list[dict[tuple[int, int], npt.NDArray[np.float64]]]  # [rolls left][roll, action]


class Crystal:
    """Sees what a player will get, by asking what he does in every decision and following up every outcome."""

    def __init__(self, player: Player, rules: Rules, changes: dict[str, Any]) -> None:
        self._player, self._rules = player, rules
        self._game = Solitaire({**reference.STANDARD, **changes})
        self._futures: dict[Card, Future] = {}

    def future(self, card: Card, points: dict[str, int]) -> Future:
        """Return what comes on `card`; `points` are those of its filled boxes."""
        if card not in self._futures:
            self._futures[card] = self._look(card, points)
        return self._futures[card]

    def _look(self, card: Card, points: dict[str, int]) -> Future:
        kept = np.zeros((len(AFTER), MOST))
        actions: list[dict[tuple[int, int], npt.NDArray[np.float64]]] = []
        for left in range(3):
            seen = decisions(points, left, self._rules)
            shares = shares_of(self._player, seen)
            rolled = np.zeros((len(ROLLS), MOST))
            actions.append({})
            for number, roll in enumerate(ROLLS):
                for action in np.flatnonzero(seen.masks[number]).tolist():
                    if action < KEEPS.num_rolls:
                        after = kept[PLACE_OF_KEEP[action]]
                    else:
                        box = Box(action - KEEPS.num_rolls).name
                        after = self._filled(card, points, roll, box)
                    actions[left][number, action] = after
                    rolled[number] += shares[number, action] * after
            kept = CHANCES @ rolled
        return Future(kept[PLACE_OF_KEEP[KEEP_NUMBER[()]]], actions)

    def _filled(self, card: Card, points: dict[str, int], roll: tuple[int, ...], box: str) -> npt.NDArray[np.float64]:
        gain, after = self._game.fill(card, roll, box)
        rest = np.zeros(MOST)
        rest[0] = 1.0
        if after.open:
            joker, _ = reference.second_kismet(roll, card.kismet, card.kismets_rolled, self._game.rules)
            entered = reference.score(roll, box, self._game.rules, joker)
            rest = self.future(after, points | {box: entered}).card
        return np.roll(rest, gain)


def decisions(points: dict[str, int], rolls_left: int, rules: Rules) -> Step:
    """What a player sees with every roll on a card whose filled boxes hold `points`."""
    one, batch = Batch(1, rules=rules), Batch(len(ROLLS), rules=rules)
    one.deal_positions([{"cards": [points], "dice": [1] * 5, "rolls_left": rolls_left}])
    batch.state.games[:], batch.state.cards[:] = one.state
    batch.state.games["roll"] = [roll_index(roll) for roll in ROLLS]
    return batch.look()


def shares_of(player: Player, seen: Step) -> npt.NDArray[np.float64]:
    """How probable each action is, (252, 225)."""
    if isinstance(player, StochasticPlayer):
        return player.probabilities(seen.observations, seen.masks)
    return np.eye(KEEPS.num_actions)[player.act(seen.observations, seen.masks)]


def closed_of(*open_boxes: Box) -> int:
    return ALL_BOXES & ~sum(1 << box for box in open_boxes)


FULL = {box.name: 0 for box in Box} | {box.name: 3 * (box + 1) for box in BASIC_BOXES} | {"YARBOROUGH": 20}
"""Points of a card with all boxes filled: three of each face and next to nothing below."""
CARDS: list[tuple[tuple[Box, ...], dict[str, int]]] = [
    # open boxes, and what others hold than in FULL
    ((Box.FLUSH,), {}),
    ((Box.SIXES,), {}),  # the last Basic box, all tiers within reach
    ((Box.FULL_HOUSE_SAME_COLOR,), {"KISMET": 80}),  # jokers count
    ((Box.YARBOROUGH,), {"KISMET": 80}),
    ((Box.FIVES, Box.KISMET), {"SIXES": 24}),
    ((Box.FULL_HOUSE, Box.KISMET), {}),  # a joker is what a Kismet makes possible
    ((Box.STRAIGHT, Box.YARBOROUGH), {}),
]
IDS = ["+".join(box.name for box in boxes) for boxes, _ in CARDS]


def assert_foreseen(
    value: PolicyValue,
    player: Player,
    rules: Rules,
    changes: dict[str, Any],
    open_boxes: Sequence[Box],
    changed: dict[str, int],
    *,
    whole: bool = True,
) -> None:
    """Hold mean, SD, distribution and action values of a card against the future that brute force sees.

    `whole`: every action has a known value. Else those have one that a player who draws no lots can come to.
    """
    points = {name: held for name, held in (FULL | changed).items() if Box[name] not in open_boxes}
    total = sum(points.get(box.name, 0) for box in BASIC_BOXES)
    card = card_of(tuple(box.name for box in open_boxes), total, kismet=points.get("KISMET", 0))
    future = Crystal(player, rules, changes).future(card, points)
    number = np.arange(MOST)
    mean = float(future.card @ number)

    (decision,) = {tuple(row) for row in np.stack(decode(decisions(points, 2, rules).observations)[:3], 1).tolist()}
    assert value.card_value(*decision) == pytest.approx(mean, abs=1e-9)
    assert value.card_sd(*decision) == pytest.approx(float(future.card @ (number - mean) ** 2) ** 0.5, abs=1e-5)
    for left, actions in enumerate(future.actions):
        values = value.action_values(*decision, np.array(ROLLS), left)
        expected = np.full(values.shape, -np.inf)
        for place, distribution in actions.items():
            expected[place] = distribution @ number
        known = ~np.isnan(values)
        np.testing.assert_allclose(values[known], expected[known], rtol=0, atol=1e-9)
        assert known.all() or not whole
        if left == 2:  # all dice can come, and what he does with them is known
            chosen = shares_of(player, decisions(points, left, rules)) > 0
            assert known[chosen].all()
    if not decision[2]:  # distributions begin on cards without a second Kismet behind them
        distribution = value.distribution(closed=closed_of(*open_boxes), basic_total=decision[1])
        np.testing.assert_allclose(distribution, future.card[: len(distribution)], rtol=0, atol=1e-12)
        assert not future.card[len(distribution) :].any()
