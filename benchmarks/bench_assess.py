"""The cost of an assessment, measure by measure: CPU time and peak memory.

Run it with ``python benchmarks/bench_assess.py``. SHOAL_DATA names the folder of public tables; the
default is shared/data next to the repository. Every assessment runs twice, and the second run
counts, after compiling. Memory is what it adds to the peak of the process (Linux only).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import polars as pl

import shoal as sh

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
SHOWN = 0.05

ADULT = sh.Roles(
    quasi_identifiers=["age", "sex", "race", "marital-status", "native-country"],
    sensitive=["occupation"],
    target="income",
)
ACS = sh.Roles(quasi_identifiers=["ST", "AGEP", "COW", "SCHL", "MAR", "OCCP", "SEX", "RAC1P"])


class Clock:
    """The progress of an assessment, which shows how long each measure took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._label = ""
        self._start = time.process_time()

    def __call__(self, label: str, share: float) -> None:
        now = time.process_time()
        if self._label:
            self.seconds[self._label] = now - self._start
        self._label, self._start = label.removeprefix("Measuring: "), now

    def stop(self) -> None:
        self("", 1.0)


def peak_mib() -> float:
    """The highest resident memory since the last reset, or NaN if it is unknown."""
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def bench(what: str, run: Callable[[Clock], sh.Assessment]) -> None:
    run(Clock())
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # resets the peak to the resident memory
    before, clock = peak_mib(), Clock()
    start, wall = time.process_time(), time.perf_counter()
    found = run(clock)
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    added = peak_mib() - before
    clock.stop()
    start = time.process_time()
    page = found.to_html()
    drawn = time.process_time() - start
    print(
        f"{what}: {cpu:.2f} s of CPU, {wall:.2f} s, {added:.0f} MiB; {len(found.measurements)} "
        f"measures, {len(found.failed)} failed; page {len(page) / 1024:.0f} KiB in {drawn:.2f} s"
    )
    for label, seconds in sorted(clock.seconds.items(), key=lambda item: -item[1]):
        if seconds >= SHOWN:
            print(f"    {seconds:6.2f} s  {label}")


def bench_adult() -> None:
    path = DATA / "uci" / "adult.parquet"
    if not path.exists():
        print(f"{path.name} was not found. Set SHOAL_DATA to the folder of public tables")
        return
    table = sh.Table(pl.read_parquet(path), ADULT)
    bench(f"Adult, {len(table):,} records", lambda clock: sh.assess(table, progress=clock))
    swapped = sh.Swap(k=5).fit_transform(table)
    bench(
        "    against the original, swapped with k = 5",
        lambda clock: sh.assess(swapped, original=table, progress=clock),
    )
    boxes = sh.Generalize(k=20, algorithm="mondrian").fit_transform(table)
    sample = sh.Sample(fraction=0.5).fit_transform(boxes)
    bench(
        "    a half of it in boxes of k = 20",
        lambda clock: sh.assess(sample, original=boxes, progress=clock),
    )


def bench_acs() -> None:
    path = DATA / "acs" / "acs_income_2018.parquet"
    if not path.exists():
        print(f"{path.name} was not found. Set SHOAL_DATA to the folder of public tables")
        return
    table = sh.Table(pl.read_parquet(path), ACS)
    frame = table.frame

    def from_scratch(clock: Clock) -> sh.Assessment:
        return sh.assess(sh.Table(frame, ACS), progress=clock)  # groups classes again

    bench(f"ACS income 2018, {len(table):,} records", from_scratch)


if __name__ == "__main__":
    warnings.simplefilter("ignore", sh.errors.ShoalWarning)
    bench_adult()
    bench_acs()
