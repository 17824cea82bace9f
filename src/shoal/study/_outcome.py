"""A whole study: run, concluded, and written as numbers, figures and a page."""

from __future__ import annotations

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from shoal.errors import InputError, ShoalError, quoted
from shoal.hints import renamed_parameters
from shoal.notebook import Html, listing, number, view
from shoal.parameters import OneOf, checked
from shoal.study import _declared
from shoal.study._conclusion import Conclusion
from shoal.study._declared import View
from shoal.study._design import Study
from shoal.study._results import Results, mean_of
from shoal.study._statistics import bootstrap_interval
from shoal.study.builtin import PRESETS, BuiltIn, built_in
from shoal.study.data._fetching import not_found
from shoal.study.data._tables import TableSource, tables_at
from shoal.study.figures._style import write_rows
from shoal.study.running._runner import Progress, Run, run
from shoal.workflow.release._folder import complete_files
from shoal.workflow.report._render import render

_VERDICT = "verdict.json"
_FEWEST: Final = 5  # tables or seeds that an interval is drawn from
_MOST_TABLES: Final = 3  # that are shown one by one


class Mean(NamedTuple):
    """The mean of a measure over the results of a variant, with its interval if one is known."""

    mean: float
    low: float | None
    high: float | None
    results: int

    @property
    def text(self) -> str:
        """The mean with its interval in brackets."""
        if self.low is None or self.high is None:
            return number(self.mean)
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


class Line(NamedTuple):
    """The means of a variant, on one table or (None) over all of them; None without a result."""

    variant: str
    table: str | None
    values: tuple[Mean | None, ...]

    @property
    def texts(self) -> list[str]:
        """The means with their intervals in brackets; empty without a result."""
        return ["" if mean is None else mean.text for mean in self.values]


@dataclass(frozen=True)
class MeasureTable:
    """Variants by measures: all means of a study, table by table if there are few tables."""

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    sentence: str

    @classmethod
    def of(cls, study: Study, results: Results) -> MeasureTable:
        """Means of whatever has a result."""
        view, measures = View(study, results), tuple(each.name for each in study.measures)
        is_by_table = 1 < len(study.tables) <= _MOST_TABLES
        tables = [source.name for source in study.tables] if is_by_table else [None]
        done = results.done
        if is_by_table:
            cells = done.split("variant", "table", "measure")
        else:
            cells = {
                (v, None, m): some for (v, m), some in done.split("variant", "measure").items()
            }
        means = {place: _mean_of(some) for place, some in cells.items()}
        lines = (
            Line(variant.name, table, tuple(means.get((variant.name, table, m)) for m in measures))
            for variant in study.variants
            for table in tables
            if not (table and variant.tables) or table in variant.tables
        )
        titles = tuple(view.title(name) for name in measures)
        over = "tables" if len(study.tables) > _MOST_TABLES else "seeds"
        return cls(measures, titles, tuple(lines), _sentence(over))

    @property
    def view(self) -> Html:
        """The means and their intervals for a notebook."""
        by_table = any(line.table is not None for line in self.lines)
        head = ["variant", *(["table"] if by_table else []), *self.titles]
        rows = [
            [line.variant, *([line.table or ""] if by_table else []), *line.texts]
            for line in self.lines
        ]
        return listing(head, rows, title="What was measured", of="means")

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "sentence": self.sentence,
            "measures": list(self.measures),
            "titles": list(self.titles),
            "rows": [
                {**line._asdict(), "values": [m if m is None else m._asdict() for m in line.values]}
                for line in self.lines
            ],
        }

    def to_csv(self, path: Path) -> None:
        """Write a row for each mean."""
        rows = (
            (line.variant, line.table or "", measure, *("" if p is None else p for p in mean))
            for line in self.lines
            for measure, mean in zip(self.measures, line.values, strict=True)
            if mean is not None
        )
        write_rows(path, ("variant", "table", "measure", *Mean._fields), rows)


def _sentence(over: str) -> str:
    means = "Means over the tables and seeds" if over == "tables" else "Means over the seeds"
    return (
        f"{means} that have results. Brackets hold 95 % intervals: the measure's own interval for "
        f"a single result, and a bootstrap interval for at least {_FEWEST} {over}. In all other "
        "cases no interval is known."
    )


def _mean_of(results: Results) -> Mean:
    """A mean with the interval of its one result, or of its tables, or of its seeds."""
    of_tables = [values.mean() for values in results.by("table").values()]
    independent = of_tables if len(of_tables) > 1 else results.values
    interval: tuple[float | None, float | None] = (None, None)
    if len(results) == 1:
        interval = results.rows[0].facts.get("interval") or interval
    elif len(independent) >= _FEWEST:
        interval = bootstrap_interval(independent)
    return Mean(mean_of(results.values), *interval, len(results))


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of a study."""

    study: Study
    run: Run
    results: Results
    conclusion: Conclusion
    reference: str = ""
    missing: str = ""
    preset: str | None = None

    @cached_property
    def measures(self) -> MeasureTable:
        """Every measure of every variant."""
        return MeasureTable.of(self.study, self.results)

    @cached_property
    def _setting(self) -> dict[str, Any]:
        """Its tables with their numbers of rows, its seeds, and the date."""
        study = self.study
        tables = [{"name": s.name, "rows": _rows_of(s, study.folder)} for s in study.tables]
        today = datetime.now(UTC).date().isoformat()
        return {"tables": tables, "seeds": list(study.seeds), "date": today}

    def __repr__(self) -> str:
        return f"Outcome of {self.study.name}: {self.sentence}"

    def _repr_html_(self) -> str:
        """The verdict, the numbers and claims behind it, the figures, and the means."""
        title = self.study.title or self.study.name
        parts = (*self.conclusion.views, self.measures.view)
        return view(title, self.sentence, *parts, quiet=self.measures.sentence)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        failed = (row.reason for row in self.results if row.status == "failed")
        failures = Counter(reason for reason in failed if reason is not None)
        found = self.conclusion.to_dict()
        found["sentence"] = self.sentence
        counts = ("tasks", "done", "failed", "computed", "complete")
        return {
            **found,
            "study": self.study.name,
            "title": self.study.title,
            "reference": self.reference,
            "preset": self.preset,
            **self._setting,
            "measures": self.measures.to_dict(),
            **{part: getattr(self.run, part) for part in counts},
            "failures": dict(failures),
            "missing": self.missing,
        }

    @property
    def sentence(self) -> str:
        """The verdict in plain words, with the preset and what is missing."""
        conclusion = self.conclusion
        verdict = conclusion.sentence
        if not conclusion.findings and not conclusion.claims:
            parts = ("variant", "table", "measure")
            counts = [(len(getattr(self.study, f"{part}s")), part) for part in parts]
            sizes = [f"{count:,} {part}{'s' * (count != 1)}" for count, part in counts]
            verdict = f"{sizes[0]} on {sizes[1]} with {sizes[2]}."
        if self.preset is not None:
            verdict = f"With the preset {self.preset}: {verdict[0].lower()}{verdict[1:]}"
        if not self.run.complete:
            lacking = self.run.tasks - self.run.done - self.run.failed
            part = f"Partial result, because {lacking:,} of {self.run.tasks:,} tasks are not done"
            return f"{part}: {verdict}"
        return verdict


def _rows_of(source: TableSource, folder: Path | None) -> int | None:
    try:
        return source.row_count(folder)
    except ShoalError:  # its tasks failed, with the reason
        return None


@renamed_parameters(budget="seconds")
@checked
def run_study(
    study: str | os.PathLike[str] | Study,
    out: str | os.PathLike[str],
    *,
    preset: Annotated[str, OneOf(PRESETS)] = "quick",
    tables: str | os.PathLike[str] | Sequence[TableSource] = (),
    jobs: int | None = None,
    backend: str = "loky",
    seconds: float | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run or resume a study, and write its results.

    Parameters
    ----------
    study : str, path or Study
        The name of a built-in study, the file of a study, or a Study object.
    out : path
        The folder for its results: ``results.sqlite`` (every task), ``results.csv`` and
        ``results.parquet``, ``figures/``, ``statistics/``, ``verdict.json`` and ``report.html``.
    preset : {"quick", "full"}
        For a built-in study: minutes on two cores, or the paper's full grid.
    tables : list of TableSource, or path
        Your own tables, which replace those of the study; a path names a TOML file with
        ``[[tables]]``. A built-in study judges the paper's claims on them. ``tables_at`` makes
        such a list from a file, with its target and roles.
    jobs : int, optional
        The number of workers; default: all cores.
    backend : {"loky", "dask", "spark"}
        Where they run: on this machine; on the Dask cluster of the current client, or of the
        scheduler in ``DASK_SCHEDULER_ADDRESS``; or on the cluster of the active Spark session, or
        of a new one.
    seconds : float, optional
        No new task starts after this time.
    retry : bool
        Compute failed tasks again.
    progress : callable, optional
        Called with a text and the share that is done.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> folder = tempfile.mkdtemp()
    >>> pl.DataFrame({"age": range(50), "ill": ["y", "n"] * 25}).write_csv(f"{folder}/people.csv")
    >>> study = Study.from_dict({
    ...     "tables": [{"path": f"{folder}/people.csv", "target": "ill"}],
    ...     "variants": [{"name": "round", "steps": [{"method": "round", "base": 10}]}],
    ...     "measures": ["uniqueness"],
    ... })
    >>> run_study(study, f"{folder}/out", jobs=1).run.done
    2
    """
    design, published = _design_of(study, preset)
    own = tables_at(tables) if isinstance(tables, (str, os.PathLike)) else tables
    if own:
        design = _on_tables(design, own, published, preset)
    try:
        some = published is not None and not own
        design, missing = _with_present_tables(design, some_will_do=some)
    except InputError as error:
        if published is None or own or not published.origins:
            raise
        raise InputError(f"{error} To get them, run 'shoal study fetch {design.name}'.") from None
    if published is None:
        _declared.check(design)
    folder = Path(out)
    deadline = None if seconds is None else time.monotonic() + seconds

    def run_stage(design: Study) -> Run:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        how: dict[str, Any] = {"jobs": jobs, "backend": backend, "retry": retry}
        return run(design, folder, **how, seconds=left, progress=progress)

    ended = run_stage(design)
    for stage in () if published is None else published.stages:
        if ended.stopped:  # the next stage depends on all of it
            break
        design = stage(design, Results.of(design, folder))
        before, ended = ended.computed, run_stage(design)
        ended = replace(ended, computed=ended.computed + before)
    results = Results.of(design, folder)
    if published is None:
        conclusion = _declared.conclude(design, results)
    elif own and published.elsewhere is not None:
        conclusion = published.elsewhere.conclude(results)
        conclusion = replace(conclusion, notes=[_about(design), *conclusion.notes])
    else:
        conclusion = published.conclude(results)
    if published is not None:
        known = {} if own else published.verdicts_of_full
        claims = [claim.under_preset(preset, known.get(claim.text)) for claim in conclusion.claims]
        conclusion = replace(conclusion, claims=claims)
    reference = "" if published is None else published.reference
    used = None if published is None else preset
    outcome = Outcome(design, ended, results, conclusion, reference, missing, used)
    with complete_files(folder) as aside:
        _write(outcome, aside)
    return outcome


def read_verdict(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the verdict of a study from its folder."""
    path = Path(folder) / _VERDICT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(
            f"There is no finished study in '{folder}': {_VERDICT} is missing or damaged. Run "
            "'shoal study' with this folder as --out."
        ) from None
    if not isinstance(found, dict) or not {"verdict", "claims", "tasks"} <= found.keys():
        raise InputError(f"The file {_VERDICT} in '{folder}' does not belong to a study.")
    return found


def _design_of(study: str | os.PathLike[str] | Study, preset: str) -> tuple[Study, BuiltIn | None]:
    """The study, and its published experiment, if it is built in."""
    if isinstance(study, Study):
        return study, None
    if not isinstance(study, (str, os.PathLike)):
        raise InputError(
            "A study is the name of a built-in one, the path of a file or a Study; got "
            f"{type(study).__name__}. sh.Study.from_dict takes plain data."
        )
    if str(study).endswith(".toml") or Path(study).is_file():
        return Study.load(study), None
    found = built_in(str(study))
    return found.design(preset), found


def _on_tables(
    design: Study, tables: Sequence[TableSource], published: BuiltIn | None, preset: str
) -> Study:
    """The study on other tables."""
    names = [source.name for source in tables]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"Two tables are called '{twice[0]}'; give each its own name.")
    elsewhere = None if published is None else published.elsewhere
    takes_hierarchies = elsewhere is not None and elsewhere.takes_hierarchies
    if any(source.hierarchies for source in tables) and not takes_hierarchies:
        raise InputError(
            f"The study '{design.name}' does not use hierarchies of tables, so yours would change "
            "nothing; leave them out."
        )
    given, _ = _with_present_tables(replace(design, tables=tuple(tables)), some_will_do=False)
    for source in tables:
        source.load(design.folder)  # a missing column is reported before the run starts
    if elsewhere is not None:
        return elsewhere.design(design, tables, preset)
    bound = sorted({name for variant in design.variants for name in variant.tables})
    if bound:
        raise InputError(
            f"The study '{design.name}' has variants for its own tables {quoted(bound)}, so it "
            "cannot run on others."
        )
    return given


def _about(design: Study) -> str:
    """Names the tables of a published experiment that runs on others than its own."""
    names = [
        f"'{source.name}'" + ("" if source.rows is None else f" (at most {source.rows:,} rows)")
        for source in design.tables
    ]
    return f"The paper's claims are judged on tables other than its own: {', '.join(names)}."


def _with_present_tables(design: Study, *, some_will_do: bool) -> tuple[Study, str]:
    """The study on the tables that were found or fetched, and a sentence about all others."""
    found = {source.name: source.found(design.folder)[1] for source in design.tables}
    absent = {name: missing for name, missing in found.items() if missing}
    if not absent:
        return design, ""
    sentence = not_found(absent)
    if not some_will_do or len(absent) == len(found):
        raise InputError(sentence)
    present = tuple(source for source in design.tables if source.name not in absent)
    return replace(design, tables=present), sentence


def _write(outcome: Outcome, folder: Path) -> None:
    outcome.results.to_csv(folder / "results.csv")
    outcome.results.to_parquet(folder / "results.parquet")
    outcome.measures.to_csv(folder / "measures.csv")
    pictures = {}
    for name, figure in outcome.conclusion.figures.items():
        paths = figure.save(folder / "figures", name)
        picture = base64.b64encode(paths[0].read_bytes()).decode("ascii")
        source = f"data:image/svg+xml;base64,{picture}"
        pictures[name] = {"source": source, "is_wide": figure.is_wide}
    for statistic in outcome.conclusion.statistics:
        statistic.save(folder / "statistics")
    facts = outcome.to_dict()
    page = render("study.html.j2", outcome=outcome, facts=facts, pictures=pictures)
    (folder / "report.html").write_text(page, encoding="utf-8")
    verdict = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / _VERDICT).write_text(verdict, encoding="utf-8")
