"""What is on record about a table's rows: exchanges of values, samples, and the course it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.table._course import Course
from shoal.table._exchange import Exchange
from shoal.table._frames import plain_floats
from shoal.table._persons import Owners
from shoal.table._roles import Roles
from shoal.table._sampling import Sampling

if TYPE_CHECKING:
    from shoal.table._table import Table


class RecordedRows:
    """The part of a Table that steps write down what they did in. All of it is private."""

    _exchanges: tuple[Exchange, ...]
    _course: Course
    _sampling: Sampling | None

    def __len__(self) -> int:
        raise NotImplementedError

    if TYPE_CHECKING:
        _data: Any
        _derive: Any
        _row_key: npt.NDArray[np.int64]
        _lineage: str
        _roles: Roles
        _owners: Owners

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Which rows exchanged values in which columns. Never publish it."""
        return self._exchanges

    @property
    def course(self) -> Course:
        """Whether the rows were sampled by chance, and what was done to them since."""
        return self._course

    @property
    def sampling(self) -> Sampling | None:
        """Who was there before a sample was drawn, in classes that still are those of the rows.

        None where nothing was sampled, or a quasi-identifier was changed since. Never publish it.
        """
        return self._sampling

    def with_exchange(self, exchange: Exchange) -> Table:
        """The same table with one more exchange on record."""
        table: Table = self._derive(self._data, exchanges=(*self._exchanges, exchange))
        return table

    def accepting_seeds(self) -> Table:
        """The same table, its seeded exchanges taken for secret: for a plan that accepts a seed."""
        if all(exchange.is_secret for exchange in self._exchanges):
            return self  # type: ignore[return-value]
        accepted = tuple(replace(exchange, accepted=True) for exchange in self._exchanges)
        table: Table = self._derive(self._data, exchanges=accepted)
        return table

    def on_course(self, course: Course) -> Table:
        """The same table with another course on record."""
        table: Table = self._derive(self._data)
        vars(table)["_course"] = course
        return table

    def with_sampling(self, sampling: Sampling | None) -> Table:
        """The same table with another record of who was there before sampling."""
        table: Table = self._derive(self._data)
        vars(table)["_sampling"] = sampling
        return table

    def _with_columns(self, changed: Sequence[pl.Series]) -> Table:
        """New cells in some columns; classes from before sampling are no longer theirs."""
        changed = [plain_floats(column) for column in changed]
        table: Table = self._derive(self._data.with_columns(changed))
        on_record = () if self._sampling is None else self._sampling.codes
        if any(
            column.name in on_record
            and not column.equals(self._data[column.name], check_dtypes=True)
            for column in changed
        ):
            vars(table)["_sampling"] = None
        return table

    def owned_by(self, persons: npt.NDArray[np.int64] | None) -> Table:
        """The same rows with the number of the person of each, as an audit has it."""
        if persons is not None and len(persons) != len(self):
            raise InputError("The audit names the persons of another number of rows.")
        table: Table = self._derive(self._data, owners=Owners(persons))
        return table

    def owned_like(self, other: Table) -> Table:
        """The same rows, owned by the persons whom the unit of another table names.

        As they are where their own roles say whose they are, or lack the columns.
        """
        named = other._owners.named
        if self._owners.persons is not None or self._roles.unit or not named:
            return self  # type: ignore[return-value]
        if not set(named) <= set(self._data.columns):
            return self  # type: ignore[return-value]
        table: Table = self._derive(
            self._data, owners=self._owners.under(Roles(unit=named), self._data)
        )
        return table

    def each_row_a_person(self) -> Table:
        """The same rows as if each was a person's only one."""
        table: Table = self._derive(self._data, owners=Owners())
        return table

    def on_record(self, row_key: npt.NDArray[np.int64], exchanges: tuple[Exchange, ...]) -> Table:
        """The same rows with the keys and exchanges that an audit has of them."""
        lengths = {len(row_key), *(len(exchange.groups) for exchange in exchanges)}
        if lengths != {len(self)}:
            raise InputError("The audit is of another number of rows than the table has.")
        keys = np.array(row_key, dtype=np.int64)
        table: Table = self._derive(self._data, row_key=keys, exchanges=exchanges)
        if not np.array_equal(keys, self._row_key):
            vars(table)["_sampling"] = None  # it is about other keys
        return table

    def pairs_with(self, other: Table) -> bool:
        """Whether both tables descend from one input, so that their rows can be paired."""
        return self._lineage == other._lineage

    def check_pairs_with(self, original: Table) -> None:
        """Raise InputError where the rows of the two tables cannot be paired."""
        if not self.pairs_with(original):
            raise InputError(
                "The two tables do not come from one input, so their rows cannot be paired; mask "
                "the original with Shoal, or declare that the rows have the same order by "
                "masked.paired(original)."
            )

    def rows_in(self, original: Table) -> npt.NDArray[np.int64]:
        """The row of the original that each row descends from."""
        self.check_pairs_with(original)
        return original._positions_of(self._row_key)

    def paired(self, original: Table, row_key: npt.NDArray[np.int64] | None = None) -> Table:
        """The same rows declared to descend from ``original``, for measures that pair rows.

        A table that was masked elsewhere pairs row by row: the first row is taken for the first
        of the original, and so on. With ``row_key`` each row names its row key in the original.
        """
        if row_key is None:
            row_key = original.row_key
            if len(row_key) != len(self):
                raise InputError(
                    f"A table of {len(self):,} rows does not pair row by row with an original of "
                    f"{len(row_key):,}; name the row key of each row as row_key."
                )
        if len(row_key) != len(self):
            raise InputError(f"The audit names {len(row_key)} rows, but the table has {len(self)}.")
        table = self.on_record(row_key, self._exchanges)
        if not self.pairs_with(original):
            vars(table)["_lineage"] = original._lineage
            vars(table)["_sampling"] = None  # it is about rows of another input
        at = original._positions_of(table._row_key)
        if original._owners.persons is not None or self._owners.persons is None:
            vars(table)["_owners"] = original._owners.at(at)
        return table
