"""A file goes by twice: it is looked at once and parsed once, whatever is asked about it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.table import ReleasedFile
from shoal.table.storage import _columnar, _delimited, _records
from shoal.table.storage._text import source_digest

ROLES = sh.Roles(quasi_identifiers=["age", "sex"])


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes of text were looked at, and how often files were parsed and hashed."""
    done: Counter[str] = Counter()
    pieces = _records._Scan.pieces

    def looked_at(scan: Any) -> Iterator[tuple[bytes, int]]:
        for piece, start in pieces(scan):
            done["bytes"] += len(piece)
            yield piece, start

    def counting(what: str, function: Any) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            done[what] += 1
            return function(*given, **named)

        return counted

    monkeypatch.setattr(_records._Scan, "pieces", looked_at)
    monkeypatch.setattr(_delimited.pl, "read_csv", counting("parsed", pl.read_csv))
    monkeypatch.setattr(_columnar.pl, "read_parquet", counting("parsed", pl.read_parquet))
    monkeypatch.setattr(hashlib, "file_digest", counting("hashed", hashlib.file_digest))
    return done


def people(rows: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "age": draw.integers(20, 24, rows),
            "sex": draw.choice(["f", "m", "="], rows),
            "pay": draw.normal(3000, 500, rows),
            "note": [f"text {row}" for row in range(rows)],
        }
    )


def test_a_file_is_looked_at_once_and_parsed_once(
    tmp_path: Path, passes: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_records, "_CHUNK", 1000)
    path = tmp_path / "people.csv"
    people().write_csv(path)
    table = sh.read(path)
    assert passes == {"bytes": path.stat().st_size, "parsed": 1}
    assert table.frame.equals(people())
    assert source_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert passes["hashed"] == 0


def test_the_checksum_of_a_file_that_changed_is_made_anew(
    tmp_path: Path, passes: Counter[str]
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n31,f\n")
    sh.read(path)
    path.write_text("age,sex\n31,f\n32,m\n")
    assert source_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert passes["hashed"] == 1


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa,b\n1,x\n", b"\na,b\n1,x\n", b"a,b\r1,x\r"])
def test_the_checksum_is_that_of_the_file_not_of_its_text(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    assert sh.read(path).columns == ["a", "b"]
    assert source_digest(path) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet"])
def test_a_released_file_is_read_once_for_both_counts(
    tmp_path: Path, passes: Counter[str], format: str
) -> None:
    table, path = sh.Table(people()), tmp_path / f"data.{format}"
    table.write(path, format=format)
    file = ReleasedFile(path, format)
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    back = file.table(table.schema, ROLES, formulas="neutralise")
    assert back.frame.equals(people())
    assert file.sizes([0, 1]).tolist() == sorted(back.classes.sizes.tolist())
    persons = np.arange(400) // 2
    assert file.sizes([1], persons).sum() == len({*zip(persons, people()["sex"], strict=True)})
    assert file.running([1, 3]) == (0 if format != "parquet" else (people()["sex"] == "=").sum())
    text = format != "parquet"
    assert passes["parsed"] == 1
    assert passes["bytes"] == (path.stat().st_size if text else 0)
    assert passes["hashed"] == (0 if text else 1)


def test_a_release_is_saved_and_verified_with_one_parse(
    tmp_path: Path, passes: Counter[str]
) -> None:
    path = tmp_path / "people.csv"
    people().select("age", "sex").write_csv(path)
    table = sh.read(path, roles=ROLES)
    release = sh.protect(table, sh.Plan([sh.Generalize("mondrian", k=60)]))
    passes.clear()
    folder = release.save(tmp_path / "release", format="csv", source=path)
    data = folder / "public" / "data.csv"
    assert passes["bytes"] == data.stat().st_size
    assert passes["parsed"] == 2  # the data, and the records of the private half
    audit = json.loads((folder / "private" / "audit.json").read_text())
    assert audit["source_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_columns_whose_texts_repeat_come_coded(tmp_path: Path) -> None:
    path, first = tmp_path / "people.csv", sh.Table(people())
    people().write_csv(path)
    table = sh.read(path)
    coded = {name: table.column(name).is_coded for name in table.columns}
    assert coded == {"age": True, "sex": True, "pay": False, "note": False}
    for name in table.columns:
        one, other = table.codes(name), first.codes(name)
        assert (one.codes == other.codes).all()
        assert one.levels.equals(other.levels)


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n")
    assert sh.read(path).schema == {"age": "string", "sex": "string"}


def test_different_texts_of_one_number_are_one_level(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "0.0,a\n-0.0,a\n0.00,b\n1.5,b\n,a\n" * 5)
    codes = sh.read(path).codes("x")
    assert codes.levels.to_list() == [0.0, 1.5]
    assert codes.codes[:5].tolist() == [0, 0, 0, 1, 2]


def test_a_polars_frame_is_taken_and_not_copied() -> None:
    frame = people()
    taken = sh.Table(frame).column("pay").series
    assert taken.to_numpy().ctypes.data == frame["pay"].to_numpy().ctypes.data
    frame[0, "pay"] = 1.0
    assert taken[0] != 1.0


def test_categories_of_ones_own_are_text_inside(tmp_path: Path) -> None:
    kind = pl.Categorical(pl.Categories.random())
    table = sh.Table(pl.DataFrame({"sex": pl.Series(["f", "m"], dtype=kind)}))
    assert table.schema == {"sex": "string"}
    assert table.frame["sex"].cast(pl.String).to_list() == ["f", "m"]


def test_a_text_read_in_parts_is_the_same_as_in_one(monkeypatch, tmp_path):
    draw = np.random.default_rng(3)
    rows = 3_000
    frame = people(rows).with_columns(
        # values that come late, gaps, line ends and quotes inside a field
        late=pl.Series([f"{row // 100}" if row % 7 else None for row in range(rows)]),
        odd=pl.Series(draw.choice(["a\nb", 'say "x"', ",", ""], rows)),
        few=pl.Series(draw.choice(300, rows)).cast(pl.String),
    )
    file = tmp_path / "people.csv"
    frame.write_csv(file)
    whole, _ = _read_columns(file)
    monkeypatch.setattr(_records, "_CHUNK", 5_000)
    monkeypatch.setattr(_records, "_PART", 20_000)
    parted, parts = _read_columns(file)
    assert parts > 5
    assert [(c.name, c.dtype) for c in whole] == [(c.name, c.dtype) for c in parted]
    for one, other in zip(whole, parted, strict=True):
        assert one.series.equals(other.series, null_equal=True)


def _read_columns(file: Path) -> tuple[list[Any], int]:
    """The columns of a file, and in how many parts it was parsed."""
    opened = _delimited.TextFile.open(file, None, None)
    table = sh.read(file)
    return [table.column(name) for name in table.columns], len(opened.shape.parts)


def test_an_empty_first_field_at_the_start_of_a_part_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(_records, "_CHUNK", 4)
    monkeypatch.setattr(_records, "_PART", 4)
    file = tmp_path / "gaps.csv"
    file.write_text("a,b\n" + ",x\n,\ny,\n" * 5)
    assert sh.read(file, header=True).frame.rows() == [(None, "x"), (None, None), ("y", None)] * 5
    alone = tmp_path / "alone.csv"
    alone.write_text("a\n" + "x\n\n" * 5)
    in_parts = sh.read(alone, header=True).frame
    monkeypatch.undo()
    assert in_parts.equals(sh.read(alone, header=True).frame)
