"""Texts that stand for missing values, found by what the rest of their column is.

One "k.A." among weights makes a text of the whole column, and a category of those who did not
answer. So columns are named that are numbers or dates but for a few texts. A text is shown only if
it is on a list of known spellings, since any other one is a cell of the table.
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

#: What stands for a missing value in text, where nothing else is said.
DEFAULT_MISSING: Final = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

#: What people and programs write for one, in small letters; a text of the data is shown only if
#: it is here.
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
    """A text column that would be numbers or dates without a few texts; no cell of it is here.

    Parameters
    ----------
    name : str
        The column.
    kind : {"numbers", "dates"}
        What most of its values are.
    share : float
        The share of the values that are.
    signs : tuple of str
        Those of the other texts that are known to stand for a missing value.
    others : int
        How many different other texts there are beside them.
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
        texts = "one text" if count == 1 else f"{count} different texts"
        return (
            f"{_percent(self.share)} of the values of '{self.name}' are {self.kind}; the others "
            f"are {texts}"
        )

    @property
    def question(self) -> str:
        """What to ask someone who knows the data."""
        return f"{self.fact}. Are they missing?"

    @property
    def sentence(self) -> str:
        """The question, and how the source is read if they are."""
        said = " ".join(f"--missing-value {_quoted(sign)}" for sign in self.signs)
        if not said:
            return f"{self.question} Then name them: missing_values=[...], --missing-value."
        hidden = f" ({self.others} of them cannot be shown here)" if self.others else ""
        return f"{self.question} Then read with {said}{hidden}."


def mixed_columns(table: Table) -> list[MixedColumn]:
    """The text columns of a table that a few texts keep from being numbers or dates.

    A text among them that is on a list of known spellings of missing is named; others are counted.
    """
    texts = [table.column(name) for name in table.columns if table.kind(name) == "text"]
    found = (_mixed(one.name, one.codes.levels, one.codes.counts) for one in texts)
    return [one for one in found if one is not None]


def other_texts(table: Table, column: MixedColumn) -> list[str]:
    """The texts of such a column that are no numbers or dates: cells, to show if asked for."""
    levels = table.codes(column.name).levels
    return levels.filter(~levels.str.contains(_KINDS[column.kind])).to_list()


def _mixed(name: str, levels: pl.Series, counts: Integers) -> MixedColumn | None:
    levels, counts = levels.alias(""), counts[: len(levels)]  # missing ones are counted last
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
    """Whether the texts that look like numbers or dates are; codes such as 01234 are not."""
    part = levels.filter(pl.Series(fits))
    columns = [part]
    spelling = infer_types(columns, [first_texts(part)])
    if kind == "dates":
        return columns[0].dtype.is_temporal() or bool(spelling.doubts)
    return columns[0].dtype.is_numeric() or bool(spelling.open_numbers)


def _quoted(sign: str) -> str:
    """A sign as a word of a command; with marks around it even where the shell needs none."""
    return shlex.quote(sign) if "'" in sign else f"'{sign}'"


def _percent(share: float) -> str:
    """A share that is never rounded up to all."""
    return f"{np.floor(1000 * share) / 10:g} %"
