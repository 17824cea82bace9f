"""Partitions of records into groups of at least k."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, RequirementNotMet
from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.masking._base import StepLog
from shoal.masking.grouping._dissimilarity import Space, space_of
from shoal.masking.grouping._group_models import (
    GroupDemand,
    group_demand,
    group_demand_of_persons,
)
from shoal.models import counted
from shoal.randomness import SecretStream
from shoal.table import Table

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions
    from shoal.masking._microaggregate import Microaggregate
    from shoal.masking._swap import Swap

#: Puts records into groups and reports its progress in a log.
Forming = Callable[[Space, StepLog], object]

_FEWEST = 50_000  # below so many records, no partition takes noticeably long
_PILOT = 20  # the pilot uses one record in so many: one or two percent of the run's time
_FEW = 200  # records of a first run, which may have to compile
_GROWTH = 1.3  # time grows as this power of the records; observed: 1.1 to 1.5, depending on data
_WORTH_SHOWING = 3.0  # seconds


def with_estimate(log: StepLog, space: Space, form: Forming) -> StepLog:
    """A log that also shows the estimated duration of a run on all records, if it is long."""
    show = log.progress
    if show is None:
        return log
    seconds = estimated_seconds(space, form)
    if seconds is None or seconds < _WORTH_SHOWING:
        return log
    return replace(log, progress=lambda label, share: show(f"{label}: {in_words(seconds)}", share))


def estimated_seconds(space: Space, form: Forming) -> float | None:
    """The estimated seconds to form groups of all records; None if a trial is not worthwhile.

    The pilot runs on a fraction of the records, and its time is scaled up by the known growth.
    The estimate is off by a factor of about two for data whose structure changes with their number.
    """
    if space.rows < _FEWEST:
        return None
    from shoal.kernels.compile import always_compiled

    few, part = (
        part_of(space, np.arange(0, space.rows, step)) for step in (space.rows // _FEW, _PILOT)
    )
    with always_compiled():  # as the full run is
        form(few, StepLog())
        start = time.monotonic()
        form(part, StepLog())
    return (time.monotonic() - start) * (space.rows / part.rows) ** _GROWTH


def part_of(space: Space, rows: Integers) -> Space:
    """Some of the records, compared in the same way as all of them."""
    points, mixed = space.points, space.mixed
    if points is not None:
        points = np.ascontiguousarray(points[rows])
    if mixed is not None:
        mixed = mixed._replace(
            values=np.ascontiguousarray(mixed.values[:, rows]),
            codes=np.ascontiguousarray(mixed.codes[:, rows]),
            patterns=mixed.patterns[rows],
        )
    return replace(space, rows=len(rows), points=points, mixed=mixed)


def in_words(seconds: float) -> str:
    """An estimated time in words; two digits would claim too much."""
    if seconds < 10:
        return f"about {seconds:.0f} s"
    if seconds < 90:
        return f"about {10 * round(seconds / 10)} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.2g} h"


_WORDS = 64  # random words for one perturbation of the local search

PARTITIONS = (
    "mdav",
    "mdav-random",
    "v-mdav",
    "mu-approx",
    "mondrian",
    "individual-ranking",
    "optimal",
)
_ONE_COLUMN = ("individual-ranking", "optimal")


class Portions(Protocol):
    """A kernel that works in portions, so that it can show progress and ctrl-C stops it."""

    @property
    def labels(self) -> Labels: ...

    def advance(self) -> int: ...


class Search(Portions, Protocol):
    """A local search; random words can restart it from where it stopped."""

    def perturb(self, words: npt.NDArray[np.uint64]) -> int: ...


def check_size(k: int, table: Table) -> None:
    """Raise InputError if a table has fewer persons than a group needs."""
    if k > table.person_count:
        raise InputError(
            f"k = {k} is larger than the table, which has {counted(table)}. "
            f"Choose k of at most {table.person_count}."
        )


def form_groups(
    table: Table,
    columns: Sequence[str],
    settings: Microaggregate | Swap,
    stream: SecretStream,
    log: StepLog,
    *,
    even: bool = False,
) -> Labels:
    """Put records into groups of at least k persons; ``even``: nobody has more than 1/k of one."""
    check_size(settings.k, table)
    demand = group_demand(settings.models, table, settings.k)

    def form(rows: Integers, layer: int, layers: int) -> Labels | None:
        part, asked = table, demand
        if layers > 1 or len(rows) < len(table):
            part, asked = table.reorder(rows), None if demand is None else demand.at(rows)
        if asked is not None and not asked.holds:
            return None
        own = stream if layer == 0 else stream.derive("layer", str(layer))
        return _formed(part, columns, settings, asked, own, log, settings.seconds / layers)

    if table.person_count == len(table):
        labels = form(np.arange(len(table)), 0, 1)
        assert labels is not None  # the demand was checked
        return labels
    space = space_of(table, columns, settings.dissimilarity, standardize=settings.standardize)
    asked = group_demand_of_persons(
        settings.models, table, settings.k, crowd=settings.k if even else 1
    )
    return groups_of_persons(table, columns, settings.k, space, asked, form)


def _formed(
    table: Table,
    columns: Sequence[str],
    settings: Microaggregate | Swap,
    demand: GroupDemand | None,
    stream: SecretStream,
    log: StepLog,
    seconds: float,
) -> Labels:
    """The groups of records of different persons."""
    space = space_of(table, columns, settings.dissimilarity, standardize=settings.standardize)
    parted = space
    if settings.partition in _ONE_COLUMN:
        parted = _line(table, columns, space, settings.partition)
    pilot, starts = stream.derive("pilot"), stream.derive("starts")
    log = with_estimate(log, parted, lambda part, quiet: _partitioned(part, settings, pilot, quiet))
    if demand is not None and settings.partition == "mdav":
        from shoal.kernels.groups.diverse_mdav import DiverseMdav

        records = space.records if space.points is None else space.points
        work = DiverseMdav(records, settings.k, demand.conditions, demand.codes)
        labels = _run(work, space.rows, log)
    else:
        labels = _partitioned(parted, settings, starts, log)
        if demand is not None:
            from shoal.kernels.groups.diverse_merge import settled

            # groups that fail a condition are merged with nearby ones
            labels = settled(space.records, labels, demand.conditions, demand.sensitive)
    if settings.refine:
        labels = _refined(space, labels, settings.k, seconds, demand, stream.derive("refine"), log)
    return labels


def _run(work: Portions, rows: int, log: StepLog) -> Labels:
    log.run(work, rows, "Forming groups")
    return work.labels


def _line(table: Table, columns: Sequence[str], space: Space, partition: str) -> Space:
    """The only column, as points on a line.

    With Euclidean distance the column already consists of points. With other dissimilarities, which
    make no difference for one column, it may hold numbers, dates, times or booleans. Its ranks are
    used, or its values if the partition measures gaps (dates in days); missing values come last.
    """
    if len(columns) != 1:
        raise InputError(
            f"The partition '{partition}' is for one column; got {len(columns)}. Use one step "
            "per column, or another partition."
        )
    if space.points is not None:
        return space
    if table.kind(columns[0]) == "text":
        raise InputError(
            f"The partition '{partition}' needs ordered values, and text in column "
            f"'{columns[0]}' has no order. Choose 'mdav', or name a column of numbers or dates."
        )
    column = table.codes(columns[0])
    values = column.codes if partition == "individual-ranking" else column.positions[column.codes]
    return Space(len(table), points=values[:, None].astype(np.float64))


def _partitioned(
    space: Space, settings: Microaggregate | Swap, stream: SecretStream, log: StepLog
) -> Labels:
    """The groups that a partition forms on its own."""
    from shoal.kernels.space.few import are_few

    k = settings.k
    if settings.partition == "individual-ranking":
        return _rank_labels(_values(space), k)
    if settings.partition == "mdav" and are_few(
        space.columns, 1.5 * space.rows / k, space.rows / 2
    ):
        from shoal.kernels.groups.mixed_mdav import mdav_of_few

        return mdav_of_few(space.records, k)
    return _run(_kernel(space, settings, stream), space.rows, log)


def _kernel(space: Space, settings: Microaggregate | Swap, stream: SecretStream) -> Portions:
    """The kernel of a partition, imported when needed; points have their own kernels."""
    k, points = settings.k, space.points
    if settings.partition == "v-mdav":
        from shoal.kernels.groups.v_mdav import VMdav

        gamma = settings.gamma if points is None else settings.gamma**2  # distances are squared too
        return VMdav(space.records, k, gamma)
    if settings.partition == "mu-approx":
        from shoal.kernels.groups.mu_approx import MuApprox

        return MuApprox(space.records, k)
    if settings.partition == "mondrian":
        from shoal.kernels.groups.mondrian import Mondrian
        from shoal.kernels.space.mixed_records import gower

        if points is None:
            return Mondrian(space.records, k)
        # the width of a column is relative to that of the table
        return Mondrian(gower(points, np.empty((space.rows, 0), np.int64)), k)
    if settings.partition == "optimal":
        from shoal.kernels.groups.univariate import OptimalUnivariate

        return OptimalUnivariate(_values(space), k)
    from shoal.kernels.groups.mixed_mdav import MixedMdav, RandomStartMdav
    from shoal.kernels.points.mdav import Mdav

    if settings.partition == "mdav":
        return MixedMdav(space.records, k) if points is None else Mdav(points, k)
    starts = stream.permutation(space.rows)
    if points is None:
        return RandomStartMdav(space.records, k, starts)
    return Mdav(points, k, starts=starts.astype(np.int32))


def _values(space: Space) -> Floats:
    """The points of a line as numbers."""
    assert space.points is not None
    return np.ascontiguousarray(space.points[:, 0])


def _rank_labels(values: Floats, k: int) -> Labels:
    """Groups of k neighboring ranks; the middle group takes the leftover records."""
    from shoal.kernels.groups.univariate import individual_ranking, labels_of

    return labels_of(*individual_ranking(values, k))


def rank_groups(table: Table, name: str, k: int) -> Labels:
    """Groups of k persons with neighboring ranks in any column; missing values come last."""
    ranks = table.codes(name).codes.astype(np.float64)
    if table.person_count == len(table):
        return _rank_labels(ranks, k)
    asked = group_demand_of_persons(None, table, k, crowd=k)
    space = Space(len(table), points=ranks[:, None])
    return groups_of_persons(
        table, [name], k, space, asked, lambda rows, *_: _rank_labels(ranks[rows], k)
    )


def _refined(
    space: Space,
    labels: Labels,
    k: int,
    seconds: float,
    demand: GroupDemand | None,
    stream: SecretStream,
    log: StepLog,
) -> Labels:
    """The groups after local search: until the first descent ends, or until the time is up."""
    work = _local_search(space, labels, k, demand)
    settled = work.advance()  # before the clock starts: the first call may have to compile
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        log.tell("Refining the groups", elapsed / seconds)
        if settled < space.rows:
            settled = work.advance()
        else:
            work.perturb(stream.words(_WORDS))
    return work.labels


def _local_search(space: Space, labels: Labels, k: int, demand: GroupDemand | None) -> Search:
    """Search on squared distances to centers if possible, which is faster; otherwise on pairs."""
    if space.points is not None and demand is None:
        from shoal.kernels.refine.refine import Refinement

        return Refinement(space.points, labels, k)
    from shoal.kernels.refine.mixed_refine import MixedRefinement

    if demand is None:
        return MixedRefinement(space.records, labels, k)
    return MixedRefinement(space.records, labels, k, demand.conditions, demand.codes)


# -- groups of k persons if a person has several records: records in layers, groups in each layer
#
# A layer has at most one record of each person. Then k records of a layer belong to k persons, and
# any way to form groups of records forms groups of persons. The first layer has everyone's first
# record, the second the second record of everyone who has one, and so on; the records of a person
# are in the order of their values. Records of layers with fewer than k persons join nearby groups.


def groups_of_persons(
    table: Table,
    columns: Sequence[str],
    k: int,
    space: Space,
    asked: tuple[Conditions, Labels],
    form: Callable[[Integers, int, int], Labels | None],
) -> Labels:
    """Groups of at least k persons that satisfy ``asked``, counted in persons.

    ``form`` gets the rows of a layer, its number and the number of layers. It returns their
    groups, or None if these records alone cannot form any.
    """
    layer = _layers_of(table, columns)
    usable = int((np.bincount(layer) >= k).sum())  # layers never get larger
    labels: Labels = np.full(len(table), -1, np.int32)
    found = 0
    for number in range(usable):
        rows = np.flatnonzero(layer == number)
        groups = form(rows, number, usable)
        if groups is not None:
            labels[rows] = groups + found
            found += int(groups.max()) + 1
    if found == 0:
        labels[:] = 0
    if labels.min() < 0 or found == 0:
        labels = _joined(space, labels, asked)
        _check_even(labels, table, asked[0].persons.crowd)
    return labels


def _layers_of(table: Table, columns: Sequence[str]) -> Integers:
    """The rank of each record among its person's records, from 0, in the order of some columns."""
    keys: list[npt.NDArray[Any]] = [table.codes(name).codes for name in reversed(columns)]
    order = np.lexsort((*keys, table.persons))
    sizes = np.bincount(table.persons)
    layer = np.empty(len(table), np.int64)
    layer[order] = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return layer


def _joined(space: Space, labels: Labels, asked: tuple[Conditions, Labels]) -> Labels:
    """Put every record into a group, and merge groups that fail a condition with nearby ones."""
    from shoal.kernels.groups.diverse_group import Sensitive
    from shoal.kernels.groups.diverse_merge import settled

    conditions, codes = asked
    return settled(space.records, labels, conditions, Sensitive(codes, codes[-1].astype(np.int64)))


def _check_even(labels: Labels, table: Table, crowd: int) -> None:
    """Raise RequirementNotMet if a person has too large a share of a group."""
    if crowd == 1:
        return
    _, pair, rows = np.unique(
        labels.astype(np.int64) * table.person_count + table.persons,
        return_inverse=True,
        return_counts=True,
    )
    most = int(rows.max())
    short = np.bincount(labels)[labels] < crowd * rows[pair]
    if short.any():
        raise RequirementNotMet(
            f"No groups can hide the person with the most records among {crowd}: the table has "
            f"{counted(table)}, and {most} records of one person would be in one group. Remove "
            "records of such persons, or ask for a smaller k. Nothing was written."
        )
