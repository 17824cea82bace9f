"""What a column's name refers to: an identifier, a trait that others know, a secret, a weight.

Names are split into words (``dateOfBirth``, ``date_of_birth`` and ``DATE-OF-BIRTH`` are equal) and
compared with English, German, French, Spanish, Italian, Dutch and Portuguese words, and with the
codes of the large surveys. The words are in ``words.toml``.
"""

from __future__ import annotations

import functools
import itertools
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from importlib import resources
from typing import Any

_CAMEL = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[^\WA-Z_]+|[A-Z]+")
_ROW_NUMBER = re.compile(r"unnamed: ?\d+|index|level_0|__index_level_\d+__|rownames?|row_?nr")


@dataclass(frozen=True)
class NameHints:
    """What a column's name refers to."""

    identifiers: frozenset[str]
    says_id: bool
    coded: bool
    row_number: bool
    quasi: str | None
    sensitive: str | None
    weight: str | None
    label: bool


def hints_of(name: str) -> NameHints:
    """The hints in the name of a column."""
    words = words_of(name)
    whole = "".join(words)
    candidates = [*words, whole]
    identifiers = {_lookup(word, "identifier") for word in candidates} - {None}
    phrase = " ".join(words)
    identifiers |= {kind for text, kind in _file()["identifier_phrases"].items() if text in phrase}
    if _says_person_name(words):
        identifiers.add("person_name")
    return NameHints(
        identifiers=frozenset(kind for kind in identifiers if kind),
        says_id=_says_id(words),
        coded=_any_of(words, "coded_things"),
        row_number=_ROW_NUMBER.fullmatch(name.strip().casefold()) is not None,
        quasi=_first(candidates, "quasi") or _file()["quasi_alone"].get(whole.rstrip("0123456789")),
        sensitive=_first(candidates, "sensitive")
        or next(
            (topic for text, topic in _file()["sensitive_phrases"].items() if text in phrase), None
        ),
        weight=_weight_hint(words),
        label=whole in known("labels"),
    )


def words_of(name: str) -> list[str]:
    """The words of a column name in lower case, without accents, with ß as ss."""
    parts = re.split(r"[^\w]+|_", without_accents(name.replace("ß", "ss")))
    words: list[str] = []
    for part in parts:
        whole = part.isupper() or part.islower()
        words += [part] if whole else _CAMEL.findall(part)
    return [word.casefold() for word in words if word]


def without_accents(text: str) -> str:
    """The text without the accents on its letters."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _says_person_name(words: list[str]) -> bool:
    if "nombre" in words:  # French for "number of", so only alone or with a family name
        return len(words) == 1 or any(word.startswith("apellido") for word in words)
    others = [word for word in words if word not in ("name", "names")]
    return len(others) < len(words) and known("named_persons").issuperset(others)


def _says_id(words: list[str]) -> bool:
    if _any_of(words, "ids"):
        return True
    for word, ending in itertools.product(words, ("id", "nr", "no", "nummer", "number", "num")):
        # caseid, utilityid and kundennummer, but not covid or paid
        if word.endswith(ending) and word.removesuffix(ending) in known("entities"):
            return True
    pairs = itertools.pairwise(words)
    return any(first in known("entities") and second in known("numbers") for first, second in pairs)


def _weight_hint(words: list[str]) -> str | None:
    """``"sure"`` for a sampling weight, ``"maybe"`` for what may be a body weight."""
    if _any_of(words, "weight"):
        return "sure"
    if _any_of(words, "weight_plain"):
        return "sure" if _any_of(words, "weight_companions") else "maybe"
    return None


def _any_of(words: list[str], wanted: str) -> bool:
    return not known(wanted).isdisjoint(words)


def _first(words: list[str], topics: str) -> str | None:
    return next((topic for word in words if (topic := _lookup(word, topics))), None)


def _lookup(word: str, topics: str) -> str | None:
    exact, beginnings = _index(topics)
    topic = exact.get(word) or exact.get(word.rstrip("0123456789"))
    if topic is not None:
        return topic
    return next((topic for start, topic in beginnings.items() if word.startswith(start)), None)


@functools.cache
def _file() -> dict[str, dict[str, Any]]:
    """The content of ``words.toml``, read when it is first needed."""
    return tomllib.loads((resources.files(__package__) / "words.toml").read_text("utf-8"))


@functools.cache
def known(kind: str) -> frozenset[str]:
    """The words of a kind."""
    return frozenset(_file()["words"][kind].split())


def title_of(kind: str) -> str:
    """The title of a kind of identifier."""
    return str(_file()["titles"][kind])


@functools.cache
def known_scales() -> list[list[str]]:
    """Scales of answers, each in its order."""
    return [line.split(", ") for line in _file()["scales"]["lines"]]


@functools.cache
def _index(topics: str) -> tuple[dict[str, str], dict[str, str]]:
    """The words and their beginnings for identifiers, quasi-identifiers or sensitive columns."""
    pairs = [(word, topic) for topic, words in _file()[topics].items() for word in words.split()]
    exact = {word: topic for word, topic in pairs if not word.endswith("*")}
    return exact, {word[:-1]: topic for word, topic in pairs if word.endswith("*")}
