"""Values of afterstates: a small network learns what a card is still worth after a move (Sutton and Barto, 6.8).

The dice inside a turn need no learning: whoever knows what the cards after it are worth plays it best by exact
expectation (`kismet_env.turn`), and the mean of that is what the card before it is worth. So a round of learning is

    1. cards to learn from: dealt with so many boxes open, or met in own games;
    2. for each of them what its turn is worth by exact expectation, with the network's values of the cards after it;
       in own games also what later turns are worth beyond these values, TD(lambda). What the dice of a game brought
       beyond their expectation is known, and left out: that is luck;
    3. some hundred steps of Adam towards these values, half on cards of this round, half on those of the last rounds.

"backwards" begins with cards with one open box, which need no values at all, and goes on to two, three, ..., to the
empty sheet, then to own games; "selfplay" knows own games alone. What judges is a running average of the network that
learns, whose last few steps would else be noise. No exact value of the game is used anywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from agents.regression import RoundLearner, check_learning
from agents.run import Run, arithmetic
from kismet_env.batch import Batch
from kismet_env.bots.card_value import CardPlayer
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.evaluation import SELECTION_DICE, game_keys
from kismet_env.observation import CARD, Decision, card_layout, observe_cards
from kismet_env.policy_file import Network, Policy
from kismet_env.provenance import Provenance
from kismet_env.rules import NUM_BOXES, Rules
from kismet_env.tables import tables_of
from kismet_env.turn import card_values

Cards = npt.NDArray[np.int64]
"""Rows (filled, basic_total, armed), (C, 3)."""
Values = npt.NDArray[np.float64]
"""Points still to come, (C,)."""


@dataclass(frozen=True)
class Config:
    """Train a network that judges cards after a move; the dice inside a turn are exact expectations."""

    steps: int | None = 1_800_000
    """Length of the run in turns worked out, rounded up to whole rounds; None: no limit."""
    minutes: float | None = None
    """Length of the run in minutes on the clock; None: no limit. The earlier of both counts."""
    seed: int = 0
    """Seed of the network and of the training dice, from 0 up."""
    rules: Rules = field(default_factory=Rules)
    """Rules of the game."""
    order: Literal["backwards", "selfplay"] = "backwards"
    """Which cards are learned from: dealt ones backwards, then those of own games from an empty sheet and from dealt
    ones; or own games from an empty sheet alone, from the beginning."""
    backwards_share: float = 0.5
    """Share of the run that goes backwards, in as many stages as there are boxes."""
    games: int = 4000
    """Own games of a round, of which "backwards" begins half from dealt cards with any number of open boxes; and the
    cards dealt in a round are as many as so many whole games have."""
    td_lambda: float = 0.5
    """Between TD(0), which trusts the values of the cards after a turn, and all the rest of an own game (1)."""
    updates: int = 500
    """Steps of Adam in a round."""
    batch_size: int = 2048
    """Cards behind one gradient."""
    memory: int = 900_000
    """Cards kept from the last rounds; to go backwards asks for those of all stages."""
    learning_rate: float = 2e-3
    """Of Adam, at the start; falls linearly to 0 from the beginning of own games to the end of the run."""
    averaging: float = 0.99
    """Weight of the past in the running average of the network, after every step of Adam."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""
    points_per_unit: float = 100.0
    """Values are learned divided by this, so that they are of the order of 1."""
    selection_games: int = 2048
    """Games by which the best policy of the run is chosen, dice of their own."""
    selection_every: int = 5
    """Rounds between two such evaluations, which begin with own games."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints, at most so many are lost when the run is killed."""
    threads: int | None = None
    """Threads of the network's arithmetic; None: one for each core. On a busy machine 1 is faster."""

    def __post_init__(self) -> None:
        check_learning(self, card_layout(self.rules).size, selection="selection_games", above_0="points_per_unit")

    def provenance(self) -> Provenance:
        """Return where the policies of these options come from."""
        return Provenance.of("afterstate", rules=self.rules, seed=self.seed, observation=CARD, config=asdict(self))


def train(config: Config, run: Run) -> None:
    """Train until the run is over or interrupted; the policies and all that is told are in the folder of `run`."""
    with arithmetic(config.threads), run:
        run.train(Learner(config, run))


class Judge(CardPlayer):
    """Judges cards by a network in torch, which does not change meanwhile."""

    def __init__(self, rules: Rules, network: nn.Module, points_per_unit: float) -> None:
        super().__init__(rules)
        self._network, self._points_per_unit = network, points_per_unit

    def judge(self, cards: Cards) -> Values:
        """Return the points that the network expects on `cards`, (C,)."""
        with torch.no_grad():
            judged = self._network(_shown(self._rules, cards))[:, 0]
        return np.asarray(judged.double().numpy() * self._points_per_unit)

    def turns(self, cards: Cards) -> Values:
        """Return what the best turn on each of `cards` brings and what follows it, by these values, (C,)."""
        distinct, where = np.unique(cards, axis=0, return_inverse=True)
        return card_values(self._tables, distinct, self.write_worths)[where.reshape(-1)]

    def surprises(self, games: Games) -> npt.NDArray[np.float64]:
        """Return by how much the turns on the cards that games have met exceed his values of these cards, (G, 15).

        A game's score without its luck, what its turns brought beyond their expectation, is what he expects at its
        start and the sum of these. Its mean is that of his play, whatever his values are: luck has the mean 0.
        """
        beyond = np.zeros(games.met.shape)
        cards = games.cards[games.met]
        beyond[games.met] = self.turns(cards) - self.values(cards)
        return beyond

    def lessons(self, games: Games, td_lambda: float) -> tuple[Cards, Values]:
        """Return the cards that games have met, (C, 3), and what they are worth by TD(lambda) without luck, (C,)."""
        beyond = self.surprises(games)
        for filled in range(NUM_BOXES - 2, -1, -1):
            beyond[:, filled] += td_lambda * beyond[:, filled + 1]
        cards = games.cards[games.met]
        return cards, self.values(cards) + beyond[games.met]


class Learner(RoundLearner[Config]):
    """Everything that changes in the course of a run."""

    def __init__(self, config: Config, run: Run) -> None:
        sizes = (card_layout(config.rules).size, *config.hidden_sizes, 1)
        # The network begins as that of one who plays every turn for its own points.
        super().__init__(config, run, sizes, columns=3, unit=config.points_per_unit)

    @property
    def backwards_share(self) -> float:
        """Share of the run that goes backwards."""
        return self.config.backwards_share if self.config.order == "backwards" else 0.0

    def dealt_lessons(self, share_done: float, chance: np.random.Generator) -> tuple[Cards, Values]:
        """Return dealt cards with as many open boxes as it is time for, and what their turns are worth."""
        start = f"open:{1 + int(NUM_BOXES * share_done)}"
        batch = Batch(NUM_BOXES * self.config.games, rules=self.config.rules, start=start)
        batch.deal_keys(self.new_keys(batch.num_games))
        cards = _cards_of(batch.decisions())
        return cards, self.judge().turns(cards)

    def own_lessons(self, chance: np.random.Generator) -> tuple[Cards, Values, float]:
        """Return the cards of own games, what they are worth, and the mean score of whole games."""
        config, judge, starts = self.config, self.judge(), ("full", "uniform") if self.backwards_share else ("full",)
        played = [
            play(judge, self.new_keys(config.games // len(starts)), config.rules, start=start) for start in starts
        ]
        cards, worths = zip(*(judge.lessons(games, config.td_lambda) for games in played), strict=True)
        return np.concatenate(cards), np.concatenate(worths), played[0].mean

    def judge(self) -> Judge:
        """Return the player as he judges now."""
        return Judge(self.config.rules, self.learned.average, self.config.points_per_unit)

    def loss(self, positions: Cards, targets: Values) -> Tensor:
        """Return the mean of the squared errors of the network, in its own unit."""
        wanted = torch.from_numpy((targets / self.config.points_per_unit).astype(np.float32))
        return (self.learned.network(_shown(self.config.rules, positions))[:, 0] - wanted).square().mean()

    def selection_score(self) -> float:
        """Return the mean score, in points, in the selection games, without luck."""
        judge = self.judge()
        games = play(judge, game_keys(SELECTION_DICE, 0, range(self.config.selection_games)), self.config.rules)
        return float(judge.values(games.cards[:1, 0])[0] + judge.surprises(games).sum(1).mean())

    def portable(self) -> Policy:
        """Return what has been learned, to be played without torch."""
        *layers, (weight, bias) = ((weight.astype(float), bias.astype(float)) for weight, bias in self.learned.layers())
        scale = self.config.points_per_unit
        return Policy(
            "card_value", Network([*layers, (weight * scale, bias * scale)], "silu"), self.config.provenance()
        )


class Games(NamedTuple):
    """The cards that G games have met before the first roll of a turn."""

    cards: Cards  # [game, boxes filled] (G, 15, 3)
    met: npt.NDArray[np.bool_]  # (G, 15): false where a game began with more boxes filled
    mean: float  # score


def play(player: CardPlayer, keys: npt.NDArray[np.uint64], rules: Rules, *, start: str = "full") -> Games:
    """Play the games of `keys` (G,) from `start`."""
    batch = Batch(len(keys), rules=rules, start=start)
    cards, met = np.zeros((len(keys), NUM_BOXES, 3), np.int64), np.zeros((len(keys), NUM_BOXES), np.bool_)
    seen, going_on = batch.deal_keys(keys), np.arange(len(keys))
    while going_on.size:
        decision = batch.decisions(going_on)
        begins = decision.rolls_left == ROLLS_PER_TURN - 1
        begun = _cards_of(decision)[begins]
        place = going_on[begins], (begun[:, :1] >> np.arange(NUM_BOXES) & 1).sum(1)
        cards[place], met[place] = begun, True
        seen = batch.step(player.act(seen.observations, seen.masks), only=going_on)
        goes_on = ~seen.terminated
        seen = seen._replace(observations=seen.observations[goes_on], masks=seen.masks[goes_on])
        going_on = going_on[goes_on]
    return Games(cards, met, float(batch.state.cards["total"].mean()))


def _cards_of(decision: Decision) -> Cards:
    return np.stack([decision.filled, decision.basic_total, decision.armed], axis=1)


def _shown(rules: Rules, cards: Cards) -> Tensor:
    """Return what the network sees of `cards`, (C, D) float32."""
    shown = np.empty((len(cards), card_layout(rules).size), np.float32)
    observe_cards(tables_of(rules), cards, shown)
    return torch.from_numpy(shown)
