"""Databases in files: SQLite and DuckDB."""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
from pathlib import Path

import polars as pl
import pytest

from shoal.errors import MissingExtra, ReadError

from ...parts.files import read_frame

ROWS = [(1, "Zoë", 1.5, "2020-01-31"), (2, None, None, None), (3, "Bo", 2.0, "2020-02-01")]


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The URI of an SQLite file with a table and a view."""
    path = tmp_path / "my people.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, name TEXT, height REAL, born DATE)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
        connection.execute("CREATE VIEW tall AS SELECT * FROM people WHERE height > 1.8")
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def duckdb(tmp_path: Path) -> str:
    """The URI of a DuckDB file with a table and a view."""
    driver = pytest.importorskip("duckdb", reason="the extra 'sql' is not installed")
    path = tmp_path / "people.duckdb"
    with driver.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, name TEXT, height DOUBLE, born DATE)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
        connection.execute("CREATE VIEW tall AS SELECT * FROM people WHERE height > 1.8")
    return f"duckdb:///{path}"


@pytest.fixture(params=["sqlite", "duckdb"])
def uri(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_a_query_gives_a_frame(uri: str) -> None:
    frame = read_frame(uri, query="SELECT id, name, height, born FROM people ORDER BY id")
    assert frame.to_dict(as_series=False) == {
        "id": [1, 2, 3],
        "name": ["Zoë", None, "Bo"],
        "height": [1.5, None, 2.0],
        "born": [dt.date(2020, 1, 31), None, dt.date(2020, 2, 1)],
    }


def test_no_rows_still_have_columns(uri: str) -> None:
    frame = read_frame(
        uri, query="WITH few AS (SELECT * FROM people) SELECT id FROM few WHERE id > 9"
    )
    assert frame.columns == ["id"]
    assert frame.height == 0


def test_a_relative_path(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme, _, path = uri.partition(":///")
    monkeypatch.chdir(Path(path).parent)
    assert read_frame(f"{scheme}:///{Path(path).name}", query="SELECT id FROM tall").height == 1


@pytest.mark.parametrize("query", [None, "", "  \n"])
def test_without_a_query_the_tables_are_listed(uri: str, query: str | None) -> None:
    with pytest.raises(ReadError, match=r"query='SELECT .*Its tables are 'people', 'tall'"):
        read_frame(uri, query=query)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM peple", "table that does not exist. Its tables are 'people', 'tall'"),
        ("SELECT nme FROM people", "column or function that does not exist"),
        ("SELEC * FROM people", "valid SQL statement. Its tables are"),
        ("SELECT 1 AS a; SELECT 2 AS a", "valid SQL statement"),
        ("DELETE FROM people", "not a SELECT, and Shoal only reads"),
        ("DROP TABLE people", "not a SELECT, and Shoal only reads"),
        ("CREATE TABLE more (a INT)", "not a SELECT, and Shoal only reads"),
        ("ATTACH 'other.db' AS other", "not a SELECT, and Shoal only reads"),
        ("SELECT id AS a, name AS a FROM people", "name 'a'"),
    ],
)
def test_queries_that_fail(
    uri: str, query: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ReadError, match=told):
        read_frame(uri, query=query)
    assert sorted(tmp_path.iterdir()) == before
    assert read_frame(uri, query="SELECT id FROM people").height == 3


def test_nothing_of_the_data_is_told(sqlite: str, duckdb: str) -> None:
    with pytest.raises(ReadError, match="cannot run it on its data") as caught:
        read_frame(duckdb, query="SELECT CAST(name AS INTEGER) AS n FROM people")
    assert "Zo" not in str(caught.value)
    with sqlite3.connect(sqlite.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE people SET name = CAST(X'5A6FFF' AS TEXT)")
    connection.close()
    with pytest.raises(ReadError, match="cannot run it on its data") as caught:
        read_frame(sqlite, query="SELECT name FROM people")
    assert "Zo" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_files_that_are_no_database(tmp_path: Path, scheme: str) -> None:
    if scheme == "duckdb":
        pytest.importorskip("duckdb", reason="the extra 'sql' is not installed")
    missing = tmp_path / "missing.db"
    with pytest.raises(ReadError, match="There is no database file"):
        read_frame(f"{scheme}:///{missing}", query="SELECT 1 AS a")
    assert not missing.exists()
    with pytest.raises(ReadError, match="is a folder"):
        read_frame(f"{scheme}:///{tmp_path}", query="SELECT 1 AS a")
    other = tmp_path / "other.db"
    other.write_text("name\nZoe\n" * 100)
    with pytest.raises(ReadError, match="cannot be opened as a") as caught:
        read_frame(f"{scheme}:///{other}", query="SELECT 1 AS a")
    assert "Zoe" not in str(caught.value)
    for wrong in (f"{scheme}://people.db", f"{scheme}:///", f"{scheme}:///:memory:"):
        with pytest.raises(ReadError, match=f"Write {scheme}:///people.db"):
            read_frame(wrong, query="SELECT 1 AS a")


def test_options_of_files_do_not_fit(sqlite: str) -> None:
    with pytest.raises(ReadError, match="option 'delimiter' does not apply to a database"):
        read_frame(sqlite, query="SELECT 1 AS a", delimiter=",")


# -- SQLite lets every cell have its own type


def test_cells_of_mixed_types(sqlite: str) -> None:
    query = """
        SELECT 1 AS whole, 1 AS number, 1 AS mixed, NULL AS void, 9223372036854775807 AS large
        UNION ALL SELECT 2, 2.5, 'x', NULL, NULL
    """
    frame = read_frame(sqlite, query=query)
    assert frame.to_dict(as_series=False) == {
        "whole": [1, 2],
        "number": [1.0, 2.5],
        "mixed": ["1", "x"],
        "void": [None, None],
        "large": [9223372036854775807, None],
    }
    assert frame.schema["void"] == pl.String


def test_types_that_change_between_batches(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.table.storage._sql._BATCH", 1)
    query = "SELECT 1 AS a, 1 AS b, NULL AS c UNION ALL SELECT 2.5, 'x', 3 UNION ALL SELECT 3, 2, 4"
    assert read_frame(sqlite, query=query).to_dict(as_series=False) == {
        "a": [1.0, 2.5, 3.0],
        "b": ["1", "x", "2"],
        "c": [None, 3, 4],
    }


def test_a_column_without_a_name_is_told(sqlite: str) -> None:
    with pytest.raises(ReadError, match=r"query on .* has no name for column number 1 of 1"):
        read_frame(sqlite, query='SELECT id AS "" FROM people')


def test_binary_cells_are_told(sqlite: str) -> None:
    with pytest.raises(ReadError, match="binary values in 'photo'"):
        read_frame(sqlite, query="SELECT id, X'00FF' AS photo FROM people")


def test_many_rows(sqlite: str) -> None:
    query = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
        SELECT i, 'text ' || i AS t FROM n
    """
    frame = read_frame(sqlite, query=query)
    assert frame["i"].sum() == 120_000 * 120_001 // 2
    assert frame["t"][119_999] == "text 120000"


# -- DuckDB


def test_duckdb_types(duckdb: str) -> None:
    query = """
        SELECT SUM(id) AS total, 12345678901234567890123::HUGEINT AS huge, 1.25::DECIMAL(9, 2) AS d,
               'a'::ENUM('a', 'b') AS kind, TIMESTAMP '2020-01-31 12:00:00' AS moment,
               '6b1d9a3e-0000-4000-8000-000000000001'::UUID AS key
        FROM people
    """
    frame = read_frame(duckdb, query=query)
    row = frame.row(0, named=True)
    assert (row["total"], row["huge"]) == (6, "12345678901234567890123")
    assert float(row["d"]) == 1.25
    assert (row["kind"], row["moment"]) == ("a", dt.datetime(2020, 1, 31, 12))
    assert row["key"] == "6b1d9a3e-0000-4000-8000-000000000001"


def test_duckdb_types_that_are_not_plain(duckdb: str) -> None:
    query = "SELECT id, [1, 2] AS list, INTERVAL 1 DAY AS span, 'x'::BLOB AS raw FROM people"
    with pytest.raises(ReadError, match=r"does not read: 'list', 'span', 'raw'.*CAST"):
        read_frame(duckdb, query=query)


def test_duckdb_sees_no_variable_and_writes_no_file(duckdb: str, tmp_path: Path) -> None:
    secret = pl.DataFrame({"a": [1]})
    assert secret.height
    with pytest.raises(ReadError, match="table that does not exist"):
        read_frame(duckdb, query="SELECT * FROM secret")
    with pytest.raises(ReadError, match="not a SELECT"):
        read_frame(duckdb, query=f"COPY people TO '{tmp_path}/copy.csv'")
    assert not (tmp_path / "copy.csv").exists()


@pytest.mark.parametrize(
    ("module", "uri"),
    [
        ("duckdb", "duckdb:///{}"),
        ("adbc_driver_postgresql", "postgresql://localhost/people"),
    ],
)
def test_without_the_extra_the_line_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, uri: str
) -> None:
    (tmp_path / "people.db").touch()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r'pip install ".*\[sql\]"'):
        read_frame(uri.format(tmp_path / "people.db"), query="SELECT 1 AS a")
