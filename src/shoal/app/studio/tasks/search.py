"""Search the levels of a full-domain recoding with the least loss, with the proof."""

from __future__ import annotations

from typing import Any

from shoal.app.studio._work import Task
from shoal.masking import Generalize
from shoal.workflow import Plan


def run(task: Task) -> dict[str, Any]:
    """The best levels; if none are allowed, an error names the closest ones."""
    given = {"steps": [task.options["step"]]}
    (step,) = Plan.from_dict(given, folder=task.folder.parent.parent).steps
    assert isinstance(step, Generalize)
    step.seconds = task.options.get("seconds")
    table = task.table
    step.fit_transform(table, progress=task.part(0.1, 1.0))
    return {
        "levels": step.levels_,
        "loss": step.loss_,
        "suppressed": step.suppressed_,
        "records": table.records,
        "proved": step.optimal_,
        "size": step.lattice_["lattice"],
        "looked_at": step.lattice_["visited"],
        "bound": step.lattice_["bound"],
    }
