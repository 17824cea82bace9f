"""How the risk of the records is spread: for the steward, from what was measured of each record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.measurement import Measurement

Floats = npt.NDArray[np.float64]

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
#: Measures whose records are told as a distribution, in this order, with their formula.
_FORMULAS = {"journalist_risk": "1/F", "certainty": "f/F", "prosecutor_risk": "1/f"}


@dataclass(frozen=True, eq=False)
class RiskDistribution:
    """The risks of all records: ``values`` of each (private), and what they sum up to.

    ``fraction`` is the share of all people who are in the table: what the certainty would be for
    everybody in an even sample. ``above`` is the share of records with a higher value. Both are
    told of the certainty alone.
    """

    measure: str
    formula: str
    values: Floats
    fraction: float | None = None

    @property
    def quantiles(self) -> dict[str, float]:
        """Values that so large a share of the records does not exceed."""
        found = np.quantile(self.values, QUANTILES, method="inverted_cdf")
        return {str(q): float(value) for q, value in zip(QUANTILES, found, strict=True)}

    @property
    def mean(self) -> float:
        """The average risk of a record."""
        return math.fsum(self.values) / len(self.values)

    @property
    def above(self) -> float | None:
        """The share of records above the sampling fraction."""
        if self.fraction is None:
            return None
        return float((self.values > self.fraction).mean())

    def to_dict(self) -> dict[str, Any]:
        """Plain facts; the values of the records stay behind."""
        return {
            "formula": self.formula,
            "mean": self.mean,
            "quantiles": self.quantiles,
            "sampling_fraction": self.fraction,
            "share_above_fraction": self.above,
        }


def distributions_of(
    measurements: Mapping[str, Measurement], rows: int, original_rows: int | None
) -> tuple[RiskDistribution, ...]:
    """The distributions of risk that the measurements allow to tell."""
    found = []
    for name, formula in _FORMULAS.items():
        per_record = measurements[name].per_record if name in measurements else None
        if per_record is None:
            continue
        sampled = name == "certainty" and original_rows is not None
        fraction = rows / original_rows if sampled and original_rows else None
        found.append(RiskDistribution(name, formula, per_record, fraction))
    return tuple(found)
