"""Conversion of data frames: any frame in, polars inside, the original type out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

import narwhals as nw
import numpy as np
import polars as pl

from shoal.errors import InputError, RolesError, quoted
from shoal.hints import table_from

if TYPE_CHECKING:
    from shoal.table.columns._column import Column

_OTHER_PLAIN = (pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Null)

_WRITE = "Use sh.Table(pl.DataFrame(...), roles), with a name for each column"

# 0001-01-01 and 9999-12-31, in days since 1970
DAYS_OF_CALENDAR: Final = (-719_162, 2_932_896)
_MOST_DAYS = 100_000_000
PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}

Kind = Literal["integer", "float", "boolean", "text", "date", "datetime", "time", "duration"]
#: The kinds of numbers, and all kinds that measure something and so have an order.
NUMBERS: Final[tuple[Kind, ...]] = ("integer", "float")
QUANTITIES: Final[tuple[Kind, ...]] = (*NUMBERS, "date", "datetime", "time", "duration")


class Names(list[str]):
    """Column names in their order, immutable and with fast lookup."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__(names)
        self._known = frozenset(self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._known

    def __reduce__(self) -> tuple[type[Names], tuple[list[str]]]:
        return Names, (list(self),)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("A table is frozen. To change its column names, copy them to a list.")

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse


@dataclass(frozen=True)
class Origin:
    """The caller's frame type and its column types."""

    library: Literal["polars", "pandas", "pyarrow"]
    types: Mapping[str, Any] = field(default_factory=dict)

    def restore(self, data: pl.DataFrame) -> Any:
        """The data as the caller's frame type; each column in its original type if it fits."""
        return _RESTORE[self.library](data, self.types)

    def reduced(self, columns: Mapping[str, Column]) -> Origin:
        """The origin without removed columns and without categories that no row has."""
        types = {name: self.types[name] for name in columns if name in self.types}
        for name, dtype in types.items():
            categories = getattr(dtype, "categories", None)
            if categories is not None:
                present = set(columns[name].codes.levels)
                types[name] = _with_categories(dtype, [c for c in categories if c in present])
        return Origin(self.library, types)

    def without(self, names: Iterable[str]) -> Origin:
        """The origin without the types of the named columns."""
        gone = set(names)
        return Origin(self.library, {n: t for n, t in self.types.items() if n not in gone})

    def as_text(self, name: str) -> Origin:
        """The origin without the type of a column that became text, unless it was text before."""
        types = dict(self.types)
        if str(types.get(name)) not in ("String", "object", "str", "string", "large_string"):
            types.pop(name, None)
        return Origin(self.library, types)


def _with_categories(dtype: Any, categories: list[Any]) -> Any:
    if isinstance(dtype, pl.DataType):
        return pl.Enum(categories) if isinstance(dtype, pl.Enum) else dtype
    import pandas as pd

    return pd.CategoricalDtype(categories or None, ordered=dtype.ordered)


def to_polars(frame: Any) -> tuple[pl.DataFrame, Origin]:
    """The data of any eager frame as polars, and the origin that restores its type."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):  # not copied, because its columns are immutable
        check_names(frame.columns)
        return _normalise(frame), Origin("polars", dict(frame.schema))
    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        cure = table_from(frame).rstrip(".")
        if not hasattr(frame, "masked") and not isinstance(frame, (str, os.PathLike)):
            cure = _WRITE
        raise InputError(
            "A table is made from a polars, pandas or pyarrow frame; "
            f"got {type(frame).__name__}. {cure}."
        ) from None
    except nw.exceptions.DuplicateError:
        raise InputError(
            "The frame has two columns with the same name. Rename the columns so that each name "
            "is unique."
        ) from None
    library = native.implementation.value
    if library not in _RESTORE:
        raise InputError(f"A {library} frame is not supported. Use polars, pandas or pyarrow.")
    check_names(list(native.columns))
    if library == "pandas":
        # polars would share its memory, and a pandas frame can be changed in place
        native = native.clone()
    data = _converted(native)
    if data is None:
        odd = _inconvertible(native, _original_types(frame, library))
        raise InputError(
            f"The {library} frame cannot be converted: {odd or 'a column'} mixes types, holds "
            "objects or has a type that a table does not support. Give every column a single type "
            "(numbers, text, booleans or dates)."
        )
    return _normalise(data), Origin(library, _original_types(frame, library))


def refuse_index_names(absent: Sequence[str], frame: Any) -> None:
    """Raise RolesError if roles name a pandas index, which a table does not keep."""
    index = getattr(getattr(frame, "index", None), "names", None) or ()
    lost = [name for name in absent if name in index]
    if lost:
        raise RolesError(
            f"{quoted(lost)} is the index of the frame, which a table does not keep. Use "
            "frame.reset_index() to make it a column."
        )


def _converted(native: Any) -> pl.DataFrame | None:
    """The frame as polars, or None if this fails; the message of the cause may quote cells."""
    try:
        data: pl.DataFrame = native.to_polars()
    except (Exception, pl.exceptions.PanicException):  # a panic is not an Exception
        return None
    return data


def _inconvertible(native: Any, types: Mapping[str, Any]) -> str:
    """The columns that cannot be converted and their types, in words."""
    odd = [name for name in native.columns if _converted(native.select(nw.col(name))) is None]
    shown = [f"'{name}' (of type {types[name]})" for name in odd[:12]]
    more = f" and {len(odd) - 12} more" if len(odd) > 12 else ""
    return f"column {', '.join(shown)}{more}" if odd else ""


def check_names(
    names: Sequence[Any],
    called: str = "The table",
    *,
    error: type[InputError] = InputError,
    remedy: str = "Name every column.",
) -> None:
    """Raise an error unless the names are valid and all different."""
    if not all(name is None or isinstance(name, str) for name in names):
        raise error(
            "Column names must be text. Rename columns whose names are numbers or have several "
            "levels."
        )
    empty = [str(at) for at, name in enumerate(names, 1) if name is None or not name.strip()]
    if empty:
        raise error(
            f"{called} has no name for column number {', '.join(empty[:12])} of {len(names)}. "
            f"{remedy}"
        )
    if any("\0" in name for name in names):
        raise error(f"{called} has a column name with a NUL character. Rename the column.")
    patterns = [name for name in names if name.startswith("^") and name.endswith("$")]
    if patterns:
        raise error(
            f"{called} has column names that begin with ^ and end with $: {quoted(patterns)}. Such "
            "names are read as patterns. Rename these columns."
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise error(
            f"{called} has more than one column with the name {quoted(twice)}. Give every column "
            "its own name."
        )


def _original_types(frame: Any, library: str) -> dict[str, Any]:
    if library == "pandas":
        return {str(name): dtype for name, dtype in frame.dtypes.items()}
    if library == "pyarrow":
        return {name: frame.schema.field(name).type for name in frame.column_names}
    return dict(frame.schema)


def _normalise(data: pl.DataFrame) -> pl.DataFrame:
    """Plain types only: NaN is missing, -0.0 is 0.0, categories are text, no nested values."""
    changes = []
    for column in data:  # not pl.col, which would read a name like "*" as a pattern
        name, dtype = column.name, column.dtype
        if not (dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, _OTHER_PLAIN)):
            raise InputError(
                f"Column '{name}' has values of type {type(dtype).__name__}, but a table "
                "supports only numbers, text, booleans and dates. Convert the column, or leave it "
                "out."
            )
        refuse_beyond_calendar(column)
        if dtype.is_float():
            changes.append(plain_floats(column.cast(pl.Float64)))
        elif isinstance(dtype, (pl.Categorical, pl.Enum, pl.Null)):
            # unused categories would carry values of the original into the release
            changes.append(column.cast(pl.String))
        elif dtype in (pl.Int128, pl.UInt128):
            changes.append(_huge_integers(column))
    return data.with_columns(changes) if changes else data


def refuse_beyond_calendar(column: pl.Series) -> None:
    """InputError for dates outside of the years 1 to 9999 and for extremely long durations."""
    dtype, bare = column.dtype, column.alias("")
    first, last = DAYS_OF_CALENDAR
    limit = "dates beyond the years 1 to 9999"
    if isinstance(dtype, pl.Date):
        days = bare.to_physical()
    elif isinstance(dtype, pl.Datetime):
        days = bare.to_physical() // PER_DAY[dtype.time_unit]
        if dtype.time_zone not in (None, "UTC"):
            first, last = first + 1, last - 1  # a zone may be a day ahead or behind
    elif isinstance(dtype, pl.Duration):
        days = bare.to_physical() // PER_DAY[dtype.time_unit]
        first, last = -_MOST_DAYS, _MOST_DAYS
        limit = f"durations beyond {_MOST_DAYS:,} days"
    else:
        return
    beyond = int((~days.is_between(first, last)).sum())
    if beyond:
        raise InputError(
            f"Column '{column.name}' holds {limit} ({beyond:,} of {len(column):,} cells). Make "
            "them missing, or convert the column to numbers or text."
        )


def plain_floats(column: pl.Series) -> pl.Series:
    """Floats with a single representation of each value; other columns unchanged.

    polars distinguishes NaN from null; in a table about people both mean "not known". -0.0 equals
    0.0, but a file would show two values for one class.
    """
    if not column.dtype.is_float():
        return column
    if not column.null_count():
        values = column.to_numpy()
        if not np.isnan(values).any() and not np.signbit(values[values == 0]).any():
            return column
    bare = column.alias("").fill_nan(None)  # polars reads a name like ^a$ as a pattern
    zeros = bare == 0
    return (bare.set(zeros, 0.0) if zeros.any() else bare).alias(column.name)


def _huge_integers(column: pl.Series) -> pl.Series:
    """The column with 64 bits if the values fit, else as text; floats would change last digits."""
    for dtype in (pl.Int64, pl.UInt64):
        fitting = column.cast(dtype, strict=False)
        if fitting.null_count() == column.null_count():
            return fitting
    return column.cast(pl.String)


#: The kinds of types that are not numeric; any other type is text.
_KINDS: Final[dict[type[pl.DataType], Kind]] = {
    pl.Boolean: "boolean",
    pl.Date: "date",
    pl.Datetime: "datetime",
    pl.Time: "time",
    pl.Duration: "duration",
}


def kind_of(dtype: pl.DataType) -> Kind:
    """The kind of a column, in the words that methods use."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "float"
    return _KINDS.get(dtype.base_type(), "text")


def in_type_of(old: pl.Series, new: pl.Series, *, keep_equal: bool = False) -> pl.Series:
    """New numbers in the old type, or in the next wider one that can hold them."""
    wider: list[pl.DataType] = [old.dtype]
    if isinstance(old.dtype, pl.Decimal):
        wider.append(pl.Decimal(38, old.dtype.scale))
    for dtype in wider:
        try:
            fitting = new.cast(dtype)
        except (pl.exceptions.InvalidOperationError, pl.exceptions.ComputeError):
            continue
        if keep_equal and isinstance(dtype, pl.Decimal):
            # a decimal may have more digits than a float; an unchanged cell keeps all of them
            same = old.cast(pl.Float64).alias("").eq_missing(new)
            fitting = old.cast(dtype).zip_with(same, fitting)
        return fitting
    return new


def _to_own_polars(data: pl.DataFrame, types: Mapping[str, Any]) -> pl.DataFrame:
    changes = []
    for name, dtype in data.schema.items():
        first = types.get(name, dtype)
        if first == dtype:
            continue
        if isinstance(first, pl.Enum) and dtype == pl.String:
            present = set(data[name].alias("").unique())
            used = [category for category in first.categories if category in present]
            changes.append(data[name].cast(pl.Enum(used)))
        elif isinstance(first, pl.Categorical) and dtype == pl.String:
            changes.append(data[name].cast(pl.Categorical))
        elif first == pl.Float32 and dtype == pl.Float64:
            changes.append(data[name].cast(pl.Float32))
        elif first == pl.Null and data[name].null_count() == data.height:
            changes.append(data[name].cast(pl.Null))
    return data.with_columns(changes) if changes else data


def _to_pandas(data: pl.DataFrame, types: Mapping[str, Any]) -> Any:
    import pandas as pd

    # nullable pandas types hold integers and booleans with missing values without loss
    nullable = {
        name: "boolean" if dtype == pl.Boolean else ("UInt64" if dtype == pl.UInt64 else "Int64")
        for name, dtype in data.schema.items()
        if data[name].null_count() and (dtype == pl.Boolean or dtype.is_integer())
    }
    columns = {
        name: (
            pd.array(data[name].to_list(), dtype=nullable[name])
            if name in nullable
            else data[name].to_pandas()
        )
        for name in data.columns
    }
    out = pd.DataFrame(columns, index=pd.RangeIndex(data.height))
    for name, dtype in data.schema.items():
        first = types.get(name)
        if first is None or first == out[name].dtype:
            continue
        if isinstance(first, pd.CategoricalDtype):
            present = set(out[name].dropna().unique())
            used = [c for c in first.categories if c in present]
            if present <= set(used):
                out[name] = out[name].astype(pd.CategoricalDtype(used, ordered=first.ordered))
        elif first == np.dtype(object) and dtype == pl.String:
            there = data[name].alias("").is_not_null().to_numpy()
            out[name] = out[name].astype(object).where(there, None)
        elif first == np.dtype(object) and dtype == pl.Date:
            out[name] = pd.Series(data[name].to_list(), dtype=object)  # dates, as in the input
        elif (
            pd.api.types.is_extension_array_dtype(first)
            or (first.kind in "fiu" and dtype.is_numeric() and name not in nullable)
            or (first.kind in "mM" and dtype.is_temporal())  # in the unit of the input
        ):
            out[name] = _cast_if_lossless(out[name], first)
    return out


def _cast_if_lossless(series: Any, dtype: Any) -> Any:
    try:
        cast = series.astype(dtype)
        same = ((cast == series) | series.isna()).all() or getattr(dtype, "kind", "") == "f"
    except (TypeError, ValueError, OverflowError):
        return series
    return cast if same else series


def _to_pyarrow(data: pl.DataFrame, types: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    out = data.to_arrow(compat_level=pl.CompatLevel.oldest())
    for position, name in enumerate(out.column_names):
        first, now = types.get(name), out.schema.field(name).type
        if first is None or first == now:
            continue
        column = out.column(position)
        try:
            if pa.types.is_dictionary(first):
                # encoded again, because the old dictionary may hold values that no row has
                column = _as_first(column, first.value_type).dictionary_encode()
            else:
                column = column.cast(first)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        out = out.set_column(position, name, column)
    return out.replace_schema_metadata(None)


def _as_first(column: Any, kind: Any) -> Any:
    """An Arrow column in a type, or unchanged if it does not fit after masking."""
    import pyarrow as pa

    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


_RESTORE: dict[str, Callable[[pl.DataFrame, Mapping[str, Any]], Any]] = {
    "polars": _to_own_polars,
    "pandas": _to_pandas,
    "pyarrow": _to_pyarrow,
}
