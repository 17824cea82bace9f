"""A hash of a table's data, so that results of other data are not taken for these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.table.columns._frames import kind_of

if TYPE_CHECKING:
    from shoal.table._table import Table


def fingerprint(table: Table) -> str:
    """The hash of the rows in their order, and of the roles. Private: it is a hash of people.

    Equal cells give equal hashes: neither the library that the frame came from, nor the width of
    a type, nor the order of the columns counts.
    """
    digest = hashlib.blake2b(digest_size=32, person=b"shoal/table")
    digest.update(json.dumps([table.roles.to_dict(), len(table)], sort_keys=True).encode())
    for name in sorted(table.columns):
        column = table.column(name).series
        header = [name, kind_of(column.dtype), column.null_count()]
        digest.update(json.dumps(header).encode())
        if column.null_count():
            digest.update(np.packbits(column.is_null().to_numpy()).data)
        for part in _cells(column):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()


def _cells(column: pl.Series) -> Iterator[Any]:
    """The bytes of a column's cells, whatever lies in memory where a cell is missing."""
    dtype = column.dtype
    if isinstance(dtype, (pl.Datetime, pl.Duration)):
        yield str(getattr(dtype, "time_zone", None)).encode()
        if dtype.time_unit == "ns":
            finer = column.to_physical() % 1000
            if (finer != 0).any():
                yield _bytes(finer)
        column = column.dt.cast_time_unit("us").to_physical()
    elif dtype.is_temporal():
        column = column.to_physical()
    elif dtype == pl.Boolean:
        column = column.cast(pl.UInt8)
    elif not (dtype.is_integer() or dtype.is_float()):  # texts and decimals
        texts = column.cast(pl.String)
        yield _bytes(texts.str.len_bytes())
        yield texts.str.join("").item().encode()
        return
    yield _bytes(column)


def _bytes(numbers: pl.Series) -> Any:
    """Numbers as 64 bits each, a missing one as 0, and zero without a sign."""
    if numbers.dtype.is_float():
        values = numbers.cast(pl.Float64).fill_null(0).to_numpy() + 0.0
    else:
        wide = pl.UInt64 if numbers.dtype == pl.UInt64 else pl.Int64
        values = numbers.cast(wide).fill_null(0).to_numpy()
    return np.ascontiguousarray(values).view(np.uint8).data
