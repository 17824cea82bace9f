"""t-closeness: in every class, sensitive values are distributed almost as in the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from shoal.errors import ParameterError
from shoal.kernels.arrays import Floats, Integers
from shoal.models._base import Condition
from shoal.models._sensitive_model import ClassValues, SensitiveModel, summed
from shoal.parameters import OneColumn, OneOf, Real, Tree
from shoal.table import Hierarchy, Table


@dataclass(frozen=True)
class TCloseness(SensitiveModel):
    """In every class the sensitive values are at most ``t`` away from those of the whole table.

    The distance of two distributions is the earth mover's distance: the least share that must be
    moved, times how far. Several sensitive columns are each checked separately. A missing
    sensitive value is a value of its own, after all others. Sampling weights have no effect.

    Parameters
    ----------
    t : float
        The largest distance allowed, from 0 to 1; 0 requires equal distributions.
    distance : {"equal", "ordered", "hierarchical"}
        How far apart two values are. "equal": all pairs are equally far, so that the distance is
        half the sum of the differences. "ordered": by the number of values between them (numbers
        and dates in their order, text alphabetically). "hierarchical": by the height of the lowest
        node above both in a hierarchy.
    column : str, optional
        The sensitive column; by default all of them.
    hierarchy : Hierarchy or path, optional
        The hierarchy of the column, for the hierarchical distance.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-closeness: privacy beyond k-anonymity and l-diversity
    <https://doi.org/10.1109/ICDE.2007.367856>, ICDE, sections 4.1 and 4.2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41], "ill": ["flu", "flu", "flu", "gout"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> TCloseness(0.2).level(table), TCloseness(0.2).holds(table)
    (0.25, False)
    """

    t: Annotated[float, Real(minimum=0, maximum=1)]
    distance: Annotated[
        Literal["equal", "ordered", "hierarchical"], OneOf(("equal", "ordered", "hierarchical"))
    ] = "equal"
    column: Annotated[str | None, OneColumn()] = None
    hierarchy: Annotated[Any, Tree()] = None

    model = "t_closeness"
    title = "t-closeness"
    reference = "Li, Li and Venkatasubramanian 2007"
    direction = "lower"

    def __post_init__(self) -> None:
        if isinstance(self.hierarchy, Mapping):
            object.__setattr__(self, "hierarchy", Hierarchy.from_plan(self.hierarchy))
        super().__post_init__()
        if (self.hierarchy is None) == (self.distance == "hierarchical"):
            raise ParameterError(
                "The hierarchical distance of TCloseness needs a 'hierarchy'; the other "
                "distances accept none."
            )
        if self.hierarchy is not None and self.column is None:
            raise ParameterError(
                "The hierarchical distance of TCloseness needs the 'column' to which the hierarchy "
                "belongs."
            )

    def class_levels(self, values: ClassValues) -> Floats:
        """The distance of each class from the table in a column."""
        gain = np.maximum(values.largest(values.rates - values.overall_rates[values.values]), 0.0)
        if self.distance == "equal":
            surplus = values.shares - values.overall_shares[values.values]
            return np.maximum(values.total(np.maximum(surplus, 0.0)), gain)
        if self.distance == "ordered":
            least = gain / max(1, len(values.overall) - 1)  # to the next value
            return np.maximum(_ordered_distances(values), least if len(values.overall) > 1 else 0.0)
        tree = self._tree(values.table, values.column)
        return np.maximum(_tree_distances(values, tree), gain / max(1, len(tree) - 1))

    def condition(self, table: Table, column: str) -> Condition:
        tree = self._tree(table, column) if self.distance == "hierarchical" else None
        return Condition(self.distance, self.t, column, tree=tree)

    def _tree(self, table: Table, column: str) -> Integers:
        tree = self.hierarchy
        tree = Hierarchy.from_plan(tree) if isinstance(tree, str) else tree
        return tree_of(tree.codes(table, column).maps)

    def asks(self) -> str:
        return (
            f"that the sensitive values of a class are at most t = {self.t} away from those of "
            "the table"
        )


def tree_of(maps: Any) -> Integers:
    """The nodes above each value at each height, numbered from 0, from the values to the root."""
    rows = [np.unique(row, return_inverse=True)[1].reshape(-1) for row in np.asarray(maps)]
    if not rows or rows[0].max(initial=-1) + 1 < len(rows[0]):
        rows.insert(0, np.arange(np.shape(maps)[1]))
    if rows[-1].any():
        rows.append(np.zeros_like(rows[-1]))
    return np.array(rows, np.int64)


def _ordered_distances(values: ClassValues) -> Floats:
    """The sum of |P - Q| over the values, both cumulative, divided by their number minus 1.

    Between two values of a class, P is constant and Q rises. The sum over the values in between
    therefore follows from prefix sums of Q on both sides of the point where Q passes P.
    """
    number = len(values.overall)
    if number < 2:
        return np.zeros(values.classes.count)
    above = np.cumsum(values.overall_shares)
    prefix = np.concatenate(([0.0], np.cumsum(above)))
    running = np.cumsum(values.counts)
    before = (running - values.counts)[values.starts][values.owners]
    level = (running - before) / values.totals
    begin, end = values.values, np.append(values.values[1:], number)
    end[np.append(values.owners[1:] != values.owners[:-1], True)] = number
    middle = np.clip(np.searchsorted(above, level), begin, end)
    lower = level * (middle - begin) - (prefix[middle] - prefix[begin])
    upper = prefix[end] - prefix[middle] - level * (end - middle)
    ahead = prefix[begin[values.starts]]  # before the first value of a class P is 0
    return (values.total(lower + upper) + ahead) / (number - 1)


def _tree_distances(values: ClassValues, tree: Integers) -> Floats:
    """What does not balance out below a node travels through it, for the node's height.

    Child nodes that a class does not have can only lack records, so the deficit follows from the
    surplus and from the balance of the node itself.
    """
    height = len(tree) - 1
    moved = np.zeros(values.classes.count)
    owners, nodes, shares = values.owners, values.values, values.shares
    overall = values.overall_shares
    for level in range(1, height + 1):
        surplus = np.maximum(shares - overall[nodes], 0.0)
        parents = np.zeros(len(overall), np.int64)
        parents[tree[level - 1]] = tree[level]
        keys = owners * len(values.overall) + parents[nodes]
        pairs, place = np.unique(keys, return_inverse=True)
        owners, nodes = np.divmod(pairs, len(values.overall))
        gained = summed(surplus, place, len(pairs))
        shares = summed(shares, place, len(pairs))
        overall = summed(values.overall_shares, tree[level], len(overall))
        lost = gained - (shares - overall[nodes])
        through = np.minimum(gained, lost) * level / height
        moved += summed(through, owners, len(moved))
    return moved
