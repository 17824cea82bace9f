"""A column of two tables in one code, so that their records can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, quoted
from shoal.table._encode import encode
from shoal.table._population import stacked

if TYPE_CHECKING:
    from shoal.table._table import Table


def stacked_codes(column: str, above: Table, below: Table) -> npt.NDArray[np.int64]:
    """The codes of a column, the rows of one table above those of another; -1 where missing.

    Equal values have equal codes. Numbers of different types are compared as numbers, a number
    and a text as texts.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal.table import Table
    >>> above, below = (Table(pl.DataFrame({"x": x})) for x in (["b", None], ["a", "b"]))
    >>> stacked_codes("x", above, below).tolist()
    [1, -1, 0, 1]
    """
    both = encode(stacked(above._series(column), below._series(column)))
    codes = both.codes.astype(np.int64)
    if both.missing is not None:
        codes[codes == both.missing] = -1
    return codes


def stacked_table(above: Table, below: Table, columns: Sequence[str]) -> Table:
    """Some columns of two tables, the rows of the one above those of the other.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal.table import Table
    >>> above, below = (Table(pl.DataFrame({"x": x, "y": x})) for x in ([1, 2], [3]))
    >>> stacked_table(above, below, ["x"]).frame["x"].to_list()
    [1, 2, 3]
    """
    from shoal.table._table import Table

    lacking = [name for name in columns if name not in below.columns]
    if lacking:
        raise InputError(
            f"The population has no column {quoted(lacking)}; it needs all quasi-identifiers."
        )
    both = [stacked(above._series(name), below._series(name)) for name in columns]
    return Table(pl.DataFrame(both))
