"""Hierarchies that list their values: rows, files, ordered lists, trees; and what they lack."""

from __future__ import annotations

import datetime as dt
import stat
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Hierarchy, Table
from shoal.errors import InputError, ReadError

from .ladders import ascending, check_ladder

TOWNS = [
    ["Bern", "Switzerland", "Europe", "*"],
    ["Jena", "Germany", "Europe", "*"],
    ["Kiel", "Germany", "Europe", "*"],
    ["Osaka", "Japan", "Asia", "*"],
]


def table_of(values, dtype=None):
    return Table(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


def test_leaves_count_the_rows_of_the_list_and_not_of_the_table():
    codes = Hierarchy.from_rows(TOWNS).codes(table_of(["Jena", "Osaka", "Jena"]), "x")
    check_ladder(codes)
    assert codes.labels[1:3] == (("Germany", "Japan"), ("Europe", "Asia"))
    assert codes.leaves.tolist() == [[1, 1], [2, 1], [3, 1], [4, 4]]
    assert codes.domain == 4


def test_a_missing_value_has_a_chain_of_its_own():
    hierarchy = Hierarchy.from_rows(TOWNS)
    table = table_of(["Jena", None])
    codes = hierarchy.codes(table, "x")
    check_ladder(codes)
    assert codes.maps[:, 1].tolist() == [1, 1, 1, 0]
    assert codes.leaves[:, 1].tolist() == [1, 1, 1, 5]
    assert codes.domain == 5
    assert hierarchy.generalize(table, "x", 2).frame["x"].to_list() == ["Europe", None]
    assert hierarchy.generalize(table, "x", 3).frame["x"].to_list() == ["*", "*"]


def test_level_0_keeps_the_type_of_the_column():
    table = table_of([1, 2])
    hierarchy = Hierarchy.from_rows([[1, "low"], [2, "low"], [3, "high"]])
    assert hierarchy.generalize(table, "x", 0).frame["x"].dtype == pl.Int64
    assert hierarchy.generalize(table, "x", 1).frame["x"].to_list() == ["low", "low"]
    for level in (-1, 3, True):
        with pytest.raises(InputError, match="0 to 2"):
            hierarchy.generalize(table, "x", level)


def test_a_generalized_column_is_text_in_every_library(frame):
    table = Table(frame({"n": [1, 2, None], "t": ["a", "b", "a"]}))
    masked = Hierarchy.rounding([10]).generalize(table, "n", 1)
    masked = Hierarchy.from_rows([["a", "v"], ["b", "v"], ["c", "w"]]).generalize(masked, "t", 1)
    assert frame.columns(masked.frame) == {"n": ["0", "0", None], "t": ["v", "v", "v"]}
    assert type(masked.frame) is frame.type


def test_a_generalized_category_leaves_its_categories_behind():
    hierarchy = Hierarchy.from_rows([["a", "v"], ["b", "w"]])
    for dtype in (pl.Enum(["a", "b"]), pl.Categorical):
        masked = hierarchy.generalize(table_of(["a", "b"], dtype), "x", 1)
        assert masked.frame["x"].dtype == pl.String
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": pandas.Categorical(["a", "b"])})
    masked = hierarchy.generalize(Table(frame), "x", 1)
    assert masked.frame["x"].tolist() == ["v", "w"]


# -- matching values with texts


@pytest.mark.parametrize(
    ("values", "leaves", "dtype"),
    [
        ([39, -1], ["39.0", "-1", "?", "0.5"], pl.Int16),
        ([2**64 - 1, 0], [str(2**64 - 1), "0", "?"], pl.UInt64),
        ([39.0, -0.0], ["39", "0", "nan", "inf"], pl.Float64),
        ([Decimal("1.10"), Decimal("2")], ["1.1", "2.00", "x"], pl.Decimal(12, 2)),
        ([True, False], ["True", "false"], pl.Boolean),
        ([dt.date(2020, 2, 29)], ["2020-02-29", "never"], pl.Date),
        ([dt.datetime(2020, 2, 29, 5, 30)], ["2020-02-29 05:30:00", "?"], pl.Datetime("us")),
        ([dt.time(5, 30)], ["05:30:00", "?"], pl.Time),
        (["a", " a", ""], ["a", " a", ""], pl.String),
    ],
)
def test_values_are_found_by_what_they_are(values, leaves, dtype):
    hierarchy = Hierarchy.from_rows([[leaf, f"of {leaf}"] for leaf in leaves])
    table = table_of(values, dtype)
    assert hierarchy.uncovered(table, "x") == 0
    check_ladder(hierarchy.codes(table, "x"))
    released = hierarchy.generalize(table, "x", 1).frame["x"].to_list()
    assert released == [f"of {leaf}" for leaf in leaves[: len(values)]]


@given(st.lists(st.integers(-5, 30), min_size=1))
def test_a_list_gives_each_value_its_row(values):
    rows = {n: (str(n), f"<{n // 4}>", f"<<{n // 12}>>", "*") for n in range(30, -6, -1)}
    codes = Hierarchy.from_rows(rows.values()).codes(table_of(values), "x")
    check_ladder(codes)
    assert ascending(codes), "the file goes down, the codes go up"
    for level in range(4):
        found = [codes.labels[level][node] for node in codes.maps[level][codes.column.codes]]
        assert found == [rows[value][level] for value in values]
    everything = list(rows.values())
    for level in range(1, 3):
        for at, value in enumerate(codes.column.levels.to_list()):
            alike = [int(row[0]) for row in everything if row[level] == rows[value][level]]
            assert codes.leaves[level, at] == len(alike)
            bounds = codes.bounds(level)[codes.maps[level, at]]
            assert bounds.tolist() == [min(alike), max(alike)]


def test_texts_keep_the_order_of_the_list():
    hierarchy = Hierarchy.ordered(["low", "middle", "high"], groups=[2, 1])
    codes = hierarchy.codes(table_of(["high", "low", "middle"]), "x")
    assert codes.labels[1] == ("low..middle", "high")


# -- what a list lacks


def test_values_that_are_lacking_are_counted_and_never_named():
    hierarchy = Hierarchy.from_rows(TOWNS)
    table = table_of(["Jena", "Secretville", "Hiddenham", None])
    assert hierarchy.uncovered(table, "x") == 2
    with pytest.raises(InputError, match="column 'x' lacks 2 of its 3 values") as told:
        hierarchy.codes(table, "x")
    assert "ville" not in str(told.value)
    assert "covering" in str(told.value)


def test_values_that_are_lacking_can_be_added_under_the_root():
    hierarchy, table = Hierarchy.from_rows(TOWNS), table_of(["Jena", "Graz", "Rome", None])
    full = hierarchy.covering(table, "x")
    assert full.uncovered(table, "x") == 0
    assert full == hierarchy.extended(["Graz", "Rome", "Jena", None])
    codes = full.codes(table, "x")
    check_ladder(codes)
    assert codes.labels[1] == ("Germany", "*", None)
    assert codes.domain == 7
    assert codes.leaves[1].tolist() == [7, 2, 7, 1], "whoever reads * learns nothing"
    assert full.covering(table, "x") is full
    numbers = Hierarchy.intervals(5)
    assert numbers.extended([1]) is numbers
    assert numbers.covering(table, "x") is numbers


def test_an_unseen_value_is_the_root_or_the_nearest():
    hierarchy, table = Hierarchy.from_rows(TOWNS), table_of(["Jena", "Graz"])
    codes = hierarchy.codes(table, "x", unseen="top")
    check_ladder(codes)
    assert [codes.labels[level][codes.maps[level, 0]] for level in range(4)] == [
        "Graz",
        "*",
        "*",
        "*",
    ]
    assert codes.leaves[:, 0].tolist() == [1, 4, 4, 4]
    with pytest.raises(InputError, match="no nearest"):
        hierarchy.codes(table, "x", unseen="nearest")
    with pytest.raises(InputError, match="'refuse', 'top' or 'nearest'"):
        hierarchy.codes(table, "x", unseen="ignore")


@given(
    st.lists(st.integers(-20, 20), min_size=1, unique=True),
    st.lists(st.integers(-30, 30), min_size=1),
)
def test_nearest_is_nearest_and_the_lower_one_of_two(leaves, values):
    hierarchy = Hierarchy.from_rows([[leaf, f"n{leaf}"] for leaf in leaves] + [["?", "none"]])
    released = hierarchy.generalize(table_of(values), "x", 1, unseen="nearest").frame["x"].to_list()
    expected = [min(leaves, key=lambda leaf: (abs(leaf - value), leaf)) for value in values]
    assert released == [f"n{leaf}" for leaf in expected]


# -- checks at the door


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "at least one row"),
        ([["a", "v", "*"], ["b", "*"]], "1 of the 2 rows of the hierarchy have fewer than 3"),
        ([["a", "v", "*"], ["a", "w", "*"]], "1 values of the hierarchy are repeated"),
        (
            [["a", "v", "p", "*"], ["b", "v", "q", "*"], ["c", "w", "q", "*"]],
            "1 labels of level 1 of the hierarchy have more than one parent at level 2",
        ),
        ([["a", "*"], ["b", "*"], ["c", "**"]], "1 of the 3 rows of the hierarchy do not end"),
        ([[None, "*"]], "empty value"),
    ],
)
def test_a_list_is_checked_at_the_door(rows, told):
    with pytest.raises(InputError, match=told):
        Hierarchy.from_rows(rows)


def test_the_root_may_be_left_out_or_be_called_otherwise():
    left_out = Hierarchy.from_rows([["a", "v"], ["b", "w"]])
    assert left_out == Hierarchy.from_rows([["a", "v", "*"], ["b", "w", "*"]])
    assert left_out == Hierarchy.from_rows(
        [["a", "v", "all"], ["b", "w", "all"], ["b", "w", "all"]]
    )
    assert left_out.levels == 3
    assert hash(left_out) == hash(Hierarchy.from_rows([["a", "v"], ["b", "w"]]))
    assert left_out != Hierarchy.suppression()


@given(st.integers(1, 40), st.integers(2, 5))
def test_an_ordered_list_joins_neighbours(count, fan_out):
    values = [f"v{n}" for n in range(count)]
    hierarchy = Hierarchy.ordered(values, fan_out=fan_out)
    codes = hierarchy.codes(table_of(sorted(values)), "x")
    check_ladder(codes)
    place = {value: n for n, value in enumerate(values)}
    for level in range(1, hierarchy.levels):
        for at, value in enumerate(codes.column.levels):
            assert codes.maps[level, at] == place[value] // fan_out**level


def test_an_ordered_list_with_groups():
    hierarchy = Hierarchy.ordered(list("abcdef"), groups=[1, 3, 2])
    rows = hierarchy.to_plan()["rows"]
    assert [row[1] for row in rows] == ["a", "b..d", "b..d", "b..d", "e..f", "e..f"]
    assert [row[2] for row in rows] == ["a..d"] * 4 + ["e..f"] * 2
    odd = Hierarchy.ordered(["a", "b", "a..b"], fan_out=2)
    check_ladder(odd.codes(table_of(["a", "b", "a..b"]), "x"))
    for wrong in ({"groups": [2, 2]}, {"groups": [0, 6]}, {"fan_out": 1}):
        with pytest.raises(InputError):
            Hierarchy.ordered(list("abcdef"), **wrong)
    with pytest.raises(InputError, match="only once"):
        Hierarchy.ordered(["a", "a"])


def test_a_tree_is_levelled_from_its_root():
    hierarchy = Hierarchy.tree(
        {"Europe": {"West": ["FR", "DE"], "East": ["PL"]}, "Asia": ["JP"], "Other": None}
    )
    assert hierarchy.to_plan()["rows"] == [
        ["FR", "West", "Europe", "*"],
        ["DE", "West", "Europe", "*"],
        ["PL", "East", "Europe", "*"],
        ["JP", "Asia", "Asia", "*"],
        ["Other", "Other", "Other", "*"],
    ]
    for wrong, told in [
        ({}, "at least one value"),
        ({"a": []}, "at least one value"),
        ({"a": 5}, "got int"),
        ({"a": "FR"}, "got str"),
        ({"a": ["x"], "b": ["x"]}, "repeated"),
    ]:
        with pytest.raises(InputError, match=told):
            Hierarchy.tree(wrong)


# -- files


@pytest.mark.parametrize(
    "text",
    [
        "a;v w;*\nb;u, x;*\n",
        "a\tv w\t*\nb\tu, x\t*\n",
        'a,v w,*\nb,"u, x",*\n',
        "a|v w|*\r\nb|u, x|*",
        "\ufeffa;v w;*\nb;u, x;*\n",
        "\n\na;v w;*\n\nb;u, x;*\n",
        "a; v w; *\nb; u, x; *\n",
        "a;v w\nb;u, x\n",
        "a;v w\nb;u, x\nb;u, x\n",
        "level0;level1;level2\na;v w;*\nb;u, x;*\n",
        "town;country;all\na;v w;*\nb;u, x;*\n",
        '"a";"v w";"*"\n"b";"u, x";"*"\n',
    ],
)
def test_a_file_is_read_whatever_its_habits(tmp_path, text):
    path = tmp_path / "h.csv"
    path.write_text(text, encoding="utf-8", newline="")
    found = Hierarchy.from_csv(path)
    assert found == Hierarchy.from_rows([["a", "v w", "*"], ["b", "u, x", "*"]])


def test_separator_header_and_encoding_can_be_said(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("ä:v:*\nb:v:*\n", encoding="cp1252")
    with pytest.raises(ReadError, match="encoding"):
        Hierarchy.from_csv(path)
    found = Hierarchy.from_csv(path, ":", True, encoding="cp1252")
    assert found == Hierarchy.from_rows([["b", "v", "*"]])
    found = Hierarchy.from_csv(path, separator=":", header=False, encoding="cp1252")
    assert found == Hierarchy.from_rows([["ä", "v", "*"], ["b", "v", "*"]])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no hierarchy"),
        ("", "empty"),
        ("a;v;*\nb;*\n", "1 of the 2 lines"),
        ("level0;level1\n", None),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, told):
    path = tmp_path / "h.csv"
    if text is not None:
        path.write_text(text)
    if told is None:
        with pytest.raises(ReadError, match="no values"):
            Hierarchy.from_csv(path, header=True)
        return
    with pytest.raises(ReadError, match=told):
        Hierarchy.from_csv(path)


def test_a_file_with_one_strange_root_is_not_taken_for_one_with_a_header(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("a;**\nb;*\nc;*\n")
    with pytest.raises(InputError, match="1 of the 3 rows"):
        Hierarchy.from_csv(path)


TEXTS = st.text(
    st.characters(exclude_characters="\0\r\ufeff", exclude_categories=["Cs"]), max_size=6
)


@given(st.lists(TEXTS, min_size=1, max_size=8, unique=True), TEXTS.filter(lambda t: t != "*"))
def test_a_written_file_reads_back(tmp_path_factory, leaves, label):
    hierarchy = Hierarchy.from_rows(
        [[leaf, f"x{label}{n % 3}", "*"] for n, leaf in enumerate(leaves)]
    )
    path = tmp_path_factory.mktemp("files") / "h.csv"
    hierarchy.to_csv(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Hierarchy.from_csv(path) == hierarchy


def test_a_function_is_written_as_a_list_of_the_values_at_hand(tmp_path):
    table, ages = table_of([31, 38, 45, None]), Hierarchy.intervals([10, 20])
    with pytest.raises(InputError, match="function"):
        ages.to_csv(tmp_path / "h.csv")
    as_list = ages.listed(table, "x")
    assert not as_list.is_function
    assert ages.is_function
    assert as_list.to_csv_text() == (
        "31;[30, 40);[20, 40);*\n38;[30, 40);[20, 40);*\n45;[40, 50);[40, 60);*\n"
    )
    first, second = ages.codes(table, "x"), as_list.codes(table, "x")
    assert np.array_equal(first.maps, second.maps)
    assert first.labels == second.labels
