"""Read Parquet, Feather and Arrow: typed columns from files and from database drivers."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import polars as pl

from shoal.errors import ReadError, quoted
from shoal.table.storage._header import check_names
from shoal.table.storage._types import Fields
from shoal.table.storage.inference._infer import infer_number

#: Metadata keys under which programs store the meaning of a column.
_LABELS: Final = (b"label", b"description", b"comment")
_UNNAMED_INDEX: Final = re.compile(r"__index_level_\d+__")


def read_plain(path: Path, without: Container[str] = ()) -> pl.DataFrame:
    """Read a Parquet file of plain numbers ``without`` some columns, and without loading Arrow."""
    try:
        with path.open("rb") as file:
            names = list(pl.read_parquet_schema(file))
        places = [place for place, name in enumerate(names) if name not in without]
        return pl.read_parquet(path, columns=places, glob=False, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(path, "Parquet") from None


def read_parquet(path: Path) -> list[Fields]:
    """Read a Parquet file without an unnamed index of pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, repeating = file.schema_arrow, _in_dictionaries(file)
        check_names(schema.names, f"'{path}'")
        indexes = _unnamed_indexes(schema)
        names = [name for name in schema.names if name not in indexes]
        found = _from_dictionaries(path, [name for name in repeating if name in names])
        others = [schema.names.index(name) for name in names if name not in found]
        if others:
            # decoded by polars, because going through Arrow would hold text twice
            frame = pl.read_parquet(path, columns=others, glob=False, hive_partitioning=False)
            found |= {column.name: Fields(column) for column in frame}
    except (
        pa.ArrowException,
        OSError,
        UnicodeError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ):
        raise _damaged(path, "Parquet") from None
    return [found[name] for name in names]


def column_labels(path: Path) -> dict[str, str]:
    """The meanings of the columns that a Parquet file itself contains."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeError):
        return {}
    metadata = {name: schema.field(at).metadata or {} for at, name in enumerate(schema.names)}
    found = {
        name: next((facts[key] for key in _LABELS if key in facts), b"")
        for name, facts in metadata.items()
    }
    return {name: text.decode(errors="replace") for name, text in found.items() if text}


def _in_dictionaries(file: Any) -> list[str]:
    """The text columns that a Parquet file stores compactly, as dictionaries."""
    import pyarrow as pa

    about, schema = file.metadata, file.schema_arrow
    if about.num_columns != len(schema.names) or not about.num_rows:  # nested values
        return []
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    kinds = (pa.string(), pa.large_string())

    def repeats(place: int) -> bool:
        chunks = [group.column(place) for group in groups]
        held = sum(chunk.total_uncompressed_size for chunk in chunks)
        return all(chunk.has_dictionary_page for chunk in chunks) and held <= 4 * about.num_rows

    return [
        name
        for place, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True))
        if kind in kinds and repeats(place)
    ]


def _from_dictionaries(path: Path, names: Sequence[str]) -> dict[str, Fields]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not names:
        return {}
    found = {}
    with pq.ParquetFile(path, read_dictionary=list(names)) as file:
        for name in names:  # one at a time, as a column takes less memory once it is read
            column = file.read(columns=[name])[name].unify_dictionaries()
            column.validate(full=True)
            # with polars, because Arrow's function for this imports pandas
            texts = pl.Series(name, column.chunk(0).dictionary, dtype=pl.String)
            labels = pl.concat([pl.Series(chunk.indices) for chunk in column.chunks])
            if labels.null_count():
                labels = labels.fill_null(len(texts))
                texts = pl.concat([texts, pl.Series(name, [None], pl.String)])
            found[name] = Fields(texts, labels.to_numpy())
            del column, labels
    pa.default_memory_pool().release_unused()  # which Arrow would keep for later
    return found


def read_arrow(path: Path) -> list[Fields]:
    """Read a Feather file (version 1 or 2), an Arrow file or an Arrow stream."""
    import pyarrow as pa

    # not with polars, whose reader can end the whole process on a damaged file
    try:
        table = _arrow_table(path)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeError, ValueError):
        raise _damaged(path, "Feather or Arrow") from None
    check_names(table.column_names, f"'{path}'")
    indexes = _unnamed_indexes(table.schema)
    return [Fields(column) for column in frame_from_arrow(table.drop_columns(indexes), f"'{path}'")]


def _arrow_table(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.feather

    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"FEA1"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # others wrote the file
            return pyarrow.feather.read_table(path, memory_map=False)
    # not mapped into memory, because a file that shrinks meanwhile would end the process
    with pa.OSFile(str(path)) as file:
        opened = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
        return opened(file).read_all()


def _unnamed_indexes(schema: Any) -> list[str]:
    """Columns that pandas made from an index without a name."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        indexes = noted.get("index_columns", [])
    except (ValueError, AttributeError):
        return []
    named = (name for name in indexes if isinstance(name, str))
    return [name for name in named if _UNNAMED_INDEX.fullmatch(name) and name in schema.names]


def _damaged(path: Path, kind: str) -> ReadError:
    return ReadError(
        f"'{path}' is not a {kind} file, or it is damaged. Write it again, or set its format with "
        "format=."
    )


# -- frames from Arrow tables, which files and database drivers return


def frame_from_arrow(table: Any, called: str) -> pl.DataFrame:
    """The frame of an Arrow table whose column names are all different."""
    named = zip(table.column_names, table.columns, strict=True)
    columns = {name: _series(name, column) for name, column in named}
    odd = [name for name, series in columns.items() if series is None]
    if odd:
        raise ReadError(
            f"{called} has columns of a type that Shoal does not read: {quoted(odd)}. Leave them "
            "out, or convert them to text or numbers first (in a query: CAST(... AS text))."
        )
    return pl.DataFrame(list(columns.values()))


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
        octets = (None if value is None else UUID(bytes=value) for value in storage.to_pylist())
        return pl.Series(name, [one and str(one) for one in octets], dtype=pl.String)
    text = _series(name, storage)
    if text is None or text.dtype != pl.String:
        return None
    return infer_number(text) if "numeric" in kind else text
