"""Pages for those who decide on a release: criteria, Safe Harbor, and decisions with reasons.

They lie in the private half: they hold exact values measured against the original, the names of
removed columns, and reasons that may describe what an intruder knows. They are made from measures
that exist; what was not measured is named, with the way to measure it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import InputError
from shoal.table import Roles, Table, role_word
from shoal.workflow._assess import assess
from shoal.workflow._assessment import Assessment
from shoal.workflow._plan_parts import PAGE_FILES, AboutRelease, release_texts
from shoal.workflow._require import discover_all_measures
from shoal.workflow.papers._safe_harbor import safe_harbor
from shoal.workflow.report import _words
from shoal.workflow.report._assessment import shown_measure
from shoal.workflow.report._render import render

if TYPE_CHECKING:
    from shoal.workflow.release._release import Release

#: The three criteria of the Article 29 Working Party (2014), opinion 05/2014, section 2.2.2, with
#: the measures that speak about each. The first of each is the attack that defines it here.
CRITERIA: Final = {
    "Singling out": (
        "Can some records that belong to one person be isolated?",
        ("singling_out", "prosecutor_risk", "uniqueness"),
    ),
    "Linkability": (
        "Can two records about the same person be linked, in one database or in two?",
        ("linkability", "distance_linkage", "journalist_risk"),
    ),
    "Inference": (
        "Can a person's value be deduced, with significant probability, from other values?",
        ("inference", "homogeneity", "membership_inference"),
    ),
}
_ATTACKS: Final = tuple(names[0] for _, names in CRITERIA.values())


def attacks_for_pages(masked: Table, original: Table, about: AboutRelease) -> Assessment | None:
    """The attacks that the page of criteria needs; None if the plan does not ask for it."""
    if "criteria" not in about.pages:
        return None
    asked = [name for name in _ATTACKS if name != "inference" or original.roles.sensitive]
    try:
        return assess(masked, original=original, measures=asked)
    except InputError:  # none of them applies; the page says that they were not measured
        return None


def private_pages(release: Release) -> dict[str, str]:
    """The name and the text of each page that the plan asks for."""
    made = {
        "criteria": criteria_page,
        "safe_harbor": safe_harbor_page,
        "decisions": decisions_page,
        "choice_of_k": choice_of_k_page,
    }
    return {PAGE_FILES[name]: made[name](release) for name in release.plan.release.pages}


def criteria_page(release: Release) -> str:
    """Singling out, linkability and inference, with measured values."""
    after, attacks, infos = release.after, release.attacks, discover_all_measures()
    taken = {**after.measurements, **({} if attacks is None else attacks.measurements)}
    why = {**after.left_out, **after.failed}
    why |= {} if attacks is None else {**attacks.left_out, **attacks.failed}
    criteria = [
        (
            title,
            question,
            [shown_measure(taken[name], infos[name]) for name in names if name in taken],
            [(name, infos[name].title, why.get(name)) for name in names if name not in taken],
        )
        for title, (question, names) in CRITERIA.items()
    ]
    return render("papers/criteria.html.j2", criteria=criteria, **_head(release))


def safe_harbor_page(release: Release) -> str:
    """The 18 identifiers of HIPAA Safe Harbor, each with what was found."""
    items = safe_harbor(release, datetime.now(UTC).year)
    return render(
        "papers/safe_harbor.html.j2",
        items=items,
        open_items=[item for item in items if item.found],
        searched=isinstance(release.masked, Table),
        **_head(release),
    )


def decisions_page(release: Release) -> str:
    """An appendix for an expert determination or a DPIA: who decided what, and why."""
    reasons = release.plan.release.reasons
    declared = release.plan.roles
    roles = (Roles.from_dict(release.audit["roles"]) if declared is None else declared).items()
    infos = discover_all_measures()
    pairs = [
        (infos[name].title, release.before.measurements.get(name), found, infos[name].direction)
        for name, found in release.after.measurements.items()
        if infos[name].about == "risk"
    ]
    return render(
        "papers/decisions.html.j2",
        roles=[(role_word(role), name, reasons.get(name)) for role, name in roles],
        no_role=[n for n in release.masked.columns if n not in {name for _, name in roles}],
        other_reasons={n: t for n, t in reasons.items() if n not in {name for _, name in roles}},
        steps=[
            (
                _words.step_title(step.method),
                _words.step_in_words(step.method, step.parameters),
                step.touched,
            )
            for step in release.steps
        ],
        claims=[(c.title, c.requirement.threshold, c.measured, c.holds) for c in release.claims],
        left=release.left,
        measured=pairs,
        k=(release.before.k, release.after.k),
        rows=(release.rows_before, len(release.masked)),
        **_head(release),
    )


def choice_of_k_page(release: Release) -> str:
    """What each of several k costs on this table, beside the k that was chosen."""
    return render(
        "papers/choice_of_k.html.j2",
        curve=release.k_curve,
        k=release.after.k,
        swapping=release.after.swapping,
        **_head(release),
    )


def _head(release: Release) -> dict[str, Any]:
    """What every page begins with: what the release is, for whom, and what is assumed."""
    about = release.plan.release
    return {
        "about": [
            (name, label, getattr(about, name)) for name, (label, _, _) in release_texts().items()
        ],
        "title": about.title,
        "known": release.masked.roles.quasi_identifiers,
        "removed": release.removed_identifiers,
        "persons": release.after.classes.called,
        "created": datetime.now(UTC).date().isoformat(),
    }
