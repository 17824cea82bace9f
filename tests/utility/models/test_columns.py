"""Raw values under released labels: each mapping against a slow and obvious one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Table
from shoal.utility.models import columns_of
from shoal.utility.models._columns import (
    UNKNOWN,
    SplitRows,
    in_one_domain,
    middles_of,
    most_frequent,
    nearest,
)


@pytest.mark.parametrize("seed", range(6))
class TestAgainstSlow:
    def test_most_frequent(self, seed):
        rng = np.random.default_rng(seed)
        source, target = rng.integers(-1, 6, 40), rng.integers(-1, 3, 40)  # many ties
        asked, known = rng.integers(-1, 9, 30), rng.integers(5, 8, 10)
        found = most_frequent(asked, source, target, known)
        for value, given in zip(asked, found, strict=True):
            counts = Counter(t for s, t in zip(source, target, strict=True) if s == value)
            if value == -1:
                assert given == -1
            elif counts:
                best = max(counts.values())
                assert given == min(t for t, count in counts.items() if count == best)
            else:
                assert given == (value if value in known else UNKNOWN)

    def test_nearest(self, seed):
        rng = np.random.default_rng(seed)
        values = np.unique(rng.integers(0, 20, 1 + seed).astype(float))
        asked = np.concatenate([rng.uniform(-5, 25, 20), rng.integers(0, 20, 20)])
        for number, place in zip(asked, nearest(asked, values), strict=True):
            assert place == np.argmin(np.abs(values - number))

    def test_middles(self, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(-1, 5, 30)
        values = np.where(rng.random(30) < 0.2, np.nan, rng.integers(0, 9, 30))
        found = middles_of(labels, values, 6)
        assert np.isnan(found[-1])
        for label in range(6):
            own = values[(labels == label) & ~np.isnan(values)]
            expected = (own.min() + own.max()) / 2 if len(own) else np.nan
            assert found[label] == pytest.approx(expected, nan_ok=True)


def split(column, train, test, learners, asked):
    """A column whose learners are some rows of both tables, and whose tested rows others."""
    rows = SplitRows(
        {"original": learners, "masked": learners},
        {"original": asked, "masked": asked},
        (learners, learners),
    )
    return in_one_domain(column, train, test, rows)


def column(before, after):
    tables = [Table(pl.DataFrame({"x": values})) for values in (before, after)]
    return columns_of(*tables, ["x"])[0]


LEARN, ASK = np.arange(4), np.arange(4, 7)


class TestIntervals:
    """Ages in bands: [20, 30) has learners of 21 and 27, [30, 40) of 33 and 39."""

    found = column(
        [21, 27, 33, 39, 22, 31, 90],
        ["[20, 30)", "[20, 30)", "[30, 40)", "[30, 40)", "[20, 30)", "[30, 40)", "*"],
    )
    size = 128.0  # numbers are divided by a power of two

    def values(self, train, test):
        made = split(self.found, train, test, LEARN, ASK)
        assert made.numeric
        return (made.train * self.size).tolist(), (made.test * self.size).tolist()

    def test_raw_rows_get_the_middle_of_their_band(self):
        assert self.values("masked", "original") == ([24, 24, 36, 36], [24, 36, 36])

    def test_a_star_is_missing(self):
        train, test = self.values("masked", "masked")
        assert train == [24, 24, 36, 36]
        assert test[:2] == [24, 36]
        assert np.isnan(test[2])

    def test_bands_for_a_model_of_raw_rows(self):
        train, test = self.values("original", "masked")
        assert train == [21, 27, 33, 39]
        assert test[:2] == [24, 36]

    def test_the_original_alone_needs_no_bands(self):
        assert self.values("original", "original") == ([21, 27, 33, 39], [22, 31, 90])

    def test_a_raw_row_stays_itself_where_a_value_has_two_bands(self):
        local = column([21, 21, 33, 39, 22, 31, 90], ["a", "b", "b", "b", "a", "b", "b"])
        made = split(local, "masked", "original", LEARN, ASK)
        assert (made.test * self.size).tolist() == [22, 31, 90]
        assert (made.train * self.size).tolist() == [21, 30, 30, 30]

    def test_without_pairs_labels_are_labels_and_raw_rows_are_lost(self):
        rows = SplitRows({"masked": LEARN}, {"masked": ASK, "original": ASK})
        alone = in_one_domain(self.found, "masked", "masked", rows)
        assert not alone.numeric
        assert in_one_domain(self.found, "masked", "original", rows) is None


class TestCoarserValues:
    def test_what_most_learners_have(self):
        found = column(list("aabbabc"), ["v", "v", "v", "w", "v", "w", "w"])
        assert found.labels
        made = split(found, "masked", "original", LEARN, ASK)
        letters = dict(zip(made.train.tolist(), "vvvw", strict=True))
        assert [letters.get(code) for code in made.test.tolist()] == ["v", "v", None]
        assert made.test[2] == UNKNOWN

    def test_what_was_only_moved_stays_itself(self):
        found = column(list("aabbabc"), list("bbaaabb"))
        assert not found.labels
        made = split(found, "masked", "original", LEARN, ASK)
        assert made.train.tolist() == [1, 1, 0, 0]
        assert made.test.tolist() == [0, 1, 2]

    def test_a_column_that_was_taken_out_is_missing_when_tested(self):
        tables = Table(pl.DataFrame({"x": list("aabbabc")})), Table(pl.DataFrame({"y": [1] * 7}))
        found = columns_of(*tables, ["x"])[0]
        assert split(found, "original", "masked", LEARN, ASK).test.tolist() == [-1, -1, -1]
        assert split(found, "masked", "original", LEARN, ASK) is None


class TestColumns:
    def test_names_are_not_learned(self):
        frame = pl.DataFrame({"n": [f"p{i}" for i in range(60)], "few": ["a", "b"] * 30})
        names, few = columns_of(Table(frame), None, ["n", "few"])
        assert names.learnable == frozenset()
        assert few.learnable == {"original"}

    def test_what_was_names_may_be_learned_once_coarser(self):
        before = pl.DataFrame({"n": [f"p{i}" for i in range(60)]})
        after = pl.DataFrame({"n": ["p0-p29", "p30-p59"] * 30})
        assert columns_of(Table(before), Table(after), ["n"])[0].learnable == {"masked"}

    def test_a_star_of_the_original_is_a_value(self):
        tables = [Table(pl.DataFrame({"x": values})) for values in (["*", "a"], ["*", "*"])]
        assert columns_of(*tables, ["x"])[0].masked.tolist() == [0, 0]
        tables = [Table(pl.DataFrame({"x": values})) for values in (["b", "a"], ["*", "a"])]
        assert columns_of(*tables, ["x"])[0].masked.tolist()[0] == -1

    def test_dates_are_numbers(self):
        days = pl.DataFrame({"day": pl.Series([0, 64, None]).cast(pl.Date)})
        found = columns_of(Table(days), Table(days), ["day"])[0]
        assert found.numeric
        assert not found.labels
        assert found.original[:2].tolist() == [0.0, 0.5]
        assert np.isnan(found.original[2])
