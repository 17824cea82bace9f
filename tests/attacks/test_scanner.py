"""No byte of the public half holds a value that only one original record has.

In the table every value of every column is somebody's alone, and its spelling is recognised
wherever it stands. Every method by discovery masks it, in every format, and every public file is
searched: its bytes, its members where it is an archive, its cells, its metadata and statistics.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest

from shoal import Plan, Roles, Table, protect
from shoal.errors import ShoalWarning
from shoal.masking import discover_maskers
from shoal.table import LABELLED
from shoal.workflow.release._release import _write_public

from ..parts.installed import INSTALLED

ROWS = 120
#: The columns in which everybody has a value of their own.
ALONE = ("whole", "money", "born", "seen", "job")

#: Methods that publish values of single records by what they are, with the reason.
BY_DESIGN = {
    "pram": "a cell keeps its value with a known chance, or gets another one of the column",
    "rank_swap": "cells travel to other records as they are",
    "redraw": "it draws sensitive values anew from the values that there are",
    "sample": "whoever is drawn leaves as they came",
    "shift_dates": "the shifted date of one person may be the true date of another",
    "swap": "cells travel to other records as they are",
    "top_bottom_code": "what lies between the caps stays; its caps are tested below",
}

#: Ways to call the others; a method that is found and is in neither list fails.
WAYS = {
    "add_noise": [{"epsilon": 0.5}],
    "dates_to_year": [{}],
    "generalize": [
        {"k": 3, "seconds": 1.0},
        {"k": 3, "algorithm": "mondrian"},
        {"k": 5, "algorithm": "mondrian", "relaxed": True},
        {"k": 3, "algorithm": "local"},
    ],
    "microaggregate": [
        {"k": 2, "dissimilarity": "gower"},
        {"k": 5, "dissimilarity": "gower", "partition": "mondrian"},
    ],
    "pseudonymize": [
        {"columns": ["whole", "job"]},
        {"columns": ["whole", "job"], "shape": "digits"},
        {"columns": ["whole", "job"], "shape": "words"},
    ],
    "recode": [{"magnitude": 0.5}, {"magnitude": 1.5}],
    "round": [{"base": 10}, {"base": 0.5}],
    "suppress": [{"max_distinct": 0.9}, {"min_count": 2}],
}


def people() -> Table:
    """Everybody has values of their own; none is round, and none is close to another."""
    order = np.random.default_rng(11).permutation(ROWS)
    steps = np.cumsum(np.random.default_rng(12).integers(3, 90, ROWS))
    first = dt.datetime(1931, 2, 3, 4, 5, 6, 789_000)
    frame = pl.DataFrame(
        {
            "whole": 1_000_001 + 90 * steps + steps % 4,
            "money": (7_013.37 + 11 * steps + 0.01 * (steps % 7)).round(2),
            "born": [first.date() + dt.timedelta(days=int(5 * step + step % 4)) for step in steps],
            "seen": [first + dt.timedelta(hours=7, seconds=int(step) * 7013) for step in steps],
            "job": [f"job {chr(97 + step % 26)}{step:05d} of one" for step in steps],
            "sex": ["f", "m"] * (ROWS // 2),
        }
    )
    frame = frame.with_columns(pl.col("money").gather(order), pl.col("born").gather(order[::-1]))
    assert all(frame[name].n_unique() == ROWS for name in ALONE)
    frame = frame.with_columns(pl.col("seen").cast(pl.Datetime("ms")))  # as all formats hold
    return Table(frame, Roles(quasi_identifiers=frame.columns))


_TOKENS = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?)?|job [a-z]\d+ of one|\d+(?:\.\d+)?"
)


def spellings(table: Table, name: str, *, in_days: bool) -> set[str]:
    """How the values of a column may be written; a workbook has dates as numbers of days."""
    found = set()
    for value in table.frame[name].to_list():
        found.add(str(value))
        if isinstance(value, dt.datetime):
            short = value.isoformat(timespec="milliseconds")
            found |= {value.isoformat(), short, short.replace("T", " ")}
        if isinstance(value, dt.date) and in_days:
            moment = (
                value if isinstance(value, dt.datetime) else dt.datetime(*value.timetuple()[:3])
            )
            days = (moment - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)
            found |= {f"{days:.8f}", f"{days:g}"}
    return found


def patterns(table: Table, name: str) -> list[bytes]:
    """The values of a column as columnar files store them, in eight bytes."""
    column = table.frame[name]
    if column.dtype in (pl.String, pl.Date):
        return [] if column.dtype == pl.Date else [value.encode() for value in column]
    shape = "<d" if column.dtype == pl.Float64 else "<q"
    return [struct.pack(shape, value) for value in column.to_physical()]


def labelled_cells(path) -> pl.DataFrame:
    """The cells of a file of Stata, SPSS or SAS, with dates as these programs show them."""
    import pyreadstat

    format = path.suffix.removeprefix(".")
    reader = {"xpt": "read_xport", "zsav": "read_sav"}.get(format, f"read_{format}")
    frame, _ = getattr(pyreadstat, reader)(str(path), output_format="polars")
    floats = [column for column in frame if column.dtype == pl.Float64]
    whole = [column for column in floats if (column == column.round()).all()]
    return frame.with_columns(column.cast(pl.Int64) for column in whole)


def unpacked(path) -> tuple[bytes, str]:
    """The bytes of a file with those of its members, and all that can be read in it."""
    raw = path.read_bytes()
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            raw += b"\n".join(archive.read(name) for name in archive.namelist())
    if path.suffix == ".parquet":
        cells = pl.read_parquet(path)
        raw += repr(pl.read_parquet_metadata(path)).encode()
    elif path.suffix == ".arrow":
        cells = pl.read_ipc(path)
    elif path.suffix.removeprefix(".") in LABELLED:
        cells = labelled_cells(path)
    else:
        return raw, raw.decode("utf-8", "replace")
    for column in cells:
        if not column.dtype.is_nested() and column.dtype != pl.String:
            raw += column.to_physical().drop_nulls().to_numpy().tobytes()
    return raw, raw.decode("utf-8", "replace") + cells.write_csv()


def quoted_in(path, table: Table, names: list[str]) -> dict[str, int]:
    """How many values of each column a file quotes."""
    raw, text = unpacked(path)
    tokens = set(_TOKENS.findall(text))
    tokens |= {f"{float(token):.8f}" for token in tokens if re.fullmatch(r"\d+\.\d{8,}", token)}
    found = {}
    for name in names:
        count = len(spellings(table, name, in_days=path.suffix == ".xlsx") & tokens)
        count += sum(pattern in raw for pattern in patterns(table, name))
        found |= {name: count} if count else {}
    return found


def released(table: Table, masker, folder):
    """A release in every format, as folders of public halves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(table, Plan([masker]))
    for format in INSTALLED:
        _write_public(release, folder / format, format, "neutralise", lambda *_: None)
    return release


CASES = [
    pytest.param(method, options, id=f"{method}-{number}")
    for method in discover_maskers()
    if method not in BY_DESIGN
    for number, options in enumerate(WAYS[method])
]


def test_every_method_is_looked_at():
    assert set(discover_maskers()) == {*BY_DESIGN, *WAYS}
    assert not {*BY_DESIGN} & {*WAYS}


@pytest.mark.parametrize(("method", "options"), CASES)
def test_no_public_byte_quotes_one_person(method, options, tmp_path):
    table = people()
    release = released(table, discover_maskers()[method](**options), tmp_path)
    masked = [name for name in ALONE if name in release.steps[0].touched]
    assert masked
    for path in tmp_path.rglob("*.*"):
        assert quoted_in(path, table, masked) == {}, path.name


@pytest.mark.parametrize("format", INSTALLED)
def test_the_scanner_finds_what_is_there(format, tmp_path):
    """A column that is left in place is quoted in every format, each of its values."""
    table = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(table, Plan([discover_maskers()["sample"](fraction=0.5)]))
    _write_public(release, tmp_path / "public", format, "neutralise", lambda *_: None)
    found = quoted_in(tmp_path / "public" / f"data.{format}", table, list(ALONE))
    assert {name for name in ALONE if found.get(name, 0) >= ROWS // 2} == {*ALONE}


def test_caps_quote_nobody(tmp_path):
    """Values outside the fences, and the whiskers themselves, are pulled in."""
    table = people()
    masker = discover_maskers()["top_bottom_code"](fence=0.2)
    release = released(table, masker, tmp_path)
    assert release.steps[0].touched == ("whole", "money")
    for name in ("whole", "money"):
        before, after = table.frame[name], release.masked.frame[name]
        assert not {after.min(), after.max()} & {*before}
        assert (after == after.max()).sum() > 1
