"""A portable policy: a network and where it comes from, in one file, played by numpy alone.

The file is a .safetensors file, in which nothing can be executed. Its texts are

    format        POLICY_FORMAT
    kind          actor: observation, of solitaire or of a match -> a logit for every action
                  card_value: a card, as `observation.card_layout` has it -> the points still to come
                  pair_value: two cards before a turn, as `observation.pair_layout` has them -> what to add to the
                              logit of the prior chance to win of him who is to move, see `card_pair`
    architecture  JSON: layer_sizes, from the inputs to the outputs, and the activation between layers
    provenance    JSON: rules, layout, numbering of the actions, recipe, seed and versions, see `Provenance`

and its arrays are the weights of each layer, "layers.0.weight" (outputs, inputs) and "layers.0.bias" (outputs,) and so
on, float32. All of that is checked before any weight is read.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.actions import actions_of
from kismet_env.observation import CARD, PAIR
from kismet_env.provenance import Provenance, layout_read
from kismet_env.rules import Rules
from kismet_env.tensor_file import Header, read_array, read_header, save_arrays

POLICY_FORMAT = "kismet-env policy 1"
"""Raised whenever files are written that older versions would read wrongly."""
KINDS = {"actor": ("features", "raw"), "card_value": (CARD,), "pair_value": (PAIR,)}
"""Kind of policy -> the forms of what it can read."""
MOST_WEIGHTS = 1 << 24
"""Of all layers together: a hundred times what has been of use."""
_MOST_WIDTH = 1 << 16
_MOST_LAYERS = 7  # through more of them the largest weights could take float64 to infinity
_LONGEST_REASON = 400  # characters of an error

Numbers = npt.NDArray[np.float64]


def _silu(x: Numbers) -> Numbers:
    return x * (0.5 + 0.5 * np.tanh(0.5 * x))  # x / (1 + exp(-x)), without its overflow


def _relu(x: Numbers) -> Numbers:
    return np.maximum(x, 0.0)


def _tanh(x: Numbers) -> Numbers:
    return np.tanh(x)


ACTIVATIONS: dict[str, Callable[[Numbers], Numbers]] = {"silu": _silu, "relu": _relu, "tanh": _tanh}


class Network:
    """Layers of numbers, one feeding the next, with an activation between them.

    Args:
        layers: (weight (outputs, inputs), bias (outputs,)) of each layer, as torch has them.
        activation: a name of ACTIVATIONS.

    Weights are those of float32, sums are made in float64: in which order they are added up, which depends on the
    size of the batch, then decides nothing. Raises ValueError for layers that do not fit together.
    """

    def __init__(self, layers: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]], activation: str) -> None:
        self.layers = [(_widened(weight), _widened(bias)) for weight, bias in layers]
        self.activation = activation
        self.sizes = (
            *(weight.shape[1] if weight.ndim == 2 else 0 for weight, _ in self.layers),
            *(bias.size for _, bias in self.layers[-1:]),
        )
        check_architecture(self.sizes, activation)
        for index, ((weight, bias), (inputs, outputs)) in enumerate(
            zip(self.layers, pairwise(self.sizes), strict=True)
        ):
            if weight.shape != (outputs, inputs) or bias.shape != (outputs,):
                raise ValueError(
                    f"layer {index} with a weight {weight.shape} and a bias {bias.shape} does not lead "
                    f"from {inputs} numbers to {outputs}"
                )
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise ValueError(f"layer {index} holds weights that are not finite numbers; the training has diverged")

    def __call__(self, inputs: npt.NDArray[np.floating]) -> Numbers:
        """Return the outputs (N, outputs) of `inputs` (N, inputs)."""
        *hidden, (last_weight, last_bias) = self.layers
        activate = ACTIVATIONS[self.activation]
        x = inputs.astype(np.float64)
        for weight, bias in hidden:
            x = activate(x @ weight.T + bias)
        outputs: Numbers = x @ last_weight.T + last_bias
        return outputs


def _widened(weights: npt.ArrayLike) -> Numbers:
    return np.asarray(weights, np.float32).astype(np.float64)


class Policy(NamedTuple):
    """What a policy file holds."""

    kind: str  # actor | card_value
    network: Network
    provenance: Provenance


def save_policy(path: str | os.PathLike[str], policy: Policy) -> None:
    """Write `policy` to `path` atomically; ValueError for one that could not be loaded, OSError where it fails."""
    network = policy.network
    _check_use(policy.kind, network.sizes, policy.provenance)
    arrays = {name: array.astype(np.float32) for name, array in _named(network.layers)}
    texts = {
        "format": POLICY_FORMAT,
        "kind": policy.kind,
        "architecture": json.dumps({"layer_sizes": network.sizes, "activation": network.activation}),
        "provenance": policy.provenance.to_json(),
    }
    save_arrays(Path(path), arrays, texts)


def load_policy(path: str | os.PathLike[str], rules: Rules | Mapping[str, Any] | str | None = None) -> Policy:
    """Return the policy in the file at `path`, which is to play under `rules`.

    Raises ValueError, in one line that names the path, for a file that is missing or damaged, is of another
    format, or was trained for other rules or observations.
    """
    rules = Rules.of(rules)
    if not Path(path).is_file():
        raise ValueError(f"no file {str(path)!r}; give the path of a policy, a .safetensors file")
    try:
        with Path(path).open("rb") as file:
            header = read_header(file)
            kind, activation, provenance = _checked(header, rules)
            arrays = {name: read_array(file, stored) for name, stored in header.arrays.items()}
        names = map(_names, range(len(arrays) // 2))
        layers = [(arrays[weight], arrays[bias]) for weight, bias in names]
        return Policy(kind, Network(layers, activation), provenance)
    except (ValueError, OSError, RecursionError) as error:  # the last: what is nested deeply cannot even be shown
        reason = textwrap.shorten(str(error), _LONGEST_REASON)
        harmless = reason.encode("unicode_escape").decode("ascii")  # to a terminal: the file may have named anything
        raise ValueError(f"{str(path)!r}: {harmless}") from None


def _checked(header: Header, rules: Rules) -> tuple[str, str, Provenance]:
    """Return (kind, activation, provenance) of a file whose header fits itself, this version and `rules`."""
    texts = header.texts
    if texts.get("format") != POLICY_FORMAT:
        raise ValueError(f"the file has the format {short(texts.get('format'))}, this version reads {POLICY_FORMAT!r}")
    if missing := {"kind", "architecture", "provenance"} - set(texts):
        raise ValueError(f"the file says nothing of its {' and '.join(sorted(missing))}")
    sizes, activation = _architecture(texts["architecture"])
    provenance = Provenance.from_json(texts["provenance"])
    provenance.check(rules)
    _check_use(texts["kind"], sizes, provenance)
    expected: dict[str, tuple[int, ...]] = {}
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        weight, bias = _names(index)
        expected |= {weight: (outputs, inputs), bias: (outputs,)}
    if set(header.arrays) != set(expected):
        odd = sorted(set(header.arrays) ^ set(expected))
        raise ValueError(f"the arrays are not those of {len(sizes) - 1} layers; too much or missing: {short(odd)}")
    for name, stored in header.arrays.items():
        if stored.dtype != np.float32:
            raise ValueError(f"array {name} is of type {stored.dtype}, not float32")
        if stored.shape != expected[name]:
            raise ValueError(f"array {name} is of shape {stored.shape}, the architecture has {expected[name]}")
    return texts["kind"], activation, provenance


def _architecture(text: str) -> tuple[tuple[int, ...], str]:
    """Return layer sizes and activation from JSON."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("the architecture is not JSON") from None
    match values:
        case {"layer_sizes": [*sizes], "activation": str(activation)} if len(values) == 2:
            check_architecture(sizes, activation)
            return tuple(sizes), activation
    raise ValueError("the architecture is not one of layer_sizes and activation")


def check_architecture(sizes: Sequence[Any], activation: str) -> None:
    """Raise ValueError unless a network of these sizes, from the inputs to the outputs, can be kept in a file."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation {short(activation)} is not one of {', '.join(ACTIVATIONS)}")
    if not 1 <= len(sizes) - 1 <= _MOST_LAYERS:
        raise ValueError(f"the network has {len(sizes) - 1} layers, not 1 to {_MOST_LAYERS}")
    if not all(type(size) is int and 1 <= size <= _MOST_WIDTH for size in sizes):
        raise ValueError(f"layer_sizes {short(sizes)} are not whole numbers from 1 to {_MOST_WIDTH:,}")
    num_weights = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes))
    if num_weights > MOST_WEIGHTS:
        raise ValueError(f"the network has {num_weights:,} weights, at most {MOST_WEIGHTS:,} are loaded")


def _check_use(kind: str, sizes: Sequence[int], provenance: Provenance) -> None:
    """Raise ValueError unless a network of these sizes reads and says what a policy of this kind does."""
    if kind not in KINDS:
        raise ValueError(f"kind {short(kind)} is not one of {', '.join(KINDS)}")
    played_by = {"card_value": 1, "pair_value": 2}.get(kind, provenance.num_players)
    if provenance.num_players != played_by:
        are_for = "solitaire" if played_by == 1 else "two players"
        raise ValueError(f"the policy is for games of {provenance.num_players} players, kind {kind} is for {are_for}")
    if provenance.observation not in KINDS[kind]:
        valid = ", ".join(KINDS[kind])
        raise ValueError(f"a policy of kind {kind} reads {valid}, not observation={provenance.observation!r}")
    inputs = layout_read(provenance.rules, provenance.num_players, provenance.observation).size
    outputs = actions_of(provenance.actions).num_actions if kind == "actor" else 1
    if (sizes[0], sizes[-1]) != (inputs, outputs):
        raise ValueError(
            f"the network leads from {sizes[0]} numbers to {sizes[-1]}, a policy of kind {kind} on "
            f"observation={provenance.observation}, actions={provenance.actions} from {inputs} to {outputs}"
        )


def _names(layer: int) -> tuple[str, str]:
    return f"layers.{layer}.weight", f"layers.{layer}.bias"


def _named(layers: Iterable[tuple[Numbers, Numbers]]) -> Iterable[tuple[str, Numbers]]:
    for index, layer in enumerate(layers):
        yield from zip(_names(index), layer, strict=True)
