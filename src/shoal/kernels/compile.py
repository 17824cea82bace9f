"""Kernels: compiled on first use and kept on disk, and for small work not compiled at all.

To compile a kernel takes seconds, which a small table does not pay back. So what Python calls can
be marked :func:`python_if_small`: Python runs the very same function until its calls have taken
about as long as compiling it would. There is one source for both, so that both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.kernels.kept import Kept

small_work = 1_000_000
"""How many steps of a kernel are left to Python, which does them in about a second.

Compiling takes longer. 0 compiles every kernel, however small the work.
"""


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's ``njit``; with ``cache``, what is compiled is :class:`~shoal.kernels.kept.Kept`."""

    def compiled(function: Any) -> Any:
        kernel = numba.njit(**options)(function)
        if cache:
            kernel._cache = Kept(function)
        return kernel

    return compiled


def is_small(steps: float) -> bool:
    """Whether work of so many steps is not worth compiling for."""
    return steps < small_work


@contextmanager
def always_compiled() -> Iterator[None]:
    """Within it every kernel is compiled, however small the work.

    Examples
    --------
    >>> with always_compiled():
    ...     is_small(1)
    False
    """
    global small_work
    before, small_work = small_work, 0
    try:
        yield
    finally:
        small_work = before


def python_if_small(steps: Callable[..., float]) -> Callable[[Any], Any]:
    """A kernel that Python runs itself as long as all calls together are not worth compiling it.

    It is for what Python calls: other kernels cannot call what this gives.

    Parameters
    ----------
    steps : callable
        Gets what the kernel gets, and gives about how many values a call reads or writes.

    Examples
    --------
    >>> @python_if_small(len)
    ... @njit(cache=False)
    ... def total(values):
    ...     found = 0
    ...     for value in values:
    ...         found += value
    ...     return found
    >>> total([1, 2, 3]), len(total.kernel.signatures)
    (6, 0)
    """

    def chosen(kernel: Any) -> Any:
        spent = 0.0

        @wraps(kernel.py_func)
        def run(*given: Any) -> Any:
            nonlocal spent
            spent += steps(*given)
            if not is_small(spent):
                return kernel(*given)
            with np.errstate(all="ignore"):  # numbers wrap around, as in compiled code
                return as_python(kernel)(*given)

        run.kernel = kernel  # type: ignore[attr-defined]
        return run

    return chosen


_PYTHON: dict[Any, FunctionType] = {}


def as_python(kernel: Any) -> Any:
    """What a kernel is compiled from, which calls no kernels but what they are compiled from."""
    if kernel not in _PYTHON:
        source = kernel.py_func
        scope = dict(source.__globals__)
        _PYTHON[kernel] = FunctionType(source.__code__, scope, source.__name__)
        for name, value in scope.items():
            if isinstance(value, Dispatcher):
                scope[name] = as_python(value)
    return _PYTHON[kernel]
