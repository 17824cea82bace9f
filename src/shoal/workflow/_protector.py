"""A plan as a scikit-learn transformer: fitted on training rows, it serves raw rows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from shoal.errors import InputError
from shoal.masking import TOP, Scale
from shoal.table import Roles, Table, features_of, frame_of_array
from shoal.workflow._plan import Plan
from shoal.workflow._protect import refuse_unknown_owners, refuse_unless_all_hold
from shoal.workflow._require import make_claim

Floats = npt.NDArray[np.float64]

_ENCODINGS = ("codes", "midpoints", "one-hot", "text")


class Protector(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Mask training rows by a plan, and map raw rows into the released domain later.

    ``fit_transform`` masks the training rows; ``transform`` maps new rows to the levels,
    intervals, caps and roundings that were released, and leaves a new row alone where a method
    only hides records among others (swapping, noise, microaggregation). A value that was never
    seen has an answer: the nearest box, or ``*``. Nothing of a training record is kept.

    The number of rows stays, as scikit-learn's pipelines need: records that the plan suppresses
    must be kept (``Generalize(suppressed="kept")``), and a plan that takes rows out is refused.

    Parameters
    ----------
    plan : Plan
        The steps; what the plan requires is verified when it is fitted.
    roles : Roles, optional
        The roles of the columns, where the plan has none. Without either, every column is a
        quasi-identifier. Columns that a later table lacks (a target, say) may be missing there.
    encode : {"codes", "midpoints", "one-hot", "text"}
        How generalized columns reach a model: as ordered codes (``*`` is -1), as the middle of
        their interval where it has one, as one column per text, or as they are.

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
    """

    def __init__(
        self, plan: Plan | None = None, *, roles: Roles | None = None, encode: str = "codes"
    ) -> None:
        self.plan = plan
        self.roles = roles
        self.encode = encode

    def fit(self, X: Any, y: Any = None) -> Protector:
        """Learn levels, boxes, caps and ranges from training rows."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The training rows masked by the plan; RequirementNotMet where it does not hold."""
        table = self._table(X, fitting=True)
        masked = self._mask(table)
        scales = self._scales(table)
        self._columns_ = {
            # of the texts that left only: others are those of suppressed records alone
            name: feature_encoder(self.encode, scale, {*masked.codes(name).texts})
            for name, scale in scales.items()
            if name in masked.columns
        }
        return self._encoded(masked, scales, X)

    def transform(self, X: Any) -> Any:
        """Raw rows in the released domain."""
        check_is_fitted(self, "steps_")
        table = self._table(X, fitting=False)
        served = table
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
        plan = Plan() if self.plan is None else self.plan
        if not isinstance(plan, Plan):
            raise InputError(f"A Protector takes a shoal.Plan; got {type(plan).__name__}.")
        if self.encode not in _ENCODINGS:
            raise InputError(
                f"'encode' is one of {', '.join(map(repr, _ENCODINGS))}; got {self.encode!r}."
            )
        return plan

    def _mask(self, table: Table) -> Table:
        plan = self._plan()
        masked, records = plan.apply(table)
        if len(masked) != len(table):
            raise InputError(
                f"The plan takes {len(table) - len(masked)} of {len(table)} rows out, which a "
                "pipeline cannot follow; keep suppressed records (suppressed='kept') or protect "
                "the table before the pipeline."
            )
        refuse_unless_all_hold(
            tuple(
                make_claim(requirement, masked, table, accept_seed=plan.accept_seed)
                for requirement in plan.require
            )
        )
        fitted = (record.fitted for record in records)
        self.steps_ = tuple(step.without_records() for step in fitted if step is not None)
        self._names_ = list(masked.columns)
        return masked

    def _scales(self, table: Table) -> dict[str, Any]:
        """The texts of generalized columns as numbers, as far as this table has them."""
        found: dict[str, Any] = {}
        served = table
        for step in self.steps_:
            found |= step.scales(served)
            served = step.transform(served)
        return {} if self.encode == "text" else found

    def _table(self, X: Any, *, fitting: bool) -> Table:
        if not isinstance(X, Table) and not hasattr(X, "columns") and not hasattr(X, "schema"):
            X = validate_data(
                self,
                X,
                reset=fitting,
                dtype=None,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if fitting else 1,  # nobody hides in a crowd of one
            )
            names = [f"x{place}" for place in range(X.shape[1])]
            X = frame_of_array(X, names)
        else:
            _check_feature_names(self, X, reset=fitting)
            if fitting:
                self.n_features_in_ = len(X.columns)
        table = Table(X)
        if fitting and self._plan().pseudonyms:
            raise InputError("A Protector gives out no pseudonyms; leave them out of its plan.")
        # a column without any value is a mistake in training rows, not in a few that come later
        table = table.with_roles(self._roles(table.columns), released=not fitting)
        if fitting:
            refuse_unknown_owners(table)
        return table.drop(name for name in table.roles.withheld if name in table.columns)

    def _roles(self, names: list[str]) -> Roles:
        """The roles of the columns that are there; a served row has no target, say."""
        roles = self.roles if self.roles is not None else self._plan().roles
        if roles is None:
            return Roles(quasi_identifiers=names)
        return roles.without([name for _, name in roles.items() if name not in names])

    # -- encoding

    def _columns_out(self, name: str) -> list[str]:
        encoder = self._columns_.get(name)
        return [name] if encoder is None else encoder.names(name)

    def _encoded(self, masked: Table, scales: Mapping[str, Any], X: Any) -> Any:
        replaced = {
            name: encoder.columns(name, masked, scales[name])
            for name, encoder in self._columns_.items()
            if name in scales
        }
        return features_of(masked, replaced, X)


@dataclass(frozen=True, eq=False)
class FeatureEncoder:
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

    def columns(self, column: str, table: Table, scale: Scale) -> dict[str, Floats]:
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
        """The place of each text; of one that is new, that of its number, or -1."""
        place = {text: float(rank) for rank, text in enumerate(self.texts)}
        if scale is not None and self.numeric:
            for text, number in zip(scale.texts, scale.numbers, strict=True):
                if text is not None and not np.isnan(number):
                    place.setdefault(text, float(np.searchsorted(self.numbers, number)))
        return [-1.0 if text == TOP else place.get(text, -1.0) for text in texts]

    def _middles(self, texts: list[str], scale: Scale) -> list[float]:
        numbers = dict(zip(scale.texts, scale.numbers, strict=True))
        numbers |= dict(zip(self.texts, self.numbers, strict=True))
        middle = float(self.numbers.mean()) if len(self.numbers) else 0.0
        return [
            middle if np.isnan(found := float(numbers.get(text, np.nan))) else found
            for text in texts
        ]


def feature_encoder(encoding: str, scale: Scale, released: Container[str]) -> FeatureEncoder:
    """The encoder of a column as it was released: each text once, in ascending order."""
    numbers = {
        text: float(number)
        for text, number in zip(scale.texts, scale.numbers, strict=True)
        if text is not None and text in released and text != TOP and not np.isnan(number)
    }
    ordered = sorted(numbers, key=lambda text: (numbers[text], text))
    return FeatureEncoder(
        encoding, tuple(ordered), np.array([numbers[text] for text in ordered]), scale.numeric
    )
