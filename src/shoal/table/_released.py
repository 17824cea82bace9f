"""Reading back what a release wrote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.storage._formats import DELIMITER_OF
from shoal.table.storage._formulas import Formulas, running
from shoal.table.storage._plain_text import as_text
from shoal.table.storage._read import read_fields, read_frame
from shoal.table.storage._size import check_memory


def read_released(
    path: str | os.PathLike[str],
    format: str,
    schema: Mapping[str, str],
    roles: Roles,
    *,
    formulas: Formulas = "keep",
) -> Table:
    """The released data with the types that the release recorded; not if memory cannot hold it."""
    check_memory(Path(path), format)
    formulas = formulas if format in DELIMITER_OF else "keep"
    frame = read_frame(path, format=format, schema=dict(schema), formulas=formulas)
    return Table(frame).with_roles(roles, released=True)


@dataclass(frozen=True)
class ReleasedFields:
    """The fields of a released file as its reader sees them; nothing is parsed or made equal.

    Fields of text are one where their characters are the same, values of other formats where they
    are written alike.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("balance,sex\\n0.0,f\\n-0.0,f\\n0.0,f\\n")
    >>> ReleasedFields(path, "csv").sizes([0, 1]).tolist()
    [1, 2]
    """

    path: str | os.PathLike[str]
    format: str

    @cached_property
    def _read(self) -> tuple[list[str], pl.DataFrame]:
        return read_fields(self.path, self.format)

    def sizes(
        self, places: Sequence[int], persons: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.int64]:
        """How many rows, or ``persons`` with such rows, share the fields at some places, sorted."""
        _, fields = self._read
        whose = pl.Series("whose", np.arange(fields.height) if persons is None else persons)
        # each value in its one way: as text, -0.0 is not 0.0, nor NaN a missing value
        columns = [as_text(fields[:, place]).alias(str(place)) for place in places]
        if not columns:
            return np.array([whose.n_unique()] if fields.height else [], dtype=np.int64)
        classes = pl.DataFrame([*columns, whose]).lazy().group_by(pl.exclude("whose"))
        sizes = classes.agg(pl.col("whose").n_unique().alias("size")).collect()
        return np.sort(sizes["size"].to_numpy().astype(np.int64))

    def running(self, places: Sequence[int]) -> int:
        """How many names, and fields at some places, a spreadsheet would run as formulas."""
        names, fields = self._read
        columns = [pl.Series(names, dtype=pl.String), *(fields[:, place] for place in places)]
        return sum(int(running(column).sum()) for column in columns)


def records_as_parquet(
    file: BinaryIO, columns: Mapping[str, npt.NDArray[Any] | Sequence[Any]]
) -> None:
    """Write columns of one type each: facts of the private half, or results of a study."""
    pl.DataFrame(dict(columns)).write_parquet(file)


def read_records(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Read per-record facts of the private half; not if memory cannot hold them."""
    check_memory(Path(path), "parquet")
    frame = read_frame(path, format="parquet")  # which words what a damaged file raises
    return {name: frame[name].to_numpy() for name in frame.columns}
