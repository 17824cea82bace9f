"""A hierarchy for a column of texts: codes, ordered answers, categories, or all different."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table.hierarchy._listed import listed, ordered_rows
from shoal.table.hierarchy._prefixes import Prefixes, prefixes
from shoal.table.hierarchy._rule import ROOT, Rule, Suppression, useful_levels

_NEARLY_UNIQUE: Final = 0.5
_MANY: Final = 50  # fewer values than this are answers to a question, also in a small table
_RARE: Final = (0.01, 0.05, 0.2)  # shares of the records below which a value is joined with others
_LONGEST_CODE: Final = 12
_FEWEST_CODES: Final = 10
_ORDERED_LEVELS: Final = 5
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")

#: Answers in their order; a column that holds only answers of one line is ordered by it.
_SCALES: Final = tuple(
    tuple(line.split(", "))
    for line in (
        "none, very low, low, medium, high, very high",
        "none, very mild, mild, moderate, severe, very severe, critical",
        "very small, small, medium, large, very large",
        "xs, s, m, l, xl, xxl, xxxl",
        "very poor, poor, fair, good, very good, excellent",
        "very bad, bad, fair, good, very good",
        "never, rarely, sometimes, often, always",
        "never, monthly, weekly, daily",
        "strongly disagree, disagree, neither agree nor disagree, agree, strongly agree",
        "strongly disagree, disagree, neutral, agree, strongly agree",
        "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
        "very unlikely, unlikely, neutral, likely, very likely",
        "preschool, primary, lower secondary, secondary, upper secondary, tertiary, doctorate",
        "monday, tuesday, wednesday, thursday, friday, saturday, sunday",
        "mon, tue, wed, thu, fri, sat, sun",
        "january, february, march, april, may, june, july, august, september, october, november, "
        "december",
        "jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec",
        "first, second, third, fourth, fifth",
        "i, ii, iii, iv, v, vi",
    )
)


def text_rule(values: pl.Series, records: npt.NDArray[np.int64], *, code: bool) -> Rule:
    """The rule for three or more different texts, each with its number of records."""
    if code:
        found = pruned_prefixes(values)
        if found is not None:
            return found
    if len(values) > max(_MANY, _NEARLY_UNIQUE * int(records.sum())):
        return Suppression()  # listing them would write the column out
    texts = values.to_list()
    order = _scale_order(texts)
    if order is None and (records > 1).all():  # a group is named by its ends: nobody's alone
        order = _number_order(texts)
    if order is not None:
        return ordered_rule(order)
    return frequency_rule(texts, records)


def ordered_rule(order: Sequence[str]) -> Rule:
    """A list whose neighbours are joined, by twos unless that takes too many levels."""
    fan_out = max(2, math.ceil(len(order) ** (1 / _ORDERED_LEVELS)))
    return listed(ordered_rows(order, fan_out=fan_out, groups=None))


def is_code(values: pl.Series) -> bool:
    """Whether texts are codes of one length with digits in the same places, such as postcodes."""
    if len(values) < _FEWEST_CODES:
        return False
    lengths = values.str.len_chars()
    longest = int(lengths.max() or 0)  # type: ignore[arg-type]
    if lengths.min() != longest or not 3 <= longest <= _LONGEST_CODE:
        return False
    shapes = values.str.replace_all(r"\d", "0").str.replace_all(r"\p{L}", "a")
    return shapes.n_unique() == 1 and "0" in shapes[0]


def pruned_prefixes(values: pl.Series, pad: int | None = None) -> Prefixes | None:
    """Prefixes of the lengths that join something and leave more than one."""
    longest = pad or int(values.cast(pl.String).str.len_chars().max() or 0)  # type: ignore[arg-type]
    candidates = range(min(longest, _LONGEST_CODE) - 1, 0, -1)
    if not candidates:
        return None
    rungs = prefixes(list(candidates), pad=pad).rungs(values, "refuse")
    useful = useful_levels(rungs, len(values))
    return prefixes([candidates[level] for level in useful], pad=pad) if useful else None


def _scale_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of a known scale."""
    bare = {text: text.strip().lower().replace("_", " ").replace("-", " ") for text in texts}
    if len(set(bare.values())) < len(texts):
        return None
    for scale in _SCALES:
        if set(bare.values()) <= set(scale):
            return sorted(texts, key=lambda text: scale.index(bare[text]))
    return None


def _number_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of the first number in each, such as 5-9 and 10-14.

    A few bare numbers that are kept as text are codes without an order.
    """
    if len(texts) <= _MANY and all(_NUMBER.fullmatch(text) for text in texts):
        return None
    found = [_NUMBER.search(text) for text in texts]
    numbers = [float(match[0].replace(",", ".")) for match in found if match is not None]
    if len(numbers) < len(texts) or len(set(numbers)) < len(texts):
        return None
    return [text for _, text in sorted(zip(numbers, texts, strict=True))]


def frequency_rule(texts: Sequence[str], records: npt.NDArray[np.int64]) -> Rule:
    """A list in which rare values are joined, more of them at each level."""
    other = "(other)"
    while other in texts:
        other = f"({other})"
    order = np.argsort(-records, kind="stable")
    shares = records[order] / max(int(records.sum()), 1)
    joined = {int((shares < limit).sum()) for limit in _RARE}
    if not any(len(texts) <= 4 * count <= 3 * len(texts) for count in joined):
        joined.add(len(texts) // 2)  # or the rarer half, where the limits make too large a step
    names = [texts[at] for at in order]
    columns = [names]
    before = 1
    for count in sorted(joined):
        if before < count < len(texts):
            columns.append([*names[: len(texts) - count], *[other] * count])
            before = count
    return listed((*row, ROOT) for row in zip(*columns, strict=True))
