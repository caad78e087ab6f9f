"""Where a saved policy comes from, and that loading refuses what does not fit."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest

from kismet_env import Rules
from kismet_env.provenance import ENV_ID, MEMBER, Provenance

TRAINED = Provenance.of("maskable_ppo", rules=Rules(joker="natural"), seed=3, actions="holds", config={"epochs": 3})


def test_it_survives_json_and_zip(tmp_path: Path) -> None:
    assert Provenance.from_json(TRAINED.to_json()) == TRAINED
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    assert Provenance.read_zip(tmp_path / "model.zip") is None
    TRAINED.write_zip(tmp_path / "model.zip")
    assert Provenance.read_zip(tmp_path / "model.zip") == TRAINED
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert archive.namelist() == ["data", MEMBER]


def test_its_environment_is_registered() -> None:
    assert gym.spec(ENV_ID).id == ENV_ID
    assert TRAINED.versions["kismet-env"]


def test_a_misfit_is_refused_with_both_sides_named() -> None:
    TRAINED.check(Rules(joker="natural"))
    with pytest.raises(ValueError, match="joker='natural' there, 'full' here"):
        TRAINED.check(Rules())
    with pytest.raises(ValueError, match=f"Kismet-v9, this is {ENV_ID}"):
        replace(TRAINED, env_id="kismet_env/Kismet-v9").check(TRAINED.rules)
    with pytest.raises(ValueError, match=f"layout 0123 .*here they have layout {TRAINED.layout}"):
        replace(TRAINED, layout="0123").check(TRAINED.rules)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": {"jokers": 1}}, "unknown field 'jokers'"),
        ({"observation": "pixels"}, "features, raw, dict"),
        ({"actions": "throws"}, "keeps, holds"),
        ({"num_players": 10**9}, "num_players=1000000000"),
        ({"seed": "none"}, "seed='none'"),
        ({"author": "somebody"}, "author"),
    ],
    ids=str,
)
def test_what_is_no_provenance_is_refused(change: dict[str, object], message: str) -> None:
    values = json.loads(TRAINED.to_json()) | change
    with pytest.raises(ValueError, match=message):
        Provenance.from_json(json.dumps(values))


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_text("no archive")
    with pytest.raises(ValueError, match=r"model\.zip is not a zip archive"):
        Provenance.read_zip(tmp_path / "model.zip")
    for text in ("{", "[]"):
        with pytest.raises(ValueError, match="provenance"):
            Provenance.from_json(text)
    with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, " " * 2_000_000)
    with pytest.raises(ValueError, match="larger than"):
        Provenance.read_zip(tmp_path / "large.zip")
