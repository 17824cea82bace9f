"""What every class must satisfy, checked against what the whole table can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import InputError, RequirementNotMet, quoted
from shoal.kernels.arrays import Integers, Labels
from shoal.models import (
    KAnonymity,
    PrivacyModel,
    conditions_of,
    counted,
    population_of,
    table_conditions,
)
from shoal.table import Table

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions

#: What a class satisfies the better, the more records it has.
_GROWING = ("distinct", "in_population")

#: What compares a class with the whole table.
COMPARING = ("equal", "ordered", "hierarchical", "likeness", "enhanced_likeness", "disclosure")


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """The conditions of every class, the sensitive values, and what a partition must satisfy."""

    conditions: Conditions
    secrets: Labels
    of_partition: tuple[Callable[..., bool], ...]
    population: Table | None
    records: int
    persons: int

    def accepts_partition(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> bool:
        """Whether classes of these sizes satisfy what is asked of a partition as a whole.

        Where persons are counted, ``classes`` and ``persons`` are the pairs of the two.
        """
        return all(asked(sizes, classes, persons) for asked in self.of_partition)


def models_of(models: PrivacyModel | Sequence[PrivacyModel] | None) -> list[PrivacyModel]:
    """None, one or several models as a list."""
    return [] if models is None else [models] if isinstance(models, PrivacyModel) else [*models]


def demand_of(
    k: int | None,
    models: PrivacyModel | Sequence[PrivacyModel] | None,
    table: Table,
    columns: Sequence[str],
    *,
    suppresses: bool = False,
    whole: bool = True,
) -> Demand:
    """The models as a search asks them; refused where one class of all records fails them.

    A search that ``suppresses`` records may satisfy what all of them together do not.
    """
    given = models_of(models)
    asked = {condition.column for model in given for condition in model.conditions(table)}
    both = [name for name in columns if name in asked]
    if both:
        raise InputError(
            f"The models ask about {quoted(both)}, which is to be generalized; a column cannot "
            "be both what is generalized and what is protected."
        )
    everything = [*given, *([] if k is None else [KAnonymity(k)])]
    for model in everything:
        model.check(table)
        rare = isinstance(model, KAnonymity) and model.rarest_history > 1
        if not suppresses or not (
            rare or any(c.kind not in _GROWING for c in model.conditions(table))
        ):
            _refuse_what_no_class_reaches(model, table)
    conditions, secrets = conditions_of(everything, table, whole=whole)
    people = population_of(given)
    return Demand(
        conditions, secrets, table_conditions(given), people, len(table), table.person_count
    )


def _refuse_what_no_class_reaches(model: PrivacyModel, table: Table) -> None:
    """Generalizing everything to one class is the most that can be done."""
    whole = table.drop(table.roles.quasi_identifiers)
    if model.smallest_class == 1 and not model.conditions(table):
        return  # speaks of the partition as a whole
    if isinstance(model, KAnonymity) and model.rarest_history > 1 and not model.holds(whole):
        raise RequirementNotMet(
            f"{model.title} of histories cannot be reached: some numbers of rows are those of "
            f"fewer than {model.k} persons, whatever their values are. Ask this step for k "
            "persons, and take out rare histories by a step 'suppress' after it (min_class_size = "
            f'{model.k}, of = "histories"). Nothing was written.'
        )
    if not model.holds(whole):
        side = "at most" if model.direction == "higher" else "at least"
        raise RequirementNotMet(
            f"{model.title} cannot be reached: even with all {counted(table)} in one class "
            f"the level is {model.level(whole):.4g} and {model.threshold:g} is asked for. Ask for "
            f"{side} {model.level(whole):.4g}, or take out the records that stand in the way. "
            "Nothing was written."
        )
