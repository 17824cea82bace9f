"""Signatures of releases in the format of OpenSSH, which ``ssh-keygen -Y`` can make and read.

A signature is next to ``release.json`` and covers it. Since ``release.json`` has the checksums of
the data and of the report, the signature covers the whole public half. The format is SSHSIG, as
described in the file PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.errors import InputError, ReleaseError

#: The purpose of a signature: one that was made for another purpose is not accepted.
NAMESPACE: Final = "shoal-release"
SIGNATURE_FILE: Final = "release.json.sig"

_MAGIC: Final = b"SSHSIG"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LARGEST_GIVEN: Final = 1 << 20
_SMALLEST_RSA: Final = 2048
_DIGESTS: Final = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}
#: The signature algorithms of each kind of key; none of them depends on SHA-1.
_ALGORITHMS: Final = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
    **{f"ecdsa-sha2-nistp{n}": (f"ecdsa-sha2-nistp{n}",) for n in (256, 384, 521)},
}
KEY_KINDS: Final = tuple(_ALGORITHMS)

#: A passphrase, or a function that asks for it if it is needed.
Passphrase = str | Callable[[], str] | None


@dataclass(frozen=True)
class Signature:
    """A signature as its file has it: the public key, and what is needed to check it."""

    key: bytes
    digest: str
    algorithm: str
    content: bytes

    @classmethod
    def parse(cls, text: bytes) -> Signature:
        """The signature in an armored text; ReleaseError if it is not a signature of a release."""
        try:
            fields = _Fields(_unarmored(text))
            if fields.take(len(_MAGIC)) != _MAGIC or fields.number() != 1:
                raise ValueError
            key, namespace, _, digest = (fields.string() for _ in range(4))
            signed = _Fields(fields.string())
            algorithm, content = signed.string(), signed.string()
            if fields.left or signed.left:
                raise ValueError
            found = cls(key, digest.decode("ascii"), algorithm.decode("ascii"), content)
        except (ValueError, struct.error):
            raise ReleaseError("the signature is damaged, or not an SSH signature") from None
        if namespace != NAMESPACE.encode():
            raise ReleaseError(f"the signature was not made for {NAMESPACE}")
        return found

    def covers(self, message: bytes) -> bool:
        """Whether the key made this signature of the message."""
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

        if self.digest not in _DIGESTS or self.algorithm not in _ALGORITHMS.get(self.kind, ()):
            raise ReleaseError("the signature uses a kind of key that Shoal cannot check")
        try:
            key = _public_key(self.key)
            check_with(key, self.algorithm, self.content, signed_blob(message, self.digest))
        except (InvalidSignature, ValueError, UnsupportedAlgorithm, struct.error):
            return False
        return True

    @property
    def kind(self) -> str:
        """The kind of the key."""
        return kind_of(self.key)

    @property
    def fingerprint(self) -> str:
        """The key as ``ssh-keygen -l`` shows it."""
        digest = base64.b64encode(hashlib.sha256(self.key).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"


def signed_with(key: Any, message: bytes) -> Signature:
    """The signature of a message by a private key."""
    from cryptography.hazmat.primitives import serialization

    encodings = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    kind, _, rest = key.public_key().public_bytes(*encodings).partition(b" ")
    algorithm = _ALGORITHMS[kind.decode()][0]
    content = _raw_signature(key, algorithm, signed_blob(message, "sha512"))
    return Signature(base64.b64decode(rest), "sha512", algorithm, content)


def armored(signature: Signature) -> bytes:
    """The text of a signature, as ``ssh-keygen -Y sign`` writes it."""
    signed = _packed(signature.algorithm.encode(), signature.content)
    fields = _packed(signature.key, NAMESPACE.encode(), b"", signature.digest.encode(), signed)
    text = base64.b64encode(_MAGIC + struct.pack(">I", 1) + fields).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def signed_blob(message: bytes, digest: str) -> bytes:
    """What is signed: not the message itself, but its hash and the purpose of the signature."""
    hashed = _DIGESTS[digest](message).digest()
    return _MAGIC + _packed(NAMESPACE.encode(), b"", digest.encode(), hashed)


def kind_of(key: bytes) -> str:
    """The kind of a public key, from its first field."""
    try:
        return _Fields(key).string().decode("ascii")
    except (ValueError, struct.error):
        return ""


def read_private_key(path: str | os.PathLike[str], passphrase: Passphrase) -> Any:
    """Read a private key that can sign; InputError says what is wrong.

    No part of the key, and nothing that a library says about it, gets into an error.
    """
    content = read_given(Path(path), "key file")
    if content.startswith(tuple(kind.encode() for kind in KEY_KINDS)):
        raise InputError(
            f"'{path}' is a public key. Sign with the private key, whose file has no .pub."
        )
    key = _loaded(content, None, path)
    if key is None:
        given = passphrase() if callable(passphrase) else passphrase
        if given is None:
            raise InputError(
                f"The key '{path}' is encrypted. Pass its passphrase (passphrase=, or "
                "--passphrase-file on the command line)."
            )
        key = _loaded(content, given.encode(), path)
    return _checked(key, path)


def read_given(path: Path, called: str) -> bytes:
    """The content of a file that the caller named; InputError says why it cannot be read."""
    with contextlib.suppress(RuntimeError):  # the home folder is unknown
        path = path.expanduser()
    try:
        if not path.is_file():
            raise InputError(f"There is no {called} '{path}'.")
        with path.open("rb") as file:
            content = file.read(_LARGEST_GIVEN + 1)
    except (OSError, ValueError) as cause:
        if isinstance(cause, InputError):
            raise
        why = getattr(cause, "strerror", None) or "its name is not a file name"
        raise InputError(f"The {called} '{path}' cannot be read: {why}.") from None
    if len(content) > _LARGEST_GIVEN:
        raise InputError(f"The {called} '{path}' is too large to be one. Pass another file.")
    return content


def _loaded(content: bytes, password: bytes | None, path: object) -> Any:
    """The key, or None if it is encrypted and no passphrase is given."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    ssh = b"BEGIN OPENSSH PRIVATE KEY" in content
    load = serialization.load_ssh_private_key if ssh else serialization.load_pem_private_key
    try:
        return load(content, password)
    except UnsupportedAlgorithm:
        why = "the kind of key, or its encryption, is not supported"
    except (ValueError, TypeError) as cause:
        if isinstance(cause, TypeError) and password is None:
            return None  # what both readers raise for an encrypted key
        why = "it is damaged, or not an SSH private key"
        why = why if password is None else "the passphrase does not open it, or it is damaged"
    raise InputError(f"The key '{path}' cannot be read: {why}.")


def _checked(key: Any, path: object) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _SMALLEST_RSA:
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(
        key.curve, (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
    ):
        return key
    raise InputError(
        f"The key '{path}' cannot sign a release. Use an Ed25519 key, an ECDSA key on a NIST "
        f"curve, or an RSA key of at least {_SMALLEST_RSA} bits."
    )


def _public_key(blob: bytes) -> Any:
    from cryptography.hazmat.primitives import serialization

    line = kind_of(blob).encode() + b" " + base64.b64encode(blob)
    key: Any = serialization.load_ssh_public_key(line)
    if getattr(key, "key_size", _SMALLEST_RSA) < _SMALLEST_RSA and kind_of(blob) == "ssh-rsa":
        raise ValueError
    return key


def _raw_signature(key: Any, algorithm: str, blob: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    if algorithm == "ssh-ed25519":
        return bytes(key.sign(blob))
    if algorithm.startswith("rsa"):
        return bytes(key.sign(blob, padding.PKCS1v15(), _hash_of(algorithm)))
    pair = decode_dss_signature(key.sign(blob, ec.ECDSA(_hash_of(algorithm))))
    return _packed(*(number.to_bytes(number.bit_length() // 8 + 1, "big") for number in pair))


def check_with(key: Any, algorithm: str, content: bytes, blob: bytes) -> None:
    """Raise InvalidSignature, or ValueError for malformed content."""
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if algorithm == "ssh-ed25519":
        key.verify(content, blob)
    elif algorithm.startswith("rsa"):
        key.verify(content, blob, padding.PKCS1v15(), _hash_of(algorithm))
    else:
        fields = _Fields(content)
        pair = [int.from_bytes(fields.string(), "big", signed=True) for _ in range(2)]
        if fields.left or min(pair) < 1:
            raise ValueError
        key.verify(encode_dss_signature(*pair), blob, ec.ECDSA(_hash_of(algorithm)))


def _hash_of(algorithm: str) -> Any:
    from cryptography.hazmat.primitives import hashes

    if algorithm.endswith("256"):
        return hashes.SHA256()
    return hashes.SHA384() if algorithm.endswith("384") else hashes.SHA512()


def _unarmored(text: bytes) -> bytes:
    found = re.fullmatch(rf"\s*{_BEGIN}\s(.*?){_END}\s*", text.decode("ascii"), re.DOTALL)
    if found is None:
        raise ValueError
    return base64.b64decode("".join(found[1].split()), validate=True)


def _packed(*fields: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(field)) + field for field in fields)


class _Fields:
    """Reads the fields of SSH's wire format one after the other."""

    def __init__(self, content: bytes) -> None:
        self.left = content

    def take(self, length: int) -> bytes:
        if length > len(self.left):
            raise ValueError
        taken, self.left = self.left[:length], self.left[length:]
        return taken

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def string(self) -> bytes:
        return self.take(self.number())
