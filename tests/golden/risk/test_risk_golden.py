"""Class-based risk, every number worked by hand or published by others."""

from __future__ import annotations

import json

import polars as pl
import pytest

from shoal import KAnonymity, Roles, Table, assess
from shoal.risk import (
    journalist_risk,
    marketer_risk,
    population_sizes,
    prosecutor_risk,
    records_at_risk,
    uniqueness,
)

QUASI = Roles(quasi_identifiers=["age", "zip"])


def table(rows, roles=QUASI, **more):
    frame = pl.DataFrame(rows, schema=["age", "zip"], orient="row")
    return Table(frame.with_columns(**{k: pl.Series(v) for k, v in more.items()}), roles)


# Classes: {30s, 10} of 3 records, {30s, 20} of 2, {40s, 10} of 4, {40s, 20} of 1.
TEN = [
    ("30s", 10),
    ("30s", 10),
    ("30s", 10),
    ("30s", 20),
    ("30s", 20),
    ("40s", 10),
    ("40s", 10),
    ("40s", 10),
    ("40s", 10),
    ("40s", 20),
]


def test_ten_records():
    """f = 3 3 3 2 2 4 4 4 4 1: 4 classes over 10 records."""
    people = table(TEN)
    thirds, halves, quarters = [1 / 3] * 3, [1 / 2] * 2, [1 / 4] * 4
    each = [*thirds, *halves, *quarters, 1.0]
    assert prosecutor_risk(people).value == 1.0
    assert prosecutor_risk(people).per_record.tolist() == each
    assert marketer_risk(people).value == 0.4
    assert uniqueness(people).value == 0.1
    assert uniqueness(people).per_record.tolist() == [0.0] * 9 + [1.0]
    assert uniqueness(people).details == {"records": 1}
    assert KAnonymity(2).level(people) == 1


@pytest.mark.parametrize(
    ("threshold", "records"),
    [(0.2, 10), (0.24, 10), (0.25, 6), (0.33, 6), (0.34, 3), (0.5, 1), (0.99, 1), (1.0, 0)],
)
def test_records_at_risk_are_those_above(threshold, records):
    """Strictly above: a risk of exactly 1/4 is not above 0.25, one of 1/2 not above 0.5."""
    found = records_at_risk(table(TEN), threshold=threshold)
    assert found.value == records / 10
    assert found.details == {"threshold": threshold, "records": records}


def test_threshold_of_a_fifth_asks_for_classes_of_five():
    five = table([("30s", 10)] * 5)
    four = table([("30s", 10)] * 4)
    assert records_at_risk(five).value == 0.0
    assert records_at_risk(four).value == 1.0


def test_with_a_population_table():
    """The sample has f = 2 1 1; in the population those classes have F = 4, 3 and 1 people.

    The fourth class of the population is not in the sample and must not count.
    """
    sample = table([("30s", 10), ("30s", 10), ("30s", 20), ("40s", 10)])
    everyone = table([("30s", 10)] * 4 + [("30s", 20)] * 3 + [("40s", 10)] + [("40s", 20)] * 9)
    assert population_sizes(sample, population=everyone).tolist() == [4, 4, 3, 1]
    found = journalist_risk(sample, population=everyone)
    assert found.value == 1.0
    assert found.per_record.tolist() == [1 / 4, 1 / 4, 1 / 3, 1.0]
    assert found.warnings == ()
    # (1/4 + 1/4 + 1/3 + 1) / 4 = 11/24
    assert marketer_risk(sample, population=everyone).value == pytest.approx(11 / 24, rel=1e-15)
    # without the population: three classes over four records
    assert marketer_risk(sample).value == 0.75
    assert prosecutor_risk(sample).value == 1.0


def test_with_a_sampling_fraction():
    """F = f / 0.1: 30, 20, 40 and 10."""
    people = table(TEN)
    found = journalist_risk(people, sampling_fraction=0.1)
    assert found.value == pytest.approx(0.1, rel=1e-15)
    sizes = [30] * 3 + [20] * 2 + [40] * 4 + [10]
    assert found.per_record == pytest.approx([1 / size for size in sizes])
    assert found.warnings, "an estimate says that it is one"
    # 4 classes / 10 records x 0.1
    assert marketer_risk(people, sampling_fraction=0.1).value == pytest.approx(0.04)
    # the whole population is its own sample
    whole = journalist_risk(people, sampling_fraction=1.0)
    assert whole.per_record.tolist() == prosecutor_risk(people).per_record.tolist()


def test_with_weights():
    """F is the sum of the weights of the class: 60, 20 and 0.5, but never below f."""
    roles = QUASI.replacing(weight="w")
    sample = table(
        [("30s", 10), ("30s", 10), ("30s", 20), ("40s", 10)],
        roles,
        w=[50.0, 10.0, 20.0, 0.5],
    )
    found = journalist_risk(sample)
    assert found.per_record.tolist() == [1 / 60, 1 / 60, 1 / 20, 1.0]
    assert found.value == 1.0
    # a population or a fraction, where given, is used instead
    assert journalist_risk(sample, sampling_fraction=0.5).value == 0.5
    # marketer risk without either stays the one of the sample
    assert marketer_risk(sample).value == 0.75


def test_francdat_population_risk():
    """Capobianchi, Polettini & Lucarelli's example, as in sdcMicro (`francdat`, keys 2, 4, 5, 6).

    Estimated population counts 110, 84.5, 84.5, 17, 541, 8, 5, 110 as printed in the sdcMicro
    guidelines; the largest individual risk is thus 1/5.
    """
    frame = pl.DataFrame(
        {
            "Key1": [1, 1, 1, 3, 4, 4, 6, 1],
            "Key2": [2, 2, 2, 3, 3, 3, 2, 2],
            "Key3": [5, 1, 1, 1, 1, 1, 1, 5],
            "Key4": [1, 1, 1, 5, 4, 1, 5, 1],
            "w": [18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0],
        }
    )
    roles = Roles(quasi_identifiers=["Key1", "Key2", "Key3", "Key4"], weight="w")
    people = Table(frame, roles)
    counts = [110.0, 84.5, 84.5, 17.0, 541.0, 8.0, 5.0, 110.0]
    assert population_sizes(people).tolist() == counts
    assert journalist_risk(people).value == 0.2
    assert uniqueness(people).value == 0.5


# One small table in both readings of missing values:
#
#   record   age    zip     own value: equal to    wildcard: agrees with
#   0        30     10      0, 1                   0, 1, 3, 5
#   1        30     10      0, 1                   0, 1, 3, 5
#   2        30     20      2                      2, 3, 5
#   3        30     *       3                      0, 1, 2, 3, 5
#   4        40     20      4                      4, 5
#   5        *      *       5                      everybody
GAPS = [(30, 10), (30, 10), (30, 20), (30, None), (40, 20), (None, None)]
OWN = [2, 2, 1, 1, 1, 1]
WILDCARD = [4, 4, 3, 5, 2, 6]


def test_missing_as_own_value():
    people = table(GAPS)
    assert people.class_sizes().tolist() == OWN
    assert prosecutor_risk(people).value == 1.0
    # 5 classes over 6 records
    assert marketer_risk(people).value == pytest.approx(5 / 6, rel=1e-15)
    assert uniqueness(people).value == pytest.approx(4 / 6, rel=1e-15)
    assert records_at_risk(people, threshold=0.3).value == 1.0
    assert records_at_risk(people, threshold=0.5).value == pytest.approx(4 / 6, rel=1e-15)
    assert journalist_risk(people, sampling_fraction=0.5).value == 0.5
    assert KAnonymity(2).level(people) == 1
    assert KAnonymity(2).violations(people).tolist() == [False, False, True, True, True, True]


def test_missing_as_wildcard():
    people = table(GAPS)
    assert people.class_sizes("wildcard").tolist() == WILDCARD
    assert prosecutor_risk(people, missing="wildcard").value == 0.5
    # 1/4 + 1/4 + 1/3 + 1/5 + 1/2 + 1/6 = 1.7, over 6 records
    assert marketer_risk(people, missing="wildcard").value == pytest.approx(1.7 / 6, rel=1e-15)
    assert uniqueness(people, missing="wildcard").value == 0.0
    # above 0.3 are 1/3 and 1/2
    assert records_at_risk(people, threshold=0.3, missing="wildcard").value == pytest.approx(2 / 6)
    assert journalist_risk(people, sampling_fraction=0.5, missing="wildcard").value == 0.25
    two = KAnonymity(2, missing="wildcard")
    assert (two.level(people), two.holds(people)) == (2, True)
    assert KAnonymity(3, missing="wildcard").violations(people).tolist() == [
        False,
        False,
        False,
        False,
        True,
        False,
    ]


def test_both_readings_in_an_assessment():
    own, wildcard = assess(table(GAPS)), assess(table(GAPS), missing="wildcard")
    assert (own.k, wildcard.k) == (1, 2)
    assert (own.classes.uniques, wildcard.classes.uniques) == (4, 0)
    assert (own.classes.largest, wildcard.classes.largest) == (2, 6)
    assert own["prosecutor_risk"].value == 1.0
    assert wildcard["prosecutor_risk"].value == 0.5


def test_missing_in_a_population():
    """A gap in the sample or in the population agrees with everything as a wildcard.

    Population: 30/10, 30/20, 30/*, 40/20. Sample record 30/10 meets 30/10 and 30/*; 30/* meets
    the first three. As own values each meets its equal only.
    """
    sample = table([(30, 10), (30, None)])
    population = table([(30, 10), (30, 20), (30, None), (40, 20)])
    assert population_sizes(sample, population=population).tolist() == [1, 1]
    wildcard = population_sizes(sample, population=population, missing="wildcard")
    assert wildcard.tolist() == [2, 3]
    found = journalist_risk(sample, population=population, missing="wildcard")
    assert found.value == 0.5


def test_weights_with_wildcards():
    """F sums the weights of all that agree: 10+1+4+6, 10+1+4+6, 2+4+6, all but 40, 5+6, all."""
    roles = QUASI.replacing(weight="w")
    people = table(GAPS, roles, w=[10.0, 1.0, 2.0, 4.0, 5.0, 6.0])
    assert people.class_weights("wildcard").tolist() == [21, 21, 12, 23, 11, 28]
    found = journalist_risk(people, missing="wildcard")
    assert found.value == pytest.approx(1 / 11, rel=1e-15)


def test_arx_adult(shared_data):
    """ARX's TestRiskMetrics.java (testAverageRisk2, testDecisionRule2): 9 quasi-identifiers.

    ARX compares to 4 decimals; counting is exact, so more agree.
    """
    oracle = shared_data.parent / "oracles" / "arx_adult.json"
    if not oracle.is_file():
        pytest.skip("the published numbers of ARX are not beside the public tables")
    cases = {case["id"]: case for case in json.loads(oracle.read_text("utf-8"))["cases"]}
    expected = cases["adult_risk"]["expected"]
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    adult = Table(frame, Roles(quasi_identifiers=frame.columns))
    assert len(adult) == 30_162
    average = expected["average_prosecutor_risk_input"]
    assert marketer_risk(adult).value == pytest.approx(average, abs=1e-12)
    assert uniqueness(adult).value == pytest.approx(expected["sample_uniqueness"], abs=1e-12)
    # a sample that is the whole population: ARX's figure for a fraction of 1.0
    whole = expected["population_uniqueness_dankar"]["1.0"]
    certain = journalist_risk(adult, sampling_fraction=1.0).per_record == 1.0
    assert certain.mean() == pytest.approx(whole, abs=1e-12)
