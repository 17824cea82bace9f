"""How results look: consoles, tables, numbers and JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: The version of ``docs/schemas``: keys may be added to it, and a change of any is a new one.
SCHEMA = 1
_LIVE: list[Console] = []
_quiet = False


def console(*, stderr: bool = False) -> Console:
    """A console on the stream as it is now; column names are never read as markup."""
    from rich.console import Console

    if stderr and _LIVE:
        return _LIVE[-1]
    silent = _quiet and not stderr
    return Console(stderr=stderr, quiet=silent, markup=False, highlight=False, emoji=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Meanwhile only failures are told, and JSON is printed where it is asked for."""
    global _quiet
    _quiet = True
    try:
        yield
    finally:
        _quiet = False


@contextmanager
def live(shared: Console) -> Iterator[None]:
    """While something moves on stderr, all that is told there goes through its console."""
    _LIVE.append(shared)
    try:
        yield
    finally:
        _LIVE.remove(shared)


def printable(text: object) -> str:
    """Text that cannot steer the terminal: control characters are spelled out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in str(text)
    )


def listed(names: Iterable[object]) -> str:
    """Names in a row, safe to print; a dash for none."""
    return ", ".join(printable(name) for name in names) or "-"


def say(text: str = "", *, style: str | None = None) -> None:
    """A line of the result, wrapped at words."""
    from rich.text import Text

    show(Text(text, style=style or ""))


def heading(text: str) -> None:
    """A title above what follows."""
    out = console()
    out.print()
    out.print(text, style="bold")


def note(text: str, *, style: str = "dim") -> None:
    """A remark beside the result: on stderr, so that a pipe gets the result alone."""
    if not _quiet:
        tell(text, style=style)


def is_watched() -> bool:
    """Whether somebody sees how the work goes on: on a terminal, unless it is to be quiet."""
    return console(stderr=True).is_terminal and not _quiet


def tell(text: str, *, style: str | None = None) -> None:
    """A line on stderr: wrapped at words on a terminal, kept together in a log."""
    err = console(stderr=True)
    err.print(text, style=style, soft_wrap=not err.is_terminal)


def command_line(*words: str) -> None:
    """A command to run next, on one line so that it can be copied."""
    console().print(f"  {' '.join(words)}", style="bold cyan", soft_wrap=True)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
    whole: Sequence[int] = (0,),
) -> None:
    """A table that folds long cells and loses none; ``whole`` columns are not folded at spaces.

    A cell may be a text, a number, names in a list, or None.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_edge=False,
        header_style="bold",
    )
    for position, name in enumerate(head):
        made.add_column(
            name,
            justify="right" if position in numeric else "left",
            overflow="fold",
            no_wrap=position in numeric,
            min_width=min(20, 2 + len(name)) if position in whole else None,
        )
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else _in_a_cell(cell) for cell in row))
    show(made)


def _in_a_cell(value: object) -> str:
    """A dash for what is not there, a number for people, names in a row."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (tuple, list)):
        return listed(value)
    return "-" if value is None else printable(value)


def roles(roles: Mapping[str, Any]) -> None:
    """Which columns play which part."""
    table(("role", "columns"), ((role.replace("_", "-"), names) for role, names in roles.items()))


def show(thing: RenderableType) -> None:
    """Print a table or another rich thing as part of the result."""
    out = console()
    if out.is_terminal or out.quiet:
        out.print(thing)
        return
    with out.capture() as written:
        out.print(thing)
    for line in written.get().splitlines():  # rich fills lines up with blanks
        print(line.rstrip(), file=out.file)


def styled(text: object, style: str) -> RenderableType:
    """A cell with a colour."""
    from rich.text import Text

    return Text(printable(text), style=style)


def number(value: float) -> str:
    """A number for people: whole ones with separators, others with four digits."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else str(value)
    if 1e-9 <= abs(value) < 1e-4:  # in full, since one reads the noughts and not an exponent
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.4g}"


def percent(share: float) -> str:
    """A share for people; what is not nothing is never shown as nothing, nor all as all."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"


def count(amount: int, what: str) -> str:
    """A number of things, in the singular for one."""
    ending = "" if amount == 1 else "es" if what.endswith("s") else "s"
    return f"{amount:,} {what}{ending}"


def print_json(facts: Mapping[str, Any]) -> None:
    """The result as JSON and nothing else on stdout; what JSON cannot hold becomes null."""
    from shoal.workflow._assessment import jsonable

    ascii_only = "utf" not in (getattr(sys.stdout, "encoding", None) or "").lower()
    plain = {"schema": SCHEMA, **jsonable(facts)}
    print(json.dumps(plain, indent=2, ensure_ascii=ascii_only, allow_nan=False))
