"""What every study reports: how it was made, and each measure of each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.errors import ShoalError
from shoal.notebook import Html, listing, number
from shoal.study._declared import View
from shoal.study._design import Study
from shoal.study._results import Results, Row, mean_of
from shoal.study._statistics import bootstrap_interval
from shoal.study.data._tables import TableSource
from shoal.study.figures._style import write_rows

_FEWEST: Final = 5  # tables or seeds that an interval is drawn from
_MOST_TABLES: Final = 3  # that are shown one by one


class Mean(NamedTuple):
    """The mean of a measure over the results of a variant, with its interval if one is known."""

    mean: float
    low: float | None
    high: float | None
    results: int

    @property
    def text(self) -> str:
        """The mean with its interval in brackets."""
        if self.low is None or self.high is None:
            return number(self.mean)
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


class Line(NamedTuple):
    """The means of a variant, on one table or (None) over all of them; None without a result."""

    variant: str
    table: str | None
    values: tuple[Mean | None, ...]

    @property
    def texts(self) -> list[str]:
        """The means with their intervals in brackets; empty without a result."""
        return ["" if mean is None else mean.text for mean in self.values]


@dataclass(frozen=True)
class MeasureTable:
    """Variants by measures: all means of a study, table by table if there are few tables."""

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    sentence: str

    @classmethod
    def of(cls, study: Study, results: Results) -> MeasureTable:
        """Means of whatever has a result."""
        view, measures = View(study, results), tuple(each.name for each in study.measures)
        is_by_table = 1 < len(study.tables) <= _MOST_TABLES
        cells: dict[tuple[str, str | None, str], list[Row]] = {}
        for row in results.done:
            place = (row.variant, row.table if is_by_table else None, row.measure)
            cells.setdefault(place, []).append(row)
        found = {place: _mean_of_rows(rows) for place, rows in cells.items()}
        tables = [source.name for source in study.tables] if is_by_table else [None]
        lines = (
            Line(variant.name, table, tuple(found.get((variant.name, table, m)) for m in measures))
            for variant in study.variants
            for table in tables
            if not (table and variant.tables) or table in variant.tables
        )
        titles = tuple(view.title(name) for name in measures)
        over_tables = len(study.tables) > _MOST_TABLES
        return cls(measures, titles, tuple(lines), _sentence("tables" if over_tables else "seeds"))

    @property
    def view(self) -> Html:
        """The means and their intervals for a notebook."""
        by_table = any(line.table is not None for line in self.lines)
        head = ["variant", *(["table"] if by_table else []), *self.titles]
        rows = [
            [line.variant, *([line.table or ""] if by_table else []), *line.texts]
            for line in self.lines
        ]
        return listing(head, rows, title="What was measured", of="means")

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "sentence": self.sentence,
            "measures": list(self.measures),
            "titles": list(self.titles),
            "rows": [
                {**line._asdict(), "values": [m if m is None else m._asdict() for m in line.values]}
                for line in self.lines
            ],
        }

    def to_csv(self, path: Path) -> None:
        """Write a row for each mean."""
        rows = (
            (line.variant, line.table or "", measure, *("" if p is None else p for p in mean))
            for line in self.lines
            for measure, mean in zip(self.measures, line.values, strict=True)
            if mean is not None
        )
        write_rows(path, ("variant", "table", "measure", *Mean._fields), rows)


def _sentence(over: str) -> str:
    means = "Means over the tables and seeds" if over == "tables" else "Means over the seeds"
    return (
        f"{means} that have results. Brackets hold 95 % intervals: the measure's own interval for "
        f"a single result, and a bootstrap interval for at least {_FEWEST} {over}. In all other "
        "cases no interval is known."
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
    """The tables of a study with their numbers of rows, and its seeds."""
    return {
        "tables": [
            {"name": source.name, "rows": _rows_of(source, study.folder)} for source in study.tables
        ],
        "seeds": list(study.seeds),
    }


def _rows_of(source: TableSource, folder: Path | None) -> int | None:
    try:
        return source.row_count(folder)
    except ShoalError:  # its tasks failed, with the reason
        return None
