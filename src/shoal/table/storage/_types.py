"""Column types by name: the schema that a release records, and the types it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

import polars as pl

from shoal.errors import InputError, quoted

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

    Parameters
    ----------
    types : mapping of str to polars.DataType
        The schema of a frame.

    Returns
    -------
    dict of str to str
        Column → type name, in the order of the columns. :func:`dtypes_of` is the inverse.

    Raises
    ------
    InputError
        A column has a type that a release cannot hold, such as a list.

    Examples
    --------
    >>> schema_of(pl.DataFrame({"zip": ["01234"], "age": [37]}).schema)
    {'zip': 'string', 'age': 'int64'}
    """
    odd = [name for name, dtype in types.items() if _name_of(dtype) is None]
    if odd:
        raise InputError(
            f"The columns {quoted(odd)} do not hold one plain value per row, so no file can hold "
            "them; leave them out or turn them into text or numbers first."
        )
    return {name: str(_name_of(dtype)) for name, dtype in types.items()}


def dtypes_of(schema: Mapping[str, str]) -> dict[str, pl.DataType]:
    """The polars types of a recorded schema: the inverse of :func:`schema_of`.

    Examples
    --------
    >>> dtypes_of({"born": "datetime[us, UTC]"})
    {'born': Datetime(time_unit='us', time_zone='UTC')}
    """
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
