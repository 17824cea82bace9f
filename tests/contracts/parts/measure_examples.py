"""An example for every measure of risk and utility, for the contract tests.

A measure without an entry here fails the suite (``test_registry.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from shoal import Hierarchy, Roles, Table

#: Measures of the same table share what is made of it, and with it the classes it has found.
made_once = lru_cache(maxsize=64)


def _as_it_is(table: Table) -> Table:
    return table


@made_once
def _with_a_secret(table: Table) -> Table:
    """The table with a sensitive column: its first quasi-identifier, from the last row on."""
    if table.roles.sensitive:
        return table
    values = table.frame[table.roles.quasi_identifiers[0]].reverse().alias("secret")
    roles = table.roles.replacing(sensitive=["secret"])
    return Table(table.frame.with_columns(values), roles)


@made_once
def _with_a_target(table: Table) -> Table:
    """Enough rows to learn from, with a class, an amount, and a column that predicts both."""
    if not len(table) or "goal" in table.columns:
        return table
    frame = pl.concat([table.frame] * (1 + 60 // len(table)))
    hint = pl.Series("hint", np.arange(len(frame)) % 2)
    goal = pl.when(hint == 1).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("goal")
    roles = table.roles.replacing(target="goal")
    return Table(frame.with_columns(hint, goal, (hint * 10).alias("amount")), roles)


@made_once
def _with_numbers(table: Table) -> Table:
    """The table with two more columns of numbers."""
    count = np.arange(float(len(table)))
    more = [pl.Series("up", count), pl.Series("wave", np.sin(count))]
    return Table(table.frame.with_columns(more), table.roles)


@made_once
def _with_two(table: Table) -> Table:
    """The table with at least two quasi-identifiers; a single one is doubled."""
    names = table.roles.quasi_identifiers
    if len(names) > 1:
        return table
    values = table.frame[names[0]].reverse().alias("second")
    return Table(table.frame.with_columns(values), Roles(quasi_identifiers=[*names, "second"]))


@made_once
def _with_a_number(table: Table) -> Table:
    """The table with a sensitive column of numbers, which is added if there is none."""
    roles = table.roles
    if any(table.kind(name) in ("integer", "float") for name in roles.quasi_identifiers):
        return table
    values = pl.Series("number", range(len(table)))
    return Table(table.frame.with_columns(values), roles.replacing(sensitive=["number"]))


@dataclass(frozen=True)
class MeasureExample:
    """How to call a measure, and how its value follows from its values of records."""

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
    MeasureExample("average_class_size"),
    MeasureExample("average_class_size", {"k": 2}),
    MeasureExample("attribute_inference", {}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "distance"}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "probabilistic"}, _mean, _with_a_secret),
    MeasureExample("attribute_inference", {"attack": "similarity"}, _mean, _with_a_secret),
    MeasureExample("certainty", {}, _max),
    MeasureExample("chi_square"),
    MeasureExample("correlation_difference", {}, None, _with_numbers),
    MeasureExample("correlation_difference", {"method": "spearman"}, None, _with_numbers),
    MeasureExample("cramers_v"),
    MeasureExample("discernibility"),
    MeasureExample("distance_linkage", {}, _mean),
    MeasureExample("distance_linkage", {"sample": 10_000, "random_state": 1}, _mean),
    MeasureExample("generalization_intensity", {"hierarchies": "suppression"}),
    MeasureExample("homogeneity", {}, _mean, _with_a_secret),
    MeasureExample("household_risk", {"household": "first", "sampling_fraction": 0.25}, _mean),
    MeasureExample("individual_risk", {"sampling_fraction": 0.25}, _mean),
    MeasureExample("inference", {}, None, _with_a_secret),
    MeasureExample("interval_disclosure", {}, _mean, _with_a_number),
    MeasureExample("interval_disclosure", {"interval": "groups"}, _mean, _with_a_number),
    MeasureExample("interval_disclosure", {"interval": "deviations"}, _mean, _with_a_number),
    MeasureExample("journalist_risk", {"sampling_fraction": 0.25}, _max),
    MeasureExample("journalist_risk", {"population": "twice"}, _max),
    MeasureExample("linkability", {}, None, _with_two),
    MeasureExample("linkability", {"neighbours": 3}, None, _with_two),
    MeasureExample("marketer_risk", {}, _mean),
    MeasureExample("marketer_risk", {"sampling_fraction": 0.25}, _mean),
    MeasureExample("marketer_risk", {"population": "twice"}, _mean),
    MeasureExample("mutual_information_loss", {}, None, _with_numbers),
    MeasureExample("nonuniform_entropy"),
    MeasureExample("normalized_certainty_penalty"),
    MeasureExample("membership_inference", {"control": "others"}, _mean),
    MeasureExample(
        "membership_inference", {"control": "others", "attack": "model"}, _mean, _with_a_secret
    ),
    MeasureExample("population_uniqueness", {"sampling_fraction": 0.25}),
    MeasureExample("population_uniqueness", {"sampling_fraction": 0.05, "estimator": "snb"}),
    MeasureExample("population_uniqueness", {"population": "twice"}),
    MeasureExample("probabilistic_linkage", {}, _mean),
    MeasureExample("probabilistic_linkage", {"one_to_one": True, "estimate": "by-pair"}, _mean),
    MeasureExample("predictive_performance", {}, prepared=_with_a_target),
    MeasureExample(
        "predictive_performance",
        {"target": "goal", "learner": "decision-tree", "score": "auc", "test_share": 0.3},
        prepared=_with_a_target,
    ),
    MeasureExample("prosecutor_risk", {}, _max),
    MeasureExample("records_at_risk", {}, _mean),
    MeasureExample("records_at_risk", {"threshold": 0.5}, _mean),
    MeasureExample(
        "regression_performance",
        {"target": "amount", "learner": "decision-tree", "features": ["hint"]},
        prepared=_with_a_target,
    ),
    MeasureExample("propensity"),
    MeasureExample("propensity", {"discriminator": "tree", "sample": 10}),
    MeasureExample("scaled_deviation", {}, None, _with_numbers),
    MeasureExample("similarity", {}, _mean, _with_a_secret),
    MeasureExample("similarity", {"closeness": 0.5}, _mean, _with_a_secret),
    MeasureExample("similarity_linkage", {}, _mean),
    MeasureExample("similarity_linkage", {"comparator": "gauss", "threshold": None}, _mean),
    MeasureExample("singling_out"),
    MeasureExample("singling_out", {"columns": 2, "numbers": "beyond"}),
    MeasureExample("singling_out", {"mode": "univariate"}),
    MeasureExample("skewness", {}, _mean, _with_a_secret),
    MeasureExample("skewness", {"threshold": 0}, _mean, _with_a_secret),
    MeasureExample("sse_sst", {}, None, _with_numbers),
    MeasureExample("suda", {}, _mean),
    MeasureExample("suda", {"size": 2, "sampling_fraction": 0.1}, _mean),
    MeasureExample("suppressed_cells"),
    MeasureExample("suppressed_records"),
    MeasureExample("total_variation"),
    MeasureExample("unchanged_records", {}, _mean),
    MeasureExample("uniqueness", {}, _mean),
    MeasureExample("variance_ratio", {}, None, _with_numbers),
    MeasureExample("wasserstein", {}, None, _with_numbers),
]

#: Measures whose best value on an unmasked table is not their best value, with the reason.
NOT_BEST_WHEN_UNMASKED: dict[str, str] = {
    "average_class_size": "the original has classes too, of at least one record",
    "attribute_inference": "it is a risk: what was not masked is there to be guessed",
    "certainty": "it is a risk: everybody is in a table from which nobody was left out",
    "discernibility": "the original has records that look alike too, if only to themselves",
    "distance_linkage": "it is a risk: every record of an unmasked table is nearest to itself",
    "probabilistic_linkage": "it is a risk: every record of an unmasked table agrees with itself",
    "similarity_linkage": "it is a risk: every record of an unmasked table scores best with itself",
    "mutual_information_loss": "a loss below 0 means that columns tell more than they did",
    "inference": "it is a risk: the nearest record of an unmasked table tells the person's secret",
    "linkability": "it is a risk: the halves of an unmasked record find each other",
    "singling_out": "it is a risk: an unmasked record fits the person that it is about",
    "interval_disclosure": "it is a risk: a value that was not masked is told exactly",
    "membership_inference": "it is a risk, and guessing blindly is right half of the time",
    "unchanged_records": "it is a risk: every record of an unmasked table is unchanged",
}

#: Risks that wildcards can raise, with the reason.
HIGHER_WITH_WILDCARDS: dict[str, str] = {
    "skewness": "a larger crowd can be distributed less like the table than a smaller one",
}

#: Risks that count who agrees on the quasi-identifiers, and so read a missing value in two ways.
OF_CLASSES = (
    "certainty",
    "homogeneity",
    "household_risk",
    "individual_risk",
    "journalist_risk",
    "marketer_risk",
    "population_uniqueness",
    "prosecutor_risk",
    "records_at_risk",
    "similarity",
    "skewness",
    "suda",
    "uniqueness",
)


@made_once
def _twice(table: Table) -> Table:
    return Table(pl.concat([table.frame, table.frame]), table.roles)


def options_for(example: MeasureExample, table: Table) -> dict[str, Any]:
    """The options, with a population, others and households made from the table itself."""
    options = dict(example.options)
    if options.get("household") == "first":
        options["household"] = table.roles.quasi_identifiers[0]
    if options.get("hierarchies") == "suppression":
        names = table.roles.quasi_identifiers
        options["hierarchies"] = {name: Hierarchy.suppression() for name in names}
    if options.get("population") == "twice":
        options["population"] = _twice(table)
    if options.get("control") == "others":
        first = pl.col(table.roles.quasi_identifiers[0])
        options["control"] = Table(table.frame.with_columns(first.reverse()), table.roles)
    return options
