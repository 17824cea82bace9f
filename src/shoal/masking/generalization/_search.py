"""The searches by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from shoal.masking._base import StepLog
from shoal.masking.generalization._combinations import combinations_of
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._full_domain import at_levels, full_domain
from shoal.masking.generalization._hierarchies import fixed_levels
from shoal.masking.generalization._local import local
from shoal.masking.generalization._mondrian import mondrian
from shoal.masking.generalization._partition import accepts_classes, accepts_people, coarse_enough
from shoal.masking.generalization._recoding import Recoding
from shoal.table import Hierarchy, Table

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
