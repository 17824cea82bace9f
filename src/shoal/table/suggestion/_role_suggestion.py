"""The result of ``suggest_roles``: facts about columns and sets, and the suggested roles."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any

from shoal.hints import Helpful, instead
from shoal.notebook import listing, percent, view
from shoal.table._roles import Roles
from shoal.table.columns._frames import Kind
from shoal.table.suggestion._column_sets import ColumnSet
from shoal.table.suggestion._patterns import Evidence

_SHOWN_SETS = 3
_WIDEST_NAME = 28


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about one column, without any of its values.

    Parameters
    ----------
    name : str
        The column.
    kind : str
        Integer, float, boolean, text, date, datetime, time or duration.
    distinct : int
        The number of distinct values, without missing ones.
    missing : float
        The share of missing values.
    distinction, separation : float
        How well the column alone tells records apart (see :class:`ColumnSet`). A missing value
        counts as a value.
    evidence : Evidence, optional
        Why the column looks like a direct identifier.
    role : str, optional
        The suggested role: ``"identifiers"``, ``"quasi_identifiers"``, ``"sensitive"``,
        ``"weight"`` or ``"target"``; None if no rule applies.
    reason : str
        Why this role, in words.
    """

    name: str
    kind: Kind
    distinct: int
    missing: float
    distinction: float
    separation: float
    evidence: Evidence | None = None
    role: str | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, repr=False)
class RoleSuggestion(Helpful):
    """The suggested roles and the evidence for them.

    Parameters
    ----------
    rows : int
        The number of records looked at.
    roles : Roles
        The suggestion. Someone who knows the data must check it. ``insensitive`` is always empty:
        only a person can decide that a column may be released unchanged.
    columns : tuple of ColumnFacts
        Every column, in the order of the table.
    sets : tuple of ColumnSet
        The sets of columns that tell records apart best, by size and then from the best.
    notes : tuple of str
        Columns that were left out, and other limits of the search.
    """

    _instead = instead({"suggestion.roles": "identifiers quasi_identifiers sensitive unit"})

    rows: int
    roles: Roles
    columns: tuple[ColumnFacts, ...]
    sets: tuple[ColumnSet, ...]
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnFacts:
        """The facts about one column."""
        return next(facts for facts in self.columns if facts.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "rows": self.rows,
            "roles": self.roles.to_dict(),
            "columns": [facts.to_dict() for facts in self.columns],
            "sets": [found.to_dict() for found in self.sets],
            "notes": list(self.notes),
        }

    @property
    def _title(self) -> str:
        return f"Suggested roles ({self.rows:,} records, {len(self.columns)} columns)"

    def __repr__(self) -> str:
        return f"{self._title}: {'; '.join(line.strip() for line in _role_lines(self.roles))}"

    def _repr_html_(self) -> str:
        columns = listing(_HEAD, map(_cells, self.columns), of="columns")
        sets = listing(("columns that tell records apart best",), ([str(s)] for s in self._best))
        notes = (f"Note: {note}" for note in self.notes)
        return view(self._title, columns, *([sets] if self.sets else []), *notes)

    @property
    def _best(self) -> list[ColumnSet]:
        by_size = itertools.groupby(self.sets, key=lambda found: len(found.columns))
        return [one for _, some in by_size for one in itertools.islice(some, _SHOWN_SETS)]

    def __str__(self) -> str:
        parts = [
            self._title,
            *_role_lines(self.roles),
            "",
            *_column_lines(self.columns),
        ]
        if self.sets:
            best = (f"  {one}" for one in self._best)
            parts += ["", "Columns that tell records apart best", *best]
        if self.notes:
            parts += ["", *(f"Note: {note}" for note in self.notes)]
        return "\n".join(parts)


def _role_lines(roles: Roles) -> list[str]:
    given = roles.to_dict()
    if not given:
        return ["  none: no column looks like an identifier or stands out"]
    return [
        f"  {role.replace('_', '-')}: {', '.join([names] if isinstance(names, str) else names)}"
        for role, names in given.items()
    ]


_HEAD = ("column", "kind", "values", "missing", "distinction", "separation", "role", "because")


def _cells(facts: ColumnFacts) -> tuple[str, ...]:
    return (
        facts.name if len(facts.name) <= _WIDEST_NAME else f"{facts.name[: _WIDEST_NAME - 1]}…",
        facts.kind,
        f"{facts.distinct:,}",
        percent(facts.missing),
        percent(facts.distinction),
        percent(facts.separation),
        (facts.role or "-").replace("_", "-"),
        facts.reason,
    )


def _column_lines(columns: tuple[ColumnFacts, ...]) -> list[str]:
    rows = [_cells(facts) for facts in columns]
    widths = [max(map(len, cells)) for cells in zip(_HEAD, *rows, strict=True)]
    numeric = range(2, 6)
    return [
        "  ".join(
            cell.rjust(width) if place in numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [_HEAD, *rows]
    ]
