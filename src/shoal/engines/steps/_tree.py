"""Chunks of similar rows: a tree of cuts at quantiles of a sample.

At each node, the column with the widest range among the rows of the node is cut at its median. With
weights, a range is multiplied by the weight of its column.
Chunks of random rows would lose much more than chunks of neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.engines._engine import HIDDEN, ROW
from shoal.kernels.arrays import Floats, Integers
from shoal.parameters import column_weights
from shoal.randomness import SecretStream


@dataclass(frozen=True)
class Cut:
    """Rows whose column is at most ``number`` go to the first side; a side below 0 is a chunk."""

    column: int
    number: float
    sides: tuple[int, int]


@dataclass(frozen=True)
class Tree:
    """Cuts of some columns; ``levels`` has the values of those that are not numbers.

    ``gaps`` has the numbers that replace missing values, so that equal rows always go to the same
    chunk.
    """

    columns: tuple[str, ...]
    levels: dict[str, pl.Series]
    gaps: tuple[float, ...]
    cuts: tuple[Cut, ...]

    def chunks(self, frame: pl.DataFrame) -> Integers:
        """The chunk of each row."""
        at = np.zeros(frame.height, np.int64)
        if not self.cuts:
            return at
        places = [
            _places(frame[name], self.levels.get(name), gap)
            for name, gap in zip(self.columns, self.gaps, strict=True)
        ]
        for node, cut in enumerate(self.cuts):
            here = at == node
            if here.any():
                low, high = cut.sides
                at[here] = np.where(places[cut.column][here] <= cut.number, low, high)
        return -at - 1


@dataclass(frozen=True)
class ChunkOf:
    """Add the number of the chunk of each row."""

    tree: Tree

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.Series(HIDDEN + "chunk", self.tree.chunks(frame)))


@dataclass(frozen=True)
class DrawnChunk:
    """Add the number of a random chunk for each row, by the hash of its key."""

    key: str
    count: int

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        stream = SecretStream.from_key_hex(self.key)
        hashes = stream.keyed_hash(frame[ROW].to_numpy(), "chunk")
        chunks = (hashes % np.uint64(self.count)).astype(np.int64)
        return frame.with_columns(pl.Series(HIDDEN + "chunk", chunks))


def cuts_of(
    sample: pl.DataFrame,
    columns: Sequence[str],
    total: int,
    *,
    chunk: int,
    weights: Mapping[str, float] | None = None,
) -> Tree:
    """Cuts such that each chunk has about ``chunk`` of the ``total`` rows.

    Judged by the sample, a chunk has at least half as many. If no column has a value to cut at, a
    chunk stays whole.
    """
    levels = {
        name: sample[name].drop_nulls().unique().sort()
        for name in columns
        if not (sample.schema[name].is_numeric() or sample.schema[name].is_temporal())
    }
    known = [_places(sample[name], levels.get(name), np.nan) for name in columns]
    gaps = tuple(min(float(np.nanmin(one, initial=np.inf)), 0.0) - 1.0 for one in known)
    places = np.column_stack(
        [np.where(np.isnan(one), gap, one) for one, gap in zip(known, gaps, strict=True)]
    )
    with np.errstate(over="ignore"):
        spans = np.ptp(places, axis=0) if len(places) else np.ones(len(columns))
    spans = np.minimum(spans, np.finfo(np.float64).max)
    counted = np.array(column_weights(weights, columns, "weights"))
    scaled = places / np.where(spans > 0, spans, 1.0) * counted
    smallest = max(1, int(len(places) * chunk / max(total, 1)))
    cuts: list[Cut | None] = []
    chunks = 0

    def grow(rows: Integers) -> int:
        nonlocal chunks
        found = _best(scaled[rows]) if len(rows) >= 2 * smallest else None
        if found is None:
            chunks += 1
            return -chunks
        column, below = found
        node = len(cuts)
        cuts.append(None)
        number = float(places[rows[below], column].max())
        cuts[node] = Cut(column, number, (grow(rows[below]), grow(rows[~below])))
        return node

    grow(np.arange(len(places)))
    return Tree(tuple(columns), levels, gaps, tuple(cut for cut in cuts if cut is not None))


def _best(scaled: Floats) -> tuple[int, npt.NDArray[np.bool_]] | None:
    """The column with the widest range that can be cut at its median, and the rows below it."""
    for column in np.argsort(-np.ptp(scaled, axis=0), kind="stable").tolist():
        values = scaled[:, column]
        if np.ptp(values) == 0:
            return None
        middle = np.median(values)
        below = values <= middle
        if below.all():
            below = values < middle
        if min(below.sum(), (~below).sum()) * 4 >= len(values):
            return column, below
    return None


def _places(cells: pl.Series, levels: pl.Series | None, gap: float) -> Floats:
    """Cells as numbers: dates as ticks, texts as ranks, and ``gap`` for missing values."""
    if levels is None:
        numbers = cells.to_physical().cast(pl.Float64).to_numpy()
    else:
        ranks = pl.Series(np.arange(len(levels), dtype=np.float64))
        numbers = cells.replace_strict(
            levels, ranks, default=None, return_dtype=pl.Float64
        ).to_numpy()
    return np.where(np.isnan(numbers), gap, numbers)
