"""The ends of a box are cuts, not people: knowing the algorithm, nobody reads a value off them."""

from __future__ import annotations

import datetime as dt
import warnings
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal as sh
from shoal.errors import NothingLeftWarning
from shoal.table import released_column


def boxes(columns, k=3, **options):
    """A table of quasi-identifiers, and what Mondrian releases of it."""
    frame = columns if isinstance(columns, pl.DataFrame) else pl.DataFrame(columns)
    table = sh.Table(frame, sh.Roles(quasi_identifiers=frame.columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        return table, sh.Generalize("mondrian", k=k, **options).fit_transform(table)


def ends_of(text):
    """The written ends of a released interval; None if it is open."""
    if text is None or text == "*":
        return None, None
    if text.startswith("<"):
        return None, text[1:]
    if text.startswith(">="):
        return text[2:], None
    return tuple(text[1:-1].split(", ")) if text.startswith("[") else (None, None)


@pytest.fixture(scope="module")
def demo():
    """The table of the demo, as 'shoal init' releases it."""
    frame = pl.read_csv(str(files("shoal.app.demo") / "people.csv"), try_parse_dates=True)
    numbers = [name for name in frame.columns if frame[name].dtype.is_numeric()]
    return boxes(frame.select(numbers), k=5)


def test_no_end_is_the_value_of_one_record(demo):
    """1,371 of 1,714 ends were the value of one member of the class, and named 1,063 of 2,000."""
    table, masked = demo
    quoted = looked_at = 0
    for name in table.columns:
        counts = dict(table.frame[name].value_counts().iter_rows())
        for text in masked.frame[name].cast(pl.String).unique():
            for end in ends_of(text):
                if end is not None:
                    looked_at += 1
                    quoted += counts.get(float(end), 0) == 1
    assert looked_at > 500
    assert quoted == 0


def test_an_end_singles_out_no_better_than_any_value_of_the_box(demo):
    """'In this box and equal to its end' isolated one record in 100 % of the tries."""
    table, masked = demo
    rng = np.random.default_rng(0)
    at_ends, anywhere = [], []
    for name in table.columns:
        values = table.frame[name].to_numpy()
        texts = masked.frame[name].cast(pl.String).to_list()
        for rows in np.split(
            np.argsort(masked.classes.labels, kind="stable"), np.cumsum(masked.classes.sizes)[:-1]
        ):
            inside = values[rows]
            low, high = ends_of(texts[rows[0]])
            for end in (low, high):
                if end is None:
                    continue
                at_ends.append((inside == float(end)).sum() == 1)
                span = float(low or inside.min()), float(high or inside.max())
                drawn = rng.uniform(*span)
                drawn = np.floor(drawn) if values.dtype.kind == "i" else round(drawn, 2)
                anywhere.append((inside == drawn).sum() == 1)
    assert np.mean(at_ends) <= np.mean(anywhere) + 0.02


def test_the_extremes_of_the_table_are_open(demo):
    """Nobody learns the highest age or income, not even a round number above it."""
    table, masked = demo
    for name in table.columns:
        values, texts = table.frame[name], masked.frame[name].cast(pl.String)
        shown = [ends_of(text) for text in texts]
        assert all(shown[row][1] is None for row in np.flatnonzero(values == values.max()))
        assert all(shown[row][0] is None for row in np.flatnonzero(values == values.min()))


def test_neighbouring_days_of_one_person_each():
    """No day is between them, so that each box would end beyond all days: nothing is told."""
    days = [dt.date(1980, 2, day) for day in range(3, 9)]
    _, masked = boxes({"born": days})
    assert set(masked.frame["born"]) == {"*"}


def test_days_of_one_person_each_with_gaps():
    """Each box ends at a day that is nobody's."""
    days = [dt.date(1980, 2, day) for day in range(3, 15, 2)]
    table, masked = boxes({"born": days})
    assert masked.frame["born"].n_unique() == 2
    for text in masked.frame["born"].unique():
        assert not set(ends_of(text)) & {str(day) for day in days}
    read = released_column("born", table, masked)
    assert read.reading == "labels"
    assert read.stands_for(read.labels, read.values).all()


@pytest.mark.parametrize("unit", [1, 100, 0.01])
def test_a_cut_is_not_finer_than_the_values(unit):
    """Half a year between 40 and 41 would reveal that exactly one person is 41."""
    values = np.random.default_rng(5).permutation(260)[:200] * unit
    _, masked = boxes({"x": values.round(2) if unit < 1 else values}, k=5)
    ends = {end for text in masked.frame["x"].unique() for end in ends_of(text)} - {None}
    assert len(ends) > 10
    assert {float(end) / unit % 1 < 1e-6 or float(end) / unit % 1 > 1 - 1e-6 for end in ends} == {
        True
    }


def test_a_record_that_is_alone_in_a_box_is_not_quoted():
    """k-map allows a box of one record among many people of the population."""
    ages = pl.DataFrame({"age": [23, *[40] * 30]})
    everyone = pl.DataFrame({"age": [23] * 20 + [40] * 60})
    table = sh.Table(ages, sh.Roles(quasi_identifiers=["age"]))
    step = sh.Generalize("mondrian", models=sh.KMap(10, population=sh.Table(everyone)))
    released = step.fit_transform(table).frame["age"].to_list()
    assert released[0] not in ("23", released[1])
    assert released[1] == "40"


KINDS = {
    "numbers": (st.integers(-50, 50), pl.Int64),
    "large numbers": (st.integers(-(2**63), 2**63 - 1), pl.Int64),
    "unsigned": (st.integers(0, 2**64 - 1), pl.UInt64),
    "floats": (st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), pl.Float64),
    "dates": (st.integers(-9000, 9000), pl.Date),
    "moments": (st.integers(-(10**15), 10**15), pl.Datetime("us")),
    "times": (st.integers(0, 86_399).map(lambda second: second * 10**9), pl.Time),
    "durations": (st.integers(-(10**9), 10**12), pl.Duration("us")),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_every_box_is_true_and_quotes_nobody(kind, data):
    """Any values, ties and gaps, strict and relaxed: read back as a reader would."""
    values, dtype = KINDS[kind]
    drawn = data.draw(st.lists(st.one_of(values, values, st.none()), min_size=6, max_size=40))
    relaxed = data.draw(st.booleans())
    column = pl.Series("x", drawn, dtype=pl.Int64 if dtype.is_temporal() else dtype).cast(dtype)
    if column.null_count() == len(column):
        return
    table, masked = boxes(column.to_frame(), relaxed=relaxed)
    assert masked.classes.k >= 3
    if masked.frame["x"].dtype == dtype:
        return  # every value is that of a crowd
    read = released_column("x", table, masked)
    there = (read.values >= 0) & (read.labels >= 0)
    assert read.stands_for(read.labels[there], read.values[there]).all()
    counts = table.codes("x")
    alone = {
        text for text, n in zip(counts.texts, np.bincount(counts.codes), strict=False) if n == 1
    }
    for text in masked.frame["x"].drop_nulls().unique():
        assert text not in alone
        assert not alone & {*ends_of(text)}


@pytest.mark.parametrize(
    "values", [[52.5200066 + n * 1.42e-14 for n in range(200)], [1e15 + n / 4 for n in range(200)]]
)
def test_labels_of_floats_that_need_every_digit_are_true(values):
    table = sh.Table(pl.DataFrame({"x": values}), sh.Roles(quasi_identifiers=["x"]))
    masked = sh.Generalize("mondrian", k=5).fit_transform(table)
    assert masked.frame["x"].n_unique() > 10
    for value, text in zip(values, masked.frame["x"], strict=True):
        low, high = -np.inf, np.inf
        if text.startswith("["):
            low, high = (float(end) for end in text[1:-1].split(", "))
        elif text.startswith("<"):
            high = float(text[1:])
        elif text.startswith(">="):
            low = float(text[2:])
        assert low <= value < high or text == str(value), text
