"""Tables at the door of machine learning: arrays and frames in, the same kind back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Floats
from shoal.table.columns._column import Column

if TYPE_CHECKING:
    from shoal.table._table import Table

Columns = Mapping[str, Mapping[str, Floats]]


def frame_of_array(values: npt.NDArray[Any], names: Sequence[str]) -> pl.DataFrame:
    """A matrix as a frame, with a type for each column of its own."""
    if values.dtype != object:
        return pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return pl.DataFrame(
        {name: pl.Series(values[:, i].tolist(), strict=False) for i, name in enumerate(names)}
    )


def features_of(table: Table, replaced: Columns, like: Any) -> Any:
    """The columns of a table for a model, some of them replaced by numbers.

    ``replaced`` has for a column the columns that stand in its place. The result is a frame of
    the kind that the table came from, or an array where ``like`` is one; a pandas frame gets the
    index of ``like``, so that its rows stay with those of the target.
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
    """The same table with whole numbers as numbers with fractions, which means can have."""
    whole = [table.column(name) for name in table.columns if table.kind(name) == "integer"]
    return table._with_columns(Column(column.series.cast(pl.Float64)) for column in whole)


def renamed(table: Table, names: Mapping[str, str]) -> Table:
    """The same table without roles, some columns under other names."""
    from shoal.table._table import Table

    return Table(table._data.rename(dict(names)))
