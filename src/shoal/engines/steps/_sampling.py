"""Samples by keyed hashes: of rows, of persons or households as a whole, or of each stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.engines._engine import HIDDEN, Function, Rows, roles_on
from shoal.engines.steps._course import Course, record_step, secrets_of
from shoal.engines.steps._functions import Below, Hashed, InStrata, Keys, Together
from shoal.engines.steps._values import persons_losing
from shoal.masking import Sample, Secrets
from shoal.masking._base import StepLog
from shoal.masking._sample import exact_fraction
from shoal.randomness import SecretStream


def by_sampling(step: Sample, course: Course) -> None:
    """Keep the rows or persons with the smallest keyed hashes: a share, or an exact number."""
    rows, stream = course.rows, SecretStream.from_state(None)
    together = course.together if step.whole else Together()
    share = exact_fraction(step.fraction)
    function: Function = Below(stream.key_hex, int(share * 2**64), together=together)
    if step.strategy in ("stratified", "balanced"):
        function = _in_strata(step, course, stream, together)
    elif step.strategy != "bernoulli":
        bound = _bound_of(rows, stream, share, course.total, together)
        function = Below(stream.key_hex, bound, together=together)
    if course.drawn_from is None:
        course.drawn_from = rows, len(course.records)
    course.rows = rows.mapped(function)
    before, course.total = course.total, course.rows.count()
    losing = persons_losing(rows, function, course, before)
    secrets = secrets_of(stream)
    past = step._course(course.past, StepLog(private=Secrets(secrets)))
    removed = before - course.total
    record_step(step, course, removed=removed, losing=losing, private=secrets, past=past)


def _bound_of(
    rows: Rows, stream: SecretStream, share: Fraction, total: int, together: Together
) -> int:
    """The hash below which the share of all rows, persons or households lies."""
    engine, place = rows.engine, HIDDEN + "place"
    placed = _placed(rows, Hashed(stream.key_hex, together), together.columns, [place])
    if together.columns:
        placed = engine.view(f"SELECT DISTINCT {place} FROM {placed}")
        total = int(engine.query(f"SELECT count(*) AS n FROM {placed}")["n"][0])
    wanted = int(share * total)
    found = engine.query(f"SELECT {place} AS h FROM {placed} ORDER BY h LIMIT 1 OFFSET {wanted}")
    return int(found["h"][0]) + (1 << 63) if len(found) else 1 << 64


def _placed(rows: Rows, function: Function, asked: Sequence[str], made: Sequence[str]) -> str:
    """The name in SQL of numbers that a function computes from some columns."""
    bare = replace(rows, schema={}, hidden=dict(rows.kinds(asked)))
    numbers = bare.mapped(function, hidden=dict.fromkeys(made, pl.Int64()))
    return rows.engine.settled(numbers, made).name


def _in_strata(step: Sample, course: Course, stream: SecretStream, together: Together) -> InStrata:
    """The rows with the smallest hashes of each class, as many as the step requires."""
    rows = course.rows
    if together.columns:
        place = HIDDEN + "place"
        placed = _placed(rows, Hashed(stream.key_hex, together), together.columns, [place])
        wholes = rows.engine.query(f"SELECT count(DISTINCT {place}) AS n FROM {placed}")
        step.refuse_parts(int(wholes["n"][0]), course.total)
    roles = course.roles.without(course.owners)
    names = step.strata(roles)
    tally = rows.tally(names, roles_on(roles, names))
    strata = Keys(tally, names)
    labels = tally.group(names).labels[strata.first]
    first = np.zeros(len(labels), np.uint64)
    if step.strategy == "balanced":
        first[labels] = _hashes_at(rows, InStrata(stream.key_hex, strata, np.ones_like(labels)))
    function = InStrata(stream.key_hex, strata, step.quotas(tally, first)[labels])
    function.bounds = _hashes_at(rows, function)
    return function


def _hashes_at(rows: Rows, function: InStrata) -> npt.NDArray[np.uint64]:
    """The hash of the last row within the quota of each stratum; 0 if the quota is 0."""
    stratum, quota, place = (HIDDEN + name for name in ("stratum", "quota", "place"))
    asked = [levels.name for levels in function.strata.levels]
    placed = _placed(rows, function, asked, [stratum, quota, place])
    found = rows.engine.query(
        f"SELECT {stratum} AS s, {place} AS h FROM (SELECT *, row_number() OVER (PARTITION BY "
        f"{stratum} ORDER BY {place}) AS turn FROM {placed}) WHERE turn = {quota}"
    )
    bounds = np.zeros(len(function.quotas), np.uint64)
    signed = found["h"].cast(pl.Int64).to_numpy()
    bounds[found["s"].to_numpy()] = signed.view(np.uint64) ^ np.uint64(1 << 63)
    return bounds
