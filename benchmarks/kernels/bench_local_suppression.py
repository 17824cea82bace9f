"""Cells blanked by local suppression, compared with the rule of sdcMicro, and seconds at a million.

Run with ``python benchmarks/kernels/bench_local_suppression.py`` with the public tables. The
tables are test tables of sdcMicro, 4,580 and 4,000 records. The rule is that of its
``localSuppression``, written again here from its published source: only k records of each
combination take part; as long as some record agrees with fewer than k, each such record, in order
of risk, loses the least important cell in which one of the records nearest to it differs. A missing
value agrees with every value.

``blanks`` counts cells, all of the same cost. ``ranked`` is the sum of the ranks of importance of
the blanked cells, with the default ranks of sdcMicro in both: columns with few values matter most.
``floor`` is what no choice falls below; ``own`` are the blanks if a missing value is a value of its
own, which sdcMicro does not offer. Times are seconds of CPU after a run that compiles.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal import Roles, Suppress, Table

FREE = ["SEX", "MARSTAT", "KINDPERS", "EDUC1", "ETNI"]
KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
#: Columns of the test tables of sdcMicro.
SETS = {
    "testdata, 5": ("sdcmicro_testdata", ["urbrur", "roof", "walls", "relat", "sex"]),
    "testdata, 6": ("sdcmicro_testdata", ["urbrur", "roof", "walls", "water", "relat", "sex"]),
    "testdata, 7": ("sdcmicro_testdata", KEYS),
    "with age": ("sdcmicro_testdata", [*KEYS, "age"]),
    "free1, 5": ("free1", FREE),
    "free1, 7": ("free1", [*FREE, "NUMYOUNG", "POSLABM"]),
}
Codes = npt.NDArray[np.int64]


def ranks(frame: pl.DataFrame) -> dict[str, int]:
    """The default importance: the most for the column with the fewest values."""
    ordered = sorted(frame.columns, key=lambda name: frame[name].n_unique())
    return {name: len(ordered) - place for place, name in enumerate(ordered)}


def by_nearest(frame: pl.DataFrame, k: int) -> dict[str, int]:
    """How many cells of each column the rule of sdcMicro blanks; -1 codes a missing value."""
    codes = np.column_stack([frame[name].rank("dense").to_numpy() for name in frame.columns])
    order = np.lexsort(codes.T[::-1])
    new = np.append(True, (np.diff(codes[order], axis=0) != 0).any(axis=1))
    starts = np.flatnonzero(new)[np.cumsum(new) - 1]
    part: Codes = codes[order][np.arange(len(codes)) - starts < k].astype(np.int64)
    worth = ranks(frame)
    columns = sorted(range(frame.width), key=lambda place: worth[frame.columns[place]])
    while len(rare := np.flatnonzero((crowds := agreeing(part)) < k)):
        for row in rare[np.argsort(crowds[rare], kind="stable")]:
            both = (part != -1) & (part[row] != -1)
            differ = (part != part[row]) & both
            distance = differ.sum(axis=1)
            distance[row] = frame.width + 1
            distance[distance == 0] = frame.width + 1
            near = differ[distance == distance.min()]
            part[row, next(place for place in columns if near[:, place].any())] = -1
    return dict(zip(frame.columns, (part == -1).sum(axis=0).tolist(), strict=True))


def agreeing(part: Codes) -> Codes:
    """How many records agree with each, where a missing value agrees with every value."""
    return np.array([((part == row) | (part == -1) | (row == -1)).all(1).sum() for row in part])


def ours(frame: pl.DataFrame, k: int, **options: object) -> tuple[Suppress, pl.DataFrame]:
    """The step and the masked frame."""
    step = Suppress(k=k, **options)
    masked = step.fit_transform(Table(frame, Roles(quasi_identifiers=frame.columns)))
    return step, masked.frame


def compare(data: Path) -> None:
    """Print a line for each set of columns and k."""
    print(f"{'':12} {'k':>2} {'sdcMicro':>9} {'blanks':>7} {'floor':>6} {'own':>6}", end="")
    print(f" {'ranked: sdcMicro':>17} {'ours':>6}")
    for name, (table, columns) in SETS.items():
        frame = pl.read_parquet(data / f"microdata/{table}.parquet").select(columns)
        worth = ranks(frame)
        for k in (2, 3, 5):
            theirs = by_nearest(frame, k)
            fewest, _ = ours(frame, k, missing="wildcard")
            own, _ = ours(frame, k)
            _, masked = ours(frame, k, missing="wildcard", importance=worth)
            blanks = {column: masked[column].null_count() for column in columns}
            print(f"{name:12} {k:>2} {sum(theirs.values()):>9,} {fewest.blanked_:>7,}", end="")
            print(f" {fewest.bound_:>6,.0f} {own.blanked_:>6,}", end="")
            print(f" {sum(worth[c] * n for c, n in theirs.items()):>17,}", end="")
            print(f" {sum(worth[c] * n for c, n in blanks.items()):>6,}", flush=True)


def race(rows: int) -> None:
    """Print seconds for random rows with skewed values, in both readings."""
    rng = np.random.default_rng(0)
    print(f"\n{rows:,} rows, k = 5 {'columns':>12} {'reading':>9} {'CPU s':>6} {'blanks':>9}")
    for width in (4, 6, 8):
        shares = [rng.dirichlet(np.full(3 + 2 * place, 0.5)) for place in range(width)]
        frame = pl.DataFrame(
            {f"c{at}": rng.choice(len(p), rows, p=p) for at, p in enumerate(shares)}
        )
        for reading in ("own", "wildcard"):
            ours(frame.head(rows // 10), 5, missing=reading)
            start = time.process_time()
            step, _ = ours(frame, 5, missing=reading)
            spent = time.process_time() - start
            print(f"{'':15} {width:>20} {reading:>9} {spent:>6.1f} {step.blanked_:>9,}", flush=True)


def main() -> None:
    """Compare, then race."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    if (given.data / "microdata").is_dir():
        compare(given.data)
    else:
        print(f"The test tables of sdcMicro are not in {given.data}: no comparison.")
    race(given.rows)


if __name__ == "__main__":
    main()
