"""CSV and TSV: the shape of the text, its encoding, its delimiter, and what is wrong with it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ReadError
from shoal.table.storage import _records, _text

from ...parts.files import read_frame

Read = Callable[..., pl.DataFrame]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read what is given as the content of a file."""

    def read(content: str | bytes, name: str = "people.csv", **options: Any) -> pl.DataFrame:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_frame(path, **options)

    return read


def columns(frame: pl.DataFrame) -> dict[str, list[Any]]:
    return frame.to_dict(as_series=False)


# -- delimiters


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read: Read, delimiter: str) -> None:
    text = "age,name,place\n31,x,a b\n40,y,c d\n".replace(",", delimiter)
    assert columns(read(text)) == {"age": [31, 40], "name": ["x", "y"], "place": ["a b", "c d"]}


def test_other_candidates_inside_fields_do_not_mislead(read: Read) -> None:
    text = 'name;note\n"Doe, J";a,b,c\n"Roe, R";d,e\n'
    assert columns(read(text)) == {"name": ["Doe, J", "Roe, R"], "note": ["a,b,c", "d,e"]}


def test_a_given_delimiter_is_taken(read: Read) -> None:
    assert columns(read("a:b\n1:2\n", delimiter=":")) == {"a": [1], "b": [2]}


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "→"])
def test_a_delimiter_must_be_one_character(read: Read, delimiter: str) -> None:
    with pytest.raises(ReadError, match="delimiter must be one ASCII character"):
        read("a,b\n1,2\n", delimiter=delimiter)


def test_tab_is_likely_in_a_tsv_but_not_forced(read: Read) -> None:
    assert columns(read("a\tb,c\n1\t2\n", "people.tsv")) == {"a": [1], "b,c": [2]}
    assert columns(read("a,b\n1,2\n", "people.tsv")) == {"a": [1], "b": [2]}


def test_one_column_needs_no_delimiter(read: Read) -> None:
    assert columns(read("age\n31\n\n40\n")) == {"age": [31, None, 40]}


# -- quotes and lines


def test_quoted_newlines_delimiters_and_marks(read: Read) -> None:
    text = 'id,"the ""note"""\n1,"two\nlines, one ""field"""\n2,"\r\n"\n'
    assert columns(read(text)) == {
        "id": [1, 2],
        'the "note"': ['two\nlines, one "field"', "\r\n"],
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_of_all_systems(read: Read, end: str, last: bool) -> None:
    text = end.join(["a,b", "1,x", "2,y"]) + end * last
    assert columns(read(text)) == {"a": [1, 2], "b": ["x", "y"]}


def test_empty_lines_are_skipped(read: Read) -> None:
    text = "\n\r\na,b\n\n1,x\n\r\n\n2,\n\n\n\r\n"
    assert columns(read(text)) == {"a": [1, 2], "b": ["x", None]}


def test_marks_that_open_no_field_are_characters(read: Read) -> None:
    assert columns(read('size,n\n5" pipe,1\n6" pipe,2\n'))["size"] == ['5" pipe', '6" pipe']


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n"x",1\n5" pipe,2\nz,"3"\n', 3),
        ('a,b\n"x",1\n"y" z,2\n', 3),
        ('a,b\n"x\n\n",1\n p"q",2\n', 5),
        ('a,b\n5" pipe,1\n"x",2\n', 2),
        ('a,b\n5" pipe,1\n' + "y,2\n" * 400 + '"x",2\n', 2),
    ],
)
@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_a_stray_mark_is_told_with_its_line(
    read: Read, monkeypatch: pytest.MonkeyPatch, text: str, line: int, chunk: int
) -> None:
    monkeypatch.setattr(_records, "_CHUNK", chunk)
    with pytest.raises(ReadError, match=f"^Line {line} of .*inside a field"):
        read(text)


def test_an_open_mark_is_told(read: Read) -> None:
    with pytest.raises(ReadError, match=r"not closed.* line 3\."):
        read('a,b\n1,"x"\n2,"y\n3,z\n')


# -- records of different lengths


@pytest.mark.parametrize(
    ("text", "line", "fields"),
    [
        ("a,b,c\n1,2,3\n4,5\n", 3, "2 fields"),
        ("a,b,c\n1,2,3\n4,5,6,7\n", 3, "4 fields"),
        ("a,b,c\n1,2,3,\n", 2, "4 fields"),
        ("\n\na,b\n1\n", 4, "1 field"),
        ('a,b\n"two\nlines",1\n\n"x,y"\n', 5, "1 field"),
        ("a,b\r\n1,2\r\n3", 3, "1 field"),
        ("a,b\n" + "1,2\n" * 3000 + "1\n" + "1,2\n", 3002, "1 field"),
    ],
)
def test_a_record_of_another_length_is_told(
    read: Read, monkeypatch: pytest.MonkeyPatch, text: str, line: int, fields: str
) -> None:
    monkeypatch.setattr(_records, "_CHUNK", 1000)
    with pytest.raises(ReadError, match=f"^Line {line} of .* has {fields}, but the header has"):
        read(text)


def test_a_long_and_a_short_record_do_not_cancel(read: Read) -> None:
    with pytest.raises(ReadError, match="Line 3"):
        read("a,b\n1,2\n1,2,3\n1\n")


# -- names


@pytest.mark.parametrize("text", ["a,b,a\n1,2,3\n", 'a,b,"a"\n1,2,3\n'])
def test_a_name_that_comes_twice_is_told(read: Read, text: str) -> None:
    with pytest.raises(ReadError, match="name 'a'"):
        read(text)


@pytest.mark.parametrize("text", [",a\n0,x\n", '"",a\n0,x\n', " ,a\n0,x\n"])
def test_a_column_without_a_name_is_told(read: Read, text: str) -> None:
    with pytest.raises(ReadError, match="no name for column number 1 of 2"):
        read(text)


def test_a_header_alone_is_a_table_without_rows(read: Read) -> None:
    for text in ("a,b\n", "a,b", '"a","b"\r\n'):
        assert columns(read(text)) == {"a": [], "b": []}


@pytest.mark.parametrize("text", [b"", b"\n\n", b" \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_told(read: Read, text: bytes) -> None:
    with pytest.raises(ReadError, match="is empty"):
        read(text)


# -- encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marked_encodings_need_not_be_named(read: Read, encoding: str) -> None:
    assert columns(read("größe,ß\n1,ж𝄞\n".encode(encoding))) == {"größe": [1], "ß": ["ж𝄞"]}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "UTF8", "iso8859_15"])
def test_other_encodings_can_be_named(read: Read, encoding: str) -> None:
    assert columns(read("größe\nñ\n".encode(encoding), encoding=encoding)) == {"größe": ["ñ"]}


def test_an_unreadable_encoding_is_told_without_the_text(read: Read) -> None:
    content = b"name\nx\n" + "Gödel\n".encode("cp437")
    with pytest.raises(ReadError) as caught:
        read(content)
    assert "is not text in utf-8 (line 3 cannot be decoded)" in str(caught.value)
    assert "encoding='cp1252'" in str(caught.value)
    assert "del" not in str(caught.value).replace("delimiter", "").replace("decoded", "")
    with pytest.raises(ReadError, match=r"is not text in cp1252 .* encoding='utf-8'"):
        read(b"a\n\x81\n", encoding="cp1252")


def test_a_wrong_byte_is_found_across_chunks(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text, "_CHUNK", 3)
    monkeypatch.setattr(_records, "_CHUNK", 3)
    assert columns(read("größe\n𝄞ñ\n")) == {"größe": ["𝄞ñ"]}
    with pytest.raises(ReadError, match="line 3 cannot be decoded"):
        read(b"name\nxyz\n\xff\n")


@pytest.mark.parametrize("encoding", ["utf-9", "rot13", "base64"])
def test_an_unknown_encoding_is_told(read: Read, encoding: str) -> None:
    with pytest.raises(ReadError, match=f"no text encoding '{encoding}'"):
        read("a\n1\n", encoding=encoding)


def test_unmarked_utf16_is_told(read: Read) -> None:
    with pytest.raises(ReadError, match=r"null bytes.* encoding='utf-16-le'"):
        read("name\nx\n".encode("utf-16-le"))


# -- compression and names of files


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_compressed_text(read: Read, ending: str) -> None:
    content = "a;b\n1;ß\n".encode()
    packed = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".zst": lambda b: pa.compress(b, "zstd", asbytes=True),
    }[ending](content)
    assert columns(read(packed, "people.csv" + ending)) == {"a": [1], "b": ["ß"]}
    with pytest.raises(ReadError, match=r"cannot be read: its .* compression is damaged"):
        read(packed[: len(packed) // 2], "people.csv" + ending)


def test_a_pattern_in_the_name_is_no_pattern(read: Read) -> None:
    assert columns(read("a\n1\n", "p[1]*?.csv")) == {"a": [1]}


# -- against Python's own reader

cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
spiced = cells | st.lists(st.sampled_from(list('",;\n\r\t x')), max_size=6).map("".join)


@given(
    rows=st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(spiced, min_size=width, max_size=width), min_size=0, max_size=6
        ).map(lambda rows: [[f"column {at}" for at in range(width)], *rows])
    ),
    delimiter=st.sampled_from(",;\t|"),
    # with \n as its line end the writer leaves a \r at the end of a field unquoted
    style=st.sampled_from(
        [(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\n"), (csv.QUOTE_ALL, "\r\n")]
    ),
    chunk=st.sampled_from([1, 7, 64, 1 << 20]),
    data=st.data(),
)
def test_the_same_cells_as_the_csv_module(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    delimiter: str,
    style: tuple[Any, str],
    chunk: int,
    data: st.DataObject,
) -> None:
    quoting, end = style
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    schema = dict.fromkeys(rows[0], "string")
    size = _records._CHUNK
    _records._CHUNK = chunk  # type: ignore[misc]
    try:
        path.write_text(_written(rows, delimiter, quoting, end), "utf-8", newline="")
        read = read_frame(path, delimiter=delimiter, schema=schema)
        assert [[cell or "" for cell in row] for row in read.rows()] == rows[1:]
        if len(rows) > 1:
            at = data.draw(st.integers(1, len(rows) - 1))
            ragged = [*rows[:at], rows[at][:-1], *rows[at + 1 :]]
            path.write_text(_written(ragged, delimiter, csv.QUOTE_ALL, end), "utf-8", newline="")
            before = _written(ragged[:at], delimiter, csv.QUOTE_ALL, end)
            with pytest.raises(ReadError, match=f"Line {before.count(chr(10)) + 1} of"):
                read_frame(path, delimiter=delimiter, schema=schema)
    finally:
        _records._CHUNK = size  # type: ignore[misc]


def _written(rows: list[list[str]], delimiter: str, quoting: Any, end: str) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    return text.getvalue()
