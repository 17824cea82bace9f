"""Redrawing: unsafe classes get sensitive values from safe classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from shoal.errors import InputError, RequirementNotMet, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.masking._base import Masker, StepLog
from shoal.masking.grouping._group_models import Models, PrivacyModels, models_of
from shoal.models import PrivacyModel
from shoal.parameters import Secret
from shoal.randomness import SecretStream
from shoal.table import Column, Table, owned_pairs

_TRIES = 200
_NEAR = 5  # classes from which a class may get values
_VALUES = 16  # distinct values used of a column without a scale
_COMMON = 10  # records with a value that hide one more
_MOST_RARE = 0.05
_MEASURABLE = 100  # records to draw from; among fewer, a share says nothing
_DIGIT = re.compile(r"\d")


@dataclass(kw_only=True)
class Redraw(Masker):
    """Replace the sensitive values of classes that fail a model by draws from classes that hold it.

    With this step, classes can be formed by the quasi-identifiers alone, for example with
    ``Generalize(k=5)``. The classes that then fail get other sensitive values. Each of their
    records takes the values of one record, drawn at random from the five classes that satisfy the
    models and are nearest in the quasi-identifiers. This repeats until the class satisfies the
    models as well. The values of a record stay together. The analyst pays: a redrawn value is not
    the person's own.

    Nobody may see what was redrawn. Values from far away would contradict the quasi-identifiers,
    so they come from near classes, and from several of them, so that no class repeats another.
    A rare value would be recognized as a copy because it appears twice. The step therefore refuses
    if more than 5 % of the records to draw from have sensitive values, taken together, that fewer
    than 10 of these records have. With fewer than 100 such records this is not checked.

    Parameters
    ----------
    models : privacy model or list of privacy models
        What every class must satisfy, for example ``LDiversity(2)``.
    random_state : int, optional
        For tests only: anyone who learns the seed can tell what was redrawn.

    Attributes
    ----------
    redrawn_ : int
        How many records got other values. Private, like everything about failing classes.

    References
    ----------
    Wong, Fu, Wang, Pei (2007), Minimality attack in privacy preserving data publishing
    <https://scholars.duke.edu/publication/1530694>, section 5 (the algorithm Mask, which draws from
    any class).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import LDiversity, Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 40, 40], "ill": ["flu", "flu", "ok", "gout"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> masked = Redraw(LDiversity(2)).fit_transform(table)
    >>> sorted(masked.frame["ill"][:2]), masked.frame["ill"][2:].to_list()
    (['gout', 'ok'], ['ok', 'gout'])
    """

    models: Annotated[Models, PrivacyModels()] = field(kw_only=False)
    random_state: Annotated[int | None, Secret()] = None

    method = "redraw"
    summary = (
        "redraws the sensitive values of classes that fail a model from near ones that satisfy it"
    )
    reference = "Wong et al. 2007"
    is_random = True

    @property
    def needs_columns(self) -> bool:
        """Sensitive columns are redrawn; without quasi-identifiers, all records form one class."""
        return False

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        stream = self._stream(table, log)
        given = models_of(self.models)
        secrets = list(table.roles.sensitive)
        if not secrets:
            raise InputError(
                "Redraw needs sensitive columns, because it redraws their values. Declare them in "
                "the roles."
            )
        failing = np.logical_or.reduce([model.violations(table) for model in given])
        source = np.arange(len(table))
        if failing.any():
            source = self._drawn(table, failing, given, stream)
        self.redrawn_ = int(failing.sum())
        masked = table.with_cells_of(dict.fromkeys(secrets, source)) if failing.any() else table
        log.compare(secrets, masked, table)
        return masked

    def _drawn(
        self, table: Table, failing: Flags, models: list[PrivacyModel], stream: SecretStream
    ) -> Integers:
        """For each record, the row from which it gets its sensitive values."""
        classes, secrets = table.classes, table.roles.sensitive
        safe = np.unique(classes.labels[~failing])
        if not len(safe):
            raise RequirementNotMet(
                f"No class of the table satisfies {' and '.join(m.title for m in models)}, so "
                "there is nothing to draw from. Form larger classes first. Nothing was written."
            )
        _refuse_visible_copies(table, ~failing)
        order = np.argsort(classes.labels, kind="stable")
        starts = np.concatenate([[0], np.cumsum(classes.rows)])
        source = np.arange(len(table))
        left = np.unique(classes.labels[failing])
        places = _places(table, order[starts[:-1]])
        for attempt in range(_TRIES):
            draws = stream.derive("redraw", str(attempt))
            near = _nearest(places, left, safe)
            rows = np.concatenate([order[starts[one] : starts[one + 1]] for one in left])
            donors = near[np.repeat(np.arange(len(left)), classes.rows[left])]
            chosen = draws.integers_below(np.full(len(rows), donors.shape[1]))
            donor_of = donors[np.arange(len(rows)), chosen]
            source[rows] = order[starts[donor_of] + draws.integers_below(classes.rows[donor_of])]
            redrawn = table.with_cells_of(dict.fromkeys(secrets, source))
            still = np.logical_or.reduce([model.violations(redrawn) for model in models])
            left = np.unique(classes.labels[still])
            if not len(left):
                return source
            # a class that held the model alone may fail next to others: redraw it too
            safe = np.setdiff1d(safe, left)
            if not len(safe):
                break
        raise RequirementNotMet(
            f"{len(left)} classes are too small to get values that satisfy "
            f"{' and '.join(m.title for m in models)}. Form larger classes first. Nothing was "
            "written."
        )


def _refuse_visible_copies(table: Table, safe: Flags) -> None:
    """Raise RequirementNotMet if a value that appears twice reveals that one is a copy."""
    secrets = table.roles.sensitive
    kinds, persons = table.group(secrets).labels[safe], table.persons[safe]
    if len(np.unique(persons)) < _MEASURABLE:
        return
    holders = np.bincount(owned_pairs(kinds, persons)[0])
    rare = float((holders[kinds] < _COMMON).mean())
    if rare > _MOST_RARE:
        what = f"{'values' if len(secrets) == 1 else 'combinations'} of {quoted(secrets)}"
        raise RequirementNotMet(
            f"Redraw would reveal which records it redrew: {100 * rare:.3g} % of the records that "
            f"it may draw from have {what} that fewer than {_COMMON} of them have, so a copy would "
            f"stand out; at most {100 * _MOST_RARE:g} % may. Make these columns coarser "
            "first (recode, round, generalize), or remove those that are not needed. Nothing "
            "was written."
        )


def _places(table: Table, rows: Integers) -> Floats:
    """Where the class of each row lies: numbers in standard deviations, other values as 0 and 1."""
    parts = [np.zeros(len(rows))]
    for name in table.roles.quasi_identifiers:
        column = table.column(name)
        codes = column.codes.codes[rows].astype(np.int64)
        middles = _middles(column)
        if middles is None:
            often = np.argsort(-np.bincount(codes), kind="stable")[:_VALUES]
            parts += [(codes == value).astype(np.float64) for value in often]
            continue
        at = middles[codes]
        known = np.isfinite(at)
        at = at / max(np.abs(at[known]).max(initial=0.0), 1e-300)  # squares stay in the range
        spread = float(at[known].std()) if known.any() else 0.0
        if spread > 0:
            parts.append(np.where(known, (at - at[known].mean()) / spread, 0.0))
    return np.column_stack(parts)


def _middles(column: Column) -> Floats | None:
    """Each code of a column as a number, NaN if unknown; None if the column has no scale."""
    if column.kind not in ("text", "boolean"):
        return column.codes.numbers
    recorded = column.recorded_domain
    if recorded is None and not any(map(_DIGIT.search, column.codes.texts)):
        return None
    ends = column.domain("float").ends if recorded is None else recorded.ends
    if ends is None:
        return None
    closed = np.where(np.isfinite(ends), ends, ends[:, ::-1])  # an open end counts as the other
    return np.append(closed.mean(axis=1), [np.nan] * (column.codes.missing is not None))


def _nearest(places: Floats, left: Integers, safe: Integers) -> Integers:
    """For each remaining class, the nearest safe classes."""
    from scipy.spatial import cKDTree

    ranks = range(1, min(_NEAR, len(safe)) + 1)  # a list: one column per rank, even for one
    _, nearest = cKDTree(places[safe]).query(places[left], k=list(ranks))
    return safe[nearest]
