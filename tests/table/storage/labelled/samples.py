"""Files as Stata, SPSS and SAS users have them, made by the library that reads them."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

try:
    import pyreadstat as ps
except ImportError:  # the tests that need it are skipped
    ps = None

ROWS = 240
SEX = {1: "male", 2: "female"}
MARITAL = {1: "single", 2: "married", 3: "divorced", 4: "widowed", 9: "a label without a person"}
#: Rows whose income is missing for a reason, and without one.
REFUSED = np.arange(0, ROWS, 8)
UNKNOWN = np.arange(3, ROWS, 8)
SILENT = np.arange(5, ROWS, 40)


def people() -> pl.DataFrame:
    draw = np.random.default_rng(1962)
    return pl.DataFrame(
        {
            "pid": [f"P{number:04d}" for number in range(ROWS)],
            "age": draw.integers(18, 80, ROWS),
            "sex": draw.integers(1, 3, ROWS),
            "marital": draw.integers(1, 5, ROWS),
            "income": draw.integers(10, 60, ROWS) * 100.0 + 0.5,
            "born": pl.Series(draw.integers(-5000, 9000, ROWS)).cast(pl.Date),
            "ill": draw.choice(["flu", "gout", "cold"], ROWS),
        }
    )


def with_codes(refused: object, unknown: object) -> list[object]:
    """The incomes with something in place of those that are missing for a reason."""
    cells: list[object] = people()["income"].to_list()
    for rows, code in ((REFUSED, refused), (UNKNOWN, unknown), (SILENT, None)):
        for row in rows.tolist():
            cells[row] = code
    return cells


def stata(folder: Path) -> Path:
    """Labels of columns and values, a date, and .a and .z as missing values."""
    path = folder / "people.dta"
    born = (people()["born"].to_physical() + 3653).cast(pl.Float64)  # days from 1960
    income = pl.Series("income", with_codes("a", "z"), dtype=pl.Object)
    ps.write_dta(
        people().with_columns(income, born.alias("born")),
        str(path),
        version=14,
        column_labels={"age": "Age in years", "income": "Net income"},
        variable_value_labels={
            "sex": SEX,
            "marital": MARITAL,
            "income": {"a": "refused", "z": "does not know"},
        },
        missing_user_values={"income": ["a", "z"]},
        variable_format={"born": "%td", "income": "%9.1f"},
    )
    return path


def spss(folder: Path, ending: str = "sav") -> Path:
    """The same with a range and one value that are declared as missing."""
    path = folder / f"people.{ending}"
    income = pl.Series("income", with_codes(99_997.0, -1.0), dtype=pl.Float64)
    ps.write_sav(
        people().with_columns(income),
        str(path),
        compress=ending == "zsav",
        column_labels={"age": "Age in years", "income": "Net income"},
        variable_value_labels={
            "sex": SEX,
            "marital": MARITAL,
            "income": {99_997.0: "refused", -1.0: "does not know", 99_999.0: "no one said this"},
        },
        missing_ranges={"income": [-1, {"lo": 99_990, "hi": 99_999}]},
        variable_measure={"sex": "nominal", "income": "scale"},
        variable_format={"income": "F9.1"},
    )
    return path


#: A portable file that PSPP wrote, after MISSING VALUES INCOME (99990 THRU 99999, -1) /SEX (9)
#: /JOB ('NA') /RATE (99.9) /SCORE (LO THRU 0). Each line has 80 characters.
_PORTABLE = """\
ASCII SPSS PORT FILE                    ASCII SPSS PORT FILE
ASCII SPSS PORT FILE                    ASCII SPSS PORT FILE
ASCII SPSS PORT FILE                    0000000000000000000000000000000000000000
0000000000000000000000000123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst
uvwxyz .<(+|&[]!$*);^-/|,%_>?`:$@'="000000~-0000123456789000-()0{}\\0000000000000
00000000000000000000000000000000000000000000000000000000SPSSPORTA8/202611196/233
5311E/GNU pspp 1.6.247/5B/70/2/ID5/8/0/5/8/0/70/6/INCOME5/B/2/5/B/2/B3L30/3L39/8
-1/CA/Net income70/3/SEX5/1/0/5/1/0/89/CD/Sex of person78/3/JOB1/8/0/1/8/0/88/NA
      70/4/BORNK/B/0/K/B/0/70/4/RATE5/9/3/5/9/3/839.R/70/5/SCORE5/8/0/5/8/0/90/D
1/6/INCOME2/-1/D/does not know3L37/7/refusedD1/3/SEX3/1/4/male2/6/female9/9/not
askedD1/3/JOB2/8/NA      9/no answer8/baker   5/BakerF1/1A0.F/1/8/baker   GMPQ+3
/.3MF/5/2/3L37/2/8/NA      H5SOO00/39.R/-5/3/-1/1/8/smith   HJ1H600/.9TL/-39/4/*
.9/8/        *.*.C/5/3L3A0.7F/2/8/b/c'd   I3DH600/-1.F/*.6/3L31/1/8/NA      IGGC
O00/83-5/7/ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ
"""


def portable(folder: Path) -> Path:
    """A file that another program wrote, with declared values of several kinds."""
    path = folder / "survey.por"
    lines = [line.ljust(80) for line in _PORTABLE.splitlines()]
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode("ascii"))
    return path


def ibm(number: float) -> bytes:
    """A number as SAS transport files have it: the power of 16, then the digits."""
    sign, power, rest = (0x80 if number < 0 else 0), 0, abs(number)
    while rest >= 1:
        rest, power = rest / 16, power + 1
    while 0 < rest < 1 / 16:
        rest, power = rest * 16, power - 1
    return bytes([sign | 64 + power if rest else 0]) + int(rest * 2**56).to_bytes(7, "big")


def transport(columns: dict[str, tuple[int, list[bytes]]], version: int = 5) -> bytes:
    """A transport file as SAS's note TS-140 says, with the width of each column and its cells.

    A name that begins with $ is a column of text. A description ends in blanks, as SAS writes it.
    """
    old = version == 5

    def header(name: str, numbers: str = "0" * 30) -> bytes:
        return f"HEADER RECORD*******{name:8}HEADER RECORD!!!!!!!{numbers:32}".encode()

    time = b"01JAN60:00:00:00".ljust(80)
    described, at = b"", 0
    for number, (name, (width, _)) in enumerate(columns.items(), 1):
        kind, bare = (2, name[1:]) if name[0] == "$" else (1, name)
        described += b"".join(part.to_bytes(2, "big") for part in (kind, 0, width, number))
        described += bare.encode()[:8].ljust(8) + bytes(64 - 16).replace(b"\0", b" ") + bytes(8)
        described += b" " * 8 + bytes(4) + at.to_bytes(4, "big")
        described += bytes(52) if old else bare.encode().ljust(32) + bytes(20)
        at += width
    rows = list(zip(*(cells for _, cells in columns.values()), strict=True))
    body = b"".join(b"".join(row) for row in rows)
    parts = [
        header("LIBRARY" if old else "LIBV8"),
        b"SAS     SAS     SASLIB  9.4".ljust(80),
        time,
        header("MEMBER" if old else "MEMBV8", "0" * 17 + "1600000000140"),
        header("DSCRPTR" if old else "DSCPTV8"),
        b"SAS     PEOPLE  SASDATA 9.4".ljust(80),
        time,
        header("NAMESTR" if old else "NAMSTV8", f"000000{len(columns):04}".ljust(30, "0")),
        described,
        header("OBS") if old else header("OBSV8", f"{len(rows):15}"),
        body,
    ]
    return b"".join(part.ljust(-(-len(part) // 80) * 80) for part in parts)


def sas(folder: Path, version: int = 5) -> Path:
    """The people with .A and .Z among their incomes."""
    cells = with_codes("A", "Z")
    income = [
        ibm(cell) if isinstance(cell, float) else (str(cell or ".").encode()).ljust(8, b"\0")
        for cell in cells
    ]
    frame = people()
    columns = {
        "$pid": (5, [text.encode() for text in frame["pid"]]),
        **{name: (8, [ibm(n) for n in frame[name]]) for name in ("age", "sex", "marital")},
        "income": (8, income),
        "$ill": (4, [text.encode().ljust(4) for text in frame["ill"]]),
    }
    path = folder / "people.xpt"
    path.write_bytes(transport(columns, version))
    return path


#: A SAS file of 48 rows, made with the C library on which pyreadstat rests and compressed here. Its
#: columns sex, marital, job and income have the formats SEX8., MARITALSTATUS, $JOB and INCOME8.1,
#: and every twelfth income is missing for the reason .R.
_SAS: Final = """\
eNrtmc9rE0EUx2eTNkk1agoReqi41B4KatjZ2aQJiDa1EStpG0yECoKNNtRIf9FWqFCwggcPPYgn9X8Qit4EoXjRWxEvPXjw
4sVTT7Zabdzszjazz67NIxQU5wPJZN6+efvd2be787KE1Hjz5f7Iy2jr6uvHIdLyli61HY+0sg7CmOKjiu0SJcSvuOxMOcFI
NEpUv+LEyafz6oX+bCaXGcplM6onZA/60oW04Le4sfoiLbRuIvbHB8ypmGZodCCeLU/emRfsLEa1mHaa0oQWozRGYbj5ZOJ6
wnCZFrODU5+dD/R/8urjNtApkUgkEolEIpFIJBLJX8PTWt3qot354TtJjpjNWtjudvndfivc3gbG3zpgt8OgIF9rsdtHjoH/
a/CA2wvAvhmy2yVgX+b2i8A+ze09QI/mYV8P7m5f9rBPe9g1D/t64M92IJ9jcPf1c+72k90+/NCT0zQ1rzr+Z53w7nHqVavf
Y/lTtXfHvw/E5+MiZatdtPx1wb8fxOftuxmrXbH8maCnHv2GEN9D//PNezX9caT+hKCnHv3dQvx69Cf31u+a/5Sgx0P/e/t4
Lf1Uw80/pTj9VMflD2W4+acGUn8clz80gcsf2o3Un8TlD03h5l/XcPmjU1z+6MjrV2dI/QYuf3Tk9asnkPq7BT3ebG9VLKC9
xcN/njTVNT4E7uAO4yRQ13gvRurcvxdZcqih8WdIc0PjbU6RcEPjhf3bwyvGTmSbIDlongH+EDbnrDrrWxW/taX6VgCenR88
jvNOoGtnZPXLJ5zXal8hIdCPgL6jw8fHt4HtKuiLcCmV2hqhk/i5KrtN8raPH+E13h/l2TUHsoSQnzzmQs0Uhe9fqu9X8oVM
bro8SopjJZIeK6nlSfVuqTgzO1uaJ/nMcDJmDpwozpTniuNkIH25v5DO5gvpwpW8ab89dYN0XhrqLU/enJoomVfp4PmhgQwh
s6XSpBk7s9uEL4jzzM/OfhAOus+zM+MBsN4KgPlSgD7YrwC/ZuDXDPJUAccJ+/xy2PN6+F6n37dKY9fXv8ZXk93yaMPEesLw
fivY3qp12Ot2Z/3uET/4253M5phjiOxeN1UAstJsrB7Fooj3Y6F/GPQjwC8Ktof27UhDwj07KuwnbP1ur3PPTabS6nMv7LIW
anWp99RYPPOY76NOQCWKq0v1JG5drqdw60Km4dblDFkXMR23LmcMty5nyLqIxZH6E7h1OUPWRSyJ1J/C1XWGhssfA/m/hqHj
8sdA1kWGgcsfI47LHwNZFxni+ZVIJBKJRCKRSCT/M78AqSlUdA==
"""


def sas_data(folder: Path) -> Path:
    """Columns of codes, whose labels SAS keeps in a catalog."""
    path = folder / "people.sas7bdat"
    path.write_bytes(zlib.decompress(base64.b64decode(_SAS)))
    return path


#: What the catalog of the SAS file says; the codes 3 and .X are nobody's.
FORMATS: Final[dict[str, dict[object, str]]] = {
    "SEX": SEX,
    "MARITALSTATUS": {1: "single", 2: "married", 3: "a label without a person"},
    "$JOB": {"B": "baker", "S": "smith"},
    "INCOME": {"R": "refused", "X": "no one said this"},
    "NOBODYS": {1: "a format without a column"},
}


def catalog(folder: Path, formats: dict[str, dict[object, str]], name: str = "formats") -> Path:
    """A catalog of 32 bits, as SAS on Windows has them: a header, an index and a page of blocks."""
    size = 4096
    header = bytearray(1024)
    header[:32] = bytes.fromhex("00" * 12 + "c2ea8163b31411cfbd92080009c7318c181f1011")
    header[32:40] = b"\x22\x22\x00\x22\x22\x01\x022"  # little-endian, of Windows
    header[70] = 20  # UTF-8
    header[84:92], header[156:164] = b"SAS FILE", b"CATALOG "
    header[92:124] = b"FORMATS".ljust(32)
    header[196:208] = struct.pack("<3i", len(header), size, 4)
    header[216:224] = b"9.0401M5"
    index, blocks = bytearray(856), bytearray(16)
    for format, labels in formats.items():
        entry = bytearray(212)
        entry[:10], entry[50:51] = b"XLSR" + struct.pack("<ih", 4, len(blocks)), b"O"
        index += entry
        block = _format_block(format.encode(), labels)
        blocks += struct.pack("<ihh8x", 0, 0, len(block)) + block
    path = folder / f"{name}.sas7bcat"
    pages = (b"", index, b"", blocks)
    path.write_bytes(bytes(header) + b"".join(bytes(page).ljust(size, b"\0") for page in pages))
    return path


def _format_block(name: bytes, labels: dict[object, str]) -> bytes:
    head = bytearray(106)
    head[8:16] = name[:8].ljust(8)
    head[38:46] = struct.pack("<2i", len(labels), len(labels))
    if len(name) > 8:
        head[2:4] = b"\x80\0"
        head += name.ljust(32)
    for place, value in enumerate(labels):
        key = _format_key(value, text=name.startswith(b"$"))
        head += struct.pack("<2xh6xi8x", 16 + len(key), place) + key
    for label in labels.values():
        head += struct.pack("<8xh", len(label.encode())) + label.encode() + b"\0"
    return bytes(head)


def _format_key(value: object, *, text: bool) -> bytes:
    """A value in the order of SAS: numbers with their bits turned, reasons by their letters."""
    if text:
        return str(value).encode().ljust(16)
    if isinstance(value, str):
        return bytes([0, 0, ord(value)]) + b"\xff" * 5
    bits = struct.pack(">d", -abs(float(value)))  # type: ignore[arg-type]
    return bits if float(value) >= 0 else bytes(255 - one for one in bits)  # type: ignore[arg-type]
