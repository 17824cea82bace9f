"""The memory that a file needs, estimated before it is read; a small file can hold a huge table.

A reader that asks for more memory than is available ends the process without an exception.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from shoal.errors import ReadError
from shoal.table.storage._workbook import extent
from shoal.table.storage.labelled._dictionary import LABELLED
from shoal.table.storage.labelled._read import held_in

#: Bytes of a view of a text, the widest cell of a frame.
_CELL: Final = 16
#: Bytes per row to form classes: its codes, its class, its key and its risk.
_ROW: Final = 64
#: Bytes of a cell of a workbook while it is read.
_WORKBOOK_CELL: Final = 64
#: Reading holds a column twice while it is converted to the recorded type.
_COPIES: Final = 2
_UNKNOWN: Final = 8 << 30
_FIXED: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
#: A sheet that repeats one row compresses to only a fiftieth, because each row has its number.
_RATIO: Final = 200


def check_memory(path: Path, format: str) -> None:
    """ReadError if the table of a file that is not text does not fit into the free memory."""
    check_file_size(path)  # first, because the rest reads parts of the file
    try:
        rows, held = _HELD[format](path)
    except ReadError:
        raise
    except Exception:  # whatever a reader raises for a damaged file
        raise ReadError(f"'{path.name}' is not a {format} file, or it is damaged.") from None
    _refuse_beyond_memory(path, _COPIES * held + _ROW * rows)


def check_table_size(path: Path, rows: int, columns: int) -> None:
    """ReadError if the table of a text file does not fit into the free memory."""
    held = path.stat().st_size + _CELL * (columns + 1) * rows
    _refuse_beyond_memory(path, _COPIES * held + _ROW * rows)


def check_file_size(path: Path, copies: int = 1) -> None:
    """ReadError if a file, or several copies of it, does not fit into the free memory."""
    _refuse_beyond_memory(path, copies * path.stat().st_size)


def _refuse_beyond_memory(path: Path, needed: int) -> None:
    free = available_memory()
    if needed > free:
        raise ReadError(
            f"'{path.name}' needs about {needed / 2**30:,.1f} GiB of memory, but only "
            f"{free / 2**30:,.1f} GiB are free. Read it on a larger machine."
        )


def available_memory() -> int:
    """Bytes that this process can still allocate, as far as the system reports."""
    return max(0, min(_free_in_system(), _free_in_group(), _free_in_process()))


def return_freed_memory() -> None:
    """Give freed arrays back to the system; glibc keeps those of less than 32 MB for later."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _free_in_system() -> int:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
        return sizes["MemAvailable"] + sizes.get("SwapFree", 0)
    except (OSError, ValueError, LookupError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return _UNKNOWN


def _free_in_group() -> int:
    """Bytes that the control group of a container has left."""
    group = Path("/sys/fs/cgroup")
    try:
        most = int((group / "memory.max").read_text("ascii"))
        return most - int((group / "memory.current").read_text("ascii"))
    except (OSError, ValueError):
        return 1 << 62


def _free_in_process() -> int:
    """Bytes that ``ulimit -v`` leaves."""
    try:
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return 1 << 62
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        return most - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return 1 << 62


def _of_parquet(path: Path) -> tuple[int, int]:
    import pyarrow.parquet as pq

    facts = pq.read_metadata(path)
    rows = total = 0
    for group in range(facts.num_row_groups):
        row_group = facts.row_group(group)
        rows += row_group.num_rows
        for place in range(row_group.num_columns):
            column = row_group.column(place)
            values = max(column.num_values, row_group.num_rows)
            width = _FIXED.get(column.physical_type)
            held = _CELL * values + column.total_uncompressed_size
            total += held if width is None else width * values
    return max(rows, facts.num_rows), total


def _of_arrow(path: Path) -> tuple[int, int]:
    """The rows, and the declared sizes of the buffers plus one cell per row and column."""
    import pyarrow as pa

    with path.open("rb") as file:
        if file.read(6) != b"ARROW1":
            raise ReadError(f"'{path.name}' is not an Arrow file.")
        with pa.OSFile(str(path)) as whole:
            columns = len(pa.ipc.open_file(whole).schema)
        batches = [_of_batch(file, *block, columns) for block in _blocks(file)]
    return sum(rows for rows, _ in batches), sum(held for _, held in batches)


def _blocks(file: BinaryIO) -> list[tuple[int, int]]:
    """The offset and header length of each batch of rows and of each dictionary."""
    end = file.seek(-10, os.SEEK_END)
    (length,) = struct.unpack("<i", file.read(4))
    file.seek(end - length)
    footer = _Flat.root(file.read(length))
    places = [*footer.structs(2, 24), *footer.structs(3, 24)]
    return [struct.unpack_from("<qi", footer.content, place) for place in places]


def _of_batch(file: BinaryIO, offset: int, head: int, columns: int) -> tuple[int, int]:
    file.seek(offset)
    content = file.read(head)
    message = _Flat.root(content[8 if content[:4] == b"\xff" * 4 else 4 :])
    batch = message.table(2)
    if message.number(1, "<B") == 2:  # a dictionary, with its values as a batch
        batch = batch.table(1)
    compressed, rows = batch.has(3), batch.number(0, "<q")
    total = _CELL * columns * rows
    for place in batch.structs(2, 16):
        start, length = struct.unpack_from("<qq", batch.content, place)
        if compressed and length >= 8:
            file.seek(offset + head + start)
            (declared,) = struct.unpack("<q", file.read(8))
            length = max(declared, length)
        total += length
    return rows, total


class _Flat:
    """The part of the FlatBuffers format that is needed to find a number, a table and a vector."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at

    @classmethod
    def root(cls, content: bytes) -> _Flat:
        return cls(content, struct.unpack_from("<I", content)[0])

    def _place(self, field: int) -> int:
        """The position of a field; 0 if the table does not have it."""
        names = self.at - struct.unpack_from("<i", self.content, self.at)[0]
        (size,) = struct.unpack_from("<H", self.content, names)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.content, names + 4 + 2 * field)
        return self.at + int(offset) if offset else 0

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def number(self, field: int, form: str) -> int:
        place = self._place(field)
        return int(struct.unpack_from(form, self.content, place)[0]) if place else 0

    def table(self, field: int) -> _Flat:
        place = self._place(field)
        return _Flat(self.content, place + struct.unpack_from("<I", self.content, place)[0])

    def structs(self, field: int, size: int) -> range:
        """The positions of the structs in a vector."""
        place = self._place(field)
        if not place:
            return range(0)
        start = place + struct.unpack_from("<I", self.content, place)[0]
        (count,) = struct.unpack_from("<I", self.content, start)
        return range(start + 4, start + 4 + count * size, size)


def _of_workbook(path: Path) -> tuple[int, int]:
    """The size of its unpacked parts, plus a cell for each place up to the last row and column."""
    with zipfile.ZipFile(path) as parts:
        members = parts.infolist()
        total = sum(member.file_size for member in members)
        large = (member for member in members if member.file_size > 1 << 20)
        if any(member.file_size > _RATIO * member.compress_size for member in large):
            # such a file is made to do harm
            raise ReadError(
                f"'{path.name}' is compressed more than any real workbook, so it was not unpacked. "
                "Save it again with a spreadsheet program."
            )
        if total > available_memory():
            return 0, total
        cells = 0
        for member in members:
            with parts.open(member) as sheet:
                rows, columns, _ = extent(sheet)
            cells = max(cells, rows * columns)
    return 0, total + _WORKBOOK_CELL * cells


#: Format → a function that returns the rows of a file and the bytes that its cells need.
_HELD: Final[dict[str, Callable[[Path], tuple[int, int]]]] = {
    "parquet": _of_parquet,
    "arrow": _of_arrow,
    "xlsx": _of_workbook,
    **{name: functools.partial(held_in, format=name) for name in LABELLED},
}
