"""How objects appear in a notebook: small tables and pictures, all in one style.

Everything in a view is escaped. Its style affects nothing outside, follows the colors of the page,
light or dark, and no script runs.
"""

from __future__ import annotations

import base64
import html
import math
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

CLASS = "shoal-view"
#: The rules apply only inside a view.
_RULES = Path(__file__).with_name("notebook.css").read_text(encoding="utf-8")
STYLE = f"<style>\n{_RULES}</style>"
_MOST_ROWS = 60
_LONGEST = 80


class Html(str):
    """A text that is already HTML."""


def view(title: str, *parts: Html | str, quiet: str = "") -> str:
    """One ``div`` with a title and its content below: tables, pictures and sentences.

    Examples
    --------
    >>> print(view("Two <columns>", "Of 3 rows.").replace(STYLE, "..."))
    <div class="shoal-view">
    ...
    <p><strong>Two &lt;columns&gt;</strong></p>
    <p>Of 3 rows.</p>
    </div>
    """
    texts = [part if isinstance(part, Html) else Html(f"<p>{_cell(part)}</p>") for part in parts]
    head = f"<p><strong>{_cell(title)}</strong></p>"
    below = [f'<p class="quiet">{_cell(quiet)}</p>'] if quiet else []
    return "\n".join([f'<div class="{CLASS}">', STYLE, head, *texts, *below, "</div>"])


def listing(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", of: str = "rows"
) -> Html:
    """A table with numbers aligned right; of very many rows, only the first are shown.

    Examples
    --------
    >>> "<td class=\\"value\\">1,000</td>" in listing(["column", "values"], [("age", 1000)])
    True
    """
    listed = list(rows)
    shown, more = listed[:_MOST_ROWS], max(0, len(listed) - _MOST_ROWS)
    numeric = [
        any(_is_number(row[place]) for row in shown)
        and all(_is_number(row[place]) or row[place] in (None, "") for row in shown)
        for place in range(len(head))
    ]
    right = [' class="value"' if number else "" for number in numeric]
    caption = f"<caption>{_cell(title)}</caption>" if title else ""
    names = "".join(
        f'<th scope="col"{side}>{_cell(n)}</th>' for n, side in zip(head, right, strict=True)
    )
    body = [
        "".join(f"<td{side}>{_cell(value)}</td>" for value, side in zip(row, right, strict=True))
        for row in shown
    ]
    if more:
        body.append(f'<td colspan="{len(head)}" class="quiet">and {more:,} more {_cell(of)}</td>')
    lines = "\n".join(f"<tr>{row}</tr>" for row in body)
    return Html(
        f"<table>{caption}<thead><tr>{names}</tr></thead>\n<tbody>\n{lines}\n</tbody></table>"
    )


def picture(svg: bytes, about: str) -> Html:
    """A drawing with its own background."""
    data = base64.b64encode(svg).decode()
    alternative = html.escape(clean(about), quote=True)
    return Html(f'<p><img alt="{alternative}" src="data:image/svg+xml;base64,{data}"></p>')


def number(value: float) -> str:
    """A number for people: with thousands separators, and no more digits than anyone reads."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "endless" if value > 0 else "-endless"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-9 <= abs(value) < 1e-4:  # in full: zeros read better than an exponent
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def percent(share: float) -> str:
    """A readable share; only an exact 0 or 1 is shown as 0 % or 100 %."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"


def clean(text: str) -> str:
    """A text without characters that a page cannot hold or that change the writing direction."""
    return "".join("\ufffd" if _is_unfit(character) else character for character in str(text))


def printable(text: object) -> str:
    """A text that cannot steer the terminal: control characters are spelled out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in str(text)
    )


def short(text: str) -> str:
    """A name that fits a page: a very long one loses its middle."""
    whole = clean(text)
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST - 20]}…{whole[-19:]}"


def _is_unfit(character: str) -> bool:
    turning = "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
    return turning or unicodedata.category(character) in ("Cc", "Cs")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if isinstance(value, Html):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return number(value)
    return html.escape(clean(value))
