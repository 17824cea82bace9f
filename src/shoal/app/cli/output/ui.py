"""How results look: consoles, tables, numbers and JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from shoal.notebook import percent as percent
from shoal.notebook import printable as printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_GAP: Final = 3  # between two columns of a table
_LONGEST_WORD: Final = 12  # of a head or a text that is not folded

#: The version of ``docs/schemas``: keys may be added; any other change needs a new version.
SCHEMA = 1
_LIVE: list[Console] = []
_quiet = False


def console(*, stderr: bool = False) -> Console:
    """A console on the current stream; column names are never read as markup."""
    from rich.console import Console

    if stderr and _LIVE:
        return _LIVE[-1]
    silent = _quiet and not stderr
    return Console(stderr=stderr, quiet=silent, markup=False, highlight=False, emoji=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block, print only failures, and JSON if requested."""
    global _quiet
    _quiet = True
    try:
        yield
    finally:
        _quiet = False


@contextmanager
def live(shared: Console) -> Iterator[None]:
    """While a progress bar is on stderr, all output there goes through its console."""
    _LIVE.append(shared)
    try:
        yield
    finally:
        _LIVE.remove(shared)


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
    """A remark on stderr, so that a pipe gets only the result."""
    if not _quiet:
        tell(text, style=style)


def is_watched() -> bool:
    """Whether someone watches the progress: on a terminal, unless quiet."""
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
    """A table that folds long texts and loses nothing; ``whole`` columns are folded last.

    A cell may be a text, a number, names in a list, or None. Numbers are never folded: if they do
    not fit side by side, the table continues below and repeats the columns that name its rows.
    """
    from rich.text import Text

    cells = [[each if isinstance(each, Text) else _in_a_cell(each) for each in row] for row in rows]
    columns = [
        _Column.of(name, [row[place] for row in cells], place in numeric, place in whole)
        for place, name in enumerate(head)
    ]
    for part, block in enumerate(_blocks(columns, console().width)):
        if part:
            say()
        _show_block(block, console().width)


@dataclass(frozen=True)
class _Column:
    """A column of a table with its natural and its smallest width."""

    name: str
    cells: list[str | Text]
    is_numeric: bool
    natural: int
    least: int

    @classmethod
    def of(cls, name: str, cells: list[str | Text], is_numeric: bool, is_whole: bool) -> _Column:
        from rich.cells import cell_len

        longest = max((cell_len(str(cell)) for cell in cells), default=0)
        natural = max(longest, cell_len(name))
        word = max(map(cell_len, name.split()), default=0)
        if is_numeric:
            return cls(name, cells, True, natural, max(longest, min(word, _LONGEST_WORD)))
        return cls(name, cells, False, natural, min(natural, 20 if is_whole else _LONGEST_WORD))


def _blocks(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """The columns that fit side by side, with those that name the rows in every block."""
    names = _naming(columns, width)
    blocks = [names]
    for column in columns[len(names) :]:
        block = [*blocks[-1], column]
        if len(blocks[-1]) > len(names) and not _fits(block, width):
            blocks.append([*names, column])
        else:
            blocks[-1] = block
    return blocks


def _naming(columns: Sequence[_Column], width: int) -> list[_Column]:
    """The columns that tell the rows apart, if each of the others fits next to them; or the first.

    They are folded into less space than usual if nothing else would fit.
    """
    for many in range(1, len(columns)):
        rows = list(zip(*(map(str, column.cells) for column in columns[:many]), strict=True))
        if len(set(rows)) == len(rows):
            names = list(columns[:many])
            folded = [replace(one, least=min(one.least, _LONGEST_WORD)) for one in names]
            for each in (names, folded):
                if all(_fits([*each, other], width) for other in columns[many:]):
                    return each
            break
    return list(columns[:1])


def _fits(block: Sequence[_Column], width: int) -> bool:
    return sum(column.least for column in block) <= _room(block, width)


def _room(block: Sequence[_Column], width: int) -> int:
    """The width left for text next to the gaps between columns."""
    return width - _GAP * len(block) + 1


def _show_block(block: Sequence[_Column], width: int) -> None:
    from rich import box
    from rich.table import Table

    widths = [column.natural for column in block]
    while sum(widths) > _room(block, width):
        foldable = [place for place, column in enumerate(block) if widths[place] > column.least]
        if not foldable:
            break
        widths[max(foldable, key=widths.__getitem__)] -= 1
    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_edge=False,
        header_style="bold",
    )
    for column, wide in zip(block, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_numeric else "left"
        made.add_column(column.name, justify=justify, overflow="fold", width=wide)
    for row in zip(*(column.cells for column in block), strict=True):
        made.add_row(*row)
    show(made, least=sum(widths) + _GAP * len(block) - 1)


def _in_a_cell(value: object) -> str:
    """A dash for None, a readable number, or names in a row."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (tuple, list)):
        return listed(value)
    return "-" if value is None else printable(value)


def roles(roles: Mapping[str, Any]) -> None:
    """The roles of the columns."""
    table(("role", "columns"), ((role.replace("_", "-"), names) for role, names in roles.items()))


def show(thing: RenderableType, *, least: int = 0) -> None:
    """Print a table or another renderable as part of the result, as wide as it needs to be."""
    out = console()
    out.width = max(out.width, least)
    if out.is_terminal or out.quiet:
        out.print(thing)
        return
    with out.capture() as written:
        out.print(thing)
    for line in written.get().splitlines():  # rich fills lines up with blanks
        print(line.rstrip(), file=out.file)


def styled(text: object, style: str) -> RenderableType:
    """A cell with a color."""
    from rich.text import Text

    return Text(printable(text), style=style)


def number(value: float) -> str:
    """A readable number: whole numbers with separators, others with four digits."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else str(value)
    if 1e-9 <= abs(value) < 1e-4:  # in full, since zeros are easier to read than an exponent
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.4g}"


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
