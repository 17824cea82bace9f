"""Kernels: compiled on first use and kept on disk, but not compiled at all for small work.

Compiling a kernel takes seconds, too long for a small table. A function that Python calls can
therefore be marked :func:`python_if_small`: Python then runs the same function until its calls
have taken about as long as compiling it would. Both share one source and give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import monotonic
from types import FunctionType
from typing import Any, Self

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.event import Listener, register, unregister

from shoal.kernels.kept import Kept

small_work = 1_000_000
"""How many steps of a kernel Python runs itself, in about a second.

Compiling takes longer. 0 compiles every kernel, however small the work.
"""


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's ``njit``; with ``cache``, compiled code is :class:`~shoal.kernels.kept.Kept`."""

    def compiled(function: Any) -> Any:
        kernel = numba.njit(**options)(function)
        if cache:
            kernel._cache = Kept(function)
        return kernel

    return compiled


def is_small(steps: float) -> bool:
    """Whether work of so many steps is not worth compiling."""
    return steps < small_work


@contextmanager
def always_compiled() -> Iterator[None]:
    """Within it, every kernel is compiled, however small the work."""
    global small_work
    before, small_work = small_work, 0
    try:
        yield
    finally:
        small_work = before


class Compiling(Listener):  # type: ignore[misc]
    """How many kernels are compiled within its ``with``, and for how many seconds.

    After ``patience`` seconds, at the next kernel, ``tell`` is called once: it explains that
    compiling takes the time.
    """

    def __init__(self, patience: float = 0.0, tell: Callable[[], None] | None = None) -> None:
        self.kernels = 0
        self._patience, self._tell = patience, tell
        self._depth, self._start, self._spent = 0, 0.0, 0.0

    def __enter__(self) -> Self:
        register("numba:compile", self)
        return self

    def __exit__(self, *_: object) -> None:
        unregister("numba:compile", self)

    @property
    def seconds(self) -> float:
        """How long kernels have been compiling so far."""
        return self._spent + (monotonic() - self._start if self._depth else 0.0)

    def on_start(self, event: Any) -> None:
        """A kernel starts compiling, perhaps while a kernel that calls it is compiling."""
        if self._depth == 0:
            self._start = monotonic()
        self._depth += 1
        self._speak()

    def on_end(self, event: Any) -> None:
        """A kernel is compiled."""
        if event.data["dispatcher"].py_func.__module__.startswith("shoal."):
            self.kernels += 1
        self._speak()
        if self._depth == 1:
            self._spent = self.seconds
        self._depth = max(0, self._depth - 1)

    def _speak(self) -> None:
        if self._tell is not None and self.seconds > self._patience:
            tell, self._tell = self._tell, None
            tell()


def python_if_small(steps: Callable[..., float]) -> Callable[[Any], Any]:
    """A kernel that Python runs itself until compiling is worthwhile for all calls together.

    ``steps`` gets the kernel's arguments and returns about how many values a call reads or writes.
    Use it only for functions that Python calls: other kernels cannot call the result.
    """

    def chosen(kernel: Any) -> Any:
        spent = 0.0

        @wraps(kernel.py_func)
        def run(*given: Any) -> Any:
            nonlocal spent
            spent += steps(*given)
            if not is_small(spent):
                return kernel(*given)
            with np.errstate(all="ignore"):  # numbers wrap around as in compiled code
                return as_python(kernel)(*given)

        run.kernel = kernel  # type: ignore[attr-defined]
        return run

    return chosen


_PYTHON: dict[Any, FunctionType] = {}


def as_python(kernel: Any) -> Any:
    """The Python function of a kernel; it calls only Python functions of kernels."""
    if kernel not in _PYTHON:
        source = kernel.py_func
        scope = dict(source.__globals__)
        _PYTHON[kernel] = FunctionType(source.__code__, scope, source.__name__)
        for name, value in scope.items():
            if isinstance(value, Dispatcher):
                scope[name] = as_python(value)
    return _PYTHON[kernel]
