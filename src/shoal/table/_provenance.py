"""The origin of a table's rows, and what was done to them. All of it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Integers
from shoal.table._roles import ROW, Roles
from shoal.table.columns._encode import Codes, narrowest

if TYPE_CHECKING:
    from shoal.table._table import Table


State = Literal["raw", "sampled", "generalized", "other"]

_PAIRS_KEPT = 4


@dataclass(frozen=True)
class Course:
    """What was done to a table, as far as it matters for differential privacy by sampling.

    A table is ``raw`` at first. It is ``sampled`` after each record was drawn independently with
    the probability ``fraction``. It is ``generalized`` if values were then made coarser in a way
    that does not depend on the data, and classes of fewer than ``smallest`` records were removed.
    Everything else makes it ``other``.
    """

    state: State = "raw"
    fraction: float | None = None
    origin: str | None = None
    smallest: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The course as recorded in the private audit."""
        return asdict(self)


OTHER = Course("other")


@dataclass(frozen=True, eq=False)
class Exchange:
    """One permutation of a block of columns inside groups of rows. Private."""

    columns: tuple[str, ...]  # exchanged together
    groups: npt.NDArray[np.int32]  # the group of each row
    source: Integers  # the key of the row whose values each row has now
    origin: str  # of the randomness: entropy, seed or key
    accepted: bool = False  # whether the plan accepts another origin than entropy

    @property
    def is_secret(self) -> bool:
        """Whether nobody can repeat the permutation, or the plan accepts that somebody could."""
        return self.origin == "entropy" or self.accepted

    def at(self, rows: npt.NDArray[Any]) -> Exchange:
        """The exchange for some rows, or for the rows in another order."""
        return replace(self, groups=self.groups[rows], source=self.source[rows])

    def __repr__(self) -> str:
        return f"Exchange(columns={self.columns}, rows={len(self.groups)})"


class KeyPositions:
    """The rows of a table by their keys."""

    def __init__(self, row_key: Integers) -> None:
        self.row_key = row_key
        #: The latest requested keys, which may no longer exist, and their rows.
        self._paired: list[tuple[ref[Integers], Integers]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"row_key": self.row_key, "_paired": []}

    def of(self, keys: Integers) -> Integers:
        """The row with each key; -1 if there is none."""
        for asked, rows in self._paired:
            if asked() is keys:
                return rows
        rows = self._searched(keys)
        rows.flags.writeable = False
        if keys.flags.writeable:  # they may change
            return rows
        there = [pair for pair in self._paired if pair[0]() is not None]
        self._paired = [(ref(keys), rows), *there[: _PAIRS_KEPT - 1]]
        return rows

    def _searched(self, keys: Integers) -> Integers:
        if not len(self.row_key):
            return np.full(len(keys), -1)
        if self._in_order:
            first = self.row_key[0]
            rows = keys - first if first or keys.flags.writeable else keys
            outside = (rows < 0) | (rows >= len(self.row_key))
            return np.where(outside, -1, rows) if outside.any() else rows
        lowest, highest = int(self.row_key.min()), int(self.row_key.max())
        if highest - lowest > 4 * len(self.row_key) + 1024:
            at_key = np.argsort(self.row_key, kind="stable")
            asked = np.searchsorted(self.row_key[at_key], keys)
        else:
            at_key = np.zeros(highest - lowest + 1, np.int64)
            at_key[self.row_key - lowest] = np.arange(len(self.row_key))
            asked = keys - lowest
        inside = (asked >= 0) & (asked < len(at_key))
        rows = at_key[asked if inside.all() else np.where(inside, asked, 0)]
        wrong = self.row_key[rows] != keys
        if wrong.any():
            rows[wrong] = -1
        return rows

    @cached_property
    def _in_order(self) -> bool:
        """Whether the keys are consecutive, as in a table that was just read."""
        return bool((self.row_key[1:] - self.row_key[:-1] == 1).all())


@dataclass(frozen=True, eq=False, repr=False)
class Provenance:
    """Everything that is recorded about the rows."""

    row_key: Integers  # the position of each row in the input
    lineage: str  # the name of the input; rows of two tables pair only if it is the same
    owners: Owners
    exchanges: tuple[Exchange, ...] = ()
    course: Course = field(default_factory=Course)
    sampling: Sampling | None = None
    #: How many records each row represents; None if each row is one record.
    times: Integers | None = None
    positions: KeyPositions = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.row_key.flags.writeable = False
        if self.positions is None or self.positions.row_key is not self.row_key:
            object.__setattr__(self, "positions", KeyPositions(self.row_key))

    def at(self, rows: npt.NDArray[Any]) -> Provenance:
        """The provenance of some rows, or of the rows in another order."""
        return replace(
            self,
            row_key=self.row_key[rows],
            exchanges=tuple(exchange.at(rows) for exchange in self.exchanges),
            owners=self.owners.at(rows),
            times=None if self.times is None else self.times[rows],
        )

    def positions_of(self, row_key: Integers) -> Integers | None:
        """The row with each key; None if every row stays at its place."""
        if row_key is self.row_key:
            return None
        rows = self.positions.of(row_key)
        if (rows < 0).any():
            raise InputError(
                "The two tables do not come from the same rows. Pass tables with one origin."
            )
        return rows


def swapped_blocks(table: Table, protected: Sequence[str]) -> list[Exchange]:
    """The exchanges of some columns if they cover all of them; otherwise none."""
    blocks = [e for e in table.exchanges if set(e.columns) & set(protected)]
    covered = {name for exchange in blocks for name in exchange.columns}
    return blocks if set(protected) <= covered else []


def swapped_crowds(table: Table, protected: Sequence[str]) -> Integers:
    """The smallest group in which each record exchanged some of the columns, or 1.

    Several records of one person in a group all count, because a value of the group returns to the
    person more often.
    """
    blocks = swapped_blocks(table, protected)
    sizes = [_crowd_of(exchange, table) for exchange in blocks]
    return np.min(sizes, axis=0) if sizes else np.ones(len(table), np.int64)


def shared_crowds(groups: npt.NDArray[Any], table: Table) -> Integers:
    """The crowd of each record: a random record of its group is the same person's 1 in N times."""
    from shoal.kernels.grouping import group

    labels, sizes = group(groups.astype(np.int64).view(np.uint64))
    crowds: Integers = sizes[labels]
    if table.has_persons:
        keys = labels.astype(np.int64) * table.person_count + table.persons
        _, own, counts = np.unique(keys, return_inverse=True, return_counts=True)
        crowds //= counts[own]
    return crowds


def _crowd_of(exchange: Exchange, table: Table) -> Integers:
    """The crowd of each record's group; 1 if the exchange is not a permutation in the group."""
    groups = exchange.groups
    carried = np.lexsort((exchange.source, groups))
    present = np.lexsort((table.row_key, groups))
    wrong = exchange.source[carried] != table.row_key[present]
    broken = np.isin(groups, groups[carried][wrong])
    return np.where(broken, 1, shared_crowds(groups, table))


@dataclass(frozen=True, eq=False)
class Sampling:
    """The classes of the rows from which a sample was drawn. Private.

    ``whole`` has the rank of the value of each row, drawn or not, for each quasi-identifier. The
    values themselves are not recorded.
    """

    whole: Table

    @classmethod
    def of(cls, table: Table) -> Sampling:
        """The record for a table that is about to be sampled, or the one of its first sampling."""
        names = table.roles.quasi_identifiers
        if table.sampling is not None and set(names) <= set(table.sampling.whole.columns):
            return table.sampling
        return cls(table.ranked(names))

    @classmethod
    def of_codes(
        cls, row_key: Integers, codes: Mapping[str, npt.NDArray[np.signedinteger[Any]]]
    ) -> Sampling:
        """A record of which the codes are known; -1 is a missing value."""
        from shoal.table._table import Table

        ranks = {
            name: (ranks_below(name, int(of.max(initial=-1)) + 1), of) for name, of in codes.items()
        }
        table = Table(pl.DataFrame(height=len(row_key))).with_codes(ranks)
        return cls(table.ranked(tuple(codes)).on_record(row_key, ()))

    @property
    def codes(self) -> dict[str, npt.NDArray[np.signedinteger[Any]]]:
        """The codes of each column; -1 is a missing value."""
        return {name: signed_codes(self.whole.codes(name)) for name in self.whole.columns}

    def __repr__(self) -> str:
        return f"Sampling(columns={tuple(self.whole.columns)}, rows={len(self.whole)})"


def signed_codes(column: Codes) -> npt.NDArray[np.signedinteger[Any]]:
    """The codes of a column in the narrowest type; -1 for a missing value."""
    kind = np.min_scalar_type(-max(column.count, 1))
    codes: npt.NDArray[np.signedinteger[Any]] = column.codes.astype(kind)
    if column.missing is not None:
        codes[column.codes == column.missing] = -1
    return codes


def ranks_below(name: str, count: int) -> Codes:
    """The numbers from 0 to below a count, each once and each its own code."""
    numbers = np.arange(count, dtype=narrowest(count))
    return Codes(numbers, pl.Series(name, numbers, dtype=pl.Int64))


@dataclass(frozen=True, eq=False, repr=False)
class Owners:
    """The person and the household of each row, numbered from 0; None if each row is its own."""

    persons: Integers | None = None
    households: Integers | None = None
    #: The columns that named the persons.
    named: tuple[str, ...] = ()

    def under(self, roles: Roles, table: Table) -> Owners:
        """The owners that roles declare, or those on record if the columns are gone."""
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
            homes[alone] = len(table) + own[alone]  # a person without a household lives alone
            found = replace(found, households=homes)
        return found

    def at(self, rows: npt.NDArray[Any]) -> Owners:
        """The owners of some rows, or of the rows in another order."""
        persons = None if self.persons is None else self.persons[rows]
        homes = None if self.households is None else self.households[rows]
        return Owners(persons, homes, self.named)

    @cached_property
    def together(self) -> Integers | None:
        """The groups of rows that stay together: households if declared, else persons."""
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
