"""Generalization: values become coarser until every record is in a safe class."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from shoal.errors import (
    InputError,
    ModelMissedWarning,
    NothingLeftWarning,
    NotProvedWarning,
    ParameterError,
    quoted,
)
from shoal.kernels.lattice.loss_names import LOSSES, OF_CLASSES
from shoal.masking._base import Masker, StepLog
from shoal.masking.generalization._demand import (
    COMPARING,
    Demand,
    asks_for_a_crowd,
    check_blindness,
    crowd_of,
    demand_of,
)
from shoal.masking.generalization._hierarchies import Hierarchies, hierarchies_for
from shoal.masking.generalization._search import ALGORITHMS, problem_of, search
from shoal.masking.generalization._serving import TOP, Recoding, Scale, ServedLevels
from shoal.masking.generalization._space import LevelSpace
from shoal.masking.grouping._group_models import Models, PrivacyModels, models_of
from shoal.models import PopulationModel, PrivacyModel
from shoal.parameters import ByColumn, ColumnNames, Flag, Integer, OneOf, Real
from shoal.table import OTHER, Course, Hierarchy, Table, stacked_table


@dataclass(kw_only=True)
class Generalize(Masker):
    """Replace values by coarser ones, so that each record shares its values with enough others.

    ``"full-domain"`` gives each column one level of its hierarchy: the combination of levels with
    provably the least loss that suppresses at most ``suppression_limit`` of the records.
    ``"mondrian"`` cuts the records into boxes, as small as the models allow, and releases the
    boxes. ``"local"`` gives every class the least general values that it can have, so equal
    values may be released at different levels; nothing is suppressed.

    A column without a hierarchy gets one that is proposed from the data. Mondrian needs no
    hierarchy for numbers, dates and times.

    Parameters
    ----------
    algorithm : {"full-domain", "mondrian", "local"}
        The search.
    k : int, optional
        The size of the smallest class.
    models : privacy model or list of privacy models, optional
        What every class must satisfy in addition, for example ``LDiversity(2)``. Models of a
        population count the people whom the released values cover. ``DifferentialPrivacy`` works
        only with ``levels`` and after a Bernoulli sample, whose fraction sets the smallest class.
    hierarchies : dict, optional
        The hierarchy of each column: a Hierarchy, the path of a file, or its kind as in a plan.
    levels : dict, optional
        The level of each column, used instead of a search. The levels then do not depend on the
        data, as differential privacy by sampling requires. ``loss_`` is then the mean share of a
        hierarchy that a cell stands for. Full-domain only.
    suppression_limit : float
        The largest share of the records that may be suppressed; full-domain only.
    loss : str
        What the full-domain search minimizes: ``"loss"``, ``"precision"``,
        ``"discernibility"``, ``"discernibility-monotonic"``, ``"average-class-size"``,
        ``"entropy"``, ``"entropy-monotonic"``, ``"ambiguity"`` or ``"kl-divergence"``.
    weights : dict, optional
        What the loss in each column counts compared with the others: a number above 0, and 1 for a
        column without one. A column with a large weight keeps more detail. ``loss_`` is weighted
        too. Not for losses that count classes: both discernibilities and the average class size.
    suppressed : {"removed", "kept"}
        Whether suppressed records are removed, or stay with ``*`` in every generalized column
        and no value in the sensitive columns. The records that stay form a class of their own.
    keep_sensitive : bool
        Suppressed records that stay keep their sensitive values.
    whole : bool
        Suppress all records of a person, or of a household if one is declared, and not only
        those in classes that fail.
    relaxed : bool
        For Mondrian: records whose value is at a cut may go to either side.
    extend : bool
        Values that a hierarchy lacks become ``*`` at every level, instead of being refused.
    seconds : float, optional
        How long the search may run if the lattice is too large for the provable optimum (by
        default 60), and how long local recoding is refined (by default 0.5).
    columns : list of str, optional
        The columns to generalize; by default the quasi-identifiers.

    Attributes
    ----------
    levels_ : dict
        The level of each column; full-domain only.
    loss_ : float
        The loss of the result.
    suppressed_ : int
        The number of suppressed records.
    optimal_ : bool
        Whether no better result exists. The full-domain search proves this unless it reports that
        the lattice is too large.
    lattice_ : dict
        The part of the lattice that was searched.
    proposed_ : tuple of str
        The columns whose hierarchy was proposed from the data.

    References
    ----------
    Samarati (2001), Protecting respondents' identities in microdata release
    <https://doi.org/10.1109/69.971193>. LeFevre, DeWitt, Ramakrishnan (2006), Mondrian
    multidimensional k-anonymity <https://doi.org/10.1109/ICDE.2006.101>. Kohlmayer, Prasser,
    Eckert, Kemper, Kuhn (2012), Flash: efficient, stable and optimal k-anonymity
    <https://doi.org/10.1109/SocialCom-PASSAT.2012.52>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> frame = pl.DataFrame({"age": [23, 25, 38, 31], "zip": ["1011", "1012", "2011", "2015"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "zip"]))
    >>> step = Generalize("full-domain", k=2, hierarchies={
    ...     "age": Hierarchy.intervals([10, 20]), "zip": Hierarchy.prefixes([3, 1])})
    >>> step.fit_transform(table).frame.rows()
    [('[20, 30)', '101*'), ('[20, 30)', '101*'), ('[30, 40)', '201*'), ('[30, 40)', '201*')]
    >>> step.levels_
    {'age': 1, 'zip': 1}
    """

    algorithm: Annotated[str, OneOf(ALGORITHMS)] = field(default="full-domain", kw_only=False)
    k: Annotated[int | None, Integer(minimum=2)] = None
    models: Annotated[Models | None, PrivacyModels()] = None
    hierarchies: Annotated[Mapping[str, Any] | None, Hierarchies()] = None
    levels: Annotated[
        Mapping[str, int] | None, ByColumn("levels", Integer(minimum=0), "the best")
    ] = None
    suppression_limit: Annotated[float, Real(minimum=0, maximum=1)] = 0.0
    loss: Annotated[str, OneOf(LOSSES)] = "loss"
    weights: Annotated[Mapping[str, float] | None, ByColumn("weights", Real(above=0), "1")] = None
    suppressed: Annotated[str, OneOf(("removed", "kept"))] = "removed"
    keep_sensitive: Annotated[bool, Flag()] = False
    whole: Annotated[bool, Flag()] = True
    relaxed: Annotated[bool, Flag()] = False
    extend: Annotated[bool, Flag()] = False
    seconds: Annotated[float | None, Real(above=0)] = None
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "generalize"
    summary = "replaces values by coarser ones until every class is safe"
    reference = "Samarati 2001; LeFevre et al. 2006; Kohlmayer et al. 2012"

    @property
    def by_counts(self) -> bool:  # type: ignore[override]
        """Whether combinations are enough: records with equal values are not separated."""
        return not self.relaxed

    def check_parameters(self) -> None:
        """Also checks that there is something to satisfy, and no option that has no effect."""
        if isinstance(self.algorithm, int) and not isinstance(self.algorithm, bool):
            raise ParameterError(
                "The first parameter of Generalize is the algorithm. Write Generalize(k="
                f"{self.algorithm})."
            )
        super().check_parameters()
        if self.k is None and self.models is None:
            raise ParameterError("Generalize needs 'k' or 'models': what every class must satisfy.")
        for name, algorithm in (
            ("levels", "full-domain"),
            ("suppression_limit", "full-domain"),
            ("loss", "full-domain"),
            ("whole", "full-domain"),
            ("relaxed", "mondrian"),
        ):
            if name in self.changed_params() and self.algorithm != algorithm:
                raise ParameterError(
                    f"The '{name}' parameter of Generalize is for the algorithm "
                    f"'{algorithm}', not for '{self.algorithm}'. Remove it."
                )
        if self.weights and self.loss in OF_CLASSES:
            raise ParameterError(
                f"The loss '{self.loss}' counts classes, not columns, so 'weights' cannot change "
                "it. Remove 'weights', or use another loss, such as 'loss' or 'entropy'."
            )
        check_blindness(
            models_of(self.models), levels=self.levels is not None, untouched=self._looks_at_nothing
        )

    @property
    def _looks_at_nothing(self) -> bool:
        """Whether the step looks only at classes, given the levels.

        With a limit, the mere fact that a table is released reveals how many records would have
        been suppressed, and this may depend on one person.
        """
        return not self.extend and self.suppressed == "removed" and self.suppression_limit == 1

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        models, demand, everyone, chosen = self._asked(table, columns)
        if self.levels is not None and self.proposed_:
            raise InputError(
                "'levels' needs a hierarchy for each column, and "
                f"{quoted(self.proposed_)} has none. A hierarchy proposed from the data would make "
                "the levels depend on the data."
            )
        found = search(self, problem_of(self, everyone, columns, chosen, demand, log))
        self._keep_facts(table, found)
        _warn_if_not_proved(found)
        log.public |= self._public(found)
        if found.minimal is not None:
            log.private["minimality"] = found.minimal
        self._whole = {*columns} >= {*table.roles.quasi_identifiers}
        masked = self._recoded(table, columns, found)
        as_stars = self.suppressed == "kept" and found.suppressed.any()
        for name in columns:
            if name in found.columns or as_stars:
                log.touched.append(name)
            else:
                log.skipped[name] = "no value changes"
        if as_stars and not self.keep_sensitive:
            log.touched.extend(table.roles.sensitive)
        starred = _is_starred(found, columns)
        if starred or (models and _is_one_box(found, columns)):
            coarse, _ = hierarchies_for(chosen, everyone, columns, ordered=False)
            reason = _why_nothing_is_left(models, table, coarse, starred=starred)
            if self.models is not None:
                log.private["nothing_left"] = reason
            warnings.warn(reason, NothingLeftWarning, stacklevel=3)
        if found.suppressed.any() and self._whole:
            kept = masked if self.suppressed == "removed" else masked.keep(~found.suppressed)
            _warn_if_distributions_moved(models, kept)
        return masked

    def _asked(
        self, table: Table, columns: Sequence[str]
    ) -> tuple[list[PrivacyModel], Demand, Table, dict[str, Hierarchy]]:
        """The models, their demand, the people to count, and the hierarchies."""
        for name in columns:
            if table.kind(name) == "float":
                table.numbers(name)  # refuses infinite values: they have no middle and no width
        models, self._crowd = crowd_of(models_of(self.models), self.k, table, columns)
        suppresses = self.suppression_limit > 0
        demand = demand_of(
            self._crowd, models, table, columns, suppresses=suppresses, whole=self.whole
        )
        everyone = table
        if demand.population is not None:
            everyone = stacked_table(table, demand.population, columns)
        chosen, self.proposed_ = hierarchies_for(
            self.hierarchies, everyone, columns, ordered=self.algorithm == "mondrian"
        )
        if self.extend:
            chosen = {name: one.covering(everyone, name) for name, one in chosen.items()}
        return models, demand, everyone, chosen

    def space(self, table: Table) -> LevelSpace:
        """Every combination of levels of a table, to examine one by one.

        Examples
        --------
        >>> import polars as pl
        >>> from shoal import Roles, Table
        >>> ages = pl.DataFrame({"age": [23, 25, 38, 31]})
        >>> step = Generalize(k=2, hierarchies={"age": {"intervals": [10, 20]}})
        >>> space = step.space(Table(ages, Roles(quasi_identifiers=["age"])))
        >>> [node.allowed for node in space.along("age", {})]
        [False, True, True, True]
        """
        columns = table.chosen(self.columns)
        _, demand, everyone, chosen = copy.copy(self)._asked(table, columns)
        task = problem_of(self, everyone, columns, chosen, demand, StepLog())
        return LevelSpace(task, limit=self.suppression_limit, loss=self.loss)

    def _course(self, before: Course, log: StepLog) -> Course:
        """Given levels do not depend on the data; classes that were too small are gone."""
        blind = self.levels is not None and self._looks_at_nothing
        by_size = all(asks_for_a_crowd(model) for model in models_of(self.models))
        if blind and by_size and self._whole and before.state == "sampled":
            return replace(before, state="generalized", smallest=self._crowd)
        return OTHER

    def _keep_facts(self, table: Table, found: Recoding) -> None:
        self.levels_ = dict(found.levels)
        self.loss_ = found.loss
        self.suppressed_ = table.records_at(found.suppressed)
        self.optimal_ = found.optimal
        self.lattice_ = dict(found.lattice)
        self._served = found.served
        if isinstance(found.served, ServedLevels) and self.suppressed == "kept":
            self._served = replace(found.served, as_text=self.suppressed_ > 0)

    def _public(self, found: Recoding) -> dict[str, Any]:
        """What the public may know of the search; not how many records fail elsewhere."""
        facts: dict[str, Any] = {
            "suppressed_records": self.suppressed if self.suppressed_ else "none"
        }
        if self.suppressed_ and self.suppressed == "kept":
            facts["their_sensitive_values"] = "kept" if self.keep_sensitive else "removed"
        if self.levels_:
            facts["levels"] = self.levels_
        if found.lattice:
            facts["lattice"] = _layers_of(found)
        return facts

    def _recoded(self, table: Table, columns: Sequence[str], found: Recoding) -> Table:
        out, masked = found.suppressed, table
        for name, column in found.columns.items():
            masked = masked.with_labels(name, column.texts, column.of_row, column.domain)
        if not out.any():
            return masked
        if self.suppressed == "removed":
            return masked.keep(~out)
        masked = masked.starred(columns, out)
        if not self.keep_sensitive:
            masked = masked.blank(dict.fromkeys(table.roles.sensitive, out))
        return masked

    @property
    def serves(self) -> tuple[str, ...]:
        """Sensitive values of suppressed records are removed; new rows need none."""
        return tuple(name for name in self.touched_ if name in self._served.columns)

    def _serve(self, table: Table) -> Table:
        return self._served.apply(table)

    def _cover(self, table: Table) -> Table:
        return self._served.cover(table)

    def scales(self, table: Table) -> dict[str, Scale]:
        return self._served.scales(table)


def _layers_of(found: Recoding) -> dict[str, Any]:
    """The explored lattice by the sum of levels: all, too fine and safe combinations."""
    heights = [int(levels) for levels in found.lattice["heights"]]
    totals = np.ones(1)
    for highest in heights:
        totals = np.convolve(totals, np.ones(highest + 1))
    nodes = found.lattice["nodes"]
    sums = nodes["levels"].reshape(len(nodes), -1).sum(axis=1)
    fine = np.bincount(sums[~nodes["feasible"]], minlength=len(totals))
    safe = np.bincount(sums[nodes["feasible"]], minlength=len(totals))
    return {
        "layers": [
            [height, int(total), int(fine[height]), int(safe[height])]
            for height, total in enumerate(totals)
        ],
        "chosen": sum(found.levels.values()),
        "size": int(totals.sum()),
        "looked_at": int(found.lattice["visited"]),
        "proved": found.optimal,
    }


def _warn_if_not_proved(found: Recoding) -> None:
    if found.lattice and not found.optimal:
        nodes = found.lattice["lattice"]
        count = f"{nodes:,.0f}" if nodes < 1e15 else f"{nodes:.2g}"
        warnings.warn(
            f"The lattice has {count} combinations of levels, too many to prove which one is best. "
            f"The best of {found.lattice['visited']:,.0f} was used. Its loss is "
            f"{found.loss:.4g}; no combination can have less than {found.lattice['bound']:.4g}. "
            "Allow the search more 'seconds', or use hierarchies with fewer levels.",
            NotProvedWarning,
            stacklevel=4,
        )


def _is_one_box(found: Recoding, columns: Sequence[str]) -> bool:
    """Whether everyone is in one box, and no column is released unchanged."""
    boxes = found.box_of_row
    alike = boxes is not None and int(np.ptp(boxes)) == 0
    return alike and all(name in found.columns for name in columns)


def _is_starred(found: Recoding, columns: Sequence[str]) -> bool:
    """Whether the release consists only of ``*``, or is empty."""
    kept = ~found.suppressed
    return not kept.any() or all(
        name in found.columns
        and {found.columns[name].texts[i] for i in np.unique(found.columns[name].of_row[kept])}
        <= {TOP}
        for name in columns
    )


def _why_nothing_is_left(
    models: Sequence[PrivacyModel],
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    *,
    starred: bool,
) -> str:
    """What to relax, with the level that each model reaches when the least is kept."""
    closest = []
    for model in models:
        if isinstance(model, PopulationModel):
            continue  # its people would have to be generalized as well
        reached = []
        for name, hierarchy in hierarchies.items():
            coarse = hierarchy.generalize(table, name, hierarchy.levels - 2, unseen="top")
            others = [other for other in coarse.roles.quasi_identifiers if other != name]
            alone = coarse.with_roles(coarse.roles.without(others))
            reached.append(float(model.level(alone)))
        if reached:
            best = max(reached) if model.direction == "higher" else min(reached)
            closest.append(
                f"{model.title} requires {model.threshold:g}, and with one column alone at its "
                f"coarsest level {best:.4g} is the closest"
            )
    levels = f" ({'; '.join(closest)})" if closest else ""
    what = (
        "Every value of the columns to generalize became '*', so these columns carry no information"
        if starred
        else "All records ended up in one class, so the columns to generalize do not distinguish "
        "anyone"
    )
    return (
        f"{what}{levels}. Ask for less (a smaller k, a weaker model), allow more records to be "
        "suppressed, or use finer hierarchies."
    )


def _warn_if_distributions_moved(models: Sequence[PrivacyModel], kept: Table) -> None:
    """Warn if suppression moved the distributions with which readers compare classes."""
    for model in models:
        compares = any(condition.kind in COMPARING for condition in model.conditions(kept))
        if len(kept) and compares and not model.holds(kept):
            warnings.warn(
                f"Every class satisfies {model.title} when compared with the input table. Without "
                f"the suppressed records, the level is {model.level(kept):.4g}, and "
                f"{model.threshold:g} was required. Use a stricter bound or less suppression, "
                "and require the model of the release.",
                ModelMissedWarning,
                stacklevel=5,
            )
