"""The text of a file as UTF-8 bytes, whatever its encoding and compression."""

from __future__ import annotations

import codecs
import hashlib
import io
import mmap
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from shoal.errors import ReadError, did_you_mean
from shoal.table.storage._formats import COMPRESSIONS

_CHUNK: Final = 1 << 23
_HEAD: Final = 4096
_MOST_DIGESTS: Final = 8
# the marks of UTF-32 begin like those of UTF-16, so they come first
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Text:
    """Bytes without a byte order mark that should be UTF-8, which :meth:`check` verifies.

    ``whole`` means that they are the unchanged content of the file; ``first_line`` is the line of
    the file on which they begin, ``origin`` the encoding of the file, and ``marked`` means that the
    file begins with a byte order mark.
    """

    content: bytes | mmap.mmap
    called: str = "the text"
    encoding: str = "utf-8"
    first_line: int = 1
    whole: bool = False
    origin: str = "utf-8"
    marked: bool = False

    def check(self, piece: bytes, start: int = 0) -> None:
        """ReadError unless a piece is text; it begins at ``start`` and ends with a line."""
        if piece.isascii():
            return
        try:
            piece.decode(self.encoding)
        except UnicodeError as error:
            # the message of the cause quotes bytes of the file, so only its position is used
            at = start + getattr(error, "start", 0)
            raise Undecodable(self.called, self.encoding, self.line(at)) from None

    def without_lines(self, lines: int) -> Text:
        """The text after the first lines of the file, and after empty lines."""
        content = self.content[:]
        for _ in range(lines + 1 - self.first_line):
            content = content.partition(b"\n")[2]
        return _from_first_line(
            replace(self, content=content, first_line=max(lines + 1, self.first_line), whole=False)
        )

    def decoded(self) -> str:
        """The whole text; ReadError if it cannot be decoded."""
        content = bytes(self.content[:])
        self.check(content)
        return content.decode()

    def let_go(self, end: int) -> None:
        """Free the memory of the file's pages up to a position; they can be read again."""
        if isinstance(self.content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.content.madvise(mmap.MADV_DONTNEED, 0, end)

    def line(self, position: int) -> int:
        """The line of the file at a position."""
        return self.first_line + self.content[:position].count(b"\n")


def load_text(path: Path, encoding: str | None) -> Text:
    """The text of a file; plain UTF-8 is neither copied into memory nor checked yet.

    Without ``encoding``, a byte order mark decides; without a mark, the file is read as UTF-8.
    """
    content = _content(path)
    marks = [name for mark, name in _MARKS if content[:4].startswith(mark)]
    name = next(iter(marks), "utf-8") if encoding is None else _codec(encoding)
    whole, origin = isinstance(content, mmap.mmap), name
    if name in ("utf-8", "utf-8-sig", "ascii"):
        name = name.removesuffix("-sig")
        if content[:3] == codecs.BOM_UTF8:
            content, whole = content[3:], False
    else:
        content, name, whole = _recoded(path, content, name), "utf-8", False
    text = _from_first_line(
        Text(content, str(path), name, whole=whole, origin=origin, marked=bool(marks))
    )
    if b"\0" in text.content[:_HEAD]:
        raise ReadError(
            f"'{path}' does not look like text in {name}, because it has null bytes. If it is "
            "UTF-16 without a byte order mark, use encoding='utf-16-le' or encoding='utf-16-be'."
        )
    return text


#: The usual encoding of Windows in Western Europe and America.
WESTERN: Final = "cp1252"
_ANY_LETTER: Final = rb"[A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\xff]"
# cp1252 characters that never follow a letter, never stand inside a word, or never before a
# lowercase letter inside a word
_NO_LETTER: Final = re.compile(
    _ANY_LETTER
    + rb"(?:[\x81\x82\x84\x86-\x89\x8b\x8d\x8f\x90\x9d]"
    + rb"|[\x85\x93-\x95\x98\x99\x9b\xa1-\xa9\xab\xac\xae-\xb3\xb5\xb6\xb8\xb9\xbb-\xbf]"
    + _ANY_LETTER
    + rb"|[\x8a\x8e\x96\x97\x9f][a-z])"
)
_UTF8_LETTER: Final = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_LETTER: Final = re.compile(rb"[\xc0-\xff]")
_IN_A_WORD: Final = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff]|[\xc0-\xff](?=[A-Za-z])")
_FOREIGN_WORD: Final = re.compile(rb"[\xc0-\xff]{3,}")


def western_text(path: Path) -> Text | None:
    """The text of a file that is not UTF-8, if it looks like cp1252; otherwise None.

    Nearly every byte is a character of cp1252. The text must therefore look Western European:
    accented letters stand in words with plain letters, and words contain nothing but letters.
    Cyrillic, Greek, old encodings of DOS and the Mac, and UTF-8 with a broken byte fail this test.
    """
    content = _content(path)[:]
    letters = len(_LETTER.findall(content))
    foreign = sum(map(len, _FOREIGN_WORD.findall(content)))
    odd = _NO_LETTER.search(content) or _UTF8_LETTER.search(content)
    if odd or 5 * foreign > letters or 2 * len(_IN_A_WORD.findall(content)) < letters:
        return None
    try:
        return load_text(path, WESTERN)
    except Undecodable:
        return None


def _content(path: Path) -> bytes | mmap.mmap:
    compression = COMPRESSIONS.get(path.suffix.lower())
    try:
        if compression is not None:
            import pyarrow as pa

            with pa.input_stream(str(path), compression=compression) as stream:
                return bytes(stream.read())
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        why = error.strerror or f"its {compression} compression is damaged"
        raise ReadError(f"'{path}' cannot be read: {why}.") from None


def _codec(encoding: str) -> str:
    try:
        "a".encode(encoding)  # unlike lookup, this refuses codecs that are not for text
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        known = ["utf-8", "utf-16", "latin-1", "cp1252", "cp1250", "cp1251", "iso8859-15", "cp437"]
        raise ReadError(
            f"There is no text encoding '{encoding}'. {did_you_mean(encoding, known)}"
        ) from None


def _recoded(path: Path, content: bytes | mmap.mmap, name: str) -> bytes:
    """The text in UTF-8, converted in pieces, so that memory never holds a large file twice."""
    decoder = codecs.getincrementaldecoder(name)()
    line, made = 1, io.BytesIO()
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        try:
            text = decoder.decode(chunk, final=start + _CHUNK >= len(content))
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            raise Undecodable(str(path), name, line + chunk[:at].count(b"\n")) from None
        line += text.count("\n")
        made.write(text.encode())
    return made.getvalue()


class Undecodable(ReadError):
    """A file is not text in the assumed encoding."""

    def __init__(self, called: str, name: str, line: int) -> None:
        others = [other for other in ("utf-8", "cp1252", "latin-1") if other != name]
        super().__init__(
            f"'{called}' is not text in {name} (line {line} cannot be decoded). Set its "
            f"encoding, for example encoding='{others[0]}' or encoding='{others[1]}'."
        )


def _from_first_line(text: Text) -> Text:
    """The text from its first line that is not empty, with old Mac line ends converted."""
    content, whole = text.content, text.whole
    head = content[:_HEAD]
    if not head.strip():
        head = content[:]
        if not head.strip():
            raise ReadError(
                f"'{text.called}' is empty. A table needs at least a line of column names."
            )
    if b"\r" in head and content.find(b"\n") < 0:
        content, whole = content[:].replace(b"\r", b"\n"), False
        head = content[: len(head)]
    blank = head[: len(head) - len(head.lstrip(b"\r\n"))]
    if blank:
        content, whole = content[len(blank) :], False
    line = text.first_line + blank.count(b"\n")
    return replace(text, content=content, first_line=line, whole=whole)


# -- the checksum of a file that was read


FileState = tuple[int, ...]


def file_state(path: Path) -> FileState:
    """The state of a file as the system reports it; a changed file has another state."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


#: The checksums of the most recently read files.
_DIGESTS: dict[FileState, str] = {}


def remember_digest(path: Path, state: FileState, digest: str) -> None:
    """Keep the checksum of a file that was read, unless it has changed since it was opened."""
    if file_state(path) == state:
        _DIGESTS[state] = digest
        while len(_DIGESTS) > _MOST_DIGESTS:
            del _DIGESTS[next(iter(_DIGESTS))]


def source_digest(path: Path) -> str:
    """The SHA-256 of a file; taken from when it was read, if it has not changed since."""
    known = _DIGESTS.get(file_state(path))
    if known is not None:
        return known
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
