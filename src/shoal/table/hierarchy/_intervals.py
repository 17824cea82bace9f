"""Intervals: grids of equal width or of rounded numbers, or between edges such as quantiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._domain import interval_meanings, value_meanings, written
from shoal.table.columns._encode import encode
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import numbers_of, scale_of
from shoal.table.hierarchy._round_ends import RoundEnds
from shoal.table.hierarchy._rule import Rule, Rung, Unseen, dense

_EXACT: Final = 700  # digits, so that products and sums of doubles as decimals are not rounded
_WHOLE: Final = 2.0**53  # a float cannot hold every larger whole number
_MOST_CELLS: Final = 2.0**50  # beyond this, floats do not distinguish neighboring cells


@dataclass(frozen=True)
class Grid(Rule):
    """Cells of one width per level; the first level assigns values to cells, others join cells.

    The cells of level ``n`` begin at multiples of ``widths[n]`` after ``-shifts[n]`` widths of
    the level below. Each level is computed from the one below, so that levels nest despite the
    rounding of floats. With ``whole``, ends are rounded up to whole numbers: [2.5, 5) is [3, 5).
    """

    widths: tuple[Decimal, ...]
    origin: Decimal
    rounds: bool
    whole: bool = False

    kind = "intervals"
    per_level = "widths"

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        if not self.widths:
            return []
        with localcontext() as context:
            context.prec = _EXACT
            start = self.origin - self.widths[0] / 2 if self.rounds else self.origin
            numbers = numbers_of(values)
            if self.whole and numbers.dtype.kind == "f":
                numbers = np.floor(numbers)  # not below a rounded end exactly if not below the end
            cells, nodes = _cells(numbers, self.widths[0], start)
            scale = scale_of(kind_of(values.dtype))
            rungs = [self._rung(0, cells, nodes, start, scale)]
            for level in range(1, len(self.widths)):
                finer, width = self.widths[level - 1], self.widths[level]
                joined = int(width / finer)
                shift = joined // 2 if self.rounds else 0
                start -= shift * finer
                cells, parent = _distinct([(cell + shift) // joined for cell in cells])
                nodes = parent[nodes] if len(parent) else nodes
                rungs.append(self._rung(level, cells, nodes, start, scale))
        return rungs

    def _rung(
        self,
        level: int,
        cells: Sequence[int],
        nodes: npt.NDArray[np.int32],
        start: Decimal,
        scale: str,
    ) -> Rung:
        width = self.widths[level]
        ends = [(start + width * cell, start + width * (cell + 1)) for cell in cells]
        if self.whole:
            ends = [(_rounded_up(low), _rounded_up(high)) for low, high in ends]
        bounds = np.array([(float(low), float(high)) for low, high in ends]).reshape(-1, 2)
        if self.rounds:
            labels = [written(self.origin + width * cell) for cell in cells]
            meanings = value_meanings(scale, labels)
        else:
            low, high = ([written(end[side]) for end in ends] for side in (0, 1))
            meanings = interval_meanings(low, high, bounds)
        return Rung(nodes, list(meanings), bounds, meanings=meanings)

    def to_plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = {
            "rounding" if self.rounds else "intervals": [plain(width) for width in self.widths]
        }
        plan |= {"origin": plain(self.origin)} if self.origin else {}
        return plan | ({"whole": True} if self.whole else {})

    def describe(self) -> str:
        widths = ", ".join(map(written, self.widths))
        of = "rounded to" if self.rounds else "intervals of"
        return f"{of} {widths}" + (", in whole numbers" if self.whole else "")


def grid(
    widths: Sequence[Any], *, origin: Any = 0, rounds: bool = False, whole: bool = False
) -> Grid:
    """A grid with checked widths, each a multiple of the one before."""
    called = "bases" if rounds else "widths"
    exact = tuple(exact_number(width, called) for width in widths)
    if not exact or min(exact) <= 0:
        raise InputError(f"The {called} of a hierarchy must be at least one number above 0.")
    for finer, coarser in itertools.pairwise(exact):
        ratio = Fraction(coarser) / Fraction(finer)
        if ratio.denominator != 1 or ratio < 2:
            raise InputError(
                f"Each of the {called} of a hierarchy must be a multiple of the one before it, so "
                f"that levels nest. {written(coarser)} is not a multiple of {written(finer)}. Use, "
                f"for example, {written(finer)}, {written(2 * finer)}, {written(4 * finer)}."
            )
    if not isinstance(whole, bool):
        raise InputError("'whole' of intervals must be true or false.")
    if whole and exact[0] < 1:
        raise InputError("Intervals of whole numbers need a width of at least 1.")
    return Grid(exact, exact_number(origin, "origin"), rounds, whole)


def _rounded_up(end: Decimal) -> Decimal:
    return end.to_integral_value("ROUND_CEILING")


def exact_number(value: Any, called: str) -> Decimal:
    """A finite number as the decimal that is written: 0.1 is exactly a tenth."""
    if not isinstance(value, bool) and isinstance(value, (int, float, Decimal, np.number)):
        decimal = Decimal(str(value))
        # a column of floats cannot be compared with a number that a float cannot hold
        if decimal.is_finite() and (decimal == 0 or 1e-300 < abs(float(decimal)) < 1e308):
            return decimal
    raise InputError(
        f"The {called} of a hierarchy must be finite numbers of ordinary size; got "
        f"{type(value).__name__}."
    )


def plain(value: Decimal) -> int | float:
    """A decimal as a Python number; an int if it is whole."""
    return int(value) if value == value.to_integral_value() else float(value)


def _cells(
    values: npt.NDArray[Any], width: Decimal, start: Decimal
) -> tuple[list[int], npt.NDArray[np.int32]]:
    """The cells that hold a value, in ascending order, and the position of each value's cell."""
    if not len(values):
        return [], np.zeros(0, np.int32)
    if values.dtype.kind in "iu" and width == width.to_integral_value():
        return _whole_cells(values, int(width), int(start.to_integral_value("ROUND_CEILING")))
    floats = values.astype(np.float64)
    guess = np.floor((floats - float(start)) / float(width))
    rounded = values.dtype.kind in "iu" and np.abs(floats).max() > _WHOLE
    if rounded or not np.abs(guess).max() < _MOST_CELLS:
        return _far_cells(values, width, start)
    cells, nodes = dense(guess.astype(np.int64))
    # near an edge the division may be off by one, so the edges themselves decide
    low, high = _edges(cells, width, start), _edges(cells + 1, width, start)
    right = cells[nodes] - (floats < low[nodes]) + (floats >= high[nodes])
    cells, nodes = dense(right)
    return cells.tolist(), nodes


def _edges(cells: Integers, width: Decimal, start: Decimal) -> Floats:
    return np.array([float(start + width * cell) for cell in cells.tolist()])


def _whole_cells(
    values: npt.NDArray[Any], width: int, start: int
) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Cells of whole numbers, exact at both ends of 64 bits."""
    lowest = int(values.min())
    first, into = divmod(lowest - start, width)
    # distances as unsigned words: exact even when the range exceeds half of all integers
    far = values.view(np.uint64) - values.min().view(np.uint64)
    if width > 2**64 - 1:
        steps = (far >= width - into) if width - into < 2**64 else np.zeros(len(far), np.bool_)
    else:
        steps = far // np.uint64(width) + (far % np.uint64(width) >= np.uint64(width - into))
    found, nodes = dense(steps.astype(np.uint64))
    return [first + int(step) for step in found], nodes


def _far_cells(
    values: npt.NDArray[Any], width: Decimal, start: Decimal
) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Cells by exact fractions, for numbers that are huge compared to the width."""
    exact, first = Fraction(width), Fraction(start)
    return _distinct([(Fraction(value) - first) // exact for value in values.tolist()])


def _distinct(cells: Sequence[int]) -> tuple[list[int], npt.NDArray[np.int32]]:
    """The distinct cells, however large, in ascending order, and the position of each cell."""
    found = sorted(set(cells))
    place = {cell: at for at, cell in enumerate(found)}
    return found, np.array([place[cell] for cell in cells], np.int32)


@dataclass(frozen=True)
class Edges(Rule):
    """Intervals that begin at edges; each level keeps some of the edges of the one below."""

    edges: tuple[tuple[Decimal, ...], ...]

    kind = "edges"
    per_level = "edges"

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        numbers = numbers_of(values)
        rungs = []
        for edges in self.edges:
            cells, nodes = dense(_between(numbers, edges))
            ends = np.array([-np.inf, *map(float, edges), np.inf])
            bounds = np.column_stack((ends[cells], ends[cells + 1]))
            shown = [None, *map(written, edges), None]
            low, high = ([shown[cell + side] for cell in cells.tolist()] for side in (0, 1))
            meanings = interval_meanings(low, high, bounds)
            rungs.append(Rung(nodes, list(meanings), bounds, meanings=meanings))
        return rungs

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: [[plain(edge) for edge in edges] for edges in self.edges]}

    def describe(self) -> str:
        counts = ", ".join(str(len(edges) + 1) for edges in self.edges)
        return f"{counts} intervals between given edges"


def between(edges: Sequence[Any], *, levels: int | None = None) -> Edges:
    """Intervals from one list of edges, or from lists that are each a part of the one before."""
    several = len(edges) > 0 and all(isinstance(one, (list, tuple)) for one in edges)
    given = [list(one) for one in edges] if several else [list(edges)]
    if several and levels is not None:
        raise InputError("'edges' already lists edges for every level. Leave out 'levels'.")
    exact = [tuple(exact_number(edge, "edges") for edge in one) for one in given]
    for one in exact:
        if not one or any(low >= high for low, high in itertools.pairwise(one)):
            raise InputError("The edges of a hierarchy must be at least one number, ascending.")
    for finer, coarser in itertools.pairwise(exact):
        lost = len(set(coarser) - set(finer))
        if lost or len(coarser) >= len(finer):
            raise InputError(
                f"Each level must have some, but not all, edges of the level before it. "
                f"{lost} edges of a coarser level are not edges of the level below. Use a part of "
                "those edges."
            )
    while not several and len(exact) < (levels or 1) and len(exact[-1]) > 1:
        exact.append(exact[-1][1::2])
    return Edges(tuple(exact))


def quantile_edges(values: Any, groups: Sequence[int]) -> Edges:
    """Edges that split the values into groups of similar size; equal values stay together."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = np.sort(numbers[~np.isnan(numbers)]) + 0.0
    if not len(numbers) or np.isinf(numbers).any():
        raise InputError("Quantiles need finite numbers; got none, or some that are infinite.")
    if not groups or any(not isinstance(g, (int, np.integer)) or g < 2 for g in groups):
        raise InputError("The groups of quantiles must be whole numbers of 2 or more.")
    if any(finer % coarser or finer == coarser for finer, coarser in itertools.pairwise(groups)):
        raise InputError(
            "Each number of groups must divide the one before it, such as 8, 4, 2. Other "
            "quantiles do not nest."
        )
    ladder: list[tuple[Decimal, ...]] = []
    line = RoundEnds.of(encode(pl.Series(numbers)))
    for count in groups:
        places = [math.ceil(at * len(numbers) / count) for at in range(1, count)]
        above = np.unique(numbers[np.minimum(places, len(numbers) - 1)])
        above = above[above > numbers[0]]
        below = numbers[np.searchsorted(numbers, above) - 1]
        cuts, found = line.between(below, above)
        cuts = np.where(found, cuts, line.beside(above)[0])
        edges = tuple(Decimal(text) for text in line.texts(cuts))
        if edges and (not ladder or len(edges) < len(ladder[-1])):
            ladder.append(edges)
    return Edges(tuple(ladder))


def _between(numbers: npt.NDArray[Any], edges: Sequence[Decimal]) -> Integers:
    """The number of edges at or below each value."""
    if numbers.dtype.kind == "f":
        return np.searchsorted([float(edge) for edge in edges], numbers, side="right")
    # as integers, because floats do not distinguish the largest ones
    ends = np.iinfo(numbers.dtype)
    whole = [math.ceil(edge) for edge in edges]
    below = sum(edge <= ends.min for edge in whole)
    inside = np.array([edge for edge in whole if ends.min < edge <= ends.max], numbers.dtype)
    return below + np.searchsorted(inside, numbers, side="right")
