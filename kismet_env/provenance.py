"""Where a saved policy comes from: what it was trained on and how. It travels inside the policy's file.

Loading compares it with what the policy is to play and refuses what does not fit, both sides named: a policy reads
its observations by their places in the vector, and nothing else would notice that the places have changed.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from kismet_env.actions import actions_of
from kismet_env.batch import MOST_PLAYERS
from kismet_env.observation import CARD, PAIR, Layout, card_layout, layout_of, pair_layout
from kismet_env.rules import Rules

MEMBER = "kismet.json"
"""Name of the file inside a zip archive that holds its provenance."""
ENV_ID = "kismet_env/Kismet-v0"
_LARGEST = 1_000_000  # bytes
_KINDS: dict[str, type] = {"rules": dict, "num_players": int, "seed": int, "config": dict, "versions": dict}  # else str
_RECORDED = ("kismet-env", "numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "ray")


def package_versions() -> dict[str, str]:
    """Return the installed versions of this package and those that results depend on."""
    found = {}
    for name in _RECORDED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def layout_read(rules: Rules, num_players: int, observation: str) -> Layout:
    """Return the layout of what a policy reads; ValueError for an unknown form."""
    if observation == PAIR:
        return pair_layout(rules)
    return card_layout(rules) if observation == CARD else layout_of(rules, num_players, observation)


@dataclass(frozen=True)
class Provenance:
    """What a policy was trained on and how; `of` makes one, `check` compares it with what the policy is to play."""

    algorithm: str
    """Name of the learner, as `train.py` takes it."""
    env_id: str
    """Id of the environment with the version of its rules, observations and actions."""
    rules: Rules
    """The rules of its games."""
    num_players: int
    """How many players its games had."""
    actions: str
    """Numbering of its actions: keeps | holds."""
    observation: str
    """Form of its observations: features | raw | dict; for what judges cards, or pairs of them, card or pair (see
    `observation.card_layout`, `pair_layout`)."""
    layout: str
    """Fingerprint of the layout of these observations, see `observation.Layout.fingerprint`."""
    seed: int
    """Seed of the training."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """All options of the training."""
    versions: Mapping[str, str] = field(default_factory=package_versions)
    """Versions of the packages it was trained with."""

    @classmethod
    def of(
        cls,
        algorithm: str,
        *,
        rules: Rules,
        seed: int,
        actions: str = "keeps",
        observation: str = "features",
        num_players: int = 1,
        config: Mapping[str, Any] | None = None,
    ) -> Provenance:
        """Return the provenance of a policy that is trained here and now, on solitaire or in games of more players."""
        return cls(
            algorithm=algorithm,
            env_id=ENV_ID,
            rules=rules,
            num_players=num_players,
            actions=actions_of(actions).numbering,
            observation=observation,
            layout=layout_read(rules, num_players, observation).fingerprint,
            seed=seed,
            config=dict(config or {}),
        )

    def check(self, rules: Rules) -> None:
        """Raise ValueError, naming both sides, unless the policy knows these `rules` and today's observations."""
        if self.env_id != ENV_ID:
            raise ValueError(f"the policy was trained on {self.env_id}, this is {ENV_ID}")
        if self.rules != rules:
            theirs, ours = asdict(self.rules), asdict(rules)
            differ = [name for name in ours if theirs[name] != ours[name]]
            raise ValueError(
                "the policy was trained with other rules: "
                + "; ".join(f"{name}={theirs[name]!r} there, {ours[name]!r} here" for name in differ)
                + "; let it play under those, or train one for these"
            )
        layout = layout_read(rules, self.num_players, self.observation).fingerprint
        if self.layout != layout:
            made_by, this = (
                versions.get("kismet-env", "of an unknown version") for versions in (self.versions, package_versions())
            )
            raise ValueError(
                f"the policy reads observations of layout {self.layout} (kismet-env {made_by}), "
                f"here they have layout {layout} (kismet-env {this})"
            )

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Provenance:
        """Return what `to_json` wrote; ValueError for anything else."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("the provenance of the policy is not JSON") from None
        names = sorted(field.name for field in fields(cls))
        if not isinstance(values, dict) or sorted(values) != names:
            found = sorted(values) if isinstance(values, dict) else type(values).__name__
            raise ValueError(f"the provenance of the policy has {found}, not {names}")
        for name, value in values.items():
            kind = _KINDS.get(name, str)
            if not isinstance(value, kind):
                raise ValueError(
                    f"the provenance of the policy has {name}={value!r}, not a value of type {kind.__name__}"
                )
        if not 1 <= values["num_players"] <= MOST_PLAYERS:
            raise ValueError(f"the provenance of the policy has num_players={values['num_players']}")
        values["rules"] = Rules.of(values["rules"])
        layout_read(values["rules"], values["num_players"], values["observation"])
        actions_of(values["actions"])
        return cls(**values)

    def write_zip(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Add it to the zip archive at `path` under the name MEMBER; others who read the archive do not mind."""
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(MEMBER, self.to_json())

    @classmethod
    def read_zip(cls, path: str | os.PathLike[str]) -> Provenance | None:
        """Return what `write_zip` added to the archive at `path`, None where there is none; unpickles nothing.

        Raises ValueError for what is no zip archive, OSError for a file that cannot be read.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                if MEMBER not in archive.namelist():
                    return None
                if archive.getinfo(MEMBER).file_size > _LARGEST:
                    raise ValueError(f"{MEMBER} in {Path(path).name} is larger than {_LARGEST:,} bytes")
                return cls.from_json(archive.read(MEMBER))
        except zipfile.BadZipFile:
            raise ValueError(f"{Path(path).name} is not a zip archive") from None
