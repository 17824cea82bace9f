"""The shape of ``release.json`` and ``audit.json``: what each entry may be, checked before use.

The author of these files may be malicious. So they are read strictly, and an entry that is unknown,
missing or of another type is refused here, once, before anything else looks at it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from shoal.errors import ReleaseError
from shoal.table import DELIMITERS, ENCODINGS, FORMATS, metadata_name
from shoal.workflow._plan_parts import METADATA, PAGE_FILES, public_texts
from shoal.workflow.release._release import FORMAT_VERSION
from shoal.workflow.release._verification import clean

#: No release has more than these; a file with more is not read.
MOST_CLAIMS: Final = 200
MOST_COLUMNS: Final = 20_000

#: What an entry may be: a test, the entries of a table, or the shape of all items of a list with
#: their largest number.
Shape = Callable[[Any], bool] | Mapping[str, Any] | Sequence[Any]

_LARGEST: Final = 1 << 63


def parse_json(content: bytes) -> Any:
    """Read JSON strictly; ValueError or RecursionError if it is anything but plain JSON.

    No name may occur twice in a table, since readers differ in which one they use, and no number
    may be infinite or NaN.
    """
    return json.loads(
        content.decode("utf-8"),
        object_pairs_hook=_without_twins,
        parse_constant=_finite,
        parse_float=_finite,
    )


def check_shape(value: Any, shape: Shape, file: str) -> dict[str, Any]:
    """Return the table; ReleaseError names the first entry that does not have its shape."""
    wrong = _misfit(value, shape, "")
    if wrong is not None:
        raise ReleaseError(f"{file} is not as Shoal writes it: {clean(wrong)}")
    return dict(value)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError
    return table


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _misfit(value: Any, shape: Shape, at: str) -> str | None:
    """Where a value deviates from its shape; None if it does not."""
    if callable(shape):
        return None if shape(value) else f"'{at}' has the wrong type or is out of range"
    if isinstance(shape, Mapping):
        return _misfit_of_table(value, shape, at)
    item_shape, *most = shape
    if not isinstance(value, list):
        return f"'{at}' is not a list"
    if most and len(value) > most[0]:
        return f"'{at}' has {len(value):,} entries, more than the {most[0]:,} that are allowed"
    found = (_misfit(item, item_shape, f"{at}[{number}]") for number, item in enumerate(value))
    return next((wrong for wrong in found if wrong is not None), None)


def _misfit_of_table(value: Any, shape: Mapping[str, Any], at: str) -> str | None:
    """Names that end in ``?`` are optional; ``*`` in the shape allows unknown ones."""
    if not isinstance(value, dict):
        return f"'{at}' is not a table" if at else "it is not a table"
    inside = f"{at}." if at else ""
    known = {name.removesuffix("?"): part for name, part in shape.items() if name != "*"}
    for name, part in known.items():
        if name in value:
            wrong = _misfit(value[name], part, inside + name)
            if wrong is not None:
                return wrong
        elif f"{name}?" not in shape:
            return f"'{inside}{name}' is missing"
    unknown = next((name for name in value if name not in known), None)
    return None if unknown is None or "*" in shape else f"'{inside}{unknown}' is unknown"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _maybe(shape: Shape) -> Callable[[Any], bool]:
    return lambda value: value is None or _misfit(value, shape, "") is None


def _among(*known: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in known


def _written(pattern: str) -> Callable[[Any], bool]:
    form = re.compile(pattern)
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


def _day(value: Any) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _table_of(shape: Shape) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict) and all(_misfit(v, shape, "") is None for v in value.values())
    )


def _version(value: Any) -> bool:
    return _whole(value) and value == FORMAT_VERSION


def _public_count(value: Any) -> bool:
    """A count of people, or the words for one that may not be published."""
    return _count(value) or _few(value)


_flag: Final = _is(bool)
_text: Final = _is(str)
_table: Final = _is(dict)
_anything: Final = _is(object)
_nothing: Final = _is(type(None))
_few: Final = _written(r"some|(fewer than|more than|at least|at most|about) \d+")
_origin: Final = _among("entropy", "seed", "key")
_sha256: Final = _written("[0-9a-f]{64}")

_codes: Final = lambda value: (  # noqa: E731
    isinstance(value, dict)
    and all(re.fullmatch(r"-?\d{1,10}", code) for code in value)
    and all(isinstance(text, str) for text in value.values())
    and len(set(value.values())) == len(value)
)
_COLUMN: Final = {"name": _text, "type": _text, "role": _maybe(_text)}
_METHOD: Final = {
    "method": _written("[a-z][a-z0-9_]*"),
    "parameters": _table,
    "columns": [_text],
    "left_alone": _table_of(_text),
    "columns_removed": [_text],
    "records_removed": _public_count,
    "facts": _table,
}
_CLAIM: Final = {
    "claim": _text,
    "requirement": _anything,
    "required": _number,
    "measured": _maybe(_number),
    "holds": _flag,
    "needs_original": _flag,
    "private_parameters": _flag,
    "rests_on_seed": _flag,
    "sampled_persons?": _count,
    "cautions?": [_text],
}
_SWAPPING: Final = {
    "k": _count,
    "columns": [_text],
    "swapped": _among("sensitive", "quasi_identifiers"),
    "linkage": _table,
    "widths": _table_of(_number),
    "leaks": [_table],
}

#: The names that metadata files may have.
METADATA_FILES: Final = {
    metadata_name(standard, f"data.{format}") for standard in METADATA for format in FORMATS
}

#: What ``release.json`` says about any data.
_DATA: Final = {
    "sha256": _sha256,
    "rows": _count,
    "persons": _maybe(_count),
    "shuffled": _flag,
    "columns": [_COLUMN, MOST_COLUMNS],
}

#: ``release.json``; a new entry needs a line here.
FACTS: Final = {
    "format_version": _version,
    "shoal": _written(r"\d+(\.\w+)+([+-][\w.]+)?"),
    "created": _day,
    "about?": {f"{name}?": _text for name in public_texts()},
    "metadata?": [
        {"standard": _among(*METADATA), "file": _among(*METADATA_FILES), "sha256": _sha256},
        len(METADATA),
    ],
    "data": {
        "file": _among(*(f"data.{format}" for format in FORMATS)),
        "format": _among(*FORMATS),
        **_DATA,
        "formulas": _maybe(
            {
                "handling": _among("neutralised", "kept"),
                "cells": _table_of(_public_count),
                "names": [_text],
            }
        ),
        "dialect?": {
            "delimiter": _among(*DELIMITERS),
            "decimal": _among(".", ","),
            "encoding": _among(*ENCODINGS),
        },
        "coding?": {"codes": _table_of(_codes), "reasons": _table_of(_text)},
    },
    "identifiers_removed": _count,
    "columns_dropped?": _count,
    "records_removed": _public_count,
    "methods": [_METHOD],
    "claims": [_CLAIM, MOST_CLAIMS],
    "measured": _table_of(_number),
    "swapping": _maybe(_SWAPPING),
    "report": {"file": _among("report.html"), "sha256": _sha256},
}

_PART: Final = {"file": _written(r"part-\d{5}\.parquet"), "rows": _count, "sha256": _sha256}
MOST_PARTS: Final = 100_000

#: ``release.json`` of a release in parts.
FACTS_IN_PARTS: Final = FACTS | {
    "data": {
        "file": _among("data"),
        "format": _among("parquet"),
        **_DATA,
        "parts": [_PART, MOST_PARTS],
        "formulas": _nothing,
    }
}

_PAGE: Final = {"file": _among(*PAGE_FILES.values()), "sha256": _sha256}

#: What any ``audit.json`` has, as far as it is used: it is private and may record more.
_AUDIT: Final = {
    "format_version": _version,
    "warning": _text,
    "pages?": [_PAGE, len(PAGE_FILES)],
    "rows_before": _count,
    "identifiers": [_text],
    "plan": _table,
    "roles": _table,
    "steps": [_table],
    "requirements": [_anything],
    "*": None,
}

#: ``audit.json`` of a release with one data file.
AUDIT: Final = _AUDIT | {
    "source_sha256": _maybe(_sha256),
    "release_sha256?": _sha256,
    "records_sha256?": _sha256,
    "sampling": _maybe({"columns": [_text], "sha256": _sha256}),
    "exchanges": [{"columns": [_text], "randomness": _origin, "*": None}],
    "unchanged_records": _maybe(_count),
    "read?": _table,
    "course": {
        "state": _among("raw", "sampled", "generalized", "other"),
        "fraction": _maybe(lambda value: _number(value) and 0 <= value <= 1),
        "origin": _maybe(_origin),
        "smallest": _maybe(_count),
        "*": None,
    },
}

#: ``audit.json`` of a release in parts.
AUDIT_IN_PARTS: Final = _AUDIT | {
    "source": [{"name": _text, "bytes": _count}],
    "release_sha256": _sha256,
    "parts": [_PART, MOST_PARTS],
    "engine": _text,
    "order": _sha256,
    "course?": AUDIT["course"],
}
