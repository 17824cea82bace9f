"""Folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from shoal.errors import ReleaseError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextlib.contextmanager
def complete_or_absent(target: Path, *, replace: bool) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its place when the block ends without an error.

    The folder is private while it is being filled, flushed to disk, and renamed in one step of
    the file system. What a killed process left behind is cleared away by the next one.
    """
    token = secrets.token_hex(8)
    partial = target.parent / f".{target.name}.partial-{token}"
    lock = target.parent / f".{target.name}.lock-{token}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(target)
        descriptor = _hold_lock(lock)
    except OSError as cause:
        why = cause.strerror or "the system refuses it"
        raise ReleaseError(f"A folder cannot be made at '{target}': {why}.") from None
    try:
        partial.mkdir(mode=0o700)
        yield partial
        _flush_tree(partial)
        partial.chmod(0o755)
        _put_in_place(partial, target, replace=replace)
        _flush(target.parent)
    finally:
        if partial.is_symlink():
            partial.unlink()  # a link stood where the folder now is; what it led to stays
        elif partial.exists():
            shutil.rmtree(partial)
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _put_in_place(partial: Path, target: Path, *, replace: bool) -> None:
    if target.is_symlink():  # it was none before the work, and must not be swapped away
        raise ReleaseError(f"A link appeared at '{target}' meanwhile.")
    try:
        if replace and target.exists():
            _exchange(partial, target)  # the old folder is now ``partial`` and gets removed
        else:
            os.rename(partial, target)
    except OSError as cause:
        if cause.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise ReleaseError(f"Something appeared at '{target}' meanwhile.") from None
        raise


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders; in one step where the system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        names = (os.fsencode(new), os.fsencode(old))
        if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            return
    aside = new.with_name(new.name + ".old")
    os.rename(old, aside)
    os.rename(new, old)
    os.rename(aside, new)


def _hold_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _clear_leftovers(target: Path) -> None:
    """Remove partial folders whose process is gone: it no longer holds the lock."""
    try:
        import fcntl
    except ImportError:
        return
    for lock in target.parent.glob(f".{glob.escape(target.name)}.lock-*"):
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # another run is at work there
        else:
            shutil.rmtree(_partial_of(lock), ignore_errors=True)
            lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _partial_of(lock: Path) -> Path:
    before, _, token = lock.name.rpartition(".lock-")
    return lock.with_name(f"{before}.partial-{token}")


def _flush_tree(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _flush(Path(root) / name)
        _flush(Path(root))


def _flush(path: Path) -> None:
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
