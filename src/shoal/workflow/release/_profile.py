"""Pictures of a table that may be published: shares over crowds, never a person.

Everything derived from the original passes through here before it is published. Bars with fewer
than :data:`SMALLEST_CROWD` original records are merged with their neighbors, and shares are rounded
to steps of a crowd. Limits and labels come only from the released table.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers
from shoal.table import ROOT, Table
from shoal.workflow.release._calendar import Bins, spans_of_dates
from shoal.workflow.release._crowds import SMALLEST_CROWD, crowded_percent

SIZE_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100)
#: The sizes of classes from each limit to below the next.
SIZE_LABELS = ("1", "2", "3-4", "5-9", "10-19", "20-49", "50-99", "100+")
_MOST_BARS = 20
_EXACT = 2**53
_NUMBERS = ("integer", "float")
_DATES = ("date", "datetime")


@dataclass(frozen=True)
class Bar:
    """One bar of a picture: percents of the records before and after masking.

    ``low`` and ``high`` are the ends of a range of numbers.
    """

    label: str
    before: float | None
    after: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ColumnProfile:
    """What happened to one column.

    ``numeric`` columns have bars over ranges of numbers, or of dates in days. If ``intervals`` were
    released, each is spread evenly over its width. ``left`` says what a reader still has of it, and
    ``label`` what the column is, in the words of a labelled file.
    """

    name: str
    role: str | None
    kind: str
    status: Literal["unchanged", "changed", "removed"]
    changed_percent: float | None
    bars: tuple[Bar, ...]
    numeric: bool
    intervals: bool = False
    left: str = ""
    label: str = ""

    @property
    def dates(self) -> bool:
        """Whether the bars are over ranges of dates."""
        return self.kind in _DATES

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def class_size_profile(original: Table, masked: Table) -> tuple[Bar, ...]:
    """The share of records in classes of each range of sizes, before and after."""
    classes = (table.classes for table in (original, masked))
    before, after = (records_by_size(each.sizes, each.rows) for each in classes)
    labels = [label.replace("-", "–") for label in SIZE_LABELS]
    spans = _crowded_spans(before)
    first, end = spans[-1]
    last = max(int(np.flatnonzero(before)[-1]), first) if original.records else end
    # empty bars at the end stay separate: they describe nobody, and one wide bar shows nothing
    spans[-1:] = [(first, last), *((empty, empty) for empty in range(last + 1, end + 1))]
    joined = [_joined_size_label(labels[first : last + 1]) for first, last in spans]
    sums = _sums(before, spans), _sums(after, spans)
    return _bars(joined, *sums, original.records, masked.records)


def records_by_size(sizes: Integers, rows: Integers) -> Floats:
    """The number of records in classes from each size limit to below the next."""
    places = np.searchsorted(SIZE_LIMITS, sizes, side="right") - 1
    return np.bincount(places, rows, len(SIZE_LIMITS)).astype(np.float64)


def column_profiles(
    original: Table, masked: Table, *, shifted: Container[str] = ()
) -> list[ColumnProfile]:
    """What happened to each column of the original, except identifiers.

    ``shifted`` has the columns of shifted dates, of which no picture shows the original: whoever
    knows the period of the true dates can leave out many shifts.
    """
    names = [n for n in original.columns if n not in original.roles.withheld]
    changed = {n: masked.changed_count(n, original) for n in names if n in masked.columns}
    return [
        column_profile(
            original, masked, name, changed.get(name, 0) / masked.records, alone=name in shifted
        )
        for name in names
    ]


def column_profile(
    original: Table,
    masked: Table | None,
    name: str,
    changed: float | None,
    *,
    alone: bool = False,
) -> ColumnProfile:
    """What happened to one column; ``changed`` is the share of changed cells, None if unknown.

    With ``alone``, the picture does not show the original.
    """
    role, kind = original.roles.of(name), original.kind(name)
    if masked is None or name not in masked.columns:
        return ColumnProfile(name, role, kind, "removed", None, (), False)
    numeric = any(kind in kinds and masked.kind(name) in kinds for kinds in (_NUMBERS, _DATES))
    if 0 < len(masked.value_labels(name)) == masked.distinct(name):
        numeric = False  # codes, each with a label
    bars_of = _numeric_bars if numeric else _value_bars
    if changed == 0:
        # the original is not shown next to it: if a few records were removed, the difference
        # between two otherwise equal pictures would be those records
        bars = bars_of(None, masked, name)
        return ColumnProfile(name, role, kind, "unchanged", 0.0, bars, numeric)
    share = None if changed is None else crowded_percent(changed, masked.records)
    shown = None if alone else original
    if not numeric and (released := _released_intervals(original, masked, name)) is not None:
        bars = _interval_bars(kind, shown, masked, name, *released)
        return ColumnProfile(name, role, kind, "changed", share, bars, True, intervals=True)
    bars = bars_of(shown, masked, name)
    return ColumnProfile(name, role, kind, "changed", share, bars, numeric)


def _numeric_bars(original: Table | None, masked: Table, name: str) -> tuple[Bar, ...]:
    column = masked.column(name)
    ends = column.ends
    if ends is None:
        return (Bar("missing", None, 100.0),)
    kind = masked.kind(name)
    bins = Bins.for_range(*ends, _MOST_BARS) if kind in _DATES else None
    edges = _round_edges(*ends, kind) if bins is None else bins.edges(*ends)
    after = column.counts_between(_open(edges))
    return _bars_between(edges, after, original, masked, name, bins, whole=kind == "integer")


def _released_intervals(
    original: Table, masked: Table, name: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """The ends of the intervals that numbers or dates became, and how many records have each."""
    kind = original.kind(name)
    if kind not in (*_NUMBERS, *_DATES) or masked.kind(name) != "text":
        return None
    column, domain = masked.codes(name), masked.column(name).domain(kind)
    if kind in _DATES:
        stretches = spans_of_dates(column.texts, domain)
    else:
        stretches = domain.stretches(whole=kind == "integer")
    if stretches is None or not np.isfinite(stretches).any():
        return None
    known = [text != ROOT for text in column.texts]
    counts = column.counts[: len(column.texts)]
    return stretches[known], counts[known]


def _interval_bars(
    kind: str,
    original: Table | None,
    masked: Table,
    name: str,
    stretches: npt.NDArray[Any],
    counts: npt.NDArray[Any],
) -> tuple[Bar, ...]:
    """Each released interval spread evenly over its width; open ones end at the picture's edge."""
    ends = stretches[np.isfinite(stretches)]
    low_end, high_end, bins = float(ends.min()), float(ends.max()), None
    if kind in _DATES:
        last = max(low_end, high_end - 1)
        bins = Bins.for_range(low_end, last, _MOST_BARS) if last > low_end else Bins("Y")
        edges = bins.edges(low_end, last)
        if np.isposinf(stretches).any():
            edges = np.append(edges, bins.start(bins.number(edges[-1]) + 1))
    else:
        edges = _round_edges(low_end, high_end, kind)
    if np.isneginf(stretches).any():
        with np.errstate(over="ignore"):
            below = edges[0] - (edges[1] - edges[0])
            below = below if bins is None else bins.start(bins.number(edges[0]) - 1)
            edges = np.concatenate([[below], edges])
    if len(edges) > 2 and (stretches[:, 0] < edges[-2]).all() and edges[-2] >= ends.max():
        edges = edges[:-1]  # nothing begins at the end of the last one
    largest = np.finfo(np.float64).max
    edges = np.unique(np.clip(edges, -largest, largest))
    low, high = np.clip(stretches, edges[0], edges[-1]).T[:, :, None]
    width = high / 2 - low / 2  # halves, since the ends may be the largest numbers of the type
    inside = np.minimum(high, edges[1:]) / 2 - np.maximum(low, edges[:-1]) / 2
    at = (np.searchsorted(edges, low, side="right") - 1).clip(0, len(edges) - 2)
    points = at == np.arange(len(edges) - 1)
    shares = np.where(width > 0, inside.clip(0) / np.where(width > 0, width, 1), points)
    after = np.rint(counts @ shares).astype(np.int64)
    return _bars_between(edges, after, original, masked, name, bins, whole=kind == "integer")


def _open(edges: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The edges with open ends: the outermost bars also hold original values beyond them."""
    return np.concatenate([[-np.inf], edges[1:-1], [np.inf]])


def _bars_between(
    edges: npt.NDArray[Any],
    after: npt.NDArray[Any],
    original: Table | None,
    masked: Table,
    name: str,
    bins: Bins | None,
    *,
    whole: bool,
) -> tuple[Bar, ...]:
    """Bars over ranges of numbers or dates, followed by those of cells without a number."""
    before = None
    if original is not None:
        before = original.column(name).counts_between(_open(edges))
    spans = _crowded_spans(before if before is not None else np.full(len(after), SMALLEST_CROWD))
    ranges = [(float(edges[first]), float(edges[last + 1])) for first, last in spans]
    labels = [
        _range_label(low, high, whole=whole) if bins is None else bins.label(low, high)
        for low, high in ranges
    ]
    old = None if before is None else _sums(before, spans)
    new = _sums(after, spans)
    silent = 0 if masked.kind(name) != "text" else masked.value_counts(name).get(ROOT, 0)
    if silent:
        labels.append(ROOT)
        old, new = None if old is None else np.append(old, 0), np.append(new, silent)
    bars = _with_missing(labels, old, new, original, masked, name)
    placed = [
        replace(bar, low=low, high=high)
        for bar, (low, high) in zip(bars, ranges, strict=False)  # bars without a range may follow
    ]
    return (*placed, *bars[len(placed) :])


def _value_bars(original: Table | None, masked: Table, name: str) -> tuple[Bar, ...]:
    released = masked.value_counts(name)
    before = {} if original is None else original.value_counts(name)
    if released and not released.keys() & before.keys():
        original, before = None, {}  # generalized: the two tables have no value in common
    shown = [
        value
        for value in list(released)[:_MOST_BARS]
        if released[value] >= SMALLEST_CROWD
        and (before.get(value, 0) == 0 or before[value] >= SMALLEST_CROWD)
    ]
    named = masked.value_labels(name)
    if named and masked.kind(name) == "integer":
        shown.sort(key=int)  # answers in the order of their codes
    labels, after = list(shown), [released[value] for value in shown]
    old = [before.get(value, 0) for value in shown]
    others_after = sum(released.values()) - sum(after)
    others_before = sum(before.values()) - sum(old)
    if others_after or others_before >= SMALLEST_CROWD:
        labels.append("all other values")
        after.append(others_after)
        old.append(others_before if others_before >= SMALLEST_CROWD else 0)
    counted = None if original is None else np.array(old)
    labels = [f"{named[text]} ({text})" if text in named else text for text in labels]
    return _with_missing(labels, counted, np.array(after), original, masked, name)


def _with_missing(
    labels: list[str],
    before: npt.NDArray[Any] | None,
    after: npt.NDArray[Any],
    original: Table | None,
    masked: Table,
    name: str,
) -> tuple[Bar, ...]:
    crowd = 0 if original is None else original.missing_count(name)
    crowd = crowd if crowd >= SMALLEST_CROWD else 0
    missing = masked.missing_count(name)
    if missing or crowd:
        labels = [*labels, "missing"]
        after = np.append(after, missing)
        before = None if before is None else np.append(before, crowd)
    rows = 0 if original is None else original.records
    return _bars(labels, before, after, rows, masked.records)


def _crowded_spans(counts: npt.NDArray[Any]) -> list[tuple[int, int]]:
    """Neighboring bins, joined until each holds nobody or a crowd."""
    spans: list[tuple[int, int]] = []
    start, held = 0, 0
    for position, count in enumerate(counts):
        held += int(count)
        if held == 0 or held >= SMALLEST_CROWD:
            spans.append((start, position))
            start, held = position + 1, 0
    if start < len(counts):  # the rest is too small for a bar of its own
        while spans and sum(counts[spans[-1][0] : spans[-1][1] + 1]) == 0:
            start = spans.pop()[0]
        start = spans.pop()[0] if spans else start
        spans.append((start, len(counts) - 1))
    return spans


def _sums(counts: npt.NDArray[Any], spans: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
    return np.array([counts[first : last + 1].sum() for first, last in spans])


def _bars(
    labels: Sequence[str],
    before: npt.NDArray[Any] | None,
    after: npt.NDArray[Any],
    rows_before: int,
    rows_after: int,
) -> tuple[Bar, ...]:
    old: list[float | None] = [None] * len(labels)
    if before is not None:
        # the step depends on the rows of the release: those of the original would reveal its size
        rows = min(rows_before, rows_after)
        old = [crowded_percent(int(count) / rows_before, rows) for count in before]
    new = [_percent(int(c), rows_after) for c in after]
    return tuple(Bar(*bar) for bar in zip(labels, old, new, strict=True))


def _percent(count: int, rows: int) -> float:
    """A whole percent; 0 and 100 stand only for nobody and everybody."""
    if count in (0, rows):
        return 100.0 * (count == rows) if rows else 0.0
    return float(min(99, max(1, round(100 * count / rows))))


def _round_edges(low: float, high: float, kind: str = "float") -> npt.NDArray[Any]:
    """Twenty-odd edges at most, on round numbers, around the released range."""
    largest = max(abs(low), abs(high))
    width = max(high / _MOST_BARS - low / _MOST_BARS, 1.0 if kind == "integer" else 0.0)
    if not width > max(1e-12 * largest, 1e-300):  # finer edges would coincide
        width = max(largest, 1.0) / 10
    magnitude = 10.0 ** math.floor(math.log10(width))
    step = next(f * magnitude for f in (1, 2, 5, 10) if f * magnitude >= width)
    first = math.floor(low / step)
    with np.errstate(over="ignore"):  # the outermost edges may be infinite
        return np.arange(first, math.floor(high / step) + 2) * step


def _range_label(low: float, high: float, *, whole: bool) -> str:
    """A range without its upper end; of whole numbers, from the first to the last one in it."""
    if whole and abs(high) < _EXACT:
        high -= 1
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    """The text of a number at a round edge, with exactly the digits it needs."""
    return f"{value:,.15g}" if abs(value) < 1e15 else f"{value:.6g}"


def _joined_size_label(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    last = labels[-1].split("–")[-1]
    first = labels[0].split("–")[0]
    return f"{first}+" if last.endswith("+") else f"{first}–{last}"
