"""k as a single number: the shortest plan for a k, and a plan with another k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from shoal.errors import InputError
from shoal.masking import Generalize
from shoal.models import KAnonymity, LDiversity, PrivacyModel
from shoal.parameters import Parametrized
from shoal.table import Roles
from shoal.workflow._plan import Plan

P = TypeVar("P", bound=Parametrized)


def shortest_plan(roles: Roles, k: int) -> Plan:
    """Boxes of at least k persons, each with two values of every sensitive column, if any."""
    diverse = LDiversity(2) if roles.sensitive else None
    step = Generalize("mondrian", k=k, models=diverse)
    return Plan([step], require=[KAnonymity(k), *([] if diverse is None else [diverse])])


def models_of_plan(plan: Plan) -> Iterator[PrivacyModel]:
    """The privacy models that a plan requires, and those that its steps satisfy."""
    for part in (*plan.steps, *plan.require):
        if isinstance(part, PrivacyModel):
            yield part
        elif isinstance(part, Parametrized):
            given = part.get_params().values()
            listed = (one for value in given for one in _listed(value))
            yield from (one for one in listed if isinstance(one, PrivacyModel))


def with_k(plan: Plan, k: int) -> Plan:
    """The same plan with k in place of every k of its steps, models and requirements.

    Examples
    --------
    >>> from shoal import Generalize, KAnonymity
    >>> with_k(Plan([Generalize(k=5)], require=[KAnonymity(5)]), 10)
    Plan: generalize; requires k_anonymity = 10
    """
    changed = plan.replacing(
        steps=[_under(step, k) for step in plan.steps],
        require=[_under(one, k) if isinstance(one, Parametrized) else one for one in plan.require],
    )
    if not has_k(plan):
        raise InputError(
            f"k = {k} is given, but no step or requirement of the plan has a k. Write, for "
            "example,"
            " sh.Plan([sh.Generalize(k=5)], require=[sh.KAnonymity(5)])."
        )
    return changed


def has_k(plan: Plan) -> bool:
    """Whether any step, model or requirement of a plan has a k."""
    return any(_asks(part) for part in (*plan.steps, *models_of_plan(plan)))


def _under(part: P, k: int) -> P:
    """A step or a model with another k, which also applies to the models inside it."""
    changes: dict[str, Any] = {"k": k} if _asks(part) else {}
    for name, value in part.get_params().items():
        if isinstance(value, PrivacyModel):
            changes[name] = _under(value, k)
        elif isinstance(value, list) and any(isinstance(one, PrivacyModel) for one in value):
            changes[name] = [_under(one, k) for one in value]
    return replace(part, **changes) if changes else part  # type: ignore[type-var]


def _asks(part: Parametrized) -> bool:
    return part.get_params().get("k") is not None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
