"""Answers to a question: their order, if it is known, and the codes that stand for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from shoal.table.hierarchy._number_codes import as_whole
from shoal.table.suggestion._column_names import known, known_scales, words_of

#: Fewer values than this are answers to a question, even in a small table.
MANY: Final = 50
_NOTHING: Final = re.compile(r"\s*(?:no|none|zero|without|keine?|ohne)\b", re.IGNORECASE)
_PLURAL: Final = 2  # letters that a plural adds at most
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_UNDER: Final = re.compile(r"\s*(?:<|under|below|less|up to|unter|bis)", re.IGNORECASE)


def are_names(values: pl.Series, labels: Mapping[Any, str]) -> bool:
    """Whether distinct numbers, ascending, are only names of their labels: 1 single, 2 married.

    Each has a label, and the labels are no answers in a known order.
    """
    whole = as_whole(values) if values.dtype.is_numeric() else None
    if whole is None or len(whole) < 3:
        return False
    texts = [labels[code] for code in whole.to_list() if code in labels]
    if len(texts) < len(whole) or all(_NUMBER.fullmatch(text) for text in texts):
        return False
    order = scale_order(texts) or number_order(texts)
    return order is None or texts not in (order, order[::-1])


def scale_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of a known scale, or None."""
    bare = {text: " ".join(words_of(text)) for text in texts}
    if len(set(bare.values())) < len(texts):
        return None
    for scale in known_scales():
        places = {" ".join(words_of(answer)): place for place, answer in enumerate(scale)}
        if set(bare.values()) <= places.keys():
            return sorted(texts, key=lambda text: places[bare[text]])
    return None


def number_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of their numbers, such as 5-9 and 10-14, or None.

    The first number decides, and the others only among texts that share it: 2024-Q1, 2024-Q2. What
    is not a number must be the same in all of them, but for a plural, or words such as "under" and
    "to". Words such as "none" stand for 0.
    """
    if len(texts) <= MANY and all(_NUMBER.fullmatch(text) for text in texts):
        return None
    # "no rooms" is one with the number 0
    bare = [text if _NUMBER.search(text) else _NOTHING.sub("0", text) for text in texts]
    words = [frozenset(_WORD.findall(text.casefold())) - known("ranges") for text in bare]
    if len(_singular([some for some, text in zip(words, bare, strict=True) if text != "0"])) > 1:
        return None
    found = [[float(one.replace(",", ".")) for one in _NUMBER.findall(text)] for text in bare]
    if not all(found):
        return None
    keys = [
        (first - 0.5 * bool(_UNDER.match(text)), tuple(rest))
        for (first, *rest), text in zip(found, texts, strict=True)
    ]
    if len(set(keys)) < len(texts):
        return None
    return [text for _, text in sorted(zip(keys, texts, strict=True))]


def _singular(words: Sequence[frozenset[str]]) -> set[frozenset[str]]:
    """The different sets of words, where a word and its plural are one."""
    every = sorted({word for some in words for word in some}, key=len)
    shortest = {
        word: next(one for one in every if word.startswith(one) and len(word) - len(one) <= _PLURAL)
        for word in every
    }
    return {
        frozenset(shortest[word] if len(shortest[word]) > _PLURAL else word for word in some)
        for some in words
    }
