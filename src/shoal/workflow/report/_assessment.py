"""The page and the notebook view of an assessment: for the steward, with exact counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.measurement import MeasureInfo, Measurement
from shoal.notebook import CLASS, STYLE, clean
from shoal.workflow._assessment import ATTACKS, bound_of, by_reason, grouped_measures
from shoal.workflow._require import discover_all_measures
from shoal.workflow.release._profile import Bar
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._render import render
from shoal.workflow.report._scales import marks_of, violin

if TYPE_CHECKING:
    from shoal.workflow._assessment import Assessment


def assessment_page(assessment: Assessment) -> str:
    """All facts of an assessment as one HTML file that loads nothing; not for the public."""
    return render("assessment.html.j2", **_facts(assessment))


def assessment_fragment(assessment: Assessment) -> str:
    """The assessment for notebooks: one ``div`` without a script, whose style stays inside."""
    from markupsafe import Markup

    style = {"name": CLASS, "style": Markup(STYLE)}
    return render("fragment.html.j2", **style, **_facts(assessment)).strip()


def _facts(assessment: Assessment) -> dict[str, Any]:
    classes = assessment.classes
    bars = tuple(
        Bar(size.replace("-", "–"), None, 100 * count / assessment.rows)
        for size, count in classes.records_by_size.items()
    )
    after = _figures.smaller_than(classes.records_by_size, assessment.k)
    in_verdict = None if assessment.swapping is None else assessment.swapping.sentence
    return {
        "assessment": assessment,
        "verdict": _verdict(assessment),
        "quasi": assessment.roles.get("quasi_identifiers", []),
        "counted_sizes": list(zip(bars, classes.records_by_size.values(), strict=True)),
        "size_chart": _figures.class_size_chart(bars),
        "risk_chart": _figures.risk_chart((), after, assessment.k),
        "violins": [violin(one) for one in assessment.distributions],
        "risk": _side(assessment, "risk") + _together(assessment),
        "utility": _side(assessment, "utility"),
        "notes": [_sentence(note) for note in assessment.notes if note != in_verdict],
        "failed": _reasons(assessment.failed),
        "left_out": _reasons(assessment.left_out),
    }


def _verdict(assessment: Assessment) -> str:
    everybody = assessment.classes.persons or assessment.rows
    rows = _words.counted(everybody, assessment.classes.called)
    if assessment.swapping is not None:
        return f"{rows}, {assessment.swapping.sentence}."
    alone = assessment.classes.uniques
    if alone:
        share = _words.percent(100 * alone / everybody)
        verb = "stands" if alone == 1 else "stand"
        return (
            f"{alone:,} of {rows} ({share}) {verb} alone: an intruder who knows the "
            "quasi-identifiers finds the person."
        )
    return f"None of {rows} is unique: the smallest crowd has {assessment.k:,}."


def _side(assessment: Assessment, side: str) -> list[dict[str, Any]]:
    """The groups of measures of one side, each measure ready to show."""
    taken, infos = assessment.measurements, discover_all_measures()
    return [
        {
            "title": group.title,
            "measures": [
                shown_measure(taken[name], infos[name], warnings=assessment.warnings_of(name))
                for name in group.names
            ],
        }
        for group in grouped_measures(taken, swapped=assessment.swapping is not None)
        if group.side == side
    ]


def _together(assessment: Assessment) -> list[dict[str, Any]]:
    """What earlier releases add, in the shape of a group of measures."""
    measures = [
        shown_measure(found, ATTACKS[attack], meaning=_words.WORDS["attacks"][attack])
        for attack, found in assessment.together.items()
    ]
    return [{"title": "Together with earlier releases", "measures": measures}] if measures else []


def shown_measure(
    found: Measurement,
    info: MeasureInfo,
    *,
    meaning: str = "",
    warnings: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A measure ready to show; details about columns are shown only if they are numbers.

    By default the meaning is the first line of its docstring, and all of its warnings are shown.
    """
    threshold, columns = found.details.get("threshold"), found.details.get("columns")
    title = info.title if threshold is None else f"{info.title} above {_words.number(threshold)}"
    numbers = isinstance(columns, Mapping) and all(
        isinstance(value, (int, float)) for value in columns.values()
    )
    return {
        "title": f"{title[0].upper()}{title[1:]}",
        "meaning": meaning or _words.first_line(info.function.__doc__),
        "value": _words.number(found.value),
        "interval": found.interval,
        "baseline": found.baseline,
        "bound": bound_of(found),
        "direction": found.direction,
        "marks": marks_of(found, info),
        "warnings": [_sentence(one) for one in (found.warnings if warnings is None else warnings)],
        "columns": columns if numbers else None,
    }


def _reasons(reasons: Mapping[str, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each reason with the measures that share it, by name and title."""
    infos = discover_all_measures()
    return [
        (_sentence(reason).rstrip("."), [(name, infos[name].title) for name in names])
        for reason, names in by_reason(reasons).items()
    ]


def _sentence(text: str) -> str:
    """A remark as a full sentence; column names in it cannot change the text direction."""
    shown = clean(text)
    return f"{shown[0].upper()}{shown[1:].rstrip('.')}."
