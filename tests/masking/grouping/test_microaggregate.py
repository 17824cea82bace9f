"""Microaggregation: k-anonymous by every road; means, medians and modes by hand."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from shoal import KAnonymity, Microaggregate, Roles, Table
from shoal.errors import InputError, ParameterError, UnprotectedColumnWarning

MANY = ["mdav", "mdav-random", "v-mdav", "mu-approx", "mondrian"]


def masked(columns, **options):
    """The columns after the method, and the method."""
    frame = columns if isinstance(columns, pl.DataFrame) else pl.DataFrame(columns)
    table = Table(frame, Roles(quasi_identifiers=frame.columns))
    method = Microaggregate(**options)
    return method.fit_transform(table), method


def numbers(rows=90):
    draw = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "x": draw.normal(size=rows),
            "y": draw.integers(0, 6, rows),  # many ties
            "z": draw.exponential(size=rows) * 1000,
        }
    )


def mixed(rows=90):
    draw = np.random.default_rng(3)
    days = pl.Series(draw.integers(0, 4000, rows), dtype=pl.Int32).cast(pl.Date)
    return numbers(rows).with_columns(
        pl.Series("sex", draw.choice(["f", "m"], rows)),
        pl.Series("town", draw.choice(list("abcdefgh"), rows)),
        pl.Series("member", draw.random(rows) < 0.3),
        days.alias("born"),
    )


def with_gaps(frame):
    draw = np.random.default_rng(4)
    holes = {name: pl.Series(draw.random(len(frame)) < 0.2) for name in frame.columns}
    return frame.with_columns(
        **{name: pl.when(hole).then(None).otherwise(pl.col(name)) for name, hole in holes.items()}
    )


def assert_anonymous(after, method, k):
    sizes = np.unique(method.groups_, return_counts=True)[1]
    assert sizes.min() >= max(k, 3)
    assert KAnonymity(k).holds(after)
    firsts = after.frame.with_columns(pl.Series("group", method.groups_))
    assert firsts.unique().height == len(sizes)  # one record per group


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("partition", MANY)
@pytest.mark.parametrize("refine", [False, True])
def test_numbers_are_k_anonymous(partition, k, refine):
    options = {"refine": True, "seconds": 0.05} if refine else {}
    after, method = masked(numbers(), k=k, partition=partition, **options)
    assert_anonymous(after, method, k)
    gaps, method = masked(with_gaps(numbers()), k=k, partition=partition, **options)
    assert_anonymous(gaps, method, k)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("partition", MANY)
@pytest.mark.parametrize("dissimilarity", ["gower", "ahmad-dey", "ahmad-dey-squared"])
def test_mixed_records_are_k_anonymous(dissimilarity, partition, k):
    for frame in (numbers(), mixed(), with_gaps(mixed())):
        after, method = masked(frame, k=k, partition=partition, dissimilarity=dissimilarity)
        assert_anonymous(after, method, k)
        assert after.frame.schema == frame.schema


@pytest.mark.parametrize("dissimilarity", ["gower", "ahmad-dey", "ahmad-dey-squared"])
def test_refined_mixed_records_are_k_anonymous(dissimilarity):
    for frame in (mixed(), with_gaps(mixed())):
        options = {"k": 5, "dissimilarity": dissimilarity}
        after, method = masked(frame, refine=True, seconds=0.05, **options)
        assert_anonymous(after, method, 5)


@pytest.mark.parametrize("partition", ["individual-ranking", "optimal", *MANY])
def test_one_column_is_k_anonymous(partition):
    for name in "xyz":
        after, method = masked(numbers().select(name), k=4, partition=partition)
        assert_anonymous(after, method, 4)


@pytest.mark.parametrize("partition", ["individual-ranking", "optimal"])
@pytest.mark.parametrize("dissimilarity", ["gower", "ahmad-dey", "ahmad-dey-squared"])
def test_any_ordered_column_is_put_in_order(partition, dissimilarity):
    """Dates, booleans and numbers under any dissimilarity; text has no order."""
    options = {"k": 4, "partition": partition, "dissimilarity": dissimilarity}
    for name in ("born", "member", "x"):
        frame = with_gaps(mixed()).select(name)
        after, method = masked(frame, **options)
        assert np.unique(method.groups_, return_counts=True)[1].min() >= 4
        values = frame[name].to_physical().cast(pl.Float64).fill_null(np.inf).to_numpy()
        order = np.argsort(values, kind="stable")
        assert (np.diff(method.groups_[order]) >= 0).all()  # neighbours, missing ones last
        assert KAnonymity(4).holds(after)
    with pytest.raises(InputError, match=rf"'{partition}' needs ordered values.*'town'"):
        masked(mixed().select("town"), **options)
    with pytest.raises(InputError, match="for one column; got 7"):
        masked(mixed(), **options)
    with pytest.raises(InputError, match=r"not numeric: 'born'"):
        masked(mixed().select("born"), k=4, partition=partition)
    for empty in (pl.Date, pl.Float64):
        nothing = Table(pl.DataFrame({"day": pl.Series([None] * 9, dtype=empty)}))
        method = Microaggregate(columns=["day"], **options)
        with pytest.warns(UnprotectedColumnWarning, match="no value changes"):
            method.fit_transform(nothing)
        assert np.bincount(method.groups_).min() >= 4


def test_optimal_groups_of_dates_are_those_of_their_days():
    days = np.random.default_rng(5).integers(0, 3000, 120)
    dates = pl.DataFrame({"born": pl.Series(days, dtype=pl.Int32).cast(pl.Date)})
    _, by_date = masked(dates, k=4, partition="optimal", dissimilarity="gower")
    for dissimilarity in ("gower", "euclidean"):
        _, by_day = masked({"born": days}, k=4, partition="optimal", dissimilarity=dissimilarity)
        np.testing.assert_array_equal(by_date.groups_, by_day.groups_)
    _, by_rank = masked(dates, k=4, partition="individual-ranking", dissimilarity="gower")
    assert by_rank.groups_.tolist() != by_date.groups_.tolist()


def test_a_million_different_values():
    """Ahmad and Dey compare each two of them: refused before memory is used."""
    frame = pl.DataFrame({"town": pl.int_range(10**6, eager=True).cast(pl.String)})
    frame = frame.with_columns(age=pl.Series(np.arange(10**6) % 90))
    for dissimilarity in ("ahmad-dey", "ahmad-dey-squared"):
        with pytest.raises(InputError, match=r"'town' has 1000000 different values.*'gower'"):
            masked(frame, k=5, dissimilarity=dissimilarity)


def as_sets(groups):
    return {frozenset(np.flatnonzero(groups == label).tolist()) for label in np.unique(groups)}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 10, 11, 12, 20, 21, 22], [{6, 7, 8}, {0, 1, 2}, {3, 4, 5}]),
        ([0, 1, 2, 3, 4, 5, 6, 7], [{0, 1, 2}, {3, 4, 5, 6, 7}]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 20], [{9, 8, 7}, {0, 1, 2}, {3, 4, 5, 6}]),
    ],
)
def test_groups_by_hand(values, expected):
    """MDAV-generic in one dimension, k = 3; in the second, a tie goes to the lowest row."""
    _, method = masked({"x": [float(value) for value in values]}, k=3)
    assert as_sets(method.groups_) == {frozenset(group) for group in expected}


def test_optimal_by_hand():
    """{0, 1, 2}, {10, 11, 12, 13}, {30, 31, 32}; MDAV may not cut into groups of other sizes."""
    values = [0.0, 10, 30, 1, 11, 31, 12, 2, 13, 32]
    _, method = masked({"x": values}, k=3, partition="optimal")
    assert as_sets(method.groups_) == {frozenset(g) for g in ({0, 3, 7}, {1, 4, 6, 8}, {2, 5, 9})}


@pytest.mark.parametrize("partition", [*MANY, "optimal", "individual-ranking"])
def test_two_records_are_not_a_group(partition):
    """The mean of two tells each of them the value of the other."""
    _, method = masked(numbers(40).select("x"), k=2, partition=partition)
    _, three = masked(numbers(40).select("x"), k=3, partition=partition)
    assert np.bincount(method.groups_).min() >= 3
    if partition != "mdav-random":
        assert as_sets(method.groups_) == as_sets(three.groups_)


def test_means_and_modes_by_hand():
    """Two groups, told apart by x; whole numbers stay whole, and a date is the mean day."""
    frame = pl.DataFrame(
        {
            "x": [0.0, 0.5, 1.0, 1.5, 100.0, 101.0, 102.0],
            "n": [1, 2, 2, 4, 90, 91, 95],
            "born": [date(2000, 1, d) for d in (1, 2, 4, 9)]
            + [date(2020, 1, d) for d in (3, 7, 8)],
            "town": ["b", "a", "b", "c", "z", "y", "z"],
            "member": [True, True, False, True, False, False, True],
        }
    )
    after, method = masked(frame, k=3, dissimilarity="gower")
    assert as_sets(method.groups_) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6})}
    low, high = after.frame.row(0, named=True), after.frame.row(6, named=True)
    assert low == {"x": 0.75, "n": 2, "born": date(2000, 1, 4), "town": "b", "member": True}
    assert high == {"x": 101.0, "n": 92, "born": date(2020, 1, 6), "town": "z", "member": False}
    assert after.frame.schema == frame.schema


def test_a_tie_of_modes_takes_one_of_them():
    after, _ = masked({"t": ["b", "a", "a", "b", "c"]}, k=5, dissimilarity="gower")
    assert after.frame["t"].n_unique() == 1
    assert after.frame["t"][0] in ("a", "b")


def test_equal_records_only():
    """Nothing to tell records apart: the groups still have k records, and nothing changes."""
    frame = pl.DataFrame({"x": [3.0] * 11, "t": ["a"] * 11})
    after, method = masked(frame, k=3, dissimilarity="gower")
    assert np.unique(method.groups_, return_counts=True)[1].min() >= 3
    assert after.frame.equals(frame)
    assert set(method.skipped_) == {"x", "t"}
    for partition in (*MANY, "optimal", "individual-ranking"):
        _, method = masked(frame.select("x"), k=3, partition=partition)
        assert np.unique(method.groups_, return_counts=True)[1].min() >= 3


def test_missing_values_get_the_value_of_their_group():
    numbers = [1.0, 2.0, 3.0, None, 100.0, 102.0, 104.0]
    frame = pl.DataFrame({"x": numbers, "t": [*"aab", None, *"zzy"], "s": [*"ffffmmm"]})
    after, method = masked(frame, k=3, dissimilarity="gower")
    assert as_sets(method.groups_) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6})}
    assert after.frame["x"].to_list() == [2.0] * 4 + [102.0] * 3
    assert after.frame["t"].to_list() == ["a"] * 4 + ["z"] * 3


def test_what_few_have_is_told_of_nobody():
    """Fewer than k values of a group, and texts that are all different: missing for all."""
    frame = pl.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 50.0, 51.0, 52.0],
            "wage": [10.0, 20.0, None, 70.0, 80.0, 90.0],
            "born": [None, None, date(1990, 1, 1), *[date(1950, 1, d) for d in (1, 2, 6)]],
            "town": [*"abc", *"zzy"],
        }
    )
    after, method = masked(frame, k=3, dissimilarity="gower")
    assert as_sets(method.groups_) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}
    assert after.frame.row(0) == (2.0, None, None, None)
    assert after.frame.row(5) == (51.0, 80.0, date(1950, 1, 3), "z")
    assert after.frame.schema == frame.schema


@pytest.mark.parametrize(
    "dtype",
    [pl.Date, pl.Time, pl.Duration("ms"), pl.Datetime("ns"), pl.Datetime("us", "Europe/Berlin")],
)
def test_the_mean_of_moments(dtype):
    moments = pl.Series("t", [10, 20, 60]).cast(dtype)
    after, _ = masked(moments.to_frame(), k=3, dissimilarity="gower")
    assert after.frame["t"].dtype == dtype
    assert after.frame["t"].to_physical().to_list() == [30] * 3


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.UInt8, pl.Int32, pl.Int64, pl.UInt64, pl.Float32, pl.Float64]
)
def test_types_of_numbers_are_kept(dtype):
    after, _ = masked({"x": pl.Series([1, 2, 3, 100, 101, 103], dtype=dtype)}, k=3)
    assert after.frame["x"].dtype == dtype
    assert KAnonymity(3).holds(after)


def test_the_largest_numbers_do_not_overflow():
    high = [1.7e308, 1.6e308, 1.65e308]
    after, _ = masked({"x": [*high, *(-number for number in high)]}, k=3)
    assert after.frame["x"].to_list() == pytest.approx([1.65e308] * 3 + [-1.65e308] * 3)
    after, _ = masked({"x": pl.Series([*[2**63 - 1] * 3, *[-(2**63)] * 3])}, k=3)
    assert KAnonymity(3).holds(after)
    assert after.frame["x"][0] > 9e18
    assert after.frame["x"][3] < -9e18


def test_standardizing_changes_the_groups():
    """Raw, the wide column decides; standardised, both count, and the outlier of x is seen."""
    frame = pl.DataFrame({"x": [0.0, 1.0] * 3, "y": [0.0, 10.0, 20.0, 70.0, 80.0, 90.0]})
    raw = masked(frame, k=3, standardize=False)[1].groups_
    scaled = masked(frame.with_columns(pl.col("x") * 1000), k=3, standardize=False)[1].groups_
    assert as_sets(raw) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}
    assert as_sets(scaled) == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}
    one = masked(frame, k=3)[1].groups_
    other = masked(frame.with_columns(pl.col("x") * 1000), k=3)[1].groups_
    assert as_sets(one) == as_sets(other)


def sse(frame, groups):
    values = frame.to_numpy().astype(np.float64)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    spread = 0.0
    for label in np.unique(groups):
        inside = values[groups == label]
        spread += float(((inside - inside.mean(axis=0)) ** 2).sum())
    return spread


@pytest.mark.parametrize("partition", [name for name in MANY if name != "mdav-random"])
@pytest.mark.parametrize("k", [3, 8])
def test_refined_groups_are_never_worse(partition, k):
    frame = numbers(300)
    plain = masked(frame, k=k, partition=partition)[1].groups_
    refined = masked(frame, k=k, partition=partition, refine=True, seconds=0.5)[1].groups_
    assert np.unique(refined, return_counts=True)[1].min() >= k
    assert sse(frame, refined) <= sse(frame, plain) * (1 + 1e-12)
    if partition in ("mdav", "mondrian"):
        assert sse(frame, refined) < sse(frame, plain)


def test_only_named_columns_change():
    frame = numbers()
    table = Table(frame, Roles(quasi_identifiers=["x"]))
    after = Microaggregate(k=5, columns=["y", "z"]).fit_transform(table)
    assert after.frame["x"].equals(frame["x"])
    assert not after.frame["z"].equals(frame["z"])


def test_bad_input_is_named():
    frame = mixed(8)
    with pytest.raises(InputError, match=r"k = 9 .* 8 records"):
        masked(frame, k=9, dissimilarity="gower")
    with pytest.raises(ParameterError):
        masked(frame, k=1, dissimilarity="gower")
    with pytest.raises(InputError, match=r"not numeric: 'sex'"):
        masked(frame, k=2)
    with pytest.raises(InputError, match="is for one column; got 3"):
        masked(numbers(8), k=2, partition="optimal")
    with pytest.raises(InputError, match="no columns to work on"):
        Microaggregate(k=2).fit_transform(Table(frame))
    with pytest.raises(InputError, match="'x' holds 1 infinite"):
        masked({"x": [1.0, float("inf"), 2.0]}, k=3)


@pytest.mark.parametrize("partition", ["individual-ranking", "optimal"])
def test_many_dates_are_put_in_order(partition):
    """So many that, where somebody listens, the time is estimated on some of them first."""
    days = np.random.default_rng(6).integers(0, 30_000, 50_000)
    dates = pl.DataFrame({"born": pl.Series(days, dtype=pl.Int32).cast(pl.Date)})
    table = Table(dates, Roles(quasi_identifiers=["born"]))
    method = Microaggregate(k=5, partition=partition, dissimilarity="gower")
    method.fit_transform(table, progress=lambda label, share: None)
    assert np.bincount(method.groups_).min() >= 5
    assert (np.diff(method.groups_[np.argsort(days, kind="stable")]) >= 0).all()
