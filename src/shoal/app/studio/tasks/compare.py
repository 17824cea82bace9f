"""Mask with a plan and compare with the original: risk, utility, and who bears the loss."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from shoal.app.studio._work import Task
from shoal.app.studio.releasing._releases import read_earlier, state_of
from shoal.errors import RequirementNotMet
from shoal.utility._groups import losses_by_group
from shoal.workflow import Claim, assess
from shoal.workflow._assessment import jsonable
from shoal.workflow._protect import mask_by, refuse_unless_all_hold
from shoal.workflow.release._profile import class_size_profile, column_profiles

_MOST_COLUMNS: Final = 60


def run(task: Task) -> dict[str, Any]:
    """Measure a candidate, even if its plan does not hold what it requires."""
    state = state_of(task.source)
    made = mask_by(task.table, task.plan, task.part(0.05, 0.3))
    original, masked = made.table, made.masked
    earlier, followed = read_earlier(task.folder.parent, task.options.get("earlier", ()), original)
    before = assess(original, original=original, progress=task.part(0.3, 0.45))
    after = assess(masked, original=original, earlier=earlier, progress=task.part(0.45, 0.9))
    task.progress("Comparing the columns", 0.9)
    profiles = column_profiles(original, masked)
    task.progress("Counting who bears the loss", 0.95)
    names = [profile.name for profile in profiles][:_MOST_COLUMNS]
    groups = losses_by_group(original, masked, names)
    found = {
        "source": state,
        "path": str(task.source),
        "refused": _refusal(made.claims),
        "claims": [{"key": c.key, "holds": c.holds, "sentence": c.sentence} for c in made.claims],
        "rows": len(masked),
        "before": before.to_dict(),
        "after": after.to_dict(),
        "sizes": [asdict(bar) for bar in class_size_profile(original, masked)],
        "columns": [profile.to_dict() for profile in profiles],
        "groups": {name: [asdict(one) for one in each] for name, each in groups.items()},
        "earlier": followed,
    }
    plain: dict[str, Any] = jsonable(found)
    return plain


def _refusal(claims: tuple[Claim, ...]) -> str | None:
    """The sentence that would refuse a release."""
    try:
        refuse_unless_all_hold(claims)
    except RequirementNotMet as cause:
        return str(cause)
    return None
