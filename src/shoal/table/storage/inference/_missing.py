"""Texts that mean missing values, recognized by the rest of their column.

One "k.A." among weights turns the whole column into text, and those who did not answer into a
category. Columns that would be numbers or dates but for a few texts are therefore reported. A text
is shown only if it is on a list of known spellings, because any other text is a cell of the table.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from shoal.kernels.arrays import Integers
from shoal.table.storage.inference._infer import first_texts, infer_types

if TYPE_CHECKING:
    from shoal.table._table import Table

#: Texts that mean a missing value by default.
DEFAULT_MISSING: Final = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

#: What people and programs write for a missing value, in lower case. A text of the data is shown
#: only if it is in this list.
KNOWN_SIGNS: Final = frozenset(
    {
        *("?", "-", "--", "---", "–", "—", ".", "..", "...", "*", "**", "/"),
        *("#nv", "#n/a", "#na", "#wert!", "#value!", "#null!", "#div/0!", "#bezug!", "#ref!"),
        *("na", "n/a", "n.a.", "n. a.", "<na>", "nan", "nil", "null", "none", "(null)", "(leer)"),
        *(
            "(blank)",
            "blank",
            "empty",
            "leer",
            "missing",
            "(missing)",
            "not available",
            "nd",
            "n.d.",
        ),
        *("unknown", "unk", "unbekannt", "unb.", "inconnu", "desconocido", "sconosciuto"),
        *("onbekend", "k.a.", "k. a.", "k.a", "ka", "keine angabe", "keine angaben", "k.w."),
        *("no answer", "not stated", "not specified", "not known", "refused", "don't know"),
        *("weiß nicht", "weiss nicht", "fehlt", "fehlend", "fehlender wert", "entfällt"),
        *("nicht bekannt", "nicht angegeben", "nicht erhoben", "nicht verfügbar", "nv", "n.v."),
        *("sans réponse", "non renseigné", "nr", "n.r.", "no disponible", "sin datos", "n/d"),
    }
)
_NUMBER: Final = "^ *-?[0-9][0-9.,'\u2019\u00a0\u202f ]*$"
_DATE: Final = r"^ *[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?:[ T,].*)?$"
_KINDS: Final[Mapping[Literal["numbers", "dates"], str]] = {"dates": _DATE, "numbers": _NUMBER}
_FEWEST: Final = 0.9
_MOST_OTHERS: Final = 12


@dataclass(frozen=True)
class MixedColumn:
    """A text column that would be numbers or dates but for a few texts, without any of its cells.

    Parameters
    ----------
    name : str
        The column.
    kind : {"numbers", "dates"}
        The kind of most of its values.
    share : float
        The share of the values of this kind.
    signs : tuple of str
        The other texts that are known to mean a missing value.
    others : int
        The number of distinct other texts that are not known.
    """

    name: str
    kind: Literal["numbers", "dates"]
    share: float
    signs: tuple[str, ...]
    others: int

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return dataclasses.asdict(self)

    @property
    def fact(self) -> str:
        """What the values are, without a full stop."""
        count = len(self.signs) + self.others
        texts = "is one text" if count == 1 else f"are {count} different texts"
        share = f"{np.floor(1000 * self.share) / 10:g} %"  # never rounded up to all
        return f"{share} of the values of '{self.name}' are {self.kind}; the rest {texts}"

    @property
    def question(self) -> str:
        """The question for someone who knows the data."""
        means = "Does it mean" if len(self.signs) + self.others == 1 else "Do they mean"
        return f"{self.fact}. {means} a missing value?"

    @property
    def sentence(self) -> str:
        """The question, and how to read the source if the answer is yes."""
        options = " ".join(f"--missing-value {_quoted(sign)}" for sign in self.signs)
        if not options:
            return f"{self.question} If so, list them with missing_values=[...] or --missing-value."
        hidden = f" ({self.others} of them cannot be shown here)" if self.others else ""
        return f"{self.question} If so, read with {options}{hidden}."


def mixed_columns(table: Table) -> list[MixedColumn]:
    """The text columns of a table that would be numbers or dates but for a few texts.

    Texts on the list of known spellings of missing values are shown; others are only counted.
    """
    texts = [table.column(name) for name in table.columns if table.kind(name) == "text"]
    found = (_mixed(one.name, one.codes.levels, one.codes.counts) for one in texts)
    return [one for one in found if one is not None]


def other_texts(table: Table, column: MixedColumn) -> list[str]:
    """The texts of such a column that are not numbers or dates; cells, shown only on request."""
    levels = table.codes(column.name).levels
    return levels.filter(~levels.str.contains(_KINDS[column.kind])).to_list()


def _mixed(name: str, levels: pl.Series, counts: Integers) -> MixedColumn | None:
    levels, counts = levels.alias(""), counts[: len(levels)]  # the count of missing comes last
    total = int(counts.sum())
    for kind, pattern in _KINDS.items():
        fits = levels.str.contains(pattern).to_numpy()
        share = int(counts[fits].sum()) / total if total else 0.0
        others = levels.filter(~pl.Series(fits))
        if share >= _FEWEST and 0 < len(others) <= _MOST_OTHERS and _reads(levels, fits, kind):
            signs = [text for text in others.to_list() if text.strip().lower() in KNOWN_SIGNS]
            return MixedColumn(name, kind, share, tuple(signs), len(others) - len(signs))
    return None


def _reads(levels: pl.Series, fits: Any, kind: str) -> bool:
    """Whether texts that look like numbers or dates can be read so; codes such as 01234 cannot."""
    part = levels.filter(pl.Series(fits))
    columns = [part]
    spelling = infer_types(columns, [first_texts(part)])
    if kind == "dates":
        return columns[0].dtype.is_temporal() or bool(spelling.doubts)
    return columns[0].dtype.is_numeric() or bool(spelling.open_numbers)


def _quoted(sign: str) -> str:
    """A text as a word of a command, always quoted."""
    return shlex.quote(sign) if "'" in sign else f"'{sign}'"
