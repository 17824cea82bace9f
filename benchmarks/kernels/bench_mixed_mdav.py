"""MDAV on mixed records, compared with a plain float64 loop that forms the same groups.

Run it with ``python benchmarks/kernels/bench_mixed_mdav.py``. SHOAL_DATA names the folder of public
tables; the default is shared/data next to the repository. Times are CPU seconds after compiling;
memory is what a run adds to the peak of the process (Linux only). The plain loop compares a query
with every remaining record, column by column, which the compiler turns into vector instructions.
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
import numpy.typing as npt
import polars as pl
from numba import njit

from shoal.kernels.groups import mixed_mdav as _mixed_mdav
from shoal.kernels.groups.mixed_mdav import MixedMdav, RandomStartMdav
from shoal.kernels.groups.mu_approx import MuApprox
from shoal.kernels.linkage.mixed_linkage import NearestRecords
from shoal.kernels.space.ahmad_dey import ahmad_dey
from shoal.kernels.space.mixed_records import MixedRecords, gower

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[3] / "shared" / "data")
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
NUMERIC = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
NOMINAL = [
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
]
K = 5

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def adult() -> tuple[Floats, Integers]:
    """The numeric values and the codes of Adult; a missing code is -1."""
    frame = pl.read_parquet(DATA / "uci" / "adult.parquet")
    codes = [
        frame[name].rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1 for name in NOMINAL
    ]
    return frame.select(NUMERIC).to_numpy().astype(np.float64), np.column_stack(codes)


def resampled(rows: int, *, missing: bool) -> tuple[Floats, Integers]:
    """Rows drawn from Adult, with noise on numbers other than 0 and 5 % of the codes redrawn."""
    numeric, codes = adult()
    if not missing:
        complete = (codes >= 0).all(axis=1)
        numeric, codes = numeric[complete], codes[complete]
    generator = np.random.default_rng(0)
    drawn = generator.integers(0, len(numeric), rows)
    noise = generator.normal(0, 0.05 * numeric.std(axis=0), (rows, len(NUMERIC)))
    values = np.round(numeric[drawn] + noise * (numeric[drawn] != 0))
    values = np.clip(values, numeric.min(axis=0), numeric.max(axis=0))
    redrawn = generator.integers(0, len(codes), (rows, len(NOMINAL)))
    again = generator.random((rows, len(NOMINAL))) < 0.05
    return values, np.where(again, codes[redrawn, np.arange(len(NOMINAL))], codes[drawn])


@njit(cache=True)
def compare(
    values: Floats, codes: Integers, weights: Floats, query: int, left: int, gaps: Floats
) -> None:
    """Gower's dissimilarity between one record and each remaining record."""
    gaps[:left] = 0.0
    for column in range(len(values)):
        x, weight = values[column, query], weights[column]
        for at in range(left):
            gaps[at] += abs(values[column, at] - x) * weight
    misses = np.zeros(left, np.int64)
    for column in range(len(codes)):
        code = codes[column, query]
        for at in range(left):
            misses[at] += codes[column, at] != code
    for at in range(left):
        gaps[at] = (gaps[at] + misses[at]) / (len(values) + len(codes))


@njit(cache=True)
def plain_loop(
    values: Floats, codes: Integers, weights: Floats, k: int, permutation: Integers
) -> Integers:
    """The one-group variant that compares with all; the last record replaces one that leaves."""
    left = len(permutation)
    labels, rows, places = np.full(left, -1), np.arange(left), np.arange(left)
    gaps = np.empty(left)
    group = turn = 0
    while left >= 2 * k:
        while labels[permutation[turn]] >= 0:
            turn = (turn + 1) % len(permutation)
        compare(values, codes, weights, places[permutation[turn]], left, gaps)
        turn = (turn + 1) % len(permutation)
        seed = 0
        for at in range(1, left):
            if gaps[at] > gaps[seed] or (gaps[at] == gaps[seed] and rows[at] < rows[seed]):
                seed = at
        compare(values, codes, weights, seed, left, gaps)
        gaps[seed] = -1.0
        near = np.full(k, -1)
        for at in range(left):
            i = k
            while i > 0 and (
                near[i - 1] < 0
                or gaps[at] < gaps[near[i - 1]]
                or (gaps[at] == gaps[near[i - 1]] and rows[at] < rows[near[i - 1]])
            ):
                if i < k:
                    near[i] = near[i - 1]
                i -= 1
            if i < k:
                near[i] = at
        for at in -np.sort(-near):
            labels[rows[at]] = group
            left -= 1
            values[:, at], codes[:, at], rows[at] = values[:, left], codes[:, left], rows[left]
            places[rows[at]] = at
        group += 1
    labels[rows[:left]] = group
    return labels


def finish(partition: Any) -> npt.NDArray[np.int32]:
    while partition.advance() < len(partition.labels):
        pass
    return partition.labels


def linked(records: MixedRecords) -> npt.NDArray[np.int64]:
    """Each record of the first half of a table linked to the second half."""
    rows = np.arange(records.values.shape[1])
    half = len(rows) // 2
    link = NearestRecords(records, rows[:half], rows[half:])
    while link.advance() < half:
        pass
    return link.nearest


def peak_mib() -> float:
    """The highest resident memory since the last reset, or NaN if it is unknown."""
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of a call, its seconds, and the MiB that it adds at its peak."""
    before = float("nan")
    if CLEAR_REFS.exists():
        CLEAR_REFS.write_text("5")  # resets the peak to the resident memory
        before = peak_mib()
    start = time.process_time()
    result = call()
    return result, time.process_time() - start, peak_mib() - before


def bench(rows: int, *, plain: bool) -> None:
    numeric, codes = resampled(rows, missing=False)
    permutation = np.random.default_rng(1).permutation(rows)
    partitions: dict[str, Callable[[], Any]] = {
        "Gower, one group per round": lambda: finish(
            RandomStartMdav(gower(numeric, codes), K, permutation)
        ),
        "Gower, two groups per round": lambda: finish(MixedMdav(gower(numeric, codes), K)),
        "Ahmad-Dey, one group per round": lambda: finish(
            RandomStartMdav(ahmad_dey(numeric, codes), K, permutation)
        ),
        "Ahmad-Dey, two groups per round": lambda: finish(MixedMdav(ahmad_dey(numeric, codes), K)),
    }
    partitions["Gower, mu-approx"] = lambda: finish(MuApprox(gower(numeric, codes), K))
    both = gower(np.vstack([numeric, numeric]), np.vstack([codes, codes]))
    partitions["Gower, nearest record of each in a copy"] = lambda: linked(both)
    loop = None
    if plain:
        weights = gower(numeric, codes).measure.weights
        columns = np.ascontiguousarray(numeric.T), np.ascontiguousarray(codes.T.astype(np.uint16))
        expected, loop, _ = measure(lambda: plain_loop(*columns, weights, K, permutation))
        print(f"{rows:9,}  {'plain loop, Gower, one group per round':<46}{loop:8.2f} s")
    for name, call in partitions.items():
        labels, seconds, mib = measure(call)
        ratio = ""
        if loop is not None and name == "Gower, one group per round":
            np.testing.assert_array_equal(labels, expected)
            ratio = f"{loop / seconds:7.1f}x as fast as the plain loop"
        print(f"{rows:9,}  {name:<46}{seconds:8.2f} s{mib:7.0f} MiB{ratio}", flush=True)


def bench_missing(numeric: Floats, codes: Integers, what: str) -> None:
    permutation = np.random.default_rng(1).permutation(len(numeric))
    calls: dict[str, Callable[[], Any]] = {
        "one group per round": lambda: finish(
            RandomStartMdav(gower(numeric, codes), K, permutation)
        ),
        "two groups per round": lambda: finish(MixedMdav(gower(numeric, codes), K)),
    }
    for name, call in calls.items():
        _, seconds, mib = measure(call)
        print(f"{len(numeric):9,}  {what + ', Gower, ' + name:<46}{seconds:8.2f} s{mib:7.0f} MiB")


def bench_independent(rows: int) -> None:
    """14 independent uniform columns, which suit no tree: always with a tree, and as chosen."""
    records = gower(np.random.default_rng(0).random((rows, 14)), np.zeros((rows, 0), np.int64))
    permutation = np.random.default_rng(1).permutation(rows)
    calls: dict[str, Callable[[], Any]] = {
        "one group per round": lambda: finish(RandomStartMdav(records, K, permutation)),
        "two groups per round": lambda: finish(MixedMdav(records, K)),
    }
    for name, call in calls.items():
        chosen = _mixed_mdav._DEAR
        _mixed_mdav._DEAR = 0.0  # the tree always pays
        expected, tree, _ = measure(call)
        _mixed_mdav._DEAR = chosen
        labels, seconds, mib = measure(call)
        np.testing.assert_array_equal(labels, expected)
        print(f"{rows:9,}  {'independent columns, a tree, ' + name:<46}{tree:8.2f} s")
        print(
            f"{rows:9,}  {'independent columns, chosen, ' + name:<46}{seconds:8.2f} s{mib:7.0f} MiB"
            f"{tree / seconds:7.1f}x as fast as the tree",
            flush=True,
        )


def main(sizes: list[int]) -> None:
    if not (DATA / "uci" / "adult.parquet").exists():
        sys.exit("adult.parquet was not found. Set SHOAL_DATA to the folder of public tables")
    start = time.process_time()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        bench(200, plain=True)
        bench_missing(*resampled(200, missing=True), "")
        bench_independent(2_000)
    print(f"compiled, or loaded from the cache, in {time.process_time() - start:.1f} s")
    for rows in sizes:
        bench(rows, plain=rows <= 100_000)
    bench_independent(50_000)
    bench_missing(*adult(), "Adult with missing values")
    bench_missing(*resampled(100_000, missing=True), "with missing values")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000, 100_000])
