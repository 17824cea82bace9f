"""Help with wrong arguments and attributes, in one place for all classes."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from shoal.errors import (
    CallError,
    InputError,
    ParameterError,
    RenamedWarning,
    UnknownAttribute,
    did_you_mean,
    nearest_name,
    quoted,
)

F = TypeVar("F", bound=Callable[..., Any])


def helpful(function: F) -> F:
    """Make errors about wrong arguments say which arguments a function accepts.

    Examples
    --------
    >>> @helpful
    ... def save(folder, *, format="csv"):
    ...     return folder
    >>> save("out", fmt="csv")
    Traceback (most recent call last):
    shoal.errors.CallError: save has no parameter 'fmt'. Did you mean 'format'?
    """

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            refuse_misfit(function, given, named)
            raise

    return cast(F, call)


def refuse_misfit(
    function: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any], called: str = ""
) -> None:
    """Raise CallError if a function does not accept the arguments; ``called`` is its name."""
    signature, called = inspect.signature(function), called or function.__name__
    try:
        signature.bind(*given, **named)
    except TypeError:
        raise CallError(_misfit(signature, given, named, called)) from None


def _misfit(
    signature: inspect.Signature, given: tuple[Any, ...], named: Mapping[str, Any], called: str
) -> str:
    by_place = [p for p in signature.parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    known = [name for name in signature.parameters if name not in ("self", "cls")]
    places = [p for p in by_place if p.name in known]
    stray = [name for name in named if name not in known]
    if stray:
        return f"{called} has no parameter '{stray[0]}'. {did_you_mean(stray[0], known)}"
    if len(given) > len(by_place):
        others = [n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
        if not others:
            return f"{called} accepts at most {len(by_place)} values; got {len(given)}."
        if not places:
            return f"{called} accepts its parameters only by name. Write {called}({others[0]}=...)."
        if len(places) == 1 and "Sequence" in str(places[0].annotation):
            return f"{called} accepts one list. Write {called}([...]), and name the others."
        first = quoted(p.name for p in places)
        return (
            f"{called} accepts {first} by position and the others only by name: {quoted(others)}."
        )
    twice = [p.name for p in by_place[: len(given)] if p.name in named]
    if twice:
        return f"{called} got '{twice[0]}' twice, by position and by name. Pass it once."
    required = [p.name for p in signature.parameters.values() if p.default is p.empty]
    lacking = [name for name in required[len(given) :] if name not in named]
    return f"{called} needs a value for '{lacking[0]}': {called}({lacking[0]}=...)."


def under_new_names(
    renamed: Mapping[str, str], given: Mapping[str, Any], called: str, *, stacklevel: int = 3
) -> dict[str, Any]:
    """Arguments under their new names; warns about old names, and refuses both names of one."""
    old = [name for name in given if name in renamed]
    for name in old:
        if renamed[name] in given:
            raise ParameterError(
                f"{called} got both '{renamed[name]}' and '{name}', its old name. Remove '{name}'."
            )
        _warn_of_old_name(name, renamed[name], called, stacklevel + 1)
    return {renamed.get(name, name): value for name, value in given.items()} if old else {**given}


def _warn_of_old_name(old: str, new: str, called: str, stacklevel: int) -> None:
    warnings.warn(
        f"The '{old}' parameter of {called} is now called '{new}'. The old name works for one "
        "more version.",
        RenamedWarning,
        stacklevel=stacklevel,
    )


def renamed_parameters(**renamed: str) -> Callable[[F], F]:
    """Make a function accept old parameter names too, with a warning: ``old="new"``."""

    def make(function: F) -> F:
        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            return function(*given, **under_new_names(renamed, named, function.__name__))

        return cast(F, call)

    return make


def table_from(given: object) -> str:
    """What to write where a table is needed and something else was given."""
    if hasattr(given, "masked"):
        return "Write release.masked."
    if isinstance(given, (str, os.PathLike)):
        return "sh.read(path, roles=...) reads a file."
    return "Use sh.Table(frame, roles)."


def check_path(given: object, taker: str, cure: str) -> None:
    """Raise InputError for anything that is neither a text nor a path."""
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(f"{taker} needs a path; got {type(given).__name__}. {cure}")


def instead(words: Mapping[str, str]) -> dict[str, str]:
    """What to write instead, for each word that people try.

    Examples
    --------
    >>> instead({"table.frame": "data df"})
    {'data': 'table.frame', 'df': 'table.frame'}
    """
    return {word: right for right, tried in words.items() for word in tried.split()}


def unknown_in(module: str, name: str, known: Iterable[str]) -> UnknownAttribute:
    """The error for a name that a module does not have."""
    near = nearest_name(name, list(known))
    hint = "" if near is None or name.startswith("_") else f". Did you mean '{near}'?"
    return UnknownAttribute(f"module '{module}' has no attribute '{name}'{hint}")


class _Called(ABCMeta):
    """Calls of classes get the same help as calls of functions."""

    if not TYPE_CHECKING:  # type checkers see the parameters of each class

        def __call__(cls, *given, **named):
            if cls.renamed:
                named = under_new_names(cls.renamed, named, cls.__name__)
            try:
                return super().__call__(*given, **named)
            except TypeError:
                refuse_misfit(cls, given, named, cls.__name__)
                raise

        @property
        def __signature__(cls):
            parameters = [*inspect.signature(cls.__init__).parameters.values()][1:]
            return inspect.Signature([_bare(one) for one in parameters])


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter with its declared type but without its range.

    Examples
    --------
    >>> def f(k: Annotated[dict[str, int] | None, Integer(2)]): ...
    >>> str(_bare(inspect.signature(f).parameters["k"]))
    "k: 'dict[str, int] | None'"
    """
    kind, depth = parameter.annotation, 0
    if not isinstance(kind, str) or not kind.startswith("Annotated["):
        return parameter
    kind = kind.removeprefix("Annotated[")
    for place, character in enumerate(kind):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            return parameter.replace(annotation=kind[:place])
    return parameter


def _under_old_name(old: str, new: str) -> property:
    """An attribute under its old name; without this, setting it would have no effect."""

    def get(owner: Any) -> Any:
        _warn_of_old_name(old, new, type(owner).__name__, 3)
        return getattr(owner, new)

    def change(owner: Any, value: Any) -> None:
        _warn_of_old_name(old, new, type(owner).__name__, 3)
        setattr(owner, new, value)

    return property(get, change)


class Helpful(metaclass=_Called):
    """Base of the classes that people use; it helps with parameters and attributes it lacks."""

    #: What to write instead, for attributes that people look for.
    _instead: ClassVar[Mapping[str, str]] = {}
    #: New names of parameters by their old ones, which still work with a warning.
    renamed: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for old, new in vars(cls).get("renamed", {}).items():
            setattr(cls, old, _under_old_name(old, new))

    if not TYPE_CHECKING:  # type checkers see the attributes of each class

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            if hasattr(type(self), name):  # it exists, but computing it failed
                return object.__getattribute__(self, name)
            called = type(self).__name__
            which = f"{'An' if called[0] in 'AEIOU' else 'A'} {called}"
            raise UnknownAttribute(
                f"{which} has no attribute '{name}'. {self._meant(name)}".rstrip()
            )

    def _meant(self, name: str) -> str:
        if name in self._instead:
            return f"Write {self._instead[name]}."
        if name.endswith("_") and hasattr(type(self), "fit"):
            return "What a step learned is available after fit or fit_transform."
        near = nearest_name(name, [one for one in dir(self) if not one.startswith("_")])
        return "" if near is None else f"Did you mean '{near}'?"
