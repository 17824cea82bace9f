"""People who lie in the intervals, sets and coarser values that were released as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.risk._success import one_numbering
from shoal.table import Missing, ReleasedColumn, Table, released_column, weights_by_class

if TYPE_CHECKING:
    from shoal.kernels.boxes.covered_rows import Boxes
    from shoal.kernels.boxes.predicates import Indexed

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def covered_people(
    original: Table, masked: Table, own: Integers, missing: Missing
) -> tuple[Floats, Floats, int] | None:
    """For each masked record, how many people its quasi-identifiers cover; None if not its own.

    Beside it, for each person, how certain it is that the person is in the sample: f of the F
    people of a class are in it, and where classes overlap, what falls on a person adds up. Last,
    how many people are in no class only because a released name does not say whom it stands for.

    Parameters
    ----------
    original, masked : Table
        With the same quasi-identifiers; the masked records have lost some others.
    own : numpy.ndarray
        The row of the original of each masked record.
    """
    from shoal.kernels.boxes.covered_rows import covered_rows, shared_out

    read = [
        _own_covered(released_column(name, original, masked), masked, own, missing)
        for name in masked.roles.quasi_identifiers
    ]
    columns = [column for column in read if column is not None]
    if len(columns) < len(read):
        return None
    rows, boxes = _people(columns, original), _boxes(columns, masked)
    # a record that agrees with others by a wildcard may agree with more than it covers
    records = masked.class_sizes(missing).astype(np.float64)
    # a person with several records is a share of one in each: at least so many are covered
    shares = 1.0 / np.bincount(original.persons)[original.persons]
    weights = weights_by_class(original.classes, shares)
    people = np.floor(covered_rows(rows, boxes, weights) + 1e-9)
    people = np.maximum(masked.classes.spread(people), records)
    shares = np.zeros(masked.classes.count)
    shares[masked.classes.labels] = masked.classes.record_sizes / people
    certainties = original.classes.spread(shared_out(rows, boxes, shares))
    named = any(column.reading == "pairs" for column in columns)
    unplaced = int(original.of_persons(certainties == 0).sum()) if named else 0
    return people, np.minimum(certainties, 1.0), unplaced


def _own_covered(
    column: ReleasedColumn, masked: Table, own: Integers, missing: Missing
) -> ReleasedColumn | None:
    """The column with missing values, if each record lies in what was released of it."""
    values = column.values[own]
    for reading in (column, _of_rounded(column, masked, values)):
        if reading is None:
            continue
        whole = reading.with_missing(wildcard=missing == "wildcard")
        if whole.stands_for(whole.labels, whole.values[own]).all():
            return whole
    return None


def _of_rounded(column: ReleasedColumn, masked: Table, values: Integers) -> ReleasedColumn | None:
    """Numbers that became texts of other numbers stand for what lies between their records'."""
    rounded = column.ordered and column.reading == "values" and masked.kind(column.name) == "text"
    return column.spanned(values) if rounded else None


def _people(columns: list[ReleasedColumn], original: Table) -> Indexed:
    """The people, those with equal values once."""
    from shoal.kernels.boxes.predicates import indexed
    from shoal.kernels.grouping import first_rows

    first = first_rows(original.classes.labels, original.classes.count)
    counts = np.array([len(column.places) for column in columns])
    return indexed(np.stack([column.values[first] for column in columns]), counts)


def _boxes(columns: list[ReleasedColumn], masked: Table) -> Boxes:
    """What was released, records with equal cells once."""
    from shoal.kernels.boxes.covered_rows import Boxes
    from shoal.kernels.grouping import first_rows

    first = first_rows(masked.classes.labels, masked.classes.count)
    labels, starts, low, high = one_numbering(columns)
    return Boxes(np.ascontiguousarray(labels[:, first].T), starts, low, high)
