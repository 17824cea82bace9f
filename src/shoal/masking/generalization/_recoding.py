"""What a search found: for each record and column, the text that is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers, Labels
from shoal.masking.generalization._minimal import Minimal
from shoal.table import ROOT, Domain, Hierarchy, Table

#: The value that says nothing.
TOP = ROOT


@dataclass(frozen=True, eq=False, repr=False)
class Scale:
    """The released texts of a column as numbers, for models that learn from them.

    ``numbers`` has the middle of each text's interval where ``numeric``, and its rank otherwise.
    """

    texts: tuple[str | None, ...]
    numbers: Floats
    numeric: bool


class Served(Protocol):
    """How rows that come later are mapped into what was released; it holds no record."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were to be generalized."""

    def apply(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """The rows in the released domain."""

    def cover(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Table:
        """Each row once for every released class that it may be in."""

    def scales(self, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale]:
        """The texts that these rows can get, as numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Relabelling:
    """One released column: the different texts, which one each record has, and what they mean.

    Without a ``domain`` only their readers can say what the texts stand for.
    """

    texts: list[str | None]
    of_row: Labels
    domain: Domain | None


@dataclass(frozen=True, eq=False, repr=False)
class Recoding:
    """A table generalized.

    Parameters
    ----------
    columns : mapping
        The columns that change; the others are released as they are.
    loss : float
        The information loss.
    suppressed : numpy.ndarray
        Which records are suppressed.
    served : Served
        How new rows are mapped; nothing in it is a record.
    levels : mapping
        The level of each column, where there is one level per column.
    optimal : bool
        Whether the search proves that nothing better exists.
    lattice : mapping
        The explored part of the lattice.
    box_of_row : numpy.ndarray, optional
        Which of the boxes that are served each record has, where there are boxes.
    minimal : Minimal, optional
        What anyone can conclude from it not being finer; None where that was not counted.
    """

    columns: Mapping[str, Relabelling]
    loss: float
    suppressed: Flags
    served: Served
    levels: Mapping[str, int] = field(default_factory=dict)
    optimal: bool = False
    lattice: Mapping[str, Any] = field(default_factory=dict)
    box_of_row: Integers | None = None
    minimal: Minimal | None = None


def layers_of(found: Recoding) -> dict[str, Any]:
    """The explored lattice, layer by layer: by the sum of levels, how many combinations there are,
    and of those that were looked at how many are too fine and how many are safe."""
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
