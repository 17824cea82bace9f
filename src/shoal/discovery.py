"""Find what a package declares, so that a new method needs no entry in a list."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def members_of(package_name: str) -> Iterator[Any]:
    """Everything that the modules of a package define (not import), at any depth.

    A package that declares nothing of the kind, and is slow to import, sets ``SEARCHED = False``.
    """
    package = importlib.import_module(package_name)
    for place in pkgutil.iter_modules(package.__path__, f"{package_name}."):
        module = importlib.import_module(place.name)
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) == module.__name__:
                yield thing
        if place.ispkg and getattr(module, "SEARCHED", True):
            yield from members_of(place.name)


def concrete_subclasses(package_name: str, base: type[T]) -> list[type[T]]:
    """The classes of a package that implement ``base``, by name."""
    wanted: Any = base
    return list(_subclasses(package_name, wanted))


@cache
def _subclasses(package_name: str, base: Any) -> tuple[Any, ...]:
    found = {
        thing
        for thing in members_of(package_name)
        if inspect.isclass(thing) and issubclass(thing, base) and not inspect.isabstract(thing)
    }
    return tuple(sorted(found, key=lambda cls: cls.__name__))
