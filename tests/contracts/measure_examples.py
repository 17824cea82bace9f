"""An example for every measure of risk and utility, for the contract tests.

A measure without an entry here fails the suite (``test_registry.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal import Table


def _as_it_is(table: Table) -> Table:
    return table


def _with_a_secret(table: Table) -> Table:
    """The table with a sensitive column: its first quasi-identifier, from the last row on."""
    if table.roles.sensitive:
        return table
    values = table.frame[table.roles.quasi_identifiers[0]].reverse().alias("secret")
    roles = table.roles.replacing(sensitive=["secret"])
    return Table(table.frame.with_columns(values), roles)


def _with_a_number(table: Table) -> Table:
    """The table with a sensitive column of numbers, where it has none."""
    roles = table.roles
    if any(table.kind(name) in ("integer", "float") for name in roles.quasi_identifiers):
        return table
    values = pl.Series("number", range(len(table)))
    return Table(table.frame.with_columns(values), roles.replacing(sensitive=["number"]))


@dataclass(frozen=True)
class MeasureExample:
    """How a measure is called, and how its value follows from what it says of each record."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    #: From the records' values to the value; None where the measure is not of records.
    of_records: Callable[[Any], float] | None = None
    #: What a table must have for the measure, and is given where it has not.
    prepared: Callable[[Table], Table] = _as_it_is

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.options)})"


def _mean(values: Any) -> float:
    return float(np.mean(values))


def _max(values: Any) -> float:
    return float(np.max(values))


MEASURES: list[MeasureExample] = [
    MeasureExample("attribute_inference", {}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "distance"}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "probabilistic"}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "similarity"}, _mean, _with_a_secret),
    MeasureExample("certainty", {}, _max),
    MeasureExample("distance_linkage", {}, _mean),
    MeasureExample("distance_linkage", {"sample": 10_000, "random_state": 1}, _mean),
    MeasureExample("homogeneity", {}, _mean, _with_a_secret),
    MeasureExample("household_risk", {"household": "first", "sampling_fraction": 0.25}, _mean),
    MeasureExample("individual_risk", {"sampling_fraction": 0.25}, _mean),
    MeasureExample("interval_disclosure", {}, _mean, _with_a_number),
    MeasureExample("interval_disclosure", {"interval": "groups"}, _mean, _with_a_number),
    MeasureExample("interval_disclosure", {"interval": "deviations"}, _mean, _with_a_number),
    MeasureExample("journalist_risk", {"sampling_fraction": 0.25}, _max),
    MeasureExample("journalist_risk", {"population": "twice"}, _max),
    MeasureExample("marketer_risk", {}, _mean),
    MeasureExample("marketer_risk", {"sampling_fraction": 0.25}, _mean),
    MeasureExample("marketer_risk", {"population": "twice"}, _mean),
    MeasureExample("membership_inference", {"control": "others"}, _mean),
    MeasureExample(
        "membership_inference", {"control": "others", "attack": "model"}, _mean, _with_a_secret
    ),
    MeasureExample("population_uniqueness", {"sampling_fraction": 0.25}),
    MeasureExample("population_uniqueness", {"sampling_fraction": 0.05, "estimator": "snb"}),
    MeasureExample("population_uniqueness", {"population": "twice"}),
    MeasureExample("prosecutor_risk", {}, _max),
    MeasureExample("records_at_risk", {}, _mean),
    MeasureExample("records_at_risk", {"threshold": 0.5}, _mean),
    MeasureExample("similarity", {}, _mean, _with_a_secret),
    MeasureExample("similarity", {"closeness": 0.5}, _mean, _with_a_secret),
    MeasureExample("skewness", {}, _mean, _with_a_secret),
    MeasureExample("skewness", {"threshold": 0}, _mean, _with_a_secret),
    MeasureExample("suda", {}, _mean),
    MeasureExample("suda", {"size": 2, "sampling_fraction": 0.1}, _mean),
    MeasureExample("suppressed_cells"),
    MeasureExample("total_variation"),
    MeasureExample("unchanged_records", {}, _mean),
    MeasureExample("uniqueness", {}, _mean),
]

#: Measures whose best value on an unmasked table is not their best value, with the reason.
NOT_BEST_WHEN_UNMASKED: dict[str, str] = {
    "attribute_inference": "it is a risk: what was not masked is there to be guessed",
    "certainty": "it is a risk: everybody is in a table from which nobody was left out",
    "distance_linkage": "it is a risk: every record of an unmasked table is nearest to itself",
    "interval_disclosure": "it is a risk: a value that was not masked is told exactly",
    "membership_inference": "it is a risk, and guessing blindly is right half of the time",
    "unchanged_records": "it is a risk: every record of an unmasked table is unchanged",
}


def options_for(example: MeasureExample, table: Table) -> dict[str, Any]:
    """The options, with a population, others and households made from the table itself."""
    options = dict(example.options)
    if options.get("household") == "first":
        options["household"] = table.roles.quasi_identifiers[0]
    if options.get("population") == "twice":
        twice = pl.concat([table.frame, table.frame])
        options["population"] = Table(twice, table.roles)
    if options.get("control") == "others":
        first = pl.col(table.roles.quasi_identifiers[0])
        options["control"] = Table(table.frame.with_columns(first.reverse()), table.roles)
    return options
