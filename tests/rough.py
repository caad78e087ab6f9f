"""What takes minutes to work out about the chance to win, roughly: any will do for what does not depend on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from kismet_env import command_line, win_chance
from kismet_env.endgame import LONG, Endgame
from kismet_env.late_cards import NO_ROW
from kismet_env.rules import Rules
from kismet_env.solver import Optimum, Sds, solve


def _spread(optimum: Optimum, progress: bool = False) -> Sds:
    """Something like the standard deviations of all cards."""
    sds = 3.2 * np.sqrt(optimum.values)
    step = float(sds.max()) / 65535
    return Sds(56.0, step, np.rint(sds / step).astype(np.uint16))


def _no_endgame(rules: Rules, report: object = None) -> Endgame:
    """A table of no kinds."""
    kind_of, table, column = np.full(solve(rules).numbers.size, LONG, np.int16), *_NOTHING
    return Endgame(kind_of, table, table, table, column, column, table.astype(float), np.zeros((0, 0, 0), np.float32))


def _no_late_cards(optimum: Optimum, report: object = None) -> tuple[Any, Any]:
    """Distributions of no cards."""
    return np.full(optimum.numbers.size, NO_ROW, np.int32), np.zeros((0, 1), np.float32)


_NOTHING = np.zeros((0, 0), np.int64), np.zeros(0, np.int64)


@contextmanager
def rough_judges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Judge cards roughly in the block."""
    win_chance.judge_of.cache_clear()
    monkeypatch.setattr(Optimum, "prepare_sds", _spread)
    for user in (win_chance, command_line):
        monkeypatch.setattr(user, "endgame_of", _no_endgame)
        monkeypatch.setattr(user, "late_cards", _no_late_cards)
    yield
    win_chance.judge_of.cache_clear()
