"""win_probability: legal in matches of any size, the same in every company, and it plays to win."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rough import rough_judges

from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.dice import roll_index
from kismet_env.observation import decode_table
from kismet_env.rules import SUITE, Box, Rules

KEEPS = actions_of("keeps")


@pytest.fixture(autouse=True)
def _rough(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with rough_judges(monkeypatch):
        yield


def positions(rules: Rules, num_players: int) -> Batch:
    batch = Batch(256, num_players, rules=rules, start="uniform")
    batch.seed(range(256))
    step = batch.deal()
    chance = np.random.default_rng(0)
    for _ in range(3):
        step = batch.step((chance.random(step.masks.shape) * step.masks).argmax(1))
    return batch


@pytest.mark.parametrize(("num_players", "rules"), [(2, Rules()), (3, Rules()), (4, Rules()), (2, SUITE["no_bonus"])])
def test_it_plays_legal_actions_whatever_the_other_rows_are(num_players: int, rules: Rules) -> None:
    batch, player = positions(rules, num_players), make("win_probability", rules)
    seen = batch.look()
    actions = player.act(seen.observations, seen.masks)
    assert (seen.masks[np.arange(256), actions] == 1).all()
    for rows in np.array_split(np.random.default_rng(0).permutation(256), 5):
        assert (player.act(seen.observations[rows], seen.masks[rows]) == actions[rows]).all()


@pytest.mark.parametrize("num_players", [1, 2, 5])
def test_observations_show_all_cards_exactly(num_players: int) -> None:
    batch = positions(Rules(), num_players)
    cards = decode_table(batch.look().observations, Rules())
    seats = (batch.state.games["player"][:, None] + np.arange(num_players)) % num_players
    state = np.take_along_axis(batch.state.cards, seats, 1)
    for column, name in enumerate(("filled", "basic_total", "armed")):
        expected = state[name].astype(int) if name != "basic_total" else np.minimum(state[name], 78)
        assert (cards[:, :, column] == expected).all(), name
    assert (cards[:, :, 3] == (state["total"] if num_players > 1 else 0)).all()


def test_observations_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="observations of 90 numbers"):
        decode_table(np.zeros((1, 90), np.float32), Rules())


def last_decision(name: str, lead: int, dice: list[int]) -> str:
    """What a player with a roll left does with Yarborough alone open against a full card, `lead` points ahead."""
    other = {box.name: 0 for box in Box} | {"YARBOROUGH": lead}
    mine: dict[str, Any] = {box.name: 0 for box in Box if box != Box.YARBOROUGH}
    batch = Batch(1, 2)
    batch.seed([0])
    step = batch.deal_positions([{"cards": [other, mine], "player": 1, "dice": dice, "rolls_left": 1}])
    action = int(make(name).act(step.observations, step.masks)[0])
    return KEEPS.text(action, roll_index(dice))


def test_it_takes_what_wins_and_gambles_where_that_loses() -> None:
    stop = KEEPS.text(KEEPS.num_rolls + Box.YARBOROUGH, roll_index([3, 3, 5, 5, 6]))
    assert last_decision("win_probability", 21, [3, 3, 5, 5, 6]) == stop  # 22 are enough
    assert last_decision("optimal", 21, [3, 3, 5, 5, 6]) == "keep 5-5-6"  # two new dice bring 7, not 6
    # 24 are not enough: one new die wins with a 6, ties with a 5 (1/4); two win with 10 and tie with 9 (2/9)
    assert last_decision("win_probability", 25, [4, 4, 5, 5, 6]) == "keep 4-5-5-6"
    assert last_decision("optimal", 25, [4, 4, 5, 5, 6]) == stop
