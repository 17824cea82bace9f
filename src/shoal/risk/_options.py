"""How a risk is declared, and the options that risk measures share, each with what it accepts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from shoal import table
from shoal.measurement import measure
from shoal.parameters import Fits, Integer, OneColumn, OneOf, Real

#: Declares a function as a measure of risk: a share or a chance, the lower the better.
risk = partial(measure, direction="lower", limits=(0, 1))

KNOWN_WORDS = ("quasi-identifiers", "left-in-place", "informed", "everything")
ESTIMATORS = ("dankar", "pitman", "zayatz", "snb")


def _are_names(value: Any) -> bool:
    listed = isinstance(value, (list, tuple)) and len(value) > 0
    return listed and all(isinstance(name, str) for name in value)


def _is_learner(value: Any) -> bool:
    if isinstance(value, (str, type)):
        return value == "random-forest"
    return hasattr(value, "fit") and hasattr(value, "predict")


def _is_table(value: Any) -> bool:
    return isinstance(value, table.Table)


_KNOWN = Fits(
    f"a list of column names, or {OneOf(KNOWN_WORDS).describe()}",
    lambda value: OneOf(KNOWN_WORDS).accepts(value) or _are_names(value),
)
_LEARNER = Fits(
    "'random-forest' or an instance of a scikit-learn classifier or regressor",
    _is_learner,
)
_OTHERS = Fits("a shoal.Table of people who were not in the original", _is_table, in_plan=False)
_EVERYBODY = Fits("a shoal.Table of the population", _is_table, in_plan=False)

Missing = Annotated[table.Missing, OneOf(("own", "wildcard"))]
Fraction = Annotated[float | None, Real(above=0, maximum=1)]
Share = Annotated[float, Real(above=0, maximum=1)]
Closeness = Annotated[float, Real(minimum=0, below=1)]
Count = Annotated[int, Integer(1)]
Draw = Annotated[int | None, Integer(0)]
ColumnName = Annotated[str | None, OneColumn()]
Names = Annotated[Sequence[str] | None, Fits("a list of column names", _are_names)]
Known = Annotated[Sequence[str] | str | None, _KNOWN]
Learner = Annotated[Any, _LEARNER]
Control = Annotated[table.Table | None, _OTHERS]
Population = Annotated[table.Table | None, _EVERYBODY]
Estimator = Annotated[Literal["dankar", "pitman", "zayatz", "snb"], OneOf(ESTIMATORS)]
