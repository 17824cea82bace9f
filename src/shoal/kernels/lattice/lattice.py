"""Optimal full-domain generalization: the best level of every attribute, and the proof of it.

All values of an attribute are generalised to one level of its hierarchy. Classes that violate a
condition are suppressed, all of their records; a node of the lattice is feasible if these are no
more than a limit. Conditions that compare with the whole table do so with all its records.

The search works on the distinct combinations of values alone, so its cost does not grow with the
records. A node's floor, the least it can cost, cuts off all above it, and what it suppresses, all
below it: where the levels alone give the floor, nodes are eliminated from above. Else each group
table is rolled up from a parent's. Where nothing may be suppressed, pairs of attributes rule out
nearly all nodes beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Floats
from shoal.kernels.conditions import Conditions
from shoal.kernels.lattice.anytime import Anytime
from shoal.kernels.lattice.nodes import Lattice, NodeCheck, explored
from shoal.kernels.lattice.projections import Projections
from shoal.kernels.lattice.roll_up import Base
from shoal.kernels.lattice.searches import by_depth, from_above

_PORTION = 0.05  # seconds


class FullDomainSearch:
    """The node of least loss among all that hold the conditions within the suppression limit.

    Among nodes of equal loss (to 12 digits) it is the one with the lowest sum of levels, and
    among these the first in lexicographic order.

    Parameters
    ----------
    base : Base
        The distinct combinations of values, with their counts.
    maps, leaves : sequences of arrays of shape (levels, values)
        For each attribute the code of each value at each level, level 0 being the value itself,
        and how many values of the hierarchy are under that code.
    domains : sequence of float
        How many values each hierarchy has.
    conditions : Conditions
        What every released class must satisfy.
    limit : int
        The most records that may be suppressed.
    loss : str
        One of ``shoal.kernels.lattice.loss_names.LOSSES``, which ``losses`` defines.
    node_check : callable, optional
        Gets the sizes of the classes that would be released, and where persons are counted the
        class and the person of each pair (else None); false rejects the node. It is asked only
        about nodes that are feasible otherwise and better than the best so far.
    max_nodes : int
        A larger lattice is searched for ``seconds`` seconds, the best node found is given, and
        ``optimal`` says whether it was proven to be the best.
    seconds : float
        For lattices larger than ``max_nodes`` only.

    Examples
    --------
    Two ages and two towns; two records may not stand alone. Giving up the town is enough.

    >>> from shoal.kernels.conditions import only_size
    >>> none = np.empty(0, np.int32)
    >>> base = Base(
    ...     np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32), np.array([3, 1, 1, 3]),
    ...     np.zeros(4, np.int64), none, none.reshape(0, 0), none.astype(np.int64),
    ... )
    >>> maps = [np.array([[0, 1], [0, 0]], np.int32)] * 2
    >>> leaves = [np.array([[1.0, 1.0], [2.0, 2.0]])] * 2
    >>> search = FullDomainSearch(base, maps, leaves, [2.0, 2.0], only_size(2), limit=0)
    >>> while search.advance() < 1:
    ...     pass
    >>> search.levels, round(search.loss, 4), search.suppressed, search.optimal
    ((0, 1), 0.4142, 0, True)
    """

    def __init__(
        self,
        base: Base,
        maps: Sequence[Codes],
        leaves: Sequence[Floats],
        domains: Sequence[float],
        conditions: Conditions,
        *,
        limit: int,
        loss: str = "loss",
        node_check: NodeCheck | None = None,
        max_nodes: int = 200_000,
        seconds: float = 10.0,
    ) -> None:
        self._lattice = Lattice(base, maps, leaves, domains, conditions, limit, loss, node_check)
        self._seconds = seconds
        self._anytime: Anytime | None = None
        self._finished = False
        self.progress = 0.0
        self._steps = self._exactly() if self._lattice.size() <= max_nodes else self._in_time()

    def advance(self) -> float:
        """Do about 50 ms of work; give how much is done, 1 at the end."""
        end = time.monotonic() + _PORTION
        for progress in self._steps:
            self.progress = max(self.progress, min(progress, 0.999))
            if time.monotonic() > end:
                return self.progress
        self._finished = True
        self.progress = 1.0
        return 1.0

    def _exactly(self) -> Iterator[float]:
        lattice = self._lattice
        projections = None if lattice.limit > 0 else Projections(lattice)
        yield 0.0
        told = lattice.limit < lattice.loss.records or lattice.loss.charges_suppression
        search = from_above if lattice.loss.by_level and told else by_depth
        yield from search(lattice, projections)

    def _in_time(self) -> Iterator[float]:
        start = time.monotonic()
        projections = Projections(self._lattice)
        self._anytime = Anytime(self._lattice, projections)
        for _ in self._anytime.steps():
            spent = time.monotonic() - start
            yield spent / max(self._seconds, 1e-9)
            if spent > self._seconds:
                return

    @property
    def levels(self) -> tuple[int, ...] | None:
        """The level of each attribute; None where no feasible node was found."""
        return None if self._lattice.best is None else self._lattice.best.levels

    @property
    def loss(self) -> float:
        """What the node costs; infinite where there is none."""
        return math.inf if self._lattice.best is None else self._lattice.best.loss

    @property
    def suppressed(self) -> int:
        """The records that the node suppresses; 0 where there is none."""
        return 0 if self._lattice.best is None else self._lattice.best.suppressed

    @property
    def optimal(self) -> bool:
        """Whether no node is better, or, without a node, none is feasible."""
        if self._anytime is not None:
            return self._anytime.optimal
        return self._finished

    @property
    def bound(self) -> float:
        """No feasible node costs less."""
        if self.optimal:
            return self.loss
        return -math.inf if self._anytime is None else self._anytime.bound

    @property
    def closest(self) -> tuple[tuple[int, ...], int] | None:
        """The levels of the visited node that suppresses least, and how many records."""
        visit = self._lattice.closest
        return None if visit is None else (visit.levels, visit.suppressed)

    @property
    def nodes(self) -> npt.NDArray[np.void]:
        """Visited nodes with their levels, feasibility, suppressed records and loss.

        The first 5,000, and the best one among them or after them.
        """
        lattice = self._lattice
        visits = lattice.visits
        if lattice.best is not None and lattice.best not in visits:
            visits = [*visits, lattice.best]
        return explored(visits, len(lattice.heights))

    @property
    def counters(self) -> dict[str, float]:
        """The size of the lattice, nodes visited, and rows of group tables read for that."""
        lattice = self._lattice
        return {"lattice": lattice.size(), "visited": lattice.visited, "rows": lattice.rows}
