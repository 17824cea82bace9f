"""The shape of delimited text: its delimiter, its header, and whether all records fit together.

polars fills a short record with missing values and renames a column that comes twice; both would
change a table without a word. So the shape is checked here first, exactly and in bulk: what lies
between an odd and an even quotation mark is quoted, all other line ends and delimiters count.
"""

from __future__ import annotations

import csv
import io
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import ReadError
from shoal.table.storage._text import Text

DELIMITERS: Final = (",", ";", "\t", "|")

_CHUNK: Final = 1 << 22
_SAMPLE: Final = 1 << 16
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'

Positions = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Shape:
    """How a text is cut into records and fields, and what was found when looking at all of it."""

    delimiter: str
    quoted: bool
    names: list[str]
    records: int
    blank_lines: Positions


def shape_of(text: Text, *, called: str, delimiter: str | None, likely: str = ",") -> Shape:
    """Look at a whole text; ReadError if its records do not fit together.

    Parameters
    ----------
    text : Text
        The text.
    called : str
        Name of the file in errors.
    delimiter : str, optional
        The character between fields; detected if not given.
    likely : str
        The delimiter to assume when the text does not tell.

    Examples
    --------
    >>> shape_of(Text(b"age;zip\\n31;01234\\n"), called="people.csv", delimiter=None).names
    ['age', 'zip']
    """
    if delimiter is None:
        delimiter = _detected_delimiter(text, likely)
    elif len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ReadError(
            "The delimiter must be one ASCII character that is not a quotation mark; got "
            f"{delimiter!r}."
        )
    scan = _Scan(text, called, delimiter, _has_quoted_fields(text.content, delimiter))
    names: list[str] = []
    records = 0
    blank: list[Positions] = []
    for block in scan.blocks():
        scan.check_quotes(block)
        names = names or scan.names(block)
        empty = scan.check_lengths(block, len(names))
        blank.append(empty + block.start)
        records += len(block.ends) - len(empty)
    return Shape(delimiter, scan.quoted, names, records - 1, np.concatenate(blank))


def without_lines(content: bytes | mmap.mmap, ends: Positions) -> bytes:
    """The text without the empty lines that end at the given positions."""
    octets = np.frombuffer(content, np.uint8)
    keep = np.ones(len(octets) + 1, np.bool_)  # the last line may lack its line end
    keep[ends] = False
    keep[ends[octets[ends - 1] == _RETURN] - 1] = False
    return octets[keep[:-1]].tobytes()


def _detected_delimiter(text: Text, likely: str) -> str:
    """The candidate that cuts most first records into as many fields as the header, and more."""
    head = text.content[:_SAMPLE]
    sample = head.decode(errors="ignore")
    scores = {}
    for candidate in dict.fromkeys((likely, *DELIMITERS)):
        try:
            rows = [row for row in csv.reader(io.StringIO(sample, ""), delimiter=candidate) if row]
        except csv.Error:
            continue
        if len(head) == _SAMPLE and len(rows) > 1:
            rows.pop()  # cut off by the end of the sample
        width = len(rows[0]) if rows else 1
        if width > 1:
            scores[candidate] = (sum(len(row) == width for row in rows) / len(rows), width)
    return max(scores, key=scores.__getitem__, default=likely)


def _has_quoted_fields(content: bytes | mmap.mmap, delimiter: str) -> bool:
    """Whether a field begins with a quotation mark; if none does, they are ordinary characters."""
    return content[:1] == b'"' or any(
        content.find(mark) >= 0 for mark in (b'\n"', delimiter.encode() + b'"')
    )


@dataclass(frozen=True)
class _Block:
    """A run of whole records: where each ends and how many delimiters it has."""

    start: int
    octets: Octets
    quotes: Positions
    ends: Positions
    delimiters: Positions


@dataclass(frozen=True)
class _Scan:
    """One pass over a text, in blocks."""

    text: Text
    called: str
    delimiter: str
    quoted: bool

    def blocks(self) -> Iterator[_Block]:
        whole = np.frombuffer(self.text.content, np.uint8)
        start, size = 0, _CHUNK
        while start < len(whole):
            octets = whole[start : start + size]
            marks = octets == _QUOTE if self.quoted else np.zeros(len(octets), np.bool_)
            quotes = np.flatnonzero(marks)
            # odd after an opening mark; only the last bit counts, so a byte may run over
            inside = np.cumsum(marks, dtype=np.uint8) % 2 == 1 if len(quotes) else marks
            ends = np.flatnonzero((octets == _NEWLINE) & ~inside)
            last = start + len(octets) == len(whole)
            if last and (octets[-1] != _NEWLINE or len(quotes) % 2):
                ends = np.append(ends, len(octets))
            if not len(ends):
                size *= 2  # one record is longer than the block
                continue
            fences = np.flatnonzero((octets == ord(self.delimiter)) & ~inside)
            delimiters = np.diff(np.searchsorted(fences, ends), prepend=0)
            quotes = quotes[: np.searchsorted(quotes, ends[-1])]
            yield _Block(start, octets, quotes, ends, delimiters)
            start, size = start + int(ends[-1]) + 1, _CHUNK

    def names(self, block: _Block) -> list[str]:
        header = block.octets[: block.ends[0]].tobytes().decode().removesuffix("\r")
        if not self.quoted:
            return header.split(self.delimiter)
        try:
            return next(csv.reader(io.StringIO(header, ""), delimiter=self.delimiter))
        except csv.Error:
            raise ReadError(
                f"The first line of '{self.called}' is no line of column names: one would be "
                f"longer than {csv.field_size_limit():,} characters."
            ) from None

    def check_quotes(self, block: _Block) -> None:
        """ReadError where a quotation mark opens within a field or closes before its end."""
        may_precede = np.zeros(256, np.bool_)
        may_precede[[ord(self.delimiter), _NEWLINE, _QUOTE]] = True
        may_follow = may_precede.copy()
        may_follow[_RETURN] = True
        opening, closing = block.quotes[0::2], block.quotes[1::2]
        early = ~may_precede[block.octets[np.maximum(opening - 1, 0)]] & (opening > 0)
        last = len(block.octets) - 1
        late = ~may_follow[block.octets[np.minimum(closing + 1, last)]] & (closing < last)
        wrong = np.concatenate((opening[early], closing[late]))
        if len(wrong):
            line = self._line(block.start + int(wrong.min()))
            raise ReadError(
                f"A quotation mark on line {line} of '{self.called}' stands inside a field; "
                "quote the whole field and double the marks that are part of the text."
            )
        if len(opening) > len(closing):
            line = self._line(block.start + int(opening[-1]))
            raise ReadError(
                f"A quotation mark in '{self.called}' is opened and not closed, the last on "
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
            line = self._line(block.start + int(starts[first]))
            fields = int(block.delimiters[wrong[first]]) + 1
            raise ReadError(
                f"Line {line} of '{self.called}' has {fields} field{'s' * (fields > 1)} where "
                f"the header has {width}, counted with the delimiter {self.delimiter!r}; mend "
                "the line, or give another delimiter=."
            )
        return ends

    def _line(self, position: int) -> int:
        return self.text.first_line + self.text.content[:position].count(b"\n")
