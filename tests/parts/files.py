"""Frames in files: written as a release writes them, and read with or without recorded types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from shoal.table import Dialect, ReleasedFile
from shoal.table.columns._column import Column
from shoal.table.storage._formats import DELIMITER_OF, format_of
from shoal.table.storage._read import read_source
from shoal.table.storage._types import schema_of
from shoal.table.storage._write import write_columns

__all__ = ["read_frame", "schema_of", "write_frame"]


def write_frame(frame: pl.DataFrame, path: Any, **options: Any) -> None:
    """Write a frame, so that :func:`read_frame` with its schema returns it."""
    categories = (pl.Categorical, pl.Enum)
    plain = (s.cast(pl.String) if s.dtype in categories else s for s in frame)
    write_columns([Column(series) for series in plain], path, **options)


def read_frame(
    source: Any, *, schema: dict[str, str] | None = None, formulas: Any = "keep", **options: Any
) -> pl.DataFrame:
    """A frame from a file or a database; with a schema, from a file of a release."""
    if schema is None:
        found, _, _ = read_source(source, **options)
    else:
        format = options.pop("format", None) or format_of(source)
        usual = {"delimiter": DELIMITER_OF.get(format, ",")}
        file = ReleasedFile(Path(source), format, Dialect(**usual | options))
        found = file.columns(schema, formulas=formulas)
    return found if isinstance(found, pl.DataFrame) else pl.DataFrame([c.series for c in found])
