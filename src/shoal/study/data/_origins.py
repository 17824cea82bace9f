"""The origins of tables of built-in studies that no archive offers as tables."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from shoal.errors import MissingExtra
from shoal.study.data._fetching import DATA_VARIABLE, kept_folder
from shoal.table import records_as_parquet

_SECONDS: Final = 60
_MOST_BYTES: Final = 50_000_000


class NotFetched(Exception):
    """Why a table is missing; a sentence with its origin and what to do."""


@dataclass(frozen=True)
class Origin:
    """A file kept by someone else, and what a study takes from it.

    Parameters
    ----------
    url : str
        The address of the file, a data frame saved by R.
    columns : sequence of str
        The columns to take, in this order.
    checksum : str
        The checksum of the names and values of these columns; see :func:`checksum`.
    licence : str
        The terms of the file.
    """

    url: str
    columns: Sequence[str] = field(repr=False)
    checksum: str = field(repr=False)
    licence: str

    @property
    def file_name(self) -> str:
        """The name of the file at its origin."""
        return self.url.rpartition("/")[2]


def fetch(name: str, path: str, origin: Origin) -> Path:
    """Make the file of a table from its origin.

    If the origin's own file already lies in the table's folder, it is used, so that it also works
    on a machine without a network.
    """
    target = kept_folder() / path
    own = target.with_name(origin.file_name)
    content = own.read_bytes() if own.is_file() else _downloaded(name, origin, own)
    columns = _columns_of(name, content, origin)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=target.parent, suffix=".part")
    except OSError:
        raise NotFetched(
            f"The folder {target.parent} for the table '{name}' is not writable; name another one "
            f"in the environment variable {DATA_VARIABLE}."
        ) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            records_as_parquet(stream, columns)
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)
    return target


def _downloaded(name: str, origin: Origin, own: Path) -> bytes:
    try:
        with urllib.request.urlopen(origin.url, timeout=_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, urllib.error.URLError, ValueError):
        raise NotFetched(
            f"The table '{name}' could not be fetched from {origin.url}; download this file, save "
            f"it as {own}, and run the same command again."
        ) from None
    return content


def _columns_of(name: str, content: bytes, origin: Origin) -> dict[str, list[Any]]:
    """The columns of the study, if their values are those that the study was made with."""
    for frame in _frames_in(content):
        if set(origin.columns) <= set(frame.columns):
            columns = {column: _whole(frame[column].tolist()) for column in origin.columns}
            if checksum(columns) == origin.checksum:
                return columns
    raise NotFetched(
        f"The file {origin.file_name} of the table '{name}' is not the one that the study was made "
        f"with: its checksum differs, so it is not used. Download it from {origin.url}."
    )


def _frames_in(content: bytes) -> list[Any]:
    """The data frames in a file saved by R; none if the file is damaged or of another kind."""
    try:
        import rdata
    except ImportError:
        raise MissingExtra("Reading a table saved by R", "study") from None
    if len(content) > _MOST_BYTES:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rdata.conversion.convert(rdata.parser.parse_data(content))
    except Exception:  # a damaged file can raise any error in the parser
        return []
    return [value for value in found.values() if hasattr(value, "columns")]


def _whole(values: Sequence[Any]) -> list[Any]:
    """Numbers as integers if all of them are whole."""
    if all(isinstance(each, (int, float)) and float(each).is_integer() for each in values):
        return [int(each) for each in values]
    return list(values)


def checksum(columns: Mapping[str, Sequence[Any]]) -> str:
    """A hash of the names and values of columns, independent of their file.

    Examples
    --------
    >>> checksum({"age": [30, 41]}) == checksum({"age": [30, 42]})
    False
    """
    digest = hashlib.sha256()
    for name, values in columns.items():
        for each in (name, *values, "\0"):
            digest.update(f"{each}\n".encode())
    return digest.hexdigest()
