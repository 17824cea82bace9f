"""Signing a release, and checking whether a certain person has signed it."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from shoal.errors import InputError, ReleaseError
from shoal.hints import check_path, helpful
from shoal.masking import Progress
from shoal.workflow.release._release_files import Place, read_plain
from shoal.workflow.release._signature import (
    KEY_KINDS,
    NAMESPACE,
    SIGNATURE_FILE,
    Passphrase,
    Signature,
    armored,
    kind_of,
    read_given,
    read_private_key,
    signed_with,
)

_LARGEST_SIGNATURE: Final = 1 << 16
_FIELD: Final = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
_OPTION: Final = re.compile(r'(?:^|,)(?P<name>[\w-]+)(?:="(?P<value>(?:[^"\\]|\\.)*)")?(?=,|$)')
_OPTIONS: Final = ("cert-authority", "namespaces", "valid-after", "valid-before", "expiry-time")
_MOMENT: Final = re.compile(r"(\d{8})(\d{4}(?:\d{2})?)?(Z?)")


@dataclass(frozen=True)
class Signer:
    """A key that may sign, and its name in the list of signers."""

    key: bytes
    name: str


@helpful
def sign(
    folder: str | os.PathLike[str],
    *,
    key: str | os.PathLike[str],
    passphrase: Passphrase = None,
    progress: Progress | None = None,
) -> str:
    """Sign a release with an SSH key, so that others can check who released it.

    The signature covers ``release.json``, which has the checksums of the data and of the report.
    It is written next to it as ``release.json.sig``, in the format of OpenSSH, and replaces an
    earlier one. A release that does not verify is not signed.

    Parameters
    ----------
    folder : path
        The release folder, or its public half.
    key : path
        The file of the private key: Ed25519, ECDSA on a NIST curve, or RSA of 2048 bits or more.
    passphrase : str or callable, optional
        The passphrase of the key, or a function that returns it if the key is encrypted.
    progress : callable, optional
        Called with the current activity and the share that is done.

    Returns
    -------
    str
        The fingerprint of the key, as ``ssh-keygen -l`` shows it.

    Raises
    ------
    InputError
        The key cannot be used.
    VerificationFailed
        The release does not verify, so it was not signed.
    """
    from shoal.workflow.release._verify import check_release

    check_path(folder, "sh.sign", "Save a release first, and pass its folder.")
    place = Place.of(Path(folder))
    private_key = read_private_key(key, passphrase)
    with contextlib.suppress(ReleaseError):  # the verification reports it
        place.check_plain()
        _clear_leftovers(place.public / SIGNATURE_FILE)
    if progress:
        progress("Checking the release", 0.0)
    check_release(place).raise_if_failed()
    signature = signed_with(private_key, read_plain(place.public / "release.json"))
    _replace(place.public / SIGNATURE_FILE, armored(signature))
    return signature.fingerprint


def _clear_leftovers(path: Path) -> None:
    """Remove what a killed run has left, since a release may not contain other files."""
    for left in path.parent.glob(f".{path.name}-{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):
            left.unlink()


def _replace(path: Path, content: bytes) -> None:
    """Put a file in place atomically."""
    try:
        partial = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.chmod(0o644)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    except OSError as cause:
        why = cause.strerror or "the system refuses it"
        raise ReleaseError(f"The signature cannot be written to '{path.parent}': {why}.") from None


def check_signature(
    place: Place, signers: Sequence[Signer] | None
) -> tuple[tuple[bool | None, str], str | None]:
    """The outcome of the check, and the fingerprint of the signer if the signature is good."""
    if not os.path.lexists(place.public / SIGNATURE_FILE):
        return (False, "the release is not signed"), None
    found = Signature.parse(read_plain(place.public / SIGNATURE_FILE, largest=_LARGEST_SIGNATURE))
    if not found.covers(read_plain(place.public / "release.json")):
        return (False, "the signature does not match this release.json"), None
    by = f"signed by {found.fingerprint}"
    if signers is None:
        return (None, f"{by} (not checked against a signer that you named)"), found.fingerprint
    name = next((signer.name for signer in signers if signer.key == found.key), None)
    if name is None:
        return (False, f"{by}, which is not a key of the signer that you named"), None
    return (True, f"{by} ({name})" if name else by), found.fingerprint


def read_signers(given: str | os.PathLike[str]) -> list[Signer]:
    """The keys of a public key file, an ``allowed_signers`` or ``authorized_keys`` file, or a line.

    Lines for another namespace, for another time or for a certificate authority are ignored.
    """
    read = str(given).encode() if _is_line(given) else read_given(Path(given), "file of a signer")
    text = read.decode("utf-8", errors="replace")
    if "PRIVATE KEY" in text:
        raise InputError(
            f"'{given}' is a private key. Pass the public key, whose file ends in .pub."
        )
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    signers = [signer for signer in map(_signer, lines) if signer is not None]
    if not signers:
        shown = "The given line" if _is_line(given) else f"'{given}'"
        raise InputError(
            f"{shown} has no key that may sign a release today. Pass a public key (.pub), or a "
            f"file of allowed signers with keys for the namespace {NAMESPACE}."
        )
    return signers


def _is_line(given: object) -> bool:
    return isinstance(given, str) and any(f"{kind} AAAA" in given for kind in KEY_KINDS)


def _signer(line: str) -> Signer | None:
    """The signer of a line: the key may follow names and options, and precede a comment."""
    fields = _FIELD.findall(line)
    at = next((i for i, field in enumerate(fields[:-1]) if field in KEY_KINDS), None)
    if at is None or at > 2:
        return None
    try:
        key = base64.b64decode(fields[at + 1], validate=True)
    except ValueError:
        return None
    options = {name: value for field in fields[:at] for name, value in _options(field)}
    if kind_of(key) != fields[at] or not _allowed(options):
        return None
    names = [field for field in fields[:at] if not _options(field)] or fields[at + 2 :]
    return Signer(key, " ".join(names).strip('"'))


def _options(field: str) -> list[tuple[str, str]]:
    found = [(one["name"].lower(), one["value"] or "") for one in _OPTION.finditer(field)]
    return [(name, value) for name, value in found if name in _OPTIONS]


def _allowed(options: Mapping[str, str]) -> bool:
    """Whether the options of a line allow its key to sign a release now."""
    if "cert-authority" in options:
        return False
    if "namespaces" in options and not _listed(NAMESPACE, options["namespaces"].split(",")):
        return False
    now = datetime.now(UTC)
    after = _moment(options.get("valid-after"))
    before = [_moment(options.get(name)) for name in ("valid-before", "expiry-time")]
    return (after is None or after <= now) and all(end is None or now < end for end in before)


def _listed(name: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns matches the name, as OpenSSH reads it: ``!`` excludes."""
    if any(one.startswith("!") and fnmatchcase(name, one[1:]) for one in patterns):
        return False
    return any(fnmatchcase(name, one) for one in patterns)


def _moment(text: str | None) -> datetime | None:
    """A time as OpenSSH writes it, in local time unless it ends in Z."""
    if text is None:
        return None
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise InputError(
            "The list of signers has a time that is not written as YYYYMMDD[HHMM[SS]]. Correct it."
        )
    day, hours, zone = found[1], (found[2] or "").ljust(6, "0"), found[3]
    try:
        moment = datetime.strptime(day + hours, "%Y%m%d%H%M%S")
    except ValueError:
        raise InputError(
            "The list of signers has a time that does not exist in the calendar. Correct it."
        ) from None
    return moment.replace(tzinfo=UTC) if zone else moment.astimezone()
