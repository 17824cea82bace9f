"""The page and the notebook view of an assessment: for the steward, with exact counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.measurement import Measurement
from shoal.workflow._profile import Bar
from shoal.workflow._require import discover_all_measures
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._render import render

if TYPE_CHECKING:
    from shoal.workflow._assess import Assessment


def assessment_page(assessment: Assessment) -> str:
    """All facts of an assessment as one HTML file that loads nothing; not for the public.

    Parameters
    ----------
    assessment : Assessment
        What ``sh.assess`` returned.

    Returns
    -------
    str
        The page, with its style, pictures and one small script in it.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table, assess
    >>> table = Table(pl.DataFrame({"age": [30, 30, 41]}), Roles(quasi_identifiers=["age"]))
    >>> "Not for publication" in assessment_page(assess(table))
    True
    """
    return render("assessment.html.j2", **_facts(assessment))


def assessment_fragment(assessment: Assessment) -> str:
    """The assessment as a piece of HTML for notebooks.

    Parameters
    ----------
    assessment : Assessment
        What ``sh.assess`` returned.

    Returns
    -------
    str
        One ``div`` with a style that reaches nothing outside of it, and no script.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table, assess
    >>> table = Table(pl.DataFrame({"age": [30, 30, 41]}), Roles(quasi_identifiers=["age"]))
    >>> assessment_fragment(assess(table)).startswith('<div class="shoal-assessment">')
    True
    """
    return render("fragment.html.j2", **_facts(assessment)).strip()


def _facts(assessment: Assessment) -> dict[str, Any]:
    classes = assessment.classes
    bars = tuple(
        Bar(size.replace("-", "–"), None, 100 * count / assessment.rows)
        for size, count in classes.records_by_size.items()
    )
    after = _figures.smaller_than(classes.records_by_size, assessment.k)
    return {
        "assessment": assessment,
        "verdict": _verdict(assessment),
        "quasi": assessment.roles.get("quasi_identifiers", []),
        "counted_sizes": list(zip(bars, classes.records_by_size.values(), strict=True)),
        "size_chart": _figures.class_size_chart(bars),
        "risk_chart": _figures.risk_chart((), after, assessment.k),
        "measures": [_measure(found) for found in assessment.measurements.values()],
    }


def _verdict(assessment: Assessment) -> str:
    rows = _words.counted(assessment.rows, "record")
    if assessment.swapping is not None:
        sentence = assessment.swapping.sentence
        return f"{rows}, {sentence}."
    alone = assessment.classes.uniques
    if alone:
        share = _words.percent(100 * alone / assessment.rows)
        verb = "stands" if alone == 1 else "stand"
        return (
            f"{alone:,} of {rows} ({share}) {verb} alone: whoever knows the quasi-identifiers "
            "finds the person."
        )
    return f"Nobody of {rows} stands alone: the smallest crowd has {assessment.k:,}."


def _measure(found: Measurement) -> dict[str, Any]:
    info = discover_all_measures().get(found.name)
    title = info.title if info else found.name.replace("_", " ")
    threshold, columns = found.details.get("threshold"), found.details.get("columns")
    if threshold is not None:
        title = f"{title} above {_words.number(threshold)}"
    return {
        "title": title,
        "meaning": _words.first_line(info.function.__doc__) if info else "",
        "value": _words.number(found.value),
        "interval": found.interval,
        "baseline": found.baseline,
        "direction": found.direction,
        "warnings": found.warnings,
        "columns": columns if isinstance(columns, Mapping) else None,
    }
