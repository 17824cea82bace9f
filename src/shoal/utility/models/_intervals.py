"""Intervals of scores: over folds that share training rows, and over the rows of one test."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from shoal.utility.models._splits import Integers, public_stream

Floats = npt.NDArray[np.float64]

RESAMPLES = 200


def over_folds(values: Floats, tested: float) -> tuple[float, float] | None:
    """The 95 % interval of a mean over folds, or None for fewer than two.

    Folds share most of their training rows, so that their variance is too small by far; it is
    corrected by ``tested``, the number of tested rows over that of training rows.

    References
    ----------
    Nadeau, Bengio (2003), Inference for the generalization error, section 4: the corrected
    resampled t-test.

    Examples
    --------
    >>> low, high = over_folds(np.array([0.80, 0.82, 0.78, 0.81, 0.79]), tested=1 / 4)
    >>> round(low, 3), round(high, 3)
    (0.771, 0.829)
    """
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return None
    spread = math.sqrt((1 / count + tested) * float(values.var(ddof=1)))
    reach = float(t.ppf(0.975, count - 1)) * spread
    middle = float(values.mean())
    return middle - reach, middle + reach


def over_rows(
    statistic: Callable[[Integers], float], rows: int | Integers, random_state: int
) -> tuple[float, float] | None:
    """The 95 % percentile interval of a statistic of rows that are drawn anew.

    ``rows`` is their number, or the number of the person of each: whoever has several is drawn
    with all of them, since they do not tell as much as those of as many persons.

    References
    ----------
    Efron (1979), Bootstrap methods: another look at the jackknife.

    Examples
    --------
    >>> low, high = over_rows(lambda rows: float((rows < 50).mean()), 100, random_state=0)
    >>> 0.35 < low < 0.5 < high < 0.65
    True
    """
    stream = public_stream("bootstrap", random_state)
    persons = np.arange(rows) if isinstance(rows, int) else rows
    order = np.argsort(persons, kind="stable")
    counts = np.unique(persons, return_counts=True)[1]
    starts, bounds = np.cumsum(counts) - counts, np.full(len(counts), len(counts))

    def drawn() -> Integers:
        chosen = stream.integers_below(bounds)
        if len(counts) == len(persons):
            return chosen
        ends = np.cumsum(counts[chosen])
        within = np.arange(ends[-1]) - np.repeat(ends - counts[chosen], counts[chosen])
        return order[np.repeat(starts[chosen], counts[chosen]) + within]

    found = np.array([statistic(drawn()) for _ in range(RESAMPLES)])
    found = found[np.isfinite(found)]
    if len(found) < RESAMPLES / 2:  # what cannot be told in most draws has no interval
        return None
    low, high = np.quantile(found, [0.025, 0.975])
    whole = statistic(np.arange(len(persons)))  # of few rows most draws can be on one side of it
    return float(min(low, whole)), float(max(high, whole))
