"""The results of an assessment: plain facts that print and convert to JSON and HTML."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shoal.errors import UnknownName, did_you_mean
from shoal.hints import Helpful, instead
from shoal.measurement import MeasureInfo, Measurement
from shoal.risk import intersection
from shoal.table import Missing, Table, counted_values, exact_total, frame_of_columns
from shoal.workflow._leaks import Swapping
from shoal.workflow._require import discover_all_measures
from shoal.workflow.release._profile import SIZE_LABELS, records_by_size

Side = Literal["risk", "utility"]

#: The groups of measures of each side in reading order, with their titles.
_TITLES: dict[Side, dict[str, str]] = {
    "risk": {
        "found": "Who can be found",
        "secrets": "What crowds reveal about sensitive columns",
        "attacks": "Attacks that were tried",
    },
    "utility": {
        "statistics": "What statistics still show",
        "models": "What models can still learn",
    },
}
_FOUND_IF = "Who could be found without the swap"

#: What each attack on several releases reveals.
ATTACKS = {
    name: MeasureInfo(name, title, "lower", (0, 1), intersection)
    for name, title in {
        "records": "share of persons in a smaller crowd",
        "values": "share of persons with a certain secret",
    }.items()
}

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
#: Measures that are shown as a distribution over records, in this order, with their formula.
_FORMULAS = {"journalist_risk": "1/F", "certainty": "f/F", "prosecutor_risk": "1/f"}


@dataclass(frozen=True)
class MeasureGroup:
    """Measures that are read together."""

    side: Side
    title: str
    names: tuple[str, ...]


def grouped_measures(names: Iterable[str], *, swapped: bool = False) -> list[MeasureGroup]:
    """The named measures by side and group, each group in the order of the names; none is empty.

    If the table was ``swapped``, crowds do not show who can be found, and the title states that.
    """
    infos = discover_all_measures()
    placed: dict[tuple[str, str], list[str]] = {}
    for name in names:
        placed.setdefault((infos[name].about, _group_of(infos[name])), []).append(name)
    return [
        MeasureGroup(
            side, _FOUND_IF if swapped and group == "found" else title, tuple(placed[side, group])
        )
        for side, titles in _TITLES.items()
        for group, title in titles.items()
        if (side, group) in placed
    ]


def _group_of(info: MeasureInfo) -> str:
    """The group of a measure, from what it declares."""
    if info.about == "utility":
        return "models" if info.target else "statistics"
    if info.needs_original:
        return "attacks"
    return "secrets" if info.sensitive else "found"


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """The measures under the reason that they share, in the order of the reasons."""
    shared: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        shared.setdefault(reason, []).append(name)
    return shared


@dataclass(frozen=True, eq=False)
class RiskDistribution:
    """The risks of all records: the ``values`` of single records (private), and their summary.

    ``times`` is the number of records behind each value, if combinations were measured.
    ``fraction`` is the share of all people who are in the table: the certainty for everyone in an
    even sample. ``above`` is the share of records with a higher value. Both apply to the certainty
    only.
    """

    measure: str
    formula: str
    values: npt.NDArray[np.float64]
    fraction: float | None = None
    times: npt.NDArray[np.int64] | None = None

    @cached_property
    def counted(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The different risks, ascending, and how many records have each."""
        return counted_values(self.values, self.times)

    @property
    def _records(self) -> int:
        return int(self.counted[1].sum())

    @property
    def quantiles(self) -> dict[str, float]:
        """For each share, the value that this share of the records does not exceed."""
        values, counts = self.counted
        places = np.maximum(np.ceil(self._records * np.array(QUANTILES) - 1), 0)
        chosen = values[np.searchsorted(np.cumsum(counts), places, side="right")]
        return {str(q): float(value) for q, value in zip(QUANTILES, chosen, strict=True)}

    @property
    def mean(self) -> float:
        """The average risk of a record."""
        return exact_total(*self.counted) / self._records

    @property
    def above(self) -> float | None:
        """The share of records above the sampling fraction."""
        if self.fraction is None:
            return None
        values, counts = self.counted
        return int(counts[values > self.fraction].sum()) / self._records

    def to_dict(self) -> dict[str, Any]:
        """Plain facts, without the values of records."""
        return {
            "formula": self.formula,
            "mean": self.mean,
            "quantiles": self.quantiles,
            "sampling_fraction": self.fraction,
            "share_above_fraction": self.above,
        }


@dataclass(frozen=True)
class CostOfK:
    """The risk and the cost of a plan with one k.

    ``risk`` is the marketer risk, ``loss`` the normalized certainty penalty, ``lost`` the share of
    records removed.
    """

    k: int
    risk: float
    loss: float
    lost: float


@dataclass(frozen=True)
class ClassFacts:
    """Facts about the classes of equal quasi-identifiers."""

    count: int
    k: int
    uniques: int
    average: float
    largest: int
    records_by_size: Mapping[str, int] = field(default_factory=dict)
    #: If persons have several records: how many persons there are, how many share the rarest
    #: history, and how many have a unique one.
    persons: int | None = None
    rarest_history: int | None = None
    alone_by_history: int | None = None

    @property
    def called(self) -> str:
        """What the sizes of classes count."""
        return "record" if self.persons is None else "person"

    @property
    def sentences(self) -> list[str]:
        """A note for tables in which a person has several records."""
        if self.persons is None:
            return []
        return [
            f"Persons are counted ({self.persons:,}), and a person may have several records. By "
            f"one record, each person is among at least {self.k:,}. By all records together (the "
            f"person's history), each is among at least {self.rarest_history:,}, and "
            f"{self.alone_by_history:,} persons are unique."
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Helpful, Mapping[str, Measurement]):
    """The results of assessing a table. It prints, and it converts to JSON and HTML.

    It is a mapping: ``assessment["marketer_risk"]`` is one Measurement, and ``list(assessment)``
    lists the measures taken. ``classes`` describes the classes. ``notes`` explain how to read the
    numbers. ``swapping`` is what a swap protects and what gets around it, measured by attack.
    ``left_out`` explains why a measure was not taken and how to ask for it; ``failed`` explains
    why a measure failed. ``together`` is what the table reveals together with earlier releases, by
    attack.

    It contains no cell values, but it contains counts of the original: it is for the steward, not
    for the public.
    """

    _instead = instead(
        {
            "assessment.to_frame(), or print it": "risk utility measures",
            "assessment.classes.uniques": "uniques unique",
            "assessment.to_frame().write_csv(path)": "to_csv",
            "assessment.to_html()": "plot show report",
            "assessment.to_json() or assessment.to_html(), and write the text": "save",
        }
    )

    rows: int
    columns: int
    roles: Mapping[str, Any]
    missing: Missing
    classes: ClassFacts
    measurements: Mapping[str, Measurement]
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    swapping: Swapping | None = None
    original_rows: int | None = None
    together: Mapping[str, Measurement] = field(default_factory=dict)
    #: The cost of a plan with each k, if it was asked for.
    k_curve: tuple[CostOfK, ...] = ()
    #: The number of records behind each value, if combinations were measured.
    times: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    __eq__ = object.__eq__  # not that of mappings: assessments are compared by identity
    __hash__ = object.__hash__

    @property
    def k(self) -> int:
        """The size of the smallest class."""
        return self.classes.k

    def __iter__(self) -> Iterator[str]:
        return iter(self.measurements)

    def __len__(self) -> int:
        return len(self.measurements)

    def __bool__(self) -> bool:
        return True

    @cached_property
    def distributions(self) -> tuple[RiskDistribution, ...]:
        """How the risk is spread over the records, for each measure taken per record."""
        fraction = self.rows / self.original_rows if self.original_rows else None
        return tuple(
            RiskDistribution(
                name, formula, values, fraction if name == "certainty" else None, self.times
            )
            for name, formula in _FORMULAS.items()
            if name in self.measurements
            and (values := self.measurements[name].per_record) is not None
        )

    def without_records(self) -> Assessment:
        """The same without the values per record, except for how the risk is spread."""
        return replace(
            self,
            measurements={
                name: one if name in _FORMULAS else replace(one, per_record=None)
                for name, one in self.measurements.items()
            },
        )

    def __getitem__(self, name: str) -> Measurement:
        if name in self.measurements:
            return self.measurements[name]
        if name in self.failed:
            reason = f"It could not be measured: {self.failed[name].rstrip('.')}."
        elif name in self.left_out:
            reason = f"It was left out: {self.left_out[name].rstrip('.')}."
        elif name in ("k", "classes", "notes"):
            reason = f"Write assessment.{name}."
        else:
            reason = did_you_mean(name, self.measurements)
        raise UnknownName(f"The assessment has no measure '{name}'. {reason}")

    def warnings_of(self, name: str) -> tuple[str, ...]:
        """The warnings of a measure that are not already in the notes."""
        return tuple(said for said in self.measurements[name].warnings if said not in self.notes)

    def to_frame(self) -> Any:
        """The measurements as a polars frame, one row each.

        Examples
        --------
        >>> import polars as pl
        >>> from shoal import Roles, assess
        >>> table = Table(pl.DataFrame({"age": [31, 31, 40]}), Roles(quasi_identifiers=["age"]))
        >>> found = assess(table, measures=["uniqueness", "marketer_risk"]).to_frame()
        >>> found.select("measure", "about", "direction").rows()
        [('marketer_risk', 'risk', 'lower'), ('uniqueness', 'risk', 'lower')]
        """
        infos, rows = discover_all_measures(), []
        for group in grouped_measures(self.measurements):
            for name in group.names:
                one = self.measurements[name]
                about = (one.name, infos[name].title, group.side)
                ends = one.interval or (None, None)
                rows.append((*about, float(one), *ends, one.baseline, one.direction))
        head = ("measure", "title", "about", "value", "low", "high", "baseline", "direction")
        return frame_of_columns(**{n: [row[at] for row in rows] for at, n in enumerate(head)})

    def to_dict(self) -> dict[str, Any]:
        """All facts as plain data."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "original_rows": self.original_rows,
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
                "count_of": f"{self.classes.called}s",
                "persons": self.classes.persons,
                "rarest_history": self.classes.rarest_history,
                "alone_by_history": self.classes.alone_by_history,
            },
            "measurements": {
                name: {"about": group.side, **self.measurements[name].to_dict()}
                for group in grouped_measures(self.measurements)
                for name in group.names
            },
            "together": {attack: one.to_dict() for attack, one in self.together.items()},
            **({"k_curve": [vars(p) for p in self.k_curve]} if self.k_curve else {}),
            "distributions": {d.measure: d.to_dict() for d in self.distributions},
            "notes": list(self.notes),
            "left_out": dict(self.left_out),
            "failed": dict(self.failed),
            "swapping": None if self.swapping is None else self.swapping.to_dict(),
        }

    def to_json(self) -> str:
        """All facts as JSON; a value that JSON cannot hold, such as infinity, is null."""
        facts = jsonable(self.to_dict())
        return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """All facts as one self-contained HTML page."""
        from shoal.workflow.report import assessment_page

        return assessment_page(self)

    def __repr__(self) -> str:
        return (
            f"Assessment: {self.rows:,} records, {self.columns} columns; k = {self.k}; "
            f"{len(self)} measures"
        )

    def _repr_html_(self) -> str:
        from shoal.workflow.report import assessment_fragment

        return assessment_fragment(self)

    def __str__(self) -> str:
        classes = self.classes
        quasi = ", ".join(self.roles.get("quasi_identifiers", [])) or "none"
        return "\n".join(
            [
                f"{self.rows:,} records, {self.columns} columns; quasi-identifiers: {quasi}",
                f"k = {classes.k}; {classes.count:,} classes, {classes.average:.1f} "
                f"{classes.called}s on average; {classes.uniques:,} {classes.called}s are unique",
                *self._measured(),
                *(f"note: {note}" for note in self.notes),
                *_untaken("could not be measured", self.failed),
                *_untaken("left out", self.left_out),
            ]
        )

    def _measured(self) -> Iterator[str]:
        infos, side = discover_all_measures(), None
        for group in grouped_measures(self.measurements):
            if group.side != side:
                side = group.side
                yield f"{side}:"
            for name in group.names:
                yield from _lines(infos[name], self.measurements[name], self.warnings_of(name))
        if self.together:
            yield "together with earlier releases:"
        for attack, found in self.together.items():
            yield from _lines(ATTACKS[attack], found, found.warnings)


def jsonable(value: Any) -> Any:
    """The same facts in a form that JSON can hold: None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return jsonable(value.item()) if hasattr(value, "item") else str(value)


def _untaken(what: str, reasons: Mapping[str, str]) -> Iterator[str]:
    for reason, names in by_reason(reasons).items():
        yield f"{what}: {', '.join(names)}: {reason.rstrip('.')}"


def _lines(info: MeasureInfo, found: Measurement, warnings: Iterable[str]) -> Iterator[str]:
    """A measurement with what is needed to read it, then its warnings."""
    words = []
    if found.interval is not None:
        words.append(f"95 % {found.interval[0]:.4g} to {found.interval[1]:.4g}")
    if found.baseline is not None:
        words.append(f"baseline {found.baseline:.4g}")
    if (bound := bound_of(found)) is not None:
        words.append(f"bound {bound:.4g}")
    reading = "; ".join([*words, f"{found.direction} is better"])
    yield f"  {info.title}: {found.value:.4g} ({reading})"
    yield from (f"    {said}" for said in warnings)


def bound_of(found: Measurement) -> float | None:
    """The bound that the masking promises for a measure, if any."""
    bound = found.details.get("bound")
    return float(bound) if isinstance(bound, (int, float)) else None


def class_facts(table: Table, missing: Missing = "own") -> ClassFacts:
    """The classes in numbers; overlapping groups in the wildcard reading."""
    sizes = table.crowd_sizes(missing)
    by_size = records_by_size(sizes, table.classes.rows).astype(int).tolist()
    persons = {}
    if table.has_persons:
        persons = {
            "persons": table.person_count,
            "rarest_history": table.histories.k,
            "alone_by_history": table.histories.uniques,
        }
    return ClassFacts(
        count=table.classes.count,
        k=int(sizes.min()),
        uniques=int(table.total_of_classes(sizes == 1)),
        average=float(table.classes.sizes.mean()) if table.classes.count else 0.0,
        largest=int(sizes.max()),
        records_by_size=dict(zip(SIZE_LABELS, by_size, strict=True)),
        **persons,
    )
