"""Tables for models and studies: arrays in, features out, and a hash as the key of results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.table.columns._column import Column
from shoal.table.columns._frames import kind_of, to_polars

if TYPE_CHECKING:
    from shoal.table._table import Table


Columns = Mapping[str, Mapping[str, Floats]]


def frame_of_array(values: npt.NDArray[Any], names: Sequence[str]) -> pl.DataFrame:
    """A matrix as a frame, with a separate type for each column."""
    if values.dtype != object:
        return pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return pl.DataFrame(
        {name: pl.Series(values[:, i].tolist(), strict=False) for i, name in enumerate(names)}
    )


def frame_of_columns(**columns: Sequence[Any]) -> pl.DataFrame:
    """A frame of plain facts; columns of numbers may be entirely empty."""
    types = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "baseline": pl.Float64}
    return pl.DataFrame(columns, schema_overrides={n: t for n, t in types.items() if n in columns})


def with_target(table: Table, name: str, values: Any) -> Table:
    """The table with one more column: a list, an array or a series of any library.

    Examples
    --------
    >>> from shoal import Table
    >>> with_target(Table(pl.DataFrame({"age": [31, 40]})), "ill", ["no", "yes"]).columns
    ['age', 'ill']
    """
    if isinstance(values, pl.Series):
        column = values.alias(name)
    elif hasattr(values, "dtype") and not isinstance(values, np.ndarray):
        column = nw.from_native(values, series_only=True).to_polars().alias(name)
    else:
        column = frame_of_array(np.asarray(values).reshape(-1, 1), [name]).to_series()
    if len(column) != len(table):
        raise InputError(
            f"The target has {len(column):,} values, but the table has {len(table):,} rows. Pass "
            "one value for each row."
        )
    data, _ = to_polars(column.to_frame())
    return table._with_columns([Column(data.to_series())])


def features_of(table: Table, replaced: Columns, like: Any) -> Any:
    """The columns of a table for a model, some of them replaced by numbers.

    ``replaced`` maps a column to the columns that replace it. The result is a frame of the table's
    original type, or an array if ``like`` is one. A pandas frame gets the index of ``like``, so
    that its rows match those of the target.
    """
    columns: list[pl.Series] = []
    for name in table.columns:
        if name in replaced:
            columns += [pl.Series(out, values) for out, values in replaced[name].items()]
        else:
            columns.append(table.column(name).series)
    data = pl.DataFrame(columns)
    if isinstance(like, np.ndarray):
        return data.to_numpy()
    origin = table._origin.without(replaced)
    frame = origin.restore(data)
    index = getattr(like, "index", None)
    if origin.library == "pandas" and index is not None and len(index) == len(frame):
        frame = frame.set_axis(index, axis="index")
    return frame


def whole_as_floats(table: Table) -> Table:
    """The table with integers as floats, so that they can hold means."""
    whole = [table.column(name) for name in table.columns if table.kind(name) == "integer"]
    return table._with_columns(Column(column.series.cast(pl.Float64)) for column in whole)


def renamed(table: Table, names: Mapping[str, str]) -> Table:
    """The table without roles and with some columns renamed."""
    from shoal.table._table import Table

    return Table(table._data.rename(dict(names)))


def fingerprint(table: Table) -> str:
    """The hash of the rows in their order, and of the roles. Private, because it is about people.

    Equal cells give equal hashes. The library of the frame, the width of a type and the order of
    the columns do not matter.
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
    """The bytes of a column's cells, independent of the memory under missing cells."""
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
    """Numbers as 64 bits each, with 0 for missing and zero without a sign."""
    if numbers.dtype.is_float():
        values = numbers.cast(pl.Float64).fill_null(0).to_numpy() + 0.0
    else:
        wide = pl.UInt64 if numbers.dtype == pl.UInt64 else pl.Int64
        values = numbers.cast(wide).fill_null(0).to_numpy()
    return np.ascontiguousarray(values).view(np.uint8).data
