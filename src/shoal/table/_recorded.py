"""What is on record about a table's rows: exchanges of values, and the course it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table._course import Course
from shoal.table._exchange import Exchange

if TYPE_CHECKING:
    from shoal.table._table import Table


class RecordedRows:
    """The part of a Table that steps write down what they did in. All of it is private."""

    _exchanges: tuple[Exchange, ...]
    _course: Course

    def __len__(self) -> int:
        raise NotImplementedError

    if TYPE_CHECKING:
        _data: Any
        _derive: Any

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Which rows exchanged values in which columns. Never publish it."""
        return self._exchanges

    @property
    def course(self) -> Course:
        """Whether the rows were sampled by chance, and what was done to them since."""
        return self._course

    def with_exchange(self, exchange: Exchange) -> Table:
        """The same table with one more exchange on record."""
        table: Table = self._derive(self._data, exchanges=(*self._exchanges, exchange))
        return table

    def on_course(self, course: Course) -> Table:
        """The same table with another course on record."""
        table: Table = self._derive(self._data)
        vars(table)["_course"] = course
        return table

    def on_record(self, row_key: npt.NDArray[np.int64], exchanges: tuple[Exchange, ...]) -> Table:
        """The same rows with the keys and exchanges that an audit has of them."""
        lengths = {len(row_key), *(len(exchange.groups) for exchange in exchanges)}
        if lengths != {len(self)}:
            raise InputError("The audit is of another number of rows than the table has.")
        keys = np.array(row_key, dtype=np.int64)
        table: Table = self._derive(self._data, row_key=keys, exchanges=exchanges)
        return table
