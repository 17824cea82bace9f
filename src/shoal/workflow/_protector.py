"""A plan as a scikit-learn transformer: fitted on training rows, it serves raw rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from shoal.errors import InputError, quoted
from shoal.hints import Helpful
from shoal.masking import Scale
from shoal.table import Roles, Table, as_roles, features_of, frame_of_array, with_target
from shoal.workflow._crowd_size import models_of_plan, shortest_plan, with_k
from shoal.workflow._features import ENCODINGS, encoders_of
from shoal.workflow._plan import Plan
from shoal.workflow._protect import refuse_unknown_owners, refuse_unless_all_hold
from shoal.workflow._require import make_claim


class Protector(Helpful, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Mask training rows by a plan, and map raw rows into the released domain later.

    ``fit_transform`` masks the training rows; ``transform`` maps new rows to the levels,
    intervals, caps and roundings that were released, and leaves a new row alone where a method
    only hides records among others (swapping, noise, microaggregation). A value that was never
    seen has an answer: the nearest box, or ``*``. Nothing of a training record is kept.

    The number of rows stays, as scikit-learn's pipelines need: records that the plan suppresses
    must be kept (``Generalize(suppressed="kept")``), and a plan that takes rows out is refused.

    Parameters
    ----------
    plan : Plan, list of steps, or path, optional
        The steps; what the plan requires is verified when it is fitted. Without a plan, ``k``
        alone asks for the shortest one: boxes of Mondrian, verified.
    roles : Roles or dict, optional
        The roles of the columns, where the plan has none; those of ``X`` where that is a Table.
        Without any, every column is a quasi-identifier.
    encode : {"codes", "midpoints", "one-hot", "text"}
        How columns reach a model. Every column that is not a number becomes one, whether it was
        masked or not: as ordered codes, as the middle of its interval where it has one, or as one
        column per text. ``*``, and a text that fewer than three persons of the training rows have,
        is -1 among codes and 0 in every column per text. A missing value stays missing. Dates count
        in days. ``"text"`` leaves the columns as they are.
    k : int, optional
        Takes the place of the k of every step, model and requirement of the plan that has one, so
        that ``GridSearchCV`` can search ``protector__k``.
    target : str, optional
        The name of ``y``, where that is an array without one. Under this name ``y`` takes part as
        a sensitive column: models of the plan can be about it. It is no column of the output.
        Without it ``y`` takes part if it has a name that the roles or a model of the plan name.
    names : list of str, optional
        The names of the columns, where ``X`` is an array; they are x0, x1, ... without it.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Generalize, Hierarchy, KAnonymity
    >>> ages = pl.DataFrame({"age": [23, 25, 38, 31]})
    >>> step = Generalize(k=2, hierarchies={"age": Hierarchy.intervals([10])})
    >>> protector = Protector(Plan([step], require=[KAnonymity(2)]), encode="midpoints")
    >>> protector.fit_transform(ages)["age"].to_list()
    [25.0, 25.0, 35.0, 35.0]
    >>> protector.transform(pl.DataFrame({"age": [28, 97]}))["age"].to_list()
    [25.0, 95.0]

    The target as a sensitive column: each box has two values of it.

    >>> from shoal import LDiversity
    >>> plan = Plan([Generalize("mondrian", k=2, models=LDiversity(2, column="ill"))])
    >>> protector = Protector(plan, target="ill")
    >>> protector.fit_transform(ages, ["no", "yes", "no", "yes"])["age"].to_list()
    [0.0, 0.0, 1.0, 1.0]
    """

    def __init__(
        self,
        plan: Any = None,
        *,
        roles: Roles | Mapping[str, Any] | None = None,
        encode: str = "codes",
        k: int | None = None,
        target: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.plan = plan
        self.roles = roles
        self.encode = encode
        self.k = k
        self.target = target
        self.names = names

    def fit(self, X: Any, y: Any = None) -> Protector:
        """Learn levels, boxes, caps and ranges from training rows."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The training rows masked by the plan; RequirementNotMet where it does not hold."""
        plan = self._plan()
        table, target = self._training(X, y, plan)
        masked = self._mask(table, plan, target)
        scales = self._scales(table)
        self._columns_ = encoders_of(self.encode, masked, scales)
        return self._encoded(masked, scales, X)

    def transform(self, X: Any) -> Any:
        """Raw rows in the released domain."""
        check_is_fitted(self, "steps_")
        table = self._read(X, fitting=False)
        # a column without any value is a mistake in training rows, not in a few that come later
        table = table.with_roles(_present(self._roles_, table.columns), released=True)
        served = table = table.drop(table.roles.withheld)
        for step in self.steps_:
            served = step.transform(served)
        return self._encoded(served, self._scales(table), X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The columns that come out."""
        check_is_fitted(self, "steps_")
        return np.array(
            [out for name in self._names_ for out in self._columns_out(name)], dtype=object
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = any(step.is_random for step in self._plan().steps)
        tags.requires_fit = True
        return tags

    # -- masking

    def _plan(self) -> Plan:
        """The plan in force, under k where that is given."""
        if self.encode not in ENCODINGS:
            raise InputError(
                f"'encode' is one of {', '.join(map(repr, ENCODINGS))}; got {self.encode!r}."
            )
        if self.plan is None and self.k is not None:
            roles = as_roles(self.roles)
            sensitive = roles.sensitive if self.target is None else (self.target,)
            return shortest_plan(Roles(sensitive=sensitive), self.k)
        plan = Plan() if self.plan is None else Plan.of(self.plan)
        if plan.pseudonyms:
            raise InputError("A Protector gives out no pseudonyms; leave them out of its plan.")
        return plan if self.k is None else with_k(plan, self.k)

    def _mask(self, table: Table, plan: Plan, target: str | None) -> Table:
        masked, records = plan.apply(table)
        if len(masked) != len(table):
            raise InputError(
                f"The plan takes {len(table) - len(masked)} of {len(table)} rows out, which a "
                "pipeline cannot follow; keep suppressed records (suppressed='kept') or protect "
                "the table before the pipeline."
            )
        for record in records:
            if target in record.touched:
                raise InputError(
                    f"The step '{record.method}' changes '{target}', which is y, and a pipeline "
                    "hands y to the model as it is. Leave it out of the columns of the step, or "
                    "write keep_sensitive=True where suppressed records are kept."
                )
        refuse_unless_all_hold(
            tuple(
                make_claim(requirement, masked, table, accept_seed=plan.accept_seed)
                for requirement in plan.require
            )
        )
        fitted = (record.fitted for record in records)
        self.steps_ = tuple(step.without_records() for step in fitted if step is not None)
        masked = masked if target is None else masked.drop([target])
        self._names_ = list(masked.columns)
        return masked

    def _scales(self, table: Table) -> dict[str, Scale]:
        """The texts of generalized columns as numbers, as far as this table has them."""
        found: dict[str, Scale] = {}
        served = table
        for step in self.steps_:
            found |= step.scales(served)
            served = step.transform(served)
        return found

    # -- what comes in

    def _training(self, X: Any, y: Any, plan: Plan) -> tuple[Table, str | None]:
        """The rows to mask, under their roles, and the name of y where it takes part."""
        table = self._read(X, fitting=True)
        names = list(table.columns)
        given = plan.roles if self.roles is None else as_roles(self.roles)
        if given is None and isinstance(X, Table) and X.roles != Roles():
            given = X.roles
        roles = Roles(quasi_identifiers=names) if given is None else given
        if not _is_frame(X) and self.names is None:
            _refuse_names_for_an_array(plan, roles, names)
        target = self._target(y, names, plan, roles)
        if target is not None:
            table = with_target(table, target, _without_frame(y))
            if roles.of(target) is None or (self.target and roles.of(target) == "target"):
                roles = roles.replacing(sensitive=(*roles.sensitive, target))
        Roles(quasi_identifiers=roles.quasi_identifiers).check(names)
        self._roles_ = _present(roles, names)
        table = table.with_roles(_present(roles, table.columns))
        refuse_unknown_owners(table)
        return table.drop(table.roles.withheld), target

    def _target(self, y: Any, names: Sequence[str], plan: Plan, roles: Roles) -> str | None:
        """The name under which y takes part; None where it does not."""
        about = {column: None for column in _about(plan) if column not in names}
        name = _name_of(y) if self.target is None else self.target
        if self.target is not None and (y is None or name in names):
            reason = "y is not given" if y is None else "X has a column of that name"
            raise InputError(f"target = '{name}' is the name of y, and {reason}.")
        for column in about:
            if y is None or column != name:
                raise InputError(
                    f"A model of the plan is about '{column}', which X does not have; if it is y, "
                    f"give y that name, or write target='{column}'."
                )
        takes_part = name in about or name in [n for _, n in roles.items()] or self.target
        return name if takes_part and name not in (*names, *roles.withheld) else None

    def _read(self, X: Any, *, fitting: bool) -> Table:
        """The columns that were given, without roles."""
        X = X.frame if isinstance(X, Table) else X
        if _is_frame(X):
            _check_feature_names(self, X, reset=fitting)
            if fitting:
                self.n_features_in_ = len(X.columns)
            return Table(X)
        X = validate_data(
            self,
            X,
            reset=fitting,
            dtype=None,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if fitting else 1,  # nobody hides in a crowd of one
        )
        names = [f"x{place}" for place in range(X.shape[1])] if self.names is None else self.names
        if len(names) != X.shape[1]:
            raise InputError(
                f"'names' has {len(names)} names for {X.shape[1]} columns; give one for each."
            )
        return Table(frame_of_array(X, names))

    # -- what goes out

    def _columns_out(self, name: str) -> list[str]:
        encoder = self._columns_.get(name)
        return [name] if encoder is None else encoder.names(name)

    def _encoded(self, masked: Table, scales: Mapping[str, Scale], X: Any) -> Any:
        made = {
            name: encoder.columns(name, masked, scales.get(name))
            for name, encoder in self._columns_.items()
            if name in masked.columns
        }
        return features_of(masked, {name: new for name, new in made.items() if new is not None}, X)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") or hasattr(X, "schema")


def _present(roles: Roles, names: Sequence[str]) -> Roles:
    """The roles of the columns that are there; a served row has no target, say."""
    return roles.without([name for _, name in roles.items() if name not in names])


def _about(plan: Plan) -> list[str]:
    """The columns that models of a plan name."""
    columns = (getattr(model, "column", None) for model in models_of_plan(plan))
    return [column for column in columns if column is not None]


def _refuse_names_for_an_array(plan: Plan, roles: Roles, names: Sequence[str]) -> None:
    """Raise InputError where a plan speaks of columns by names that an array does not have."""
    said = [name for _, name in roles.items()] + _about(plan)
    for step in plan.steps:
        said += [
            *(getattr(step, "columns", None) or ()),
            *(getattr(step, "hierarchies", None) or ()),
        ]
    absent = [name for name in dict.fromkeys(said) if name not in names]
    if absent:
        raise InputError(
            f"X is an array, whose columns have no names, and the plan speaks of {quoted(absent)}; "
            "pass a frame, or name the columns: Protector(..., names=[...])."
        )


def _name_of(y: Any) -> str | None:
    """The name of a series, or of the only column of a frame."""
    if _is_frame(y) and len(y.columns) == 1:
        return str(y.columns[0])
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def _without_frame(y: Any) -> Any:
    """The only column of a frame, or what else y is."""
    return y[y.columns[0]] if _is_frame(y) and len(y.columns) == 1 else y
