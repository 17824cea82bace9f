"""The searches of the lattice of levels: one level for each column, or for each class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.kernels.arrays import Flags
from shoal.masking._base import StepLog
from shoal.masking.generalization._combinations import Combinations, distinct_rows
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._recoding import (
    Recoding,
    Relabelling,
    minimal_levels,
    minimal_nodes,
)
from shoal.masking.generalization._serving import ServedBoxes, ServedLevels, Spans
from shoal.table import HierarchyCodes

if TYPE_CHECKING:
    from shoal.kernels.lattice.lattice import FullDomainSearch
    from shoal.kernels.lattice.roll_up import Base


_PRESENT = "δ-presence with a lower bound asks that nobody is surely absent"


def full_domain(
    names: Sequence[str],
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    log: StepLog,
    *,
    limit: float,
    loss: str,
    seconds: float,
) -> Recoding:
    """Search the lattice of levels for the least loss within the suppression limit."""
    from shoal.kernels.lattice.conditions import needs_everyone
    from shoal.kernels.lattice.lattice import FullDomainSearch

    if needs_everyone(demand.conditions):
        limit = 0.0  # who is suppressed is surely absent
    trees = [coded[name] for name in names]
    base = base_of(found, demand)
    work = FullDomainSearch(
        base,
        [tree.maps for tree in trees],
        [tree.leaves for tree in trees],
        [tree.domain for tree in trees],
        demand.conditions,
        limit=math.floor(limit * found.records + 1e-9),
        loss=loss,
        node_check=demand.accepts_partition if demand.of_partition else None,
        seconds=seconds,
    )
    done = 0.0
    while done < 1.0:
        log.tell("Searching the lattice", done)
        done = work.advance()
    if work.levels is None:
        raise RequirementNotMet(_closest(work, found.records, limit, demand))
    recoding = _at(
        names,
        found,
        coded,
        demand,
        work.levels,
        loss=work.loss,
        optimal=work.optimal,
        lattice={
            "nodes": work.nodes,
            "bound": work.bound,
            "heights": [tree.levels - 1 for tree in trees],
            **work.counters,
        },
    )
    finer = _too_fine(found, coded, demand, recoding.levels, limit * found.records)
    gone = np.where(recoding.suppressed, len(found.counts), found.of_row)
    kept = found.sums(gone, len(found.counts) + 1)[:-1]
    columns, there = {name: coded[name] for name in names}, kept > 0
    minimal = minimal_levels(columns, recoding.levels, found.codes[there], kept[there], finer)
    return replace(recoding, minimal=minimal)


def _too_fine(
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    levels: Mapping[str, int],
    limit: float,
) -> list[str]:
    """The columns of which a level finer, the others as they are, suppresses too many records."""
    out = []
    for name, level in levels.items():
        if not level:
            continue
        maps = [coded[one].maps[at - (one == name)] for one, at in levels.items()]
        gone, possible = violating(found, maps, demand)
        if not possible or found.sum_of(gone) > math.floor(limit + 1e-9):
            out.append(name)
    return out


def at_levels(
    names: Sequence[str],
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    levels: Sequence[int],
    *,
    limit: float,
) -> Recoding:
    """No search: the levels are given, whatever the data are; classes that fail are suppressed."""
    from shoal.kernels.lattice.conditions import needs_everyone

    recoding = _at(names, found, coded, demand, levels, loss=np.nan, optimal=False, lattice={})
    gone, records = found.sum_of(recoding.suppressed), found.records
    if gone > math.floor(limit * records + 1e-9):
        raise RequirementNotMet(
            f"At the given levels {gone} of {records} records are in classes that fail, and "
            f"at most {limit:.1%} may be suppressed. Raise 'suppression_limit' to "
            f"{gone / records:.4g} or more, or give higher levels. Nothing was written."
        )
    if needs_everyone(demand.conditions):
        _refuse_absence(names, found, coded, demand, levels, gone)
    kept = np.flatnonzero(~recoding.suppressed)
    times = 1 if found.times is None else found.times[kept]
    cells = [
        ((coded[name].leaves[level][coded[name].column.codes[kept]] - 1) * times).sum()
        / max(1.0, coded[name].domain - 1)
        for name, level in zip(names, levels, strict=True)
    ]
    loss = (float(sum(cells)) + gone * len(names)) / (records * len(names))
    return replace(recoding, loss=loss)


def _refuse_absence(
    names: Sequence[str],
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    levels: Sequence[int],
    gone: int,
) -> None:
    """Raise RequirementNotMet where people of the population are surely not in the table."""
    maps = [coded[name].maps[level] for name, level in zip(names, levels, strict=True)]
    if gone or not violating(found, maps, demand)[1]:
        raise RequirementNotMet(
            f"At the given levels some people of the population are in classes without a released "
            f"record, and {_PRESENT}. Give higher levels. Nothing was written."
        )


def _at(
    names: Sequence[str],
    found: Combinations,
    coded: Mapping[str, HierarchyCodes],
    demand: Demand,
    levels: Sequence[int],
    **facts: Any,
) -> Recoding:
    """The records at some levels, with those marked whose class breaks a condition."""
    level_of, records = dict(zip(names, levels, strict=True)), len(found.of_row)
    columns = {
        name: Relabelling(
            list(tree.labels[level]),
            tree.maps[level][tree.column.codes[:records]],
            tree.meaning([level]),
        )
        for name, tree in coded.items()
        if (level := level_of[name])
    }
    maps = [coded[name].maps[level] for name, level in level_of.items()]
    gone, _ = violating(found, maps, demand)
    return Recoding(
        columns, suppressed=gone, served=ServedLevels(level_of), levels=level_of, **facts
    )


def base_of(found: Combinations, demand: Demand) -> Base:
    """The combinations as the kernels take them; with sensitive values where they matter."""
    from shoal.kernels.lattice.roll_up import Base

    none = np.empty(0, np.int32)
    counts = found.counts.astype(np.int64)
    population = np.zeros(len(counts), np.int64) if found.population is None else found.population
    if not len(demand.secrets):
        nothing = np.empty((0, 0), np.int32)
        return Base(found.codes, counts, population, none, nothing, np.empty(0, np.int64))
    pairs = found.with_secrets(demand.secrets)
    return Base(found.codes, counts, population, pairs.combination, pairs.secrets, pairs.counts)


def violating(
    found: Combinations, maps: Sequence[npt.NDArray[Any]], demand: Demand
) -> tuple[Flags, bool]:
    """Which records lie in a class that breaks a condition, and if it can be otherwise.

    With them go all records of the same persons, where these are taken out as a whole. It cannot
    be otherwise where everybody of a population must be present and some have no record.
    """
    from shoal.kernels.grouping import dense_labels

    labels, count = np.zeros(len(found.counts), np.int64), 1
    for place, codes in enumerate(maps):
        width = np.uint64(int(codes.max(initial=0)) + 1)
        keys = labels.astype(np.uint64) * width + codes[found.codes[:, place]].astype(np.uint64)
        labels, count = dense_labels(keys)
    return judged_rows(labels, count, found, demand)


def judged_rows(
    labels: npt.NDArray[Any], count: int, found: Combinations, demand: Demand
) -> tuple[Flags, bool]:
    """The same for classes given by the label of each combination."""
    from shoal.kernels.conditions import code_width
    from shoal.kernels.lattice.conditions import judged, judged_persons, needs_everyone
    from shoal.kernels.lattice.roll_up import Groups
    from shoal.kernels.persons import counted_once

    base, asked = base_of(found, demand), demand.conditions
    weights = np.zeros((count, 2), np.int64)
    np.add.at(weights, labels, np.column_stack([base.counts, base.population]))
    secrets, values = len(base.pair_codes), max(1, code_width(asked))
    groups = Groups(
        np.empty((0, 0), np.uint64),
        weights,
        np.tile(labels[base.pair_tuple].astype(np.int32), secrets),
        (base.pair_codes + values * np.arange(secrets)[:, None]).astype(np.int32).ravel(),
        np.tile(base.pair_counts, secrets),
    )
    if counted_once(asked.persons):
        kept, gone, _, possible = judged_persons(groups, asked, needs_everyone(asked))
        out = ~kept[labels][found.of_row] | gone[asked.persons.owner[-1, demand.secrets[-1]]]
    else:
        kept, _, possible = judged(groups, asked, needs_everyone(asked))
        out = ~kept[labels][found.of_row]
    return out, bool(possible)


def _closest(work: FullDomainSearch, records: int, limit: float, demand: Demand) -> str:
    """Why nothing was found, and what would do."""
    from shoal.kernels.lattice.conditions import needs_everyone

    if needs_everyone(demand.conditions):
        return (
            f"No generalization satisfies the models where nothing is suppressed, and {_PRESENT}. "
            "Relax the models. Nothing was written."
        )
    most = f"at most {limit:.1%} of the {records} records may be suppressed"
    if work.closest is None:
        return f"No generalization satisfies the models where {most}. Nothing was written."
    share = work.closest[1] / records
    return (
        f"No generalization satisfies the models where {most}: the closest one suppresses "
        f"{work.closest[1]} ({share:.2%}). Raise 'suppression_limit' to {share:.4g} or more, or "
        "relax the models. Nothing was written."
    )


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
    sizes = found.sums(class_of_row, len(at))
    loss = float(losses @ sizes) / (found.records * len(names))
    return Recoding(
        columns,
        loss,
        nobody,
        served,
        box_of_row=np.argsort(order)[class_of_row],
        minimal=minimal_nodes({name: coded[name] for name in names}, at, class_of_row, sizes),
    )
