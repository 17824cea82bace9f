"""A measurement: a value and what is needed to judge it; how measures are declared and found."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from operator import add, eq, ge, gt, le, lt, mul, sub, truediv
from typing import Any, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from shoal.discovery import members_of
from shoal.errors import InputError, ParameterError, did_you_mean
from shoal.hints import Helpful, instead, table_from
from shoal.notebook import listing, number, view
from shoal.parameters import Parameter, checked, parameters_of

Direction = Literal["lower", "higher"]
F = TypeVar("F", bound=Callable[..., Any])
_Operator = Callable[[Any, Any], float]


class _PerRecord:
    """The measure of each record; stored as one byte if yes or no, and read as 1 and 0.

    A function may be stored instead. It is called each time, so nothing is held per record.
    """

    def __get__(self, of: object | None, owner: object = None) -> npt.NDArray[np.float64] | None:
        kept: Any = None if of is None else vars(of)["per_record"]
        found: npt.NDArray[Any] | None = kept() if callable(kept) else kept
        return found.astype(np.float64) if found is not None and found.dtype == np.bool_ else found

    def __set__(
        self, of: object, given: npt.NDArray[Any] | Callable[[], npt.NDArray[Any]] | None
    ) -> None:
        vars(of)["per_record"] = given


def _by_values(by: Callable[[float, float], float]) -> tuple[_Operator, _Operator]:
    """An operator on the values of measurements and numbers, and the same from the right."""
    return (
        lambda one, other: by(float(one), float(other)),
        lambda one, other: by(other, float(one)),
    )


def _compared_by(by: Callable[[float, float], bool]) -> Callable[[Any, object], bool]:
    """A comparison of values; anything but a measurement or a number cannot be compared."""

    def compare(one: Measurement, other: object) -> bool:
        if isinstance(other, (Measurement, Real)):
            return by(float(one), float(other))
        return NotImplemented

    return compare


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Helpful):
    """One measured number with everything that is needed to read it.

    Parameters
    ----------
    name : str
        Name of the measure, as in plans (``max_<name>`` limits it).
    value : float
        The measured value.
    interval : tuple of float, optional
        95 % confidence interval, if the value is an estimate.
    baseline : float, optional
        The value for blind guessing, or for the unmasked table.
    direction : {"lower", "higher"}
        Which way is better for the people in the table (risk) or the analyst (utility).
    per_record : numpy.ndarray, optional
        The measure of each record, in the order of the rows. Private.
    details : dict
        Further plain facts: counts and shares, never a value of a cell.
    warnings : tuple of str
        Reasons why the value means less than it seems to.

    Examples
    --------
    >>> risk = Measurement("marketer_risk", 0.25, baseline=1.0)
    >>> print(risk)
    marketer_risk = 0.25 (baseline 1, lower is better)

    It can be used as a number: it then stands for its value.

    >>> risk < 0.3, float(risk), f"{risk:.0%}"
    (True, 0.25, '25%')
    """

    _instead = instead(
        {
            "measurement.interval": "ci confidence_interval",
            "measurement.value": "score result",
            "measurement.per_record": "records by_record",
        }
    )

    name: str
    value: float
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    direction: Direction = "lower"
    per_record: _PerRecord = _PerRecord()
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        records = vars(self)["per_record"]
        if isinstance(records, np.ndarray) and len(records) > 1 and records.min() == records.max():
            # takes no memory per record
            constant = np.broadcast_to(np.float64(records[0]), records.shape)
            object.__setattr__(self, "per_record", constant)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "per_record": self.per_record}

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    __add__, __radd__ = _by_values(add)
    __sub__, __rsub__ = _by_values(sub)
    __mul__, __rmul__ = _by_values(mul)
    __truediv__, __rtruediv__ = _by_values(truediv)
    __eq__ = _compared_by(eq)
    __lt__, __le__ = _compared_by(lt), _compared_by(le)
    __gt__, __ge__ = _compared_by(gt), _compared_by(ge)

    def __round__(self, digits: int = 0) -> float:
        return round(float(self), digits)

    def __hash__(self) -> int:
        return hash(float(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON, without the per-record values."""
        return {
            "name": self.name,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "baseline": self.baseline,
            "direction": self.direction,
            "details": dict(self.details),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"Measurement: {self}"

    def _repr_html_(self) -> str:
        interval = "" if self.interval is None else " to ".join(map(number, self.interval))
        row = (self.name, self.value, interval, self.baseline, self.direction)
        head = ("measure", "value", "95 % interval", "baseline", "better is")
        return view(f"{self.name} = {number(self.value)}", listing(head, [row]), *self.warnings)

    def __str__(self) -> str:
        notes = []
        if self.interval is not None:
            notes.append(f"95 % {self.interval[0]:.4g} to {self.interval[1]:.4g}")
        if self.baseline is not None:
            notes.append(f"baseline {self.baseline:.4g}")
        notes.append(f"{self.direction} is better")
        return f"{self.name} = {self.value:.4g} ({', '.join(notes)})"


@dataclass(frozen=True)
class MeasureInfo:
    """What a measure declares about itself, for the command line, the docs and the tests.

    ``pairs`` says that it must know which rows belong together; ``sensitive`` and ``target`` say
    that it needs columns of that role. ``on_request`` is the reason why an assessment takes it only
    when asked by name; it ends the sentence "… was left out: ". ``by_counts`` says that
    combinations with their counts are enough.
    """

    name: str
    title: str
    direction: Direction
    limits: tuple[float, float]
    function: Callable[..., Measurement]
    pairs: bool = False
    sensitive: bool = False
    target: bool = False
    on_request: str | None = None
    by_counts: bool = False

    @property
    def about(self) -> Literal["risk", "utility"]:
        """Whether it measures risk or utility."""
        return "utility" if self.function.__module__.startswith("shoal.utility") else "risk"

    @property
    def needs_original(self) -> bool:
        """Whether it compares two tables."""
        return "original" in inspect.signature(self.function).parameters

    @property
    def options(self) -> dict[str, Parameter]:
        """What it accepts besides tables, by name."""
        return {option.name: option for option in parameters_of(self.function)}

    def take(self, original: Any, masked: Any, **options: Any) -> Measurement:
        """Measure a masked table; a measure that compares also gets its original."""
        if not self.by_counts and getattr(masked, "times", None) is not None:
            raise InputError(
                f"The measure '{self.name}' needs single records, but a tally has only "
                "combinations with their counts."
            )
        if not self.needs_original:
            return self.function(masked, **options)
        if original is None:
            raise InputError(f"The measure '{self.name}' needs the original table.")
        return self.function(original, masked, **options)

    @property
    def plan_options(self) -> dict[str, Parameter]:
        """The options that a limit in a plan can set: no tables and no random draws."""
        options = self.options.items()
        return {name: each for name, each in options if each.in_plan and name != "random_state"}

    def check_names(self, given: Iterable[Any], *, in_plan: bool = False) -> None:
        """Raise ParameterError for the first name that is not an option of the measure."""
        known = self.plan_options if in_plan else self.options
        for name in given:
            if name not in known:
                raise ParameterError(
                    f"The measure '{self.name}' has no option '{name}'. "
                    f"{did_you_mean(str(name), known)}"
                )


def measure(title: str, **declared: Any) -> Callable[[F], F]:
    """Declare a function as a measure, so that discovery finds it.

    A measure of one table has the form ``f(table, **options)``, a measure that compares has the
    form ``f(original, masked, **options)``. Options declared with a constraint are checked before
    each measurement. What else is ``declared`` is explained at :class:`MeasureInfo`.
    """

    def mark(function: F) -> F:
        measured = checked(_of_tables(function))
        info = MeasureInfo(function.__name__, title, function=measured, **declared)
        measured.info = info  # type: ignore[attr-defined]
        return measured

    return mark


def _of_tables(function: F) -> F:
    """Wrap a measure so that its error for a data frame says how to make a table from it."""

    @functools.wraps(function)
    def call(*tables: Any, **options: Any) -> Any:
        for given in tables:
            if not hasattr(type(given), "with_roles"):
                raise InputError(
                    f"The measure '{function.__name__}' needs a shoal.Table; got "
                    f"{type(given).__name__}. {table_from(given)}"
                )
        return function(*tables, **options)

    return cast(F, call)


def discover_measures(package_name: str) -> dict[str, MeasureInfo]:
    """All measures declared in the modules of a package, by name."""
    infos = (getattr(thing, "info", None) for thing in members_of(package_name))
    found = {info.name: info for info in infos if isinstance(info, MeasureInfo)}
    return dict(sorted(found.items()))
