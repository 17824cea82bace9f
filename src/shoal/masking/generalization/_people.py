"""What models of a population ask where released boxes may overlap.

A record fits the people that its released values cover. Where boxes overlap, a person may fit
records of several classes: each record is spread evenly over the people that it covers, and what
falls on a person adds up.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.masking.generalization._boxes import ServedBoxes
from shoal.masking.generalization._combinations import Combinations
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._recoding import Recoding
from shoal.table import Hierarchy, Table

_HAIR = 1e-9


def accepts_people(
    recoding: Recoding,
    found: Combinations,
    everyone: Table,
    hierarchies: Mapping[str, Hierarchy],
    demand: Demand,
) -> bool:
    """Whether the boxes of a recoding satisfy what is asked about the population.

    Parameters
    ----------
    recoding : Recoding
        With boxes; one level for each column parts the people, and needs no such look.
    found : Combinations
        Those of the records and of the people.
    everyone : Table
        The records above the people.
    """
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
