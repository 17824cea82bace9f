"""The releases of a project: jobs whose folder holds one, and what has changed since.

A release is in the folder of its job, ``runs/ID/release``. The page reads from there whether it
still exists, who signed it, and whether the plan or the table has changed since.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import InputError, ReleaseError, ShoalError
from shoal.table import Table
from shoal.workflow import Plan, read_release
from shoal.workflow.release._release_files import Place
from shoal.workflow.release._signing import check_signature

if TYPE_CHECKING:
    from shoal.app.studio._jobs import Job
    from shoal.app.studio._pages import Studio

RELEASE: Final = "release"
CHECKS: Final = "checks.json"
KEY: Final = "~/.ssh/id_ed25519"


def state_of(source: Path) -> list[int]:
    """The time and size of a file, which show whether it was written again."""
    found = source.stat()
    return [found.st_mtime_ns, found.st_size]


@dataclass(frozen=True)
class Kept:
    """A release of the project, with the records about it."""

    job: Job
    result: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.job.folder / RELEASE

    @property
    def is_there(self) -> bool:
        return (self.folder / "public" / "release.json").is_file()

    @property
    def checks(self) -> Mapping[str, Any]:
        """The latest checks: from the writing, or from a later request."""
        again = self.job.result(CHECKS)
        given = again if isinstance(again, Mapping) else self.result.get("checks")
        known = given if isinstance(given, Mapping) else {}
        listed = [c for c in _listed(known.get("checks")) if {"name", "status", "detail"} <= {*c}]
        return {"holds": known.get("holds") is True, "checks": listed, "when": known.get("when")}

    @property
    def signed(self) -> str | None:
        """The key that signed it, in words; None if it is not signed."""
        try:
            place = Place.of(self.folder)
            place.check_plain()
            (_, words), key = check_signature(place, None)
        except ReleaseError as cause:
            return f"The signature cannot be read: {cause}."
        if key is None:
            return None if "not signed" in words else f"{words[0].upper()}{words[1:]}."
        return f"Signed by {key}."


def _listed(given: Any) -> list[Mapping[str, Any]]:
    listed = given if isinstance(given, list) else []
    return [one for one in listed if isinstance(one, Mapping)]


def releases(studio: Studio) -> list[Kept]:
    """The releases that were written completely, newest first."""
    found = [kept(job) for job in studio.jobs.all("protect") if job.state == "done"]
    return [one for one in found if one.is_there]


def kept(job: Job) -> Kept:
    """A release with its result; damaged records count as missing."""
    result = job.result()
    return Kept(job, result if isinstance(result, Mapping) else {})


def changes_since(studio: Studio, release: Kept) -> list[str]:
    """What has changed since the release was made, in sentences."""
    changes = []
    if not same_plan(studio, release.job.plan):
        changes.append("The plan has changed since this release was made.")
    if not same_table(studio, release.result):
        changes.append("The table has changed since, or another one was chosen.")
    return changes


def same_table(studio: Studio, result: Mapping[str, Any]) -> bool:
    """Whether a job read the current table in its current state."""
    try:
        source = studio.dataset.source
        return source is not None and [str(source), state_of(source)] == [
            result.get("path"),
            result.get("source"),
        ]
    except (OSError, ShoalError):
        return False


def same_plan(studio: Studio, text: str) -> bool:
    """Whether a text is the same plan as the one in force; comments do not count."""
    if text == studio.project.version.plan:
        return True
    plan = _plan_of(text, studio.project.folder)
    return plan is not None and studio.project.problem is None and plan == studio.project.plan


@lru_cache(64)
def _plan_of(text: str, folder: Path) -> Plan | None:
    try:
        return Plan.from_toml(text, folder=folder)
    except ShoalError:
        return None


def commands(studio: Studio, release: Kept) -> dict[str, str]:
    """The commands that repeat, verify and sign a release."""
    source = studio.dataset.source
    data = "DATA" if source is None else shlex.quote(str(source))
    plan, folder = shlex.quote(str(studio.project.folder / "plan.toml")), str(release.folder)
    written = release.job.options.get("format", "csv")
    form = "" if written == "parquet" else f" --format {shlex.quote(str(written))}"
    place = shlex.quote(folder)
    return {
        "repeat": f"shoal protect {data} --plan {plan} --out NEW-FOLDER{form}",
        "verify": f"shoal verify {place} --original {data}",
        "sign": f"shoal sign {place} --key {KEY}",
    }


def read_earlier(
    runs: Path, ids: Sequence[str], original: Table
) -> tuple[list[Table], dict[str, str | None]]:
    """Earlier releases of the same original, and why some of them cannot be followed."""
    tables: list[Table] = []
    reasons: dict[str, str | None] = {}
    for id in ids:
        try:
            masked, before = read_release(runs / os.path.basename(id) / RELEASE, original=original)
            if before is None or not masked.pairs_with(original):
                raise InputError("It has no private half to say whose its rows are.")
        except ShoalError as cause:
            reasons[id] = str(cause)
        else:
            tables.append(masked)
            reasons[id] = None
    return tables, reasons
