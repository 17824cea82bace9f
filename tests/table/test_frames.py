"""The door for frames: what comes in is understood, and comes out as it was."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError

GAPS = {
    "whole": [1, None, 3],
    "share": [0.5, None, 1.5],
    "text": ["a", None, ""],
    "flag": [True, None, False],
    "day": [dt.date(2020, 1, 31), None, dt.date(1900, 1, 1)],
    "wage": [Decimal("1.50"), None, Decimal("-2.25")],
}


def test_the_same_comes_back(frame):
    table = Table(frame(GAPS))
    assert type(table.frame) is frame.type
    assert frame.columns(table.frame) == GAPS
    assert table.columns == list(GAPS)
    assert len(table) == 3
    kinds = ["integer", "float", "text", "boolean", "date", "float"]
    assert [table.kind(name) for name in GAPS] == kinds


def test_without_gaps_too(frame):
    columns = {name: [values[0], values[2]] for name, values in GAPS.items()}
    assert frame.columns(Table(frame(columns)).frame) == columns


def test_moments_and_times(frame):
    columns = {
        "moment": [dt.datetime(2020, 1, 31, 23, 59, 59), dt.datetime(1900, 1, 1)],
        "span": [dt.timedelta(days=1), dt.timedelta(seconds=-5)],
        "clock": [dt.time(23, 59), dt.time(0)],
    }
    table = Table(frame(columns))
    assert [table.kind(name) for name in columns] == ["datetime", "duration", "time"]
    back = frame.columns(table.frame)
    assert back == columns


def test_nan_is_missing(frame):
    table = Table(frame({"x": [1.5, float("nan"), 2.5]}))
    assert table.missing_count("x") == 1
    assert frame.columns(table.frame) == {"x": [1.5, None, 2.5]}


def test_column_names_that_polars_would_read_as_patterns(frame):
    """``*`` is all columns to polars."""
    columns = {
        "*": [1.5, None, 2.5],
        "^.*": [1, 1, 2],
        "text$": ["a", "b", "c"],
        "text": ["d", "e", "f"],
        "ümläut": [1, 2, 3],
        "a b": [1, 2, 3],
        '"': [1, 2, 3],
    }
    roles = Roles(identifiers=["text$"], quasi_identifiers=["*", "^.*"], insensitive=["text"])
    table = Table(frame(columns), roles)
    assert frame.columns(table.frame) == columns
    dropped = table.drop(["text$"])
    assert dropped.columns == [name for name in columns if name != "text$"]
    assert frame.columns(dropped.frame)["text"] == ["d", "e", "f"]
    assert table.drop(["*"]).columns == [name for name in columns if name != "*"]
    blanked = table.blank({"*": np.array([True, False, False])})
    assert frame.columns(blanked.frame) == columns | {"*": [None, None, 2.5]}
    assert table.class_sizes().tolist() == [1, 1, 1]
    assert table.scrubbed().columns == list(columns)


def test_a_column_may_be_called_as_shoal_calls_its_own():
    frame = pl.DataFrame({"size": [1, 1], "len": [1, 1], "_shoal_size": [2, 2], "row_key": [3, 3]})
    table = Table(frame, Roles(quasi_identifiers=frame.columns))
    assert table.classes.k == 2


# -- what the caller does afterwards does not matter


def test_a_changed_polars_frame_does_not_change_the_table():
    frame = pl.DataFrame({"x": [1, 2], "y": [1.5, 2.5]})
    table = Table(frame)
    frame[0, "x"] = 99
    frame.columns = ["a", "b"]
    assert table.frame.to_dict(as_series=False) == {"x": [1, 2], "y": [1.5, 2.5]}


def test_a_changed_polars_frame_of_plain_columns_does_not_change_the_table():
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    table = Table(frame)
    frame.drop_in_place("y")
    frame[0, "x"] = 99
    frame.columns = ["z"]
    assert table.columns == ["x", "y"]
    assert table.frame.to_dict(as_series=False) == {"x": [1, 2], "y": ["a", "b"]}


def test_a_changed_pandas_frame_does_not_change_the_table():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    floats = np.array([1.5, 2.5])
    frame = pandas.DataFrame({"x": [1, 2], "y": [1.5, 2.5], "z": ["a", "b"]})
    shared = pandas.DataFrame({"f": floats}, copy=False)
    table, other = Table(frame), Table(shared)
    frame.loc[0, "x"] = 99
    frame.loc[0, "y"] = 99.0
    frame.loc[0, "z"] = "c"
    floats[0] = 99.0
    assert table.frame.to_dict("list") == {"x": [1, 2], "y": [1.5, 2.5], "z": ["a", "b"]}
    assert other.frame["f"].tolist() == [1.5, 2.5]


def test_changing_what_came_out_does_not_change_the_table(frame):
    table = Table(frame({"x": [1, 2], "y": [1.5, 2.5]}))
    out = table.frame
    if frame.name == "polars":
        out.columns = ["a", "b"]
        out[0, "a"] = 99
        out.drop_in_place("b")
    if frame.name == "pandas":
        out.loc[0, "x"] = 99
        out.loc[0, "y"] = 99.0
        out["z"] = 1
    assert frame.columns(table.frame) == {"x": [1, 2], "y": [1.5, 2.5]}


# -- pandas


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas is not installed")


def test_the_index_of_pandas_is_left_behind(pandas):
    frame = pandas.DataFrame({"x": [1, 2]}, index=pandas.Index(["Ann", "Bo"], name="who"))
    out = Table(frame).frame
    assert out.columns.tolist() == ["x"]
    assert out.index.tolist() == [0, 1]
    assert out.index.name is None
    multi = pandas.DataFrame(
        {"x": [1, 2]}, index=pandas.MultiIndex.from_tuples([("Ann", 1), ("Bo", 2)])
    )
    assert Table(multi).frame.index.tolist() == [0, 1]


def test_positions_not_labels_count(pandas):
    frame = pandas.DataFrame({"x": [10, 20, 30]}, index=[2, 0, 2])
    table = Table(frame)
    assert table.frame["x"].tolist() == [10, 20, 30]
    assert table.row_key.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "dtype",
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 bool "
    "Int8 Int64 UInt16 Float32 Float64 boolean string".split(),
)
def test_types_of_pandas_come_back(pandas, dtype):
    values = ["a", "b"] if dtype == "string" else [1, 0]
    frame = pandas.DataFrame({"x": pandas.array(values, dtype=dtype)})
    out = Table(frame).frame
    assert out["x"].dtype == frame["x"].dtype
    assert out["x"].tolist() == frame["x"].tolist()


def test_categories_of_pandas_come_back_without_unused_ones(pandas):
    frame = pandas.DataFrame(
        {
            "text": pandas.Categorical(["u", "v", None], categories=["x", "v", "u"], ordered=True),
            "number": pandas.Categorical([2, 1, 2], categories=[3, 2, 1]),
        }
    )
    out = Table(frame).frame
    assert out["text"].cat.categories.tolist() == ["v", "u"], "in their order, without 'x'"
    assert out["text"].cat.ordered
    assert out["number"].cat.categories.tolist() == [2, 1]
    assert out["number"].tolist() == [2, 1, 2]


def test_dates_of_pandas_come_back_as_dates(pandas):
    days = [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)]
    out = Table(pandas.DataFrame({"day": days})).frame
    assert out["day"].tolist() == days
    moments = pandas.to_datetime(["2020-01-01 12:00", "2021-01-01 00:00"])
    frame = pandas.DataFrame({"moment": moments.tz_localize("Europe/Zurich")})
    assert Table(frame).frame["moment"].tolist() == frame["moment"].tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda pd: pd.DataFrame({"x": ["canary-7d1f", 1, None]}),
        lambda pd: pd.DataFrame({"x": [["canary-7d1f"], [2]]}),
        lambda pd: pd.DataFrame({"x": [{"canary-7d1f": 1}]}),
        lambda pd: pd.DataFrame({"x": [1 + 2j]}),
        lambda pd: pd.DataFrame({"x": [object()]}),
        lambda pd: pd.DataFrame({"x": [b"canary-7d1f"]}),
        lambda pd: pd.DataFrame({"x": pd.period_range("2020", periods=2, freq="D")}),
        lambda pd: pd.DataFrame({"x": pd.interval_range(0, 2)}),
        lambda pd: pd.DataFrame({"x": [2**70]}),
        lambda pd: pd.DataFrame({1: [2]}),
        lambda pd: pd.DataFrame({("a", "b"): [2]}),
        lambda pd: pd.DataFrame({"": [2]}),
        lambda pd: pd.DataFrame({" ": [2]}),
        lambda pd: pd.DataFrame([[1, 2]], columns=["a", "a"]),
        lambda pd: pd.Series([1]),
    ],
)
def test_what_pandas_holds_and_a_table_does_not(pandas, make):
    with pytest.raises(InputError, match=r"\.$") as caught:
        Table(make(pandas))
    assert "canary" not in str(caught.value)


# -- pyarrow and polars


def test_types_of_pyarrow_come_back():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    kinds = {
        "i8": pyarrow.array([1, None], pyarrow.int8()),
        "u64": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
        "f32": pyarrow.array([0.5, None], pyarrow.float32()),
        "text": pyarrow.array(["a", None], pyarrow.string()),
        "large": pyarrow.array(["a", None], pyarrow.large_string()),
        "day": pyarrow.array([dt.date(2020, 1, 1), None], pyarrow.date32()),
        "moment": pyarrow.array([dt.datetime(2020, 1, 1), None], pyarrow.timestamp("ms")),
        "wage": pyarrow.array([Decimal("1.50"), None], pyarrow.decimal128(7, 2)),
        "city": pyarrow.array(["a", None]).dictionary_encode(),
    }
    table = pyarrow.table(kinds)
    out = Table(table).frame
    assert out.schema.names == table.schema.names
    assert out.to_pydict() == table.to_pydict()
    for name in kinds:
        if name != "city":
            assert out.schema.field(name).type == table.schema.field(name).type
    assert pyarrow.types.is_dictionary(out.schema.field("city").type)


@pytest.mark.parametrize("values", [[3, None, 3], [0.5, None], [True, None], ["a", None]])
def test_dictionaries_of_pyarrow_come_back_with_their_type(values):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pyarrow.table({"x": pyarrow.array(values).dictionary_encode()})
    out = Table(table).frame
    assert out.schema.field("x").type == table.schema.field("x").type
    assert out.to_pydict() == {"x": values}


@pytest.mark.parametrize("kind", ["decimal256", "negative scale", "run ends"])
def test_a_column_that_polars_cannot_take_is_named_with_its_type(kind):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    odd = {
        "decimal256": lambda: pyarrow.array([Decimal("1.2")], pyarrow.decimal256(50, 2)),
        "negative scale": lambda: pyarrow.array([Decimal(100)], pyarrow.decimal128(5, -2)),
        "run ends": lambda: pyarrow.RunEndEncodedArray.from_arrays([1], ["canary-7d1f"]),
    }[kind]()
    with pytest.raises(
        InputError, match=r"column 'odd' \(of type (decimal|run_end).*\.$"
    ) as caught:
        Table(pyarrow.table({"fine": [1], "odd": odd}))
    assert "'fine'" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_column_of_pandas_that_mixes_types_is_named(pandas):
    with pytest.raises(InputError, match=r"column 'b' \(of type object\) mixes types"):
        Table(pandas.DataFrame({"a": [1, 2], "b": ["canary-7d1f", 1]}))


def test_a_name_that_polars_reads_as_a_pattern_is_refused():
    """``^…$`` is a regular expression to nearly every function of polars."""
    with pytest.raises(InputError, match="read as patterns"):
        Table(pl.DataFrame({"^a$": [1, 2]}))


@pytest.mark.parametrize("dtype", ["datetime64[s]", "datetime64[ns]", "timedelta64[s]"])
def test_units_of_time_of_pandas_come_back(pandas, dtype):
    frame = pandas.DataFrame({"x": np.array([86_400, 0]).astype(dtype)})
    assert Table(frame).frame["x"].dtype == frame["x"].dtype


def test_a_column_of_nothing_comes_back_as_such():
    frame = pl.DataFrame({"x": [None, None]})
    assert Table(frame).frame["x"].dtype == pl.Null


@pytest.mark.parametrize(
    "dtype", [pl.Int8(), pl.UInt32(), pl.Float32(), pl.Categorical(), pl.Enum(["a", "b", "c"])]
)
def test_types_of_polars_come_back(dtype):
    values = ["a", None, "b"] if dtype in (pl.Categorical, pl.Enum) else [1, None, 2]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    out = Table(frame).frame
    assert out["x"].to_list() == frame["x"].to_list()
    if dtype == pl.Enum:
        assert out["x"].dtype.categories.to_list() == ["a", "b"], "the unused one is gone"
    else:
        assert out["x"].dtype == dtype


def test_huge_integers_keep_every_digit():
    frame = pl.DataFrame(
        {
            "fits": pl.Series([2**63 - 1, None], dtype=pl.Int128),
            "unsigned": pl.Series([2**64 - 1, None], dtype=pl.Int128),
            "beyond": pl.Series([2**100, None], dtype=pl.Int128),
        }
    )
    out = Table(frame).frame
    assert out["fits"].to_list() == [2**63 - 1, None]
    assert out["unsigned"].to_list() == [2**64 - 1, None]
    assert str(out["beyond"][0]) == str(2**100)


def test_a_lazy_frame_is_collected():
    assert Table(pl.LazyFrame({"x": [1]})).frame.to_dict(as_series=False) == {"x": [1]}


@pytest.mark.parametrize(
    "what",
    [
        {"x": [1]},
        [1],
        None,
        np.ones((2, 2)),
        pl.Series([1]),
        pl.DataFrame({"x": [[1]]}),
        pl.DataFrame({"x": [{"a": 1}]}),
        pl.DataFrame({"x": [b"canary-7d1f"]}),
        pl.DataFrame({"x": [object()]}),
        pl.DataFrame({"": [1]}),
    ],
)
def test_what_is_no_frame_or_holds_no_plain_values(what):
    with pytest.raises(InputError, match=r"\.$") as caught:
        Table(what)
    assert "canary" not in str(caught.value)


def test_a_table_is_no_frame():
    with pytest.raises(InputError, match="already a Table"):
        Table(Table(pl.DataFrame({"x": [1]})))
    with pytest.raises(InputError, match=r"shoal\.Roles"):
        Table(pl.DataFrame({"x": [1]}), ["x"])


def test_an_empty_frame(frame):
    table = Table(frame({"x": []}))
    assert len(table) == 0
    assert table.columns == ["x"]
    assert table.classes.k == 0
    assert Table(pl.DataFrame()).columns == []
