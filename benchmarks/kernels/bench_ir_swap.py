"""IR-SWAP of ten million values compared with numpy's argsort of the same values.

Run with ``python benchmarks/kernels/bench_ir_swap.py [rows]``. Seconds of CPU on one core, best of
three after a first call that compiles; the last column is the share of numpy's argsort in the same
run. The target: ranking, the draw of a secret permutation in every rank group, and the values in
their new places take no longer than the argsort alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from shoal.kernels.groups.univariate import individual_ranking
from shoal.randomness import SecretStream

K = 5


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the best of three runs, after one warm-up."""
    work()
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def swapped(values: np.ndarray, stream: SecretStream) -> np.ndarray:
    """The values, exchanged at random within groups of K neighboring ranks."""
    order, offsets = individual_ranking(values, K)
    return values[stream.permute_within(order, offsets)]


def check(values: np.ndarray, after: np.ndarray) -> None:
    """Check that it was a swap: each group, sorted, has the same values as before."""
    order, offsets = individual_ranking(values, K)
    groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    before, moved = values[order], after[order]
    assert (before == moved[np.lexsort((moved, groups))]).all()


def main(rows: int) -> None:
    """Measure and print one line per kind of values."""
    stream = SecretStream.from_state(None)
    random = np.random.default_rng(1)
    kinds = {
        "floats, all different": random.normal(size=rows),
        "floats of whole numbers, skewed": np.floor(random.lognormal(10, 1, rows)),
        "whole numbers below 100": random.integers(0, 100, rows),
    }
    print(f"{rows:,} values, k = {K}".ljust(36) + "  argsort   ranking   IR-SWAP   of argsort")
    for name, values in kinds.items():
        if rows <= 1_000_000:
            check(values, swapped(values, stream))
        argsort = seconds(lambda values=values: np.argsort(values))
        ranking = seconds(lambda values=values: individual_ranking(values, K))
        swap = seconds(lambda values=values: swapped(values, stream))
        print(
            f"{name:36}{argsort:9.3f}{ranking:10.3f}{swap:10.3f}{swap / argsort:11.2f}", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
