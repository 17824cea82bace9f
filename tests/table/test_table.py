"""The table: frozen, with a key for every row, and everything that methods ask of it."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError, RolesError

FRAME = pl.DataFrame(
    {
        "name": ["Ann", "Bo", "Cy", "Di", "Ed"],
        "age": [31, 31, None, 40, 40],
        "share": [0.5, None, 0.5, 1.5, 1.5],
        "city": ["x", "x", "y", None, None],
    }
)
ROLES = Roles(identifiers=["name"], quasi_identifiers=["age", "city"])
DAY, HOUR = dt.date(2020, 2, 29), dt.timedelta(hours=1)
MOMENT = dt.datetime(2020, 2, 29)


@pytest.fixture
def table():
    return Table(FRAME, ROLES)


def test_it_is_frozen(table):
    for name in ("roles", "frame", "anything", "_data"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(table, name, None)
    with pytest.raises(ValueError, match="read-only"):
        table.row_key[0] = 5
    for missing in ("own", "wildcard"):
        sizes = table.class_sizes(missing).copy()
        with contextlib.suppress(ValueError):
            table.class_sizes(missing)[0] = 99
        assert table.class_sizes(missing).tolist() == sizes.tolist()


def test_repr_tells_no_cell(table):
    assert repr(table) == "Table: 5 rows, 4 columns (1 identifier, 2 quasi-identifiers)"
    assert repr(Table(FRAME)) == "Table: 5 rows, 4 columns (no roles)"
    for text in (repr(table), str(table), f"{table}"):
        assert "Ann" not in text


def test_an_unknown_column_is_named_with_the_nearest(table):
    ways = [
        table.kind,
        table.numbers,
        table.codes,
        table.distinct,
        table.missing_count,
        table.present,
        table.value_counts,
        lambda name: table.group([name]),
        lambda name: table.chosen([name]),
        lambda name: table.drop([name]),
        lambda name: table.changed_cells(name, table),
    ]
    for way in ways:
        with pytest.raises(InputError, match=r"no column 'agee'\. Did you mean 'age'\?"):
            way("agee")


def test_columns_chosen(table):
    assert table.chosen(None) == ["age", "city"]
    assert table.chosen(["share"]) == ["share"]
    assert Table(FRAME).chosen(None) == []


def test_classes(table):
    assert table.class_sizes().tolist() == [2, 2, 1, 2, 2]
    assert table.class_sizes("own").tolist() == [2, 2, 1, 2, 2]
    # Cy may be of any age but lives in y, where Di and Ed may live
    assert table.class_sizes("wildcard").tolist() == [2, 2, 3, 3, 3]
    assert table.group(["share"]).record_sizes.tolist() == [2, 1, 2, 2, 2]
    with pytest.raises(InputError, match="'own' or 'wildcard'; got 'any'"):
        table.class_sizes("any")


def test_without_quasi_identifiers_all_are_one_class():
    assert Table(FRAME).class_sizes().tolist() == [5] * 5
    assert Table(FRAME).class_sizes("wildcard").tolist() == [5] * 5


def test_zero_has_no_sign():
    table = Table(pl.DataFrame({"x": [0.0, -0.0]}), Roles(quasi_identifiers=["x"]))
    assert table.class_sizes().tolist() == [2, 2]
    assert table.frame["x"].cast(pl.String).to_list() == ["0.0", "0.0"]


def test_new_numbers_have_one_zero_and_one_missing_value():
    table = Table(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), Roles(quasi_identifiers=["x"]))
    values = np.array([0.0, -0.0, np.nan, np.nan])
    for masked in (table.with_numbers({"x": values}), table.fill_numbers({"x": values})):
        assert masked.frame["x"].cast(pl.String).to_list() == ["0.0", "0.0", None, None]


def test_weights(table):
    with pytest.raises(InputError, match="no weight column"):
        table.class_weights()
    frame = FRAME.with_columns(w=pl.Series([1, 2, 3, 4, 5]))
    weighted = Table(frame, ROLES.replacing(weight="w"))
    assert weighted.class_weights().tolist() == [3, 3, 3, 9, 9]
    assert weighted.class_weights("wildcard").tolist() == [3, 3, 12, 12, 12]


def test_weights_that_masking_took_out(table):
    frame = FRAME.with_columns(w=pl.Series([1, 2, 3, 4, 5]))
    weighted = Table(frame, ROLES.replacing(weight="w"))
    blanked = weighted.blank({"w": np.array([True, True, False, False, False])})
    for missing in ("own", "wildcard"):
        with pytest.raises(InputError, match="'w' has 2 missing values"):
            blanked.class_weights(missing)


def test_classes_in_a_population(table):
    everybody = Table(pl.concat([FRAME] * 3))
    assert table.class_sizes_in(everybody).tolist() == [6, 6, 3, 6, 6]
    with pytest.raises(InputError, match="no column 'age'"):
        table.class_sizes_in(Table(FRAME.drop("age")))


def test_a_population_of_other_types():
    """The same numbers as another type are the same numbers."""
    sample = Table(pl.DataFrame({"x": [1, 2, None]}), Roles(quasi_identifiers=["x"]))
    for dtype in (pl.Int8, pl.UInt64, pl.Float64):
        people = Table(pl.DataFrame({"x": pl.Series([1, 1, 2, None], dtype=dtype)}))
        assert sample.class_sizes_in(people).tolist() == [2, 1, 1]


def test_huge_numbers_of_another_type_stay_apart():
    """2**53 and 2**53 + 1 are one number as a float, but two people."""
    sample = Table(pl.DataFrame({"x": [2**53, 2**53 + 1]}), Roles(quasi_identifiers=["x"]))
    people = Table(pl.DataFrame({"x": pl.Series([2**53, 2**53 + 1], dtype=pl.UInt64)}))
    assert sample.class_sizes_in(people).tolist() == [1, 1]


# -- columns as arrays


def test_numbers(table):
    ages = table.numbers("age")
    assert ages.values.tolist() == [31, 31, 0, 40, 40]
    assert ages.present.tolist() == [True, True, False, True, True]
    assert ages.values.dtype == np.int64
    with pytest.raises(InputError, match="'city' is not numeric"):
        table.numbers("city")
    unsigned = Table(pl.DataFrame({"x": pl.Series([2**64 - 1], dtype=pl.UInt64)}))
    assert unsigned.numbers("x").values.tolist() == [2**64 - 1]
    endless = Table(pl.DataFrame({"x": [1.0, float("inf"), float("-inf")]}))
    with pytest.raises(InputError, match="'x' holds 2 infinite values"):
        endless.numbers("x")


def test_counts_of_values(table):
    assert (table.distinct("age"), table.missing_count("age")) == (2, 1)
    assert table.value_counts("city") == {"x": 2, "y": 1}
    assert table.present("city").tolist() == [True, True, True, False, False]
    kinds = pl.DataFrame(
        {
            "span": [dt.timedelta(days=1), None],
            "clock": [dt.time(1), None],
            "day": [dt.date(2020, 1, 1), None],
            "moment": [dt.datetime(2020, 1, 1), None],
            "flag": [True, None],
            "wage": [Decimal("1.50"), None],
        }
    )
    for name in kinds.columns:
        assert list(Table(kinds).value_counts(name).values()) == [1]


def test_codes(table):
    codes = table.codes("city")
    assert codes.codes.tolist() == [0, 0, 1, 2, 2]
    assert codes.missing == 2


# -- conditions


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("age > 35", [3, 4]),
        ("age > 35 AND city = 'x'", []),
        ("city = 'x' OR age = 40", [0, 1, 3, 4]),
        ("age IS NULL", [2]),
        ("city IN ('x', 'y')", [0, 1, 2]),
        ("NOT city = 'x'", [2]),
        ('"share" >= 0.5', [0, 2, 3, 4]),
        ("age BETWEEN 30 AND 35", [0, 1]),
        ("city LIKE 'x%'", [0, 1]),
        ("TRUE", [0, 1, 2, 3, 4]),
        ("FALSE", []),
    ],
)
def test_conditions(table, where, rows):
    """What cannot be decided because a value is missing does not hold."""
    assert np.flatnonzero(table.matching(where)).tolist() == rows


@pytest.mark.parametrize(
    "where", ["", "age >", "nobody = 1", "age = 'canary-7d1f' AND", "age + 1", "city", "SELECT 1"]
)
def test_conditions_that_are_none(table, where):
    with pytest.raises(InputError, match="condition of 'where'") as caught:
        table.matching(where)
    assert "canary" not in str(caught.value)


def test_a_condition_on_one_row():
    one = Table(pl.DataFrame({"x": [1]}))
    assert one.matching("x = 1").tolist() == [True]
    assert one.matching("TRUE").tolist() == [True]


# -- new tables


def test_keys_follow_the_rows(table):
    kept = table.keep(np.array([False, True, False, True, True]))
    assert kept.row_key.tolist() == [1, 3, 4]
    turned = kept.reorder(np.array([2, 0, 1]))
    assert turned.row_key.tolist() == [4, 1, 3]
    assert turned.frame["name"].to_list() == ["Ed", "Bo", "Di"]
    assert turned.pairs_with(table)
    assert not turned.pairs_with(Table(FRAME, ROLES))
    assert table.row_key.tolist() == [0, 1, 2, 3, 4]


def test_changed_cells_are_paired_by_key(table):
    turned = table.reorder(np.array([4, 3, 2, 1, 0]))
    assert not turned.changed_cells("age", table).any()
    blanked = turned.blank({"age": np.array([True, False, False, False, False])})
    assert blanked.changed_cells("age", table).tolist() == [True, False, False, False, False]
    with pytest.raises(InputError, match="do not come from the same rows"):
        table.changed_cells("age", table.keep(np.array([True, True, False, False, False])))


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([3, None, 5], [3.0, None, 5.5], [False, False, True]),
        ([3, 4], pl.Series([3, 5], dtype=pl.UInt64), [False, True]),
        ([2**62 + 1, 1], pl.Series([2**62, 1], dtype=pl.UInt64), [True, False]),
        ([1.5, 2.0], pl.Series(["1.50", "2.01"]).str.to_decimal(scale=2), [False, True]),
        ([3, 4], ["3", "[4, 5)"], [False, True]),
        ([DAY, DAY], [MOMENT, MOMENT + HOUR], [False, True]),
        ([DAY, None], [None, DAY], [True, True]),
        ([MOMENT, MOMENT + HOUR], pl.Series([MOMENT] * 2).dt.cast_time_unit("ns"), [False, True]),
        ([HOUR, HOUR], pl.Series([HOUR, 2 * HOUR]).dt.cast_time_unit("ms"), [False, True]),
        ([DAY, DAY], ["2020-02-29", "2020-03-01"], [False, True]),
    ],
)
def test_the_same_value_in_another_type_is_no_change(before, after, changed):
    old = Table(pl.DataFrame({"x": before}))
    new = Table(pl.DataFrame({"x": after})).paired(old)
    assert new.changed_cells("x", old).tolist() == changed
    assert old.paired(new).changed_cells("x", new).tolist() == changed


def test_new_numbers_keep_type_and_gaps(table):
    changed = table.with_numbers({"age": np.array([1, 2, 3, 4, 5]), "share": np.arange(5.0)})
    assert changed.frame["age"].to_list() == [1, 2, None, 4, 5]
    assert changed.frame["share"].to_list() == [0.0, None, 2.0, 3.0, 4.0]
    assert changed.schema == table.schema
    assert table.frame["age"].to_list() == [31, 31, None, 40, 40]


def test_new_numbers_widen_instead_of_wrapping():
    small = Table(pl.DataFrame({"x": pl.Series([127, None], dtype=pl.Int8)}))
    wide = small.with_numbers({"x": np.array([150, 0])})
    assert wide.frame["x"].to_list() == [150, None]
    wage = pl.Series([Decimal("99.99"), None], dtype=pl.Decimal(4, 2))
    wide = Table(pl.DataFrame({"x": wage})).with_numbers({"x": np.array([100.0, 0.0])})
    assert wide.frame["x"].to_list() == [Decimal("100.00"), None]


def test_decimals_that_stay_keep_every_digit():
    digits = [Decimal("12345678901234567.89"), Decimal("1.10")]
    table = Table(pl.DataFrame({"x": pl.Series(digits, dtype=pl.Decimal(38, 2))}))
    values = table.numbers("x").values.copy()
    values[1] = 2.5
    kept = table.with_numbers({"x": values}, keep_equal=True)
    assert kept.frame["x"].to_list() == [digits[0], Decimal("2.50")]
    assert table.with_numbers({"x": values}).frame["x"][0] != digits[0], "a masker may not"


def test_blank_hides_the_value_in_memory_too(table):
    pytest.importorskip("pyarrow")
    marks = np.array([True, False, False, False, False])
    blanked = table.blank({"age": marks, "city": marks})
    assert blanked.frame["age"].to_list() == [None, 31, None, 40, 40]
    assert blanked.frame["city"].to_list() == [None, "x", "y", None, None]
    assert table.frame["age"].to_list()[0] == 31
    assert table.blank({}).frame.equals(table.frame)
    canary = Table(pl.DataFrame({"x": [918273645, 1], "y": ["canary-of-more-than-12-bytes", "b"]}))
    both = np.array([True, False])
    arrow = canary.blank({"x": both, "y": both}).frame.to_arrow()
    for column in arrow.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                content = b"" if buffer is None else buffer.to_pybytes()
                assert (918273645).to_bytes(8, "little") not in content
                assert b"canary" not in content


def test_drop_takes_the_roles_along(table):
    left = table.drop(["name", "age"])
    assert left.columns == ["share", "city"]
    assert left.roles == Roles(quasi_identifiers=["city"])
    empty = table.drop(table.columns)
    assert (empty.columns, len(empty)) == ([], 5)
    assert empty.row_key.tolist() == [0, 1, 2, 3, 4]


def test_other_roles(table):
    other = table.with_roles(Roles(quasi_identifiers=["share"]))
    assert other.class_sizes().tolist() == [2, 1, 2, 2, 2]
    assert table.roles == ROLES
    with pytest.raises(RolesError, match=r"The roles must be a shoal\.Roles"):
        table.with_roles(["share"])
    assert table.with_roles({"sensitive": ["share"]}).roles == Roles(sensitive=["share"])
    with pytest.raises(RolesError, match="'zip', which the table does not have"):
        table.with_roles(Roles(sensitive=["zip"]))
    blank = table.blank({"age": np.ones(5, dtype=bool)})
    with pytest.raises(RolesError, match="'age' has no value"):
        blank.with_roles(ROLES)
    assert blank.with_roles(ROLES, released=True).roles == ROLES


def test_pairing_by_an_audit(table):
    released = Table(FRAME.reverse())
    paired = released.paired(table, np.array([4, 3, 2, 1, 0]))
    assert paired.pairs_with(table)
    assert not paired.changed_cells("age", table).any()
    with pytest.raises(InputError, match="2 row keys, but the table has 5"):
        released.paired(table, np.array([0, 1]))
    with pytest.raises(InputError, match="do not come from the same rows"):
        released.paired(table, np.array([0, 1, 2, 3, 99]))
    with pytest.raises(InputError, match="do not come from the same rows"):
        released.paired(table, np.array([0, 1, 2, 3, -1]))


def test_undeclared_identifiers_are_those_without_a_role():
    contacts = [f"person{i}@example.org" for i in range(30)]
    frame = pl.DataFrame({"contact": contacts, "age": [i % 3 for i in range(30)]})
    found = Table(frame, Roles(quasi_identifiers=["age"])).undeclared_identifiers()
    assert list(found) == ["contact"]
    assert "person0" not in found["contact"]
    for role in ("identifiers", "sensitive", "insensitive"):
        roles = Roles(quasi_identifiers=["age"], **{role: ["contact"]})
        assert Table(frame, roles).undeclared_identifiers() == {}


class TestAsAFrame:
    """What users of frames type first."""

    def test_size_and_names(self, table):
        assert table.shape == (5, 4)
        assert list(table) == FRAME.columns
        assert "age" in table
        assert "wage" not in table
        assert 0 not in table

    def test_columns_and_first_rows_in_the_type_that_came_in(self, frame):
        table = Table(frame(FRAME.to_dict(as_series=False)))
        assert list(table["city"]) == list(table.frame["city"])
        assert type(table[["age", "city"]]) is type(table.head(2)) is frame.type
        assert list(frame.columns(table[["city", "age"]])) == ["city", "age"]
        assert frame.columns(table.head(2))["name"] == ["Ann", "Bo"]
        assert len(table.head()) == 5

    @pytest.mark.parametrize("name", ["agee", 0, ["agee"]])
    def test_a_column_that_is_not_there(self, table, name):
        with pytest.raises(KeyError, match="column"):
            table[name]
