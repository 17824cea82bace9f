"""Candidates side by side: the results of the jobs ``compare``, ready to show.

A candidate is a plan that was tried on the table. Its results are read from the folder of its job.
A damaged result is reported as such and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from shoal.app.studio._jobs import Job
from shoal.measurement import MeasureInfo
from shoal.table import ROOT
from shoal.workflow import ATTACKS, discover_all_measures, grouped_measures
from shoal.workflow.release._profile import Bar
from shoal.workflow.report import _figures, _words
from shoal.workflow.report._scales import scale_ends

LETTERS: Final = "ABC"
#: What a group of people can lose, with the words for it.
LOSSES: Final = {
    "detail": "detail of the quasi-identifiers",
    "changed": "cells that changed or are gone",
    "taken_out": "records that were removed",
}
_PARTS: Final = ("rows", "before", "after", "sizes", "columns", "groups", "claims", "earlier")
_FEW: Final = 10  # people: a smaller group's loss says nothing
_NAMELESS: Final = (ROOT, "missing", "all other values")


@dataclass(frozen=True)
class Candidate:
    """A plan that was tried: its job, and the result, which may be empty."""

    letter: str
    job: Job
    found: Mapping[str, Any]

    @classmethod
    def of(cls, job: Job, letter: str = "") -> Candidate:
        found = job.result() if job.state == "done" else {}
        return cls(letter, job, found if _is_whole(found) else {})

    @property
    def is_damaged(self) -> bool:
        return self.job.state == "done" and not self.found

    @property
    def holds(self) -> bool:
        return bool(self.found) and self.found.get("refused") is None

    @property
    def sentence(self) -> str:
        """Why a release with this plan would be refused, or was not tried."""
        if self.is_damaged:
            return "The result of this comparison cannot be read. Compare the plan again."
        return str(self.found.get("refused") or "") if self.found else self.job.sentence

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.found:
            words = {"running": "is being measured", "refused": "does not work on this table"}
            return (
                "cannot be read" if self.is_damaged else words.get(self.job.state, "not measured")
            )
        if not self.holds:
            held = "does not hold what it requires"
        else:
            held = "holds what it requires" if self.found["claims"] else "requires nothing"
        return "; ".join([held, *self._links(), self._loss()])

    def _links(self) -> list[str]:
        rate = self.value("distance_linkage")
        if rate is None:
            return []
        if rate > 0.5:
            return [f"{_words.percent(100 * rate)} of links are right"]
        return [f"{_words.chance(rate)} links is right" if rate > 0 else "no link is right"]

    def _loss(self) -> str:
        detail = self.value("normalized_certainty_penalty")
        if detail:
            return f"loses {_words.percent(100 * detail)} of detail"
        groups: list[Mapping[str, Any]] = next(iter(self.found["groups"].values()), [])
        records = sum(group["records"] for group in groups)
        changed = sum(group["records"] * group["changed"] for group in groups) / max(1, records)
        return f"changes {_words.percent(100 * changed)} of the cells"

    def value(self, name: str) -> float | None:
        """A number that was measured on the masked table."""
        if not self.found:
            return None
        measured = self.found["after"]["measurements"].get(name, {}).get("value")
        return float(measured) if isinstance(measured, (int, float)) else None

    @property
    def size_chart(self) -> _figures.BarChart:
        return _figures.class_size_chart(self.size_bars)

    @property
    def size_bars(self) -> list[Bar]:
        return [Bar(**bar) for bar in self.found.get("sizes", ())]

    @property
    def risk_chart(self) -> _figures.RiskChart:
        after = self.found["after"]
        smaller = _figures.smaller_than(after["classes"]["records_by_size"], after["k"])
        return _figures.risk_chart(self.size_bars, smaller, after["k"])


def _is_whole(found: Any) -> bool:
    """Whether a result has everything that a page shows; a damaged one does not."""
    if not isinstance(found, Mapping) or not all(part in found for part in _PARTS):
        return False
    try:
        [Bar(**bar) for bar in found["sizes"]]
        [Bar(**bar) for column in found["columns"] for bar in column["bars"]]
        [group[loss] for each in found["groups"].values() for group in each for loss in LOSSES]
        sides = [found[side]["measurements"].values() for side in ("before", "after")]
        [(one["value"], one["interval"], one["baseline"]) for side in sides for one in side]
        return isinstance(found["after"]["k"], int) and bool(found["sizes"])
    except (KeyError, TypeError, AttributeError):
        return False


# -- measures


@dataclass(frozen=True)
class Cell:
    """A value on the scale of its measure, in words and in percents from the left."""

    text: str
    interval: str
    at: float | None
    whisker: tuple[float, float] | None
    is_best: bool = False


@dataclass(frozen=True)
class Row:
    """A measure: its meaning, its value for blind guessing, and a cell for each table."""

    title: str
    meaning: str
    better: str
    guess: str
    guess_at: float | None
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Group:
    """Measures that are read together."""

    side: str
    title: str
    rows: tuple[Row, ...]


def measure_groups(candidates: Sequence[Candidate]) -> list[Group]:
    """The measures of the original and of each candidate, grouped by topic."""
    found = [one.found for one in candidates if one.found]
    if not found:
        return []
    tables = [found[0]["before"]["measurements"], *(one["after"]["measurements"] for one in found)]
    infos = discover_all_measures()
    names = dict.fromkeys(name for table in tables[1:] for name in table if name in infos)
    groups = [
        Group(
            group.side,
            group.title,
            tuple(_row(infos[name], [table.get(name) for table in tables]) for name in group.names),
        )
        for group in grouped_measures(names)
    ]
    return groups + _together(found)


def _together(found: Sequence[Mapping[str, Any]]) -> list[Group]:
    """What a candidate reveals together with earlier releases of the project."""
    attacks = [one["after"].get("together") or {} for one in found]
    rows = tuple(
        _row(info, [None, *(each.get(name) for each in attacks)], _words.WORDS["attacks"][name])
        for name, info in ATTACKS.items()
        if any(name in each for each in attacks)
    )
    return [Group("risk", "Together with earlier releases", rows)] if rows else []


def _row(info: MeasureInfo, measured: Sequence[Mapping[str, Any] | None], meaning: str = "") -> Row:
    values = [_number(one, "value") for one in measured]
    guesses = [guess for one in measured[1:] if (guess := _number(one, "baseline")) is not None]
    ends = [end for one in measured if one for end in one["interval"] or ()]
    points = [value for value in (*values, *guesses, *ends) if value is not None]
    low, high = scale_ends(info.limits, points or [0.0])

    def place(value: float) -> float:
        return 100 * (min(max(value, low), high) - low) / (high - low)

    def said(value: float) -> str:
        return _share(value) if info.limits == (0, 1) else _words.number(value)

    def cell(one: Mapping[str, Any] | None, value: float | None) -> Cell | None:
        if one is None or value is None:
            return None
        around = one["interval"]
        interval = f"{said(around[0])} to {said(around[1])}" if around else ""
        whisker = (place(around[0]), place(around[1])) if around else None
        return Cell(said(value), interval, place(value), whisker)

    cells = [cell(one, value) for one, value in zip(measured, values, strict=True)]
    best = _best(values[1:], info.direction)
    cells[1:] = [
        replace(one, is_best=True) if one and value == best else one
        for one, value in zip(cells[1:], values[1:], strict=True)
    ]
    title = f"{info.title[0].upper()}{info.title[1:]}"
    guess = guesses[0] if guesses else None
    return Row(
        title,
        meaning or _words.first_line(info.function.__doc__),
        f"{info.direction} is better",
        "" if guess is None else said(guess),
        None if guess is None else place(guess),
        tuple(cells),
    )


def _number(one: Mapping[str, Any] | None, name: str) -> float | None:
    value = None if one is None else one[name]
    return float(value) if isinstance(value, (int, float)) else None


def _best(values: Sequence[float | None], direction: str) -> float | None:
    """The best value of several candidates; None if they do not differ."""
    known = [value for value in values if value is not None]
    if len({*known}) < 2:
        return None
    return min(known) if direction == "lower" else max(known)


def _share(value: float) -> str:
    """A share in percent with one decimal, since candidates may differ only a little."""
    digits = 0 if value in (0.0, 1.0) else 1
    return f"{100 * value:.{digits}f}{_words.SPACE}%"


# -- columns and groups of people


@dataclass(frozen=True)
class Picture:
    """A column before and after, for each candidate."""

    name: str
    role: str | None
    status: str
    drawn: tuple[tuple[str, bool, tuple[Bar, ...]] | None, ...]

    @property
    def changed(self) -> bool:
        return self.status != "unchanged"


def column_pictures(candidates: Sequence[Candidate], *, named: bool) -> list[Picture]:
    """The distributions, changed columns first; values are shown only if ``named``."""
    measured = [one for one in candidates if one.found]
    columns = _by_letter("name", {one.letter: one.found["columns"] for one in measured})
    pictures = []
    for name, by_letter in columns.items():
        states = {profile["status"] for profile in by_letter.values()}
        status = "changed" if len(states) > 1 else states.pop()
        drawn = tuple(_drawn(by_letter.get(one.letter), named=named) for one in measured)
        role = next(iter(by_letter.values()))["role"]
        pictures.append(Picture(name, role, status, drawn))
    return sorted(pictures, key=lambda each: (not each.changed, each.role != "quasi_identifiers"))


def _by_letter(
    key: str, listed: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """What the candidates have under each name, by the letters of the candidates."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for letter, parts in listed.items():
        for part in parts:
            found.setdefault(part[key], {})[letter] = part
    return found


def _drawn(
    profile: Mapping[str, Any] | None, *, named: bool
) -> tuple[str, bool, tuple[Bar, ...]] | None:
    if profile is None:
        return None
    bars = [Bar(**bar) for bar in profile["bars"]]
    if not named and not profile["numeric"]:
        bars = [
            bar if bar.label in _NAMELESS else replace(bar, label=f"value {number}")
            for number, bar in enumerate(bars, start=1)
        ]
    return profile["status"], bool(profile["numeric"]), tuple(bars)


@dataclass(frozen=True)
class Payers:
    """What groups of people lose: each group with its size and its loss by candidate."""

    column: str
    loss: str
    most: float
    groups: tuple[tuple[str, int, tuple[float | None, ...]], ...]
    sentences: tuple[str, ...]


def payable_columns(candidates: Sequence[Candidate]) -> list[str]:
    """The columns whose values can split the losses, the widest gap first."""
    gaps: dict[str, float] = {}
    for one in candidates:
        for name, groups in one.found.get("groups", {}).items():
            losses = [group["detail"] for group in groups if group["records"] >= _FEW]
            gap = max(losses) - min(losses) if losses else 0.0
            gaps[name] = max(gap, gaps.get(name, 0.0))
    return sorted(gaps, key=lambda name: -gaps[name])


def payers(candidates: Sequence[Candidate], column: str, loss: str, *, named: bool) -> Payers:
    """Who bears the loss, by the values of a column; groups are numbered unless ``named``."""
    measured = [one for one in candidates if one.found]
    groups = _by_letter(
        "label", {one.letter: one.found["groups"].get(column, ()) for one in measured}
    )
    rows, sentences = [], []
    for number, (label, by_letter) in enumerate(groups.items(), start=1):
        shown = label if named or label in _NAMELESS else f"group {number}"
        losses = tuple(
            by_letter[one.letter][loss] if one.letter in by_letter else None for one in measured
        )
        rows.append((shown, max(group["records"] for group in by_letter.values()), losses))
    for place, one in enumerate(measured):
        measured_losses = [row[2][place] for row in rows if row[1] >= _FEW]
        sentences += _spread([each for each in measured_losses if each is not None], one.letter)
    most = max((each for row in rows for each in row[2] if each is not None), default=0.0)
    return Payers(column, loss, most or 1.0, tuple(rows), tuple(sentences))


def _spread(losses: Sequence[float], letter: str) -> list[str]:
    if not losses:
        return []
    low, high = _share(min(losses)), _share(max(losses))
    if low == high:
        return [f"{letter}: every group loses the same, {high}."]
    return [f"{letter}: the group with the largest loss loses {high}, the smallest {low}."]
