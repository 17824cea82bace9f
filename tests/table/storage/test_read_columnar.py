"""Parquet, Feather and Arrow files."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from shoal.errors import ReadError

from ...parts.files import read_frame

FRAME = pl.DataFrame({"age": [31, None, 40], "name": ["Zoë", "", None], "h": [1.5, None, 2.0]})


def _stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def _file(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _version_1(table: pa.Table, path: Path) -> None:
    pyarrow.feather.write_feather(table, path, version=1)


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "t.parquet": pq.write_table,
    "v2.feather": pyarrow.feather.write_feather,
    "plain.arrow": lambda t, p: pyarrow.feather.write_feather(t, p, compression="uncompressed"),
    "stream.arrows": _stream,
    "v1.feather": _version_1,
}


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
@pytest.mark.parametrize("name", WRITERS)
def test_what_others_wrote_is_read(tmp_path: Path, name: str) -> None:
    WRITERS[name](FRAME.to_arrow(compat_level=pl.CompatLevel.oldest()), tmp_path / name)
    assert read_frame(tmp_path / name).equals(FRAME)


@pytest.mark.parametrize("name", ["t.parquet", "file.arrow", "stream.arrows"])
def test_a_name_that_comes_twice_is_told(tmp_path: Path, name: str) -> None:
    table = pa.table([[1], [2], [3]], names=["a", "b", "a"])
    {"file.arrow": _file, **WRITERS}[name](table, tmp_path / name)
    with pytest.raises(ReadError, match="name 'a'"):
        read_frame(tmp_path / name)


@pytest.mark.parametrize("name", ["t.parquet", "v2.feather"])
def test_a_column_without_a_name_is_told(tmp_path: Path, name: str) -> None:
    WRITERS[name](pa.table([[1], [2]], names=["a", ""]), tmp_path / name)
    with pytest.raises(ReadError, match="no name for column number 2 of 2"):
        read_frame(tmp_path / name)


@pytest.mark.parametrize("name", ["t.parquet", "v2.feather"])
def test_an_unnamed_index_of_pandas_is_left_behind(tmp_path: Path, name: str) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"a": [1, 2]}, index=["alice", "bob"])
    table = pa.Table.from_pandas(frame)
    assert table.column_names == ["a", "__index_level_0__"]
    WRITERS[name](table, tmp_path / name)
    assert read_frame(tmp_path / name).to_dict(as_series=False) == {"a": [1, 2]}


@pytest.mark.parametrize("name", ["t.parquet", "plain.arrow"])
def test_damaged_files_are_told_without_a_value(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    table = pa.table({"s": [f"value-{i % 7}" for i in range(300)], "i": range(300)})
    WRITERS[name](table, path)
    content = path.read_bytes()
    draw = random.Random(7)
    told = []
    for _ in range(60):
        path.write_bytes(_damaged(content, draw))
        try:
            read_frame(path)
        except ReadError as error:
            told.append(str(error))
    assert len(told) > 20
    assert not [error for error in told if "value-" in error]


def _damaged(content: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.3:
        return content[: draw.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(draw.choice([1, 5, 30])):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_text_is_no_columnar_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("age,name\n31,Zoe\n")
    with pytest.raises(ReadError, match=r"is not a .* file, or it is damaged") as caught:
        read_frame(tmp_path / name)
    assert "Zoe" not in str(caught.value)


def test_columns_that_are_not_plain_are_told(tmp_path: Path) -> None:
    table = pa.table({"ok": [1], "list": [[1, 2]], "bytes": [b"x"]})
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    with pytest.raises(ReadError, match=r"does not read: 'list', 'bytes'"):
        read_frame(tmp_path / "t.arrow")


def test_a_hive_folder_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    FRAME.write_parquet(folder / "t[0].parquet")
    assert read_frame(folder / "t[0].parquet").equals(FRAME)


def test_an_arrow_file_may_go_away_after_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    frame = pl.DataFrame({"a": range(100_000)})
    frame.write_ipc(path, compression="uncompressed")
    read = read_frame(path)
    with path.open("r+b") as file:
        file.truncate(10)
    assert read.equals(frame)


def test_a_large_parquet_is_held_once(shared_data: Path) -> None:
    path = shared_data / "acs" / "acs_income_2018.parquet"
    code = f"""
import resource
import polars, pyarrow.parquet
from shoal.table.storage._read import read_source
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found, _, _ = read_source({str(path)!r})
columns = isinstance(found, list)
frame = polars.DataFrame([column.series for column in found]) if columns else found
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
# a text takes 16 bytes, a number 8; the short texts of this table need no more
table = sum(16 if column.dtype == polars.String else 8 for column in frame) * frame.height
print(peak * 1024 / table)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.7
