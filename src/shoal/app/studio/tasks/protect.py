"""Mask by the plan, verify, and write the release into the folder of the job."""

from __future__ import annotations

import dataclasses
from typing import Any

from shoal.app.studio._work import Task
from shoal.masking import Secrets
from shoal.workflow import Release, protect, verify

RELEASE = "release"


def run(task: Task) -> dict[str, Any]:
    """Release the table; what the project says about roles and purpose goes into the audit."""
    release = protect(task.table, task.plan, progress=task.part(0.05, 0.7))
    release = _with_reasons(release, task)
    task.progress("Writing the release", 0.7)
    folder = release.save(
        task.folder / RELEASE,
        format=task.options.get("format", "csv"),
        force=True,
        source=task.source,
        progress=task.part(0.7, 0.9),
    )
    task.progress("Verifying the files that were written", 0.9)
    checked = verify(folder)
    return {
        "folder": str(folder),
        "records": len(release.masked),
        "records_before": release.rows_before,
        "claims": [claim.to_dict() | {"sentence": claim.sentence} for claim in release.claims],
        "before": release.before.to_dict(),
        "after": release.after.to_dict(),
        "checks": checked.to_dict(),
        "holds": checked.holds,
    }


def _with_reasons(release: Release, task: Task) -> Release:
    said = {name: task.options[name] for name in ("reasons", "about") if task.options.get(name)}
    if not said:
        return release
    return dataclasses.replace(release, audit=Secrets({**release.audit, "studio": said}))
