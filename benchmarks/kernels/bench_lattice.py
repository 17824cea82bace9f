"""The optimal full-domain search on Adult, compared with ARX.

Run with ``python benchmarks/kernels/bench_lattice.py [largest]`` with the public tables. Seconds of
CPU on one core, the best of several runs after one that compiles: of the base table (the distinct
tuples of coded columns) and of the search. 30,162 records, 9 quasi-identifiers, 12,960 nodes, k =
5, loss; then the same records resampled, k in proportion, and resampled and jittered (age ±3, every
other cell redrawn with probability 0.05), k = 5. The seconds of ARX were recorded in another run
(ARX 3.9.2, its search in a cold JVM, without loading). The targets: at most 0.25 s on Adult
whatever the limit; a tenth of ARX's from 300,000 records on; after the base table, no growth except
that of the distinct tuples.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.kernels.conditions import only_size
from shoal.kernels.grouping import first_rows, group
from shoal.kernels.lattice.lattice import FullDomainSearch
from shoal.kernels.lattice.roll_up import Base

COLUMNS = (
    "sex age race marital-status education native-country workclass occupation salary-class"
).split()
LIMITS = (0.0, 0.05, 1.0)
ARX = {
    ("adult", 30_162): (0.18, 1.51, 3.94),
    ("resampled", 300_000): (0.27, 1.57, 3.60),
    ("resampled", 1_000_000): (0.41, 1.60, 3.56),
    ("resampled", 3_000_000): (0.96, 2.45, 4.48),
    ("jittered", 300_000): (0.72, 7.8, 8.6),
    ("jittered", 1_000_000): (1.4, 7.3, 6.6),
    ("jittered", 3_000_000): (2.5, 12.6, 10.3),
}
LINE = "{:<10} {:>9,} {:>9,} {:>8.3f} {:>6.0%} {:>9.3f} {:>7,} {:>7.2f} {:>7}"


def adult() -> tuple[Any, list[Any], list[Any]]:
    """The coded records, and for each column the codes and leaves of each level."""
    nearby = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("SHOAL_DATA") or nearby)
    table = pl.read_parquet(folder / "uci" / "adult_arx.parquet")
    records, maps, leaves = [], [], []
    for column in COLUMNS:
        file = folder / "hierarchies" / "adult_arx" / f"{column}.csv"
        levels = pl.read_csv(file, separator=";", has_header=False, infer_schema=False)
        codes = np.stack([level.rank("dense").to_numpy() - 1 for level in levels]).astype(np.int32)
        place = dict(zip(levels.to_series(0), range(len(levels)), strict=True))
        codes[0] = np.arange(len(levels))
        records.append([place[value] for value in table[column].cast(pl.String)])
        maps.append(codes)
        leaves.append(np.stack([np.bincount(level)[level] for level in codes]).astype(float))
    return np.array(records, np.int32).T, maps, leaves


def base_table(records: Any, maps: list[Any]) -> Base:
    """The distinct tuples, in one pass over packed keys."""
    keys = np.zeros(len(records), np.uint64)
    for j, steps in enumerate(maps):
        keys *= np.uint64(steps.shape[1])
        keys += records[:, j].astype(np.uint64)
    labels, counts = group(keys)
    none = np.empty(0, np.int32)
    tuples = records[first_rows(labels, len(counts))]
    no_pairs = none, none.reshape(0, 0), none.astype(np.int64)
    return Base(tuples, counts, np.zeros_like(counts), *no_pairs)


def resampled(records: Any, maps: list[Any], rows: int, jitter: bool) -> Any:
    """More records, drawn with replacement and optionally jittered."""
    rng = np.random.default_rng(0)
    drawn = records[rng.integers(0, len(records), rows)]
    if jitter:
        for j, column in enumerate(COLUMNS):
            if column == "age":
                moved = drawn[:, j] + rng.integers(-3, 4, rows)
                drawn[:, j] = np.clip(moved, 0, maps[j].shape[1] - 1)
            else:
                redrawn = rng.random(rows) < 0.05
                other = records[rng.integers(0, len(records), int(redrawn.sum())), j]
                drawn[redrawn, j] = other
    return np.asfortranarray(drawn)  # a table has columns


def seconds(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """CPU seconds of the fastest run, and its result."""
    best, result = math.inf, None
    for _ in range(runs):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def bench(name: str, records: Any, maps: list[Any], leaves: list[Any], k: int) -> None:
    """Print a line for each limit."""
    base_seconds, base = seconds(lambda: base_table(records, maps), 3)
    domains = [float(steps.shape[1]) for steps in maps]

    def run(limit: int) -> FullDomainSearch:
        search = FullDomainSearch(base, maps, leaves, domains, only_size(k), limit=limit)
        while search.advance() < 1:
            pass
        return search

    for limit, peer in zip(LIMITS, ARX[name, len(records)], strict=True):
        ours, search = seconds(lambda limit=limit: run(int(limit * len(records))), 3)
        visited = int(search.counters["visited"])
        ratio = f"{peer / (ours + base_seconds):.0f}x"
        size = len(base.counts)
        print(
            LINE.format(name, len(records), size, base_seconds, limit, ours, visited, peer, ratio)
        )
        print(f"           levels {search.levels}, loss {search.loss:.6f}", flush=True)


def main(largest: int) -> None:
    """Print the table."""
    records, maps, leaves = adult()
    base_table(records[:100], maps)
    print(f"{'records':>20} {'distinct':>9} {'base s':>8} {'limit':>6} {'search s':>9} ", end="")
    print(f"{'nodes':>7} {'ARX s':>7} {'ratio':>7}")
    bench("adult", records, maps, leaves, 5)
    for rows, k in ((300_000, 50), (1_000_000, 166), (3_000_000, 497)):
        if rows <= largest:
            bench("resampled", resampled(records, maps, rows, False), maps, leaves, k)
            bench("jittered", resampled(records, maps, rows, True), maps, leaves, 5)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000)
