"""Tables drawn from an integer: every kind of column that careless code breaks on."""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

#: In every text of a table, and in its largest number: a message that has it quotes a cell.
CANARY = "Zq7x"
CANARY_NUMBER = 918273645

TRICKY = [
    "", " ", "NA", "null", "nan", "TRUE", "007", "1.0", "1e5", "=1+1", "@SUM(1)", "+1", "-1", "a,b",
    "a;b", "a\tb", 'say "hi"', "two\nlines", "two\r\nlines", "\r", " padded ", "'", "#", "ünïcödé",
    "年齢", "\u202eabc", "2024-02-29", "\x1f", "\ufeff", "*", "[0, 5)", "{a, b}", "< 5", "_x0041_",
    "<b>&amp;", "\u0301", "😀", "\\N", "\x00", "a" * 300, "^a$", "0x10", "1_000", "١٢", "-0",
]  # fmt: skip

_EDGES = [0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), CANARY_NUMBER]
_FLOATS = [
    0.0, -0.0, 0.5, 1.25, -2.25, 1e-7, 1 / 3, 2 / 3, 5e-324, 1e-310, 1.7e308, -1.7e308, 1e16,
    2.0**53, 123456789.125, float(CANARY_NUMBER),
]  # fmt: skip
_EPOCH = dt.datetime(1970, 1, 1)


def _pool(rng: random.Random, values: list[Any], most: int) -> Callable[[], Any]:
    chosen = rng.sample(values, rng.randint(1, min(most, len(values))))
    return lambda: rng.choice(chosen)


def _text(rng: random.Random) -> str:
    text = rng.choice([*TRICKY, *"abcdef", "Bern", "Jena"])
    return text if rng.random() < 0.5 else f"{text}{CANARY}{rng.randint(0, 3)}"


def _moments(rng: random.Random, zone: str | None = None) -> list[dt.datetime]:
    seconds = [rng.randint(-(2**31), 2**32) for _ in range(6)]
    moments = [_EPOCH + dt.timedelta(seconds=s, microseconds=rng.choice([0, 1])) for s in seconds]
    # both sides of an hour that is there twice
    moments += [dt.datetime(2023, 10, 29, hour, 30) for hour in (0, 1)]
    if zone is None:
        return moments
    return [m.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)) for m in moments]


def _cents(rng: random.Random) -> list[Decimal]:
    return [Decimal(rng.randint(-(10**7), 10**7)) / 100 for _ in range(6)]


#: By name: the type, and the values that a column of the kind is drawn from.
KINDS: dict[str, tuple[Any, Callable[[random.Random], list[Any]]]] = {
    "few integers": (pl.Int64(), lambda rng: [20, 30, 40, 50]),
    "ages": (pl.Int64(), lambda rng: [rng.randint(18, 90) for _ in range(12)]),
    "integers": (pl.Int64(), lambda rng: _EDGES),
    "unsigned integers": (pl.UInt64(), lambda rng: [0, 1, 2**64 - 1, 2**53 + 1]),
    "small integers": (pl.Int8(), lambda rng: [-128, -1, 0, 1, 127]),
    "few floats": (pl.Float64(), lambda rng: [0.5, 1.25, -3.75]),
    "floats": (pl.Float64(), lambda rng: _FLOATS),
    "single floats": (pl.Float32(), lambda rng: [0.1, 0.5, 1e-40, 3e38, -0.0, 0.0]),
    "endless floats": (pl.Float64(), lambda rng: [0.5, float("inf"), float("-inf"), float("nan")]),
    "few texts": (pl.String(), lambda rng: ["f", "m", "x"]),
    "texts": (pl.String(), lambda rng: [_text(rng) for _ in range(8)]),
    "categories": (pl.Categorical(), lambda rng: [_text(rng) for _ in range(4)]),
    "ranks": (pl.Enum(["low", "mid", "high"]), lambda rng: ["low", "mid", "high"]),
    "booleans": (pl.Boolean(), lambda rng: [True, False]),
    "dates": (
        pl.Date(),
        lambda rng: [dt.date(1900 + rng.randint(0, 200), 1 + i, 28) for i in range(8)],
    ),
    "far dates": (pl.Date(), lambda rng: [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "moments": (pl.Datetime("us"), _moments),
    "coarse moments": (pl.Datetime("ms"), _moments),
    "fine moments": (pl.Datetime("ns"), _moments),
    "zoned moments": (
        pl.Datetime("us", "Europe/Berlin"),
        lambda rng: _moments(rng, "Europe/Berlin"),
    ),
    "universal moments": (pl.Datetime("us", "UTC"), lambda rng: _moments(rng, "UTC")),
    "clocks": (pl.Time(), lambda rng: [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999)]),
    "spans": (
        pl.Duration("us"),
        lambda rng: [
            dt.timedelta(days=rng.randint(-9, 9), microseconds=rng.randint(0, 2)) for _ in range(4)
        ],
    ),
    "decimals": (pl.Decimal(12, 2), _cents),
    "constant": (pl.Int64(), lambda rng: [7]),
    "nothing": (pl.Float64(), lambda rng: [None]),
    "untyped": (pl.Null(), lambda rng: [None]),
    "lists": (pl.List(pl.Int64()), lambda rng: [[1], [1, 2]]),
}
#: Kinds that most tables are of, so that most plans have something to work on.
USUAL = ["few integers", "ages", "few floats", "few texts", "booleans", "dates", "decimals"]
RARE = {"nothing", "untyped", "lists", "endless floats", "far dates", "constant"}

NAMES = [
    "age", "sex", "zip", "income", "größe cm", "年齢", "a\"b'c", "a,b", "^x$", "*", " lead", "Age",
    "column_1", "row_key", "=name", "select", "two\nlines", "id", "name", "é", "e\u0301", "x.y",
]  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A table with the roles of its columns, as a plan writes them."""

    frame: pl.DataFrame
    roles: dict[str, Any]

    @property
    def quasi_identifiers(self) -> list[str]:
        return self.roles["quasi_identifiers"]

    def write(self, folder: Path, kind: str) -> Path:
        """Write the table as a file of some kind, with other code than Shoal's."""
        path = folder / f"data.{kind}"
        if kind in ("csv", "tsv"):
            path.write_bytes(as_text(self.frame, "," if kind == "csv" else "\t"))
        elif kind == "arrow":
            self.frame.write_ipc(path)
        elif kind == "xlsx":
            self.frame.write_excel(path)
        else:
            self.frame.write_parquet(path)
        return path


def as_text(frame: pl.DataFrame, delimiter: str) -> bytes:
    """The table as a text file, each cell as Python shows it."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(
        ["" if cell is None else cell for cell in row] for row in frame.iter_rows(named=False)
    )
    return file.getvalue().encode("utf-8", "replace")


def draw_table(rng: random.Random, *, tame: bool = False) -> Drawn:
    """A table; a ``tame`` one has records and columns that can be released."""
    rows = rng.choice([8, 13, 24, 24, 40, 40, 60, 90] if rng.random() < 0.85 else [1, 2, 3, 5])
    width = rng.choice([1, 2, 3, 3, 4, 5, 7])
    if not tame and rng.random() < 0.06:
        rows, width = rng.choice([(0, 3), (1, 1), (3, 120), (400, 2)])
    known = [name for name in NAMES if not (tame and name == "^x$")]  # refused, rightly
    names = rng.sample(known, width) if width <= len(known) else [f"c{i}" for i in range(width)]
    people = rows if rng.random() < 0.7 else max(1, rows // 3)
    columns = [draw_column(rng, rows, tame=tame) for _ in names]
    if rng.random() < 0.4:
        columns = _mostly_alike(rng, columns, rows)
    roles = _roles(rng, names)
    if rng.random() < 0.3:
        ids = [f"P{CANARY}{rng.randint(0, people)}" for _ in range(rows)]
        columns.append(pl.Series("person", ids, dtype=pl.String()))
        names = [*names, "person"]
        if rng.random() < 0.8:
            roles["unit"] = rng.choice(["person", "person", "row"])
        if roles.get("unit") != "person" or rng.random() < 0.5:
            roles["identifiers"] = [*roles["identifiers"], "person"]
    if rng.random() < 0.05:
        columns.append(pl.Series("weight", [rng.choice([1.0, 2.5, 40.0]) for _ in range(rows)]))
        names = [*names, "weight"]
        roles["weight"] = "weight"
    frame = pl.DataFrame({str(at): column for at, column in enumerate(columns)})
    frame.columns = names  # afterwards: polars reads one such as ^x$ as a pattern
    return Drawn(frame, {role: names for role, names in roles.items() if names})


def draw_column(rng: random.Random, rows: int, *, tame: bool) -> pl.Series:
    """A column of some kind, often with cells missing."""
    kind = rng.choice(USUAL) if rng.random() < 0.55 else rng.choice(list(KINDS))
    while tame and kind in RARE and rng.random() < 0.95:
        kind = rng.choice(list(KINDS))
    dtype, values = KINDS[kind]
    value = _pool(rng, values(rng), rng.choice([1, 2, 3, 4, 20]))
    gaps = rng.choice([0.0, 0.0, 0.0, 0.1, 0.5])
    cells = [None if rng.random() < gaps else value() for _ in range(rows)]
    return pl.Series(cells, dtype=dtype, strict=False)


def _mostly_alike(rng: random.Random, columns: list[pl.Series], rows: int) -> list[pl.Series]:
    """The same few rows again and again, so that there are classes."""
    few = [rng.randrange(rows) for _ in range(rng.randint(1, 6))] if rows else []
    source = [rng.choice(few) if rng.random() < 0.9 else row for row in range(rows)]
    return [column.gather(source) for column in columns]


def _roles(rng: random.Random, names: list[str]) -> dict[str, Any]:
    roles: dict[str, Any] = {
        "identifiers": [], "quasi_identifiers": [], "sensitive": [], "insensitive": []
    }  # fmt: skip
    weights = (1, 10, 5, 3)
    for name in names:
        roles[rng.choices(list(roles), weights)[0]].append(name)
    if not roles["quasi_identifiers"] and rng.random() < 0.9:
        other = next(role for role in roles if roles[role])
        roles["quasi_identifiers"].append(roles[other].pop())
    return roles


def far_dates() -> pl.DataFrame:
    """Dates beyond every calendar, as a Parquet file may hold them."""
    days = pl.Series("born", [2**31 - 1, 0, -(2**31)], dtype=pl.Int32()).cast(pl.Date())
    return pl.DataFrame([days, pl.Series("age", [1, 2, 2])])


def far_workbook(path: Path) -> None:
    """A workbook of one cell, in its last corner."""
    pl.DataFrame({"age": [1, 2], "sex": ["f", "m"]}).write_excel(path)
    with zipfile.ZipFile(path) as parts:
        kept = {name: parts.read(name) for name in parts.namelist()}
    sheet = kept["xl/worksheets/sheet1.xml"].decode()
    corner = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    kept["xl/worksheets/sheet1.xml"] = sheet.replace("</sheetData>", corner).encode()
    with zipfile.ZipFile(path, "w") as parts:
        for name, content in kept.items():
            parts.writestr(name, content)
