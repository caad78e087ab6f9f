"""Plays what a MaskablePPO model of sb3-contrib has learned.

The model may have been trained on "features" or "raw" observations and with either numbering of the actions: both
follow from what every player is shown.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kismet_env.actions import NUMBERINGS, actions_of
from kismet_env.bots.player import Masks, Observations, StochasticPlayer
from kismet_env.dice import NUM_ROLLS, roll_indices
from kismet_env.observation import decode, layout_of
from kismet_env.provenance import Provenance
from kismet_env.rules import Box, Rules

if TYPE_CHECKING:
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

_FORMS = ("features", "raw")


class Sb3Policy(StochasticPlayer):
    """A policy network of sb3-contrib that plays a batch at a time.

    Args:
        policy: the `policy` of a MaskablePPO model for solitaire games.
        rules: those of the games to be played.

    Raises ValueError for a policy whose spaces are those of no solitaire game under `rules`.
    """

    def __init__(self, policy: MaskableActorCriticPolicy, rules: Rules) -> None:
        super().__init__()
        self._policy = policy
        self._columns = _columns(policy.observation_space, rules)
        self._action_of = _action_of(policy.action_space)

    def probabilities(self, observations: Observations, masks: Masks) -> npt.NDArray[np.float64]:
        """Return the probability of every action of the "keeps" numbering, (N, 225)."""
        import torch

        own_actions = self._action_of[roll_indices(decode(observations).dice)]
        is_own = own_actions >= 0
        legal = np.take_along_axis(masks, np.where(is_own, own_actions, 0), axis=1) * is_own > 0
        self._policy.set_training_mode(False)
        with torch.no_grad():
            seen = torch.as_tensor(observations[:, self._columns], device=self._policy.device)
            distribution: Any = self._policy.get_distribution(seen, legal).distribution
            own = np.where(legal, distribution.probs.numpy(force=True), 0.0)
        probabilities = np.zeros(masks.shape)
        rows, columns = np.nonzero(is_own)
        probabilities[rows, own_actions[rows, columns]] = own[rows, columns]
        return probabilities


def _columns(space: spaces.Space[Any], rules: Rules) -> npt.NDArray[np.int64]:
    """Return which numbers of an observation of form "features" a model with this observation space was shown."""
    own = layout_of(rules, 1, "features")
    sizes = {}
    for form in _FORMS:
        layout = layout_of(rules, 1, form)
        sizes[form] = layout.size
        if isinstance(space, spaces.Box) and space.shape == (layout.size,):
            return np.concatenate([np.r_[own.slices[piece.name]] for piece in layout.pieces])
    known = " or ".join(f"{size} ({form})" for form, size in sizes.items())
    got = f"{space.shape}" if isinstance(space, spaces.Box) else type(space).__name__
    raise ValueError(f"the model sees observations of shape {got}; solitaire players see vectors of {known} numbers")


def _action_of(space: spaces.Space[Any]) -> npt.NDArray[np.int64]:
    """Return the action of "keeps" that each action of a model is in each roll, [roll, action] (252, A); -1: none."""
    for numbering in NUMBERINGS:
        actions = actions_of(numbering)
        if isinstance(space, spaces.Discrete) and space.n == actions.num_actions:
            boxes = np.tile([actions_of("keeps").box_action(box) for box in Box], (NUM_ROLLS, 1))
            return np.concatenate([actions.keep_of.astype(np.int64), boxes], axis=1)
    known = " or ".join(f"{actions_of(numbering).num_actions} ({numbering})" for numbering in NUMBERINGS)
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
