"""Assessing a table: plain facts about risk, and against the original about utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from shoal.errors import DoesNotApply, InputError, RolesError, ShoalError, did_you_mean, quoted
from shoal.hints import helpful
from shoal.masking import Progress
from shoal.measurement import MeasureInfo, Measurement
from shoal.parameters import Real
from shoal.risk import KNOWN_WORDS, counted_once, intersection, journalist_risk_before_sampling
from shoal.table import Missing, Roles, Table, as_roles, check_table
from shoal.workflow._assessment import Assessment, class_facts
from shoal.workflow._leaks import linking_columns, swapping_of
from shoal.workflow._require import discover_all_measures, known_measure

Measures = Sequence[str] | Literal["all"]
Options = Mapping[str, Mapping[str, Any]]

#: Measures that are fast on any table, which a release reports about itself.
_OF_A_RELEASE = (
    "certainty distance_linkage homogeneity journalist_risk marketer_risk "
    "normalized_certainty_penalty prosecutor_risk records_at_risk similarity skewness suda "
    "suppressed_cells total_variation unchanged_records uniqueness"
).split()
_POPULATION_MEASURES = ("journalist_risk", "population_uniqueness")
_MANY = 1_000_000  # with more records, measures that need memory must be asked for by name


@helpful
def assess(
    table: Any,
    *,
    roles: Roles | Mapping[str, Any] | None = None,
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
    table : Table, or a frame with roles
        The table, with its quasi-identifiers declared.
    roles : Roles or dict, optional
        The roles of the columns, if the table does not declare them.
    original : Table, optional
        The table before masking, for measures that compare. If the table is a sample of it,
        journalist risk and certainty count people in it.
    population : Table, optional
        The population that the table is drawn from, for journalist risk.
    control : Table, optional
        Similar people who are not in the table, as a control group for attacks.
    sampling_fraction : float, optional
        The share of the population that the table holds, if the population is not available.
    threshold : float
        The risk above which a record counts as at risk.
    missing : {"own", "wildcard"}
        Whether a missing quasi-identifier is a value of its own or equals every value.
    known : list of str or str, optional
        The columns that the intruder knows, or a word for them: ``"quasi-identifiers"``,
        ``"left-in-place"``, ``"informed"`` or ``"everything"`` (default: that of each attack).
    measures : list of str or "all", optional
        Take only these measures. ``"all"`` includes the slow ones. By default, all that the given
        tables allow within seconds are taken.
    options : dict of dict, optional
        Options of single measures, such as ``{"distance_linkage": {"known": ["age"]}}``. A measure
        named here is always taken.
    earlier : list of Table, optional
        Earlier releases of the same original. Their rows must pair with those of the table.
        ``together`` then reports whom all releases expose together.
    progress : callable, optional
        Called with the current activity and the share that is done.

    Returns
    -------
    Assessment
        Plain facts that print, with ``to_json`` and ``to_html``. A measure that does not apply or
        fails does not affect the others: ``left_out`` and ``failed`` give the reasons.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 41, 41, 41], "sex": ["f", "f", "m", "m", "f"]})
    >>> assessment = assess(Table(frame, Roles(quasi_identifiers=["age", "sex"])))
    >>> assessment.k, round(assessment["marketer_risk"].value, 2)
    (1, 0.6)
    """
    table = table_with(table, roles)
    check_assessable(table, original, population, control)
    _check_numbers(threshold, missing, sampling_fraction)
    if population is not None and sampling_fraction is not None:
        raise InputError("Pass a population table or a sampling fraction, not both.")
    _check_known(known, table if original is None else original)
    others = _checked_earlier(earlier, table)
    own = _checked_options(options)
    asked = frozenset([*asked_by_name(measures), *own])
    own["records_at_risk"] = {"threshold": threshold} | own.get("records_at_risk", {})
    shared: dict[str, Any] = {"known": known, "control": control}
    shared = {name: value for name, value in shared.items() if value is not None}
    shared |= {"missing": missing, "population": population}
    shared["sampling_fraction"] = sampling_fraction
    run = _Run(table, original, shared, own, asked)
    infos = discover_all_measures().items()
    run.measure([info for name, info in infos if measures is None or name in asked], progress)
    only_some = measures is not None and measures != "all"
    if only_some and not run.found:
        why = [f"{name}: {said.rstrip('.')}" for name, said in (run.left_out | run.failed).items()]
        raise InputError(f"Nothing could be measured. {'; '.join(why)}.")
    assessment = run.assessment(with_swapping=not only_some)
    return _exposed_together(assessment, table, others, original) if others else assessment


def table_with(given: Any, roles: Roles | Mapping[str, Any] | None) -> Any:
    """The table, or the frame as a table, with roles that were passed next to it."""
    if roles is None:
        return given
    table, asked = given if isinstance(given, Table) else Table(given), as_roles(roles)
    if table.roles not in (Roles(), asked):
        raise RolesError("The table already has other roles. Leave out 'roles'.")
    return table.with_roles(asked)


def assess_release(
    table: Table,
    original: Table | None,
    progress: Progress | None = None,
    *,
    declared: Roles | None = None,
) -> Assessment:
    """The fast measures that a release reports about itself, before and after masking.

    ``assess`` takes all measures, for the person who decides on a release. ``declared`` are the
    roles of an original that is not available.
    """
    if declared is None or not declared.quasi_identifiers:
        check_assessable(table, original)
    shared = {"missing": "own", "population": None, "sampling_fraction": None}
    run = _Run(table, original, shared)
    run.measure([discover_all_measures()[name] for name in _OF_A_RELEASE], progress)
    return run.assessment()


def check_assessable(
    table: Table,
    original: Table | None = None,
    population: Table | None = None,
    control: Table | None = None,
) -> None:
    """Raise InputError if it is not a Table, has no records or has no quasi-identifiers.

    Suppression may have removed the quasi-identifiers of a masked table; its original has them.
    """
    for given in (table, original, population, control):
        if given is not None or given is table:
            check_table(given, "This")
    for given, called in ((table, "table"), (original, "original"), (control, "control table")):
        if given is not None and len(given) == 0:
            raise InputError(f"The {called} has no records.")
    declared = table if original is None else original
    if not table.roles.quasi_identifiers and not declared.roles.quasi_identifiers:
        raise RolesError(
            "No quasi-identifiers are declared, so risk cannot be measured. Declare the columns "
            "that an intruder may know: sh.Roles(quasi_identifiers=[...]). 'shoal roles' and "
            "sh.suggest_roles suggest some."
        )


@dataclass(frozen=True, eq=False)
class _Run:
    """An assessment in progress: the tables, the requested measures, and the results so far.

    ``shared`` are options for every measure that accepts them, ``own`` those of single measures.
    """

    table: Table
    original: Table | None
    shared: Mapping[str, Any]
    own: Options = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    found: dict[str, Measurement] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def measure(self, chosen: Sequence[MeasureInfo], progress: Progress | None) -> None:
        """Take each measure, or record why it was not taken."""
        with counted_once():
            for number, info in enumerate(chosen):
                if progress:
                    progress(f"Measuring: {info.title}", number / len(chosen))
                reason = self._reason_to_leave_out(info)
                if reason is None:
                    self._try(info)
                else:
                    self.left_out[info.name] = reason

    def _try(self, info: MeasureInfo) -> None:
        try:
            self.found[info.name] = self._measured(info)
        except DoesNotApply as error:
            self.left_out[info.name] = str(error)
        except ShoalError as error:  # one measure that does not apply does not affect the others
            self.failed[info.name] = str(error)
        except Exception as error:  # nor does one that breaks; its message may quote a cell
            self.failed[info.name] = (
                f"An unexpected error occurred ({type(error).__name__}); please report it."
            )

    def assessment(self, *, with_swapping: bool = True) -> Assessment:
        """The results, with notes on how to read them."""
        missing = self.shared["missing"]
        classes = class_facts(self.table, missing)
        owners = self.table if self.original is None else self.original
        notes = [*classes.sentences, *_about_owners(owners)]
        if "certainty" in self.found:  # a sample that lost its k-anonymity, and who knows the label
            notes += self.found["certainty"].warnings
        swapping = None
        if self.original is not None and with_swapping:
            # the linkage by the quasi-identifiers, if it was measured
            otherwise = "known" in self.shared or "distance_linkage" in self.own
            by_quasi = None if otherwise else self.found.get("distance_linkage")
            swapping = swapping_of(self.original, self.table, by_quasi)
            notes += swapping.sentences if swapping is not None else []
            leaking = [leak.columns for leak in swapping.leaks] if swapping is not None else []
            linking = linking_columns(self.original, self.table, by_quasi)
            notes += [one.sentence for one in linking if one.columns not in leaking]
        return Assessment(
            rows=self.table.records,
            columns=len(self.table.columns),
            roles=self.table.roles.to_dict(),
            missing=missing,
            classes=classes,
            measurements=self.found,
            notes=tuple(notes),
            left_out=self.left_out,
            failed=self.failed,
            swapping=swapping,
            original_rows=None if self.original is None else self.original.records,
            times=self.table.times,
        )

    def _measured(self, info: MeasureInfo) -> Measurement:
        given = {name: value for name, value in self.shared.items() if name in info.options}
        given |= self.own.get(info.name, {})
        if info.name == "journalist_risk" and self.original is not None:
            # no population is declared, but the original that was sampled is one
            said = (given["population"], given["sampling_fraction"], self.table.roles.weight)
            if self._is_sample and all(one is None for one in said):
                return journalist_risk_before_sampling(
                    self.original, self.table, missing=given["missing"]
                )
        return info.take(self.original, self.table, **given)

    @property
    def _is_sample(self) -> bool:
        return self.original is not None and len(self.table) < len(self.original)

    def _reason_to_leave_out(self, info: MeasureInfo) -> str | None:
        """Why a measure cannot be taken, or is taken only when asked for by name."""
        table, original = self.table, self.original
        given = {**self.shared, **self.own.get(info.name, {})}
        declared = table.roles if original is None else original.roles
        estimable = given["sampling_fraction"] is not None or table.roles.weight is not None
        people = estimable or given["population"] is not None
        counted = people or (info.name == "journalist_risk" and self._is_sample)
        if info.name in _POPULATION_MEASURES and not counted:
            return "pass a population table, a sampling fraction or a weight column"
        homes = info.name == "household_risk" and table.households is not None
        if (info.name == "individual_risk" or homes) and not estimable:
            return "pass a sampling fraction or a weight column"
        if table.times is not None and not info.by_counts:
            return "single records are needed, but an engine counts combinations"
        if info.needs_original and original is None:
            return "the original is needed to compare with; pass it as original (--original)"
        if info.sensitive and not declared.sensitive:
            return "sensitive columns are needed; declare them in the roles"
        if info.target and declared.target is None:
            return "a target is needed; declare it in the roles"
        if info.on_request is not None and info.name not in self.asked and not homes:
            return info.on_request
        if info.name == "suda" and info.name not in self.asked and len(table) > _MANY:
            return f"a lot of memory is needed for more than {_MANY:,} records; ask for it by name"
        if original is None:
            return None
        if info.name == "certainty" and not self._is_sample:
            return "nobody was left out, so everyone is known to be in the table"
        if info.pairs and not table.pairs_with(original):
            return (
                "the rows of the two tables cannot be paired, since they were read separately; "
                "assess the release folder with its private half, or declare that the rows have "
                "the same order (masked.paired(original) or --same-order)"
            )
        return None


def _about_owners(table: Table) -> list[str]:
    """A note that k counts rows, although identifiers show that a person has several."""
    return [
        f"{len(table):,} rows have {distinct:,} different values of {quoted(names)}, but k counts "
        'rows: declare unit in the roles, or unit = "row" if each row is a person.'
        for names, distinct in table.repeating_owners().items()
    ]


def asked_by_name(measures: Measures | None) -> Sequence[str]:
    """The measures that are asked for by name; ``"all"`` asks for every one."""
    if measures is None:
        return ()
    if measures == "all":
        return list(discover_all_measures())
    if isinstance(measures, str) or not isinstance(measures, Sequence) or not measures:
        raise InputError(f"'measures' must be a list of names, 'all' or None; got {measures!r}.")
    for name in measures:
        known_measure(name)
    return measures


def _checked_options(options: Options | None) -> dict[str, dict[str, Any]]:
    """Check that each measure has the options; the measure itself checks their values."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(
            "'options' must be a dict from the names of measures to their options; got "
            f"{type(options).__name__}."
        )
    for name, given in (options or {}).items():
        known_measure(name)
        if not isinstance(given, Mapping):
            raise InputError(f"The options of '{name}' must be a dict; got {type(given).__name__}.")
        discover_all_measures()[name].check_names(given)
    return {name: dict(given) for name, given in (options or {}).items()}


def _check_known(known: Any, where: Table) -> None:
    """Raise InputError unless it is None, a word for columns, or columns that the table has."""
    if known is None or (isinstance(known, str) and known in KNOWN_WORDS):
        return
    listed = isinstance(known, (list, tuple)) and all(isinstance(name, str) for name in known)
    if not listed or not known:
        raise InputError(
            "'known' must be a list of column names, or one of the words "
            f"{quoted(KNOWN_WORDS)}; got {known!r}."
        )
    absent = [name for name in known if name not in where.columns]
    if absent:
        raise InputError(
            f"'known' names {quoted(absent)}, which the table does not have. "
            f"{did_you_mean(absent[0], where.columns)}"
        )


def _check_numbers(threshold: Any, missing: Any, sampling_fraction: Any) -> None:
    """Raise an error for what would break every measure; a single failure is only noted."""
    if missing not in ("own", "wildcard"):
        raise InputError("'missing' must be 'own' or 'wildcard'.")
    for name, value in (("threshold", threshold), ("sampling fraction", sampling_fraction)):
        if value is not None and not Real(above=0, maximum=1).accepts(value):
            raise InputError(f"The {name} must be a number above 0 and at most 1; got {value!r}.")


def _checked_earlier(earlier: Any, table: Table) -> list[Table]:
    """The earlier releases; raises InputError unless each one pairs with the table."""
    given = list(earlier) if isinstance(earlier, (list, tuple)) else [earlier]
    if not all(isinstance(one, Table) for one in given):
        raise InputError("The earlier releases must be a list of shoal.Tables.")
    lost = sum(not one.pairs_with(table) for one in given)
    if lost:
        raise InputError(
            f"{lost} of the {len(given)} earlier releases cannot be paired with the table, so "
            "people cannot be followed between them. Read each with its private half and the "
            "same original, or pair their rows with release.paired(original)."
        )
    return given


def _exposed_together(
    assessment: Assessment, table: Table, earlier: Sequence[Table], original: Table | None
) -> Assessment:
    """The assessment with the results of both attacks on all releases, or why one was not tried."""
    releases, notes = [table, *earlier], assessment.notes
    together = {"records": intersection(releases, attack="records", original=original)}
    try:
        together["values"] = intersection(releases, attack="values", original=original)
    except InputError:
        notes += (
            "Across the earlier releases only records were followed, since no comparable "
            "sensitive column is in all of them.",
        )
    return replace(assessment, together=together, notes=notes)
