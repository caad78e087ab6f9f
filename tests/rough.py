"""What takes minutes to work out about the chance to win, roughly: any will do for what does not depend on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from kismet_env.solver import Optimum, Sds
from kismet_env.win_chance import judge_of


def _spread(optimum: Optimum, progress: bool = False) -> Sds:
    """Something like the standard deviations of all cards."""
    sds = 3.2 * np.sqrt(optimum.values)
    step = float(sds.max()) / 65535
    return Sds(56.0, step, np.rint(sds / step).astype(np.uint16))


@contextmanager
def rough_judges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Judge cards roughly in the block."""
    judge_of.cache_clear()
    monkeypatch.setattr(Optimum, "prepare_sds", _spread)
    yield
    judge_of.cache_clear()
