"""``shoal sign`` and ``shoal verify``: who made a release, and whether its claims hold."""

from __future__ import annotations

import getpass
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.app.cli._options import AsJson, Engine, Reading, ReleaseFolder, command, is_database
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.workflow import Verification

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


@command("""
shoal verify release
shoal verify release --original people.csv
shoal verify release --signer steward.pub
shoal verify release --private kept --json
""")
def verify(
    folder: ReleaseFolder,
    reading: Reading,
    original: str | None = None,
    signer: str | None = None,
    private: Path | None = None,
    engine: Engine = "auto",
    memory_limit: str | None = None,
    as_json: AsJson = False,
) -> None:
    """Check a release from its files alone, with code that is independent of the masking.

    Every claim and measured value is recomputed, and a single changed byte in the data is a
    failure. Nothing outside the folder is opened, so it is safe to check a release from anyone.
    The exit code is 0 if everything holds, 1 if something does not, and 2 if there is no release.

    Options
    -------
    original DATA: The original table, for claims that compare with it. This also needs the private
        half.
    signer KEY: Who must have signed: an SSH public key file, an allowed-signers file, or a key as
        one line.
    private DIR: The private half, if --private-out stored it elsewhere.
    engine ENGINE: The engine that checks a release in parts: duckdb (default) or spark.
    memory_limit SIZE: The memory that the run may use, such as 2GB. DuckDB gets a quarter of it.
    """
    from shoal.engines import is_in_parts, verify, verifying_engine
    from shoal.workflow import EngineSettings, recorded_reading

    in_parts = is_in_parts(folder)
    if in_parts and original is not None and reading.words():
        raise InputError(
            "An engine reads the original of a release in parts, and detects by itself how. "
            f"Leave out {reading.words()[0]}."
        )
    with Working("Reading the release") as working:
        before = None
        if original is not None and not in_parts:
            before = reading.read(original, known=recorded_reading(folder, private))
        working("Checking the release", 0.2)
        source = None if original is None or is_database(original) else original
        found = verify(
            folder,
            original=before,
            source=source,
            signer=signer,
            private=private,
            engine=engine,
            settings=EngineSettings(memory_limit=memory_limit),
        )
    chosen, why = verifying_engine(folder, engine)
    if as_json:
        facts = {"engine": {"name": chosen, "why": why}}
        ui.print_json({"release": folder, **found.to_dict(), **facts})
    else:
        ui.note(f"Engine: {chosen}, since {why}.")
        show_checks(found)
        _conclude(found, folder)
    if not found.holds:
        raise typer.Exit(1)


def show_checks(found: Verification) -> None:
    """Every check with its outcome."""
    ui.heading("Checks")
    ui.table(
        ("check", "outcome", "detail"),
        (
            (check.name, ui.styled(check.status, _STYLES[check.status]), check.detail)
            for check in found.checks
        ),
    )


def _conclude(found: Verification, folder: Path) -> None:
    """The outcome, and what could not be checked."""
    place = ui.printable(folder)
    failed = sum(check.status == "failed" for check in found.checks)
    skipped = [check for check in found.claims if check.status == "skipped"]
    checked = (
        f"{len(found.claims) - len(skipped)} of {ui.count(len(found.claims), 'claim')} checked"
    )
    ui.say()
    if failed:
        extent = checked if found.claims else "no claim was checked"
        ui.say(
            f"{place} does not hold what it claims: {ui.count(failed, 'check')} failed, {extent}.",
            style="bold red",
        )
    elif not found.claims:
        ui.say(
            f"{place} makes no claims: 0 claims checked. Its files are as recorded.",
            style="bold yellow",
        )
    elif skipped:
        ui.say(f"{place} holds as far as it could be checked: {checked}.", style="bold yellow")
    else:
        ui.say(f"{place} holds what it claims: {checked}.", style="bold green")
    if skipped:
        names = ui.listed(check.name.removeprefix("claim ") for check in skipped)
        ui.say(f"Not checked: {names}. The details above explain what is needed.", style="yellow")
    if found.signature == "skipped":
        ui.say(
            f"It is signed by {found.signed_by}. To check whose key that is, pass the key of the "
            "signer you expect as --signer.",
            style="yellow",
        )
    if found.authenticity == "skipped" and found.signature != "passed":
        ui.say(
            "Without the private half or the signer's key, nobody can check that release.json is "
            "authentic and that no claim was removed or weakened.",
            style="yellow",
        )


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
    """Sign a release with an SSH key so that others can check who released it.

    The signature is stored next to release.json and covers the data and the report through their
    checksums. A release that fails verification is not signed, and the exit code is 1.

    Options
    -------
    key FILE: The private key: Ed25519, ECDSA or RSA, as made by ssh-keygen.
    passphrase_file FILE: A file with the key's passphrase in its first line (default: ask on the
        terminal).
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
            f"The key '{key}' is encrypted, and there is no terminal to ask for its passphrase. "
            "Use --passphrase-file."
        )
    return getpass.getpass(f"Passphrase for {ui.printable(key)}: ")


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(1 << 12).rstrip("\r\n")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text in UTF-8"
        raise InputError(f"The passphrase file '{path}' cannot be read: {why}.") from None
