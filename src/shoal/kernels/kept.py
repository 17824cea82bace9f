"""Where compiled kernels are kept: every process finds them, and they are never outdated.

numba keeps compiled code next to the source, or in the user's cache folder. It checks only whether
the file of a kernel itself changed, not the files of the kernels that it calls, and it ignores a
folder that it cannot write to. Here, a compiled kernel belongs to one state of all kernels. Kernels
next to the code are used even if nothing can be written there, as in an image that was warmed up
when it was built. New ones go to the first of these folders that accepts files:

1. the one that ``NUMBA_CACHE_DIR`` names;
2. the one next to the source;
3. the user's cache folder (``XDG_CACHE_HOME``, ``~/.cache``, or as the system defines it);
4. a folder for temporary files that belongs only to the user.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.runtime import rtsys
from numba.misc.appdirs import AppDirs

_HERE = Path(__file__).parent
_PROBE = bytes(1 << 16)


@cache
def _stamp() -> str:
    """A hash of the source of all kernels."""
    found = hashlib.sha256()
    for file in sorted(_HERE.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def _temporary() -> Path:
    """A folder into which nobody else can put files, because what is loaded from it is run."""
    folder = Path(tempfile.gettempdir()) / f"shoal-{getattr(os, 'getuid', int)()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise PermissionError(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(folder)
    return folder


def _roots() -> Iterator[Path | None]:
    """The folders for kernels, the best first; None means next to the source."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(named)
    yield None
    user = Path(AppDirs(appname="shoal", appauthor=False).user_cache_dir)
    # An empty or relative XDG_CACHE_HOME counts as not set.
    yield user if user.is_absolute() else Path("~/.cache/shoal").expanduser()
    try:
        yield _temporary()
    except OSError:
        return


def _in(root: Path | None, file: str) -> Path:
    """The folder for the kernels of a file."""
    if root is None:
        return Path(file).parent / "__pycache__"
    return root / str(_CacheLocator.get_suitable_cache_subpath(file))


@cache
def _takes_files(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_PROBE)
            file.flush()
    except OSError:
        return False
    return True


@cache
def folders_for(file: str) -> tuple[tuple[str, ...], str | None]:
    """The folders to search for the kernels of a file, and the one for new kernels, if any."""
    looked = []
    for root in _roots():
        folder = _in(root, file)
        looked.append(str(folder))
        if _takes_files(folder):
            return tuple(looked), str(folder)
    return tuple(looked), None


class _Place(_CacheLocator):  # type: ignore[misc]
    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Place:
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        looked, target = folders_for(self._py_file)
        return looked[-1] if target is None else target

    def get_source_stamp(self) -> str:
        return _stamp()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Results(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel, not read at all if they belong to another state of the kernels.

    numba would first read the types they were compiled for, which may have moved to another module.
    """

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        super().__init__(folder, name, stamp)
        self._version: Any = (numba.__version__, stamp)


@cache
def _leave_linear_algebra_out() -> None:
    """Load numba's array support without scipy.linalg, which takes a third of a second to import.

    numba only checks whether it exists, and checks again when a kernel needs it.
    """
    from numba.np import linalg

    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look


class Kept(FunctionCache):  # type: ignore[misc]
    """The compiled code of one kernel."""

    _impl_class = _Results

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, _stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of the kernel for these types, or None.

        numba itself would first prepare everything for compiling, which takes longer.
        """
        _leave_linear_algebra_out()
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        for folder in folders_for(self._impl.locator._py_file)[0]:
            file = _Files(folder, self._impl.filename_base, _stamp())
            try:
                found = file.load(key)
            except OSError:
                continue
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a kernel; if that fails, as on a full disk, the next process compiles it."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return
