"""Whole processes, from input file to verified release, compared with a floor and peers.

Run it with ``python benchmarks/bench_end_to_end.py``; it takes a few minutes. Each row is a
separate process: CPU seconds are user and system time of the process and its children, memory is
its peak. The floor (``end_to_end/floor.py``) reads, codes once, counts once, masks with Shoal's own
kernel, measures, writes, hashes, reads back and verifies, with plain polars and numpy. It runs
right afterwards, on the same file. Only the ratio is valid on another machine. A busy machine slows
down both, not always equally: ``--runs 3`` takes the best of three. After a change of a kernel, and
in a fresh clone, the first run compiles: run it twice.

The targets: at most 1.7 times the floor for full-domain and Mondrian; for MDAV the kernel plus 1.5
times the rest of the floor; 2 s for an assessment of ACS; on an empty compile cache, 2 s for roles
and 6 s for the others; from 1 to 10 million rows at most 12 times the time.

``--only NAME`` runs one task (or several, separated by commas), ``--rows N`` takes at most N rows
of each table, ``--profile`` shows which functions take the time, ``--growth`` runs full-domain from
10,000 to 10 million rows, and ``--arx JAR`` compares with ARX (needs a JDK). This script imports
nothing large, because the peak of a child would include it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("SHOAL_DATA") or HERE.parents[1] / "shared" / "data")
KIND = "public" if DATA.is_dir() else "invented"  # tables, which must not be mixed
CACHE = Path(tempfile.gettempdir()) / f"shoal-end-to-end-{getattr(os, 'getuid', int)()}-{KIND}"
SHOAL = [sys.executable, "-c", "from shoal.app.cli import main; main()"]
LINE = "{:<12} {:>11} {:>8} {:>7} {:>9} {:>7} {:>6}  {}"
ACS = "ST AGEP COW SCHL MAR OCCP SEX RAC1P".split()
ACS_TEXTS = [name for name in ACS if name not in ("AGEP", "SCHL")]
ADULT = (
    "sex age race marital-status education native-country workclass occupation salary-class"
).split()
POINTS = [f"x{i}" for i in range(1, 7)]
ACS_ROWS = 1_121_894
GROWTH = (10_000, 100_000, 1_000_000, 10_000_000)
ANONYPY_ROWS = 10_000


@dataclass(frozen=True)
class Run:
    """The cost of a process."""

    cpu: float
    peak: float
    out: str


@dataclass(frozen=True)
class Work:
    """A row: a command on a table of some rows."""

    name: str
    table: str
    rows: int
    plan: str = ""
    hierarchies: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


WORKS = (
    Work(
        "full-domain",
        "adult.csv",
        1_000_000,
        'algorithm = "full-domain"\nsuppression_limit = 0.02',
        tuple(ADULT),
        tuple(ADULT),
    ),
    Work(
        "full-domain",
        "adult.csv",
        3_000_000,
        'algorithm = "full-domain"\nsuppression_limit = 0.02',
        tuple(ADULT),
        tuple(ADULT),
    ),
    Work(
        "mondrian",
        "acs.parquet",
        ACS_ROWS,
        'algorithm = "mondrian"',
        tuple(ACS_TEXTS),
        tuple(ACS),
    ),
    Work(
        "mondrian",
        "acs.parquet",
        3_000_000,
        'algorithm = "mondrian"',
        tuple(ACS_TEXTS),
        tuple(ACS),
    ),
    Work("mdav", "points.parquet", 1_000_000, columns=tuple(POINTS)),
    Work("assess", "acs.parquet", ACS_ROWS, columns=tuple(ACS)),
)


def run(command: list[str], **environment: str) -> Run:
    """Run a process to its end, and count its children too."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    known = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment
    known.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors, env=known)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, errors):
            file.seek(0)
        if child.returncode:
            raise SystemExit(f"{command} ended with {child.returncode}:\n{errors.read().decode()}")
        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
        peak = used.ru_maxrss * unit / 2**20
        return Run(used.ru_utime + used.ru_stime, peak, out.read().decode())


def best(command: list[str], runs: int, **environment: str) -> Run:
    """The run with the least CPU time."""
    return min((run(command, **environment) for _ in range(runs)), key=lambda one: one.cpu)


def table(name: str, rows: int) -> Path:
    """The file of a table, created once."""
    kind, _, ending = name.partition(".")
    path = CACHE / f"{kind}-{rows}.{ending}"
    if not path.exists():
        CACHE.mkdir(mode=0o700, exist_ok=True)
        made = run([sys.executable, "-m", "end_to_end.tables", name, str(rows), str(CACHE)])
        print(made.out, end="", flush=True)
    return path


def write_plan(work: Work, folder: Path) -> Path:
    """The plan that a user would write; paths are relative to it."""
    kind = work.table.partition(".")[0]
    lines = ["[roles]", f"quasi_identifiers = {json.dumps(work.columns)}", "", "[[steps]]"]
    lines += [f'method = "{"generalize" if work.plan else "microaggregate"}"', "k = 5", work.plan]
    if work.hierarchies:
        shutil.copytree(CACHE / f"{kind}-hierarchies", folder / "hierarchies")
        lines += ["", "[steps.hierarchies]"]
        lines += [f'"{name}" = "hierarchies/{name}.csv"' for name in work.hierarchies]
    plan = folder / "plan.toml"
    plan.write_text("\n".join([*lines, "", "[require]", "k_anonymity = 5", ""]))
    return plan


def command_of(work: Work, data: Path, folder: Path) -> list[str]:
    """The arguments after ``shoal``."""
    if work.name == "assess":
        return ["assess", str(data), "--quasi", ",".join(work.columns), "--json"]
    plan, out = str(write_plan(work, folder)), str(folder / "release")
    return ["protect", str(data), "--plan", plan, "--out", out, "--force", "--json"]


def same(work: Work, ours: dict[str, Any], floors: dict[str, Any]) -> str:
    """Whether both files have the same number of rows and classes."""
    if work.name == "assess":
        one, other = ours["classes"]["count"], floors["before"]["classes"]
        return "same classes" if one == other else f"DIFFERENT: {one:,} and {other:,} classes"
    one = ours["rows"], ours["after"]["classes"]["count"]
    other = floors["rows"], floors["classes"]
    if one == other:
        return f"same {one[1]:,} classes"
    return f"{one[0]:,} rows in {one[1]:,} classes, the floor {other[0]:,} in {other[1]:,}"


def bench(work: Work, rows: int, asked: argparse.Namespace) -> Run:
    """Print a row: Shoal, the floor and their ratio."""
    data = table(work.table, rows)
    kind = work.table.partition(".")[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = command_of(work, data, folder)
        ours = best([*SHOAL, *command], asked.runs)
        (folder / "floor").mkdir()
        floor = [sys.executable, "-m", "end_to_end.floor", work.name, str(data)]
        floor += [str(CACHE / f"{kind}-hierarchies"), str(folder / "floor")]
        floors = best(floor, asked.runs)
        found = json.loads(floors.out)
        what = same(work, json.loads(ours.out), found)
        ratio = f"{ours.cpu / floors.cpu:.1f}x"
        cells = f"{ours.cpu:.1f}", f"{ours.peak:.0f}", f"{floors.cpu:.1f}", f"{floors.peak:.0f}"
        print(LINE.format(work.name, f"{rows:,}", *cells, ratio, what), flush=True)
        if work.name == "mdav":
            kernel = found["stages"]["kernel"]
            target = kernel + 1.5 * (floors.cpu - kernel)
            rest = f"kernel {kernel:.1f} s, so that the target is {target:.1f} s"
            print(f"{'':<24} {rest}, and this run takes {ours.cpu / target:.1f} times that")
        if asked.profile:
            stages = ", ".join(f"{stage} {took:.2f}" for stage, took in found["stages"].items())
            print(f"the floor by stage: {stages}")
            profile = [sys.executable, "-m", "end_to_end.profiled", *command]
            print(run(profile).out.rpartition("}\n")[2], flush=True)
        return ours


#: What a newcomer runs first; {data}, {plan} and {out} are placeholders.
FIRST = {
    "roles": ["roles", "{data}"],
    "demo": ["demo", "--out", "{out}"],
    "protect": ["protect", "{data}", "--plan", "{plan}", "--out", "{out}"],
    "Microaggregate": "sh.Microaggregate(k=5)",
    "Swap": "sh.Swap(k=5)",
}
STEP = """
import shoal as sh
numbers = ["age", "hours", "income"]
table = sh.read({data!r}, roles=sh.Roles(identifiers=["person"], quasi_identifiers=numbers))
{step}.fit_transform(table)
"""


def bench_first_use(rows: int) -> None:
    """CPU seconds with an empty compile cache, and again with the filled one."""
    data = str(table("few.csv", rows))
    print(f"\nFirst use, {rows:,} rows: CPU s with an empty compile cache, then again")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = str(folder / "plan.toml")
        run([*SHOAL, "init", data, "--out", plan])
        for what, command in FIRST.items():
            kept = folder / f"cache-{what}"
            kept.mkdir()
            taken = []
            for turn in ("cold", "warm"):
                out = str(folder / f"{what}-{turn}")
                if isinstance(command, str):
                    call = [sys.executable, "-c", STEP.format(data=data, step=command)]
                else:
                    call = [*SHOAL, *(one.format(data=data, plan=plan, out=out) for one in command)]
                # both, to hide numba's and the user's folder of compiled code
                taken.append(run(call, NUMBA_CACHE_DIR=str(kept), XDG_CACHE_HOME=str(kept)).cpu)
                if turn == "cold":
                    compiled = sum(1 for _ in kept.rglob("*.nbc"))
            cells = f"{taken[0]:>8.1f} {taken[1]:>8.1f}"
            print(f"{what:<16} {cells}  {compiled} compiled functions kept", flush=True)


def bench_growth(asked: argparse.Namespace) -> None:
    """Full-domain from ten thousand to ten million rows."""
    print("\nGrowth of full-domain: CPU s, MiB, times that of a tenth of the rows")
    earlier = None
    for rows in GROWTH:
        if asked.rows and rows > asked.rows:
            break
        data = table("adult.csv", rows)
        with tempfile.TemporaryDirectory() as name:
            ours = best([*SHOAL, *command_of(WORKS[0], data, Path(name))], asked.runs)
        times = f"{ours.cpu / earlier:.1f}x" if earlier else ""
        print(f"{rows:>12,} {ours.cpu:>8.1f} {ours.peak:>7.0f} {times:>7}", flush=True)
        earlier = ours.cpu


ANONYPY = """
import pandas as pd
from anonypy import Preserver
columns = {columns!r}
frame = pd.read_parquet({data!r})[columns].assign(secret="x")
for name in frame.columns:
    if not pd.api.types.is_integer_dtype(frame[name]):
        frame[name] = frame[name].astype("category")
rows = Preserver(frame, columns, "secret").anonymize_k_anonymity(k=5)
pd.DataFrame(rows).to_parquet({out!r})
"""


def bench_anonypy(asked: argparse.Namespace) -> None:
    """Mondrian of anonypy and of Shoal on the same rows."""
    if importlib.util.find_spec("anonypy") is None:
        print("\nanonypy is not installed, so its Mondrian was not run.")
        return
    rows = min(ANONYPY_ROWS, asked.rows or ANONYPY_ROWS)
    data = table("acs.parquet", rows)
    work = next(work for work in WORKS if work.name == "mondrian")
    with tempfile.TemporaryDirectory() as name:
        script = ANONYPY.format(columns=ACS, data=str(data), out=str(Path(name, "out.parquet")))
        theirs = best([sys.executable, "-c", script], asked.runs)
        ours = best([*SHOAL, *command_of(work, data, Path(name))], asked.runs)
    cells = f"{theirs.cpu:.1f} s, {theirs.peak:.0f} MiB; Shoal {ours.cpu:.1f} s, {ours.peak:.0f}"
    print(f"\nanonypy, Mondrian, {rows:,} rows of ACS: {cells} MiB")


def bench_arx(asked: argparse.Namespace) -> None:
    """Full-domain search of ARX with the same hierarchies, limit and loss, including risk."""
    jar = str(Path(asked.arx).resolve())
    with tempfile.TemporaryDirectory() as name:
        run(["javac", "-cp", jar, "-d", name, str(HERE / "end_to_end" / "Arx.java")])
        for work in WORKS:
            if work.name != "full-domain":
                continue
            rows = min(work.rows, asked.rows or work.rows)
            data, out = str(table(work.table, rows)), str(Path(name, "out.csv"))
            call = ["java", "-cp", os.pathsep.join([jar, name]), "Arx", data]
            theirs = best([*call, str(CACHE / "adult-hierarchies"), out], asked.runs)
            cells = f"{theirs.cpu:.1f} s, {theirs.peak:.0f} MiB; {theirs.out.strip()}"
            print(f"ARX, full-domain, {rows:,} rows: {cells}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare whole processes with a floor.")
    names = [*dict.fromkeys(work.name for work in WORKS), "first-use", "anonypy"]
    parser.add_argument("--only", help=f"one or more of {', '.join(names)}, separated by commas")
    parser.add_argument("--rows", type=int, help="the most rows to use")
    parser.add_argument("--runs", type=int, default=1, help="how many runs; the best counts")
    parser.add_argument("--profile", action="store_true", help="show which functions take the time")
    parser.add_argument("--growth", action="store_true", help="only full-domain at growing sizes")
    parser.add_argument("--arx", metavar="JAR", help="compare with ARX")
    asked = parser.parse_args()
    only = asked.only.split(",") if asked.only else names
    if stray := set(only) - set(names):
        parser.error(f"there is no {', '.join(sorted(stray))}; there are {', '.join(names)}")
    if asked.growth:
        bench_growth(asked)
        return
    wanted = [(work, min(work.rows, asked.rows or work.rows)) for work in WORKS]
    wanted = [pair for pair in wanted if pair[0].name in only]
    if wanted:
        print(LINE.format("work", "rows", "CPU s", "MiB", "floor s", "MiB", "ratio", "").rstrip())
    for work, rows in {(work.name, rows): (work, rows) for work, rows in wanted}.values():
        bench(work, rows, asked)
    if "first-use" in only:
        bench_first_use(2_000)
    if "anonypy" in only:
        bench_anonypy(asked)
    if asked.arx:
        bench_arx(asked)


if __name__ == "__main__":
    main()
