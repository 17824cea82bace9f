"""How far distributions moved: at the released level, and by tests of fit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency, chisquare
from scipy.stats.contingency import association

from shoal import Generalize, Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.utility import chi_square, cramers_v, propensity, total_variation

from .tables import masked_as, mixed, quasi, table

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


def counts(column, values):
    return np.array([sum(one == value for one in column) for value in values])


@pytest.mark.parametrize("seed", range(5))
def test_against_scipy(seed):
    rng = np.random.default_rng(seed)
    before, after = (rng.choice(list("abcd"), n, p=(0.4, 0.3, 0.2, 0.1)) for n in (200, 90))
    expected = counts(before, "abcd") * 90 / 200
    known = chisquare(counts(after, "abcd"), expected)
    found = chi_square(table(x=before), table(x=after))
    facts = found.details["tests"]["x"]
    assert facts["statistic"] == pytest.approx(known.statistic, rel=1e-12)
    assert facts["p_value"] == pytest.approx(known.pvalue, rel=1e-9)
    assert facts["degrees_of_freedom"] == 3
    assert found.value == pytest.approx(known.statistic / 3)
    assert found.baseline == 1.0
    two_rows = np.array([counts(before, "abcd"), counts(after, "abcd")])
    known_v = association(two_rows, method="cramer")
    assert facts["cramers_v"] == pytest.approx(known_v, rel=1e-12)
    assert cramers_v(table(x=before), table(x=after)).value == pytest.approx(known_v, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_part_of_the_table_is_tested_as_a_sample_of_a_finite_population(seed):
    """Over 1 - s it is the test of those who are in against those who are out."""
    rng = np.random.default_rng(seed)
    people = quasi(x=rng.choice(list("abc"), 300))
    inside = rng.random(300) < 0.7
    masked = people.keep(inside)
    column = people.frame["x"].to_numpy()
    rows = np.array([counts(column[inside], "abc"), counts(column[~inside], "abc")])
    known = chi2_contingency(rows, correction=False)
    found = chi_square(people, masked)
    facts = found.details["tests"]["x"]
    assert facts["statistic"] == pytest.approx(known.statistic, rel=1e-10)
    assert facts["p_value"] == pytest.approx(known.pvalue, rel=1e-8)
    assert found.details["released_share"] == inside.mean()


def test_changed_values_are_no_sample_whoever_is_taken_out():
    """One of 100 records is taken out: the others are not 99 percent of a finite population."""
    people = quasi(x=list("ab") * 50, y=list("ab") * 50)
    masked = masked_as(people, x=list("aaab") * 25, y=list("ab") * 50).keep(np.arange(100) > 0)
    tests = chi_square(people, masked).details["tests"]
    known = chisquare([74, 25], [49.5, 49.5])
    assert tests["x"]["statistic"] == pytest.approx(known.statistic)
    assert tests["y"]["statistic"] == pytest.approx(chisquare([49, 50]).statistic * 100)


def test_random_samples_give_one_on_average():
    rng = np.random.default_rng(5)
    people = mixed(600, 1)
    values = [chi_square(people, people.keep(rng.random(600) < 0.5)).value for _ in range(40)]
    assert np.mean(values) == pytest.approx(1.0, abs=0.1)


def test_the_rows_of_tables_read_apart_are_no_part():
    before = table(x=list("aabb"))
    found = chi_square(before, table(x=list("aab")))
    assert found.details["released_share"] is None
    assert found.value == pytest.approx((0.5**2 / 1.5) * 2)


def test_new_values_are_counted_with_the_rarest():
    """Expected 3 a and 1 b of four; one a, one b and two new ones: b has three."""
    found = chi_square(table(x=list("aaab")), table(x=list("abcd")))
    facts = found.details["tests"]["x"]
    assert facts["statistic"] == pytest.approx(4 / 3 + 4 / 1)
    assert facts["new_values"] == 2


def test_what_cannot_be_tested_is_named():
    before = table(constant=["a"] * 4, gone=list("abab"), x=list("abab"))
    found = chi_square(before, table(constant=["b"] * 4, x=list("abab")))
    assert found.details["not_tested"] == ["constant", "gone"]
    assert any("'gone' was removed" in said for said in found.warnings)
    assert found.value == 0.0
    v = cramers_v(before, table(constant=["b"] * 4, x=list("abab"))).details["columns"]
    assert v == {"constant": 1.0, "gone": 1.0, "x": 0.0}


def test_few_expected_records_are_said():
    few = chi_square(table(x=list("aaab")), table(x=list("aabb")))
    assert "rough" in few.warnings[0]
    many = chi_square(table(x=list("ab") * 20), table(x=list("ab") * 20))
    assert many.warnings == ()


def test_missing_is_a_value():
    found = cramers_v(table(x=["a", "a"]), table(x=["a", None]))
    assert found.value == pytest.approx(association(np.array([[2, 0], [1, 1]])))


def test_columns_are_chosen():
    before, after = table(x=list("ab"), y=list("ab")), table(x=list("ab"), y=list("bb"))
    assert chi_square(before, after, columns=["x"]).value == 0.0
    with pytest.raises(InputError, match="no column 'z'"):
        chi_square(before, after, columns=["z"])
    paired = quasi(x=list("ab"))
    assert chi_square(paired, masked_as(paired, x=list("ba"))).value == 0.0
