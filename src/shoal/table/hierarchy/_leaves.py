"""Where the values of a column stand in a list of values that are written as text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._frames import kind_of
from shoal.table.storage._types import parse_datetime


def positions(values: pl.Series, leaves: pl.Series) -> npt.NDArray[np.int64]:
    """The place of each value among the leaves, or -1.

    Numbers, booleans and dates are compared as what they are: 39, 39.0 and 039 are one number.

    Examples
    --------
    >>> positions(pl.Series([39.0, 40.0]), pl.Series(["?", "39"])).tolist()
    [1, -1]
    """
    known = pl.DataFrame(
        {"value": leaves_as(leaves, values.dtype), "at": np.arange(len(leaves), dtype=np.int64)}
    )
    known = known.filter(known["value"].is_not_null()).unique("value", keep="first")
    asked = values.alias("value").to_frame()
    return (
        asked.join(known, on="value", how="left", maintain_order="left")["at"]
        .fill_null(-1)
        .to_numpy()
    )


def leaves_as(leaves: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Texts in the type of a column; null where one cannot be read so."""
    kind = kind_of(dtype)
    if kind == "text":
        return leaves.cast(dtype)
    bare = leaves.str.strip_chars(" ")
    if kind == "boolean":
        said = {"true": True, "1": True, "false": False, "0": False}
        return bare.str.to_lowercase().replace_strict(said, default=None, return_dtype=pl.Boolean)
    if kind == "integer":
        exact = bare.cast(dtype, strict=False)
        floats = bare.cast(pl.Float64, strict=False)
        whole = floats.filter(floats == floats.round())
        if exact.null_count() == len(leaves) - len(whole):
            return exact
        spare = floats.set(floats != floats.round(), None).cast(dtype, strict=False)
        return exact.zip_with(exact.is_not_null(), spare)
    if isinstance(dtype, pl.Datetime):
        return parse_datetime(bare.str.replace(" ", "T", literal=True), dtype)
    if isinstance(dtype, pl.Date):
        return bare.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Time):
        return bare.str.to_time("%H:%M:%S%.f", strict=False)
    if isinstance(dtype, pl.Duration):
        return bare.cast(pl.Int64, strict=False).cast(dtype)
    number = bare.cast(dtype, strict=False)
    if not dtype.is_float():
        return number
    number = number.set(number.is_nan() | number.is_infinite(), None)
    return number.set(number == 0, 0.0)  # -0.0 is 0.0
