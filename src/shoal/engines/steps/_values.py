"""Steps by value: they learn from counts, and map each row by itself."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from shoal.engines._engine import PART, Function, Rows, TooManyCombinations, roles_on
from shoal.engines.steps._course import Course, kind_after, record_step, secrets_of
from shoal.engines.steps._functions import Emptied, Lost, Noise, Redrawn, Served
from shoal.errors import UnprotectedColumnWarning
from shoal.kernels.arrays import Integers
from shoal.masking import AddNoise, Masker, Pram, Round, Suppress
from shoal.randomness import SecretStream
from shoal.table import Roles, Table
from shoal.table.columns._frames import kind_of


def by_value(step: Masker, course: Course) -> None:
    """Learn from the counts of each column by itself, then map each row."""
    named: Sequence[str] | None = getattr(step, "columns", None)
    columns = list(course.roles.quasi_identifiers if named is None else named)
    touched: list[str] = []
    skipped: dict[str, str] = {}
    fitted: list[Masker] = []
    kinds: dict[str, pl.DataType] = {}
    if isinstance(step, Suppress):
        fitted = [step]
        step.touched_, step.skipped_, step.removed_columns_ = tuple(columns), {}, ()
        touched, kinds = columns, {name: course.rows.schema[name] for name in columns}
    else:
        for name in columns:
            one = copy.copy(step)
            one.set_params(columns=[name])
            with warnings.catch_warnings():
                if named is None:  # a column that the plan does not name may be left as it is
                    warnings.simplefilter("ignore", UnprotectedColumnWarning)
                masked = one.fit_transform(_to_learn_from(one, course, name))
            kinds[name] = _wide(kind_after(masked, name))
            touched += one.touched_
            skipped |= one.skipped_
            if one.touched_:
                fitted.append(one)
    course.fitted += fitted
    for one in fitted:
        one = one.without_records()
        changed = {name: kinds[name] for name in one.touched_}
        function = Served(one, course.roles, changed)
        course.rows = course.rows.mapped(function, {**course.rows.schema, **changed})
    record_step(step, course, touched=tuple(touched), skipped=skipped)


def _wide(kind: pl.DataType) -> pl.DataType:
    """A type that also fits the results for numbers of other parts."""
    return pl.Decimal(38, kind.scale) if isinstance(kind, pl.Decimal) else kind


def _to_learn_from(step: Masker, course: Course, name: str) -> Table:
    """The values of a column with their counts; a sample is enough to round very many values."""
    own = roles_on(course.roles, [name])
    try:
        return course.rows.tally([name], own)
    except TooManyCombinations:
        if not isinstance(step, Round):
            raise
    rows = replace(course.rows, schema=course.rows.kinds([name]), hidden={})
    return Table(rows.some(course.total).select(name), own)


def by_condition(step: Suppress, course: Course) -> None:
    """Remove the records that meet a condition and, if asked, all others of their persons."""
    assert step.where is not None
    if step.target != "records":
        by_value(step, course)
        return
    rows, function = course.rows, Emptied(step.where, course.roles)
    if step.whole and course.owners:
        met = rows.mapped(replace(function, met=True))
        owners: pl.DataFrame = met.tally(course.owners, Roles()).frame
        function = replace(function, gone=course.together.all_of(owners))
    course.rows = rows.mapped(function)
    before, course.total = course.total, course.rows.count()
    losing = persons_losing(rows, function, course, before)
    record_step(step, course, removed=before - course.total, losing=losing)


def persons_losing(rows: Rows, kept: Function, course: Course, before: int) -> int:
    """How many persons lost a row."""
    unit = list(course.roles.unit_columns)
    if not unit or before == course.total:
        return before - course.total
    return len(rows.mapped(Lost(kept)).tally(unit, Roles()))


def by_noise(step: AddNoise, course: Course) -> None:
    rows, stream = course.rows, SecretStream.from_state(None)
    named = step.columns or course.roles.quasi_identifiers
    by = tuple(
        n for n in course.roles.quasi_identifiers if rows.schema[n] in (pl.String, pl.Boolean)
    )
    ranges: dict[str, tuple[pl.DataFrame, float, float]] = {}
    skipped: dict[str, str] = {}
    for name in named:
        kind = kind_of(rows.schema[name])
        if kind != "float":
            skipped[name] = f"{kind}, not float"
            continue
        found = _ranges(rows, by, name)
        low, high = found["low"].min(), found["high"].max()
        if low is None or low == high:
            skipped[name] = "all values are equal" if low is not None else "no value present"
            continue
        ends = float(low), float(high)  # type: ignore[arg-type]
        if not np.isfinite(ends[1] - ends[0]):
            skipped[name] = "its range exceeds the largest floating-point number"
            continue
        ranges[name] = (found, *ends)
    if ranges:
        kinds = {name: _wide(rows.schema[name]) for name in ranges}
        function = Noise(stream.key_hex, step.method, step.epsilon, by, ranges, kinds)
        course.rows = rows.mapped(function, {**rows.schema, **kinds}, whole_parts=True)
    _record_draws(step, course, stream, list(ranges), skipped)


def _ranges(rows: Rows, by: Sequence[str], column: str) -> pl.DataFrame:
    """The lowest and the highest value of a column among rows with equal ``by``."""
    kinds = {**rows.kinds(by), "low": pl.Float64(), "high": pl.Float64()}
    rows, quote = rows.engine.settled(rows, [*by, column]), rows.engine.quote
    value, names = quote(column), list(map(quote, by))
    shown = ", ".join([*names, f"min({value}) AS low", f"max({value}) AS high"])
    group = f" GROUP BY {', '.join(names)}" if by else ""
    found = rows.engine.query(f"SELECT {shown} FROM {rows.name}{group}")
    return found.cast(pl.Schema(kinds))


def by_redrawing(step: Pram, course: Course) -> None:
    rows, stream = course.rows, SecretStream.from_state(None)
    counts: dict[str, tuple[pl.Series, Integers]] = {}
    skipped: dict[str, str] = {}
    for name in step.columns or course.roles.quasi_identifiers:
        if rows.schema[name] not in (pl.String, pl.Boolean):
            skipped[name] = f"{kind_of(rows.schema[name])}, not text or boolean"
            continue
        codes = rows.tally([name], roles_on(course.roles, [name])).codes(name)
        if len(codes.levels):
            counts[name] = (codes.levels, codes.counts[: len(codes.levels)])
        else:
            skipped[name] = "no value present"
    if counts:
        function = Redrawn(stream.key_hex, step.method, step.keep, counts)
        course.rows = rows.mapped(function, whole_parts=True)
    _record_draws(step, course, stream, list(counts), skipped)


def _record_draws(
    step: AddNoise | Pram,
    course: Course,
    stream: SecretStream,
    touched: list[str],
    skipped: dict[str, str],
) -> None:
    if step.columns is not None and skipped:
        step._warn_about_named(skipped)
    private = {**secrets_of(stream), "part": PART}
    record_step(step, course, touched=tuple(touched), skipped=skipped, private=private)
