"""What a report says of steps for identifiers and dates, and of limits."""

from __future__ import annotations

import datetime as dt
import re
from html import unescape

import polars as pl
import pytest

import shoal as sh
from shoal import DatesToYear, Plan, Pseudonymize, Roles, ShiftDates, Table
from shoal.masking import write_key_file
from shoal.workflow.report._words import step_in_words

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def text_of(release):
    page = re.sub(r"(?s)<(style|script).*?</\1>", "", release.to_html())
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def released(*steps):
    frame = pl.DataFrame(
        {
            "nr": [f"H{n // 2:04}" for n in range(120)],
            "born": [dt.date(1935, 1, 1) + dt.timedelta(days=41 * (n // 2)) for n in range(120)],
            "came": [dt.date(2023, 1, 1) + dt.timedelta(days=3 * n) for n in range(120)],
            "sex": ["fm"[n // 2 % 2] for n in range(120)],
        }
    )
    roles = Roles(unit="nr", quasi_identifiers=["sex"], insensitive=["born", "came"])
    return sh.protect(Table(frame, roles), Plan(steps))


def test_what_each_step_does_not_protect_is_in_the_report(tmp_path):
    text = text_of(released(ShiftDates(days=90), Pseudonymize(["nr"])))
    assert "at most 90 to either side" in text
    assert "whoever recognizes one record of a person has all of them" in text
    assert "made for this release only" in text
    assert "days of the week and the order" in text
    assert "same key" not in text
    key = str(write_key_file(tmp_path / "one.key"))
    weekly = ShiftDates(weekdays=True, key_file=key)
    text = text_of(released(weekly, Pseudonymize(["nr"], shape="format", key_file=key)))
    assert "days of the week and the order" not in text
    assert "at most 365 to either side" in text
    assert "a key that other releases may share" in text
    assert text.count("with the same key") == 2
    assert "true value of somebody else" in text
    assert "one.key" not in text
    assert "narrows the date down" in text_of(released(DatesToYear(columns=["born"])))


def test_limits_are_told_as_limits():
    assert "top 90" in step_in_words("top_bottom_code", {"top": 90})
    assert "Tukey" not in step_in_words("top_bottom_code", {"top": 90, "bottom": 2})
    assert "1.5" in step_in_words("top_bottom_code", {"fence": 1.5})


@pytest.mark.parametrize(
    ("step", "unit"),
    [(10, "minute"), (2000, "hour"), (50_000, "day"), (30 * 86_400, "month|year")],
)
def test_ranges_of_moments_have_a_width_in_time(step, unit):
    start = dt.datetime(2026, 1, 1, 0, 0, 3)  # so that no whole minute is one record's
    seen = [start + n * dt.timedelta(seconds=step) for n in range(64)]
    table = sh.Table(pl.DataFrame({"seen": seen}), sh.Roles(quasi_identifiers=["seen"]))
    left = sh.protect(table, sh.Plan([sh.Generalize("mondrian", k=3)])).left["seen"]
    assert re.fullmatch(rf"ranges, half of them up to (a|\d+) ({unit})s?", left)


def test_fewest_blanks_are_no_condition():
    """What a blank tells is said: who is rare, with wildcards."""
    assert "at least 3 people" in step_in_words("suppress", {"k": 3})
    assert "known to be rare" not in step_in_words("suppress", {"k": 3})
    assert "known to be rare" in step_in_words("suppress", {"k": 3, "missing": "wildcard"})
    sets = step_in_words("suppress", {"k": 3, "combinations": [2], "missing": "wildcard"})
    assert "several sets" in sets


def test_blanks_are_told():
    frame = pl.DataFrame(
        {"job": ["a"] * 4 + ["c"] * 2 + ["b", None], "age": [30] * 3 + [39] * 2 + [41, 42, None]}
    )
    table = sh.Table(frame, sh.Roles(quasi_identifiers=["job", "age"]))
    left = sh.protect(table, sh.Plan([sh.Suppress(min_count=2)])).left
    assert left == {
        "job": "unchanged in 88 %, blank in 12 %",
        "age": "blank in 25 % of the records",
    }
    steps = [sh.Suppress(min_count=2, columns=["age"]), sh.Recode(magnitude=1, columns=["age"])]
    both = sh.protect(table, sh.Plan(steps)).left["age"]
    assert "blank in 25 %" in both


def test_what_is_left_is_told():
    left = released(DatesToYear(columns=["born"], earliest=1937), Pseudonymize(["nr"])).left
    assert left["born"] == "year"
    assert left["nr"] == "pseudonyms"
