"""``shoal sign``: say by an SSH key whose release it is."""

from __future__ import annotations

import getpass
import sys
from contextlib import ExitStack
from pathlib import Path

from shoal.app.cli._options import AsJson, ReleaseFolder, command
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError


@command("""
shoal sign release --key ~/.ssh/id_ed25519
shoal verify release --signer ~/.ssh/id_ed25519.pub
""")
def sign(
    folder: ReleaseFolder,
    key: Path,
    passphrase_file: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Sign a release with an SSH key, so that others can check who released it.

    The signature goes beside release.json and covers the data and the report through their
    checksums. A release that does not verify is not signed: then the exit code is 1.

    Options
    -------
    key FILE: The private key: Ed25519, ECDSA or RSA, as ssh-keygen makes them.
    passphrase_file FILE: The file whose first line is the passphrase of the key; asked for on the
        terminal if not given.
    """
    from shoal.workflow import sign

    def passphrase() -> str:
        return _asked(key) if passphrase_file is None else _first_line(passphrase_file)

    with ExitStack() as shown:

        def progress(label: str, share: float) -> None:
            shown.enter_context(Working(label))  # not before the passphrase was asked for

        signer = sign(folder, key=key, passphrase=passphrase, progress=progress)
    if as_json:
        ui.print_json({"release": folder, "signed_by": signer})
    else:
        ui.say(f"{ui.printable(folder)} is signed by {signer}.", style="bold green")


def _asked(key: Path) -> str:
    if not _has_terminal():
        raise InputError(
            f"The key '{key}' is encrypted, and there is no terminal to ask for its passphrase; "
            "give --passphrase-file."
        )
    return getpass.getpass(f"Passphrase of {ui.printable(key)}: ")


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(1 << 12).rstrip("\r\n")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text in UTF-8"
        raise InputError(f"The passphrase file '{path}' cannot be read: {why}.") from None
