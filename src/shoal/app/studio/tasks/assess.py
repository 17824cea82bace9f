"""Measure how exposed the table is as it stands."""

from __future__ import annotations

from typing import Any

from shoal.app.studio._work import Task
from shoal.workflow import assess


def run(task: Task) -> dict[str, Any]:
    """Assess the table with the plan's roles."""
    known = task.options.get("known")
    found = assess(task.table, known=known, progress=task.part(0.1, 1.0))
    return found.to_dict()
