"""Differential privacy by sampling, then generalizing without looking at the data.

A table satisfies it if every record was drawn independently with a known probability, if the
records were generalized in a way that does not depend on them, and if those in classes of fewer
than k were removed. This module computes the k that is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.errors import InputError, ParameterError, quoted
from shoal.kernels.arrays import Flags
from shoal.models._base import PrivacyModel, counted
from shoal.parameters import Real
from shoal.table import Table


@dataclass(frozen=True)
class DifferentialPrivacy(PrivacyModel):
    """The release would be nearly as likely without any one person.

    The model holds by construction. Each record was first drawn independently with a known
    probability (``Sample(strategy="bernoulli")``, as the first step). Every column was generalized
    to levels that were fixed without looking at the data (``Generalize(levels=...)``). Records in
    classes of fewer than k were removed, where k follows from ``epsilon``, ``delta`` and the
    probability. The private half of a release records whether this was done.

    Every released column must be a quasi-identifier: a column released unchanged would reveal a
    person whatever the others hide.

    Parameters
    ----------
    epsilon : float
        How much more likely one person's record may make a release: e to this power.
    delta : float
        The probability with which it may become even more likely.

    References
    ----------
    Li, Qardaji, Su (2012), On sampling, anonymization, and differential privacy
    <https://doi.org/10.1145/2414456.2414474>. Bild, Kuhn, Prasser (2018), SafePub: a truthful data
    anonymization algorithm with strong privacy guarantees
    <https://doi.org/10.1515/popets-2018-0004>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Generalize, Hierarchy, Plan, Roles, Sample, Table
    >>> table = Table(pl.DataFrame({"age": [20, 35] * 500}), Roles(quasi_identifiers=["age"]))
    >>> model = DifferentialPrivacy(1.0, 1e-6)
    >>> model.smallest_class_at(0.1)
    9
    >>> tens = Hierarchy.intervals([10])
    >>> steps = [Sample(fraction=0.1, strategy="bernoulli"), Generalize(
    ...     models=model, hierarchies={"age": tens}, levels={"age": 1}, suppression_limit=1.0)]
    >>> masked, _ = Plan(steps).apply(table)
    >>> model.holds(masked), model.holds(table)
    (True, False)
    """

    epsilon: Annotated[float, Real(above=0)]
    delta: Annotated[float, Real(above=0, below=1)]

    model = "differential_privacy"
    title = "differential privacy by sampling"
    reference = "Li et al. 2012; Bild et al. 2018"
    needs_audit = True
    by_counts = True
    direction = "lower"

    def smallest_class_at(self, sampling: float) -> int:
        """The k that classes need if each record was drawn with this probability."""
        return smallest_class_for(self.epsilon, self.delta, sampling=sampling)

    def level(self, table: Table) -> float:
        """The smallest ε that holds with this δ; infinite if the table was made in another way."""
        if len(table) == 0:
            return 0.0
        fraction, smallest = self._drawn_with(table), self._crowd(table)
        if fraction is None:
            return math.inf
        low = -math.log1p(-fraction) * (1 + 1e-12)  # below this, no class is large enough
        high = max(2 * low, 1.0)
        if delta_for_class(smallest, low, sampling=fraction) <= self.delta:
            return low
        while delta_for_class(smallest, high, sampling=fraction) > self.delta:
            high *= 2
            if high > 500:
                return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            enough = delta_for_class(smallest, middle, sampling=fraction) <= self.delta
            low, high = (low, middle) if enough else (middle, high)
        return high

    def violations(self, table: Table) -> Flags:
        """None or all: only how the table was made counts, not what classes resulted."""
        fraction = self._drawn_with(table)
        if fraction is None or fraction > -math.expm1(-self.epsilon):
            return np.ones(len(table), np.bool_)
        return np.full(len(table), self._crowd(table) < self.smallest_class_at(fraction))

    @staticmethod
    def _crowd(table: Table) -> int:
        """The k below which classes were removed; not their size, which depends on the data."""
        asked = table.course.smallest or 1
        return int(table.class_sizes().min(initial=asked))

    def _drawn_with(self, table: Table) -> float | None:
        """The probability with which the records were drawn, if all steps were as required."""
        course = table.course
        covered = set(table.columns) == set(table.roles.quasi_identifiers)
        several = _go_together(table)
        if course.state != "generalized" or course.origin != "entropy" or not covered or several:
            return None
        return course.fraction

    def check(self, table: Table) -> None:
        """Raise InputError if a column would stay unchanged, or a person has several records."""
        if _go_together(table):
            raise InputError(
                f"{self.title} is proved for records that are drawn one by one, but the table has "
                f"{counted(table)}, which are drawn by person or household. Combine the records "
                "of each into one first."
            )
        kept = [*table.roles.withheld, *table.roles.quasi_identifiers]
        others = [name for name in table.columns if name not in kept]
        if others:
            raise InputError(
                f"{self.title} covers only quasi-identifiers, but {quoted(others)} would be "
                "released too. Declare them as quasi-identifiers with hierarchies, or remove "
                "them from the table."
            )

    def explain(self, table: Table) -> str:
        """Why it does not hold, or with which ε it holds."""
        if self._drawn_with(table) is None:
            return (
                f"{self.title} with ε = {self.epsilon} requires a plan of two steps: 'sample' with "
                "the strategy 'bernoulli' and no seed, then 'generalize' with given 'levels', over "
                "all columns; the table was made in another way"
            )
        return (
            f"{self.title} requires ε = {self.epsilon:g} and δ = {self.delta:g}; the "
            f"sampling and the k of the step give ε = {self.level(table):.4g}"
        )


def _go_together(table: Table) -> bool:
    """Whether some records are drawn together, such as those of a person or a household."""
    together = table.together
    return together is not None and len(np.unique(together)) < len(table)


#: Rounding must not make a bound look better than it is.
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
    Li, Qardaji, Su (2012), On sampling, anonymization, and differential privacy
    <https://doi.org/10.1145/2414456.2414474>, ASIACCS. Bild, Kuhn, Prasser (2018), SafePub: a
    truthful data anonymization algorithm with strong privacy guarantees
    <https://doi.org/10.1515/popets-2018-0004>, PoPETs 2018(1).

    Examples
    --------
    >>> smallest_class_for(1.0, 1e-6, sampling=0.1)
    9
    """
    _refuse("delta", delta, Real(above=0, maximum=1))
    low, high = 0, 1  # k = ``low`` is too small; ``high`` will be enough
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

    Let n be the number of people with a record's values, at least k / γ - 1, where
    γ = (e^ε - 1 + β) / e^ε. The smallest δ is the largest probability, over all such n, that more
    than γ n of them are drawn.

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
    if gamma < 1:  # a large ε rounds it to 1; this term is then zero
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
