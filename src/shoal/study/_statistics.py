"""Statistics that compare methods over many tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, MissingExtra

Floats = npt.NDArray[np.float64]

_FEW = 8  # pairs: all their orders can be tried, and Student's t is inaccurate


@dataclass(frozen=True)
class SignTest:
    """How likely a candidate is to be worse than, as good as, or better than the baseline.

    ``counts`` are the differences below, inside and above the region of practical equivalence.
    ``mean`` is the posterior mean of their shares, and ``probabilities`` states how likely each of
    the three is to be the largest.
    """

    counts: tuple[int, int, int]
    mean: tuple[float, float, float]
    probabilities: tuple[float, float, float]
    rope: float

    @property
    def verdict(self) -> str:
        """The most likely of ``lose``, ``draw`` and ``win``."""
        return ("lose", "draw", "win")[int(np.argmax(self.probabilities))]


def bayes_sign_test(differences: Any, *, rope: float = 1.0, random_state: int = 0) -> SignTest:
    """The Bayesian sign test with a region of practical equivalence.

    Parameters
    ----------
    differences : array of float
        Candidate minus baseline, one per table; usually percentage differences.
    rope : float
        Differences of at most this size are a draw.
    random_state : int
        For the draws from the posterior; it need not be secret.

    References
    ----------
    Benavoli, Corani, Mangili, Zaffalon (2014), A Bayesian Wilcoxon signed-rank test based on the
    Dirichlet process <https://proceedings.mlr.press/v32/benavoli14.html>. Benavoli, Corani, Demšar,
    Zaffalon (2017), Time for a change <https://jmlr.org/papers/v18/16-305.html>, section 4.2.

    Examples
    --------
    >>> found = bayes_sign_test([-5.0] * 12 + [0.0] * 4 + [5.0] * 2)
    >>> [round(share, 3) for share in found.mean], found.verdict
    ([0.632, 0.263, 0.105], 'lose')
    """
    values = _finite(differences)
    if not rope >= 0:
        raise InputError("The region of practical equivalence must be a number ≥ 0.")
    try:
        from baycomp import SignTest as Posterior
    except ImportError:
        raise MissingExtra("The Bayesian sign test", "study") from None
    # counted from its draws: its own probabilities have no draw if the rope is 0
    draws = Posterior.sample(np.zeros(len(values)), values, rope=rope, random_state=random_state)
    chances = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
    left, right = int((values < -rope).sum()), int((values > rope).sum())
    counts = (left, len(values) - left - right, right)
    shares = np.add(counts, (0.0, 1.0, 0.0))  # the prior sits on the region
    mean = shares / shares.sum()
    return SignTest(
        counts,
        (float(mean[0]), float(mean[1]), float(mean[2])),
        (float(chances[0]), float(chances[1]), float(chances[2])),
        float(rope),
    )


def ranks(values: Any, *, higher_is_better: bool = True) -> Floats:
    """The rank of each row within each column; 1 is the best, and ties share their mean rank.

    A missing value ranks behind all others in its column.

    Examples
    --------
    >>> ranks([[0.9, 0.5], [0.9, 0.7], [0.1, 0.6]]).tolist()
    [[1.5, 3.0], [1.5, 1.0], [3.0, 2.0]]
    """
    from scipy.stats import rankdata

    array = np.array(values, np.float64)
    signed = -array if higher_is_better else array
    signed = np.where(np.isnan(array), np.inf, signed)
    return np.asarray(rankdata(signed, method="average", axis=0), np.float64)


@dataclass(frozen=True)
class Friedman:
    """Whether methods differ over tables, and how far apart the mean ranks of two must be."""

    statistic: float
    p_value: float
    mean_ranks: tuple[float, ...]
    critical_difference: float


def friedman(values: Any, *, higher_is_better: bool = True, alpha: float = 0.05) -> Friedman:
    """Friedman's test of methods (rows) over tables (columns), with Nemenyi's critical difference.

    Parameters
    ----------
    values : array of float
        One row per method and one column per table, without missing values.
    higher_is_better : bool
        Whether higher values rank first.
    alpha : float
        The level of Nemenyi's critical difference.

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets
    <https://jmlr.org/papers/v7/demsar06a.html>, section 3.2.2.

    Examples
    --------
    >>> found = friedman([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.1, 0.2, 0.3]])
    >>> found.mean_ranks, round(found.critical_difference, 3)
    ((1.0, 2.0, 3.0), 1.914)
    """
    from scipy.stats import friedmanchisquare, studentized_range

    array = np.array(values, np.float64)
    if array.ndim != 2 or array.shape[0] < 3 or array.shape[1] < 2:
        raise InputError("Friedman's test needs at least three methods and at least two tables.")
    if not np.isfinite(array).all():
        raise InputError("Friedman's test needs a value for every method on every table.")
    methods, tables = array.shape
    each = ranks(array, higher_is_better=higher_is_better)
    mean_ranks = each.mean(axis=1)
    if (each == each[0]).all():
        statistic, p_value = 0.0, 1.0  # all tied: nothing differs, and the statistic is 0/0
    else:
        statistic, p_value = friedmanchisquare(*array)
    quantile = float(studentized_range.ppf(1 - alpha, methods, np.inf)) / np.sqrt(2)
    difference = quantile * np.sqrt(methods * (methods + 1) / (6 * tables))
    return Friedman(
        float(statistic), float(p_value), tuple(map(float, mean_ranks)), float(difference)
    )


def signed_rank(differences: Any) -> tuple[float, float]:
    """Wilcoxon's signed-rank test: the statistic, and its two-sided p-value.

    Differences of zero are split between the signs (Pratt). If all are zero, p is 1.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods <https://doi.org/10.2307/3001968>.
    Pratt (1959), Remarks on zeros and ties in the Wilcoxon signed rank procedures
    <https://doi.org/10.1080/01621459.1959.10501526>.

    Examples
    --------
    >>> signed_rank([1.0, 2.0, 3.0, -0.5])
    (1.0, 0.25)
    """
    from scipy.stats import wilcoxon

    values = _finite(differences)
    if not values.any():
        return 0.0, 1.0
    found = wilcoxon(values, zero_method="pratt")
    return float(found.statistic), float(found.pvalue)


def bootstrap_interval(
    values: Any,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """A bootstrap interval (percentiles) for a statistic of values.

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap
    <https://doi.org/10.1201/9780429246593>, chapter 13.

    Examples
    --------
    >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0])
    >>> 1.0 <= low < 2.5 < high <= 4.0
    True
    """
    from scipy.stats import bootstrap

    array = _finite(values)
    if len(array) == 1 or (array == array[0]).all():
        only = float(statistic(array))
        return only, only
    found = bootstrap(
        (array,),
        statistic,
        confidence_level=confidence,
        n_resamples=draws,
        method="percentile",
        vectorized=False if statistic not in (np.mean, np.median) else None,
        rng=np.random.default_rng(random_state),
    ).confidence_interval
    return float(found.low), float(found.high)


def spearman(x: Any, y: Any) -> tuple[float, float]:
    """Spearman's rank correlation and its p-value; (0, 1) if one side is constant.

    For up to eight pairs the p-value is exact: the share of all orders of one side that are at
    least as correlated. For more pairs it comes from Student's t.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])[0]
    0.8
    """
    from scipy.stats import rankdata, spearmanr

    first, second = _finite(x), _finite(y)
    if len(first) != len(second) or len(first) < 3:
        raise InputError("A rank correlation needs at least three pairs of values.")
    if (first == first[0]).all() or (second == second[0]).all():
        return 0.0, 1.0
    found = spearmanr(first, second)
    correlation, p_value = round(float(found.statistic), 12), float(found.pvalue)
    if len(first) <= _FEW:
        p_value = _exact_p_value(rankdata(first), rankdata(second))
    return correlation, p_value


def _exact_p_value(x: Floats, y: Floats) -> float:
    """The share of the orders of y in which ranks agree, or disagree, as much as they do."""
    middle = x - x.mean()
    orders = np.array(list(itertools.permutations(y)), np.float64)
    return float((np.abs(orders @ middle) >= abs(y @ middle) - 1e-9).mean())


def pareto_front(points: Any, *, higher_is_better: Sequence[bool]) -> npt.NDArray[np.bool_]:
    """Which points no other point beats by being as good in everything and better in something.

    Parameters
    ----------
    points : array of shape (points, objectives)
    higher_is_better : list of bool
        One per objective.

    Examples
    --------
    >>> risk_and_score = [[0.1, 0.6], [0.3, 0.9], [0.4, 0.8], [0.1, 0.6]]
    >>> pareto_front(risk_and_score, higher_is_better=[False, True]).tolist()
    [True, True, False, True]
    """
    array = np.array(points, np.float64).reshape(-1, len(higher_is_better))
    worse = np.where(np.array(higher_is_better), -array, array)  # lower is better everywhere
    missing = np.isnan(worse).any(axis=1)
    front: npt.NDArray[np.bool_] = np.logical_not(missing)
    for place in np.flatnonzero(front):
        as_good = (worse <= worse[place]).all(axis=1) & ~missing
        better = (worse < worse[place]).any(axis=1)
        front[place] = not (as_good & better).any()
    return front


def percentage_differences(candidate: Any, baseline: Any) -> Floats:
    """100 · (candidate − baseline) / baseline; NaN if the baseline is 0 or one is missing.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a data privacy-predictive performance trade-off
    <https://arxiv.org/abs/2201.05226>, section 4.

    Examples
    --------
    >>> percentage_differences([0.45, 0.5], [0.5, 0.0]).tolist()
    [-10.0, nan]
    """
    after, before = np.array(candidate, np.float64), np.array(baseline, np.float64)
    out = np.full(np.broadcast(after, before).shape, np.nan)
    usable = (before != 0) & ~np.isnan(before) & ~np.isnan(after)
    change = 100.0 * (after - before)
    np.divide(change, before, out=out, where=usable)
    return np.round(out, 12)


def _finite(values: Any) -> Floats:
    array = np.array(values, np.float64).ravel()
    if len(array) == 0 or not np.isfinite(array).all():
        raise InputError("The statistics need at least one value and no missing values.")
    return array
