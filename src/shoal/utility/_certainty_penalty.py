"""How wide the released values are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import (
    Table,
    empty_cells,
    ends_of_labels,
    ends_of_members,
    quantities,
    released_text,
)
from shoal.utility._columns import (
    Floats,
    Integers,
    paired_rows,
    quasi_identifiers_to_compare,
)

if TYPE_CHECKING:
    from shoal.table import Codes


@measure(
    "normalised certainty penalty",
    direction="lower",
    limits=(0, 1),
    needs_original=True,
    pairs=True,
)
def normalized_certainty_penalty(
    original: Table, masked: Table, *, columns: Sequence[str] | None = None
) -> Measurement:
    """How much of its column the released value of a cell spans, on average.

    A cell that still has a single value costs 0, one that was suppressed, or taken out with its
    record or column, costs 1. In between, an interval costs its width over the range of the column
    in the original, and any other released value (m - 1) / (d - 1), where m of the d different
    values of the column were released as this one. Other released values of numbers and dates
    cost the stretch of the original values below them, over the range. A cell that was missing
    from the start costs nothing.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    columns : list of str, optional
        Only these columns; the quasi-identifiers without it.

    References
    ----------
    Xu et al. (2006), Utility-based anonymization using local recoding, section 3. Iyengar (2002),
    Transforming data to satisfy privacy constraints, section 4 (m - 1 over d - 1).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [20, 22, 31, 60]}), Roles(quasi_identifiers=["age"]))
    >>> masked = Hierarchy.intervals(10).generalize(table, "age", 1)
    >>> normalized_certainty_penalty(table, masked).value  # 10, 10, 10 and 0 of 40
    0.1875
    """
    names = quasi_identifiers_to_compare(original, masked, columns)
    rows = paired_rows(original, masked)
    each, released = {}, {}
    gone = max(0, len(original) - len(masked))
    for name in names:
        there = original.present(name)
        costs = np.ones(len(masked))
        if name in masked.columns:
            costs = _costs(original, masked, name, rows)
        costs = np.where(there[rows], costs, 0.0)
        lost = int(there.sum() - there[rows].sum()) if gone else 0
        each[name] = float((costs.sum() + lost) / len(original))
        released[name] = float(costs.mean())
    return Measurement(
        "normalized_certainty_penalty",
        min(1.0, float(np.mean(list(each.values())))),
        details={
            "columns": each,
            "released_records": float(np.mean(list(released.values()))),
            "records_taken_out": gone,
        },
    )


def _costs(original: Table, masked: Table, name: str, rows: Integers) -> Floats:
    """What each cell of a released column costs."""
    column, values = masked.codes(name), original.codes(name)
    costs = np.zeros(column.count)
    if released_text(original, masked, name):
        costs = np.append(_widths(original, masked, name, rows, values), 0.0)
    return np.where(empty_cells(original, masked, name), 1.0, costs[column.codes])


def _widths(original: Table, masked: Table, name: str, rows: Integers, values: Codes) -> Floats:
    """The share of the column that each released text spans."""
    column = masked.codes(name)
    at = _numbers(original, name, values)
    ends = None
    if at is not None and original.kind(name) in ("integer", "float"):
        ends = ends_of_labels(column.texts)
    under = values.codes[rows].astype(np.int64)
    if at is None:
        pairs = np.unique(column.codes.astype(np.int64) * values.count + under)
        pairs = pairs[pairs % values.count != (-1 if values.missing is None else values.missing)]
        held = np.bincount(pairs // values.count, minlength=column.count)
        return np.maximum(held[: len(column.levels)] - 1, 0) / max(1, len(values.levels) - 1)
    low, high = np.nanmin(at), np.nanmax(at)
    if ends is None:
        known = ~np.isnan(at[under])
        members = ends_of_members(column.codes[known], at[under][known], column.count)
        ends = members[: len(column.levels)]
    reach = np.clip(ends, low, high) / 2  # halves, since a range can be too large for a float
    half = high / 2 - low / 2
    width = np.maximum(reach[:, 1] - reach[:, 0], 0.0)
    return np.nan_to_num(width / half) if half > 0 else np.zeros(len(width))


def _numbers(original: Table, name: str, values: Codes) -> Floats | None:
    """The values of a column as finite numbers by code, or None where they are none."""
    if original.kind(name) in ("text", "boolean") or not len(values.levels):
        return None
    try:
        return quantities(values)
    except InputError:
        return None
