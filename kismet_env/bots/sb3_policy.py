"""Plays what a MaskablePPO model of sb3-contrib has learned.

What the model was trained on, its form of observations and its numbering of the actions, is told by its spaces.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kismet_env.actions import NUMBERINGS, actions_of
from kismet_env.bots.network_player import FORMS, NetworkPlayer
from kismet_env.observation import layout_of
from kismet_env.provenance import Provenance
from kismet_env.rules import Rules

if TYPE_CHECKING:
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy


class Sb3Policy(NetworkPlayer):
    """A policy network of sb3-contrib that plays a batch at a time.

    Args:
        policy: the `policy` of a MaskablePPO model for solitaire games.
        rules: those of the games to be played.

    Raises ValueError for a policy whose spaces are those of no solitaire game under `rules`.
    """

    def __init__(self, policy: MaskableActorCriticPolicy, rules: Rules) -> None:
        super().__init__(_form(policy.observation_space, rules), _numbering(policy.action_space), rules)
        self._policy = policy

    def own_probabilities(
        self, seen: npt.NDArray[np.float32], legal: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.floating]:
        """Return the probabilities of the model's own actions, (N, A)."""
        import torch

        self._policy.set_training_mode(False)
        with torch.no_grad():
            distribution: Any = self._policy.get_distribution(
                torch.as_tensor(seen, device=self._policy.device), legal
            ).distribution
        probabilities: npt.NDArray[np.floating] = distribution.probs.numpy(force=True)
        return probabilities

    def weights(self) -> Iterable[bytes]:
        """Yield all that the network is made of."""
        yield str(self._policy).encode()
        for name, tensor in self._policy.state_dict().items():
            yield name.encode()
            yield tensor.numpy(force=True).tobytes()


def _form(space: spaces.Space[Any], rules: Rules) -> str:
    """Return the form of the observations that a model with this observation space was shown."""
    sizes = {form: layout_of(rules, 1, form).size for form in FORMS}
    for form, size in sizes.items():
        if isinstance(space, spaces.Box) and space.shape == (size,):
            return form
    known = " or ".join(f"{size} ({form})" for form, size in sizes.items())
    got = f"{space.shape}" if isinstance(space, spaces.Box) else type(space).__name__
    raise ValueError(f"the model sees observations of shape {got}; solitaire players see vectors of {known} numbers")


def _numbering(space: spaces.Space[Any]) -> str:
    """Return the numbering of the actions of a model with this action space."""
    numbers = {numbering: actions_of(numbering).num_actions for numbering in NUMBERINGS}
    for numbering, number in numbers.items():
        if isinstance(space, spaces.Discrete) and space.n == number:
            return numbering
    known = " or ".join(f"{number} ({numbering})" for numbering, number in numbers.items())
    raise ValueError(f"the model has the action space {space}; the numbers of actions here are {known}")


def load_sb3(file: str, rules: Rules) -> Sb3Policy:
    """Return the policy of a model that `MaskablePPO.save` wrote to `file`. This unpickles: the file can run any code.

    Raises ValueError for a file that is missing, is no such model or was trained for other rules or observations.
    """
    if not Path(file).is_file():
        raise ValueError(f"no file {file!r}; give the path of a model that MaskablePPO.save wrote")
    if not zipfile.is_zipfile(file):
        raise ValueError(f"{file!r} is not a zip file; give the path of a model that MaskablePPO.save wrote")
    with zipfile.ZipFile(file) as archive:
        if not {"data", "policy.pth"} <= set(archive.namelist()):
            raise ValueError(f"{file!r} holds no model; give the path of one that MaskablePPO.save wrote")
    try:
        provenance = Provenance.read_zip(file)
        if provenance is not None:  # models of other programs say nothing of themselves but their spaces
            provenance.check(rules)
    except ValueError as error:
        raise ValueError(f"{file!r}: {error}") from None
    try:
        from sb3_contrib import MaskablePPO
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    except ImportError:
        raise ValueError("sb3: players need sb3-contrib; pip install 'kismet-env[train]'") from None
    try:
        policy = MaskablePPO.load(file, device="cpu").policy
    except Exception as error:  # whatever the unpickling of a foreign file may raise
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{file!r} holds no MaskablePPO model that can be loaded: {reason}") from error
    if not isinstance(policy, MaskableActorCriticPolicy):
        raise ValueError(f"{file!r} holds a {type(policy).__name__}; only models of MaskablePPO play by the masks")
    if not all(parameter.isfinite().all() for parameter in policy.parameters()):
        raise ValueError(f"{file!r} holds weights that are not finite numbers; the training run has diverged")
    try:
        return Sb3Policy(policy, rules)
    except ValueError as error:
        raise ValueError(f"{file!r}: {error}") from None
