"""Random tables of every kind of column, with the rows beside them in plain Python."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

from shoal import Roles, Table

#: Texts that files like to lose: separators, quotes, line ends, spaces, what looks like a number.
TRICKY = [
    "",
    " ",
    "NA",
    "null",
    "nan",
    "None",
    "TRUE",
    "007",
    "1.0",
    "1e5",
    "=1+1",
    "'=1+1",
    "-5",
    "+49 170",
    "-2+3",
    "\t@a",
    "a;-b",
    "a,b",
    "a;b",
    "a\tb",
    'say "hi"',
    "two\nlines",
    "two\r\nlines",
    " padded ",
    "'",
    "#",
    "ünïcödé",
    "年齢",
    "\u202eabc",
    "2024-02-29",
    "\x00",
    "\x1f",
    "\ufeff",
]

KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "few integers": (pl.Int64(), st.integers(0, 3)),
    "integers": (pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
    "small integers": (pl.Int8(), st.integers(-128, 127)),
    "unsigned integers": (pl.UInt64(), st.integers(0, 2**64 - 1)),
    "few floats": (pl.Float64(), st.sampled_from([0.0, 0.5, 1.25])),
    "floats": (pl.Float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "zeros": (pl.Float64(), st.sampled_from([0.0, -0.0, 1.5, -1e-320])),
    "single floats": (
        pl.Float32(),
        st.floats(allow_nan=False, allow_infinity=False, width=32) | st.sampled_from([-0.0, 0.1]),
    ),
    "booleans": (pl.Boolean(), st.booleans()),
    "few texts": (pl.String(), st.sampled_from("abc")),
    "texts": (pl.String(), st.sampled_from(TRICKY) | st.text(max_size=8)),
    "dates": (pl.Date(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "moments": (
        pl.Datetime("us"),
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    ),
    "moments of a zone": (
        pl.Datetime("ns", "Europe/Lisbon"),
        st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2100, 1, 1)),
    ),
    "clocks": (pl.Time(), st.times()),
    "stretches": (pl.Duration("ms"), st.integers(-(10**9), 10**9)),
    "decimals": (
        pl.Decimal(12, 2),
        st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100),
    ),
}

NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=6
).filter(lambda name: name.strip() == name and not (name[0] == "^" and name[-1] == "$"))


@st.composite
def series(draw: st.DrawFn, name: str, rows: int, kinds: list[str], *, gaps: bool) -> pl.Series:
    """A column with at least one value."""
    dtype, values = KINDS[draw(st.sampled_from(kinds))]
    cells = st.none() | values if gaps and draw(st.booleans()) else values
    drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
    if all(cell is None for cell in drawn):
        drawn[0] = draw(values)
    return pl.Series(name, drawn, dtype=dtype, strict=False)


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    rows: st.SearchStrategy[int] | None = None,
    kinds: list[str] | None = None,
    gaps: bool = True,
    other: int = 2,
) -> Table:
    """A table of one to four quasi-identifiers and up to ``other`` columns besides."""
    height = draw(st.integers(1, 20) if rows is None else rows)
    names = draw(st.lists(NAMES, min_size=1, max_size=4 + other, unique=True))
    allowed = list(KINDS) if kinds is None else kinds
    columns = [draw(series(name, height, allowed, gaps=gaps)) for name in names]
    return Table(
        pl.DataFrame(columns),
        Roles(quasi_identifiers=names[:4], insensitive=names[4:]),
    )


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    """All cells of each row, in plain Python."""
    return table.frame.rows()


def keys_of(table: Table) -> list[tuple[Any, ...]]:
    """The quasi-identifiers of each row, in plain Python; -0.0 and 0.0 are one value there too."""
    columns = [table.frame[name].to_list() for name in table.roles.quasi_identifiers]
    return list(zip(*columns, strict=True)) if columns else [()] * len(table)
