"""At which levels of their hierarchies values were released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from shoal.errors import InputError, did_you_mean, quoted
from shoal.measurement import Measurement, measure
from shoal.parameters import Fits
from shoal.table import Hierarchy, HierarchyCodes, Table, empty_cells
from shoal.utility._columns import Columns, Integers, quasi_identifiers_to_compare

_BY_COLUMN = Fits("a hierarchy for each column", lambda one: isinstance(one, Mapping) and bool(one))


@measure(
    "generalization intensity",
    direction="lower",
    limits=(0, 1),
    pairs=True,
    on_request="levels are those of hierarchies; name them as hierarchies",
)
def generalization_intensity(
    original: Table,
    masked: Table,
    *,
    hierarchies: Annotated[Mapping[str, Any] | None, _BY_COLUMN] = None,
    columns: Columns = None,
) -> Measurement:
    """The mean level at which cells were released, over the height of their hierarchy.

    One minus Sweeney's precision. A cell that is as it was has level 0; one that was suppressed,
    or taken out with its record or column, has the highest. ``details["levels"]`` has for each
    column the share of the cells at each level. A released value that the hierarchy does not have
    over the original value counts with the lowest level that has it at all, else with level 0,
    and is counted in ``details["elsewhere"]``.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    hierarchies : dict of str to Hierarchy
        The hierarchy of each column, or what a plan writes for it.
    columns : list of str, optional
        Only these columns; the quasi-identifiers with a hierarchy without it.

    References
    ----------
    Sweeney (2002), Achieving k-anonymity privacy protection using generalization and suppression,
    definition of Prec.

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
        raise InputError(f"There is no hierarchy for {quoted(lacking)}; name it in 'hierarchies'.")
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
    return Measurement(
        "generalization_intensity",
        float(np.mean(list(each.values()))),
        details={"columns": each, "levels": shares, "elsewhere": elsewhere},
    )


def _trees(original: Table, hierarchies: Mapping[str, Any] | None) -> dict[str, Hierarchy]:
    if not hierarchies:
        raise InputError(
            "Levels are those of hierarchies: give 'hierarchies', a hierarchy for each column."
        )
    for name in hierarchies:
        if name not in original.columns:
            known = did_you_mean(str(name), original.columns)
            raise InputError(f"There is a hierarchy for '{name}', which is no column. {known}")
    return {name: Hierarchy.from_plan(one) for name, one in hierarchies.items()}


def _levels(
    tree: HierarchyCodes, original: Table, masked: Table, name: str, rows: Integers
) -> tuple[Integers, int]:
    """The level of each released cell, and how many have a value from elsewhere in the tree."""
    released = masked.codes(name)
    place = {text: code for code, text in enumerate(released.texts)}
    missing = -1 if released.missing is None else released.missing
    values = tree.column.codes[rows]
    found = np.full(len(rows), -1)
    anywhere = np.zeros(released.count, np.int64)
    for level in range(tree.levels - 1, -1, -1):  # downwards, so that the lowest one stays
        code_of_node = np.array(
            [missing if text is None else place.get(text, -2) for text in tree.labels[level]]
        )
        anywhere[code_of_node[code_of_node >= 0]] = level
        found[code_of_node[tree.maps[level][values]] == released.codes] = level
    found[empty_cells(original, masked, name) & original.present(name)[rows]] = tree.levels - 1
    lost = found < 0
    found[lost] = anywhere[released.codes[lost]]
    return found, int(lost.sum())
