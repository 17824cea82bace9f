"""Interval disclosure: compared with a plain reading of its definition, and its refusals."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Microaggregate, RankSwap, Roles, Round, Swap, Table
from shoal.errors import InputError
from shoal.risk import group_disclosure, interval_disclosure


def table(x, y=None, **roles):
    columns = {"x": x} if y is None else {"x": x, "y": y}
    return Table(pl.DataFrame(columns, strict=False), Roles(quasi_identifiers=list(columns)))


def replaced(original, x):
    return original.fill_numbers({"x": np.array(x, float)})


def by_ranks(before, after, percent):
    """Each record separately, in plain Python: the masked values that many ranks away."""
    ordered = sorted(value for value in after if value is not None)
    reach = math.floor(percent * len(ordered) / 100 + 1e-9)
    told = []
    for old, new in zip(before, after, strict=True):
        if old is None or new is None:
            told.append(0.0)
            continue
        below = [i for i, value in enumerate(ordered) if value == new]
        low = ordered[max(below[0] - reach, 0)]
        high = ordered[min(below[-1] + reach, len(ordered) - 1)]
        told.append(float(low <= old <= high))
    return told


def by_deviations(before, after, percent):
    present = [value for value in after if value is not None]
    reach = percent / 100 * float(np.std(present)) if present else 0.0
    return [
        float(old is not None and new is not None and abs(old - new) <= reach)
        for old, new in zip(before, after, strict=True)
    ]


def widths_of_groups(before, after):
    """For each record, the span of the values behind its released value, including itself."""
    spans = []
    for new in after:
        behind = [old for old, other in zip(before, after, strict=True) if other == new]
        values = [value for value in [*behind, new] if value is not None]
        spans.append(max(values) - min(values) if values else math.nan)
    return spans


numbers = st.none() | st.integers(-8, 8) | st.sampled_from([0.5, 1.5, 100.0])
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=14).filter(
    lambda cells: any(old is not None for old, _ in cells)
)


class TestAgainstTheDefinition:
    @settings(max_examples=60)
    @given(cells=pairs, percent=st.sampled_from([0, 5, 10, 25, 50, 100]))
    def test_ranks(self, cells, percent):
        before, after = (
            [None if v is None else float(v) for v in side] for side in zip(*cells, strict=True)
        )
        original = table(pl.Series(before, dtype=pl.Float64))
        found = interval_disclosure(
            original,
            replaced(original, [math.nan if v is None else v for v in after]),
            percent=percent,
        )
        assert found.per_record.tolist() == by_ranks(before, after, percent)

    @settings(max_examples=60)
    @given(cells=pairs, percent=st.sampled_from([3, 7.5, 41.0]))
    def test_deviations(self, cells, percent):
        before, after = (
            [None if v is None else float(v) for v in side] for side in zip(*cells, strict=True)
        )
        original = table(pl.Series(before, dtype=pl.Float64))
        masked = replaced(original, [math.nan if v is None else v for v in after])
        found = interval_disclosure(original, masked, percent=percent, interval="deviations")
        assert found.per_record.tolist() == by_deviations(before, after, percent)

    @settings(max_examples=60)
    @given(cells=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=14))
    def test_groups(self, cells):
        before, after = ([float(v) for v in side] for side in zip(*cells, strict=True))
        original = table(before)
        found = interval_disclosure(
            original, replaced(original, after), interval="groups", percent=40
        )
        spans, spread = np.array(widths_of_groups(before, after)), np.std(before)
        if spread > 0:
            assert found.details["median_widths"]["x"] == pytest.approx(
                float(np.median(spans / spread))
            )
        assert found.details["zero_widths"]["x"] == pytest.approx(float((spans == 0).mean()))
        assert found.value == pytest.approx(float((spans <= 0.8 * spread).mean()))

    def test_the_baseline_is_the_interval_of_anybody(self):
        random = np.random.default_rng(1)
        before = random.integers(0, 30, 40).astype(float)
        after = random.permutation(before)
        original = table(before)
        found = interval_disclosure(original, replaced(original, after), percent=10)
        chances = [
            np.mean(by_ranks(before.tolist(), np.roll(after, i).tolist(), 10)) for i in range(40)
        ]
        assert found.baseline == pytest.approx(np.mean(chances))


class TestWhatIsTold:
    def test_an_unmasked_column_is_told_exactly(self):
        original = table([1, 5, 9, 9])
        for interval in ("ranks", "deviations", "groups"):
            assert interval_disclosure(original, original, interval=interval, percent=0).value == 1

    def test_noise_is_as_wide_as_it_is(self):
        """If every record has its own value, no group discloses it."""
        original = table([0.0, 10.0, 20.0, 30.0])
        masked = replaced(original, [1.0, 9.0, 22.0, 30.0])
        facts = interval_disclosure(original, masked, interval="groups").details
        assert facts["zero_widths"] == {"x": 0.25}
        assert facts["median_widths"]["x"] == pytest.approx(1 / np.std([0, 10, 20, 30]))

    def test_rank_swapping_tells_its_window(self):
        original = table(np.arange(1000.0))
        masked = RankSwap(percent=5).fit_transform(original)
        assert interval_disclosure(original, masked, percent=5).value == 1
        assert interval_disclosure(original, masked, percent=1).value < 0.5

    def test_microaggregation_discloses_groups_of_one_value(self):
        original = table([1.0, 1.0, 1.0, 5.0, 9.0, 7.5])
        masked = Microaggregate(k=3).fit_transform(original)
        found = interval_disclosure(original, masked, interval="groups", percent=0)
        assert found.per_record.tolist() == [1, 1, 1, 0, 0, 0]
        assert found.details["zero_width"] == 0.5

    def test_the_groups_of_a_swap_are_those_of_its_record(self):
        random = np.random.default_rng(2)
        wage = random.integers(0, 40, 300)
        frame = pl.DataFrame({"age": random.integers(0, 90, 300), "wage": wage})
        original = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["wage"]))
        masked = Swap(k=5, informed=True, partition="individual-ranking").fit_transform(original)
        found = interval_disclosure(
            original, masked, columns=["wage"], interval="groups", percent=0
        )
        direct = group_disclosure(masked, "wage")
        assert 0 < found.value == direct.value == found.details["zero_widths"]["wage"] < 1
        assert found.details["median_widths"]["wage"] == pytest.approx(
            direct.details["median_width"]
        )
        assert found.per_record.tolist() == direct.per_record.tolist()

    def test_several_columns(self):
        original = table([0.0, 0.0, 50.0, 100.0], [1, 2, 3, 4])
        masked = replaced(original, [0.0, 60.0, 0.0, 100.0])
        found = interval_disclosure(original, masked, percent=0)
        assert found.per_record.tolist() == [1, 0.5, 0.5, 1]
        assert found.value == 0.75
        assert found.details["all_columns"] == 0.5
        assert found.details["columns"] == {"x": 0.5, "y": 1}

    def test_who_is_gone_is_not_told_but_counts(self):
        original = table([1, 2, 3, 4])
        found = interval_disclosure(original, original.keep(np.array([True, False, True, False])))
        assert found.per_record.tolist() == [1, 0, 1, 0]
        assert found.baseline == 1 / 8  # one value in four, for half of the persons
        assert "2 records of 4 persons" in found.warnings[0]
        assert interval_disclosure(original, original.drop(["x"])).value == 0

    def test_dates_are_told_too(self):
        days = pl.Series("x", [0, 100, 200, 300, 400])
        original = Table(pl.DataFrame([days.cast(pl.Date)]), Roles(quasi_identifiers=["x"]))
        masked = pl.DataFrame([(days + pl.Series([1, 1, 60, 1, 60])).cast(pl.Date)])
        masked = Table(masked, original.roles).paired(original)
        found = interval_disclosure(original, masked, interval="deviations")
        assert found.per_record.tolist() == [1, 1, 0, 1, 0]

    def test_a_missing_cell_has_no_interval(self):
        original = table([1.0, None, 3.0])
        masked = original.blank({"x": np.array([True, False, False])})
        for interval in ("ranks", "deviations", "groups"):
            found = interval_disclosure(original, masked, interval=interval)
            assert found.per_record.tolist() == [0, 0, 1]

    def test_numbers_beyond_the_digits_of_a_float(self):
        large = [2**63 - 5, 2**63 - 4, 2**63 - 2]
        original = table(large)
        masked = original.with_cells_of({"x": np.array([1, 0, 2])})
        assert interval_disclosure(original, masked, percent=0).per_record.tolist() == [0, 0, 1]

    def test_an_interval_without_width_that_misses_discloses_nothing(self):
        """Rounded values have windows of one value, which is not that of the original."""
        original = table([1, 4, 6, 9])
        found = interval_disclosure(original, Round(base=5).fit_transform(original))
        assert (found.value, found.details["zero_width"]) == (0, 0)
        assert found.details["median_widths"]["x"] == 0


class TestCoarser:
    @pytest.mark.parametrize("interval", ["ranks", "groups"])
    def test_labels_are_left_out(self, interval):
        original = table([1, 2, 11, 19], [1, 2, 3, 4])
        masked = Hierarchy.intervals([10]).generalize(original, "x", 1)
        found = interval_disclosure(original, masked, interval=interval)
        assert list(found.details["columns"]) == ["y"]
        assert "'x' is left out" in found.warnings[0]
        with pytest.raises(InputError, match="'x'"):
            interval_disclosure(original, masked, columns=["x"], interval=interval)


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"interval": "years"}, "must be one of 'ranks'"),
            ({"percent": -1}, "≥ 0 and ≤ 100. Got -1"),
            ({"percent": 101}, "≥ 0 and ≤ 100"),
            ({"percent": math.nan}, "≥ 0 and ≤ 100"),
            ({"columns": "x"}, "must be a list"),
            ({"columns": ["z"]}, "no column 'z'"),
            ({"columns": []}, "must be a list"),
        ],
    )
    def test_options(self, options, said):
        one = table([1, 2])
        with pytest.raises(InputError, match=said):
            interval_disclosure(one, one, **options)

    def test_tables(self):
        with pytest.raises(InputError, match="cannot be paired"):
            interval_disclosure(table([1]), table([1]))
        text = Table(pl.DataFrame({"x": ["a"]}), Roles(quasi_identifiers=["x"]))
        with pytest.raises(InputError, match="numeric"):
            interval_disclosure(text, text)
        with pytest.raises(InputError, match="no column 'x' of finite numbers"):
            interval_disclosure(text, text, columns=["x"])
