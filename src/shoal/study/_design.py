"""A study as a file: tables, variants, seeds and measures, and the resulting tasks."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from shoal.errors import PlanError, did_you_mean
from shoal.hints import Helpful
from shoal.notebook import listing, view
from shoal.parameters import Anything, Constraint, Fits, Flag, Integer, Parametrized, Text
from shoal.study._measures import study_measures
from shoal.study.data._tables import NAMES, TableSource, sources_of
from shoal.workflow import Plan
from shoal.workflow._plan import read_toml

_MOST_SEEDS = 1_000_000

#: The variant that masks nothing: what the others are compared with.
ORIGINAL = "original"


def _entries(example: str, *kinds: type) -> Fits:
    """A list of tables, or for some parts of names."""
    return Fits(
        f"a list of tables: write {example}",
        lambda value: (
            isinstance(value, (list, tuple))
            and all(isinstance(each, (Mapping, *kinds)) for each in value)
        ),
    )


_STEPS = _entries('{ method = "round" }')
_GRID = Fits(
    "a table with a list of values by parameter",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(values, list) and values for values in value.values())
    ),
)
_PARTS: Mapping[str, Constraint] = {
    "name": Text(),
    "title": Anything(),
    "seeds": Anything(),
    "tables": _entries("[[tables]] above each"),
    "variants": _entries("[[variants]] above each"),
    "measures": _entries("[[measures]] above each", str),
    "baseline": Flag(),
    "statistics": _entries("[[statistics]] above each"),
    "figures": _entries("[[figures]] above each"),
}


@dataclass(frozen=True)
class Variant:
    """One way to mask: a plan, and the parameters that distinguish it within its family.

    It applies to all tables and all measures, unless it names some.
    """

    name: str
    steps: tuple[Mapping[str, Any], ...]
    family: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    seeds: int | None = None
    measures: tuple[str, ...] = ()

    def applies_to(self, table: TableSource) -> bool:
        """Whether the variant applies to a table: to all, unless it names some."""
        return not self.tables or table.name in self.tables

    def plan(self, seed: int, folder: Path | None = None) -> Plan:
        """The plan, with the seed set for every random step."""
        plan = Plan.from_dict({"steps": [dict(step) for step in self.steps]}, folder=folder)
        for step in plan.steps:
            if step.takes_seed and getattr(step, "random_state", None) is None:
                step.set_params(random_state=seed)
        return plan

    def is_random(self, folder: Path | None = None) -> bool:
        """Whether another seed can change the result."""
        return any(step.is_random for step in self.plan(0, folder).steps)


@dataclass(frozen=True)
class MeasureSpec(Parametrized):
    """One measure with its options, its name in results, and the families it applies to."""

    called: ClassVar[str] = "a measure of a study"

    measure: Annotated[str, Text()]
    name: Annotated[str, Text()]
    options: Annotated[Mapping[str, Any], Anything()]
    families: Annotated[tuple[str, ...], NAMES] = ()

    def applies_to(self, variant: Variant) -> bool:
        """Whether the measure applies to a variant: to all, unless one of them names some."""
        is_wanted = not variant.measures or self.name in variant.measures
        return is_wanted and (not self.families or variant.family in self.families)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any] | str) -> MeasureSpec:
        """A measure from an entry of a study's file: its name, or a table with its options."""
        if isinstance(given, str):
            given = {"measure": given}
        known = study_measures()
        measure = given.get("measure")
        if not isinstance(measure, str) or measure not in known:
            raise PlanError(f"There is no measure '{measure}'. {did_you_mean(str(measure), known)}")
        own = {part: given[part] for part in ("measure", "name", "families") if part in given}
        options = {part: value for part, value in given.items() if part not in own}
        known[measure].check_names(options)
        parts = {"name": measure, "options": options, **own}
        return cls.from_params(parts, called="measure of a study")


@dataclass(frozen=True)
class Cell:
    """One masked table to measure: a table, a variant and a seed, with all its measures."""

    table: TableSource
    variant: Variant
    seed: int
    measures: tuple[MeasureSpec, ...]


@dataclass(frozen=True, repr=False)
class Study(Helpful):
    """An experiment: every variant on every table under every seed, measured alike.

    Parameters
    ----------
    name : str
        Its name.
    tables : sequence of TableSource
    variants : sequence of Variant
        Ways to mask; the original is measured too, as the baseline.
    measures : sequence of MeasureSpec
    seeds : sequence of int
        A variant without randomness is measured once.
    folder : Path, optional
        The folder that relative paths start from.

    Examples
    --------
    >>> study = Study.from_dict({
    ...     "name": "rounding",
    ...     "seeds": 2,
    ...     "tables": [{"path": "people.csv", "target": "diagnosis"}],
    ...     "variants": [{"name": "round", "steps": [{"method": "round"}],
    ...                   "grid": {"base": [5, 10]}}],
    ...     "measures": ["distance_linkage"],
    ... })
    >>> [variant.name for variant in study.variants]
    ['original', 'round base=5', 'round base=10']
    >>> len(list(study.cells()))  # rounding has no randomness, so one seed each
    3
    """

    name: str
    tables: tuple[TableSource, ...]
    variants: tuple[Variant, ...]
    measures: tuple[MeasureSpec, ...]
    seeds: tuple[int, ...] = (0,)
    title: str = ""
    figures: tuple[Mapping[str, Any], ...] = ()
    statistics: tuple[Mapping[str, Any], ...] = ()
    folder: Path | None = None

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, folder: Path | None = None) -> Study:
        """A study from plain data, in the shape of its TOML form."""
        for part, value in given.items():
            if part not in _PARTS:
                raise PlanError(f"A study has no part '{part}'. {did_you_mean(part, _PARTS)}")
            if not _PARTS[part].accepts(value):
                raise PlanError(f"The part '{part}' of a study must be {_PARTS[part].describe()}.")
        for part in ("tables", "variants", "measures"):
            if not given.get(part):
                raise PlanError(f"A study needs '{part}', a list with at least one entry.")
        variants = [variant for entry in given["variants"] for variant in variants_of(entry)]
        if given.get("baseline", True):
            variants.insert(0, Variant(ORIGINAL, (), ORIGINAL))
        _check_names("variants", [variant.name for variant in variants])
        tables = [source for entry in given["tables"] for source in sources_of(entry, folder)]
        _check_names("tables", [source.name for source in tables])
        measures = [MeasureSpec.from_dict(entry) for entry in given["measures"]]
        _check_names("measures", [measure.name for measure in measures])
        for variant in variants:
            _check_mentioned("variant", variant.name, "table", variant.tables, tables)
            _check_mentioned("variant", variant.name, "measure", variant.measures, measures)
        for measure in measures:
            _check_mentioned("measure", measure.name, "family", measure.families, variants)
        return cls(
            name=str(given.get("name", "study")),
            tables=tuple(tables),
            variants=tuple(variants),
            measures=tuple(measures),
            seeds=_seeds(given.get("seeds", 1)),
            title=str(given.get("title", "")),
            figures=tuple(given.get("figures", ())),
            statistics=tuple(given.get("statistics", ())),
            folder=folder,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study from a TOML file."""
        given = read_toml(path, "study")
        given.setdefault("name", Path(path).stem)
        return cls.from_dict(given, folder=Path(path).parent)

    def __repr__(self) -> str:
        sizes = ("tables", "variants", "measures", "seeds")
        counts = {part: len(getattr(self, part)) for part in sizes}
        counted = ", ".join(f"{n} {part[:-1] if n == 1 else part}" for part, n in counts.items())
        return f"Study: {self.name}; {counted}"

    def _repr_html_(self) -> str:
        parts = (
            ("tables", [table.name for table in self.tables]),
            ("variants", [variant.name for variant in self.variants]),
            ("measures", [measure.name for measure in self.measures]),
            ("seeds", map(str, self.seeds)),
        )
        rows = ((part, ", ".join(names)) for part, names in parts)
        return view(self.title or repr(self), listing(("part", "what"), rows))

    @cached_property
    def _trials(self) -> Mapping[str, int]:
        """The number of seeds for each variant."""
        return {
            variant.name: (variant.seeds or len(self.seeds))
            if variant.is_random(self.folder)
            else 1
            for variant in self.variants
        }

    def cells(self) -> Iterator[Cell]:
        """All cells: first seeds, then variants, then tables."""
        for place, seed in enumerate(self.seeds):
            for variant, table in itertools.product(self.variants, self.tables):
                if place < self._trials[variant.name] and variant.applies_to(table):
                    taken = (m for m in self.measures if m.applies_to(variant))
                    yield Cell(table, variant, seed, tuple(taken))


@dataclass(frozen=True)
class _VariantEntry(Parametrized):
    """One entry of a study's file: the variants over its grid, or all that its techniques make."""

    called: ClassVar[str] = "a variant of a study"

    name: Annotated[str, Text()] = "variant"
    family: Annotated[str | None, Text()] = None
    steps: Annotated[Sequence[Mapping[str, Any]] | None, _STEPS] = None
    combine: Annotated[Sequence[Mapping[str, Any]] | None, _STEPS] = None
    grid: Annotated[Mapping[str, Sequence[Any]] | None, _GRID] = None
    tables: Annotated[tuple[str, ...], NAMES] = ()
    seeds: Annotated[int | None, Integer(1)] = None
    measures: Annotated[tuple[str, ...], NAMES] = ()


def variants_of(given: Mapping[str, Any]) -> list[Variant]:
    """The variants of one entry: over its grid, or all combinations of its techniques."""
    entry = _VariantEntry.from_params(given, called="variant of a study")
    family = entry.family or entry.name
    limits = (entry.tables, entry.seeds, entry.measures)
    if bool(entry.steps) == bool(entry.combine):
        raise PlanError(f"The variant '{entry.name}' needs either 'steps' or 'combine'.")
    if entry.combine:
        if entry.grid:
            raise PlanError(f"The variant '{entry.name}' combines techniques; remove its grid.")
        return [
            Variant(
                "+".join(str(step.get("name", step.get("method"))) for step in chosen),
                # only the study uses the name of a technique
                tuple({p: v for p, v in step.items() if p != "name"} for step in chosen),
                family,
                {},
                *limits,
            )
            for count in range(1, len(entry.combine) + 1)
            for chosen in itertools.combinations(entry.combine, count)
        ]
    grid, steps = entry.grid or {}, tuple(entry.steps or ())
    return [
        Variant(
            " ".join([entry.name, *(f"{each}={value}" for each, value in chosen.items())]),
            _with(steps, chosen),
            family,
            chosen,
            *limits,
        )
        for chosen in (
            dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
        )
    ]


def _with(
    steps: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> tuple[Mapping[str, Any], ...]:
    """The steps with parameters of the grid: of the one step, or of ``method.parameter``."""
    out = [dict(step) for step in steps]
    for name, value in chosen.items():
        method, _, parameter = name.rpartition(".")
        places = [step for step in out if not method or step.get("method") == method]
        if len(places) != 1:
            raise PlanError(
                f"The grid's '{name}' does not belong to exactly one step; write method.parameter."
            )
        places[0][parameter] = value
    return tuple(out)


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, bool) or not isinstance(given, (int, list)):
        raise PlanError("The seeds of a study must be a count or a list of whole numbers.")
    if isinstance(given, int) and given > _MOST_SEEDS:
        raise PlanError(f"A study takes at most {_MOST_SEEDS:,} seeds; got {given:,}.")
    seeds = list(range(given)) if isinstance(given, int) else given
    if not seeds or not all(
        isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in seeds
    ):
        raise PlanError("A study needs at least one seed, and its seeds must be whole numbers ≥ 0.")
    if len(set(seeds)) < len(seeds):
        raise PlanError("The seeds of a study must differ; list each once.")
    return tuple(seeds)


def _check_names(what: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise PlanError(f"Two {what} of the study are called '{twice[0]}'; give each its own name.")


def _check_mentioned(
    what: str, name: str, kind: str, mentioned: Sequence[str], those: Sequence[Any]
) -> None:
    """Refuse a name that the study does not have: its task would be left out silently."""
    known = [one.family if kind == "family" else one.name for one in those]
    for each in mentioned:
        if each not in known:
            raise PlanError(
                f"The {what} '{name}' names the {kind} '{each}', which is not in the study. "
                f"{did_you_mean(each, list(dict.fromkeys(known)))}"
            )
