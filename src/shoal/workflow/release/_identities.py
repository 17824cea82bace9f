"""Checks of pseudonyms and shifted dates against the original, by other code than made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from shoal.errors import quoted
from shoal.kernels.arrays import Integers
from shoal.table import Table
from shoal.workflow.release._verification import Outcome

#: A value this long, and with a digit, is in another column only where it was copied.
_LONG: Final = 6
_SEVERAL: Final = 10
_LATER: Final = "other steps changed these columns as well"


def steps_of(facts: Mapping[str, Any], method: str) -> list[Mapping[str, Any]]:
    """The steps of a release that have one method."""
    return [step for step in facts["methods"] if step["method"] == method]


def _alone(facts: Mapping[str, Any], masked: Table, method: str) -> list[tuple[Any, list[str]]]:
    """The steps of a method, with the released columns that no other step touched."""
    times = Counter(name for step in facts["methods"] for name in {*step["columns"]})
    released = {name for name in masked.columns if times[name] == 1}
    steps = steps_of(facts, method)
    found = ((step, [name for name in step["columns"] if name in released]) for step in steps)
    return [(step, names) for step, names in found if names]


# -- pseudonyms


def same_pseudonyms(facts: Mapping[str, Any], original: Table, masked: Table) -> Outcome:
    """Whether pseudonyms and true values are one to one, and no true value is in the release."""
    count, known = 0, set()
    for step, names in _alone(facts, masked, "pseudonymize"):
        if not all(_same_gaps(original, masked, name) for name in names):
            return False, "a pseudonym is missing, or a missing value has one"
        pairs = {name: {*_pairs(original, name, masked, name)} for name in names}
        for name, found in pairs.items():
            if not _is_one_to_one(found):
                return False, f"the pseudonyms of {quoted([name])} are not one to one"
            if any(true == made for true, made in found):
                return False, f"{quoted([name])} has values that stayed as they were"
            values = {true for true, _ in found}
            if step["parameters"].get("shape") != "format" and values & {made for _, made in found}:
                return False, f"{quoted([name])} has pseudonyms that are true values"
            known |= values
            count += len(found)
        together = set().union(*pairs.values())
        if "shared_as" in step["parameters"] and not _is_one_to_one(together):
            return False, f"the pseudonyms of {quoted(names)} do not agree"
    if not count:
        return None, _LATER
    copied = _copied(facts, known, original, masked)
    if copied:
        return False, f"{quoted(copied)} has values of identifiers that were pseudonymized"
    return True, f"{count:,} pseudonyms, one to one; no identifier is in the release"


def _same_gaps(original: Table, masked: Table, name: str) -> bool:
    """Whether a value is missing in the release where it was, and nowhere else."""
    return np.array_equal(original.present(name)[masked.rows_in(original)], masked.present(name))


def _pairs(original: Table, true: str, masked: Table, made: str) -> dict[tuple[str, str], int]:
    """The values of an original column beside those of a released one, as texts, with counts."""
    rows = masked.rows_in(original)
    there = masked.present(made) & original.present(true)[rows]
    before, after = original.codes(true), masked.codes(made)
    width = np.int64(after.count)
    both = before.codes[rows][there].astype(np.int64) * width + after.codes[there]
    found, counts = np.unique(both, return_counts=True)
    olds, news = _plain(original, true), _plain(masked, made)
    pairs = [(olds[one // width], news[one % width]) for one in found.tolist()]
    return dict(zip(pairs, counts.tolist(), strict=True))


def _plain(table: Table, name: str) -> list[str]:
    """The values as texts: a whole number is one text, whatever type it has."""
    texts = table.codes(name).texts
    if table.kind(name) != "float":
        return texts
    whole = (text.partition(".") for text in texts)
    return [head if not tail.strip("0") else head + point + tail for head, point, tail in whole]


def _is_one_to_one(pairs: set[tuple[str, str]]) -> bool:
    return len(pairs) == len({true for true, _ in pairs}) == len({made for _, made in pairs})


def _copied(facts: Mapping[str, Any], known: set[str], original: Table, masked: Table) -> list[str]:
    """Other columns with true values that are too long, or too many, to be there by chance."""
    steps = steps_of(facts, "pseudonymize")
    pseudonyms = {name for step in steps for name in step["columns"]}
    named = [name for name in original.columns if name in pseudonyms]
    long = {one for one in known if _is_long(one)}
    others = [name for name in masked.columns if name not in named]
    beside = copies_beside(named, original, masked, others)
    return [
        name
        for name in others
        if name in beside or (masked.kind(name) == "text" and long & set(_plain(masked, name)))
    ]


def copies_beside(
    identifiers: Sequence[str], original: Table, masked: Table, released: Sequence[str]
) -> list[str]:
    """The released columns whose cells hold an identifier of their own row."""
    return [
        name
        for name in released
        if any(_shows(_pairs(original, true, masked, name)) for true in identifiers)
    ]


def _is_long(text: str) -> bool:
    return len(text) >= _LONG and any(char.isdigit() for char in text)


def _shows(pairs: Mapping[tuple[str, str], int]) -> bool:
    """Whether cells hold the true value of their own row, whole or as a part.

    Short values are in cells by chance: these must be the same in most rows, and not a few values.
    """
    if any(_is_long(true) and true in made for true, made in pairs):
        return True
    same = {true: count for (true, made), count in pairs.items() if true == made}
    return len(same) >= _SEVERAL and 2 * sum(same.values()) > sum(pairs.values())


# -- shifted dates


def same_shifts(facts: Mapping[str, Any], original: Table, masked: Table) -> Outcome:
    """Whether each person has one shift of whole days, which is not 0, in all shifted columns.

    Then the intervals between all dates of a person are what they were.
    """
    persons, checked = 0, 0
    for step, names in _alone(facts, masked, "shift_dates"):
        wrong, found = _wrong_shift(original, masked, names, step["parameters"])
        if wrong:
            return False, wrong
        persons, checked = max(persons, found), checked + len(names)
    if not checked:
        return None, _LATER
    return True, f"{persons:,} persons, each with one shift in {checked} columns; intervals kept"


def _wrong_shift(
    original: Table, masked: Table, names: Sequence[str], parameters: Mapping[str, Any]
) -> tuple[str, int]:
    """What is wrong with the shifts of some columns, and how many persons have one."""
    rows = masked.rows_in(original)
    owner, shift = [], []
    for name in names:
        (before, per_day), (after, also) = original.ticks(name), masked.ticks(name)
        there = masked.present(name)
        if per_day != also or not _same_gaps(original, masked, name):
            return f"{quoted([name])} has other missing dates, or another unit", 0
        moved = (after - before[rows])[there]
        if (moved % per_day).any():
            return f"{quoted([name])} was not moved by whole days", 0
        owner.append(masked.persons[there])
        shift.append(moved // per_day)
    return _wrong_days(np.concatenate(owner), np.concatenate(shift), parameters)


def _wrong_days(owner: Integers, shift: Integers, parameters: Mapping[str, Any]) -> tuple[str, int]:
    order = np.lexsort((shift, owner))
    owner, shift = owner[order], shift[order]
    first = np.append(True, owner[1:] != owner[:-1]) if len(owner) else np.zeros(0, np.bool_)
    same = ~first[1:]
    if (shift[1:][same] != shift[:-1][same]).any():
        return "dates of one person were moved by different numbers of days", 0
    each = shift[first]
    if (each == 0).any():
        return f"{int((each == 0).sum()):,} persons have their own dates", 0
    if (np.abs(each) > parameters.get("days", 365)).any():
        return "a shift is out of the range of the step", 0
    if parameters.get("weekdays") and (each % 7).any():
        return "the days of the week were not kept", 0
    return "", len(each)
