"""Tables for tests of engines, with every kind of column and gaps in their keys."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl


def people(rows: int, *, seed: int = 11) -> pl.DataFrame:
    """Invented people with few combinations of age group, town and sex; some cells are missing."""
    draw = np.random.default_rng(seed)
    towns = np.array(["Bern", "Jena", "Ærø", "São Tomé", "京都"])
    born = np.array([dt.date(1950, 1, 1) + dt.timedelta(days=365 * i) for i in range(12)])
    frame = pl.DataFrame(
        {
            "alter": draw.integers(18, 70, rows),
            "Wohn ort": draw.choice(towns, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "born": pl.Series(draw.choice(born, rows).tolist(), dtype=pl.Date),
            "member": draw.random(rows) < 0.3,
            "wage": np.round(draw.lognormal(8, 0.6, rows), 2),
            "ill": draw.choice(["flu", "gout", "asthma", "none"], rows, p=[0.4, 0.2, 0.2, 0.2]),
        }
    )
    gap = pl.Series(draw.random(rows) < 0.05)
    return frame.with_columns(
        pl.when(~gap).then("alter").alias("alter"),
        pl.when(~gap.reverse()).then("Wohn ort").alias("Wohn ort"),
        pl.when(pl.Series(draw.random(rows) > 0.02)).then("wage").alias("wage"),
    )


def written(frame: pl.DataFrame, folder: Path, *, files: int = 3) -> Path:
    """The frame as a folder of Parquet files."""
    place = folder / "people"
    place.mkdir()
    size = -(-frame.height // files)
    for number in range(files):
        frame.slice(number * size, size).write_parquet(place / f"{number}.parquet")
    return place


def rows_of(frame: pl.DataFrame) -> dict[tuple[str, ...], int]:
    """How often each row occurs, in any order."""
    counted = frame.group_by(frame.columns).len()
    return {tuple(map(str, row[:-1])): row[-1] for row in counted.iter_rows()}
