"""Steps by counts: each row gets the masked values of its combination."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.engines._engine import TooManyCombinations
from shoal.engines.steps._chunked import by_chunks, compares
from shoal.engines.steps._course import Course, kind_after, record_step
from shoal.engines.steps._functions import ByCombination
from shoal.masking import Generalize, Suppress
from shoal.table import Table

_WORTH_COLLECTING = 1_000_000


def by_counts(step: Generalize | Suppress, course: Course) -> None:
    columns = _decided_by(step, course)
    try:
        tally = course.tally(columns)
    except TooManyCombinations:
        in_boxes = isinstance(step, Generalize) and step.algorithm == "mondrian"
        if not in_boxes or course.roles.unit_columns or compares(step):
            raise
        by_chunks(step, course)  # the tree makes the cuts that Mondrian would make first
        return
    masked = step.fit_transform(tally)
    if len(tally) > _WORTH_COLLECTING:
        gc.collect()  # compiled kernels leave cycles, which hold all combinations
    keys = [name for name in columns if name in _keys_of(step, course)]
    if isinstance(step, Generalize) and step.suppressed == "kept":
        keys += course.owners  # all rows of a person are kept as stars
    function = ByCombination(tally, masked, keys, step.touched_)
    if tally.together is not None and len(masked) < len(tally):
        function.gone = _gone_owners(tally, masked, course)
    schema = {n: k for n, k in course.rows.schema.items() if n not in step.removed_columns_}
    schema |= {n: kind_after(masked, n) for n in step.touched_ if n in masked.columns}
    course.rows = course.rows.mapped(function, schema)
    course.total -= step.removed_
    course.roles = course.roles.without(step.removed_columns_)
    course.fitted.append(step)
    record_step(step, course, past=masked.course)


def _keys_of(step: Generalize | Suppress, course: Course) -> Sequence[str]:
    """The columns that decide how a row is masked."""
    if step.columns is not None:
        return step.columns
    return course.roles.quasi_identifiers


def _decided_by(step: Generalize | Suppress, course: Course) -> list[str]:
    """The columns that a step needs: those it changes, and those that its models depend on."""
    names = dict.fromkeys(_keys_of(step, course))
    if isinstance(step, Generalize) and (step.models is not None or step.suppressed == "kept"):
        names |= dict.fromkeys(course.roles.sensitive)
    if isinstance(step, Generalize):
        names |= dict.fromkeys(course.roles.quasi_identifiers)
    return list(names)


def _gone_owners(tally: Table, masked: Table, course: Course) -> pl.DataFrame:
    """The owners who have no row left; rows without an owner go with their combination."""
    assert tally.together is not None
    left = tally.together[tally.rows_of_keys(masked.row_key)]
    frame: pl.DataFrame = tally.frame
    gone = frame.filter(pl.Series(~np.isin(tally.together, left))).select(course.owners).unique()
    return gone if course.roles.unit_columns else gone.drop_nulls()
