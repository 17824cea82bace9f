"""What a search says by not having been finer: facts of its own choices, which anyone can redo.

Local recoding gives a class the lowest nodes that its members have in common, so that the members
of a class are never all under one child of a released node. A full-domain search takes the least
loss, so that with one column a level finer too many records would have been in classes that fail.
Both hold for whoever reads the release and knows the hierarchies (Cohen 2022, downcoding).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Integers, Labels
from shoal.masking.generalization._combinations import distinct_rows
from shoal.table import HierarchyCodes


@dataclass(frozen=True)
class Minimal:
    """What can be concluded from a recoding, and is right.

    ``columns`` are those of which it is known that a level finer was not possible, ``cells`` the
    released cells that this narrows down and ``records`` the records with such a cell, of
    ``released`` records with ``width`` generalized columns each.
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
    trees: Mapping[str, HierarchyCodes], at: npt.NDArray[Any], class_of_row: npt.NDArray[Any]
) -> Minimal:
    """Of classes with levels of their own: the cells whose class differs one level below."""
    sizes = np.bincount(class_of_row, minlength=len(at))
    narrowed = np.zeros(at.shape, np.bool_)
    for place, tree in enumerate(trees.values()):
        below = np.maximum(at[:, place] - 1, 0)
        codes = tree.column.codes[: len(class_of_row)]
        nodes = tree.maps[below[class_of_row], codes]
        lowest = np.full(len(at), tree.column.count, np.int64)
        highest = np.full(len(at), -1, np.int64)
        np.minimum.at(lowest, class_of_row, nodes)
        np.maximum.at(highest, class_of_row, nodes)
        narrowed[:, place] = (at[:, place] > 0) & (lowest < highest)
    return Minimal(
        tuple(name for place, name in enumerate(trees) if narrowed[:, place].any()),
        int(sizes @ narrowed.sum(axis=1)),
        int(sizes @ narrowed.any(axis=1)),
        len(class_of_row),
        len(trees),
    )


def minimal_levels(
    trees: Mapping[str, HierarchyCodes],
    levels: Mapping[str, int],
    combinations: Labels,
    records: Integers,
    too_fine: Sequence[str],
) -> Minimal:
    """Of one level per column: the columns that are too fine a level below, and the cells.

    ``combinations`` are those of the released records, in the order of ``trees``, and ``records``
    how many have each. That some class would fail says of one class only where no other could:
    where its node is the only one that has several children.
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
    return Minimal(
        tuple(too_fine),
        int(records @ narrowed.sum(axis=1)),
        int(records @ narrowed.any(axis=1)),
        int(records.sum()),
        len(trees),
    )
