"""The outcome of a run as plain data that stays the same while nothing changes.

What varies without a change is left out: keys, days, versions, and the bytes of files whose
writers change them. Words for people are left out too: how often something is said is counted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from shoal import Table
from shoal.masking import Masker
from shoal.workflow import Assessment, Release

from ..fuzz.public_half import read_public

RECORDED = Path(__file__).parent / "recorded"
#: Two numbers that agree so far are the same: what is on record has nine digits.
TOLERANCE = 2e-9
#: Smaller than this is what is left where terms cancel.
NOTHING = 1e-12
#: Entries that a key, a day, a version or the bytes of a file are in.
_VARYING = {"key", "sha256", "shoal", "created", "report", "format_version", "plan"}
#: What a fitted step may have learned.
LEARNT = (
    "groups_",
    "blocks_",
    "caps_",
    "levels_",
    "loss_",
    "suppressed_",
    "optimal_",
    "proposed_",
    "class_sizes_before_",
    "redrawn_",
)
#: Entries in words, of which the number is kept.
_WORDS = {"warnings", "cautions", "notes"}
#: Entries with a reason in words for each name, of which the names are kept.
_REASONS = {"left_alone", "left_out", "failed"}


def digest(parts: Iterable[str | None]) -> str:
    """A checksum of texts, each of them apart from the next; None is none of them."""
    found = hashlib.sha256()
    for part in parts:
        found.update(b"-" if part is None else f"{len(part)}:{part}".encode())
    return found.hexdigest()


def digest_of_numbers(values: Any) -> str:
    """A checksum of numbers: whole ones as they are, others to nine digits."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return digest(repr(_rounded(float(value))) for value in array)
    return digest(str(value) for value in array.tolist())


def _rounded(value: float) -> float | str:
    if not math.isfinite(value):
        return str(value)
    return 0.0 if abs(value) < NOTHING else float(f"{value:.9g}")


def plain(value: Any) -> Any:
    """Facts as JSON holds them, numbers to nine digits, without what varies and without words."""
    if isinstance(value, Mapping):
        return {
            str(name): _kept(str(name), one)
            for name, one in value.items()
            if str(name) not in _VARYING and not str(name).endswith("_sha256")
        }
    if isinstance(value, np.ndarray):
        return digest_of_numbers(value)[:16]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return _rounded(float(value))
    if isinstance(value, np.generic):
        return value.item()
    return f"{type(value).__name__} {value}"


def _kept(name: str, value: Any) -> Any:
    if name in _WORDS:
        return len(value)
    if name in _REASONS and isinstance(value, Mapping):
        return sorted(value)
    return plain(value)


def of_assessment(assessment: Assessment) -> dict[str, Any]:
    """All numbers of an assessment, and a checksum of what each record was found to risk."""
    facts = plain(assessment.to_dict())
    for name in ("roles", "missing"):
        del facts[name]
    for name in ("together", "failed", "swapping", "notes"):
        if not facts[name]:
            del facts[name]
    facts["distributions"] = digest([json.dumps(facts["distributions"], sort_keys=True)])[:16]
    for name, entry in facts["measurements"].items():
        del entry["name"], entry["about"], entry["direction"]
        per_record = assessment.measurements[name].per_record
        if per_record is not None:
            entry["per_record"] = digest_of_numbers(per_record)[:16]
        facts["measurements"][name] = {
            key: one for key, one in entry.items() if key == "value" or one
        }
    return facts


def of_release(
    release: Release, table: Table, folder: Path, warned: Iterable[str]
) -> dict[str, Any]:
    """A release that was saved to a folder: both halves, and what only the object has.

    Without the assessment before: that is the same for all releases of a table.
    """
    public = read_public(folder / "public")
    facts = plain(public.facts)
    file = folder / "public" / facts["data"]["file"]
    data = facts.pop("data") | {
        "cells": digest(text for name, cells in public.columns.items() for text in (name, *cells)),
        "columns": {
            column["name"]: [column["type"], column["role"], digest(cells)[:16]]
            for column, cells in zip(
                facts_columns(public.facts), public.columns.values(), strict=True
            )
        },
    }
    if data["format"] in ("csv", "tsv"):
        data["bytes"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return {
        "data": data,
        "public": facts,
        "claims": {claim.key: plain(claim.measured) for claim in release.claims},
        "after": of_assessment(release.after),
        "profiles": _profiles(release),
        "private": of_private(folder / "private"),
        "fitted": [of_step(record.fitted) for record in release.steps],
        "served": of_served(release, table),
        "warnings given": dict(sorted(Counter(warned).items())),
    }


def of_step(fitted: Masker | None) -> dict[str, Any]:
    """What a step learned, the groups of the records among it, as checksums where it is long."""
    if fitted is None:
        return {}
    return {name: plain(vars(fitted)[name]) for name in LEARNT if name in vars(fitted)}


def of_served(release: Release, table: Table) -> dict[str, str]:
    """Raw rows as the fitted steps map them: a checksum of each column."""
    rows = table.drop(table.roles.withheld)
    for record in release.steps:
        if record.fitted is not None:
            rows = record.fitted.transform(rows)
    return {
        name: digest(None if cell is None else repr(cell) for cell in rows.frame[name].to_list())[
            :16
        ]
        for name in rows.columns
    }


def facts_columns(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What release.json says of each column."""
    return list(facts["data"]["columns"])


def _profiles(release: Release) -> dict[str, Any]:
    def bars(given: Iterable[Any]) -> list[str]:
        texts = {True: "{0.label} {0.before:.9g} {0.after:.9g}", False: "{0.label} - {0.after:.9g}"}
        return [texts[bar.before is not None].format(bar) for bar in given]

    return {
        "class sizes": bars(release.class_sizes),
        "columns": {
            profile.name: {
                "status": profile.status,
                "changed": plain(profile.changed_percent),
                "numeric": [profile.numeric, profile.intervals],
                "bars": len(profile.bars),
                "digest": digest(
                    f"{bar.label} {plain([bar.before, bar.after, bar.low, bar.high])}"
                    for bar in profile.bars
                )[:16],
            }
            for profile in release.columns
        },
    }


def of_private(folder: Path) -> dict[str, Any]:
    """The private half: who is who and who was with whom, as checksums."""
    audit = plain(json.loads((folder / "audit.json").read_text("utf-8")))
    for name in ("warning", "roles", "requirements"):
        del audit[name]
    return {"audit": audit} | {
        path.stem: _checksums(pyarrow.parquet.read_table(path))
        for path in sorted(folder.glob("*.parquet"))
    }


def _checksums(table: pyarrow.Table) -> dict[str, str]:
    pairs = zip(table.column_names, table.columns, strict=True)
    return {name: digest_of_numbers(column.to_numpy())[:16] for name, column in pairs}


# -- comparing


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every entry that holds no other ones, with the way to it."""
    if isinstance(value, Mapping) and value:
        for name, one in value.items():
            yield from leaves(one, f"{at} / {name}" if at else str(name))
    elif isinstance(value, list) and value:
        for place, one in enumerate(value):
            yield from leaves(one, f"{at}[{place}]")
    else:
        yield at, value


def differences(recorded: Any, found: Any) -> list[str]:
    """One line for each entry that is not as recorded."""
    old, new = dict(leaves(recorded)), dict(leaves(found))
    lines = [f"{at}: {old[at]!r} is gone" for at in old if at not in new]
    lines += [f"{at}: {new[at]!r} is new" for at in new if at not in old]
    lines += [
        f"{at}: {old[at]!r} became {new[at]!r}"
        for at in old
        if at in new and not _same(old[at], new[at])
    ]
    return lines


def _same(old: Any, new: Any) -> bool:
    number = (int, float)
    if isinstance(old, bool) or isinstance(new, bool) or not isinstance(old, number):
        return type(old) is type(new) and old == new
    return isinstance(new, number) and math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=NOTHING)


def place_of(name: str, folder: Path = RECORDED) -> Path:
    """Where an outcome is on record: in a folder for each word of its name."""
    return folder.joinpath(*name.split("-")).with_suffix(".json")


def names_on_record() -> set[str]:
    """Every name that has an outcome on record."""
    found = (path.relative_to(RECORDED).with_suffix("") for path in RECORDED.rglob("*.json"))
    return {"-".join(path.parts) for path in found}


def compare(name: str, found: Any, *, record: bool, folder: Path = RECORDED) -> None:
    """Fail where an outcome is not the recorded one, or put it on record."""
    file = place_of(name, folder)
    if record:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_written(found), "utf-8")
        return
    assert file.exists(), f"{name} is not on record; SHOAL_RECORD=1 records it"
    lines = differences(json.loads(file.read_text("utf-8")), json.loads(_written(found)))
    assert not lines, f"{name} differs in {len(lines)} entries:\n  " + "\n  ".join(lines[:40])


def _written(found: Any) -> str:
    """One line for each entry, up to the third level: a change is one line of a difference."""
    return _block(found, 0) + "\n"


def _block(value: Any, depth: int) -> str:
    if isinstance(value, Mapping) and value and (depth < 2 or len(json.dumps(value)) > 300):
        inside = ",\n".join(
            " " * (depth + 1)
            + f"{json.dumps(str(name), ensure_ascii=False)}: "
            + _block(one, depth + 1)
            for name, one in value.items()
        )
        return f"{{\n{inside}\n{' ' * depth}}}"
    return json.dumps(value, ensure_ascii=False)
