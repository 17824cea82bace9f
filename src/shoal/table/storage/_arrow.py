"""From Arrow tables, which files and database drivers give, to frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.table.storage._infer import infer_number


def frame_from_arrow(table: Any, called: str) -> pl.DataFrame:
    """The frame of an Arrow table whose column names are different.

    Parameters
    ----------
    table : pyarrow.Table
        The table. Database types that Arrow knows only by name become text or numbers.
    called : str
        Name of the source in errors.
    """
    columns = []
    odd = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        series = _series(name, column)
        if series is None:
            odd.append(name)
        else:
            columns.append(series)
    if odd:
        raise ReadError(
            f"{called} has columns of a type that Shoal does not read ({quoted(odd)}); leave them "
            "out or turn them into text or numbers first (in a query: CAST(... AS text))."
        )
    return pl.DataFrame(columns)


def _series(name: str, column: Any) -> pl.Series | None:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        storage = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        return _extension_series(name, str(kind), storage)
    try:
        made = pl.from_arrow(pa.table([column], names=[name]))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, NotImplementedError):
        return None
    assert isinstance(made, pl.DataFrame)
    series = made.to_series()
    odd = series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object)
    return None if odd else series


def _extension_series(name: str, kind: str, storage: Any) -> pl.Series | None:
    if "uuid" in kind:
        return _uuid_text(name, storage.to_pylist())
    text = _series(name, storage)
    if text is None or text.dtype != pl.String:
        return None
    return infer_number(text) if "numeric" in kind else text


def _uuid_text(name: str, values: Sequence[bytes | None]) -> pl.Series:
    import uuid

    written = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
    return pl.Series(name, written, dtype=pl.String)
