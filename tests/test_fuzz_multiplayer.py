"""Any number of players, any rules, any options: what must hold in every game.

`test_engine` holds every step of such games against a second implementation; here many more games are played, and
through the adapters.
"""

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunter import Hunter
from reference import STANDARD
from reference_game import Game, choose, key_of, play
from test_engine import a_variant, expected_masks

from kismet_env import kismet_v0
from kismet_env.batch import AUTORESETS, Batch
from kismet_env.match import Match

FULL = 2**15 - 1
FORMS = ("features", "raw", "dict")


def some_legal(masks: npt.NDArray[np.int8], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return one legal action for every row, boxes more often than their number asks for."""
    weights = masks * rng.random(masks.shape, dtype=np.float32)
    weights[:, -15:] *= 1.5
    return weights.argmax(1)


def what_is_accepted(batch: Batch, row: int, options: dict[str, Any]) -> npt.NDArray[np.int8]:
    """Return which actions the game of a row accepts, (A,), found by playing each of them."""
    num_actions = batch.actions.num_actions
    tried = Batch(num_actions, batch.num_players, **options)
    saved = batch.save()
    tried.restore(tuple(np.repeat(array[row : row + 1], num_actions, axis=0) for array in saved))
    return (~tried.step(np.arange(num_actions)).illegal).astype(np.int8)


def play_many(num_games: int, num_players: int, seed: int, trials: int) -> tuple[int, int]:
    """Play games of one random variant, everything checked; return the numbers of games and of forced zeros.

    Seeds that end in 0 play the standard game.
    """
    rng, choices = np.random.default_rng(seed), random.Random(seed)
    reward = choices.choice(("points", "final", "win") if num_players > 1 else ("points", "final"))
    options: dict[str, Any] = {
        "rules": a_variant(choices) if seed % 10 else {},
        "actions": choices.choice(("keeps", "holds")) if seed % 10 else "keeps",
        "observation": choices.choice(FORMS),
        "reward": reward,
        "start": choices.choice(("full", "full", "open:5", "uniform")),
        "first_player": choices.choice(("seat0", "random")),
    }
    what = f"seed {seed}: {num_players} players, {options}"
    batch, hunter = Batch(num_games, num_players, **options), Hunter()
    shown_to_hunter = Batch(num_games, num_players, rules=options["rules"])
    shown_to_hunter.state = batch.state
    hunts = options["actions"] == "keeps"
    batch.seed(range(num_games))
    seen = batch.deal()
    start, returns = batch.state.cards["total"].astype(float), np.zeros((num_games, num_players))
    entered = 0  # boxes filled by the players themselves
    while not batch.over.all():
        going_on = np.flatnonzero(~batch.over)
        filled = batch.state.cards["filled"]
        sizes = (filled[..., None] >> np.arange(15) & 1).sum(-1)
        assert (np.ptp(sizes, axis=1) <= 1).all(), what
        assert seen.masks[going_on].any(1).all(), what
        for row in rng.choice(going_on, min(trials, len(going_on)), replace=False):
            accepted = what_is_accepted(batch, row, options)
            np.testing.assert_array_equal(seen.masks[row], accepted, err_msg=f"{what}, position {batch.position(row)}")
        actions = some_legal(seen.masks, rng)
        if hunts:
            view = shown_to_hunter.look()
            hunted = hunter.act(view.observations, view.masks, batch.choice_shares())
            actions = np.where(rng.random(num_games) < 0.9, hunted, actions)
            actions[batch.over] = 0
        entered += int((actions[going_on] >= batch.actions.num_rolls).sum())
        seen = batch.step(actions)
        assert not seen.illegal.any(), what
        returns += seen.rewards
    cards = batch.state.cards
    assert (cards["filled"] == FULL).all(), what
    assert (cards["points"] >= 0).all(), what
    totals = cards["total"].astype(float)
    assert (totals >= cards["points"].sum(-1)).all(), what
    if reward == "win":
        best = totals == totals.max(1, keepdims=True)
        winners = best.sum(1, keepdims=True)
        share = (num_players - winners) / winners / (num_players - 1)
        np.testing.assert_allclose(returns, np.where(best, share, -1 / (num_players - 1)), err_msg=what)
    else:
        np.testing.assert_array_equal(returns, totals - start, err_msg=what)
    return num_games, _open_boxes(options["start"], num_games, num_players, options) - entered


def _open_boxes(start: str, num_games: int, num_players: int, options: dict[str, Any]) -> int:
    """Return how many boxes are open when the games begin."""
    batch = Batch(num_games, num_players, **options)
    batch.seed(range(num_games))
    batch.deal()
    return int((batch.state.cards["points"] < 0).sum())


@pytest.mark.parametrize("num_players", range(1, 7))
def test_games_of_any_variant_hold_together(num_players: int) -> None:
    played = [play_many(300, num_players, seed=100 * num_players + number, trials=1) for number in range(5)]
    assert (sum(zeros for _, zeros in played) > 0) == (num_players > 1)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
@pytest.mark.parametrize("num_players", range(1, 7))
def test_tens_of_thousands_of_games_hold_together(num_players: int, share: int) -> None:
    played = [
        play_many(400, num_players, seed=1000 * num_players + 10 * share + number, trials=1) for number in range(8)
    ]
    assert sum(games for games, _ in played) == 3200


@pytest.mark.parametrize("share", range(6))
def test_the_environment_of_agents_is_the_reference_under_any_variant(share: int) -> None:
    for number in range(8):
        seed = 50 * share + number
        rng = random.Random(seed)
        num_players, changed = 1 + (share + number) % 6, a_variant(rng)
        reward, actions = (
            "points" if num_players == 1 else rng.choice(("points", "win")),
            rng.choice(("keeps", "holds")),
        )
        options: dict[str, Any] = {"rules": changed, "reward": reward, "actions": actions}
        env = kismet_v0.env(num_players, observation=rng.choice(FORMS), illegal_action="raise", **options)
        env.reset(seed=seed)
        game = Game(num_players, {**STANDARD, **changed}, key_of(seed))
        returns = dict.fromkeys(env.agents, 0.0)
        while env.agents:
            agent = env.agent_selection
            seen, paid, terminated, _, info = env.last()
            returns[agent] += paid
            assert terminated == game.over
            if terminated:
                assert info["total"] == game.totals[int(agent[-1])]
                env.step(None)
                continue
            assert agent == f"player_{game.seat}"
            np.testing.assert_array_equal(seen["action_mask"], expected_masks([game], actions)[0])
            env.step(play(game, choose(game, rng), actions))
        assert list(returns.values()) == pytest.approx(game.win_shares() if reward == "win" else game.totals)


@pytest.mark.parametrize("share", range(6))
def test_matches_of_any_options_are_played_to_the_end(share: int) -> None:
    """Whatever the options and the way games begin anew, a learner's returns are what its cards say."""
    for number in range(4):
        seed = 10 * share + number
        rng, choices = np.random.default_rng(seed), random.Random(seed)
        num_players = 2 + (share + number) % 5
        reward = choices.choice(("points", "final", "win"))
        autoreset = choices.choice(AUTORESETS)
        options: dict[str, Any] = {
            "seat": choices.choice((*range(num_players), "random")),
            "rules": a_variant(choices),
            "actions": choices.choice(("keeps", "holds")),
            "observation": choices.choice(FORMS),
            "start": choices.choice(("full", "open:2", "uniform")),
            "reward": reward,
            "autoreset": autoreset,
        }
        what = f"seed {seed}: {num_players} players, {options}"
        opponents = [choices.choice(("random", "greedy", Hunter())) for _ in range(num_players - 1)]
        match = Match(60, opponents, **options)
        match.seed(range(60))
        seen, returns, ended = match.deal(), np.zeros(60), 0
        start = match.look().totals.astype(float)
        first = np.ones(60, bool)  # totals at the start are known for the first games alone
        for _ in range(50 if autoreset != "Disabled" else 1000):
            was_over = match.over.copy()
            if autoreset == "Disabled" and was_over.all():
                break
            seen = match.step(some_legal(seen.masks, rng))
            assert not seen.illegal.any(), what
            returns += seen.rewards[:, 0]
            over = seen.terminated | seen.truncated
            assert not (over & was_over).any(), what
            assert (seen.masks[~match.over].any(1)).all(), what
            totals = match.final.totals if autoreset == "SameStep" else seen.totals
            cards = match.final.scorecards if autoreset == "SameStep" else seen.scorecards
            assert (cards[over] >= 0).all(), what
            news = match.final_news if autoreset == "SameStep" and over.any() else match.news()
            if reward == "win":
                everybody = np.concatenate([totals[:, None], news.opponent_totals], 1)
                best = everybody.max(1)
                winners = (everybody == best[:, None]).sum(1)
                due = np.where(totals == best, (num_players - winners) / winners, -1.0) / (num_players - 1)
                np.testing.assert_allclose(returns[over], due[over], err_msg=what)
            elif options["start"] == "full":
                np.testing.assert_array_equal(returns[over], totals[over], err_msg=what)
            elif options["seat"] == 0:
                chosen = over & first
                np.testing.assert_array_equal(returns[chosen], (totals - start)[chosen], err_msg=what)
            first &= ~over
            returns[over] = 0
            ended += int(over.sum())
        assert ended >= 60, what
