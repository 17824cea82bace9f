"""What holds for every hierarchy on every column, checked the slow and obvious way."""

from __future__ import annotations

import numpy as np


def check_ladder(codes):
    """Levels nest, codes and labels fit, leaves and bounds say what they should."""
    levels, count = codes.maps.shape
    assert codes.maps.dtype == np.int32
    assert codes.leaves.dtype == np.float64
    assert codes.leaves.shape == (levels, count)
    assert levels == codes.levels == len(codes.labels)
    assert count == codes.column.count
    assert codes.maps[0].tolist() == list(range(count))
    assert not codes.maps[-1].any()
    assert codes.labels[-1] == ("*",) * min(count, 1)
    assert (codes.leaves[-1] == codes.domain).all()
    assert (codes.leaves >= 1).all()
    missing = codes.column.missing
    for level in range(levels):
        nodes = codes.maps[level].tolist()
        assert set(nodes) == set(range(codes.nodes(level))), "codes have gaps"
        assert len(set(codes.labels[level])) == codes.nodes(level), "a label stands for two nodes"
        if missing is not None and level < levels - 1:
            assert codes.labels[level][nodes[missing]] is None
            assert nodes.count(nodes[missing]) == 1
            assert nodes[missing] == max(nodes)
            assert codes.leaves[level, missing] == 1
    for level in range(levels - 1):
        parents = {}
        for node, parent in zip(codes.maps[level], codes.maps[level + 1], strict=True):
            assert parents.setdefault(node, parent) == parent, "a node has two parents"
        assert (codes.leaves[level] <= codes.leaves[level + 1]).all()
    check_bounds(codes)


def check_bounds(codes):
    """Values lie in their bounds, which nest, and nodes of quantities ascend with them."""
    own = codes.bounds(0)
    for level in range(codes.levels):
        bounds = codes.bounds(level)
        assert (bounds is None) == (own is None or codes.bounds(level) is None)
        if bounds is None:
            continue
        assert bounds.shape == (codes.nodes(level), 2)
        present = codes.column.count - (codes.column.missing is not None)
        nodes = codes.maps[level][:present]
        low, high = bounds[nodes, 0], bounds[nodes, 1]
        assert (low <= own[:present, 0]).all()
        assert (own[:present, 0] <= high).all()
        if codes.column.missing is not None and level < codes.levels - 1:
            assert np.isnan(bounds[codes.maps[level][-1]]).all()


def ascending(codes):
    """Whether the nodes of every level come in the order of the values."""
    present = codes.column.count - (codes.column.missing is not None)
    return all((np.diff(codes.maps[level][:present]) >= 0).all() for level in range(codes.levels))
