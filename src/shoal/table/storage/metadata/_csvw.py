"""CSV on the Web: ``NAME.csv-metadata.json``, https://www.w3.org/TR/tabular-metadata/."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote, unquote

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

#: The ending of the file's name after the full name of the data file.
ENDING: Final = "-metadata.json"
_CONTEXT: Final = "http://www.w3.org/ns/csvw"
_WHOLE: Final = (
    "integer int long short byte nonNegativeInteger positiveInteger negativeInteger "
    "nonPositiveInteger unsignedLong unsignedInt unsignedShort unsignedByte gYear"
).split()
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(_WHOLE, "integer"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "float"),
    **dict.fromkeys(("string", "token", "normalizedString", "anyURI", "Name"), "text"),
    **{"boolean": "boolean", "date": "date", "datetime": "datetime", "dateTime": "datetime"},
    **{"dateTimeStamp": "datetime", "time": "time", "duration": "duration"},
}
_TYPES: Final = {
    **{"integer": "integer", "float": "number", "boolean": "boolean", "text": "string"},
    **{"date": "date", "datetime": "dateTime", "time": "time", "duration": "integer"},
}
#: Unicode date fields, and what Python writes for them.
_FIELDS: Final = {"yyyy": "%Y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d"}
_NAMES: Final = re.compile(r"[A-Za-z0-9_.~-]")


def read(text: str, data: str) -> Description | None:
    """What the file says about the data file; None if it describes other files only."""
    given = parsed_json(text)
    tables = tables_in(given, "tables") or [given]
    table = next((one for one in tables if _is_about(one, data)), None)
    if table is None:
        return None
    schema = table.get("tableSchema", given.get("tableSchema"))
    if isinstance(schema, str):
        raise Malformed("its tableSchema lies in another file; write it into this one")
    if not isinstance(schema, dict):
        raise Malformed("it has no tableSchema")
    inherited = {**given, **table, **schema}
    dialect = entry(inherited, "dialect", dict) or {}
    columns = tuple(
        _column(one, inherited) for one in tables_in(schema, "columns") if not one.get("virtual")
    )
    decimals = {_decimal(one.get("datatype")) for one in tables_in(schema, "columns")} - {None}
    return Description(
        columns,
        missing=texts_in(inherited["null"], "null") if "null" in inherited else None,
        delimiter=entry(dialect, "delimiter", str),
        decimal="," if decimals == {","} else None,
        encoding=entry(dialect, "encoding", str),
    )


def _is_about(table: Mapping[str, Any], data: str) -> bool:
    url = entry(table, "url", str)
    return url is None or unquote(PurePosixPath(url).name) == data


def _decimal(datatype: Any) -> str | None:
    form = datatype.get("format") if isinstance(datatype, dict) else None
    return form.get("decimalChar") if isinstance(form, dict) else None


def _column(given: Mapping[str, Any], inherited: Mapping[str, Any]) -> DescribedColumn:
    titles = _texts_of(given.get("titles"))
    name = titles[0] if titles else unquote(entry(given, "name", str) or "")
    if not name:
        raise Malformed("a column has neither a name nor a title")
    datatype = given.get("datatype", inherited.get("datatype", "string"))
    base, form = datatype, None
    if isinstance(datatype, dict):
        base, form = datatype.get("base", "string"), datatype.get("format")
    if not isinstance(base, str) or (base not in _KINDS and base not in ("any", "anyAtomicType")):
        raise Malformed(f"the column '{name}' has a datatype that is not supported")
    dated = _KINDS.get(base) == "date" and isinstance(form, str)
    said = _texts_of(given.get("dc:description")) or _texts_of(given.get("rdfs:comment"))
    label = _texts_of(given.get("rdfs:label")) or titles[1:]
    return DescribedColumn(
        name,
        _KINDS.get(base),
        label[0] if label else None,
        said[0] if said else None,
        re.sub("yyyy|MM?|dd?", lambda m: _FIELDS[m[0]], str(form)) if dated else None,
        texts_in(given["null"], "null") if "null" in given else (),
    )


def _texts_of(given: Any) -> list[str]:
    """A text in any of the forms that natural language has in JSON-LD."""
    if isinstance(given, dict):
        given = given.get("@value", next(iter(given.values()), None))
    listed = given if isinstance(given, list) else [given]
    flat = [one.get("@value") if isinstance(one, dict) else one for one in listed]
    return [text for text in flat if isinstance(text, str)]


def write(description: Description, about: Mapping[str, str], file: Mapping[str, Any]) -> str:
    """The metadata of a released CSV or TSV file."""
    names = {"title": "dc:title", "publisher": "dc:publisher", "licence": "dc:license"}
    names |= {"purpose": "dc:description", "contact": "dcat:contactPoint"}
    given = {
        "@context": _CONTEXT,
        "url": file["paths"][0],
        **{term: about[name] for name, term in names.items() if name in about},
        "dc:date": file["created"],
        "dialect": {
            "delimiter": description.delimiter or ",",
            "encoding": (description.encoding or "utf-8").removesuffix("-sig"),
            "header": True,
        },
        "tableSchema": {
            "columns": [_described(column, description.decimal) for column in description.columns]
        },
    }
    return json.dumps(given, indent=2, ensure_ascii=False) + "\n"


def _described(column: DescribedColumn, decimal: str | None) -> dict[str, Any]:
    datatype: Any = _TYPES[column.kind or "text"]
    if datatype == "number" and decimal == ",":
        datatype = {"base": "number", "format": {"decimalChar": ","}}
    labels = [f"{value}: {label}" for value, label in column.labels.items()]
    return {
        "name": "".join(c if _NAMES.match(c) else quote(c, safe="") for c in column.name),
        "titles": column.name,
        "datatype": datatype,
        **nonempty(
            [
                ("rdfs:label", column.label),
                ("dc:description", column.description),
                ("notes", labels),
            ]
        ),
    }
