"""Top and bottom coding: extreme values are drawn in to the whiskers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.masking._base import StepLog
from shoal.masking._numeric import NumericMasker
from shoal.parameters import ColumnNames, Real
from shoal.table import Numbers, Table


@dataclass(kw_only=True)
class TopBottomCode(NumericMasker):
    """Replace values beyond Tukey's fences by the most extreme value inside them.

    The fences are Q1 - ``fence`` x IQR and Q3 + ``fence`` x IQR. A value outside becomes the
    whisker: the most extreme observation that lies inside. A column whose quartiles are equal is
    left alone, since every deviating value of a flag would otherwise become constant. The whiskers
    are values of the original column, and each may be one person's; round afterwards where that
    matters.

    Parameters
    ----------
    fence : float
        How many interquartile ranges the fences stand off; 1.5 and 3 are usual.
    columns : list of str, optional
        The columns to mask; the quasi-identifiers without it.

    Attributes
    ----------
    caps_ : dict
        Lowest and highest released value of each touched column.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance
    Trade-off, section 3 (top-and-bottom coding). Tukey (1977), Exploratory Data Analysis.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> ages = pl.DataFrame({"age": [30, 31, 32, 33, 34, 99]})
    >>> masked = TopBottomCode(fence=1.5).fit_transform(
    ...     Table(ages, Roles(quasi_identifiers=["age"])))
    >>> masked.frame["age"].to_list()
    [30, 31, 32, 33, 34, 34]
    """

    fence: Annotated[float, Real(above=0)]
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "top_bottom_code"
    summary = "draws extreme numbers in to the whiskers of Tukey's fences"
    reference = "Carvalho et al. 2022; Tukey 1977"
    keeps_equal = True

    def _prepare(self, table: Table, log: StepLog) -> None:
        self.caps_: dict[str, tuple[Any, Any]] = {}

    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        values = numbers.values[numbers.present]
        with np.errstate(over="ignore", invalid="ignore"):  # infinite fences: nothing is outside
            first, third = np.percentile(values, [25, 75])
            reach = self.fence * (third - first)
            inside = values[(values >= first - reach) & (values <= third + reach)]
        if third == first:
            return "its quartiles are equal"
        if len(inside) == 0:
            return "no value lies inside the fences"
        self.caps_[name] = (inside.min(), inside.max())
        return np.clip(numbers.values, *self.caps_[name])

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any] | None:
        return np.clip(numbers.values, *self.caps_[name]) if name in self.caps_ else None

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        masked = super()._mask(table, columns, log)
        self.caps_ = {name: self.caps_[name] for name in log.touched}
        return masked
