"""The names of column types that a release records, and reading fields in these types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, ReadError, quoted
from shoal.kernels.arrays import Integers
from shoal.table.columns._column import Column
from shoal.table.columns._encode import encode, narrowest
from shoal.table.columns._frames import Kind, kind_of, plain_floats

_SIMPLE: Final[dict[str, pl.DataType]] = {
    kind.__name__.lower(): kind()
    for kind in (
        *(pl.Boolean, pl.String, pl.Date, pl.Time, pl.Float32, pl.Float64),
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    )
}
_lenient_cast: Final = partial(pl.Series.cast, strict=False)
_BOOLEANS: Final = {"true": True, "false": False}
_NAMES: Final = {dtype: name for name, dtype in _SIMPLE.items()}
_UNITS: Final[dict[str, Literal["ms", "us", "ns"]]] = {"ms": "ms", "us": "us", "ns": "ns"}
_PARAMETRIC: Final = re.compile(
    r"(?P<kind>datetime|duration)\[(?P<unit>ms|us|ns)(?:, (?P<zone>[\w/+-]+))?\]"
    r"|decimal\[(?P<precision>\d+), (?P<scale>\d+)\]"
)


def schema_of(types: Mapping[str, pl.DataType]) -> dict[str, str]:
    """The columns of a frame with the names of their types in a written file."""
    odd = [name for name, dtype in types.items() if _name_of(dtype) is None]
    if odd:
        raise InputError(
            f"These columns do not have one plain value per row: {quoted(odd)}. No file can hold "
            "them. Leave them out, or convert them to text or numbers first."
        )
    return {name: str(_name_of(dtype)) for name, dtype in types.items()}


def dtypes_of(schema: Mapping[str, str]) -> dict[str, pl.DataType]:
    """The polars types of a recorded schema: the inverse of :func:`schema_of`."""
    return {column: _dtype_of(column, name) for column, name in schema.items()}


def recorded_kind(column: str, name: str) -> Kind:
    """The kind of a recorded type."""
    return kind_of(_dtype_of(column, name))


def _name_of(dtype: pl.DataType) -> str | None:
    if isinstance(dtype, pl.Datetime):
        zone = f", {dtype.time_zone}" if dtype.time_zone else ""
        return f"datetime[{dtype.time_unit}{zone}]"
    if isinstance(dtype, pl.Duration):
        return f"duration[{dtype.time_unit}]"
    if isinstance(dtype, pl.Decimal):
        return f"decimal[{dtype.precision}, {dtype.scale}]"
    if isinstance(dtype, (pl.Categorical, pl.Enum, pl.Null)):
        return "string"
    return _NAMES.get(dtype)


def _dtype_of(column: str, name: str) -> pl.DataType:
    if name in _SIMPLE:
        return _SIMPLE[name]
    found = _PARAMETRIC.fullmatch(name)
    if found is None:
        raise InputError(f"The recorded type '{name}' of column '{column}' is not known.")
    if found["kind"] == "datetime":
        return pl.Datetime(_UNITS[found["unit"]], found["zone"])
    if found["kind"] == "duration":
        return pl.Duration(_UNITS[found["unit"]])
    return pl.Decimal(int(found["precision"]), int(found["scale"]))


# -- values as text, and back


def as_text(column: pl.Series) -> pl.Series:
    """Each value as the text that :func:`as_recorded` reads back."""
    dtype, texts = column.dtype, column.alias("")  # polars reads ^a$ as a pattern
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is not None:
            texts = texts.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        texts = texts.dt.strftime("%Y-%m-%dT%H:%M:%S%.f")
    elif isinstance(dtype, pl.Time):
        texts = texts.dt.strftime("%H:%M:%S%.f")
    elif isinstance(dtype, pl.Duration):
        texts = texts.to_physical()
    return texts.cast(pl.String).alias(column.name)


def as_recorded(
    column: pl.Series,
    dtype: pl.DataType,
    cast: Callable[[pl.Series, pl.DataType], pl.Series] = _lenient_cast,
) -> pl.Series | None:
    """The column in its recorded type, or None if a value does not fit or would change."""
    if column.dtype == dtype:
        return column
    if column.dtype == pl.String:
        value = parsed(column, dtype)
        return value if value.null_count() == column.null_count() else None
    try:
        found = cast(column, dtype)
        same = bool(cast(found, column.dtype).eq_missing(column).all())
    except pl.exceptions.PolarsError:
        return None
    return found if same else None


def parsed(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A text column in a type; null for a text that :func:`as_text` would not write."""
    if isinstance(dtype, pl.String):
        return column
    if isinstance(dtype, pl.Boolean):
        return column.replace_strict(_BOOLEANS, default=None, return_dtype=pl.Boolean)
    if isinstance(dtype, pl.Datetime):
        return parse_datetime(column, dtype)
    if isinstance(dtype, pl.Duration):
        return column.cast(pl.Int64, strict=False).cast(dtype)
    if isinstance(dtype, pl.Date):
        return column.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Time):
        return column.str.to_time("%H:%M:%S%.f", strict=False)
    return column.cast(dtype, strict=False)


def parse_datetime(column: pl.Series, dtype: pl.Datetime) -> pl.Series:
    """Text such as 2020-01-31T23:59:59.5 as datetimes; in UTC if the type has a time zone."""
    unit = dtype.time_unit
    moment = column.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit=unit, strict=False)
    if dtype.time_zone is None:
        return moment
    return moment.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)


def check_recorded_names(
    names: Sequence[str], dtypes: Mapping[str, pl.DataType], called: str
) -> None:
    """ReadError unless a source has its recorded columns."""
    if list(names) != list(dtypes):
        raise ReadError(
            f"{called} does not have the recorded columns. It has {quoted(names)}; the recorded "
            f"columns are {quoted(dtypes)}."
        )


def in_recorded_type(column: pl.Series, dtype: pl.DataType, called: str) -> pl.Series:
    """The column in its recorded type; ReadError if a value does not fit."""
    found = as_recorded(column.alias(""), dtype)  # polars reads a name such as ^a$ as a pattern
    if found is None:
        raise ReadError(
            f"Column '{column.name}' of {called} has values that do not fit its recorded type."
        )
    return found.alias(column.name)


class Fields:
    """A column of fields: the texts themselves or, if texts repeat, labels of distinct texts."""

    def __init__(self, texts: pl.Series, labels: npt.NDArray[Any] | None = None) -> None:
        self.texts, self.labels = texts, labels
        #: How many fields have each text; None if there are no labels.
        self.counts: Integers | None = None
        if labels is not None:
            from shoal.kernels.grouping import counts_of

            self.labels = labels.astype(narrowest(len(texts)), copy=False)
            self.counts = counts_of(self.labels, len(texts))

    @classmethod
    def of(cls, cells: pl.Series, known: pl.Series) -> Fields:
        """The fields of a column from a reader: texts, or codes of the categories of ``known``."""
        if not isinstance(known.dtype, pl.Categorical):
            return cls(cells)
        texts = known.dtype.categories.to_series()
        largest: Any = cells.max()
        if largest is not None and largest >= len(texts):
            raise RuntimeError("a code has no category")
        if cells.null_count():
            cells = cells.cast(pl.UInt32).fill_null(len(texts))
            texts = texts.extend_constant(None, 1)
        fields = cls(texts.alias(cells.name), cells.to_numpy())
        assert fields.counts is not None
        unused = fields.counts == 0
        if unused.any():  # from a piece that was parsed twice
            fields.texts = fields.texts.set(pl.Series(unused), None)
        return fields

    def __len__(self) -> int:
        return len(self.texts if self.labels is None else self.labels)

    def head(self, count: int) -> pl.Series:
        """The first fields as text, in the order of the file."""
        if self.labels is None:
            return self.texts.head(count).cast(pl.String)
        return self.texts[self.labels[:count]].cast(pl.String)


def column_of(name: str, values: pl.Series, labels: npt.NDArray[Any] | None) -> Column:
    """A column of these values or, with labels, of the value of each row's label."""
    values = plain_floats(values.alias(name))
    return Column(values) if labels is None else Column(encode(values).at(labels))
