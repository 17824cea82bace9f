"""What a class reveals about sensitive values: that they are the same, alike, or unusual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import Tree
from shoal.risk._classes import check_records, one_value_for_all
from shoal.risk._options import Closeness, ColumnName, Count, Missing, risk
from shoal.table import QUANTITIES, Hierarchy, Table, owned_pairs

#: Sums of shares have rounding errors: a distance must exceed its bound by more than this.
_ROUNDING = 1e-9
#: With wildcards, at most this many values × different records: some tens of seconds.
_MOST_WORK = 20_000_000


@risk("share of records whose sensitive value is certain", sensitive=True, by_counts=True)
def homogeneity(
    table: Table, *, column: ColumnName = None, missing: Missing = "own"
) -> Measurement:
    """The share of records in classes that have only one sensitive value.

    Anyone who knows the quasi-identifiers of a person in such a class learns the value, however
    many records the class has. With several sensitive columns, it is enough that one of them is
    certain. A missing sensitive value is a value of its own. If a person has several records, a
    value is certain if every person in the class has it, and the value is a share of persons.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers and sensitive columns.
    column : str, optional
        The sensitive column; by default all of them.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam (2006), l-diversity: privacy beyond
    k-anonymity <https://doi.org/10.1109/ICDE.2006.1>, section 2.1 (homogeneity attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "ill": ["flu", "flu", "flu", "gout"]})
    >>> homogeneity(Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))).value
    0.5
    """
    certain = {
        name: _shared_by_all(table, table.codes(name).codes.astype(np.int64), name, missing)
        for name in _sensitive(table, column, "Homogeneity")
    }
    return _exposed("homogeneity", table, certain)


@risk("share of records whose sensitive values are alike", sensitive=True, by_counts=True)
def similarity(
    table: Table,
    *,
    column: ColumnName = None,
    closeness: Closeness = 0.1,
    hierarchy: Annotated[Any, Tree()] = None,
    level: Count = 1,
    missing: Missing = "own",
) -> Measurement:
    """The share of records in classes whose sensitive values differ little or not at all.

    A class may have many values that all mean much the same: salaries between 3,000 and 3,200, or
    three stomach diseases. Numbers, dates and times are alike if the class spans at most the share
    ``closeness`` of the table's span. Other values are alike if they have the same node above them
    at ``level`` of the hierarchy, or, without a hierarchy, if they are equal. Classes with one
    value count too, so the result is never below the homogeneity. If a person has several records,
    every person in the class needs one value among those that are alike, and the value is a share
    of persons.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers and sensitive columns.
    column : str, optional
        The sensitive column; by default all of them.
    closeness : float
        The largest span of numbers or dates in a class, as a share of the table's span.
    hierarchy : Hierarchy or path, optional
        The hierarchy of the sensitive column. If you pass one, it is used for numbers too.
    level : int
        The level of the hierarchy, from 1.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-closeness: privacy beyond k-anonymity and l-diversity
    <https://doi.org/10.1109/ICDE.2007.367856>, section 3 (similarity attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "pay": [3000, 3100, 3000, 9000]})
    >>> similarity(Table(frame, Roles(quasi_identifiers=["age"], sensitive=["pay"]))).value
    0.5
    """
    names = _sensitive(table, column, "Similarity")
    if hierarchy is not None and len(names) > 1:
        raise InputError(
            "A hierarchy applies to one sensitive column, and there are several. Name it as "
            "'column'."
        )
    alike = {}
    for name in names:
        values = table.codes(name).codes
        if hierarchy is None and table.kind(name) in QUANTITIES:
            places = table.codes(name).positions[values]
            alike[name] = _within_reach(table, places, closeness + _ROUNDING, missing)
            continue
        if hierarchy is not None:
            values = _nodes(table, name, hierarchy, int(level))[values]
        if table.has_persons:  # those are looked at value by value
            values = np.unique(values, return_inverse=True)[1]
        alike[name] = _shared_by_all(table, values.astype(np.int64), name, missing)
    return _exposed("similarity", table, alike)


@risk("share of records in skewed classes", sensitive=True, by_counts=True)
def skewness(
    table: Table, *, threshold: Closeness = 0.2, column: ColumnName = None, missing: Missing = "own"
) -> Measurement:
    """The share of records in classes whose sensitive values are distributed unlike the table's.

    Suppose that one person in a hundred has a disease, but half of the people in a class have it.
    Then the class reveals something about everyone in it. The distance is the total variation: half
    the sum of the differences of the shares. t-closeness uses the same distance for values without
    an order. If a person has several records, a value counts once for each person who has it, and
    the value is a share of persons.

    Wildcards can only enlarge the group that a record agrees with, but a larger group can be more
    skewed. Unlike the other class-based risks, this one can therefore be higher with wildcards.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers and sensitive columns.
    threshold : float
        A class counts as skewed if its distance is above this.
    column : str, optional
        The sensitive column; by default all of them.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-closeness: privacy beyond k-anonymity and l-diversity
    <https://doi.org/10.1109/ICDE.2007.367856>, section 3 (skewness attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "ill": ["flu", "flu", "flu", "gout"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> found = skewness(table)
    >>> found.value, found.details["highest"]
    (1.0, 0.25)
    """
    names = _sensitive(table, column, "Skewness")
    distances = {name: _distances(table, name, missing) for name in names}
    skewed = {n: table.classes.spread(d > threshold + _ROUNDING) for n, d in distances.items()}
    highest = max(float(found.max()) for found in distances.values())
    return _exposed("skewness", table, skewed, threshold=float(threshold), highest=highest)


def _sensitive(table: Table, column: str | None, title: str) -> tuple[str, ...]:
    check_records(table)
    if column is None:
        if not table.roles.sensitive:
            raise InputError(
                f"{title} needs a sensitive column, and the table declares none. Name it in the "
                "roles."
            )
        return table.roles.sensitive
    table.chosen([column])
    if column in table.roles.quasi_identifiers:
        raise InputError(
            f"Column '{column}' is a quasi-identifier, so each class has only one value of it. "
            f"{title} needs a sensitive column."
        )
    return (column,)


def _exposed(name: str, table: Table, marks: Mapping[str, Flags], **details: Any) -> Measurement:
    """The share of persons with a record that is marked in at least one column."""
    exposed = np.logical_or.reduce(list(marks.values()))
    count = table.person_count
    return Measurement(
        name,
        float(table.total(exposed) / count),
        per_record=exposed,
        details={
            "records": int(table.total(exposed)),
            "columns": {c: float(table.total(marked) / count) for c, marked in marks.items()},
            **details,
        },
    )


def _nodes(table: Table, column: str, hierarchy: Any, level: int) -> Integers:
    """The number of the node above each value."""
    tree = Hierarchy.from_plan(hierarchy) if isinstance(hierarchy, str) else hierarchy
    coded = tree.codes(table, column)
    if level > coded.levels - 2:
        raise InputError(
            f"Level {level} of the hierarchy of column '{column}' cannot group values: the "
            f"hierarchy has {coded.levels} levels. Level 0 holds the values themselves, and the "
            f"last level, {coded.levels - 1}, has a single node."
        )
    return coded.maps[level]


def _spans(table: Table, lows: Floats, highs: Floats, missing: Missing) -> Floats:
    """The distance from lowest to highest place among the records that agree with each class."""
    classes, agreement = table.classes, table.agreement(missing)
    low, high = np.full(classes.count, np.inf), np.full(classes.count, -np.inf)
    np.minimum.at(low, classes.labels, lows)
    np.maximum.at(high, classes.labels, highs)
    return agreement.largest(high) + agreement.largest(-low)


def _shared_by_all(table: Table, values: Integers, column: str, missing: Missing) -> Flags:
    """The records in classes where every person has the same value.

    With wildcards, a value counts if the person has it in any record. This errs on the high side.
    """
    classes, agreement = table.classes, table.agreement(missing)
    count = int(values.max()) + 1
    if not table.has_persons:
        places = values.astype(np.float64)
        return classes.spread(_spans(table, places, places, missing) == 0)
    if agreement.by_equality:
        return classes.spread(one_value_for_all(classes.labels, values, table.persons))
    _check_work(classes.count, count, column, "Homogeneity")
    open_to_all = np.zeros(classes.count, np.bool_)
    for value in range(count):
        has = table.of_persons(values == value)[table.persons]
        lacking = np.zeros(classes.count)
        lacking[classes.labels[~has]] = 1.0
        open_to_all |= agreement.largest(lacking) == 0.0
    return classes.spread(open_to_all)


def _within_reach(table: Table, places: Floats, reach: float, missing: Missing) -> Flags:
    """The records in classes where every person has a place in one stretch of length ``reach``.

    With wildcards, the stretch only needs to meet the span of each person's places over all
    records. This errs on the high side.
    """
    classes, high, low = table.classes, places, places
    if not (table.has_persons and table.agreement(missing).by_equality):
        if table.has_persons:
            high = table.of_persons(places)[table.persons]
            low = -table.of_persons(-places)[table.persons]
        return classes.spread(_spans(table, high, low, missing) <= reach)
    labels = classes.labels.astype(np.int64)
    order = np.lexsort((table.persons, places, labels))
    of_class, at = labels[order], places[order]
    # the stretches that begin at a place of the class and contain a place of this record, except
    # those that contain an earlier place of the same person
    stride = float(at.max() - at.min()) + 2 * reach + 1.0
    lined_up = of_class * stride + (at - at.min())  # one class after the other, far apart
    earlier = np.full(len(order), -np.inf)
    by_person = np.lexsort((lined_up, table.persons[order], of_class))
    same = (np.diff(of_class[by_person]) == 0) & (np.diff(table.persons[order][by_person]) == 0)
    earlier[by_person[1:][same]] = lined_up[by_person[:-1][same]]
    first = np.maximum(
        np.searchsorted(lined_up, lined_up - reach, side="left"),
        np.searchsorted(lined_up, earlier, side="right"),
    )
    behind = np.searchsorted(lined_up, lined_up, side="right")
    meeting = np.zeros(len(order) + 1, np.int64)
    kept = first < behind
    np.add.at(meeting, first[kept], 1)
    np.add.at(meeting, behind[kept], -1)
    held = np.zeros(classes.count, np.int64)
    np.maximum.at(held, of_class, np.cumsum(meeting)[:-1])
    return classes.spread(held == classes.sizes)


def _distances(table: Table, column: str, missing: Missing) -> Floats:
    """The total variation between the records that agree with each class and the table."""
    classes, agreement = table.classes, table.agreement(missing)
    pairs = table.crowds([*table.roles.quasi_identifiers, column])
    owners = classes.labels[pairs.first_rows]
    codes = table.codes(column)
    values = codes.codes[pairs.first_rows]
    # a value counts once for each person who has it
    if table.has_persons:
        held = owned_pairs(codes.codes, table.persons)[0]
        overall = np.bincount(held, minlength=codes.count) / len(held)
    else:
        overall = codes.counts / table.records
    totals = np.bincount(owners, pairs.sizes, minlength=classes.count).astype(np.float64)
    distances = np.zeros(classes.count)
    if agreement.by_equality:  # the surplus of the values that a class has
        surplus = pairs.sizes / totals[owners] - overall[values]
        np.add.at(distances, owners, np.maximum(surplus, 0.0))
        return distances
    _check_work(classes.count, codes.count, column, "Skewness")
    sizes = agreement.totals(totals)
    for value, share in enumerate(overall):  # one value at a time: others bring values too
        holders = np.zeros(classes.count)
        with_value = values == value
        holders[owners[with_value]] = pairs.sizes[with_value]
        distances += np.maximum(agreement.totals(holders) / sizes - share, 0.0)
    return distances


def _check_work(classes: int, values: int, column: str, title: str) -> None:
    if classes * values > _MOST_WORK:
        raise InputError(
            f"{title} with wildcards would have to count {values:,} values of column '{column}' "
            f"for {classes:,} different records. Make the column coarser, name another column, or "
            "set 'missing' to 'own'."
        )
