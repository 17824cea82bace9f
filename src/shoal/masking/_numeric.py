"""One shape for methods that change numeric columns one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy.typing as npt

from shoal.masking._base import Masker, StepLog
from shoal.table import Kind, Numbers, Table


class NumericMasker(Masker):
    """Base of methods that map the values of each numeric column on their own."""

    kinds: ClassVar[tuple[Kind, ...]] = ("integer", "float")
    keeps_equal: ClassVar[bool] = False  # whether a value that stays keeps digits beyond a float

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        prepared = self._prepare(table, log)
        changed: dict[str, npt.NDArray[Any]] = {}
        for name in columns:
            kind = table.kind(name)
            if kind not in self.kinds:
                log.skipped[name] = f"{kind}, not {' or '.join(self.kinds)}"
                continue
            numbers = table.numbers(name)
            if not numbers.present.any():
                log.skipped[name] = "no value present"
                continue
            result = self._map(name, numbers, prepared)
            if isinstance(result, str):
                log.skipped[name] = result
            else:
                changed[name] = result
        masked = table.with_numbers(changed, keep_equal=self.keeps_equal) if changed else table
        log.compare(changed, masked, table)
        return masked

    def _serve(self, table: Table) -> Table:
        changed = {}
        for name in table.chosen(getattr(self, "columns", None)):
            if name in table.columns and table.kind(name) in self.kinds:
                result = self._map_new(name, table.numbers(name))
                if result is not None:
                    changed[name] = result
        return table.with_numbers(changed, keep_equal=self.keeps_equal) if changed else table

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any] | None:
        """The values of new rows in the released domain; None leaves them as they are."""
        return None

    def _prepare(self, table: Table, log: StepLog) -> Any:
        """What :meth:`_map` needs beyond the column itself; begins the fitted facts."""

    @abstractmethod
    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        """The new values of a column, or the reason why it is left as it is."""
