"""The crowd that differential privacy by sampling asks for, and what it forbids a step to do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shoal.errors import InputError, ParameterError, UnreachableLevel, quoted
from shoal.models import DifferentialPrivacy, KAnonymity, PrivacyModel
from shoal.table import Table


def asks_for_a_crowd(model: PrivacyModel) -> bool:
    """Whether a model asks for the size of a class and for nothing else that the data say."""
    return isinstance(model, (DifferentialPrivacy, KAnonymity))


def check_blindness(models: Sequence[PrivacyModel], *, levels: bool, untouched: bool) -> None:
    """Raise ParameterError where a step would look at the data and must not.

    Parameters
    ----------
    models : sequence of PrivacyModel
        What the step is to satisfy.
    levels : bool
        Whether the levels are given, so that nothing is searched.
    untouched : bool
        Whether the step adds nothing to the hierarchies, leaves no trace of small classes and is
        not given up where they are many.
    """
    if not any(isinstance(model, DifferentialPrivacy) for model in models):
        return
    if not levels:
        raise ParameterError(
            f"{DifferentialPrivacy.title} holds for levels that were fixed without looking at the "
            "data, and every search looks at them; give 'levels' and 'hierarchies' of the "
            "algorithm 'full-domain'."
        )
    if not untouched:
        raise ParameterError(
            f"{DifferentialPrivacy.title} asks that small classes leave no trace, however many "
            "there are, and that hierarchies do not depend on the data; set 'suppression_limit' to "
            "1 and leave 'suppressed' and 'extend' out."
        )
    others = [model.title for model in models if not asks_for_a_crowd(model)]
    if others:
        raise ParameterError(
            f"{DifferentialPrivacy.title} allows classes to be taken out for their size alone, and "
            f"{quoted(others)} takes them out for what is in them; require it of the release."
        )


def crowd_of(
    models: Sequence[PrivacyModel], k: int | None, table: Table, columns: Sequence[str]
) -> tuple[list[PrivacyModel], int | None]:
    """The models that speak of classes, and the k that the others come down to.

    Raises InputError where a table was not drawn as differential privacy by sampling needs it.
    """
    private = [model for model in models if isinstance(model, DifferentialPrivacy)]
    left = [model for model in models if not isinstance(model, DifferentialPrivacy)]
    sizes = [model.smallest_class for model in left if asks_for_a_crowd(model)]
    sizes.extend([] if k is None else [k])
    for model in private:
        model.check(table)
        fraction = _drawn(table)
        if fraction > -math.expm1(-model.epsilon):
            raise UnreachableLevel(
                f"{model.title} with ε = {model.epsilon:g} cannot be reached where each record is "
                f"drawn with probability {fraction:g}: ask for at least "
                f"{-math.log1p(-fraction):.4g}, or sample with a fraction of at most "
                f"{-math.expm1(-model.epsilon):.4g}. Nothing was written."
            )
        lacking = [name for name in table.roles.quasi_identifiers if name not in columns]
        if lacking:
            raise InputError(
                f"{model.title} covers all quasi-identifiers, and {quoted(lacking)} would be left "
                "as they are; leave 'columns' out."
            )
        sizes.append(max(2, model.smallest_class_at(fraction)))
    return left, max(sizes, default=None)


def _drawn(table: Table) -> float:
    """The probability with which each record was drawn."""
    course = table.course
    if course.state != "sampled" or course.fraction is None:
        raise InputError(
            f"{DifferentialPrivacy.title} needs records that were drawn independently with a known "
            "probability, before anything else; put a step 'sample' with the strategy 'bernoulli' "
            "first."
        )
    if course.origin != "entropy":
        raise InputError(
            f"{DifferentialPrivacy.title} does not hold with a seed, which makes the draw "
            "repeatable; leave 'random_state' out of the step 'sample'."
        )
    return course.fraction
