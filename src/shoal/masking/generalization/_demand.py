"""What every class must satisfy, checked against what the whole table can reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import InputError, ParameterError, RequirementNotMet, UnreachableLevel, quoted
from shoal.kernels.arrays import Integers, Labels
from shoal.masking.grouping._group_models import masked_and_asked, models_of
from shoal.models import (
    DifferentialPrivacy,
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


def asks_for_a_crowd(model: PrivacyModel) -> bool:
    """Whether a model only sets the size of a class and asks nothing else of the data."""
    return isinstance(model, (DifferentialPrivacy, KAnonymity))


def check_blindness(models: Sequence[PrivacyModel], *, levels: bool, untouched: bool) -> None:
    """Raise ParameterError if a step would look at data that it must not see."""
    if not any(isinstance(model, DifferentialPrivacy) for model in models):
        return
    if not levels:
        raise ParameterError(
            f"{DifferentialPrivacy.title} holds only for levels that were fixed without looking at "
            "the data, and every search looks at them. Use the algorithm 'full-domain' and pass "
            "'levels' and 'hierarchies'."
        )
    if not untouched:
        raise ParameterError(
            f"{DifferentialPrivacy.title} requires that small classes leave no trace, however many "
            "there are, and that hierarchies do not depend on the data. Set 'suppression_limit' to "
            "1, and remove 'suppressed' and 'extend'."
        )
    others = [model.title for model in models if not asks_for_a_crowd(model)]
    if others:
        raise ParameterError(
            f"{DifferentialPrivacy.title} allows classes to be removed only because of their size, "
            f"but {quoted(others)} removes them because of their content. Require that model of "
            "the release."
        )


def crowd_of(
    models: Sequence[PrivacyModel], k: int | None, table: Table, columns: Sequence[str]
) -> tuple[list[PrivacyModel], int | None]:
    """The models that concern classes, and the k to which the other models reduce."""
    private = [model for model in models if isinstance(model, DifferentialPrivacy)]
    left = [model for model in models if not isinstance(model, DifferentialPrivacy)]
    sizes = [model.smallest_class for model in left if asks_for_a_crowd(model)]
    sizes.extend([] if k is None else [k])
    for model in private:
        model.check(table)
        fraction = _drawn(table)
        if fraction > -math.expm1(-model.epsilon):
            raise UnreachableLevel(
                f"{model.title} with ε = {model.epsilon:g} cannot be reached if each record is "
                f"drawn with probability {fraction:g}. Ask for at least "
                f"{-math.log1p(-fraction):.4g}, or sample with a fraction of at most "
                f"{-math.expm1(-model.epsilon):.4g}. Nothing was written."
            )
        lacking = [name for name in table.roles.quasi_identifiers if name not in columns]
        if lacking:
            raise InputError(
                f"{model.title} covers all quasi-identifiers, but {quoted(lacking)} would not "
                "be generalized. Remove 'columns'."
            )
        sizes.append(max(2, model.smallest_class_at(fraction)))
    return left, max(sizes, default=None)


def _drawn(table: Table) -> float:
    """The probability with which each record was drawn."""
    course = table.course
    if course.state != "sampled" or course.fraction is None:
        raise InputError(
            f"{DifferentialPrivacy.title} needs records that were drawn independently with a known "
            "probability, before any other step. Put a step 'sample' with the strategy 'bernoulli' "
            "first."
        )
    if course.origin != "entropy":
        raise InputError(
            f"{DifferentialPrivacy.title} does not hold with a seed, because a seed makes the draw "
            "repeatable. Remove 'random_state' from the step 'sample'."
        )
    return course.fraction


#: Conditions that a class satisfies more easily, the more records it has.
_GROWING = ("distinct", "in_population")

#: Conditions that compare a class with the whole table.
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
        """Whether classes of these sizes (or pairs of class and person) are acceptable together."""
        return all(asked(sizes, classes, persons) for asked in self.of_partition)


def demand_of(
    k: int | None,
    models: PrivacyModel | Sequence[PrivacyModel] | None,
    table: Table,
    columns: Sequence[str],
    *,
    suppresses: bool = False,
    whole: bool = True,
) -> Demand:
    """The models in the form a search needs; refused if one class of all records fails them."""
    given = models_of(models)
    if both := masked_and_asked(models, table, columns):
        raise InputError(
            f"The models protect {quoted(both)}, which is also to be generalized. A column cannot "
            "be both generalized and protected. Leave it out of the columns or of the models."
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
    """Refuse a model that fails even when everything is generalized into one class."""
    whole = table.drop(table.roles.quasi_identifiers)
    if model.smallest_class == 1 and not model.conditions(table):
        return  # concerns the partition as a whole
    if isinstance(model, KAnonymity) and model.rarest_history > 1 and not model.holds(whole):
        raise RequirementNotMet(
            f"{model.title} of histories cannot be reached: fewer than {model.k} persons have "
            "certain numbers of rows, whatever the values of the rows are. Ask this step for k "
            "persons, and remove rare histories with a step 'suppress' after it (min_class_size = "
            f'{model.k}, of = "histories"). Nothing was written.'
        )
    if not model.holds(whole):
        level, is_higher = model.level(whole), model.direction == "higher"
        ask = f"Ask for {'at most' if is_higher else 'at least'} {level:.4g}"
        if is_higher and level <= 1:  # what no table misses
            ask = f"No other value is reached either. Require another kind of {model.title}"
        raise RequirementNotMet(
            f"{model.title} cannot be reached: even with all {counted(table)} in one class "
            f"the level is {level:.4g}, and {model.threshold:g} is required. {ask}, or remove the "
            "records that prevent it. "
            "Nothing was written."
        )
