"""The metadata files of a release: what each released column is, and what was done to it.

They say nothing that the release itself does not show: no key, no seed, no value or range of the
original. Labels of values are kept only for values that the release has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.table import (
    DELIMITER_OF,
    DescribedColumn,
    Description,
    metadata_name,
    metadata_text,
    recorded_kind,
)
from shoal.workflow.report import _words

if TYPE_CHECKING:
    from shoal.workflow.release._release import Release


def metadata_files(release: Release, facts: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The name and the text of each metadata file that the plan asks for."""
    about, data = release.plan.release, facts["data"]
    if not about.metadata:
        return {}
    described = _description(release, facts)
    parts = data.get("parts", ())
    file = {
        "paths": [f"{data['file']}/{part['file']}" for part in parts] or [data["file"]],
        "format": data["format"],
        "sha256": parts[0]["sha256"] if len(parts) == 1 else data["sha256"],
        "created": facts["created"],
    }
    return {
        standard: (
            metadata_name(standard, data["file"]),
            metadata_text(standard, described, about.public, file),
        )
        for standard in about.metadata
    }


def _description(release: Release, facts: Mapping[str, Any]) -> Description:
    data = facts["data"]
    dialect = data.get("dialect", {})
    is_text = data["format"] in DELIMITER_OF
    return Description(
        tuple(
            _column(release, facts, one)
            for one in data["columns"]
            if one["name"] not in data.get("coding", {}).get("reasons", {}).values()
        ),
        delimiter=dialect.get("delimiter", DELIMITER_OF[data["format"]]) if is_text else None,
        decimal=dialect.get("decimal"),
        encoding=dialect.get("encoding", "utf-8") if is_text else None,
    )


def _column(
    release: Release, facts: Mapping[str, Any], column: Mapping[str, Any]
) -> DescribedColumn:
    masked, name = release.masked, column["name"]
    formulas = facts["data"]["formulas"] or {}
    marked = formulas.get("handling") == "neutralised"
    known = {} if release.manner is None else release.manner.described
    source = known.get(name) or DescribedColumn(
        name, label=masked.dictionary.labels.get(name), labels=masked.value_labels(name)
    )
    values = masked.value_counts(name) if source.labels else {}
    # a list of categories is read as complete, so values without a label are in it too
    some = any(value in values for value in source.labels)
    labels = {value: source.labels.get(value, value) for value in values} if some else {}
    kind = recorded_kind(name, column["type"])
    if codes := facts["data"].get("coding", {}).get("codes", {}).get(name):
        kind, labels = "integer", {code: labels.get(text, text) for code, text in codes.items()}
    said = [source.description, what_was_done(release, facts, name)]
    if marked and name in formulas["cells"]:
        said.append("Texts that begin like a formula are preceded by an apostrophe.")
    return DescribedColumn(
        f"'{name}" if marked and name in formulas["names"] else name,
        kind,
        label=source.label,
        description=" ".join(text for text in said if text),
        labels=labels,
    )


def what_was_done(release: Release, facts: Mapping[str, Any], name: str) -> str:
    """What was done to a released column, as the report also says."""
    steps = [m["method"] for m in facts["methods"] if name in m["columns"]]
    titles = dict.fromkeys(_words.step_title(method) for method in steps)
    if titles:
        return f"Changed by: {', '.join(titles)}."
    if name in release.masked.roles.unit_columns:
        return "Pseudonyms, made for this release."
    return "Not changed."
