"""Top and bottom coding: extreme values move to the whiskers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import ParameterError
from shoal.masking._base import NumericMasker, StepLog
from shoal.parameters import ColumnNames, OneOf, Real
from shoal.table import Numbers, RoundEnds, Table

#: How far a cap may lie from the whisker, in interquartile ranges; the nearest with a number wins.
_SHARES = (0.1, 0.5, np.inf)


@dataclass(kw_only=True)
class TopBottomCode(NumericMasker):
    """Replace extreme values by a limit: a given one, or the whisker inside Tukey's fences.

    With ``top`` or ``bottom``, every value beyond becomes this limit: with ``top=90``, all ages
    from 90 on are 90.

    The fences are Q1 - ``fence`` x IQR and Q3 + ``fence`` x IQR. A value outside becomes the
    whisker: the most extreme observation inside the fences. If only one record has the whisker's
    value, the cap is a rounder number next to it, closer to the middle, and that record moves to
    the cap as well. A column whose quartiles are equal does not change: otherwise all deviating
    values of a flag would become constant.

    Parameters
    ----------
    fence : float, optional
        The distance of the fences from the quartiles, in interquartile ranges; 1.5 and 3 are usual.
    cap : {"rounded", "whisker"}
        ``"whisker"`` always uses the whisker, as in the paper, even if only one person has it.
    top : float, optional
        The highest value to release, in the unit of the column; used instead of a fence.
    bottom : float, optional
        The lowest value to release; used instead of a fence.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.

    Attributes
    ----------
    caps_ : dict
        Lowest and highest released value of each touched column.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance Trade-off
    <https://arxiv.org/abs/2201.05226>, section 3 (top-and-bottom coding). Tukey (1977), Exploratory
    Data Analysis <https://archive.org/details/exploratorydataa0000tuke_7616>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> ages = pl.DataFrame({"age": [30, 31, 32, 33, 34, 99]})
    >>> masked = TopBottomCode(fence=1.5).fit_transform(
    ...     Table(ages, Roles(quasi_identifiers=["age"])))
    >>> masked.frame["age"].to_list()
    [30, 31, 32, 33, 34, 34]
    >>> TopBottomCode(top=33.0).fit_transform(
    ...     Table(ages, Roles(quasi_identifiers=["age"]))).frame["age"].to_list()
    [30, 31, 32, 33, 33, 33]
    >>> wages = pl.DataFrame({"wage": [1210.5, 1350.25, 1470.0, 1590.75, 1720.5, 9900.0]})
    >>> TopBottomCode(fence=1.5).fit_transform(
    ...     Table(wages, Roles(quasi_identifiers=["wage"]))).frame["wage"].to_list()
    [1210.5, 1350.25, 1470.0, 1590.75, 1700.0, 1700.0]
    """

    fence: Annotated[float | None, Real(above=0)] = None
    cap: Annotated[str, OneOf(("rounded", "whisker"))] = "rounded"
    top: Annotated[float | None, Real()] = None
    bottom: Annotated[float | None, Real()] = None
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "top_bottom_code"
    summary = "replaces extreme numbers by a limit, or by the whiskers of Tukey's fences"
    reference = "Carvalho et al. 2022; Tukey 1977"
    keeps_equal = True
    by_counts = True

    def check_parameters(self) -> None:
        super().check_parameters()
        limits = [limit for limit in (self.bottom, self.top) if limit is not None]
        if (self.fence is None) == (not limits):
            raise ParameterError(
                "TopBottomCode takes a fence, or a top and a bottom, or one of these two."
            )
        if len(limits) == 2 and limits[0] > limits[1]:
            raise ParameterError("The bottom of TopBottomCode must not be above its top.")

    def _prepare(self, table: Table, log: StepLog) -> Table:
        self.caps_: dict[str, tuple[Any, Any]] = {}
        return table

    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        if self.fence is None:
            self.caps_[name] = self.bottom, self.top
            return self._limited(numbers.values)
        values = numbers.values[numbers.present]
        with np.errstate(over="ignore", invalid="ignore"):  # infinite fences: nothing is out
            first, third = _quartiles(values, prepared.times, numbers.present)
            assert self.fence is not None
            reach = self.fence * (third - first)
            inside = values[(values >= first - reach) & (values <= third + reach)]
        if third == first:
            return "its quartiles are equal"
        if len(inside) == 0:
            return "no value lies inside the fences"
        caps = inside.min(), inside.max()
        if self.cap == "rounded" and (values.min() < caps[0] or values.max() > caps[1]):
            caps = _rounded(
                RoundEnds(prepared.codes(name), prepared.holders(name)),
                values,
                caps,
                (first, third),
            )
        self.caps_[name] = caps
        return np.clip(numbers.values, *caps)

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any] | None:
        if self.fence is None:
            return self._limited(numbers.values)
        return np.clip(numbers.values, *self.caps_[name]) if name in self.caps_ else None

    def _limited(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values between the given limits; whole numbers stay whole, and inside."""
        low, high = self.bottom, self.top
        if values.dtype.kind == "f":
            return np.clip(values, low, high)
        ends = np.iinfo(values.dtype)
        bottom = ends.min if low is None else min(max(math.ceil(low), ends.min), ends.max)
        top = ends.max if high is None else min(max(math.floor(high), ends.min), ends.max)
        return np.clip(values, values.dtype.type(bottom), values.dtype.type(top))

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        masked = super()._mask(table, columns, log)
        self.caps_ = {name: self.caps_[name] for name in log.touched}
        return masked


def _quartiles(values: npt.NDArray[Any], times: Any, present: npt.NDArray[np.bool_]) -> Any:
    """The quartiles as numpy computes them; a value may represent several records."""
    values = values.astype(np.float64)  # a difference of integers may overflow
    if times is None:
        return np.percentile(values, [25, 75])
    order = np.argsort(values, kind="stable")
    last = np.cumsum(times[present][order])
    places = np.array([0.25, 0.75]) * (last[-1] - 1)
    low, high = (
        values[order][np.searchsorted(last, np.clip(at, 0, last[-1] - 1), side="right")]
        for at in (np.floor(places), np.floor(places) + 1)
    )
    shares = places - np.floor(places)
    return [np.quantile(ends, share) for *ends, share in zip(low, high, shares, strict=True)]


def _rounded(
    line: RoundEnds,
    values: npt.NDArray[Any],
    whiskers: tuple[Any, Any],
    quartiles: tuple[float, float],
) -> tuple[Any, Any]:
    """The whiskers, moved inward if only one person has them and others are beyond."""
    low, high = whiskers
    reach = float(quartiles[1]) - float(quartiles[0])
    levels = np.unique(values)

    def is_alone(value: Any) -> bool:
        return bool(line.records[np.searchsorted(levels, value)] == 1)

    if values.min() < low and is_alone(low):
        ends = (min(float(low) + share * reach, quartiles[0]) for share in _SHARES)
        found = (line.number_between(low, end) for end in ends)
        low = next((number for number in found if number is not None), low)
    if values.max() > high and is_alone(high):
        ends = (max(float(high) - share * reach, quartiles[1]) for share in _SHARES)
        found = (line.number_between(end, high) for end in ends)
        high = next((number for number in found if number is not None), high)
    return values.dtype.type(low), values.dtype.type(high)
