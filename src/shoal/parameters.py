"""Parameters are declared once, with their allowed range; this module checks and describes them.

A method or model is a dataclass whose fields are annotated with a constraint::

    k: Annotated[int, Integer(minimum=2)]

:class:`Parametrized` checks every field when an object is created, words the error, and passes the
parameters to plans, to ``shoal methods`` and to scikit-learn's ``get_params``. A measure is a
function whose keywords are annotated in the same way; ``@measure`` checks them on each call.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, cast, get_args, get_type_hints

from shoal.errors import InputError, ParameterError, did_you_mean, quoted
from shoal.hints import Helpful, helpful, under_new_names
from shoal.notebook import listing, view

F = TypeVar("F", bound=Callable[..., Any])


class Constraint(ABC):
    """The values that a declared parameter accepts, in code and in words."""

    words: str
    #: Whether a value must never become public.
    private: bool = False
    #: Whether a plan can hold a value; it cannot hold a table.
    in_plan: bool = True
    #: Turns what a plan holds into what the method accepts.
    read: Callable[[Any], Any] | None = None

    @abstractmethod
    def accepts(self, value: Any) -> bool:
        """Whether a value is within the declared range."""

    def describe(self) -> str:
        return self.words

    def shown(self, value: Any) -> str:
        """The value in an error; for a private value only the type, as it may be a password."""
        return type(value).__name__ if self.private else _shown(value)

    def relocate(self, value: Any, folder: Any) -> Any:
        """Resolve the paths in a plan's value, which are relative to the plan's folder."""
        return value


@dataclass(frozen=True)
class Integer(Constraint):
    """A whole number, at least ``minimum``."""

    minimum: int

    def accepts(self, value: Any) -> bool:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return whole and int(value) >= self.minimum

    def describe(self) -> str:
        return f"an integer ≥ {self.minimum}"


@dataclass(frozen=True)
class Real(Constraint):
    """A finite number above ``above`` (or at least ``minimum``), up to ``maximum`` or ``below``."""

    above: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    below: float | None = None

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # an integer may exceed every float
            return False
        return (
            math.isfinite(number)
            and (self.above is None or number > self.above)
            and (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.below is None or number < self.below)
        )

    def describe(self) -> str:
        signs = {">": self.above, "≥": self.minimum, "≤": self.maximum, "<": self.below}
        bounds = [f"{sign} {bound:g}" for sign, bound in signs.items() if bound is not None]
        return f"a number {' and '.join(bounds)}".strip()


@dataclass(frozen=True)
class OneOf(Constraint):
    """One of the named choices."""

    choices: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def describe(self) -> str:
        return "one of " + ", ".join(f"'{choice}'" for choice in self.choices)


@dataclass(frozen=True)
class Flag(Constraint):
    """True or false."""

    words = "true or false"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True)
class Text(Constraint):
    """A text that is not empty."""

    words = "a text that is not empty"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value.strip())


@dataclass(frozen=True)
class OneColumn(Text):
    """The name of one column."""

    words = "the name of a column"


@dataclass(frozen=True)
class Condition(Text):
    """A condition on the cells of a row, as in SQL: private, because it may quote a cell."""

    words = "a condition as in SQL"
    private = True


@dataclass(frozen=True)
class ColumnNames(Constraint):
    """A list of different column names, at least one."""

    words = "a list of different column names"

    def accepts(self, value: Any) -> bool:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, (str, bytes))
            and len(value) > 0
            and all(isinstance(name, str) for name in value)
            and len(set(value)) == len(value)
        )


@dataclass(frozen=True)
class ByColumn(Constraint):
    """A table of columns with one of ``what`` for each, such as a level or a weight.

    ``otherwise`` says what a column without one gets.
    """

    what: str
    each: Constraint
    otherwise: str

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and self.each.accepts(one) for name, one in value.items()
        )

    def describe(self) -> str:
        return f"a table of columns with their {self.what}, each {self.each.describe()}"

    def shown(self, value: Any) -> str:
        """For a table, the first column whose value is invalid."""
        for name, one in value.items() if isinstance(value, Mapping) else ():
            if not self.accepts({name: one}):
                return f"{_shown(one)} for {_shown(name)}"
        return super().shown(value)


def column_numbers(
    given: Mapping[str, float] | None, columns: Sequence[str], parameter: str
) -> list[float]:
    """The number of each column; a column without one has 1."""
    stray = [name for name in given or () if name not in columns]
    if stray:
        raise InputError(
            f"'{parameter}' names {quoted(stray)}, which this step does not work on. "
            f"{did_you_mean(stray[0], columns)}"
        )
    return [float((given or {}).get(name, 1)) for name in columns]


def column_weights(
    given: Mapping[str, float] | None, columns: Sequence[str], parameter: str
) -> tuple[float, ...]:
    """The weight of each column relative to the largest one; a column without a weight has 1.

    They have 12 digits, so that weights in the same proportions are the same weights, and are at
    least 1e-12, so that none becomes 0.
    """
    weights = column_numbers(given, columns, parameter)
    return tuple(max(1e-12, float(f"{weight / max(weights):.11e}")) for weight in weights)


@dataclass(frozen=True)
class Population(Constraint):
    """A table of the population, or the path of its file; a plan holds only the path."""

    words = "a table or the path of its file"
    private = True

    def accepts(self, value: Any) -> bool:
        return Text().accepts(value) or callable(getattr(value, "class_sizes_in", None))


@dataclass(frozen=True)
class Tree(Constraint):
    """A hierarchy of values: an object that numbers the nodes above them, or the path of one."""

    words = "a hierarchy or the path of its file"
    #: A path reveals folders of a machine, and a list of values may name people.
    private = True

    def accepts(self, value: Any) -> bool:
        return Text().accepts(value) or callable(getattr(value, "codes", None))


@dataclass(frozen=True)
class Secret(Constraint):
    """A seed for repeatable tests: never public, because it undoes the masking."""

    words = "an integer ≥ 0, or None for the operating system's entropy"
    private = True

    def accepts(self, value: Any) -> bool:
        return Integer(minimum=0).accepts(value)


@dataclass(frozen=True)
class Fits(Constraint):
    """What a test function accepts, with the words for it; a plan may be unable to hold it.

    ``read`` turns what a plan or a study's file holds into the value.
    """

    words: str
    test: Callable[[Any], bool]
    in_plan: bool = True
    read: Callable[[Any], Any] | None = None

    def accepts(self, value: Any) -> bool:
        return self.test(value)


@dataclass(frozen=True)
class Anything(Constraint):
    """An option that a measure checks itself."""

    in_plan: bool = True
    words = ""

    def accepts(self, value: Any) -> bool:
        return True


@dataclass(frozen=True)
class Parameter:
    """One declared parameter of a method, a model or a measure."""

    name: str
    constraint: Constraint
    required: bool
    default: Any

    @property
    def optional(self) -> bool:
        """Whether None is accepted, which is so if None is the default."""
        return not self.required and self.default is None

    @property
    def private(self) -> bool:
        """Whether the value must never become public."""
        return self.constraint.private

    @property
    def in_plan(self) -> bool:
        """Whether a plan can hold a value; it cannot hold a table."""
        return self.constraint.in_plan

    def check(self, value: Any, of: str) -> None:
        """Raise ParameterError for a value outside the declared range; ``of`` names its owner."""
        if (value is None and self.optional) or self.constraint.accepts(value):
            return
        raise ParameterError(
            f"The '{self.name}' parameter of {of} must be {self.constraint.describe()}. Got "
            f"{self.constraint.shown(value)} instead."
        )

    def read(self, value: Any) -> Any:
        """Turn a value from a plan into what the method accepts."""
        return value if self.constraint.read is None else self.constraint.read(value)


@functools.cache
def parameters_of(declaring: type | Callable[..., Any]) -> tuple[Parameter, ...]:
    """The declared parameters of a method or model, or the options of a measure, in order."""
    hints = get_type_hints(declaring, include_extras=True)
    if isinstance(declaring, type):
        fields = [(spec.name, spec.default) for spec in dataclasses.fields(declaring)]
        none: Any = dataclasses.MISSING
    else:
        given = inspect.signature(declaring).parameters.values()
        fields = [(each.name, each.default) for each in given if each.kind is each.KEYWORD_ONLY]
        none = inspect.Parameter.empty
    declared = []
    for name, default in fields:
        constraints = [each for each in get_args(hints.get(name))[1:] if hasattr(each, "accepts")]
        if not constraints and isinstance(declaring, type):
            raise TypeError(f"{declaring.__name__}.{name} declares no constraint")
        constraint = [*constraints, Anything("Table" not in str(hints.get(name)))][0]
        required = default is none
        declared.append(Parameter(name, constraint, required, None if required else default))
    return tuple(declared)


def checked(function: F) -> F:
    """Check the declared options of a function before each call."""
    helped = helpful(function)

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        for option in parameters_of(function):
            if option.name in options:
                option.check(options[option.name], function.__name__)
        return helped(*given, **options)

    return cast(F, call)


class Parametrized(Helpful):
    """Base of every method and model: a dataclass that checks its declared parameters.

    ``called`` is its name in errors, if that is not the name of the class.
    """

    called: ClassVar[str | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):  # otherwise a dataclass writes one that shows everything
            cls.__repr__ = Parametrized.__repr__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        self.check_parameters()

    def __repr__(self) -> str:
        """The changed parameters; for private ones, such as a seed, not the value."""
        private = {p.name for p in parameters_of(type(self)) if p.private}
        shown = (
            f"{name}={'<private>' if name in private else repr(value)}"
            for name, value in self.changed_params().items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Each parameter with its value and its allowed range."""
        given = self.changed_params()
        rows = (
            (
                p.name,
                "<private>" if p.private and p.name in given else repr(getattr(self, p.name)),
                p.constraint.describe(),
            )
            for p in parameters_of(type(self))
        )
        return view(repr(self), listing(("parameter", "value", "may be"), rows))

    def check_parameters(self) -> None:
        """Raise ParameterError for the first parameter outside its declared range."""
        for parameter in parameters_of(type(self)):
            parameter.check(getattr(self, parameter.name), self.called or type(self).__name__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name (scikit-learn's convention)."""
        return {p.name: getattr(self, p.name) for p in parameters_of(type(self))}

    def set_params(self, **changes: Any) -> Self:
        """Change parameters in place (scikit-learn's convention): all of them, or none."""
        changes = under_new_names(self.renamed, changes, type(self).__name__)
        tried = copy.copy(self)
        for name, value in changes.items():
            setattr(tried, check_parameter_name(type(self), name), value)
        tried.check_parameters()
        for name, value in changes.items():
            setattr(self, name, value)
        return self

    def changed_params(self, *, public: bool = False) -> dict[str, Any]:
        """Parameters that differ from their default; without private ones when ``public``."""
        return {
            p.name: getattr(self, p.name)
            for p in parameters_of(type(self))
            if (p.required or getattr(self, p.name) != p.default) and not (public and p.private)
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a pickle or a copy; an earlier version may have used old names."""
        for name, value in state.items():
            object.__setattr__(self, self.renamed.get(name, name), value)

    @classmethod
    def from_params(cls, given: Mapping[str, Any], *, called: str) -> Self:
        """Build from a mapping as read from a plan; ``called`` names it in errors."""
        given = under_new_names(cls.renamed, given, f"the {called}", stacklevel=4)
        for name in given:
            check_parameter_name(cls, name, called=called)
        missing = [p.name for p in parameters_of(cls) if p.required and p.name not in given]
        if missing:
            raise ParameterError(f"The {called} needs a value for '{missing[0]}'.")
        return cls(**{p.name: p.read(given[p.name]) for p in parameters_of(cls) if p.name in given})


def check_parameter_name(cls: type, name: str, *, called: str = "") -> str:
    """The name itself if it is declared; otherwise ParameterError with the nearest one."""
    known = [p.name for p in parameters_of(cls)]
    if name not in known:
        raise ParameterError(
            f"The {called or cls.__name__} has no parameter '{name}'. {did_you_mean(name, known)}"
        )
    return name


def _shown(value: Any) -> str:
    """A plain value as written; for anything else the type, since a frame would show its cells."""
    if not _is_plain(value):
        return f"something of type {getattr(value, '__name__', type(value).__name__)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.keys())) and all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple, set)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, bytes, numbers.Number, Parametrized))
