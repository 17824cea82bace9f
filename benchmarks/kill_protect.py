"""Kill ``shoal protect`` at random moments: afterwards there is a complete release or none.

Run with ``python benchmarks/kill_protect.py [--kills 50] [--rows 500000]`` (POSIX only). Half of
the kills fall anywhere in the run and half while the release is being written; half of the runs
replace an existing release, which must then be the old one or the new one and nothing between.
After every kill the script verifies the release, if any, from its files, and the next run must
remove what the killed run left. The exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

SHOAL = [sys.executable, "-c", "from shoal.app.cli import main; main()"]
PLAN = """
[roles]
identifiers = ["name"]
quasi_identifiers = ["age", "region", "sex"]
sensitive = ["diagnosis"]
insensitive = ["size"]

[[steps]]
method = "add_noise"
epsilon = 4.0
columns = ["size"]

[[steps]]
method = "recode"
magnitude = 0.5
columns = ["age"]

[[steps]]
method = "suppress"
min_class_size = 5

[require]
k_anonymity = 5
"""


def make_table(rows: int) -> pl.DataFrame:
    """Invented people."""
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": draw.integers(18, 95, rows),
            "region": draw.choice(["north", "south", "east", "west"], rows),
            "sex": draw.choice(["f", "m"], rows),
            "size": draw.normal(170, 10, rows),
            "diagnosis": draw.choice(["flu", "asthma", "none"], rows),
        }
    )


class Place:
    """A folder with a table, a plan and a release; every run uses it."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.data, self.plan = folder / "people.parquet", folder / "plan.toml"
        self.outside = folder / "place"
        self.outside.mkdir()
        self.release = self.outside / "release"
        make_table(rows).write_parquet(self.data)
        self.plan.write_text(PLAN)

    def start(self, *, force: bool) -> subprocess.Popen[bytes]:
        words = ["protect", self.data, "--plan", self.plan, "--out", self.release]
        words += ["--force"] if force else []
        return subprocess.Popen(
            [*SHOAL, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def verifies(self) -> bool:
        words = [*SHOAL, "verify", str(self.release)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def partial_folders(self) -> list[str]:
        return [path.name for path in self.outside.glob(".release.partial-*")]

    def wait_for_writing(self, child: subprocess.Popen[bytes], known: set[str]) -> None:
        """Wait until a new partial folder appears or the run ends."""
        while child.poll() is None and not set(self.partial_folders()) - known:
            time.sleep(0.002)


def timed_run(place: Place) -> tuple[float, float]:
    """Seconds of a whole run, and of writing the release."""
    start = time.monotonic()
    child = place.start(force=place.release.exists())
    place.wait_for_writing(child, set(place.partial_folders()))
    writing = time.monotonic()
    if child.wait() != 0:
        raise SystemExit("shoal protect does not run here")
    end = time.monotonic()
    return end - start, end - writing


def kill_once(place: Place, *, force: bool, inside: bool, seconds: float) -> str:
    """Kill one run after a random time, and say what it left; a failure begins with '!'."""
    before = digest(place)
    known = set(place.partial_folders())
    child = place.start(force=force)
    if inside:
        place.wait_for_writing(child, known)
    try:
        child.wait(timeout=random.uniform(0, seconds))
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    killed = child.wait() == -signal.SIGKILL
    if len(place.partial_folders()) > 1:
        return "! leftovers of an earlier run were not cleared"
    if not place.release.exists():
        return "! the release that was there is gone" if force else outcome(place, "none", killed)
    if not place.verifies():
        return "! a half release"
    same = digest(place) == before
    return outcome(place, "the old one" if same else "the new one", killed)


def outcome(place: Place, release: str, killed: bool) -> str:
    left = "with a partial folder" if place.partial_folders() else "nothing else"
    return f"{'killed' if killed else 'finished'}: release {release}, {left}"


def digest(place: Place) -> bytes | None:
    facts = place.release / "public" / "release.json"
    return facts.read_bytes() if facts.exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=500_000)
    given = parser.parse_args()
    began = time.monotonic()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), given.rows)
        timed_run(place)  # compiles
        whole, writing = timed_run(place)
        print(f"{given.rows:,} rows; a run takes {whole:.1f} s, {writing:.1f} s of it to write")
        runs = kills = 0
        while kills < given.kills and runs < 3 * given.kills:  # a run may end before the kill
            inside, force = kills % 2 == 1, kills % 4 >= 2
            if not force:
                shutil.rmtree(place.release, ignore_errors=True)
            elif not place.release.exists():
                timed_run(place)
            seconds = writing if inside else whole
            what = kill_once(place, force=force, inside=inside, seconds=seconds)
            found[what] += 1
            runs += 1
            kills += not what.startswith("finished")
        timed_run(place)
        if [path.name for path in place.outside.iterdir()] != ["release"] or not place.verifies():
            found["! the last run did not clear up"] += 1
    for what, times in sorted(found.items()):
        print(f"{times:>4}  {what}")
    bad = sum(times for what, times in found.items() if what.startswith("!"))
    print(f"{kills} kills in {runs} runs, {time.monotonic() - began:.0f} s: {bad} wrong")
    return 1 if bad or kills < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
