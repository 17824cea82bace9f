"""The cost of secret randomness for ten million rows, compared with numpy's sort and shuffle.

Run with ``python benchmarks/kernels/bench_randomness.py [rows]``. Seconds of CPU on one core, best
of three after a first call that compiles; the last column is the share of numpy's argsort in the
same run. The target: permutations are not noticeable, so all stay well below an argsort.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from shoal.randomness import SecretStream


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the best of three runs, after one warm-up."""
    work()
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main(rows: int) -> None:
    """Measure and print one line per draw."""
    stream = SecretStream.from_state(None)
    values = stream.uniform(rows)
    scattered = stream.permutation(rows)
    in_place = np.arange(rows)
    numpy_generator = np.random.default_rng()

    def groups_of(k: int) -> np.ndarray:
        return np.append(np.arange(0, rows - k + 1, k), rows)

    works: dict[str, Callable[[], object]] = {
        "numpy argsort of floats": lambda: np.argsort(values),
        "numpy permutation (not secret)": lambda: numpy_generator.permutation(rows),
        "numpy laplace (not secret)": lambda: numpy_generator.laplace(values, 1.0),
        "words": lambda: stream.words(rows),
        "uniform": lambda: stream.uniform(rows),
        "permutation": lambda: stream.permutation(rows),
        "permute_within, k = 5, sorted rows": lambda: stream.permute_within(in_place, groups_of(5)),
        "permute_within, k = 5, any rows": lambda: stream.permute_within(scattered, groups_of(5)),
        "permute_within, one group": lambda: stream.permute_within(scattered, [0, rows]),
        "choose a tenth": lambda: stream.choose(rows, rows // 10),
        "keyed_hash": lambda: stream.keyed_hash(in_place, "sample"),
        "laplace_on_grid": lambda: stream.laplace_on_grid(values, 1.0),
    }
    print(f"{rows:,} rows".ljust(36) + "   CPU s   of argsort")
    argsort = None
    for name, work in works.items():
        taken = seconds(work)
        argsort = argsort or taken
        print(f"{name:36}{taken:8.3f}{taken / argsort:11.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
