"""The data of a release that is a labelled file, in the recorded types."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from shoal.table.columns._frames import plain_floats
from shoal.table.storage._types import as_recorded
from shoal.table.storage.labelled._coding import Coding


def restored(
    frame: pl.DataFrame, dtypes: Mapping[str, pl.DataType], coding: Coding
) -> dict[str, pl.Series]:
    """The columns of a file in their recorded types; one whose values do not fit is left out."""
    columns = list(frame)
    names = [column.name.upper() for column in columns]
    found: dict[str, pl.Series] = {}
    for name, dtype in dtypes.items():
        if name.upper() not in names:
            continue
        # a portable file has its names in upper case
        same = [column for column in columns if column.name == name]
        column = same[0] if same else columns[names.index(name.upper())]
        fitting = _in_type(column.alias(""), dtype, coding.codes.get(name))
        if fitting is not None:
            found[name] = plain_floats(fitting).alias(name)
    return found


def _in_type(
    cells: pl.Series, dtype: pl.DataType, codes: Mapping[int, str] | None
) -> pl.Series | None:
    if codes is not None:
        if not cells.dtype.is_numeric():
            return cells.cast(pl.String) if cells.null_count() == len(cells) else None
        text = cells.cast(pl.Int64, strict=False).replace_strict(
            dict(codes), default=None, return_dtype=pl.String
        )
        return text if text.null_count() == cells.null_count() else None
    if cells.dtype == dtype:
        return cells
    if cells.dtype == pl.String:
        return as_recorded(cells, dtype)
    try:
        found = _cast(cells, dtype)
        same = bool(_cast(found, cells.dtype).eq_missing(cells).all())
    except pl.exceptions.PolarsError:
        return None
    return found if same else None


def _cast(cells: pl.Series, dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        moments = cells.cast(pl.Datetime(dtype.time_unit), strict=False)
        return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    if isinstance(cells.dtype, pl.Datetime) and cells.dtype.time_zone is not None:
        cells = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype == pl.Boolean:
        odd = ~cells.drop_nulls().is_in([0, 1])
        return cells.set(cells.is_not_null(), None) if odd.any() else cells.cast(pl.Boolean)
    return cells.cast(dtype, strict=False)
