"""What a labelled file says about its columns: labels, formats, and why values are missing.

A table holds one dictionary, and every table derived from it shares that dictionary. Codes stay
codes: no label is ever a cell. The reason for a missing value is a column of its own, next to the
column it explains. So each reason is a value when classes are formed, and never a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from shoal.table._roles import Roles

Family = Literal["", "stata", "spss", "sas"]

#: Format → the programs whose formats and codes for missing values it has.
FAMILY: Final[dict[str, Family]] = {
    "dta": "stata",
    "sav": "spss",
    "zsav": "spss",
    "por": "spss",
    "xpt": "sas",
    "sas7bdat": "sas",
}
#: The formats that can be written, and those that hold labels of values.
LABELLED: Final = ("dta", "sav", "zsav", "por", "xpt")
WITH_VALUES: Final = ("dta", "sav", "zsav", "por")

_LISTS: Final = ("identifiers", "quasi_identifiers", "sensitive", "insensitive", "drop")


@dataclass(frozen=True)
class Facts:
    """What a file says about one column.

    ``values`` has the labels of ordinary values, and ``reasons`` those of missing values, by their
    texts. ``ranges`` are the values that SPSS declares as missing, each from the first to the
    second. ``text`` says whether the column was text in the file.
    """

    label: str = ""
    values: Mapping[Any, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    ranges: tuple[tuple[Any, Any], ...] = ()
    format: str = ""
    measure: str = "unknown"
    text: bool = False

    @property
    def number_ranges(self) -> list[tuple[float, float]]:
        """The numbers that SPSS reads as missing."""
        ranges = self.ranges
        return [(float(low), float(high)) for low, high in ranges if not isinstance(low, str)]

    def __repr__(self) -> str:
        # without labels, which may have been made from cells
        return f"Facts({len(self.values)} values with labels, {len(self.reasons)} reasons)"


@dataclass(frozen=True)
class Dictionary:
    """The facts about the columns of a file; ``reasons`` maps columns to those that explain them.

    Examples
    --------
    >>> found = Dictionary("stata", {"income": Facts("Net income")}, {"income": "income_reason"})
    >>> found.labels
    {'income': 'Net income', 'income_reason': 'Why income is missing'}
    >>> found.followed(Roles(sensitive=["income"]), ["income", "income_reason"]).sensitive
    ('income', 'income_reason')
    """

    family: Family = ""
    facts: Mapping[str, Facts] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Dictionary('{self.family}', {len(self.facts)} columns)"

    def of(self, name: str) -> Facts:
        """The facts about a column; empty facts for a column that the file did not have."""
        return self.facts.get(name, _NOTHING)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of columns."""
        own = {name: facts.label for name, facts in self.facts.items() if facts.label}
        return own | {why: f"Why {name} is missing" for name, why in self.reasons.items()}

    def with_texts(self, names: Iterable[str]) -> Dictionary:
        """The dictionary in which some columns are text: pseudonyms have no codes and labels."""
        texts = {name: replace(self.facts[name], text=True) for name in names if name in self.facts}
        return replace(self, facts={**self.facts, **texts}) if texts else self

    def pseudonymized(self, name: str, *, text: bool) -> Dictionary:
        """The dictionary without labels for the values of a column, which pseudonyms replace."""
        facts = replace(self.facts[name], values={}, text=text)
        return replace(self, facts={**self.facts, name: facts})

    def followed(self, roles: Roles, columns: Iterable[str]) -> Roles:
        """The roles with the columns of reasons, which play the roles of what they explain."""
        there = set(columns)
        new: dict[str, list[str]] = {}
        for name, why in self.reasons.items():
            role = roles.of(name)
            if why not in there or name not in there or role is None or roles.of(why) is not None:
                continue
            # a reason must not be released if the column is not, and never counts as a weight
            other = "sensitive" if role == "target" else "identifiers"
            new.setdefault(role if role in _LISTS else other, []).append(why)
        if not new:
            return roles
        return roles.replacing(**{role: (*getattr(roles, role), *new[role]) for role in new})


_NOTHING: Final = Facts()
#: The dictionary of a table that no labelled file gave.
NO_DICTIONARY: Final = Dictionary()
