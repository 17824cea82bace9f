"""What holds for every source of data: its column names, and the types recorded for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.table.storage._infer import as_recorded


def check_names(names: Sequence[str | None], called: str) -> None:
    """ReadError if a column has no name, or one that another column has too."""
    empty = [str(at) for at, name in enumerate(names, 1) if name is None or not name.strip()]
    if empty:
        raise ReadError(
            f"{called} has no name for column number {', '.join(empty[:12])} of {len(names)} "
            "(an index that was written along, perhaps); name every column or leave it out."
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ReadError(
            f"{called} names {quoted(twice)} more than once; give every column a name of its own."
        )


def as_recorded_frame(
    columns: Sequence[pl.Series], dtypes: Mapping[str, pl.DataType], called: str
) -> pl.DataFrame:
    """The columns in the types that were recorded for them; ReadError if they do not fit."""
    names = [column.name for column in columns]
    if names != list(dtypes):
        raise ReadError(
            f"{called} does not have the recorded columns: it has {quoted(names)}, "
            f"recorded are {quoted(dtypes)}."
        )
    return pl.DataFrame([_in_type(column, dtypes[column.name], called) for column in columns])


def _in_type(column: pl.Series, dtype: pl.DataType, called: str) -> pl.Series:
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
