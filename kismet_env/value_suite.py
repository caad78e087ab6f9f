"""Ten thousand pinned positions of the standard game, and what a player gives away in each.

    report = measure(make("turn_greedy"), load())

    python -m kismet_env.value_suite --out FILE  # deals the same positions again, bit for bit

The positions are spread evenly over turns and rolls left, and over games of players of different strength, so that a
player is also asked about places where he would not go himself. No two are the same and no two are of the same game.
A last decision that leaves no choice is not among them.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.batch import Batch, Step
from kismet_env.bots import Player, StochasticPlayer, ValuePlayer, make
from kismet_env.command_line import check_writable, progress_bar, refusing, run
from kismet_env.dice import ROLL_DICE, roll_indices
from kismet_env.engine import OPEN, ROLLS_PER_TURN
from kismet_env.evaluation import SUITE_DICE, bootstrap_interval, game_keys, rounds
from kismet_env.observation import decode
from kismet_env.rules import NUM_BOXES, Box
from kismet_env.solver import solve
from kismet_env.tensor_file import read_array, read_header, save_arrays
from kismet_env.turn import TIE

SIZE = 10_000
ORIGINS = ("random", "boltzmann:8", "boltzmann:2", "turn_greedy", "rule_based", "optimal")
"""Whose games the positions are from, the same number from each but for one or two."""
PATH = Path(__file__).with_suffix(".safetensors")
FINGERPRINT = "075beba05fea1bba567951002fc1c9d7cf0264a0d8aa818131403ce1a2291d5a"
"""ValueSuite.fingerprint of the positions in PATH."""
SCHEMA = 1
"""Version of the form of a report."""
BLUNDER = 3.0
"""Points: what gives away more is a blunder."""
_STAGES = [(turn, left) for turn in range(NUM_BOXES) for left in range(ROLLS_PER_TURN)]
_STAGES.remove((NUM_BOXES - 1, 0))  # a box to fill, and it is the last
_GAMES_AT_ONCE = 48 * len(_STAGES)
_FIRST_BOX = actions_of("keeps").num_rolls


@dataclass(frozen=True, eq=False)
class ValueSuite:
    """N positions of solitaire games under the standard rules."""

    scorecards: npt.NDArray[np.uint8]  # (N, 15): points in each box, 255 where open
    rolls: npt.NDArray[np.uint8]  # (N,): dice, as numbers of kismet_env.dice.ROLL_DICE
    rolls_left: npt.NDArray[np.uint8]  # (N,)
    origins: npt.NDArray[np.uint8]  # (N,): whose games they are from, indices into ORIGINS

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of all arrays, one after the other, in hexadecimal digits."""
        return hashlib.sha256(b"".join(array.tobytes() for array in self.arrays().values())).hexdigest()

    def arrays(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Return the four arrays by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def at(self, rows: npt.NDArray[Any] | slice) -> ValueSuite:
        """Return the positions of `rows`, an index, mask or slice."""
        return ValueSuite(*(array[rows] for array in self.arrays().values()))

    def positions(self) -> list[dict[str, Any]]:
        """Return the positions as `reset(options={"position": ...})` of the environment takes them."""
        return [
            {
                "cards": [{box.name: int(card[box]) for box in Box if card[box] != _OPEN}],
                "dice": ROLL_DICE[roll].tolist(),
                "rolls_left": int(left),
            }
            for card, roll, left in zip(self.scorecards, self.rolls, self.rolls_left, strict=True)
        ]

    @cached_property
    def seen(self) -> Step:
        """What players see of the positions, with the masks of what is legal."""
        return Batch(len(self.rolls)).deal_positions(self.positions())

    @cached_property
    def exact_values(self) -> npt.NDArray[np.float64]:
        """The exact points still to come after each action and perfect play, (N, 225); -inf where illegal."""
        return solve().action_values(*decode(self.seen.observations))

    @cached_property
    def losses(self) -> npt.NDArray[np.float64]:
        """The points that each action gives away, (N, 225); an illegal one all that are still to come."""
        best = self.exact_values.max(1)[:, None]
        losses: npt.NDArray[np.float64] = np.where(self.seen.masks > 0, best - self.exact_values, best)
        return losses


_ARRAYS = tuple(field.name for field in fields(ValueSuite))
_OPEN = 255  # in `ValueSuite.scorecards`


@lru_cache(maxsize=1)
def load() -> ValueSuite:
    """Return the pinned positions, read-only; ValueError unless they are exactly those."""
    try:
        with PATH.open("rb") as file:
            arrays = read_header(file).arrays
            if set(arrays) != set(_ARRAYS):
                raise ValueError(f"it holds {sorted(arrays)}, not {sorted(_ARRAYS)}")
            suite = ValueSuite(*(read_array(file, arrays[name]) for name in _ARRAYS))
        if suite.fingerprint != FINGERPRINT:
            raise ValueError(f"it holds other positions, {suite.fingerprint}, than {FINGERPRINT}")
    except (ValueError, OSError) as error:
        raise ValueError(f"{PATH} is damaged: {error}; install the package again") from None
    return suite


def deal(size: int = SIZE, report: Callable[[int], None] = lambda found: None) -> ValueSuite:
    """Return the first `size` positions, those of `load` for SIZE; `report` hears how many more there are.

    Place p of the suite belongs to stage p % 44 (turn and rolls left) and origin p // 44 % 6. Game g of an origin, with
    the key hash_words(SUITE_DICE, origin, g), is for the stage g % 44; if it comes there in a position that is new and
    leaves a choice, that takes the next place of this stage and origin, until there is none.
    """
    places = np.arange(size)
    stages, origins = places % len(_STAGES), places // len(_STAGES) % len(ORIGINS)
    found = ValueSuite(
        np.empty((size, NUM_BOXES), np.uint8), np.empty(size, np.uint8), np.empty(size, np.uint8), origins.astype("u1")
    )
    known: set[bytes] = set()
    for origin, name in enumerate(ORIGINS):
        free = [places[(origins == origin) & (stages == stage)].tolist() for stage in range(len(_STAGES))]
        player, first = make(name), 0
        while any(free):
            games = np.arange(first, first + _GAMES_AT_ONCE)
            games = games[[bool(free[stage]) for stage in games % len(_STAGES)]]
            first += _GAMES_AT_ONCE
            count = len(known)
            for game, card, roll, left in _positions(player, game_keys(SUITE_DICE, origin, games), games):
                seat = free[game % len(_STAGES)]
                position = bytes([*card, roll, left])
                if seat and position not in known:
                    known.add(position)
                    place = seat.pop(0)
                    found.scorecards[place], found.rolls[place], found.rolls_left[place] = card, roll, left
            report(len(known) - count)
    return found


def _positions(
    player: Player, keys: npt.NDArray[np.uint64], games: npt.NDArray[np.int64]
) -> list[tuple[int, npt.NDArray[np.uint8], int, int]]:
    """Return (game, scorecard, roll, rolls left) of the `games` that come to their stage with a choice, in order."""
    batch = Batch(len(keys))
    wanted = np.array(_STAGES)[games % len(_STAGES)]
    met = []
    for played in rounds(player, batch, batch.deal_keys(keys), with_probabilities=False):
        before, decision = played.before, decode(played.before.observations)
        turn = (before.scorecards != OPEN).sum(1)
        is_there = (turn == wanted[played.games, 0]) & (decision.rolls_left == wanted[played.games, 1])
        is_there &= before.masks.sum(1) > 1
        rolls = roll_indices(decision.dice)
        met += [
            (int(games[played.games[row]]), before.scorecards[row].astype(np.uint8), int(rolls[row]), int(left))
            for row, left in zip(np.flatnonzero(is_there), decision.rolls_left[is_there], strict=True)
        ]
    return sorted(met, key=lambda position: position[0])


def shares_of(player: Player, suite: ValueSuite) -> npt.NDArray[np.float64]:
    """Return the probabilities with which a `player` takes each action in the positions of `suite`, (N, 225).

    Those of a stochastic player; everybody else has 1 where he takes an action.
    """
    seen = suite.seen
    if isinstance(player, StochasticPlayer):
        return player.probabilities(seen.observations, seen.masks)
    shares = np.zeros(seen.masks.shape)
    lots = np.random.default_rng(0).random(len(shares))  # for whoever draws, and cannot say from what
    shares[np.arange(len(shares)), player.act(seen.observations, seen.masks, lots)] = 1.0
    return shares


def measure(player: Player, suite: ValueSuite) -> dict[str, Any]:
    """Return what a `player` does in the positions of `suite`, held against the exact optimum; ready for JSON.

    Every position counts the same. A stochastic player counts by his probabilities, everybody else by the action that
    he takes. An illegal action gives away all that was still to come.

    Returns:
        regret, regret_ci95: mean points given away by a decision, and its BCa bootstrap interval.
        best_share, blunder_share, illegal_share: of the decisions that give away nothing (1e-9 points), more than
            BLUNDER points, or are illegal.
        regret_by_rolls_left: the same mean over the positions with "2", "1" and "0" rolls left.
        keep, box: of the decisions to keep and of those to fill a box, their share and mean regret (None without any).
        regret_by_origin: mean over the positions from the games of each of ORIGINS.
        values: None but for a ValuePlayer. Else bias (mean) and RMSE, in points, of his action values minus those of
            the optimum: the points still to come if the action is taken and all after it is perfect. "legal" is over
            all legal actions of a position, then over positions; "chosen" is over the best one in his own eyes, where
            an error that is pure noise has a bias too.
        seconds: on the clock, the optimum not counted.
    """
    seen, truth, losses = suite.seen, suite.exact_values, suite.losses
    legal = seen.masks > 0
    started = time.perf_counter()
    rows = np.arange(len(truth))
    shares = shares_of(player, suite)
    regret = (shares * losses).sum(1)
    interval = bootstrap_interval(regret)
    report: dict[str, Any] = {
        "regret": float(regret.mean()),
        "regret_ci95": interval and tuple(map(float, interval)),
        "best_share": float((shares * (losses <= TIE)).sum(1).mean()),
        "blunder_share": float((shares * (losses > BLUNDER)).sum(1).mean()),
        "illegal_share": float((shares * ~legal).sum(1).mean()),
        "regret_by_rolls_left": {
            str(left): _mean(regret[suite.rolls_left == left]) for left in reversed(range(ROLLS_PER_TURN))
        },
        "regret_by_origin": {name: _mean(regret[suite.origins == place]) for place, name in enumerate(ORIGINS)},
        "values": None,
    }
    for name, columns in (("keep", slice(_FIRST_BOX)), ("box", slice(_FIRST_BOX, None))):
        share = float(shares[:, columns].sum())
        given_away = float((shares * losses)[:, columns].sum())
        report[name] = {"share": share / len(rows), "regret": given_away / share if share else None}
    if isinstance(player, ValuePlayer):
        own = np.where(legal, player.action_values(seen.observations), -np.inf)
        errors = np.where(legal, own - np.where(legal, truth, 0.0), 0.0)
        chosen = errors[rows, own.argmax(1)]
        counts = legal.sum(1)
        report["values"] = {
            "legal": _bias_and_rmse(errors.sum(1) / counts, (errors**2).sum(1) / counts),
            "chosen": _bias_and_rmse(chosen, chosen**2),
        }
    return report | {"seconds": time.perf_counter() - started}


def summarise_measures(measures: Mapping[str, dict[str, Any]], suite: ValueSuite) -> dict[str, Any]:
    """Return the report on what players by name do in `suite`, see `measure`; ready for JSON."""
    return {
        "schema": SCHEMA,
        "suite": {"positions": len(suite.rolls), "sha256": suite.fingerprint},
        "blunder": BLUNDER,
        "agents": [{"agent": name, **measured} for name, measured in measures.items()],
    }


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _bias_and_rmse(errors: npt.NDArray[np.float64], squares: npt.NDArray[np.float64]) -> dict[str, float]:
    return {"bias": float(errors.mean()), "rmse": float(squares.mean() ** 0.5)}


@dataclass(frozen=True)
class Config:
    """Deal the positions of the value suite again: the same ones, bit for bit."""

    out: Path
    """Where to write them."""


def main(config: Config) -> None:
    """Deal and write."""
    with refusing():
        check_writable(config.out, folder=False)
    with progress_bar() as bar:
        suite = deal(report=partial(bar.advance, bar.add_task("positions", total=SIZE)))
    with refusing():
        save_arrays(config.out, suite.arrays(), {"sha256": suite.fingerprint})
    print(f"{config.out}: {len(suite.rolls):,} positions, {suite.fingerprint}")


if __name__ == "__main__":
    sys.exit(run(main, Config, program="python -m kismet_env.value_suite"))
