"""A column with its hierarchy as arrays: what searches and kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats
from shoal.table.columns._domain import ROOT, Domain, Meaning, Meanings, value_meanings
from shoal.table.columns._encode import Codes
from shoal.table.columns._quantities import bounds_of_values, scale_name
from shoal.table.hierarchy._rule import Rule, Rung, Unseen
from shoal.table.storage._types import as_text

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyCodes:
    """The values of one column at every level of its hierarchy.

    A missing value is a value of its own: it is missing at every level but the last, where it is
    the root like every other. Only nodes that some value of the table has are numbered.

    Parameters
    ----------
    column : Codes
        The column itself; ``V`` is its number of codes, that of missing included.
    maps : numpy.ndarray
        ``int32[levels, V]``: the code of the generalized value of each code of the column at each
        level. Level 0 is the identity and the last level is 0 everywhere. Codes of numbers and
        dates ascend with the values, and a missing value has the last code.
    leaves : numpy.ndarray
        ``float64[levels, V]``: how many values of the hierarchy stand under that generalized
        value; for a list, values of the list, and not of the table.
    domain : float
        The number of values of the hierarchy: those of a list, or those of the table where the
        hierarchy is a function; missing counts as one where the column has it.
    labels : tuple of tuple of str
        At each level the text of each generalized code; None for a missing value.
    """

    column: Codes
    maps: npt.NDArray[np.int32]
    leaves: Floats
    domain: float
    labels: tuple[tuple[str | None, ...], ...]
    _bounds: tuple[Floats | None, ...]
    _meanings: tuple[Meanings | None, ...]

    @property
    def levels(self) -> int:
        """The number of levels, the values themselves and the root included."""
        return len(self.maps)

    def nodes(self, level: int) -> int:
        """The number of different generalized values at a level."""
        return len(self.labels[level])

    def bounds(self, level: int) -> Floats | None:
        """Lowest and highest number under each generalized code, or None for other values.

        An interval ``[low, high)`` has its two ends, a node of a list its lowest and highest
        value. Dates count in days from 1970-01-01. An end that is open, as those of the root, is
        infinite; a missing value has NaN.
        """
        return self._bounds[level]

    def meaning(self, levels: npt.ArrayLike) -> Domain | None:
        """What the labels of some levels stand for; None where only their readers can say."""
        found: dict[str, Meaning] = {}
        scale = scale_name(self.column)
        for level in np.unique(levels).tolist():
            part = self._meanings[level]
            if part is None and (scale in ("text", "boolean") or level in (0, self.levels - 1)):
                part = value_meanings(scale, self.labels[level])
            if part is None:
                return None
            found.update(part)
        return Domain(scale, found)

    def __repr__(self) -> str:
        # without labels: they may be cells of the table
        return (
            f"HierarchyCodes('{self.column.name}', levels={self.levels}, count={self.column.count})"
        )


def codes_of(rule: Rule, table: Table, column: str, unseen: Unseen) -> HierarchyCodes:
    """The codes of a column under a rule; only distinct values are looked at."""
    coded = table.codes(column)
    values, count = coded.levels, coded.count
    missing = coded.missing is not None
    domain = float(rule.size(values) + missing)
    texts = as_text(values).to_list()
    own = Rung(
        np.arange(len(values), dtype=np.int32), texts, bounds_of_values(values), np.ones(len(texts))
    )
    levels = rule.inner_levels + 2
    maps = np.zeros((levels, count), np.int32)
    leaves = np.full((levels, count), domain)
    labels: list[tuple[str | None, ...]] = []
    bounds: list[Floats | None] = []
    told: list[Meanings | None] = []
    # a column without any value, whose type says nothing, has no quarrel with a rule
    nothing = Rung(np.zeros(0, np.int32), [], None, np.zeros(0))
    rungs = rule.rungs(values, unseen) if len(values) else [nothing] * rule.inner_levels
    for level, rung in enumerate((own, *rungs)):
        maps[level, : len(values)] = rung.nodes
        sizes = rung.leaves
        if sizes is None:
            sizes = np.bincount(rung.nodes, minlength=len(rung.labels)).astype(np.float64)
        elif level:
            # a value that is released as the root tells nothing, whatever stands beside it
            sizes = np.where([label == ROOT for label in rung.labels], domain, sizes)
        leaves[level, : len(values)] = sizes[rung.nodes]
        ends = rung.bounds
        if missing:
            maps[level, -1], leaves[level, -1] = len(rung.labels), 1.0
            ends = None if ends is None else np.vstack((ends, [[np.nan, np.nan]]))
        labels.append((*rung.labels, *([None] if missing else [])))
        bounds.append(ends)
        told.append(rung.meanings)
    labels.append((ROOT,) if count else ())
    whole = np.array([[-np.inf, np.inf]] * min(count, 1)).reshape(-1, 2)
    bounds.append(None if own.bounds is None else whole)
    for array in (maps, leaves, *(ends for ends in bounds if ends is not None)):
        array.flags.writeable = False
    return HierarchyCodes(coded, maps, leaves, domain, tuple(labels), tuple(bounds), (*told, None))
