"""The chance to win, learned by games of two against oneself: what a normal approximation of it leaves out.

Who knows what share of the win each pair of cards after a turn is worth plays the turn best by exact expectation over
its dice, and the mean of that is what the pair before it is worth to him who moves; to the other, what is left of 1.
A network adds to the logit of a prior (`kismet_env.card_pair`), which takes the players for independent, each playing
for points: it has to learn what whose turn it is, second Kismets to come and two who play to win make of that.
A round of learning is

    1. pairs to learn from: dealt with so many boxes filled, or met in own games;
    2. for each of them what its turn is worth by exact expectation, with the network's shares of the pairs after it;
       in own games also what later turns are worth beyond these shares, TD(lambda) without the luck of the dice;
    3. some hundred steps of Adam towards these shares, half on pairs of this round, half on those of the last rounds.

It begins with pairs that have one open box between them and goes backwards to two empty cards; then come own games.
Where nobody has more than one open box the truth is a table (`kismet_env.endgame`), on which all the rest stands.
What judges is a running average of the network that learns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.regression import RoundLearner, check_learning
from agents.run import Run, arithmetic
from kismet_env.batch import Batch
from kismet_env.bots import make
from kismet_env.bots.pair_value import PairPlayer, shown
from kismet_env.card_pair import CERTAIN, LEAD, OTHER, Pairs, pair_after
from kismet_env.contest import play_contest
from kismet_env.dice import KEEP_AND_ONE, NUM_DICE, NUM_FACES, NUM_REROLL_KEEPS, NUM_ROLLS, ROLL_PROBABILITY
from kismet_env.engine import ALL_BOXES, ROLLS_PER_TURN
from kismet_env.evaluation import SELECTION_DICE
from kismet_env.jit import Table, compiled
from kismet_env.observation import PAIR, pair_layout
from kismet_env.policy_file import Network, Policy
from kismet_env.provenance import Provenance
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import Record
from kismet_env.turn import CARDS_AT_ONCE, allow, best_action, new_plan, plan_card
from kismet_env.win_chance import SCALE

Shares = npt.NDArray[np.float64]
"""Shares of the win of those who are to move, (N,)."""
_STAGES = 2 * NUM_BOXES  # how many boxes are filled before a turn: 0 to 29
_UNIT = "% of wins"


@dataclass(frozen=True)
class Config:
    """Train a network that judges pairs of cards before a turn, in games of two; the dice of a turn are exact."""

    steps: int | None = 3_000_000
    """Length of the run in turns worked out, rounded up to whole rounds; None: no limit."""
    minutes: float | None = None
    """Length of the run in minutes on the clock; None: no limit. The earlier of both counts."""
    seed: int = 0
    """Seed of the network and of the training dice, from 0 up."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    backwards_share: float = 0.5
    """Share of the run that goes backwards, in as many stages as two cards have boxes."""
    games: int = 1500
    """Own games of a round, half of them from dealt pairs with any number of filled boxes; and the pairs dealt in a
    round are as many as so many whole games have."""
    spread: float = 1.2
    """Leads of dealt pairs are drawn about that at which both have the same to expect, with this many standard
    deviations of what is to come."""
    td_lambda: float = 0.5
    """Between TD(0), which trusts the shares of the pairs after a turn, and all the rest of an own game (1)."""
    updates: int = 500
    """Steps of Adam in a round."""
    batch_size: int = 2048
    """Pairs behind one gradient."""
    memory: int = 1_500_000
    """Pairs kept from the last rounds; to go backwards asks for those of all stages."""
    learning_rate: float = 2e-3
    """Of Adam, at the start; falls linearly to 0 from the beginning of own games to the end of the run."""
    averaging: float = 0.995
    """Weight of the past in the running average of the network, after every step of Adam."""
    hidden_sizes: tuple[int, ...] = (128, 64)
    """Widths of the hidden layers."""
    selection_deals: int = 512
    """Deals, two games each, against win_probability by which the best policy of the run is chosen, own dice."""
    selection_every: int = 10
    """Rounds between two such evaluations, which begin with own games."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints, at most so many are lost when the run is killed."""
    threads: int | None = None
    """Threads of the network's arithmetic; None: one for each core. On a busy machine 1 is faster."""

    def __post_init__(self) -> None:
        check_learning(self, pair_layout(self.rules).size, selection="selection_deals", above_0="spread")

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return Provenance.of(
            "selfplay", rules=self.rules, seed=self.seed, observation=PAIR, num_players=2, config=asdict(self)
        )


def train(config: Config, run: Run) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`."""
    with arithmetic(config.threads), run:
        run.train(Learner(config, run), unit=_UNIT)


class Judge(PairPlayer):
    """Judges pairs by a network in torch, which does not change meanwhile."""

    def __init__(self, rules: Rules, network: nn.Module) -> None:
        super().__init__(rules)
        self._network = network

    def correct(self, seen: npt.NDArray[np.float32]) -> Shares:
        """Return what the network adds to the logits, (N,)."""
        with torch.no_grad():
            return np.asarray(self._network(torch.from_numpy(seen))[:, 0].double().numpy())

    def lessons(self, pairs: Pairs, chance: np.random.Generator, td_lambda: float) -> tuple[Pairs, Shares, float]:
        """Play games from `pairs` to their ends; return the pairs they meet, what these are worth, and a score.

        Worth is TD(lambda) without luck: what the turns of a game were worth beyond the shares of their pairs. The
        score is the mean share of the win that those who begin get, without luck, whatever lambda is.
        """
        games, rows, mover = len(pairs), np.arange(len(pairs)), np.ones(len(pairs))
        met, movers = np.zeros((games, _STAGES), np.bool_), np.zeros((games, _STAGES))
        all_pairs, shares, beyond = np.zeros((games, _STAGES, 7), np.int64), np.zeros(met.shape), np.zeros(met.shape)
        while rows.size:
            place = rows, _filled_boxes(pairs)
            turns, after, following = self.play(pairs, chance)
            met[place], movers[place], all_pairs[place], shares[place] = True, mover, pairs, self.shares(pairs)
            beyond[place] = mover * (turns - shares[place])  # as he who began the game counts
            goes_on = following != 0
            mover, rows, pairs = (mover * following)[goes_on], rows[goes_on], after[goes_on]
        score = shares[np.arange(games), met.argmax(1)] + beyond.sum(1)
        for stage in range(_STAGES - 2, -1, -1):  # a forced zero skips a stage, and what is skipped is no step
            later = beyond[:, stage + 1]
            beyond[:, stage] += np.where(met[:, stage], td_lambda, 1.0) * later
        return all_pairs[met], (shares + movers * beyond)[met], float(score.mean())

    def play(self, pairs: Pairs, chance: np.random.Generator) -> tuple[Shares, Pairs, npt.NDArray[np.int64]]:
        """Play a turn on each of `pairs`: what it was worth before the dice, the pairs after it, see `pair_after`."""
        dice = chance.integers(0, NUM_FACES, (len(pairs), ROLLS_PER_TURN, NUM_DICE), np.int8)
        turns, after, following = np.empty(len(pairs)), np.empty_like(pairs), np.empty(len(pairs), np.int64)
        worths = np.empty((min(CARDS_AT_ONCE, len(pairs)), NUM_BOXES, NUM_ROLLS))
        for first in range(0, len(pairs), CARDS_AT_ONCE):
            some = slice(first, first + CARDS_AT_ONCE)
            self.write_worths(pairs[some], worths[: len(pairs[some])])
            _play_turns(self.tables, pairs[some], worths, dice[some], turns[some], after[some], following[some])
        return turns / SCALE, after, following


@compiled
def _play_turns(
    tables_array: Record, pairs: Table, worths: Table, dice: Table, turns: Table, after: Table, following: Table
) -> None:
    """Play a turn on each of `pairs` with `dice` (N, 3, 5), by what filling boxes is worth; see Judge.play."""
    tables, plan = tables_array[0], new_plan()
    for index in range(len(pairs)):
        filled, worth = pairs[index, 0], worths[index]
        allow(tables, filled, pairs[index, 2] != 0, plan)
        plan_card(filled, worth, plan)
        turns[index] = 0.0
        for roll in range(NUM_ROLLS):
            turns[index] += ROLL_PROBABILITY[roll] * plan.roll_values[-1, roll]
        action, left, roll = 0, ROLLS_PER_TURN, 0
        while action < NUM_REROLL_KEEPS:
            keep, die, left = action, 0, left - 1
            while keep < NUM_REROLL_KEEPS:
                keep = KEEP_AND_ONE[keep, dice[index, left, die]]
                die += 1
            roll = keep - NUM_REROLL_KEEPS
            action = best_action(filled, worth, plan, left, roll)
        following[index] = pair_after(tables, pairs[index], roll, action - NUM_REROLL_KEEPS, after[index])


class Learner(RoundLearner[Config]):
    """Everything that changes in the course of a run."""

    def __init__(self, config: Config, run: Run) -> None:
        sizes = (pair_layout(config.rules).size, *config.hidden_sizes, 1)
        # The network begins as that of one who believes the prior.
        super().__init__(config, run, sizes, columns=7, unit=100.0)

    def dealt_lessons(self, share_done: float, chance: np.random.Generator) -> tuple[Pairs, Shares]:
        """Return dealt pairs with as many filled boxes as it is time for, and what their turns are worth."""
        filled = _STAGES - 1 - int(_STAGES * share_done)
        pairs = self.dealt(self.config.games * _STAGES, filled, chance)
        return pairs, self.judge().turns(pairs)

    def own_lessons(self, chance: np.random.Generator) -> tuple[Pairs, Shares, float]:
        """Return the pairs of own games, what they are worth, and how often, in %, those who begin a whole game win."""
        games, td_lambda, judge = self.config.games, self.config.td_lambda, self.judge()
        half = games // 2
        counts = np.bincount(chance.integers(0, _STAGES - 2, games - half), minlength=_STAGES)
        dealt = np.concatenate([self.dealt(count, filled, chance) for filled, count in enumerate(counts) if count])
        *new_lessons, mean_share = judge.lessons(np.zeros((half, 7), np.int64), chance, td_lambda)
        both = zip(new_lessons, judge.lessons(dealt, chance, td_lambda)[:2], strict=True)
        pairs, targets = (np.concatenate(each) for each in both)
        return pairs, targets, 100 * mean_share

    def judge(self) -> Judge:
        """Return the player as he judges now."""
        return Judge(self.config.rules, self.learned.average)

    def dealt(self, count: int, filled: int, chance: np.random.Generator) -> Pairs:
        """Return pairs with so many boxes `filled`, plausible cards that either player has a chance to win with."""
        rules, columns = self.config.rules, []
        for boxes in (filled // 2, filled - filled // 2):
            if boxes == NUM_BOXES:
                columns.append(np.broadcast_to([ALL_BOXES, 0, 0], (count, 3)))
                continue
            batch = Batch(count, rules=rules, start=f"open:{NUM_BOXES - boxes}")
            batch.deal_keys(self.new_keys(count))
            decision = batch.decisions()
            columns.append(np.stack([decision.filled, decision.basic_total, decision.armed], axis=1))
        pairs = np.concatenate([*columns, np.zeros((count, 1), np.int64)], axis=1)
        seen, _ = shown(rules, pairs)
        places = pair_layout(rules).slices
        mean, sd, other_mean, other_sd = (
            100.0 * seen[:, places[name].start] for name in ("mean", "sd", "other_mean", "other_sd")
        )
        reach = self.config.spread * np.sqrt(sd**2 + other_sd**2) * chance.standard_normal(count)
        pairs[:, LEAD] = np.rint(other_mean - mean + reach)
        return pairs

    def loss(self, positions: Pairs, targets: Shares) -> Tensor:
        """Return the mean of the squared errors in shares of the win."""
        seen, priors = shown(self.config.rules, positions)
        prior = torch.from_numpy(priors.clip(CERTAIN, 1 - CERTAIN).astype(np.float32)).logit()
        share = torch.sigmoid(prior + self.learned.network(torch.from_numpy(seen))[:, 0])
        return (share - torch.from_numpy(targets.astype(np.float32))).square().mean()

    def selection_score(self) -> float:
        """Return the win rate against win_probability without luck, in %."""
        players = [self.judge(), make("win_probability", self.config.rules)]
        contest = play_contest(
            players, self.config.selection_deals, seed=0, rules=self.config.rules, domain=SELECTION_DICE
        )
        assert contest.adjusted is not None
        return 100 * float(contest.adjusted[:, :, 0].mean())

    def portable(self) -> Policy:
        """Return what has been learned, to be played without torch."""
        return Policy("pair_value", Network(self.learned.layers(), "silu"), self.config.provenance())


def _filled_boxes(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Return how many boxes of both cards are filled, (N,)."""
    boxes = np.arange(NUM_BOXES)
    return ((pairs[:, [0, OTHER], None] >> boxes) & 1).sum((1, 2))
