"""Searches of the lattice of levels: one level for each column, or for each class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.kernels.arrays import Flags, Integers, Labels
from shoal.masking.generalization._combinations import Problem, distinct_rows, joint_labels
from shoal.masking.generalization._serving import (
    Recoding,
    Relabelling,
    ServedLevels,
    Spans,
    boxed,
)
from shoal.table import HierarchyCodes, ends_of_members

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions
    from shoal.kernels.lattice.lattice import FullDomainSearch
    from shoal.kernels.lattice.roll_up import Groups

_PRESENT = "δ-presence with a lower bound requires that nobody is certain to be absent"


def full_domain(task: Problem, *, limit: float, loss: str, seconds: float) -> Recoding:
    """Search the lattice of levels for the least loss within the suppression limit."""
    from shoal.kernels.lattice.lattice import FullDomainSearch

    trees, records = task.trees, task.found.records
    space = lattice_of(task, limit=limit, loss=loss)
    most = space["limit"]
    work = FullDomainSearch(**space, seconds=seconds)
    task.log.run(work, 1, "Searching the lattice")
    if work.levels is None:
        raise RequirementNotMet(_closest(work, records, limit, task))
    lattice = {
        "nodes": work.nodes,
        "bound": work.bound,
        "heights": [tree.levels - 1 for tree in trees],
        **work.counters,
    }
    levels = dict(zip(task.names, work.levels, strict=True))
    recoding = _at(task, levels, loss=work.loss, optimal=work.optimal, lattice=lattice)
    finer = []  # columns that, one level finer, suppress too many records
    for name in (name for name, level in levels.items() if level):
        gone, possible = violating(task, levels | {name: levels[name] - 1})
        if not possible or task.found.sum_of(gone) > most:
            finer.append(name)
    kept = task.found.without(recoding.suppressed)
    there, columns = kept > 0, dict(zip(task.names, trees, strict=True))
    minimal = minimal_levels(columns, levels, task.found.codes[there], kept[there], finer)
    return replace(recoding, minimal=minimal)


def lattice_of(task: Problem, *, limit: float, loss: str) -> dict[str, Any]:
    """The lattice of a problem for the kernels, with the maximum number of suppressed records."""
    from shoal.kernels.lattice.conditions import needs_everyone

    demand, trees = task.demand, task.trees
    if needs_everyone(demand.conditions):
        limit = 0.0  # a suppressed person is certain to be absent
    return {
        "base": task.base,
        "maps": [tree.maps for tree in trees],
        "leaves": [tree.leaves for tree in trees],
        "domains": [tree.domain for tree in trees],
        "conditions": demand.conditions,
        "limit": math.floor(limit * task.found.records + 1e-9),
        "loss": loss,
        "weights": task.weights,
        "node_check": demand.accepts_partition if demand.of_partition else None,
    }


def at_levels(task: Problem, given: Sequence[int], *, limit: float) -> Recoding:
    """Apply fixed levels without a search, and suppress the classes that fail."""
    from shoal.kernels.lattice.conditions import needs_everyone

    levels = dict(zip(task.names, given, strict=True))
    recoding = _at(task, levels, loss=np.nan, optimal=False, lattice={})
    gone, records = task.found.sum_of(recoding.suppressed), task.found.records
    if gone > math.floor(limit * records + 1e-9):
        raise RequirementNotMet(
            f"At the given levels, {gone} of {records} records are in classes that fail, but "
            f"at most {limit:.1%} may be suppressed. Raise 'suppression_limit' to "
            f"{gone / records:.4g} or more, or use higher levels. Nothing was written."
        )
    if needs_everyone(task.demand.conditions) and (gone or not violating(task, levels)[1]):
        raise RequirementNotMet(
            "At the given levels, some people of the population are in classes without a released "
            f"record, and {_PRESENT}. Use higher levels. Nothing was written."
        )
    kept = task.found.without(recoding.suppressed)
    cells = [
        ((tree.leaves[level][codes] - 1) @ kept) / max(1.0, tree.domain - 1) * weight
        for tree, level, codes, weight in zip(
            task.trees, given, task.found.codes.T, task.weights, strict=True
        )
    ]
    width = len(task.names)
    return replace(recoding, loss=(float(sum(cells)) + gone * width) / (records * width))


def _at(task: Problem, levels: Mapping[str, int], **facts: Any) -> Recoding:
    """The records at given levels; records whose class breaks a condition are marked."""
    columns = {
        name: Relabelling(
            list(tree.labels[level]),
            tree.maps[level][codes][task.found.of_row],
            tree.meaning([level]),
        )
        for name, tree, codes in zip(task.names, task.trees, task.found.codes.T, strict=True)
        if (level := levels[name])
    }
    gone, _ = violating(task, levels)
    return Recoding(
        columns,
        suppressed=gone,
        served=ServedLevels(levels, task.hierarchies),
        levels=levels,
        **facts,
    )


def violating(task: Problem, levels: Mapping[str, int]) -> tuple[Flags, bool]:
    """Which records are in a class that breaks a condition, and whether a release is possible.

    If persons are suppressed as a whole, all their other records are marked too. A release is
    impossible if everyone in a population must be present and some have no record.
    """
    from shoal.kernels.conditions import counted_once
    from shoal.kernels.lattice.conditions import judged, judged_persons, needs_everyone

    base, asked = task.base, task.demand.conditions
    nodes = (task.coded[name].maps[level] for name, level in levels.items())
    cells = (maps[codes] for maps, codes in zip(nodes, base.tuples.T, strict=True))
    labels, count = joint_labels(cells, len(base.counts))
    weights = np.zeros((count, 2), np.int64)
    np.add.at(weights, labels, np.column_stack([base.counts, base.population]))
    groups = class_groups(
        weights, labels[base.pair_tuple], base.pair_codes, base.pair_counts, asked
    )
    if not counted_once(asked.persons):
        kept, _, possible = judged(groups, asked, needs_everyone(asked))
        return ~kept[labels][task.found.of_row], bool(possible)
    kept, gone, _, possible = judged_persons(groups, asked, needs_everyone(asked))
    owner = asked.persons.owner[-1, task.demand.secrets[-1]]
    return ~kept[labels][task.found.of_row] | gone[owner], bool(possible)


def class_groups(
    weights: Integers,
    labels: npt.NDArray[Any],
    secrets: npt.NDArray[Any],
    counts: Integers,
    asked: Conditions,
) -> Groups:
    """Classes in the form the kernels need: of records, or of units with their counts."""
    from shoal.kernels.conditions import code_width
    from shoal.kernels.lattice.roll_up import Groups

    columns = len(secrets)
    values = secrets + max(1, code_width(asked)) * np.arange(columns)[:, None]
    return Groups(
        np.empty((0, 0), np.uint64),
        weights,
        np.tile(labels.astype(np.int32), columns),
        values.astype(np.int32).ravel(),
        np.tile(counts, columns),
    )


def _closest(work: FullDomainSearch, records: int, limit: float, task: Problem) -> str:
    """Why nothing was found, and what would work."""
    from shoal.kernels.lattice.conditions import needs_everyone

    if needs_everyone(task.demand.conditions):
        return (
            f"No generalization satisfies the models without suppression, and {_PRESENT}. "
            "Relax the models. Nothing was written."
        )
    most = f"at most {limit:.1%} of the {records} records may be suppressed"
    if work.closest is None:
        return f"No generalization satisfies the models if {most}. Nothing was written."
    share = work.closest[1] / records
    return (
        f"No generalization satisfies the models if {most}: the closest one suppresses "
        f"{work.closest[1]} ({share:.2%}). Raise 'suppression_limit' to {share:.4g} or more, or "
        "relax the models. Nothing was written."
    )


def local(task: Problem, *, seconds: float) -> Recoding:
    """Peel the lattice: each class gets the lowest levels that it can have; no suppression."""
    from shoal.kernels.conditions import PRESENCE, only_kinds
    from shoal.kernels.lattice.conditions import needs_everyone
    from shoal.kernels.peel.peel import PeelLattice

    asked, trees, base = task.demand.conditions, task.trees, task.base
    work = PeelLattice(
        base,
        [tree.maps for tree in trees],
        [tree.leaves for tree in trees],
        [tree.domain for tree in trees],
        # shares of a population depend on all classes: checked when all are known
        only_kinds(asked, asked.kinds != PRESENCE),
        weights=task.weights,
        seconds=seconds,
    )
    task.log.run(work, 1, "Peeling the lattice")
    if not work.feasible:  # the demand was checked, so this is a bug
        raise RuntimeError("local recoding found no classes")
    at = work.levels
    if len(at) == 1 and needs_everyone(asked):
        at = np.array([[tree.levels - 1 for tree in trees]])  # one class holds everyone
    tuples: npt.NDArray[Any] = np.arange(len(base.counts))
    counts, of_row = base.counts, task.found.of_row
    if len(task.demand.secrets):
        tuples, counts, of_row = base.pair_tuple, base.pair_counts, task.units.of_row
    class_of_row = work.labels[of_row]
    mine = work.labels >= 0  # a combination only in the population is in no class
    classes, tuples, counts = work.labels[mine], tuples[mine], counts[mine]
    # one combination of each class: at the class's levels all of its combinations are equal
    first = np.empty(len(at), np.int64)
    first[classes] = tuples
    stretches = {}
    boxes = np.empty(at.shape, np.int32)
    losses = np.zeros(len(boxes))
    for place, (name, tree) in enumerate(zip(task.names, trees, strict=True)):
        values, levels = base.tuples[first, place], at[:, place]
        nodes, boxes[:, place] = distinct_rows(np.column_stack([levels, tree.maps[levels, values]]))
        paid = (tree.leaves[levels, values] - 1) / max(1.0, tree.domain - 1)
        losses += paid * task.weights[place]
        stretches[name] = Spans.of_nodes(tree, nodes), tree.meaning(levels)
    loss = float(losses @ np.bincount(classes, counts)) / (task.found.records * len(task.names))
    codes, by_name = base.tuples[tuples], dict(zip(task.names, trees, strict=True))
    minimal = minimal_nodes(by_name, at, classes, codes, counts)
    return boxed(stretches, boxes, losses, loss, class_of_row, task.hierarchies, minimal)


# -- what choices reveal: Local recoding gives a class the lowest nodes that its members have in
# common, so that the members of a class are never all under one child of a released node. A
# full-domain search takes the least loss, so that with one column a level finer too many records
# would have been in classes that fail. Anyone who reads the release and knows the hierarchies can
# conclude both (Cohen 2022, downcoding).


def minimal_nodes(
    trees: Mapping[str, HierarchyCodes],
    at: npt.NDArray[Any],
    classes: Labels,
    codes: Labels,
    counts: Integers,
) -> dict[str, Any]:
    """For classes with their own levels: the cells whose class differs one level below.

    ``classes``, ``codes`` and ``counts`` describe combinations.
    """
    narrowed = np.zeros(at.shape, np.bool_)
    for place, tree in enumerate(trees.values()):
        below = np.maximum(at[:, place] - 1, 0)
        nodes = tree.maps[below[classes], codes[:, place]]
        lowest, highest = ends_of_members(classes, nodes.astype(np.float64), len(at)).T
        narrowed[:, place] = (at[:, place] > 0) & (lowest < highest)
    columns = [name for place, name in enumerate(trees) if narrowed[:, place].any()]
    return _minimal(columns, narrowed[classes], counts)


def _minimal(columns: Sequence[str], narrowed: Flags, counts: Integers) -> dict[str, Any]:
    """What an intruder can correctly conclude, from the narrowed cells, [combination, column].

    ``columns`` are those known to be impossible one level finer. ``cells`` counts the released
    cells that this narrows down, and ``records`` the records with such a cell, among ``released``
    records with ``width`` generalized columns each.
    """
    return {
        "columns": list(columns),
        "cells": int(counts @ narrowed.sum(axis=1)),
        "records": int(counts @ narrowed.any(axis=1)),
        "released": int(counts.sum()),
        "width": narrowed.shape[1],
    }


def minimal_levels(
    trees: Mapping[str, HierarchyCodes],
    levels: Mapping[str, int],
    combinations: Labels,
    records: Integers,
    too_fine: Sequence[str],
) -> dict[str, Any]:
    """For one level per column: the columns that are too fine one level below, and their cells.

    ``combinations`` are those of the released records, with columns in the order of ``trees``;
    ``records`` counts the records of each. That some class would fail says something about a
    particular class only if no other class could fail: if only its node has several children.
    """
    at_level = [tree.maps[levels[name]] for name, tree in trees.items()]
    cells = np.column_stack(
        [nodes[codes] for nodes, codes in zip(at_level, combinations.T, strict=True)]
    )
    _, labels = distinct_rows(cells)
    narrowed = np.zeros(cells.shape, np.bool_)
    for place, (name, tree) in enumerate(trees.items()):
        if name not in too_fine:
            continue
        edges, _ = distinct_rows(np.column_stack([at_level[place], tree.maps[levels[name] - 1]]))
        several = np.bincount(edges[:, 0]) > 1
        could = several[cells[:, place]]
        if len(np.unique(labels[could])) == 1:
            narrowed[could, place] = True
    return _minimal(too_fine, narrowed, records)
