"""The exact value of players who have to be asked: against brute force, against themselves as data, and broken off."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crystal import CARDS, FULL, IDS, assert_foreseen, closed_of, decisions

from kismet_env import asked
from kismet_env.bots import AskedPlayer, MostProbable, Player, StochasticPlayer, TurnPlayer, make
from kismet_env.bots.actor import Actor
from kismet_env.cards import CardNumbers
from kismet_env.evaluation import exact
from kismet_env.exact import PolicyValue
from kismet_env.observation import layout_of
from kismet_env.policy_file import Network, Policy
from kismet_env.provenance import Provenance
from kismet_env.rules import SUITE, Box, Rules
from kismet_env.tables import tables_of


def actor(layers: Any, activation: str = "tanh", *, rules: Rules | None = None) -> Actor:
    provenance = Provenance.of("test", rules=rules or Rules(), seed=0, observation="features", actions="keeps")
    return Actor(Policy("actor", Network(layers, activation), provenance))


def random_actor(seed: int = 0, *, rules: Rules | None = None) -> Actor:
    """An actor with strong opinions on everything that it sees, which are wrong."""
    inputs, rng = layout_of(rules or Rules()).size, np.random.default_rng(seed)
    sizes = [(32, inputs), (225, 32)]
    return actor([(rng.normal(size=size), rng.normal(size=size[0])) for size in sizes], rules=rules)


def players(rules: Rules | None = None) -> dict[str, Any]:
    network = random_actor(rules=rules)
    return {"argmax": MostProbable(network), "lots": network}


QUICK = {"argmax": IDS[:4], "lots": ["YARBOROUGH"]}
"""Who draws lots is asked about everything, which takes seconds; YARBOROUGH has jokers."""


@pytest.mark.parametrize(
    ("kind", "open_boxes", "changed"),
    [
        pytest.param(kind, *card, id=f"{kind}-{name}", marks=() if name in quick else pytest.mark.slow)
        for kind, quick in QUICK.items()
        for card, name in zip(CARDS, IDS, strict=True)
    ],
)
def test_values_and_distributions_are_those_of_brute_force(
    tmp_path: Path, kind: str, open_boxes: tuple[Box, ...], changed: dict[str, int]
) -> None:
    player = players()[kind]
    value = asked.value(player, folder=tmp_path, closed=closed_of(*open_boxes))
    assert_foreseen(value, player, Rules(), {}, open_boxes, changed, whole=kind == "lots")


@pytest.mark.parametrize("kind", ["argmax", pytest.param("lots", marks=pytest.mark.slow)])
def test_so_they_are_under_other_rules(tmp_path: Path, kind: str) -> None:
    changes: dict[str, Any] = {"second_kismet": "filled", "joker": "always", "zeros": "any_time"}
    rules, boxes = Rules(**changes), (Box.STRAIGHT, Box.KISMET)
    player = players(rules)[kind]
    value = asked.value(player, rules, folder=tmp_path, closed=closed_of(*boxes))
    assert_foreseen(value, player, rules, changes, boxes, {}, whole=False)


def test_the_total_of_a_full_basic_section_can_be_seen_and_matter(tmp_path: Path) -> None:
    """The rules have forgotten it, a network need not have."""
    value = asked.value(players()["lots"], folder=tmp_path, closed=closed_of(Box.FLUSH))
    assert len(set(value.card_value(closed_of(Box.FLUSH), [20, 45, 63, 78], False).tolist())) == 4
    assert value.card_value(closed_of(Box.FLUSH), 90, False) == value.card_value(closed_of(Box.FLUSH), 78, False)


class Silent:
    """A player who no longer says how he chooses."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def fingerprint(self) -> str:
        return type(self._player).__name__

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return self._player.act(observations, masks, u)


class SilentDrawer(Silent, StochasticPlayer):
    def probabilities(self, observations: Any, masks: Any) -> Any:
        assert isinstance(self._player, StochasticPlayer)
        return self._player.probabilities(observations, masks)


FEW = SUITE["no_bonus"]
"""Rules under which Basic totals decide nothing and are not seen: few cards, so that questions are few."""
OPEN = (Box.SIXES, Box.FLUSH, Box.FULL_HOUSE, Box.KISMET)


@pytest.mark.parametrize("name", ["greedy", "turn_greedy", "rule_based", "random", "epsilon:0.3", "boltzmann:2.0"])
def test_who_is_asked_is_worth_what_he_is_worth_as_data(tmp_path: Path, name: str) -> None:
    player = make(name, FEW)
    assert isinstance(player, TurnPlayer)
    silent: AskedPlayer = SilentDrawer(player) if isinstance(player, StochasticPlayer) else Silent(player)
    closed = closed_of(*OPEN)
    told = PolicyValue(player.turn_policy(), tables_of(FEW), closed=closed)
    found = asked.value(silent, FEW, folder=tmp_path, closed=closed)
    for measure in ("card_value", "card_sd"):
        one, other = (getattr(value, measure)(closed, 0, False) for value in (told, found))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    one, other = (value.distribution(closed=closed) for value in (told, found))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def copy_of(player: Player, *open_boxes: Box) -> MostProbable:
    """A network that does what `player` does in games of two boxes whose Basic Section is full, under FEW.

    Each hidden number is 1 in one decision and 0 in all others, and leads to one action.
    """
    layout = layout_of(FEW)
    told = [layout.slices[piece] for piece in ("dice", "rolls_left", "open_boxes", "armed")]
    places = np.concatenate([np.r_[piece] for piece in told])
    hidden, biases, actions = [], [], []
    for left, still_open, kismet in product(range(3), [open_boxes, open_boxes[:1], open_boxes[1:]], (0, 80)):
        points = {name: held for name, held in (FULL | {"KISMET": kismet}).items() if Box[name] not in still_open}
        seen = decisions(points, left, FEW)
        actions.append(player.act(seen.observations, seen.masks))
        is_one = seen.observations[:, places] > 0
        signs = np.zeros(seen.observations.shape)
        signs[:, places] = np.where(is_one, 1.0, -1.0)
        hidden.append(signs)
        biases.append(1.0 - is_one.sum(1))
    outputs = np.eye(225)[np.concatenate(actions)].T
    layers = [(np.concatenate(hidden), np.concatenate(biases)), (outputs, np.zeros(225))]
    return MostProbable(actor(layers, "relu", rules=FEW))


def test_a_network_that_copies_turn_greedy_is_worth_what_turn_greedy_is(tmp_path: Path) -> None:
    boxes, copied = (Box.FLUSH, Box.FOUR_OF_A_KIND), make("turn_greedy", FEW)
    closed = closed_of(*boxes)
    assert isinstance(copied, TurnPlayer)
    expected = PolicyValue(copied.turn_policy(), tables_of(FEW), closed=closed)
    found = asked.value(copy_of(copied, *boxes), FEW, folder=tmp_path, closed=closed)
    one, other = (value.card_value(closed, 0, [False, True]) for value in (expected, found))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


# --- broken off and taken up again ---

CLOSED = closed_of(Box.FIVES, Box.FLUSH, Box.KISMET)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many batches of questions were asked, and after how many somebody presses Ctrl-C; pages are small."""
    count = {"asked": 0, "most": 1_000_000}
    answers = asked._answers

    def answer(player: AskedPlayer, seen: Any) -> Any:
        if count["asked"] == count["most"]:
            raise KeyboardInterrupt
        count["asked"] += 1
        return answers(player, seen)

    monkeypatch.setattr(asked, "_answers", answer)
    monkeypatch.setattr(asked, "PAGE", 2)
    return count


def worth(player: Any, folder: Path, rules: Rules = FEW, *, report: Any = lambda share: None) -> tuple[float, float]:
    value = asked.value(player, rules, report, folder=folder, closed=CLOSED)
    return float(value.card_value(CLOSED, 0, False)), float(value.card_sd(CLOSED, 0, False))


@pytest.mark.parametrize("kind", ["argmax", "lots"])
def test_what_was_broken_off_goes_on_and_ends_the_same(tmp_path: Path, kind: str, questions: dict[str, int]) -> None:
    player, shares = players(FEW)[kind], list[float]()
    expected = worth(player, tmp_path / "whole", report=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    whole, spent = questions["asked"], 0
    for _ in range(3):
        questions |= {"asked": 0, "most": whole // 4}
        with pytest.raises(KeyboardInterrupt):
            worth(player, tmp_path / "parts")
        spent += questions["asked"]
    questions |= {"asked": 0, "most": whole}
    assert worth(players(FEW)[kind], tmp_path / "parts") == expected
    assert whole <= spent + questions["asked"] <= whole + 3 * 3, "what was asked is written down"
    questions |= {"asked": 0, "most": 0}
    assert worth(player, tmp_path / "parts") == expected, "nothing is asked twice"
    names = [{path.name for path in (tmp_path / folder).rglob("*")} for folder in ("whole", "parts")]
    assert names[0] == names[1]


def test_damaged_pages_are_asked_anew(tmp_path: Path, questions: dict[str, int]) -> None:
    player = players(FEW)["argmax"]
    expected = worth(player, tmp_path)
    pages = sorted(tmp_path.rglob("*.safetensors"))
    pages[0].write_bytes(pages[0].read_bytes()[:-1])
    damaged = bytearray(pages[1].read_bytes())
    damaged[-1] ^= 1
    pages[1].write_bytes(damaged)
    pages[2].unlink()
    questions["asked"] = 0
    with pytest.warns(UserWarning, match="asking anew") as warned:
        assert worth(player, tmp_path) == expected
    assert len(warned) == 2
    assert questions["asked"] == 9  # three pages, three rolls


def test_pages_are_for_one_player_and_one_set_of_rules(tmp_path: Path, questions: dict[str, int]) -> None:
    values, asked_of_each = [], []
    others = replace(FEW, zeros="any_time")
    for player, rules in (
        (players(FEW)["argmax"], FEW),
        (players(FEW)["lots"], FEW),
        (MostProbable(random_actor(1, rules=FEW)), FEW),
        (players(others)["argmax"], others),
    ):
        questions["asked"] = 0
        values.append(worth(player, tmp_path, rules))
        asked_of_each.append(questions["asked"])
        assert worth(player, tmp_path, rules) == values[-1]
        assert questions["asked"] == asked_of_each[-1]
    assert all(asked_of_each)
    assert len(set(values)) == len(values)


def test_what_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        worth(players(FEW)["argmax"], tmp_path / "file")


def test_illegal_actions_are_refused(tmp_path: Path) -> None:
    class Cheat(Silent):
        def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
            return np.full(len(masks), 224)

    with pytest.raises(ValueError, match="Cheat plays illegal actions"):
        worth(Cheat(make("greedy", FEW)), tmp_path)


def test_whole_games_need_a_folder_and_cost_hours() -> None:
    player = players()["argmax"]
    with pytest.raises(ValueError, match="MostProbable has to be asked about every decision; give a folder"):
        exact(player)
    cost = asked.cost(player)
    num_cards = CardNumbers(tables_of(Rules()), full_totals=True).size
    assert cost.decisions == 756 * num_cards > 1.7e9
    assert cost.num_bytes == cost.decisions
    assert asked.cost(players()["lots"]).num_bytes == 16 * num_cards
    assert str(cost._replace(seconds=7200.0)).endswith("a second: up to 2.0 hours, and up to 1.8 GB of disk")
