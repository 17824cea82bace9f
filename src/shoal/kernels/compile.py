"""Compiled once and kept on disk; where nothing can be kept, compiled anew in each process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numba

_PROBE = bytes(1 << 16)


def _can_be_kept() -> bool:
    """Whether the folder that the caller chose for compiled kernels takes files."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        return True
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_PROBE)
            file.flush()
    except OSError:
        return False
    return True


_KEPT = _can_be_kept()


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's ``njit``, which also works where the cache has no place to be.

    A read-only package in a container without a home folder is such a place: numba refuses to
    decorate a function there.
    """

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(cache=cache and _KEPT, **options)(function)
        except RuntimeError:
            return numba.njit(**options)(function)

    return compiled
