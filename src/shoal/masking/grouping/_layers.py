"""Groups of k persons if a person has several records: records in layers, groups in each layer.

A layer has at most one record of each person. Then k records of a layer belong to k persons, and
any way to form groups of records forms groups of persons. The first layer has everyone's first
record, the second the second record of everyone who has one, and so on; the records of a person are
in the order of their values. Records of layers with fewer than k persons join nearby groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.kernels.arrays import Integers, Labels
from shoal.masking.grouping._dissimilarity import Space
from shoal.models import counted
from shoal.table import Table

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions


def groups_of_persons(
    table: Table,
    columns: Sequence[str],
    k: int,
    space: Space,
    asked: tuple[Conditions, Labels],
    form: Callable[[Integers, int, int], Labels | None],
) -> Labels:
    """Groups of at least k persons that satisfy ``asked``, counted in persons.

    ``form`` gets the rows of a layer, its number and the number of layers. It returns their
    groups, or None if these records alone cannot form any.
    """
    layer = layers_of(table, columns)
    usable = int((np.bincount(layer) >= k).sum())  # layers never get larger
    labels: Labels = np.full(len(table), -1, np.int32)
    found = 0
    for number in range(usable):
        rows = np.flatnonzero(layer == number)
        groups = form(rows, number, usable)
        if groups is not None:
            labels[rows] = groups + found
            found += int(groups.max()) + 1
    if found == 0:
        labels[:] = 0
    if labels.min() < 0 or found == 0:
        labels = _joined(space, labels, asked)
        _check_even(labels, table, asked[0].persons.crowd)
    return labels


def layers_of(table: Table, columns: Sequence[str]) -> Integers:
    """The rank of each record among its person's records, from 0, in the order of some columns."""
    keys: list[npt.NDArray[Any]] = [table.codes(name).codes for name in reversed(columns)]
    order = np.lexsort((*keys, table.persons))
    sizes = np.bincount(table.persons)
    layer = np.empty(len(table), np.int64)
    layer[order] = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return layer


def _joined(space: Space, labels: Labels, asked: tuple[Conditions, Labels]) -> Labels:
    """Put every record into a group, and merge groups that fail a condition with nearby ones."""
    from shoal.kernels.groups.diverse_group import Sensitive
    from shoal.kernels.groups.diverse_merge import settled

    conditions, codes = asked
    return settled(space.records, labels, conditions, Sensitive(codes, codes[-1].astype(np.int64)))


def _check_even(labels: Labels, table: Table, crowd: int) -> None:
    """Raise RequirementNotMet if a person has too large a share of a group."""
    if crowd == 1:
        return
    _, pair, rows = np.unique(
        labels.astype(np.int64) * table.person_count + table.persons,
        return_inverse=True,
        return_counts=True,
    )
    most = int(rows.max())
    short = np.bincount(labels)[labels] < crowd * rows[pair]
    if short.any():
        raise RequirementNotMet(
            f"No groups can hide the person with the most records among {crowd}: the table has "
            f"{counted(table)}, and {most} records of one person would be in one group. Remove "
            "records of such persons, or ask for a smaller k. Nothing was written."
        )
