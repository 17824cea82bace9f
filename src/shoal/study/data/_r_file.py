"""Data frames in files of R (``.rda``): vectors, factors and their names, and nothing that runs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import struct
from typing import Any, Final

_DECOMPRESS: Final = (
    (b"\x1f\x8b", gzip.decompress),
    (b"BZh", bz2.decompress),
    (b"\xfd7zXZ\x00", lzma.decompress),
)
_SYMBOL, _PAIRS, _TEXT, _FLAGS, _WHOLE, _REAL, _TEXTS, _LIST = 1, 2, 9, 10, 13, 14, 16, 19
_SEQUENCE, _EARLIER, _NOTHING = 238, 255, {254, 253, 252, 251, 242, 241}
_MISSING: Final = -(2**31)  # a whole number or flag that is not known


class NotReadable(ValueError):
    """A file that is not of R, or has in it what a data frame does not have."""


class _Vector(list[Any]):
    """Values of R with their attributes."""

    attributes: dict[str, Any]


def data_frames(content: bytes) -> dict[str, dict[str, list[Any]]]:
    """The data frames of an ``.rda`` file by name: columns of numbers, texts and None.

    The format is that of R's ``save``, versions 2 and 3 in XDR; see "Serialization Formats" in
    the manual R Internals.
    """
    for magic, decompress in _DECOMPRESS:
        if content.startswith(magic):
            content = _decompressed(content, decompress)
    if content[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise NotReadable("it is not a file that R saved")
    try:
        saved = _Reader(content, 7).saved()
        return {
            name: _columns(value)
            for name, value in saved.items()
            if isinstance(value, _Vector) and "data.frame" in value.attributes.get("class", ())
        }
    except NotReadable:
        raise
    except (struct.error, LookupError, RecursionError, ValueError, TypeError, AttributeError):
        raise NotReadable("it is damaged") from None


def _decompressed(content: bytes, decompress: Any) -> bytes:
    try:
        plain: bytes = decompress(content)
    except (OSError, EOFError, ValueError, lzma.LZMAError):
        raise NotReadable("it is damaged") from None
    return plain


def _columns(frame: _Vector) -> dict[str, list[Any]]:
    return dict(zip(frame.attributes.get("names", ()), map(_values, frame), strict=True))


def _values(column: _Vector) -> list[Any]:
    levels = column.attributes.get("levels")
    if levels is None:
        return list(column)
    return [None if code is None else levels[code - 1] for code in column]


class _Reader:
    """What R wrote, item by item."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content, self._place = content, place
        self._symbols: list[Any] = []

    def saved(self) -> dict[str, Any]:
        """The objects of the file by name."""
        version, _, _ = self._numbers("i", 3)
        if version == 3:
            self._bytes(self._numbers("i", 1)[0])  # the name of an encoding
        found = self._item()
        return found if isinstance(found, dict) else {}

    def _bytes(self, count: int) -> bytes:
        if count < 0 or self._place + count > len(self._content):
            raise NotReadable("it is damaged")
        self._place += count
        return self._content[self._place - count : self._place]

    def _numbers(self, kind: str, count: int) -> tuple[Any, ...]:
        form = f">{count}{kind}"
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _item(self) -> Any:
        (flags,) = self._numbers("i", 1)
        kind = flags & 0xFF
        if kind in _NOTHING:
            return None
        if kind == _EARLIER:
            place = flags >> 8
            return self._symbols[(place or self._numbers("i", 1)[0]) - 1]
        if kind == _SYMBOL:
            self._symbols.append(self._item())
            return self._symbols[-1]
        if kind == _PAIRS:
            return self._pairs(flags)
        if kind == _TEXT:
            return self._text(flags)
        if kind == _SEQUENCE:
            return self._sequence()
        found = _Vector(self._vector(kind))
        found.attributes = (self._item() or {}) if flags & 0x200 else {}
        return found

    def _pairs(self, flags: int) -> dict[str, Any]:
        """A list of names and values, to its end."""
        found: dict[str, Any] = {}
        while flags & 0xFF == _PAIRS:
            if flags & 0x200:
                self._item()
            name = self._item() if flags & 0x400 else f"{len(found)}"
            found[name] = self._item()
            (flags,) = self._numbers("i", 1)
        if flags & 0xFF not in _NOTHING:
            raise NotReadable("it has more in it than data")
        return found

    def _text(self, flags: int) -> str | None:
        (length,) = self._numbers("i", 1)
        if length == -1:
            return None
        return self._bytes(length).decode("latin-1" if flags & 0x4000 else "utf-8")

    def _vector(self, kind: int) -> list[Any]:
        (length,) = self._numbers("i", 1)
        if kind in (_FLAGS, _WHOLE):
            return [None if one == _MISSING else one for one in self._numbers("i", length)]
        if kind == _REAL:
            return [None if math.isnan(one) else one for one in self._numbers("d", length)]
        if kind in (_TEXTS, _LIST):
            return [self._item() for _ in range(length)]
        raise NotReadable("it has more in it than data")

    def _sequence(self) -> _Vector:
        """A vector that R keeps in short: a sequence, or another vector with remarks."""
        about, state, attributes = self._item(), self._item(), self._item()
        name = str(next(iter(about.values())))
        if name.startswith("compact_"):
            length, first, step = state
            found = _Vector(first + step * place for place in range(int(length)))
        elif name.startswith("wrap_"):
            found = state[0] if isinstance(state, _Vector) else next(iter(state.values()))
        else:
            raise NotReadable("it has more in it than data")
        found.attributes = attributes or {}
        return found
