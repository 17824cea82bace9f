"""Compare: up to three candidates next to the original, with the cost of each and who bears it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, address, page, show
from shoal.app.studio._project import Version
from shoal.app.studio.releasing import _candidates
from shoal.app.studio.releasing._candidates import LETTERS, LOSSES, Candidate
from shoal.app.studio.releasing._releases import releases, same_plan, same_table
from shoal.errors import InputError
from shoal.workflow.report import _figures

_LONGEST_TITLE = 80


def candidate_in_force(studio: Studio) -> Candidate | None:
    """The newest comparison of the current plan on the current table."""
    for job in studio.jobs.all("compare"):
        if job.state in ("done", "refused") and same_plan(studio, job.plan):
            found = Candidate.of(job)
            if not found.found or same_table(studio, found.found):
                return found
    return None


def _mark(studio: Studio) -> Mark:
    jobs = studio.jobs.all("compare")
    if any(job.is_running for job in jobs):
        return Mark("open", "being measured")
    found = candidate_in_force(studio)
    if found is not None:
        good = found.holds and bool(found.found["claims"])
        return Mark("done" if good else "attention", found.verdict)
    if jobs:
        return Mark("attention", "the plan has changed since it was compared")
    return Mark("open", "nothing compared yet")


def _show(studio: Studio, request: Request) -> Response:
    jobs, given = studio.jobs.all("compare"), request.query_params
    chosen = _chosen(studio, given.getlist("with"), jobs)
    candidates = [Candidate.of(job, letter) for job, letter in zip(chosen, LETTERS, strict=False)]
    measured = [one for one in candidates if one.found]
    named = given.get("show") == "values"
    columns = _candidates.payable_columns(candidates)
    by, loss = given.get("by") or next(iter(columns), ""), given.get("loss") or "detail"
    if columns and (by not in columns or loss not in LOSSES):
        raise InputError("The loss cannot be split by this column. Choose one from the list.")
    picked = [job.id for job in chosen] if given.getlist("with") else []

    def here(**changed: str) -> str:
        fields = {"show": "values" if named else "", "by": by, "loss": loss} | changed
        return address("/compare", **{"with": picked}, **fields)

    facts: dict[str, Any] = {
        "candidates": candidates,
        "measured": measured,
        "groups": _candidates.measure_groups(candidates),
        "pictures": _candidates.column_pictures(candidates, named=named),
        "histogram": _figures.histogram,
        "columns": columns,
        "payers": _candidates.payers(candidates, by, loss, named=named) if columns else None,
        "losses": LOSSES,
        "named": named,
        "picked": [("with", id) for id in picked],
        "address": here,
        "jobs": jobs,
        "in_force": candidate_in_force(studio),
        "versions": _plans(studio),
        "now": [one.letter for one in candidates if same_plan(studio, one.job.plan)],
        "stale": [one.letter for one in measured if not same_table(studio, one.found)],
    }
    return show(request, "compare.html.j2", ROOM, **facts)


def _chosen(studio: Studio, ids: list[str], jobs: list[Job]) -> list[Job]:
    """The jobs that the address names, or the newest; the earliest gets the first letter."""
    if len(ids) > len(LETTERS):
        raise InputError(f"Choose at most {len(LETTERS)} candidates.")
    named = [studio.jobs.get(id) for id in dict.fromkeys(ids)]
    if any(job.kind != "compare" for job in named):
        raise InputError("There is no such comparison in this project. Compare the plan again.")
    return named or jobs[: len(LETTERS)][::-1]


def _plans(studio: Studio) -> list[Version]:
    """The versions with different plans, newest first."""
    found: dict[str, Version] = {}
    for version in studio.project.versions:
        found.setdefault(version.plan, version)
    return list(found.values())


def _add(studio: Studio, form: Form, request: Request) -> str:
    """Compare a plan: the current one, that of a version, or one that a search proposed."""
    version, title = _given(studio, form)
    for job in studio.jobs.all("compare"):
        if job.is_running and job.plan == version.plan:
            return "/compare"
    earlier = [kept.job.id for kept in releases(studio) if same_table(studio, kept.result)]
    studio.start("compare", title, of=version, earlier=earlier)
    return "/compare"


def _given(studio: Studio, form: Form) -> tuple[Version, str]:
    text = form.one("plan", "").replace("\r\n", "\n")
    if text:
        title = form.one("title", "A proposed plan")[:_LONGEST_TITLE]
        return Version(0, 0, "", title, text, ""), title
    version = studio.project.version
    if form.one("version", ""):
        number = form.whole("version")
        known = {each.number: each for each in studio.project.versions}
        if number not in known:
            raise InputError(f"There is no version {number} of this plan.")
        version = known[number]
    return version, f"Version {version.number}"


ROOM = Room(
    "compare",
    "Compare",
    "Protection has a cost, and some groups of people bear more of it than others. All candidates "
    "are masked and measured in the same way, so you can explain your choice. Methods that use "
    "chance give a new result each time: small differences mean nothing.",
    "measures/index",
    _mark,
    [page("/compare", _show), action("/compare/add", _add)],
)
