"""Whose row it is: the persons of a table that has several rows of one person.

A person's number travels with the row after the columns that say whose it is have been taken out,
as the row key does, and like it never reaches the public half of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Integers
from shoal.table._classes import Classes
from shoal.table._roles import ROW, Roles

if TYPE_CHECKING:
    from shoal.table._table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Owners:
    """The person and the household of each row, numbered from 0; None where a row is one."""

    persons: Integers | None = None
    households: Integers | None = None
    #: The columns that named the persons.
    named: tuple[str, ...] = ()

    def under(self, roles: Roles, table: Table) -> Owners:
        """The owners that roles declare; those on record where the columns are gone."""
        found = self
        if roles.unit == ROW:
            found = replace(found, persons=None, named=())
        if roles.unit_columns:
            persons = _labels(table, roles.unit_columns)
            found = replace(found, persons=persons, named=roles.unit_columns)
        if roles.household:
            homes = _labels(table, roles.household)
            alone = ~np.all([table.present(name) for name in roles.household], axis=0)
            own = np.arange(len(table)) if found.persons is None else found.persons
            homes[alone] = len(table) + own[alone]  # who has none lives alone
            found = replace(found, households=homes)
        return found

    def at(self, rows: npt.NDArray[Any]) -> Owners:
        """The same for some rows, or for the rows in another order."""
        persons = None if self.persons is None else self.persons[rows]
        homes = None if self.households is None else self.households[rows]
        return Owners(persons, homes, self.named)

    @cached_property
    def together(self) -> Integers | None:
        """What is taken out or kept as a whole: households where declared, else persons.

        A person with rows in two households joins the two.
        """
        if self.households is None or self.persons is None:
            return self.persons if self.households is None else self.households
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        first = int(self.persons.max(initial=-1)) + 1
        nodes = first + int(self.households.max(initial=-1)) + 1
        edges = (np.ones(len(self.persons)), (self.persons, self.households + first))
        _, part = connected_components(coo_array(edges, (nodes, nodes)), directed=False)
        return part[self.persons].astype(np.int64)


def _labels(table: Table, columns: Sequence[str]) -> Integers:
    return table.group(columns).labels.astype(np.int64)


def pseudonyms(persons: Integers, order: Integers) -> pl.Series:
    """A name for the person of each row: their place in a secret order, with as many digits."""
    width = len(str(len(order)))
    names = pl.Series([f"P{place + 1:0{width}}" for place in order.tolist()], dtype=pl.String)
    return names.gather(persons)


def owned_pairs(labels: npt.NDArray[Any], owners: npt.NDArray[Any]) -> tuple[Integers, Integers]:
    """The different pairs of a label and an owner, by ascending label and owner."""
    width = int(owners.max(initial=0)) + 1
    pairs = np.unique(labels.astype(np.int64) * width + owners)
    return pairs // width, pairs % width


def counting(classes: Classes, persons: Integers | None) -> Classes:
    """The classes with persons for their sizes."""
    if persons is None:
        return classes
    owned, _ = owned_pairs(classes.labels, persons)
    return Classes(classes.labels, np.bincount(owned, minlength=classes.count), classes.rows)


def histories(classes: Classes, persons: Integers, times: Integers | None = None) -> Classes:
    """The persons grouped by equal histories: the classes of all their rows, with their counts.

    Persons are numbered from 0 without gaps. The work is that of the pairs of person and class.
    """
    keys = persons.astype(np.int64) * max(1, classes.count) + classes.labels
    pairs, place = np.unique(keys, return_inverse=True)
    rows = np.bincount(place, times, len(pairs)).astype(np.int64)
    owner, of_class = np.divmod(pairs, max(1, classes.count))
    _, event = np.unique(
        of_class * (int(rows.max(initial=0)) + 1) + rows, return_inverse=True
    )  # a class and how often
    lengths = np.bincount(owner)
    starts = np.cumsum(lengths) - lengths
    labels = lengths.astype(np.int64)
    here = np.arange(len(lengths))
    for turn in range(int(lengths.max(initial=0))):
        here = here[lengths[here] > turn]
        told = labels[here] * (int(event.max()) + 1) + event[starts[here] + turn]
        above = int(labels.max()) + 1  # so that those who are through keep a label of their own
        labels[here] = above + np.unique(told, return_inverse=True)[1]
    _, first, same, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    ordered = np.empty(len(first), np.int64)
    ordered[number] = sizes
    return Classes(number[same], ordered)
