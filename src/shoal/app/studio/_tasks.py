"""What jobs do: each task measures, masks, searches or checks, and returns its result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal import workflow
from shoal.app.studio._jobs import write_json
from shoal.app.studio._work import Task
from shoal.app.studio.releasing._releases import CHECKS, RELEASE, read_earlier, state_of
from shoal.errors import InputError, RequirementNotMet
from shoal.masking import Generalize, Secrets
from shoal.table import Table, read
from shoal.utility._groups import losses_by_group
from shoal.workflow import Claim, Plan, Release, Verification
from shoal.workflow._assessment import jsonable
from shoal.workflow._protect import mask_by, refuse_unless_all_hold
from shoal.workflow.release._profile import class_size_profile, column_profiles

if TYPE_CHECKING:
    from shoal.study.tuning import Tried

#: What a release has done so far, line by line, for the page that waits.
LINES: Final = "lines.json"
#: Where a search keeps the plans that it tried.
TRIED: Final = "tried.json"
_STORE: Final = "store"
_SEARCH: Final = 0.9  # the share of the time spent on trying plans; the rest confirms the best
_MOST_COLUMNS: Final = 60


def assess(task: Task) -> dict[str, Any]:
    """How exposed the table is, with the columns that an intruder knows by the page."""
    table, known = task.table, task.options.get("known")
    if known:
        table = table.with_roles(table.roles.replacing(quasi_identifiers=known))
    found = workflow.assess(
        table,
        sampling_fraction=task.options.get("fraction"),
        progress=task.part(0.1, 1.0),
    )
    facts: dict[str, Any] = jsonable(found.to_dict())
    return facts


def compare(task: Task) -> dict[str, Any]:
    """Risk, utility and who bears the loss, even if the plan does not hold what it requires."""
    state = state_of(task.source)
    made = mask_by(task.table, task.plan, task.part(0.05, 0.3))
    original, masked = made.table, made.masked
    earlier, followed = read_earlier(task.folder.parent, task.options.get("earlier", ()), original)
    before = workflow.assess(original, original=original, progress=task.part(0.3, 0.45))
    after = workflow.assess(
        masked, original=original, earlier=earlier, progress=task.part(0.45, 0.9)
    )
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


def protect(task: Task) -> dict[str, Any]:
    """Release the table; the project's notes on roles and purpose go into the audit."""
    state, tell = state_of(task.source), _Lines(task)
    release = workflow.protect(task.table, _with_reasons(task), progress=tell.part(0.05, 0.6))
    for claim in release.claims:
        tell.line(f"Holds: {claim.sentence}")
    together, followed = _together(task, release, tell)
    said = {name: task.options[name] for name in ("reasons",) if task.options.get(name)}
    folder = task.folder / RELEASE
    try:
        release = replace(release, audit=Secrets({**release.audit, "studio": said}))
        release.save(
            folder,
            format=task.options.get("format", "csv"),
            force=True,
            source=task.source,
            progress=tell.part(0.7, 0.9),
        )
        tell("Verifying the files that were written", 0.9)
        checked = workflow.verify(folder, original=task.table, source=task.source)
        checked.raise_if_failed()
    except BaseException:  # stopped or not valid: nobody must mistake it for a release
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return _of_release(task, release, checked, state) | {"together": together, "earlier": followed}


def _with_reasons(task: Task) -> Plan:
    """The plan with the reasons that the project has for its roles."""
    about = task.plan.release
    given, columns = task.options.get("reasons", {}), set(task.table.columns)
    known = {name: text for name, text in given.items() if text and name in columns}
    reasons = {**known, **about.reasons}
    return task.plan.replacing(release=replace(about, reasons=reasons))


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
    found = workflow.assess(
        release.masked, original=original, measures=["prosecutor_risk"], earlier=tables
    )
    return {name: one.to_dict() for name, one in found.together.items()}, followed


def _of_release(
    task: Task, release: Release, checked: Verification, state: list[int]
) -> dict[str, Any]:
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


def verify(task: Task) -> dict[str, Any]:
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
    found = workflow.verify(folder, **against).to_dict()
    found["when"] = datetime.now().strftime("%Y-%m-%d %H:%M")
    write_json(job / CHECKS, found)
    return found


def search(task: Task) -> dict[str, Any]:
    """The best levels, with the proof; if none are allowed, an error names the closest ones."""
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


def tune(task: Task) -> dict[str, Any]:
    """Tune; a search that was stopped continues, since tried plans are kept."""
    from shoal.study.tuning import tune as tuned

    options, table = task.options, task.table
    tried: list[dict[str, Any]] = []
    if options.get("target"):
        table = table.with_roles(table.roles.replacing(target=options["target"]))

    def watch(one: Tried) -> None:
        tried.append(one.to_spot() | {"steps": [dict(step) for step in one.steps]})
        write_json(task.folder / TRIED, tried)

    def progress(label: str, share: float) -> None:
        is_last = label.startswith("Confirming")
        task.progress(label, _SEARCH if is_last else 0.05 + (_SEARCH - 0.05) * share)

    found = tuned(
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


#: Each kind of job.
TASKS: Final[dict[str, Callable[[Task], dict[str, Any]]]] = {
    "assess": assess,
    "compare": compare,
    "protect": protect,
    "search": search,
    "tune": tune,
    "verify": verify,
}
