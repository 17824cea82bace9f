"""No number of an assessment changes unless somebody means it to.

Measures that train models of scikit-learn have tests of their own: other versions train others.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from shoal import (
    Generalize,
    Hierarchy,
    Microaggregate,
    RankSwap,
    Round,
    Sample,
    Suppress,
    Swap,
    Table,
    assess,
)
from shoal.workflow import discover_all_measures

from .outcome import compare, differences, of_assessment, place_of
from .tables import TABLES, people

#: They train models.
LEARNING = {
    "membership_inference",
    "predictive_performance",
    "propensity",
    "regression_performance",
}
ALONE = [
    name
    for name, info in discover_all_measures().items()
    if not info.needs_original and name not in LEARNING
]
COMPARING = [
    name
    for name, info in discover_all_measures().items()
    if info.needs_original and name not in LEARNING
]
#: Tables by themselves, and what is said beside them.
BY_THEMSELVES = {
    "people": {"sampling_fraction": 0.1},
    "numbers": {"sampling_fraction": 0.05},
    "visits": {"sampling_fraction": 0.2},
    "survey": {"missing": "wildcard"},
    "calendar": {"sampling_fraction": 0.1},
    "odd": {"sampling_fraction": 0.1},
}
#: What became of a table.
MASKED = {
    "people-mondrian": ("people", [Generalize("mondrian", k=4)]),
    "people-full-domain": ("people", [Generalize(k=4, suppression_limit=0.2)]),
    "people-rounded": ("people", [Round(base=10), Suppress(where="age > 60")]),
    "numbers-aggregated": ("numbers", [Microaggregate(4)]),
    "visits-swapped": ("visits", [Swap(3)]),
    "survey-sampled": ("survey", [Sample(fraction=0.5), RankSwap(percent=10)]),
    "calendar-mondrian": ("calendar", [Generalize("mondrian", k=3)]),
    "odd-full-domain": ("odd", [Generalize(k=3, suppression_limit=0.3)]),
}
NAMES = [
    *(f"assess-{name}" for name in BY_THEMSELVES),
    "assess-people-in-population",
    *(f"compare-{name}" for name in MASKED),
]


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_a_table_by_itself_is_measured_as_recorded(name, fixed, record):
    table = TABLES[name]()
    household = {"household_risk": {"household": table.columns[-2]}}
    with fixed(f"assess-{name}"):
        found = assess(table, measures=ALONE, options=household, **BY_THEMSELVES[name])
    compare(f"assess-{name}", of_assessment(found), record=record)


def test_a_table_in_a_population_is_measured_as_recorded(fixed, record):
    everybody = people(1500)
    some = everybody.keep(everybody.numbers("visits").values > 1)
    table = Table(some.frame, some.roles)
    with fixed("assess-people-in-population"):
        found = assess(table, population=everybody, measures=ALONE)
    compare("assess-people-in-population", of_assessment(found), record=record)


@functools.cache
def _hierarchies(columns):
    return dict.fromkeys(columns, Hierarchy.suppression())


def test_the_order_of_the_rows_of_the_original_changes_nothing(fixed):
    """Rows are paired by their keys."""
    original = TABLES["people"]()
    order = (7 * np.arange(len(original))) % len(original)
    measures = ["unchanged_records", "distance_linkage", "normalized_certainty_penalty"]
    with fixed("reordered"):
        masked = Generalize("mondrian", k=4).fit_transform(original)
        one, two = (
            of_assessment(assess(masked, original=table, measures=measures))
            for table in (original, original.reorder(order))
        )
    del one["distributions"], two["distributions"]
    for facts in (one, two):
        for entry in facts["measurements"].values():
            entry.pop("per_record", None)  # in the order of the rows
    assert differences(one, two) == []


@pytest.mark.parametrize("name", MASKED)
def test_a_comparison_is_measured_as_recorded(name, fixed, record):
    chosen, steps = MASKED[name]
    masked = original = TABLES[chosen]()
    levels = {"hierarchies": _hierarchies(original.roles.quasi_identifiers)}
    with fixed(f"compare-{name}"):
        for step in steps:
            masked = step.fit_transform(masked)
        found = assess(
            masked,
            original=original,
            measures=COMPARING,
            options={"generalization_intensity": levels},
        )
    compare(f"compare-{name}", of_assessment(found), record=record)


def test_every_measure_is_on_record():
    """Each by one of the tables at least; asked for in vain it would be in 'left_out'."""
    kept = set()
    for name in NAMES:
        kept |= set(json.loads(place_of(name).read_text("utf-8"))["measurements"])
    assert kept == {*ALONE, *COMPARING}
