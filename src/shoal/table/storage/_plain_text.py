"""Columns as text that says everything: what a CSV file holds, and how it is read back."""

from __future__ import annotations

import polars as pl


def as_text(column: pl.Series) -> pl.Series:
    """Each value as the text that :func:`shoal.table.storage._infer.as_recorded` reads back.

    Examples
    --------
    >>> import datetime as dt
    >>> as_text(pl.Series([dt.datetime(2020, 1, 31, 23, 59, 59, 500_000), None])).to_list()
    ['2020-01-31T23:59:59.500', None]
    """
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
