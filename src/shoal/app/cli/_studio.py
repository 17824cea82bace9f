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
    """Work in the browser, from a table to a verified and signed release.

    The studio runs on this machine only and needs no network. A project is a folder, and the
    command line can run the plan in it. If you pass a data file, the project is created next to it.

    Arguments
    ---------
    place FOLDER|DATA: A project folder or a data file (default: the current folder).

    Options
    -------
    port N: The port to listen on (default: a free one).
    no_browser --no-browser: Print the address and do not open a browser.
    """
    from shoal.app.studio import serve

    serve(place, port=port, browser=not no_browser, announce=_announce)


def _announce(address: Address, folder: Path) -> None:
    ui.say(
        f"The project is in {ui.printable(folder)}. Press Ctrl-C to stop the studio; nothing "
        "is lost."
    )
    ui.say("Open this address. It works only once:")
    print(f"  {address.entrance}", flush=True)
