"""Where compiled kernels are kept: found again in every process, and never older than the code.

numba keeps what it compiled beside the source, or in the user's folder of caches. It asks only
whether the file of a kernel itself changed, not those of the kernels that it calls, and leaves a
folder alone that it cannot write to. Here a compiled kernel is for one state of all kernels. It is
looked for beside the code also where nothing can be written there, as in an image that was warmed
up when it was built. New ones go to the first of these folders that takes files:

1. the one that ``NUMBA_CACHE_DIR`` names;
2. the one beside the source;
3. the user's folder of caches (``XDG_CACHE_HOME``, ``~/.cache``, or as the system has it);
4. a folder for temporary files that belongs to the user alone.
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
    """What all kernels are like now."""
    found = hashlib.sha256()
    for file in sorted(_HERE.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def _temporary() -> Path:
    """A folder that nobody else can put files into: what is loaded from there is run."""
    folder = Path(tempfile.gettempdir()) / f"shoal-{getattr(os, 'getuid', int)()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise PermissionError(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(folder)
    return folder


def _roots() -> Iterator[Path | None]:
    """The folders to keep kernels in, the best first; None for beside the source."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(named)
    yield None
    user = Path(AppDirs(appname="shoal", appauthor=False).user_cache_dir)
    # An empty or relative XDG_CACHE_HOME counts as none.
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
    """The folders to look for the kernels of a file in, and the one that new ones go to, if any."""
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
    """The files of one kernel, not read at all where they are of another state of the kernels.

    numba would read whom they were compiled for first, which may have moved to another module.
    """

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        super().__init__(folder, name, stamp)
        self._version: Any = (numba.__version__, stamp)


@cache
def _leave_linear_algebra_out() -> None:
    """Load what numba has for arrays without scipy.linalg, a third of a second of imports.

    numba only looks whether it is there, and looks again where a kernel needs it.
    """
    from numba.np import linalg

    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look


class Kept(FunctionCache):  # type: ignore[misc]
    """What one kernel was compiled to."""

    _impl_class = _Results

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, _stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What the kernel was compiled to for these types, or None.

        numba would first load all that it has for compiling, which takes longer than the kernel.
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
        """Keep a kernel; where that fails, as on a full disk, the next process compiles it."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return
