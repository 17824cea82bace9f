"""What is left of each column after masking, in a few words for the steward or the public."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from functools import partial
from typing import Final

import numpy as np

from shoal.table import Pair, Table
from shoal.workflow.release._crowds import crowded_percent, share_step

_CUT: Final = re.compile(r"([^*]*)(\**)")
#: What is left of a date and how it is written, from fine to coarse.
_FORMS: Final = {
    "day": re.compile(r"\d{4}-\d\d-\d\d"),
    "month": re.compile(r"\d{4}-\d\d"),
    "quarter": re.compile(r"\d{4}-Q[1-4]"),
    "year": re.compile(r"\d{4}"),
    "5 years": re.compile(r"\d{3}0-\d{3}4|\d{3}5-\d{3}9"),
    "decade": re.compile(r"\d{3}0s"),
    "century": re.compile(r"\d\d00-\d\d99"),
}

#: The units of time with their length in days.
_UNITS: Final = {"year": 365.25, "month": 30.44, "day": 1, "hour": 1 / 24, "minute": 1 / 1440}


def what_is_left(
    original: Table, masked: Table, *, shifted: Container[str] = (), public: bool = False
) -> dict[str, str]:
    """What a reader of the release still has of each original column that may be released.

    ``shifted`` has the columns of shifted dates. For the ``public``, shares that compare with the
    original are in steps of a crowd.
    """
    names = [name for name in original.columns if name not in original.roles.withheld]
    shares = partial(_public_percent, rows=masked.records) if public else _percent
    named = [name for name in original.roles.naming if name in masked.columns]
    left = {name: _left(original, masked, name, shares) for name in names}
    moved = {n for n in names if n in shifted and masked.kind(n) in ("date", "datetime")}
    left |= dict.fromkeys(moved, "shifted, and the time between dates kept")
    return left | dict.fromkeys(named, "pseudonyms")


def _public_percent(share: float, rows: int) -> str:
    told = crowded_percent(share, rows)
    if told is None:
        return "some of the records"
    return f"about {told:.0f} %" if told else f"fewer than {share_step(rows)} %"


def _left(original: Table, masked: Table, name: str, shares: Callable[[float], str]) -> str:
    if name not in masked.columns:
        return "removed"
    changed = masked.changed_count(name, original)
    if not changed:
        return "unchanged"
    if masked.distinct(name) <= 1 < original.distinct(name):
        return "nothing left"
    rows, blank = len(masked), _blanked(original, masked, name)

    def told(**parts: int) -> str:
        found = (f"{said} in {shares(part / rows)}" for said, part in parts.items() if part)
        return ", ".join(found)

    if masked.kind(name) != "text":
        said = told(changed=changed - blank, blank=blank)
        return f"{said.removesuffix(' of the records')} of the records"
    counts = masked.value_counts(name)
    gone = counts.pop("*", 0)
    dated = original.kind(name) in ("date", "datetime")
    words = _calendar(list(counts)) if dated else _cut(list(counts))
    words = words or _ranges(original, masked, name)
    if words is None:
        words = told(unchanged=rows - changed, grouped=changed - gone - blank)
    blanks, removed = told(blank=blank), f"removed in {_percent(gone / rows)}" if gone else ""
    return ", ".join(filter(None, (words, blanks, removed)))


def _blanked(original: Table, masked: Table, name: str) -> int:
    """How many cells were blanked: they are missing now, and were not before."""
    if not masked.missing_count(name):
        return 0
    made = original.present(name)[Pair.of(original, masked).rows] & ~masked.present(name)
    return int(made.sum() if masked.times is None else masked.times[made].sum())


def _ranges(original: Table, masked: Table, name: str) -> str | None:
    """The median width of the ranges in a column of numbers or dates."""
    kind = original.kind(name)
    if kind not in ("integer", "float", "date", "datetime"):
        return None
    codes = masked.codes(name)
    recorded = masked.column(name).recorded_domain
    if recorded is None or (ends := recorded.ends) is None:
        return None
    widths = (ends[:, 1] - ends[:, 0])[codes.codes[codes.codes < len(ends)]]
    widths = widths[np.isfinite(widths)]
    if not len(widths):
        return "one open range"
    width = float(np.median(widths))
    if not width:
        return None  # most are single values
    return "ranges, half of them up to " + (
        _days(width) if kind in ("date", "datetime") else f"{width:,.4g} wide"
    )


def _days(days: float) -> str:
    for unit, length in _UNITS.items():
        if days >= 1.5 * length:
            return f"{days / length:.0f} {unit}s"
    return "a minute"


def _cut(labels: list[str]) -> str | None:
    """How many characters are left of codes that were cut on the right, such as ``55***``."""
    found = [_CUT.fullmatch(label) for label in labels]
    if not all(found) or not any(one and one[2] for one in found):
        return None
    kept = sorted({len(one[1]) for one in found if one})
    whole = {len(one[0]) for one in found if one}
    span = f"{kept[0]}" if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
    digits = all(one[1].isdigit() or not one[1] for one in found if one)
    if len(whole) == 1 and digits:
        return f"{span} of {whole.pop()} digits"
    if all(one and len(one[2]) == 1 for one in found):
        return f"the first {span} characters"  # one * stands for all that follow
    return f"{span} of {whole.pop()} characters" if len(whole) == 1 else None


def _calendar(labels: list[str]) -> str | None:
    """The calendar unit that is left of dates, or the finest and the coarsest one."""
    labels = [label for label in labels if not label.startswith("<")]  # all earlier ones
    units = {unit for unit, form in _FORMS.items() if any(map(form.fullmatch, labels))}
    if not units or not all(any(f.fullmatch(text) for f in _FORMS.values()) for text in labels):
        return None
    there = [unit for unit in _FORMS if unit in units]
    return there[0] if len(there) == 1 else f"{there[0]} to {there[-1]}"


def _percent(share: float) -> str:
    return "less than 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
