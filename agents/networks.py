"""The networks of the learners: how they are made, what they may be, and how players without torch get them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from reprlib import repr as short
from typing import Any

import numpy.typing as npt
from torch import Tensor, nn

from kismet_env.policy_file import check_architecture

_MOST_WEIGHT = 1e6  # a thousand times those of any network that plays; far larger ones take float32 to infinity


def check_widths(inputs: int, hidden_sizes: Sequence[int], outputs: int) -> None:
    """Raise ValueError unless a network with such hidden layers can be kept in a policy file."""
    try:
        check_architecture((inputs, *hidden_sizes, outputs), "silu")
    except ValueError as error:
        raise ValueError(f"hidden_sizes={short(hidden_sizes)}: {error}") from None


def dense(sizes: Sequence[int]) -> nn.Sequential:
    """Return a network of these sizes, from the inputs to the outputs, with SiLU between its layers."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def layers_of(modules: Iterable[nn.Module]) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Return weight and bias of each layer among `modules`, as `policy_file.Network` takes them."""
    return [
        (module.weight.numpy(force=True), module.bias.numpy(force=True))
        for module in modules
        if isinstance(module, nn.Linear)
    ]


def has_diverged(weights: Iterable[Tensor]) -> bool:
    """Return whether there are weights far from those of any network that plays."""
    return not all((each.abs() <= _MOST_WEIGHT).all() for each in weights)
