"""The exact search by depth, with roll-up, and the descent to a good node before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.projections import Projections
from shoal.kernels.lattice.roll_up import Integers, roll_up

_WORTH_A_LOOK = 6  # nodes above that cost more than finding out whether they are hopeless


def by_depth(lattice: Lattice, projections: Projections | None) -> Iterator[float]:
    """Visit every node that can be the best, each table rolled up from a parent's.

    Attributes with many values are raised in the outer loops, so that the inner ones work on
    small tables. A node is left out, with all that the walk would reach from it, where its floor
    is no better than the best node or projections rule out the most general one of them. Yields
    the share of the lattice that is settled.
    """
    heights = lattice.heights
    order = lattice.by_values
    inner = np.append(np.cumprod((heights[order] + 1.0)[::-1])[::-1], 1.0)  # nodes by position
    lattice.visit(lattice.at(lattice.top), lattice.top)
    levels = np.zeros(len(order), np.int64)
    for _ in descend(lattice, lattice.top, levels):
        yield 0.0
    lattice.visit(lattice.bottom, levels)
    settled = 1.0
    frames = [lattice.bottom] * len(order)  # the table at the current level of each position
    by_level = lattice.loss.by_level
    while frames:
        position = len(frames) - 1
        attribute = order[position]
        remaining = heights[attribute] - levels[attribute]
        levels[attribute] += 1
        if (
            remaining == 0
            or (by_level and lattice.settled(lattice.loss.floor(levels), levels))
            or (projections and projections.rules_out(_highest(levels, heights, order, position)))
        ):
            settled += remaining * inner[position + 1]
            levels[attribute] = 0
            frames.pop()
            continue
        table = frames[position]
        lattice.rows += len(table.weights)
        frames[position] = roll_up(
            table, lattice.code, int(attribute), int(levels[attribute]) - 1, lattice.slots
        )
        visit = lattice.visit(frames[position], levels)
        settled += 1
        if lattice.settled(visit.floor, levels):
            settled += remaining * inner[position + 1] - 1
            levels[attribute] = 0
            frames.pop()
        elif inner[position + 1] > _WORTH_A_LOOK and lattice.hopeless(
            frames[position], order[: position + 1]
        ):
            settled += inner[position + 1] - 1
        else:
            frames += [frames[position]] * (len(order) - position - 1)
        yield settled / inner[0]


def descend(lattice: Lattice, start: Integers, lowest: Integers) -> Iterator[None]:
    """Lower one attribute after the other, each as far as every step finds a better node.

    What has most to gain comes first. Then any attribute may go up again where another comes
    down. This gives no optimum, but a good node soon.
    """
    levels, terms = start.copy(), lattice.loss.terms
    rows = np.arange(len(levels))
    tried = set()
    moved = True
    while moved:
        moved = False
        gains = terms[rows, levels] - terms[rows, np.maximum(0, levels - 1)]
        falling = np.argsort(-gains, kind="stable")
        for up in (-1, *falling[::-1]):
            for down in falling:
                step = (rows == up).astype(np.int64) - (rows == down)
                while True:
                    node = levels + step
                    key = tuple(node.tolist())
                    if key in tried or np.any((node < lowest) | (node > lattice.heights)):
                        break
                    tried.add(key)
                    if lattice.loss.by_level and lattice.settled(lattice.loss.floor(node), node):
                        break
                    before = lattice.best
                    lattice.visit(lattice.near(node), node)
                    yield
                    if lattice.best is before:
                        break
                    levels, moved = node, True


def _highest(levels: Integers, heights: Integers, order: Integers, position: int) -> Integers:
    """The most general node that the walk reaches from here."""
    top = levels.copy()
    top[order[position:]] = heights[order[position:]]
    return top
