"""How far numbers moved, and what became of variances and correlations."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from shoal import Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.utility import (
    correlation_difference,
    scaled_deviation,
    sse_sst,
    variance_ratio,
    wasserstein,
)
from shoal.utility._moments import correlations

from .tables import masked_as, mixed, quasi, table

PAIRED = [scaled_deviation, sse_sst]
ALL = [wasserstein, variance_ratio, *PAIRED]


def two(seed, rows=(80, 80)):
    rng = np.random.default_rng(seed)
    before = rng.lognormal(size=rows[0]).round(1)
    return before, (rng.permutation(before)[: rows[1]] + rng.normal(0, 0.4, rows[1])).round(1)


@pytest.mark.parametrize("rows", [(80, 80), (80, 31), (2, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_wasserstein_is_that_of_scipy(seed, rows):
    before, after = two(seed, rows)
    known = stats.wasserstein_distance(before, after) / before.std(ddof=1)
    found = wasserstein(table(x=before), table(x=after))
    assert found.value == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_f_test(seed):
    """Two-sided, by the definition: twice the smaller tail."""
    before, after = two(seed, (80, 50))
    found = variance_ratio(table(x=before), table(x=after))
    f = after.var(ddof=1) / before.var(ddof=1)
    facts = found.details["tests"]["x"]
    assert facts["f"] == pytest.approx(f, rel=1e-12)
    assert found.value == facts["ratio"] == pytest.approx(min(f, 1 / f), rel=1e-12)
    tails = stats.f.cdf(f, 49, 79), stats.f.sf(f, 49, 79)
    assert facts["p_value"] == pytest.approx(2 * min(tails), rel=1e-12)
    assert facts["degrees_of_freedom"] == [49, 79]
    turned = variance_ratio(table(x=after), table(x=before))
    assert turned.value == pytest.approx(found.value)
    assert turned.details["tests"]["x"]["p_value"] == pytest.approx(facts["p_value"])


@pytest.mark.parametrize("seed", range(3))
def test_by_definition(seed):
    before, after = two(seed)
    people = quasi(x=before)
    masked = masked_as(people, x=after)
    il1s = np.abs(before - after).mean() / (math.sqrt(2) * before.std(ddof=1))
    assert scaled_deviation(people, masked).value == pytest.approx(il1s, rel=1e-12)
    share = ((before - after) ** 2).sum() / ((before - before.mean()) ** 2).sum()
    assert sse_sst(people, masked).value == pytest.approx(100 * share, rel=1e-12)


@pytest.mark.parametrize("measure", ALL)
def test_scale_and_shift_do_not_matter(measure):
    before, after = two(7)
    people, scaled = quasi(x=before), quasi(x=before * 8 - 1024)
    one = measure(people, masked_as(people, x=after)).value
    other = measure(scaled, masked_as(scaled, x=after * 8 - 1024)).value
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("measure", ALL)
def test_the_mean_over_columns(measure):
    people = quasi(x=[1.0, 2, 3, 4], y=[1.0, 5, 2, 9], constant=[3] * 4, text=list("abcd"))
    masked = masked_as(people, x=[1.0, 2, 3, 4], y=[1.0, 5, 5, 9], constant=[4] * 4, text=["a"] * 4)
    found = measure(people, masked)
    each = found.details["columns"]
    assert list(each) == ["x", "y"]
    value = list(each.values())
    assert found.value == pytest.approx(np.mean(value))
    assert found.warnings == ()
    best = 1.0 if measure is variance_ratio else 0.0
    assert value[0] == best
    assert measure(people, masked, columns=["x"]).value == best


@pytest.mark.parametrize("measure", PAIRED)
def test_what_is_gone_is_taken_at_the_mean(measure):
    people = quasi(x=[0.0, 2, 4, 6])
    at_mean = masked_as(people, x=[3.0] * 4)
    other = Table(pl.DataFrame({"y": [0] * 4}), Roles()).paired(people)
    text = masked_as(people, x=list("abcd"))
    expected = measure(people, at_mean).value
    for masked in (other, text, people.blank({"x": np.ones(4, bool)})):
        assert measure(people, masked).value == pytest.approx(expected)
    assert measure(people, other).warnings
    assert sse_sst(people, other).value == 100.0
    emptied = people.blank({"x": np.array([True, False, False, False])})
    half = masked_as(people, x=[3.0, 2, 4, 6])
    assert measure(people, emptied).value == pytest.approx(measure(people, half).value)


def test_gone_columns_read_apart():
    """The mean keeps no variance, and everybody is moved to it."""
    people = table(x=[0.0, 2, 4, 6])
    assert variance_ratio(people, table(y=[1])).value == 0.0
    spread = np.std([0, 2, 4, 6], ddof=1)
    assert wasserstein(people, table(y=[1])).value == pytest.approx(2 / spread)


@pytest.mark.parametrize("measure", PAIRED)
def test_records_that_were_taken_out_do_not_count(measure):
    people = quasi(x=[0.0, 2, 4, 60])
    masked = masked_as(people, x=[1.0, 2, 4, 0]).keep(np.array([True, True, True, False]))
    found = measure(people, masked.reorder(np.array([2, 0, 1]))).value
    moved = np.array([1.0, 0, 0])
    x = np.array([0.0, 2, 4, 60])
    if measure is scaled_deviation:
        assert found == pytest.approx(moved.mean() / (math.sqrt(2) * x.std(ddof=1)))
    else:
        assert found == pytest.approx(100 / ((x[:3] - x.mean()) ** 2).sum())


def test_missing_from_the_start_does_not_count():
    people = quasi(x=[0.0, None, 4, 6])
    filled = masked_as(people, x=[0.0, 99, 4, 6])
    assert scaled_deviation(people, filled).value == 0.0
    assert sse_sst(people, filled).value == 0.0


@pytest.mark.parametrize("measure", PAIRED)
def test_tables_read_apart_are_refused(measure):
    with pytest.raises(InputError, match="cannot be paired"):
        measure(quasi(x=[1, 2]), quasi(x=[1, 2]))


@pytest.mark.parametrize("measure", ALL)
def test_nothing_of_numbers_is_refused(measure):
    people = quasi(x=list("ab"))
    with pytest.raises(InputError, match="numbers or dates"):
        measure(people, people)


def test_intervals_are_taken_at_their_middle():
    people = quasi(age=[20, 24, 31, 50])
    masked = Hierarchy.intervals(10).generalize(people, "age", 1)
    plain = masked_as(people, age=[25.0, 25, 35, 50])  # the last one is cut at the largest age
    for measure in ALL:
        assert measure(people, masked).value == pytest.approx(measure(people, plain).value)
    assert sse_sst(people, masked).warnings == ()
    open_ends = masked_as(people, age=["<30", "<30", "30-39", ">=40"])
    plain = masked_as(people, age=[25.0, 25, 34.5, 45])
    assert sse_sst(people, open_ends).value == pytest.approx(sse_sst(people, plain).value)


def test_dates_and_times():
    day = [dt.date(2020, 1, 1 + i) for i in range(4)]
    people = quasi(day=day, clock=[dt.time(i) for i in range(4)])
    later = [one + dt.timedelta(days=1) for one in day]
    masked = masked_as(people, day=later, clock=[dt.time(i) for i in range(4)])
    found = wasserstein(people, masked).details["columns"]
    assert found["day"] == pytest.approx(1 / np.std([0, 1, 2, 3], ddof=1))
    assert found["clock"] == 0.0
    people = quasi(day=day)
    moments = masked_as(people, day=[dt.datetime(2020, 1, 1 + i) for i in range(4)])
    assert wasserstein(people, moments, columns=["day"]).value == 0.0
    numbers = masked_as(people, day=[1, 2, 3, 4])
    assert wasserstein(people, numbers, columns=["day"]).warnings


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("shift", [0, 2**62])
def test_whole_numbers_keep_their_digits(measure, shift):
    people = quasi(x=[shift + i for i in (0, 2, 4, 7)])
    masked = masked_as(people, x=[shift + i for i in (1, 2, 4, 7)])
    small = quasi(x=[0, 2, 4, 7])
    expected = measure(small, masked_as(small, x=[1, 2, 4, 7])).value
    assert measure(people, masked).value == pytest.approx(expected, rel=1e-12)


def test_infinite_values_are_left_out():
    people = quasi(x=[1.0, math.inf, 2.0], y=[1.0, 2.0, 3.0])
    assert list(sse_sst(people, people).details["columns"]) == ["y"]
    masked = masked_as(people, x=[1.0, 2.0, 3.0], y=[1.0, math.inf, 3.0])
    assert sse_sst(people, masked).value == 100.0
    assert sse_sst(people, masked).warnings


@pytest.mark.parametrize("measure", ALL)
def test_the_order_of_rows_does_not_matter(measure):
    people = mixed(60, 2)
    rng = np.random.default_rng(1)
    moved = people.blank({"real": rng.random(60) < 0.2})
    order = rng.permutation(60)
    one, other = measure(people, moved), measure(people, moved.reorder(order))
    assert one.value == pytest.approx(other.value, rel=1e-12)


def numbers(seed, gaps):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 5)) * 100 + 1e4
    values[:, 1] = values[:, 1].round(-2)  # ties
    values[rng.random(values.shape) < gaps] = np.nan
    return values


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_pearson_is_that_of_pandas(seed, gaps):
    pandas = pytest.importorskip("pandas")
    values = numbers(seed, gaps)
    expected = pandas.DataFrame(values).corr(min_periods=2).to_numpy()
    assert correlations(values) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_spearman_is_that_of_pandas(seed):
    """On complete columns; with gaps, ranks are those of the whole column."""
    pandas = pytest.importorskip("pandas")
    values = numbers(seed, 0.0)
    expected = pandas.DataFrame(values).corr(method="spearman").to_numpy()
    assert correlations(values, "spearman") == pytest.approx(expected, abs=1e-10)


def test_spearman_with_gaps():
    values = np.array([[1.0, 9], [2, np.nan], [50, 7], [60, 8]])
    ranks = np.array([[1.0, 3], [3, 1], [4, 2]])
    expected = np.corrcoef(ranks, rowvar=False)[0, 1]
    assert correlations(values, "spearman")[0, 1] == pytest.approx(expected)


def test_a_constant_has_none():
    values = np.column_stack([[1.0, 2, 3], [0.1] * 3])
    assert np.isnan(correlations(values)[0, 1])
    beside = np.array([[1.0, 2], [1, 3], [5, np.nan]])  # constant where the other one is there
    assert np.isnan(correlations(beside)[0, 1])


def test_correlations_by_definition():
    rng = np.random.default_rng(4)
    old, new = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    names = list("xyz")
    found = correlation_difference(
        table(**dict(zip(names, old.T, strict=True))), table(**dict(zip(names, new.T, strict=True)))
    )
    change = np.abs(np.corrcoef(old, rowvar=False) - np.corrcoef(new, rowvar=False))
    cells = change[np.triu_indices(3, 1)]
    assert found.value == pytest.approx(cells.mean())
    assert found.details["spread"] == pytest.approx(cells.std())
    assert found.details["largest"] == pytest.approx(cells.max())
    assert found.details["columns"]["y"] == pytest.approx((change[0, 1] + change[1, 2]) / 2)
    assert found.details["cells"]["mean"] == pytest.approx(cells.sum() / 6)
    assert found.details["cells"]["sd"] == pytest.approx(np.append(cells, [0, 0, 0]).std())


def test_a_correlation_that_is_gone_counts_as_zero():
    before = table(x=[1, 2, 3], y=[2, 4, 6], z=[1, 5, 3])
    assert correlation_difference(before, table(x=[1, 2, 3], y=[7, 7, 7])).value == pytest.approx(
        (1 + 0.5 + 0.5) / 3
    )
    lost = correlation_difference(before, table(q=[1]))
    assert lost.value == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert "'x'" in lost.warnings[0]


def test_a_correlation_that_never_was_is_left_out():
    before = table(x=[1, 2, 3], y=[7, 7, 7])
    found = correlation_difference(before, table(x=[1, 2, 3], y=[1, 2, 3]))
    assert found.value == 0.0
    assert found.details["pairs"] == 0
    assert "to lose" in found.warnings[-1]


def test_opposite_correlations_are_two_apart():
    before, after = table(x=[1, 2], y=[1, 2]), table(x=[1, 2], y=[2, 1])
    assert correlation_difference(before, after).value == 2.0


def test_pairs_with_a_sensitive_column():
    frame = mixed(40, 3).frame
    people = Table(frame, Roles(quasi_identifiers=["whole", "tied"], sensitive=["real"]))
    found = correlation_difference(people, people, pairs="confidential")
    assert found.details["pairs"] == 3  # real with whole, tied and day
    assert found.details["cells"]["count"] == 7
    with pytest.raises(InputError, match="sensitive"):
        correlation_difference(mixed(40, 3), mixed(40, 3), pairs="confidential")


def test_only_one_column_of_numbers_is_refused():
    people = quasi(x=[1, 2], text=list("ab"))
    with pytest.raises(InputError, match="two columns"):
        correlation_difference(people, people)


def test_a_swap_of_rows_changes_nothing_and_one_of_cells_does():
    people = mixed(200, 5)
    turned = people.reorder(np.arange(200)[::-1])
    assert correlation_difference(people, turned).value == pytest.approx(0.0, abs=1e-12)
    cells = {"whole": np.arange(200)[::-1]}
    assert correlation_difference(people, people.with_cells_of(cells)).value > 0.001


def test_monotone_scales_do_not_matter_to_ranks():
    people = quasi(x=[1.0, 2, 3, 4], y=[1.0, 3, 2, 4])
    masked = masked_as(people, x=[1.0, 4, 9, 1600], y=[1.0, 3, 2, 4])
    assert correlation_difference(people, masked, method="spearman").value == 0.0
    assert correlation_difference(people, masked).value > 0.01
