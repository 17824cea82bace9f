"""An original and what became of it: which row is which, and what each value was released as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from shoal.kernels.arrays import Flags, Integers
from shoal.table.columns._column import Column
from shoal.table.columns._encode import Codes
from shoal.table.hierarchy._rule import ROOT

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes:
    """The values of a column beside what they were released as, each pair of codes once.

    Parameters
    ----------
    values, labels : numpy.ndarray
        The code of the value and that of the released cell, by ascending value and label.
    records : numpy.ndarray
        How many released records have the pair.
    """

    values: Integers
    labels: Integers
    records: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """Two tables whose rows can be paired; what compares them is made once and kept.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> table = Table(pl.DataFrame({"age": [31, 31, 40]}))
    >>> masked = table.with_labels("age", ["30s", "40s"], np.array([0, 0, 1]))
    >>> found = Pair.of(table, masked).outcomes("age")
    >>> found.values.tolist(), found.labels.tolist(), found.records.tolist()
    ([0, 1], [0, 1], [2, 1])
    """

    original: Table
    masked: Table
    rows: Integers
    _outcomes: dict[str, Outcomes]

    @classmethod
    def of(cls, original: Table, masked: Table) -> Pair:
        """The pair of two tables; InputError where their rows cannot be paired."""
        kept = _PAIRS.setdefault(masked, WeakKeyDictionary())
        if original not in kept:
            kept[original] = _Facts(masked.rows_in(original), {})
        facts = kept[original]
        return cls(original, masked, facts.rows, facts.outcomes)

    def outcomes(self, name: str) -> Outcomes:
        """What the values of a column that both tables have were released as."""
        if name not in self._outcomes:
            before, after = self.original.codes(name), self.masked.codes(name)
            rows = None if self.original is self.masked else self.rows
            self._outcomes[name] = _outcomes(before, after, rows, self.masked.times)
        return self._outcomes[name]


@dataclass(frozen=True, eq=False)
class _Facts:
    """What is kept of a pair; without the tables, which are let go when nobody else has them."""

    rows: Integers
    outcomes: dict[str, Outcomes]


_PAIRS: WeakKeyDictionary[Table, WeakKeyDictionary[Table, _Facts]] = WeakKeyDictionary()


def _outcomes(
    before: Codes, after: Codes, rows: Integers | None, times: Integers | None
) -> Outcomes:
    width = max(1, after.count)
    if rows is None:  # a table beside itself
        values = np.flatnonzero(before.counts)
        return Outcomes(values, values, before.counts[values])
    keys = before.codes[rows].astype(np.int64) * width
    keys += after.codes
    distinct, records = _counted(keys, before.count * width, times)
    values, released = np.divmod(distinct, width)
    return Outcomes(values, released, records)


def _counted(keys: Integers, most: int, times: Integers | None) -> tuple[Integers, Integers]:
    """The different keys, all below ``most``, in ascending order, and how often each is there."""
    from shoal.kernels.grouping import dense_labels, first_rows

    if most <= 4 * len(keys):
        counts = np.bincount(keys, times).astype(np.int64, copy=False)
        distinct = np.flatnonzero(counts)
        return distinct, counts[distinct]
    labels, count = dense_labels(keys.astype(np.uint64))
    distinct = keys[first_rows(labels, count)]
    order = np.argsort(distinct)
    counts = np.bincount(labels, times, count).astype(np.int64, copy=False)
    return distinct[order], counts[order]


def empty_codes(original: Column, masked: Column) -> Flags:
    """Which codes of a released column say nothing: missing, or ``*`` that the original lacks."""
    codes = masked.codes
    empty = np.zeros(codes.count, np.bool_)
    if codes.missing is not None:
        empty[codes.missing] = True
    if masked.kind == "text" and not _has(original, ROOT):
        empty[: len(codes.levels)] |= (codes.levels == ROOT).to_numpy()
    return empty


def _has(column: Column, text: str) -> bool:
    return column.kind == "text" and bool((column.codes.levels == text).any())


def empty_cells(original: Table, masked: Table, name: str) -> Flags:
    """Where a released column says nothing: missing, or ``*`` that the original has not."""
    if masked.kind(name) != "text":
        return ~masked.present(name)
    return empty_codes(original.column(name), masked.column(name))[masked.codes(name).codes]


def released_text(original: Table, masked: Table, name: str) -> bool:
    """Whether a column was generalized: it is text, with values that the original has not."""
    if masked.kind(name) != "text":
        return False
    texts: Any = masked.codes(name).texts
    return not set(texts) <= {*original.codes(name).texts, ROOT}
