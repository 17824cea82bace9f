"""A command of Shoal under the profiler: which of its functions take the CPU time.

``python -m end_to_end.profiled protect ...``. Seconds are CPU seconds of the whole process, so
polars threads count for the function that waits for them. The calls of a kernel count as its own
time. The profiler slows down the run: use the shares, not the seconds.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from pathlib import Path
from typing import Any

CUMULATIVE, OWN = 60, 20


def place_of(where: tuple[str, int, str]) -> str:
    """The name of a function, as a reader would search for it."""
    file, line, name = where
    parts = Path(file).parts
    if "shoal" in parts:
        last = len(parts) - 1 - parts[::-1].index("shoal")
        return f"{'/'.join(parts[last + 1 :])}:{line} {name}"
    return f"{'/'.join(parts[-2:])}:{line} {name}" if line else name


def lines(stats: dict[Any, Any], key: int, most: int, only_shoal: bool) -> None:
    found = [
        (value[key], value[1], value[2], value[3], place_of(where))
        for where, value in stats.items()
        if not only_shoal or "/shoal/" in where[0].replace("\\", "/")
    ]
    print(f"{'cumulative':>10} {'own':>7} {'calls':>9}  function")
    for _, calls, own, cumulative, place in sorted(found, reverse=True)[:most]:
        print(f"{cumulative:>10.2f} {own:>7.2f} {calls:>9,}  {place}")


def main() -> None:
    profile = cProfile.Profile(time.process_time)
    from shoal.app.cli import main as shoal

    started = time.process_time()

    sys.argv[0] = "shoal"
    try:
        profile.runcall(shoal)
    except SystemExit as end:
        if end.code:
            raise
    profile.create_stats()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    print(f"{time.process_time():.1f} CPU s with the profiler, {started:.2f} to start and import")
    print("Functions of Shoal by cumulative time:")
    lines(stats, 3, CUMULATIVE, only_shoal=True)
    print("All functions by own time:")
    lines(stats, 2, OWN, only_shoal=False)


if __name__ == "__main__":
    main()
