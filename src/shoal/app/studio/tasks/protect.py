"""Mask with the plan, verify, and write the release into the folder of the job."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from shoal.app.studio._jobs import write_json
from shoal.app.studio._work import Task
from shoal.app.studio.releasing._releases import RELEASE, read_earlier, state_of
from shoal.masking import Secrets
from shoal.table import Table
from shoal.workflow import Plan, Release, Verification, assess, protect, verify
from shoal.workflow._assessment import jsonable

#: What has been done so far, line by line, for the page that waits.
LINES: Final = "lines.json"


def run(task: Task) -> dict[str, Any]:
    """Release the table; the project's notes on roles and purpose go into the audit."""
    state, tell = state_of(task.source), _Lines(task)
    release = protect(task.table, _with_reasons(task), progress=tell.part(0.05, 0.6))
    for claim in release.claims:
        tell.line(f"Holds: {claim.sentence}")
    together, followed = _together(task, release, tell)
    said = {name: task.options[name] for name in ("reasons",) if task.options.get(name)}
    folder = task.folder / RELEASE
    try:
        release = dataclasses.replace(release, audit=Secrets({**release.audit, "studio": said}))
        release.save(
            folder,
            format=task.options.get("format", "csv"),
            force=True,
            source=task.source,
            progress=tell.part(0.7, 0.9),
        )
        tell("Verifying the files that were written", 0.9)
        checked = verify(folder, original=task.table, source=task.source)
        checked.raise_if_failed()
    except BaseException:  # stopped or not valid: nobody must mistake it for a release
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return _facts(task, release, checked, state) | {"together": together, "earlier": followed}


def _with_reasons(task: Task) -> Plan:
    """The plan with the reasons that the project has for its roles."""
    about = task.plan.release
    given, columns = task.options.get("reasons", {}), set(task.table.columns)
    known = {name: text for name, text in given.items() if text and name in columns}
    reasons = {**known, **about.reasons}
    return task.plan.replacing(release=dataclasses.replace(about, reasons=reasons))


def _together(
    task: Task, release: Release, tell: _Lines
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Whom this release exposes together with earlier releases of the project."""
    ids = task.options.get("earlier", ())
    if ids:
        tell("Comparing with earlier releases", 0.62)
    original: Table = task.table
    tables, followed = read_earlier(task.folder.parent, ids, original)
    if not tables:
        return {}, followed
    found = assess(release.masked, original=original, measures=["prosecutor_risk"], earlier=tables)
    return {name: one.to_dict() for name, one in found.together.items()}, followed


def _facts(task: Task, release: Release, checked: Verification, state: list[int]) -> dict[str, Any]:
    plain: dict[str, Any] = jsonable(
        {
            "source": state,
            "path": str(task.source),
            "records": len(release.masked),
            "records_before": release.rows_before,
            "claims": [claim.to_dict() | {"sentence": claim.sentence} for claim in release.claims],
            "k": release.after.k,
            "checks": checked.to_dict(),
            "holds": checked.holds,
        }
    )
    return plain


class _Lines:
    """A progress function that also keeps every line it receives, each once."""

    def __init__(self, task: Task) -> None:
        self._task, self._file, self._said = task, Path(task.folder / LINES), list[str]()

    def __call__(self, label: str, share: float) -> None:
        self.line(label)
        self._task.progress(label, share)

    def line(self, label: str) -> None:
        if label not in self._said:
            self._said.append(label)
            write_json(self._file, self._said)

    def part(self, low: float, high: float) -> Callable[[str, float], None]:
        """A progress function for the part of the job from one share to another."""
        return lambda label, share: self(label, low + (high - low) * share)
