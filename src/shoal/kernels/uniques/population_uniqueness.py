"""How many people are unique in a population, estimated from the class sizes of a sample.

All estimators take the numbers of classes of each size in a sample of a known share of the
population, and return the share of the population that is alone in its class. They return NaN if
their equations have no solution.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.kernels.arrays import Floats, Integers

#: Shares of the population from which on Pitman's estimator is not the best one.
_SMALL_SAMPLE = 0.1
#: A larger population makes no difference for any sample.
_MOST_PEOPLE = 1e300
#: Minus the logarithm of a chance that counts as zero.
_NEVER = 750.0


def estimated_share(class_sizes: Integers, fraction: float, estimator: str) -> float:
    """The share that the named estimator finds, from the size of each class."""
    estimate = {
        "dankar": dankar,
        "pitman": pitman,
        "zayatz": zayatz,
        "snb": slide_negative_binomial,
    }[estimator]
    return estimate(*np.unique(class_sizes, return_counts=True), fraction)


def dankar(sizes: Integers, numbers: Integers, fraction: float) -> float:
    """The decision rule that chooses among the estimators by the sampling fraction.

    Up to a tenth this is Pitman's, above it the smaller of Zayatz' and that of the slide negative
    binomial; it is Zayatz' if another has no solution.

    References
    ----------
    Dankar, El Emam, Neisa, Roffey (2012), Estimating the re-identification risk of clinical data
    sets, BMC Medical Informatics and Decision Making 12:66.
    """
    if fraction <= _SMALL_SAMPLE:
        estimate = pitman(sizes, numbers, fraction)
        return zayatz(sizes, numbers, fraction) if math.isnan(estimate) else estimate
    estimates = [f(sizes, numbers, fraction) for f in (zayatz, slide_negative_binomial)]
    return float(np.nanmin(estimates))


def zayatz(sizes: Integers, numbers: Integers, fraction: float) -> float:
    """Population classes have the sizes of those in the sample; sampling without replacement.

    References
    ----------
    Zayatz (1991), Estimation of the percent of unique population elements on a microdata file
    using the sample, US Bureau of the Census, Statistical Research Division report 91/08.
    """
    unique, records = _of_size(sizes, numbers, 1), int((sizes * numbers).sum())
    if unique == 0:
        return 0.0
    people = float(min(round(min(records / fraction, _MOST_PEOPLE)), _MOST_PEOPLE))
    if people <= 1:
        return unique / records
    # that all others of a class are missed, one after the other; from some size on, none ever is
    rarely = -math.log1p(-min((records - 1) / (people - 1), 1 - 1e-16))
    most = min(int(sizes.max()), 2 + int(_NEVER / max(rarely, _NEVER / records)))
    with np.errstate(divide="ignore"):  # if fewer are missed than a class has
        left = np.maximum(people - 1 - np.arange(most - 1), 1.0)
        others_missed = np.log1p(-np.minimum((records - 1) / left, 1.0))
    logs = np.append(0.0, np.cumsum(others_missed))
    likely = sizes <= most
    seen_once = sizes[likely] * numbers[likely] * np.exp(logs[sizes[likely] - 1])
    return float(unique / seen_once.sum() * unique / records)


def pitman(sizes: Integers, numbers: Integers, fraction: float) -> float:
    """Classes as in Pitman's sampling formula, fitted by maximum likelihood.

    References
    ----------
    Hoshino (2001), Applying Pitman's sampling formula to microdata disclosure risk assessment,
    Journal of Official Statistics 17(4).
    """
    from scipy.optimize import minimize
    from scipy.special import expit, gammaln

    unique, records = _of_size(sizes, numbers, 1), int((sizes * numbers).sum())
    classes = int(numbers.sum())
    if unique == 0:
        return 0.0
    if _of_size(sizes, numbers, 2) == 0 or classes < 2:
        return math.nan

    def parameters(point: Floats) -> tuple[float, float]:
        alpha = float(expit(np.clip(point[1], -30.0, 30.0)))
        return math.exp(min(point[0], 50.0)) - alpha, alpha

    def against(point: Floats) -> float:
        theta, alpha = parameters(point)
        joining = gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1)
        joining += (classes - 1) * math.log(alpha)
        growing = (numbers * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
        return float(gammaln(theta + records) - gammaln(theta + 1) - joining - growing)

    begin = np.array([math.log(max(1.0, unique / 2)), 0.0])
    options = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 2000}
    fitted = minimize(against, begin, method="Nelder-Mead", options=options)
    theta, alpha = parameters(fitted.x)
    if not fitted.success or not 1e-6 < alpha < 1 - 1e-6:
        return math.nan
    people = records / fraction
    log_share = gammaln(theta + 1) - gammaln(theta + alpha) + (alpha - 1) * math.log(people)
    return min(1.0, math.exp(log_share))


def slide_negative_binomial(sizes: Integers, numbers: Integers, fraction: float) -> float:
    """Class sizes minus 1 are negative binomial; people are sampled independently.

    The two parameters are those with which the expected numbers of classes and of unique records
    in the sample are the observed ones.

    References
    ----------
    Chen, McNulty (1998), Estimation of identification disclosure risk in microdata, Journal of
    Official Statistics 14(1).
    """
    from scipy.optimize import root
    from scipy.special import expit

    unique, records = _of_size(sizes, numbers, 1), int((sizes * numbers).sum())
    classes, people = int(numbers.sum()), records / fraction
    if unique == 0:
        return 0.0

    def expected(point: Floats) -> tuple[float, float, float]:
        """Classes seen, classes seen once, and people that are unique."""
        # within bounds: a search that goes astray must not divide by zero
        shape = math.exp(min(max(point[0], -50.0), 50.0))
        chance = float(expit(np.clip(point[1], -30.0, 30.0)))
        total = people * chance / (chance + shape * (1 - chance))
        left = 1 - (1 - chance) * (1 - fraction)
        missed = (chance / left) ** shape
        once = missed * (fraction + (1 - fraction) * shape * fraction * (1 - chance) / left)
        return total * (1 - (1 - fraction) * missed), total * once, total * chance**shape

    def difference(point: Floats) -> list[float]:
        seen, once, _ = expected(point)
        return [seen / classes - 1, once / unique - 1]

    for shape in (0.1, 1.0, 10.0, 0.01):
        for chance in (0.1, 0.5, 0.9, 0.01):
            found = root(difference, [math.log(shape), math.log(chance / (1 - chance))])
            if found.success and max(map(abs, difference(found.x))) < 1e-9:
                return min(1.0, expected(found.x)[2] / people)
    return math.nan


def _of_size(sizes: Integers, numbers: Integers, size: int) -> int:
    return int(numbers[sizes == size].sum())
