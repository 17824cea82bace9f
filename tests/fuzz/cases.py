"""Cases drawn from an integer: what is tried, and what counts as a failure.

Anything but a clear sentence and the right exit code is one: a traceback, a message that says
"unexpected", the value of a cell in a message, something left behind, a claim that is wrong,
more than thirty seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet
import tomlkit
from typer.testing import CliRunner

from shoal import Plan, Roles, Table, protect
from shoal.app.cli import app
from shoal.errors import ShoalError, ShoalWarning
from shoal.table import FORMATS as EVERY_FORMAT
from shoal.table import LABELLED

from .damage import damage_release, damaged, mutated, without_nothing
from .draw_plans import draw_plan
from .draw_tables import CANARY, CANARY_NUMBER, Drawn, draw_table, far_dates, far_workbook
from .public_half import WrongFile, read_public
from .recount import recount

SECONDS = 30
#: The formats that hold any table: a case refers to them by number, and Stata, SPSS and SAS refuse
#: most names and texts that are drawn here.
FORMATS = tuple(name for name in EVERY_FORMAT if name not in LABELLED)


class Hang(BaseException):
    """It took too long."""


@dataclass
class Verdict:
    """What a case came to."""

    number: int
    kind: str
    came_to: str = "refused"
    failures: list[str] = field(default_factory=list)
    releases: int = 0
    claims: int = 0

    def fail(self, what: str) -> None:
        self.failures.append(what)


def run_case(number: int) -> Verdict:
    """Try the case of a number, in a folder of its own."""
    kind = KINDS[number % len(KINDS)]
    rng = random.Random(f"{kind} {number}")
    verdict = Verdict(number, kind)
    before = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="shoal-fuzz-"))
    try:
        os.chdir(folder)
        with _at_most(SECONDS), _keys_of(number), warnings.catch_warnings():
            warnings.simplefilter("error")
            _RUN[kind](rng, folder, verdict)
    except Hang:
        verdict.fail(f"more than {SECONDS} seconds")
    except Exception as error:
        verdict.fail(_raised(error))
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
    return verdict


def _keys_of(number: int) -> contextlib.AbstractContextManager[object]:
    """Keys that are the same whenever the case is tried."""
    calls = itertools.count()

    def key(length: int) -> bytes:
        return hashlib.sha256(f"{number}/{next(calls)}".encode()).digest()[:length]

    return mock.patch("shoal.randomness._entropy", key)


@contextlib.contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    if os.name != "posix":
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: others may keep it busy
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _raised(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "shoal" in f.filename]
    return f"{type(error).__name__} at {places[-1] if places else frames[-1].lineno}: {error}"[:300]


# -- the command line


def call(verdict: Verdict, *words: object, quotes: bool = False) -> int:
    """Run a command in this process and look at what it says; some may show cells on stdout."""
    wide = {"COLUMNS": "1000"}  # lines that break could hide a cell
    result = CliRunner().invoke(app, [str(word) for word in words], env=wide)
    said = f"shoal {words[0]}"
    if result.exit_code not in (0, 1, 2):
        verdict.fail(f"{said}: exit code {result.exit_code}")
    if "unexpected" in result.stderr or "Traceback" in result.output:
        verdict.fail(f"{said}: {result.stderr.strip()[-300:]}")
    lines = result.stderr.splitlines()
    last = lines[-1] if lines else ""
    if result.exit_code and not re.fullmatch(r"shoal: .{10,}[.?]", last):
        shown = result.stdout if words[0] == "verify" and result.exit_code == 1 else ""
        if not shown:
            verdict.fail(f"{said}: no clear sentence: {last[:200]!r}")
    if _tells_a_cell(result.stderr if quotes else result.output):
        verdict.fail(f"{said}: the value of a cell is in a message")
    return result.exit_code


def _tells_a_cell(text: str) -> bool:
    text = re.split("Use (?:one of )?'", text)[
        0
    ]  # names of columns, also where a first line is data
    number = rf"(?<![\d.]){CANARY_NUMBER}(?!\d)"  # not 1/1089, which has the same digits
    return CANARY in text or re.search(number, text.replace(",", "")) is not None


def _only(verdict: Verdict, folder: Path, expected: set[str]) -> None:
    left = {path.name for path in folder.iterdir()} - expected
    if left:
        verdict.fail(f"left behind: {', '.join(sorted(left))}")


def _plan_file(folder: Path, plan: Mapping[str, Any]) -> Path:
    path = folder / "plan.toml"
    path.write_text(tomlkit.dumps(without_nothing(dict(plan))), "utf-8")
    return path


# -- releases: what is claimed is so


def _release(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A table and a plan through Python, and the release in some formats.

    Other plans are drawn for the table until one gives a release.
    """
    table = draw_table(rng, tame=True)
    if _plain(table):
        table.frame.write_parquet(folder / "data.parquet")
    _hierarchy_file(rng, folder, table)
    for _ in range(4):
        plan = draw_plan(rng, table)
        steps = {part: value for part, value in plan.items() if part != "roles"}
        try:
            with _shoals_warnings(verdict):
                made = Table(table.frame, Roles(**table.roles))
                release = protect(made, Plan.from_dict(steps, folder=folder))
                for format in rng.sample(list(FORMATS), 3):
                    _saved(verdict, release, folder / f"release-{format}", format, table)
        except ShoalError as error:
            verdict.came_to = "not met" if error.exit_code == 1 else "refused"
            _sentence(verdict, error)
        if verdict.releases:
            break
    left = {"data.parquet", "hierarchy.csv", *(f"release-{format}" for format in FORMATS)}
    _only(verdict, folder, left)


def _plain(table: Drawn) -> bool:
    return not any(dtype.is_nested() for dtype in table.frame.dtypes)


def _saved(verdict: Verdict, release: Any, folder: Path, format: str, table: Drawn) -> None:
    try:
        release.save(folder, format=format)
    except ShoalError as error:  # a format cannot hold everything
        _sentence(verdict, error)
        return
    verdict.came_to = "released"
    counted(verdict, folder / "public", format, persons=_persons(table, folder))


def _persons(table: Drawn, folder: Path) -> list[Any] | None:
    """Whose each released row is, where roles say that a person may have several."""
    if table.roles.get("unit", "row") == "row":
        return None
    records = pyarrow.parquet.read_table(folder / "private" / "records.parquet")
    whose = table.frame[table.roles["unit"]].to_list()
    return [whose[row] for row in records["row_key"].to_pylist()]


def counted(verdict: Verdict, folder: Path, format: str, **given: Any) -> None:
    try:
        public = read_public(folder)
    except WrongFile as error:
        verdict.fail(f"{format}: {error}")
        return
    outcome = recount(public, **given)
    verdict.releases += 1
    verdict.claims += len(outcome.counted)
    for line in outcome.wrong:
        verdict.fail(f"{format}: {line}")


def _sentence(verdict: Verdict, error: ShoalError) -> None:
    text = str(error)
    if not text.endswith((".", "?")):
        verdict.fail(f"{type(error).__name__}: no clear sentence: {text[:200]!r}")
    if _tells_a_cell(text):
        verdict.fail(f"{type(error).__name__}: the value of a cell is in a message")


@contextlib.contextmanager
def _shoals_warnings(verdict: Verdict) -> Iterator[None]:
    """Warnings of Shoal are read, all others are failures."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ShoalWarning)
        yield
    for warning in caught:
        if _tells_a_cell(str(warning.message)):
            verdict.fail("the value of a cell is in a warning")


def _protected(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A file and a plan through the command line; then the release is verified, and counted."""
    table = draw_table(rng, tame=True)
    plan = draw_plan(rng, table)
    kind = rng.choice([*FORMATS, "csv"])
    data = _written(table, folder, kind)
    if data is None:
        verdict.came_to = "not written"
        return
    _hierarchy_file(rng, folder, table)
    format = rng.choice(list(FORMATS))
    said = ["--plan", _plan_file(folder, plan), "--out", "out", "--format", format]
    code = call(verdict, "protect", data, *said, *rng.choice([(), ("--json",)]))
    given = {data.name, "plan.toml", "hierarchy.csv"}
    _only(verdict, folder, given | ({"out"} if code == 0 else set()))
    verdict.came_to = {0: "released", 1: "not met"}.get(code, "refused")
    if code == 0:
        out = folder / "out"
        counted(verdict, out / "public", format, persons=_persons(table, out))
        if call(verdict, "verify", "out", "--original", data) != 0:
            verdict.fail("the release does not verify")


def _written(table: Drawn, folder: Path, kind: str) -> Path | None:
    """The file of a table; None where the library that writes it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return table.write(folder, kind)
    except Exception:
        shutil.rmtree(folder)
        folder.mkdir()
        return None


# -- tables


def _table(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A file, most often a damaged one, and any command that reads it."""
    table = draw_table(rng)
    kind = rng.choice([*FORMATS, "csv", "csv"])
    data = _written(table, folder, kind)
    if data is None:
        verdict.came_to = "not written"
        return
    quotes = False
    if rng.random() < 0.02:
        data = folder / "data.parquet"
        far_dates().write_parquet(data)
    elif rng.random() < 0.005:
        data = folder / "data.xlsx"
        far_workbook(data)
    elif rng.random() < 0.5:
        content = damaged(rng, data.read_bytes())
        data.write_bytes(content)
        first = content.lstrip(b"\r\n").split(b"\n")[0]  # a first line of data is taken for names
        quotes = kind in ("csv", "tsv") and CANARY.encode() in first
    names = table.frame.columns
    drawn = draw_plan(rng, table)
    plan = _plan_file(folder, drawn)
    _hierarchy_file(rng, folder, table)
    words: dict[str, list[object]] = {
        "roles": [],
        "init": ["--out", "first.toml"],
        "hierarchy": [rng.choice(names), *rng.choice([(), ("--out", "tree.csv")])],
        "assess": ["--quasi", rng.choice(names)],
        "protect": ["--plan", plan, "--out", "out"],
    }
    command = rng.choice(list(words))
    options = rng.choice(_OPTIONS) if rng.random() < 0.3 else ()
    shows = command in ("hierarchy", "init")
    if quotes:  # a cell became the name of a column
        verdict.came_to = "not looked at"
    code = (_silent if quotes else call)(
        verdict, command, data, *words[command], *options, quotes=shows
    )
    verdict.came_to = {0: "read", 1: "not met"}.get(code, "refused")
    given = {data.name, f"data.{kind}", "plan.toml", "hierarchy.csv"}
    made = {"first.toml", "hierarchies", "tree.csv", "out"} if code == 0 else set()
    _only(verdict, folder, given | made)


_OPTIONS: list[tuple[str, ...]] = [
    ("--delimiter", ";"), ("--delimiter", "\x00"), ("--encoding", "cp1252"), ("--encoding", "x"),
    ("--decimal", ","), ("--missing-value", "f"), ("--sheet", "2"), ("--header",),
    ("--input-format", "csv"), ("--input-format", "parquet"), ("--query", "SELECT 1"), ("--json",),
]  # fmt: skip


def _silent(verdict: Verdict, *words: object, quotes: bool) -> int:
    """A call of which only the way it ends is looked at."""
    apart = Verdict(verdict.number, verdict.kind)
    code = call(apart, *words, quotes=True)
    verdict.failures += [line for line in apart.failures if "value of a cell" not in line]
    return code


# -- plans


def _plan(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A good table and a plan that somebody spoilt."""
    table = draw_table(rng, tame=True)
    if _plain(table):
        table.frame.write_parquet(folder / "data.parquet")
    _hierarchy_file(rng, folder, table)
    given = draw_plan(rng, table)
    path = _plan_file(folder, given)
    if rng.random() < 0.6:
        spoilt = mutated(rng, given)
        with contextlib.suppress(Exception):  # what cannot be written is not tried
            path = _plan_file(folder, spoilt if isinstance(spoilt, dict) else {})
    else:
        path.write_bytes(damaged(rng, path.read_bytes()))
    command = rng.choice(["protect", "protect", "assess"])
    out = ["--out", "out"] if command == "protect" else []
    code = call(verdict, command, "data.parquet", "--plan", path, *out)
    verdict.came_to = {0: "done", 1: "not met"}.get(code, "refused")
    _only(verdict, folder, {"data.parquet", "plan.toml", "hierarchy.csv", *out})
    if code == 0 and command == "protect":
        public = folder / "out" / "public"
        facts = json.loads((public / "release.json").read_text("utf-8"))
        by_rows = facts["data"]["persons"] is None  # nothing was said, and few codes say nothing
        persons = None if by_rows else _persons(table, folder / "out")
        counted(verdict, public, "parquet", persons=persons)


# -- hierarchies


def _hierarchy_file(rng: random.Random, folder: Path, table: Drawn) -> dict[str, list[str]]:
    """A file of a hierarchy of some column: from each value to the root."""
    column = rng.choice(table.frame.columns)
    values = {str(cell) for cell in table.frame[column].to_list() if cell is not None}
    return _tree(rng, folder, sorted(values))


def _tree(rng: random.Random, folder: Path, values: Sequence[str]) -> dict[str, list[str]]:
    labels = list(values)
    columns = [labels]
    for level in range(rng.randint(0, 3)):
        nodes = sorted(set(columns[-1]))
        fewer = max(1, len(nodes) // 2)
        above = {node: f"n{level}-{rng.randrange(fewer)}" for node in nodes}
        columns.append([above[node] for node in columns[-1]])
    columns.append(["*"] * len(labels))
    rows = [list(row) for row in zip(*columns, strict=True)]
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in rows]
    text = "".join(";".join(row) + "\n" for row in quoted)
    (folder / "hierarchy.csv").write_text(text, "utf-8", "replace")
    return {row[0]: row[1:] for row in rows}


def _hierarchy(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A hierarchy of a file, whole or broken, for a search and for closeness."""
    rows = rng.choice([6, 20, 40])
    ills = rng.sample(["flu", "gout", "cough", "ulcer", "acne", "a;b", 'q"q'], rng.randint(2, 6))
    jobs = ["cook", "nurse", "clerk", "pilot", "judge"]
    lines = [f"{rng.choice(jobs)},{rng.randint(1, 3)},{i}" for i in range(rows)]
    secrets = [rng.choice(ills) for _ in range(rows)]
    quoted = ['"' + ill.replace('"', '""') + '"' for ill in secrets]
    text = "".join(f"{line},{ill}\n" for line, ill in zip(lines, quoted, strict=True))
    (folder / "data.csv").write_text("job,room,n,ill\n" + text)
    search = rng.random() < 0.5
    tree = _tree(rng, folder, jobs if search else sorted(set(secrets)))
    whole = rng.random() < 0.4
    if not whole:
        path = folder / "hierarchy.csv"
        path.write_bytes(damaged(rng, path.read_bytes()))
    roles = {"quasi_identifiers": ["job", "room"], "sensitive": ["ill"], "insensitive": ["n"]}
    algorithm = rng.choice(["mondrian", "local", "full-domain"])
    step: dict[str, Any] = {"method": "generalize", "algorithm": algorithm, "k": 2}
    require: dict[str, Any] = {"k_anonymity": 2}
    if search:
        step["hierarchies"] = {"job": "hierarchy.csv"}
    else:
        closeness = {"t": rng.choice([0.3, 0.6, 1.0]), "distance": "hierarchical"}
        closeness |= {"column": "ill", "hierarchy": "hierarchy.csv"}
        require["t_closeness"] = closeness
        if rng.random() < 0.7:
            step["models"] = {"t_closeness": closeness}
    plan = _plan_file(folder, {"roles": roles, "steps": [step], "require": require})
    format = rng.choice(list(FORMATS))
    code = call(verdict, "protect", "data.csv", "--plan", plan, "--out", "out", "--format", format)
    verdict.came_to = {0: "released", 1: "not met"}.get(code, "refused")
    _only(verdict, folder, {"data.csv", "plan.toml", "hierarchy.csv", *(["out"] * (code == 0))})
    if code == 0:
        known = {"ill": tree} if whole and not search else None
        counted(verdict, folder / "out" / "public", format, hierarchies=known)


# -- halves of releases


@cache
def a_release(format: str, other: bool) -> Path:
    """A release of each format, made once in this process."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="shoal-fuzz-release-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rows = "".join(
        f"p{i},{20 + 10 * (i % 4)},{'fm'[i % 2]},{('flu', 'gout', 'ok')[i % 3]}\n"
        for i in range(48)
    )
    (folder / "data.csv").write_text("name,age,sex,ill\n" + rows)
    roles = {"identifiers": ["name"], "quasi_identifiers": ["age", "sex"], "sensitive": ["ill"]}
    steps = [{"method": "swap", "k": 3}] if other else [{"method": "generalize", "k": 4}]
    require = {"k_anonymity": 2, "max_marketer_risk": 0.9, "max_unchanged_records": 1.0}
    plan = _plan_file(folder, {"roles": roles, "steps": steps, "require": require})
    words = ["protect", folder / "data.csv", "--plan", plan, "--out", folder / "out"]
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--format", format)])
    assert result.exit_code == 0, result.output
    return folder


def _halves(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """A release that was damaged or tampered with."""
    home = a_release(rng.choice(list(FORMATS)), rng.random() < 0.5)
    other = a_release(rng.choice(list(FORMATS)), rng.random() < 0.5)
    release = shutil.copytree(home / "out", folder / "out")
    what = damage_release(rng, release, other / "out")
    changed = _content(release / "public") != _content(home / "out" / "public")
    original = ["--original", str(home / "data.csv")] if rng.random() < 0.3 else []
    command = rng.choice(["verify", "verify", "verify", "assess"])
    code = call(verdict, command, "out", *original)
    verdict.came_to = {0: "passed", 1: "failed"}.get(code, "refused")
    private = release / "private"
    same = private.is_dir() and _content(private) == _content(home / "out" / "private")
    if command == "verify" and code == 0 and changed and same:
        verdict.fail(f"verify passes although the public half was changed: {what}")


def _content(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() if path.is_file() and not path.is_symlink() else b"?"
        for path in folder.iterdir()
    }


def _study(rng: random.Random, folder: Path, verdict: Verdict) -> None:
    """The file of a study that somebody spoilt."""
    rows = "".join(f"{20 + i % 7},{'fm'[i % 2]},{i % 3}\n" for i in range(30))
    (folder / "people.csv").write_text("age,sex,ill\n" + rows)
    roles = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill"]}
    given: dict[str, Any] = {
        "name": "small",
        "seeds": rng.choice([1, 2, [3, 5]]),
        "tables": [{"path": "people.csv", "target": "ill", "roles": roles}],
        "variants": [
            {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 10]}},
            {"combine": [{"method": "swap", "k": 3}, {"method": "recode", "magnitude": 0.5}]},
        ],
        "measures": ["marketer_risk", {"measure": "unchanged_records", "name": "left"}],
        "statistics": [{"kind": "sign-test", "measure": "marketer_risk", "rope": 2.0}],
        "figures": [{"kind": "ranks", "measure": "marketer_risk"}],
    }
    path = folder / "study.toml"
    path.write_text(tomlkit.dumps(given))
    if rng.random() < 0.75:
        spoilt = mutated(rng, given)
        with contextlib.suppress(Exception):  # what cannot be written is not tried
            written = without_nothing(spoilt) if isinstance(spoilt, dict) else {}
            path.write_text(tomlkit.dumps(written), "utf-8")
    else:
        path.write_bytes(damaged(rng, path.read_bytes()))
    code = call(verdict, "study", path, "--out", "results", "--jobs", 1, "--seconds", "0s")
    verdict.came_to = {0: "done", 1: "not met"}.get(code, "refused")


_RUN: dict[str, Callable[[random.Random, Path, Verdict], None]] = {
    "release": _release,
    "protected": _protected,
    "table": _table,
    "plan": _plan,
    "hierarchy": _hierarchy,
    "halves": _halves,
    "study": _study,
}
#: The kind of a case is told by its number.
KINDS = ["release", "table", "release", "plan", "protected", "halves", "release", "hierarchy"]
KINDS += ["release", "table", "release", "plan", "protected", "halves", "release", "study"]
