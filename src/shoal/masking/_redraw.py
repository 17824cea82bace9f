"""Redrawing: sensitive values of unsafe classes come from safe ones, so that classes stay blind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, RequirementNotMet
from shoal.masking._base import Masker, StepLog
from shoal.masking._groups_satisfy import Models, PrivacyModels
from shoal.models import PrivacyModel
from shoal.parameters import Secret
from shoal.randomness import SecretStream
from shoal.table import Table

Rows = npt.NDArray[np.int64]

_TRIES = 200


@dataclass(kw_only=True)
class Redraw(Masker):
    """Replace the sensitive values of classes that fail a model by draws from classes that hold it.

    A search that looks at sensitive values gives some of them away: whoever knows the algorithm
    knows that a class was made coarser because it would have failed otherwise. With this step the
    classes can be formed by the quasi-identifiers alone, ``Generalize(k=5)`` for example, and the
    classes that then fail get other sensitive values: each takes those of a class that holds the
    model, chosen at random, drawn with replacement until it holds the model as well. The values
    of a record stay together. The analyst pays: a redrawn value is not that of the person.

    Parameters
    ----------
    models : privacy model or list of privacy models
        What every class must satisfy, for example ``LDiversity(2)``.
    random_state : int, optional
        For tests only: a seed lets anyone who learns it tell what was redrawn.

    Attributes
    ----------
    redrawn_ : int
        How many records got other values. Private, like everything that tells of failing classes.

    References
    ----------
    Wong, Fu, Wang, Pei (2007), Minimality attack in privacy preserving data publishing, section 5
    (the algorithm Mask).

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
    summary = "redraws the sensitive values of classes that fail a model from classes that hold it"
    reference = "Wong et al. 2007"
    is_random = True

    @property
    def needs_columns(self) -> bool:
        """Sensitive columns are redrawn; without quasi-identifiers all records are one class."""
        return False

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        stream = self._stream(table, log)
        given = self.models if isinstance(self.models, list) else [self.models]
        secrets = list(table.roles.sensitive)
        if not secrets:
            raise InputError(
                "Redraw needs sensitive columns, whose values it draws anew; declare them in the "
                "roles."
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
        self,
        table: Table,
        failing: npt.NDArray[np.bool_],
        models: list[PrivacyModel],
        stream: SecretStream,
    ) -> Rows:
        """For each record the row whose sensitive values it gets."""
        labels = table.classes.labels
        safe = np.unique(labels[~failing])
        if not len(safe):
            raise RequirementNotMet(
                f"No class of the table holds {' and '.join(m.title for m in models)}, so that "
                "there is nothing to draw from; form larger classes first. Nothing was written."
            )
        order = np.argsort(labels, kind="stable")
        starts = np.concatenate([[0], np.cumsum(table.classes.sizes)])
        source = np.arange(len(table))
        left = np.unique(labels[failing])
        secrets = table.roles.sensitive
        for attempt in range(_TRIES):
            draws = stream.derive("redraw", str(attempt))
            donors = safe[draws.integers_below(np.full(len(left), len(safe)))]
            sizes = table.classes.sizes
            donor_of = np.repeat(donors, sizes[left])
            rows = np.concatenate([order[starts[one] : starts[one + 1]] for one in left])
            picked = draws.integers_below(sizes[donor_of])
            source[rows] = order[starts[donor_of] + picked]
            redrawn = table.with_cells_of(dict.fromkeys(secrets, source))
            still = np.logical_or.reduce([model.violations(redrawn) for model in models])
            left = np.unique(labels[still])
            if not len(left):
                return source
            # a class that held the model before may fail beside others: it is redrawn as well
            safe = np.setdiff1d(safe, left)
            if not len(safe):
                break
        raise RequirementNotMet(
            f"{len(left)} classes are too small to be given values that hold "
            f"{' and '.join(m.title for m in models)}; form larger classes first. Nothing was "
            "written."
        )
