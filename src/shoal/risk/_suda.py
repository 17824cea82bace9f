"""Special uniques: records that a few columns single out (SUDA2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import Real, checked
from shoal.risk._classes import check_records, for_records, mean_of_classes
from shoal.risk._options import Count, Fraction, Missing, risk
from shoal.table import Classes, Table, exact_total

if TYPE_CHECKING:
    from shoal.kernels.uniques.minimal_uniques import MinimalUniques


#: At most this many sets of columns × different records: some tens of seconds.
_MOST_WORK = 3_000_000_000
#: How many times longer it takes if a missing value agrees with all.
_WILDCARD_WORK = 4


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """The SUDA scores of a table's records. All arrays are private: they describe single people.

    ``columns`` are the quasi-identifiers. ``by_class`` holds the results for each of the
    ``classes``. For each record, ``scores`` holds the SUDA score, ``smallest`` the number of
    columns in its smallest set (0 if it has none), and ``contributions`` how much of the score
    comes from sets that contain each column. ``found`` counts the sets of each size over all
    records, starting at size 1. ``missing`` is how a missing value counted.
    """

    columns: tuple[str, ...]
    found: Integers
    classes: Classes
    by_class: MinimalUniques
    missing: Missing = "own"

    @cached_property
    def scores(self) -> Floats:
        """The score of each record."""
        return self.classes.spread(self.by_class.scores)

    @cached_property
    def smallest(self) -> Integers:
        """The number of columns in each record's smallest set; 0 if it has none."""
        return self.classes.spread(self.by_class.smallest)

    @property
    def contributions(self) -> Floats:
        """How much of each record's score comes from sets that contain each column."""
        return self.by_class.contributions[self.classes.labels]

    def column_shares(self) -> dict[str, float]:
        """The share of all records' scores that comes from sets that contain each column."""
        total = exact_total(self.by_class.scores, self.classes.rows)
        sums = self.classes.rows @ self.by_class.contributions
        return {
            name: float(part / total) if total > 0 else 0.0
            for name, part in zip(self.columns, sums, strict=True)
        }


@checked
def special_uniques(table: Table, *, size: Count = 3, missing: Missing = "own") -> SpecialUniques:
    """Find the minimal sets of columns on which records are unique, and score them as SUDA does.

    A record may be unique on a set of k columns but on no part of that set. Such a set adds
    (A - k) (A - k - 1) … down to A - ``size`` to its score (factors above 0), where A is the number
    of quasi-identifiers. Smaller sets therefore add more. Records of the same person do not hide
    each other.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    size : int
        The largest sets of columns to look at.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts. As a wildcard it agrees with every value, so it makes
        nobody unique, and a record's minimal sets never contain a column in which it has one.

    References
    ----------
    Elliot, Manning, Ford (2002), A computational algorithm for handling the special uniques
    problem. Manning, Haglin, Keane (2008), A recursive search algorithm for statistical disclosure
    assessment <https://doi.org/10.1007/s10618-007-0078-6>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
    >>> found = special_uniques(Table(frame, Roles(quasi_identifiers=["a", "b", "c"])))
    >>> found.scores.tolist(), found.column_shares()
    ([2.0, 4.0, 2.0], {'a': 0.5, 'b': 0.375, 'c': 0.375})
    """
    from shoal.kernels.uniques.minimal_uniques import column_sets

    check_records(table)
    names = table.roles.quasi_identifiers
    classes = table.classes
    largest = min(int(size), len(names))
    sets = column_sets(len(names), largest)
    # a single person meets nobody, in either reading
    several = table.person_count > 1
    gaps = missing == "wildcard" and several and any(map(table.missing_count, names))
    if sets * classes.count * (_WILDCARD_WORK if gaps else 1) > _MOST_WORK:
        raise InputError(
            f"SUDA would have to check {sets:,} sets of up to {largest} of {len(names)} "
            f"quasi-identifiers for {classes.count:,} different records. Choose a smaller 'size' "
            "or declare fewer quasi-identifiers."
        )
    found = _minimal_uniques(table, largest, wildcard=gaps)
    return SpecialUniques(names, found.found[1:], classes, found, missing)


def _minimal_uniques(table: Table, size: int, *, wildcard: bool) -> MinimalUniques:
    from shoal.kernels.uniques.minimal_uniques import minimal_uniques
    from shoal.kernels.uniques.wildcard_uniques import wildcard_uniques

    names = table.roles.quasi_identifiers
    classes = table.classes
    rows = classes.first_rows
    codes = np.empty((len(names), classes.count), np.int32)
    missing = np.full(len(names), -1, np.int32)
    for place, name in enumerate(names):
        codes[place] = table.column(name).keys.codes[rows]
        if wildcard and (absent := table.codes(name).missing) is not None:
            missing[place] = absent
    single, weights = classes.sizes == 1, _weights(len(names), size)
    # a class that several persons share belongs to nobody: it gets a number of its own
    owners = np.where(single, table.persons[rows], table.person_count + np.arange(len(rows)))
    if wildcard:
        return wildcard_uniques(codes, missing, single, size, weights, owners.astype(np.int32))
    return minimal_uniques(codes, single, size, weights, owners.astype(np.int32))


@risk("share of records unique on few columns", by_counts=True)
def suda(
    table: Table, *, size: Count = 3, sampling_fraction: Fraction = None, missing: Missing = "own"
) -> Measurement:
    """The share of records that are unique in the table on at most ``size`` quasi-identifiers.

    Anyone who knows just these columns finds a person who is unique on them. Such a person is also
    more likely to be unique in the population. The details hold the SUDA scores and what each
    column contributes to them. With a sampling fraction, they also hold the DIS-SUDA scores: the
    chance that a link to the record is right. ``special_uniques`` returns the scores by record.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers.
    size : int
        The largest sets of columns to look at.
    sampling_fraction : float, optional
        The share of the population that the table holds, for DIS-SUDA scores.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Elliot, Manning, Ford (2002), A computational algorithm for handling the special uniques
    problem. Manning, Haglin, Keane (2008), A recursive search algorithm for statistical disclosure
    assessment <https://doi.org/10.1007/s10618-007-0078-6>. Skinner, Elliot (2002), A measure of
    disclosure risk for microdata <https://doi.org/10.1111/1467-9868.00365>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 52], "sex": ["f", "m", "f", "m", "m"]})
    >>> found = suda(Table(frame, Roles(quasi_identifiers=["age", "sex"])), size=1)
    >>> found.value, found.details["sets"]
    (0.2, {'1': 1})
    """
    found = special_uniques(table, size=size, missing=missing)
    unique = found.by_class.smallest > 0
    persons = int(table.total_of_classes(unique))
    details: dict[str, Any] = {
        "size": int(size),
        "records": persons,
        "sets": {str(k): int(count) for k, count in enumerate(found.found, 1)},
        "highest_score": float(found.by_class.scores.max()),
        "mean_score": mean_of_classes(table, found.by_class.scores),
        "columns": found.column_shares(),
    }
    if sampling_fraction is not None:
        scores = dis_scores(table, found, sampling_fraction)
        details["highest_dis"] = float(scores.max())
        details["mean_dis"] = mean_of_classes(table, scores[table.classes.first_rows])
    share, each = persons / table.person_count, for_records(table, unique)
    return Measurement("suda", share, per_record=each, details=details)


def dis_scores(table: Table, found: SpecialUniques, sampling_fraction: float) -> Floats:
    """The DIS-SUDA score of each record: the chance that a unique match to it is right.

    Data intrusion simulation estimates this chance for the whole table as U π / (U π + P (1 − π)),
    with U unique records, P records that agree with exactly one other, and the sampling fraction π.
    The chance is distributed over the records by their SUDA scores, raised to the power
    1 + (8 − A) / 20 (at least 0.05), where A is the number of columns.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 52], "sex": ["f", "f", "f", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> dis_scores(table, special_uniques(table), 0.5).round(3).tolist()
    [0.0, 0.0, 0.413, 0.634]
    """
    if not Real(above=0, maximum=1).accepts(sampling_fraction):
        raise InputError("The sampling fraction must be a number above 0 and at most 1.")
    paired = int(table.total_of_classes(table.crowd_sizes(found.missing) == 2))
    scored = found.scores > 0
    risks = np.zeros(len(table))
    if not scored.any():
        return risks
    against = paired * (1 - sampling_fraction) / sampling_fraction  # U × (1 / DIS - 1)
    power = max(0.05, 1 + (8 - len(found.columns)) / 20)
    raised, of_persons = found.scores[scored] ** power, table.of_persons(found.scores)
    spread = math.fsum(1 / of_persons[of_persons > 0] ** power)
    risks[scored] = 1 / (1 + against / (raised * spread))
    return risks


def _weights(columns: int, size: int) -> Floats:
    """What a set of each size k adds to a score: the product of A - i for i from k to ``size``."""
    factors = [max(1, columns - i) for i in range(size + 1)]
    return np.array([math.prod(factors[k:]) for k in range(size + 1)], np.float64)
