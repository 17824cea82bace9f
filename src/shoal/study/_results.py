"""The results of a study: one row per task, and ways to look at them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.notebook import Html, listing, view
from shoal.study._design import Study
from shoal.study.figures._style import write_rows
from shoal.study.running._store import Status, Store, keys_of
from shoal.table import records_as_parquet

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """The result of one task, with the task that it belongs to."""

    table: str
    variant: str
    family: str
    seed: int
    measure: str
    status: Status
    value: float
    reason: str | None
    seconds: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def at(self, name: str) -> Any:
        """A field or a parameter; None if there is neither."""
        return getattr(self, name) if hasattr(self, name) else self.parameters.get(name)


_PLAIN = [part.name for part in fields(Row) if part.name not in ("parameters", "facts")]


@dataclass(frozen=True, repr=False)
class Results:
    """The rows of a study, in the order of its tasks.

    ``where`` narrows them down, ``by`` groups their values, ``matrix`` lays them out.
    """

    rows: tuple[Row, ...]
    missing: int = 0

    @classmethod
    def of(cls, study: Study, folder: str | Path) -> Results:
        """The results in the folder of a study; ``missing`` counts the tasks without one."""
        keys = keys_of(study)
        stored = Store(folder).read(keys.values())
        variants = {variant.name: variant for variant in study.variants}
        rows = []
        for (table, name, seed, measure), key in keys.items():
            if key in stored:
                one, variant = stored[key], variants[name]
                task = (table, name, variant.family, seed, measure)
                result = (one.status, one.value, one.reason, one.seconds)
                rows.append(Row(*task, *result, variant.parameters, one.facts))
        return cls(tuple(rows), len(keys) - len(rows))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        failed = sum(row.status == "failed" for row in self.rows)
        return f"Results: {len(self)} tasks, {failed} failed, {self.missing} not done"

    @property
    def means(self) -> Html:
        """A table of means over tables and seeds: a row per variant, a column per measure."""
        variants, measures = (
            list(dict.fromkeys(getattr(row, part) for row in self.rows))
            for part in ("variant", "measure")
        )
        cells = self.matrix(variants, measures, by=("variant", "measure")).tolist()
        rows = ([variant, *row] for variant, row in zip(variants, cells, strict=True))
        return listing(
            ("variant", *measures), rows, title="Means over tables and seeds", of="variants"
        )

    def _repr_html_(self) -> str:
        return view(repr(self), self.means)

    def where(self, **wanted: Any) -> Results:
        """The rows whose fields or parameters have these values; a tuple means any of them."""

        def fits(row: Row) -> bool:
            return all(
                row.at(name) in (value if isinstance(value, tuple) else (value,))
                for name, value in wanted.items()
            )

        return Results(tuple(row for row in self.rows if fits(row)), self.missing)

    @property
    def done(self) -> Results:
        """The rows that have a value."""
        good = tuple(r for r in self.rows if r.status == "done" and math.isfinite(r.value))
        return Results(good, self.missing)

    @property
    def values(self) -> Floats:
        """The values of the rows that have one."""
        return np.array([row.value for row in self.done.rows], np.float64)

    def by(self, *names: str) -> dict[Any, Floats]:
        """The values of the rows grouped by a field or parameter, or by several, in order."""
        return {place: some.values for place, some in self.done.split(*names).items()}

    def split(self, *names: str) -> dict[Any, Results]:
        """The rows grouped by a field or parameter, or by several, in order."""
        grouped: dict[Any, list[Row]] = {}
        for row in self.rows:
            given = (row.at(name) for name in names)
            # lists and tables as the text that names of variants have
            place = tuple(str(v) if isinstance(v, (list, Mapping)) else v for v in given)
            grouped.setdefault(place[0] if len(names) == 1 else place, []).append(row)
        return {place: Results(tuple(rows)) for place, rows in grouped.items()}

    @property
    def details(self) -> list[Mapping[str, Any]]:
        """The details of each measurement."""
        return [row.facts["details"] for row in self.rows]

    def known(self, name: str) -> list[Any]:
        """The values of a field or parameter in order, without missing ones."""
        return sorted({value for row in self.rows if (value := row.at(name)) is not None})

    def matrix(self, rows: Sequence[Any], columns: Sequence[Any], *, by: tuple[str, str]) -> Floats:
        """Means over seeds, laid out by two fields; NaN if there is no value."""
        means = {place: mean_of(values) for place, values in self.by(*by).items()}
        cells = [[means.get((row, column), math.nan) for column in columns] for row in rows]
        return np.array(cells, np.float64).reshape(len(rows), len(columns))

    def mean(self) -> float:
        """The mean of the values; NaN if there are none."""
        return float(self.values.mean()) if len(self.values) else math.nan

    @property
    def _parameters(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.parameters))

    def to_csv(self, path: str | Path) -> None:
        """Write the rows, with one column per field and per parameter."""
        names = self._parameters
        rows = (
            [getattr(row, field) for field in _PLAIN] + [row.parameters.get(n, "") for n in names]
            for row in self.rows
        )
        write_rows(Path(path), [*_PLAIN, *names], rows)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows with all their facts, as JSON text."""
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in self.rows] for name in _PLAIN
        }
        columns["facts"] = [json.dumps(row.facts, ensure_ascii=False) for row in self.rows]
        for name in self._parameters:
            values = [row.parameters.get(name) for row in self.rows]
            columns[f"parameter {name}" if name in columns else name] = _of_one_type(values)
        with open(path, "wb") as stream:
            records_as_parquet(stream, columns)


def mean_of(values: Floats) -> float:
    """The mean to twelve digits: equal means are equal, in whatever order values were added."""
    return float(f"{values.mean():.12g}")


def _of_one_type(values: Sequence[Any]) -> list[Any]:
    """Numbers if all are numbers, else text: a column of a file has one type."""
    known = [value for value in values if value is not None]
    if all(_is_number(value) for value in known):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max  # a whole number in a file may have any length
    return isinstance(value, float)
