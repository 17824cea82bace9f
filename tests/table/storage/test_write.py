"""Writing: what comes back is what was written, and the file holds nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from shoal.errors import InputError, ReleaseError
from shoal.table.columns import _column
from shoal.table.columns._column import Column, scrubbed_column
from shoal.table.storage._formats import FORMATS, Dialect
from shoal.table.storage._formulas import Formulas
from shoal.table.storage._write import write_columns
from shoal.table.storage.labelled._dictionary import LABELLED

from ...parts.files import read_frame, schema_of, write_frame
from ...parts.installed import is_installed

every_format = pytest.mark.parametrize("format", FORMATS)


def skip_without_extra(format: str) -> None:
    if not is_installed(format):
        pytest.skip(f"the extra that {format} needs is not installed")


def written(frame: pl.DataFrame, folder: Path, format: str) -> Path:
    skip_without_extra(format)
    path = folder / f"data.{format}"
    write_frame(frame, path, format=format)
    return path


def read_back(frame: pl.DataFrame, folder: Path, format: str) -> pl.DataFrame:
    return read_frame(written(frame, folder, format), format=format, schema=schema_of(frame.schema))


def same(left: pl.DataFrame, right: pl.DataFrame) -> bool:
    return left.schema == right.schema and left.equals(right, null_equal=True)


# -- there and back

letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
odd_letters = st.sampled_from(list("\",;\t|\n\r '\ufeff#=+-@_x0A"))
texts = (
    st.text(letters, max_size=8)
    | st.text(odd_letters, max_size=5)
    | st.sampled_from(
        ["01234", "1", "1.0", "NA", "null", "true", "2020-01-31", "", " ", '""', "=1+1", "_x0041_"]
    )
)
names = texts.filter(lambda name: name.strip() != "")
moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
recent = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
KINDS: list[tuple[pl.DataType, st.SearchStrategy[Any]]] = [
    (pl.Int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)),
    (pl.UInt64(), st.integers(0, 2**64 - 1)),
    (pl.Int8(), st.integers(-128, 127)),
    (pl.Float64(), st.floats(allow_nan=False)),
    (pl.Float32(), st.floats(allow_nan=False, width=32)),
    (pl.Boolean(), st.booleans()),
    (pl.String(), texts),
    (pl.Date(), st.dates()),
    (pl.Datetime("us"), moments),
    (pl.Datetime("ms"), moments.map(lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000))),
    (pl.Datetime("ns"), recent),
    (pl.Datetime("us", "Europe/Berlin"), recent.map(lambda m: m.replace(tzinfo=dt.UTC))),
    (pl.Time(), st.times()),
    (pl.Duration("us"), st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))),
    (pl.Decimal(20, 3), st.decimals(-(10**15), 10**15, places=3)),
    (pl.Decimal(10, 2), st.decimals(-(10**7), 10**7, places=2)),
]


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    height = draw(st.integers(0, 5))
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        dtype, values = draw(st.sampled_from(KINDS))
        cells = draw(st.lists(st.none() | values, min_size=height, max_size=height))
        columns.append(pl.Series(name, cells, dtype=dtype))
    return pl.DataFrame(columns)


@every_format
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=frames())
def test_what_was_written_comes_back(tmp_path: Path, format: str, frame: pl.DataFrame) -> None:
    if format in LABELLED:  # other names and many values are refused, which has its own tests
        frame.columns = [f"v{place}" for place in range(frame.width)]
        with contextlib.suppress(InputError):
            assert same(read_back(frame, tmp_path, format), frame)
        return
    if format == "xlsx":
        assume(not frame.select(pl.all_horizontal(pl.all().is_null()).any()).item())
    assert same(read_back(frame, tmp_path, format), frame)


dialects = st.builds(
    Dialect,
    st.sampled_from([";", "\t", "|"]),
    st.sampled_from([".", ","]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "iso8859-15"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=frames(), dialect=dialects, formulas=st.sampled_from(["neutralise", "keep"]))
@example(
    pl.DataFrame({"ï»¿": ["\ufeff", "€"], "x": [1.5, None]}), Dialect(";", ",", "cp1252"), "keep"
)
def test_what_was_written_in_a_dialect_comes_back_or_is_refused(
    tmp_path: Path, frame: pl.DataFrame, dialect: Dialect, formulas: Formulas
) -> None:
    path = tmp_path / "data.csv"
    path.unlink(missing_ok=True)
    cells = [*frame.columns, *(text for s in frame if s.dtype == pl.String for text in s)]
    try:
        "".join(text or "" for text in cells).encode(dialect.encoding)
    except UnicodeEncodeError:
        with pytest.raises(InputError, match="lacks characters"):
            write_frame(frame, path, format="csv", formulas=formulas, dialect=dialect)
        assert not path.exists()
        return
    write_frame(frame, path, format="csv", formulas=formulas, dialect=dialect)
    told = dataclasses.asdict(dialect)
    schema = schema_of(frame.schema)
    assert same(read_frame(path, schema=schema, formulas=formulas, **told), frame)
    first = path.read_bytes()
    write_frame(frame, path, format="csv", formulas=formulas, dialect=dialect)
    assert path.read_bytes() == first


def test_missing_and_empty_differ_in_text(tmp_path: Path) -> None:
    for frame in (
        pl.DataFrame({"a": [None, "", "x"]}),
        pl.DataFrame({"a": ["", None], "b": [1, 2]}),
    ):
        for format in ("csv", "tsv"):
            assert same(read_back(frame, tmp_path, format), frame)


@every_format
def test_a_frame_without_rows(tmp_path: Path, format: str) -> None:
    frame = pl.DataFrame(schema={"a": pl.Int16(), "b": pl.String(), "c": pl.Date()})
    assert same(read_back(frame, tmp_path, format), frame)


@every_format
def test_others_find_what_they_expect(tmp_path: Path, format: str) -> None:
    """Without the recorded schema plain columns come back too."""
    frame = pl.DataFrame(
        {"n": [1, None], "x": [0.1, 2.5], "t": ["a", "b"], "d": [dt.date(2020, 1, 31), None]}
    )
    if format == "por":  # it has no small letters in names
        frame.columns = [name.upper() for name in frame.columns]
    assert same(read_frame(written(frame, tmp_path, format)), frame)


def test_the_text_of_a_csv(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "name, first": ['Z"oë', None],
            "moment": [dt.datetime(2020, 1, 31, 12, 0, 0, 500), dt.datetime(2020, 1, 31)],
            "x": [0.1, 1e-7],
        }
    )
    assert written(frame, tmp_path, "csv").read_bytes().decode() == (
        '"name, first",moment,x\n'
        '"Z""oë",2020-01-31T12:00:00.000500,0.1\n'
        ",2020-01-31T00:00:00,1e-7\n"
    )


# -- the same bytes, and nothing else in them


@every_format
def test_the_same_frame_gives_the_same_bytes(tmp_path: Path, format: str) -> None:
    draw = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "n": draw.integers(0, 9, 3000),
            "t": draw.choice(["a text that is long enough", "b", "c"], 3000),
        }
    )
    frame = frame.with_columns(g=pl.when(pl.col("n") > 4).then(pl.col("n")))
    parts = pl.concat([frame[:1000], frame[1000:]], rechunk=False)
    others = [
        parts,
        pl.concat([frame, frame])[3000:],
        frame.with_columns(pl.col("t").cast(pl.Categorical)),
    ]
    first = written(frame, tmp_path, format).read_bytes()
    os.utime(tmp_path / f"data.{format}", (0, 0))
    for other in others:
        assert written(other, tmp_path, format).read_bytes() == first


SECRET = 0x4142434445464748  # as bytes: HGFEDCBA
LONG = "SECRET text of someone, long"
LEFTOVERS = (b"HGFEDCBA", b"SECRET", b"SHORTY")


def masked_frames() -> dict[str, pl.DataFrame]:
    """Frames of which the first row was made missing, dropped or recoded."""
    whole = pl.DataFrame(
        {
            "i": [SECRET, *range(99)],
            "f": np.array([SECRET, *range(99)]).view(np.float64),
            "d": pl.Series([SECRET, *range(99)]).cast(pl.Datetime("us")),
            "long": [LONG, *(f"some other text, {i}" for i in range(99))],
            "short": ["SHORTY", *["b"] * 99],
            "kind": pl.Series(["SHORTY", *["b"] * 99], dtype=pl.Categorical),
            "enum": pl.Series(["SHORTY", *["b"] * 99], dtype=pl.Enum(["SHORTY", "b"])),
        }
    )
    first = pl.int_range(pl.len()) == 0
    return {
        "made missing": whole.with_columns(
            pl.when(first).then(None).otherwise(pl.all()).name.keep()
        ),
        "dropped": whole.filter(~first),
        "sliced": whole[1:],
        "recoded": whole.with_columns(
            pl.col("i", "d").shift(-1),
            pl.col("f").replace(whole["f"][0], None),
            pl.col("long").replace(LONG, "x"),
            pl.col("short", "kind", "enum").cast(pl.String).replace("SHORTY", None),
        ),
    }


@every_format
@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("how", masked_frames())
def test_nothing_of_a_masked_value_is_in_the_file(
    tmp_path: Path, format: str, how: str, coded: bool
) -> None:
    frame = masked_frames()[how]
    if format == "xlsx":
        frame = frame.with_columns(n=pl.int_range(pl.len()))  # no row without any value
    if format in LABELLED:  # without parts of milliseconds, denormal numbers and reserved names
        frame = frame.drop("d", "f").rename({"long": "longer"})
    path = written(frame, tmp_path, format)
    if coded:
        columns = [Column(column.codes) for column in map(Column, frame)]
        write_columns(columns, path, format=format)
    content = path.read_bytes()
    if format == "xlsx":
        with zipfile.ZipFile(path) as parts:
            content = b"".join(parts.read(part) for part in parts.namelist())
    if format == "parquet":
        content += repr(pq.read_table(path)).encode()
        pl.read_parquet(path).write_parquet(tmp_path / "plain", compression="uncompressed")
        content += (tmp_path / "plain").read_bytes()
    if format == "arrow":
        content = b"".join(_buffers(pa.ipc.open_file(path).read_all()))
    assert not [left for left in LEFTOVERS if left in content]


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("how", masked_frames())
def test_a_scrubbed_frame_holds_only_what_it_shows(
    how: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_column, "_FEW", few)  # texts made anew, or brought through Arrow
    frame = masked_frames()[how]
    clean = pl.DataFrame([scrubbed_column(column) for column in frame])
    assert clean.equals(frame.cast({pl.Categorical: pl.String, pl.Enum: pl.String}, strict=False))
    for level in (pl.CompatLevel.oldest(), pl.CompatLevel.newest()):
        content = b"".join(_buffers(clean.to_arrow(compat_level=level)))
        assert not [left for left in LEFTOVERS if left in content]


def test_this_test_finds_leftovers() -> None:
    """The frames above do hold the masked values before they are scrubbed."""
    for how, frame in masked_frames().items():
        content = b"".join(_buffers(frame.to_arrow(compat_level=pl.CompatLevel.newest())))
        assert any(left in content for left in LEFTOVERS), how


def _buffers(table: pa.Table) -> list[bytes]:
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    chunks += [chunk.dictionary for chunk in chunks if pa.types.is_dictionary(chunk.type)]
    return [bytes(buffer) for chunk in chunks for buffer in chunk.buffers() if buffer is not None]


def test_metadata_of_the_source_is_not_written(tmp_path: Path) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"pandas": "{}", "author": "Zoe"})
    field = table.schema.field("a").with_metadata({"note": "Zoe"})
    pq.write_table(
        table.cast(pa.schema([field], table.schema.metadata)), tmp_path / "source.parquet"
    )
    frame = read_frame(tmp_path / "source.parquet")
    assert set(pq.read_schema(written(frame, tmp_path, "parquet")).metadata or {}) == set()
    assert pq.read_schema(tmp_path / "data.parquet").field("a").metadata is None
    assert pa.ipc.open_file(written(frame, tmp_path, "arrow")).schema.metadata is None
    for format in ("parquet", "arrow"):
        assert b"Zoe" not in (tmp_path / f"data.{format}").read_bytes()


@pytest.mark.parametrize("format", LABELLED)
def test_a_labelled_file_names_no_program_and_no_time(tmp_path: Path, format: str) -> None:
    content = written(pl.DataFrame({"a": [1.5], "b": ["x"]}), tmp_path, format).read_bytes()
    plain = content.replace(b"\r\n", b"")
    assert b"ReadStat" not in plain
    now = dt.datetime.now()
    for moment in ("%d %b %Y", "%d %b %y", "%d%b%y", "%Y%m%d"):
        assert now.strftime(moment).encode() not in plain
        assert now.strftime(moment).upper().encode() not in plain


def test_a_workbook_names_no_one_and_no_time(tmp_path: Path) -> None:
    path = written(pl.DataFrame({"a": ["=1+1", "http://x"]}), tmp_path, "xlsx")
    with zipfile.ZipFile(path) as parts:
        core = parts.read("docProps/core.xml").decode()
        assert {part.date_time for part in parts.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        sheet = parts.read("xl/worksheets/sheet1.xml").decode()
    assert "<dc:creator></dc:creator>" in core or "<dc:creator/>" in core
    assert "1980-01-01T00:00:00Z" in core
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet


# -- what cannot be written


def test_what_a_workbook_cannot_hold_is_told(tmp_path: Path) -> None:
    cases = {
        "1,048,575 rows": pl.DataFrame({"a": np.zeros(1_048_576, np.int8)}),
        "16,384 columns": pl.DataFrame({str(i): [1] for i in range(16_385)}),
        "1 rows have no value in any": pl.DataFrame({"a": [1, None], "b": ["x", None]}),
        "32,767 characters.*'b'": pl.DataFrame({"a": ["x"], "b": ["𝄞" * 16_384]}),
    }
    for told, frame in cases.items():
        with pytest.raises(InputError, match=told):
            written(frame, tmp_path, "xlsx")
    assert not (tmp_path / "data.xlsx").exists()
    longest = pl.DataFrame({"a": ["x" * 32_767]})
    assert same(read_back(longest, tmp_path, "xlsx"), longest)


@every_format
def test_where_nothing_can_be_written(tmp_path: Path, format: str) -> None:
    with pytest.raises(ReleaseError, match="cannot be written: No such file"):
        written(pl.DataFrame({"a": [1]}), tmp_path / "missing", format)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@every_format
def test_a_full_disk(format: str) -> None:
    skip_without_extra(format)
    frame = pl.DataFrame({"a": np.arange(50_000), "b": ["Zoe"] * 50_000})
    with pytest.raises(ReleaseError, match=r"cannot be written.*(full|No space)") as caught:
        write_frame(frame, "/dev/full", format=format)
    assert "Zoe" not in str(caught.value)


@every_format
def test_columns_that_are_not_plain_are_told(tmp_path: Path, format: str) -> None:
    with pytest.raises(InputError, match="'list'"):
        written(pl.DataFrame({"a": [1], "list": [[1]]}), tmp_path, format)
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no format 'json'"):
        write_frame(pl.DataFrame({"a": [1]}), tmp_path / "a", format="json")
