"""What hiding in a crowd of k gives after random sampling: (ε, δ)-differential privacy.

A table satisfies it if every record was drawn independently with a known probability, the
records were generalized in a way that does not depend on them, and those in classes of fewer
than k were taken out. Here is the k that this takes.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.errors import ParameterError
from shoal.parameters import Real

#: Rounding must not make a bound better than it is.
_CAREFUL = 1 - 1e-12
_CHUNK = 4096


def smallest_class_for(epsilon: float, delta: float, *, sampling: float) -> int:
    """The smallest k with which sampling and generalization are (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon : float
        The first parameter of differential privacy, at least -ln(1 - ``sampling``).
    delta : float
        The second parameter, above 0 and at most 1.
    sampling : float
        The probability with which each record was drawn.

    References
    ----------
    Li, Qardaji, Su (2012), On sampling, anonymization, and differential privacy, ASIACCS. Bild,
    Kuhn, Prasser (2018), SafePub: a truthful data anonymization algorithm with strong privacy
    guarantees, PoPETs 2018(1).

    Examples
    --------
    >>> smallest_class_for(1.0, 1e-6, sampling=0.1)
    9
    """
    _refuse("delta", delta, Real(above=0, maximum=1))
    low, high = 0, 1  # every k up to ``low`` is too small, and ``high`` is enough at the end
    while delta_for_class(high, epsilon, sampling=sampling) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if delta_for_class(middle, epsilon, sampling=sampling) > delta:
            low = middle
        else:
            high = middle
    return high


def delta_for_class(k: int, epsilon: float, *, sampling: float) -> float:
    """The smallest δ that classes of at least ``k`` records give.

    It is the largest probability, over all numbers n of people with a record's values, that more
    than γ n of them are drawn, γ = (e^ε - 1 + β) / e^ε, where n is at least k / γ - 1.

    Examples
    --------
    >>> f"{delta_for_class(9, 1.0, sampling=0.1):.2g}"
    '4.9e-07'
    """
    from scipy.stats import binom

    _refuse("epsilon", epsilon, Real(above=0))
    _refuse("sampling", sampling, Real(above=0, maximum=1 - math.exp(-epsilon)))
    gamma = 1 - (1 - sampling) * math.exp(-epsilon)
    fewest = max(1, math.ceil(k / gamma * _CAREFUL - 1))
    # Chernoff: the probability for n people is at most exp(-n × divergence)
    divergence = gamma * math.log(gamma / sampling)
    if gamma < 1:  # a large ε rounds it to 1, where this part vanishes
        divergence += (1 - gamma) * math.log((1 - gamma) / (1 - sampling))
    largest = 0.0
    while math.exp(-fewest * divergence) > largest:
        people = np.arange(fewest, fewest + _CHUNK)
        largest = max(
            largest, float(binom.sf(np.floor(gamma * people * _CAREFUL), people, sampling).max())
        )
        fewest += _CHUNK
    return largest


def _refuse(name: str, value: float, constraint: Real) -> None:
    if not constraint.accepts(value):
        raise ParameterError(f"'{name}' must be {constraint.describe()}. Got {value!r} instead.")
