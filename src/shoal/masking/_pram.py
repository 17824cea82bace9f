"""PRAM: replace categories at random; their expected counts stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.masking._base import Masker, StepLog
from shoal.parameters import ColumnNames, Real, Secret
from shoal.table import Table


@dataclass(kw_only=True)
class Pram(Masker):
    """Keep each category with at least a given probability; otherwise draw a new one.

    With probability ``keep`` a cell stays; otherwise it gets the value of a record drawn at
    random from the whole column. The transition matrix is keep x I + (1 - keep) x shares. Its
    diagonal is therefore at least ``keep``, and the expected share of every category does not
    change (invariant PRAM). Missing cells stay missing and are not drawn. Works on text and
    booleans.

    Parameters
    ----------
    keep : float
        The minimum probability that a cell keeps its category, at most 1.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.
    random_state : int, optional
        For tests only: anyone who learns the seed can tell which cells were redrawn.

    References
    ----------
    Gouweleeuw, Kooiman, Willenborg, de Wolf (1998), Post randomisation for statistical disclosure
    control: theory and implementation
    <https://www.scb.se/contentassets/ca21efb41fee47d293bbee5bf7be7fb3/post-randomisation-for-statistical-disclosure-control-theory-and-implementation.pdf>,
    Journal of Official Statistics 14.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> table = Table(pl.DataFrame({"job": ["a", "b"] * 50}), Roles(quasi_identifiers=["job"]))
    >>> Pram(keep=1.0).fit_transform(table).frame["job"].to_list()[:2]
    ['a', 'b']
    """

    keep: Annotated[float, Real(minimum=0, maximum=1)]
    columns: Annotated[list[str] | None, ColumnNames()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "pram"
    summary = "redraws some categories at random; their expected counts do not change"
    reference = "Gouweleeuw et al. 1998"
    is_random = True
    kinds = ("text", "boolean")

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        stream = self._stream(table, log)
        masked = table
        for name in self._usable(table, columns, log):
            present = np.flatnonzero(table.present(name))
            own = stream.derive(self.method, name)
            drawn = present[own.integers_below(np.full(len(present), len(present)))]
            redrawn = own.uniform(len(present)) >= self.keep
            source = np.arange(len(table))
            source[present[redrawn]] = drawn[redrawn]
            masked = masked.with_cells_of({name: source})
            log.compare([name], masked, table)
        return masked
