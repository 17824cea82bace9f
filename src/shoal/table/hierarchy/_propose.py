"""A hierarchy for a column nobody has made one for, by the kind and the values of the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, did_you_mean
from shoal.table.columns._frames import kind_of
from shoal.table.hierarchy._dates import Dates, calendar
from shoal.table.hierarchy._edges import Edges, quantile_edges
from shoal.table.hierarchy._grid import Grid, grid
from shoal.table.hierarchy._propose_text import (
    frequency_rule,
    is_code,
    ordered_rule,
    pruned_prefixes,
    text_rule,
)
from shoal.table.hierarchy._rule import Rule, Rung, Suppression, numbers_of, useful_levels
from shoal.table.storage._types import as_text
from shoal.table.suggestion._column_names import words_of

if TYPE_CHECKING:
    from shoal.table._table import Table

_CELLS: Final = 20  # about as many intervals at level 1
_FEWEST: Final = 3  # intervals of the coarsest level, at most
_CROWDED: Final = 0.8  # a share of the records in one interval that says: too wide
_DECADES: Final = 6
_WIDEST: Final = 1e307
_CALENDAR: Final = ("hour", "day", "month", "quarter", "year", "decade")
_POSTCODE_WORDS: Final = frozenset(
    "zip zipcode postal postalcode postcode postcodes plz postleitzahl cep".split()
)


#: What can be asked for instead of what fits best.
KINDS: Final = (
    "intervals",
    "sizes",
    "quantiles",
    "rounding",
    "dates",
    "prefixes",
    "ordered",
    "frequency",
    "suppression",
)


def proposed(table: Table, column: str, kind: str | None = None) -> Rule:
    """The rule that fits a column, or the best one of a kind."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"There is no kind of hierarchy '{kind}'. {did_you_mean(kind, KINDS)}")
    coded = table.codes(column)
    values = coded.levels
    if len(values) < 3 or kind == "suppression":
        return Suppression()  # one value has nothing coarser, and two only the root
    records = coded.counts[: len(values)]
    return _fitting(values, records) if kind is None else _of_kind(kind, values, records)


def _fitting(values: pl.Series, records: npt.NDArray[np.int64]) -> Rule:
    kind = kind_of(values.dtype)
    if kind in ("date", "datetime", "time"):
        return _date_rule(values)
    postcode = not _POSTCODE_WORDS.isdisjoint(words_of(values.name))
    if kind == "text":
        return text_rule(values, records, code=postcode or is_code(values))
    if kind == "integer" and postcode and values[0] >= 0:
        return _prefix_rule(values)
    return _number_rule(values, records)


def _of_kind(kind: str, values: pl.Series, records: npt.NDArray[np.int64]) -> Rule:
    if kind == "dates":
        return _date_rule(values)
    if kind == "prefixes":
        return _prefix_rule(values)
    if kind == "ordered":
        return ordered_rule(as_text(values).to_list())
    if kind == "frequency":
        return frequency_rule(as_text(values).to_list(), records)
    if kind == "quantiles":
        return _useful(quantile_edges(np.repeat(numbers_of(values), records), (8, 4, 2)), values)
    numbers = numbers_of(values)
    if kind == "sizes":
        return _useful(_by_size(numbers), values)
    return _useful(grid(_widths(numbers), rounds=kind == "rounding"), values)


def _prefix_rule(values: pl.Series) -> Rule:
    whole = kind_of(values.dtype) == "integer"
    return pruned_prefixes(values, pad=len(str(values[-1])) if whole else None) or Suppression()


def _date_rule(values: pl.Series) -> Rule:
    """The units that join something and leave more than one."""
    first = {"time": "hour", "date": "month"}.get(kind_of(values.dtype), "hour")
    units = _CALENDAR[_CALENDAR.index(first) :] if kind_of(values.dtype) != "time" else (first,)
    return _useful(calendar(units), values)


def _useful(rule: Edges | Grid | Dates, values: pl.Series) -> Rule:
    """The same without levels that join nothing or everything."""
    kept = useful_levels(rule.rungs(values, "refuse"), len(values))
    if not kept:
        return Suppression()
    if isinstance(rule, Grid):
        return replace(rule, widths=tuple(rule.widths[level] for level in kept))
    if isinstance(rule, Edges):
        return Edges(tuple(rule.edges[level] for level in kept))
    return Dates(tuple(rule.units[level] for level in kept))


def _number_rule(values: pl.Series, records: npt.NDArray[np.int64]) -> Rule:
    numbers = numbers_of(values)
    widths = _widths(numbers)
    if float(widths[-1]) < _WIDEST:
        even = grid(widths)
        if len(numbers) <= _CELLS or not _is_crowded(even.rungs(values, "refuse")[0], records):
            return _useful(even, values)
    return _useful(_by_size(numbers), values)


def _widths(numbers: npt.NDArray[Any]) -> list[Decimal]:
    """A round width for about twenty intervals, doubled until few are left."""
    span = Decimal(str(numbers[-1])) - Decimal(str(numbers[0]))  # distinct values ascend
    first = max(_round_up(span / _CELLS), Decimal(2 if _is_whole(numbers) else "1e-299"))
    widths = [first]
    while 2 * widths[-1] * (_FEWEST - 1) <= span:
        widths.append(2 * widths[-1])
    return widths


def _is_whole(numbers: npt.NDArray[Any]) -> bool:
    return numbers.dtype.kind in "iu" or bool((numbers == np.round(numbers)).all())


def _is_crowded(rung: Rung, records: npt.NDArray[np.int64]) -> bool:
    """Whether one interval has nearly all records, although they differ."""
    cells = np.bincount(rung.nodes, weights=records)
    fullest = int(cells.argmax())
    several = int((rung.nodes == fullest).sum()) > 1
    return several and cells[fullest] > _CROWDED * records.sum()


def _by_size(numbers: npt.NDArray[Any]) -> Edges:
    """Edges at 1, 2 and 5 times powers of ten on both sides of 0, for numbers of all sizes."""
    low, high = (Decimal(str(end)) for end in (numbers[0], numbers[-1]))
    largest = max(abs(low), abs(high)).adjusted()
    smallest = max(largest - _DECADES, 0 if _is_whole(numbers) else -290)
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
