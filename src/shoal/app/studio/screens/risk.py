"""Risk now: how far three intruders get with what they know, before anything is masked."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._dataset import Loaded
from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, page, show
from shoal.app.studio.exposure._exposure import Crowds
from shoal.app.studio.screens.roles import roles_in
from shoal.errors import InputError
from shoal.measurement import Measurement
from shoal.table import Roles
from shoal.workflow import Assessment
from shoal.workflow._assessment import ClassFacts
from shoal.workflow._require import discover_all_measures
from shoal.workflow.release._profile import SIZE_LIMITS, Bar
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._assessment import _facts as facts_of_assessment

#: The chances of being found in the table of people at risk.
_CHANCES: Final = (2, 5, 10, 20)


@dataclass(frozen=True)
class Question:
    """The question of the page: the columns an intruder knows, and the share of the population."""

    known: tuple[str, ...]
    percent: float | None
    chosen: bool

    @property
    def fraction(self) -> float | None:
        return None if self.percent is None else self.percent / 100

    @property
    def query(self) -> list[tuple[str, str]]:
        asked = [("chosen", "1"), *(("known", name) for name in self.known)] if self.chosen else []
        return asked + ([] if self.percent is None else [("percent", f"{self.percent:g}")])

    @property
    def address(self) -> str:
        return f"/risk?{urlencode(self.query)}" if self.query else "/risk"


def _question(roles: Roles, fields: Sequence[tuple[str, str]]) -> Question:
    asked = {value for name, value in fields if name == "known"}
    chosen = any(name == "chosen" for name, _ in fields)
    known = tuple(name for name in roles.quasi_identifiers if not chosen or name in asked)
    text = next((value.strip() for name, value in fields if name == "percent"), "")
    return Question(known, _percent(text) if text else None, chosen)


def _percent(text: str) -> float:
    try:
        percent = float(text.replace(",", "."))
    except ValueError:
        percent = 0.0
    if not 0 < percent <= 100:
        raise InputError("The share of the population must be a number above 0 and at most 100.")
    return percent


def _mark(studio: Studio) -> Mark:
    loaded = studio.dataset.if_loaded
    if loaded is None:
        return Mark("open", "")
    roles, _ = roles_in(studio, loaded)
    if not roles.quasi_identifiers:
        return Mark("open", "needs quasi-identifiers")
    crowds = loaded.counts.known(roles.quasi_identifiers, roles)
    if crowds is None:
        return Mark("open", "not looked at")
    return Mark("done", alone_in_words(crowds))


def alone_in_words(crowds: Crowds) -> str:
    """How many people are unique, in words."""
    alone, total = crowds.alone, crowds.total
    if not total:
        return "nobody is in the table"
    if not alone:
        return "nobody is unique"
    if alone == total:
        return "everybody is unique"
    if 2 * alone > total:
        return f"{min(99, round(100 * alone / total))} of 100 people are unique"
    return f"1 in {_words.number(round(total / alone))} people is unique"


def right_in_words(crowds: Crowds) -> str:
    """For how many people an intruder who links everybody is right."""
    right = crowds.right
    for of in (100, 1_000, 10_000):
        about = round(of * right)
        if about >= 1:
            shown = of - 1 if about == of and right < 1 else about
            return f"right about {_words.number(shown)} of {_words.number(of)} people"
    return "right about fewer than 1 in 10,000 people"


def population_in_words(population: Crowds) -> str:
    """The most exposed person among everybody who could have been in the table."""
    if population.k < 2:
        return "someone is unique in the population"
    return f"the most exposed person is 1 of about {_words.number(population.k)}"


def _show(studio: Studio, request: Request) -> Response:
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    asked = _question(roles, request.query_params.multi_items())
    return show(
        request,
        "risk.html.j2",
        ROOM,
        quasi=roles.quasi_identifiers,
        asked=asked,
        weight=roles.weight,
        whose=roles.unit,
        **_exposure(loaded, roles, asked),
        **_assessed(studio, loaded, roles),
    )


def _exposure(loaded: Loaded, roles: Roles, asked: Question) -> dict[str, Any]:
    facts: dict[str, Any] = {"crowds": None, "without": None, "sets": None, "counting": False}
    facts |= {"problem_of_unit": "", "population": None, "cards": None, "charts": None}
    if not roles.quasi_identifiers:
        return facts
    facts |= loaded.counts.exposure(asked.known, asked.known, roles)
    crowds: Crowds | None = facts["crowds"]
    if crowds is None or not crowds.total:
        return facts
    population = crowds.in_population(asked.fraction)
    cards = {
        "prosecutor": alone_in_words(crowds),
        "journalist": None if population is None else population_in_words(population),
        "marketer": right_in_words(crowds),
    }
    at_risk = [
        (chance, crowds.below(chance), None if population is None else population.below(chance))
        for chance in _CHANCES
    ]
    return facts | {
        "population": population,
        "cards": cards,
        "at_risk": at_risk,
        "charts": _charts(crowds),
    }


def _charts(crowds: Crowds) -> dict[str, Any]:
    """The sizes of crowds and the resulting chances, as the report draws them."""
    by_size = _people_by_size(crowds)
    bars = [Bar(label, None, 100 * n / crowds.total) for label, n in by_size.items()]
    shares = _figures.smaller_than(by_size, crowds.k)
    return {
        "sizes": _figures.class_size_chart(bars),
        "by_size": [(bar, by_size[bar.label]) for bar in bars],
        "risk": _figures.risk_chart((), shares, crowds.k),
    }


def _people_by_size(crowds: Crowds) -> dict[str, int]:
    ends = [*SIZE_LIMITS, float("inf")]
    by_size: dict[str, int] = {}
    for low, high in pairwise(ends):
        label = f"{low}+" if high == ends[-1] else f"{low}–{high - 1:g}"
        label = str(low) if high - low == 1 else label
        by_size[label] = crowds.below(high) - crowds.below(low)
    return by_size


# -- the whole assessment


def _assessed(studio: Studio, loaded: Loaded, roles: Roles) -> dict[str, Any]:
    """The newest assessment, and what has changed since."""
    job = studio.jobs.latest("assess")
    result = None if job is None or job.state != "done" else job.result()
    if job is None or result is None:
        return {"job": job, "found": None, "changed": ()}
    found = facts_of_assessment(assessment_of(result))
    return {"job": job, "found": found, "changed": _changed_since(job, result, loaded, roles)}


def assessment_of(result: Mapping[str, Any]) -> Assessment:
    """The assessment that a job saved, without the values of single records.

    Measures that compare are not listed as left out, since there is no second table.
    """
    infos, classes = discover_all_measures(), result["classes"]
    known = {each.name: classes[each.name] for each in fields(ClassFacts) if each.name in classes}
    left_out = result["left_out"].items()
    return Assessment(
        **{name: result[name] for name in ("rows", "columns", "roles", "missing", "failed")},
        classes=ClassFacts(k=classes["smallest"], **known),
        measurements={name: _measurement(one) for name, one in result["measurements"].items()},
        notes=tuple(result["notes"]),
        left_out={name: why for name, why in left_out if not infos[name].needs_original},
    )


def _measurement(facts: Mapping[str, Any]) -> Measurement:
    interval = facts["interval"]
    return Measurement(
        facts["name"],
        math.nan if facts["value"] is None else facts["value"],
        interval=None if interval is None or None in interval else (interval[0], interval[1]),
        **{name: facts[name] for name in ("baseline", "direction", "details")},
        warnings=tuple(facts["warnings"]),
    )


def _changed_since(job: Job, result: Any, loaded: Loaded, roles: Roles) -> list[str]:
    changed = []
    then = Roles.from_dict(tomllib.loads(job.plan).get("roles", {}))
    if then != roles:
        changed.append("The roles have changed since. Assess again for current numbers.")
    if result["rows"] != len(loaded.table):
        changed.append("The number of rows has changed since. Assess again.")
    if job.options.get("known"):
        count = len(job.options["known"])
        changed.append(f"It assumes that the intruder knows only {count:,} of the columns.")
    return changed


def _assess(studio: Studio, form: Form, request: Request) -> str:
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    asked = _question(roles, form.items())
    if not asked.known:
        raise InputError("Choose at least one column that the intruder knows.")
    options: dict[str, Any] = {}
    if asked.known != roles.quasi_identifiers:
        options["known"] = list(asked.known)
    if asked.fraction is not None:
        options["fraction"] = asked.fraction
    if not any(job.is_running for job in studio.jobs.all("assess")):
        studio.start("assess", "Assessment", **options)
    return f"{asked.address}#assessment"


ROOM = Room(
    "risk",
    "Risk now",
    "This is the table before masking. An intruder who knows a person's quasi-identifiers looks "
    "for records with the same values. A unique person is found; in a crowd of five the "
    "guess is right once in five times. Later screens show how much of this risk is left.",
    "measures/index",
    _mark,
    [page("/risk", _show), action("/risk/assess", _assess)],
)
