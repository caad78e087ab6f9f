"""Runs of train.py that are broken off, and what has come out of them."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.run import Run
from kismet_env.policy_file import load_policy


def at_rows(monkeypatch: pytest.MonkeyPatch, call: Callable[[int], None]) -> list[Any]:
    """Call something with the number, from 1 up over all sessions, of each row that a run has recorded; the rows."""
    original, rows = Run.record, []

    def record(run: Run, row: dict[str, float | None]) -> None:
        original(run, row)
        rows.append(row)
        call(len(rows))

    monkeypatch.setattr(Run, "record", record)
    return rows


def interrupt_at(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> list[Any]:
    """Press Ctrl-C when a run records these rows; the rows."""
    return at_rows(monkeypatch, lambda number: signal.raise_signal(signal.SIGINT) if number in numbers else None)


def assert_same_policy(one: Path, other: Path) -> None:
    """Two runs have learned the same, to the last bit."""
    networks = [load_policy(folder / "policy.safetensors").network for folder in (one, other)]
    for ours, theirs in zip(*(network.layers for network in networks), strict=True):
        assert all((left == right).all() for left, right in zip(ours, theirs, strict=True))
