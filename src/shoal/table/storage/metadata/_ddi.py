"""DDI-Codebook 2.5: ``ddi.xml``, https://ddialliance.org/Specification/DDI-Codebook/2.5/."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from shoal.table.columns._frames import Kind
from shoal.table.storage.metadata._description import DescribedColumn, Description, Malformed

NAME: Final = "ddi.xml"
_SPACE: Final = "ddi:codebook:2_5"
#: What XML 1.0 cannot hold.
_UNWRITABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(text: str, data: str) -> Description | None:
    """What the codebook says about the data file; None if it describes other files only."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise Malformed("it declares entities or a document type, which Shoal does not read")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        raise Malformed("it is not valid XML") from None
    for one in root.iter():
        one.tag = one.tag.rpartition("}")[2] if isinstance(one.tag, str) else ""
    if root.tag != "codeBook":
        raise Malformed("it is not a DDI codebook")
    files = [one.strip() for one in _texts(root, "fileDscr/fileTxt/fileName")]
    ids = [one.get("ID") for one in root.findall("fileDscr")]
    places = [n for n, name in enumerate(files) if PurePosixPath(name).name == data]
    if files and not places:
        return None
    own = ids[places[0]] if places and len(ids) == len(files) else None
    found = root.findall("dataDscr/var")
    chosen = [one for one in found if not own or one.get("files") in (None, own)]
    if not chosen:
        raise Malformed("it describes no variables")
    return Description(tuple(map(_column, chosen)))


def _texts(root: Element, path: str) -> Iterator[str]:
    for one in root.findall(path):
        if text := " ".join("".join(one.itertext()).split()):
            yield text


def _column(var: Element) -> DescribedColumn:
    name = var.get("name")
    if not name:
        raise Malformed("a variable has no name")
    labels, missing = {}, []
    for category in var.findall("catgry"):
        value = next(_texts(category, "catValu"), None)
        if value is None:
            continue
        if category.get("missing") == "Y":
            missing.append(value)
        elif label := next(_texts(category, "labl"), None):
            labels[value] = label
    missing += [one.get("VALUE", "") for one in var.findall("invalrng/item")]
    return DescribedColumn(
        name,
        _kind(var, labels),
        next(_texts(var, "labl"), None),
        next(_texts(var, "txt"), None),
        missing=tuple(dict.fromkeys(value for value in missing if value)),
        labels=labels,
    )


def _kind(var: Element, labels: Mapping[str, str]) -> Kind | None:
    form = var.find("varFormat")
    category = "" if form is None else form.get("category", "")
    if category in ("date", "time"):
        return "date" if category == "date" else "time"
    kind = None if form is None else form.get("type")
    if kind == "numeric":
        is_continuous = var.get("intrvl") == "contin" or var.get("dcml") not in (None, "0")
        return "float" if is_continuous else "integer" if var.get("dcml") == "0" else None
    return "text" if kind == "character" else None


def write(description: Description, about: Mapping[str, str], file: Mapping[str, Any]) -> str:
    """The codebook of a release."""
    ElementTree.register_namespace("", _SPACE)
    root = Element(_tag("codeBook"), version="2.5")
    study = SubElement(root, _tag("stdyDscr"))
    _citation(SubElement(study, _tag("citation")), about, file)
    if "purpose" in about:
        abstract = _add(SubElement(study, _tag("stdyInfo")), "abstract", about["purpose"])
        abstract.set("contentType", "purpose")
    if "licence" in about or "recipient" in about:
        use = SubElement(SubElement(study, _tag("dataAccs")), _tag("useStmt"))
        for element, name in (("restrctn", "recipient"), ("conditions", "licence")):
            if name in about:
                _add(use, element, about[name])
    for number, path in enumerate(file["paths"], 1):
        told = SubElement(SubElement(root, _tag("fileDscr"), ID=f"F{number}"), _tag("fileTxt"))
        _add(told, "fileName", path)
        _add(told, "fileType", file["format"])
    data = SubElement(root, _tag("dataDscr"))
    for number, column in enumerate(description.columns, 1):
        _variable(data, column, number, " ".join(f"F{n + 1}" for n in range(len(file["paths"]))))
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _citation(citation: Element, about: Mapping[str, str], file: Mapping[str, Any]) -> None:
    # a title is mandatory in DDI: without one, the element names the file
    _add(SubElement(citation, _tag("titlStmt")), "titl", about.get("title", file["paths"][0]))
    if "publisher" in about:
        _add(SubElement(citation, _tag("prodStmt")), "producer", about["publisher"])
    distribution = SubElement(citation, _tag("distStmt"))
    if "contact" in about:
        _add(distribution, "contact", about["contact"])
    _add(distribution, "distDate", file["created"]).set("date", file["created"])


def _variable(data: Element, column: DescribedColumn, number: int, files: str) -> None:
    numeric = column.kind in ("integer", "float", "duration")
    var = SubElement(data, _tag("var"), ID=f"V{number}", name=_written(column.name), files=files)
    if numeric:
        var.set("intrvl", "contin" if column.kind == "float" else "discrete")
        if column.kind != "float":
            var.set("dcml", "0")
    if column.label:
        _add(var, "labl", column.label)
    if column.description:
        _add(var, "txt", column.description)
    for value, label in column.labels.items():
        category = SubElement(var, _tag("catgry"))
        _add(category, "catValu", value)
        _add(category, "labl", label)
    form = SubElement(var, _tag("varFormat"), type="numeric" if numeric else "character")
    if column.kind in ("date", "datetime", "time"):
        form.set("category", "time" if column.kind == "time" else "date")


def _add(parent: Element, name: str, text: str) -> Element:
    made = SubElement(parent, _tag(name))
    made.text = _written(text)
    return made


def _written(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)


def _tag(name: str) -> str:
    return f"{{{_SPACE}}}{name}"
