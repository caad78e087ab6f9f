"""How far counts are from the chances they should have."""

from typing import Any

import numpy as np


def far_out(observed: Any, probability: Any) -> float:
    """Return the chi-square statistic of counts in standard deviations from its mean: above 5 something is wrong.

    What has no chance may not have come at all. The tests use fixed seeds, so a result never changes by itself.
    """
    observed, probability = np.asarray(observed), np.asarray(probability)
    assert (observed[probability == 0] == 0).all(), "something came that cannot come"
    expected = (probability * observed.sum())[probability > 0]
    freedom = len(expected) - 1
    return float((((observed[probability > 0] - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))
