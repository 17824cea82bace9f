"""A column of a table, coded once and shared by every table that does not change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table.columns._domain import Domain, read_domain, value_meanings
from shoal.table.columns._encode import (
    Codes,
    Keys,
    Labels,
    decode,
    encode,
    in_type,
    mostly_differ,
    unordered,
)
from shoal.table.columns._frames import NUMBERS, PER_DAY, Kind, in_type_of, kind_of, plain_floats
from shoal.table.columns._quantities import days_of, scale_name, scale_of


@dataclass(frozen=True)
class Numbers:
    """A numeric column as arrays: values (0 if missing) and whether each is present."""

    values: npt.NDArray[Any]
    present: Flags


class Column:
    """One frozen column: its cells, codes and numbers, each computed on first use and kept.

    Parameters
    ----------
    cells : polars.Series or Codes
        The values, or codes for them. Texts are freed once they are coded, because the levels
        contain them.
    domains : iterable of Domain, optional
        The meanings of these texts, and possibly of others, which are ignored. Never pickled.

    Examples
    --------
    >>> column = Column(pl.Series("sex", ["f", "m", None, "f"]))
    >>> column.codes.codes.tolist(), column.codes is column.codes
    ([0, 1, 2, 0], True)
    >>> column.at(np.array([3, 1])).series.to_list()
    ['f', 'm']
    """

    def __init__(self, cells: pl.Series | Codes, domains: Iterable[Domain] = ()) -> None:
        values = cells if isinstance(cells, pl.Series) else cells.levels
        self.name: str = values.name
        self.dtype: pl.DataType = values.dtype
        self._cells: pl.Series | None = None
        if isinstance(cells, pl.Series):
            self._cells = cells
        else:
            vars(self)["codes"] = cells
        own = (domain.at(self.codes.texts) for domain in domains)
        self._domains = {domain.scale: domain for domain in own if domain is not None}

    @classmethod
    def of_labels(
        cls,
        name: str,
        labels: Sequence[str | None],
        codes: npt.NDArray[np.integer[Any]],
        domain: Domain | None = None,
    ) -> Column:
        """A column of texts: the label of each row's code; None makes it missing."""
        texts = encode(pl.Series(name, labels, dtype=pl.String))
        return cls(texts.at(np.asarray(codes)), () if domain is None else (domain,))

    def domain(self, kind: Kind) -> Domain:
        """The meaning of each level of a text column among values of a kind."""
        scale = scale_of(kind)
        if scale not in self._domains:
            texts = self.codes.texts
            plain = Domain(scale, value_meanings(scale, texts), was_read=True)
            self._domains[scale] = plain if scale == "text" else read_domain(texts, scale)
        return self._domains[scale]

    @property
    def recorded_domain(self) -> Domain | None:
        """The meanings that were recorded when the texts were written; None if they were not."""
        return next((one for one in self._domains.values() if not one.was_read), None)

    @property
    def own_domain(self) -> Domain:
        """The recorded meanings of the texts or, if there are none, their plain meanings."""
        scale = scale_name(self.codes)
        plain = Domain(scale, value_meanings(scale, self.codes.texts))
        return self.recorded_domain or plain

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_domains": {}}

    def __len__(self) -> int:
        return len(self.codes.codes) if self._cells is None else len(self._cells)

    def __repr__(self) -> str:
        return f"Column('{self.name}', {self.kind}, rows={len(self)})"

    @property
    def series(self) -> pl.Series:
        """The cells."""
        return decode(self.codes) if self._cells is None else self._cells

    @cached_property
    def codes(self) -> Codes:
        """The cells as integer codes; a missing value has its own code."""
        assert self._cells is not None
        codes = encode(self._cells)
        shared = self.dtype == pl.String or self.dtype.is_integer()
        if shared and 2 * codes.count <= len(codes.codes):
            self._cells = None
        return codes

    @property
    def is_coded(self) -> bool:
        """Whether the codes are already known."""
        return "codes" in vars(self)

    @property
    def is_coarse(self) -> bool:
        """Whether the column is coded and its levels are faster to compare than its cells."""
        return self.is_coded and 4 * self.codes.count <= len(self)

    @cached_property
    def is_continuous(self) -> bool:
        """Whether the column has floats that nearly all differ, so that codes are of no use.

        There would be about as many codes as rows, at the cost of a sort.
        """
        if self.is_coded or self.dtype != pl.Float64:
            return False
        return mostly_differ(self.series.alias(""))

    @cached_property
    def is_finite(self) -> bool:
        """Whether no number is infinite."""
        if not self.dtype.is_float():
            return True
        cells = self.series if self.is_continuous else self.codes.levels
        return not np.isinf(cells.to_numpy()).any()

    @property
    def kind(self) -> Kind:
        """Integer, float, boolean, text, date, datetime, time or duration."""
        return kind_of(self.dtype)

    @cached_property
    def numbers(self) -> Numbers:
        """A numeric column as arrays; infinite values are refused."""
        if self.kind not in NUMBERS:
            raise InputError(
                f"Column '{self.name}' is not numeric: it is {self.kind}. Choose another "
                "column, or convert it to numbers."
            )
        series = self.codes.levels if self._cells is None else self._cells
        if self.kind == "integer":
            series = series.cast(pl.UInt64 if series.dtype == pl.UInt64 else pl.Int64)
        else:
            series = series.cast(pl.Float64)
        values = (series.fill_null(0) if series.null_count() else series).to_numpy()
        if self._cells is None:
            values = np.append(values, values.dtype.type(0))[self.codes.codes]
        infinite = 0 if self.kind == "integer" else int(np.isinf(values).sum())
        if infinite:
            raise InputError(
                f"Column '{self.name}' holds {infinite} infinite values. Make them missing first."
            )
        return Numbers(values, self.present)

    @property
    def ticks(self) -> tuple[Integers, int]:
        """Dates or datetimes as whole numbers (0 where missing), and how many make a day."""
        if self.kind not in ("date", "datetime"):
            raise InputError(f"Column '{self.name}' is not a date or a datetime but {self.kind}.")
        per_day = PER_DAY[self.dtype.time_unit] if isinstance(self.dtype, pl.Datetime) else 1
        return self.series.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), per_day

    def shifted(self, days: Integers) -> Column:
        """Dates or datetimes, in each row moved by so many days of 24 hours."""
        ticks, per_day = self.ticks
        return self._of_ticks(pl.Series(ticks + days * per_day).set(pl.Series(~self.present), None))

    def _of_ticks(self, ticks: pl.Series) -> Column:
        physical = self.series.to_physical().dtype
        return Column(ticks.cast(physical).cast(self.dtype).alias(self.name))

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest number, or day of a date; None if there is none.

        Infinite numbers are refused.
        """
        if self.kind in ("date", "datetime"):
            days = days_of(self.codes.levels)
            return (float(days[0]), float(days[-1])) if len(days) else None
        if self.is_coded:
            levels = Column(self.codes.levels).numbers.values
            return (float(levels[0]), float(levels[-1])) if len(levels) else None
        inside = self.numbers.values[self.present]
        return (float(inside.min()), float(inside.max())) if len(inside) else None

    @property
    def present(self) -> Flags:
        """Which rows have a value."""
        if not self.missing_count:
            found = np.ones(len(self), np.bool_)
        elif self._cells is None:
            found = self.codes.codes != self.codes.missing
        else:
            found = self._cells.is_not_null().to_numpy()
        found.flags.writeable = False
        return found

    @property
    def missing_count(self) -> int:
        """The number of missing cells."""
        if self._cells is None:
            missing = self.codes.missing
            return 0 if missing is None else int(self.codes.counts[missing])
        return int(self._cells.null_count())

    @property
    def distinct(self) -> int:
        """The number of distinct values, without missing."""
        if self.is_coded:
            return len(self.codes.levels)
        return int(self.series.alias("").drop_nulls().n_unique())

    def value_counts(self) -> dict[str, int]:
        """How often each value occurs, as text, the most frequent first, without missing."""
        codes = self.codes
        counts = codes.counts[: len(codes.levels)]
        order = np.argsort(-counts, kind="stable")
        texts = codes.texts
        return {texts[code]: int(counts[code]) for code in order.tolist()}

    def counts_between(self, edges: Floats) -> Integers:
        """How many numbers, or dates in days, lie between each edge and the next."""
        if self.is_coded or self.kind in ("date", "datetime"):
            codes = self.codes
            counts = codes.counts[: len(codes.levels)]
            levels = codes.levels
            is_number = levels.dtype.is_numeric()
            numbers = levels.cast(pl.Float64).to_numpy() if is_number else days_of(levels)
            places = np.searchsorted(numbers, edges)
            return np.diff(np.append(0, np.cumsum(counts))[places])
        values = self.numbers.values.astype(np.float64, copy=False)
        if self.missing_count:
            values = values[self.present]
        return np.diff([np.count_nonzero(values < edge) for edge in edges])

    @property
    def keys(self) -> Keys:
        """Integers that are equal if cells are equal: codes or, for floats, unordered labels."""
        return self._unordered if not self.is_coded and self.dtype == pl.Float64 else self.codes

    @cached_property
    def _unordered(self) -> Labels:
        return unordered(self.series)

    def at(self, rows: npt.NDArray[Any]) -> Column:
        """The column for marked rows, or for rows by position (-1: missing)."""
        if self.is_coded:
            codes = self.codes.at(rows)
            column = Column(codes, self._domains.values())
            same = codes.levels is self.codes.levels and codes.missing == self.codes.missing
            return column._compared_like(self) if same else column
        if rows.dtype == np.bool_:
            return Column(self.series.filter(pl.Series(rows)))
        if (rows >= 0).all():
            return Column(self.series[rows])
        taken = pl.Series(np.where(rows < 0, 0, rows)).set(pl.Series(rows < 0), None)
        return Column(self.series.gather(taken))

    def counting(self, times: Integers | None) -> Column:
        """The same cells, each row representing ``times`` records; unchanged if None."""
        if times is None:
            return self
        return Column(replace(self.codes, times=times), self._domains.values())

    def with_numbers(self, values: npt.NDArray[Any], *, keep_equal: bool) -> Column:
        """The column with new numbers, in its type or a wider one; missing cells stay missing."""
        old = self.series
        new = in_type_of(old, pl.Series(self.name, values), keep_equal=keep_equal)
        if old.null_count():
            empty = pl.Series(self.name, [None], dtype=new.dtype)
            new = new.zip_with(old.is_not_null(), empty.new_from_index(0, len(old)))
        new = plain_floats(new)
        return self if new.dtype == old.dtype and new.equals(old) else Column(new)

    def filled(self, values: Floats) -> Column:
        """A column of the same kind with these numbers; NaN means missing."""
        gaps = pl.Series(np.isnan(values))
        if self.kind not in NUMBERS:
            ticks = pl.Series(np.rint(np.nan_to_num(values)).astype(np.int64)).set(gaps, None)
            return self._of_ticks(ticks)
        new = pl.Series(self.name, values).fill_nan(None)
        if self.kind == "integer":
            wide = np.uint64 if self.dtype == pl.UInt64 else np.int64
            # the largest float below the end of the type, which is not a float itself
            ends = float(np.iinfo(wide).min), np.nextafter(float(np.iinfo(wide).max), 0)
            whole = np.clip(np.rint(np.nan_to_num(values)), *ends).astype(wide)
            new = pl.Series(self.name, whole).set(gaps, None)
        return Column(plain_floats(in_type_of(self.series, new)))

    def scrubbed(self) -> Column:
        """The same cells in new memory that holds nothing else."""
        copied = None
        if self.is_coded:
            codes = self.codes
            copied = Codes(codes.codes.copy(), scrubbed_column(codes.levels), codes.missing)
        if self._cells is None:
            assert copied is not None
            scrubbed = Column(copied, self._domains.values())
        else:
            scrubbed = Column(scrubbed_column(self._cells))
            if copied is not None and scrubbed.dtype == self.dtype:
                vars(scrubbed)["codes"] = copied
        return scrubbed._compared_like(self) if scrubbed.dtype == self.dtype else scrubbed

    def _compared_like(self, other: Column) -> Column:
        """The column itself, with what is known of another one with equal levels."""
        if other in _IN_ONE_CODE:
            _IN_ONE_CODE[self] = _IN_ONE_CODE[other].copy()
        return self

    def differs_from(self, other: Column, rows: Integers | None) -> Flags:
        """Which cells differ from those of ``other``, in the same row or in its ``rows``."""
        if self is other and rows is None:
            return np.zeros(len(self), np.bool_)
        if self.is_coarse and other.is_coarse:
            mine, theirs = in_one_code(self, other)
            before = other.codes.codes if rows is None else other.codes.codes[rows]
            return mine[self.codes.codes] != theirs[before]
        old = other.series if rows is None else other.series[rows]
        old, new = comparable(old, self.series)
        return old.ne_missing(new).to_numpy()


#: The shared codes of two columns, computed once for each pair that exists.
_IN_ONE_CODE: WeakKeyDictionary[Column, WeakKeyDictionary[Column, tuple[Integers, Integers]]]
_IN_ONE_CODE = WeakKeyDictionary()


def in_one_code(one: Column, other: Column) -> tuple[Integers, Integers]:
    """For each code of two columns, a number that is equal for equal values; -1 for missing."""
    kept = _IN_ONE_CODE.setdefault(one, WeakKeyDictionary())
    if other not in kept:
        turned = _IN_ONE_CODE[other].get(one) if other in _IN_ONE_CODE else None
        kept[other] = _in_one_code(one, other) if turned is None else (turned[1], turned[0])
    return kept[other]


def _in_one_code(one: Column, other: Column) -> tuple[Integers, Integers]:
    if one.dtype == other.dtype and one.codes.levels.equals(other.codes.levels):
        numbers = np.arange(len(one.codes.levels))
        return _with_missing(numbers, one.codes), _with_missing(numbers, other.codes)
    both = encode(stacked(one.codes.levels, other.codes.levels))
    numbers = both.codes.astype(np.int64)
    first = len(one.codes.levels)
    return _with_missing(numbers[:first], one.codes), _with_missing(numbers[first:], other.codes)


def _with_missing(numbers: Integers, codes: Codes) -> Integers:
    return numbers if codes.missing is None else np.append(numbers, -1)


def comparable(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Both columns in one type that keeps equal values equal and different ones different."""
    if one.dtype == other.dtype:
        return one, other
    shared = _shared(one.dtype, other.dtype)
    return in_type(one, shared), in_type(other, shared)


def stacked(above: pl.Series, below: pl.Series) -> pl.Series:
    """One column above the other, in a type in which both can be compared."""
    return pl.concat(comparable(above, below))


def _shared(one: pl.DataType, other: pl.DataType) -> pl.DataType:
    both = one, other
    if all(dtype.is_integer() for dtype in both):
        return pl.Int128()
    if all(dtype.is_numeric() for dtype in both):
        return pl.Float64()
    if all(dtype == pl.Duration for dtype in both):
        return pl.Duration("us")
    if all(dtype in (pl.Date, pl.Datetime) for dtype in both):
        zoned = [getattr(dtype, "time_zone", None) is not None for dtype in both]
        if all(zoned):
            return pl.Datetime("us", "UTC")
        if not any(zoned):
            return pl.Datetime("us")
    return pl.String()


_FEW: Final = 1 << 16  # up to this many texts, copying is faster than importing Arrow
_NOTHING: Final[dict[type[pl.DataType], Any]] = {pl.String: "", pl.Boolean: False}


def keys_of(columns: Iterable[Column]) -> Iterator[Keys]:
    """The keys that together split the rows in the same way as the columns.

    Group means split no more rows than the means of another column of the same groups: numbers that
    are equal wherever those of another column are equal need no hashing.
    """
    from shoal.kernels.grouping import first_rows

    named = None
    for column in columns:
        if column.is_coded or column.dtype != pl.Float64 or column.series.null_count():
            yield column.keys
            continue
        bits = column.series.to_numpy().view(np.uint64)
        if named is None or not np.array_equal(bits[named[0]][named[1]], bits):
            yield column.keys
        if named is None:
            labels: Any = column.keys.codes
            named = first_rows(labels, column.keys.count), labels


def scrubbed_column(column: pl.Series) -> pl.Series:
    """The same values in new buffers that hold nothing else; categories become text."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum, pl.Null)):
        column = column.cast(pl.String)
    if column.null_count():
        nothing = pl.lit(_NOTHING.get(column.dtype.base_type(), 0)).cast(column.dtype)
        value = pl.col("value")  # not its own name, which might be a pattern
        shown = pl.when(value.is_not_null()).then(value.fill_null(nothing))
        column = column.to_frame("value").select(shown.alias(column.name)).to_series()
    if column.dtype == pl.String:
        if len(column) <= _FEW:
            return pl.Series(column.name, column.to_list(), dtype=pl.String)
        # offsets into one buffer: the way through Arrow copies what is shown and nothing else
        arrow = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        return pl.Series(column.name, arrow, dtype=pl.String)
    # a slice shares the buffer of the whole; taking every row by its position copies
    return column[pl.int_range(len(column), eager=True)]
