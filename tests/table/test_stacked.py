"""A column of two tables as codes and as numbers of one scale."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal.errors import InputError
from shoal.table import (
    Column,
    Table,
    shared_codes,
    shared_numbers,
    stacked_codes,
    stacked_numbers,
)


def stack(above, below):
    return stacked_numbers(
        "x", Table(pl.DataFrame({"x": above})), Table(pl.DataFrame({"x": below}))
    ).tolist()


def test_whole_numbers_keep_their_digits():
    top = 2**63 - 1
    assert np.diff(stack([top - 2, top - 1], [top])).tolist() == [0.25, 0.25]
    unsigned = pl.Series([2**64 - 2], dtype=pl.UInt64), pl.Series([2**64 - 1], dtype=pl.UInt64)
    assert stack(*unsigned) == [0.0, 0.5]
    assert stack([-(2**63)], [2**63 - 1]) == [0.0, 0.5]  # the range as a float is 2 ** 64


def test_floats_neither_overflow_nor_vanish():
    assert np.ptp(stack([-1.7e308], [1.7e308])) == pytest.approx(1.7e308 / 2**1023)
    assert stack([0.0, 5e-324], [1e-323]) == [0.0, 0.25, 0.5]


def test_whole_and_real_numbers():
    assert stack([1, None, 4], [0.5]) == pytest.approx([0.125, np.nan, 0.5, 0.0625], nan_ok=True)


def test_dates_and_moments_are_one_scale():
    days = [dt.date(1970, 1, 2)], [dt.datetime(1970, 1, 2, 12)]
    assert stack(*days) == [0.5, 0.75]
    with pytest.raises(InputError):
        stack([dt.date(1970, 1, 2)], [3])


def test_nothing_present():
    empty = pl.Series([None, None], dtype=pl.Float64)
    assert np.isnan(stack(empty, empty)).all()
    assert stack([0], [0]) == [0.0, 0.0]


def test_durations_beside_text():
    above = Table(pl.DataFrame({"x": [dt.timedelta(days=1), dt.timedelta(days=2)]}))
    below = Table(pl.DataFrame({"x": ["*", "P1D"]}))
    codes = stacked_codes("x", above, below)
    assert codes[0] == codes[3]
    assert len(set(codes.tolist())) == 3


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ([3, None, 7, 3], [7, 8]),
        ([0.5, 2.0, None], [None, 2.0]),
        ([2**62, 2**62 + 4], [2**62 + 8, None]),
        ([dt.date(2020, 1, 1), None], [dt.date(2020, 3, 1)]),
        ([1e-310, 3e-310], [None, 2e-310]),
    ],
)
def test_what_is_shared_by_code_is_stacked_by_row(above, below):
    upper, lower = (Table(pl.DataFrame({"x": x})) for x in (above, below))
    for one, other in ((upper, lower), (upper, upper)):
        first, second, unit = shared_numbers("x", one, other)
        stacked = stacked_numbers("x", one, other)
        *_, same_unit = shared_numbers("x", one, other, of_rows=True)
        rows = np.concatenate([first.of_rows, second.of_rows])
        np.testing.assert_array_equal(rows, stacked)
        assert unit == same_unit
        codes = [table.codes("x").codes for table in (one, other)]
        numbers = shared_codes("x", one, other)
        rows = np.concatenate([part[of] for part, of in zip(numbers, codes, strict=True)])
        assert rows.tolist() == stacked_codes("x", one, other).tolist()


def test_floats_that_all_differ_are_shared_by_row():
    rows = np.random.default_rng(1).normal(size=30_000)
    table = Table(pl.DataFrame({"x": rows}))
    rounded = Table(pl.DataFrame({"x": rows.round(2)}))
    first, second, unit = shared_numbers("x", table, rounded)
    assert first.codes is None
    assert second.codes is not None
    assert not table.column("x").is_coded
    stacked = stacked_numbers("x", table, rounded)
    *_, same_unit = shared_numbers("x", table, rounded, of_rows=True)
    assert np.concatenate([first.of_rows, second.of_rows]).tolist() == stacked.tolist()
    assert unit == same_unit


def test_changes_are_counted_once_however_rows_are_shuffled(monkeypatch):
    table = Table(pl.DataFrame({"x": [0.5, 1.5, 2.5, 3.5]}))
    masked = table.with_numbers({"x": np.array([0.5, 9.5, 8.5, 7.5])})
    assert masked.changed_count("x", table) == 3
    part, twice = masked.keep(np.array([True, True, False, False])), masked.reorder([1, 1, 2, 3])
    assert part.changed_count("x", table) == 1
    assert twice.changed_count("x", table) == 4
    assert masked.paired(table, np.array([1, 0, 2, 3])).changed_count("x", table) == 4
    monkeypatch.delattr(Column, "differs_from")
    assert masked.reorder([3, 1, 0, 2]).scrubbed().changed_count("x", table) == 3
    with pytest.raises(AttributeError):
        masked.reorder([3, 1, 0]).changed_count("x", table)
