"""Released texts read back: what a hierarchy wrote stands for the values it wrote it for."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Table
from shoal.table._released_column import Runs, runs_of
from shoal.table.columns._domain import read_domain
from shoal.table.columns._encode import encode
from shoal.table.columns._quantities import scale_name

DAYS = [dt.date(1899, 12, 31) + dt.timedelta(days=29 * i) for i in range(60)]
MOMENTS = [dt.datetime(2019, 12, 30, 23, 58) + dt.timedelta(minutes=977 * i) for i in range(50)]
CLOCK = [dt.time(h, m) for h in range(0, 24, 5) for m in (0, 1, 59)]
SPANS = [dt.timedelta(seconds=7 * i - 20) for i in range(12)]

WRITTEN = {
    "intervals": (Hierarchy.intervals(5, levels=3), range(-17, 40, 3)),
    "intervals of floats": (Hierarchy.intervals([0.25, 0.5]), [-0.3, 0.0, 0.24, 0.25, 1.1]),
    "intervals of durations": (Hierarchy.intervals(10), SPANS),
    "edges": (Hierarchy.intervals(edges=[[18, 30, 50, 65], [18, 65]]), range(10, 80, 4)),
    "dates": (Hierarchy.dates(["day", "month", "quarter", "year", "decade", "century"]), DAYS),
    "weeks": (Hierarchy.dates(["week", "iso-year"]), DAYS),
    "moments": (Hierarchy.dates(["minute", "hour", "day", "month"]), MOMENTS),
    "clock": (Hierarchy.dates(["minute", "hour"]), CLOCK),
    "prefixes": (Hierarchy.prefixes([4, 2, 1]), ["12345", "12399", "13345", "2345", "é2345"]),
    "prefixes of numbers": (Hierarchy.prefixes([3, 2], pad=5), [1234, 1299, 12345, 99999]),
    "suppression": (Hierarchy.suppression(), ["a", "b"]),
}


def read_labels(texts, column):
    return runs_of(read_domain(texts, scale_name(column)), column)


def members(runs: Runs, label: int) -> list[int]:
    found = [
        code
        for one, low, high in zip(runs.labels, runs.low, runs.high, strict=True)
        if one == label
        for code in range(low, high + 1)
    ]
    assert len(found) == len(set(found))
    return sorted(found)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_hierarchy_wrote_is_read_back(name):
    hierarchy, values = WRITTEN[name]
    table = Table(pl.DataFrame({"x": list(values)}))
    coded = hierarchy.codes(table, "x")
    for level in range(coded.levels):
        texts = list(coded.labels[level])
        runs, unread = read_labels(texts, coded.column)
        assert unread.tolist() == []
        for label in range(len(texts)):
            assert members(runs, label) == np.flatnonzero(coded.maps[level] == label).tolist()


def test_mixed_levels_are_read_together():
    """Local recoding releases a value beside an interval that holds it."""
    column = encode(pl.Series([20, 21, 25, 30]))
    runs, unread = read_labels(["20", "[20, 25)", "[20, 30]", "(20, 30)", "*"], column)
    assert unread.tolist() == []
    assert [members(runs, label) for label in range(5)] == [
        [0],
        [0, 1],
        [0, 1, 2, 3],
        [1, 2],
        [0, 1, 2, 3],
    ]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("<25", [0, 1]),
        (">=25", [2, 3]),
        ("> 25", [3]),
        ("≤25", [0, 1, 2]),
        ("[22, 24]", []),
        ("[-1e3, 25.0)", [0, 1]),
        ("[25, 20]", []),
        ("20..25", [0, 1, 2]),
        ("21-29", [1, 2]),
    ],
)
def test_ends_are_inside_or_outside(text, codes):
    runs, unread = read_labels([text], encode(pl.Series([20, 21, 25, 30])))
    assert unread.tolist() == []
    assert members(runs, 0) == codes


def test_ends_are_the_values_they_name():
    """Dates, and whole numbers that a float cannot tell apart."""
    large = encode(pl.Series([2**62, 2**62 + 1, 2**62 + 2]))
    runs, _ = read_labels([f"[{2**62 + 1}, {2**62 + 2}]"], large)
    assert members(runs, 0) == [1, 2]
    days = encode(pl.Series(DAYS))
    runs, _ = read_labels([f"[{DAYS[3]}, {DAYS[7]}]"], days)
    assert members(runs, 0) == [3, 4, 5, 6, 7]


def test_sets_need_every_part():
    column = encode(pl.Series(["a", "b", "c, d", "{a}"]))
    runs, unread = read_labels(["{a, b}", "{a, z}", "{a}", "{c, d}"], column)
    assert unread.tolist() == [1, 3]
    assert members(runs, 0) == [0, 1]
    assert members(runs, 2) == [3]  # a value that looks like a set is itself


@pytest.mark.parametrize("text", ["young", "[a, b]", "20 to 30", "[20, x)", "[20, nan]", "", "2*"])
def test_other_texts_are_not_guessed_at(text):
    runs, unread = read_labels([text], encode(pl.Series([20.5, 30.0])))
    assert unread.tolist() == [0]
    assert len(runs.labels) == 0


def test_nothing_to_read():
    runs, unread = read_labels([], encode(pl.Series([1, 2])))
    assert len(runs.labels) == len(unread) == 0
    runs, unread = read_labels(["*"], encode(pl.Series([None], dtype=pl.Int64)))
    assert len(runs.labels) == len(unread) == 0
