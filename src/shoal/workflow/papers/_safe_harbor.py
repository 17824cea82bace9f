"""HIPAA Safe Harbor: the 18 identifiers of 45 CFR 164.514(b)(2)(i), each with what was found.

It is a check of names and forms of values, not a certificate: what has no telling name and no known
form is not found. The findings name columns and counts, never a value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shoal.table import (
    ROOT,
    NameHints,
    Table,
    hints_of,
    looks_like_identifier,
    words_of,
    written_as_date,
)

if TYPE_CHECKING:
    from shoal.workflow.release._release import Release

_FACTS: Final = tomllib.loads(
    Path(__file__).with_name("safe_harbor.toml").read_text(encoding="utf-8")
)
SMALL_AREAS: Final = frozenset(_FACTS["small_areas"].split())
_WORDS: Final = {of: frozenset(words.split()) for of, words in _FACTS["words"].items()}
_BY_NAME: Final = "judging by its name"
_OLDEST: Final = 89
_DATE: Final = re.compile(r"(\d{4})(-\d\d)?(-\d\d)?(?:[T ]\S*)?")
_YEAR: Final = re.compile(r"\d{4}|\d{3}0s|\d{2}00s")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Finding:
    """A released column that may hold an identifier, and why."""

    column: str
    why: str


@dataclass(frozen=True)
class Item:
    """One of the 18 identifiers with the columns that may hold it."""

    letter: str
    title: str
    found: tuple[Finding, ...]


def safe_harbor(release: Release, year: int) -> list[Item]:
    """The 18 identifiers, each with what was found in the released columns."""
    kinds = {profile.name: profile.kind for profile in release.columns}
    tops = {
        name: float(step.parameters["top"])
        for step in release.steps
        if step.method == "top_bottom_code" and step.parameters.get("top") is not None
        for name in step.touched
    }
    found: dict[str, list[Finding]] = {}
    for name in release.masked.columns:
        for kind, why in _findings(release.masked, name, kinds.get(name, "text"), year):
            found.setdefault(kind, []).append(Finding(name, why))
        for kind, why in _of_ages(release.masked, name, tops.get(name)):
            found.setdefault(kind, []).append(Finding(name, why))
    keyed = (n for step in release.steps if step.method == "pseudonymize" for n in step.touched)
    for name in dict.fromkeys((*release.masked.roles.unit_columns, *keyed)):  # pseudonyms
        found.setdefault("unit", []).append(Finding(name, "shows which records are one person's"))
    return [
        Item(
            chr(ord("A") + number),
            one["title"],
            _once(f for kind in one["found_by"] for f in found.get(kind, ())),
        )
        for number, one in enumerate(_FACTS["rule"])
    ]


def _once(found: Iterator[Finding]) -> tuple[Finding, ...]:
    """One finding for each column, with all reasons."""
    reasons: dict[str, dict[str, None]] = {}
    for one in found:
        reasons.setdefault(one.column, {})[one.why] = None
    return tuple(Finding(column, "; ".join(why)) for column, why in reasons.items())


def _findings(masked: Table, name: str, kind: str, year: int) -> Iterator[tuple[str, str]]:
    """The kinds of identifiers that a column may hold, each with the reason."""
    hints, values = hints_of(name), None
    known, told = "", ""
    if isinstance(masked, Table):
        values = [text for text in masked.value_counts(name) if text != ROOT]
        if not values:
            return
        evidence = looks_like_identifier(masked.column(name))
        if evidence is not None:
            known, told = evidence.kind, str(evidence)
            yield known, told
        if kind == "text" and written_as_date(masked.column(name).codes.levels):
            yield "date", "its values are dates or parts of dates"
    for one in sorted(hints.identifiers):
        if not (one == known and _BY_NAME in told):
            yield one, _BY_NAME
    if hints.sensitive == "genetic or biometric":
        yield "biometric", _BY_NAME
    for one in ("image", "device"):
        if not _WORDS[one].isdisjoint(words_of(name)):
            yield one, _BY_NAME
    yield from _of_dates(hints, kind, values, year)
    yield from _of_places(hints, name, values)


def _of_dates(
    hints: NameHints, kind: str, values: Sequence[str] | None, year: int
) -> Iterator[tuple[str, str]]:
    is_date, is_birth = kind in ("date", "datetime"), hints.quasi == "birth"
    if not (is_date or is_birth or hints.quasi == "date of death"):
        return
    if values is None:
        yield "date", "it is a column of dates; its values were not searched"
        return
    fine = sum(not _is_year(text) for text in values)
    if fine:
        yield "date", f"{fine:,} of its {len(values):,} different values are finer than a year"
    years = [int(y) for text in values for y in re.findall(r"\b(\d{4})(?!\d)", text)]
    old = sum(y < year - _OLDEST for y in years)
    if is_birth and old:
        yield "age", f"{old:,} of its different years show ages over {_OLDEST}"


def _is_year(text: str) -> bool:
    """Whether a released value shows nothing finer than years: a year, or ends on 1 January."""
    ends = _DATE.findall(text)
    whole = all((month or "-01", day or "-01") == ("-01", "-01") for _, month, day in ends)
    whole = whole and len({end[0] for end in ends}) == len(ends)  # not one day, as an interval
    return _YEAR.fullmatch(text) is not None or (text[:1] in "[({<>≤≥" and bool(ends) and whole)


def _of_ages(masked: Table, name: str, top: float | None) -> Iterator[tuple[str, str]]:
    """Ages over 89, but for the one that stands for 90 and over since ages were cut there."""
    if hints_of(name).quasi != "age":
        return
    if not isinstance(masked, Table):
        yield "age", f"{_BY_NAME}; its values were not searched"
        return
    values = [text for text in masked.value_counts(name) if text != ROOT]
    is_group = top == _OLDEST + 1
    ages = [t for t in values if not (is_group and _NUMBER.fullmatch(t) and float(t) == top)]
    old = sum(map(_shows_old_age, ages))
    if old:
        yield "age", f"{old:,} of its {len(values):,} different values show an age over {_OLDEST}"


def _shows_old_age(text: str) -> bool:
    """Whether a value shows more than "90 or older": an age, or an interval that ends above."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    if text.startswith((">", "≥")) or text.endswith("+"):  # a group without an upper end
        return bool(numbers) and numbers[0] > _OLDEST + 1
    is_open = text.endswith(")") or text[:1] == "<"  # without its upper end
    return bool(numbers) and numbers[-1] - is_open > _OLDEST


def _of_places(
    hints: NameHints, name: str, values: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    words = set(words_of(name))
    states = words & _WORDS["state"]
    finer = [word for word in words - states if hints_of(word).quasi == "location"]
    if hints.quasi != "location" or (states and not finer):
        return
    if values is None or _WORDS["zip"].isdisjoint(words):
        yield "geography", "judging by its name; only states and larger areas may stay"
        return
    bare = [text.rstrip("*xX") for text in values]
    fine = sum(len(text) > 3 or not text.isdigit() for text in bare if text)
    small = sum(text in SMALL_AREAS for text in bare)
    if fine:
        told = f"{fine:,} of its {len(values):,} different values"
        yield "geography", f"{told} show more than the first three digits of a ZIP code"
    elif small:
        yield (
            "geography",
            f"{small} of its three-digit areas have at most 20,000 people and must become 000",
        )
