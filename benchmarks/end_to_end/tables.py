"""The tables of the end-to-end benchmark, the same on every run, and their hierarchies.

``python -m end_to_end.tables NAME ROWS FOLDER`` creates one. It runs as a separate process, because
the peak memory of a child includes what its parent held when it started. SHOAL_DATA names the
folder of public tables; the default is shared/data next to the repository. If a public table is
missing, one of the same shape is invented.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
#: The columns of each table and their numbers of values.
ADULT = {
    "sex": 2,
    "age": 74,
    "race": 5,
    "marital-status": 7,
    "education": 16,
    "native-country": 41,
    "workclass": 7,
    "occupation": 14,
    "salary-class": 2,
}
ACS = {
    "ST": 46,
    "AGEP": 80,
    "COW": 8,
    "SCHL": 24,
    "MAR": 5,
    "OCCP": 529,
    "SEX": 2,
    "RAC1P": 9,
}
NUMBERS = ("age", "AGEP", "SCHL")
POINTS = [f"x{i}" for i in range(1, 7)]
SOURCES = {
    "adult": ("uci/adult_arx.parquet", "adult_arx", ADULT),
    "acs": ("acs/acs_income_2018.parquet", "acs_income_2018", ACS),
}
_REDRAWN = 0.05
_MOVED = 3


def invented_values(name: str, count: int) -> pl.Series:
    """All values that an invented column can have."""
    if name in NUMBERS:
        return pl.Series(range(16, 16 + count))
    return pl.Series([f"{code:03d}" for code in range(count)])


def invented(values: dict[str, int], rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """A table of the same shape, with few frequent and many rare values."""
    columns: dict[str, Any] = {}
    for name, count in values.items():
        codes = np.minimum(rng.geometric(min(0.9, 3 / count), rows) - 1, count - 1)
        columns[name] = invented_values(name, count).gather(codes)
    return pl.DataFrame(columns)


def jittered(source: pl.DataFrame, rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """More records, drawn with replacement; ages are moved and one cell in twenty is redrawn."""
    drawn = source[rng.integers(0, len(source), rows)]
    columns = []
    for series in drawn:
        if series.name in ("age", "AGEP"):
            ends = source[series.name].min(), source[series.name].max()
            moved = series.to_numpy() + rng.integers(-_MOVED, _MOVED + 1, rows)
            columns.append(pl.Series(series.name, np.clip(moved, *ends)))
        else:
            places = np.arange(rows, dtype=np.int64)
            again = rng.random(rows) < _REDRAWN
            places[again] = rows + rng.integers(0, len(source), int(again.sum()))
            both = pl.concat([series, source[series.name]], rechunk=True)
            columns.append(both.gather(places))
    return pl.DataFrame(columns)


def of_source(name: str, rows: int) -> pl.DataFrame:
    """A part of a public table, or more records than it has, jittered."""
    file, _, values = SOURCES[name]
    rng = np.random.default_rng(20_26)
    path = DATA / file
    if not path.is_file():
        print(f"{file} was not found; a table of the same shape is invented.")
        return invented(values, rows, rng)
    source = pl.read_parquet(path).select(list(values))
    if name == "acs" and rows <= len(source):
        return source[np.sort(rng.choice(len(source), rows, replace=False))]
    return jittered(source, rows, rng)


def points(rows: int) -> pl.DataFrame:
    """Six continuous columns with correlations."""
    rng = np.random.default_rng(20_26)
    common, own = rng.normal(size=(rows, 2)), rng.normal(size=(rows, 6))
    numbers = common @ rng.normal(size=(2, 6)) + own
    return pl.DataFrame(dict(zip(POINTS, numbers.T, strict=True)))


def few(rows: int) -> pl.DataFrame:
    """A small mixed table: an identifier, numbers and texts."""
    rng = np.random.default_rng(20_26)
    numbers = {
        "hours": np.clip(rng.normal(39, 9, rows).round(), 1, 90).astype(np.int64),
        "income": rng.lognormal(10, 0.6, rows).round(2),
    }
    people = of_source("adult", rows).with_columns(**{n: pl.Series(v) for n, v in numbers.items()})
    return people.with_columns(pl.Series("person", rng.permutation(rows) + 100_000)).select(
        "person", pl.exclude("person")
    )


def write_hierarchies(name: str, folder: Path) -> None:
    """One file per column: the public ones, or values grouped in threes at each level."""
    _, shelf, values = SOURCES[name]
    folder.mkdir(exist_ok=True)
    for column, count in values.items():
        path = DATA / "hierarchies" / shelf / f"{column}.csv"
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
            continue
        lines = []
        for place, value in enumerate(invented_values(column, count).cast(pl.String)):
            steps = [step for step in range(1, 4) if 3**step < count]  # to keep the lattice small
            levels = [f"{step}-{place // 3**step}" for step in steps]
            lines.append(";".join([value, *levels, "*"]))
        (folder / path.name).write_text("\n".join(lines) + "\n")


def main(name: str, rows: int, folder: Path) -> None:
    """Write a table; it gets its name at the end, so an existing file is complete."""
    kind, _, ending = name.partition(".")
    frame = {"points": points, "few": few}.get(kind, lambda n: of_source(kind, n))(rows)
    part = folder / f"{kind}-{rows}.part"
    if ending == "csv":
        frame.write_csv(part)
    else:
        frame.write_parquet(part)
    if kind in SOURCES:
        write_hierarchies(kind, folder / f"{kind}-hierarchies")
    part.rename(folder / f"{kind}-{rows}.{ending}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
