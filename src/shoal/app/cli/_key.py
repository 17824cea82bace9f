"""``shoal key``: a key file, with which the pseudonyms of several releases agree."""

from __future__ import annotations

from pathlib import Path

from shoal.app.cli._options import AsJson, command
from shoal.app.cli.output import ui


@command("""
shoal key patients.key
""")
def key(path: Path, as_json: AsJson = False) -> None:
    """Draw a key and write it into a new file that only you can read.

    The steps 'pseudonymize' and 'shift_dates' take such a file as key_file. Releases made with one
    key file give equal values equal pseudonyms. Whoever has the file can undo them: keep it as
    safe as the original, and apart from every release. An existing file is never replaced.

    Arguments
    ---------
    path FILE: The file to make.
    """
    from shoal.masking import write_key_file

    made = write_key_file(path)
    if as_json:
        ui.print_json({"key_file": str(made)})
        return
    ui.say(f"A key was drawn and written to '{ui.printable(made)}', which only you can read.")
