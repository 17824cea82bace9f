"""The nodes of a generalization lattice during a search: one visit each, and the best node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Flags, Floats, Integers
from shoal.kernels.conditions import Conditions, code_width, counted_once
from shoal.kernels.lattice.conditions import judged, judged_persons, needs_everyone, upward_closed
from shoal.kernels.lattice.losses import Loss
from shoal.kernels.lattice.roll_up import (
    RECORDS,
    Base,
    Groups,
    Slots,
    bottom,
    coding,
    generalized,
    projected,
)

#: For the classes to release: their sizes and, if persons are counted, the class and the person
#: of each pair.
NodeCheck = Callable[[Integers, Integers | None, Integers | None], bool]

_MOST_KEPT = 5_000  # visited nodes that are remembered
_SHARED = 3  # attributes that a shared table generalizes
_TABLES = 4  # shared tables may be as large as so many bottom tables


class Visit(NamedTuple):
    """The facts about a node."""

    levels: tuple[int, ...]
    feasible: bool
    suppressed: int
    loss: float  # NaN if the floor showed that it is not needed
    floor: float  # the least cost of this node and all above it


class Lattice:
    """Group tables, conditions and the loss of one problem, and the best node so far.

    ``heights`` are the levels of the most general node. ``monotone`` says that every node above a
    feasible one is feasible, except for ``node_check``. ``closest`` is the visit with the fewest
    records to suppress. ``weights`` are what each attribute counts in the loss, 1 on average.
    """

    def __init__(
        self,
        base: Base,
        maps: Sequence[Codes],
        leaves: Sequence[Floats],
        domains: Sequence[float],
        conditions: Conditions,
        limit: int,
        loss: str,
        node_check: NodeCheck | None,
        weights: Floats | None = None,
    ) -> None:
        self.code = coding(maps, leaves)
        self.heights = np.array([len(steps) - 1 for steps in maps], np.int64)
        self.conditions, self.limit, self._node_check = conditions, limit, node_check
        self.everyone = needs_everyone(conditions)
        self.slots = Slots(max(len(base.tuples), base.pair_codes.size))
        self.bottom = bottom(base, self.code, code_width(conditions))
        self._tables: dict[tuple[int, ...], Groups] = {}
        self._held = 0  # rows of the shared tables
        self.loss = Loss(loss, base, self.code, self.heights, domains, weights)
        #: The conditions for projections: if these fail, so does every node with these levels.
        self._persons = bool(counted_once(conditions.persons))
        unions = limit == 0 and not self._persons  # every condition is closed under union
        self.projectable = conditions if unions else upward_closed(conditions)
        self.monotone = unions or len(self.projectable.kinds) == len(conditions.kinds)
        self.best: Visit | None = None
        self._least = math.inf  # the rounded loss of the best node
        self.closest: Visit | None = None
        self.visits: list[Visit] = []
        self.visited = 0
        self.rows = 0  # group-table rows read

    def size(self) -> float:
        """The number of nodes, as a float because it may be astronomical."""
        return float(np.prod(self.heights + 1.0))

    def at(self, levels: Integers) -> Groups:
        """The group table of a node, from that of the bottom."""
        self.rows += len(self.bottom.weights)
        return generalized(self.bottom, self.code, 0 * levels, levels, self.slots)

    def near(self, levels: Integers) -> Groups:
        """The same by way of nodes that generalize only the first attributes of :attr:`by_entropy`.

        Many nodes share these, so their tables are kept, the most recently used as long as there
        is room. They are small if these attributes have most of the values.
        """
        table, via = self.bottom, np.zeros_like(levels)
        for j in self.by_entropy[:_SHARED]:
            if levels[j] > 0:
                below = via.copy()
                via[j] = levels[j]
                table = self._shared(table, below, via)
        self.rows += len(table.weights)
        return generalized(table, self.code, via, levels, self.slots)

    def _shared(self, groups: Groups, below: Integers, levels: Integers) -> Groups:
        """The table of a node from one below it, or from a kept table."""
        key = tuple(levels.tolist())
        table = self._tables.pop(key, None)
        if table is None:
            self.rows += len(groups.weights)
            table = generalized(groups, self.code, below, levels, self.slots)
            self._held += len(table.weights)
            while self._tables and self._held > _TABLES * len(self.bottom.weights):
                self._held -= len(self._tables.pop(next(iter(self._tables))).weights)
        self._tables[key] = table
        return table

    @cached_property
    def by_values(self) -> Integers:
        """The attributes, ordered by the number of values in the table, most first."""
        values = np.array([len(tuples) for tuples in self._tuples_by_value], np.int64)
        return np.argsort(-values, kind="stable")

    @cached_property
    def by_entropy(self) -> Integers:
        """The attributes, ordered by how well they distinguish the tuples, best first."""
        shares = [tuples / len(self.bottom.keys) for tuples in self._tuples_by_value]
        entropy = np.array([-(share @ np.log(share)) for share in shares], np.float64)
        return np.argsort(-entropy, kind="stable")

    @cached_property
    def _tuples_by_value(self) -> list[Integers]:
        """For each attribute, how many distinct tuples have each value of the table."""
        code, keys = self.code, self.bottom.keys
        codes = [
            ((keys[:, word] >> shift) & mask).astype(np.int64)
            for word, shift, mask in zip(code.words, code.shifts, code.masks)
        ]
        counts = [np.bincount(values) for values in codes]
        return [tuples[tuples > 0] for tuples in counts]

    def hopeless(self, groups: Groups, fixed: Integers) -> bool:
        """Whether no node with the same levels of the ``fixed`` attributes is feasible.

        Without the other attributes, the classes are unions of those of all these nodes, so what
        fails an upward closed condition there fails it in all of them.
        """
        table = projected(groups, self.code, fixed, self.slots)
        self.rows += len(groups.weights)
        _, suppressed, possible = judged(table, self.projectable, self.everyone)
        return bool(suppressed > self.limit or not possible)

    def fewest_below(self, groups: Groups, visit: Visit) -> int:
        """The least number of records that each node below a visited one suppresses."""
        if self.monotone:
            return visit.suppressed
        return int(judged(groups, self.projectable, self.everyone)[1])

    def visit(self, groups: Groups, levels: Integers) -> Visit:
        """Evaluate a node from its group table, and keep it if it is the best."""
        groups, kept, suppressed, possible = self._judged(groups)
        feasible = bool(possible) and suppressed <= self.limit
        loss, floor = math.nan, math.nan
        if not self.loss.by_level or (
            feasible and self._beats(self.loss.at_least(suppressed, levels), levels)
        ):
            loss, floor = self.loss.of(groups, kept, suppressed, levels)
        else:
            floor = self.loss.floor(levels)
        better = feasible and self._beats(loss, levels)
        if better and self._node_check is not None:
            better = feasible = self._accepted(groups, kept)
        visit = Visit(tuple(levels.tolist()), feasible, int(suppressed), loss, floor)
        if better:
            self.best, self._least = visit, rounded(loss)
        if self.closest is None or visit.suppressed < self.closest.suppressed:
            self.closest = visit
        self.visited += 1
        if len(self.visits) < _MOST_KEPT:
            self.visits.append(visit)
        return visit

    def measured(self, groups: Groups, levels: Integers) -> Visit:
        """Evaluate a node for its own sake: with its loss, and without making it the best."""
        groups, kept, suppressed, possible = self._judged(groups)
        feasible = bool(possible) and suppressed <= self.limit
        loss, floor = self.loss.of(groups, kept, suppressed, levels)
        if feasible and self._node_check is not None:
            feasible = self._accepted(groups, kept)
        return Visit(tuple(levels.tolist()), feasible, int(suppressed), loss, floor)

    def _judged(self, groups: Groups) -> tuple[Groups, Flags, int, bool]:
        """The remaining groups, which satisfy the conditions, the suppressed, if it is possible."""
        if not self._persons:
            return groups, *judged(groups, self.conditions, self.everyone)
        kept, _, left, possible = judged_persons(groups, self.conditions, self.everyone)
        suppressed = int(groups.weights[:, RECORDS].sum() - left[kept, RECORDS].sum())
        return groups._replace(weights=left), kept, suppressed, possible

    def _accepted(self, groups: Groups, kept: Flags) -> bool:
        """Whether the classes to release are accepted together."""
        assert self._node_check is not None
        if not self._persons:
            return bool(self._node_check(groups.weights[kept, RECORDS], None, None))
        persons, width = self.conditions.persons, code_width(self.conditions)
        first = (len(persons.value) - 1) * width
        _, gone, _, _ = judged_persons(groups, self.conditions, self.everyone)
        whose = groups.pair_value.astype(np.int64) - first
        staying = ~gone[persons.owner[-1, np.maximum(whose, 0)]]
        own = (whose >= 0) & kept[groups.pair_group] & staying
        _, classes = np.unique(groups.pair_group[own], return_inverse=True)
        return bool(self._node_check(np.bincount(classes), classes, whose[own]))

    def settled(self, floor: float, levels: Integers) -> bool:
        """Whether neither this node nor one above it can be better than the best."""
        return self.best is not None and not self._beats(floor, levels)

    def _beats(self, loss: float, levels: Integers) -> bool:
        """Less loss; in a tie, the lower sum of levels, then the lexicographic order."""
        if self.best is None:
            return True
        if abs(loss - self._least) > 1e-11 * abs(self._least):
            return loss < self._least
        if rounded(loss) != self._least:
            return rounded(loss) < self._least
        return (int(levels.sum()), tuple(levels.tolist())) < (
            sum(self.best.levels),
            self.best.levels,
        )


def rounded(loss: float) -> float:
    """Twelve digits: losses that differ only by the order of a sum are equal."""
    return float(f"{loss:.11e}") if math.isfinite(loss) else loss


def explored(visits: list[Visit], attributes: int) -> npt.NDArray[np.void]:
    """The visits as one record each, for drawing."""
    kind = np.dtype(
        [
            ("levels", np.int16, (attributes,)),
            ("feasible", np.bool_),
            ("suppressed", np.int64),
            ("loss", np.float64),
        ]
    )
    return np.array([visit[:4] for visit in visits], kind)
