"""The file of a key: 64 hexadecimal digits that only their owner can read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import InputError
from shoal.parameters import Text
from shoal.randomness import SecretStream

if TYPE_CHECKING:
    from shoal.masking._base import StepLog

_DIGITS: Final = 64
#: A key that was drawn has more different bytes, but for one draw in 10**14.
_FEWEST_BYTES: Final = 12


@dataclass(frozen=True)
class KeyFile(Text):
    """The path of a key file; a plan holds the path, never the key."""

    words = "the path of a key file"
    #: A path names folders of a machine.
    private = True

    def relocate(self, value: Any, folder: Path) -> Any:
        """A path that was relative to a plan's folder, as this process finds it."""
        return os.fspath(folder / value) if isinstance(value, str) else value


def write_key_file(path: str | os.PathLike[str]) -> Path:
    """Draw a key and write it into a new file that only its owner can read.

    Releases that are made with one key file give equal values equal pseudonyms.

    Parameters
    ----------
    path : path
        The file to make. An existing file is never replaced, since its releases need it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_key_file(f"{folder}/patients.key").name
    'patients.key'
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(
            f"'{path}' already exists. A key is never replaced, since the releases that were made "
            "with it need it; choose another name."
        ) from None
    except (OSError, ValueError):
        raise InputError(f"The key file '{path}' cannot be written there.") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(SecretStream.from_state(None).key_hex + "\n")
    return Path(path)


def read_key_file(path: str) -> SecretStream:
    """The stream of a key file; InputError for a file that others can read or that is no key."""
    text = _content(path).strip()
    try:
        key = bytes.fromhex(text) if len(text) == _DIGITS else b""
    except ValueError:
        key = b""
    if len(key) != _DIGITS // 2:
        raise InputError(
            f"The key file '{path}' must hold {_DIGITS} hexadecimal digits and nothing else; its "
            "content is not shown. 'shoal key FILE' makes one."
        )
    if len(set(key)) < _FEWEST_BYTES:
        raise InputError(
            f"The key in '{path}' was not drawn at random: its bytes repeat. Whoever guesses it "
            "can undo every pseudonym. 'shoal key FILE' draws one."
        )
    return SecretStream(key, origin="key")


def _content(path: str) -> str:
    try:
        # a pipe that nobody writes to would be waited for
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"The key file '{path}' is not a file.")
            if os.name == "posix" and found.st_mode & 0o077:
                raise InputError(
                    f"Others can read or change the key file '{path}' (mode "
                    f"{stat.S_IMODE(found.st_mode):04o}). Give it the mode 0600: chmod 600."
                )
            # what is longer is no key, and may be anything
            return file.read(4 * _DIGITS).decode("ascii", errors="replace")
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"There is no key file at '{path}'; 'shoal key FILE' makes one.") from None
    except (OSError, ValueError):
        raise InputError(f"The key file at '{path}' cannot be read.") from None


def stream_of_file(path: str, log: StepLog) -> SecretStream:
    """The stream of a key file for a step, whose log says that other releases may agree with it."""
    stream = read_key_file(path)
    log.private |= {"key_file": fingerprint_of(stream), "randomness": stream.origin}
    log.public["lasting"] = True
    return stream


def fingerprint_of(stream: SecretStream) -> str:
    """What tells in the private half which releases were made with one key, and not the key."""
    return stream.derive("fingerprint of a key file").key_hex[:16]
