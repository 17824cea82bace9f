"""``shoal verify``: check a release again, from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.app.cli._options import AsJson, Reading, ReleaseFolder, command, is_database
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.workflow import Verification

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


@command("""
shoal verify release
shoal verify release --original people.csv
shoal verify release --signer steward.pub
shoal verify release --json
""")
def verify(
    folder: ReleaseFolder,
    reading: Reading,
    original: str | None = None,
    signer: str | None = None,
    as_json: AsJson = False,
) -> None:
    """Check a release again, from its files alone, by other code than made it.

    Every claim and measured value is recomputed, and one changed byte of the data is a failure.
    Nothing outside of the folder is opened, so it may come from anybody. The exit code is 0 if
    everything holds, 1 if something does not, 2 if there is no release.

    Options
    -------
    original DATA: The table that was released, for the claims that compare with it; the private
        half is needed too.
    signer KEY: Who must have signed: a public key file of SSH, a file of allowed signers, or the
        line of a key.
    """
    from shoal.workflow import verify

    with Working("Reading the release") as working:
        before = None if original is None else reading.read(original)
        working("Checking the release", 0.2)
        source = None if original is None or is_database(original) else original
        found = verify(folder, original=before, source=source, signer=signer)
    if as_json:
        ui.print_json({"release": folder, **found.to_dict()})
    else:
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
    """What was found, and what nobody could have found with what was given."""
    place = ui.printable(folder)
    failed = sum(check.status == "failed" for check in found.checks)
    skipped = [check for check in found.claims if check.status == "skipped"]
    checked = (
        f"{len(found.claims) - len(skipped)} of {ui.count(len(found.claims), 'claim')} checked"
    )
    ui.say()
    if failed:
        told = checked if found.claims else "no claim was checked"
        ui.say(
            f"{place} does not hold what it claims: {ui.count(failed, 'check')} failed; {told}.",
            style="bold red",
        )
    elif not found.claims:
        ui.say(f"{place} claims nothing: 0 claims checked, files as recorded.", style="bold yellow")
    elif skipped:
        ui.say(f"{place} holds what could be checked: {checked}.", style="bold yellow")
    else:
        ui.say(f"{place} holds what it claims: {checked}.", style="bold green")
    if skipped:
        names = ui.listed(check.name.removeprefix("claim ") for check in skipped)
        ui.say(f"Not checked: {names}. The details above say what that takes.", style="yellow")
    if found.signature == "skipped":
        ui.say(
            f"It is signed by {found.signed_by}; give the key of the signer that you expect as "
            "--signer to learn whether it is theirs.",
            style="yellow",
        )
    if found.authenticity == "skipped" and found.signature != "passed":
        ui.say(
            "That release.json itself is authentic and no claim was removed or weakened "
            "cannot be checked without the private half or the key of its signer.",
            style="yellow",
        )
