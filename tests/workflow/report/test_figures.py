"""Pictures and words of a report."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal import (
    Release,
    Roles,
    Round,
    Table,
    assess,
)
from shoal.workflow.release._profile import Bar, class_size_profile
from shoal.workflow.report import _figures as figures
from shoal.workflow.report import _words as words
from shoal.workflow.report import assessment_fragment, assessment_page

from .pages import ROLES, Page, people

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


class TestFigures:
    def test_the_curve_is_what_counting_gives(self) -> None:
        draw = np.random.default_rng(5)
        table = Table(
            pl.DataFrame({"age": (draw.exponential(12, 3000)).astype(int)}),
            Roles(quasi_identifiers=["age"]),
        )
        sizes = table.classes.record_sizes
        bars = class_size_profile(table, table)
        points = figures.risk_points(bars)
        assert len(points) == len(bars) >= 5
        for chance, percent in points:
            true = 100 * float((1 / sizes > chance + 1e-12).mean())
            assert percent == pytest.approx(true, abs=len(bars) / 2 + 0.5)

    def test_the_released_curve_is_exact_and_ends_at_k(self) -> None:
        table = Table(
            pl.DataFrame({"age": [1] * 4 + [2] * 7 + [3] * 150}), Roles(quasi_identifiers=["age"])
        )
        found = assess(table)
        points = dict(figures.smaller_than(found.classes.records_by_size, found.k))
        sizes = table.classes.record_sizes
        assert sorted(points) == [1, 2, 3, 4, 5, 10, 20, 50, 100]
        for limit, percent in points.items():
            assert percent == pytest.approx(100 * float((sizes < limit).mean()))
        assert points[found.k] == 0

    def test_nothing_of_the_original_no_curve_of_it(self) -> None:
        assert figures.risk_points([Bar("1", None, 10), Bar("2+", None, 90)]) == []
        assert figures.risk_points([Bar("1+", 100, 100)]) == []

    def test_areas_are_shares(self) -> None:
        bars = [
            Bar("0 to 10", 20, 10, low=0, high=10),
            Bar("10 to 40", 60, 60, low=10, high=40),
            Bar("40 to 50", 20, 30, low=40, high=50),
        ]
        chart = figures.histogram(bars)
        areas = [column.width * column.after for column in chart.columns]
        assert np.array(areas) / sum(areas) == pytest.approx([0.1, 0.6, 0.3])
        assert chart.columns[1].width == pytest.approx(3 * chart.columns[0].width)
        assert max(column.after for column in chart.columns) == pytest.approx(
            chart.base - chart.top
        )

    def test_missing_values_stand_apart(self) -> None:
        chart = figures.histogram([Bar("0 to 1", 50, 50), Bar("missing", 50, 50)])
        numbers, missing = chart.columns
        assert numbers.x + numbers.width < missing.x
        assert chart.silhouette.count("M") == 2
        only = figures.histogram([Bar("missing", None, 100)])
        assert [tick.label for tick in only.x_ticks] == ["missing"]

    @pytest.mark.parametrize("label", ["1e+06 to 1e+06", "a to b", "5"])
    def test_labels_that_tell_no_range_still_draw(self, label: str) -> None:
        chart = figures.histogram([Bar(label, 10, 10), Bar("7 to 9", 90, 90)])
        assert [c.width for c in chart.columns] == [pytest.approx(figures.SMALL_WIDTH / 2)] * 2

    def test_bars_stay_in_their_box(self, release: Release) -> None:
        for chart in (
            figures.class_size_chart(release.class_sizes),
            *(figures.histogram(c.bars) for c in release.columns if c.numeric),
        ):
            for column in chart.columns:
                assert -0.01 <= column.x <= column.x + column.width <= chart.width + 0.01
                assert max(column.before or 0, column.after) <= chart.base - chart.top + 0.01

    @pytest.mark.parametrize("k", [1, 2, 3, 7, 30, 5000])
    def test_fish_do_not_overlap(self, k: int) -> None:
        places = figures.shoal(k)
        assert len(places) == min(k, 30)
        for i, (x, y) in enumerate(places):
            assert all(abs(x - a) >= 26 or abs(y - b) >= 11 for a, b in places[:i])


class TestAssessment:
    @pytest.fixture
    def masked(self) -> Any:
        original = Table(people(), ROLES)
        return assess(Round(base=5).fit_transform(original), original=original)

    def test_the_page_says_that_it_is_private(self) -> None:
        page = Page(assessment_page(assess(Table(people(), ROLES))))
        assert "Not for publication." in page.text
        assert [tag for tag, _, _ in page.tags].count("h1") == 1

    def test_every_measure_and_note_is_there(self, masked: Any) -> None:
        for source in (assessment_page(masked), assessment_fragment(masked)):
            text = Page(source).text
            for found in masked.measurements.values():
                assert words.number(found.value) in text
            for reason in masked.left_out.values():
                assert reason[1:] in text
            assert f"k = {masked.k}" in source

    def test_the_counts_are_exact(self, masked: Any) -> None:
        text = Page(assessment_page(masked)).text
        for count in masked.classes.records_by_size.values():
            assert f" {count:,} " in text

    def test_a_fragment_disturbs_no_notebook(self, masked: Any) -> None:
        fragment = assessment_fragment(masked)
        page = Page(fragment)
        assert fragment.startswith('<div class="shoal-view">')
        assert not [attrs for _, attrs, _ in page.tags if "id" in attrs]
        assert page.code["script"] == []
        selectors = re.findall(r"^(\S.*?) \{", "".join(page.code["style"]), flags=re.M)
        assert selectors
        for selector in ",".join(selectors).split(","):
            assert selector.strip().startswith(".shoal-view")

    def test_the_wildcard_reading_is_told(self) -> None:
        found = assess(Table(people(), ROLES), missing="wildcard")
        assert "crowds overlap" in Page(assessment_page(found)).text


class TestWords:
    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (0, "0"),
            (1860, "1,860"),
            (0.25403, "0.254"),
            (1234.56, "1,234.6"),
            (1e300, "1e+300"),
            (2.047e-05, "0.00002"),
            (6.218e-05, "0.000062"),
            (-3e-05, "-0.00003"),
            (1e-12, "1e-12"),
            (float("nan"), "none"),
            (float("inf"), "endless"),
        ],
    )
    def test_numbers(self, value: float, told: str) -> None:
        assert words.number(value) == told

    @pytest.mark.parametrize(
        ("value", "told"),
        [(0, "0 %"), (0.2, "below 1 %"), (33.3, "33 %"), (99.7, "above 99 %"), (100, "100 %")],
    )
    def test_percents(self, value: float, told: str) -> None:
        assert words.percent(value).replace("\u00a0", " ") == told

    def test_counts(self) -> None:
        assert words.counted(1, "record") == "1\u00a0record"
        assert words.counted(2000, "record") == "2,000\u00a0records"
        assert words.counted("fewer than 10", "record") == "fewer than 10\u00a0records"
        assert words.chance(1 / 3) == "1 in 3"
