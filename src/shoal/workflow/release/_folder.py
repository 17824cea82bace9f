"""Folders and files that appear complete or not at all, and leave nothing behind.

Files are first written in a workshop: a private folder next to their final place, with a lock that
its process holds. A process that is killed leaves its workshop behind. The next one that writes
into the same parent folder sees that nobody holds the lock, and removes the workshop with its
content.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from shoal.errors import ReleaseError
from shoal.table import FORMATS
from shoal.workflow._plan_parts import PAGE_FILES

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: The prefix of a workshop's name; sixteen random digits follow.
WORKSHOP = ".shoal-partial-"
#: The part of a folder that only its owner may read.
PRIVATE = "private"
_PRIVATE_FILES = {
    *("audit.json", "records", "records.parquet", "sampling.parquet"),
    *PAGE_FILES.values(),
}

_LOCK = "shoal.lock"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextlib.contextmanager
def complete_or_absent(
    target: Path, *, replace: bool, private: Path | None = None
) -> Iterator[Path]:
    """A new folder that is moved to ``target`` when the block ends without an error.

    Nobody else can enter it while it is being filled. It is flushed to disk and renamed atomically.
    From then on everyone may read it, except for its folder ``private``. With the argument
    ``private``, that folder is moved to a separate place before the rest appears.
    """
    with contextlib.ExitStack() as stack:
        partial = _begun(target, stack)
        apart = None if private is None else _begun(private, stack)
        yield partial
        if private is None or apart is None:
            _seal(partial)
            _put_in_place(partial, target, replace=replace)
            _flush(target.parent)
        else:
            shutil.move(partial / PRIVATE, apart / PRIVATE)
            _seal(partial)
            _seal(apart)
            _put_apart(partial, target, apart / PRIVATE, private, replace=replace)


def _begun(target: Path, stack: contextlib.ExitStack) -> Path:
    """An empty folder in a workshop next to its final place."""
    try:
        make_parents(target)
        partial = stack.enter_context(workshop(target.parent)) / "folder"
        partial.mkdir(mode=0o700)
    except OSError as cause:
        why = cause.strerror or "the system refuses it"
        raise ReleaseError(f"The folder '{target}' cannot be created: {why}.") from None
    return partial


@contextlib.contextmanager
def complete_files(folder: Path, *, private: bool = True) -> Iterator[Path]:
    """A new folder whose files are moved to ``folder`` when the block ends without an error.

    Private files can be read only by their owner. Other files get the mode that the user's settings
    give to new files, but only their owner may write to them.
    """
    with workshop(folder) as room:
        aside = room / "files"
        aside.mkdir(mode=0o700)
        yield aside
        for root, _, names in os.walk(aside, topdown=False):
            place = folder / Path(root).relative_to(aside)
            place.mkdir(mode=0o700 if private else 0o755, parents=True, exist_ok=True)
            for path in (Path(root, name) for name in sorted(names)):
                path.chmod(stat.S_IMODE(path.stat().st_mode) & (0o600 if private else 0o644))
                _flush(path)
                os.replace(path, place / path.name)
            _flush(place)


def write_private(path: Path, content: bytes | memoryview) -> None:
    """Write a file that only its owner can ever read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def make_parents(path: Path) -> None:
    """Create the parent folders of a path; only their owner may write to new ones."""
    folder = path.parent
    if not folder.is_dir() and folder != path:
        make_parents(folder)
        folder.mkdir(mode=0o755, exist_ok=True)


def _seal(folder: Path) -> None:
    """Set all file modes, whatever the umask, and flush everything to disk."""
    for root, _, names in os.walk(folder):
        is_private = PRIVATE in Path(root).relative_to(folder).parts[:1]
        for path in (Path(root, name) for name in names):
            path.chmod(0o600 if is_private else 0o644)
            _flush(path)
        Path(root).chmod(0o700 if is_private else 0o755)
        _flush(Path(root))


def _put_in_place(partial: Path, target: Path, *, replace: bool) -> None:
    if target.is_symlink():  # it was not there before, and must not be replaced
        raise ReleaseError(f"A link appeared at '{target}' in the meantime. Save again.")
    try:
        if replace and target.exists():
            _exchange(partial, target)  # the old folder is now in the workshop and gets removed
        else:
            os.rename(partial, target)
    except OSError as cause:
        if cause.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise ReleaseError(
                f"A file or folder appeared at '{target}' in the meantime. Save again."
            ) from None
        raise


def _put_apart(
    public: Path, target: Path, private: Path, private_target: Path, *, replace: bool
) -> None:
    """Put two halves in place so that a public half never exists without its private half.

    An old release is moved away first, its public half before its private one. An error or an
    interruption restores everything.
    """
    halves = [(public, target), (private, private_target)]

    def take_back() -> None:
        if not public.exists():
            return  # everything is in place
        for new, place in reversed(halves):
            if not new.exists():
                os.rename(place, new)
            if _old(new).exists():
                os.rename(_old(new), place)

    try:
        for new, place in halves:
            if replace and place.exists() and not place.is_symlink():
                os.rename(place, _old(new))
                _flush(place.parent)
        for new, place in reversed(halves):
            _put_in_place(new, place, replace=False)
            _flush(place.parent)
    except BaseException:
        _to_the_end(take_back)
        raise


def _old(new: Path) -> Path:
    """Where the old folder waits until the new one is in place; removed with the workshop."""
    return new.with_name(f"{new.name}.old")


def _exchange(new: Path, old: Path) -> None:
    """Replace the old folder with the new one, atomically if the system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        names = (os.fsencode(new), os.fsencode(old))
        if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            return
    aside = _old(new)
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except BaseException:
        with contextlib.suppress(OSError):  # the new one is already there
            os.rename(aside, old)
        raise


@contextlib.contextmanager
def workshop(parent: Path) -> Iterator[Path]:
    """A private folder inside ``parent`` that is removed when the block ends, however it ends."""
    if fcntl is None:  # without locks, leftovers cannot be told from folders in use
        with tempfile.TemporaryDirectory(prefix=WORKSHOP, dir=parent) as folder:
            yield Path(folder)
        return
    _clear_leftovers(parent)
    room, *held = _opened(parent)
    try:
        yield room
    finally:
        _to_the_end(lambda: _remove(room, held[0]))
        for descriptor in held:
            os.close(descriptor)


def _opened(parent: Path) -> tuple[Path, int, int]:
    """A new folder, its file descriptor, and that of its lock, which this process holds."""
    while True:
        workshop = parent / f"{WORKSHOP}{secrets.token_hex(8)}"
        workshop.mkdir(mode=0o700)
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, workshop, ignore_errors=True)
            try:
                at = _enter(workshop)
                stack.callback(os.close, at)
                lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at)
                stack.callback(os.close, lock)
            except FileNotFoundError:
                continue  # another process took it for a leftover before it was locked
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:  # otherwise another process removed it, too
                stack.pop_all()
                return workshop, at, lock


def _clear_leftovers(parent: Path) -> None:
    """Remove the workshops of this user whose process is gone and no longer holds the lock.

    A workshop is a real folder that belongs to this user, and nobody else could have put the lock
    into it. It is opened once, so that nothing else is removed if another folder or a link takes
    its name in the meantime.
    """
    for workshop in parent.glob(WORKSHOP + 16 * "[0-9a-f]"):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            at = _enter(workshop)
            stack.callback(os.close, at)
            if os.fstat(at).st_uid != os.geteuid():
                continue
            if not os.listdir(at):
                os.rmdir(workshop)  # its process was killed before it could lock it
                continue
            lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
            _remove(workshop, at)


def _enter(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _remove(workshop: Path, at: int) -> None:
    """Remove a workshop, its lock last, so that a later process can still find the rest."""
    for name in sorted(os.listdir(at), key=_LOCK.__eq__):
        if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(workshop)


def _to_the_end(action: Callable[[], None]) -> None:
    """Complete an action even if it is interrupted; raise the interruption afterwards."""
    try:
        action()
    except KeyboardInterrupt:
        _to_the_end(action)
        raise


def _flush(path: Path) -> None:
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_targets(
    out: str | os.PathLike[str], private_out: str | os.PathLike[str] | None, *, force: bool
) -> tuple[Path, Path | None]:
    """The folder of a release, and that of its private half if it is kept apart.

    A folder that holds something else raises ReleaseError.
    """
    target = Path(os.path.abspath(out))
    _check_target(target, force=force)
    if private_out is None:
        return target, None
    private = Path(os.path.abspath(private_out))
    one, other = target.resolve(), private.resolve()
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise ReleaseError(
            f"Of '{private}' and '{target}', one lies inside the other. Choose a separate folder "
            "for the private half."
        )
    _check_target(private, force=force, half=True)
    return target, private


def _check_target(target: Path, *, force: bool, half: bool = False) -> None:
    """Refuse a folder that holds something; with ``force``, anything except a release or its half.

    Also refuse a place to which no folder can be renamed: it would fail only after all the work.
    """
    ending = target.suffix.lower().removeprefix(".")
    if ending in FORMATS and not target.exists():
        raise ReleaseError(
            f"A release is a folder, but '{target.name}' looks like a file. Write "
            f"release.save('{target.stem}', format='{ending}'), or --out {target.stem} --format "
            f"{ending}."
        )
    if target.is_symlink():
        raise ReleaseError(f"'{target}' is a link. Pass the folder that it points to.")
    above = next((path for path in target.parents if os.path.lexists(path)), None)
    if above is not None and not above.is_dir():
        raise ReleaseError(
            f"'{above}' is not a folder, so it cannot contain '{target.name}'. Choose another "
            "folder for the release."
        )
    if not target.exists():
        return
    if not target.is_dir():
        raise ReleaseError(f"'{target}' is a file. Choose a folder for the release.")
    if os.path.ismount(target):
        raise ReleaseError(f"'{target}' is a mount point. Choose a folder inside it.")
    found = {path.name for path in target.iterdir()}
    known = _PRIVATE_FILES if half else {"public", "private"}
    is_release = (target / ("audit.json" if half else "public/release.json")).is_file()
    if _holds_current_folder(target) and (not found or is_release):
        raise ReleaseError(
            f"'{target}' is or contains the current folder. Choose a folder inside it."
        )
    if found and (found - known or not is_release):
        raise ReleaseError(f"'{target}' holds other files. Choose a new folder for the release.")
    if found and not force:
        raise ReleaseError(
            f"There is already a release at '{target}'. Choose another folder, or use --force "
            "(force=True) to replace it."
        )


def _holds_current_folder(target: Path) -> bool:
    try:
        return Path.cwd().resolve().is_relative_to(target.resolve())
    except OSError:  # the current folder is gone
        return False
