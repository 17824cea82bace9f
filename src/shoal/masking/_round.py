"""Rounding to multiples of a base."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats
from shoal.masking._base import NumericMasker
from shoal.parameters import ColumnNames, Real
from shoal.table import Numbers


@dataclass(kw_only=True)
class Round(NumericMasker):
    """Round numbers to the nearest multiple of a base.

    A value becomes ``base * round(x / base)``, halves to the even multiple. Whole numbers stay
    whole: with a base that is not whole, the result is rounded again to a whole number, so a base
    of 0.2 does not change them.

    Parameters
    ----------
    base : float
        The distance between released values, in the unit of the column.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance Trade-off
    <https://arxiv.org/abs/2201.05226>, section 3 (rounding).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> heights = pl.DataFrame({"height": [171.2, 168.9, 175.0]})
    >>> table = Table(heights, Roles(quasi_identifiers=["height"]))
    >>> Round(base=5).fit_transform(table).frame["height"].to_list()
    [170.0, 170.0, 175.0]
    """

    base: Annotated[float, Real(above=0)]
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "round"
    summary = "rounds numbers to multiples of a base"
    reference = "Carvalho et al. 2022"
    by_counts = True

    def _map(self, name: str, numbers: Numbers, prepared: Any) -> npt.NDArray[Any] | str:
        return self._map_new(name, numbers)

    def _map_new(self, name: str, numbers: Numbers) -> npt.NDArray[Any]:
        values, base = numbers.values, float(self.base)
        if values.dtype.kind == "f":
            return _round_floats(values, base)
        if base.is_integer():
            return _round_integers(values, int(base))
        if base < 1:
            return values  # the result is less than half a unit away
        limits = np.iinfo(values.dtype)
        rounded = np.rint(_round_floats(values.astype(np.float64), base))
        # the largest integer is not a double: use the double below it
        largest = np.nextafter(float(limits.max), 0.0)
        return np.clip(rounded, float(limits.min), largest).astype(values.dtype)


def _round_floats(values: Floats, base: float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = base * np.rint(values / base)
    # 3 * 0.2 is not 0.6 in binary: use the double nearest to the decimal value
    exponent = Decimal(repr(base)).normalize().as_tuple().exponent
    decimals = -int(exponent) if isinstance(exponent, int) else 0
    if 0 < decimals <= 15:
        with np.errstate(over="ignore", invalid="ignore"):
            multiples = np.round(multiples, decimals)
    # the quotient is too large for a double: the base is below the precision of the value
    return np.where(np.isfinite(multiples), multiples + 0.0, values)


def _round_integers(values: npt.NDArray[Any], base: int) -> npt.NDArray[Any]:
    """Exact for all 64 bits; if a multiple is out of range, the one on the other side is used."""
    limits = np.iinfo(values.dtype)
    if base > limits.max:
        return np.zeros_like(values)
    step = values.dtype.type(base)
    rest = values % step  # never negative: the multiples are value - rest and one step above
    odd = (values // step) % 2 != 0
    up = (rest > step - rest) | ((rest == step - rest) & odd)
    too_high = values > limits.max - (step - rest)
    too_low = values < limits.min + rest
    up = (up & ~too_high) | too_low
    return np.where(up, values + (step - rest), values - rest)
