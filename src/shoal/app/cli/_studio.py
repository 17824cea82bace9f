"""``shoal studio``: the whole job in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.app.cli._options import command
from shoal.app.cli.output import ui

if TYPE_CHECKING:
    from shoal.app.studio import Address


@command("""
shoal studio
shoal studio people.csv
shoal studio projects/survey --no-browser --port 8765
""")
def studio(
    place: Annotated[Path, typer.Argument()] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, show_default=False)] = 0,
    no_browser: bool = False,
) -> None:
    """Work in the browser: from a table to a release that is verified and signed.

    It runs on this machine alone and needs no network. A project is a folder: the plan in it is the
    one that the command line runs. Given a file of data, the project is made beside it.

    Arguments
    ---------
    place FOLDER|DATA: The folder of a project, or a file of data; this folder without it.

    Options
    -------
    port N: The port to listen to; without it, one that is free.
    no_browser --no-browser: Print the address, and open nothing.
    """
    from shoal.app.studio import serve

    serve(place, port=port, browser=not no_browser, told=_tell)


def _tell(address: Address, folder: Path) -> None:
    ui.say(f"The project is in {ui.printable(folder)}. Ctrl-C ends the studio; nothing is lost.")
    ui.say("Open this address; it works once:")
    print(f"  {address.entrance}", flush=True)
