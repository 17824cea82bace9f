"""Jobs that were done once, in this process, and are put into the projects of many tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.app.studio.conftest import PLAN, Browser

from shoal.app.demo import PEOPLE
from shoal.app.studio._jobs import JOB, OUTCOME, RESULT, Job, write_json
from shoal.app.studio._work import outcome_of
from shoal.app.studio.releasing._releases import state_of


def finished(kind: str, project: Path, plan: str = PLAN, **options: Any) -> Path:
    """The folder of a job on the demo's table, when it has ended."""
    folder = project / "runs" / f"20260101-120000-{kind}-0000"
    folder.mkdir(mode=0o700, parents=True)
    facts = {"kind": kind, "title": kind.capitalize(), "source": str(PEOPLE), "reading": {}}
    facts |= {"plan": plan, "version": 3, "options": options, "started": 1_767_268_800.0}
    write_json(folder / JOB, facts)
    outcome = outcome_of(folder)
    assert (outcome["state"], outcome["sentence"]) == ("done", "")
    write_json(folder / OUTCOME, outcome)
    return folder


def put(browser: Browser, folder: Path, source: Path, name: str = "") -> Job:
    """The job as if it had been done in this project on this table."""
    place = browser.studio.project.folder / "runs" / (name or folder.name)
    shutil.copytree(folder, place)
    found = json.loads((place / RESULT).read_text(encoding="utf-8"))
    write_json(place / RESULT, found | {"path": str(source), "source": state_of(source)})
    return browser.studio.jobs.get(place.name)
