"""Suppression: remove columns, cells or records that reveal too much."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations as columns_together
from math import comb
from typing import Annotated, Any, Literal

import numpy as np

from shoal.errors import DisclosureWarning, InputError, ParameterError, quoted
from shoal.masking._base import Masker, StepLog
from shoal.masking.generalization._demand import demand_of
from shoal.masking.grouping._group_models import Models, PrivacyModels, models_of
from shoal.masking.suppression._fewest import Fewest, certain_blanks, check_k
from shoal.models import KAnonymity
from shoal.parameters import (
    ByColumn,
    ColumnNames,
    Condition,
    Constraint,
    Flag,
    Integer,
    OneOf,
    Real,
    column_numbers,
)
from shoal.table import Missing, Table

_RULES = ("max_distinct", "min_count", "min_class_size", "where", "k")
_FARTHEST = 1_000_000_000_000  # beyond it, sums lose single cells
_OF_K = ("importance", "combinations", "missing", "models")
_MOST_SETS = 1_000
_PARTS = {"columns", "size", "k"}


@dataclass(frozen=True)
class KeySets(Constraint):
    """Sets of columns: names, a number of columns, or a table with one of them and a k."""

    words = (
        "a list of sets of columns: each a list of names, a number of columns (all sets of that "
        "size) or a table with 'columns' or 'size', and 'k'"
    )

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) > 0 and all(map(_is_set, value))


def _is_set(given: Any) -> bool:
    if isinstance(given, Mapping):
        what = [name for name in ("columns", "size") if name in given]
        k = given.get("k", 2)
        return (
            len(what) == 1
            and _PARTS.issuperset(given)
            and Integer(minimum=2).accepts(k)
            and not isinstance(given[what[0]], Mapping)
            and isinstance(given[what[0]], list) == (what == ["columns"])
            and _is_set(given[what[0]])
        )
    if isinstance(given, list):
        return (
            bool(given)
            and all(isinstance(one, str) for one in given)
            and (len(set(given)) == len(given))
        )
    return Integer(minimum=1).accepts(given)


def sets_of(
    given: Sequence[Any] | None, every: Sequence[str], k: int
) -> list[tuple[list[str], int]]:
    """The sets of columns that must be anonymous, the largest first, with their k."""
    if given is None:
        return [([*every], k)]
    found: list[tuple[list[str], int]] = []
    for one in given:
        asked = (
            one if isinstance(one, Mapping) else {"size" if np.isscalar(one) else "columns": one}
        )
        names, own = asked.get("columns"), int(asked.get("k", k))
        if names is None:
            size = int(asked["size"])
            if size > len(every):
                raise InputError(
                    f"'combinations' asks for sets of {size} columns, but the step has "
                    f"{len(every)}. Ask for smaller sets."
                )
            if comb(len(every), size) > _MOST_SETS:
                raise InputError(
                    f"'combinations' asks for all {comb(len(every), size):,} sets of {size} "
                    f"columns, and at most {_MOST_SETS:,} can be processed. Name the sets."
                )
            found.extend(([*each], own) for each in columns_together(every, size))
        elif stray := [name for name in names if name not in every]:
            raise InputError(
                f"'combinations' names {quoted(stray)}, but the columns of this step are "
                f"{quoted(every)}. Correct the names, or the roles."
            )
        else:
            found.append(([*names], own))
    return sorted(found, key=lambda one: (-len(one[0]), -one[1]))


@dataclass(kw_only=True)
class Suppress(Masker):
    """Remove columns, cells or records by one rule.

    Pass exactly one rule; use several steps for several rules.

    Parameters
    ----------
    max_distinct : float, optional
        Remove every column whose number of different values divided by the number of records
        is above this share; 0.7, 0.8 and 0.9 are usual.
    min_count : int, optional
        Make a cell missing if fewer persons than this have its value in the column.
    min_class_size : int, optional
        Remove the records whose class (equal quasi-identifiers) has fewer persons than this.
    where : str, optional
        A condition as in SQL, for example ``"age > 90"``; see ``target``. It never reaches the
        public half of a release, since it may quote a value.
    target : {"cells", "records"}
        What ``where`` removes: the cells of ``columns``, or whole records.
    of : {"persons", "histories"}
        For ``min_class_size``: count the persons of a class, or also the persons with the same
        history, that is, with rows in the same classes.
    k : int, optional
        Blank as few cells as possible so that every class has this many persons. Which records of
        a class are blanked, if some must be to hide others, is drawn at random.
    importance : dict, optional
        For ``k``: what it costs to blank a cell of a column, if not 1. Columns that matter most
        get the highest numbers.
    combinations : list, optional
        For ``k``: the sets of columns that must be anonymous, instead of all of them together. A
        set is a list of names, or a number for all sets of that many columns, or a table with
        ``columns`` or ``size`` and a ``k`` of its own.
    missing : {"own", "wildcard"}
        For ``k``: whether a missing value is a value of its own or equals every value, as
        statistics offices count. Wildcards need fewer blanks and promise less.
    models : privacy model or list of privacy models, optional
        For ``k``: what every class must satisfy in addition, for example ``LDiversity(2)``.
    whole : bool
        Remove all records of a person, or of a household if one is declared, and not only
        those that break the rule. The rest is checked again until the rule holds.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers. With ``k``, the columns that must be
        anonymous together.

    Attributes
    ----------
    blanked_ : int
        How many cells were blanked by ``k``.
    bound_ : float
        What no other choice of cells falls below, in cells times importance, for one set of columns
        without models; otherwise None.
    optimal_ : bool
        Whether it is proved that no other choice costs less.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance Trade-off
    <https://arxiv.org/abs/2201.05226>, section 3 (suppression). Hundepool et al. (2012),
    Statistical Disclosure Control <https://doi.org/10.1002/9781118348239>, section 3.4 (local
    suppression). Templ, Kowarik, Meindl (2015), Statistical Disclosure Control for Micro-Data Using
    the R Package sdcMicro <https://doi.org/10.18637/jss.v067.i04>, section 4.2 (importance and sets
    of columns).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"job": ["baker", "baker", "judge"], "badge": [7, 8, 9]})
    >>> table = Table(frame, Roles(quasi_identifiers=["job", "badge"]))
    >>> Suppress(max_distinct=0.9).fit_transform(table).columns
    ['job']
    >>> rare = Suppress(min_count=2, columns=["job"]).fit_transform(table)
    >>> rare.frame["job"].to_list()
    ['baker', 'baker', None]

    One blank is enough if it hides the judge among the others.

    >>> frame = pl.DataFrame({"job": ["baker", "baker", "judge"], "sex": ["f", "f", "f"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["job", "sex"]))
    >>> fewest = Suppress(k=2, missing="wildcard")
    >>> fewest.fit_transform(table).frame["job"].to_list(), fewest.optimal_
    (['baker', 'baker', None], True)
    """

    max_distinct: Annotated[float | None, Real(minimum=0, maximum=1)] = None
    min_count: Annotated[int | None, Integer(minimum=2)] = None
    min_class_size: Annotated[int | None, Integer(minimum=2)] = None
    where: Annotated[str | None, Condition()] = None
    target: Annotated[str, OneOf(("cells", "records"))] = "cells"
    of: Annotated[Literal["persons", "histories"], OneOf(("persons", "histories"))] = "persons"
    k: Annotated[int | None, Integer(minimum=2)] = None
    importance: Annotated[
        Mapping[str, float] | None, ByColumn("importance", Real(above=0), "1")
    ] = None
    combinations: Annotated[list[Any] | None, KeySets()] = None
    missing: Annotated[Missing, OneOf(("own", "wildcard"))] = "own"
    models: Annotated[Models | None, PrivacyModels()] = None
    whole: Annotated[bool, Flag()] = True
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "suppress"
    summary = "removes nearly unique columns, cells (as few as possible), or records by rule"
    reference = "Carvalho et al. 2022; Hundepool et al. 2012"

    @property
    def by_counts(self) -> bool:  # type: ignore[override]
        """Whether combinations are enough: with ``k``, some records of one may be blanked."""
        return self.k is None

    def check_parameters(self) -> None:
        """Also checks that there is exactly one rule."""
        super().check_parameters()
        given = [rule for rule in _RULES if getattr(self, rule) is not None]
        if len(given) != 1:
            listed = ", ".join(f"'{rule}'" for rule in _RULES)
            got = " and ".join(f"'{rule}'" for rule in given) or "none"
            raise ParameterError(f"Suppress takes exactly one rule of {listed}. Got {got} instead.")
        if self.target == "records" and self.where is None:
            raise ParameterError(
                f"The 'target' parameter of Suppress is for 'where'; '{given[0]}' already "
                "determines what is removed. Remove 'target'."
            )
        changed = self.changed_params()
        if self.k is None and (without := [name for name in _OF_K if name in changed]):
            raise ParameterError(
                f"The '{without[0]}' parameter of Suppress is for 'k', which is not set. Set 'k', "
                f"or remove '{without[0]}'."
            )
        if self.missing == "wildcard" and self.models is not None:
            raise ParameterError(
                "The 'models' parameter of Suppress needs classes, and records that agree by "
                "wildcards form none. Remove 'models' or 'missing'."
            )
        if self.combinations is not None and self.models is not None:
            raise ParameterError(
                "The 'models' parameter of Suppress is for all quasi-identifiers together, and "
                "'combinations' names other sets. Use two steps."
            )
        if self.of == "histories" and (self.min_class_size is None or not self.whole):
            raise ParameterError(
                "The 'of' parameter of Suppress is for 'min_class_size' with whole=True, because "
                "it removes whole persons."
            )
        if self.columns is not None and (self.min_class_size or self.target == "records"):
            raise ParameterError(
                "The 'columns' parameter of Suppress has no effect when whole records are "
                "removed. Remove it."
            )

    @property
    def needs_columns(self) -> bool:
        """A condition on records needs no columns."""
        return self.target != "records"

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        if self.max_distinct is not None:
            return self._drop_columns(table, columns, self.max_distinct, log)
        if self.min_count is not None:
            return self._blank_rare_cells(table, columns, self.min_count, log)
        if self.min_class_size is not None:
            return self._drop_small_classes(table, KAnonymity(self.min_class_size, of=self.of))
        if self.k is not None:
            return self._blank_fewest(table, columns, self.k, log)
        assert self.where is not None
        matches = table.matching(self.where)
        if self.target == "records":
            return table.keep(~(table.whole(matches) if self.whole else matches))
        return self._blank(table, dict.fromkeys(columns, matches), log)

    def _serve(self, table: Table) -> Table:
        """Columns, and cells by a condition, are removed again; other rules concern records."""
        if self.removed_columns_:
            return table.drop(name for name in self.removed_columns_ if name in table.columns)
        if self.where is None or self.target == "records" or not self.touched_:
            return table
        return table.blank(dict.fromkeys(self.touched_, table.matching(self.where)))

    def _blank_fewest(self, table: Table, columns: Sequence[str], k: int, log: StepLog) -> Table:
        models = models_of(self.models)
        if models:
            demand_of(k, models, table, columns)  # refuses what no class can satisfy
        importance = column_numbers(self.importance, columns, "importance")
        cheapest = min(importance)
        if max(importance) > _FARTHEST * cheapest:
            raise InputError(
                f"'importance' has numbers that are more than {_FARTHEST:,} times as large as "
                "others, so cheap cells would not count at all. Choose numbers closer together; a "
                "column without a number has 1."
            )
        costs = {name: one / cheapest for name, one in zip(columns, importance, strict=True)}
        search = Fewest(costs, self.missing, models)
        sets = sets_of(self.combinations, columns, k)
        masked = search.blank(table, sets)
        self.blanked_ = sum(
            masked.missing_count(name) - table.missing_count(name) for name in columns
        )
        self.bound_ = None if search.bound is None else search.bound * cheapest
        self.optimal_ = search.proved
        log.compare(columns, masked, table)
        if self.missing == "wildcard" and len(sets) == 1:
            _warn_of_certain_blanks(certain_blanks(table, masked, *sets[0]), self.blanked_)
        return masked

    @staticmethod
    def _drop_columns(table: Table, columns: Sequence[str], share: float, log: StepLog) -> Table:
        for name in columns:
            if table.distinct(name) / table.records > share:
                log.touched.append(name)
                log.removed_columns.append(name)
            else:
                log.skipped[name] = "its share of different values is not above the limit"
        return table.drop(log.removed_columns) if log.removed_columns else table

    def _blank_rare_cells(
        self, table: Table, columns: Sequence[str], count: int, log: StepLog
    ) -> Table:
        cells = {name: table.crowds([name]).record_sizes < count for name in columns}
        return self._blank(table, cells, log)

    @staticmethod
    def _blank(table: Table, cells: dict[str, np.ndarray], log: StepLog) -> Table:
        for name, mask in cells.items():
            if (mask & table.present(name)).any():
                log.touched.append(name)
            else:
                log.skipped[name] = "no cell meets the rule"
        return table.blank({name: cells[name] for name in log.touched})

    def _drop_small_classes(self, table: Table, asked: KAnonymity) -> Table:
        check_k(asked.k, table, "min_class_size")
        while True:  # removing a record may make another class too small
            short = table.class_sizes() < asked.k
            if asked.of == "histories":
                short |= asked.violations(table)
            if not short.any():
                return table
            table = table.keep(~(table.whole(short) if self.whole else short))


def _warn_of_certain_blanks(certain: int, blanked: int) -> None:
    if certain:
        warnings.warn(
            f"{certain:,} of {blanked:,} blanks can be filled in by anyone who knows this rule: "
            "with any other value of the column, the record would be in a crowd and have no blank. "
            "Use missing = 'own', or generalize before this step.",
            DisclosureWarning,
            stacklevel=6,
        )
