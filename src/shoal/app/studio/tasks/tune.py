"""Search for a plan under limits of risk and utility; every tried plan is saved at once."""

from __future__ import annotations

from typing import Any, Final

from shoal.app.studio._jobs import write_json
from shoal.app.studio._work import Task
from shoal.study.tuning import Tried, tune

#: Where a search keeps the plans that it tried.
TRIED: Final = "tried.json"
_STORE: Final = "store"
_SEARCH: Final = 0.9  # the share of the time spent on trying plans; the rest confirms the best


def run(task: Task) -> dict[str, Any]:
    """Tune; a search that was stopped continues, since tried plans are kept."""
    options, table = task.options, task.table
    tried: list[dict[str, Any]] = []
    if options.get("target"):
        table = table.with_roles(table.roles.replacing(target=options["target"]))

    def watch(one: Tried) -> None:
        tried.append(_facts(one))
        write_json(task.folder / TRIED, tried)

    def progress(label: str, share: float) -> None:
        is_last = label.startswith("Confirming")
        task.progress(label, _SEARCH if is_last else 0.05 + (_SEARCH - 0.05) * share)

    found = tune(
        table,
        max_risk=options["max_risk"],
        min_utility=options["min_utility"],
        utility=options["utility"],
        plan=task.plan,
        trials=options["trials"],
        search_rows=options["search_rows"],
        folder=task.folder / _STORE,
        progress=progress,
        watch=watch,
    )
    facts = found.to_dict()
    chosen = [one.steps for one in found.tried].index(found.chosen.steps)
    return {name: facts[name] for name in ("reason", "risk", "utility", "failures", "people")} | {
        "chosen": chosen
    }


def _facts(one: Tried) -> dict[str, Any]:
    return one.to_spot() | {"steps": [dict(step) for step in one.steps]}
