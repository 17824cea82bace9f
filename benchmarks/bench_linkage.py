"""Linkage of every person with every masked record: time and peak memory, tables to measurement.

Run it with ``python benchmarks/bench_linkage.py``. SHOAL_DATA names the folder of public tables;
the default is shared/data next to the repository. Rows are drawn from Adult with all of its 14
columns, numbers with noise and 5 % of the other cells redrawn, so that nearly all rows differ; the
masked table has more noise, and 10 % of the other cells redrawn. Times are CPU seconds after
compiling; memory is what a call adds to the peak of the process (Linux only).

recordlinkage 0.16 (Python, its own comparison of all pairs and best match) took 27 s and 5.9 GB for
5,000 × 5,000 records with 6 columns on the machine where 2 shared cores of an AMD EPYC ran this.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import Roles, Table
from shoal.measurement import Measurement
from shoal.risk import distance_linkage, probabilistic_linkage, similarity_linkage

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
Measure = Callable[..., Measurement]
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def jittered(frame: pl.DataFrame, random: np.random.Generator, amount: float) -> pl.DataFrame:
    """Noise on numbers, by their standard deviation, and a share of the other cells redrawn."""
    columns = []
    for column in frame.iter_columns():
        if column.dtype.is_numeric():
            values = column.to_numpy().astype(np.float64)
            noise = np.round(random.normal(0, amount * values.std(), len(values)))
            columns.append(pl.Series(column.name, values + noise * (values != 0)))
        else:
            redrawn = random.random(len(column)) < amount
            rows = np.arange(len(column))
            rows[redrawn] = random.integers(0, len(column), redrawn.sum())
            columns.append(column[rows])
    return pl.DataFrame(columns)


def tables(rows: int) -> tuple[Table, Table]:
    """An original with the given number of rows, and its masked table."""
    random = np.random.default_rng(0)
    adult = pl.read_parquet(DATA / "uci" / "adult.parquet").drop("income").drop_nulls()
    frame = jittered(adult[random.integers(0, len(adult), rows)], random, 0.05)
    original = Table(frame, Roles(quasi_identifiers=frame.columns))
    return original, Table(jittered(frame, random, 0.1), original.roles).paired(original)


def peak_mib() -> float:
    """The highest resident memory since the last reset, or NaN if it is unknown."""
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def show(what: str, measure: Measure, both: tuple[Table, Table], **options: Any) -> None:
    before = float("nan")
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # resets the peak to the resident memory
        before = peak_mib()
    start = time.process_time()
    found = measure(*both, **options)
    seconds = time.process_time() - start
    persons, records = found.details["persons"], found.details["records"]
    print(
        f"{persons:7,} × {records:7,}  {what:<27}{seconds:8.2f} s {peak_mib() - before:7.0f} MiB"
        f"{persons * records / seconds / 1e9:8.2f} G pairs/s   right {found.value:.4f}"
    )


def bench(rows: int, **options: Any) -> None:
    both = tables(rows)
    show("by distance", distance_linkage, both, **options)
    show("probabilistic", probabilistic_linkage, both, **options)
    for comparator in ("exact", "linear", "gauss"):
        what = f"by similarity, {comparator}"
        show(what, similarity_linkage, both, comparator=comparator, **options)


def main() -> None:
    if not (DATA / "uci" / "adult.parquet").exists():
        sys.exit("adult.parquet was not found. Set SHOAL_DATA to the folder of public tables")
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        bench(300)  # compiles
    print("as many persons as by default, with all masked records")
    bench(50_000)
    print("all pairs")
    bench(5_000, sample=5_000)
    show("by distance", distance_linkage, tables(50_000), sample=50_000)
    show("probabilistic, one to one", probabilistic_linkage, tables(2_000), one_to_one=True)


if __name__ == "__main__":
    main()
