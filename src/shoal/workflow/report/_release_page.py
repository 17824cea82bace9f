"""The page of a release: what anyone may know about it, and what does not follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.notebook import clean
from shoal.workflow._leaks import Swapping
from shoal.workflow._plan import pseudonymized_by
from shoal.workflow._plan_parts import release_texts
from shoal.workflow._require import Claim, Limit
from shoal.workflow.release._crowds import share_step
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._render import render

if TYPE_CHECKING:
    from shoal.workflow.release._release import Release

_STATUSES = ("changed", "removed", "unchanged")


def release_page(release: Release, facts: Mapping[str, Any]) -> str:
    """The report of a release as one HTML file that loads nothing.

    It shows the original only in whole percents of crowds, and the release as anyone can count it.
    """
    sizes, after, roles = release.class_sizes, release.after, release.masked.roles
    swapping, swapped = after.swapping, facts["swapping"]
    unit = roles.unit_columns  # pseudonyms
    unowned = facts["data"]["persons"] is not None and not unit
    ranked = sorted(release.columns, key=lambda column: column.role != "quasi_identifiers")
    smaller = _figures.smaller_than(after.classes.records_by_size, after.k)
    return render(
        "release.html.j2",
        facts=facts,
        texts=release_texts(),
        quasi=roles.quasi_identifiers,
        swapped=swapped,
        leaks=[] if swapping is None else _leaks_in_words(swapping, swapped),
        shoal=_figures.shoal(after.k if swapped is None else swapped["k"]),
        claims=[_claim_in_words(claim, unowned=unowned) for claim in release.claims],
        steps=[
            {
                **step,
                "title": _words.step_title(step["method"]),
                "words": _words.step_in_words(step["method"], step["parameters"]),
                "lattice": _figures.lattice_picture(step["facts"]),
            }
            for step in facts["methods"]
        ],
        sizes=sizes,
        size_chart=_figures.class_size_chart(sizes),
        risk_chart=_figures.risk_chart(sizes, smaller, after.k),
        share_step=share_step(len(release.masked)),
        groups={s: [c for c in ranked if c.status == s] for s in _STATUSES},
        steps_of={
            name: [at for at, step in enumerate(facts["methods"], 1) if name in step["columns"]]
            for step in facts["methods"]
            for name in step["columns"]
        },
        histogram=_figures.histogram,
        query=None if unowned else _counting_query(roles.quasi_identifiers, unit),
        unowned=unowned,
        pseudonym=next(iter(unit), None) if release.plan.pseudonyms else None,
        named=sorted(pseudonymized_by(facts["methods"])),
        lasting=any(step["facts"].get("lasting") for step in facts["methods"]),
        **_facts_of_cautions(release, facts["methods"], facts["claims"]),
    )


def _facts_of_cautions(
    release: Release, methods: Sequence[Mapping[str, Any]], claims: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What ``templates/cautions.html.j2`` needs."""

    def columns_of(*names: str, among: Sequence[Mapping[str, Any]] = methods) -> list[str]:
        touched = (column for s in among if s["method"] in names for column in s["columns"])
        return list(dict.fromkeys(touched))

    quasi = release.masked.roles.quasi_identifiers
    stated = [claim["requirement"] for claim in claims]
    return {
        "sensitive": release.masked.roles.sensitive,
        "others": [name for name in release.masked.columns if name not in quasi],
        "kept": [c.name for c in release.columns if c.status == "unchanged"],
        "gone": [c.name for c in release.columns if c.status == "removed"],
        "blanked": columns_of("suppress", among=[s for s in methods if _made_missing(s)]),
        "columns_of": columns_of,
        "wildcard": any(isinstance(s, Mapping) and s.get("missing") == "wildcard" for s in stated),
    }


def _made_missing(step: Mapping[str, Any]) -> bool:
    """Whether a suppression removed cells, rather than columns or records."""
    rules = step["parameters"]
    whole = "max_distinct" in rules or "min_class_size" in rules
    return not whole and rules.get("target") != "records"


def _claim_in_words(claim: Claim, *, unowned: bool = False) -> dict[str, Any]:
    """A claim with what was required and measured, fit for a public page.

    An ``unowned`` release counts persons but does not say whose its rows are.
    """
    requirement = claim.requirement
    if isinstance(requirement, Limit):
        title, described = requirement.info.title, requirement.info.function.__doc__
        given = requirement.options.items()
        required = [f"{requirement.side} {_words.number(requirement.threshold)}"]
        required += [f"{name} = {v}" for name, v in given if isinstance(v, (int, float))]
    else:
        title, described = requirement.title, type(requirement).__doc__
        required = [f"{name} = {v}" for name, v in requirement.changed_params().items()]
    return {
        "title": title,
        "meaning": _words.first_line(described),
        "required": ", ".join(required),
        # exact where anyone can recompute it; a share of the original only in steps of a crowd
        "published": claim.published,
        "sampled": claim.sampled_about,
        "holds": claim.holds,
        "needs_original": claim.needs_original,
        "needs_private": claim.needs_original or requirement.needs_audit or unowned,
        "rests_on_seed": claim.rests_on_seed,
    }


def _counting_query(quasi: Sequence[str], unit: Sequence[str]) -> str | None:
    """How to count k with any SQL engine; None if the names are too long or cannot be shown."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in (*quasi, *unit)]
    names = ", ".join(quoted[: len(quasi)])
    if not quasi or len(names) > 300 or clean("".join(quoted)) != "".join(quoted):
        return None
    counted = f"COUNT(DISTINCT {quoted[-1]})" if unit else "COUNT(*)"
    return (
        f"SELECT MIN(n) AS k FROM\n  (SELECT {counted} AS n FROM data GROUP BY {names}) AS crowds"
    )


def _leaks_in_words(swapping: Swapping, public: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What the swap that protects a release leaves open, each with its columns."""
    leaks = []
    for leak, stated in zip(swapping.leaks, public["leaks"], strict=True):
        many = len(leak.columns) > 1
        size = _share(stated, int(leak.found.details["persons"]))
        # a column's name may hold anything, so names are listed separately
        sentence = leak.sentence(size=size, named=f"th{'ese columns' if many else 'is column'}")
        leaks.append((f"{sentence[0].upper()}{sentence[1:]}:", leak.columns))
    return leaks


def _share(stated: Mapping[str, Any], people: int) -> str:
    """A share as the public may know it; 'some' if a share would be about a handful of people."""
    if stated["percent"] is None:
        return "some"
    if stated["percent"] == 0:
        return f"fewer than {share_step(people)}{_words.SPACE}%"
    return f"about {_words.percent(stated['percent'])}"
