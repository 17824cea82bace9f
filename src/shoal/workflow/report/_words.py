"""Facts in plain words: counts, shares, chances, roles, and what a step did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SPACE = "\u00a0"  # keeps a number and its unit on one line


def number(value: float) -> str:
    """A number for people: thousands apart, and no more digits than one reads."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "endless" if value > 0 else "-endless"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-9 <= abs(value) < 1e-4:  # in full, since one reads the noughts and not an exponent
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def counted(count: int | str, noun: str) -> str:
    """A count with its noun: '1 record', '2,000 records', 'fewer than 10 records'."""
    if isinstance(count, str):
        return f"{count}{SPACE}{noun}s"
    return f"{count:,}{SPACE}{noun}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    """A number of percents; what is not nothing and not all is not called so."""
    if 0 < value < 1:
        return f"below 1{SPACE}%"
    if 99 < value < 100:
        return f"above 99{SPACE}%"
    return f"{round(value)}{SPACE}%"


def chance(risk: float) -> str:
    """A risk as a chance: '1 in 3'."""
    return f"1 in {number(round(1 / risk))}" if risk > 0 else "none"


def first_line(docstring: str | None) -> str:
    """What a measure or model says of itself in one sentence."""
    return (docstring or "").strip().split("\n")[0].replace("``", "")


def step_title(method: str) -> str:
    """The name of a method as people say it."""
    titles = {
        "generalize": "Generalization",
        "top_bottom_code": "Top and bottom coding",
        "add_noise": "Noise",
    }
    return titles.get(method, method.replace("_", " ").capitalize())


def step_in_words(method: str, parameters: Mapping[str, Any]) -> str:
    """What a step did, with its parameters, in one or two sentences."""
    if method == "generalize":
        return _generalized_in_words(parameters)
    rule = method if method != "suppress" else f"suppress {_suppression_rule(parameters)}"
    try:
        return _SENTENCES[rule].format_map(_shown(parameters))
    except KeyError:  # a method that has no sentence of its own here
        return _other_step_in_words(method, parameters)


_SENTENCES = {
    "suppress max_distinct": (
        "Columns that are nearly unique were taken out: those with more different values than "
        "{max_distinct} times the number of records."
    ),
    "suppress min_count": (
        "Rare cells were made missing: values that occur fewer than {min_count} times in their "
        "column."
    ),
    "suppress min_class_size": (
        "Records in a crowd of fewer than {min_class_size} (equal in every quasi-identifier) were "
        "taken out."
    ),
    "suppress records": (
        "Records were taken out by a condition that stays with the publisher, since it may quote "
        "a value."
    ),
    "suppress cells": (
        "Cells were made missing by a condition that stays with the publisher, since it may quote "
        "a value."
    ),
    "top_bottom_code": (
        "Extreme numbers were drawn in: what lay more than {fence} interquartile ranges beyond the "
        "middle half of the values became the most extreme value inside, or a round number next to "
        "it where that is one record's."
    ),
    "add_noise": (
        "Random Laplace noise was added to each number. Its scale is the range of the column among "
        f"records with the same nominal quasi-identifiers, divided by epsilon{SPACE}={SPACE}"
        "{epsilon}."
    ),
    "round": "Numbers were rounded to the nearest multiple of {base}.",
    "swap": (
        "Within groups of at least {k} similar records values were exchanged at random: each is "
        "that of somebody in the group, nobody can tell whose."
    ),
    "rank_swap": (
        "Each value was exchanged with one of a near rank, at most {percent}\u00a0% of the records "
        "away."
    ),
    "microaggregate": (
        "Records were put into groups of at least {k} similar ones, and each group got one value: "
        "the mean of numbers and dates, the most frequent of others. What too few of a group have "
        "is missing for all of it."
    ),
    "pram": (
        "Some cells were drawn anew at random from the values of their column; each kept its own "
        "with a probability of at least {keep}."
    ),
    "sample": "A share of {fraction} of the records was drawn at random; the others stayed behind.",
    "recode": (
        "Whole numbers were put into ranges {magnitude} standard deviations wide, each named by "
        "its lower limit."
    ),
}


def suppressed_in_words(facts: Mapping[str, Any]) -> str:
    """What became of suppressed records; nothing where there are none."""
    if facts.get("suppressed_records") == "removed":
        return "Records whose crowd stayed too small are not in the release."
    if facts.get("suppressed_records") != "kept":
        return ""
    secrets = facts.get("their_sensitive_values")
    return (
        "Records whose crowd stayed too small are in the release with * in every column to "
        f"generalize, their sensitive values {secrets}. Together they are one crowd."
    )


def _generalized_in_words(parameters: Mapping[str, Any]) -> str:
    """What a generalization did."""
    sentence = {
        "mondrian": "Records were put into boxes, each as small as was safe; a box is an interval "
        "of every ordered column and a group of the values of every other one.",
        "local": "In each crowd values became coarser just as far as its records differ.",
    }.get(
        parameters.get("algorithm", "full-domain"),
        "The values of each column became coarser, all of them to the same level.",
    )
    asked = [f"at least {number(parameters['k'])} people"] if "k" in parameters else []
    asked += ["what the models ask"] if "models" in parameters else []
    return f"{sentence} Every crowd has {' and '.join(asked)}."


def _suppression_rule(parameters: Mapping[str, Any]) -> str:
    """The rule of a suppression; the one that is not told is a condition."""
    rules = ("max_distinct", "min_count", "min_class_size")
    told = [rule for rule in rules if rule in parameters]
    return told[0] if told else str(parameters.get("target", "cells"))


def _other_step_in_words(method: str, parameters: Mapping[str, Any]) -> str:
    from shoal.masking import discover_maskers

    known = discover_maskers().get(method)
    summary = f"This step {known.summary}" if known else "This step masks the table"
    given = [f"{name} = {value}" for name, value in _shown(parameters).items()]
    return f"{summary} ({', '.join(given)})." if given else f"{summary}."


def _shown(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text; columns are listed elsewhere."""
    numbers = {n: v for n, v in parameters.items() if n != "columns"}
    return {
        name: number(value) if isinstance(value, (int, float)) else str(value)
        for name, value in numbers.items()
    }
