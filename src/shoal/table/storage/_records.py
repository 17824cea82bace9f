"""The shape of delimited text: its delimiter, its header, and whether all records fit together.

polars fills short records with missing values and renames repeated columns; both would silently
change a table. The whole text is therefore checked first, in one pass: whether its bytes are text,
its checksum, and where records end. Text between an odd and an even quotation mark is quoted; all
other line ends and delimiters count.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import ReadError
from shoal.kernels.arrays import Flags, Integers
from shoal.table.storage._formats import DELIMITERS
from shoal.table.storage._header import title_rows
from shoal.table.storage._text import Text

_CHUNK: Final = 1 << 20  # stays in the cache while it is checked in several ways
_SAMPLE: Final = 1 << 16
_PART: Final = 1 << 25
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


@dataclass(frozen=True)
class Shape:
    """How a text splits into records and fields, and what the pass over the text found."""

    delimiter: str
    quoted: bool
    names: list[str]
    records: int
    blank_lines: int
    sha256: str | None
    #: Where stretches of whole records begin.
    parts: list[int]


def shape_of(text: Text, *, delimiter: str | None, likely: str = ",") -> Shape:
    """The shape of a whole text; ReadError if it is not text or its records do not fit together."""
    if delimiter is None:
        delimiter = detected_delimiter(text, likely)
    scan = _Scan(text, delimiter)
    digest = hashlib.sha256() if text.whole else None
    names: list[str] = []
    records = blank = 0
    parts = [0]
    for piece, start in scan.pieces():
        if start - parts[-1] >= _PART and len(names) > 1:
            # not for a single column: polars skips an empty line at the start of a part
            parts.append(start)
            text.let_go(start)
        if digest is not None:
            digest.update(piece)
        text.check(piece, start)
        names = names or scan.names(piece)
        count = scan.regular(piece, len(names))
        if count is None:
            count, empty = scan.irregular(piece, start, len(names))
            blank += len(empty)
        records += count
    text.let_go(len(text.content))
    made = None if digest is None else digest.hexdigest()
    return Shape(delimiter, bool(scan.quoted), names, records - 1, blank, made, parts)


def check_delimiter(delimiter: str | None) -> None:
    """ReadError if a delimiter is not valid."""
    if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n\0'):
        raise ReadError(
            "The delimiter must be one ASCII character that is not a quotation mark; got "
            f"{delimiter!r}."
        )


def sample_rows(text: Text, delimiter: str, size: int = _SAMPLE) -> list[list[str]]:
    """The fields of the first records, including the names; empty if they cannot be split."""
    return [row for _, row in _numbered_rows(text, delimiter, size)]


def _numbered_rows(text: Text, delimiter: str, size: int) -> list[tuple[int, list[str]]]:
    """The first records, each with the number of lines up to its end."""
    head = text.content[:size]
    reader = csv.reader(io.StringIO(head.decode(errors="ignore"), ""), delimiter=delimiter)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error:
        return []
    if len(head) == size and len(rows) > 1:
        rows.pop()  # cut off by the end of the sample
    return rows


def title_lines(text: Text, delimiter: str | None) -> int:
    """How many lines of the file stand above the column names, or 0 if this is not clear."""
    head = text.content[:_SAMPLE]
    first = head.partition(b"\n")[0]
    for candidate in DELIMITERS if delimiter is None else (delimiter,):
        parted = len(list(filter(bytes.strip, first.split(candidate.encode())))) > 1
        if candidate.encode() not in head or (parted and b'"' not in first):
            continue  # most files have names in their first line
        rows = _numbered_rows(text, candidate, _SAMPLE)
        titles = title_rows([row for _, row in rows])
        if titles:
            return text.first_line - 1 + rows[titles - 1][0]
    return 0


def without_blank_lines(text: Text, shape: Shape) -> bytes:
    """The text without its empty lines, which polars would read as records."""
    scan = _Scan(text, shape.delimiter)
    made = io.BytesIO()
    for piece, start in scan.pieces():
        if scan.regular(piece, len(shape.names)) is None:
            _, ends = scan.irregular(piece, start, len(shape.names))
            octets = np.frombuffer(piece, np.uint8)
            keep = np.ones(len(octets) + 1, np.bool_)  # the last line may lack its line end
            keep[ends] = False
            keep[ends[octets[ends - 1] == _RETURN] - 1] = False
            piece = octets[keep[:-1]].tobytes()
        made.write(piece)
    return made.getvalue()


def detected_delimiter(text: Text, likely: str) -> str:
    """The delimiter with which most of the first records have as many fields as the header."""
    scores = {}
    for candidate in dict.fromkeys((likely, *DELIMITERS)):
        rows = sample_rows(text, candidate)
        width = len(rows[0]) if rows else 1
        if width > 1:
            scores[candidate] = (sum(len(row) == width for row in rows) / len(rows), width)
    return max(scores, key=scores.__getitem__, default=likely)


class _Scan:
    """One pass over a text, in pieces of whole records."""

    def __init__(self, text: Text, delimiter: str) -> None:
        self._text, self._delimiter = text, delimiter.encode()
        #: Whether quotation marks quote fields; None before the first quotation mark.
        self.quoted: bool | None = None
        self._others = bytes(set(range(256)) - {_NEWLINE, ord(delimiter)})

    def pieces(self) -> Iterator[tuple[bytes, int]]:
        """The text in pieces, with the position of each."""
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
        """Whether any field begins with a quotation mark; ``first`` is the first mark."""
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
        """The number of records, if all have ``width`` fields and none has a quotation mark."""
        if self.quoted and b'"' in piece:
            return None
        bones = piece.translate(None, self._others)
        if not piece.endswith(b"\n"):
            bones += b"\n"
        count, rest = divmod(len(bones), width)
        record = self._delimiter * (width - 1) + b"\n"
        return count if not rest and bones == record * count else None

    def _ends(self, octets: npt.NDArray[np.uint8], start: int) -> tuple[Integers, Integers]:
        """Where records end, and how many delimiters each has; ReadError for a misplaced quote."""
        outside: Flags | bool = True
        if self.quoted:
            self._check_quotes(octets, start)
            outside = ~_inside_quotes(octets)
        ends = np.flatnonzero((octets == _NEWLINE) & outside)
        if octets[-1] != _NEWLINE:
            ends = np.append(ends, len(octets))
        fences = np.flatnonzero((octets == ord(self._delimiter)) & outside)
        return ends, np.diff(np.searchsorted(fences, ends), prepend=0)

    def names(self, piece: bytes) -> list[str]:
        """The fields of the first record."""
        delimiter = self._delimiter.decode()
        if not (self.quoted and b'"' in piece):
            return piece.partition(b"\n")[0].decode().removesuffix("\r").split(delimiter)
        ends, _ = self._ends(np.frombuffer(piece, np.uint8), 0)
        header = piece[: ends[0]].decode().removesuffix("\r")
        try:
            return next(csv.reader(io.StringIO(header, ""), delimiter=delimiter))
        except csv.Error:
            raise ReadError(
                f"The first line of '{self._text.called}' does not hold column names, because one "
                f"would be longer than {csv.field_size_limit():,} characters."
            ) from None

    def _check_quotes(self, octets: npt.NDArray[np.uint8], start: int) -> None:
        """ReadError if a quotation mark opens inside a field or closes before its end."""
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
                f"Line {line} of '{self._text.called}' has a quotation mark inside a field. "
                "Quote the whole field, and double the marks that are part of the text."
            )
        if len(opening) > len(closing):
            line = self._text.line(start + int(opening[-1]))
            raise ReadError(
                f"'{self._text.called}' has a quotation mark that is not closed; the last mark is "
                f"on line {line}. Close it, or double it if it is part of the text."
            )

    def irregular(self, piece: bytes, start: int, width: int) -> tuple[int, Integers]:
        """The number of records and the ends of empty lines; ReadError for any other width."""
        octets = np.frombuffer(piece, np.uint8)
        every, delimiters = self._ends(octets, start)
        wrong = np.flatnonzero(delimiters != width - 1)
        ends = every[wrong]
        starts = np.where(wrong > 0, every[wrong - 1] + 1, 0)
        blank = (ends == starts) | ((ends - starts == 1) & (octets[starts] == _RETURN))
        if not blank.all():
            first = int(np.argmin(blank))
            line = self._text.line(start + int(starts[first]))
            fields = int(delimiters[wrong[first]]) + 1
            raise ReadError(
                f"Line {line} of '{self._text.called}' has {fields} field{'s' * (fields > 1)}, but "
                f"the header has {width} (with the delimiter {self._delimiter.decode()!r}). Fix "
                "the line, set another delimiter=, or skip lines above the names with skip_lines=."
            )
        return len(every) - len(ends), ends


def _inside_quotes(octets: npt.NDArray[np.uint8]) -> Flags:
    # odd after an opening mark; only the last bit counts, so a byte may run over
    return np.cumsum(octets == _QUOTE, dtype=np.uint8) % 2 == 1
