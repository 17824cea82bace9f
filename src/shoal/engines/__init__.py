"""Tables larger than memory: the same plan on DuckDB and on Spark.

An engine counts. Whatever needs only counts has the same result as in memory. ``protect``,
``assess`` and ``verify`` take a table in memory, a path, a DuckDB relation, a polars LazyFrame or a
Spark DataFrame.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from shoal.engines._engine import Engine, in_one_sentence, roles_on
from shoal.engines._protect import LargeRelease, LargeTable
from shoal.errors import InputError, PlanError, ReadError, ReleaseError, RolesError, quoted
from shoal.hints import check_path, helpful
from shoal.masking import Masker, Progress
from shoal.table import LABELLED, ReadOptions, Roles, Table, as_roles, available_memory, read
from shoal.table.storage.metadata._files import description_of
from shoal.workflow import Assessment, EngineSettings, Plan, Release, Verification
from shoal.workflow import assess as assess_in_memory
from shoal.workflow import protect as protect_in_memory
from shoal.workflow import verify as verify_in_memory
from shoal.workflow._assess import table_with
from shoal.workflow.advice._advice import shortest_plan, with_k
from shoal.workflow.advice._suggest_plan import suggest_plan

__all__ = [
    "ENGINES",
    "EngineName",
    "LargeRelease",
    "LargeTable",
    "assess",
    "assess_release_in_parts",
    "assess_source",
    "chosen_engine",
    "is_in_parts",
    "protect",
    "protect_source",
    "refuse_reading",
    "verify",
    "verifying_engine",
]

EngineName = Literal["auto", "memory", "local", "duckdb", "spark"]
ENGINES = ("auto", "memory", "local", "duckdb", "spark")
_ON_REQUEST = "it was requested"

#: Roughly how many times as large as its file a table is in memory.
_GROWTH = {".parquet": 8, ".pq": 8, ".csv": 3, ".tsv": 3, ".gz": 15, ".duckdb": 6, ".ddb": 6}


@helpful
def protect(
    table: Any,
    plan: Plan | str | os.PathLike[str] | Sequence[Masker] | None = None,
    *,
    roles: Roles | Mapping[str, Any] | None = None,
    k: int | None = None,
    engine: EngineName = "auto",
    progress: Progress | None = None,
) -> Release:
    """Mask a table by a plan and verify what the plan requires, or raise RequirementNotMet.

    Identifiers are removed first, and the steps are applied in order. Code that took no part in
    the masking then measures every requirement on the result, and the rows are shuffled.

    Parameters
    ----------
    table : Table, frame, path, duckdb relation, polars LazyFrame or Spark DataFrame
        The original. Anything other than a Table or a frame stays out of memory if it is large: an
        engine does the work.
    plan : Plan, list of steps, or path of a plan, optional
        Steps and requirements. Default: the shortest plan for ``k``, which makes Mondrian boxes
        with at least k persons and, if a column is sensitive, two of its values.
    roles : Roles or dict, optional
        The roles of the columns, if neither the Table nor the plan declares them.
    k : int, optional
        With a plan, the k that replaces the k of its steps, models and requirements.
    engine : {"auto", "memory", "duckdb", "spark"}
        Where the plan runs. ``"auto"`` chooses memory for a Table, Spark for its DataFrames, and
        DuckDB for everything else that does not fit into memory.
    progress : callable, optional
        Called with a text and the share that is done.

    Returns
    -------
    Release
        The masked table with its claims; ``release.save("out/")`` writes it.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import KAnonymity, Plan, Roles, Round, Table
    >>> frame = pl.DataFrame({"name": ["Ann", "Bo", "Cy", "Di"], "age": [31, 32, 58, 61]})
    >>> table = Table(frame, Roles(identifiers=["name"], quasi_identifiers=["age"]))
    >>> release = protect(table, Plan([Round(base=20)], require=[KAnonymity(2)]))
    >>> sorted(release.masked.frame["age"])
    [40, 40, 60, 60]

    The shortest way, verified like any other:

    >>> release = protect(frame, roles={"identifiers": ["name"], "quasi_identifiers": ["age"]}, k=2)
    >>> release.after.k
    2
    """
    table, plan = _asked(table, plan, roles, k)
    check_engine(engine)
    if isinstance(table, Table):
        return protect_in_memory(table, plan, progress=progress)
    chosen, _ = chosen_engine(table, engine, plan.engine)
    if chosen == "memory":
        return protect_in_memory(_in_memory(table, plan.read), plan, progress=progress)
    return protect_source(table, plan, chosen, progress=progress)


def _asked(table: Any, plan: Any, roles: Any, k: int | None) -> tuple[Any, Plan]:
    """The table, with its roles if it is in memory, and the requested plan."""
    plan = None if plan is None else Plan.of(plan)
    if plan is None and k is None:
        raise PlanError(
            "There is no plan. Pass one, or pass k alone for the shortest plan: "
            "sh.protect(table, roles=..., k=5)."
        )
    if not _is_elsewhere(table):
        table = table_with(table if isinstance(table, Table) else Table(table), roles)
        known = table.roles if plan is None else plan.roles_for(table)
    else:
        known = as_roles(roles) if plan is None or plan.roles is None else plan.roles
        if roles is not None and known != as_roles(roles):
            raise RolesError("The plan already has other roles. Leave out 'roles'.")
    if plan is None or k is not None:
        assert k is not None
        if plan is not None:
            plan = with_k(plan, k)
        elif isinstance(table, Table) and known.quasi_identifiers:
            plan = suggest_plan(table, k=k).plan
        else:
            plan = shortest_plan(known, k)
    return table, plan if isinstance(table, Table) or roles is None else plan.replacing(roles=known)


def protect_source(
    source: Any,
    plan: Plan,
    engine: str,
    *,
    parent: Path | None = None,
    progress: Progress | None = None,
) -> LargeRelease:
    """Protect rows on a chosen engine, which works in a private folder in ``parent``."""
    from shoal.engines._protect import check_plan, finish, protect_on

    check_plan(plan)
    refuse_reading(source, plan.read, engine)
    place = Path(source).resolve() if isinstance(source, (str, os.PathLike)) else None
    if parent is not None and place is not None and parent.resolve().is_relative_to(place):
        raise ReleaseError(
            "The release would be inside the folder of its source, and the next run would read it "
            "as data. Choose another folder."
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(in_one_sentence())
        workshop = stack.enter_context(_workshop(plan.engine, parent))
        running = stack.enter_context(_started(engine, plan.engine, workshop, source))
        closing = contextlib.ExitStack()
        release = protect_on(running, source, plan, workshop, closing, progress)
        closing.push(stack.pop_all())
    finish(release)
    return release


def assess(
    table: Any, *, engine: EngineName = "auto", roles: Roles | None = None, **options: Any
) -> Assessment:
    """Measure how exposed a table is and, compared with its original, what masking cost.

    A Table is assessed in memory by every measure that applies; see ``shoal.workflow.assess``
    for the options. An engine counts anything else, which needs ``roles``.
    """
    if not _is_elsewhere(table):
        return assess_in_memory(table, roles=roles, **options)
    if isinstance(table, (str, os.PathLike)) and is_in_parts(table):
        more = {name for name in options if name not in ("original", "measures")}
        if more:
            raise InputError(f"The assessment of a release in parts does not take {quoted(more)}.")
        return assess_release_in_parts(table, engine=engine, **options)
    chosen, _ = chosen_engine(table, engine, EngineSettings())
    if chosen == "memory":
        return assess_in_memory(_in_memory(table, roles=roles), **options)
    if options:
        raise InputError(
            f"On an engine, assess does not take {quoted(options)}. Use the engine 'memory'."
        )
    if roles is None or not roles.quasi_identifiers:
        raise RolesError(
            "No quasi-identifiers are declared, so the risk cannot be measured. Declare the "
            "columns that an intruder may know."
        )
    return assess_source(table, lambda columns: roles, chosen, EngineSettings())


def assess_release_in_parts(
    folder: str | os.PathLike[str],
    *,
    original: Any = None,
    measures: Sequence[str] | None = None,
    engine: str = "auto",
    settings: EngineSettings | None = None,
) -> Assessment:
    """Assess a release in parts, and compare it with its original if there is one."""
    from shoal.engines._verify import assess_in_parts

    chosen, _ = verifying_engine(folder, engine)
    given = settings or EngineSettings()
    with _workshop(given, None) as place, _started(chosen, given, place, original) as running:
        return assess_in_parts(folder, running, original, measures)


def assess_source(
    source: Any,
    roles_of: Callable[[Sequence[str]], Roles],
    engine: str,
    settings: EngineSettings,
) -> Assessment:
    """Assess rows on a chosen engine by their classes."""
    from shoal.workflow._assess import assess_release

    with _workshop(settings, None) as folder, _started(engine, settings, folder, source) as running:
        rows = running.source(source)
        roles = roles_of(rows.columns)
        rows.check_roles(roles)
        names = [*roles.quasi_identifiers, *roles.sensitive, *roles.unit_columns]
        own, weight = roles_on(roles, names), roles.weight
        found = assess_release(rows.tally(names, own, released=False, weight=weight), None)
        return replace(found, columns=len(rows.columns))


@helpful
def verify(
    folder: str | os.PathLike[str],
    *,
    original: Any = None,
    source: Any = None,
    signer: str | os.PathLike[str] | None = None,
    private: str | os.PathLike[str] | None = None,
    engine: EngineName = "auto",
    settings: EngineSettings | None = None,
) -> Verification:
    """Check a release again from its files.

    See ``shoal.workflow.verify``. An engine counts a release in parts; default: DuckDB. For
    claims that compare with the original, pass it as ``source``: a path, or any source that the
    engine reads.
    """
    from shoal.engines._verify import verify_in_parts
    from shoal.workflow.release._verify import with_signature

    check_path(folder, "sh.verify", "Save a release first: sh.verify(release.save(folder)).")
    if not is_in_parts(folder):
        return verify_in_memory(
            folder, original=original, source=source, signer=signer, private=private
        )
    chosen, _ = verifying_engine(folder, engine)
    given = settings or EngineSettings()
    given_source = source if source is not None else original
    with _workshop(given, None) as shop, _started(chosen, given, shop, given_source) as running:
        found = verify_in_parts(folder, running, given_source, private)
        return with_signature(Path(folder), found, signer)


def verifying_engine(folder: str | os.PathLike[str], engine: str) -> tuple[str, str]:
    """The engine that counts a release again, and why."""
    check_engine(engine)
    if not is_in_parts(folder):
        return "memory", "the release is one file"
    if engine in ("auto", "memory", "local"):
        return "duckdb", "the release is in parts"
    return engine, _ON_REQUEST


def is_in_parts(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is a release in parts."""
    place = Path(folder)
    found = [half / "data" for half in (place / "public", place)]
    return any(path.is_dir() and not path.is_symlink() for path in found)


def check_engine(engine: str) -> None:
    """Raise InputError for an unknown engine."""
    if engine not in ENGINES:
        raise InputError(f"There is no engine '{engine}'. Use one of {quoted(ENGINES)}.")


def chosen_engine(source: Any, engine: str, settings: EngineSettings) -> tuple[str, str]:
    """The engine for a source and the reason, judged by its size without reading it."""
    from shoal.engines._duckdb import is_duckdb_file
    from shoal.engines._files import is_text, parquet_files

    check_engine(engine)
    if engine in ("memory", "local"):
        return "memory", _ON_REQUEST
    if engine != "auto":
        return engine, _ON_REQUEST
    if type(source).__module__.startswith("pyspark"):
        return "spark", "the table is a Spark DataFrame"
    if settings.master is not None:
        return "spark", "the plan names a cluster"
    if not isinstance(source, (str, os.PathLike)):
        return "duckdb", "the table is not in memory"
    path = Path(os.fspath(source).removeprefix("duckdb:///"))
    if is_duckdb_file(source):
        needed, free = _needed(path), available_memory()
        if os.fspath(source).startswith("duckdb://") and needed <= free:
            return "memory", f"it needs about {_size(needed)}, which fits into the free memory"
        return "duckdb", "the source is a DuckDB database"
    if is_in_parts(path):
        return "duckdb", "the release is in parts"
    if path.is_dir():
        if (path / "public").exists() or (path / "release.json").exists():
            return "memory", "the source is a release in one file"
        if is_text(path):
            return "duckdb", "the source is a folder of CSV files"
        if not parquet_files(path):
            return "memory", "the folder has no Parquet or CSV files"
        return "duckdb", "the source is a folder of Parquet files"
    if not path.is_file():
        return "memory", "the source is a database"
    needed = _needed(path)
    free = available_memory()
    if needed > free and path.suffix.lower() in _GROWTH:
        return "duckdb", f"it needs about {_size(needed)}, and {_size(free)} of memory is free"
    return "memory", f"it needs about {_size(needed)}, which fits into the free memory"


def _needed(path: Path) -> int:
    """About how many bytes of memory the table of a file takes."""
    return (path.stat().st_size if path.is_file() else 0) * _GROWTH.get(path.suffix.lower(), 1)


def _is_elsewhere(source: Any) -> bool:
    """Whether rows are not in memory: a path, a relation, a LazyFrame, a Spark DataFrame."""
    room = type(source).__module__.partition(".")[0].lstrip("_")
    if isinstance(source, (str, os.PathLike)) or room == "pyspark":
        return True
    return (room, type(source).__name__) in (
        ("duckdb", "DuckDBPyRelation"),
        ("polars", "LazyFrame"),
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{max(1, round(count / 1e6))} MB"


def refuse_reading(source: Any, known: ReadOptions | None, engine: str) -> None:
    """Raise InputError if an engine does not read a source, or not as a plan asks."""
    from shoal.engines._files import is_text, other_reading

    if not isinstance(source, (str, os.PathLike)):
        return
    if _is_labelled(source):
        raise InputError(
            f"The engine '{engine}' does not read files of Stata, SPSS or SAS, because labels and "
            "reasons for missing values would be lost. Use the engine 'memory'."
        )
    path = Path(source)
    metadata = None if known is None else known.metadata
    if path.is_file() and description_of(path, metadata) is not None:
        raise InputError(
            f"A metadata file describes '{path.name}', and the engine '{engine}' does not read it. "
            "Use the engine 'memory', or ignore the file with metadata = \"none\" under [read]."
        )
    if known is None:
        return
    odd = other_reading(path, known) if path.exists() and is_text(path) else []
    if odd:
        raise InputError(
            f"The plan reads text with {quoted(odd)}, which the engine '{engine}' does not "
            "support. Use the engine 'memory', or convert the table to Parquet."
        )


def _is_labelled(source: str | os.PathLike[str]) -> bool:
    from shoal.table.storage._formats import READ_ONLY, format_of

    try:
        format = format_of(source)
    except ReadError:
        return False
    return format in LABELLED or format in READ_ONLY


def _in_memory(source: Any, known: ReadOptions | None = None, roles: Roles | None = None) -> Table:
    if isinstance(source, (str, os.PathLike)):
        said = {} if known is None else known.for_file(source).without(["columns"]).to_dict()
        return read(source, roles=roles, **said)
    return Table(source.collect() if hasattr(source, "collect") else source, roles)


@contextlib.contextmanager
def _workshop(settings: EngineSettings, parent: Path | None) -> Iterator[Path]:
    """A private folder in ``parent`` that is removed when the block ends, like old leftovers."""
    from shoal.workflow.release._folder import make_parents, workshop

    parent = Path(settings.temporary or parent or tempfile.gettempdir())
    try:
        make_parents(parent / "x")
    except OSError as cause:
        why = cause.strerror or "the system refuses it"
        raise ReleaseError(f"The folder '{parent}' cannot be created: {why}.") from None
    with workshop(parent) as folder:
        yield folder


def _started(engine: str, settings: EngineSettings, workshop: Path, source: Any) -> Engine:
    if engine == "duckdb":
        from shoal.engines._duckdb import DuckDb

        return DuckDb(settings, workshop)
    from shoal.engines._spark import Spark

    return Spark(settings, workshop, getattr(source, "sparkSession", None))
