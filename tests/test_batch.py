"""The batch: rows do not know of each other, looking changes nothing, and a state can be kept and taken up again."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from chance import far_out
from reference_game import key_of, mix

from kismet_env.batch import MOST_ILLEGAL, Batch, Step
from kismet_env.engine import State
from kismet_env.observation import decode

OBSERVATIONS = ("features", "raw", "dict")


def same(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def legal_actions(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a legal action for each row: boxes half of the time, where one may be filled."""
    prefer = masks * (rng.random(masks.shape) + (np.arange(masks.shape[1]) >= masks.shape[1] - 15) * 0.5)
    return np.asarray(prefer.argmax(1))


def play_on(batch: Batch, steps: int, seed: int = 0) -> list[Step]:
    """Play legal actions and return the steps."""
    rng = np.random.default_rng(seed)
    outs = [batch.look()]
    for _ in range(steps):
        outs.append(batch.step(legal_actions(outs[-1].masks, rng)))
    return outs[1:]


def dealt(num_games: int = 4, num_players: int = 1, **options: Any) -> Batch:
    batch = Batch(num_games, num_players, **options)
    batch.seed(range(num_games))
    batch.deal()
    return batch


# Rows


@pytest.mark.parametrize("num_players", [1, 3])
def test_a_row_plays_as_it_would_alone(num_players: int) -> None:
    options: dict[str, Any] = {"autoreset": "NextStep", "start": "uniform", "observation": "raw"}
    batch = dealt(5, num_players, **options)
    for row in range(5):
        one, together = Batch(1, num_players, **options), copy.deepcopy(batch)
        one.seed([row])
        out, outs = one.deal(), together.look()
        rng = np.random.default_rng(row)
        for _ in range(200):
            actions = legal_actions(outs.masks, rng)
            assert same(out, tuple(field[row : row + 1] for field in outs))
            out, outs = one.step(actions[row : row + 1]), together.step(actions)


def test_stepping_some_rows_leaves_the_others_alone() -> None:
    whole, part = dealt(6, 2), dealt(6, 2)
    only = np.array([4, 1, 2])
    actions = legal_actions(whole.look().masks, np.random.default_rng(1))
    before, outs, out = part.save(), whole.step(actions), part.step(actions[only], only)
    assert same(out, tuple(field[only] for field in outs))
    for now, then, stepped in zip(part.state, before, whole.state, strict=True):
        assert np.array_equal(now[only], stepped[only])
        assert np.array_equal(now[[0, 3, 5]], then[[0, 3, 5]])
    assert same(part.look(only), tuple(field[only] for field in part.look()))
    with pytest.raises(ValueError, match=r"game 4: action 225 is not one of 0..224"):
        part.step([225, 0, 0], only)


def test_dealing_some_rows_leaves_the_others_alone() -> None:
    batch = dealt(4)
    play_on(batch, 9)
    before = batch.save()
    batch.deal(np.array([False, True, False, True]))
    changed = [not np.array_equal(batch.state.games[row], before.games[row]) for row in range(4)]
    assert changed == [False, True, False, True]
    before = batch.save()
    batch.deal_positions([{"cards": [{"ACES": 3}]}] * 4, np.array([True, False, False, False]))
    assert batch.position(0)["cards"] == [{"ACES": 3}]
    for now, then in zip(batch.state, before, strict=True):
        assert np.array_equal(now[1:], then[1:])


def test_games_of_a_row_have_the_keys_of_its_seeding() -> None:
    batch = Batch(3)
    batch.seed([7, 2**70, 7])
    for episode in range(3):
        batch.deal()
        keys = batch.state.games["key"].tolist()
        assert keys == [key_of(7, episode), key_of(2**70, episode), key_of(7, episode)]
    batch.seed([1, 2, 3], np.array([False, True, False]))
    batch.deal()
    assert batch.state.games["key"].tolist() == [key_of(7, 3), key_of(2, 0), key_of(7, 3)]


def test_deal_keys_begins_the_games_of_the_keys() -> None:
    batch, seeded = Batch(3, 2, start="uniform"), dealt(3, 2, start="uniform")
    batch.deal_keys(np.array([key_of(row) for row in range(3)], np.uint64))
    assert np.array_equal(batch.state.cards, seeded.state.cards)
    assert np.array_equal(batch.state.games["roll"], seeded.state.games["roll"])


@pytest.mark.parametrize(
    "position", [None, {"cards": [{"ACES": 3}, {}], "dice": [1, 2, 2, 4, 6]}], ids=["deal", "position"]
)
def test_a_new_game_remembers_nothing_of_the_old_one(position: dict[str, Any] | None) -> None:
    batch, fresh = Batch(3, 2), Batch(3, 2)
    for array in batch.state:
        array.view(np.uint8)[...] = 1
    for each in (batch, fresh):
        each.seed(range(3))
        if position is None:
            each.deal()
        else:
            each.deal_positions([position] * 3)
    for array, as_new in zip(batch.state, fresh.state, strict=True):
        for name in array.dtype.names or ():
            assert np.array_equal(array[name], as_new[name]), name


def test_nothing_can_be_played_before_a_deal() -> None:
    batch = Batch(2)
    assert batch.state.games["over"].all()
    out = batch.step([0, 0])
    assert not out.rewards.any()
    assert batch.state.games["over"].all()
    assert (out.masks == 1).all()


# Looking


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_looking_changes_nothing_and_shows_the_same(observation: str) -> None:
    batch = dealt(4, 3, observation=observation)
    last = play_on(batch, 20)[-1]
    before = batch.save()
    look = batch.look()
    for name in ("observations", "masks", "scorecards", "totals"):
        assert np.array_equal(getattr(look, name), getattr(last, name)), name
    assert not look.rewards.any()
    batch.position(2)
    batch.choice_shares()
    batch.decisions()
    assert same(batch.state, before)


def test_who_waits_sees_his_own_card_and_a_mask_of_zeros() -> None:
    batch = dealt(6, 3)
    play_on(batch, 25)
    mover = batch.state.games["player"].copy()
    for seat in range(3):
        out = batch.look(seats=np.full(6, seat))
        assert np.array_equal(out.scorecards, batch.state.cards["points"][:, seat])
        assert np.array_equal(out.totals, batch.state.cards["total"][:, seat])
        assert np.array_equal(decode(out.observations).filled, batch.state.cards["filled"][:, seat])
        assert np.array_equal(out.masks.any(1), mover == seat)
        assert np.array_equal(out.masks[mover == seat], batch.look().masks[mover == seat])


def test_decisions_are_what_the_observations_show() -> None:
    batch = dealt(40, 2, start="uniform", rules={"second_kismet": "filled"})
    play_on(batch, 4)
    live = np.flatnonzero(~batch.state.games["over"])
    for ours, shown in zip(batch.decisions(live), decode(batch.look(live).observations), strict=True):
        assert np.array_equal(ours, shown)


def test_every_array_is_new() -> None:
    batch = dealt(4, autoreset="SameStep", start="open:1")
    outs = [batch.look(), *play_on(batch, 6)]
    for one, other in pairwise(outs):
        for name, array in one._asdict().items():
            assert not any(np.shares_memory(array, later) for later in other), name
    frozen = copy.deepcopy(outs)
    play_on(batch, 6)
    for one, before in zip(outs, frozen, strict=True):
        assert same(one, before)


# The end of games


def fill_rows(batch: Batch) -> np.ndarray:
    """Return actions that fill the last legal box of each row after using up the rolls."""
    while batch.state.games["rolls_left"].any():
        batch.step(np.where(batch.state.games["rolls_left"] > 0, 0, batch.look().masks.argmax(1)))
    return np.asarray(224 - batch.look().masks[:, ::-1].argmax(1))


def nothing_happened(out: Step) -> bool:
    return not any(flags.any() for flags in (out.rewards, out.terminated, out.truncated, out.illegal))


def test_games_that_are_over_ignore_their_action_under_disabled() -> None:
    batch = dealt(2, start="open:1")
    batch.step(fill_rows(batch))
    assert batch.state.games["over"].all()
    before = batch.save()
    out = batch.step([0, 999])
    assert same(batch.state, before)
    assert (out.masks == 1).all()
    assert nothing_happened(out)


def test_next_step_begins_a_game_in_the_step_after_the_end() -> None:
    batch = dealt(3, start="open:1", autoreset="NextStep")
    ended = batch.step(fill_rows(batch))
    assert ended.terminated.all()
    assert (ended.scorecards >= 0).all()
    assert (ended.masks == 1).all()
    begun = batch.step([0, 224, 10**6])  # ignored, whatever they are
    assert nothing_happened(begun)
    assert batch.state.games["key"].tolist() == [key_of(row, 1) for row in range(3)]
    expected = Batch(3, start="open:1")
    expected.deal_keys(batch.state.games["key"])
    assert same(begun, expected.look())


def test_same_step_shows_the_new_game_and_keeps_how_the_old_one_ended() -> None:
    batch, other = dealt(3, start="open:1", autoreset="SameStep"), dealt(3, start="open:1")
    actions = fill_rows(batch)
    fill_rows(other)
    begun, ended = batch.step(actions), other.step(actions)
    assert np.array_equal(begun.rewards, ended.rewards)
    assert begun.terminated.all()
    assert np.array_equal(batch.final.observations, ended.observations)
    assert np.array_equal(batch.final.scorecards, ended.scorecards)
    assert np.array_equal(batch.final.totals, ended.totals)
    assert batch.state.games["key"].tolist() == [key_of(row, 1) for row in range(3)]
    assert (begun.scorecards < 0).sum() == 3


@pytest.mark.parametrize("num_players", [1, 3])
def test_the_hundredth_illegal_action_truncates(num_players: int) -> None:
    batch = dealt(1, num_players)
    legal = batch.look().masks[0]
    for number in range(1, MOST_ILLEGAL + 1):
        if number == 40:  # illegal actions need not follow each other
            legal = batch.step([int(np.flatnonzero(legal)[0])]).masks[0]
        out = batch.step([int(np.flatnonzero(legal == 0)[0])])
        assert out.illegal[0]
        assert out.rewards[0].tolist() == [-1.0] + [0.0] * (num_players - 1)
        assert out.truncated[0] == (number == 100), f"illegal action {number}"
        assert not out.terminated[0]
    assert batch.state.games["over"][0]
    assert batch.deal().masks.sum() < 225
    assert batch.state.games["illegal"][0] == 0


# Keeping a state


def save_and_restore(batch: Batch) -> Batch:
    again = Batch(batch.num_games, batch.num_players)
    again.restore(batch.save())
    return again


COPIES: dict[str, Callable[[Batch], Batch]] = {
    "pickle": lambda batch: pickle.loads(pickle.dumps(batch)),
    "deepcopy": copy.deepcopy,
    "save and restore": save_and_restore,
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_goes_on_as_the_original_does(how: str) -> None:
    batch = dealt(5, 2)
    play_on(batch, 17)
    again = COPIES[how](batch)
    assert not any(np.shares_memory(mine, theirs) for mine, theirs in zip(batch.state, again.state, strict=True))
    for mine, theirs in zip(play_on(batch, 90), play_on(again, 90), strict=True):
        assert same(mine, theirs)
    batch.deal()
    again.deal()
    assert same(batch.state, again.state), "the next games differ"


def test_a_saved_state_stays_as_it_was() -> None:
    batch = dealt(3)
    saved = batch.save()
    first = play_on(batch, 30)
    batch.restore(saved)
    second = play_on(batch, 30)
    assert all(same(one, other) for one, other in zip(first, second, strict=True))


def test_with_a_key_the_dice_to_come_do_not_depend_on_the_hidden_ones() -> None:
    """Two games that look alike go on alike under one key, and otherwise under another."""
    position = {"cards": [{"ACES": 3}], "dice": [1, 2, 2, 4, 6], "rolls_left": 2}
    hidden = [Batch(2) for _ in range(2)]
    for number, batch in enumerate(hidden):
        batch.seed([number, number + 50])
        batch.deal_positions([position] * 2)
    assert not np.array_equal(hidden[0].state.games["key"], hidden[1].state.games["key"])
    planner = Batch(2)
    lines = []
    for batch, key in [(hidden[0], 5), (hidden[1], 5), (hidden[0], 6), (hidden[0], 2**80)]:
        planner.restore(batch.save(), key)
        assert planner.position(0)["dice"] == position["dice"], "the dice on the table stay"
        keys = planner.state.games["key"].tolist()
        assert keys != batch.state.games["key"].tolist()
        assert keys[0] != keys[1], "rows of one key have dice of their own"
        lines.append([step.observations for step in play_on(planner, 20)])
    assert np.array_equal(lines[0], lines[1])
    assert not np.array_equal(lines[0], lines[2])
    assert not np.array_equal(lines[0], lines[3])


def test_with_a_key_the_games_to_come_are_new_too() -> None:
    """Else a planner that plays on beyond the end would see the next games."""
    planner, real = Batch(2, autoreset="SameStep"), [dealt(2), dealt(2)]
    real[1].seed([70, 71])
    real[1].deal()
    games = []
    for batch in real:
        planner.restore(batch.save(), 5)
        planner.deal()
        batch.deal()
        assert not np.array_equal(planner.state.games["key"], batch.state.games["key"])
        games.append(planner.state.games["key"].tolist())
    assert games[0] == games[1]


def test_a_key_that_is_none_is_refused_and_changes_nothing() -> None:
    batch, saved = dealt(2), dealt(2).save()
    play_on(batch, 5)
    before = batch.save()
    with pytest.raises(ValueError, match="-1 is negative"):
        batch.restore(saved, -1)
    assert same(batch.state, before)


def test_a_state_of_another_shape_is_refused_and_changes_nothing() -> None:
    batch = dealt(3, 2)
    before = batch.save()
    others = (dealt(4, 2).save(), dealt(3, 1).save(), State(before.games, before.cards[:, :1]), (*before, before[0]))
    for saved in others:
        with pytest.raises(ValueError, match="do not fit"):
            batch.restore(saved)
        assert same(batch.state, before)


# Chance of players and seats


def test_choice_shares_are_a_function_of_key_seat_and_place() -> None:
    batch = dealt(4, 2)
    for _ in range(30):
        expected = []
        for row in range(4):
            game, position = batch.state.games[row], batch.position(row)
            filled = len(position["cards"][position["player"]])
            place = position["player"] * 2**16 + filled * 2**8 + position["rolls_left"]
            expected.append((mix(mix(int(game["key"]), int.from_bytes(b"choice", "big")), place) >> 11) / 2**53)
        assert batch.choice_shares().tolist() == expected
        assert batch.choice_shares(np.array([2, 0])).tolist() == [expected[2], expected[0]]
        play_on(batch, 1)


def test_choice_shares_are_uniform_and_do_not_follow_the_dice() -> None:
    batch = dealt(20_000)
    shares, rolls = batch.choice_shares(), batch.state.games["roll"]
    cells = (shares * 10).astype(int)
    assert far_out(np.bincount(cells, minlength=10), np.full(10, 0.1)) < 5
    assert abs(np.corrcoef(shares, rolls)[0, 1]) < 0.03


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_a_random_first_player_is_uniform_and_plays_his_own_dice(num_players: int) -> None:
    batch, seat0 = dealt(6000, num_players, first_player="random"), dealt(6000, num_players)
    first = batch.state.games["player"]
    assert far_out(np.bincount(first, minlength=num_players), np.full(num_players, 1 / num_players)) < 5
    assert not seat0.state.games["player"].any()
    assert np.array_equal(batch.state.games["roll"][first == 0], seat0.state.games["roll"][first == 0])
    again = dealt(6000, num_players, first_player="random")
    assert np.array_equal(again.state.games, batch.state.games)


# Arguments


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"num_games": n}, f"num_games={n!r} is not a whole number of at least 1") for n in (0, -1, 2.5, "3", True)),
        *(({"num_players": n}, f"num_players={n!r} is not a whole number from 1 to 6") for n in (0, 7, 2.0, "2", None)),
        ({"rules": {"joker": "none"}}, "joker='none' is not one of full, natural, always"),
        ({"actions": "bits"}, "actions='bits' is not one of keeps, holds"),
        ({"observation": "pixels"}, "observation='pixels' is not one of features, raw, dict"),
        ({"reward": "money"}, "reward='money' is not one of points, final, win"),
        ({"reward": "win"}, "reward='win' needs opponents"),
        ({"illegal_action": "ignore"}, "illegal_action='ignore' is not one of penalty, terminate, raise"),
        ({"start": "open:0"}, "start='open:0' is not one of full, uniform, open:k"),
        ({"first_player": "seat1"}, "first_player='seat1' is not one of seat0, random"),
        ({"autoreset": "Never"}, "Never' is not one of Disabled, NextStep, SameStep"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(**{"num_games": 1, **wrong})


@pytest.mark.parametrize(
    "actions", [[0], [0, 0, 0], [[0, 0]], [0.0, 1.0], [True, False], ["0", "1"], 0, None, [0, 2**70]], ids=str
)
def test_what_are_no_actions_for_the_rows_is_refused(actions: Any) -> None:
    batch = dealt(2)
    before = batch.save()
    with pytest.raises(ValueError, match="are not 2 whole numbers"):
        batch.step(actions)
    assert same(batch.state, before)


@pytest.mark.parametrize("rows", [[True], [True] * 3, [1, 0], [[True, False]], np.ones(5, bool)], ids=str)
def test_what_is_no_choice_of_rows_is_refused(rows: Any) -> None:
    """Compiled code would write beyond the games."""
    batch = dealt(2)
    chosen = np.array(rows)
    for begin in (
        batch.deal,
        lambda rows: batch.seed([1, 2], rows),
        lambda rows: batch.deal_positions([{"cards": [{}]}] * 2, rows),
    ):
        with pytest.raises(ValueError, match="are not 2 bools"):
            begin(chosen)


@pytest.mark.parametrize("keys", [[1], [1, 2, 3], [1.0, 2.0], [1, 2], [[1, 2]]], ids=str)
def test_what_are_no_keys_is_refused(keys: Any) -> None:
    with pytest.raises(ValueError, match="are not 2 uint64"):
        dealt(2).deal_keys(np.array(keys))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_actions_of_every_whole_number_type_are_taken(dtype: type) -> None:
    assert not dealt(2).step(np.zeros(2, dtype)).illegal.any()


def test_what_raises_within_leaves_the_games_as_they_were() -> None:
    batch = dealt(3, 2)
    before = batch.save()

    def interrupted() -> None:
        with batch.undone_on_error():
            batch.seed([7, 8, 9])
            batch.deal()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert same(batch.state, before)


def test_a_negative_seed_is_refused_and_changes_nothing() -> None:
    batch = dealt(2)
    before = batch.save()
    with pytest.raises(ValueError, match="seed -1 is negative"):
        batch.seed([3, -1])
    assert same(batch.state, before)


def test_rows_and_seats_that_do_not_exist_are_refused() -> None:
    batch = Batch(3, 2)
    batch.seed(range(3))
    batch.deal()
    before = batch.save()
    for only in (np.array([3]), np.array([-1]), np.array([[0]])):
        with pytest.raises(ValueError, match="rows from 0 to 2"):
            batch.step(np.zeros(len(only), np.int64), only=only)
        with pytest.raises(ValueError, match="rows from 0 to 2"):
            batch.look(only=only)
        with pytest.raises(ValueError, match="rows from 0 to 2"):
            batch.choice_shares(only=only)
    for seats in (np.array([0, 1, 2]), np.array([0, -1, 0]), np.array([0])):
        with pytest.raises(ValueError, match="one from 0 to 1 for each of 3 rows"):
            batch.look(seats=seats)
    assert all(np.array_equal(mine, old) for mine, old in zip(batch.state, before, strict=True))
