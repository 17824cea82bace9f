"""Who pays for the masking: what groups of people lose, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.table import QUANTITIES, Codes, Pair, Table
from shoal.utility._columns import Integers, columns_to_compare, quasi_identifiers_to_compare
from shoal.utility._generalization import cost_of_labels

_REST = "all other values"
_MISSING = "missing"


@dataclass(frozen=True)
class GroupLoss:
    """What a group of people loses.

    ``label`` says who they are, by values of the data. ``taken_out`` is the share of their records
    that were left out, ``detail`` the normalised certainty penalty of their quasi-identifiers and
    ``changed`` the share of their cells, in all columns, that differ or are gone.
    """

    label: str
    records: int
    taken_out: float
    detail: float
    changed: float


def loss_by_group(original: Table, masked: Table, column: str, *, most: int = 8) -> list[GroupLoss]:
    """What the records with each value of a column lose; no group is empty.

    A column with more than ``most`` values is told by its most frequent ones, one of numbers or
    dates by as many stretches of about equally many records.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 40, 41], "sex": ["f", "f", "m", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> masked = table.starred(["age"], np.array([False, False, True, True]))
    >>> [(group.label, group.detail) for group in loss_by_group(table, masked, "sex")]
    [('f', 0.0), ('m', 0.5)]
    """
    [column] = columns_to_compare(original, masked, [column])
    labels, group_of_code = _grouped(original.codes(column), original.kind(column), most)
    group = group_of_code[original.codes(column).codes]
    pair, count = Pair.of(original, masked), len(labels)
    kept = group[pair.rows]
    records, left = np.bincount(group, minlength=count), np.bincount(kept, minlength=count)
    quasi = quasi_identifiers_to_compare(original, masked, None)
    detail = np.mean([_detail(pair, name, group, kept, count) for name in quasi], axis=0)
    names = columns_to_compare(original, masked, None)
    changed = np.mean([_changed(pair, name, kept, left) for name in names], axis=0) + records - left
    return [
        GroupLoss(label, int(n), 1 - int(stay) / int(n), float(lost / n), float(other / n))
        for label, n, stay, lost, other in zip(labels, records, left, detail, changed, strict=True)
        if n
    ]


def _detail(pair: Pair, name: str, group: Integers, kept: Integers, count: int) -> Integers:
    """The penalty of a column, summed up over each group; a cell that was taken out costs 1."""
    there = pair.original.present(name)
    released = there[pair.rows]
    gone = np.bincount(group, there, count) - np.bincount(kept, released, count)
    if name not in pair.masked.columns:
        return gone + np.bincount(kept, released, count)
    costs = cost_of_labels(pair, name)
    if costs is None:
        return gone
    return gone + np.bincount(kept, costs[pair.masked.codes(name).codes] * released, count)


def _changed(pair: Pair, name: str, kept: Integers, left: Integers) -> Integers:
    """How many released cells of a column differ, by group; all where it was taken out."""
    if name not in pair.masked.columns:
        return left
    return np.bincount(kept, pair.masked.changed_cells(name, pair.original), len(left))


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
