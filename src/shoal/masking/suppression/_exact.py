"""The provably fewest blanks of a small table, by integer programming (HiGHS).

A variable says how many records of a combination lose the cells of a pattern. In the first reading
it may be any number, and every class in use has enough records. With missing values as wildcards
it is all or none, every short combination loses a cell, and enough records agree with it then.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.masking.suppression._cells import Blanks, Cells

_LARGEST = 1_500  # combinations × patterns
_MOST_PAIRS = 100_000  # of them that may agree
_NODES = 300  # of the search, so that its result does not depend on the clock


def fewest_blanks(cells: Cells, *, wildcard: bool) -> Blanks | None:
    """The best blanks; None if the table is too large to prove it, or nothing is enough."""
    rows = cells.short if wildcard else np.arange(len(cells.codes))
    width = len(cells.costs)
    size = len(rows) << width
    if size > _LARGEST or (wildcard and size**2 > _MOST_PAIRS) or len(np.unique(cells.need)) > 1:
        return None
    every = np.array([*product((False, True), repeat=width)])
    of, place = np.nonzero(~(cells.missing[rows][:, None, :] & every).any(axis=2))
    if wildcard:
        of, place = of[every[place].any(axis=1)], place[every[place].any(axis=1)]
    patterns, combinations = every[place], rows[of]
    costs = (patterns @ cells.costs) * (cells.counts[combinations] if wildcard else 1.0)
    solve = _agreeing if wildcard else _classes
    solution = solve(cells, combinations, of, patterns, costs)
    if solution is None:
        return None
    used = (solution > 0) & patterns.any(axis=1)
    records = cells.counts[combinations] if wildcard else solution
    return cells.blanks(combinations[used], patterns[used], records[used], None)


def _classes(
    cells: Cells, combinations: Integers, of: Integers, patterns: Flags, costs: Floats
) -> Integers | None:
    """Numbers of records, so that every class of equal cells has enough of them or none."""
    from scipy import sparse

    blanked = patterns | cells.missing[combinations]
    values = np.where(blanked, -1, cells.codes[combinations].astype(np.int64))
    _, label = np.unique(values, axis=0, return_inverse=True)
    label, types = label.ravel(), np.arange(len(costs))
    classes = int(label.max()) + 1
    ones, counts = np.ones(len(types)), cells.counts[combinations]
    whole = sparse.csr_array((ones, (of, types)), (int(of.max()) + 1, len(types) + classes))
    filled = sparse.hstack(
        [sparse.csr_array((ones, (label, types))), -int(cells.need[0]) * sparse.eye_array(classes)]
    )
    opened = sparse.hstack(
        [-sparse.eye_array(len(types)), sparse.csr_array((counts, (types, label)))]
    )
    return _solved(
        np.append(costs, np.zeros(classes)),
        np.append(counts, np.ones(classes)),
        [(whole, cells.counts, cells.counts), (filled, 0, np.inf), (opened, 0, np.inf)],
        len(types),
    )


def _agreeing(
    cells: Cells, combinations: Integers, of: Integers, patterns: Flags, costs: Floats
) -> Integers | None:
    """One pattern for each combination, so that enough records agree with each."""
    from scipy import sparse

    blanked = patterns | cells.missing[combinations]
    codes = cells.codes[combinations]
    agree = np.ones((len(costs), len(costs)), np.bool_)
    for gap, values in zip(blanked.T, codes.T, strict=True):
        agree &= (values[:, None] == values) | gap[:, None] | gap
    others = np.ones(len(cells.codes), np.bool_)
    others[combinations] = False
    fixed = np.zeros(len(costs))
    for row in np.flatnonzero(others):
        same = (cells.codes[row] == codes) | blanked | cells.missing[row]
        fixed += cells.counts[row] * same.all(axis=1)
    types = np.arange(len(costs))
    whole = sparse.csr_array((np.ones(len(types)), (of, types)))
    enough = sparse.csr_array(
        agree * cells.counts[combinations].astype(np.float64) - np.diag(cells.need[combinations])
    )
    return _solved(
        costs, np.ones(len(costs)), [(whole, 1, 1), (enough, -fixed, np.inf)], len(costs)
    )


def _solved(costs: Floats, most: Floats, rules: list[tuple], wanted: int) -> Integers | None:  # type: ignore[type-arg]
    """The best whole numbers up to ``most`` under linear rules; None if that is not proved."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, most),
        constraints=[LinearConstraint(*rule) for rule in rules],
        options={"node_limit": _NODES, "mip_rel_gap": 0.0},
    )
    return np.rint(result.x[:wanted]).astype(np.int64) if result.status == 0 else None
