"""The geometry of the pictures; ``templates/figures.html.j2`` draws it as inline SVG.

All numbers are in units of the picture's own box, which is about as wide as a phone, so that its
text there has the size of the page's text. The page sets the colors of "before" and "after".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from shoal.table import ROOT
from shoal.workflow.release._calendar import date_text
from shoal.workflow.release._profile import SIZE_LIMITS, Bar

WIDTH = 330.0
SMALL_WIDTH = 290.0
_LAYER, _LAYER_LEFT = 13.0, 40.0  # the height of a layer of a lattice, and the room for its label
_MISSING = "missing"
_ASIDE = {ROOT: 34.0, _MISSING: 54.0}  # bars without a number, and the room for their labels


@dataclass(frozen=True)
class Tick:
    """A place on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Column:
    """A vertical bar before and after: its place and the two heights."""

    bar: Bar
    x: float
    width: float
    before: float | None
    after: float


@dataclass(frozen=True)
class Chart:
    """The box of a picture, where its axes cross and end, and their ticks."""

    width: float
    height: float
    left: float
    top: float
    base: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class BarChart(Chart):
    """Vertical bars; "after" is drawn in front of "before"."""

    columns: tuple[Column, ...]

    @property
    def silhouette(self) -> str:
        """The outline of the "before" bars, as one path for each run of neighbors."""
        path, end = "", -1.0
        for column in self.columns:
            if not column.before:
                continue
            if abs(column.x - end) > 0.01:  # not a neighbor: down to the base, and start again
                path += (f"V{self.base}" if path else "") + f"M{column.x:.1f} {self.base}"
            end = column.x + column.width
            path += f"V{self.base - column.before:.1f}H{end:.1f}"
        return path and f"{path}V{self.base}"


@dataclass(frozen=True)
class Line:
    """A line through known points: (chance, percent of records above it) and its drawing.

    The point at chance 1 is the percent of records that are found for certain.
    """

    points: tuple[tuple[float, float], ...]
    places: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.places)


@dataclass(frozen=True)
class RiskChart(Chart):
    """The share of records whose risk is above each chance, and the chance that none exceeds."""

    before: Line | None
    after: Line
    limit: Tick | None


def class_size_chart(bars: Sequence[Bar]) -> BarChart:
    """The share of records by the size of their class."""
    height, left, top, base = 210.0, 34.0, 26.0, 176.0
    largest = max(max(bar.before or 0.0, bar.after) for bar in bars)
    most = next(m for m in (4.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0) if largest <= m)
    scale = (base - top) / most
    slot = (WIDTH - left) / len(bars)
    columns = tuple(
        Column(bar, left + i * slot + 3, slot - 6, _times(bar.before, scale), bar.after * scale)
        for i, bar in enumerate(bars)
    )
    ticks = tuple(Tick(c.x + c.width / 2, c.bar.label) for c in columns)
    shares = _percent_ticks(most, base, scale)
    return BarChart(WIDTH, height, left, top, base, ticks, shares, columns)


def histogram(bars: Sequence[Bar], *, dates: bool = False) -> BarChart:
    """The distribution of numbers or dates: areas are shares, as wide as the range they cover."""
    height, top, base = 118.0, 4.0, 98.0
    numbers = [bar for bar in bars if bar.label not in _ASIDE]
    aside = [bar for bar in bars if bar.label in _ASIDE]
    spans = value_spans(numbers) or [(float(i), i + 1.0) for i in range(len(numbers))]
    room = SMALL_WIDTH - sum(_ASIDE[bar.label] for bar in aside)
    low, high = (spans[0][0], spans[-1][1]) if spans else (0.0, 1.0)
    unit = min((b - a for a, b in spans), default=1.0)
    columns = [
        Column(
            bar,
            (a - low) / (high - low) * room,
            (b - a) / (high - low) * room,
            _times(bar.before, unit / (b - a)),
            bar.after * unit / (b - a),
        )
        for bar, (a, b) in zip(numbers, spans, strict=True)
    ]
    ends = [room + at for at in itertools.accumulate(_ASIDE[bar.label] for bar in aside)]
    columns += [
        Column(bar, end - 20, 20.0, bar.before, bar.after)
        for bar, end in zip(aside, ends, strict=True)
    ]
    most = max(max(c.before or 0.0, c.after) for c in columns) or 1.0
    scale = (base - top) / most
    scaled = tuple(
        replace(c, before=_times(c.before, scale), after=c.after * scale) for c in columns
    )
    in_words = date_text if dates else "{:,.10g}".format
    ticks = _range_ticks(spans if value_spans(numbers) else [], room, in_words)
    ticks += [
        Tick(end if bar.label == _MISSING else end - 10, bar.label)
        for bar, end in zip(aside, ends, strict=True)
    ]
    return BarChart(SMALL_WIDTH, height, 0.0, top, base, tuple(ticks), (), scaled)


def value_spans(bars: Sequence[Bar]) -> list[tuple[float, float]] | None:
    """The ranges of numbers that the bars cover, if they follow each other."""
    spans = [(bar.low, bar.high) for bar in bars if bar.low is not None and bar.high is not None]
    joined = all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    rising = all(low < high for low, high in spans)
    return spans if joined and rising and len(spans) == len(bars) else None


def risk_chart(bars: Sequence[Bar], sizes_after: Sequence[tuple[int, float]], k: int) -> RiskChart:
    """The share of records whose risk, one over the size of their class, is above a chance.

    Nobody's chance is above 1. The last point shows the records that are found for certain: those
    with a chance above 1 in 2, since no chance lies between the two.

    ``bars`` describe the original, of which nothing else may be shown. ``sizes_after`` holds the
    percent of released records in classes smaller than each size.
    """
    height, left, top, base = 210.0, 34.0, 26.0, 176.0

    def place(above: Sequence[tuple[float, float]]) -> Line:
        points = [(x, y) for x, y in above if x < 1] + [(1.0, y) for x, y in above if x == 1 / 2]
        spots = [(_chance_at(x, left), base - y / 100 * (base - top)) for x, y in points]
        return Line(tuple(points), tuple(spots))

    before = risk_points(bars)
    after = sorted((1 / size, share) for size, share in sizes_after)
    ticks = [Tick(_chance_at(1 / size, left), f"1 in {size}") for size in (100, 20, 5, 2)]
    ticks.append(Tick(_chance_at(1.0, left), "certain"))
    shares = _percent_ticks(100, base, (base - top) / 100)
    limit = Tick(_chance_at(1 / k, left), f"nobody above 1 in {k}") if 1 < k < 50 else None
    curves = (place(before) if before else None, place(after))
    return RiskChart(WIDTH, height, left, top, base, tuple(ticks), shares, *curves, limit)


def risk_points(bars: Sequence[Bar]) -> list[tuple[float, float]]:
    """Percent of original records above each chance that is a limit of a bar."""
    known = [bar.before for bar in bars if bar.before is not None]
    if len(bars) < 2 or len(known) < len(bars) or sum(known) == 0:
        return []
    smaller = [0.0, *itertools.accumulate(known)]  # percent in classes smaller than each bar's
    # rounded shares need not add up to 100, but the curve is about all records
    shares = [float(round(100 * percent / smaller[-1])) for percent in smaller[:-1]]
    lows = [int(bar.label.split("–")[0].rstrip("+")) for bar in bars]
    return sorted((1 / low, share) for low, share in zip(lows, shares, strict=True))


def smaller_than(records_by_size: Mapping[str, int], k: int) -> list[tuple[int, float]]:
    """Percent of records in classes smaller than each limit, and than k (always 0)."""
    counts = list(records_by_size.values())
    below = [0, *itertools.accumulate(counts)]
    shares = {limit: 100 * b / sum(counts) for limit, b in zip(SIZE_LIMITS, below, strict=False)}
    if k < SIZE_LIMITS[-1]:
        shares[k] = 0.0
    return sorted(shares.items())


def shoal(k: int) -> list[tuple[float, float]]:
    """Where the k fish of the headline swim: in staggered rows."""
    fish = min(max(k, 1), 30)
    rows = math.ceil(math.sqrt(fish / 1.6)) if fish > 2 else 1
    places = []
    for i in range(fish):
        row, column = i % rows, i // rows
        places.append((column * 34.0 + (row % 2) * 15.0, row * 19.0 + (column % 2) * 5.0))
    return places


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _chance_at(chance: float, left: float) -> float:
    """The place of a chance between 1 in 100 and certain, in steps of equal ratio."""
    share = 1 + math.log(chance) / math.log(SIZE_LIMITS[-1])
    return left + 8 + share * (WIDTH - left - 26)


def _percent_ticks(most: float, base: float, scale: float) -> tuple[Tick, ...]:
    step = most / (5 if most == 100 else 4)
    values = [i * step for i in range(round(most / step) + 1)]
    return tuple(Tick(base - value * scale, f"{value:g}") for value in values)


def _range_ticks(
    spans: Sequence[tuple[float, float]], room: float, in_words: Callable[[float], str]
) -> list[Tick]:
    """The lowest and the highest limit, and one between them if there is room."""
    if not spans:
        return []
    low, high = spans[0][0], spans[-1][1]
    ends = [Tick(0.0, in_words(low)), Tick(room, in_words(high))]
    middle = min((a for a, _ in spans), key=lambda a: abs(a - (low + high) / 2))
    label = in_words(middle)
    if middle > low and max(len(label), len(ends[0].label), len(ends[1].label)) <= 9:
        ends.insert(1, Tick((middle - low) / (high - low) * room, label))
    return ends


def lattice_picture(facts: Mapping[str, Any]) -> SimpleNamespace | None:
    """The geometry, from what a release records about the search; None if there was none.

    A layer has all combinations with the same sum of levels and is drawn as a centered line, from
    the most general one down to the original values. Each of its lines has a start and a width.
    """
    lattice = facts.get("lattice")
    if not lattice:
        return None
    widest = max(total for _, total, _, _ in lattice["layers"])
    room, middle = WIDTH - _LAYER_LEFT, (WIDTH + _LAYER_LEFT) / 2

    def span(count: int) -> tuple[float, float]:
        width = room * count / widest
        return middle - width / 2, width

    layers = []
    for place, (height, total, fine, safe) in enumerate(reversed(lattice["layers"])):
        start, width = span(fine + safe)
        share = fine / max(1, fine + safe)
        layers.append(
            SimpleNamespace(
                height=height,
                y=_LAYER * (place + 1),
                total=total,
                coarse_enough=safe,
                too_fine=fine,
                whole=span(total),
                fine=(start, width * share),
                safe=(start + width * share, width * (1 - share)),
                chosen=height == lattice["chosen"],
            )
        )
    left = [f"{layer.whole[0]:.1f} {layer.y:.1f}" for layer in layers]
    right = [f"{sum(layer.whole):.1f} {layer.y:.1f}" for layer in reversed(layers)]
    return SimpleNamespace(
        width=WIDTH,
        height=_LAYER * (len(layers) + 1),
        middle=middle,
        layers=layers,
        outline="M" + "L".join([*left, *right]) + "Z",
        **{name: lattice[name] for name in ("size", "looked_at", "proved")},
    )
