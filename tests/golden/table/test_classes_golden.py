"""Class sizes that others published or that are worked out by hand, in both readings of missing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.table._classes import form_classes
from shoal.table.columns._encode import encode

from ...parts.grouping import classes_of, weight_sums, wildcard_sizes, wildcard_weight_sums

# The example of Capobianchi, Polettini & Lucarelli (CASC deliverable 1.2-D1), `francdat` in
# sdcMicro; keys, weights and the results without missing as printed in the sdcMicro guidelines,
# listing "Example for sample and estimated population frequency counts"
# (sdcTools/sdcMicro, vignettes/guidelines.tex).
FRANCDAT = pl.DataFrame(
    {
        "Key1": [1, 1, 1, 3, 4, 4, 6, 1],
        "Key2": [2, 2, 2, 3, 3, 3, 2, 2],
        "Key3": [5, 1, 1, 1, 1, 1, 1, 5],
        "Key4": [1, 1, 1, 5, 4, 1, 5, 1],
    }
)
WEIGHTS = [18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0]

# The same with the five cells missing that the help page of freqCalc blanks out:
# Key3 of record 3, Key1 and Key2 of record 4, Key4 of record 5, Key1 of record 6.
FRANCDAT_GAPS = pl.DataFrame(
    {
        "Key1": [1, 1, 1, None, 4, None, 6, 1],
        "Key2": [2, 2, 2, None, 3, 3, 2, 2],
        "Key3": [5, 1, None, 1, 1, 1, 1, 5],
        "Key4": [1, 1, 1, 5, None, 1, 5, 1],
    }
)


def test_francdat() -> None:
    classes = classes_of(FRANCDAT.get_columns(), 8)
    assert classes.record_sizes.tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    estimated = [110.0, 84.5, 84.5, 17.0, 541.0, 8.0, 5.0, 110.0]
    assert weight_sums(classes, WEIGHTS).tolist() == estimated
    assert (classes.count, classes.k, classes.uniques) == (6, 1, 4)
    assert classes.histogram == {1: 4, 2: 2}
    # Without a missing value the two readings are one.
    parts = [encode(column) for column in FRANCDAT.get_columns()]
    assert wildcard_sizes(parts, 8).tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert wildcard_weight_sums(parts, 8, WEIGHTS).tolist() == estimated


def test_francdat_with_missing_as_wildcard() -> None:
    """By hand, from the definition (`*` is missing).

    ======  ===========  ===========================  =====================================
    record  keys         agrees with                  weight
    ======  ===========  ===========================  =====================================
    1       1 2 5 1      1, 3, 8                      18 + 39 + 92 = 149
    2       1 2 1 1      2, 3                         45.5 + 39 = 84.5
    3       1 2 * 1      1, 2, 3, 8                   18 + 45.5 + 39 + 92 = 194.5
    4       * * 1 5      4, 5, 7                      17 + 541 + 5 = 563
    5       4 3 1 *      4, 5, 6                      17 + 541 + 8 = 566
    6       * 3 1 1      5, 6                         541 + 8 = 549
    7       6 2 1 5      4, 7                         17 + 5 = 22
    8       1 2 5 1      1, 3, 8                      18 + 39 + 92 = 149
    ======  ===========  ===========================  =====================================
    """
    parts = [encode(column) for column in FRANCDAT_GAPS.get_columns()]
    assert wildcard_sizes(parts, 8).tolist() == [3, 2, 4, 3, 3, 2, 2, 3]
    estimated = [149.0, 84.5, 194.5, 563.0, 566.0, 549.0, 22.0, 149.0]
    assert wildcard_weight_sums(parts, 8, WEIGHTS).tolist() == estimated


def test_francdat_with_missing_as_own_value() -> None:
    """By hand: only records 1 and 8 are equal; each gap makes its record the only one of its kind.

    Record 2 loses its twin, since a missing Key3 is not 1.
    """
    classes = classes_of(FRANCDAT_GAPS.get_columns(), 8)
    assert classes.record_sizes.tolist() == [2, 1, 1, 1, 1, 1, 1, 2]
    assert weight_sums(classes, WEIGHTS).tolist() == [110, 45.5, 39, 17, 541, 8, 5, 110]
    assert (classes.count, classes.k, classes.uniques) == (7, 1, 6)


def test_one_suppressed_cell() -> None:
    """Five people in one region and age group, one marital status suppressed.

    As wildcard 3 3 3 3 5: sdcMicro's worked example, "method 1" (sdcTools/sdcMicro,
    tests/testthat/test_freqCalc.R). As own value by hand: two single, two married, one missing.
    """
    columns = [
        pl.Series("region", ["A"] * 5),
        pl.Series("status", ["single", "married", "married", "single", None]),
        pl.Series("agegroup", ["5"] * 5),
    ]
    parts = [encode(column) for column in columns]
    assert wildcard_sizes(parts, 5).tolist() == [3, 3, 3, 3, 5]
    assert form_classes(parts, 5).record_sizes.tolist() == [2, 2, 2, 2, 1]


SEVEN_ROWS = pl.DataFrame(
    [
        ("34", "male", "81667"),
        ("45", "female", "81675"),
        ("66", "male", "81925"),
        ("70", "female", "81931"),
        ("34", "female", "81931"),
        ("70", "male", "81931"),
        ("45", "male", "81931"),
    ],
    schema=["age", "gender", "zipcode"],
    orient="row",
)
"""The table of ARX's tests (arx-deidentifier/arx, test/DataProvider.java)."""


@pytest.mark.parametrize(
    ("columns", "sizes"),
    [
        (["age"], [2, 2, 1, 2, 2, 2, 2]),
        (["gender"], [4, 3, 4, 3, 3, 4, 4]),
        (["zipcode"], [1, 1, 1, 4, 4, 4, 4]),
        (["gender", "zipcode"], [1, 1, 1, 2, 2, 2, 2]),
        (["age", "gender", "zipcode"], [1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_arx_seven_rows(columns: list[str], sizes: list[int]) -> None:
    classes = classes_of(SEVEN_ROWS.select(columns).get_columns(), 7)
    assert classes.record_sizes.tolist() == sizes


def test_arx_seven_rows_generalized() -> None:
    """2-anonymous at age 1, gender 1, zip code 2, as ARX finds (testKAnonymizationWithoutOutliers).

    Ages below 50 and zip codes 816**: rows 1, 2. Ages from 50 and 819**: rows 3, 4, 6.
    Ages below 50 and 819**: rows 5, 7. A zip code one digit longer makes row 1 differ from row 2.
    """
    coarse = SEVEN_ROWS.select(
        age=pl.col("age").cast(pl.Int64) < 50,
        gender=pl.lit("*"),
        zipcode=pl.col("zipcode").str.head(3),
    )
    classes = classes_of(coarse.get_columns(), 7)
    assert classes.record_sizes.tolist() == [2, 2, 3, 3, 2, 3, 2]
    assert (classes.count, classes.k) == (3, 2)
    finer = coarse.with_columns(zipcode=SEVEN_ROWS["zipcode"].str.head(4))
    assert classes_of(finer.get_columns(), 7).k == 1


def test_arx_adult(shared_data: Path) -> None:
    """ARX, TestRiskMetrics.java, testAverageRisk2 and testDecisionRule2: 9 quasi-identifiers."""
    adult = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    assert adult.shape == (30_162, 9)
    classes = classes_of(adult.get_columns(), len(adult))
    assert classes.count / classes.records == pytest.approx(0.6465751607983555, abs=1e-15)
    assert classes.uniques / classes.records == pytest.approx(0.5142895033485844, abs=1e-15)
