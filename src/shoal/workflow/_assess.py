"""Assessing a table: plain facts about risk, and against the original about utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shoal.errors import InputError, RolesError
from shoal.masking import Progress
from shoal.table import Missing, Table
from shoal.workflow._asked import (
    Measures,
    Options,
    asked_by_name,
    check_known,
    check_numbers,
    checked_options,
    chosen_measures,
)
from shoal.workflow._assessment import Assessment
from shoal.workflow._earlier import check_earlier, exposed_together
from shoal.workflow._measuring import Run
from shoal.workflow._require import discover_all_measures

_OF_A_RELEASE = (
    "certainty",
    "distance_linkage",
    "homogeneity",
    "journalist_risk",
    "marketer_risk",
    "normalized_certainty_penalty",
    "prosecutor_risk",
    "records_at_risk",
    "similarity",
    "skewness",
    "suda",
    "suppressed_cells",
    "total_variation",
    "unchanged_records",
    "uniqueness",
)


def assess(
    table: Table,
    *,
    original: Table | None = None,
    population: Table | None = None,
    control: Table | None = None,
    sampling_fraction: float | None = None,
    threshold: float = 0.2,
    missing: Missing = "own",
    known: Sequence[str] | str | None = None,
    measures: Measures | None = None,
    options: Options | None = None,
    earlier: Sequence[Table] = (),
    progress: Progress | None = None,
) -> Assessment:
    """Measure how exposed a table is and, against its original, what masking cost.

    Parameters
    ----------
    table : Table
        The table, with its quasi-identifiers declared.
    original : Table, optional
        The table before masking, for the measures that compare. Where the table is a sample of
        it, journalist risk and certainty count people in it.
    population : Table, optional
        The population that the table is drawn from, for journalist risk.
    control : Table, optional
        People of the same kind who are not in the table, for the attacks that are tried on them
        too.
    sampling_fraction : float, optional
        The share of the population that the table holds, where the population is not at hand.
    threshold : float
        The risk above which a record counts as at risk.
    missing : {"own", "wildcard"}
        Whether a missing quasi-identifier is a value of its own or agrees with every value.
    known : list of str or str, optional
        The columns that an intruder knows who attacks, or a word for them: ``"quasi-identifiers"``,
        ``"left-in-place"``, ``"informed"`` or ``"everything"``. Without it, what each attack takes.
    measures : list of str or "all", optional
        Only these measures; ``"all"`` are also those that take long. Without it, all that the
        given tables allow in seconds.
    options : dict of dict, optional
        Options of single measures, such as ``{"distance_linkage": {"known": ["age"]}}``. A measure
        that is named here is asked for.
    earlier : list of Table, optional
        Earlier releases of the same original, whose rows pair with those of the table: ``together``
        then says whom they expose together with it.
    progress : callable, optional
        Called with what is being done and the share that is done.

    Returns
    -------
    Assessment
        Plain facts; it prints, and has ``to_json`` and ``to_html``. A measure that does not apply
        or fails spoils no other one: ``left_out`` and ``failed`` say why.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41], "sex": ["f", "f", "m", "m", "f"]})
    >>> assessment = assess(Table(frame, Roles(quasi_identifiers=["age", "sex"])))
    >>> assessment.k, round(assessment["marketer_risk"].value, 2)
    (1, 0.6)
    """
    check_assessable(table, original, population, control)
    check_numbers(threshold, missing, sampling_fraction)
    if population is not None and sampling_fraction is not None:
        raise InputError("Give a population table or a sampling fraction, not both.")
    check_known(known, table if original is None else original)
    others = check_earlier(earlier, table)
    own = checked_options(options)
    own["records_at_risk"] = {"threshold": threshold} | own.get("records_at_risk", {})
    run = Run(
        table,
        original,
        {
            "missing": missing,
            "population": population,
            "sampling_fraction": sampling_fraction,
            **({} if known is None else {"known": known}),
            **({} if control is None else {"control": control}),
        },
        own,
        asked=frozenset(asked_by_name(measures)) | frozenset(options or ()),
    )
    run.measure(chosen_measures(measures, options), progress)
    only_some = measures is not None and measures != "all"
    if only_some and not run.found:
        why = [f"{name}: {said.rstrip('.')}" for name, said in (run.left_out | run.failed).items()]
        raise InputError(f"Nothing could be measured. {'; '.join(why)}.")
    found = run.assessment(with_swapping=not only_some)
    if not others:
        return found
    together, notes = exposed_together(table, others, original)
    return replace(found, together=together, notes=(*found.notes, *notes))


def assess_release(table: Table, original: Table, progress: Progress | None = None) -> Assessment:
    """What a release says of itself, before and after masking: what is quick on any table.

    ``assess`` measures everything; it is there for whoever decides on a release.
    """
    check_assessable(table, original)
    shared = {"missing": "own", "population": None, "sampling_fraction": None}
    run = Run(table, original, shared)
    known = discover_all_measures()
    run.measure([known[name] for name in _OF_A_RELEASE], progress)
    return run.assessment()


def check_assessable(
    table: Table,
    original: Table | None = None,
    population: Table | None = None,
    control: Table | None = None,
) -> None:
    """Raise InputError where a table is none, has no records or no quasi-identifiers.

    A masked table may have lost its quasi-identifiers to suppression: then its original has them.
    """
    for given in (table, original, population, control):
        if not isinstance(given, Table) and (given is not None or given is table):
            raise InputError(
                f"A shoal.Table is needed; got {type(given).__name__}. "
                "Write sh.Table(frame, roles)."
            )
    for given, called in ((table, "table"), (original, "original"), (control, "control table")):
        if given is not None and len(given) == 0:
            raise InputError(f"The {called} has no records.")
    declared = table if original is None else original
    if not table.roles.quasi_identifiers and not declared.roles.quasi_identifiers:
        raise RolesError(
            "No quasi-identifiers are declared, so nothing can be said about risk; name the "
            "columns that an intruder may know (shoal roles suggests some)."
        )
