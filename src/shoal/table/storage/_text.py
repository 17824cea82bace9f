"""Delimited text before it is parsed: its encoding, its delimiter, and whether its records fit.

polars fills a short record with missing values and renames a column that comes twice; both would
change a table without a word. So the text is looked at first, exactly, and all of it in one pass:
whether its bytes are text, what its checksum is, and where records end. What lies between an odd
and an even quotation mark is quoted, all other line ends and delimiters count.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import ReadError, did_you_mean
from shoal.table.storage._formats import COMPRESSIONS

DELIMITERS: Final = (",", ";", "\t", "|")

_CHUNK: Final = 1 << 20  # stays in the cache while it is looked at in several ways
_HEAD: Final = 4096
_SAMPLE: Final = 1 << 16
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
# the marks of UTF-32 begin like those of UTF-16, so they come first
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Text:
    """Bytes in UTF-8 without a byte order mark, which :meth:`check` still has to look at.

    ``whole`` says that they are the file as it lies on the disk; ``first_line`` on which line of
    the file they begin.
    """

    content: bytes | mmap.mmap
    called: str = "the text"
    encoding: str = "utf-8"
    first_line: int = 1
    whole: bool = False

    def check(self, piece: bytes, start: int = 0) -> None:
        """ReadError unless a piece, which begins at a position and ends with a line, is text."""
        if piece.isascii():
            return
        try:
            piece.decode(self.encoding)
        except UnicodeError as error:
            # the text of the cause quotes bytes of the file, so only its position is passed on
            at = start + getattr(error, "start", 0)
            raise _undecodable(self.called, self.encoding, self.line(at)) from None

    def decoded(self) -> str:
        """All of it; ReadError where it is no text."""
        content = bytes(self.content[:])
        self.check(content)
        return content.decode()

    def line(self, position: int) -> int:
        """The line of the file that a position is on."""
        return self.first_line + self.content[:position].count(b"\n")


def load_text(path: Path, encoding: str | None) -> Text:
    """The text of a file; plain UTF-8 is neither copied into memory nor checked yet.

    Without ``encoding`` a byte order mark decides, and a file without one must be UTF-8: an
    encoding that is guessed wrong garbles names without anybody noticing.
    """
    content = _content(path)
    name = _codec(encoding) if encoding is not None else _marked_encoding(content)
    whole = isinstance(content, mmap.mmap)
    if name in ("utf-8", "utf-8-sig", "ascii"):
        name = name.removesuffix("-sig")
        if content[:3] == codecs.BOM_UTF8:
            content, whole = content[3:], False
    else:
        content, name, whole = _recoded(path, content, name), "utf-8", False
    text = _from_first_line(Text(content, str(path), name, whole=whole))
    if b"\0" in text.content[:_HEAD]:
        raise ReadError(
            f"'{path}' does not look like text in {name}: it has null bytes; if it is UTF-16 "
            "without a byte order mark, say encoding='utf-16-le' or 'utf-16-be'."
        )
    return text


def _content(path: Path) -> bytes | mmap.mmap:
    compression = COMPRESSIONS.get(path.suffix.lower())
    try:
        if compression is not None:
            return _decompressed(path, compression)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        why = error.strerror or f"its {compression} compression is damaged"
        raise ReadError(f"'{path}' cannot be read: {why}.") from None


def _decompressed(path: Path, compression: str) -> bytes:
    import pyarrow as pa

    with pa.input_stream(str(path), compression=compression) as stream:
        return bytes(stream.read())


def _codec(encoding: str) -> str:
    try:
        "a".encode(encoding)  # refuses codecs that are not about text, unlike lookup
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        known = ["utf-8", "utf-16", "latin-1", "cp1252", "cp1250", "cp1251", "iso8859-15", "cp437"]
        raise ReadError(
            f"There is no text encoding '{encoding}'. {did_you_mean(encoding, known)}"
        ) from None


def _marked_encoding(content: bytes | mmap.mmap) -> str:
    head = content[:4]
    return next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")


def _recoded(path: Path, content: bytes | mmap.mmap, name: str) -> bytes:
    """The text in UTF-8, made in pieces, so that a large file is never held twice as text."""
    decoder = codecs.getincrementaldecoder(name)()
    line, made = 1, io.BytesIO()
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        try:
            text = decoder.decode(chunk, final=start + _CHUNK >= len(content))
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            raise _undecodable(str(path), name, line + chunk[:at].count(b"\n")) from None
        line += text.count("\n")
        made.write(text.encode())
    return made.getvalue()


def _undecodable(called: str, name: str, line: int) -> ReadError:
    others = [other for other in ("utf-8", "cp1252", "latin-1") if other != name]
    return ReadError(
        f"'{called}' is not text in {name} (line {line} cannot be decoded); give its encoding, "
        f"such as encoding='{others[0]}' or encoding='{others[1]}'."
    )


def _from_first_line(text: Text) -> Text:
    """The text from its first line that is not empty, with old Mac line ends made new."""
    content, whole = text.content, text.whole
    head = content[:_HEAD]
    if not head.strip():
        head = content[:]
        if not head.strip():
            raise ReadError(
                f"'{text.called}' is empty; a table needs at least a line of column names."
            )
    if b"\r" in head and content.find(b"\n") < 0:
        content, whole = content[:].replace(b"\r", b"\n"), False
        head = content[: len(head)]
    blank = head[: len(head) - len(head.lstrip(b"\r\n"))]
    if blank:
        content, whole = content[len(blank) :], False
    return Text(content, text.called, text.encoding, 1 + blank.count(b"\n"), whole)


# -- how it is cut into records and fields


@dataclass(frozen=True)
class Shape:
    """How a text is cut into records and fields, and what was found when looking at all of it.

    ``sha256`` is the checksum of the file, where the text is the file as it lies on the disk.
    """

    delimiter: str
    quoted: bool
    names: list[str]
    records: int
    blank_lines: int
    sha256: str | None


def shape_of(text: Text, *, delimiter: str | None, likely: str = ",") -> Shape:
    """Look at a whole text; ReadError if it is none, or its records do not fit together.

    Parameters
    ----------
    text : Text
        The text.
    delimiter : str, optional
        The character between fields; detected if not given.
    likely : str
        The delimiter to assume when the text does not tell.

    Examples
    --------
    >>> shape_of(Text(b"age;zip\\n31;01234\\n"), delimiter=None).names
    ['age', 'zip']
    """
    if delimiter is None:
        delimiter = _detected_delimiter(text, likely)
    elif len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ReadError(
            "The delimiter must be one ASCII character that is not a quotation mark; got "
            f"{delimiter!r}."
        )
    scan = _Scan(text, delimiter)
    digest = hashlib.sha256() if text.whole else None
    names: list[str] = []
    records = blank = 0
    for piece, start in scan.pieces():
        if digest is not None:
            digest.update(piece)
        text.check(piece, start)
        names = names or scan.names(piece)
        count = scan.regular(piece, len(names))
        if count is None:
            block = scan.block(piece, start)
            empty = scan.check_lengths(block, len(names))
            count = len(block.ends) - len(empty)
            blank += len(empty)
        records += count
    made = None if digest is None else digest.hexdigest()
    return Shape(delimiter, bool(scan.quoted), names, records - 1, blank, made)


def sample_rows(text: Text, delimiter: str, size: int = _SAMPLE) -> list[list[str]]:
    """The fields of the first records, that of the names included; none if they cannot be cut."""
    head = text.content[:size]
    sample = head.decode(errors="ignore")
    try:
        rows = [row for row in csv.reader(io.StringIO(sample, ""), delimiter=delimiter) if row]
    except csv.Error:
        return []
    if len(head) == size and len(rows) > 1:
        rows.pop()  # cut off by the end of the sample
    return rows


def without_blank_lines(text: Text, shape: Shape) -> bytes:
    """The text without its empty lines, which polars would take for records."""
    scan = _Scan(text, shape.delimiter)
    made = io.BytesIO()
    for piece, start in scan.pieces():
        if scan.regular(piece, len(shape.names)) is None:
            block = scan.block(piece, start)
            octets = block.octets
            ends = scan.check_lengths(block, len(shape.names))
            keep = np.ones(len(octets) + 1, np.bool_)  # the last line may lack its line end
            keep[ends] = False
            keep[ends[octets[ends - 1] == _RETURN] - 1] = False
            piece = octets[keep[:-1]].tobytes()
        made.write(piece)
    return made.getvalue()


def _detected_delimiter(text: Text, likely: str) -> str:
    """The candidate that cuts most first records into as many fields as the header, and more."""
    scores = {}
    for candidate in dict.fromkeys((likely, *DELIMITERS)):
        rows = sample_rows(text, candidate)
        width = len(rows[0]) if rows else 1
        if width > 1:
            scores[candidate] = (sum(len(row) == width for row in rows) / len(rows), width)
    return max(scores, key=scores.__getitem__, default=likely)


@dataclass(frozen=True)
class _Block:
    """A run of whole records: where each ends and how many delimiters it has."""

    start: int
    octets: npt.NDArray[np.uint8]
    ends: Positions
    delimiters: Positions


class _Scan:
    """One pass over a text, in pieces of whole records."""

    def __init__(self, text: Text, delimiter: str) -> None:
        self._text, self._delimiter = text, delimiter.encode()
        #: Whether quotation marks quote: not known before the first of them.
        self.quoted: bool | None = None
        self._others = bytes(set(range(256)) - {_NEWLINE, ord(delimiter)})

    def pieces(self) -> Iterator[tuple[bytes, int]]:
        """The text in pieces, and where each begins."""
        content, start, size = self._text.content, 0, _CHUNK
        while start < len(content):
            piece = content[start : start + size]
            if self.quoted is None and b'"' in piece:
                self.quoted = self._is_quoted(start + piece.index(b'"'))
            if start + len(piece) < len(content):
                piece = piece[: self._last_end(piece) + 1]
                if not piece:
                    size *= 2  # one record is longer than the piece
                    continue
            yield piece, start
            start, size = start + len(piece), _CHUNK

    def _is_quoted(self, first: int) -> bool:
        """Whether any field begins with a quotation mark, given where the first one stands.

        If none does, they are ordinary characters.
        """
        content, marks = self._text.content, (b'\n"', self._delimiter + b'"')
        if first == 0 or content[first - 1 : first + 1] in marks:
            return True
        return any(content.find(mark, first) >= 0 for mark in marks)

    def _last_end(self, piece: bytes) -> int:
        """Where the last whole record of a piece ends; -1 if none does."""
        if not (self.quoted and b'"' in piece):
            return piece.rfind(b"\n")
        octets = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero((octets == _NEWLINE) & ~_inside_quotes(octets))
        return int(ends[-1]) if len(ends) else -1

    def regular(self, piece: bytes, width: int) -> int | None:
        """The number of records, if all have so many fields and none has a quotation mark."""
        if self.quoted and b'"' in piece:
            return None
        bones = piece.translate(None, self._others)
        if not piece.endswith(b"\n"):
            bones += b"\n"
        count, rest = divmod(len(bones), width)
        record = self._delimiter * (width - 1) + b"\n"
        return count if not rest and bones == record * count else None

    def block(self, piece: bytes, start: int) -> _Block:
        """Where the records of a piece end; ReadError if a quotation mark is out of place."""
        octets = np.frombuffer(piece, np.uint8)
        outside: npt.NDArray[np.bool_] | bool = True
        if self.quoted:
            self._check_quotes(octets, start)
            outside = ~_inside_quotes(octets)
        ends = np.flatnonzero((octets == _NEWLINE) & outside)
        if octets[-1] != _NEWLINE:
            ends = np.append(ends, len(octets))
        fences = np.flatnonzero((octets == ord(self._delimiter)) & outside)
        delimiters = np.diff(np.searchsorted(fences, ends), prepend=0)
        return _Block(start, octets, ends, delimiters)

    def names(self, piece: bytes) -> list[str]:
        """The fields of the first record."""
        delimiter = self._delimiter.decode()
        if not (self.quoted and b'"' in piece):
            return piece.partition(b"\n")[0].decode().removesuffix("\r").split(delimiter)
        end = int(self.block(piece, 0).ends[0])
        header = piece[:end].decode().removesuffix("\r")
        try:
            return next(csv.reader(io.StringIO(header, ""), delimiter=delimiter))
        except csv.Error:
            raise ReadError(
                f"The first line of '{self._text.called}' is no line of column names: one would be "
                f"longer than {csv.field_size_limit():,} characters."
            ) from None

    def _check_quotes(self, octets: npt.NDArray[np.uint8], start: int) -> None:
        """ReadError where a quotation mark opens within a field or closes before its end."""
        may_precede = np.zeros(256, np.bool_)
        may_precede[[ord(self._delimiter), _NEWLINE, _QUOTE]] = True
        may_follow = may_precede.copy()
        may_follow[_RETURN] = True
        quotes = np.flatnonzero(octets == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        early = ~may_precede[octets[np.maximum(opening - 1, 0)]] & (opening > 0)
        last = len(octets) - 1
        late = ~may_follow[octets[np.minimum(closing + 1, last)]] & (closing < last)
        wrong = np.concatenate((opening[early], closing[late]))
        if len(wrong):
            line = self._text.line(start + int(wrong.min()))
            raise ReadError(
                f"A quotation mark on line {line} of '{self._text.called}' stands inside a field; "
                "quote the whole field and double the marks that are part of the text."
            )
        if len(opening) > len(closing):
            line = self._text.line(start + int(opening[-1]))
            raise ReadError(
                f"A quotation mark in '{self._text.called}' is opened and not closed, the last on "
                f"line {line}; close it, or double it if it is part of the text."
            )

    def check_lengths(self, block: _Block, width: int) -> Positions:
        """Where empty lines end; ReadError for a record with too few or too many fields."""
        wrong = np.flatnonzero(block.delimiters != width - 1)
        if not len(wrong):
            return wrong
        ends = block.ends[wrong]
        starts = np.where(wrong > 0, block.ends[wrong - 1] + 1, 0)
        blank = (ends == starts) | ((ends - starts == 1) & (block.octets[starts] == _RETURN))
        if not blank.all():
            first = int(np.argmin(blank))
            line = self._text.line(block.start + int(starts[first]))
            fields = int(block.delimiters[wrong[first]]) + 1
            raise ReadError(
                f"Line {line} of '{self._text.called}' has {fields} field{'s' * (fields > 1)} "
                f"where the header has {width}, counted with the delimiter "
                f"{self._delimiter.decode()!r}; mend the line, or give another delimiter=."
            )
        return ends


def _inside_quotes(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    # odd after an opening mark; only the last bit counts, so a byte may run over
    return np.cumsum(octets == _QUOTE, dtype=np.uint8) % 2 == 1
