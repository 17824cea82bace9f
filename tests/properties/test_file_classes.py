"""Classes in memory are the classes that a reader of the file sees, in every format and type.

The files are read here by code that shares nothing with Shoal: fields of text between delimiters,
the values of pyarrow bit by bit, the cells of a workbook as they stand in its XML.
"""

from __future__ import annotations

import struct
import zipfile
from collections import Counter
from xml.etree import ElementTree

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.table import LABELLED, ReleasedFile

from ..parts.installed import INSTALLED
from .tables import TRICKY, tables

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def text_rows(path, delimiter):
    """The fields of each record as they stand there, quotation marks and all."""
    rows, row, field, quoted = [], [], "", False
    for char in path.read_bytes().decode():
        quoted ^= char == '"'
        if char == delimiter and not quoted:
            row, field = [*row, field], ""
        elif char == "\n" and not quoted:
            rows.append((*row, field))
            row, field = [], ""
        else:
            field += char
    assert (row, field) == ([], "")
    return rows[1:]


def bits(value):
    return struct.pack("<d", value) if isinstance(value, float) else value


def arrow_rows(table):
    columns = []
    for column in table.columns:
        if pa.types.is_temporal(column.type):
            wide = column.type.bit_width == 64
            column = column.cast(pa.int64() if wide else pa.int32())
        columns.append([bits(value) for value in column.to_pylist()])
    return list(zip(*columns, strict=True))


def sheet_rows(path):
    """The kind and the text of each cell."""
    with zipfile.ZipFile(path) as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            root = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
            shared = ["".join(entry.itertext()) for entry in root]
    rows = []
    for row in sheet.iter(f"{_SHEET}row"):
        cells = {}
        for cell in row:
            text, kind = "".join(cell.itertext()), cell.get("t")
            column = cell.get("r").rstrip("0123456789")
            cells[column] = (kind, shared[int(text)] if kind == "s" else text)
        rows.append(frozenset(cells.items()))
    return rows[1:]


def labelled_rows(path, format):
    """The cells as the library gives them, without any conversion."""
    import pyreadstat

    reader = {"xpt": "read_xport", "zsav": "read_sav"}.get(format, f"read_{format}")
    read = getattr(pyreadstat, reader)
    frame, _ = read(str(path), output_format="polars", disable_datetime_conversion=True)
    return [tuple(map(bits, row)) for row in frame.rows()]


def seen(path, format):
    if format in ("csv", "tsv"):
        return text_rows(path, "," if format == "csv" else "\t")
    if format == "parquet":
        return arrow_rows(pq.read_table(path))
    if format == "arrow":
        with pa.OSFile(str(path)) as file:
            return arrow_rows(pa.ipc.open_file(file).read_all())
    if format in LABELLED:
        return labelled_rows(path, format)
    return sheet_rows(path)


def zeros(values, dtype=pl.Float64):
    return Table(
        pl.DataFrame({"x": pl.Series(values, dtype=dtype)}), Roles(quasi_identifiers=["x"])
    )


@pytest.mark.parametrize("format", INSTALLED)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables(rows=st.integers(1, 12), other=0))
@example(table=zeros([0.0, -0.0, 0.0, float("nan"), None]))
@example(table=zeros([0.0, -0.0, 0.1], pl.Float32))
@example(table=zeros([*TRICKY[:-3], None], pl.String))
def test_one_class_in_memory_is_one_in_the_file(tmp_path_factory, format, table):
    path = tmp_path_factory.mktemp("file") / f"data.{format}"
    try:
        table.write(path, format=format)
    except InputError:  # text files and workbooks cannot hold everything, and say so
        assert format in ("csv", "tsv", "xlsx", *LABELLED)
        return
    rows = seen(path, format)
    labels = table.classes.labels.tolist()
    assert len(rows) == len(labels)
    assert len(set(zip(rows, labels, strict=True))) == len(set(rows)) == len(set(labels))
    counted = ReleasedFile(path, format).sizes(range(len(table.columns))).tolist()
    assert counted == sorted(Counter(rows).values()) == sorted(table.classes.sizes.tolist())


@pytest.mark.parametrize("format", INSTALLED)
def test_what_is_written_in_two_ways_is_two_classes(tmp_path, format):
    """A file that another program wrote, or an older Shoal, is counted as it is."""
    from ..parts.files import write_frame

    path = tmp_path / f"data.{format}"
    frame = pl.DataFrame({"x": [0.0, -0.0, 0.0, 1.5], "y": ["a", "a", "a", "a"]})
    write_frame(frame, path, format=format)
    fields = ReleasedFile(path, format)
    twice = format not in ("zsav", "xpt")  # those have one zero, whatever is written
    assert fields.sizes([0]).tolist() == ([1, 1, 2] if twice else [1, 3])
    assert fields.sizes([1]).tolist() == [4]
    assert fields.sizes([]).tolist() == [4]
