"""A table that does not fit: protect and verify on DuckDB under a memory limit.

Run it with ``python benchmarks/bench_engines.py``. It creates tables of 1, 10 and (``--largest``)
100 million rows × 8 columns, protects each with ``memory_limit = "2GB"``, verifies the release, and
prints CPU time, peak memory and disk, and how cost grows. Each command is a separate process. The
targets: a peak under 3 GB, and ten times the rows in at most twelve times the time.

``--engine memory`` runs the same plan in memory, for comparison; ``--rows N`` runs one size.

``--swap`` swaps 5 million rows × 6 columns in groups of MDAV on Spark, with a master and two
executors on this machine. Plain SQL counts groups and multisets again, and the loss of chunks
compared with one partition is measured on 200,000 rows. The targets: every group has at least k,
the multisets are the same, and the loss is at most 10 % higher.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

SHOAL = [sys.executable, "-c", "from shoal.app.cli import main; main()"]
FILE = 5_000_000
PLAN = """
[engine]
memory_limit = "2GB"

[roles]
quasi_identifiers = ["age", "sex", "region", "education", "marital"]
sensitive = ["diagnosis"]
insensitive = ["amount", "visits"]

[[steps]]
method = "generalize"
algorithm = "{algorithm}"
k = 10
{more}

[[steps]]
method = "round"
base = 100
columns = ["amount"]

[require]
k_anonymity = 10
l_diversity = 2
"""
MORE = {
    "mondrian": "models = { l_diversity = 2 }",
    "full-domain": "models = { l_diversity = 2 }\nsuppression_limit = 0.02",
}


def make(folder: Path, rows: int) -> None:
    """Write invented people in files of five million rows."""
    import numpy as np
    import polars as pl

    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, rows, FILE)):
        count, draw = min(FILE, rows - start), np.random.default_rng(number)

        def pick(values: list[str], skew: float, n: int = count, d=draw) -> pl.Series:
            shares = np.arange(1, len(values) + 1) ** -skew
            codes = d.choice(len(values), n, p=shares / shares.sum())
            return pl.Series(values).gather(codes)

        pl.DataFrame(
            {
                "age": draw.integers(0, 100, count).astype(np.int16),
                "sex": pick(["f", "m"], 0.1),
                "region": pick([f"r{i:03d}" for i in range(50)], 0.8),
                "education": pick([f"e{i}" for i in range(12)], 0.7),
                "marital": pick(["married", "single", "divorced", "widowed"], 0.8),
                "diagnosis": pick([f"d{i:02d}" for i in range(20)], 1.0),
                "amount": np.round(draw.lognormal(7, 1, count), 2),
                "visits": draw.poisson(2, count).astype(np.int16),
            }
        ).write_parquet(folder / f"{number:04d}.parquet")


def run(*words: object) -> tuple[float, float, float]:
    """The CPU seconds, the peak in GB and the wall seconds of a command."""
    start = time.monotonic()
    child = os.posix_spawn(
        sys.executable,
        [*SHOAL, *map(str, words)],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"shoal {words[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, time.monotonic() - start


def size_of(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e9


def make_numbers(folder: Path, rows: int) -> None:
    """Write invented amounts that are correlated, in files of half a million rows."""
    import numpy as np
    import polars as pl

    folder.mkdir(parents=True)
    size = 500_000
    for number, start in enumerate(range(0, rows, size)):
        draw = np.random.default_rng(number)
        common = draw.normal(size=(min(size, rows - start), 2))
        mixed = common @ np.random.default_rng(99).normal(size=(2, 6))
        values = np.round(1000 * np.exp(0.4 * (mixed + draw.normal(size=mixed.shape))), 1)
        names = [f"amount_{i}" for i in range(6)]
        pl.DataFrame(dict(zip(names, values.T, strict=True))).write_parquet(
            folder / f"{number:04d}.parquet"
        )


def swap(cache: Path, rows: int, k: int) -> None:
    """Swap on two executors; count groups and multisets again, and measure the loss of chunks."""
    import duckdb

    import shoal as sh
    from shoal.workflow import EngineSettings

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engines" / "parts"))
    from cluster import Cluster

    source = cache / f"numbers-{rows}"
    if not source.exists():
        make_numbers(source, rows)
    work = Path(tempfile.mkdtemp(dir=cache))
    (work / "cluster").mkdir()
    cluster = Cluster(work / "cluster")
    names = [f"amount_{i}" for i in range(6)]
    try:
        plan = sh.Plan(
            [sh.Swap(k)],
            require=[sh.ProbabilisticKAnonymity(k)],
            roles=sh.Roles(quasi_identifiers=names),
            engine=EngineSettings(master=cluster.url, temporary=str(work / "temporary")),
        )
        start = time.monotonic()
        release = sh.protect(str(source), plan, engine="spark")
        facts = release.steps[0].facts
        folder = release.save(work / "release")
        print(f"{rows:,} rows swapped and saved in {time.monotonic() - start:.0f} s: {facts}")
    finally:
        cluster.close()
    start = time.monotonic()
    verified = sh.verify(folder).holds
    print(f"verified: {verified}, in {time.monotonic() - start:.0f} s")
    records = f"read_parquet('{folder}/private/records/*.parquet')"
    least, groups = duckdb.sql(
        f"SELECT min(n), count(*) FROM (SELECT count(*) AS n FROM {records} "
        'GROUP BY "0_chunk", "0_group_0")'
    ).fetchall()[0]
    print(f"{groups:,} groups, the smallest of {least} (k = {k})")
    kept = True
    for name in names:
        counted = [
            f"SELECT {name}, count(*) AS n FROM read_parquet('{place}/*.parquet') GROUP BY {name}"
            for place in (source, folder / "public" / "data")
        ]
        kept &= not duckdb.sql(f"({counted[0]}) EXCEPT ({counted[1]})").fetchall()
        kept &= not duckdb.sql(f"({counted[1]}) EXCEPT ({counted[0]})").fetchall()
    print(f"every column keeps its multiset: {kept}")
    shutil.rmtree(work)
    more = lost_in_chunks(source, names, k)
    for chunks, share in more.items():
        print(f"200,000 rows in {chunks} chunks: {share:+.1%} more loss than one partition")
    if not (verified and kept and least >= k and more[min(more)] <= 0.1):
        sys.exit("the swap does not hold what it must")


def lost_in_chunks(source: Path, names: list[str], k: int) -> dict[int, float]:
    """How much more 200,000 rows lose in chunks than in one partition."""
    import polars as pl

    from shoal.engines.steps._chunked import _lost_in_groups
    from shoal.engines.steps._tree import cuts_of

    some = pl.read_parquet(source / "0000.parquet", n_rows=200_000)
    some = some.select(pl.col(name) / pl.col(name).std() for name in names)
    whole = _lost_in_groups(some, k)
    found = {}
    for size in (100_000, 25_000, 6_250):
        tree = cuts_of(some, names, some.height, chunk=size)
        parts = some.with_columns(chunk=pl.Series(tree.chunks(some))).partition_by("chunk")
        lost = sum(_lost_in_groups(part.drop("chunk"), k) for part in parts)
        found[len(parts)] = lost / whole - 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--algorithm", default="mondrian", choices=MORE)
    parser.add_argument("--swap", action="store_true")
    given = parser.parse_args()
    sizes = [given.rows] if given.rows else [10**6, 10**7, *([10**8] if given.largest else [])]
    cache = Path(tempfile.gettempdir()) / f"shoal-engines-{os.getuid()}"
    if given.swap:
        swap(cache, given.rows or 5_000_000, k=5)
        return
    print(
        f"{'rows':>12} {'what':<8} {'CPU s':>8} {'wall s':>8} {'peak GB':>8} {'data GB':>8} growth"
    )
    before: dict[str, float] = {}
    for rows in sizes:
        source = cache / f"people-{rows}"
        if not source.exists():
            make(source, rows)
        work = Path(tempfile.mkdtemp(dir=cache))
        plan = work / "plan.toml"
        plan.write_text(PLAN.format(algorithm=given.algorithm, more=MORE[given.algorithm]))
        calls = {
            "protect": ("protect", source, "--plan", plan, "--out", work / "release", "--engine"),
            "verify": ("verify", work / "release", "--memory-limit", "2GB", "--engine"),
        }
        for what, words in calls.items():
            cpu, peak, wall = run(*words, given.engine)
            grown = f"{cpu / before[what]:.1f} times" if what in before else ""
            before[what] = cpu
            size = size_of(source if what == "protect" else work / "release")
            print(
                f"{rows:>12,} {what:<8} {cpu:>8.1f} {wall:>8.1f} {peak:>8.2f} {size:>8.2f} {grown}"
            )
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
