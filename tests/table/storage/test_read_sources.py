"""What holds for every file: what it is called, whether it is there, which options fit it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.errors import InputError, ReadError
from shoal.table.storage._formats import FORMATS, check_format, format_of

from ...parts.files import read_frame


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("people.csv", "csv"),
        ("PEOPLE.CSV", "csv"),
        ("people.txt.gz", "csv"),
        ("people.tab", "tsv"),
        ("people.v2.pq", "parquet"),
        ("people.feather", "arrow"),
        ("people.xls", "xlsx"),
    ],
)
def test_the_name_tells_the_format(name: str, expected: str) -> None:
    assert format_of(name) == expected
    assert format_of(Path("folder.csv") / name) == expected


@pytest.mark.parametrize("name", ["people", "people.json", "people.parquet.gz", "csv", ".gz"])
def test_other_names_are_told_what_is_known(name: str) -> None:
    with pytest.raises(ReadError) as caught:
        format_of(name)
    for endings in FORMATS.values():
        assert all(ending in str(caught.value) for ending in endings)


def test_formats_have_other_names_too() -> None:
    assert [check_format(name) for name in ("feather", "excel", "csv")] == ["arrow", "xlsx", "csv"]
    with pytest.raises(InputError, match="Did you mean 'parquet'"):
        check_format("parkett")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "xlsx"])
def test_files_that_are_not_there_or_empty(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"people.{ending}"
    with pytest.raises(ReadError, match=r"There is no file '.*people"):
        read_frame(path)
    path.touch()
    with pytest.raises(ReadError, match="is empty"):
        read_frame(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(ReadError, match="is a folder"):
        read_frame(path)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    pipe = tmp_path / "people.csv"
    os.mkfifo(pipe)
    with pytest.raises(ReadError, match="not a regular file"):
        read_frame(pipe)
    with pytest.raises(ReadError):
        read_frame("people\0.csv")
    with pytest.raises(ReadError):
        read_frame("p" * 5000 + ".csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(ReadError, match="cannot be opened: Permission denied"):
        read_frame(path)


def test_the_format_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "people.dat"
    path.write_text("a\tb\n1\t2\n")
    assert read_frame(path, format="tsv").columns == ["a", "b"]
    with pytest.raises(ReadError, match="known extension"):
        read_frame(path)
    with pytest.raises(InputError, match="no format 'tvs'"):
        read_frame(path, format="tvs")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.csv", {"sheet": 1}),
        ("t.csv", {"query": "SELECT 1"}),
        ("t.parquet", {"delimiter": ","}),
        ("t.parquet", {"missing_values": ["?"]}),
        ("t.arrow", {"encoding": "utf-8"}),
        ("t.xlsx", {"decimal": ","}),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    path = tmp_path / name
    path.write_text("a\n1\n")
    with pytest.raises(ReadError, match=f"option '{next(iter(options))}' does not apply to a"):
        read_frame(path, **options)


def test_reading_does_not_load_what_only_other_formats_need() -> None:
    code = (
        "import sys, shoal.table.storage._read; "
        "bad = {'pyarrow', 'duckdb', 'fastexcel', 'xlsxwriter', 'adbc_driver_manager', 'pandas'}; "
        "sys.exit(', '.join(bad & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("uri", ["mysql://me:secret@host/db", "s3://bucket/people.csv"])
def test_other_uris_are_refused_without_their_secrets(uri: str) -> None:
    with pytest.raises(ReadError, match="does not read from") as caught:
        read_frame(uri, query="SELECT 1")
    assert "secret" not in str(caught.value)


def test_the_shared_tables_can_be_read(shared_data: Path) -> None:
    for path in sorted((shared_data / "uci").glob("*.parquet")):
        assert read_frame(path).equals(pl.read_parquet(path))
