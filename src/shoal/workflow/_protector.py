"""A plan as a scikit-learn transformer: fitted on training rows, it maps raw rows."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from shoal.errors import InputError, quoted
from shoal.hints import Helpful
from shoal.kernels.arrays import Floats
from shoal.masking import TOP, Scale
from shoal.table import (
    NUMBERS,
    QUANTITIES,
    Roles,
    Table,
    as_roles,
    features_of,
    frame_of_array,
    quantities,
    scale_name,
    with_target,
)
from shoal.workflow._plan import Plan
from shoal.workflow._protect import refuse_unknown_owners, refuse_unless_all_hold
from shoal.workflow._require import make_claim
from shoal.workflow.advice._advice import models_of_plan, shortest_plan, with_k

ENCODINGS = ("codes", "midpoints", "one-hot", "text")
#: A text that fewer persons have is not kept: of two persons, each could infer the other's.
_FEWEST = 3


class Protector(Helpful, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Mask training rows with a plan, and later map raw rows into the released domain.

    ``fit_transform`` masks the training rows. ``transform`` maps new rows to the levels,
    intervals, caps and roundings that were released. It leaves new rows alone for methods that
    only hide records among others (swapping, noise, microaggregation). A value that was never seen
    maps to the nearest box or to ``*``. No training record is kept.

    The number of rows stays the same, as scikit-learn's pipelines need. Suppressed records must be
    kept (``Generalize(suppressed="kept")``); a plan that removes rows is refused.

    Parameters
    ----------
    plan : Plan, list of steps, or path, optional
        The steps. Fitting verifies the plan's requirements. If only ``k`` is given, the plan is
        the shortest one: Mondrian boxes, verified.
    roles : Roles or dict, optional
        The roles of the columns, if the plan has none (default: those of ``X`` if it is a Table;
        otherwise every column is a quasi-identifier).
    encode : {"codes", "midpoints", "one-hot", "text"}
        How columns reach a model. Every column that is not numeric becomes numeric, masked or not:
        as ordered codes, as the midpoint of its interval if it has one, or as one column per text.
        ``*`` and texts that fewer than three persons of the training rows have are -1 among codes
        and 0 in every column per text. A missing value stays missing. Dates count in days.
        ``"text"`` leaves the columns unchanged.
    k : int, optional
        Replaces the k of every step, model and requirement of the plan that has one, so that
        ``GridSearchCV`` can search ``protector__k``.
    target : str, optional
        The name of ``y``, if ``y`` is an array without one. Under this name ``y`` takes part as a
        sensitive column, so models of the plan can refer to it. It is not a column of the output.
        By default ``y`` takes part if its own name appears in the roles or in a model of the plan.
    names : list of str, optional
        The names of the columns, if ``X`` is an array (default: x0, x1, ...).

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

    The target as a sensitive column: each box has two of its values.

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
        """The masked training rows; raises RequirementNotMet if a requirement does not hold."""
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
        # in training rows, a column without any value is a mistake; in a few later rows it is not
        table = table.with_roles(_present(self._roles_, table.columns), released=True)
        served = table = table.drop(table.roles.withheld)
        for step in self.steps_:
            served = step.transform(served)
        return self._encoded(served, self._scales(table), X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The columns that come out."""
        check_is_fitted(self, "steps_")
        return np.array(
            [
                out
                for name in self._names_
                for out in (self._columns_[name].names(name) if name in self._columns_ else [name])
            ],
            dtype=object,
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
        """The plan in force, with ``k`` if that is given."""
        if self.encode not in ENCODINGS:
            raise InputError(
                f"'encode' must be one of {', '.join(map(repr, ENCODINGS))}; got {self.encode!r}."
            )
        if self.plan is None and self.k is not None:
            roles = as_roles(self.roles)
            sensitive = roles.sensitive if self.target is None else (self.target,)
            return shortest_plan(Roles(sensitive=sensitive), self.k)
        plan = Plan() if self.plan is None else Plan.of(self.plan)
        if plan.pseudonyms:
            raise InputError("A Protector does not support pseudonyms; leave them out of its plan.")
        for step in plan.steps:
            if step.names_identifiers or getattr(step, "key_file", None) is not None:
                raise InputError(
                    f"A Protector drops identifiers, and the step '{step.method}' needs them. "
                    "Leave the step or its key file out of the plan."
                )
        return plan if self.k is None else with_k(plan, self.k)

    def _mask(self, table: Table, plan: Plan, target: str | None) -> Table:
        masked, records = plan.apply(table)
        if len(masked) != len(table):
            raise InputError(
                f"The plan removes {len(table) - len(masked)} of {len(table)} rows, but a "
                "pipeline needs all of them. Keep suppressed records (suppressed='kept'), or "
                "protect the table before the pipeline."
            )
        for record in records:
            if target in record.touched:
                raise InputError(
                    f"The step '{record.method}' changes '{target}', which is y, but a pipeline "
                    "passes y to the model unchanged. Leave it out of the step's columns, or "
                    "write keep_sensitive=True if suppressed records are kept."
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
        """The rows to mask, with their roles, and the name of y if it takes part."""
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
        """The name under which y takes part; None if it does not."""
        about = {column: None for column in _about(plan) if column not in names}
        name = _name_of(y) if self.target is None else self.target
        if self.target is not None and (y is None or name in names):
            reason = "y is not given" if y is None else "X has a column of that name"
            raise InputError(f"target = '{name}' names y, but {reason}.")
        for column in about:
            if y is None or column != name:
                raise InputError(
                    f"A model of the plan uses '{column}', which X does not have. If it is y, "
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
                f"'names' has {len(names)} names for {X.shape[1]} columns; pass one for each."
            )
        return Table(frame_of_array(X, names))

    # -- what goes out

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
    """The roles of the columns that are present; a served row may lack the target."""
    return roles.without([name for _, name in roles.items() if name not in names])


def _about(plan: Plan) -> list[str]:
    """The columns that models of a plan name."""
    columns = (getattr(model, "column", None) for model in models_of_plan(plan))
    return [column for column in columns if column is not None]


def _refuse_names_for_an_array(plan: Plan, roles: Roles, names: Sequence[str]) -> None:
    """Raise InputError if a plan uses column names that an array does not have."""
    said = [*(name for _, name in roles.items()), *_about(plan), *plan.columns_of_steps()]
    absent = [name for name in dict.fromkeys(said) if name not in names]
    if absent:
        raise InputError(
            f"X is an array without column names, but the plan uses {quoted(absent)}. Pass a "
            "frame, or name the columns: Protector(..., names=[...])."
        )


def _name_of(y: Any) -> str | None:
    """The name of a series, or of the only column of a frame."""
    if _is_frame(y) and len(y.columns) == 1:
        return str(y.columns[0])
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def _without_frame(y: Any) -> Any:
    """The only column of y if it is a frame, otherwise y itself."""
    return y[y.columns[0]] if _is_frame(y) and len(y.columns) == 1 else y


# -- released columns as numbers, the same for rows that come later


def encoders_of(encoding: str, masked: Table, scales: Mapping[str, Scale]) -> dict[str, Encoder]:
    """An encoder for each column of a masked table; none if texts stay texts."""
    if encoding == "text":
        return {}
    return {name: _encoder(encoding, masked, name, scales.get(name)) for name in masked.columns}


def _encoder(encoding: str, masked: Table, name: str, scale: Scale | None) -> Encoder:
    if scale is not None:
        # only the texts that were released: the others belong only to suppressed records
        return text_encoder(encoding, scale, {*masked.codes(name).texts})
    if masked.kind(name) in (*QUANTITIES, "boolean"):
        return NumberEncoder(scale_name(masked.codes(name)))
    texts = masked.codes(name).texts
    known = tuple(t for t, n in zip(texts, masked.holders(name), strict=True) if n >= _FEWEST)
    ranks = Scale(known, np.arange(float(len(known))), numeric=False)
    return text_encoder(encoding, ranks, {*known})


@dataclass(frozen=True)
class NumberEncoder:
    """A column of numbers stays unchanged; yes and no are 1 and 0, dates count in days.

    Decimals become floats, since models do not take them.
    """

    measured: str

    def names(self, column: str) -> list[str]:
        """The columns that come out."""
        return [column]

    def columns(self, column: str, table: Table, scale: Scale | None) -> dict[str, Floats] | None:
        """The column as numbers; None if it already has numbers."""
        plain = table.kind(column) in NUMBERS and not table.column(column).dtype.is_decimal()
        if plain and self.measured == "numbers":
            return None
        coded = table.codes(column)
        if self.measured == "boolean" and table.kind(column) == "boolean":
            values = np.array([*coded.levels.to_list(), np.nan], np.float64)[: coded.count]
        elif len(coded.levels) and scale_name(coded) != self.measured:
            raise InputError(
                f"Column '{column}' is {table.kind(column)} but was {self.measured} when the "
                "Protector was fitted. Read it as it was then."
            )
        else:
            values = quantities(coded)
        return {column: values[coded.codes]}


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """The texts of one released column, in their order, with a number for each."""

    encoding: str
    texts: tuple[str, ...]
    numbers: Floats
    numeric: bool

    def names(self, column: str) -> list[str]:
        """The columns that come out."""
        if self.encoding != "one-hot":
            return [column]
        return [f"{column}={text}" for text in self.texts]

    def columns(self, column: str, table: Table, scale: Scale | None) -> dict[str, Floats] | None:
        """The column of a table as numbers; ``scale`` has the texts that it can hold."""
        coded = table.codes(column)
        if self.encoding == "one-hot":
            ranks = np.array(
                [*self._ranks(coded.texts, None), *([-1] * (coded.missing is not None))]
            )
            hot = ranks[coded.codes][:, None] == np.arange(len(self.texts))
            return dict(zip(self.names(column), hot.T.astype(np.float64), strict=True))
        if self.encoding == "midpoints" and self.numeric:
            values = self._middles(coded.texts, scale)
        else:
            values = self._ranks(coded.texts, scale)
        known = [*values, *([np.nan] * (coded.missing is not None))]
        return {column: np.array(known, np.float64)[coded.codes]}

    def _ranks(self, texts: list[str], scale: Scale | None) -> list[float]:
        """The rank of each text; for a new text, the rank of its number, or -1."""
        place = {text: float(rank) for rank, text in enumerate(self.texts)}
        if scale is not None and self.numeric:
            for text, number in zip(scale.texts, scale.numbers, strict=True):
                if text is not None and not np.isnan(number):
                    place.setdefault(text, float(np.searchsorted(self.numbers, number)))
        return [-1.0 if text == TOP else place.get(text, -1.0) for text in texts]

    def _middles(self, texts: list[str], scale: Scale | None) -> list[float]:
        numbers = {} if scale is None else dict(zip(scale.texts, scale.numbers, strict=True))
        numbers |= dict(zip(self.texts, self.numbers, strict=True))
        middle = float(self.numbers.mean()) if len(self.numbers) else 0.0
        return [
            middle if np.isnan(found := float(numbers.get(text, np.nan))) else found
            for text in texts
        ]


Encoder = NumberEncoder | TextEncoder


def text_encoder(encoding: str, scale: Scale, released: Container[str]) -> TextEncoder:
    """The encoder of a column as it was released: each text once, in ascending order."""
    numbers = {
        text: float(number)
        for text, number in zip(scale.texts, scale.numbers, strict=True)
        if text is not None and text in released and text != TOP and not np.isnan(number)
    }
    ordered = sorted(numbers, key=lambda text: (numbers[text], text))
    return TextEncoder(
        encoding, tuple(ordered), np.array([numbers[text] for text in ordered]), scale.numeric
    )
