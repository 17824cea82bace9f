"""Parquet, Feather and Arrow files: columns with their types, as they were written."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any, Final

import polars as pl

from shoal.errors import ReadError
from shoal.table.storage._arrow import frame_from_arrow
from shoal.table.storage._header import check_names

_UNNAMED_INDEX: Final = re.compile(r"__index_level_\d+__")


def read_parquet(path: Path) -> pl.DataFrame:
    """Read a Parquet file; an unnamed index of pandas is left behind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise _damaged(path, "Parquet") from None
    check_names(schema.names, f"'{path}'")
    try:
        # polars itself decodes the pages: through Arrow text would be held twice
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise _damaged(path, "Parquet") from None
    return frame.drop(_unnamed_indexes(schema), strict=False)


def read_arrow(path: Path) -> pl.DataFrame:
    """Read a Feather file (version 1 or 2), an Arrow file or an Arrow stream."""
    import pyarrow as pa

    # not polars: on a damaged file its reader can end the whole process
    try:
        table = _arrow_table(path)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeError, ValueError):
        raise _damaged(path, "Feather or Arrow") from None
    check_names(table.column_names, f"'{path}'")
    indexes = _unnamed_indexes(table.schema)
    return frame_from_arrow(table.drop_columns(indexes), f"'{path}'")


def _arrow_table(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.feather

    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"FEA1"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of files that others wrote
            return pyarrow.feather.read_table(path, memory_map=False)
    # not mapped into memory: a file that shrinks under the map would end the process
    with pa.OSFile(str(path)) as file:
        opened = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
        return opened(file).read_all()


def _unnamed_indexes(schema: Any) -> list[str]:
    """Columns that pandas made of an index without a name."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        indexes = noted.get("index_columns", [])
    except (ValueError, AttributeError):
        return []
    named = (name for name in indexes if isinstance(name, str))
    return [name for name in named if _UNNAMED_INDEX.fullmatch(name) and name in schema.names]


def _damaged(path: Path, kind: str) -> ReadError:
    return ReadError(
        f"'{path}' is not a {kind} file, or it is damaged; write it again, or say what it is "
        "with format=."
    )
