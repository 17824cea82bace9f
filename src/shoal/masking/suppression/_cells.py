"""The combinations of a table and the cells that may be blanked, with what each one costs.

All records of a combination are treated alike, but for recruits: records of a large class that
fill up a class of blanked ones. Blanking the same columns of a combination is a *pattern*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table import Classes, Table

#: Patterns that are tried in order of cost; beyond them, one path leads to all columns.
MOST_PATTERNS = 2_048
#: Patterns × combinations that are tried in order of cost: some seconds.
MOST_WORK = 30_000_000
#: Costs, and counts by agreement, are sums of shares.
ENOUGH = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Combinations of values, how often each occurs, and what it costs to blank a column.

    ``sizes`` has the persons who share each combination in the reading asked for. A combination
    with fewer than ``need`` is *short*. The cheapest column costs 1.
    """

    codes: npt.NDArray[np.uint32]
    missing: Flags
    counts: Integers
    sizes: Integers
    need: Integers
    costs: Floats

    @classmethod
    def of(cls, table: Table, sizes: Integers, need: Integers, costs: Floats) -> Cells:
        """The combinations of the quasi-identifiers; ``sizes`` and ``need`` are of each class."""
        first = table.classes.first_rows
        codes = [table.codes(name) for name in table.roles.quasi_identifiers]
        distinct = np.column_stack([one.codes[first] for one in codes]).astype(np.uint32)
        missing = np.zeros(distinct.shape, np.bool_)
        for place, one in enumerate(codes):
            if one.missing is not None:
                missing[:, place] = distinct[:, place] == one.missing
        return cls(distinct, missing, table.classes.rows, sizes, need, costs)

    @property
    def short(self) -> Integers:
        """The combinations that too few persons share."""
        return np.flatnonzero(self.sizes < self.need)

    def in_order(self) -> tuple[Cells, Integers]:
        """The combinations in the order of their values, and which one each was.

        Otherwise the order of the records would decide between choices that cost the same.
        """
        order = np.lexsort(self.codes.T[::-1])
        ordered = Cells(
            self.codes[order],
            self.missing[order],
            self.counts[order],
            self.sizes[order],
            self.need[order],
            self.costs,
        )
        return ordered, order

    def blanks(
        self, combinations: Integers, patterns: Flags, records: Integers, bound: float | None
    ) -> Blanks:
        """Blanks with what they cost: the costs of the cells that have a value.

        Without a ``bound``, they are known to be the best.
        """
        paid = (patterns & ~self.missing[combinations]) @ self.costs
        cost = float(paid @ records)
        return Blanks(combinations, patterns, records, cost, cost if bound is None else bound)

    def layers(self, rows: int) -> Iterator[tuple[float, list[Flags]]]:
        """The patterns in order of cost, those of one cost at a time, as ``rows`` allow."""
        most = max(self.codes.shape[1], min(MOST_PATTERNS, MOST_WORK // max(1, rows)))
        ordered = _in_order(self.costs, most + 1)
        for cost, layer in groupby(
            ordered, lambda pattern: round(float(self.costs[pattern].sum()), 9)
        ):
            if cost:
                yield cost, list(layer)

    def path(self) -> Iterator[tuple[float, Flags]]:
        """Patterns of one, two … all free columns: cheap columns with many values come first."""
        values = self.codes.max(axis=0, initial=0).astype(np.float64)
        pattern = np.zeros(len(self.costs), np.bool_)
        for place in np.lexsort((-values, self.costs)):
            pattern = pattern.copy()
            pattern[place] = True
            yield float(self.costs[pattern].sum()), pattern


@dataclass(frozen=True, eq=False, repr=False)
class Blanks:
    """How many records of which combinations lose the cells of which pattern.

    ``bound`` is what no solution falls below; a solution at that cost is the best.
    """

    combinations: Integers
    patterns: Flags
    records: Integers
    cost: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no solution costs less."""
        return self.cost <= self.bound + ENOUGH

    def cells(self, classes: Classes, draw: Integers) -> Flags:
        """The cells to blank, [record, column].

        ``draw`` has the records in random order: it decides which records of a combination are
        recruited, since their order in the table would say whose they are.
        """
        marked = np.zeros((classes.records, self.patterns.shape[1]), np.bool_)
        order = draw[np.argsort(classes.labels[draw], kind="stable")]
        start = np.concatenate(([0], np.cumsum(classes.rows)))[:-1]
        for combination, pattern, records in zip(
            self.combinations.tolist(), self.patterns, self.records.tolist(), strict=True
        ):
            at = start[combination]
            start[combination] += records
            marked[np.ix_(order[at : at + records], np.flatnonzero(pattern))] = True
        return marked


def _in_order(costs: Floats, most: int) -> Iterator[Flags]:
    from shoal.kernels.peel.peel import in_order_of_cost

    steps = np.column_stack([np.zeros(len(costs)), costs])
    for some in in_order_of_cost(steps, np.ones(len(costs), np.int64), most):
        yield from some.astype(np.bool_)
