"""What several tests of kernels need: points, partitions, records compared with all others."""

from __future__ import annotations

import numpy as np

from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_tree import compare_all, grow


def dissimilarities(records, row):
    """How unlike one record is to every record."""
    rows = records.values.shape[1]
    tree, found = grow(records, np.arange(rows)), np.empty(rows)
    set_query(tree.query, records, row)
    compare_all(tree, records.measure, found)
    return found


def matrix(records):
    """How unlike every two records are."""
    return np.array([dissimilarities(records, row) for row in range(records.values.shape[1])])


def finished(partition):
    """The labels of a partition, once all records have one."""
    while partition.advance() < len(partition.labels):
        pass
    assert partition.labels.dtype == np.int32
    return partition.labels


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
