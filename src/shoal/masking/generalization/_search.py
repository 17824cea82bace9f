"""The searches by name, and what is asked of a partition as a whole and of the people beside it.

A record fits the people that its released values cover. Where boxes overlap, a person may fit
records of several classes: each record is spread evenly over the people that it covers, and what
falls on a person adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.masking._base import StepLog
from shoal.masking.generalization._combinations import Combinations, combinations_of
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._hierarchies import fixed_levels
from shoal.masking.generalization._lattice import at_levels, full_domain, local
from shoal.masking.generalization._mondrian import mondrian
from shoal.masking.generalization._recoding import Recoding
from shoal.masking.generalization._serving import ServedBoxes
from shoal.table import Hierarchy, Table, owned_pairs

Labels = npt.NDArray[np.signedinteger[Any]]


def coarse_enough(
    run: Callable[[Demand], Recoding], demand: Demand, accepts: Callable[[Recoding], bool]
) -> Recoding:
    """The result of a search whose classes, taken together, are accepted.

    Where they are not, the search is run again for larger and larger classes, and then for the
    smallest size between the last one that failed and the first one that did not.
    """
    best = run(demand)
    if accepts(best):
        return best
    low = high = demand.conditions.smallest
    while True:
        high = min(2 * high, demand.persons)
        best = run(_at_least(demand, high))
        if accepts(best):
            break
        if high == demand.persons:
            raise RequirementNotMet(
                "No partition satisfies the models that speak of all classes together, of "
                f"histories or of a population, not even one class of all {demand.persons} "
                "persons; relax them, or take out the persons in the way by a step 'suppress'. "
                "Nothing was written."
            )
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        found = run(_at_least(demand, middle))
        if accepts(found):
            high, best = middle, found
        else:
            low = middle
    return best


def _at_least(demand: Demand, smallest: int) -> Demand:
    return replace(demand, conditions=demand.conditions._replace(smallest=smallest))


def accepts_classes(
    recoding: Recoding, names: Sequence[str], found: Combinations, demand: Demand
) -> bool:
    """Whether the classes of released texts satisfy, together, what is asked.

    Where persons have several records, that each class holds is asked again: two that have become
    one may fail what both hold.
    """
    has_persons = bool(len(demand.conditions.persons.value))
    if not has_persons and not demand.of_partition:
        return True
    labels, count = _class_labels(recoding, names, found)
    if not has_persons:
        return demand.accepts_partition(found.sums(labels, count))
    persons = demand.secrets[-1]
    classes, whose = owned_pairs(labels, persons)
    return _holds_by_persons(labels, count, demand) and demand.accepts_partition(
        np.bincount(classes, minlength=count), classes, whose
    )


def _holds_by_persons(labels: Labels, count: int, demand: Demand) -> bool:
    from shoal.kernels.conditions import IN_POPULATION, PRESENCE, code_width, only_kinds
    from shoal.kernels.lattice.conditions import judged_persons
    from shoal.kernels.lattice.roll_up import Groups

    asked = only_kinds(
        demand.conditions, ~np.isin(demand.conditions.kinds, (IN_POPULATION, PRESENCE))
    )
    asked = asked._replace(persons=asked.persons._replace(whole=False))
    secrets = len(demand.secrets)
    offsets = (code_width(asked) * np.arange(secrets))[:, None]
    groups = Groups(
        np.empty((0, 0), np.uint64),
        np.column_stack([np.bincount(labels, minlength=count), np.zeros(count, np.int64)]),
        np.tile(labels.astype(np.int32), secrets),
        (demand.secrets + offsets).astype(np.int32).ravel(),
        np.ones(secrets * len(labels), np.int64),
    )
    kept, gone, _, _ = judged_persons(groups, asked, False)
    return bool(kept.all()) and not gone.any()


def _class_labels(
    recoding: Recoding, names: Sequence[str], found: Combinations
) -> tuple[Labels, int]:
    """The class of each record by its released texts, and how many there are."""
    from shoal.kernels.grouping import dense_labels

    labels: Labels = np.zeros(len(found.of_row), np.int64)
    count = 1
    for place, name in enumerate(names):
        if name in recoding.columns:
            column = recoding.columns[name]
            # two stretches of a column may be released as one text
            _, same = np.unique([str(text) for text in column.texts], return_inverse=True)
            codes = same.ravel()[column.of_row]
        else:
            codes = found.codes[found.of_row, place]
        width = np.uint64(int(codes.max(initial=0)) + 1)
        labels, count = dense_labels(labels.astype(np.uint64) * width + codes.astype(np.uint64))
    return labels, count


_HAIR = 1e-9


def accepts_people(
    recoding: Recoding,
    found: Combinations,
    everyone: Table,
    hierarchies: Mapping[str, Hierarchy],
    demand: Demand,
) -> bool:
    """Whether the boxes of a recoding satisfy what is asked about the population."""
    from shoal.kernels.conditions import IN_POPULATION
    from shoal.kernels.grouping import first_rows
    from shoal.table import form_classes

    if found.population is None:
        return True
    assert isinstance(recoding.served, ServedBoxes)
    assert recoding.box_of_row is not None
    labels = form_classes(found.columns, len(everyone)).labels
    rows = first_rows(labels, len(found.codes))
    person, of_class = recoding.served.pairs(everyone, hierarchies, rows)
    count, of_box = recoding.served.classes
    people = np.bincount(of_class, weights=found.population[person], minlength=count)
    records = np.bincount(of_box[recoding.box_of_row], minlength=count)
    shares = records / np.maximum(people, 1)
    presence = np.bincount(person, weights=shares[of_class], minlength=len(found.codes))
    presence = np.minimum(presence, 1.0)[found.population > 0]
    return all(
        people.min(initial=np.inf) >= bound
        if kind == IN_POPULATION
        else shares.max(initial=0.0) <= bound + _HAIR
        and presence.max(initial=0.0) <= bound + _HAIR
        and presence.min(initial=1.0) >= extra - _HAIR
        for kind, bound, extra in _asked(demand)
    )


def _asked(demand: Demand) -> list[tuple[int, float, float]]:
    """The conditions about a population: what each is, and its bounds."""
    from shoal.kernels.conditions import IN_POPULATION, PRESENCE

    asked = demand.conditions
    return [
        (int(kind), float(bound), float(extra))
        for kind, bound, extra in zip(asked.kinds, asked.bounds, asked.extras, strict=True)
        if kind in (IN_POPULATION, PRESENCE)
    ]


ALGORITHMS = ("full-domain", "mondrian", "local")

_SEARCH_SECONDS = 60.0
_REFINE_SECONDS = 0.5


class Settings(Protocol):
    """The parameters of Generalize that a search reads."""

    algorithm: str
    levels: Mapping[str, int] | None
    suppression_limit: float
    loss: str
    relaxed: bool
    seconds: float | None


def search(
    settings: Settings,
    table: Table,
    names: Sequence[str],
    hierarchies: Mapping[str, Hierarchy],
    demand: Demand,
    log: StepLog,
) -> Recoding:
    """Generalize the named columns of a table so that every class satisfies the demand."""
    beside = demand.population is not None
    coded = {name: hierarchy.codes(table, name) for name, hierarchy in hierarchies.items()}
    found = combinations_of(table, names, demand.records if beside else None)
    if settings.levels is not None:
        levels = fixed_levels(settings.levels, coded, names)
        return at_levels(names, found, coded, demand, levels, limit=settings.suppression_limit)
    if settings.algorithm == "full-domain":
        return full_domain(
            names,
            found,
            coded,
            demand,
            log,
            limit=settings.suppression_limit,
            loss=settings.loss,
            seconds=settings.seconds or _SEARCH_SECONDS,
        )

    def run(demand: Demand) -> Recoding:
        if settings.algorithm == "mondrian":
            return mondrian(names, found, coded, demand, log, relaxed=settings.relaxed)
        seconds = settings.seconds or _REFINE_SECONDS
        return local(names, found, coded, demand, log, seconds=seconds)

    def accepts(recoding: Recoding) -> bool:
        return accepts_classes(recoding, names, found, demand) and accepts_people(
            recoding, found, table, hierarchies, demand
        )

    return coarse_enough(run, demand, accepts)
