"""Reading back what a release wrote."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy.typing as npt
import polars as pl

from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.storage._read import read_frame
from shoal.table.storage._size import check_memory


def read_released(
    path: str | os.PathLike[str], format: str, schema: Mapping[str, str], roles: Roles
) -> Table:
    """The released data with the types that the release recorded; not if memory cannot hold it."""
    check_memory(Path(path), format)
    frame = read_frame(path, format=format, schema=dict(schema))
    return Table(frame).with_roles(roles, released=True)


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
