"""The searches by name, and what the partition as a whole and the population must satisfy.

A record fits the people that its released values cover. If boxes overlap, a person may fit
records of several classes. Each record is then spread evenly over the people that it covers, and
each person's parts are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.masking._base import StepLog
from shoal.masking.generalization._combinations import Problem, combinations_of, joint_labels
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._hierarchies import fixed_levels
from shoal.masking.generalization._lattice import at_levels, class_groups, full_domain, local
from shoal.masking.generalization._mondrian import mondrian
from shoal.masking.generalization._serving import Recoding, ServedBoxes
from shoal.parameters import column_weights
from shoal.table import Hierarchy, Table, owned_pairs

if TYPE_CHECKING:
    from shoal.masking._generalize import Generalize


def coarse_enough(
    run: Callable[[Problem], Recoding], task: Problem, accepts: Callable[[Recoding], bool]
) -> Recoding:
    """The result of a search whose classes are accepted when taken together.

    If they are not, the search is repeated for larger and larger classes, and then for the
    smallest size between the last one that failed and the first one that did not.
    """
    best = run(task)
    if accepts(best):
        return best
    demand = task.demand
    low = high = demand.conditions.smallest

    def run_at(smallest: int) -> Recoding:
        conditions = demand.conditions._replace(smallest=smallest)
        return run(replace(task, demand=replace(demand, conditions=conditions)))

    while True:
        high = min(2 * high, demand.persons)
        best = run_at(high)
        if accepts(best):
            break
        if high == demand.persons:
            raise RequirementNotMet(
                "No partition satisfies the models that concern all classes together, histories "
                f"or a population, not even one class of all {demand.persons} persons. Relax "
                "the models, or remove the persons who prevent it with a step 'suppress'. "
                "Nothing was written."
            )
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        found = run_at(middle)
        if accepts(found):
            high, best = middle, found
        else:
            low = middle
    return best


def accepts_classes(recoding: Recoding, task: Problem) -> bool:
    """Whether the classes of released texts, taken together, satisfy the demand.

    If persons have several records, each class is checked again: two classes that became one may
    fail what each of them satisfied.
    """
    demand = task.demand
    has_persons = bool(len(demand.conditions.persons.value))
    if not has_persons and not demand.of_partition:
        return True
    cells = (_released_codes(recoding, task, place) for place in range(len(task.names)))
    labels, count = joint_labels(cells, len(task.found.of_row))
    if not has_persons:
        return demand.accepts_partition(task.found.sums(labels, count))
    classes, whose = owned_pairs(labels, demand.secrets[-1])
    return _holds_by_persons(labels, count, demand) and demand.accepts_partition(
        np.bincount(classes, minlength=count), classes, whose
    )


def _released_codes(recoding: Recoding, task: Problem, place: int) -> npt.NDArray[Any]:
    """What is released for each record in a column; two stretches may have the same text."""
    column = recoding.columns.get(task.names[place])
    if column is None:
        return task.found.records_in(place)
    _, same = np.unique([str(text) for text in column.texts], return_inverse=True)
    return same.ravel()[column.of_row]


def _holds_by_persons(labels: npt.NDArray[Any], count: int, demand: Demand) -> bool:
    from shoal.kernels.conditions import IN_POPULATION, PRESENCE, only_kinds
    from shoal.kernels.lattice.conditions import judged_persons

    asked = only_kinds(
        demand.conditions, ~np.isin(demand.conditions.kinds, (IN_POPULATION, PRESENCE))
    )
    asked = asked._replace(persons=asked.persons._replace(whole=False))
    sizes = np.column_stack([np.bincount(labels, minlength=count), np.zeros(count, np.int64)])
    each = np.ones(len(labels), np.int64)
    groups = class_groups(sizes, labels, demand.secrets, each, asked)
    kept, gone, _, _ = judged_persons(groups, asked, False)
    return bool(kept.all()) and not gone.any()


_TOLERANCE = 1e-9


def accepts_people(recoding: Recoding, task: Problem) -> bool:
    """Whether the boxes of a recoding satisfy the demand on the population."""
    from shoal.kernels.conditions import IN_POPULATION, PRESENCE

    found, asked = task.found, task.demand.conditions
    if found.population is None:
        return True
    assert isinstance(recoding.served, ServedBoxes)
    assert recoding.box_of_row is not None
    person, of_class = recoding.served.pairs(task.table, found.rows)
    count, of_box = recoding.served.classes
    people = np.bincount(of_class, weights=found.population[person], minlength=count)
    records = found.sums(of_box[recoding.box_of_row], count)
    shares = records / np.maximum(people, 1)
    presence = np.bincount(person, weights=shares[of_class], minlength=len(found.counts))
    presence = np.minimum(presence, 1.0)[found.population > 0]
    highest = max(shares.max(initial=0.0), presence.max(initial=0.0))
    for kind, bound, extra in zip(asked.kinds, asked.bounds, asked.extras, strict=True):
        if kind == IN_POPULATION and people.min(initial=np.inf) < bound:
            return False
        lowest = presence.min(initial=1.0)
        if kind == PRESENCE and (highest > bound + _TOLERANCE or lowest < extra - _TOLERANCE):
            return False
    return True


ALGORITHMS = ("full-domain", "mondrian", "local")

_SEARCH_SECONDS = 60.0
_REFINE_SECONDS = 0.5


def problem_of(
    settings: Generalize,
    table: Table,
    names: Sequence[str],
    hierarchies: Mapping[str, Hierarchy],
    demand: Demand,
    log: StepLog,
) -> Problem:
    """The input of a search: the combinations of a table, its hierarchies and the demand."""
    weights = np.array(column_weights(settings.weights, names, "weights"))
    coded = {name: hierarchy.codes(table, name) for name, hierarchy in hierarchies.items()}
    records = None if demand.population is None else demand.records
    found = combinations_of(table, names, records)
    weights /= weights.mean()
    return Problem(table, names, hierarchies, found, coded, weights, demand, log)


def search(settings: Generalize, task: Problem) -> Recoding:
    """Generalize the named columns of a table so that every class satisfies the demand."""
    limit = settings.suppression_limit
    if settings.levels is not None:
        return at_levels(task, fixed_levels(settings.levels, task.coded, task.names), limit=limit)
    if settings.algorithm == "full-domain":
        seconds = settings.seconds or _SEARCH_SECONDS
        return full_domain(task, limit=limit, loss=settings.loss, seconds=seconds)

    def run(task: Problem) -> Recoding:
        if settings.algorithm == "mondrian":
            return mondrian(task, relaxed=settings.relaxed)
        return local(task, seconds=settings.seconds or _REFINE_SECONDS)

    def accepts(recoding: Recoding) -> bool:
        return accepts_classes(recoding, task) and accepts_people(recoding, task)

    return coarse_enough(run, task, accepts)
