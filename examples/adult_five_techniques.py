"""The five techniques of Carvalho et al. in one plan, on the Adult table of the UCI archive.

The script expects ``uci/adult.parquet`` in the folder that SHOAL_DATA names, or in ``shared/data``
next to the repository. Without the table, it says so and ends.

    SHOAL_DATA=/path/to/tables python examples/adult_five_techniques.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import shoal as sh

FOLDER = os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
ADULT = Path(FOLDER) / "uci" / "adult.parquet"

ROLES = sh.Roles(
    quasi_identifiers=[
        "age",
        "education-num",
        "marital-status",
        "race",
        "sex",
        "native-country",
        "hours-per-week",
        "fnlwgt",
    ],
    sensitive=["workclass", "occupation", "capital-gain", "capital-loss", "income"],
    insensitive=["relationship"],
)
PLAN = sh.Plan(
    [
        sh.Suppress(max_distinct=0.5),  # the survey weight is nearly a name
        sh.TopBottomCode(fence=1.5),  # the oldest and the busiest
        sh.AddNoise(epsilon=16.0, columns=["capital-gain", "capital-loss"]),
        sh.Round(base=100, columns=["capital-gain", "capital-loss"]),
        sh.Recode(magnitude=1.5),
        sh.Suppress(min_class_size=5),
    ],
    require=[sh.KAnonymity(5)],
)


def read_adult() -> sh.Table:
    """Adult without its redundant column, with amounts as decimal numbers."""
    import polars as pl

    amounts = pl.col("capital-gain", "capital-loss").cast(pl.Float64)  # noise needs decimals
    frame = pl.read_parquet(ADULT).drop("education").with_columns(amounts)
    return sh.Table(frame, ROLES)


def main() -> None:
    if not ADULT.is_file():
        print("The Adult table was not found. Set SHOAL_DATA to the folder of tables.")
        sys.exit(0)
    release = sh.protect(read_adult(), PLAN)
    for step in release.steps:
        took = f", {step.removed:,} records removed" if step.removed else ""
        print(f"{step.method:<16} touched {', '.join(step.touched) or 'no column'}{took}")
    print()
    for name in ("marketer_risk", "uniqueness", "records_at_risk"):
        before, after = release.before[name].value, release.after[name].value
        print(f"{name:<18} {before:.4f} -> {after:.4f}")
    for name in ("unchanged_records", "total_variation", "suppressed_cells"):
        print(f"{name:<18} {release.after[name].value:.4f}")

    with tempfile.TemporaryDirectory() as folder:
        where = release.save(Path(folder) / "adult")
        sh.verify(where).raise_if_failed()
        print(f"\nThe release of {len(release.masked):,} records was verified from its files.")


if __name__ == "__main__":
    main()
