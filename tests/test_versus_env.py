"""Games against players: single and batch alike, equal to the game at the table, news, pay, ends, replacements."""

import copy
import pickle
import re
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hunter import Hunter
from test_parity import actions_for, check_same

from kismet_env import Box, Rules
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import PLAYERS, Player, make
from kismet_env.env import KismetEnv
from kismet_env.match import Match
from kismet_env.observation import layout_of
from kismet_env.versus_env import KismetVersusEnv, KismetVersusVectorEnv
from kismet_env.wrappers import RegretInfo, VectorRegretInfo

ID = "kismet_env/KismetVersus-v0"
MODES = ("NextStep", "SameStep", "Disabled")
FILL = actions_of("keeps").box_action
FIVE_ALIKE = [4] * 5
OPTIONS: list[dict[str, Any]] = [
    {"opponents": ("greedy",)},
    {"opponents": ("random",), "seat": 1, "reward": "points", "start": "open:2"},
    {"opponents": ("random", Hunter()), "seat": "random", "observation": "dict", "start": "open:3"},
    {"opponents": ("greedy", "random", "greedy"), "seat": 2, "reward": "final", "actions": "holds"},
    {"opponents": [Hunter()] * 5, "seat": "random", "observation": "raw", "rules": {"second_kismet": "rolled"}},
    {"opponents": (Hunter(),), "seat": "random", "illegal_action": "penalty", "start": "uniform"},
]


class Filler:
    """Fills the lowest legal box in the order of his wishes, and rolls nothing while a box is legal."""

    def __init__(self, *boxes: Box) -> None:
        self.wishes = [FILL(box) for box in boxes] + list(range(FILL(Box.KISMET), -1, -1))

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        return np.array([next(action for action in self.wishes if mask[action]) for mask in masks])


class Failing(Hunter):
    """A hunter whose next call but `after` does not end well, once."""

    after = -1
    failure: BaseException | None = None  # None: he answers with an illegal action

    def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
        self.after -= 1
        if self.after != -1:
            return super().act(observations, masks, u)
        if self.failure is None:
            return np.full(len(masks), FILL(Box.KISMET))
        raise self.failure


def some_action(masks: np.ndarray, rng: np.random.Generator) -> Any:
    """Return legal actions, boxes more often than not."""
    return actions_for(np.atleast_2d(masks), rng, may_be_illegal=False)


def fill_if_legal(masks: np.ndarray) -> Any:
    """Return the last legal action of every row: one that fills a box, if any does."""
    return masks.shape[-1] - 1 - masks[..., ::-1].argmax(-1)


def second_kismet(num_players: int, victim: dict[str, int] | None = None, **roller: int) -> dict[str, Any]:
    """Return a position in which the last seat has dice for a second Kismet, and seat 0 is its victim."""
    card = {"KISMET": 65, **roller}
    others = {box.name: 0 for box in Box if box not in (Box.YARBOROUGH, Box.KISMET)}
    victim = {"STRAIGHT": 30, "FLUSH": 35} if victim is None else victim
    cards = [dict(list(others.items())[: len(victim)]) for _ in range(num_players)]
    cards[0], cards[-1] = victim, dict(list(card.items())[: len(victim) - 1])
    return {"cards": cards, "player": num_players - 1, "dice": FIVE_ALIKE, "rolls_left": 0}


# What it is


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_gymnasium_has_nothing_to_say(options: dict[str, Any]) -> None:
    check_env(KismetVersusEnv(**options), skip_render_check=True)


def test_ids_and_spaces() -> None:
    env = gym.make(ID)
    assert isinstance(env.unwrapped, KismetVersusEnv)
    assert env.observation_space == gym.spaces.Box(0, 1, (98,), np.float32)
    assert env.action_space == gym.spaces.Discrete(225)
    batch = gym.make_vec(ID, num_envs=3, opponents=("greedy", "random"), autoreset_mode="SameStep")
    assert isinstance(batch, KismetVersusVectorEnv)
    assert batch.single_observation_space == gym.spaces.Box(0, 1, (116,), np.float32)
    assert batch.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert (KismetVersusEnv.__doc__ or "").count("`opponent_1_armed`") == 1


def test_a_spec_goes_through_json() -> None:
    env = gym.make(ID, opponents=["greedy", "random"], seat="random", reward="points", rules={"joker": "natural"})
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    rng = np.random.default_rng(0)
    one, other = env.reset(seed=3), again.reset(seed=3)
    for _ in range(20):
        check_same(dict(enumerate(one)), dict(enumerate(other)), "games")
        action = int(some_action(one[-1]["action_mask"], rng)[0])
        one, other = env.step(action), again.step(action)
        if one[2]:
            break


def test_only_the_solitaire_game_has_regret() -> None:
    with pytest.raises(ValueError, match="solitaire"):
        RegretInfo(gym.make(ID))
    with pytest.raises(ValueError, match="Kismet-v0"):
        VectorRegretInfo(gym.make_vec(ID, num_envs=2))


# One game in all forms


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("mode", MODES)
def test_batch_rows_equal_single_environments(mode: str, options: dict[str, Any]) -> None:
    """Observations, masks, rewards, ends and infos over several episodes, automatic resets included."""
    native = gym.make_vec(ID, num_envs=3, autoreset_mode=mode, **options)
    vector_kwargs = {"autoreset_mode": AutoresetMode(mode)}
    sync = gym.make_vec(ID, num_envs=3, vectorization_mode="sync", vector_kwargs=vector_kwargs, **options)
    rng = np.random.default_rng(OPTIONS.index(options))
    ours, theirs = native.reset(seed=11), sync.reset(seed=11)
    check_same(dict(enumerate(ours)), dict(enumerate(theirs)), "reset")
    episodes = 0
    for number in range(80 if "start" in options else 150):
        chosen = actions_for(ours[-1]["action_mask"], rng, may_be_illegal=number % 10 == 0)
        ours, theirs = native.step(chosen), sync.step(chosen)
        check_same(dict(enumerate(ours)), dict(enumerate(theirs)), f"step {number}")
        ended = ours[2] | ours[3]
        episodes += int(ended.sum())
        if mode == "Disabled" and ended.any():
            ours = native.reset(options={"reset_mask": ended.copy()})
            theirs = sync.reset(options={"reset_mask": ended.copy()})
            check_same(ours[0], theirs[0], f"reset after step {number}, observation")
            for name in theirs[1]:  # Sync tells of the rows that were reset alone
                check_same(ours[1][name][ended], theirs[1][name][ended], f"reset after step {number}, {name}")
    assert episodes >= 6


def at_the_table(num_players: int, seat: int, players: list[Player], seed: int, reward: str) -> Any:
    """Play a game in which all sit at one table: yield what the learner in `seat` sees and is paid, take actions."""
    batch = Batch(1, num_players, reward=reward, illegal_action="terminate")
    batch.seed([seed])
    seen, paid, over = batch.deal(), 0.0, False
    while not over:
        turn = int(batch.state.games["player"][0])
        if turn == seat:
            action = yield seen, paid, False
            paid, actions = 0.0, np.array([action])
        else:
            player = players[(turn - seat) % num_players - 1]
            actions = player.act(seen.observations, seen.masks, batch.choice_shares())
        seen = batch.step(actions)
        paid += seen.rewards[0, seat]
        over = bool(seen.terminated[0])
    yield batch.look(seats=np.array([seat])), paid, True


@pytest.mark.parametrize(("num_players", "reward"), list(product(range(2, 7), ("win", "points", "final"))))
def test_it_is_the_game_at_the_table(num_players: int, reward: str) -> None:
    """The same dice and players, one by one around a table: same sights, pay and end."""
    opponents: list[Any] = [Hunter(), "random", "greedy", Hunter(), "random"][: num_players - 1]
    players = [make(one) if isinstance(one, str) else one for one in opponents]
    rng = np.random.default_rng(num_players)
    for seat in range(num_players):
        env = gym.make(ID, opponents=opponents, seat=seat, reward=reward)
        observation, info = env.reset(seed=seat)
        table = at_the_table(num_players, seat, players, seat, reward)
        seen, owed, over = next(table)
        terminated, received = False, 0.0
        while not over:
            np.testing.assert_array_equal(observation, seen.observations[0])
            np.testing.assert_array_equal(info["action_mask"], seen.masks[0])
            assert info["seat"] == seat
            action = int(some_action(info["action_mask"], rng)[0])
            observation, received, terminated, truncated, info = env.step(action)
            before, (seen, paid, over) = owed, table.send(action)
            assert received == pytest.approx(before + paid)
            assert (terminated, truncated) == (over, False)
            owed = 0.0
        np.testing.assert_array_equal(observation, seen.observations[0])
        np.testing.assert_array_equal(info["scorecard"], seen.scorecards[0])


@pytest.mark.parametrize("reward", ["win", "points", "final"])
@pytest.mark.parametrize("seat", [0, 1, 2, "random"])
def test_returns_are_what_the_final_cards_are_worth(seat: int | str, reward: str) -> None:
    env = gym.make_vec(
        ID, num_envs=40, opponents=("greedy", Hunter()), seat=seat, reward=reward, autoreset_mode="Disabled"
    )
    _, infos = env.reset(seed=5)
    rng, returns, going_on = np.random.default_rng(0), np.zeros(40), np.ones(40, bool)
    batch = env.unwrapped.batch
    while going_on.any():
        actions = some_action(infos["action_mask"], rng)
        seen = batch.step(actions)  # games that are over ignore theirs
        returns += seen.rewards[:, 0]
        going_on = ~batch.over
        infos = {"action_mask": seen.masks}
    totals = batch.state.cards["total"]
    own = totals[np.arange(40), batch.news().seat]
    assert (batch.state.cards["filled"] == 2**15 - 1).all()
    if reward == "win":
        winners = (totals == totals.max(1, keepdims=True)).sum(1)
        own = np.where(own == totals.max(1), (3 - winners) / winners / 2, -0.5)
    np.testing.assert_allclose(returns, own)


@pytest.mark.parametrize("actions", ["keeps", "holds"])
@pytest.mark.parametrize("observation", ["features", "raw", "dict"])
def test_opponents_see_features_and_keeps_whatever_the_learner_sees(observation: str, actions: str) -> None:
    hunter = Hunter()
    env = KismetVersusEnv(("random", hunter), observation=observation, actions=actions, reward="points", seat=1)
    _, info = env.reset(seed=1)
    terminated = False
    while not terminated:
        _, _, terminated, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    assert set(hunter.calls) == {(1, layout_of(Rules(), 3).size, 225)}
    plain = KismetVersusEnv(("random", Hunter()), reward="points", seat=1)
    _, expected = plain.reset(seed=1)
    terminated = False
    while not terminated:
        _, _, terminated, _, expected = plain.step(int(np.flatnonzero(expected["action_mask"])[-1]))
    np.testing.assert_array_equal(info["opponent_totals"], expected["opponent_totals"])
    assert info["total"] == expected["total"]


@pytest.mark.parametrize("name", ["random", "greedy", "turn_greedy", "rule_based"])
def test_solitaire_players_read_the_first_block_wherever_they_sit(name: str) -> None:
    assert name in PLAYERS
    player, match = make(name), Match(60, ("greedy", Hunter(), "random"), seat="random", start="uniform")
    match.seed(range(60))
    seen, first_block = match.deal(), layout_of(Rules()).size
    for _ in range(12):
        u = match.choice_shares()
        actions = player.act(seen.observations, seen.masks, u)
        alone = player.act(seen.observations[:, :first_block], seen.masks, u)
        np.testing.assert_array_equal(actions, alone)
        seen = match.step(np.where(match.over, 0, actions))


# What happens between two decisions


def test_a_forced_zero_and_a_lost_turn_are_told() -> None:
    env = KismetVersusEnv((Filler(Box.FOUR_OF_A_KIND),), reward="points")
    _, info = env.reset(seed=0, options={"position": second_kismet(2)})
    assert np.flatnonzero(info["forced_zeros"]).tolist() == [Box.ACES]
    assert info["turns_lost"] == 1
    assert info["scorecard"][Box.ACES] == 0
    assert info["opponent_totals"][0] >= 65 + 45
    roll = int(np.flatnonzero(info["action_mask"])[0])
    _, _, _, _, info = env.step(roll)
    assert not info["forced_zeros"].any()
    assert info["turns_lost"] == 0


@pytest.mark.parametrize("num_players", [2, 4])
def test_news_are_the_changes_of_the_card_that_are_not_ones_own(num_players: int) -> None:
    """Also several zeros between two decisions."""
    match = Match(300, [Hunter()] * (num_players - 1), seat="random", rules={"second_kismet": "rolled"})
    match.seed(range(300))
    seen, rng = match.deal(), np.random.default_rng(0)
    most = 0
    while not match.over.all():
        going_on = ~match.over
        actions = some_action(seen.masks, rng)
        expected = seen.scorecards >= 0
        fills = np.flatnonzero(going_on & (actions >= 210))
        expected[fills, actions[fills] - 210] = True
        seen = match.step(actions)
        zeros = (seen.scorecards >= 0) & ~expected & going_on[:, None]
        news = match.news()
        np.testing.assert_array_equal(news.forced_zeros[going_on], zeros[going_on])
        np.testing.assert_array_equal(news.turns_lost[going_on], zeros.sum(1)[going_on])
        assert not seen.scorecards[zeros].any()
        most = max(most, int(zeros.sum(1).max()))
    assert most >= 2


def test_a_bonus_completed_by_a_forced_zero_comes_with_the_next_step() -> None:
    victim = {"DEUCES": 8, "TREYS": 12, "FOURS": 16, "FIVES": 20, "SIXES": 24}
    position = second_kismet(2, victim, ACES=3, DEUCES=6, FLUSH=35)
    env = KismetVersusEnv((Filler(Box.FOUR_OF_A_KIND),), reward="points")
    _, info = env.reset(seed=0, options={"position": position})
    assert info["total"] == 80 + 75
    _, reward, *_ = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert reward == 75


def test_what_is_owed_in_a_game_that_is_broken_off_is_never_paid() -> None:
    victim = {"DEUCES": 8, "TREYS": 12, "FOURS": 16, "FIVES": 20, "SIXES": 24}
    position = second_kismet(2, victim, ACES=3, DEUCES=6, FLUSH=35)
    env = KismetVersusEnv((Filler(Box.FOUR_OF_A_KIND),), reward="points")
    env.reset(seed=0, options={"position": position})
    _, info = env.reset()
    _, reward, *_ = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert reward == 0


def test_opponents_play_to_the_end_after_the_learners_last_decision() -> None:
    cards = [{box.name: 0 for box in Box if box not in (Box.YARBOROUGH, Box.KISMET)} for _ in range(3)]
    cards[0]["KISMET"] = 0
    cards[1]["YARBOROUGH"] = 30
    cards[2]["YARBOROUGH"] = 20
    position = {"cards": cards, "player": 0, "dice": [1, 2, 3, 4, 6], "rolls_left": 0}
    env = KismetVersusEnv((Filler(), Filler()), seat=0)
    _, info = env.reset(seed=1, options={"position": position})
    assert info["opponent_totals"].tolist() == [30, 20]
    _, reward, terminated, truncated, info = env.step(FILL(Box.YARBOROUGH))
    assert (terminated, truncated) == (True, False)
    assert info["total"] == 16
    assert reward == -0.5
    assert info["opponent_totals"][0] >= 30


@pytest.mark.parametrize("mode", ["single", *MODES])
def test_a_game_over_before_the_first_decision_ends_with_the_first_step(mode: str) -> None:
    """The learner has one open box, a second Kismet fills it: nothing to decide, but something to be paid."""
    zeros = {box.name: 0 for box in Box if box not in (Box.YARBOROUGH, Box.KISMET)}
    cards = [{**zeros, "YARBOROUGH": 30}, {**zeros, "KISMET": 65}]
    position = {"cards": cards, "player": 1, "dice": FIVE_ALIKE, "rolls_left": 0}
    if mode == "single":
        env = KismetVersusEnv((Filler(),))
        _, info = env.reset(seed=0, options={"position": position})
        assert info["action_mask"].all()
        assert info["forced_zeros"].nonzero()[0].tolist() == [Box.KISMET]
        for unknown in (-1, 225, 10**6):
            with pytest.raises(ValueError, match=f"action {unknown} is not one of 0..224"):
                env.step(unknown)
        _, reward, terminated, truncated, info = env.step(0)
        assert (reward, terminated, truncated, info["illegal_action"]) == (-1.0, True, False, False)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(0)
        return
    batch = KismetVersusVectorEnv(2, (Filler(),), autoreset_mode=mode)
    batch.reset(seed=0, options={"position": position})
    with pytest.raises(ValueError, match=r"game 1: action 225 is not one of 0\.\.224"):
        batch.step(np.array([0, 225]))
    _, rewards, terminated, _, infos = batch.step(np.array([0, 224]))
    assert rewards.tolist() == [-1, -1]
    assert terminated.all()
    told = infos["final_info"] if mode == "SameStep" else infos
    assert (told["scorecard"] >= 0).all()
    if mode == "NextStep":
        _, rewards, terminated, _, infos = batch.step(np.array([0, 0]))
        assert not terminated.any()
        assert (infos["scorecard"] == -1).all()


# Seats


def test_a_random_seat_is_uniform_and_belongs_to_the_game() -> None:
    match = Match(3000, ("greedy", "greedy"), seat="random")
    match.seed(range(3000))
    match.deal()
    seats = match.news().seat
    counts = np.bincount(seats, minlength=3)
    assert (np.abs(counts - 1000) < 100).all()
    match.deal()
    assert (match.news().seat != seats).any()
    match.seed(range(3000))
    match.deal()
    np.testing.assert_array_equal(match.news().seat, seats)


@pytest.mark.parametrize("seat", range(4))
def test_opponents_sit_in_playing_order_from_the_learners_left(seat: int) -> None:
    class Noted:
        def __init__(self) -> None:
            self.totals: set[float] = set()

        def act(self, observations: Any, masks: Any, u: Any = None) -> Any:
            self.totals |= set(np.rint(observations[:, layout_of(Rules(), 4).slices["total"].start] * 565).tolist())
            return Filler().act(observations, masks)

    players = [Noted(), Noted(), Noted()]
    cards = [{"FOUR_OF_A_KIND": 40 + number} for number in range(4)]
    position = {"cards": cards, "player": 0}
    env = KismetVersusEnv(players, seat=seat)
    _, info = env.reset(seed=0, options={"position": position})
    while info["scorecard"].min() < 0 and not all(player.totals for player in players):
        _, _, _, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    firsts = [min(player.totals) for player in players]
    assert firsts == [float(40 + (seat + on) % 4) for on in (1, 2, 3)]


# Many games, few calls


def test_players_answer_for_all_rows_at_once() -> None:
    """A player in several seats is asked once for all of them, whatever the number of games."""
    hunter, other = Hunter(), Hunter()
    match = Match(200, (hunter, other, hunter))
    match.seed(range(200))
    seen, rng, steps = match.deal(), np.random.default_rng(0), 0
    while not match.over.any():
        seen = match.step(some_action(seen.masks, rng))
        steps += 1
    # Three opponents have nine decisions one after the other, some more after second Kismets: for any number of games.
    assert max(len(hunter.calls), len(other.calls)) < 15 * steps
    assert sum(rows for rows, *_ in hunter.calls) > 1.8 * sum(rows for rows, *_ in other.calls)


# Replacements


def test_opponents_can_be_replaced_while_games_go_on() -> None:
    first, second = Hunter(), Hunter()
    env = KismetVersusVectorEnv(4, (first, "random"), seat=1)
    _, infos = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        _, _, _, _, infos = env.step(some_action(infos["action_mask"], rng))
    calls = len(first.calls)
    position = env.position(2)
    env.set_opponents((second, second))
    assert env.position(2) == position
    for _ in range(10):
        _, _, _, _, infos = env.step(some_action(infos["action_mask"], rng))
    assert len(first.calls) == calls
    assert second.calls
    for wrong, message in (
        (("greedy",), "opponents has 1 entries; valid are 2, as many as there are"),
        (("greedy", "greedier"), "player 'greedier' is unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            env.set_opponents(wrong)
    assert env.batch.opponents == (second, second)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_a_copy_in_mid_game_goes_on_in_the_same_way(options: dict[str, Any], how: Any) -> None:
    env, rng = KismetVersusEnv(**options), np.random.default_rng(1)
    _, info = env.reset(seed=2)
    if "start" not in options:
        for _ in range(7):
            _, _, _, _, info = env.step(int(some_action(info["action_mask"], rng)[0]))
    other = how(env)
    for _ in range(120):
        action = int(some_action(info["action_mask"], rng)[0])
        one, two = env.step(action), other.step(action)
        check_same(dict(enumerate(two)), dict(enumerate(one)), "after the copy")
        info = one[-1]
        if one[2] or one[3]:
            one, two = env.reset(), other.reset()
            check_same(dict(enumerate(two)), dict(enumerate(one)), "reset")
            info = one[-1]


def test_restore_goes_back_exactly_and_a_key_changes_the_dice_to_come() -> None:
    env, rng = KismetVersusEnv((Hunter(), "random"), seat="random", reward="points"), np.random.default_rng(1)
    _, info = env.reset(seed=2)
    for _ in range(9):
        _, _, _, _, info = env.step(int(some_action(info["action_mask"], rng)[0]))
    saved, told = env.save(), info

    def line() -> list[Any]:
        rng, info, seen = np.random.default_rng(5), told, []
        for _ in range(12):
            seen.append(env.step(int(some_action(info["action_mask"], rng)[0])))
            info = seen[-1][-1]
        return seen

    first = line()
    for key, same in ((None, True), (3, False), (None, True)):
        _, info = env.restore(saved, key)
        check_same(info, told, "restored")
        second = line()
        assert same == all(np.array_equal(one[0], other[0]) for one, other in zip(first, second, strict=True))


# What goes wrong


@pytest.mark.parametrize("failure", [RuntimeError("lost"), KeyboardInterrupt(), None], ids=["error", "stop", "illegal"])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("mode", ["single", *MODES])
def test_an_opponent_who_fails_leaves_the_games_as_they_were(mode: str, after: int, failure: Any) -> None:
    """In a step and in a reset, whether or not he has already played some of his turn; then play goes on as if not."""
    player, errors = Failing(), ValueError if failure is None else type(failure)

    def made(opponent: Any) -> Any:
        options: dict[str, Any] = {"opponents": ("random", opponent), "seat": 1, "reward": "points", "start": "open:3"}
        if mode == "single":
            return KismetVersusEnv(**options)
        return KismetVersusVectorEnv(3, **options, autoreset_mode=mode)

    def fails(call: Any) -> None:
        before = env.batch.save()
        player.after, player.failure = after, failure
        with pytest.raises(errors):
            call()
        assert player.after < 0
        for one, other in zip(env.batch.save(), before, strict=True):
            np.testing.assert_array_equal(one, other)

    env, twin = made(player), made(Hunter())
    fails(lambda: env.reset(seed=4))
    with pytest.raises((gym.error.ResetNeeded, ValueError), match=r"not begun|has begun"):
        env.step(0 if mode == "single" else np.zeros(3, int))
    one, other = env.reset(seed=4), twin.reset(seed=4)
    failures = 0
    for number in range(30):
        check_same(dict(enumerate(one)), dict(enumerate(other)), f"step {number}")
        if mode in ("single", "Disabled") and number and np.any(one[2]):
            break
        actions = fill_if_legal(one[-1]["action_mask"])
        passes = (actions >= FILL(Box.ACES)) & ((one[-1]["scorecard"] < 0).sum(-1) > 1)
        if np.any(passes) and failures < 2:
            failures += 1
            fails(lambda actions=actions: env.step(actions))
            fails(lambda: env.reset(seed=5))
            fails(env.reset)
        one, other = env.step(actions), twin.step(actions)
    assert failures == 2
    check_same(env.reset()[0], twin.reset()[0], "the next game")


def test_a_step_that_fails_as_it_begins_a_game_leaves_the_old_one() -> None:
    player = Failing()
    match = Match(1, (player,), seat=1, start="open:1", autoreset="SameStep")
    match.seed([0])
    seen = match.deal()
    while not seen.masks[0, FILL(Box.ACES) :].any():
        seen = match.step(fill_if_legal(seen.masks))
    before, fill = match.save(), fill_if_legal(seen.masks)
    player.after, player.failure = 0, RuntimeError("lost")
    with pytest.raises(RuntimeError, match="lost"):
        match.step(fill)
    assert all(np.array_equal(one, other) for one, other in zip(match.save(), before, strict=True))
    assert match.step(fill).terminated.all()


# What is refused


def test_a_game_of_another_kind_is_refused_and_changes_nothing() -> None:
    versus, alone = KismetVersusEnv(("greedy",)), KismetEnv()
    for env in (versus, alone):
        env.reset(seed=0)
    three = KismetVersusEnv(["greedy"] * 2)
    for env, saved in ((versus, alone.save()), (alone, versus.save()), (versus, three.save())):
        before = env.save()
        with pytest.raises(ValueError, match="do not fit"):
            env.restore(saved)
        assert all(np.array_equal(one, other) for one, other in zip(env.save(), before, strict=True))


def test_the_default_for_illegal_actions_follows_the_reward() -> None:
    for reward, ends in (("win", True), ("points", False), ("final", False)):
        env = KismetVersusEnv(("greedy",), reward=reward)
        env.reset(seed=0)
        _, paid, terminated, truncated, info = env.step(FILL(Box.KISMET))
        assert (paid, terminated, truncated) == (-1.0, ends, False)
        assert info["illegal_action"] is True
    env = KismetVersusEnv(("greedy",), illegal_action="raise")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^action 224 \(fill Kismet\) is illegal with dice"):
        env.step(FILL(Box.KISMET))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.full(n, FILL(Box.KISMET)), r"game \d: action 224 \(fill Kismet\) is illegal"),
        (lambda n: np.full(n, 225), r"game \d: action 225"),
        (lambda n: np.zeros(n - 1, int), r"actions of shape"),
        (lambda n: np.zeros(n), r"actions of shape"),
    ],
)
def test_an_opponent_who_breaks_the_rules_is_named(answer: Any, message: str) -> None:
    class Wrong:
        @staticmethod
        def act(observations: Any, masks: Any, u: Any) -> Any:
            return answer(len(masks))

    match = Match(5, (Wrong(),), seat=1)
    match.seed(range(5))
    with pytest.raises(ValueError, match=f"^opponent Wrong: {message}"):
        match.deal()


@pytest.mark.parametrize("actions", [np.zeros(4, int), np.zeros(3), np.zeros((3, 1), int), "abc"])
def test_what_are_no_actions_is_refused(actions: Any) -> None:
    match = Match(3, ("greedy",))
    match.seed(range(3))
    match.deal()
    with pytest.raises(ValueError, match="are not 3 whole numbers"):
        match.step(actions)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_envs": 2.5}, "num_envs=2.5 is not a whole number of at least 1"),
        ({"opponents": ()}, "opponents has 0 entries; valid are 1 to 5 names or players"),
        ({"opponents": ("greedy",) * 6}, "opponents has 6 entries; valid are 1 to 5 names or players"),
        ({"opponents": Hunter}, "opponent Hunter is a class; give an instance of it"),
        ({"opponents": ("greedy", Hunter)}, "opponent Hunter is a class; give an instance of it"),
        ({"seat": True}, "seat=True is not one of 0, 1 or 'random'"),
        ({"seat": 1.0}, "seat=1.0 is not one of 0, 1 or 'random'"),
        ({"seat": np.array([0, 1])}, "seat=array([0, 1]) is not one of 0, 1 or 'random'"),
        ({"seat": 2}, "seat=2 is not one of 0, 1 or 'random'"),
        ({"seat": "first"}, "seat='first' is not one of 0, 1 or 'random'"),
        ({"reward": "score"}, "reward='score' is not one of points, final, win"),
        ({"opponents": 7}, "opponent 7 is neither a name nor a player with act(observations, masks, u)"),
        ({"opponents": (7,)}, "opponent 7 is neither a name nor a player with act(observations, masks, u)"),
        ({"autoreset_mode": "Never"}, "autoreset_mode='Never' is not one of NextStep, SameStep, Disabled"),
    ],
)
def test_a_wrong_argument_names_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        KismetVersusVectorEnv(**{"num_envs": 2, **wrong})


def test_a_file_as_opponent_needs_a_player_that_was_made_with_trust() -> None:
    with pytest.raises(ValueError, match=re.escape("make('sb3:some.zip', rules, trust=True)")):
        KismetVersusEnv(("sb3:some.zip",))


@pytest.mark.parametrize("one", ["greedy", Hunter()])
def test_one_alone_is_one_opponent(one: Any) -> None:
    assert KismetVersusEnv(one).batch.opponents == (one,)


def test_some_rows_of_a_match_step_alone() -> None:
    options: dict[str, Any] = {"opponents": (Hunter(),), "seat": "random", "reward": "points"}
    one, other = Match(6, **options), Match(6, **options)
    for match in (one, other):
        match.seed(range(6))
    seen, rng = one.deal(), np.random.default_rng(0)
    other.deal()
    rows = np.array([4, 1])
    for _ in range(15):
        actions = some_action(seen.masks, rng)
        before = [other.position(row) for row in range(6)]
        alone = other.step(actions[rows], rows)
        seen = one.step(actions)
        for name in alone._fields:
            np.testing.assert_array_equal(getattr(alone, name), getattr(seen, name)[rows], err_msg=name)
        assert all(other.position(row) == before[row] for row in range(6) if row not in rows)
