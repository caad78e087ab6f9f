"""Policies that come with the package: by name, small, each with a card that says where it is from and how it plays."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

from evaluate import Config, main
from kismet_env import bots
from kismet_env.bots import READY, make
from kismet_env.command_line import run
from kismet_env.evaluation import play
from kismet_env.policy_file import load_policy
from kismet_env.rules import Rules

ROOT = Path(__file__).parent.parent
SCORES = {"afterstate": 314.9, "ppo": 310.6, "selfplay": 315.1}  # points alone, to a tenth


@pytest.mark.parametrize("name", READY)
def test_they_play_well_by_their_names(name: str) -> None:
    totals = play(make(name), 200, seed=0).totals
    reach = 4 * totals.std() / len(totals) ** 0.5
    assert abs(totals.mean() - SCORES[name]) < reach


@pytest.mark.parametrize("name", READY)
def test_their_cards_say_where_they_are_from_and_how_they_play(name: str) -> None:
    card, policy = READY[name].with_suffix(".md").read_text(), load_policy(READY[name])
    provenance, numbers = policy.provenance, sum(weight.size + bias.size for weight, bias in policy.network.layers)
    assert f"{round(numbers, -3):,} weights" in " ".join(card.split())
    assert f"python train.py {provenance.algorithm}" in card
    assert provenance.rules == Rules()
    assert str(SCORES[name]) in card


def test_they_take_little_room_and_are_named_where_players_are_named() -> None:
    folder = ROOT / "kismet_env" / "policies"
    assert sorted(path.stem for path in folder.glob("*.md")) == sorted(READY)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 10e6
    with pytest.raises(ValueError, match=", ".join(READY)):
        make("nobody")
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        run(main, Config, ["--help"])
    assert all(name in out.getvalue() for name in READY)


def test_they_refuse_what_they_are_not_made_for() -> None:
    with pytest.raises(ValueError, match="afterstate") as refusal:
        make("afterstate", Rules(joker="natural"))
    assert "\n" not in str(refusal.value)
    assert "train one for these" in str(refusal.value)
    with pytest.raises(ValueError, match="draws no lots"):
        make("afterstate:sample")


def test_the_name_is_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(READY["afterstate"].read_bytes())
    monkeypatch.setitem(bots.READY, "copy", copy)
    by_name, by_file = (play(make(name), 3, seed=1).totals for name in ("copy", f"policy:{copy}"))
    assert np.array_equal(by_name, by_file)
