"""The width of the released values, and their levels in the hierarchies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from shoal.errors import InputError, did_you_mean, quoted
from shoal.measurement import Measurement, measure
from shoal.parameters import Fits
from shoal.table import (
    NUMBERS,
    Column,
    Hierarchy,
    HierarchyCodes,
    Outcomes,
    Pair,
    Table,
    empty_cells,
    empty_codes,
    ends_of_members,
    quantities,
    released_text,
)
from shoal.utility._columns import (
    Columns,
    Floats,
    Integers,
    mean_over_columns,
    quasi_identifiers_to_compare,
)


@measure("normalized certainty penalty", direction="lower", limits=(0, 1), pairs=True)
def normalized_certainty_penalty(
    original: Table, masked: Table, *, columns: Columns = None
) -> Measurement:
    """The share of its column that the released value of a cell spans, on average.

    A cell that still has a single value costs 0. A cell that was suppressed, or removed with its
    record or column, costs 1. In between, an interval costs its width divided by the range of the
    column in the original. The width of an interval of whole numbers is the distance between its
    lowest and its highest number: [32, 35) holds 32 to 34, so its width is 2. Any other released
    value costs (m - 1) / (d - 1), where m of the d distinct values of the column were released as
    this one. Other released values of numbers and dates cost the range of the original values
    that they stand for, divided by the column's range. A cell that was already missing costs
    nothing.

    Parameters
    ----------
    original, masked : Table
        The table before masking, and the table made from it.
    columns : list of str, optional
        Only these columns; by default the quasi-identifiers.

    References
    ----------
    Xu et al. (2006), Utility-based anonymization using local recoding, section 3. Iyengar (2002),
    Transforming data to satisfy privacy constraints <https://doi.org/10.1145/775047.775089>,
    section 4 (m - 1 over d - 1).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [20, 22, 31, 60]}), Roles(quasi_identifiers=["age"]))
    >>> masked = Hierarchy.intervals(10).generalize(table, "age", 1)
    >>> round(normalized_certainty_penalty(table, masked).value, 3)  # 9, 9, 9 and 0 of 40
    0.169
    """
    names = quasi_identifiers_to_compare(original, masked, columns)
    pair = Pair.of(original, masked)
    each, released = {}, {}
    gone = max(0, len(original) - len(masked))
    for name in names:
        there = len(original) - original.missing_count(name)
        kept = there
        if gone:
            filled = there == len(original)
            kept = len(masked) if filled else int(original.present(name)[pair.rows].sum())
        cost = float(kept)
        if name in masked.columns:
            cost = _cost(pair, name)
        each[name] = float((cost + there - kept) / len(original))
        released[name] = cost / len(masked)
    return Measurement(
        "normalized_certainty_penalty",
        min(1.0, float(np.mean(list(each.values())))),
        details={
            "columns": each,
            "released_records": float(np.mean(list(released.values()))),
            "records_taken_out": gone,
        },
    )


def _cost(pair: Pair, name: str) -> float:
    """The total cost of a released column's cells that had a value before."""
    costs = cost_of_labels(pair, name)
    if costs is None:
        return 0.0
    values, outcomes = pair.original.codes(name), pair.outcomes(name)
    present = outcomes.values != (-1 if values.missing is None else values.missing)
    return float(outcomes.records[present] @ costs[outcomes.labels[present]])


def cost_of_labels(pair: Pair, name: str) -> Floats | None:
    """The cost of a released column's cell by its code; None if all costs are zero."""
    before, after = pair.original.column(name), pair.masked.column(name)
    if pair.original is pair.masked:
        return None
    coarser = released_text(pair.original, pair.masked, name)
    if not coarser and not after.missing_count and after.kind != "text":
        return None
    labels = after.codes
    costs = np.zeros(labels.count)
    if coarser:
        costs[: len(labels.levels)] = _widths(before, after, pair.outcomes(name))
    costs[empty_codes(before, after)] = 1.0
    return costs


def _widths(before: Column, after: Column, outcomes: Outcomes) -> Floats:
    """The share of the column that each released text spans."""
    values, labels = before.codes, after.codes
    at = _numbers(before)
    present = outcomes.values != (-1 if values.missing is None else values.missing)
    if at is None:
        held = np.bincount(outcomes.labels[present], minlength=labels.count)
        return np.maximum(held[: len(labels.levels)] - 1, 0) / max(1, len(values.levels) - 1)
    low, high = np.nanmin(at), np.nanmax(at)
    ends = None
    if before.kind in NUMBERS:
        domain = after.domain(before.kind)
        ends = domain.whole_ends if before.kind == "integer" else domain.ends
    if ends is None:
        members = ends_of_members(
            outcomes.labels[present], at[outcomes.values[present]], labels.count
        )
        ends = members[: len(labels.levels)]
    reach = np.clip(ends, low, high) / 2  # in halves: a range may exceed a float
    half = high / 2 - low / 2
    width = np.maximum(reach[:, 1] - reach[:, 0], 0.0)
    return np.nan_to_num(width / half) if half > 0 else np.zeros(len(width))


def _numbers(column: Column) -> Floats | None:
    """The values of a column as finite numbers by code, or None if they are not."""
    if column.kind in ("text", "boolean") or not len(column.codes.levels):
        return None
    try:
        return quantities(column.codes)
    except InputError:
        return None


_BY_COLUMN = Fits("a hierarchy for each column", lambda one: isinstance(one, Mapping) and bool(one))


@measure(
    "generalization intensity",
    direction="lower",
    limits=(0, 1),
    pairs=True,
    on_request="hierarchies are needed; name them in 'hierarchies'",
)
def generalization_intensity(
    original: Table,
    masked: Table,
    *,
    hierarchies: Annotated[Mapping[str, Any] | None, _BY_COLUMN] = None,
    columns: Columns = None,
) -> Measurement:
    """The mean level of the released cells, divided by the height of their hierarchy.

    One minus Sweeney's precision. An unchanged cell has level 0. A cell that was suppressed,
    or removed with its record or column, has the highest level. ``details["levels"]`` has the share
    of cells at each level, per column. A released value may not be above its original value in
    the hierarchy. It then counts with the lowest level that has it at all, or else with level 0,
    and is counted in ``details["elsewhere"]``.

    Parameters
    ----------
    original, masked : Table
        The table before masking, and the table made from it.
    hierarchies : dict of str to Hierarchy
        The hierarchy of each column, or its description as in a plan.
    columns : list of str, optional
        Only these columns; by default the quasi-identifiers with a hierarchy.

    References
    ----------
    Sweeney (2002), Achieving k-anonymity privacy protection using generalization and suppression
    <https://doi.org/10.1142/S021848850200165X>, definition of Prec.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [20, 22, 31, 60]}), Roles(quasi_identifiers=["age"]))
    >>> ages = Hierarchy.intervals([10, 20])
    >>> masked = ages.generalize(table, "age", 1)
    >>> found = generalization_intensity(table, masked, hierarchies={"age": ages})
    >>> round(found.value, 4), found.details["levels"]
    (0.3333, {'age': [0.0, 1.0, 0.0, 0.0]})
    """
    trees = _trees(original, hierarchies)
    if columns is None:
        columns = [name for name in original.roles.quasi_identifiers if name in trees] or None
    names = quasi_identifiers_to_compare(original, masked, columns)
    lacking = [name for name in names if name not in trees]
    if lacking:
        raise InputError(f"There is no hierarchy for {quoted(lacking)}. Name it in 'hierarchies'.")
    rows = masked.rows_in(original)
    each, shares, elsewhere = {}, {}, {}
    for name in names:
        tree = trees[name].codes(original, name, unseen="top")
        levels = np.full(len(original), tree.levels - 1)
        if name in masked.columns:
            levels[rows], elsewhere[name] = _levels(tree, original, masked, name, rows)
        counts = np.bincount(levels, minlength=tree.levels)
        shares[name] = (counts / len(original)).tolist()
        each[name] = float(levels.mean() / (tree.levels - 1))
    return mean_over_columns("generalization_intensity", each, levels=shares, elsewhere=elsewhere)


def _trees(original: Table, hierarchies: Mapping[str, Any] | None) -> dict[str, Hierarchy]:
    if not hierarchies:
        raise InputError(
            "Levels need hierarchies. Pass 'hierarchies' with a hierarchy for each column."
        )
    for name in hierarchies:
        if name not in original.columns:
            known = did_you_mean(str(name), original.columns)
            raise InputError(f"There is a hierarchy for '{name}', which is not a column. {known}")
    return {name: Hierarchy.from_plan(one) for name, one in hierarchies.items()}


def _levels(
    tree: HierarchyCodes, original: Table, masked: Table, name: str, rows: Integers
) -> tuple[Integers, int]:
    """The level of each released cell, and how many values are from elsewhere in the tree."""
    released = masked.codes(name)
    place = {text: code for code, text in enumerate(released.texts)}
    missing = -1 if released.missing is None else released.missing
    values = tree.column.codes[rows]
    found = np.full(len(rows), -1)
    anywhere = np.zeros(released.count, np.int64)
    for level in range(tree.levels - 1, -1, -1):  # downwards: the lowest level wins
        code_of_node = np.array(
            [missing if text is None else place.get(text, -2) for text in tree.labels[level]]
        )
        anywhere[code_of_node[code_of_node >= 0]] = level
        found[code_of_node[tree.maps[level][values]] == released.codes] = level
    found[empty_cells(original, masked, name) & original.present(name)[rows]] = tree.levels - 1
    lost = found < 0
    found[lost] = anywhere[released.codes[lost]]
    return found, int(lost.sum())
