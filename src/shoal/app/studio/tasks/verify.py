"""Check a release of the project again, from its files and against the table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from shoal.app.studio._jobs import write_json
from shoal.app.studio._work import Task
from shoal.app.studio.releasing._releases import CHECKS, RELEASE
from shoal.errors import InputError
from shoal.table import read
from shoal.workflow import verify


def run(task: Task) -> dict[str, Any]:
    """All checks; they are also saved next to the release."""
    job = task.folder.parent / Path(task.options["release"]).name
    folder = job / RELEASE
    if not folder.is_dir():
        raise InputError("This release no longer exists. Release the table again.")
    against: dict[str, Any] = {}
    if task.options.get("against_table"):
        task.progress("Reading the table", 0.0)
        against["original"] = read(task.source, **task.facts["reading"])
        against["source"] = task.source
    task.progress("Checking the release", 0.3)
    found = verify(folder, **against).to_dict()
    found["when"] = datetime.now().strftime("%Y-%m-%d %H:%M")
    write_json(job / CHECKS, found)
    return found
