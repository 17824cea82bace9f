"""The overhead of a study: the cost of a task that does nothing, and the gain of a second worker.

Run it with ``python benchmarks/bench_study.py``. Each number is the best of three runs, because
other work on the machine can only add time. Tasks of the first part do next to nothing (one measure
of a small table); tasks of the second keep one core busy for about a second each. Other work on the
machine slows down two workers first, so measure the gain on an idle machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from shoal.study import Study
from shoal.study.running._runner import run

COLUMNS = [f"x{number}" for number in range(8)]
SMALL, TASKS = 50, 200
LARGE, BUSY = 40_000, 10
TARGET_OVERHEAD, TARGET_GAIN = 0.020, 1.7
RUNS = 3


def table(folder: Path, rows: int) -> Path:
    """A table with enough numeric columns to make grouping slow."""
    rng = np.random.default_rng(1)
    path = folder / f"people{rows}.parquet"
    pl.DataFrame({name: rng.normal(size=rows).round(3) for name in COLUMNS}).write_parquet(path)
    return path


def study(path: Path, variants: list[dict], measures: list, seeds: int) -> Study:
    roles = {"quasi_identifiers": COLUMNS}
    return Study.from_dict(
        {
            "seeds": seeds,
            "baseline": False,
            "tables": [{"path": str(path), "roles": roles}],
            "variants": variants,
            "measures": measures,
        }
    )


def seconds(given: Study, jobs: int) -> float:
    """The time of one run in an empty folder."""
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        ended = run(given, out, jobs=jobs)
        assert ended.complete
        assert not ended.failed
        return time.perf_counter() - start


def overhead(folder: Path) -> float:
    """Seconds for a task that does next to nothing: rounding fifty rows, and counting them."""
    bases = [{"method": "round", "base": 1 + number} for number in range(TASKS)]
    variants = [{"name": f"round {b['base']}", "steps": [b]} for b in bases]
    given = study(table(folder, SMALL), variants, ["uniqueness"], 1)
    few = study(table(folder, SMALL), variants[:2], ["uniqueness"], 1)
    start = min(seconds(few, 1) for _ in range(RUNS))  # reading, starting, concluding
    return (min(seconds(given, 1) for _ in range(RUNS)) - start) / (TASKS - 2)


def gain(folder: Path) -> tuple[float, float]:
    """The time of busy tasks with one worker and with two, without starting the workers."""
    swap = {"method": "swap", "k": 5}
    given = study(table(folder, LARGE), [{"name": "swap", "steps": [swap]}], ["uniqueness"], BUSY)
    warm = study(table(folder, LARGE), [{"name": "swap", "steps": [swap]}], ["uniqueness"], 4)
    times = []
    for jobs in (1, 2):
        seconds(warm, jobs)
        times.append(min(seconds(given, jobs) for _ in range(RUNS)))
    return times[0], times[1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        each = overhead(Path(place))
        print(
            f"overhead of a task: {1000 * each:.1f} ms (target: under {1000 * TARGET_OVERHEAD:.0f})"
        )
        if "--overhead" not in sys.argv:
            one, two = gain(Path(place))
            print(
                f"{BUSY} busy tasks: {one:.1f} s with one worker, {two:.1f} s with two, "
                f"{one / two:.2f} times as fast (target: {TARGET_GAIN})"
            )
