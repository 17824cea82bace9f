"""Columns as codes and back, for every type of column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.table import Column, Domain
from shoal.table.columns._domain import interval_meanings
from shoal.table.columns._encode import Codes, Labels, combine, decode, encode

from ..parts.counting import counted

UTC = dt.UTC
DECADES = Domain(
    "numbers", interval_meanings(["20", "30"], ["30", "40"], np.array([[20.0, 30.0], [30.0, 40.0]]))
)
COLUMNS = {
    "bool": pl.Series([True, False, True]),
    "int8": pl.Series([-128, 127, -128], dtype=pl.Int8),
    "int64": pl.Series([2**63 - 1, -(2**63), 0]),
    "uint64": pl.Series([2**64 - 1, 0, 2**63], dtype=pl.UInt64),
    "int128": pl.Series([2**100, -(2**100), 2**36], dtype=pl.Int128),
    "uint128": pl.Series([2**128 - 1, 0, 2**36], dtype=pl.UInt128),
    "float64": pl.Series([float("inf"), -1e308, 5e-324]),
    "float32": pl.Series([0.1, -3.0, 0.1], dtype=pl.Float32),
    "decimal": pl.Series([Decimal("1.50"), Decimal("-3"), Decimal("1.5")], dtype=pl.Decimal(38, 2)),
    "date": pl.Series([dt.date(2020, 2, 29), dt.date(1899, 1, 1), dt.date(1970, 1, 1)]),
    "datetime": pl.Series([dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(1, 1, 1, tzinfo=UTC)]),
    "time": pl.Series([dt.time(23, 59), dt.time(0), dt.time(12)]),
    "duration": pl.Series([dt.timedelta(days=1), dt.timedelta(seconds=-1)]),
    "text": pl.Series(["b", "", "Ünïcödé that is longer than twelve bytes", "a", "b"]),
    "binary": pl.Series([b"b", b"", b"a"]),
    "categorical": pl.Series(["b", "a", "c"], dtype=pl.Categorical),
    "enum": pl.Series(["low", "high", "low"], dtype=pl.Enum(["none", "low", "high"])),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("gaps", [False, True])
def test_every_type(kind: str, gaps: bool) -> None:
    series = COLUMNS[kind].alias(kind)
    if gaps:
        series = series.extend_constant(None, 2).gather([*range(len(series) + 2)][::-1])
    column = encode(series)
    back = decode(column)
    assert back.equals(series, check_dtypes=True, check_names=True)
    assert column.name == kind
    assert column.levels.dtype == series.dtype
    # Distinct values in order, then missing.
    assert column.levels.equals(series.unique().drop_nulls().sort())
    assert column.count == series.n_unique()
    assert column.missing == (column.count - 1 if gaps else None)
    assert (column.codes.max(), column.codes.dtype) == (column.count - 1, np.uint8)


def test_enum_keeps_its_declared_order() -> None:
    series = pl.Series(["low", "high", "none"], dtype=pl.Enum(["none", "low", "high"]))
    assert encode(series).codes.tolist() == [1, 2, 0]


def test_categories_are_in_the_order_of_their_text() -> None:
    assert encode(pl.Series(["b", "a", None], dtype=pl.Categorical)).codes.tolist() == [1, 0, 2]


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_zeros_are_equal_and_nan_is_missing(dtype: type[pl.DataType]) -> None:
    series = pl.Series([0.0, float("nan"), -0.0, None, -1.0], dtype=dtype)
    column = encode(series)
    assert column.codes.tolist() == [1, 2, 1, 2, 0]
    assert column.missing == 2
    assert str(column.levels[1]) == "0.0"
    assert decode(column).to_list() == [0.0, None, 0.0, None, -1.0]


@pytest.mark.parametrize("rest", [[], [None]])
def test_negative_zero_is_zero(rest: list[None]) -> None:
    column = encode(pl.Series([-0.0, 0.0, *rest]))
    assert column.codes.tolist() == [0, 0, 1][: 2 + len(rest)]
    assert str(column.levels[0]) == "0.0"


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String, pl.Float64, pl.Null, pl.Boolean])
def test_entirely_missing(dtype: type[pl.DataType]) -> None:
    column = encode(pl.Series("x", [None, None], dtype=dtype))
    assert (column.codes.tolist(), column.count, column.missing) == ([0, 0], 1, 0)
    assert decode(column).to_list() == [None, None]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String, pl.Float64, pl.Null, pl.Categorical])
def test_no_records(dtype: type[pl.DataType]) -> None:
    column = encode(pl.Series("x", [], dtype=dtype))
    assert (column.codes.tolist(), column.count, column.missing) == ([], 0, None)
    assert decode(column).to_list() == []


@pytest.mark.parametrize(
    ("count", "dtype"),
    [(256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.uint32)],
)
def test_codes_are_as_narrow_as_they_can_be(count: int, dtype: type) -> None:
    values = pl.int_range(count, eager=True).reverse()
    column = encode(values)
    assert column.codes.dtype == dtype
    assert column.codes.tolist() == values.to_list()
    with_missing = encode(values.head(count - 1).extend_constant(None, 1))
    assert (with_missing.codes.dtype, with_missing.missing) == (dtype, count - 1)


def test_slices_and_chunks() -> None:
    parts = [pl.Series("x", [5, 1, 5])[1:], pl.Series("x", [1, 7])]
    column = encode(pl.concat(parts, rechunk=False))
    assert column.codes.tolist() == [0, 1, 0, 2]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)))
def test_integers_round_trip(values: list[int | None]) -> None:
    column = encode(pl.Series(values, dtype=pl.Int64))
    present = sorted({v for v in values if v is not None})
    ranks = {v: rank for rank, v in enumerate(present)} | {None: len(present)}
    assert column.codes.tolist() == [ranks[v] for v in values]


@given(st.lists(st.none() | st.text(max_size=30) | st.sampled_from(["a", "b", "a" * 20])))
def test_text_round_trips(values: list[str | None]) -> None:
    column = encode(pl.Series(values, dtype=pl.String))
    assert decode(column).to_list() == values
    assert column.levels.to_list() == sorted({v for v in values if v is not None}, key=str.encode)


@given(st.lists(st.none() | st.floats()))
def test_floats_round_trip(values: list[float | None]) -> None:
    expected = [None if v is None or v != v else v + 0.0 for v in values]
    assert decode(encode(pl.Series(values, dtype=pl.Float64))).to_list() == expected


def test_colliding_hashes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true_hash = pl.Series.hash

    def weak_at_first(series: pl.Series, seed: int = 0) -> pl.Series:
        return true_hash(series, seed=seed) // (2**63 if seed < 2 else 1)

    monkeypatch.setattr(pl.Series, "hash", weak_at_first)
    assert encode(pl.Series(list("abcdea"))).codes.tolist() == [0, 1, 2, 3, 4, 0]
    monkeypatch.setattr(pl.Series, "hash", lambda series, seed=0: true_hash(series, seed=seed) * 0)
    with pytest.raises(RuntimeError, match="collide"):
        encode(pl.Series(list("abc")))


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]], ids=["list", "struct"])
def test_nested_columns_are_refused(values: list[Any]) -> None:
    with pytest.raises(InputError, match=r"Column 'visits' has (List|Struct) values"):
        encode(pl.Series("visits", values))


def test_nothing_of_a_cell_in_the_repr() -> None:
    column = encode(pl.Series("name", ["Ada Lovelace", None]))
    assert repr(column) == "Codes('name', records=2, count=2)"


def test_codes_are_frozen_and_the_given_array_is_not() -> None:
    column = encode(pl.Series([1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        column.codes[0] = 1
    mine = np.array([1, 1], np.uint8)
    other = column.with_codes(mine)
    mine[0] = 0
    assert decode(other).to_list() == [1, 2]


def test_the_series_is_not_touched() -> None:
    series = pl.Series([3, 1, 2])
    encode(series)
    assert series.to_list() == [3, 1, 2]


def column_of(codes: Any, count: int) -> Codes:
    return Codes(np.asarray(codes, np.uint32), pl.int_range(count, eager=True))


def test_no_columns() -> None:
    assert combine([], 3).tolist() == [0, 0, 0]
    assert combine([], 0).tolist() == []


def test_mixed_radix() -> None:
    keys = combine([column_of([0, 1, 1], 2), column_of([3, 0, 3], 4)], 3)
    assert keys.tolist() == [0 * 4 + 3, 1 * 4 + 0, 1 * 4 + 3]


def test_once_all_records_differ_no_more_columns_are_taken() -> None:
    def columns() -> Iterator[Codes]:
        yield column_of([1, 0, 2], 3)
        raise AssertionError("nobody needs it")

    assert combine(columns(), 3).tolist() == [1, 0, 2]


def test_as_many_codes_as_records_may_still_be_shared() -> None:
    keys = combine([column_of([1, 1, 0], 3), column_of([0, 0, 1], 2)], 3)
    assert keys.tolist() == [2, 2, 1]


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="has 1 records, but the table has 3"):
        combine([column_of([0], 1)], 3)


@pytest.mark.parametrize("columns", [1, 2, 3, 200])
@pytest.mark.parametrize("count", [1, 2, 300, 2**31])
def test_keys_are_equal_where_tuples_are(columns: int, count: int) -> None:
    """Up to 6,200 bits of key: more than any number holds."""
    rng = np.random.default_rng(columns)
    base = rng.integers(0, count, (20, columns))
    base[1] = base[0]
    base[1, -1] = (base[0, -1] + 1) % count  # differs in the last column only
    base[2] = base[0]
    base[2, 0] = (base[0, 0] + 1) % count  # differs in the first column only
    matrix = base[rng.integers(0, 20, 400)]
    # The levels only say how many codes there are: a lazy stand-in for 2**31 values.
    levels = pl.repeat(0, min(count, 2**16), eager=True)
    parts = [Wide(np.asarray(c, np.uint32), levels).of(count) for c in matrix.T]
    keys = combine(parts, 400)
    _, by_key = np.unique(keys, return_inverse=True)
    _, by_tuple = np.unique(matrix, axis=0, return_inverse=True)
    assert len(set(zip(by_key.tolist(), by_tuple.tolist(), strict=True))) == by_key.max() + 1
    assert by_key.max() == by_tuple.max()


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_large_keys_stay_apart_for_codes_of_every_type(kind: type[np.integer[Any]]) -> None:
    """Floats would round keys above 2**53, and different records would be equal."""
    last = Labels("last", np.array([0, 1, 2, 3, 3], kind), 4)
    others = [Labels("other", np.full(5, 99, kind), 100) for _ in range(9)]
    assert len(np.unique(combine([*others, last], 5))) == 4


class Wide(Codes):
    """A column that claims more levels than it lists."""

    def of(self, count: int) -> Wide:
        object.__setattr__(self, "claimed", count)
        return self

    @property
    def count(self) -> int:
        return self.claimed  # type: ignore[attr-defined]


def test_exactly_64_bits_need_no_repacking() -> None:
    top = Wide(np.array([2**32 - 1, 0], np.uint32), pl.Series([0])).of(2**32)
    assert combine([top, top], 2).tolist() == [2**64 - 1, 0]
    more = column_of([1, 1], 2)
    assert combine([top, top, more], 2).tolist() == [1, 3]


def test_infinite_values_stand_away_from_all_others_and_warn_nobody():
    assert encode(pl.Series([-np.inf, 1.0, 3.0, np.inf, None])).positions.tolist() == [
        -2,
        0,
        1,
        3,
        2,
    ]


def test_a_row_that_is_nowhere_is_missing_and_texts_keep_their_meanings():
    known = Column.of_labels("age", ["[20, 30)", "[30, 40)"], np.array([0, 1, 1]), DECADES)
    with counted() as work:
        taken = known.at(np.array([1, -1, 0, 1])).at(np.array([0, 1, 3]))
        assert taken.series.to_list() == ["[30, 40)", None, "[30, 40)"]
        assert taken.codes.levels.to_list() == ["[30, 40)"]
        assert taken.domain("integer").ends.tolist() == [[30.0, 40.0]]
    assert (work.encodes, work.parses, work.label_readings) == (0, 0, 0)


def test_numbers_that_do_not_change_are_the_same_column():
    ages = Column(pl.Series("age", [31, None, 40]))
    assert ages.with_numbers(np.array([31, 7, 40]), keep_equal=False) is ages
    assert ages.with_numbers(np.array([31, 7, 41]), keep_equal=False) is not ages


@pytest.mark.parametrize("values", [list("aab"), [1, 1, 2]])
def test_cells_that_repeat_are_freed_once_they_are_coded(values):
    column = Column(pl.Series("x", values * 50))
    cells = column.series
    assert column.codes.count == 2
    assert column.series is not cells
    assert column.series.equals(cells)
