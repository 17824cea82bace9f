"""The cost and the risk of each k on one table: the curve for choosing k."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from shoal.errors import ParameterError, ShoalError
from shoal.masking import Progress
from shoal.notebook import Html, listing, view
from shoal.risk import marketer_risk
from shoal.table import Table, check_table
from shoal.utility import normalized_certainty_penalty
from shoal.workflow._assessment import CostOfK
from shoal.workflow._plan import Plan
from shoal.workflow.advice._advice import some_persons, with_k
from shoal.workflow.advice._suggest_plan import suggest_plan

_ASKED: Final = (2, 3, 5, 10, 20, 50)


class KCurve(tuple[CostOfK, ...]):
    """The cost of each k, in the order of k: a tuple that a notebook shows as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = (f"k = {p.k}: {p.risk:.1%} found, {p.loss:.1%} of detail lost" for p in self)
        return f"KCurve: {'; '.join(rows)}".replace("%", " %")

    def _repr_html_(self) -> str:
        """The share of people found and of detail lost for each k, with a bar for each."""
        head = ("k", "% found by trying all", "", "% of detail lost", "", "% of records lost")
        rows = [
            (p.k, _percent(p.risk), _bar(p.risk), _percent(p.loss), _bar(p.loss), _percent(p.lost))
            for p in self
        ]
        return view("What each k costs", listing(head, rows))


def _percent(share: float) -> float:
    return round(100 * share, 1)


def _bar(share: float) -> Html:
    width = f"{100 * share:.1f}"
    return Html(f'<svg aria-hidden="true"><rect y="1" height="10" width="{width}%"/></svg>')


def k_curve(
    table: Table,
    plan: Plan | None = None,
    *,
    ks: Sequence[int] = _ASKED,
    progress: Progress | None = None,
) -> KCurve:
    """Run a plan with each of several k, and measure the loss and the share of people found.

    The plan's other requirements are ignored. A table with more than 100,000 records is
    represented by a sample of whole persons, so the loss is slightly higher than on the full table.

    Parameters
    ----------
    table : Table
        The table with its roles.
    plan : Plan, optional
        A plan with a step that has a ``k`` (default: that of :func:`shoal.suggest_plan`).
    ks : list of int
        The values of k to try; those for which the table is too small are left out.
    progress : callable, optional
        Called with the current activity and the share that is done.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles
    >>> table = Table(pl.DataFrame({"age": range(20, 84)}), Roles(quasi_identifiers=["age"]))
    >>> [(point.k, round(point.loss, 2)) for point in k_curve(table, ks=[2, 4, 8])]
    [(2, 0.02), (4, 0.05), (8, 0.11)]
    """
    check_table(table, "The curve of k")
    if not isinstance(ks, Iterable):
        raise ParameterError(f"'ks' must be a list of integers, such as [2, 5, 10]. Got {ks!r}.")
    plan = suggest_plan(table).plan if plan is None else Plan.of(plan)
    with_k(plan, 2)  # raises if there is no k to vary
    table, _ = some_persons(table.with_roles(plan.roles_for(table)))
    found, reason = [], None
    for done, k in enumerate(ks):
        if progress:
            progress(f"Trying k = {k}", done / len(ks))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                masked, _ = with_k(plan, k).mask(table)
                risk = marketer_risk(masked).value
                loss = normalized_certainty_penalty(table, masked).value
            except ShoalError as cause:  # the table is too small for it
                reason = cause
                continue
        found.append(CostOfK(k, risk, loss, 1 - len(masked) / len(table)))
    if reason is not None and not found:
        raise reason
    return KCurve(found)
