"""Who bears the cost of masking: the losses of groups of people, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.table import QUANTITIES, Codes, Pair, Table
from shoal.utility._columns import (
    Floats,
    Integers,
    columns_to_compare,
    quasi_identifiers_to_compare,
)
from shoal.utility._generalization import cost_of_labels

Flags = npt.NDArray[np.bool_]

_REST = "all other values"
_MISSING = "missing"


@dataclass(frozen=True)
class GroupLoss:
    """The loss of a group of people.

    ``label`` identifies the group by values of the data. ``taken_out`` is the share of its records
    that were removed, ``detail`` the normalized certainty penalty of its quasi-identifiers, and
    ``changed`` the share of its cells, in all columns, that differ or are gone.
    """

    label: str
    records: int
    taken_out: float
    detail: float
    changed: float


def losses_by_group(
    original: Table, masked: Table, by: Sequence[str], *, most: int = 8
) -> dict[str, list[GroupLoss]]:
    """The losses of the records with each value of some columns, by column; no group is empty.

    A column with more than ``most`` values is split into its most frequent values and the rest; a
    column of numbers or dates into stretches with about equally many records.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 40, 41], "sex": ["f", "f", "m", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> masked = table.starred(["age"], np.array([False, False, True, True]))
    >>> [(group.label, group.detail) for group in losses_by_group(table, masked, ["sex"])["sex"]]
    [('f', 0.0), ('m', 0.5)]
    """
    names = columns_to_compare(original, masked, by)
    pair = Pair.of(original, masked)
    gone = np.ones(len(original), np.bool_)
    gone[pair.rows] = False
    losses = gone, _detail(pair, gone), _changed(pair)
    return {name: _groups(original, name, losses, most) for name in names}


def _groups(
    original: Table, name: str, losses: Sequence[Floats | Flags], most: int
) -> list[GroupLoss]:
    codes = original.codes(name)
    labels, group_of_code = _grouped(codes, original.kind(name), most)
    group, count = group_of_code[codes.codes], len(labels)
    records = np.bincount(group, minlength=count)
    sums = [np.bincount(group, loss, count) for loss in losses]
    return [
        GroupLoss(label, int(n), *(float(total / n) for total in totals))
        for label, n, *totals in zip(labels, records, *sums, strict=True)
        if n
    ]


def _detail(pair: Pair, gone: Flags) -> Floats:
    """The penalty of the quasi-identifiers by record; a removed cell costs 1."""
    quasi = quasi_identifiers_to_compare(pair.original, pair.masked, None)
    lost = np.zeros(len(pair.original))
    for name in quasi:
        there = pair.original.present(name)
        if name not in pair.masked.columns:
            lost += there
            continue
        lost += there & gone
        costs = cost_of_labels(pair, name)
        if costs is not None:
            lost[pair.rows] += costs[pair.masked.codes(name).codes] * there[pair.rows]
    return lost / len(quasi)


def _changed(pair: Pair) -> Floats:
    """The share of each record's cells that differ or are gone, over all columns."""
    names = columns_to_compare(pair.original, pair.masked, None)
    same = np.zeros(len(pair.original))
    for name in [name for name in names if name in pair.masked.columns]:
        same[pair.rows] += ~pair.masked.changed_cells(name, pair.original)
    return 1.0 - same / len(names)


def _grouped(codes: Codes, kind: str, most: int) -> tuple[list[str], Integers]:
    """The names of the groups, and the group of each code."""
    texts, counts = codes.texts, codes.counts[: len(codes.levels)]
    if len(texts) <= most:
        labels, groups = list(texts), np.arange(len(texts))
    elif kind in QUANTITIES:
        places = (np.cumsum(counts) - counts / 2) * most / counts.sum()
        groups = np.unique(places.astype(np.int64), return_inverse=True)[1]
        ends = [np.flatnonzero(groups == one)[[0, -1]] for one in range(groups.max() + 1)]
        labels = [_stretch(texts[low], texts[high]) for low, high in ends]
    else:
        largest = np.argsort(-counts, kind="stable")[: most - 1]
        labels, groups = [*(texts[code] for code in largest), _REST], np.full(len(texts), most - 1)
        groups[largest] = np.arange(most - 1)
    if codes.missing is not None:
        labels, groups = [*labels, _MISSING], np.append(groups, len(labels))
    return labels, groups


def _stretch(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
