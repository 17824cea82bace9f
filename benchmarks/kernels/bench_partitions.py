"""Partitions of one core: ranking, optimal, Mondrian, V-MDAV, μ-Approx, and local search.

Run with ``python benchmarks/kernels/bench_partitions.py [names of parts]``; parts are ``ranking``,
``optimal``, ``mondrian``, ``groups``, ``refine`` and ``large``, all of them by default. Seconds of
CPU, best of three after a first call that compiles. Information loss is 100 × SSE / SST on
standardized columns. SHOAL_DATA names the folder of public tables; the default is shared/data next
to the repository.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.kernels.groups.mondrian import Mondrian
from shoal.kernels.groups.mu_approx import MuApprox
from shoal.kernels.groups.univariate import (
    OptimalUnivariate,
    individual_ranking,
    labels_of,
    stable_argsort,
)
from shoal.kernels.groups.v_mdav import VMdav
from shoal.kernels.refine.group_lists import WORDS_PER_KICK
from shoal.kernels.refine.refine import Refinement
from shoal.kernels.space.mixed_records import gower, squared_euclidean
from shoal.randomness import SecretStream

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[3] / "shared" / "data")
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]


class Partition(Protocol):
    """What all drivers provide."""

    labels: Labels

    def advance(self) -> int: ...


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the best of three runs, after one warm-up."""
    work()
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def finished(partition: Any, count: int) -> Any:
    while partition.advance() < count:
        pass
    return partition


def loss(points: Floats, labels: Labels) -> float:
    """100 × SSE / SST."""
    sums = np.zeros((labels.max() + 1, points.shape[1]))
    np.add.at(sums, labels, points)
    means = sums / np.bincount(labels)[:, None]
    whole = ((points - points.mean(axis=0)) ** 2).sum()
    return float(100 * ((points - means[labels]) ** 2).sum() / whole)


def casc(name: str) -> Floats | None:
    import polars as pl

    path = DATA / "casc" / f"{name}.parquet"
    if not path.exists():
        print(f"{path.name} was not found. Set SHOAL_DATA to the folder of public tables")
        return None
    frame = pl.read_parquet(path)
    if name == "eia":
        first = frame.columns.index("RESREVENUE")
        frame = frame.select("UTILITYID", *frame.columns[first : first + 10])
    points = frame.to_numpy().astype(float)
    return (points - points.mean(axis=0)) / points.std(axis=0)


def mdav(points: Floats, k: int) -> Labels:
    """The plain quadratic MDAV, as a start for the local search."""
    labels = np.full(len(points), -1, np.int32)
    left = np.arange(len(points))

    def outermost(point: Floats) -> int:
        return int(left[((points[left] - point) ** 2).sum(axis=1).argmax()])

    def without_group(seed: int) -> npt.NDArray[np.intp]:
        near = np.argsort(((points[left] - points[seed]) ** 2).sum(axis=1), kind="stable")[:k]
        labels[left[near]] = labels.max() + 1
        return np.delete(left, near)

    while len(left) >= 2 * k:
        seed, pair = outermost(points[left].mean(axis=0)), len(left) >= 3 * k
        left = without_group(seed)
        if pair:
            left = without_group(outermost(points[seed]))
    labels[left] = labels.max() + 1
    return labels


def v_mdav(points: Floats, k: int, gamma: float) -> VMdav:
    return VMdav(squared_euclidean(points), k, gamma * gamma)


def mondrian(points: npt.NDArray[Any], k: int) -> Mondrian:
    none = np.empty((len(points), 0), np.int64)
    return Mondrian(gower(points.astype(np.float64), none), k)


def bench_ranking() -> None:
    random = np.random.default_rng(0)
    print("individual ranking, k = 3".ljust(44) + "argsort  with labels  numpy argsort")
    for rows in (1_000_000, 10_000_000):
        columns: dict[str, npt.NDArray[Any]] = {
            "normal": random.normal(size=rows),
            "lognormal whole numbers": np.exp(random.normal(10, 1, rows)).astype(np.int64),
            "0 to 9": random.integers(0, 10, rows),
        }
        for name, values in columns.items():
            ours = seconds(lambda values=values: stable_argsort(values))
            labels = seconds(lambda values=values: labels_of(*individual_ranking(values, 3)))
            numpy = seconds(lambda values=values: np.argsort(values))
            print(f"{rows:>12,} {name:28}{ours:10.3f}{labels:13.3f}{numpy:15.3f}", flush=True)


def bench_optimal() -> None:
    values = np.random.default_rng(0).normal(size=1_000_000)
    for k in (3, 10, 100):
        taken = seconds(lambda k=k: finished(OptimalUnivariate(values, k), len(values)).labels)
        print(f"optimal univariate, 1,000,000 values, k = {k:<4}{taken:10.3f}", flush=True)


def bench_mondrian() -> None:
    random = np.random.default_rng(0)
    for rows in (30_000, 3_000_000):
        codes = [random.integers(0, levels, rows) for levels in (74, 16, 7, 14, 6, 5, 2, 41)]
        tables: dict[str, npt.NDArray[Any]] = {
            "8 columns of codes, int16": np.stack(codes, axis=1).astype(np.int16),
            "8 normal columns, float64": random.normal(size=(rows, 8)),
        }
        for name, points in tables.items():
            taken = seconds(lambda points=points: finished(mondrian(points, 5), len(points)))
            print(f"Mondrian, {rows:>9,} × {name:26} k = 5 {taken:8.3f}", flush=True)


def bench_groups() -> None:
    print("information loss (CPU s)".ljust(26) + "MDAV     V-MDAV 0.2  V-MDAV 1.1  μ-Approx")
    for name in ("census", "eia"):
        points = casc(name)
        for k in (3, 5, 10) if points is not None else ():
            n = len(points)
            cells = [f"{loss(points, mdav(points, k)):.4f}  "]
            makers: list[Callable[[], Partition]] = [
                lambda points=points, k=k: v_mdav(points, k, 0.2),
                lambda points=points, k=k: v_mdav(points, k, 1.1),
                lambda points=points, k=k: MuApprox(squared_euclidean(points), k),
            ]
            for maker in makers:
                taken = seconds(lambda maker=maker, n=n: finished(maker(), n))
                found = loss(points, finished(maker(), n).labels)
                cells.append(f"{found:.4f} ({taken:.3f})")
            print(f"{name:>8} k = {k:<12}" + "  ".join(cells), flush=True)
    points = np.random.default_rng(0).normal(size=(100_000, 6))
    for k in (5, 10):
        for label, maker in {
            "V-MDAV, gamma = 0.2": lambda k=k: v_mdav(points, k, 0.2),
            "μ-Approx": lambda k=k: MuApprox(squared_euclidean(points), k),
        }.items():
            taken = seconds(lambda maker=maker: finished(maker(), len(points)))
            print(f"{label}, 100,000 × 6, k = {k}: {taken:.2f}", flush=True)


def bench_refine() -> None:
    stream = SecretStream.from_state(None)
    budgets = (0.25, 1.0, 5.0)
    print("information loss".ljust(20) + "MDAV     descent (CPU s)   after " + str(budgets) + " s")
    for name in ("census", "eia"):
        points = casc(name)
        for k in (3, 5, 10) if points is not None else ():
            start_labels = mdav(points, k)
            warm = finished(Refinement(points, start_labels, k), len(points))
            warm.perturb(stream.words(WORDS_PER_KICK))
            start = time.process_time()
            refinement = finished(Refinement(points, start_labels, k), len(points))
            taken = time.process_time() - start
            cells = [f"{loss(points, start_labels):8.4f} {loss(points, refinement.labels):8.4f}"]
            cells.append(f"({taken:.3f})")
            for budget in budgets:
                while time.process_time() - start < budget:
                    refinement.perturb(stream.words(32 * WORDS_PER_KICK))
                cells.append(f"{loss(points, refinement.labels):8.4f}")
            print(f"{name:>8} k = {k:<6}" + "  ".join(cells), flush=True)


def bench_large() -> None:
    stream = SecretStream.from_state(None)
    points = np.random.default_rng(0).normal(size=(100_000, 6))
    for k in (5, 20):
        labels = finished(v_mdav(points, k, 0.0), len(points)).labels
        refinement = Refinement(points, labels, k)
        start, longest = time.process_time(), 0.0
        reached = 0
        while reached < len(points):
            before = time.process_time()
            reached = refinement.advance()
            longest = max(longest, time.process_time() - before)
        descent = time.process_time() - start
        found = loss(points, refinement.labels)
        start = time.process_time()
        while time.process_time() - start < 5:
            refinement.perturb(stream.words(32 * WORDS_PER_KICK))
        print(
            f"refine 100,000 × 6, k = {k}: {loss(points, labels):.4f}, at rest {found:.4f} after"
            f" {descent:.2f} s (longest call {longest:.2f}), {loss(points, refinement.labels):.4f}"
            " after 5 s more",
            flush=True,
        )


PARTS: dict[str, Callable[[], None]] = {
    "ranking": bench_ranking,
    "optimal": bench_optimal,
    "mondrian": bench_mondrian,
    "groups": bench_groups,
    "refine": bench_refine,
    "large": bench_large,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
