"""How Mondrian sees an attribute: values on a line, or the leaves of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit


class Attribute(NamedTuple):
    """How one attribute is cut.

    Codes follow the order of the values; under a tree, the values below each node are neighbours.

    Parameters
    ----------
    positions : numpy.ndarray
        Of an ordered attribute, where each code stands on a line from 0 to 1; a value that is
        to be kept apart from the others, as a missing one, may stand beyond.
    first, last, widths : numpy.ndarray
        Of a tree, with a row per height (0 is the values, the last is the root): the first and
        the last code under the node over each code, and the node's width from 0 to 1. Without
        rows the attribute is ordered.
    """

    positions: Floats
    first: Codes
    last: Codes
    widths: Floats


def ordered(positions: Floats) -> Attribute:
    """An attribute without a tree."""
    none = np.empty((0, len(positions)), np.int32)
    return Attribute(positions, none, none, np.empty((0, len(positions))))


class Packed(NamedTuple):
    """All attributes in arrays of one shape."""

    positions: Floats  # one after the other
    starts: Integers
    tree: Integers  # which tree an attribute has, -1 for none
    heights: Integers
    first: Codes
    last: Codes
    widths: Floats


def packed(attributes: Sequence[Attribute]) -> Packed:
    sizes = [len(attribute.positions) for attribute in attributes]
    trees = [attribute for attribute in attributes if len(attribute.first)]
    shape = (
        len(trees),
        max((len(attribute.first) for attribute in trees), default=0),
        max((len(attribute.positions) for attribute in trees), default=0),
    )
    first, last = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    widths = np.zeros(shape)
    for place, attribute in enumerate(trees):
        rows, values = attribute.first.shape
        first[place, :rows, :values] = attribute.first
        last[place, :rows, :values] = attribute.last
        widths[place, :rows, :values] = attribute.widths
    return Packed(
        np.concatenate([attribute.positions for attribute in attributes] or [np.empty(0)]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.cumsum([len(a.first) > 0 for a in attributes], dtype=np.int64)
        * np.array([len(a.first) > 0 for a in attributes], np.int64)
        - 1,
        np.array([len(attribute.first) for attribute in trees], np.int64),
        first,
        last,
        widths,
    )


@njit(cache=True)
def height_over(attributes: Any, tree: int, low: int, high: int) -> int:
    """How high the lowest node over both codes is."""
    height = 0
    while height < attributes.heights[tree] - 1 and attributes.last[tree, height, low] < high:
        height += 1
    return height


@njit(cache=True)
def width_over(attributes: Any, column: int, low: int, high: int) -> float:
    tree = attributes.tree[column]
    if tree >= 0:
        return attributes.widths[tree, height_over(attributes, tree, low, high), low]
    start = attributes.starts[column]
    return attributes.positions[start + high] - attributes.positions[start + low]
