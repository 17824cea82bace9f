"""Utility: one function per measure, returning a Measurement."""

from shoal.measurement import MeasureInfo, discover_measures
from shoal.utility._distribution import total_variation
from shoal.utility._predictive_performance import (
    predictive_performance,
    regression_performance,
)
from shoal.utility._suppression import suppressed_cells

__all__ = [
    "discover_utilities",
    "predictive_performance",
    "regression_performance",
    "suppressed_cells",
    "total_variation",
]


def discover_utilities() -> dict[str, MeasureInfo]:
    """Every utility measure by its name in plans."""
    return discover_measures("shoal.utility")
