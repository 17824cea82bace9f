"""The meaning that a masker records for its texts equals what can be read from the texts alone.

Measures in memory believe the masker; those of a release that was read from a file read. Both must
come to the same. Methods and tables are found by discovery.
"""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from decimal import Decimal

import hypothesis
import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Plan, Roles, Suppress, Swap, Table, protect
from shoal.errors import ShoalError, ShoalWarning
from shoal.table import Column, Domain, released_column
from shoal.table.columns._domain import read_domain
from shoal.table.columns._quantities import scale_of
from shoal.utility import normalized_certainty_penalty, variance_ratio
from shoal.workflow.release._profile import column_profiles

from ..parts.counting import counted
from ..snapshots import tables as snapshots
from .parts.registry import AWKWARD, MASKERS

TABLES = AWKWARD | {
    "odd": snapshots.odd,
    "calendar": snapshots.calendar,
    "survey": snapshots.survey,
    "braces": lambda: Table(
        pl.DataFrame({"x": ["{a, b}", "a", "b", "{a}", "[1, 2)", "7", "*", "a"] * 3}),
        Roles(quasi_identifiers=["x"]),
    ),
    "half floats": lambda: Table(
        pl.DataFrame({"x": pl.Series(np.arange(40) / 7, dtype=pl.Float32)}),
        Roles(quasi_identifiers=["x"]),
    ),
    "parts of seconds": lambda: Table(
        pl.DataFrame(
            {
                unit: pl.Series(np.arange(30) ** 5 * 7_919 + 3, dtype=pl.Int64).cast(
                    pl.Datetime(unit)
                )
                for unit in ("ms", "us", "ns")
            }
            | {"long": [dt.timedelta(microseconds=int(one) ** 5 * 7 + 1) for one in range(30)]}
        ),
        Roles(quasi_identifiers=["ms", "us", "ns", "long"]),
    ),
}
ALGORITHMS = {
    "full-domain": {"k": 2, "seconds": 0.2},
    "full-domain, stars": {
        "k": 2,
        "seconds": 0.2,
        "suppression_limit": 0.5,
        "suppressed": "kept",
    },
    "mondrian": {"algorithm": "mondrian", "k": 2},
    "local": {"algorithm": "local", "k": 2, "seconds": 0.1},
}
HIERARCHIES = {
    "widths": (Hierarchy.intervals([0.25, 5, 50], origin=3), [-0.3, 4.1, 77.0, 1e9, 12.25]),
    "widths of durations": (
        Hierarchy.intervals([10, 60]),
        [dt.timedelta(seconds=3.5 * one) for one in range(40)],
    ),
    "edges": (Hierarchy.intervals(edges=[[18, 30.5, 1e22], [30.5]]), [1, 18, 30, 31, 2**60]),
    "long edges": (
        Hierarchy.intervals(edges=[Decimal("0.1234567890123456789012345678901234"), 2]),
        [0.1, 0.2, 5.0],
    ),
    "rounding": (Hierarchy.rounding([0.1, 10]), [0.05, 0.1, 17.3, -4.0, 1e20]),
    "calendar": (
        Hierarchy.dates(["day", "month", "quarter", "year", "decade", "century"]),
        [dt.date(4, 7, 1), dt.date(1999, 12, 31), dt.date(2024, 2, 29)],
    ),
    "weeks": (Hierarchy.dates(["week", "iso-year"]), [dt.date(2021, 1, 1), dt.date(2024, 2, 29)]),
    "clock": (Hierarchy.dates(["minute", "hour"]), [dt.time(0, 1), dt.time(7, 59, 3)]),
    "prefixes": (Hierarchy.prefixes([3, 1]), ["1234", "12", "{a}", "9", "é345"]),
    "prefixes of numbers": (Hierarchy.prefixes([3, 1], pad=4), [7, 12, 1234, 99999]),
    "a tree of texts": (
        Hierarchy.tree({"{a, b}": ["a", "b"], "1-2": ["1", "2"]}),
        ["a", "b", "1", "2"],
    ),
    "a tree of numbers": (Hierarchy.tree({"1-2": ["1", "2"], "old": ["70"]}), [1, 2, 70]),
    "an ordered list": (Hierarchy.ordered(["low", "middle", "high"]), ["low", "high", "middle"]),
    "suppression": (Hierarchy.suppression(), [1.5, 1e300, -3.0]),
    "suppression of flags": (Hierarchy.suppression(), [True, False]),
}


def given(column: Column) -> dict[str, Domain]:
    """The recorded meaning of a column's texts."""
    return dict(column._domains)


def check(masked: Table, original: Table) -> int:
    """Compare recorded meanings with those read from the texts; return how many were recorded."""
    told = 0
    for name in masked.columns:
        column = masked.column(name)
        for scale, domain in given(column).items():
            told += 1
            assert scale == scale_of(original.kind(name))
            assert domain == read_domain(column.codes.texts, scale), name
            assert list(domain.meanings) == column.codes.texts
    return told


def fitted(step, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        try:
            return step.fit_transform(table)
        except ShoalError:
            return None


def check_all(masked: Table | None, original: Table) -> None:
    """The same, but every quasi-identifier that became text must have recorded meanings."""
    if masked is not None:
        made = [
            masked.column(name)
            for name in original.roles.quasi_identifiers
            if masked.kind(name) == "text" and masked.column(name) is not original.column(name)
        ]
        assert check(masked, original) == len(made)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "example", [one for one in MASKERS if one.into_text], ids=lambda example: example.id
)
def test_every_method_says_what_its_texts_mean(example, table):
    original = TABLES[table]()
    check_all(fitted(example.make(original), original), original)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_says_what_its_texts_mean(algorithm, table):
    original = TABLES[table]()
    check_all(fitted(Generalize(**ALGORITHMS[algorithm]), original), original)


@pytest.mark.parametrize("name", HIERARCHIES)
def test_every_level_of_a_hierarchy_says_what_its_texts_mean(name):
    hierarchy, values = HIERARCHIES[name]
    table = Table(pl.DataFrame({"x": [*values, None]}))
    written = 0
    for level in range(1, hierarchy.levels):
        written += check(hierarchy.generalize(table, "x", level), table)
    coded = hierarchy.codes(table, "x")
    everything = coded.meaning(range(coded.levels))
    if everything is not None:
        labels = [text for texts in coded.labels for text in texts if text is not None]
        assert everything.at(labels) == read_domain(labels, everything.scale)
    assert written == hierarchy.levels - 1 or name in ("a tree of numbers", "prefixes of numbers")


_FINITE = {"allow_nan": False, "allow_infinity": False}
VALUES = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "small": st.integers(-99, 99),
    "floats": st.floats(**_FINITE),
    "halves": st.floats(width=16, **_FINITE),
    "decimals": st.decimals(-9999, 9999, places=3),
    "dates": st.dates(),
    "moments": st.datetimes(),
    "clock": st.times(),
    "spans": st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
    "texts": st.text(alphabet="{}[](),-<>=*0123456789ab. ", max_size=7),
}


@pytest.mark.parametrize("kind", VALUES)
@hypothesis.settings(max_examples=15)
@hypothesis.given(data=st.data())
def test_whatever_the_values_are(kind, data):
    values = data.draw(st.lists(VALUES[kind], min_size=2, max_size=30))
    original = Table(pl.DataFrame({"x": values}), Roles(quasi_identifiers=["x"]))
    for algorithm in ("mondrian", "local"):
        check_all(fitted(Generalize(**ALGORITHMS[algorithm]), original), original)


@pytest.mark.parametrize("table", ["people", "calendar", "survey", "odd", "visits", "numbers"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_measure_reads_what_the_masker_wrote(algorithm, table):
    original = getattr(snapshots, table)(120)
    masked = fitted(Generalize(**ALGORITHMS[algorithm]), original)
    assert masked is not None
    with counted() as work:
        normalized_certainty_penalty(original, masked)
        variance_ratio(original, masked)
        column_profiles(original, masked)
        for name in original.roles.quasi_identifiers:
            released_column(name, original, masked)
    assert (work.parses, work.label_readings) == (0, 0)


def generalized() -> tuple[Table, Table]:
    table = snapshots.people()
    masked = fitted(Generalize("mondrian", k=4), table)
    assert masked is not None
    return table, masked


def test_rows_that_are_gone_leave_no_meaning_behind():
    _, masked = generalized()
    few = masked.keep(np.arange(len(masked)) < 9)
    for name in ("age", "height"):
        assert 0 < len(given(few.column(name))["numbers"].meanings) < 10
        assert given(few.scrubbed().column(name)) == given(few.column(name))


@pytest.mark.parametrize("later", [Swap(3), Suppress(where="sex = 'f'", target="records")])
def test_a_later_step_keeps_the_meaning(later):
    table, masked = generalized()
    again = fitted(later, masked)
    assert again is not None
    with counted() as work:
        for name in ("age", "height"):
            assert again.column(name).domain("float").ends is not None
    assert work.label_readings == 0
    check(again, table)


def test_meanings_stay_in_memory():
    table, masked = generalized()
    assert given(masked.column("age"))
    copied = pickle.loads(pickle.dumps(masked))
    assert not given(copied.column("age"))
    assert copied.column("age").domain("integer") == masked.column("age").domain("integer")
    for options in ALGORITHMS.values():
        step = Generalize(**options)
        fitted(step, table)
        assert b"shoal.table.columns._domain" not in pickle.dumps(step)


def test_texts_of_a_file_are_read_once(tmp_path):
    """They have the same meaning as in memory."""
    table, masked = generalized()
    masked.write(tmp_path / "masked.csv", format="csv")
    back = Table(pl.read_csv(tmp_path / "masked.csv"))
    with counted() as work:
        for name in ("age", "height"):
            for _ in range(2):
                read, told = (released_column(name, table, one) for one in (back, masked))
                assert read.low.tolist() == told.low.tolist()
                assert read.high.tolist() == told.high.tolist()
            assert back.column(name).domain("integer") == masked.column(name).domain("integer")
    assert work.label_readings == 2


def test_saving_writes_no_more_than_the_texts(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(snapshots.people(), Plan([Generalize("mondrian", k=4)]))
    release.save(tmp_path / "release")
    for file in (tmp_path / "release").rglob("*"):
        assert file.is_dir() or b"meanings" not in file.read_bytes()
