"""A column and its hierarchy as arrays, for searches and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats
from shoal.table.columns._domain import ROOT, Domain, Meaning, Meanings, value_meanings
from shoal.table.columns._encode import Codes
from shoal.table.columns._quantities import line_of, scale_name
from shoal.table.hierarchy._rule import Rule, Rung, Unseen

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyCodes:
    """The values of one column at every level of its hierarchy.

    A missing value is a value of its own. It is missing at every level except the last, where it is
    the root like every other value. Only nodes with a value of the table are numbered.

    Parameters
    ----------
    column : Codes
        The column itself; ``V`` is its number of codes, including the code of missing.
    maps : numpy.ndarray
        ``int32[levels, V]``: the code of the generalized value of each code of the column at each
        level. Level 0 is the identity and the last level is 0 everywhere. Codes of numbers and
        dates ascend with the values, and a missing value has the last code.
    leaves : numpy.ndarray
        ``float64[levels, V]``: how many values of the hierarchy are under that generalized value;
        for a list, these are values of the list, not of the table.
    domain : float
        The number of values of the hierarchy: those of the list or, for a function, those of the
        table. Missing counts as one if the column has it.
    labels : tuple of tuple of str
        The text of each generalized code at each level; None for a missing value.
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
        """The number of levels, including the values themselves and the root."""
        return len(self.maps)

    def nodes(self, level: int) -> int:
        """The number of distinct generalized values at a level."""
        return len(self.labels[level])

    def bounds(self, level: int) -> Floats | None:
        """The lowest and highest number under each generalized code, or None for other values.

        For an interval ``[low, high)`` these are its ends, for a node of a list its lowest and
        highest value. Dates count in days from 1970-01-01. An open end, such as those of the root,
        is infinite; a missing value has NaN.
        """
        return self._bounds[level]

    def meaning(self, levels: npt.ArrayLike) -> Domain | None:
        """The meanings of the labels of some levels; None if the hierarchy does not define them."""
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
        # without labels, which may be cells of the table
        return (
            f"HierarchyCodes('{self.column.name}', levels={self.levels}, count={self.column.count})"
        )


def codes_of(rule: Rule, table: Table, column: str, unseen: Unseen) -> HierarchyCodes:
    """The codes of a column under a rule, computed from its distinct values."""
    coded = table.codes(column)
    values, count = coded.levels, coded.count
    missing = coded.missing is not None
    domain = float(rule.size(values) + missing)
    texts = rule.texts(values)
    line = line_of(values)
    ends = None if line is None else np.column_stack((line, line))
    own = Rung(np.arange(len(values), dtype=np.int32), texts, ends, np.ones(len(texts)))
    levels = rule.inner_levels + 2
    maps = np.zeros((levels, count), np.int32)
    leaves = np.full((levels, count), domain)
    labels: list[tuple[str | None, ...]] = []
    bounds: list[Floats | None] = []
    meanings: list[Meanings | None] = []
    # a column without values fits every rule, whatever its type
    nothing = Rung(np.zeros(0, np.int32), [], None, np.zeros(0))
    rungs = rule.rungs(values, unseen) if len(values) else [nothing] * rule.inner_levels
    for level, rung in enumerate((own, *rungs)):
        maps[level, : len(values)] = rung.nodes
        sizes = rung.leaves
        if sizes is None:
            sizes = np.bincount(rung.nodes, minlength=len(rung.labels)).astype(np.float64)
        elif level:
            # a value that is released as the root reveals nothing
            sizes = np.where([label == ROOT for label in rung.labels], domain, sizes)
        leaves[level, : len(values)] = sizes[rung.nodes]
        ends = rung.bounds
        if missing:
            maps[level, -1], leaves[level, -1] = len(rung.labels), 1.0
            ends = None if ends is None else np.vstack((ends, [[np.nan, np.nan]]))
        labels.append((*rung.labels, *([None] if missing else [])))
        bounds.append(ends)
        meanings.append(rung.meanings)
    labels.append((ROOT,) if count else ())
    whole = np.array([[-np.inf, np.inf]] * min(count, 1)).reshape(-1, 2)
    bounds.append(None if own.bounds is None else whole)
    for array in (maps, leaves, *(ends for ends in bounds if ends is not None)):
        array.flags.writeable = False
    return HierarchyCodes(
        coded, maps, leaves, domain, tuple(labels), tuple(bounds), (*meanings, None)
    )
