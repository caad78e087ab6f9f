"""Portable policies as players: without torch, as their models play, by the rules, and as good as what they hold."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaluate
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.bots import MostProbable, Player, StochasticPlayer, TurnPlayer, make
from kismet_env.bots.card_value import CardValue
from kismet_env.cards import CardNumbers
from kismet_env.command_line import WRONG_INPUT, run
from kismet_env.evaluation import play
from kismet_env.observation import card_layout, decode, observe_cards
from kismet_env.policy_file import Network, Policy, save_policy
from kismet_env.provenance import Provenance, layout_read
from kismet_env.rules import SUITE, Box, Rules
from kismet_env.solver import solve
from kismet_env.tables import tables_of

ROOT = Path(__file__).parent.parent
FORMS = [("features", "keeps"), ("features", "holds"), ("raw", "keeps"), ("raw", "holds")]
KEEPS = actions_of("keeps")
COUNT = 512


def decisions(rules: Rules | None = None, *, count: int = COUNT, num_players: int = 1) -> Batch:
    """A batch of games of all lengths, in the middle of a turn, some of them over."""
    batch = Batch(count, num_players, rules=rules, start="uniform")
    batch.seed(range(count))
    seen, chance = batch.deal(), np.random.default_rng(0)
    for _ in range(4):
        seen = batch.step((chance.random(seen.masks.shape) * seen.masks).argmax(1))
    return batch


def policy(
    kind: str,
    observation: str,
    actions: str = "keeps",
    *,
    rules: Rules | None = None,
    layers: Any = None,
    num_players: int = 1,
) -> Policy:
    """A policy; without `layers` one with strong opinions of its own."""
    form = {"observation": observation, "actions": actions, "num_players": num_players}
    provenance = Provenance.of("test", rules=rules or Rules(), seed=0, **form)
    if layers is None:
        inputs = layout_read(provenance.rules, num_players, observation).size
        outputs = actions_of(actions).num_actions if kind == "actor" else 1
        rng = np.random.default_rng(0)
        layers = [
            (rng.normal(size=(32, inputs)), rng.normal(size=32)),
            (rng.normal(size=(outputs, 32)), rng.normal(size=outputs)),
        ]
    return Policy(kind, Network(layers, "silu"), provenance)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A policy file for each form of observations and actions, and one that judges cards."""
    folder = tmp_path_factory.mktemp("policies")
    policies = {f"{observation}_{actions}": policy("actor", observation, actions) for observation, actions in FORMS}
    policies["card_value"] = policy("card_value", "card")
    for name, each in policies.items():
        save_policy(folder / f"{name}.safetensors", each)
    return {name: folder / f"{name}.safetensors" for name in policies}


NAMES = [*(f"{observation}_{actions}" for observation, actions in FORMS), "card_value"]
ALL = [*(f"{name}{lots}" for name in NAMES[:-1] for lots in ("", ":sample")), "card_value"]


def player(files: dict[str, Path], name: str) -> Player:
    file, colon, lots = name.partition(":")
    return make(f"policy:{files[file]}{colon}{lots}")


@pytest.mark.parametrize("name", ALL)
def test_they_play_legal_actions_and_each_row_by_itself(files: dict[str, Path], name: str) -> None:
    batch, each = decisions(), player(files, name)
    seen, u = batch.look(), batch.choice_shares()
    together = each.act(seen.observations, seen.masks, u)
    assert (seen.masks[np.arange(COUNT), together] == 1)[~batch.over].all()
    for rows in np.array_split(np.random.default_rng(0).permutation(COUNT), 9):
        assert (each.act(seen.observations[rows], seen.masks[rows], u[rows]) == together[rows]).all()


@pytest.mark.parametrize("name", ALL)
def test_they_sit_in_matches_and_play_as_if_alone(files: dict[str, Path], name: str) -> None:
    batch, each = decisions(num_players=3), player(files, name)
    seen, u = batch.look(), batch.choice_shares()
    own_block = seen.observations[:, : Batch(1).layout.size]
    assert (each.act(seen.observations, seen.masks, u) == each.act(own_block, seen.masks, u)).all()
    waiting = batch.look(seats=(batch.state.games["player"] + 1) % 3)  # nothing is legal: any action may come back
    assert each.act(waiting.observations, waiting.masks, u).shape == (COUNT,)


@pytest.mark.parametrize(("observation", "actions"), FORMS)
def test_who_has_learned_matches_sees_the_others_and_sits_at_such_tables_alone(
    observation: str, actions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned = policy("actor", observation, actions, num_players=3)
    save_policy(tmp_path / "three.safetensors", learned)
    name = f"policy:{tmp_path / 'three.safetensors'}"
    each = make(name)
    theirs, ours = Batch(COUNT, 3, observation=observation, actions=actions, start="uniform"), decisions(num_players=3)
    theirs.restore(ours.save())
    shown, seen = theirs.look(), ours.look()
    theirs.step(np.where(shown.masks, learned.network(shown.observations), -np.inf).argmax(1))
    ours.step(each.act(seen.observations, seen.masks))
    assert (ours.state.cards == theirs.state.cards).all()
    assert (ours.state.games["roll"] == theirs.state.games["roll"]).all()

    hidden = seen.observations.copy()
    hidden[:, -18:] = 0.0
    assert (each.act(hidden, seen.masks) != each.act(seen.observations, seen.masks)).mean() > 0.1
    for count in (1, 2, 4):
        other = decisions(num_players=count).look()
        with pytest.raises(ValueError, match="games of 3 players alone"):
            each.act(other.observations, other.masks)
    for arguments in ([name], ["--versus", name, "greedy"]):
        assert run(evaluate.main, evaluate.Config, arguments) == WRONG_INPUT
        assert "has learned games of 3 players; let it play" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES[:-1])
def test_actors_name_their_probabilities(files: dict[str, Path], name: str) -> None:
    drawing, best = player(files, f"{name}:sample"), player(files, name)
    assert isinstance(drawing, StochasticPlayer)
    assert isinstance(best, MostProbable)
    seen = decisions().look()
    probabilities = drawing.probabilities(seen.observations, seen.masks)
    assert not probabilities[seen.masks == 0].any()
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    assert (best.act(seen.observations, seen.masks) == probabilities.argmax(1)).all()
    sampled, argmax = play(drawing, 40, seed=0), play(best, 40, seed=0)
    assert (sampled.totals != argmax.totals).any()


@pytest.mark.parametrize("name", ALL)
def test_they_can_be_sent_to_another_process(files: dict[str, Path], name: str) -> None:
    each = player(files, name)
    assert (play(pickle.loads(pickle.dumps(each)), 5, seed=0).totals == play(each, 5, seed=0).totals).all()


WITHOUT_TORCH = """
import sys
import numpy as np
sys.modules.update(dict.fromkeys(("torch", "stable_baselines3", "sb3_contrib")))  # importing them is an ImportError
from kismet_env.bots import make
from kismet_env.evaluation import play
print(*(play(make(name), 20, seed=0).totals.sum() for name in sys.argv[1:]))
"""


def test_they_need_no_torch(files: dict[str, Path]) -> None:
    names = [f"policy:{files[name]}" for name in ("features_keeps", "card_value")]
    names.append(f"{names[0]}:sample")
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *names], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(play(make(name), 20, seed=0).totals.sum()) for name in names]


@pytest.mark.parametrize(("observation", "actions"), FORMS)
def test_an_actor_plays_as_its_model_does(tmp_path: Path, observation: str, actions: str) -> None:
    """The same actions in thousands of decisions, but for those that rounding decides; probabilities to 1e-5."""
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("sb3_contrib")
    from kismet_env.sb3 import KismetVecEnv

    env = KismetVecEnv(2, observation=observation, actions=actions)
    model = models.MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=8, seed=0, device="cpu")
    with torch.no_grad():
        model.policy.action_net.weight *= 300
    model.save(tmp_path / "model.zip")
    modules = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    assert {type(module).__name__ for module in modules} == {"Linear", "Tanh"}
    layers = [(each.weight.detach(), each.bias.detach()) for each in modules if hasattr(each, "weight")]
    provenance = policy("actor", observation, actions).provenance
    save_policy(tmp_path / "policy.safetensors", Policy("actor", Network(layers, "tanh"), provenance))

    ours = make(f"policy:{tmp_path / 'policy.safetensors'}:sample")
    theirs = make(f"sb3:{tmp_path / 'model.zip'}:sample", trust=True)
    assert isinstance(ours, StochasticPlayer)
    assert isinstance(theirs, StochasticPlayer)
    batch = decisions(count=5000)
    seen = batch.look(np.flatnonzero(~batch.over))
    one, other = (each.probabilities(seen.observations, seen.masks) for each in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    differ = np.flatnonzero(one.argmax(1) != other.argmax(1))
    assert differ.size <= 5
    for row in differ:
        assert one[row].max() - one[row, other[row].argmax()] < 1e-5, f"row {row}"
    assert len(np.unique(one.argmax(1))) > 20, "the model has opinions"


def test_other_rules_are_refused(files: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="'flat_50' here"):
        make(f"policy:{files['raw_keeps']}", "strict")


# --- card values ---


def judged_by(layers: Any, rules: Rules | None = None) -> CardValue:
    return CardValue(policy("card_value", "card", rules=rules, layers=layers))


def linear(weights: np.ndarray[Any, Any], bias: float = 0.0) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    return [(np.asarray(weights, np.float64)[None, :], np.array([bias]))]


def test_card_values_draw_no_lots(files: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="card_value draws no lots; leave out :sample"):
        make(f"policy:{files['card_value']}:sample")


@pytest.mark.parametrize("variant", [None, "strict", "no_bonus"])
def test_who_expects_nothing_of_any_card_plays_the_turn_alone(variant: str | None) -> None:
    rules = Rules.of(variant)
    batch, greedy = decisions(rules), make("turn_greedy", rules)
    nothing = judged_by(linear(np.zeros(card_layout(rules).size)), rules)
    seen = batch.look()
    actions = nothing.act(seen.observations, seen.masks)
    assert (actions == greedy.act(seen.observations, seen.masks))[~batch.over].all()
    values = nothing.action_values(seen.observations)
    assert ((values > -np.inf) == (seen.masks == 1))[~batch.over].all()


@pytest.mark.parametrize("variant", ["standard", *SUITE, "rolled"])
def test_filling_a_box_is_worth_its_points_and_what_the_network_says_of_the_card_after_it(variant: str) -> None:
    """Against the environment: what it pays for the box, and the card that it shows next."""
    named = {"standard": Rules(), "rolled": Rules(second_kismet="rolled", joker="always")}
    rules = named[variant] if variant in named else SUITE[variant]
    judge = judged_by(None, rules)
    batch = decisions(rules, count=300)
    kismet = 50 if rules.kismet_score == "flat_50" else 65
    joker = {"cards": [{"KISMET": kismet, "SIXES": 12}], "dice": [4] * 5, "rolls_left": 0}
    batch.deal_positions([joker] * 300, np.arange(300) % 10 == 0)
    rows = np.flatnonzero(~batch.over)
    before, seen = batch.save(), batch.look(rows)
    values = judge.action_values(seen.observations)
    best = judge.act(seen.observations, seen.masks)
    assert (values[np.arange(len(rows)), best] >= values.max(1) - 1e-9).all()
    compared = 0
    for box in Box:
        action = KEEPS.box_action(box)
        legal = seen.masks[:, action] == 1
        step = batch.step(np.full(legal.sum(), action), rows[legal])
        following = decode(step.observations)
        shown = np.empty((len(step.observations), card_layout(rules).size), np.float32)
        observe_cards(batch.tables, np.stack([following.filled, following.basic_total, following.armed], 1), shown)
        after = np.where(step.terminated, 0.0, judge._network(shown)[:, 0])
        np.testing.assert_allclose(values[legal, action], step.rewards[:, 0] + after, rtol=1e-12, err_msg=box.name)
        compared += legal.sum()
        batch.restore(before)
    assert compared > 500


def test_with_one_box_left_the_play_is_perfect() -> None:
    """What comes after a full card is nothing, whatever the network says."""
    optimum, judge = solve(), judged_by(None)
    batch = Batch(300, start="open:1")
    batch.seed(range(300))
    seen = batch.deal()
    while not batch.over.all():
        rows = np.flatnonzero(~batch.over)
        actions = judge.act(seen.observations, seen.masks)
        assert (actions[rows] == optimum.best_action(*batch.decisions(rows))).all()
        np.testing.assert_allclose(
            judge.action_values(seen.observations[rows]), optimum.action_values(*batch.decisions(rows)), rtol=1e-12
        )
        seen = batch.step(actions)


def test_fitted_to_the_optimum_it_plays_nearly_as_well() -> None:
    """A network of one layer, by least squares on some of two million exact values."""
    rules, optimum = Rules(), solve()
    cards = np.concatenate(list(CardNumbers(tables_of(rules)).layers()))
    cards = cards[np.random.default_rng(0).integers(len(cards), size=10_000)]
    shown = np.empty((len(cards), card_layout(rules).size), np.float32)
    observe_cards(tables_of(rules), cards, shown)
    *weights, bias = np.linalg.lstsq(np.c_[shown, np.ones(len(cards))], optimum.card_value(*cards.T), rcond=None)[0]
    judge = judged_by(linear(np.array(weights), bias))
    fitted, greedy = play(judge, 300, seed=0).totals.mean(), play(make("turn_greedy"), 300, seed=0).totals.mean()
    assert fitted > 298 > greedy


def test_it_says_how_it_chooses() -> None:
    judge = judged_by(None)
    assert isinstance(judge, TurnPlayer)
    chosen = judge.turn_policy()
    assert chosen.style == "best"
    cards = np.array([[0, 0, 0], [0b111, 6, 0], [0b100000000000000, 0, 1]])
    worths, again = np.zeros((3, 15, 252)), np.zeros((3, 15, 252))  # what is filled stays untouched
    judge.write_worths(cards, worths)
    assert chosen.write_worths is not None
    chosen.write_worths(cards, again)
    assert (worths == again).all()
