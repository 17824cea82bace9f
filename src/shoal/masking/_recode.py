"""Global recoding: whole numbers become ranges whose width follows the column's spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.masking._base import NumericMasker, StepLog
from shoal.parameters import ColumnNames, OneOf, Real
from shoal.table import Numbers, RoundEnds, Table


@dataclass(kw_only=True)
class Recode(NumericMasker):
    """Recode whole numbers into ranges whose width is a multiple of the standard deviation.

    The width of a range is ``int(sd * magnitude)``, where sd is the sample standard deviation.
    The first range begins at the smallest value. A value becomes the lower limit of its range, so
    it stays a whole number. If the width is 0, the column does not change. If only one record has
    the smallest value, the first range begins at a rounder number below it.

    Parameters
    ----------
    magnitude : float
        Width of a range in standard deviations; 0.5 and 1.5 are usual.
    start : {"rounded", "lowest"}
        ``"lowest"`` always begins at the smallest value, as in the paper, even if only one person
        has it.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.

    Attributes
    ----------
    ranges_ : dict
        Lowest limit and width of each touched column.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance Trade-off
    <https://arxiv.org/abs/2201.05226>, section 3 (global re-coding).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> ages = pl.DataFrame({"age": [20, 25, 30, 35, 40]})
    >>> recode = Recode(magnitude=1.5)
    >>> masked = recode.fit_transform(Table(ages, Roles(quasi_identifiers=["age"])))
    >>> masked.frame["age"].to_list()
    [10, 21, 21, 32, 32]
    """

    magnitude: Annotated[float, Real(above=0)]
    start: Annotated[str, OneOf(("rounded", "lowest"))] = "rounded"
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "recode"
    summary = "recodes whole numbers into ranges based on the standard deviation"
    reference = "Carvalho et al. 2022"
    kinds = ("integer",)
    by_counts = True

    def _prepare(self, table: Table, log: StepLog) -> Table:
        self.ranges_: dict[str, tuple[int, int]] = {}
        return table

    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        values = numbers.values[numbers.present]
        spread = _spread(values.astype(np.float64), prepared.times, numbers.present)
        width = int(min(spread * self.magnitude, np.iinfo(np.int64).max))
        if width == 0:
            return "its spread is below one unit"
        start = int(values.min())
        holders = prepared.holders(name)
        if self.start == "rounded" and holders[0] == 1:
            least = -1 if start >= 0 else np.iinfo(np.int64).min - 1
            below = max(start - width, int(least))
            found = RoundEnds(prepared.codes(name), holders).number_between(below, start)
            start = start if found is None else int(found)
        self.ranges_[name] = (start, width)
        return _to_ranges(numbers.values, *self.ranges_[name])

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any] | None:
        return _to_ranges(numbers.values, *self.ranges_[name]) if name in self.ranges_ else None

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        masked = super()._mask(table, columns, log)
        self.ranges_ = {name: self.ranges_[name] for name in log.touched}
        return masked


def _spread(values: npt.NDArray[np.float64], times: Any, present: npt.NDArray[np.bool_]) -> float:
    """The standard deviation; a value may represent several records."""
    if times is None:
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    weights = times[present].astype(np.float64)
    if weights.sum() < 2:
        return 0.0
    squares = (values - np.average(values, weights=weights)) ** 2
    return float(np.sqrt((squares * weights).sum() / (weights.sum() - 1)))


def _to_ranges(values: npt.NDArray[Any], lowest: int, width: int) -> npt.NDArray[Any]:
    """The lower limit of each value's range; a value below all ranges gets the lowest one."""
    limit = values.dtype.type(lowest)
    # distances as unsigned words: exact even when the range exceeds half of all integers
    distance = np.maximum(values, limit).view(np.uint64) - limit.view(np.uint64)
    recoded = limit.view(np.uint64) + (distance - distance % np.uint64(width))
    return recoded.view(values.dtype)
