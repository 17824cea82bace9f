"""The page of an assessment: two sides, each value beside what it is held against, and violins."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from shoal import Measurement, Roles, Round, Sample, Swap, Table, assess
from shoal.measurement import MeasureInfo
from shoal.workflow import RiskDistribution, discover_all_measures, grouped_measures
from shoal.workflow.report import _scales as scales
from shoal.workflow.report import assessment_fragment, assessment_page

from .pages import Page, people

ROLES = Roles(quasi_identifiers=["age", "sex"], sensitive=["illness"], insensitive=["income"])


@pytest.fixture(scope="module")
def original():
    return Table(people().drop("who", "region"), ROLES)


@pytest.fixture(scope="module")
def masked(original):
    return assess(Round(base=5).fit_transform(original), original=original)


@pytest.fixture(scope="module")
def sampled(original):
    rounded = Round(base=30, columns=["age"]).fit_transform(original)
    half = Sample(fraction=0.5).fit_transform(rounded)
    return assess(half, original=rounded)


def info(limits=(0.0, 1.0), direction="lower"):
    return MeasureInfo("x", "x", direction, limits, lambda table: Measurement("x", 0.0))


class TestGroups:
    def test_every_measure_has_one_place(self):
        names = list(discover_all_measures())
        placed = [name for group in grouped_measures(names) for name in group.names]
        assert sorted(placed) == sorted(names)

    def test_risk_comes_first_and_no_group_is_empty(self):
        groups = grouped_measures(discover_all_measures())
        sides = [group.side for group in groups]
        assert sides == sorted(sides)
        assert all(group.names for group in groups)
        assert grouped_measures([]) == []

    def test_what_is_declared_tells_the_group(self):
        titles = {n: g.title for g in grouped_measures(discover_all_measures()) for n in g.names}
        assert titles["uniqueness"] == "Who can be found"
        assert titles["homogeneity"] == "What crowds reveal about sensitive columns"
        assert titles["distance_linkage"] == "Attacks that were tried"
        assert titles["total_variation"] == "What statistics still show"


class TestMarks:
    def test_a_share_is_on_the_scale_of_all_shares(self):
        found = Measurement("x", 0.02, interval=(0.01, 0.04), baseline=0.0, details={"bound": 0.2})
        marks = scales.marks_of(found, info())
        assert (marks.low, marks.high, marks.endless) == (0, 1, False)
        assert marks.value == pytest.approx(2)
        assert marks.interval == pytest.approx((1, 4))
        assert (marks.baseline, marks.bound) == pytest.approx((0, 20))

    def test_an_endless_measure_ends_at_a_round_number_above_all_marks(self):
        found = Measurement("x", 46.0, baseline=3.0)
        marks = scales.marks_of(found, info((0, math.inf)))
        assert (marks.low, marks.high, marks.endless) == (0, 50, True)
        assert (marks.value, marks.baseline) == pytest.approx((92, 6))

    @pytest.mark.parametrize(
        ("limits", "value", "ends"),
        [
            ((-math.inf, math.inf), -3.0, (-5, 0)),
            ((-math.inf, math.inf), 0.0, (0, 1)),
            ((-math.inf, 1), -0.2, (-0.5, 1)),
            ((0, math.inf), 0.0, (0, 1)),
            ((1, math.inf), 1.0, (1, 2)),
            ((0, math.inf), 1e300, (0, 2e300)),
            ((-1, 1), 0.5, (-1, 1)),
        ],
    )
    def test_the_ends_hold_every_value(self, limits, value, ends):
        marks = scales.marks_of(Measurement("x", value), info(limits))
        assert (marks.low, marks.high) == pytest.approx(ends)
        assert marks.value == pytest.approx(100 * (value - ends[0]) / (ends[1] - ends[0]))

    def test_no_value_no_picture(self):
        assert scales.marks_of(Measurement("x", math.nan), info()) is None
        assert scales.marks_of(Measurement("x", 0.5, baseline=math.nan), info()).baseline is None


class TestViolins:
    @staticmethod
    def shape(values, measure="prosecutor_risk", fraction=None):
        values = np.asarray(values, dtype=float)
        made = scales.violin(RiskDistribution(measure, "1/f", values, fraction))
        places = [tuple(map(float, p)) for p in re.findall(r"([\d.]+) ([\d.]+)", made.outline)]
        return made, places

    def test_one_record(self):
        made, places = self.shape([1.0])
        assert made.sentences == ("All records have 1 (certain).",)
        assert made.median == made.quarters[0] == made.quarters[1]
        assert "nan" not in made.outline
        assert made.outline == f"M{made.median - 2:.1f} 26.0H{made.median + 2:.1f}V106.0H258.0Z"
        assert places[0] == (made.median - 2, made.top)

    def test_it_is_thickest_where_most_records_are(self):
        """900 records in classes of 100, 10 alone: the shape bulges at 1 in 100."""
        made, places = self.shape([0.01] * 900 + [0.1] * 90 + [1.0] * 10)
        thickest = max(places, key=lambda place: abs(place[1] - made.middle))
        ticks = {tick.label: tick.at for tick in made.ticks}
        assert thickest[0] == pytest.approx(ticks["1 in 100"], abs=3)
        assert made.median == pytest.approx(ticks["1 in 100"])
        near = [abs(y - made.middle) for x, y in places if abs(x - ticks["1 in 10"]) < 2]
        assert max(near) == pytest.approx(0.1 * (made.base - made.middle), rel=0.1)

    def test_it_ends_at_the_lowest_and_the_highest_risk(self):
        made, places = self.shape([0.1, 0.05, 0.02] * 30)
        ticks = {tick.label: tick.at for tick in made.ticks}
        assert max(x for x, _ in places) == pytest.approx(ticks["1 in 10"], abs=0.1)
        assert min(x for x, _ in places) > ticks["1 in 100"]

    def test_it_stays_in_its_box_and_is_even(self):
        draw = np.random.default_rng(0)
        made, places = self.shape(1 / draw.integers(1, 10**6, 5000))
        assert all(0 <= x <= made.width and made.top <= y <= made.base for x, y in places)
        upper, lower = places[: len(places) // 2], places[len(places) // 2 :][::-1]
        assert [x for x, _ in upper] == [x for x, _ in lower]
        assert np.allclose([a[1] + b[1] for a, b in zip(upper, lower, strict=True)], 132, atol=0.2)
        assert len(made.ticks) <= 4
        assert len(made.outline) < 6000

    def test_a_million_records_are_as_one_thousand(self):
        values = 1 / np.random.default_rng(1).geometric(0.02, 1000)
        few, many = self.shape(values)[1], self.shape(np.tile(values, 1100))[1]
        assert len(few) == len(many)

    def test_certainty_is_on_a_plain_scale_with_the_share_above_the_fraction(self):
        made, _ = self.shape([0.25, 0.5, 0.5, 0.75], "certainty", 0.5)
        assert [tick.label for tick in made.ticks] == ["0", "0.25", "0.5", "0.75", "1"]
        assert made.fraction.at == pytest.approx(made.ticks[2].at)
        assert "25\u00a0% of the records have a higher certainty" in made.sentences[1]

    def test_numbers_are_told_as_one_in_so_many(self):
        made, _ = self.shape([1 / 3] * 9 + [0.15])
        assert dict(made.numbers)["highest"] == "1 in 3"
        assert dict(made.numbers)["lowest"] == "1 in 6.7"
        made, _ = self.shape([1 / 9] * 3 + [1 / 4] * 2 + [1.0])
        told = "Half of the records have at most 1 in 9; the highest is 1 (certain)."
        assert made.sentences == (told,)


class TestPage:
    def test_both_sides_stand_beside_each_other(self, masked):
        page = assessment_page(masked)
        text = Page(page).text
        assert text.index("what an intruder can learn") < text.index("an analyst can still")
        assert page.count('<div class="side">') == 2
        for name, found in masked.measurements.items():
            title = discover_all_measures()[name].title
            assert title[1:] in text
            if found.baseline is not None:
                assert f"baseline {found.baseline:.4g}" in text
        assert page.count('<circle class="value" cx=') == len(masked.measurements) + 1  # the key

    def test_an_unmasked_table_has_an_empty_side(self, original):
        assert "Nothing was measured here." in Page(assessment_page(assess(original))).text

    def test_the_bound_is_drawn(self, masked):
        name = "uniqueness"
        found = replace(masked[name], details={**masked[name].details, "bound": 0.2})
        page = assessment_page(replace(masked, measurements={name: found}))
        assert "bound 0.2" in Page(page).text
        assert page.count('class="promise" x1="20%"') == 1
        plain = assessment_page(replace(masked, measurements={name: masked[name]}))
        assert 'class="promise" x1=' not in plain

    def test_what_is_not_measured_is_told_with_its_reason(self, masked):
        failed = {"suda": "It was too much.", "uniqueness": "It was too much."}
        told = replace(masked, failed=failed)
        for source in (assessment_page(told), assessment_fragment(told)):
            text = Page(source).text
            assert "Could not be measured" in text
            assert text.count("It was too much.") == 1
        count = len(masked.left_out)
        assert f"{count} measures were left out" in Page(assessment_page(masked)).text
        assert "measures were left out" not in assessment_page(replace(masked, left_out={}))

    def test_names_in_remarks_turn_nothing(self, masked):
        failed = {"suda": "The column '<b>\u202ex' is odd."}
        told = replace(masked, failed=failed, notes=("see '<i>\u202ey'",))
        for source in (assessment_page(told), assessment_fragment(told)):
            assert "\u202e" not in source
            assert "<b>" not in source
            assert "<i>" not in source

    def test_a_warning_stands_once(self, masked):
        name = "total_variation"
        found = replace(masked[name], warnings=("this means little",))
        told = replace(masked, measurements={**masked.measurements, name: found})
        assert Page(assessment_page(told)).text.count("This means little.") == 1
        noted = replace(told, notes=("this means little",))
        assert Page(assessment_page(noted)).text.count("This means little.") == 1
        assert str(noted).count("this means little") == 1

    def test_what_a_measure_says_of_columns_in_other_words_is_not_in_the_way(self, masked):
        name = "total_variation"
        for columns in ({"age": {"deep": 1}}, {"age": None}, ["age"], {}):
            found = replace(masked[name], details={"columns": columns})
            told = replace(masked, measurements={**masked.measurements, name: found})
            assert "total variation distance" in Page(assessment_page(told)).text.lower()

    def test_a_value_that_is_none_is_told(self, masked):
        found = replace(masked["suda"], value=math.nan, interval=(0.0, math.inf))
        told = replace(masked, measurements={**masked.measurements, "suda": found})
        for source in (assessment_page(told), assessment_fragment(told)):
            text = Page(source).text
            assert re.search(r"unique on few columns none ", text)
            assert "0 to endless" in text
            assert "nan" not in text.lower()

    def test_what_the_headline_says_is_not_said_again(self, original):
        found = assess(Swap(k=3).fit_transform(original), original=original)
        assert found.notes[0] == found.swapping.sentence
        text = Page(assessment_page(found)).text
        assert text.lower().count("swapped within groups of at least 3") == 1
        assert "Crowds do not protect this table" in text

    def test_a_sample_has_three_violins(self, sampled):
        text = Page(assessment_page(sampled)).text
        for title in ("Journalist risk, 1/F", "Certainty, f/F", "Prosecutor risk, 1/f"):
            assert text.count(title) == 1
        assert "of the people is in the table" in text
        assert "before sampling is" in text

    def test_a_plain_table_has_one(self, original):
        text = Page(assessment_page(assess(original))).text
        assert "Prosecutor risk, 1/f" in text
        assert "Journalist risk, 1/F" not in text

    def test_without_risks_there_is_none(self, original):
        found = assess(original, measures=["suda"])
        assert "violin" not in Page(assessment_page(found)).text.lower()

    @pytest.mark.parametrize("rows", [1, 2])
    def test_a_tiny_table(self, rows):
        table = Table(pl.DataFrame({"x": [1] * rows}), Roles(quasi_identifiers=["x"]))
        page = assessment_page(assess(table))
        assert "nan" not in page.lower().replace("governance", "")
        assert f"Violin: All records have 1 {'(certain)' if rows == 1 else 'in 2'}" in page

    def test_no_risk_of_a_single_record_can_be_read_back(self, sampled):
        """The page has summaries of the risks, not the list of them."""
        page = assessment_page(sampled)
        assert len(page) < 120_000
