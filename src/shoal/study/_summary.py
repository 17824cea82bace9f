"""What every study says of itself: how it was made, and each measure of each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.errors import ShoalError
from shoal.study._declared import View
from shoal.study._design import Study
from shoal.study._results import Results, Row, mean_of
from shoal.study._statistics import bootstrap_interval
from shoal.study.data._tables import TableSource
from shoal.study.figures._style import write_rows

_FEWEST: Final = 5  # tables or seeds that an interval is drawn from


class Mean(NamedTuple):
    """The mean of a measure over the results of a variant, with an interval where one is known."""

    mean: float
    low: float | None
    high: float | None
    results: int


@dataclass(frozen=True)
class MeasureTable:
    """Variants by measures: every mean that a study asked for."""

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Mean | None, ...]], ...]
    sentence: str

    @classmethod
    def of(cls, study: Study, results: Results) -> MeasureTable:
        """Means over tables and seeds, of whatever has a result."""
        view, measures = View(study, results), tuple(each.name for each in study.measures)
        cells: dict[tuple[str, str], list[Row]] = {}
        for row in results.done:
            cells.setdefault((row.variant, row.measure), []).append(row)
        found = {place: _mean_of_rows(rows) for place, rows in cells.items()}
        rows = [
            (variant.name, tuple(found.get((variant.name, name)) for name in measures))
            for variant in study.variants
        ]
        titles = tuple(view.title(name) for name in measures)
        return cls(measures, titles, tuple(rows), _sentence(study))

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "sentence": self.sentence,
            "measures": list(self.measures),
            "titles": list(self.titles),
            "rows": [
                {"variant": name, "values": [None if m is None else m._asdict() for m in means]}
                for name, means in self.rows
            ],
        }

    def to_csv(self, path: Path) -> None:
        """Write a row for each variant and measure that has a result."""
        rows = (
            (variant, measure, *("" if part is None else part for part in mean))
            for variant, means in self.rows
            for measure, mean in zip(self.measures, means, strict=True)
            if mean is not None
        )
        write_rows(path, ("variant", "measure", *Mean._fields), rows)


def _sentence(study: Study) -> str:
    over = "over the seeds" if len(study.tables) == 1 else "over the tables and seeds"
    return (
        f"Means {over} that a variant has results of. In brackets is the interval of 95 %: the "
        "measure's own of a single result, a bootstrap interval of "
        f"{_FEWEST} {'seeds' if len(study.tables) == 1 else 'tables'} or more, else none."
    )


def _mean_of_rows(rows: Sequence[Row]) -> Mean:
    """A mean with the interval of its one result, or of its tables, or of its seeds."""
    results = Results(tuple(rows))
    mean, tables = mean_of(results.values), results.by("table")
    if len(rows) == 1:
        low, high = rows[0].facts.get("interval") or (None, None)
        return Mean(mean, low, high, 1)
    of_tables = [values.mean() for values in tables.values()]
    independent = of_tables if len(tables) > 1 else results.values
    if len(independent) < _FEWEST:
        return Mean(mean, None, None, len(rows))
    return Mean(mean, *bootstrap_interval(independent), len(rows))


def setting_of(study: Study) -> dict[str, Any]:
    """What a study was made of: the tables with their rows, and the seeds."""
    return {
        "tables": [
            {"name": source.name, "rows": _rows_of(source, study.folder)} for source in study.tables
        ],
        "seeds": list(study.seeds),
    }


def _rows_of(source: TableSource, folder: Path | None) -> int | None:
    try:
        return source.row_count(folder)
    except ShoalError:  # what cannot be read is among the tasks that failed
        return None
