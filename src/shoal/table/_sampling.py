"""Who was there before a sample was drawn: the private record that it leaves with its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Integers
from shoal.table.columns._encode import Codes

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False)
class Sampling:
    """The classes of the rows that a sample was drawn from. Private.

    Parameters
    ----------
    row_key : numpy.ndarray
        The key of each row that was there, drawn or not.
    codes : dict of numpy.ndarray
        For each quasi-identifier a number for the value of each of these rows: equal values have
        equal numbers, a missing one has -1. What the values are is not on record.
    """

    row_key: Integers
    codes: Mapping[str, npt.NDArray[np.signedinteger[Any]]]

    @classmethod
    def of(cls, table: Table) -> Sampling:
        """The record of a table that is about to be sampled, or that of its first sampling."""
        names = table.roles.quasi_identifiers
        if table.sampling is not None and set(names) <= set(table.sampling.codes):
            return table.sampling
        return cls(table.row_key, {name: signed_codes(table.codes(name)) for name in names})

    def __repr__(self) -> str:
        return f"Sampling(columns={tuple(self.codes)}, rows={len(self.row_key)})"


def signed_codes(column: Codes) -> npt.NDArray[np.signedinteger[Any]]:
    """The codes of a column, as narrow as they can be; -1 where a value is missing."""
    kind = np.min_scalar_type(-max(column.count, 1))
    codes: npt.NDArray[np.signedinteger[Any]] = column.codes.astype(kind)
    if column.missing is not None:
        codes[column.codes == column.missing] = -1
    return codes


def table_of_codes(
    columns: Mapping[str, npt.NDArray[Any]], row_key: Integers, quasi_identifiers: Sequence[str]
) -> Table:
    """A table of numbers that stand for values, missing below 0, with these keys of its rows."""
    from shoal.table._roles import Roles
    from shoal.table._table import Table

    filled = [
        pl.Series(name, codes).set(pl.Series(codes < 0), None) for name, codes in columns.items()
    ]
    data = pl.DataFrame(height=len(row_key)).hstack(filled)
    roles = Roles(quasi_identifiers=quasi_identifiers)
    return Table(data).with_roles(roles, released=True).on_record(row_key, ())
