"""Games written down: they replay exactly, are refused where they break the rules, and their sums come out."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kismet_env.analysis import Analyst, analyse, total_of
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.record import Game
from kismet_env.rules import Rules
from kismet_env.solver import solve

ARMED = {"KISMET": 65, "ACES": 3}
SECOND_KISMET = {"cards": [ARMED, {"DEUCES": 4, "FLUSH": 35}], "player": 0, "dice": [4, 4, 4, 4, 4]}


def played(players: list[str], key: int | None = 7, rules: Any = None, **options: Any) -> Game:
    """A whole game."""
    game = Game(players, rules, key=key, **options)
    by_name = {name: make(name, game.rules) for name in players}
    while not game.over:
        game.let(by_name[players[game.player]])
    return game


def test_a_record_replays_exactly_and_is_the_game_of_its_key() -> None:
    players = ["turn_greedy", "random", "greedy"]
    game = played(players, key=2**64 - 1)
    text = game.to_json()
    again = Game.from_json(text)
    assert again.to_json() == text
    assert again.totals == game.totals
    assert again.position() == game.position()
    batch = Batch(1, 3)  # the same actions in a batch dealt with the key
    batch.deal_keys(np.array([2**64 - 1], np.uint64))
    for move in game.moves:
        assert batch.position() == move.before
        batch.step([move.action])
    assert batch.state.cards["total"][0].tolist() == game.totals


def test_a_record_says_everything_in_words_and_numbers() -> None:
    record = json.loads(played(["greedy"]).to_json())
    assert list(record) == ["record", "kismet_env", "rules", "players", "key", "actions", "totals"]
    assert record["key"] == "0000000000000007"
    first, filled = record["actions"][0], next(entry for entry in record["actions"] if "points" in entry)
    assert first["player"] == 0
    assert first["rolls_left"] == 2
    assert len(first["dice"]) == 5
    assert re.fullmatch(r"keep [1-6](-[1-6])*|roll all dice|fill [A-Z].*", first["does"])
    assert filled["action"] >= 210
    assert sum(entry.get("points", 0) + entry.get("bonus", 0) for entry in record["actions"]) == record["totals"][0]


def test_the_dice_of_a_real_table_need_no_key_and_words_need_no_numbers() -> None:
    record = json.loads(played(["greedy", "random"]).to_json())
    del record["key"], record["totals"]
    for entry in record["actions"]:
        del entry["action"], entry["player"], entry["rolls_left"]
    game = Game.from_json(json.dumps(record))
    assert game.key is None
    assert game.totals == played(["greedy", "random"]).totals
    assert [move.before["dice"] for move in game.moves] == [entry["dice"] for entry in record["actions"]]
    assert Game.from_json(game.to_json()).to_json() == game.to_json()


def test_a_second_kismet_is_told_with_the_zeros_it_forces() -> None:
    game = Game(["a", "b"], key=3, start=SECOND_KISMET)
    game.play(210 + 3)
    entry = json.loads(game.to_json())["actions"][0]
    assert (entry["does"], entry["points"]) == ("fill Fours", 20)
    assert entry["forced_zeros"] == [{"player": 1, "box": "ACES"}]
    assert game.player == 0
    assert Game.from_json(game.to_json()).totals == [88, 39]


def wrong(change: Any, key: bool = True) -> str:
    """A record of which `change` has made something else."""
    record = json.loads(played(["greedy"]).to_json())
    if not key:
        del record["key"]
    change(record)
    return json.dumps(record)


def set_(number: int, **fields: Any) -> Any:
    return lambda record: record["actions"][number - 1].update(fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the record is no JSON"),
        ("[]", "this is no record of a game"),
        ("[" * 100_000, "lists in lists without end"),
        ('{"record": 1, "record": 1}', "the field 'record' is there twice"),
        (wrong(lambda record: record.update(record=True)), "this is a record of version True"),
        (wrong(lambda record: record.update(record=2)), "this is a record of version 2; version 1 can be read"),
        (wrong(lambda record: record.update(colour=2)), "record: unknown field 'colour'; fields are record, "),
        (wrong(lambda record: record.update(key=7)), "record: key 7 is not a text of 16 hexadecimal digits"),
        (wrong(lambda record: record.update(key=" 0x7 ")), "record: key ' 0x7 ' is not a text of 16 hexadecimal"),
        (wrong(lambda record: record.update(players=[["a"]])), r"player \['a'\] is not a name"),
        (wrong(lambda record: record.update(players=["a\x1b[2J"])), r"player 'a\\x1b\[2J' is not a name"),
        (wrong(lambda record: record.update(start=7), key=False), "record: start 7 is not a mapping"),
        (wrong(lambda record: record.update(totals=[1])), r"record: totals are \[\d+\] after the last action, not"),
        (wrong(set_(4, does="fill Kismet", action=224, points=0)), "action 4 of .*: fill Kismet is not legal with"),
        (wrong(set_(2, does="keep 7")), "action 2 of .*: does 'keep 7' is no action; actions read like"),
        (wrong(set_(2, action=0)), "action 2 of .*: action 0 is not '"),
        (wrong(set_(3, dice=[1, 1, 1, 1, 1])), "action 2 of .*: the key of this game brings dice|action 3 of .*: the"),
        (wrong(set_(3, dice=[1, 1])), r"action 3 of .*: dice \[1, 1\] are not five faces"),
        (wrong(set_(1, player=1)), "action 1 of .*: player is 0 by the rules, not 1"),
        (wrong(lambda record: record["actions"].append({"does": "fill Flush"})), "the game is over before it"),
        (wrong(lambda record: record["actions"][0].pop("dice"), key=False), "without a key needs its first dice"),
        (wrong(lambda record: record["actions"][1].pop("dice"), key=False), "action 1 of .*: the next action does"),
    ],
)
def test_what_breaks_the_rules_is_refused_with_the_number_of_the_action(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game.from_json(text)


def test_what_nothing_was_forced_into_may_say_so() -> None:
    text = wrong(lambda record: record["actions"][0].update(forced_zeros=[], bonus=0))
    assert Game.from_json(text).totals == played(["greedy"]).totals


def test_dice_that_cannot_follow_are_refused() -> None:
    game = Game(["a"], key=None, start={"cards": [{}], "dice": [1, 2, 3, 5, 5]})
    before = copy.deepcopy(game.position())
    with pytest.raises(ValueError, match="after keep 5-5 dice 1-2-3-4-5 cannot lie on the table"):
        game.play(game_action("keep 5-5"), [1, 2, 3, 4, 5])
    assert game.position() == before
    game.play(game_action("keep 5-5"), [5, 5, 5, 5, 1])
    assert game.position()["dice"] == [1, 5, 5, 5, 5]


def game_action(text: str) -> int:
    from kismet_env.actions import actions_of

    return next(action for action in range(225) if actions_of("keeps").text(action) == text)


# The analysis


@pytest.mark.parametrize("rules", [None, "strict"])
def test_scores_are_start_and_luck_less_regret_and_forced_zeros(rules: Any) -> None:
    cards = [ARMED, {"DEUCES": 4, "FLUSH": 35}, {"SIXES": 24, "KISMET": 80}]
    if rules == "strict":
        cards = [{**card, "KISMET": 50} if "KISMET" in card else card for card in cards]
    optimum, zeros = solve(rules), 0
    for key in range(3):
        start = {"cards": cards, "player": 0, "dice": [4, 4, 4, 4, 4], "rolls_left": 0}
        game = played(["greedy", "random", "turn_greedy"], key, rules, start=start)
        judged, sums = analyse(game, optimum)
        assert [round(one.expected, 6) for one in sums] == game.totals
        zeros += sum(bool(one.move.forced_zeros) for one in judged)
        for one in judged:
            assert one.verdict.regret >= 0
            assert one.verdict.value == pytest.approx(one.outlook.value - one.verdict.regret)
        for seat, each in enumerate(sums):
            assert each.regret == pytest.approx(sum(j.verdict.regret for j in judged if j.move.player == seat))
    assert zeros


def test_perfect_play_has_no_regret_and_an_unfinished_game_sums_up_to_what_is_expected() -> None:
    optimum = solve()
    game = played(["optimal"])
    judged, (sums,) = analyse(game, optimum)
    assert sums.regret == 0
    assert sums.start == pytest.approx(optimum.expected_score)
    assert all(one.outlook.choices[0].text == one.move.text for one in judged)
    half = Game(["optimal"], key=7)
    for move in game.moves[:10]:
        half.play(move.action)
    judged, (sums,) = analyse(half, optimum)
    assert sums.expected == pytest.approx(judged[-1].verdict.value)
    analyst = Analyst(optimum, half.beginning)
    looks = analyst.look(0, half.moves[0].decision, total_of(half.beginning, 0, Rules()))
    assert looks == judged[0].outlook


def test_the_document_shows_a_record_that_replays() -> None:
    text = (Path(__file__).parent.parent / "docs" / "records.md").read_text()
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(Game.from_json(block).moves) > 2
