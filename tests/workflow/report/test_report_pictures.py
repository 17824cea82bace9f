"""What the pictures and words of a report must not suggest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Plan, Roles, Swap, Table, assess, protect
from shoal.workflow.release._profile import Bar
from shoal.workflow.report import _figures as figures
from shoal.workflow.report import _words as words
from shoal.workflow.report import assessment_page

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def numbers(rows: int = 300) -> Table:
    draw = np.random.default_rng(3)
    frame = pl.DataFrame({"age": draw.integers(18, 90, rows), "weight": draw.normal(70, 9, rows)})
    return Table(frame, Roles(quasi_identifiers=["age", "weight"]))


def report_of(table: Table, plan: Plan, folder) -> str:
    public = protect(table, plan).save(folder / "release") / "public"
    return (public / "report.html").read_text("utf-8")


def test_numbers_that_became_intervals_are_drawn(tmp_path):
    """Boxes of Mondrian are as many as crowds: a list of them shows nothing."""
    page = report_of(numbers(), Plan([Generalize("mondrian", k=5)]), tmp_path)
    columns = page[page.index('id="columns"') : page.index('id="not"')]
    assert columns.count('class="chart"') == 2
    assert "Released intervals are drawn as if spread evenly over their width." in columns
    assert "all other values" not in columns


def test_crowds_of_a_swapped_table_are_not_called_its_risk(tmp_path):
    table = numbers()
    plan = Plan([Swap(k=3, dissimilarity="gower")])
    page = report_of(table, plan, tmp_path)
    assert "<h3>How likely it would be to be found</h3>" in page
    assert "<h3>How likely it is to be found</h3>" not in page
    page = assessment_page(assess(protect(table, plan).masked, original=table))
    assert "Who could be found without the swap" in page
    assert "<h3>How likely it is to be found</h3>" not in page
    page = assessment_page(assess(table))
    assert "Who can be found" in page
    assert "<h3>How likely it is to be found</h3>" in page


@pytest.mark.parametrize(
    ("method", "parameters", "told"),
    [
        ("swap", {"k": 5, "dissimilarity": "gower"}, "groups of at least 5 similar records"),
        ("rank_swap", {"percent": 5}, "at most 5\u00a0% of the records away"),
        ("microaggregate", {"k": 3}, "groups of at least 3 similar ones"),
        ("pram", {"keep": 0.8}, "with a probability of at least 0.8"),
        ("sample", {"fraction": 0.1}, "A share of 0.1 of the records"),
    ],
)
def test_steps_are_told_as_what_was_done(method, parameters, told):
    assert told in words.step_in_words(method, parameters)


def test_the_curve_ends_with_those_found_for_certain():
    """Nobody is above certain: a nought there would read as if nobody were found."""
    alone = [Bar("1", 70, 0), Bar("2", 10, 0), Bar("3+", 20, 100)]
    chart = figures.risk_chart(alone, [(1, 0.0), (2, 0.0), (3, 0.0), (5, 100.0)], 3)
    assert chart.before is not None
    assert chart.before.points[-2:] == ((1 / 2, 70.0), (1.0, 70.0))
    assert chart.after.points[-1] == (1.0, 0.0)
    joined = [Bar("1–2", 100, 0), Bar("3+", 0, 100)]  # who is alone is not told
    chart = figures.risk_chart(joined, [(1, 0.0), (2, 0.0), (3, 0.0)], 3)
    assert chart.before is not None
    assert chart.before.points == ((1 / 3, 100.0),)


def test_what_says_nothing_stands_beside_what_is_missing():
    bars = [Bar("0 to 1", 50, 40, 0, 1), Bar("*", 0, 10), Bar("missing", 50, 50)]
    chart = figures.histogram(bars)
    numbers, silent, missing = chart.columns
    assert numbers.x + numbers.width < silent.x
    assert silent.x + silent.width < missing.x
    assert [tick.label for tick in chart.x_ticks] == ["0", "1", "*", "missing"]
