"""The command line: parse, call one workflow function, show."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from shoal.app.cli._assess import assess
from shoal.app.cli._demo import demo
from shoal.app.cli._hierarchy import hierarchy
from shoal.app.cli._init import init
from shoal.app.cli._key import key
from shoal.app.cli._methods import methods
from shoal.app.cli._protect import protect
from shoal.app.cli._roles import roles
from shoal.app.cli._studio import studio
from shoal.app.cli._study import study
from shoal.app.cli._tune import tune
from shoal.app.cli._verify import sign, verify
from shoal.app.cli._warm import warm
from shoal.app.cli.output._errors import STOPPING, Command, Group

__all__ = ["app", "main"]

_EXAMPLES = """
# the whole job on a small shipped table
shoal demo

# the same on your own table
shoal roles people.csv
shoal init people.csv --out plan.toml
shoal assess people.csv --plan plan.toml
shoal protect people.csv --plan plan.toml --out release
shoal verify release --original people.csv
"""


app = typer.Typer(
    name="shoal",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_WORK = (demo, roles, init, hierarchy, key, assess, protect, sign, verify)
for command in (*_WORK, studio, tune, methods, study, warm):
    app.command(cls=Command, help=command.__doc__, epilog=vars(command)["examples"])(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from shoal import __version__

        print(f"shoal {__version__}")
        raise typer.Exit


@app.callback(
    help="Hide every record of a table in a crowd, keep the table useful, and measure how well "
    "both worked.\n\n"
    "Exit codes: 0 done; 1 a requirement or a claim does not hold; 2 the input or the call is "
    "wrong; 130 stopped by ctrl-C, 143 by SIGTERM, 129 by SIGHUP."
)
def shoal(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="SHOAL_DEBUG",
            help="Show tracebacks and library warnings. They may contain values from the data.",
        ),
    ] = False,
) -> None:
    """The options that every command has."""


#: How many new objects the search for cycles waits for: imports alone make a hundred thousand.
_OBJECTS = 200_000


def main() -> None:
    """The program ``shoal``."""
    gc.set_threshold(_OBJECTS)
    STOPPING.listen()
    try:
        app(prog_name="shoal")
    except KeyboardInterrupt:  # before or after the command
        sys.exit(STOPPING.code())
    finally:
        STOPPING.rest()
