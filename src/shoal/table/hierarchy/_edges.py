"""Intervals between given edges, such as age groups or quantiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Integers
from shoal.table.columns._domain import interval_meanings
from shoal.table.columns._encode import encode
from shoal.table.hierarchy._grid import exact_number, plain, written
from shoal.table.hierarchy._round_ends import RoundEnds
from shoal.table.hierarchy._rule import Rule, Rung, Unseen, dense, numbers_of


@dataclass(frozen=True)
class Edges(Rule):
    """Intervals that begin at edges; each level keeps some of the edges of the one below."""

    edges: tuple[tuple[Decimal, ...], ...]

    kind = "edges"

    @property
    def inner_levels(self) -> int:
        return len(self.edges)

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
    """Intervals by one list of edges or by a list of lists, each a part of the one before.

    Of one list, level by level every second edge is left out.
    """
    several = len(edges) > 0 and all(isinstance(one, (list, tuple)) for one in edges)
    given = [list(one) for one in edges] if several else [list(edges)]
    if several and levels is not None:
        raise InputError("Edges for every level are given, so 'levels' has nothing to say.")
    exact = [tuple(exact_number(edge, "edges") for edge in one) for one in given]
    for one in exact:
        if not one or any(low >= high for low, high in itertools.pairwise(one)):
            raise InputError("The edges of a hierarchy must be ascending numbers, at least one.")
    for finer, coarser in itertools.pairwise(exact):
        lost = len(set(coarser) - set(finer))
        if lost or len(coarser) >= len(finer):
            raise InputError(
                f"{lost} edges of a coarser level are not edges of the level below, or none is "
                "left out there; levels nest only if each keeps a part of the edges of the one "
                "before it."
            )
    while not several and len(exact) < (levels or 1) and len(exact[-1]) > 1:
        exact.append(exact[-1][1::2])
    return Edges(tuple(exact))


def quantile_edges(values: Any, groups: Sequence[int]) -> Edges:
    """Edges that part the values into groups of about equal size; equal values stay together.

    An edge is the roundest number between the two values that it parts, and nobody's alone.
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = np.sort(numbers[~np.isnan(numbers)]) + 0.0
    if not len(numbers) or np.isinf(numbers).any():
        raise InputError("Quantiles need finite numbers; got none, or infinite ones among them.")
    if not groups or any(not isinstance(g, (int, np.integer)) or g < 2 for g in groups):
        raise InputError("The groups of quantiles must be whole numbers of 2 or more.")
    if any(finer % coarser or finer == coarser for finer, coarser in itertools.pairwise(groups)):
        raise InputError(
            "The groups of quantiles must be divisors, each of the one before it, such as "
            "8, 4, 2; other quantiles do not nest."
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
    """The number of edges that are not above each value."""
    if numbers.dtype.kind == "f":
        return np.searchsorted([float(edge) for edge in edges], numbers, side="right")
    # as whole numbers: a float cannot tell the largest ones apart
    ends = np.iinfo(numbers.dtype)
    whole = [math.ceil(edge) for edge in edges]
    below = sum(edge <= ends.min for edge in whole)
    inside = np.array([edge for edge in whole if ends.min < edge <= ends.max], numbers.dtype)
    return below + np.searchsorted(inside, numbers, side="right")
