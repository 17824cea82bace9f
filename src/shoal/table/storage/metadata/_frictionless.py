"""Frictionless Data Package with a Table Schema: ``datapackage.json``.

https://specs.frictionlessdata.io/table-schema/ (version 1), https://datapackage.org/ (version 2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from shoal.table.columns._frames import Kind
from shoal.table.storage.metadata._description import (
    DescribedColumn,
    Description,
    Malformed,
    entry,
    nonempty,
    parsed_json,
    tables_in,
    texts_in,
)

NAME: Final = "datapackage.json"
_KINDS: Final[dict[str, Kind]] = {
    **{"integer": "integer", "number": "float", "boolean": "boolean", "string": "text"},
    **{"date": "date", "datetime": "datetime", "time": "time", "duration": "duration"},
    "year": "integer",
}
#: Durations are written as whole numbers of ticks.
_TYPES: Final = {kind: name for name, kind in reversed(_KINDS.items())} | {"duration": "integer"}
_OPEN_ENDED: Final = ("any", "geopoint", "geojson", "object", "array", "yearmonth", "list")
_MEDIA: Final = {"csv": "text/csv", "tsv": "text/tab-separated-values"}
_PLAIN_NAME: Final = re.compile(r"[-a-zA-Z0-9._]+")


def read(text: str, data: str) -> Description | None:
    """What the package says about the data file; None if it describes other files only."""
    resource = _resource(parsed_json(text), data)
    if resource is None:
        return None
    schema = resource.get("schema")
    if isinstance(schema, str):
        raise Malformed("its schema lies in another file; write the schema into the package")
    if not isinstance(schema, dict):
        raise Malformed("it has no schema")
    fields = tables_in(schema, "fields")
    columns = tuple(_column(field) for field in fields)
    dialect = entry(resource, "dialect", dict) or {}
    marks = {
        str(field.get("decimalChar", ".")) for field in fields if field.get("type") == "number"
    }
    return Description(
        columns,
        missing=_values(schema["missingValues"]) if "missingValues" in schema else None,
        delimiter=entry(dialect, "delimiter", str),
        decimal="," if marks == {","} else None,
        encoding=entry(resource, "encoding", str),
    )


def _resource(package: Mapping[str, Any], data: str) -> dict[str, Any] | None:
    """The resource with the path; a schema or a resource alone counts as one."""
    if "fields" in package:
        return {"schema": package}
    if "resources" not in package and "schema" in package:
        return dict(package)
    found = tables_in(package, "resources")
    if not found:
        raise Malformed("it lists no resources")
    for one in found:
        paths = texts_in(one.get("path", []), "path")
        if data in [PurePosixPath(path).name for path in paths]:
            return one
    return None


def _column(field: Mapping[str, Any]) -> DescribedColumn:
    name, kind = entry(field, "name", str), entry(field, "type", str)
    if not name:
        raise Malformed("a field has no name")
    if kind is not None and kind not in _KINDS and kind not in _OPEN_ENDED:
        raise Malformed(f"the field '{name}' has a type that Table Schema does not know")
    form = entry(field, "format", str) or "default"
    dated = kind in ("date", "datetime") and "%" in form
    return DescribedColumn(
        name,
        _KINDS.get(kind or ""),
        entry(field, "title", str),
        entry(field, "description", str),
        form.removeprefix("fmt:") if dated and kind == "date" else None,
        _values(field["missingValues"]) if "missingValues" in field else (),
        _labels(field.get("categories")),
    )


def _values(given: Any) -> tuple[str, ...]:
    """Missing values: texts, or in version 2 objects with a value and a label."""
    listed = given if isinstance(given, list) else [given]
    return texts_in([v.get("value") if isinstance(v, dict) else v for v in listed], "missingValues")


def _labels(given: Any) -> dict[str, str]:
    listed = given if isinstance(given, list) else []
    return {
        str(one["value"]): str(one["label"])
        for one in listed
        if isinstance(one, dict) and {"value", "label"} <= {*one}
    }


def write(description: Description, about: Mapping[str, str], file: Mapping[str, Any]) -> str:
    """The package of a release; ``file`` has its paths, format, checksum and date."""
    format = file["format"]
    resource = {
        "name": "data",
        "profile": "tabular-data-resource",
        "path": file["paths"] if len(file["paths"]) > 1 else file["paths"][0],
        "format": format,
        **nonempty([("mediatype", _MEDIA.get(format)), ("encoding", description.encoding)]),
        **({"hash": f"sha256:{file['sha256']}"} if len(file["paths"]) == 1 else {}),
        **({"dialect": {"delimiter": description.delimiter}} if description.delimiter else {}),
        "schema": {
            "fields": [_field(column, description.decimal) for column in description.columns],
            "missingValues": [""],
        },
    }
    people = [(role, about.get(role)) for role in ("publisher", "contact")]
    package = {
        "profile": "tabular-data-package",
        "name": "release",
        **nonempty([("title", about.get("title")), ("description", about.get("purpose"))]),
        "created": f"{file['created']}T00:00:00Z",
        **nonempty(
            [
                ("licenses", [_licence(about["licence"])] if "licence" in about else []),
                ("contributors", [{"title": who, "role": role} for role, who in people if who]),
                ("recipient", about.get("recipient")),
            ]
        ),
        "resources": [resource],
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _licence(text: str) -> dict[str, str]:
    if text.startswith(("http://", "https://")):
        return {"name": "other", "path": text}
    return {"name": text} if _PLAIN_NAME.fullmatch(text) else {"name": "other", "title": text}


def _field(column: DescribedColumn, decimal: str | None) -> dict[str, Any]:
    kind = _TYPES[column.kind or "text"]
    made = {"text": str, "integer": int}.get(column.kind or "text")
    labels = [
        {"value": made(value), "label": label} for value, label in column.labels.items() if made
    ]
    return {
        "name": column.name,
        "type": kind,
        **nonempty(
            [
                ("format", "any" if kind in ("datetime", "time") else None),
                ("title", column.label),
                ("description", column.description),
                ("decimalChar", decimal if kind == "number" and decimal == "," else None),
                ("categories", labels),
            ]
        ),
    }
