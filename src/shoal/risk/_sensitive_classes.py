"""What a class tells about sensitive values: that they are the same, alike, or unusual."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import Hierarchy, Missing, Roles, Table

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_IN_ORDER = ("integer", "float", "date", "datetime", "time", "duration")
#: Sums of shares are rounded; a distance that is above its bound by less is not above it.
_HAIR = 1e-9
#: Values × different records that are counted at most with wildcards: some tens of seconds.
_MOST_WORK = 20_000_000


@measure(
    "share of records whose sensitive value is certain",
    direction="lower",
    limits=(0, 1),
    sensitive=True,
)
def homogeneity(
    table: Table, *, column: str | None = None, missing: Missing = "own"
) -> Measurement:
    """The share of records in classes that have one sensitive value only.

    Whoever knows the quasi-identifiers of a person in such a class learns the value, however many
    records the class has. With several sensitive columns it is enough that one of them is certain.
    A missing sensitive value is a value of its own.

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
    k-anonymity, section 2.1 (homogeneity attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "ill": ["flu", "flu", "flu", "gout"]})
    >>> homogeneity(Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))).value
    0.5
    """
    names = _sensitive(table, column, "Homogeneity")
    sizes = table.class_sizes(missing)
    certain = {}
    for name in names:
        codes = table.codes(name)
        # as text, so that a missing sensitive value is no wildcard
        told = table.with_labels(name, [str(code) for code in range(codes.count)], codes.codes)
        roles = Roles(quasi_identifiers=(*table.roles.quasi_identifiers, name))
        certain[name] = told.with_roles(roles, released=True).class_sizes(missing) == sizes
    return _exposed("homogeneity", certain)


@measure(
    "share of records whose sensitive values are alike",
    direction="lower",
    limits=(0, 1),
    sensitive=True,
)
def similarity(
    table: Table,
    *,
    column: str | None = None,
    closeness: float = 0.1,
    hierarchy: Any = None,
    level: int = 1,
    missing: Missing = "own",
) -> Measurement:
    """The share of records in classes whose sensitive values differ, if at all, by little.

    A class may have many values that all say the same: salaries between 3,000 and 3,200, or three
    diseases of the stomach. Numbers, dates and times are alike where the class spans at most the
    share ``closeness`` of the span of the table; other values where they have the same node above
    them at ``level`` of a hierarchy and, without one, where they are equal. Classes with one value
    count too, so it is never below the homogeneity.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers and sensitive columns.
    column : str, optional
        The sensitive column; by default all of them.
    closeness : float
        The largest span of a class of numbers or dates, as a share of that of the table.
    hierarchy : Hierarchy or path, optional
        The hierarchy of the sensitive column. Numbers are compared by it too, where it is given.
    level : int
        The level of the hierarchy, from 1.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-closeness: privacy beyond k-anonymity and l-diversity,
    section 3 (similarity attack).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "pay": [3000, 3100, 3000, 9000]})
    >>> similarity(Table(frame, Roles(quasi_identifiers=["age"], sensitive=["pay"]))).value
    0.5
    """
    names = _sensitive(table, column, "Similarity")
    _check_number(closeness, "closeness", 0, 1)
    if isinstance(level, bool) or not isinstance(level, numbers.Integral) or level < 1:
        raise InputError(f"The option 'level' must be a whole number ≥ 1; got {level!r}.")
    if hierarchy is not None and len(names) > 1:
        raise InputError("A hierarchy is of one sensitive column; name it as 'column'.")
    alike = {}
    for name in names:
        if hierarchy is not None:
            places = _nodes(table, name, hierarchy, int(level))
        elif table.kind(name) in _IN_ORDER:
            places = table.codes(name).positions
        else:
            places = np.arange(table.codes(name).count, dtype=np.float64) * 2
        spans = _spans(table, places[table.codes(name).codes], missing)
        alike[name] = table.classes.spread(spans <= closeness + _HAIR)
    return _exposed("similarity", alike)


@measure(
    "share of records in classes with a skew", direction="lower", limits=(0, 1), sensitive=True
)
def skewness(
    table: Table,
    *,
    threshold: float = 0.2,
    column: str | None = None,
    missing: Missing = "own",
) -> Measurement:
    """The share of records in classes whose sensitive values are distributed unlike the table's.

    A class in which half of the people have a disease that one in a hundred has tells something
    about everybody in it. The distance is the total variation, half the sum of the differences of
    the shares, which is that of t-closeness for values without an order.

    Wildcards only make the crowd of a record larger, but a larger crowd can be more skewed: unlike
    the other risks of classes, this one can be higher with them.

    Parameters
    ----------
    table : Table
        The table with its quasi-identifiers and sensitive columns.
    threshold : float
        The distance from which on, not included, a class counts as skewed.
    column : str, optional
        The sensitive column; by default all of them.
    missing : {"own", "wildcard"}
        How a missing quasi-identifier counts.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-closeness: privacy beyond k-anonymity and l-diversity,
    section 3 (skewness attack).

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
    _check_number(threshold, "threshold", 0, 1)
    distances = {name: _distances(table, name, missing) for name in names}
    skewed = {n: table.classes.spread(d > threshold + _HAIR) for n, d in distances.items()}
    highest = max(float(found.max()) for found in distances.values())
    return _exposed("skewness", skewed, threshold=float(threshold), highest=highest)


def _sensitive(table: Table, column: str | None, title: str) -> tuple[str, ...]:
    if len(table) == 0:
        raise InputError("The table has no records, so there is no risk to measure.")
    if column is None:
        if not table.roles.sensitive:
            raise InputError(
                f"{title} is about sensitive columns, and the table declares none; name them in "
                "the roles."
            )
        return table.roles.sensitive
    if not isinstance(column, str):
        raise InputError(f"The 'column' must be the name of one; got {type(column).__name__}.")
    table.chosen([column])
    if column in table.roles.quasi_identifiers:
        raise InputError(
            f"Column '{column}' is a quasi-identifier, so a class has one value of it; {title} is "
            "about a sensitive column."
        )
    return (column,)


def _check_number(value: Any, name: str, low: float, high: float) -> None:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not low <= value < high:
        raise InputError(
            f"The option '{name}' must be a number from {low} to below {high}; got {value!r}."
        )


def _exposed(name: str, marks: Mapping[str, Booleans], **details: Any) -> Measurement:
    """The share of records that are marked in at least one column."""
    exposed = np.logical_or.reduce(list(marks.values()))
    return Measurement(
        name,
        float(exposed.mean()),
        per_record=exposed.astype(np.float64),
        details={
            "records": int(exposed.sum()),
            "columns": {column: float(marked.mean()) for column, marked in marks.items()},
            **details,
        },
    )


def _nodes(table: Table, column: str, hierarchy: Any, level: int) -> Floats:
    """For each value the number of the node above it; different nodes are far apart."""
    tree = Hierarchy.from_plan(hierarchy) if isinstance(hierarchy, str) else hierarchy
    if not isinstance(tree, Hierarchy):
        raise InputError(
            f"The 'hierarchy' must be a Hierarchy or its path; got {type(hierarchy).__name__}."
        )
    coded = tree.codes(table, column)
    if level > coded.levels - 2:
        raise InputError(
            f"Level {level} of the hierarchy of column '{column}' says nothing: of its "
            f"{coded.levels} levels the first has the values and the last has one node."
        )
    return coded.maps[level].astype(np.float64) * 2


def _spans(table: Table, places: Floats, missing: Missing) -> Floats:
    """The distance from the lowest to the highest place among those who agree with each class."""
    classes, agreement = table.classes, table.agreement(missing)
    low, high = np.full(classes.count, np.inf), np.full(classes.count, -np.inf)
    np.minimum.at(low, classes.labels, places)
    np.maximum.at(high, classes.labels, places)
    return agreement.largest(high) + agreement.largest(-low)


def _distances(table: Table, column: str, missing: Missing) -> Floats:
    """How far, in total variation, those who agree with each class are from the table."""
    from shoal.kernels._grouping import first_rows

    classes, agreement = table.classes, table.agreement(missing)
    pairs = table.group([*table.roles.quasi_identifiers, column])
    rows = first_rows(pairs.labels, pairs.count)
    owners = classes.labels[rows]
    codes = table.codes(column)
    values = codes.codes[rows]
    overall = np.bincount(codes.codes, minlength=codes.count) / len(table)
    distances = np.zeros(classes.count)
    if agreement.by_equality:  # the surplus of the values that a class has
        surplus = pairs.sizes / classes.sizes[owners] - overall[values]
        np.add.at(distances, owners, np.maximum(surplus, 0.0))
        return distances
    _check_work(classes.count, codes.count, column)
    sizes = agreement.totals(classes.sizes.astype(np.float64))
    for value, share in enumerate(overall):  # the values that others bring, one after the other
        holders = np.zeros(classes.count)
        with_value = values == value
        holders[owners[with_value]] = pairs.sizes[with_value]
        distances += np.maximum(agreement.totals(holders) / sizes - share, 0.0)
    return distances


def _check_work(classes: int, values: int, column: str) -> None:
    if classes * values > _MOST_WORK:
        raise InputError(
            f"Skewness with wildcards would count {values:,} values of column '{column}' around "
            f"{classes:,} different records; make the column coarser, name another one, or read a "
            "missing value as its own."
        )
