"""A first plan for a table: steps that fit the kinds of its columns, tried on the table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from shoal.app.cli._plan_text import StepText, plan_text
from shoal.errors import InputError, ShoalWarning

if TYPE_CHECKING:
    from shoal.table import Roles, Table
    from shoal.workflow import StepRecord

_NEARLY_UNIQUE: Final = 0.7
_MANY_TIMES: Final = 0.01
_FEW_LOST: Final = 0.2
_MANY_LOST: Final = 0.5


@dataclass(frozen=True)
class FirstPlan:
    """The text of a plan, and the share of records that it takes out of the table at hand.

    ``lost`` is None where there is no quasi-identifier, so that the plan cannot run yet.
    """

    text: str
    roles: Roles
    k: int
    lost: float | None


@dataclass(frozen=True)
class _Strength:
    """How strongly to mask.

    Ranges in standard deviations; values count as rare below a share of the records; columns
    that are given up altogether.
    """

    magnitude: float
    rare: float
    given_up: tuple[str, ...] = ()


_STRENGTHS: Final = (
    _Strength(0.5, 0.0),
    _Strength(1.0, 0.01),
    _Strength(1.5, 0.03),
    _Strength(2.0, 0.05),
    _Strength(3.0, 0.1),
)


def first_plan(table: Table, roles: Roles, *, k: int = 5) -> FirstPlan:
    """The mildest plan that takes out at most a fifth of the records, or comes nearest to it.

    The steps are tried on the table itself; a column that a step would not change is not named.
    Where even the strongest ones cost half of the records, columns are given up.
    """
    if len(table) < 2:
        raise InputError(f"A plan needs a table of 2 records or more; this one has {len(table)}.")
    k = min(k, len(table))
    others = [name for name in table.columns if roles.of(name) is None]
    if not roles.quasi_identifiers:
        return FirstPlan(plan_text(roles, [], k, others=others), roles, k, lost=None)
    table = table.with_roles(roles)
    steps, lost = _climb(table, _STRENGTHS, k, enough=_FEW_LOST)
    if lost > _MANY_LOST:
        steps, lost = _climb(table, _giving_up(table), k, enough=_MANY_LOST)
    return FirstPlan(plan_text(roles, steps, k, others=others, lost=lost), roles, k, lost)


def _climb(
    table: Table, strengths: Iterable[_Strength], k: int, *, enough: float
) -> tuple[list[StepText], float]:
    """The first strength that loses few enough records, or the one that loses the fewest."""
    tried = []
    for strength in strengths:
        steps, lost = _tried(table, _steps(table, strength, k))
        if lost <= enough:
            return steps, lost
        tried.append((steps, lost))
    return min(tried, key=lambda found: found[1])


def _giving_up(table: Table) -> Iterator[_Strength]:
    """The strongest, without more and more of the columns that have the most values."""
    names = sorted(table.roles.quasi_identifiers, key=table.distinct, reverse=True)
    for number in range(len(names)):
        yield replace(_STRENGTHS[-1], given_up=tuple(names[:number]))


def _tried(table: Table, steps: Sequence[StepText]) -> tuple[list[StepText], float]:
    """The steps without the columns that they leave alone, and the share of records lost."""
    from shoal.workflow import Plan

    plan = Plan.from_dict({"steps": [{"method": s.method, **s.parameters} for s in steps]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)  # the columns left alone go from the plan
        masked, records = plan.apply(table.drop(table.roles.identifiers))
    useful = [_touching(step, record) for step, record in zip(steps, records, strict=False)]
    return [step for step in useful if step is not None], 1 - len(masked) / len(table)


def _touching(step: StepText, record: StepRecord) -> StepText | None:
    if "columns" not in step.parameters:
        return step
    columns = [name for name in step.parameters["columns"] if name in record.touched]
    return replace(step, parameters={**step.parameters, "columns": columns}) if columns else None


def _steps(table: Table, strength: _Strength, k: int) -> list[StepText]:
    """The steps in order; a step without columns to work on is left out."""
    quasi = [n for n in table.roles.quasi_identifiers if n not in strength.given_up]
    fixed = {  # numbers become ranges; other values stay, so that too many of them are too many
        name: table.distinct(name) / len(table)
        for name in quasi
        if table.kind(name) not in ("integer", "float")
    }
    unique = [name for name, share in fixed.items() if share > _NEARLY_UNIQUE]
    times = [
        name
        for name, share in fixed.items()
        if table.kind(name) not in ("text", "boolean") and _NEARLY_UNIQUE >= share > _MANY_TIMES
    ]
    out = _columns_out(unique, times, list(strength.given_up))
    kept = [name for name in quasi if name not in (*unique, *times)]
    if not kept:
        return out
    remark = f"Whoever is still in a crowd of fewer than {k} is taken out."
    return [
        *out,
        *_numbers(table, kept, strength),
        *_values(table, kept, strength, k),
        StepText(remark, "suppress", {"min_class_size": k}),
    ]


def _columns_out(unique: list[str], times: list[str], given_up: list[str]) -> list[StepText]:
    wanted: tuple[tuple[list[str], float, str], ...] = (
        (unique, _NEARLY_UNIQUE, "Columns in which nearly every record differs are taken out."),
        (
            times,
            _MANY_TIMES,
            "Dates with many values are taken out; make years of them first to keep them.",
        ),
        (given_up, 0.0, "Columns that would cost too many records are taken out."),
    )
    return [
        StepText(remark, "suppress", {"max_distinct": share, "columns": columns})
        for columns, share, remark in wanted
        if columns
    ]


def _numbers(table: Table, kept: Sequence[str], strength: _Strength) -> list[StepText]:
    spread = {
        name: _spread(table, name) for name in kept if table.kind(name) in ("integer", "float")
    }
    numeric = [name for name in spread if spread[name] > 0]
    steps = []
    if numeric:
        remark = "Extreme numbers stand out: they are drawn in to Tukey's fences."
        steps.append(StepText(remark, "top_bottom_code", {"fence": 1.5, "columns": numeric}))
    for name in numeric:
        if table.kind(name) == "float":
            base = round_number(spread[name] * strength.magnitude)
            remark = "Numbers are rounded to multiples of a base."
            steps.append(StepText(remark, "round", {"base": base, "columns": [name]}))
    whole = [name for name in numeric if table.kind(name) == "integer"]
    if whole:
        remark = (
            f"Whole numbers become ranges of {strength.magnitude:g} standard deviations, named by "
            "their\n# lower limit."
        )
        parameters: dict[str, Any] = {"magnitude": strength.magnitude, "columns": whole}
        steps.append(StepText(remark, "recode", parameters))
    return steps


def _values(table: Table, kept: Sequence[str], strength: _Strength, k: int) -> list[StepText]:
    named = [name for name in kept if table.kind(name) in ("text", "boolean")]
    if not named:
        return []
    fewest = max(k, 2, math.ceil(strength.rare * len(table)))
    remark = f"Values that fewer than {fewest:,} records have are made missing."
    return [StepText(remark, "suppress", {"min_count": fewest, "columns": named})]


def _spread(table: Table, name: str) -> float:
    import numpy as np

    numbers = table.numbers(name)
    values = numbers.values[numbers.present].astype(np.float64)
    spread = float(np.std(values)) if len(values) else 0.0
    return spread if math.isfinite(spread) else 0.0


def round_number(size: float) -> float | int:
    """The largest of 1, 2 and 5 times a power of ten that is not above a size.

    Examples
    --------
    >>> round_number(7.3), round_number(0.24), round_number(1234)
    (5, 0.2, 1000)
    """
    power = math.floor(math.log10(size))
    leading = next((lead for lead in (5, 2, 1) if size >= lead * 10.0**power), 1)
    return leading * 10**power if power >= 0 else float(f"{leading}e{power}")
