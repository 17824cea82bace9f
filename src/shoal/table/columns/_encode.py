"""Columns as small integers, for grouping, models and kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._frames import plain_floats

_NESTED = (pl.List, pl.Array, pl.Struct, pl.Object)
_WIDE = (pl.String, pl.Binary, pl.Decimal, pl.Int128, pl.UInt128, pl.Categorical, pl.Null)
_HASHES_TO_TRY = 8
_FEW = 1000  # texts
#: With this many numbers, a sample of them is checked first.
_WORTH_SORTING, _LOOKED_AT = 20_000, 1_000


@dataclass(frozen=True, eq=False, repr=False)
class Codes:
    """A column as codes 0, 1, 2, … into its distinct values.

    Parameters
    ----------
    codes : numpy.ndarray
        The code of each record, in the narrowest unsigned type.
    levels : polars.Series
        The distinct values by code, ascending (an Enum in its declared order), without missing.
    missing : int, optional
        The code of a missing value, which is the last one. None if nothing is missing.
    times : numpy.ndarray, optional
        How many records each row represents. None if each row is one record.
    """

    codes: npt.NDArray[np.unsignedinteger[Any]]
    levels: pl.Series
    missing: int | None = None
    times: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        frozen = self.codes.view()  # the caller's own array stays writable
        frozen.flags.writeable = False
        object.__setattr__(self, "codes", frozen)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.levels.name

    @property
    def count(self) -> int:
        """The number of codes, including the code of missing."""
        return len(self.levels) + (self.missing is not None)

    @cached_property
    def counts(self) -> Integers:
        """How many records have each code."""
        from shoal.kernels.grouping import counts_of

        counts: Integers
        if self.times is None:
            counts = counts_of(self.codes, self.count)
        else:
            counts = np.bincount(self.codes, self.times, self.count).astype(np.int64)
        counts.flags.writeable = False
        return counts

    @property
    def texts(self) -> list[str]:
        """The distinct values as text, by code, without missing."""
        return in_type(self.levels, pl.String()).to_list()

    @property
    def numbers(self) -> Floats:
        """Each code as a number: its value, the units of a date or time, or else its rank."""
        levels = self.levels
        if not levels.dtype.is_numeric():
            levels = levels.to_physical()
        if not levels.dtype.is_numeric() or self.levels.dtype == pl.Categorical:
            levels = pl.Series(range(len(levels)), dtype=pl.Float64)
        values = levels.cast(pl.Float64).to_numpy()
        return np.append(values, np.nan) if self.missing is not None else values

    @property
    def positions(self) -> Floats:
        """The position of each code between the smallest value (0) and the largest (1); missing: 2.

        Infinite values are at -2 and 3, away from all others.
        """
        values = self.numbers
        finite = np.where(np.isfinite(values), values, np.nan)
        finite = np.ldexp(finite, -int(np.frexp(np.nanmax(np.abs(finite), initial=1.0))[1]))
        lowest = np.nanmin(finite, initial=np.inf)
        span = np.nanmax(finite, initial=-np.inf) - lowest
        placed = (finite - lowest) / span if span > 0 else np.zeros(len(values))
        placed[values == -np.inf], placed[values == np.inf] = -2.0, 3.0
        if self.missing is not None:
            placed[self.missing] = 2.0
        return placed

    def with_codes(self, codes: npt.NDArray[np.unsignedinteger[Any]]) -> Codes:
        """Other records over the same levels, each row one of them."""
        return replace(self, codes=codes, times=None)

    def at(self, rows: npt.NDArray[Any]) -> Codes:
        """The marked records, or by position (-1: missing), with only their own levels."""
        if rows.dtype != np.bool_ and (rows < 0).any():
            gap = len(self.levels)
            codes = np.where(rows < 0, gap, self.codes[rows]).astype(narrowest(gap + 1))
            taken = replace(self, codes=codes, missing=gap, times=None)
        else:
            taken = self.with_codes(self.codes[rows])
        used = taken.counts > 0
        if used.all():
            return taken
        levels = self.levels.filter(pl.Series(used[: len(self.levels)]))
        count = int(used.sum())
        narrow = (np.cumsum(used) - 1).astype(narrowest(count))
        return Codes(narrow[taken.codes], levels, len(levels) if len(levels) < count else None)

    def __repr__(self) -> str:
        # without the levels, which are cells of the table
        return f"Codes('{self.name}', records={len(self.codes)}, count={self.count})"


def encode(series: pl.Series) -> Codes:
    """Encode a column; NaN counts as missing, and -0.0 as 0.0."""
    from shoal.kernels.grouping import first_rows

    if isinstance(series.dtype, _NESTED):
        raise InputError(
            f"Column '{series.name}' has {series.dtype.base_type()} values, which cannot be "
            "compared. Convert them to numbers or text, or leave out the column."
        )
    name = series.name
    series = plain_floats(series.alias(""))  # polars reads a name like ^a$ as a pattern
    if mostly_differ(series):
        return _sorted_codes(series, name)
    labels, count = _labels(series)
    # labels are numbered by first appearance, so if all rows differ, a row's place is its label
    distinct = series if count == len(series) else series[first_rows(labels, count)]
    order = _ascending(distinct)
    code_of_label = np.empty(count, narrowest(count))
    code_of_label[order] = np.arange(count, dtype=code_of_label.dtype)
    levels = distinct[order[: count - min(1, series.null_count())]].alias(name)
    return Codes(code_of_label[labels], levels, len(levels) if len(levels) < count else None)


def mostly_differ(series: pl.Series) -> bool:
    """Whether a column has numbers, none missing, so different that sorting is fastest."""
    if series.null_count() or isinstance(series.dtype, _WIDE) or len(series) < _WORTH_SORTING:
        return False
    few = series.gather_every(len(series) // _LOOKED_AT)
    return bool(few.n_unique() > 0.9 * len(few))


def _sorted_codes(series: pl.Series, name: str) -> Codes:
    """The codes of numbers, by sorting them."""
    values = series.to_physical().to_numpy()
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, ascending[1:] != ascending[:-1])
    codes = np.empty(len(values), narrowest(int(first.sum())))
    codes[order] = np.cumsum(first, dtype=np.uint64) - np.uint64(1)
    return Codes(codes, series[order[first]].alias(name))


def _ascending(distinct: pl.Series) -> npt.NDArray[np.integer[Any]]:
    """The positions of distinct values in ascending order, a missing one last."""
    if distinct.dtype == pl.String and len(distinct) <= _FEW:
        texts = distinct.to_list()  # for few texts, Python is faster than polars
        there = [place for place, text in enumerate(texts) if text is not None]
        there.sort(key=texts.__getitem__)
        gone = [place for place, text in enumerate(texts) if text is None]
        return np.array(there + gone, np.int64)
    plain = distinct.dtype.is_numeric() and not isinstance(distinct.dtype, _WIDE)
    if plain and not distinct.null_count():
        return np.argsort(distinct.to_numpy())
    return distinct.arg_sort(nulls_last=True).to_numpy()


def in_type(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column in another type."""
    if series.dtype == pl.Duration and dtype == pl.String:
        return series.dt.to_string("iso")  # has no cast to text
    return series.cast(dtype)


def decode(column: Codes) -> pl.Series:
    """The values of the codes; missing becomes null."""
    levels = column.levels
    if column.missing is not None:
        # not extend_constant, which reads the name of the column as a pattern
        levels = pl.concat([levels, pl.Series(levels.name, [None], levels.dtype)])
    return levels[column.codes]  # faster than gather


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """A column as integers below ``count``, equal for equal cells, in any order."""

    name: str
    codes: npt.NDArray[np.integer[Any]]
    count: int


Keys = Codes | Labels


def unordered(series: pl.Series) -> Labels:
    """Equal labels for equal cells, without the order of the values, which would cost a sort."""
    from shoal.kernels.grouping import all_differ

    rows = len(series)
    if mostly_differ(series) and all_differ(_exact_keys(series)):
        return Labels(series.name, np.arange(rows, dtype=narrowest(rows)), rows)
    return Labels(series.name, *_labels(series.alias("")))


def combine(parts: Iterable[Keys], rows: int) -> npt.NDArray[np.uint64]:
    """One 64-bit key per record; records with equal codes in all parts have equal keys."""
    from shoal.kernels.grouping import dense_labels

    keys = np.zeros(rows, np.uint64)
    bound = 1
    for part in parts:
        if len(part.codes) != rows:
            raise InputError(
                f"Column '{part.name}' has {len(part.codes)} records, but the table has {rows}. "
                "Columns of one table must have the same length."
            )
        if bound * part.count > 2**64:
            labels, bound = dense_labels(keys)
            keys[:] = labels
        if part.count == rows and _all_differ(part):
            return part.codes.astype(np.uint64)
        keys *= np.uint64(part.count)
        # labels are signed, but not negative; by default, NumPy would add them as floats
        np.add(keys, part.codes, out=keys, dtype=np.uint64, casting="unsafe")
        bound *= max(part.count, 1)
    return keys


def _all_differ(part: Keys) -> bool:
    """Whether no two records have the same code; some codes may be unused."""
    seen = np.zeros(part.count, np.bool_)
    seen[part.codes] = True
    return bool(seen.all())


def _labels(series: pl.Series) -> tuple[npt.NDArray[np.signedinteger[Any]], int]:
    """A label for each distinct value, including missing, numbered by first appearance."""
    from shoal.kernels.grouping import dense_labels

    if series.null_count() == 0 and not isinstance(series.dtype, _WIDE):
        return dense_labels(_exact_keys(series))
    distinct = series.n_unique()
    for seed in range(_HASHES_TO_TRY):
        labels, count = dense_labels(series.hash(seed=seed).to_numpy())
        # equal values have equal hashes, so as many hashes as values means that none collided
        if count == distinct:
            return labels, count
    raise RuntimeError("the values of a column collide under every hash function")


def _exact_keys(series: pl.Series) -> npt.NDArray[np.uint64]:
    """Values of at most 64 bits, none missing, as keys; keys of whole numbers start at 0."""
    if series.dtype.is_float():
        return series.cast(pl.Float64).to_numpy().view(np.uint64)
    physical = series if series.dtype.is_integer() else series.to_physical()
    wide = pl.UInt64 if physical.dtype.is_unsigned_integer() else pl.Int64
    values = physical.cast(wide).to_numpy()
    if len(values):
        # a new array, because the series owns the old one; correct for signed values too, because
        # arithmetic is modulo 2**64
        values = values - values.min()
    return values.view(np.uint64)


def narrowest(count: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type that holds ``count`` codes."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if count <= np.iinfo(kind).max + 1:
            return kind
    return np.uint64
