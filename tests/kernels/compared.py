"""Points of many kinds, and records compared with all others."""

from __future__ import annotations

import numpy as np

from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_tree import compare_all, grow


def dissimilarities(records, row):
    """How unlike one record is to every record."""
    rows = records.values.shape[1]
    tree, found = grow(records, np.arange(rows)), np.empty(rows)
    set_query(tree.query, records.measure, records.values, records.codes, row)
    compare_all(tree, records.measure, found)
    return found


def points_of(kind, rows, columns, seed):
    """Points that are hard in one way or another."""
    random = np.random.default_rng(seed)
    shape = rows, columns
    return {
        "normal": lambda: random.normal(size=shape),
        "ties": lambda: random.integers(0, 10, shape).astype(float),
        "zeros": lambda: random.integers(0, 10, shape) * (random.random(shape) < 0.3) * 1.0,
        "copies": lambda: random.normal(size=shape)[random.integers(0, 1 + rows // 7, rows)],
        "constant": lambda: np.full(shape, 2.5),
        "skewed": lambda: np.exp(random.normal(0, 2, shape)),
        "clustered": lambda: random.normal(size=shape) * 0.1 + random.integers(0, 4, (rows, 1)),
        "far from zero": lambda: 1e8 + random.normal(size=shape),
    }[kind]()
