"""A whole study: run, concluded, and written down as numbers, figures and a page."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.study import _generic
from shoal.study._conclusion import Conclusion
from shoal.study._design import Study
from shoal.study._results import Results
from shoal.study._runner import Progress, Run, run
from shoal.study.builtin import PRESETS, built_in, built_in_studies
from shoal.workflow.report._render import render

_VERDICT = "verdict.json"


@dataclass(frozen=True)
class Outcome:
    """What came of a study."""

    study: Study
    run: Run
    results: Results
    conclusion: Conclusion
    reference: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        failures: dict[str, int] = {}
        for row in self.results:
            if row.status == "failed" and row.reason is not None:
                failures[row.reason] = failures.get(row.reason, 0) + 1
        return {
            **self.conclusion.to_dict(),
            "study": self.study.name,
            "title": self.study.title,
            "reference": self.reference,
            "tasks": self.run.tasks,
            "done": self.run.done,
            "failed": self.run.failed,
            "computed": self.run.computed,
            "complete": self.run.complete,
            "failures": failures,
        }


def run_study(
    study: str | os.PathLike[str] | Study,
    out: str | os.PathLike[str],
    *,
    preset: str = "quick",
    jobs: int | None = None,
    backend: str = "loky",
    budget: float | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run a study, or go on with it, and write down what it comes to.

    Parameters
    ----------
    study : str, path or Study
        A built-in study by name, the file of a study, or one made in Python.
    out : path
        The folder of its results: ``results.sqlite`` (every task), ``results.csv``, ``figures/``,
        ``verdict.json`` and ``report.html``.
    preset : {"quick", "full"}
        Of a built-in study: minutes on two cores, or the paper's grid.
    jobs : int, optional
        How many workers; all cores without it.
    backend : {"loky", "dask", "spark"}
        Where they run.
    budget : float, optional
        Seconds after which nothing new is begun.
    retry : bool
        Compute tasks anew that failed before.
    progress : callable, optional
        Called with what was done and the share that is done.

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
    if preset not in PRESETS:
        raise InputError(f"The preset of a study is 'quick' or 'full'; got {preset!r}.")
    design, reference = _design_of(study, preset)
    folder = Path(out)
    ended = run(
        design,
        folder,
        jobs=jobs,
        backend=backend,
        budget=budget,
        retry=retry,
        progress=progress,
    )
    results = Results.of(design, folder)
    if design.name in built_in_studies() and reference:
        conclusion = built_in(design.name).conclude(results)
    else:
        conclusion = _generic.conclude(design, results)
    outcome = Outcome(design, ended, results, conclusion, reference)
    _write(outcome, folder)
    return outcome


def read_verdict(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a study came to, from its folder."""
    path = Path(folder) / _VERDICT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(
            f"There is no finished study in '{folder}': {_VERDICT} is missing or damaged; run "
            "shoal study with this folder as --out."
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"The file {_VERDICT} in '{folder}' is not that of a study.")
    return found


def _design_of(study: str | os.PathLike[str] | Study, preset: str) -> tuple[Study, str]:
    if isinstance(study, Study):
        return study, ""
    if str(study).endswith(".toml") or Path(study).is_file():
        return Study.load(study), ""
    found = built_in(str(study))
    return found.design(preset), found.reference


def _write(outcome: Outcome, folder: Path) -> None:
    outcome.results.to_csv(folder / "results.csv")
    pictures = {}
    for name, figure in outcome.conclusion.figures.items():
        paths = figure.save(folder / "figures", name)
        picture = base64.b64encode(paths[0].read_bytes()).decode("ascii")
        pictures[name] = f"data:image/svg+xml;base64,{picture}"
    facts = outcome.to_dict()
    page = render("study.html.j2", outcome=outcome, facts=facts, pictures=pictures)
    for name, text in (
        ("report.html", page),
        (_VERDICT, json.dumps(facts, indent=2, ensure_ascii=False)),
    ):
        part = folder / f".{name}.part"  # complete, or as it was
        part.write_text(text, encoding="utf-8")
        part.replace(folder / name)
