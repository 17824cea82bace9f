"""Microaggregation: groups of at least k similar records get the values of their group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.masking._base import Masker, StepLog
from shoal.masking.grouping._dissimilarity import DISSIMILARITIES
from shoal.masking.grouping._group_models import Models, PrivacyModels, masked_and_asked
from shoal.masking.grouping._partitions import PARTITIONS, form_groups
from shoal.parameters import ColumnNames, Flag, Integer, OneOf, Real
from shoal.randomness import SecretStream
from shoal.table import Table, ends_of_members, owned_pairs

#: From the mean of two values, each person could work out the other's value.
_FEWEST = 3


@dataclass(kw_only=True)
class Microaggregate(Masker):
    """Replace the values of each group of at least ``k`` similar records by one value.

    The records are partitioned by their similarity in the chosen columns. Within a group, a number,
    a date or a time becomes the mean, and everything else the most frequent value, so that all
    records of a group are equal in these columns. This is k-anonymity in the standard sense if the
    columns are the quasi-identifiers (MDAV-ID if they are all columns).

    No value of one person is published for a group: at least ``k`` values of a group, and never
    fewer than three, must support a released cell. Otherwise, or if a text occurs only once in its
    group, the cell is missing for the whole group.

    Parameters
    ----------
    k : int
        The size of the smallest group; 2 is treated as 3.
    partition : str
        How groups are formed: ``"mdav"``, ``"mdav-random"`` (one group per round from a random
        start), ``"v-mdav"``, ``"mu-approx"``, ``"mondrian"``, or for one column
        ``"individual-ranking"`` and ``"optimal"``.
    dissimilarity : {"euclidean", "gower", "ahmad-dey", "ahmad-dey-squared"}
        How records are compared; ``"euclidean"`` is for numbers only.
    refine : bool
        Improve the groups by local search. The result is never worse, and every group still has
        at least k records.
    seconds : float
        How long the local search may take.
    standardize : bool
        Scale numbers to mean 0 and variance 1 before they are compared; false compares raw
        values, which reproduces the published tables.
    gamma : float
        For ``"v-mdav"``: how readily a group accepts further records.
    models : privacy model or list of privacy models, optional
        What every group must satisfy in addition to its size, for example ``LDiversity(2)``.
        ``"mdav"`` forms such groups directly; with other partitions, groups that fail are merged.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.

    Attributes
    ----------
    groups_ : numpy.ndarray
        The group of each record. Private.

    References
    ----------
    Domingo-Ferrer, Torra (2005), Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation <https://doi.org/10.1007/s10618-005-0007-5>. Soria-Comas, Domingo-Ferrer
    (2012), Probabilistic k-anonymity through microaggregation and data swapping
    <https://doi.org/10.1109/FUZZ-IEEE.2012.6251280>, section IV. Soria-Comas, Domingo-Ferrer,
    Sánchez, Martínez (2015), t-closeness through microaggregation
    <https://doi.org/10.1109/TKDE.2015.2435777>, for groups that satisfy more.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [20, 22, 24, 61, 62, 66], "sex": list("fffmmm")})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> step = Microaggregate(3, dissimilarity="gower")
    >>> step.fit_transform(table).frame["age"].to_list()
    [22, 22, 22, 63, 63, 63]
    """

    k: Annotated[int, Integer(minimum=2)] = field(kw_only=False)
    partition: Annotated[str, OneOf(PARTITIONS)] = "mdav"
    dissimilarity: Annotated[str, OneOf(DISSIMILARITIES)] = "euclidean"
    refine: Annotated[bool, Flag()] = False
    seconds: Annotated[float, Real(above=0)] = 1.0
    standardize: Annotated[bool, Flag()] = True
    gamma: Annotated[float, Real(minimum=0)] = 0.2
    models: Annotated[Models | None, PrivacyModels()] = None
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "microaggregate"
    renamed = MappingProxyType({"groups_satisfy": "models", "refine_seconds": "seconds"})
    summary = "gives groups of at least k similar records one value"
    reference = "Domingo-Ferrer and Torra 2005; Soria-Comas and Domingo-Ferrer 2012"

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        asked = masked_and_asked(self.models, table, columns)
        if asked:
            raise InputError(
                f"'models' concerns {quoted(asked)}, but after microaggregation a group has only "
                "one value there. Remove the column from the columns to mask."
            )
        stream = log.stream or SecretStream.from_state(None)
        least = max(self.k, _FEWEST)
        smallest = max(self.k, min(least, table.person_count))
        self.groups_ = form_groups(table, columns, replace(self, k=smallest), stream, log)
        masked = aggregate(table, columns, self.groups_, least)
        log.compare(columns, masked, table)
        return masked


def aggregate(table: Table, columns: Sequence[str], groups: Labels, least: int) -> Table:
    """One value per group and column: mean or mode; missing if fewer than ``least`` support it."""
    numbers: dict[str, npt.NDArray[Any]] = {}
    picked: dict[str, Integers] = {}
    for name in columns:
        if table.kind(name) in ("text", "boolean"):
            picked[name] = _modes(table, name, groups, least)
        else:
            numbers[name] = _means(table, name, groups, least)
    return table.fill_numbers(numbers, groups).with_cells_of(picked)


def _means(table: Table, name: str, groups: Labels, least: int) -> Floats:
    """The mean of each group; NaN if too few persons of the group have a value."""
    if table.kind(name) in ("integer", "float"):
        column = table.numbers(name)
        present, values = column.present, column.values[column.present].astype(np.float64)
    else:  # dates and times as ticks
        coded = table.codes(name)
        present = table.present(name)
        values = coded.numbers[coded.codes[present]]
    inside, count = groups[present], int(groups.max()) + 1
    having, each = inside, values
    if table.has_persons:  # mean per person first: many records must not dominate
        pairs, pair = np.unique(
            inside.astype(np.int64) * table.person_count + table.persons[present],
            return_inverse=True,
        )
        having = (pairs // table.person_count).astype(np.int32)
        each = _group_means(values, pair, len(pairs))
    means = _group_means(each, having, count)
    # rounding must not leave the range of the group
    means = np.clip(means, *ends_of_members(inside, values, count).T)
    means[np.bincount(having, minlength=count) < least] = np.nan
    return means


def _group_means(values: Floats, groups: npt.NDArray[np.integer[Any]], count: int) -> Floats:
    """The mean of each group, computed from deviations from its first value to keep all digits."""
    # a sum of the largest floats overflows; values 64 binary places smaller do not
    shift = 64 if np.abs(values).max(initial=0.0) > 1e290 else 0
    values = np.ldexp(values, -shift)
    first = np.zeros(count)
    first[groups[::-1]] = values[::-1]
    sums = np.bincount(groups, weights=values - first[groups], minlength=count)
    held = np.bincount(groups, minlength=count)
    return np.ldexp(first + sums / np.where(held > 0, held, np.nan), shift)


def _modes(table: Table, name: str, groups: Labels, least: int) -> Integers:
    """The row whose cell is the mode of each record's group; -1 if it would be one person's."""
    column = table.codes(name)
    codes = column.codes.astype(np.int64)
    rows = np.flatnonzero(codes != (-1 if column.missing is None else column.missing))
    chosen = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    keys = groups[rows].astype(np.int64) * max(column.count, 1) + codes[rows]
    found, first = np.unique(keys, return_index=True)
    having, _ = owned_pairs(keys, table.persons[rows])
    _, size = np.unique(having, return_counts=True)  # persons who have it
    owner = found // max(column.count, 1)
    best = np.lexsort((found, -size, owner))  # per group the most frequent, ties by lowest code
    held, place = np.unique(owner[best], return_index=True)
    mode = best[place]
    members, _ = owned_pairs(groups[rows], table.persons[rows])
    clear = (size[mode] > 1) & (np.bincount(members, minlength=len(chosen))[held] >= least)
    chosen[held[clear]] = rows[first[mode[clear]]]
    return chosen[groups]
