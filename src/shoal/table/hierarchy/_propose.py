"""Propose a hierarchy for a column, from its kind and its values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, did_you_mean
from shoal.kernels.arrays import Integers
from shoal.table.columns._domain import ROOT
from shoal.table.columns._frames import kind_of
from shoal.table.columns._quantities import numbers_of
from shoal.table.hierarchy._intervals import Edges, grid, quantile_edges
from shoal.table.hierarchy._listed import listed, ordered_rows
from shoal.table.hierarchy._number_codes import (
    NumberCodes,
    as_whole,
    number_codes,
    says_postcode,
)
from shoal.table.hierarchy._rule import Rule, Rung, Suppression, calendar, prefixes
from shoal.table.storage._types import as_text
from shoal.table.suggestion._column_names import known, known_scales, words_of
from shoal.table.suggestion._patterns import written_as_date

if TYPE_CHECKING:
    from shoal.table._table import Table

_CELLS: Final = 40  # intervals at level 1, at most, unless there are fewer values
_SMALL: Final = 20  # whole numbers in so small a range are joined in twos
_WIDEST_SHARE: Final = Decimal("1.5")  # how often the widest interval fits into the range
_CROWDED: Final = 0.8  # with this share of the records in one interval, intervals are too wide
_DECADES: Final = 6
_WIDEST: Final = 1e307
_CALENDAR: Final = ("hour", "day", "month", "quarter", "year", "5 years", "decade")

_NEARLY_UNIQUE: Final = 0.5
_RARE: Final = (0.01, 0.05, 0.2)  # values with a smaller share of the records are joined
_LONGEST_CODE: Final = 12
_FEWEST_CODES: Final = 10
_ORDERED_LEVELS: Final = 5
#: Codes that begin with letters or with a group of digits: F10.2, A10BA02, 47.11, SW1A 1AA.
_CODE: Final = re.compile(
    r"[A-Za-z]{1,3}\d{1,4}[A-Za-z]{0,2}\d{0,4}(?:[-. /]?\d{1,4}[A-Za-z]{0,3}\d{0,3})?"
    r"|\d{2}(?:\.\d{1,2}){1,2}"
)
_SEPARATORS: Final = "-. /"

#: Kinds that can be requested instead of the one that fits best.
KINDS: Final = tuple(
    "intervals sizes quantiles rounding dates prefixes ordered frequency suppression".split()
)


#: Fewer values than this are answers to a question, even in a small table.
_MANY: Final = 50
_NOTHING: Final = re.compile(r"\s*(?:no|none|zero|without|keine?|ohne)\b", re.IGNORECASE)
_PLURAL: Final = 2  # letters that a plural adds at most
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_UNDER: Final = re.compile(r"\s*(?:<|under|below|less|up to|unter|bis)", re.IGNORECASE)

_WHOLE: Final = re.compile(r"-?\d{1,15}")
_NO_ORDER: Final = (
    "has codes whose labels have no known order, so rare ones are joined first. If the codes have "
    "an order, give the column the hierarchy ordered or intervals"
)


def codes_in(table: Table, column: str) -> NumberCodes | None:
    """How a column of a table has codes that were read as numbers; None if nothing suggests it."""
    if table.kind(column) not in ("integer", "float") or table.column(column).is_continuous:
        return None
    values, facts = table.codes(column).levels, table.dictionary.of(column)
    if facts.measure != "ordinal" and _are_names(values, facts.values or _described(table, column)):
        doubt = None if facts.measure == "nominal" else _NO_ORDER
        return NumberCodes(None, are_names=True, doubt=doubt)
    return number_codes(values)


def _described(table: Table, column: str) -> dict[int, str]:
    """The labels of whole numbers in a metadata file."""
    known = {} if table.manner is None else table.manner.described
    labels = known[column].labels if column in known else {}
    return {int(value): label for value, label in labels.items() if _WHOLE.fullmatch(value)}


def proposed(table: Table, column: str, kind: str | None = None) -> Rule:
    """The rule that fits a column, or the best one of a kind."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"There is no hierarchy kind '{kind}'. {did_you_mean(kind, KINDS)}")
    coded = table.codes(column)
    values = coded.levels
    is_reason = kind is None and column in table.dictionary.reasons.values()
    if len(values) < 3 or kind == "suppression" or is_reason:
        return Suppression()  # nothing lies between two values and the root
    records = coded.counts[: len(values)]
    if kind is not None:
        return _of_kind(kind, values, records)
    if (found := codes_in(table, column)) is not None and found.are_names:
        return _frequency_rule(as_text(values).to_list(), records)
    return _fitting(values, records)


def _fitting(values: pl.Series, records: Integers) -> Rule:
    kind = kind_of(values.dtype)
    if kind in ("date", "datetime", "time"):
        return _date_rule(values)
    if kind == "text" and written_as_date(values):
        return Suppression()  # prefixes of dates that were not read as dates mean nothing
    if kind == "text":
        return _text_rule(values, records, code=says_postcode(values.name) or _is_code(values))
    codes = number_codes(values)
    if codes is not None and codes.are_codes:
        return _prefix_rule(values, codes.pad)
    return _number_rule(values, records)


def _of_kind(kind: str, values: pl.Series, records: Integers) -> Rule:
    if kind == "dates":
        return _date_rule(values)
    if kind == "prefixes":
        codes = number_codes(values)
        whole = kind_of(values.dtype) == "integer"
        asked = len(str(values[-1])) if whole else None
        return _prefix_rule(values, asked if codes is None else codes.pad)
    if kind == "ordered":
        return _ordered_rule(as_text(values).to_list())
    if kind == "frequency":
        return _frequency_rule(as_text(values).to_list(), records)
    if kind == "quantiles":
        return quantile_edges(np.repeat(numbers_of(values), records), (8, 4, 2)).useful(values)
    numbers = numbers_of(values)
    if kind == "sizes":
        return _by_size(numbers).useful(values)
    widths = _widths(numbers)
    if kind == "rounding" and _is_whole(numbers):
        widths = [width for width in widths if width % 1 == 0]  # whole numbers stay whole
        return grid(widths, rounds=True).useful(values)
    whole = _is_whole(numbers) and widths[0] % 1 != 0
    return grid(widths, rounds=kind == "rounding", whole=whole).useful(values)


def _prefix_rule(values: pl.Series, pad: int | None = None) -> Rule:
    """Prefixes of the lengths that join some values but not all; none ends in a separator."""
    whole = as_whole(values) if values.dtype.is_numeric() else None
    texts = (values if whole is None else whole).cast(pl.String)
    lengths = texts.str.len_chars()
    longest = pad or int(lengths.max() or 0)  # type: ignore[arg-type]
    kept = [
        length
        for length in range(min(longest, _LONGEST_CODE) - 1, 0, -1)
        if whole is not None or not texts.str.slice(length - 1, 1).is_in(list(_SEPARATORS)).any()
    ]
    one = whole is None and lengths.n_unique() > 1
    return prefixes(kept, pad=pad, any_length=one).useful(values) if kept else Suppression()


def _date_rule(values: pl.Series) -> Rule:
    """The units that join some values but not all."""
    units = {"time": ("hour",), "date": _CALENDAR[2:]}.get(kind_of(values.dtype), _CALENDAR)
    return calendar(units).useful(values)


def _number_rule(values: pl.Series, records: Integers) -> Rule:
    numbers = numbers_of(values)
    widths = _widths(numbers)
    if float(widths[-1]) < _WIDEST:
        whole = _is_whole(numbers) and widths[0] % 1 != 0
        even = grid(widths, whole=whole)
        if len(numbers) <= _SMALL or not _is_crowded(even.rungs(values, "refuse")[0], records):
            return even.useful(values)
    return _by_size(numbers).useful(values)


def _widths(numbers: npt.NDArray[Any]) -> list[Decimal]:
    """A round width for at most forty intervals, doubled until few intervals are left.

    Widths of 2.5 split a five of whole numbers into three and two.
    """
    span = Decimal(str(numbers[-1])) - Decimal(str(numbers[0]))  # distinct values ascend
    least = Decimal("1e-299")
    if _is_whole(numbers):
        least = Decimal(2 if span <= _SMALL else "2.5")
    widths = [max(_round_up(span / _CELLS), least)]
    while 2 * widths[-1] * _WIDEST_SHARE <= span:
        widths.append(2 * widths[-1])
    return widths


def _is_whole(numbers: npt.NDArray[Any]) -> bool:
    return numbers.dtype.kind in "iu" or bool((numbers == np.round(numbers)).all())


def _is_crowded(rung: Rung, records: Integers) -> bool:
    """Whether one interval has nearly all records, although their values differ.

    A value that most records have, such as no income from capital, does not count.
    """
    often = records.argmax()
    if 2 * records[often] > records.sum():
        records = np.where(np.arange(len(records)) == often, 0, records)
    cells = np.bincount(rung.nodes, weights=records)
    fullest = int(cells.argmax())
    several = int((rung.nodes == fullest).sum()) > 1
    return several and cells[fullest] > _CROWDED * records.sum()


def _by_size(numbers: npt.NDArray[Any]) -> Edges:
    """Edges at 1, 2 and 5 times powers of ten on both sides of 0, for very different sizes."""
    low, high = (Decimal(str(end)) for end in (numbers[0], numbers[-1]))
    largest = max(abs(low), abs(high)).adjusted()
    smallest = max(largest - _DECADES, 0 if _is_whole(numbers) else -290)
    powers = range(smallest, min(largest, 306) + 1)
    fine = [Decimal(lead).scaleb(power) for power in powers for lead in (1, 2, 5)]
    ladder = [fine]
    step = 1
    while len(powers) > 2 * step:
        ladder.append([Decimal(1).scaleb(power) for power in powers[::step]])
        step *= 2
    levels: list[tuple[Decimal, ...]] = []
    for sizes in ladder:
        below = [-size for size in reversed(sizes)] if low < 0 else []
        edges = tuple(edge for edge in (*below, *sizes) if low < edge <= high)
        if edges and (not levels or len(edges) < len(levels[-1])):
            levels.append(edges)
    return Edges(tuple(levels))


def _round_up(size: Decimal) -> Decimal:
    """The smallest 1, 2.5 or 5 times a power of ten that is not below a size."""
    if size <= 0:
        return Decimal(0)
    power = size.adjusted()
    leads = (Decimal(lead).scaleb(power) for lead in ("1", "2.5", "5", "10"))
    return next(lead for lead in leads if lead >= size)


def _text_rule(values: pl.Series, records: Integers, *, code: bool) -> Rule:
    """The rule for at least three distinct texts, each with its number of records."""
    if code:
        found = _prefix_rule(values)
        if found.inner_levels:
            return found
    if len(values) > max(_MANY, _NEARLY_UNIQUE * int(records.sum())):
        return Suppression()  # a list would copy the whole column
    texts = values.to_list()
    order = _scale_order(texts)
    if order is None and (records > 1).all():  # group labels show values, so none may be unique
        order = _number_order(texts)
    if order is not None:
        return _ordered_rule(order)
    return _frequency_rule(texts, records)


def _ordered_rule(order: Sequence[str]) -> Rule:
    """A list that joins neighbors, in twos unless that takes too many levels."""
    fan_out = max(2, math.ceil(len(order) ** (1 / _ORDERED_LEVELS)))
    return listed(ordered_rows(order, fan_out=fan_out, groups=None))


def _is_code(values: pl.Series) -> bool:
    """Whether texts are codes of letters and digits, such as postcodes, diagnoses or trades."""
    if len(values) < _FEWEST_CODES:
        return False
    lengths = values.str.len_chars()
    longest = int(lengths.max() or 0)  # type: ignore[arg-type]
    if not 3 <= longest <= _LONGEST_CODE:
        return False
    if values.str.contains(f"^(?:{_CODE.pattern})$").all():
        return True
    shapes = values.str.replace_all(r"\d", "0").str.replace_all(r"\p{L}", "a")
    return lengths.min() == longest and shapes.n_unique() == 1 and "0" in shapes[0]


def _frequency_rule(texts: Sequence[str], records: Integers) -> Rule:
    """A list that joins rare values, more of them at each level."""
    other = "(other)"
    while other in texts:
        other = f"({other})"
    order = np.argsort(-records, kind="stable")
    shares = records[order] / max(int(records.sum()), 1)
    joined = {int((shares < limit).sum()) for limit in _RARE}
    if not any(len(texts) <= 4 * count <= 3 * len(texts) for count in joined):
        joined.add(len(texts) // 2)  # the rarer half, because the limits make too large a step
    names = [texts[at] for at in order]
    columns = [names]
    before = 1
    for count in sorted(joined):
        if before < count < len(texts):
            columns.append([*names[: len(texts) - count], *[other] * count])
            before = count
    return listed((*row, ROOT) for row in zip(*columns, strict=True))


# -- answers to a question: their order, if it is known


def _are_names(values: pl.Series, labels: Mapping[Any, str]) -> bool:
    """Whether distinct numbers, ascending, are only names of their labels: 1 single, 2 married.

    Each has a label, and the labels are no answers in a known order.
    """
    whole = as_whole(values) if values.dtype.is_numeric() else None
    if whole is None or len(whole) < 3:
        return False
    texts = [labels[code] for code in whole.to_list() if code in labels]
    if len(texts) < len(whole) or all(_NUMBER.fullmatch(text) for text in texts):
        return False
    order = _scale_order(texts) or _number_order(texts)
    return order is None or texts not in (order, order[::-1])


def _scale_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of a known scale, or None."""
    bare = {text: " ".join(words_of(text)) for text in texts}
    if len(set(bare.values())) < len(texts):
        return None
    for scale in known_scales():
        places = {" ".join(words_of(answer)): place for place, answer in enumerate(scale)}
        if set(bare.values()) <= places.keys():
            return sorted(texts, key=lambda text: places[bare[text]])
    return None


def _number_order(texts: Sequence[str]) -> list[str] | None:
    """The texts in the order of their numbers, such as 5-9 and 10-14, or None.

    The first number decides, and the others only among texts that share it: 2024-Q1, 2024-Q2. What
    is not a number must be the same in all of them, but for a plural, or words such as "under" and
    "to". Words such as "none" stand for 0.
    """
    if len(texts) <= _MANY and all(_NUMBER.fullmatch(text) for text in texts):
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
