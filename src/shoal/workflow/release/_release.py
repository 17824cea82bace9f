"""A release: its public and its private half, and the check before both appear."""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from shoal.errors import DialectWarning, InputError, ReleaseError, quoted
from shoal.hints import Helpful, check_path, helpful, instead
from shoal.masking import Progress
from shoal.models import PrivacyModel
from shoal.notebook import listing, view
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
    return_freed_memory,
    role_word,
    source_digest,
)
from shoal.table.storage._formats import READ_ONLY, check_format
from shoal.workflow._assessment import Assessment, CostOfK
from shoal.workflow._plan import (
    Plan,
    StepRecord,
    minimalities_of,
    minimality_in_words,
    minimality_of,
)
from shoal.workflow._require import Claim, discover_all_measures, plain
from shoal.workflow.release._crowds import (
    SMALLEST_CROWD,
    crowded_count,
    crowded_removals,
    crowded_total,
)
from shoal.workflow.release._folder import check_targets, complete_or_absent, write_private
from shoal.workflow.release._profile import Bar, ColumnProfile

FORMAT_VERSION = 1
#: The file of the private half that records who was in the table before a sample was drawn.
SAMPLING_FILE = "sampling.parquet"
#: Measures that anyone can recompute from the released data alone.
PUBLIC_MEASURES = ("prosecutor_risk", "marketer_risk", "records_at_risk", "uniqueness")
#: What a notebook shows before and after.
_SHOWN_MEASURES = (
    "uniqueness",
    "marketer_risk",
    "homogeneity",
    "normalized_certainty_penalty",
    "suppressed_cells",
)


@dataclass(frozen=True, eq=False)
class Release(Helpful):
    """A masked table that satisfies its plan, ready to be saved.

    ``masked`` is the table with its rows shuffled. ``claims`` are the requirements with their
    measured values. ``before`` and ``after`` are assessments by the fast measures; ``sh.assess``
    takes all of them. ``save`` writes the release folder.
    """

    _instead = instead(
        {
            "release.masked.frame": "frame data df table to_pandas to_polars to_frame head",
            "release.save(folder, format='csv')": "to_csv to_parquet to_excel write export",
            "release.after.k": "k",
            "release.after": "assessment risk measurements",
            "release.to_html()": "report html show",
            "sh.verify(folder) after release.save(folder)": "verify",
            "release.claims; all of them hold in a release": "holds",
        }
    )

    masked: Table
    plan: Plan
    claims: tuple[Claim, ...]
    steps: tuple[StepRecord, ...]
    before: Assessment
    after: Assessment
    class_sizes: tuple[Bar, ...]
    columns: tuple[ColumnProfile, ...]
    removed_identifiers: tuple[str, ...]
    rows_before: int
    audit: Mapping[str, Any]
    #: What is left of each column, in words: for the steward, not for the public.
    left: Mapping[str, str] = field(default_factory=dict)
    #: The attacks that a page of the private half shows; None if the plan asks for none.
    attacks: Assessment | None = None
    #: What each k would have cost; empty if the plan asks for no page about it.
    k_curve: tuple[CostOfK, ...] = ()
    #: How the source was read; None if the original was a frame.
    manner: Manner | None = None
    #: The columns that were to be left out, whatever they hold.
    dropped: tuple[str, ...] = ()

    @helpful
    def save(
        self,
        out: str | os.PathLike[str],
        *,
        format: str = "parquet",
        force: bool = False,
        formulas: Formulas = "neutralise",
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        source: str | os.PathLike[str] | None = None,
        private_out: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder: complete, or not at all.

        Parameters
        ----------
        out : path
            The folder to create. It must be empty unless ``force`` is given.
        format : str
            The format of the data: parquet, csv, tsv, arrow, xlsx, dta, sav, zsav, por or xpt.
        force : bool
            Replace an existing release.
        formulas : {"neutralise", "keep"}
            In csv and tsv: put an apostrophe before texts and column names that a spreadsheet
            would run as formulas, or write them unchanged. The release lists the columns with such
            texts.
        delimiter, decimal, encoding : str, optional
            How to write csv and tsv (default: like the source, if that was text).
        source : path, optional
            The file that the original was read from. Its checksum goes into the private audit.
        private_out : path, optional
            A separate folder for the private half.
        progress : callable, optional
            Called with the current activity and the share that is done.
        """
        from shoal.workflow.release._verify import verify

        check_path(out, "release.save", "Pass the folder to create: release.save('release').")
        target, private = check_targets(out, private_out, force=force)
        if source is not None and not Path(source).is_file():
            raise ReleaseError(
                f"There is no source file '{source}', so it has no checksum to record."
            )
        if format not in FORMATS and format not in READ_ONLY:
            raise ReleaseError(f"There is no format '{format}'. Use one of {', '.join(FORMATS)}.")
        check_format(format, writing=True)
        if formulas not in ("neutralise", "keep"):
            raise InputError(f"formulas must be 'neutralise' or 'keep'; got {formulas!r}.")
        check_standards(self.plan.release.metadata, format)
        asked = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        dialect = _dialect(self, format, asked)
        warn_about_losses(self.masked, format)
        tell = progress or (lambda label, share: None)
        with complete_or_absent(target, replace=force, private=private) as folder:
            tell("Writing the data", 0.0)
            return_freed_memory()  # of the original
            _write_public(self, folder / "public", format, formulas, tell, dialect)
            tell("Writing the private half", 0.6)
            _write_private(
                self, folder / "private", source, _digest(folder / "public/release.json")
            )
            tell("Verifying the files", 0.8)
            return_freed_memory()
            verify(folder).raise_if_failed()
        return target

    def to_html(self) -> str:
        """The report as one self-contained HTML page, without saving anything.

        It is the page that ``save`` writes, except for the checksum of the data.
        """
        from shoal.workflow.report import release_page

        unsaved = dict.fromkeys(("file", "format", "sha256", "formulas"))
        return release_page(self, public_facts(self, unsaved))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A Release cannot be pickled or copied, since it holds the keys that undo it. Use "
            "release.save, which keeps the private half apart."
        )

    def __repr__(self) -> str:
        held = ", ".join(f"{claim.key}: {claim.measured:g}" for claim in self.claims)
        return f"Release: {len(self.masked):,} rows; {held or 'nothing was required'}"

    def _repr_html_(self) -> str:
        """The requirements with their values, the risk before and after, and the columns."""
        infos = discover_all_measures()
        claims = ((c.key, c.requirement.threshold, c.measured, c.holds) for c in self.claims)
        measured = [("k", self.before.k, self.after.k)] + [
            (infos[name].title, self.before[name].value, self.after[name].value)
            for name in _SHOWN_MEASURES
            if name in self.before and name in self.after
        ]
        words = {"removed": "left out"}
        columns = (
            (c.name, role_word(c.role), self.left.get(c.name) or words.get(c.status, c.status))
            for c in self.columns
        )
        more = "release.masked.head() shows rows, release.to_html() is the report"
        return view(
            repr(self),
            listing(("required", "limit", "measured", "holds"), claims),
            listing(("measure", "before", "after"), measured),
            listing(("column", "role", "what is left"), columns, of="columns"),
            quiet=f"{more}, release.save(folder) writes it.",
        )


def warn_about_losses(table: Table, format: str) -> None:
    """Warn about labels and reasons that a format cannot hold; refuse names that it cannot hold."""
    for loss in table.check_holds(format):
        warnings.warn(f"Unlike its source: {loss}.", DialectWarning, stacklevel=4)


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
    records = _write_records(
        folder / "records.parquet",
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
    unchanged = release.after.measurements.get("unchanged_records")
    more = {
        "source_sha256": None if source is None else source_digest(Path(source)),
        "release_sha256": facts_digest,
        "records_sha256": records,
        "sampling": _write_sampling(masked.sampling, folder / SAMPLING_FILE),
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
    codes = {f"code_{i}": codes for i, codes in enumerate(sampling.codes.values())}
    digest = _write_records(path, {"row_key": sampling.whole.row_key, **codes})
    return {"columns": sampling.whole.columns, "sha256": digest}


def _write_records(path: Path, columns: Mapping[str, Any]) -> str:
    """Write a private file with a row for each record; returns its checksum."""
    content = io.BytesIO()
    records_as_parquet(content, columns)
    write_private(path, content.getbuffer())
    return hashlib.sha256(content.getbuffer()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
