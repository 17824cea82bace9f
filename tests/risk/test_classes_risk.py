"""What class-based risks refuse; the golden tests check their numbers."""

from __future__ import annotations

import gc
import math
from weakref import ref

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.risk import (
    journalist_risk,
    marketer_risk,
    population_sizes,
    prosecutor_risk,
    records_at_risk,
    unchanged_records,
    uniqueness,
)
from shoal.risk._classes import mean_of_classes

ROLES = Roles(quasi_identifiers=["x"])


def table(*values, roles=ROLES):
    return Table(pl.DataFrame({"x": list(values)}), roles)


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan"), "0.2", None, True])
def test_a_threshold_is_a_share(threshold):
    with pytest.raises(InputError, match="must be a number > 0 and ≤ 1"):
        records_at_risk(table(1, 2), threshold=threshold)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, float("nan"), "0.2", True])
@pytest.mark.parametrize("risk", [journalist_risk, marketer_risk, population_sizes])
def test_a_sampling_fraction_is_a_share(risk, fraction):
    with pytest.raises(InputError, match="must be a number > 0 and ≤ 1"):
        risk(table(1, 2), sampling_fraction=fraction)


def test_journalist_risk_needs_a_population():
    with pytest.raises(InputError, match="sampling_fraction"):
        journalist_risk(table(1, 2))


def test_a_population_that_does_not_contain_the_table():
    """For example, an unmasked population with a masked table: no number would mean anything."""
    with pytest.raises(InputError, match="2 of 3 records"):
        journalist_risk(table(1, 2, 3), population=table(1, 1))
    with pytest.raises(InputError, match="no column 'x'"):
        journalist_risk(table(1), population=Table(pl.DataFrame({"y": [1]})))


def test_a_population_smaller_than_the_sample():
    """The population must contain the table: two of a class cannot come from one person."""
    with pytest.raises(InputError, match="population"):
        journalist_risk(table(1, 1, 1), population=table(1, 1))


def test_the_population_may_be_declared_otherwise():
    """The sample determines which columns count."""
    people = Table(pl.DataFrame({"y": [0, 0, 0], "x": [1, 1, 2]}))
    assert journalist_risk(table(1), population=people).value == 0.5


@pytest.mark.parametrize("risk", [prosecutor_risk, marketer_risk, records_at_risk, uniqueness])
def test_no_records(risk):
    with pytest.raises(InputError, match="no records"):
        risk(table())


def test_limits_are_met_exactly():
    """A share that is a plain fraction is exact, so that a limit of 0.4 can hold."""
    for classes in range(1, 60):
        people = table(*[i % classes for i in range(60)])
        assert marketer_risk(people).value == classes / 60


# -- records left unmasked


def test_unchanged_records():
    original = Table(
        pl.DataFrame({"x": [1, 2, None, 4], "y": list("abcd"), "z": list("efgh")}),
        Roles(quasi_identifiers=["x", "y"], sensitive=["z"]),
    )
    masked = original.with_numbers({"x": np.array([1, 9, 0, 4])})
    found = unchanged_records(original, masked)
    assert found.per_record.tolist() == [1, 0, 1, 1]
    assert (found.value, found.baseline, found.details) == (0.75, 1.0, {"records": 3})
    shuffled = masked.reorder(np.array([1, 0, 3, 2]))
    assert unchanged_records(original, shuffled).per_record.tolist() == [0, 1, 1, 1]
    less = masked.keep(np.array([True, True, False, False]))
    assert unchanged_records(original, less).value == 0.5
    gone = masked.drop(["y"])
    assert unchanged_records(original, gone).value == 0.0
    retyped = Table(original.frame.cast({"x": pl.Float64}), original.roles).paired(original)
    assert unchanged_records(original, retyped).value == 1.0, "the same numbers"
    blanked = original.blank({"z": np.ones(4, dtype=bool)})
    assert unchanged_records(original, blanked).value == 1.0, "only quasi-identifiers count"


def test_unchanged_records_needs_pairs():
    with pytest.raises(InputError, match="cannot be paired"):
        unchanged_records(table(1, 2), table(1, 2))
    one = table(1, 2)
    with pytest.raises(InputError, match="no records"):
        unchanged_records(one, one.keep(np.array([False, False])))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200), st.integers(0, 2**32))
def test_a_mean_over_classes_is_rounded_once(ages, seed):
    """Equal to an exact sum over all records, to the last digit."""
    table = Table(pl.DataFrame({"age": ages}), Roles(quasi_identifiers=["age"]))
    by_class = np.random.default_rng(seed).random(table.classes.count) ** 9
    values = table.classes.spread(by_class)
    assert mean_of_classes(table, by_class) == math.fsum(values) / len(ages)


def test_numbers_that_are_equal_beside_a_population_are_counted_together():
    """Two whole numbers of the population with the same float are both counted."""
    roles = Roles(quasi_identifiers=["x"])
    sample = Table(pl.DataFrame({"x": [2.0**53, 1.0]}), roles)
    everyone = Table(pl.DataFrame({"x": [2**53, 2**53 + 1, 1, 1, 1]}), roles)
    for missing in ("own", "wildcard"):
        sizes = population_sizes(sample, population=everyone, missing=missing)
        assert sizes.tolist() == [2.0, 3.0]


def test_measurements_outlive_their_table_without_its_classes():
    measured = table(1, 1, 2)
    classes, risks = ref(measured.classes), measured.classes.risks
    found = [measure(measured) for measure in (prosecutor_risk, marketer_risk)]
    del measured
    gc.collect()
    assert classes() is None
    assert [one.per_record.tolist() for one in found] == [[0.5, 0.5, 1.0]] * 2
    assert risks.tolist() == [0.5, 1.0]
