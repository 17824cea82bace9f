"""Damage drawn from an integer: to bytes, to plain data, and to the folder of a release."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What stands where something else is expected.
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0, 1e308, 5e-324,
    float("nan"), float("inf"), "", " ", "x", "*", "a" * 2000, "\x00", "\ufeff", "../../etc/passwd",
    "/etc/passwd", "data.csv", "1e5", "nan", [], [[]], ["x"], [1, 2], [None], {}, {"x": 1},
]  # fmt: skip
_BYTES = [
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b'"', b"'", b",", b";", b"\t", b"\n", b"\r",
    b"\\", b"[", b"{", b"}", b"=", b"#", b"\xc3", b"\xed\xa0\x80", b"1e999", b"-", b"\x1f\x8b",
]  # fmt: skip


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content with a few bytes flipped, cut, doubled, moved or put in."""
    out = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        at = rng.randrange(len(out) + 1)
        length = rng.choice([1, 1, 4, 16, 200])
        match rng.randrange(7):
            case 0 if out:
                out[min(at, len(out) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                del out[at : at + length]
            case 3:
                out[at:at] = out[at : at + length]
            case 4:
                out[at:at] = rng.choice(_BYTES) * rng.choice([1, 1, 3])
            case 5:
                lines = bytes(out).split(b"\n")
                rng.shuffle(lines)
                out = bytearray(b"\n".join(lines))
            case _:
                out[at : at + length] = rng.randbytes(min(length, 16))
    return bytes(out)


def mutated(rng: random.Random, value: Any, *, times: int | None = None) -> Any:
    """Plain data with a few of its parts replaced, renamed, doubled, moved or taken out."""
    value = copy.deepcopy(value)
    for _ in range(times or rng.choice([1, 1, 1, 2, 4])):
        places = list(_places(value))
        if not places:
            return rng.choice(ODD)
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice([f"{key}x", "", "x", str(key).upper()])] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3:
                other, where = rng.choice(places)
                holder[key] = copy.deepcopy(other[where])
            case 4:
                holder[key] = [holder[key]] if rng.random() < 0.5 else {"x": holder[key]}
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD))
    return value


def _places(value: Any) -> Any:
    """Every holder with a key of it, from the outside in."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def without_nothing(value: Any) -> Any:
    """Without None, which a TOML file cannot hold."""
    if isinstance(value, dict):
        return {str(key): without_nothing(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nothing(item) for item in value if item is not None]
    return value


# -- releases


def damage_release(rng: random.Random, folder: Path, other: Path) -> str:
    """Do something to a release, with another one at hand; what it was."""
    if rng.random() < 0.5:
        shutil.rmtree(folder / "private")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = [path for path in files if path.suffix == ".json"]
    path = rng.choice(files) if rng.random() < 0.4 else rng.choice(facts)
    what = rng.choice(list(_WAYS))
    if path.suffix == ".json" and rng.random() < 0.7:
        what = "facts"
    _WAYS[what](rng, path, other)
    return f"{what} {path.relative_to(folder).as_posix()}"


def _facts(rng: random.Random, path: Path, other: Path) -> None:
    if path.suffix == ".json":
        given = mutated(rng, json.loads(path.read_text("utf-8")))
        path.write_text(json.dumps(given), "utf-8")


def _bytes(rng: random.Random, path: Path, other: Path) -> None:
    path.write_bytes(damaged(rng, path.read_bytes()))


def _gone(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()


def _added(rng: random.Random, path: Path, other: Path) -> None:
    named = rng.choice(["notes.txt", ".hidden", "data.csv.bak", "new\nline", "private"])
    (path.parent / named).write_text("x")


def _link(rng: random.Random, path: Path, other: Path) -> None:
    kept = path.parent.parent.parent / f"kept{path.suffix}"
    shutil.move(path, kept)
    os.symlink(rng.choice([kept, path, "/dev/null", "/nowhere"]), path)


def _folder(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    path.mkdir()


def _swapped(rng: random.Random, path: Path, other: Path) -> None:
    found = sorted(p for p in other.rglob("*") if p.is_file())
    shutil.copyfile(rng.choice(found), path)


def _empty(rng: random.Random, path: Path, other: Path) -> None:
    path.write_bytes(b"")


_WAYS: dict[str, Callable[[random.Random, Path, Path], None]] = {
    "facts": _facts,
    "bytes": _bytes,
    "gone": _gone,
    "added": _added,
    "link": _link,
    "folder": _folder,
    "swapped": _swapped,
    "empty": _empty,
}
