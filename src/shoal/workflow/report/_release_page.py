"""The page of a release: what anyone may know about it, and what does not follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from shoal.notebook import clean
from shoal.workflow._plan import pseudonymized_by
from shoal.workflow._plan_parts import release_texts
from shoal.workflow._require import Claim, Limit
from shoal.workflow.release._crowds import share_step
from shoal.workflow.release._profile import Bar, ColumnProfile
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._render import render

if TYPE_CHECKING:
    from shoal.workflow.release._release import Release


def release_page(release: Release, facts: Mapping[str, Any]) -> str:
    """The report of a release as one HTML file that loads nothing.

    It shows the original only in whole percents of crowds, and the release as anyone can count it.
    """
    sizes, after, roles = release.class_sizes, release.after, release.masked.roles
    swapped = _swap_words(release, facts)
    unit = roles.unit_columns  # pseudonyms
    unowned = facts["data"]["persons"] is not None and not unit
    smaller = _figures.smaller_than(after.classes.records_by_size, after.k)
    return render(
        "release.html.j2",
        facts=facts,
        texts=release_texts(),
        verdict=_verdict(release, facts, swapped),
        quasi=roles.quasi_identifiers,
        swapped=swapped,
        shoal=_figures.shoal(after.k if swapped is None else swapped.k),
        highest_risk=_words.chance(facts["measured"]["prosecutor_risk"]),
        claims=[_claim_in_words(claim, unowned=unowned) for claim in release.claims],
        steps=_steps(facts["methods"]),
        sizes=sizes,
        size_chart=_figures.class_size_chart(sizes),
        size_finding=_size_finding(sizes),
        risk_chart=_figures.risk_chart(sizes, smaller, after.k),
        share_step=share_step(len(release.masked)),
        groups=_groups(release.columns),
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


def _verdict(release: Release, facts: Mapping[str, Any], swapped: SimpleNamespace | None) -> str:
    """What was released, in one sentence."""
    rows, k, persons = facts["data"]["rows"], facts["measured"]["k"], facts["data"]["persons"]
    whose = "" if persons is None else f" of {_words.counted(persons, 'person')}"
    what = (
        f"{_words.counted(rows, 'record')}{whose} in "
        f"{_words.counted(len(facts['data']['columns']), 'column')} "
        f"{'was' if rows == 1 else 'were'} released"
    )
    if swapped is not None:
        hidden = swapped.hidden
    elif not release.masked.roles.quasi_identifiers:
        hidden = "without any quasi-identifier"
    elif k > 1:
        others = _words.counted(k - 1, "other" if persons is None else "other person")
        others = others.replace(_words.SPACE, " ")
        hidden = f"each looks like at least {others} (k{_words.SPACE}={_words.SPACE}{k:,})"
    else:
        hidden = f"but some are unique (k{_words.SPACE}={_words.SPACE}1)"
    claims = release.claims
    if not claims:
        met = "nothing was required"
    elif not all(claim.holds for claim in claims):
        met = "not every requirement was met"
    else:
        met = "the requirement was met" if len(claims) == 1 else "every requirement was met"
    return f"{what}: {hidden}, and {met}."


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
        "measured": _measured_in_words(claim),
        "holds": claim.holds,
        "needs_original": claim.needs_original,
        "needs_private": claim.needs_original or requirement.needs_audit or unowned,
        "rests_on_seed": claim.rests_on_seed,
    }


def _measured_in_words(claim: Claim) -> str:
    """Exact where anyone can recompute it; a share of the original only in steps of a crowd."""
    about = claim.sampled_about
    sample = "" if about is None else f", on a sample of about {about:,} persons"
    if claim.published is None:
        return ("within the limit" if claim.holds else "beyond the limit") + sample
    if claim.needs_original:
        return f"about {_words.percent(100 * claim.published)}{sample}"
    return _words.number(claim.published) + sample


def _steps(methods: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **method,
            "title": _words.step_title(method["method"]),
            "words": _words.step_in_words(method["method"], method["parameters"]),
            "levels": method["facts"].get("levels", {}),
            "suppressed": _words.suppressed_in_words(method["facts"]),
            "chunks": _words.chunks_in_words(method["facts"]),
            "lattice": _figures.lattice_picture(method["facts"]),
        }
        for method in methods
    ]


def _groups(profiles: Sequence[ColumnProfile]) -> dict[str, list[ColumnProfile]]:
    """The columns by what happened to them; quasi-identifiers first."""
    ranked = sorted(profiles, key=lambda profile: profile.role != "quasi_identifiers")
    return {s: [p for p in ranked if p.status == s] for s in ("changed", "removed", "unchanged")}


def _size_finding(sizes: Sequence[Bar]) -> str:
    first = sizes[0]
    crowd = "alone" if first.label == "1" else f"in crowds of {first.label}"
    now = "nobody is" if first.after == 0 else f"{_words.percent(first.after)} of the records are"
    if first.before is None:
        return f"In the release, {now} {crowd}."
    if first.before == 0:  # a share below half a step is rounded to none
        return f"Before, hardly anyone was {crowd}; now {now}."
    return f"Before, {_words.percent(first.before)} of the records were {crowd}; now {now}."


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


def _swap_words(release: Release, facts: Mapping[str, Any]) -> SimpleNamespace | None:
    """What a page says about the swap that protects a release; None if none does.

    ``hidden`` is what the headline says: the bound, and what guarantees it. ``what`` is the title
    of the ``measured`` number, which is None if the table is too small to publish it.
    """
    swapping, public = release.after.swapping, facts["swapping"]
    if swapping is None or public is None:
        return None
    leaks = []
    for leak, stated in zip(swapping.leaks, public["leaks"], strict=True):
        many = len(leak.columns) > 1
        size = _share(stated, int(leak.found.details["persons"]))
        # a column's name may hold anything, so names are listed separately
        sentence = leak.sentence(size=size, named=f"th{'ese columns' if many else 'is column'}")
        leaks.append((f"{sentence[0].upper()}{sentence[1:]}:", leak.columns))
    linkage, measured, interval = public["linkage"], None, ""
    if linkage["percent"] is not None:
        measured = _words.percent(linkage["percent"])
        low, high = linkage["interval"]
        interval = f"; with 95{_words.SPACE}% confidence {low} to {high}{_words.SPACE}%"
    link, what = "a link by quasi-identifiers is right", "links that were right when tried"
    if swapping.informed:
        link = "a sensitive value belongs to its record"
        what = "sensitive values that stayed with their own record"
    k = f"{swapping.k:,}"
    chance = f"with a chance of at most 1{_words.SPACE}in{_words.SPACE}{k}"
    return SimpleNamespace(
        k=swapping.k,
        columns=swapping.columns,
        informed=swapping.informed,
        hidden=f"{link} {chance} (k{_words.SPACE}={_words.SPACE}{k}, by swapping)",
        what=what,
        measured=measured,
        interval=interval,
        leaks=leaks,
    )


def _share(stated: Mapping[str, Any], people: int) -> str:
    """A share as the public may know it; 'some' if a share would be about a handful of people."""
    if stated["percent"] is None:
        return "some"
    if stated["percent"] == 0:
        return f"fewer than {share_step(people)}{_words.SPACE}%"
    return f"about {_words.percent(stated['percent'])}"
