"""MDAV with up to a million records, compared with a plain brute force in numba.

Run with ``python benchmarks/kernels/bench_mdav.py [largest]``. Seconds of CPU on one core, the best
of several runs after one that compiles. The brute force is the textbook algorithm in 64-bit floats:
a pass over the live records for each centroid, furthest record and group. It only runs the first
rounds. The time of a pass is proportional to the live records, so the total is estimated as half of
all rounds at the speed of the first ones, marked ~. The targets: 1,000,000 x 6, k = 10 in 6 s;
100,000 x 6, k = 5 in 0.5 s; growth from 100,000 to 1,000,000 with an exponent of at most 1.4.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from shoal.kernels.points.mdav import mdav

ROUNDS = 200
LINE = "{:<26} {:>9,} {:>3} {:>4} {:>10.4f} {:>11} {:>8}"


@njit
def plain_rounds(points: Any, k: int, rounds: int) -> int:
    """Run the first rounds of MDAV over every live record; return the number of groups."""
    rows, columns = points.shape
    live = points.copy()
    nearest, at = np.empty(k), np.empty(k, np.int64)
    groups = 0
    for _ in range(rounds):
        if rows < 3 * k:
            break
        centroid = np.zeros(columns)
        for row in range(rows):
            for column in range(columns):
                centroid[column] += live[row, column]
        query = centroid / rows
        for _ in range(2):
            furthest, leader = -1.0, 0
            for row in range(rows):
                total = 0.0
                for column in range(columns):
                    total += (live[row, column] - query[column]) ** 2
                if total > furthest:
                    furthest, leader = total, row
            query = live[leader].copy()
            nearest[:] = np.inf
            for row in range(rows):
                total = 0.0
                for column in range(columns):
                    total += (live[row, column] - query[column]) ** 2
                if total < nearest[k - 1]:
                    i = k - 1
                    while i > 0 and nearest[i - 1] > total:
                        nearest[i], at[i] = nearest[i - 1], at[i - 1]
                        i -= 1
                    nearest[i], at[i] = total, row
            for row in np.sort(at)[::-1]:
                rows -= 1
                live[row] = live[rows]
            groups += 1
    return groups


def seconds(work: Callable[[], object], runs: int) -> float:
    """CPU seconds of the fastest run."""
    best = math.inf
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def bench(name: str, points: Any, k: int) -> float:
    """Measure and print one line; return the seconds of MDAV."""
    rows, columns = points.shape
    ours = seconds(lambda: mdav(points, k), 1 if rows > 500_000 else 3)
    rounds = rows // (2 * k)
    first = min(ROUNDS, rounds)
    plain = seconds(lambda: plain_rounds(points, k, first), 1)
    whole = plain if first == rounds else plain * rounds / first / 2
    estimated = "" if first == rounds else "~"
    print(
        LINE.format(
            name, rows, columns, k, ours, f"{estimated}{whole:.3g}", f"{whole / ours:.0f}x"
        ),
        flush=True,
    )
    return ours


def kinds(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Tables of six columns that are easy, hard, tied or repeated."""
    normal = rng.normal(size=(rows, 6))
    return {
        "correlated lognormal": np.exp(normal @ (np.eye(6) * 0.4 + 0.4)),
        "integers 0-9": rng.integers(0, 10, (rows, 6)).astype(float),
        "70 % zeros": normal * (rng.random((rows, 6)) < 0.3),
        "each record seven times": np.repeat(normal[: rows // 7 + 1], 7, axis=0)[:rows],
    }


def main(largest: int) -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    few = rng.normal(size=(400, 6))
    mdav(few, 3), plain_rounds(few, 3, 1)
    print(f"{'records':<36} {'d':>3} {'k':>4} {'MDAV s':>10} {'plain s':>11} {'ratio':>8}")
    normal = {}
    for rows in (1_000, 10_000, 100_000, 1_000_000):
        if rows > largest:
            break
        points = rng.normal(size=(rows, 6))
        for k in (3, 5, 10, 50):
            normal[rows, k] = bench("normal", points, k)
        for columns in (2, 13, 30):
            if rows * columns < 10_000_000:
                bench("normal", rng.normal(size=(rows, columns)), 10)
        for name, tied in kinds(rng, rows).items():
            bench(name, tied, 10)
    for k in (3, 5, 10, 50):
        if (1_000_000, k) in normal:
            growth = math.log10(normal[1_000_000, k] / normal[100_000, k])
            print(f"growth of normal, d = 6, k = {k}, 100,000 to 1,000,000: n^{growth:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
