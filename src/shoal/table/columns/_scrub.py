"""Columns without leftovers: nothing in memory but the values that the cells show.

A column keeps more than it shows. Where a cell was made missing, the old value still stands in the
buffer under the mark; a column of texts refers to buffers that hold texts of rows long gone; and a
list of categories names values that no row has any more. Formats that copy buffers, such as
Feather, pickle and Arrow in memory, would carry all of that out.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

_FEW: Final = 1 << 16  # texts that are made anew faster than Arrow is imported
_NOTHING: Final[dict[type[pl.DataType], Any]] = {pl.String: "", pl.Boolean: False}


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
    return column.gather(pl.int_range(len(column), eager=True))
