"""Games between players: the same deals from every seat, and who wins without the luck of the dice.

    contest = play_contest([make("optimal"), make("turn_greedy")], 10_000, seed=0)
    contest.shares.mean((0, 1))  # each player's share of the wins

Dice belong to seats, so a deal is played as often as there are seats and everybody sits in each of them once: what a
seat's dice bring is then in everybody's result alike. The deal, all its games together, is what is sampled.

From every game's result the luck of the dice is taken off. For each throw of anybody's dice a fixed number is known
for every roll that might have come: the chance to win when the rest of the turn is played for that chance, as
`win_chance` judges it. What came minus its expectation over all rolls has mean zero, whoever plays and however good
the judgement; the better it is, the less noise is left (AIVAT, Burch et al. 2018). docs/two-players.md has the proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.batch import MOST_PLAYERS, Batch, whole_number
from kismet_env.bots import Player
from kismet_env.dice import IS_FIVE_ALIKE, NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_PROBABILITY
from kismet_env.engine import ROLLS_PER_TURN, Card, Cards, Game, count_boxes
from kismet_env.evaluation import EVALUATION_DICE, SCHEMA, game_keys, map_parts, mean_interval, rate_interval
from kismet_env.jit import Table, compiled
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record, Tables
from kismet_env.turn import Plan, allow, new_plan, plan_card
from kismet_env.win_chance import (
    ARMED,
    BASIC_TOTAL,
    FILLED,
    MEAN,
    TOTAL,
    VARIANCE,
    Judge,
    Scratch,
    card_worth,
    judge_of,
    new_scratch,
    win_share,
    write_judgements,
    write_turn_worths,
)

_GAMES_AT_ONCE = 1024
_CHANCES, _POINTS = range(2)  # the two kinds in which turns are judged


class Contest(NamedTuple):
    """How D deals between P players went, each played P times; arrays (D, P, P) are [deal, rotation, player].

    In rotation r player p has seat (p + r) mod P; seat 0 plays first.
    """

    shares: npt.NDArray[np.float64]  # (D, P, P): 1 for the winner, 1/k for each of k, 0 for the others
    totals: npt.NDArray[np.int64]  # (D, P, P): final scores
    second_kismets: npt.NDArray[np.int64]  # (D, P, P): of each player
    # without these a contest was not watched, (D, P, P) each:
    luck: npt.NDArray[np.float64] | None = None  # what chance has added to the shares; mean 0, sum 0 in every game
    regret: npt.NDArray[np.float64] | None = None  # points lost against the best solitaire play
    forced: npt.NDArray[np.float64] | None = None  # points that forced zeros have cost, by what cards are worth
    errors: npt.NDArray[np.float64] | None = None  # shares of the win given away in the endgame of two, exactly
    seconds: float = 0.0  # on the clock

    @property
    def adjusted(self) -> npt.NDArray[np.float64] | None:
        """The shares without luck, (D, P, P): the same means, far less noise; single ones may be outside 0..1."""
        return None if self.luck is None else self.shares - self.luck


def play_contest(
    players: Sequence[Player],
    deals: int,
    *,
    seed: int,
    rules: Rules | Mapping[str, Any] | str | None = None,
    domain: int = EVALUATION_DICE,
    processes: int = 1,
    watch: bool = True,
    report: Callable[[int], None] = lambda games_done: None,
) -> Contest:
    """Play deals 0..`deals` - 1 of `seed` between `players`, in all rotations, and return them in this order.

    Args:
        players: two to six, in playing order; the same object may play more than once.
        deals: how many, at least 1; there are as many games of each as players.
        seed: a whole number from 0 up.
        rules: those of the games; the players have to know them too.
        domain: which kind of dice, see `evaluation`.
        processes: how many worker processes; the games are the same for any number; see `evaluation.play`.
        watch: measure luck, regret and forced zeros. It needs the optimum of the solitaire game.
        report: called with the number of games done since the last call.

    Raises ValueError for numbers outside these ranges and for an illegal action.
    """
    count = whole_number("number of players", len(players), 2, MOST_PLAYERS)
    whole_number("deals", deals, 1)
    whole_number("processes", processes, 1)
    started, rules = time.perf_counter(), Rules.of(rules)
    if watch:
        judge_of(rules)  # once here, not in every process
    play_part = partial(_play_part, tuple(players), rules, domain, seed, watch)
    at_once = max(1, _GAMES_AT_ONCE // count)
    parts = [range(first, min(first + at_once, deals)) for first in range(0, deals, at_once)]
    done = []
    for part in map_parts(play_part, parts, processes):
        done.append(part)
        report(count * len(part.totals))
    columns = zip(*(part[:-1] for part in done), strict=True)
    joined: list[Any] = [None if column[0] is None else np.concatenate(column) for column in columns]
    return Contest._make([*joined, time.perf_counter() - started])


def _play_part(players: Sequence[Player], rules: Rules, domain: int, seed: int, watch: bool, deals: range) -> Contest:
    """Play some deals side by side, in all rotations."""
    count = len(players)
    batch = Batch(count * len(deals), count, rules=rules, illegal_action="raise")
    step = batch.deal_keys(np.repeat(game_keys(domain, seed, deals), count))
    seen, masks, going_on = step.observations, step.masks, batch.all_rows
    distinct = list({id(player): player for player in players}.values())
    number_of = np.array([[player is other for other in distinct].index(True) for player in players])
    second_kismets = np.zeros((batch.num_games, count), np.int64)
    watcher = _Watcher(batch) if watch else None
    while going_on.size:
        seats = batch.state.games["player"][going_on]
        numbers = number_of[(seats - going_on) % count]
        actions, u = np.empty(len(going_on), np.int64), batch.choice_shares(going_on)
        for number, player in enumerate(distinct):
            mine = np.flatnonzero(numbers == number)
            if mine.size:
                actions[mine] = player.act(seen[mine], masks[mine], u[mine])
        second_kismets[going_on, seats] += _ends_with_second_kismet(batch, going_on, seats, actions)
        if watcher:
            watcher.note(going_on)
        step = batch.step(actions, only=going_on)
        if watcher:
            watcher.watch(going_on, actions)
        goes_on = ~step.terminated
        seen, masks, going_on = step.observations[goes_on], step.masks[goes_on], going_on[goes_on]
    totals = batch.state.cards["total"].astype(np.int64)
    winners = totals == totals.max(1, keepdims=True)

    def by_player(measured: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what was measured by seat, (games, P), as [deal, rotation, player]."""
        seat_of = (batch.all_rows[:, None] + np.arange(count)) % count
        return np.take_along_axis(measured, seat_of, 1).reshape(len(deals), count, count)

    return Contest(
        shares=by_player(winners / winners.sum(1, keepdims=True)),
        totals=by_player(totals),
        second_kismets=by_player(second_kismets),
        luck=by_player(watcher.turns.luck) if watcher else None,
        regret=by_player(watcher.turns.regret) if watcher else None,
        forced=by_player(watcher.turns.forced) if watcher else None,
        errors=by_player(watcher.turns.errors) if watcher and count == 2 else None,
    )


def _ends_with_second_kismet(
    batch: Batch, rows: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return whether the players in `seats` are about to enter a second Kismet, (n,)."""
    state = batch.state
    five_alike = IS_FIVE_ALIKE[state.games["roll"][rows]]
    ends: npt.NDArray[np.bool_] = (actions >= NUM_REROLL_KEEPS) & five_alike & state.cards["armed"][rows, seats]
    return ends


class _Turns(NamedTuple):
    """What is known of the turn that is being played in each of N games, and what has been measured so far."""

    roll_values: Table  # [game, kind, left, roll] (N, 2, 3, 252): chance to win of him who moves; points to come
    keep_values: Table  # [game, kind, left, keep] (N, 2, 3, 210): the same after the decision to keep some dice
    parts: Table  # [game, seat] (N, P): how what he who moves does not win is shared by the others
    luck: Table  # [game, seat] (N, P), and so are the next two; see Contest
    regret: Table
    forced: Table
    errors: Table
    is_end: Table  # [game] (N,) bool: whether the chances of the turn are exact, with one box to fill


class _Scratch(NamedTuple):
    """Room for the thoughts about one turn."""

    cards: Table  # (P, 4): those of the players from him who moves on
    judging: Scratch
    worths: Table  # [kind, box, roll] (2, 15, 252): chances and points
    plan: Plan


class _Watcher:
    """Measures the luck, the regret and the forced zeros of all games of a batch that has just been dealt."""

    def __init__(self, batch: Batch) -> None:
        games, count = batch.num_games, batch.num_players
        by_seat = (np.zeros((games, count)) for _ in range(5))
        by_kind = (games, 2, ROLLS_PER_TURN)
        values = np.empty((*by_kind, NUM_ROLLS)), np.empty((*by_kind, NUM_REROLL_KEEPS))
        self.turns = _Turns._make([*values, *by_seat, np.zeros(games, np.bool_)])
        self._batch, self._judge = batch, judge_of(batch.rules)
        self._open(batch.all_rows)

    def note(self, rows: npt.NDArray[np.int64]) -> None:
        """Remember the games of `rows` as they are before a step."""
        games, cards = self._batch.state
        self._before = games[rows], cards[rows]

    def watch(self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        """Measure the step from there that `actions`, all of them legal, have led to."""
        games, cards = self._batch.state
        _watch(self._judge, *self._before, games, cards, rows, actions, self.turns)
        self._open(rows[(actions >= NUM_REROLL_KEEPS) & ~games["over"][rows]])

    def _open(self, rows: npt.NDArray[np.int64]) -> None:
        _open_turns(self._batch.tables, self._judge, *self._batch.state, rows, self.turns)


@compiled
def _new_scratch(num_players: int, judge: Judge) -> _Scratch:
    return _Scratch(
        np.empty((num_players, 4), np.int64),
        new_scratch(num_players, judge),
        np.empty((2, NUM_BOXES, NUM_ROLLS)),
        new_plan(),
    )


@compiled
def _open_turns(tables_array: Record, judge: Judge, games: Table, cards: Table, rows: Table, turns: _Turns) -> None:
    scratch = _new_scratch(cards.shape[1], judge)
    for row in rows:
        _open_turn(tables_array[0], judge, games[row], cards[row], row, turns, scratch)


@compiled
def _open_turn(
    tables: Tables, judge: Judge, game: Game, cards: Cards, row: int, turns: _Turns, scratch: _Scratch
) -> None:
    """Think about a turn whose first dice have come, and count their luck."""
    num_players, mover, plan = len(cards), game.player, scratch.plan
    for place in range(num_players):
        card = cards[(mover + place) % num_players]
        scratch.cards[place, FILLED] = card.filled
        scratch.cards[place, BASIC_TOTAL] = card.basic_total
        scratch.cards[place, ARMED] = card.armed
        scratch.cards[place, TOTAL] = card.total
    _write_parts(tables, judge, scratch, mover, turns.parts[row])
    write_turn_worths(tables, judge, scratch.cards, scratch.judging, scratch.worths[_CHANCES], scratch.worths[_POINTS])
    filled = cards[mover].filled
    turns.is_end[row] = num_players == 2 and _is_short(filled) and _is_short(cards[1 - mover].filled)
    allow(tables, filled, cards[mover].armed, plan)
    for kind in range(2):
        plan_card(filled, scratch.worths[kind], plan)
        turns.roll_values[row, kind] = plan.roll_values
        turns.keep_values[row, kind] = plan.keep_values[:, :NUM_REROLL_KEEPS]
    chances = turns.roll_values[row, _CHANCES]
    expected = 0.0
    for roll in range(NUM_ROLLS):
        expected += ROLL_PROBABILITY[roll] * chances[-1, roll]
    _add_luck(turns, row, mover, chances[-1, game.roll] - expected)


@compiled
def _is_short(filled: int) -> bool:
    """Return whether a card has at most one open box."""
    return count_boxes(filled) >= NUM_BOXES - 1


@compiled
def _write_parts(tables: Tables, judge: Judge, scratch: _Scratch, mover: int, parts: Table) -> None:
    """Write how the players other than `mover` share what he does not win, by seat (P,); they sum to 1."""
    num_players, total = len(parts), 0.0
    parts[:] = 1.0
    if num_players > 2:
        judgements = scratch.judging.judgements[0]
        write_judgements(tables, judge, scratch.cards, False, judgements)
        for place in range(1, num_players):
            share = win_share(judgements[MEAN], judgements[VARIANCE], place, judge.nodes, judge.weights)
            parts[(mover + place) % num_players] = share
            total += share
        if total > 0.0:
            parts[:] /= total
        else:
            parts[:] = 1.0 / (num_players - 1)
    parts[mover] = 0.0


@compiled
def _add_luck(turns: _Turns, row: int, mover: int, luck: float) -> None:
    """Count what dice have added to the chance of `mover`, and taken from the others."""
    for seat in range(turns.luck.shape[1]):
        turns.luck[row, seat] += luck if seat == mover else -luck * turns.parts[row, seat]


@compiled
def _watch(
    judge: Judge,
    games_before: Table,
    cards_before: Table,
    games: Table,
    cards: Table,
    rows: Table,
    actions: Table,
    turns: _Turns,
) -> None:
    for at, row in enumerate(rows):
        before, game, action = games_before[at], games[row], actions[at]
        mover, left = before.player, before.rolls_left
        best = turns.roll_values[row, _POINTS, left, before.roll]
        chances, keep_chances = turns.roll_values[row, _CHANCES], turns.keep_values[row, _CHANCES, left]
        if action < NUM_REROLL_KEEPS:
            turns.regret[row, mover] += best - turns.keep_values[row, _POINTS, left, action]
            if turns.is_end[row]:
                turns.errors[row, mover] += chances[left, before.roll] - keep_chances[action]
            _add_luck(turns, row, mover, chances[left - 1, game.roll] - keep_chances[action])
            continue
        if turns.is_end[row]:  # there is one box to fill: what it brings is the best without rolls left
            turns.errors[row, mover] += chances[left, before.roll] - chances[0, before.roll]
        turns.regret[row, mover] += best - _gain(judge, cards_before[at, mover], cards[row, mover], False)
        for seat in range(cards.shape[1]):
            if seat != mover and cards[row, seat].filled != cards_before[at, seat].filled:
                turns.forced[row, seat] -= _gain(judge, cards_before[at, seat], cards[row, seat], True)


@compiled
def _gain(judge: Judge, before: Card, after: Card, relative: bool) -> float:
    """Return the points of the entry between two states of a card, and what is to come after it.

    `relative`: less what was to come before it.
    """
    gain = after.total - before.total + card_worth(judge, after.filled, after.basic_total, after.armed)
    if relative:
        gain -= card_worth(judge, before.filled, before.basic_total, before.armed)
    return float(gain)


def share_interval(shares: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of independent `shares` (n,) of wins; None for fewer than two.

    Student's, but Wilson's where every share is 1, or 0: that nobody has lost yet does not mean that nobody ever will.
    """
    if len(shares) > 1 and shares[0] in (0.0, 1.0) and (shares == shares[0]).all():
        return rate_interval(shares == 1.0)
    return mean_interval(shares)


def summarise_contests(
    contests: Mapping[tuple[str, ...], Contest],
    ratings: Mapping[str, Any] | None = None,
    *,
    seed: int,
    rules: Rules | Mapping[str, Any] | str | None = None,
) -> dict[str, Any]:
    """Return the report on contests on the same deals of `seed`, by the names of their players; ready for JSON.

    Win rates count a win shared by k players as one k-th; intervals cover with 95 % and take the deals for
    independent. What needs the optimum is None for contests that were not watched, and so are intervals of one deal.
    `ratings` is what `ratings.rate` says of the same contests.
    """
    first = next(iter(contests.values()))
    return {
        "schema": SCHEMA,
        "rules": asdict(Rules.of(rules)),
        "seed": seed,
        "seats": first.shares.shape[2],
        "deals": len(first.shares),
        "games": first.shares.shape[0] * first.shares.shape[1],
        "matches": [_match(names, contest) for names, contest in contests.items()],
        "ratings": ratings,
    }


def _match(names: tuple[str, ...], contest: Contest) -> dict[str, Any]:
    """Return the report on one contest."""
    deals, games, _ = contest.shares.shape
    players = [_contestant(name, contest, player) for player, name in enumerate(names)]
    match: dict[str, Any] = {
        "games": deals * games,
        "tie_rate": float((contest.shares.max(2) < 1).mean()),
        "seconds": contest.seconds,
        "players": players,
    }
    if len(names) == 2:
        a, b = players
        match = {
            "a": a["player"],
            "b": b["player"],
            "pairs": deals,
            "a_win_rate": a["win_rate"],
            "ci95": a["ci95"],
            "luck_adjusted_a_win_rate": a["luck_adjusted_win_rate"],
            "luck_adjusted_ci95": a["luck_adjusted_ci95"],
            "a_mean": a["mean"],
            "b_mean": b["mean"],
        } | match
    return match


def _contestant(name: str, contest: Contest, player: int) -> dict[str, Any]:
    """Return what one contest says of one of its players."""
    shares, adjusted = contest.shares[:, :, player], None
    if contest.adjusted is not None:
        adjusted = contest.adjusted[:, :, player]
    seats = (player + np.arange(shares.shape[1])) % shares.shape[1]  # [rotation]

    def mean(values: npt.NDArray[Any] | None) -> float | None:
        return None if values is None else float(values[:, :, player].mean())

    def interval(values: npt.NDArray[Any] | None) -> tuple[float, float] | None:
        return None if values is None else mean_interval(values[:, :, player].mean(1))

    return {
        "player": name,
        "win_rate": float(shares.mean()),
        "ci95": share_interval(shares.mean(1)),
        "sd": float(shares.std()),
        "luck_adjusted_win_rate": None if adjusted is None else float(adjusted.mean()),
        "luck_adjusted_ci95": None if adjusted is None else mean_interval(adjusted.mean(1)),
        "luck_adjusted_sd": None if adjusted is None else float(adjusted.std()),
        "by_seat": [
            {
                "win_rate": float(shares[:, rotation].mean()),
                "ci95": share_interval(shares[:, rotation]),
                "luck_adjusted_win_rate": None if adjusted is None else float(adjusted[:, rotation].mean()),
                "luck_adjusted_ci95": None if adjusted is None else mean_interval(adjusted[:, rotation]),
            }
            for rotation in np.argsort(seats)
        ],
        "mean": mean(contest.totals),
        "mean_ci95": interval(contest.totals),
        "regret_per_game": mean(contest.regret),
        "regret_ci95": interval(contest.regret),
        "forced_zero_loss": mean(contest.forced),
        "forced_zero_ci95": interval(contest.forced),
        "endgame_error_per_game": mean(contest.errors),
        "endgame_error_ci95": interval(contest.errors),
        "second_kismets_per_game": mean(contest.second_kismets),
    }
