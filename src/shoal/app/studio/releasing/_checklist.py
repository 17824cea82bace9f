"""The checklist before a release: each point with its state and the screen where it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.app.studio._pages import Standing, Studio
from shoal.app.studio.releasing._candidates import Candidate
from shoal.app.studio.releasing._releases import releases, same_table
from shoal.table import Roles
from shoal.workflow import Plan
from shoal.workflow._plan_parts import release_texts
from shoal.workflow.report import _words

_NEEDED: Final = ("recipient", "purpose")


@dataclass(frozen=True)
class Point:
    """A point of the list."""

    standing: Standing
    title: str
    sentence: str
    room: str


def checklist(studio: Studio, compared: Candidate | None) -> list[Point]:
    """All points, in the order of the rooms; fast, since marks need it."""
    if studio.dataset.source is None:
        return [Point("blocks", "A table is chosen", "There is none yet.", "data")]
    plan = studio.project.plan
    roles = plan.roles or Roles()
    return [
        _whose(roles),
        _decided(studio, roles),
        _reasons(studio.project.settings, roles),
        _required(plan, compared),
        _earlier(studio, compared),
        _said(about_of(plan, studio.project.settings)),
    ]


def _whose(roles: Roles) -> Point:
    title = "Row ownership is declared"
    if not roles.unit:
        return Point("attention", title, "k counts rows as people; confirm or correct it.", "data")
    if roles.unit_columns:
        return Point("done", title, "Persons are counted; each may have several rows.", "data")
    return Point("done", title, "Each row is a different person.", "data")


def _decided(studio: Studio, roles: Roles) -> Point:
    title, found = "Every column has a role", studio.dataset.if_loaded
    if found is None:
        return Point("open", title, "The table is being read.", "roles")
    open_ones = [name for name in found.table.columns if roles.of(name) is None]
    if open_ones:
        count = _words.counted(len(open_ones), "column")
        return Point("blocks", title, f"{count} {_have(open_ones)} no role yet.", "roles")
    if not roles.quasi_identifiers:
        return Point("blocks", title, "No column is a quasi-identifier, so nothing can be said "
                     "about risk.", "roles")  # fmt: skip
    return Point("done", title, f"{_words.counted(len(found.table.columns), 'column')}.", "roles")


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def reasons_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Why each column has its role, if someone wrote it down."""
    given = settings.get("reasons")
    written = given.items() if isinstance(given, Mapping) else ()
    return {name: text for name, text in written if isinstance(text, str) and text.strip()}


def _reasons(settings: Mapping[str, Any], roles: Roles) -> Point:
    title, written = "Reasons are written down", reasons_of(settings)
    names = dict.fromkeys(name for _, name in roles.items())
    left = [name for name in names if name not in written]
    if left:
        sentence = f"{len(names) - len(left)} of {_words.counted(len(names), 'role')} have one."
        return Point("attention", title, sentence, "roles")
    return Point("done" if names else "open", title, "Each role has one.", "roles")


def _required(plan: Plan, compared: Candidate | None) -> Point:
    title = "The requirements hold"
    if not plan.require:
        return Point("attention", title, "The plan requires nothing, so the release would "
                     "claim nothing.", "plan")  # fmt: skip
    if compared is None:
        sentence = "The current plan was not compared yet. The release checks it anyway."
        return Point("open", title, sentence, "compare")
    standing: Standing = "done" if compared.holds else "attention"
    return Point(standing, title, f"In the last comparison the plan {compared.verdict}.", "compare")


def _earlier(studio: Studio, compared: Candidate | None) -> Point:
    title = "Earlier releases are compared"
    ids = [kept.job.id for kept in releases(studio) if same_table(studio, kept.result)]
    if not ids:
        return Point("done", title, "This project has no earlier release of this table.", "release")
    followed = compared.found.get("earlier", {}) if compared else {}
    left = [id for id in ids if followed.get(id, "") is not None]
    if left:
        sentence = (
            f"{_words.counted(len(left), 'earlier release')} "
            f"{'was' if len(left) == 1 else 'were'} not compared with this plan: whom do both "
            "expose together?"
        )
        return Point("attention", title, sentence, "compare")
    return Point("done", title, f"{_words.counted(len(ids), 'earlier release')}.", "compare")


def _said(about: Mapping[str, str]) -> Point:
    title, texts = "Recipient and purpose are written", release_texts()
    left = [texts[name][0].lower() for name in _NEEDED if not about.get(name)]
    if left:
        return Point("attention", title, f"Write below: {' and '.join(left)}.", "release")
    return Point("done", title, "They go into the report of the release.", "release")


def about_of(plan: Plan, settings: Mapping[str, Any]) -> dict[str, str]:
    """What the plan says about its release; a project of an earlier version has it elsewhere."""
    given = settings.get("release")
    known = given if isinstance(given, Mapping) else {}
    earlier = {name: known[name] for name in release_texts() if isinstance(known.get(name), str)}
    written = {name: getattr(plan.release, name) for name in release_texts()}
    return earlier | {name: text for name, text in written.items() if text}
