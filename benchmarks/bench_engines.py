"""A table that does not fit: protect and verify on DuckDB under a limit of memory.

Run it with ``python benchmarks/bench_engines.py``. It makes tables of 1, 10 and (``--largest``)
100 million rows × 8 columns, protects each with ``memory_limit = "2GB"``, verifies the release, and
prints processor time, peak memory and disk, and how cost grows. Each command is a process of its
own. What must hold: a peak under 3 GB, and ten times the rows in at most twelve times the time.

``--engine memory`` runs the same plan in memory, for comparison; ``--rows N`` takes one size.
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
    """The processor seconds, the peak in GB and the wall seconds of a command."""
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
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6, time.monotonic() - start


def size_of(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--algorithm", default="mondrian", choices=MORE)
    given = parser.parse_args()
    sizes = [given.rows] if given.rows else [10**6, 10**7, *([10**8] if given.largest else [])]
    cache = Path(tempfile.gettempdir()) / f"shoal-engines-{os.getuid()}"
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
