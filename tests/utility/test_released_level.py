"""Total variation, chi-square and Cramér's V of generalized columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Table
from shoal.utility import chi_square, cramers_v, propensity, total_variation

from .tables import masked_as, quasi, table

AGES = Hierarchy.intervals(10)


def test_a_generalized_column_has_not_moved():
    people = quasi(age=[21, 22, 31, 35, 47])
    masked = AGES.generalize(people, "age", 1)
    found = total_variation(people, masked)
    assert found.value == 0.0
    assert found.details["at_released_level"] == ["age"]
    assert chi_square(people, masked).value == 0.0
    assert cramers_v(people, masked).value == 0.0


def test_what_was_taken_out_has_moved():
    """Of the ages [20, 30) 3 of 4, [30, 40) 1 of 4; one of the first is taken out: 2/3 and 1/3."""
    people = quasi(age=[21, 22, 23, 35])
    masked = AGES.generalize(people, "age", 1).keep(np.array([False, True, True, True]))
    assert total_variation(people, masked).value == pytest.approx(1 / 4)  # nobody else was 21
    people = quasi(age=[21, 21, 23, 35])
    masked = AGES.generalize(people, "age", 1).keep(np.array([False, True, True, True]))
    assert total_variation(people, masked).value == pytest.approx(3 / 4 - 2 / 3)


def test_stars_have_moved():
    people = quasi(age=[21, 21, 35, 35])
    masked = masked_as(people, age=["[20, 30)", "*", "[30, 40)", "[30, 40)"])
    assert total_variation(people, masked).value == pytest.approx(1 / 4)
    everything = masked_as(people, age=["*"] * 4)
    assert total_variation(people, everything).value == 1.0


def test_a_star_of_the_original_is_a_value():
    people = quasi(sign=["*", "*", "a", "b"])
    masked = masked_as(people, sign=["*", "*", "letter", "letter"])
    assert total_variation(people, masked).value == 0.0


def test_missing_from_the_start_is_no_move():
    people = quasi(age=[21, None, 35, None])
    masked = masked_as(people, age=["[20, 30)", None, "[30, 40)", None])
    assert total_variation(people, masked).value == 0.0
    emptied = masked_as(people, age=["[20, 30)", None, None, None])
    assert total_variation(people, emptied).value == pytest.approx(1 / 4)


def test_one_value_with_several_labels():
    """Local recoding: each value is spread as its own records were."""
    people = quasi(age=[21] * 4 + [35] * 4)
    labels = ["[20, 30)"] * 2 + ["[20, 40)"] * 4 + ["[30, 40)"] * 2
    masked = masked_as(people, age=labels)
    assert total_variation(people, masked).value == 0.0
    half = masked.keep(np.array([True, False] * 4))
    assert total_variation(people, half).value == 0.0
    # 21 is still half and half; of 35 only the wide interval is left
    some = masked.keep(np.array([True, True, True, True, True, True, False, False]))
    assert total_variation(people, some).value == pytest.approx(
        (abs(2 / 8 - 2 / 6) + abs(6 / 8 - 4 / 6)) / 2
    )


def test_read_apart_it_counts_as_changed_and_says_so():
    people = quasi(age=[21, 22, 31])
    apart = table(age=["[20, 30)", "[20, 30)", "[30, 40)"])
    for measure in (total_variation, cramers_v):
        found = measure(people, apart)
        assert found.value == pytest.approx(1.0)
        assert "cannot be paired" in found.warnings[0]


def test_swapped_text_is_compared_as_it_is():
    """No new values: the column was not generalized, whatever pairs with whatever."""
    people = quasi(sex=list("ffmm"))
    found = total_variation(people, masked_as(people, sex=list("fmmm")))
    assert found.value == 0.25
    assert found.details["at_released_level"] == []


def test_mondrian_moves_nothing():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"age": rng.integers(18, 90, 300), "job": rng.choice(list("abcd"), 300)})
    people = Table(frame, Roles(quasi_identifiers=["age", "job"]))
    masked = Generalize(k=5, algorithm="mondrian").fit_transform(people)
    assert total_variation(people, masked).value == 0.0
    assert propensity(people, masked).value == pytest.approx(0.0, abs=1e-12)
