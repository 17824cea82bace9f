"""The page of a release: what anyone may know about it, and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.workflow._require import Claim, Limit
from shoal.workflow.release._crowds import share_step
from shoal.workflow.release._profile import Bar, ColumnProfile
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._cautions import cautions_about_numbers, cautions_about_people
from shoal.workflow.report._lattice import lattice_picture
from shoal.workflow.report._render import clean, render
from shoal.workflow.report._swapping import swap_words

if TYPE_CHECKING:
    from shoal.workflow._protect import Release


def release_page(release: Release, facts: Mapping[str, Any]) -> str:
    """The report of a release as one HTML file that loads nothing.

    Of the original it shows whole percents of crowds, of the release what anyone can count.

    Parameters
    ----------
    release : Release
        The release.
    facts : dict
        The content of its ``release.json``.

    Returns
    -------
    str
        The page, with its style, pictures and one small script in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> from shoal import KAnonymity, Plan, Roles, Round, Table, protect
    >>> table = Table(pl.DataFrame({"age": [31, 32, 58, 61]}), Roles(quasi_identifiers=["age"]))
    >>> release = protect(table, Plan([Round(base=20)], require=[KAnonymity(2)]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = release.save(pathlib.Path(folder) / "out") / "public"
    ...     page = (public / "report.html").read_text(encoding="utf-8")
    >>> "each looks like at least 1 other" in page
    True
    """
    sizes = release.class_sizes
    swapped = swap_words(release, facts)
    unit = release.masked.roles.unit_columns  # pseudonyms
    unowned = facts["data"]["persons"] is not None and not unit
    return render(
        "release.html.j2",
        facts=facts,
        verdict=verdict(release, facts),
        quasi=release.masked.roles.quasi_identifiers,
        swapped=swapped,
        shoal=_figures.shoal(release.after.k if swapped is None else swapped.k),
        highest_risk=_words.chance(facts["measured"]["prosecutor_risk"]),
        claims=[claim_in_words(claim, unowned=unowned) for claim in release.claims],
        steps=_steps(facts["methods"]),
        sizes=sizes,
        size_chart=_figures.class_size_chart(sizes),
        size_finding=_size_finding(sizes),
        risk_chart=_risk_chart(release, sizes),
        share_step=share_step(len(release.masked)),
        groups=_groups(release.columns),
        steps_of=_steps_of(facts["methods"]),
        histogram=_figures.histogram,
        people=cautions_about_people(release, facts),
        numbers=cautions_about_numbers(release, facts),
        query=None if unowned else _counting_query(release.masked.roles.quasi_identifiers, unit),
        unowned=unowned,
        pseudonym=next(iter(unit), None),
    )


def verdict(release: Release, facts: Mapping[str, Any]) -> str:
    """What was released, in one sentence."""
    rows, k = facts["data"]["rows"], facts["measured"]["k"]
    what = (
        f"{_words.counted(rows, 'record')}{_of_persons(facts)} in "
        f"{_words.counted(len(facts['data']['columns']), 'column')} "
        f"{'was' if rows == 1 else 'were'} released"
    )
    swapped = swap_words(release, facts)
    if swapped is not None:
        hidden = swapped.hidden
    elif not release.masked.roles.quasi_identifiers:
        hidden = "without any quasi-identifier"
    elif k > 1:
        persons = facts["data"]["persons"] is not None
        others = _words.counted(k - 1, "other person" if persons else "other")
        others = others.replace(_words.SPACE, " ")
        hidden = f"each looks like at least {others} (k{_words.SPACE}={_words.SPACE}{k:,})"
    else:
        hidden = f"but some stand alone (k{_words.SPACE}={_words.SPACE}1)"
    claims = release.claims
    if not claims:
        met = "nothing was required"
    elif not all(claim.holds for claim in claims):
        met = "not every requirement was met"
    else:
        met = "the requirement was met" if len(claims) == 1 else "every requirement was met"
    return f"{what}: {hidden}, and {met}."


def _of_persons(facts: Mapping[str, Any]) -> str:
    """Whose records they are, where a person may have several."""
    persons = facts["data"]["persons"]
    return "" if persons is None else f" of {_words.counted(persons, 'person')}"


def claim_in_words(claim: Claim, *, unowned: bool = False) -> dict[str, Any]:
    """A claim with what was required and measured, fit for a public page.

    Where the release is ``unowned``, it does not tell whose its rows are, and persons were counted.
    """
    requirement = claim.requirement
    if not isinstance(requirement, Limit):
        required = ", ".join(f"{n} = {v}" for n, v in requirement.changed_params().items())
        return {
            "key": claim.key,
            "title": requirement.title,
            "meaning": _words.first_line(type(requirement).__doc__),
            "required": required,
            "measured": _words.number(claim.measured),
            "holds": claim.holds,
            "needs_original": False,
            "needs_private": requirement.needs_audit or unowned,
            "rests_on_seed": claim.rests_on_seed,
        }
    bound = "at most" if requirement.at_most is not None else "at least"
    options = [f"{n} = {v}" for n, v in requirement.options.items() if isinstance(v, (int, float))]
    return {
        "key": claim.key,
        "title": requirement.info.title,
        "meaning": _words.first_line(requirement.info.function.__doc__),
        "required": ", ".join([f"{bound} {_words.number(requirement.threshold)}", *options]),
        "measured": _measured(claim),
        "holds": claim.holds,
        "needs_original": claim.needs_original,
        "needs_private": claim.needs_original or unowned,
        "rests_on_seed": claim.rests_on_seed,
    }


def _measured(claim: Claim) -> str:
    """Exact where anyone can recompute it; a share of the original only in steps of a crowd."""
    if claim.published is None:
        return "within the limit" if claim.holds else "outside of the limit"
    if claim.needs_original:
        return f"about {_words.percent(100 * claim.published)}"
    return _words.number(claim.published)


def _steps(methods: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "title": _words.step_title(method["method"]),
            "words": _words.step_in_words(method["method"], method["parameters"]),
            "columns": method["columns"],
            "columns_removed": method["columns_removed"],
            "left_alone": method["left_alone"],
            "records_removed": method["records_removed"],
            "levels": method["facts"].get("levels", {}),
            "suppressed": _words.suppressed_in_words(method["facts"]),
            "lattice": lattice_picture(method["facts"]),
        }
        for method in methods
    ]


def _steps_of(methods: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The numbers of the steps that touched each column."""
    found: dict[str, list[int]] = {}
    for position, method in enumerate(methods, start=1):
        for name in method["columns"]:
            found.setdefault(name, []).append(position)
    return found


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
    if first.before == 0:  # a share below half a step is told as none
        return f"Before, hardly anybody was {crowd}; now {now}."
    return f"Before, {_words.percent(first.before)} of the records were {crowd}; now {now}."


def _risk_chart(release: Release, sizes: Sequence[Bar]) -> _figures.RiskChart:
    after = _figures.smaller_than(release.after.classes.records_by_size, release.after.k)
    return _figures.risk_chart(sizes, after, release.after.k)


def _counting_query(quasi: Sequence[str], unit: Sequence[str]) -> str | None:
    """How to count k with any SQL engine; None where names fill a page or cannot be shown."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in (*quasi, *unit)]
    names = ", ".join(quoted[: len(quasi)])
    if not quasi or len(names) > 300 or clean("".join(quoted)) != "".join(quoted):
        return None
    counted = f"COUNT(DISTINCT {quoted[-1]})" if unit else "COUNT(*)"
    return (
        f"SELECT MIN(n) AS k FROM\n  (SELECT {counted} AS n FROM data GROUP BY {names}) AS crowds"
    )
