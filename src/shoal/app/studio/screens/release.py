"""Release: the checklist, the release itself, and earlier releases."""

from __future__ import annotations

import importlib.util
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import (
    Form,
    Mark,
    Room,
    Studio,
    action,
    page,
    render,
    set_in,
    show,
)
from shoal.app.studio._project import Version
from shoal.app.studio._tasks import LINES
from shoal.app.studio.releasing._checklist import Point, about_of, checklist, reasons_of
from shoal.app.studio.releasing._releases import (
    changes_since,
    commands,
    kept,
    releases,
    same_table,
)
from shoal.app.studio.screens.compare import candidate_in_force
from shoal.errors import InputError
from shoal.table import FORMATS, LABELLED, check_standards
from shoal.workflow import ATTACKS, AboutRelease
from shoal.workflow._plan_parts import release_texts
from shoal.workflow.release._release_files import read_plain
from shoal.workflow.report import _words

_LONGEST: Final = 2_000
_LARGEST_REPORT: Final = 1 << 27
_ENDED_BADLY: Final = ("refused", "failed", "stopped", "interrupted")
_PAPERS: Final = {
    "metadata": {
        "frictionless": "Frictionless (datapackage.json)",
        "csvw": "CSV on the Web (only for CSV and TSV)",
        "ddi": "DDI-Codebook (ddi.xml)",
    },
    "pages": {
        "criteria": "Singling out, linkability, inference",
        "safe_harbor": "HIPAA Safe Harbor check",
        "decisions": "Decisions and their reasons",
        "choice_of_k": "What each k costs",
    },
}
#: The report is a page of its own that may do nothing, and only the studio may frame it.
_FRAMED: Final = {
    "content-security-policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
}
_FORMATS: Final = {
    "csv": "CSV: opens everywhere",
    "parquet": "Parquet: small, keeps types",
    "xlsx": "Excel workbook",
    "tsv": "TSV: tabs between fields",
    "arrow": "Arrow",
    "dta": "Stata, with labels",
    "sav": "SPSS, with labels",
    "zsav": "SPSS, compressed",
    "por": "SPSS, portable",
    "xpt": "SAS transport",
}


def _points(studio: Studio) -> list[Point]:
    return checklist(studio, candidate_in_force(studio))


def _mark(studio: Studio) -> Mark:
    latest = studio.jobs.latest("protect")
    if latest is not None and latest.is_running:
        return Mark("open", "being released")
    blocks = [point for point in _points(studio) if point.standing == "blocks"]
    if blocks:
        return Mark("blocks", blocks[0].sentence.rstrip(".").lower())
    done = next(iter(releases(studio)), None)
    if done is not None:
        changed = changes_since(studio, done)
        return Mark("attention", changed[0].lower()) if changed else Mark("done", "released")
    if latest is not None and latest.state == "refused":
        return Mark("attention", "the last one was refused")
    return Mark("open", "not released yet")


def _show(studio: Studio, request: Request) -> Response:
    settings, latest = studio.project.settings, studio.jobs.latest("protect")
    points = _points(studio)
    return show(
        request,
        "release_screen.html.j2",
        ROOM,
        points=points,
        blocked=[point for point in points if point.standing == "blocks"],
        about=about_of(studio.project.plan, settings),
        fields=release_texts(),
        papers=_papers(studio.project.plan.release),
        formats=_known_formats(),
        chosen=settings.get("release", {}).get("format", "csv"),
        latest=latest if latest and (latest.is_running or latest.state in _ENDED_BADLY) else None,
        releases=[(one, changes_since(studio, one)) for one in releases(studio)],
    )


def _known_formats() -> dict[str, str]:
    """The formats that can be written here; a workbook needs an extra."""
    written = {name: _FORMATS.get(name, name) for name in (*_FORMATS, *FORMATS) if name in FORMATS}
    if importlib.util.find_spec("xlsxwriter") is None:
        del written["xlsx"]
    if importlib.util.find_spec("pyreadstat") is None:
        written = {name: words for name, words in written.items() if name not in LABELLED}
    return written


def _papers(about: AboutRelease) -> dict[str, list[tuple[str, str, bool]]]:
    """The papers to choose from: name, words, and whether the plan asks for it."""
    return {
        kind: [(name, words, name in getattr(about, kind)) for name, words in known.items()]
        for kind, known in _PAPERS.items()
    }


def _begin(studio: Studio, form: Form, request: Request) -> str:
    """Save the description of the release, and start it if requested."""
    said = {name: form.one(name, "").replace("\r\n", "\n").strip() for name in release_texts()}
    papers = {
        kind: [n for n in known if form.one(f"{kind}.{n}", "")] for kind, known in _PAPERS.items()
    }
    written = form.one("format", "csv")
    if written not in _known_formats():
        raise InputError("There is no such format. Choose one from the list.")
    if any(len(text) > _LONGEST for text in said.values()):
        raise InputError(f"A field is limited to {_LONGEST:,} characters. Shorten the text.")

    check_standards(tuple(papers["metadata"]), written)
    with studio.project.changing("description of the release") as (plan, settings):
        set_in(settings, ["release", "format"], written)
        for name, text in said.items():
            set_in(settings, ["release", name], None)  # where an earlier version kept it
            set_in(plan, ["release", name], text or None)
        for kind, names in papers.items():
            set_in(plan, ["release", kind], names or None)
        if "release" in plan and not plan["release"]:
            del plan["release"]
    if form.one("then", "keep") != "release":
        return "/release"
    return f"/release/{_started(studio, written).id}"


def _started(studio: Studio, written: str) -> Job:
    blocks = [point for point in _points(studio) if point.standing == "blocks"]
    if blocks:
        raise InputError(f"Nothing is released yet: {blocks[0].sentence} See '{blocks[0].title}'.")
    running = [job for job in studio.jobs.all("protect") if job.is_running]
    if running:
        return running[0]
    settings = studio.project.settings
    return studio.start(
        "protect",
        studio.project.plan.release.title or "Release",
        format=written,
        reasons=reasons_of(settings),
        earlier=[one.job.id for one in releases(studio) if same_table(studio, one.result)],
    )


# -- one release


def _job(studio: Studio, request: Request) -> Job:
    job = studio.jobs.get(request.path_params["id"])
    if job.kind != "protect":
        raise InputError("There is no such release in this project. Go to Release.")
    return job


def _one(studio: Studio, request: Request) -> Response:
    job = _job(studio, request)
    facts: dict[str, Any] = {
        "job": job,
        "lines": _lines_of(job),
        "release": None,
        "verifying": None,
    }
    release = kept(job)
    if job.state == "done" and release.is_there:
        facts |= {
            "release": release,
            "changes": changes_since(studio, release),
            "commands": commands(studio, release),
            "checks": release.checks,
            "together": _together(release.result.get("together")),
            "followed": release.result.get("earlier") or {},
            "verifying": _verifying(studio, job.id),
        }
    return show(request, "release_one.html.j2", ROOM, **facts)


def _verifying(studio: Studio, id: str) -> Job | None:
    """The last verification of a release, unless it is done and shown as its checks."""
    found = [job for job in studio.jobs.all("verify") if job.options.get("release") == id]
    return found[0] if found and found[0].state != "done" else None


def _together(given: Any) -> list[tuple[str, str, str]]:
    """Whom this release exposes together with earlier ones: title, share, and what it means."""
    rates = given if isinstance(given, dict) else {}
    return [
        (info.title, _words.percent(100 * rates[name]["value"]), _words.WORDS["attacks"][name])
        for name, info in ATTACKS.items()
        if isinstance(rates.get(name), dict) and isinstance(rates[name].get("value"), (int, float))
    ]


def _lines_of(job: Job) -> list[str]:
    found = job.result(LINES)
    return [str(line) for line in found] if isinstance(found, list) else []


def _lines(studio: Studio, request: Request) -> Response:
    job = _job(studio, request)
    return HTMLResponse(
        render(request, "parts/release_lines.html.j2", job=job, lines=_lines_of(job))
    )


def _report(studio: Studio, request: Request) -> Response:
    """The report of the public half, for a frame that can do nothing."""
    release = kept(_job(studio, request))
    if release.job.state != "done" or not release.is_there:
        raise InputError("This release has no report. Release the table again.")
    report = read_plain(release.folder / "public" / "report.html", largest=_LARGEST_REPORT)
    return Response(report, media_type="text/html; charset=utf-8", headers=_FRAMED)


def _verify(studio: Studio, form: Form, request: Request) -> str:
    """Check a release again, from its files."""
    job = _job(studio, request)
    release = kept(job)
    if job.state != "done" or not release.is_there:
        raise InputError("There is no release to verify. Release the table first.")
    if not any(each.is_running for each in studio.jobs.all("verify")):
        studio.start(
            "verify",
            "Verify a release",
            of=Version(job.version, 0, "", "", job.plan, ""),
            release=job.id,
            against_table=same_table(studio, release.result),
        )
    return f"/release/{job.id}"


ROOM = Room(
    "release",
    "Release",
    "A release has two folders: one to publish, one to keep. Shoal writes them only if every "
    "requirement of the plan holds on the masked table, and then checks the files again with other "
    "code. Anyone who has the private folder can undo the masking.",
    "command-line",
    _mark,
    [
        page("/release", _show),
        action("/release/begin", _begin),
        page("/release/{id}", _one),
        page("/release/{id}/lines", _lines),
        page("/release/{id}/report", _report),
        action("/release/{id}/verify", _verify),
    ],
)
