"""Classes against polars' group_by, in the same run: time, ratio and peak memory.

Run it with ``python benchmarks/kernels/bench_classes.py``. SHOAL_DATA names the folder of public
tables; the default is shared/data next to the repository. Times are the best of several runs, after
compiling. Memory is what a call adds to the peak of the process (Linux only).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.kernels.grouping import count_sizes, group
from shoal.table._classes import Classes, agreement_of, form_classes
from shoal.table.columns._encode import encode

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[3] / "shared" / "data")
QUASI_IDENTIFIERS = ["ST", "AGEP", "COW", "SCHL", "MAR", "OCCP", "SEX", "RAC1P"]
REPETITIONS = 5
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_mib() -> float:
    """The highest resident memory since the last reset, or NaN if it is unknown."""
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(call: Callable[[], Any]) -> tuple[float, float]:
    """The seconds of the fastest of several calls, and the MiB that a call adds at its peak."""
    call()
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    if not CLEAR_REFS.exists():
        return min(seconds), float("nan")
    CLEAR_REFS.write_text("5")  # resets the peak to the resident memory
    before = peak_mib()
    call()
    return min(seconds), peak_mib() - before


def show(what: str, seconds: float, mib: float, *, against: float | None = None) -> None:
    ratio = "" if against is None else f"  {against / seconds:5.1f}x as fast as polars"
    print(f"{what:<52} {seconds * 1e3:8.1f} ms {mib:8.0f} MiB{ratio}")


def bench_acs() -> None:
    path = DATA / "acs" / "acs_income_2018.parquet"
    if not path.exists():
        print(f"{path.name} was not found. Set SHOAL_DATA to the folder of public tables")
        return
    frame = pl.read_parquet(path, columns=QUASI_IDENTIFIERS)
    rows = len(frame)
    print(f"ACS income 2018: {rows:,} records, 8 columns, {frame.estimated_size('mb'):.0f} MiB")
    polars = measure(lambda: frame.group_by(QUASI_IDENTIFIERS).len())
    show("polars group_by().len()", *polars)

    def classes() -> Classes:
        return form_classes((encode(column) for column in frame.iter_columns()), rows)

    show("classes", *measure(classes), against=polars[0])
    assert classes().count == len(frame.group_by(QUASI_IDENTIFIERS).len())
    few = frame.head(50_000)
    gaps = np.random.default_rng(0).random((6, len(few))) < 0.05
    parts = [
        encode(few.select(pl.when(pl.Series(~gap)).then(name)).to_series())
        for name, gap in zip(QUASI_IDENTIFIERS[:6], gaps, strict=True)
    ]
    tuples = form_classes(parts, 50_000)
    sizes = tuples.sizes.astype(np.float64)
    show(
        "wildcards, 50,000 x 6, 5 % missing each",
        *measure(lambda: agreement_of(parts, tuples).totals(sizes)),
    )


def bench_synthetic() -> None:
    rows = 10_000_000
    rng = np.random.default_rng(0)
    for distinct in (25_000, 1_000_000, 10**12):
        # Spread over 64 bits, so that no key is small.
        keys = rng.integers(0, distinct, rows).astype(np.uint64) * np.uint64(16_777_259)
        print(f"{rows:,} keys, {len(count_sizes(keys)):,} distinct")
        column = pl.DataFrame({"key": keys})
        polars = measure(lambda column=column: column.group_by("key").len())
        show("polars group_by().len()", *polars)
        sizes = measure(lambda keys=keys: count_sizes(keys))
        show("count_sizes", *sizes, against=polars[0])
        labels = measure(lambda keys=keys: group(keys))
        show("group (labels and sizes)", *labels, against=polars[0])


if __name__ == "__main__":
    bench_acs()
    bench_synthetic()
