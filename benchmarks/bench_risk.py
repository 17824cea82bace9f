"""Every risk from class sizes, on 1,121,894 records: CPU time and peak memory.

Run it with ``python benchmarks/bench_risk.py``. SHOAL_DATA names the folder of public tables; the
default is shared/data next to the repository. Each measure gets a new table, so its time includes
the grouping; the first line has the grouping alone. Compilation is not included. Memory is what a
call adds to the peak of the process (Linux only). With wildcards, a twentieth of the cells of some
columns is missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import Roles, Sample, Table, risk

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
QUASI_IDENTIFIERS = ["ST", "AGEP", "COW", "SCHL", "MAR", "SEX", "RAC1P"]
ROLES = Roles(quasi_identifiers=QUASI_IDENTIFIERS, sensitive=["OCCP"], target="PINCP")
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")

Call = Callable[[Table, str], Any]
MEASURES: dict[str, Call] = {
    "grouping alone": lambda table, missing: table.class_sizes(missing),
    "prosecutor_risk": lambda table, missing: risk.prosecutor_risk(table, missing=missing),
    "marketer_risk": lambda table, missing: risk.marketer_risk(table, missing=missing),
    "records_at_risk": lambda table, missing: risk.records_at_risk(table, missing=missing),
    "uniqueness": lambda table, missing: risk.uniqueness(table, missing=missing),
    "journalist_risk, a fraction": lambda table, missing: risk.journalist_risk(
        table, sampling_fraction=0.1, missing=missing
    ),
    "journalist_risk, a population": lambda table, missing: risk.journalist_risk(
        table, population=table, missing=missing
    ),
    "individual_risk": lambda table, missing: risk.individual_risk(
        table, sampling_fraction=0.1, missing=missing
    ),
    "household_risk": lambda table, missing: risk.household_risk(
        table, household="WKHP", sampling_fraction=0.1, missing=missing
    ),
    "population_uniqueness": lambda table, missing: risk.population_uniqueness(
        table, sampling_fraction=0.1, missing=missing
    ),
    "homogeneity": lambda table, missing: risk.homogeneity(table, missing=missing),
    "similarity": lambda table, missing: risk.similarity(table, column="WKHP", missing=missing),
    "skewness": lambda table, missing: risk.skewness(table, column="RELP", missing=missing),
    "suda, size 2": lambda table, missing: risk.suda(table, size=2, missing=missing),
    "suda": lambda table, missing: risk.suda(table, missing=missing),
}


def peak_mib() -> float:
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measured(call: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds, and the MiB that the call adds at its peak."""
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # resets the peak to the resident memory
    before, start = peak_mib(), time.process_time()
    call()
    return time.process_time() - start, peak_mib() - before


def with_gaps(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    gaps = [
        pl.when(pl.Series(rng.random(len(frame)) >= 0.05)).then(pl.col(name)).alias(name)
        for name in names
    ]
    return frame.with_columns(gaps)


def bench(frame: pl.DataFrame, missing: str) -> None:
    for name, call in MEASURES.items():
        table = Table(frame, ROLES)
        seconds, mib = measured(lambda call=call, table=table: call(table, missing))
        print(f"{missing:<9} {name:<32} {seconds:7.2f} s {mib:7.0f} MiB", flush=True)


def bench_certainty(frame: pl.DataFrame) -> None:
    whole = Table(frame, ROLES)
    sample = Sample(fraction=0.5).fit_transform(whole)
    for missing in ("own", "wildcard"):
        seconds, mib = measured(
            lambda missing=missing: risk.certainty(whole, sample, missing=missing)
        )
        print(f"{missing:<9} {'certainty of a half':<32} {seconds:7.2f} s {mib:7.0f} MiB")


if __name__ == "__main__":
    path = DATA / "acs" / "acs_income_2018.parquet"
    if not path.exists():
        raise SystemExit("the public tables are not here; SHOAL_DATA can name their folder")
    everybody = pl.read_parquet(path)
    gappy = with_gaps(everybody, QUASI_IDENTIFIERS[2:6])
    for call in MEASURES.values():  # compiling
        for missing in ("own", "wildcard"):
            call(Table(gappy.head(2_000), ROLES), missing)
    print(f"{len(everybody):,} records, {Table(everybody, ROLES).classes.count:,} classes")
    bench(everybody, "own")
    bench_certainty(everybody)
    print(f"with gaps: {Table(gappy, ROLES).classes.count:,} classes")
    bench(gappy, "wildcard")
