"""Intervals of shares that are estimates."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_Z = 1.959963984540054  # of 95 %


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a chance that came true in a share of the trials.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> low, high = wilson(0.2, 100)
    >>> round(low, 3), round(high, 3)
    (0.133, 0.289)
    """
    spread = _Z * math.sqrt(share * (1 - share) / trials + _Z**2 / (4 * trials**2))
    middle, scale = share + _Z**2 / (2 * trials), 1 + _Z**2 / trials
    low, high = (middle - spread) / scale, (middle + spread) / scale
    # the value itself is never outside, whatever rounding does at the ends
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def repeated(numbers: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """The numbers as clusters, if one of them comes twice; none otherwise."""
    return [numbers] if len(np.unique(numbers)) < len(numbers) else []


def independent_trials(
    outcomes: npt.NDArray[np.float64], *clusterings: npt.NDArray[np.int64] | None
) -> float:
    """How many independent trials tell as much as these, of which some go together.

    Two people who exchange values are both in place or both not: a pair tells as much as one of
    them. The number of trials is divided by the design effect, the variance between clusters
    over that of as many independent trials, where it is above 1 (Kish 1965, section 5.4). Where
    trials go together in several ways, the one that leaves the fewest counts.

    Examples
    --------
    >>> independent_trials(np.array([1.0, 1.0, 0.0, 0.0]), np.array([7, 7, 8, 8]))
    2.0
    """
    trials = float(len(outcomes))
    if len(outcomes) == 0:
        return trials
    off = outcomes - outcomes.mean()
    alone = float((off**2).sum())
    for clusters in clusterings:
        if clusters is not None and alone > 0:
            _, labels = np.unique(clusters, return_inverse=True)
            together = float((np.bincount(labels, weights=off) ** 2).sum())
            trials = min(trials, len(outcomes) / max(1.0, together / alone))
    return trials
