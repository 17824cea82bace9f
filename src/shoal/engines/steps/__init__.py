"""How each step of a plan runs on an engine: by counts, by value, or in chunks.

By counts, the step masks the combinations of its columns, and each row gets the masked values of
its combination; the result is that of memory. By value, the step learns from counts, and each row
is mapped by itself. In chunks, the step runs as in memory on about a hundred thousand similar rows
at a time, and its guarantee holds in each chunk.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from shoal.engines.steps._chunked import by_chunks, compares
from shoal.engines.steps._counts import by_counts
from shoal.engines.steps._course import Course
from shoal.engines.steps._identities import by_naming, by_shifting, name_identifiers
from shoal.engines.steps._sampling import by_sampling
from shoal.engines.steps._values import by_condition, by_noise, by_redrawing, by_value
from shoal.errors import InputError
from shoal.masking import (
    AddNoise,
    DatesToYear,
    Generalize,
    Masker,
    Microaggregate,
    Pram,
    Pseudonymize,
    RankSwap,
    Recode,
    Redraw,
    Round,
    Sample,
    ShiftDates,
    Suppress,
    Swap,
    TopBottomCode,
)
from shoal.models import PrivacyModel
from shoal.workflow import StepRecord
from shoal.workflow._require import plain

__all__ = ["Course", "check_steps", "name_identifiers", "run_step"]

_Way = Callable[[Any, Course], None]
_WAYS: dict[type[Masker], _Way] = {
    AddNoise: by_noise,
    DatesToYear: by_value,
    Pram: by_redrawing,
    Recode: by_value,
    Round: by_value,
    Sample: by_sampling,
    ShiftDates: by_shifting,
    TopBottomCode: by_value,
}
_IN_CHUNKS = (Generalize, Microaggregate, RankSwap, Redraw, Suppress, Swap)


def check_steps(steps: Sequence[Masker]) -> None:
    """Raise InputError, before anything starts, for a step that cannot run on an engine."""
    for number, step in enumerate(steps, start=1):
        if getattr(step, "random_state", None) is not None:
            raise InputError(
                f"Step {number} ('{step.method}') has a 'random_state', but on an engine every "
                "draw comes from the operating system's entropy. Leave it out."
            )
        if _way(step) is None:
            raise InputError(
                f"Step {number} ('{step.method}') cannot run on an engine: {_why_not(step)}. Use "
                "the engine 'memory', or leave the step out."
            )


def run_step(step: Masker, course: Course) -> None:
    """Apply a step to the rows of a course."""
    way = _way(step)
    assert way is not None
    named = getattr(step, "columns", None)
    if step.needs_columns and not (course.roles.quasi_identifiers if named is None else named):
        # earlier steps removed every quasi-identifier: nothing is left to mask
        parameters = plain(step.changed_params(public=True), public=True)
        course.records.append(StepRecord(step.method, parameters))
        return
    step = copy.copy(step)
    models = getattr(step, "models", None)
    if isinstance(models, PrivacyModel):
        step.set_params(models=course.peopled(models))
    elif models is not None:
        step.set_params(models=[course.peopled(model) for model in models])
    way(step, course)


def _way(step: Masker) -> _Way | None:
    if isinstance(step, Suppress) and step.where is not None:
        return by_condition if step.target == "records" or step.whole else by_value
    if isinstance(step, (Generalize, Suppress)) and step.by_counts:
        return by_counts
    if isinstance(step, Pseudonymize):
        return by_naming if step.shape == "hex" else None
    for kind, way in _WAYS.items():
        if isinstance(step, kind):
            return way
    in_blocks = isinstance(step, Swap) and step.blocks != "joint" and not step.informed
    if isinstance(step, _IN_CHUNKS) and not in_blocks and not compares(step):
        return by_chunks
    return None


def _why_not(step: Masker) -> str:
    if compares(step):
        return "it runs in chunks, but one of its models compares groups with all records"
    if isinstance(step, Swap):
        return "it forms blocks by mutual information over all records; swap jointly instead"
    if isinstance(step, Pseudonymize):
        return "with this shape all pseudonyms must be compared; take the shape 'hex'"
    return "it needs all records at once"
