"""Measure how exposed the table is now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shoal.app.studio._work import Task
from shoal.measurement import Measurement
from shoal.workflow import Assessment, assess
from shoal.workflow._assessment import ClassFacts, jsonable
from shoal.workflow._require import discover_all_measures


def run(task: Task) -> dict[str, Any]:
    """Assess the table, with the columns that an intruder knows according to the page."""
    table, known = task.table, task.options.get("known")
    if known:
        table = table.with_roles(table.roles.replacing(quasi_identifiers=known))
    found = assess(
        table,
        sampling_fraction=task.options.get("fraction"),
        progress=task.part(0.1, 1.0),
    )
    facts: dict[str, Any] = jsonable(found.to_dict())
    return facts


def assessment_of(result: Mapping[str, Any]) -> Assessment:
    """The assessment that a job saved, without the values of single records.

    Measures that compare are not listed as left out, since there is no second table.
    """
    classes = result["classes"]
    return Assessment(
        rows=result["rows"],
        columns=result["columns"],
        roles=result["roles"],
        missing=result["missing"],
        classes=ClassFacts(
            count=classes["count"],
            k=classes["smallest"],
            uniques=classes["uniques"],
            average=classes["average"],
            largest=classes["largest"],
            records_by_size=classes["records_by_size"],
            persons=classes["persons"],
            rarest_history=classes["rarest_history"],
            alone_by_history=classes["alone_by_history"],
        ),
        measurements={name: _measurement(one) for name, one in result["measurements"].items()},
        notes=tuple(result["notes"]),
        left_out={name: why for name, why in result["left_out"].items() if _is_of_one(name)},
        failed=result["failed"],
    )


def _is_of_one(name: str) -> bool:
    return not discover_all_measures()[name].needs_original


def _measurement(facts: Mapping[str, Any]) -> Measurement:
    interval = facts["interval"]
    return Measurement(
        facts["name"],
        math.nan if facts["value"] is None else facts["value"],
        interval=None if interval is None or None in interval else (interval[0], interval[1]),
        baseline=facts["baseline"],
        direction=facts["direction"],
        details=facts["details"],
        warnings=tuple(facts["warnings"]),
    )
