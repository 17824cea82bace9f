"""Column types by name, as a release records them, and columns as texts that say everything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import polars as pl

from shoal.errors import InputError, ReadError, quoted

_SIMPLE: Final[dict[str, pl.DataType]] = {
    "boolean": pl.Boolean(),
    "int8": pl.Int8(),
    "int16": pl.Int16(),
    "int32": pl.Int32(),
    "int64": pl.Int64(),
    "uint8": pl.UInt8(),
    "uint16": pl.UInt16(),
    "uint32": pl.UInt32(),
    "uint64": pl.UInt64(),
    "float32": pl.Float32(),
    "float64": pl.Float64(),
    "string": pl.String(),
    "date": pl.Date(),
    "time": pl.Time(),
}
_NAMES: Final = {dtype: name for name, dtype in _SIMPLE.items()}
_UNITS: Final[dict[str, Literal["ms", "us", "ns"]]] = {"ms": "ms", "us": "us", "ns": "ns"}
_PARAMETRIC: Final = re.compile(
    r"(?P<kind>datetime|duration)\[(?P<unit>ms|us|ns)(?:, (?P<zone>[\w/+-]+))?\]"
    r"|decimal\[(?P<precision>\d+), (?P<scale>\d+)\]"
)


def schema_of(types: Mapping[str, pl.DataType]) -> dict[str, str]:
    """The columns of a frame with the names of their types, as a written file holds them.

    Categorical columns count as ``string``: a list of categories may hold values that no row has
    any more, so it is never written.
    """
    odd = [name for name, dtype in types.items() if _name_of(dtype) is None]
    if odd:
        raise InputError(
            f"The columns {quoted(odd)} do not hold one plain value per row, so no file can hold "
            "them; leave them out or turn them into text or numbers first."
        )
    return {name: str(_name_of(dtype)) for name, dtype in types.items()}


def dtypes_of(schema: Mapping[str, str]) -> dict[str, pl.DataType]:
    """The polars types of a recorded schema: the inverse of :func:`schema_of`."""
    return {column: _dtype_of(column, name) for column, name in schema.items()}


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
        raise InputError(f"The recorded type '{name}' of column '{column}' is not a known one.")
    if found["kind"] == "datetime":
        return pl.Datetime(_UNITS[found["unit"]], found["zone"])
    if found["kind"] == "duration":
        return pl.Duration(_UNITS[found["unit"]])
    return pl.Decimal(int(found["precision"]), int(found["scale"]))


# -- what a text file holds, and how it is read back


def as_text(column: pl.Series) -> pl.Series:
    """Each value as the text that :func:`as_recorded` reads back."""
    name, dtype = column.name, column.dtype
    return _as_text(column.alias(""), dtype).alias(name)  # polars reads ^a$ as a pattern


def _as_text(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return column.dt.strftime("%Y-%m-%dT%H:%M:%S%.f")
    if isinstance(dtype, pl.Time):
        return column.dt.strftime("%H:%M:%S%.f")
    if isinstance(dtype, pl.Duration):
        return column.to_physical().cast(pl.String)
    return column.cast(pl.String)


def as_recorded(column: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """A text column in the type that was recorded for it, or None if a value does not fit."""
    if isinstance(dtype, pl.String):
        return column
    if isinstance(dtype, pl.Boolean):
        known = bool(column.is_in(["true", "false"]).all())
        return column == "true" if known else None
    if isinstance(dtype, pl.Datetime):
        value = parse_datetime(column, dtype)
    elif isinstance(dtype, pl.Duration):
        value = column.cast(pl.Int64, strict=False).cast(dtype)
    elif isinstance(dtype, pl.Date):
        value = column.str.to_date("%Y-%m-%d", strict=False)
    elif isinstance(dtype, pl.Time):
        value = column.str.to_time("%H:%M:%S%.f", strict=False)
    else:
        value = column.cast(dtype, strict=False)
    return value if value.null_count() == column.null_count() else None


def parse_datetime(column: pl.Series, dtype: pl.Datetime) -> pl.Series:
    """Text such as 2020-01-31T23:59:59.5 as datetimes; in UTC where the type has a time zone."""
    unit = dtype.time_unit
    moment = column.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit=unit, strict=False)
    if dtype.time_zone is None:
        return moment
    return moment.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)


def check_recorded_names(
    names: Sequence[str], dtypes: Mapping[str, pl.DataType], called: str
) -> None:
    """ReadError unless a source has the columns that were recorded for it."""
    if list(names) != list(dtypes):
        raise ReadError(
            f"{called} does not have the recorded columns: it has {quoted(names)}, "
            f"recorded are {quoted(dtypes)}."
        )


def in_recorded_type(column: pl.Series, dtype: pl.DataType, called: str) -> pl.Series:
    """The column in the type that was recorded for it; ReadError if a value does not fit."""
    if column.dtype == dtype:
        return column
    bare = column.alias("")  # polars reads a name such as ^a$ as a pattern
    found = as_recorded(bare, dtype) if column.dtype == pl.String else _cast(bare, dtype)
    if found is None:
        raise ReadError(
            f"Column '{column.name}' of {called} has values that are not of its recorded type."
        )
    return found.alias(column.name)


def _cast(column: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """The column in another type, or None if a value would change."""
    try:
        found = column.cast(dtype, strict=False)
        back = found.cast(column.dtype, strict=False)
    except pl.exceptions.PolarsError:
        return None
    return found if bool(back.eq_missing(column).all()) else None
