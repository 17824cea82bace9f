"""Assessing a table: plain facts about risk, and against the original about utility."""

from __future__ import annotations

import inspect
import json
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InputError, RolesError, did_you_mean
from shoal.masking import Progress
from shoal.measurement import MeasureInfo, Measurement
from shoal.table import Missing, Table
from shoal.workflow._profile import SIZE_LIMITS
from shoal.workflow._require import discover_all_measures
from shoal.workflow._swapping import Swapping, swapping_of

_POPULATION_MEASURES = ("journalist_risk", "population_uniqueness")
_MANY = 1_000_000  # records from which on only what was asked for takes memory


@dataclass(frozen=True)
class ClassFacts:
    """The classes of equal quasi-identifiers in numbers."""

    count: int
    k: int
    uniques: int
    average: float
    largest: int
    records_by_size: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Assessment:
    """What was found out about a table. It prints, and it has a JSON and an HTML form.

    ``assessment["marketer_risk"]`` is one Measurement; ``classes`` are the numbers of the classes;
    ``notes`` say what was left out and how to ask for it; ``swapping`` is what a swap protects, and
    what gets around it, measured by attack. No value of a cell is in it, but counts
    of the original are: it is made for the steward, not for the public.
    """

    rows: int
    columns: int
    roles: Mapping[str, Any]
    missing: Missing
    classes: ClassFacts
    measurements: Mapping[str, Measurement]
    notes: tuple[str, ...] = ()
    swapping: Swapping | None = None

    @property
    def k(self) -> int:
        """The size of the smallest class."""
        return self.classes.k

    def __getitem__(self, name: str) -> Measurement:
        if name not in self.measurements:
            raise KeyError(
                f"The assessment has no measure '{name}'. {did_you_mean(name, self.measurements)}"
            )
        return self.measurements[name]

    def to_dict(self) -> dict[str, Any]:
        """All facts as plain data."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "roles": dict(self.roles),
            "missing": self.missing,
            "k": self.k,
            "classes": {
                "count": self.classes.count,
                "smallest": self.classes.k,
                "average": self.classes.average,
                "largest": self.classes.largest,
                "uniques": self.classes.uniques,
                "records_by_size": dict(self.classes.records_by_size),
            },
            "measurements": {n: m.to_dict() for n, m in self.measurements.items()},
            "notes": list(self.notes),
            "swapping": None if self.swapping is None else self.swapping.to_dict(),
        }

    def to_json(self) -> str:
        """All facts as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """All facts as one self-contained HTML page."""
        from shoal.workflow.report import assessment_page

        return assessment_page(self)

    def _repr_html_(self) -> str:
        from shoal.workflow.report import assessment_fragment

        return assessment_fragment(self)

    def __str__(self) -> str:
        classes = self.classes
        quasi = ", ".join(self.roles.get("quasi_identifiers", [])) or "none"
        lines = [
            f"{self.rows:,} records, {self.columns} columns; quasi-identifiers: {quasi}",
            f"k = {classes.k}; {classes.count:,} classes, {classes.average:.1f} records on "
            f"average; {classes.uniques:,} records are unique",
        ]
        infos = discover_all_measures()
        for name, found in self.measurements.items():
            lines.append(f"{infos[name].title}: {found.value:.4g} ({_reading(found)})")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def _reading(found: Measurement) -> str:
    """What is needed to read a value, in a few words."""
    better = f"{found.direction} is better"
    if found.interval is None:
        return better
    return f"95 % {found.interval[0]:.4g} to {found.interval[1]:.4g}; {better}"


def assess(
    table: Table,
    *,
    original: Table | None = None,
    population: Table | None = None,
    sampling_fraction: float | None = None,
    threshold: float = 0.2,
    missing: Missing = "own",
    measures: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Assessment:
    """Measure how exposed a table is and, against its original, what masking cost.

    Parameters
    ----------
    table : Table
        The table, with its quasi-identifiers declared.
    original : Table, optional
        The table before masking, for the measures that compare.
    population : Table, optional
        The population that the table is drawn from, for journalist risk.
    sampling_fraction : float, optional
        The share of the population that the table holds, where the population is not at hand.
    threshold : float
        The risk above which a record counts as at risk.
    missing : {"own", "wildcard"}
        Whether a missing quasi-identifier is a value of its own or agrees with every value.
    measures : list of str, optional
        Only these measures; all that the given tables allow without it.
    progress : callable, optional
        Called with what is being done and the share that is done.

    Returns
    -------
    Assessment
        Plain facts; it prints, and has ``to_json`` and ``to_html``.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41], "sex": ["f", "f", "m", "m", "f"]})
    >>> assessment = assess(Table(frame, Roles(quasi_identifiers=["age", "sex"])))
    >>> assessment.k, round(assessment["marketer_risk"].value, 2)
    (1, 0.6)
    """
    check_assessable(table, original, population)
    _check_options(threshold, missing, sampling_fraction)
    if population is not None and sampling_fraction is not None:
        raise InputError("Give a population table or a sampling fraction, not both.")
    options = {
        "missing": missing,
        "population": population,
        "sampling_fraction": sampling_fraction,
    }
    notes: list[str] = []
    found: dict[str, Measurement] = {}
    chosen = _chosen(measures)
    for number, info in enumerate(chosen):
        if progress:
            progress(f"Measuring: {info.title}", number / len(chosen))
        left_out = _reason_to_leave_out(info, table, original, options, asked=bool(measures))
        if left_out is not None:
            notes.append(f"{info.title} was left out: {left_out}")
            continue
        taken = inspect.signature(info.function).parameters
        given = {name: value for name, value in options.items() if name in taken}
        if info.name == "records_at_risk":
            given["threshold"] = threshold
        tables = (original, table) if info.needs_original else (table,)
        try:
            found[info.name] = info.function(*tables, **given)
        except InputError as error:  # one measure that does not apply spoils no other one
            notes.append(f"{info.title} was left out: {str(error).rstrip('.')}")
    if measures and not found:
        raise InputError(f"Nothing could be measured. {'; '.join(notes)}.")
    if "certainty" in found:  # a sample that lost its k-anonymity, and who knows the label
        notes += found["certainty"].warnings
    swapping = None if original is None or measures else swapping_of(original, table)
    notes += swapping.sentences if swapping is not None else []
    return Assessment(
        rows=len(table),
        columns=len(table.columns),
        roles=table.roles.to_dict(),
        missing=missing,
        classes=class_facts(table, missing),
        measurements=found,
        notes=tuple(notes),
        swapping=swapping,
    )


def check_assessable(
    table: Table, original: Table | None = None, population: Table | None = None
) -> None:
    """Raise InputError where a table is none, has no records or no quasi-identifiers.

    A masked table may have lost its quasi-identifiers to suppression: then its original has them.
    """
    for given in (table, original, population):
        if not isinstance(given, Table) and (given is not None or given is table):
            raise InputError(
                f"A shoal.Table is needed; got {type(given).__name__}. "
                "Write sh.Table(frame, roles)."
            )
    if len(table) == 0:
        raise InputError("The table has no records.")
    declared = table if original is None else original
    if not table.roles.quasi_identifiers and not declared.roles.quasi_identifiers:
        raise RolesError(
            "No quasi-identifiers are declared, so nothing can be said about risk; name the "
            "columns that an intruder may know (shoal roles suggests some)."
        )


def class_facts(table: Table, missing: Missing = "own") -> ClassFacts:
    """The classes in numbers; overlapping groups in the wildcard reading."""
    sizes = table.class_sizes(missing)
    limits = [*SIZE_LIMITS, np.iinfo(np.int64).max]
    by_size = {}
    for low, high in pairwise(limits):
        label = str(low) if high - low == 1 else f"{low}-{high - 1}"
        label = f"{low}+" if low == SIZE_LIMITS[-1] else label
        by_size[label] = int(((sizes >= low) & (sizes < high)).sum())
    return ClassFacts(
        count=table.classes.count,
        k=int(sizes.min()),
        uniques=int((sizes == 1).sum()),
        average=len(table) / max(table.classes.count, 1),
        largest=int(sizes.max()),
        records_by_size=by_size,
    )


def _chosen(measures: Sequence[str] | None) -> list[MeasureInfo]:
    known = discover_all_measures()
    for name in measures or ():
        if name not in known:
            raise InputError(f"There is no measure '{name}'. {did_you_mean(name, known)}")
    return [info for name, info in known.items() if measures is None or name in measures]


def _check_options(threshold: Any, missing: Any, sampling_fraction: Any) -> None:
    """What is wrong for every measure is an error, where a measure that fails is only a note."""
    if missing not in ("own", "wildcard"):
        raise InputError("The reading of missing values must be 'own' or 'wildcard'.")
    for name, value in (("threshold", threshold), ("sampling fraction", sampling_fraction)):
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value <= 1):
            raise InputError(
                f"The {name} must be a number above 0 and at most 1; got {value!r} instead."
            )


def _reason_to_leave_out(
    info: MeasureInfo,
    table: Table,
    original: Table | None,
    options: Mapping[str, Any],
    *,
    asked: bool,
) -> str | None:
    """Why a measure cannot be taken of these tables, or is not unless asked for by name."""
    declared = table.roles if original is None else original.roles
    estimable = options["sampling_fraction"] is not None or table.roles.weight is not None
    has_population = estimable or options["population"] is not None
    if info.name in _POPULATION_MEASURES and not has_population:
        return "give a population table, a sampling fraction or a weight column"
    if info.name == "individual_risk" and not estimable:
        return "give a sampling fraction or a weight column"
    if info.needs_original and original is None:
        return "it compares with the original; give it as original"
    if info.sensitive and not declared.sensitive:
        return "it is about sensitive columns; declare them in the roles"
    if info.target and declared.target is None:
        return "it is about a target; declare it in the roles"
    if info.on_request is not None and not asked:
        return info.on_request
    if info.name == "suda" and not asked and len(table) > _MANY:
        return f"it needs much memory for more than {_MANY:,} records; ask for it by name"
    if original is None:
        return None
    if info.name == "certainty" and len(table) >= len(original):
        return "nobody was left out, so everybody is known to be in the table"
    if info.pairs and not table.pairs_with(original):
        return "the rows of the two tables cannot be paired, since they were read apart"
    return None
