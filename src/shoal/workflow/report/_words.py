"""Facts in plain words: counts, shares, chances, roles, and what a step did."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.masking import discover_maskers
from shoal.notebook import number as number
from shoal.parameters import parameters_of

SPACE = "\u00a0"  # keeps a number and its unit on one line
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def counted(count: int | str, noun: str) -> str:
    """A count with its noun: '1 record', '2,000 records', 'fewer than 10 records'."""
    if isinstance(count, str):
        return f"{count}{SPACE}{noun}s"
    return f"{count:,}{SPACE}{noun}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    """A percentage; only exactly nothing and exactly everything are shown as 0 % and 100 %."""
    if 0 < value < 1:
        return f"below 1{SPACE}%"
    if 99 < value < 100:
        return f"above 99{SPACE}%"
    return f"{round(value)}{SPACE}%"


def chance(risk: float) -> str:
    """A risk as a chance: '1 in 3'."""
    return f"1 in {number(round(1 / risk))}" if risk > 0 else "none"


def first_line(docstring: str | None) -> str:
    """The first sentence of the docstring of a measure or model."""
    return (docstring or "").strip().split("\n")[0].replace("``", "")


def step_title(method: str) -> str:
    """The name of a method in plain words."""
    return str(WORDS["titles"].get(method, method.replace("_", " ").capitalize()))


def step_in_words(method: str, parameters: Mapping[str, Any]) -> str:
    """What a step did, with its parameters, in one or two sentences."""
    if method == "generalize":
        known = WORDS["generalize"]
        sentence = known.get(parameters.get("algorithm"), known["full-domain"])
        goal = [f"has at least {number(parameters['k'])} people"] if "k" in parameters else []
        goal += ["satisfies the privacy models"] if "models" in parameters else []
        return f"{sentence} Every crowd {' and '.join(goal)}." if goal else str(sentence)
    if method == "suppress":  # a rule that is not published is a condition
        sentences, rules = WORDS["suppress"], ("max_distinct", "min_count", "min_class_size")
        public = [rule for rule in rules if rule in parameters]
        rule = public[0] if public else str(parameters.get("target", "cells"))
        if "k" in parameters:
            rule = "sets" if "combinations" in parameters else parameters.get("missing", "own")
    else:
        sentences, rule = WORDS["steps"], method
        if method == "top_bottom_code" and "fence" not in parameters:
            ends = [f"{n} {number(parameters[n])}" for n in ("bottom", "top") if n in parameters]
            return str(sentences["limits"].format(", ".join(ends)))
    masker = discover_maskers().get(method)
    declared = () if masker is None else parameters_of(masker)
    # what a step does where its plan does not say
    defaults = {p.name: p.default for p in declared if p.default is not None and not p.private}
    try:
        return str(sentences[rule].format_map(_shown({**defaults, **parameters})))
    except KeyError:  # words.toml has no sentence for this method
        summary = f"This step {masker.summary}" if masker else "This step masks the table"
        given = [f"{name} = {value}" for name, value in _shown(parameters).items()]
        return f"{summary} ({', '.join(given)})." if given else f"{summary}."


def _shown(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text; columns are listed elsewhere."""
    return {
        name: number(value) if isinstance(value, (int, float)) else str(value)
        for name, value in parameters.items()
        if name != "columns"
    }
