"""Disclosure risk: one function per measure or attack, returning a Measurement."""

from shoal.measurement import MeasureInfo, discover_measures
from shoal.risk._classes import (
    journalist_risk,
    marketer_risk,
    population_sizes,
    prosecutor_risk,
    records_at_risk,
    uniqueness,
)
from shoal.risk._distance_linkage import distance_linkage
from shoal.risk._swapped_groups import group_disclosure, own_values, rank_matching
from shoal.risk._unchanged import unchanged_records

__all__ = [
    "discover_risks",
    "distance_linkage",
    "group_disclosure",
    "journalist_risk",
    "marketer_risk",
    "own_values",
    "population_sizes",
    "prosecutor_risk",
    "rank_matching",
    "records_at_risk",
    "unchanged_records",
    "uniqueness",
]


def discover_risks() -> dict[str, MeasureInfo]:
    """Every risk measure by its name in plans."""
    return discover_measures("shoal.risk")
