"""A hierarchy for a column nobody has made one for, by the kind and the values of the column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._frames import kind_of
from shoal.table.hierarchy._dates import calendar
from shoal.table.hierarchy._edges import Edges
from shoal.table.hierarchy._grid import grid
from shoal.table.hierarchy._propose_text import is_code, pruned_prefixes, text_rule
from shoal.table.hierarchy._rule import Rule, Rung, Suppression, numbers_of, useful_levels
from shoal.table.suggestion._column_names import words_of

if TYPE_CHECKING:
    from shoal.table._table import Table

_CELLS: Final = 20  # about as many intervals at level 1
_FEWEST: Final = 3  # intervals of the coarsest level, at most
_CROWDED: Final = 0.8  # a share of the records in one interval that says: too wide
_DECADES: Final = 6
_CALENDAR: Final = ("hour", "day", "month", "quarter", "year", "decade")
_POSTCODE_WORDS: Final = frozenset(
    "zip zipcode postal postalcode postcode postcodes plz postleitzahl cep cap".split()
)


def proposed(table: Table, column: str) -> Rule:
    """The rule that fits a column."""
    coded = table.codes(column)
    values = coded.levels
    if len(values) < 3:
        return Suppression()  # one value has nothing coarser, and two only the root
    records = np.bincount(coded.codes, minlength=coded.count)[: len(values)]
    kind = kind_of(values.dtype)
    if kind in ("date", "datetime", "time"):
        return _date_rule(values, kind)
    if kind == "text":
        return text_rule(values, records, code=_says_postcode(column) or is_code(values))
    if kind == "integer" and _says_postcode(column) and int(_lowest(values)) >= 0:
        return pruned_prefixes(values, pad=len(str(_highest(values)))) or Suppression()
    return _number_rule(values, records)


def _says_postcode(column: str) -> bool:
    return not _POSTCODE_WORDS.isdisjoint(words_of(column))


def _lowest(values: pl.Series) -> Any:
    return values[0]  # distinct values come in ascending order


def _highest(values: pl.Series) -> Any:
    return values[-1]


def _date_rule(values: pl.Series, kind: str) -> Rule:
    """The units that join something and leave more than one."""
    units = ("hour",) if kind == "time" else _CALENDAR if kind == "datetime" else _CALENDAR[2:]
    useful = useful_levels(calendar(units).rungs(values, "refuse"), len(values))
    return calendar([units[level] for level in useful]) if useful else Suppression()


def _number_rule(values: pl.Series, records: npt.NDArray[np.int64]) -> Rule:
    numbers = numbers_of(values)
    low, high = (Decimal(str(end)) for end in (numbers[0], numbers[-1]))
    whole = numbers.dtype.kind in "iu" or bool((numbers == np.round(numbers)).all())
    span = high - low
    first = max(_round_up(span / _CELLS), Decimal(2 if whole else "1e-299"))
    widths = [first]
    while 2 * widths[-1] * (_FEWEST - 1) <= span:
        widths.append(2 * widths[-1])
    if float(widths[-1]) < 1e307:
        even = grid(widths)
        rungs = even.rungs(values, "refuse")
        if len(numbers) <= _CELLS or not _is_crowded(rungs[0], records):
            useful = useful_levels(rungs, len(values))
            return grid([widths[level] for level in useful]) if useful else Suppression()
    by_size = _by_size(low, high, whole)
    useful = useful_levels(by_size.rungs(values, "refuse"), len(values))
    return Edges(tuple(by_size.edges[level] for level in useful)) if useful else Suppression()


def _is_crowded(rung: Rung, records: npt.NDArray[np.int64]) -> bool:
    """Whether one interval has nearly all records, although they differ."""
    cells = np.bincount(rung.nodes, weights=records)
    fullest = int(cells.argmax())
    several = int((rung.nodes == fullest).sum()) > 1
    return several and cells[fullest] > _CROWDED * records.sum()


def _by_size(low: Decimal, high: Decimal, whole: bool) -> Edges:
    """Edges at 1, 2 and 5 times powers of ten on both sides of 0, for numbers of all sizes."""
    largest = max(abs(low), abs(high)).adjusted()
    smallest = max(largest - _DECADES, 0 if whole else -290)
    powers = range(smallest, min(largest, 306) + 1)
    fine = [Decimal(lead).scaleb(power) for power in powers for lead in (1, 2, 5)]
    ladder = [fine]
    step = 1
    while len(powers) > 2 * step:
        ladder.append([Decimal(1).scaleb(power) for power in powers[::step]])
        step *= 2
    levels: list[tuple[Decimal, ...]] = []
    for sizes in ladder:
        below = [-size for size in reversed(sizes)] if low < 0 else []
        edges = tuple(edge for edge in (*below, *sizes) if low < edge <= high)
        if edges and (not levels or len(edges) < len(levels[-1])):
            levels.append(edges)
    return Edges(tuple(levels))


def _round_up(size: Decimal) -> Decimal:
    """The smallest of 1, 2 and 5 times a power of ten that is not below a size.

    Examples
    --------
    >>> [str(_round_up(Decimal(size))) for size in ("3.65", "5", "0.07")]
    ['5', '5', '0.1']
    """
    if size <= 0:
        return Decimal(0)
    power = size.adjusted()
    leads: Sequence[int] = (1, 2, 5, 10)
    found = next(lead for lead in leads if Decimal(lead).scaleb(power) >= size)
    made = Decimal(found).scaleb(power)
    return Decimal(1).scaleb(power + 1) if found == 10 else made
