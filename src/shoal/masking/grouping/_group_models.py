"""What groups must satisfy beyond their size: privacy models for methods that form groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError, ParameterError, about, did_you_mean
from shoal.kernels.arrays import Integers, Labels
from shoal.models import PrivacyModel, counted, discover_models
from shoal.parameters import Constraint, parameters_of
from shoal.table import Roles, Table

if TYPE_CHECKING:
    from shoal.kernels.conditions import Conditions
    from shoal.kernels.groups.diverse_group import Sensitive

Models = PrivacyModel | list[PrivacyModel]

_OF_A_POPULATION = ("in_population", "presence")


@dataclass(frozen=True)
class PrivacyModels(Constraint):
    """A privacy model, or a list of them; in a plan, a table as under ``[require]``."""

    words = "a privacy model or a list of them, for example LDiversity(2)"

    def accepts(self, value: Any) -> bool:
        given = value if isinstance(value, list) else [value]
        return len(given) > 0 and all(isinstance(model, PrivacyModel) for model in given)

    def read(self, value: Any) -> Any:
        """Models from plain data; other values than tables or lists of tables stay as they are."""
        if isinstance(value, Mapping):
            models = _models_in(value)
            return models[0] if len(models) == 1 else models
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            return [model for item in value for model in _models_in(item)]
        return value


def models_of(models: PrivacyModel | Sequence[PrivacyModel] | None) -> list[PrivacyModel]:
    """No, one or several models as a list."""
    return [] if models is None else [models] if isinstance(models, PrivacyModel) else [*models]


def _models_in(given: Mapping[str, Any]) -> list[PrivacyModel]:
    known = discover_models()
    models = []
    for name, value in given.items():
        if name not in known:
            raise ParameterError(f"There is no privacy model '{name}'. {did_you_mean(name, known)}")
        for one in value if isinstance(value, list) else [value]:
            first = parameters_of(known[name])[0].name
            parameters = one if isinstance(one, Mapping) else {first: one}
            with about(f"The model '{name}'"):
                models.append(known[name].from_params(parameters, called=f"model '{name}'"))
    return models


class GroupDemand:
    """What groups of records of different persons must satisfy, in the form the kernels need."""

    def __init__(self, conditions: Conditions, codes: Labels) -> None:
        from shoal.kernels.groups.diverse_group import sensitive_of

        self.conditions = conditions
        self.codes = codes
        self.sensitive: Sensitive = sensitive_of(codes)

    def at(self, rows: Integers) -> GroupDemand:
        """The same for some of the records."""
        return GroupDemand(self.conditions, self.codes[:, rows])

    @property
    def holds(self) -> bool:
        """Whether all records as one group satisfy the demand."""
        from shoal.kernels.conditions import holds

        counts = np.zeros((len(self.codes), max(1, self.conditions.shares.shape[1])), np.int64)
        for column, values in zip(counts, self.codes, strict=True):
            column += np.bincount(values, minlength=len(column))
        size = self.codes.shape[1]
        return bool(holds(self.conditions, size, size, counts))


def group_demand(models: Models | None, table: Table, k: int) -> GroupDemand | None:
    """The models as conditions on groups of at least k; refused if one group of all fails."""
    if models is None:
        return None
    from shoal.models import conditions_of

    given = models_of(models)
    for model in given:
        _check_kind(model, table)
        model.check(table)
        _check_whole(model, table)
    conditions, codes = conditions_of(given, table.each_row_a_person(), smallest=k)
    # groups are compared with the values of all persons
    return GroupDemand(conditions._replace(shares=conditions_of(given, table)[0].shares), codes)


def group_demand_of_persons(
    models: Models | None, table: Table, k: int, *, crowd: int
) -> tuple[Conditions, Labels]:
    """The same in persons; a group has ``crowd`` times as many records as any person in it."""
    from shoal.models import KAnonymity, conditions_of

    conditions, codes = conditions_of([*models_of(models), KAnonymity(k)], table)
    return conditions._replace(persons=conditions.persons._replace(crowd=crowd)), codes


def masked_and_asked(
    models: PrivacyModel | Sequence[PrivacyModel] | None, table: Table, columns: Sequence[str]
) -> list[str]:
    """The columns that the models protect and that a method would make equal within a group."""
    asked = {one.column for model in models_of(models) for one in model.conditions(table)}
    return [name for name in columns if name in asked]


def _check_kind(model: PrivacyModel, table: Table) -> None:
    asked = model.conditions(table)
    if model.smallest_class > 1 and not asked:
        return
    if not asked or any(condition.kind in _OF_A_POPULATION for condition in asked):
        raise InputError(
            "'models' takes models that restrict the records of each group, and "
            f"{model.title} does not. Require it of the release instead."
        )


def _check_whole(model: PrivacyModel, table: Table) -> None:
    whole = table.with_roles(Roles(sensitive=table.roles.sensitive))
    if not model.holds(whole):
        raise InputError(
            f"No groups can satisfy {model.title}: even all {counted(table)} as one group "
            f"reach {model.level(whole):.4g}, and {model.threshold:g} is required. Relax "
            "'models'."
        )
