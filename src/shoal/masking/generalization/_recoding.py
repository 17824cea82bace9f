"""The result of a search: the text of each record and column, and what its choices reveal.

Local recoding gives a class the lowest nodes that its members have in common, so that the members
of a class are never all under one child of a released node. A full-domain search takes the least
loss, so that with one column a level finer too many records would have been in classes that fail.
Anyone who reads the release and knows the hierarchies can conclude both (Cohen 2022, downcoding).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.masking.generalization._combinations import distinct_rows
from shoal.table import ROOT, Domain, Hierarchy, HierarchyCodes, Table


@dataclass(frozen=True)
class Minimal:
    """What an intruder can correctly conclude from a recoding.

    ``columns`` are those known to be impossible one level finer. ``cells`` counts the released
    cells that this narrows down, and ``records`` the records with such a cell, among ``released``
    records with ``width`` generalized columns each.
    """

    columns: tuple[str, ...]
    cells: int
    records: int
    released: int
    width: int

    def to_dict(self) -> dict[str, Any]:
        """The facts for the audit."""
        return {
            "columns": list(self.columns),
            "cells": self.cells,
            "records": self.records,
            "released": self.released,
            "width": self.width,
        }


def minimal_nodes(
    trees: Mapping[str, HierarchyCodes],
    at: npt.NDArray[Any],
    classes: Labels,
    codes: Labels,
    counts: Integers,
) -> Minimal:
    """For classes with their own levels: the cells whose class differs one level below.

    ``classes``, ``codes`` and ``counts`` describe combinations.
    """
    narrowed = np.zeros(at.shape, np.bool_)
    for place, tree in enumerate(trees.values()):
        below = np.maximum(at[:, place] - 1, 0)
        nodes = tree.maps[below[classes], codes[:, place]]
        lowest = np.full(len(at), tree.column.count, np.int64)
        highest = np.full(len(at), -1, np.int64)
        np.minimum.at(lowest, classes, nodes)
        np.maximum.at(highest, classes, nodes)
        narrowed[:, place] = (at[:, place] > 0) & (lowest < highest)
    columns = [name for place, name in enumerate(trees) if narrowed[:, place].any()]
    return _minimal(columns, narrowed[classes], counts)


def _minimal(columns: Sequence[str], narrowed: Flags, counts: Integers) -> Minimal:
    """The facts about narrowed cells, [combination, column]."""
    return Minimal(
        tuple(columns),
        int(counts @ narrowed.sum(axis=1)),
        int(counts @ narrowed.any(axis=1)),
        int(counts.sum()),
        narrowed.shape[1],
    )


def minimal_levels(
    trees: Mapping[str, HierarchyCodes],
    levels: Mapping[str, int],
    combinations: Labels,
    records: Integers,
    too_fine: Sequence[str],
) -> Minimal:
    """For one level per column: the columns that are too fine one level below, and their cells.

    ``combinations`` are those of the released records, with columns in the order of ``trees``;
    ``records`` counts the records of each. That some class would fail says something about a
    particular class only if no other class could fail: if only its node has several children.
    """
    at_level = [tree.maps[levels[name]] for name, tree in trees.items()]
    cells = np.column_stack(
        [nodes[codes] for nodes, codes in zip(at_level, combinations.T, strict=True)]
    )
    _, labels = distinct_rows(cells)
    narrowed = np.zeros(cells.shape, np.bool_)
    for place, (name, tree) in enumerate(trees.items()):
        if name not in too_fine:
            continue
        edges, _ = distinct_rows(np.column_stack([at_level[place], tree.maps[levels[name] - 1]]))
        several = np.bincount(edges[:, 0]) > 1
        could = several[cells[:, place]]
        if len(np.unique(labels[could])) == 1:
            narrowed[could, place] = True
    return _minimal(too_fine, narrowed, records)


#: The value that carries no information.
TOP = ROOT


@dataclass(frozen=True, eq=False, repr=False)
class Scale:
    """The released texts of a column as numbers, for models that learn from them.

    ``numbers`` has the middle of each text's interval if ``numeric``, and its rank otherwise.
    """

    texts: tuple[str | None, ...]
    numbers: Floats
    numeric: bool


class Served(Protocol):
    """How later rows are mapped into the released domain; it holds no record."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The generalized columns."""

    def apply(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """The rows in the released domain."""

    def cover(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """Each row once for every released class to which it may belong."""

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        """The texts that these rows can get, as numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Relabelling:
    """One released column: the texts, the text of each record, and the meaning if known."""

    texts: list[str | None]
    of_row: Labels
    domain: Domain | None


@dataclass(frozen=True, eq=False, repr=False)
class Recoding:
    """A generalized table."""

    columns: Mapping[str, Relabelling]  # the changed ones; the others are released unchanged
    loss: float
    suppressed: Flags
    served: Served
    levels: Mapping[str, int] = field(default_factory=dict)  # if each column has one level
    optimal: bool = False  # whether the search proves the optimum
    lattice: Mapping[str, Any] = field(default_factory=dict)  # the explored part of it
    box_of_row: Integers | None = None  # index into the served boxes, if any
    minimal: Minimal | None = None  # None if not counted


def layers_of(found: Recoding) -> dict[str, Any]:
    """The explored lattice by the sum of levels: all, too fine and safe combinations."""
    heights = [int(levels) for levels in found.lattice["heights"]]
    totals = np.ones(1)
    for highest in heights:
        totals = np.convolve(totals, np.ones(highest + 1))
    nodes = found.lattice["nodes"]
    sums = nodes["levels"].reshape(len(nodes), -1).sum(axis=1)
    fine = np.bincount(sums[~nodes["feasible"]], minlength=len(totals))
    safe = np.bincount(sums[nodes["feasible"]], minlength=len(totals))
    return {
        "layers": [
            [height, int(total), int(fine[height]), int(safe[height])]
            for height, total in enumerate(totals)
        ],
        "chosen": sum(found.levels.values()),
        "size": int(totals.sum()),
        "looked_at": int(found.lattice["visited"]),
        "proved": found.optimal,
    }
