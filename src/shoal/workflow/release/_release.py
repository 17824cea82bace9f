"""Writing a release: the public half, the private half, and the check before both appear."""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import DialectWarning, InputError, ReleaseError, quoted
from shoal.hints import check_path
from shoal.masking import Progress
from shoal.models import PrivacyModel
from shoal.table import (
    DELIMITER_OF,
    FORMATS,
    Coding,
    Dialect,
    Formulas,
    Manner,
    Sampling,
    Table,
    check_standards,
    records_as_parquet,
    source_digest,
)
from shoal.table.storage._formats import READ_ONLY, check_format
from shoal.workflow._plan import StepRecord, minimalities_of, minimality_in_words, minimality_of
from shoal.workflow._plan_parts import PAGE_FILES
from shoal.workflow._require import Claim, plain
from shoal.workflow.release._crowds import (
    SMALLEST_CROWD,
    crowded_count,
    crowded_removals,
    crowded_total,
)
from shoal.workflow.release._folder import complete_or_absent, write_private

if TYPE_CHECKING:
    from shoal.workflow._protect import Release

FORMAT_VERSION = 1
#: The file of the private half that records who was in the table before a sample was drawn.
SAMPLING_FILE = "sampling.parquet"
_PRIVATE_FILES = {"audit.json", "records", "records.parquet", SAMPLING_FILE, *PAGE_FILES.values()}
#: Measures that anyone can recompute from the released data alone.
PUBLIC_MEASURES = ("prosecutor_risk", "marketer_risk", "records_at_risk", "uniqueness")


def save_release(
    release: Release,
    out: str | os.PathLike[str],
    *,
    format: str,
    force: bool,
    formulas: Formulas,
    asked: Mapping[str, str | None],
    source: str | os.PathLike[str] | None = None,
    private_out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a release folder, verify it from its files, and move it into place atomically."""
    from shoal.workflow.release._verify import verify

    check_path(out, "release.save", "Pass the folder to create: release.save('release').")
    target, private = check_targets(out, private_out, force=force)
    if source is not None and not Path(source).is_file():
        raise ReleaseError(f"There is no source file '{source}', so it has no checksum to record.")
    if format not in FORMATS and format not in READ_ONLY:
        raise ReleaseError(f"There is no format '{format}'. Use one of {', '.join(FORMATS)}.")
    check_format(format, writing=True)
    if formulas not in ("neutralise", "keep"):
        raise InputError(f"formulas must be 'neutralise' or 'keep'; got {formulas!r}.")
    check_standards(release.plan.release.metadata, format)
    dialect = _dialect(release, format, asked)
    warn_about_losses(release.masked, format)
    tell = progress or (lambda label, share: None)
    with complete_or_absent(target, replace=force, private=private) as folder:
        tell("Writing the data", 0.0)
        _write_public(release, folder / "public", format, formulas, tell, dialect)
        tell("Writing the private half", 0.6)
        _write_private(release, folder / "private", source, _digest(folder / "public/release.json"))
        tell("Verifying the files", 0.8)
        verify(folder).raise_if_failed()
    return target


def warn_about_losses(table: Table, format: str) -> None:
    """Warn about labels and reasons that a format cannot hold; refuse names that it cannot hold."""
    for loss in table.check_holds(format):
        warnings.warn(f"Unlike its source: {loss}.", DialectWarning, stacklevel=4)


def check_targets(
    out: str | os.PathLike[str], private_out: str | os.PathLike[str] | None, *, force: bool
) -> tuple[Path, Path | None]:
    """The folder of a release, and that of its private half if it is kept apart.

    A folder that holds something else raises ReleaseError.
    """
    target = Path(os.path.abspath(out))
    _check_target(target, force=force)
    if private_out is None:
        return target, None
    private = Path(os.path.abspath(private_out))
    one, other = target.resolve(), private.resolve()
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise ReleaseError(
            f"Of '{private}' and '{target}', one lies inside the other. Choose a separate folder "
            "for the private half."
        )
    _check_target(private, force=force, half=True)
    return target, private


def _check_target(target: Path, *, force: bool, half: bool = False) -> None:
    """Refuse a folder that holds something; with ``force``, anything except a release or its half.

    Also refuse a place to which no folder can be renamed: it would fail only after all the work.
    """
    ending = target.suffix.lower().removeprefix(".")
    if ending in FORMATS and not target.exists():
        raise ReleaseError(
            f"A release is a folder, but '{target.name}' looks like a file. Write "
            f"release.save('{target.stem}', format='{ending}'), or --out {target.stem} --format "
            f"{ending}."
        )
    if target.is_symlink():
        raise ReleaseError(f"'{target}' is a link. Pass the folder that it points to.")
    above = next((path for path in target.parents if os.path.lexists(path)), None)
    if above is not None and not above.is_dir():
        raise ReleaseError(
            f"'{above}' is not a folder, so it cannot contain '{target.name}'. Choose another "
            "folder for the release."
        )
    if not target.exists():
        return
    if not target.is_dir():
        raise ReleaseError(f"'{target}' is a file. Choose a folder for the release.")
    if os.path.ismount(target):
        raise ReleaseError(f"'{target}' is a mount point. Choose a folder inside it.")
    found = {path.name for path in target.iterdir()}
    known = _PRIVATE_FILES if half else {"public", "private"}
    is_release = (target / ("audit.json" if half else "public/release.json")).is_file()
    if _holds_current_folder(target) and (not found or is_release):
        raise ReleaseError(
            f"'{target}' is or contains the current folder. Choose a folder inside it."
        )
    if found and (found - known or not is_release):
        raise ReleaseError(f"'{target}' holds other files. Choose a new folder for the release.")
    if found and not force:
        raise ReleaseError(
            f"There is already a release at '{target}'. Choose another folder, or use --force "
            "(force=True) to replace it."
        )


def _holds_current_folder(target: Path) -> bool:
    try:
        return Path.cwd().resolve().is_relative_to(target.resolve())
    except OSError:  # the current folder is gone
        return False


def _dialect(release: Release, format: str, asked: Mapping[str, str | None]) -> Dialect | None:
    """How the text of a release is written: as asked, else like its source; None if it is no text.

    If the encoding of the source lacks a character, UTF-8 with a byte order mark is used instead.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    if format not in DELIMITER_OF:
        if given:
            raise InputError(
                f"A release as {format} does not have {quoted(given)}. Leave it out, or save the "
                "release as csv or tsv."
            )
        return None
    manner = release.manner or Manner()
    like = manner.dialect(format)
    if given.get("delimiter") == like.decimal:
        given = {"decimal": ".", **given}
    found = replace(like, **given)
    if "encoding" in given:
        return found
    lacking = release.masked.lacking(found.encoding)
    source = manner.options.encoding
    if lacking:
        why = f"{found.encoding} lacks characters that occur in {quoted(lacking)}"
        found = replace(found, encoding="utf-8-sig")
    elif found.encoding == "utf-8-sig" and not manner.marked:
        why = f"text is not written in {source}"
    else:
        return found
    warnings.warn(
        f"Unlike its source, the release is in UTF-8 with a byte order mark: {why}.",
        DialectWarning,
        stacklevel=4,
    )
    return found


def _write_public(
    release: Release,
    folder: Path,
    format: str,
    formulas: Formulas,
    tell: Progress,
    dialect: Dialect | None = None,
) -> None:
    folder.mkdir(mode=0o755)
    data = folder / f"data.{format}"
    release.masked.write(data, format=format, formulas=formulas, dialect=dialect)
    tell("Writing the report", 0.3)
    write_facts(release, folder, written_file(release, data, format, formulas, dialect))


def written_file(
    release: Release,
    data: Path,
    format: str,
    formulas: Formulas = "neutralise",
    dialect: Dialect | None = None,
) -> dict[str, Any]:
    """What ``release.json`` says about the data file, with its dialect if that is unusual."""
    handling = _formulas(release.masked, formulas) if format in DELIMITER_OF else None
    written = {"file": data.name, "format": format, "sha256": _digest(data), "formulas": handling}
    coding = release.masked.coding(format)
    if coding != Coding():
        return {**written, "coding": coding.to_dict()}
    if dialect is None or dialect == Dialect(DELIMITER_OF[format]):
        return written
    return {**written, "dialect": asdict(dialect)}


def write_facts(release: Release, folder: Path, written: Mapping[str, Any]) -> None:
    """Write the report and ``release.json`` next to the data; ``written`` describes the data."""
    from shoal.workflow.report import release_page

    facts = public_facts(release, written)
    facts |= write_metadata(release, folder, facts)
    report = folder / "report.html"
    report.write_text(release_page(release, facts), encoding="utf-8")
    facts["report"] = {"file": report.name, "sha256": _digest(report)}
    (folder / "release.json").write_text(
        json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def write_metadata(release: Release, folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the metadata files that the plan asks for; returns their entry in ``release.json``."""
    from shoal.workflow.papers._metadata import metadata_files

    entries = []
    for standard, (name, text) in metadata_files(release, facts).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
        entries.append({"standard": standard, "file": name, "sha256": _digest(folder / name)})
    return {"metadata": entries} if entries else {}


def public_facts(release: Release, written: Mapping[str, Any]) -> dict[str, Any]:
    """The content of ``release.json``; no part of it comes from a single original record."""
    from shoal import __version__

    masked, classes = release.masked, release.after.classes
    measured = {n: release.after[n].value for n in PUBLIC_MEASURES}
    if classes.rarest_history is not None:
        measured["rarest_history"] = classes.rarest_history
    return {
        "format_version": FORMAT_VERSION,
        "shoal": __version__,
        "created": datetime.now(UTC).date().isoformat(),
        **({"about": about} if (about := release.plan.release.public) else {}),
        "data": {
            **written,
            "rows": len(masked),
            "persons": masked.person_count if masked.has_persons else None,
            "shuffled": not release.plan.keep_order,
            "columns": [
                {"name": name, "type": kind, "role": masked.roles.of(name)}
                for name, kind in masked.schema.items()
            ],
        },
        "identifiers_removed": len(release.removed_identifiers),
        **({"columns_dropped": len(dropped)} if (dropped := release.dropped) else {}),
        "records_removed": crowded_total(
            [step.removed for step in release.steps], [step.losing for step in release.steps]
        ),
        "methods": _public_steps(release.steps),
        "claims": [claim.to_dict() | _caution(claim, release.steps) for claim in release.claims],
        "measured": {"k": classes.k, "classes": classes.count, **measured},
        "swapping": None if release.after.swapping is None else release.after.swapping.public(),
    }


def _caution(claim: Claim, steps: Sequence[StepRecord]) -> dict[str, Any]:
    """What weakens a claim about classes that a search chose: the search can be repeated."""
    found = minimalities_of(steps) if isinstance(claim.requirement, PrivacyModel) else []
    return {"cautions": [minimality_in_words(one) for one in found]} if found else {}


def _formulas(masked: Table, formulas: Formulas) -> dict[str, Any]:
    """Which columns have texts that a spreadsheet would run, and how they were written."""
    return {
        "handling": "neutralised" if formulas == "neutralise" else "kept",
        "cells": {name: crowded_count(n) for name, n in masked.running_cells().items()},
        "names": masked.running_names(),
    }


def _public_steps(steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """What each step did, without anything private.

    The limit of suppression is left out if few records were suppressed: it would reveal how few.
    """
    removals = crowded_removals([step.removed for step in steps], [step.losing for step in steps])
    return [
        {
            "method": step.method,
            "parameters": {
                name: value
                for name, value in step.parameters.items()
                if name != "suppression_limit" or not 0 < step.losing < SMALLEST_CROWD
            },
            "columns": list(step.touched),
            "left_alone": dict(step.skipped),
            "columns_removed": list(step.removed_columns),
            "records_removed": removed,
            "facts": plain(step.facts) | ({"minimality": found} if found else {}),
        }
        for step, removed in zip(steps, removals, strict=True)
        for found in [minimality_of(step)]
    ]


def _write_private(
    release: Release, folder: Path, source: str | os.PathLike[str] | None, facts_digest: str
) -> None:
    folder.mkdir(mode=0o700)
    masked = release.masked
    sizes = masked.classes.record_sizes
    content = io.BytesIO()
    records_as_parquet(
        content,
        {
            "row_key": masked.row_key,
            "class": masked.classes.labels,
            "class_size": sizes,
            "prosecutor_risk": 1.0 / sizes,
            **({"person": masked.persons} if masked.has_persons else {}),
            **({} if masked.households is None else {"household": masked.households}),
            **{f"group_{i}": e.groups for i, e in enumerate(masked.exchanges)},
            **{f"source_{i}": e.source for i, e in enumerate(masked.exchanges)},
        },
    )
    records = content.getbuffer()
    write_private(folder / "records.parquet", records)
    sampling = _write_sampling(masked.sampling, folder / SAMPLING_FILE)
    unchanged = release.after.measurements.get("unchanged_records")
    more = {
        "source_sha256": None if source is None else source_digest(Path(source)),
        "release_sha256": facts_digest,
        "records_sha256": hashlib.sha256(records).hexdigest(),
        "sampling": sampling,
        "exchanges": [
            {"columns": list(e.columns), "randomness": e.origin} for e in masked.exchanges
        ],
        "unchanged_records": None if unchanged is None else unchanged.details["records"],
    }
    write_audit(release, folder, more | write_pages(release, folder))


def write_pages(release: Release, folder: Path) -> dict[str, Any]:
    """Write the private pages that the plan asks for; returns their entry in the audit."""
    from shoal.workflow.papers._pages import private_pages

    entries = []
    for name, page in private_pages(release).items():
        content = page.encode("utf-8")
        write_private(folder / name, content)
        entries.append({"file": name, "sha256": hashlib.sha256(content).hexdigest()})
    return {"pages": entries} if entries else {}


def write_audit(release: Release, folder: Path, more: Mapping[str, Any]) -> None:
    """Write ``audit.json``, the private half's record of a release."""
    audit = {
        "format_version": FORMAT_VERSION,
        "warning": "Anyone who has this half can link the release to the original. Keep it apart.",
        "rows_before": release.rows_before,
        "identifiers": list(release.removed_identifiers),
        **more,
        **release.audit,
    }
    text = json.dumps(audit, indent=2, ensure_ascii=False) + "\n"
    write_private(folder / "audit.json", text.encode("utf-8"))


def _write_sampling(sampling: Sampling | None, path: Path) -> dict[str, Any] | None:
    """Write who was in the table before sampling, and in which class; returns the audit's entry."""
    if sampling is None:
        return None
    content = io.BytesIO()
    codes = {f"code_{i}": codes for i, codes in enumerate(sampling.codes.values())}
    records_as_parquet(content, {"row_key": sampling.whole.row_key, **codes})
    write_private(path, content.getvalue())
    return {"columns": sampling.whole.columns, "sha256": _digest(path)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
