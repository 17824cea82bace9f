"""Local recoding: every class at the lowest levels that it can have, nothing suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shoal.masking._base import StepLog
from shoal.masking.generalization._boxes import ServedBoxes, Spans
from shoal.masking.generalization._combinations import Combinations, distinct_rows
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._full_domain import base_of
from shoal.masking.generalization._minimal import minimal_nodes
from shoal.masking.generalization._recoding import Recoding, Relabelling
from shoal.table import HierarchyCodes


def local(
    names: Sequence[str],
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    log: StepLog,
    *,
    seconds: float,
) -> Recoding:
    """Peel the lattice: at each node the classes that are safe are finished there."""
    from shoal.kernels.conditions import PRESENCE, only_kinds
    from shoal.kernels.lattice.conditions import needs_everyone
    from shoal.kernels.peel.peel import PeelLattice

    asked = demand.conditions
    trees = [coded[name] for name in names]
    base = base_of(found, demand)
    work = PeelLattice(
        base,
        [tree.maps for tree in trees],
        [tree.leaves for tree in trees],
        [tree.domain for tree in trees],
        # shares of a population depend on all classes: they are judged when these are there
        only_kinds(asked, asked.kinds != PRESENCE),
        seconds=seconds,
    )
    done = 0.0
    while done < 1.0:
        log.tell("Peeling the lattice", done)
        done = work.advance()
    if not work.feasible:  # the demand was checked, so this is a fault of ours
        raise RuntimeError("local recoding found no classes")
    units = found.of_row if not len(demand.secrets) else found.with_secrets(demand.secrets).of_row
    tuples = np.arange(len(base.counts)) if not len(demand.secrets) else base.pair_tuple
    class_of_row, at = work.labels[units], work.levels
    if len(at) == 1 and needs_everyone(asked):
        at = np.array([[tree.levels - 1 for tree in trees]])  # one class stands for everybody
    # a combination of each class: its cells at the levels of the class are those of all
    first = np.empty(len(at), np.int64)
    mine = work.labels >= 0  # a combination that only a population has is in no class
    first[work.labels[mine]] = tuples[mine]
    columns, spans = {}, {}
    boxes = np.empty(at.shape, np.int32)
    losses = np.zeros(len(boxes))
    for place, (name, tree) in enumerate(zip(names, trees, strict=True)):
        values, levels = base.tuples[first, place], at[:, place]
        nodes, boxes[:, place] = distinct_rows(np.column_stack([levels, tree.maps[levels, values]]))
        losses += (tree.leaves[levels, values] - 1) / max(1.0, tree.domain - 1)
        spans[name] = Spans.of_nodes(tree, nodes)
        if levels.any():
            columns[name] = Relabelling(
                spans[name].texts, boxes[class_of_row, place], tree.meaning(levels)
            )
    order = np.argsort(losses, kind="stable")
    served = ServedBoxes(spans, boxes[order], tuple(columns))
    nobody = np.zeros(len(class_of_row), np.bool_)
    loss = float(losses @ np.bincount(class_of_row)) / (len(class_of_row) * len(names))
    return Recoding(
        columns,
        loss,
        nobody,
        served,
        box_of_row=np.argsort(order)[class_of_row],
        minimal=minimal_nodes({name: coded[name] for name in names}, at, class_of_row),
    )
