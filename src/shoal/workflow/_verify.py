"""Checking a release again, from its files alone, by other code than made it."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shoal.errors import InputError, ReleaseError, ShoalError, VerificationFailed
from shoal.table import Roles, Table, read_records, read_released
from shoal.workflow._release import FORMAT_VERSION, PUBLIC_MEASURES
from shoal.workflow._require import Limit, discover_all_measures, make_claim, requirement_from


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    status: Literal["passed", "failed", "skipped"]
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not any(check.status == "failed" for check in self.checks)

    def raise_if_failed(self) -> None:
        """Raise VerificationFailed with the first reasons."""
        failed = [f"{c.name}: {c.detail}" for c in self.checks if c.status == "failed"]
        if failed:
            raise VerificationFailed(f"The release does not verify; {'; '.join(failed)}.")

    def to_dict(self) -> dict[str, Any]:
        """The checks as plain data."""
        return {"holds": self.holds, "checks": [vars(check) for check in self.checks]}

    def __str__(self) -> str:
        marks = {"passed": "ok  ", "failed": "FAIL", "skipped": "--  "}
        return "\n".join(f"{marks[c.status]} {c.name}: {c.detail}" for c in self.checks)


class _Checks(list[Check]):
    """Collects checks; an error inside one of them is a failure of that check, not of the run."""

    def run(self, name: str, check: Callable[[], tuple[bool | None, str]]) -> None:
        try:
            good, detail = check()
        except Exception as cause:  # damaged files raise whatever their readers raise
            detail = str(cause) if isinstance(cause, ShoalError) else "cannot be checked: malformed"
            good = False
        status: Literal["passed", "failed", "skipped"] = (
            "skipped" if good is None else ("passed" if good else "failed")
        )
        self.append(Check(name, status, detail))


def verify(folder: str | os.PathLike[str], *, original: Table | None = None) -> Verification:
    """Check a release again from its files.

    The checksum of the data, its columns and rows, every claim and every measured value are
    recomputed; where the private half is there, so is the audit, and with the original the
    claims that compare with it.

    Parameters
    ----------
    folder : path
        The release folder, with its ``public`` half and, perhaps, its ``private`` one.
    original : Table, optional
        The table that was released, in its first order of rows.

    Returns
    -------
    Verification
        All checks; ``holds`` says whether nothing failed.
    """
    root = Path(folder)
    if original is not None and not isinstance(original, Table):
        raise InputError(
            f"The original is a shoal.Table; got {type(original).__name__}. "
            "Write sh.Table(frame) or sh.read(path)."
        )
    facts = _read_facts(root)
    checks = _Checks()
    checks.run("data unchanged", lambda: _same_digest(root, facts["data"]))
    checks.run("report unchanged", lambda: _same_digest(root, facts["report"]))
    checks.run("no other files", lambda: _only_known_files(root, facts))
    if any(check.status == "failed" and check.name == "data unchanged" for check in checks):
        return Verification(tuple(checks))
    try:
        masked = _read_masked(root, facts)
    except Exception:  # damaged files raise whatever their readers raise
        checks.append(Check("columns and rows", "failed", "the data cannot be read as recorded"))
        return Verification(tuple(checks))
    checks.run("columns and rows", lambda: _same_shape(masked, facts))
    checks.run("class sizes counted twice", lambda: _same_counts(masked))
    paired = _paired(root, facts, masked, original, checks)
    for recorded in _recorded_claims(facts):
        name = f"claim {recorded.get('claim')}"
        checks.run(name, functools.partial(_claim, recorded, masked, paired))
    checks.run("measured values", lambda: _same_measures(masked, facts))
    if (root / "private").is_dir():
        checks.run("audit belongs to this release", lambda: _audit_matches(root))
        checks.run("private files are private", lambda: _modes(root))
        checks.run("per-record risk", lambda: _same_records(root, masked))
    return Verification(tuple(checks))


def _read_facts(root: Path) -> dict[str, Any]:
    path = root / "public" / "release.json"
    if not root.is_dir():
        raise ReleaseError(f"There is no release folder at '{root}'.")
    if not path.is_file():
        raise ReleaseError(f"'{root}' is not a release: it has no public/release.json.")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise ReleaseError(f"The release.json in '{root}' cannot be read; it is damaged.") from None
    if not isinstance(facts, dict) or facts.get("format_version") != FORMAT_VERSION:
        raise ReleaseError(
            f"The release.json in '{root}' is of a version that this Shoal does not know."
        )
    return facts


def _recorded_claims(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    claims = facts.get("claims")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ReleaseError("The release.json records its claims in a shape that is not a list.")
    return claims


def _file(root: Path, entry: Mapping[str, Any]) -> Path:
    name = str(entry["file"])
    if name != Path(name).name:
        raise ReleaseError("a recorded file lies outside of the release")
    return root / "public" / name


def _same_digest(root: Path, entry: Mapping[str, Any]) -> tuple[bool, str]:
    path = _file(root, entry)
    if not path.is_file():
        return False, f"the file '{path.name}' is missing"
    with path.open("rb") as file:
        same = hashlib.file_digest(file, "sha256").hexdigest() == entry["sha256"]
    state = "has the recorded checksum" if same else "does not have the recorded checksum"
    return same, f"'{path.name}' {state}"


def _only_known_files(root: Path, facts: Mapping[str, Any]) -> tuple[bool, str]:
    known = {"release.json", facts["data"]["file"], facts["report"]["file"]}
    others = [path.name for path in (root / "public").iterdir() if path.name not in known]
    return not others, f"{len(others)} files that the release does not record"


def _read_masked(root: Path, facts: Mapping[str, Any]) -> Table:
    columns = facts["data"]["columns"]
    schema = {column["name"]: column["type"] for column in columns}
    roles: dict[str, Any] = {}
    for column in columns:
        role = column["role"]
        if role in ("weight", "target"):
            roles[role] = column["name"]
        elif role is not None:
            roles.setdefault(role, []).append(column["name"])
    path, format = _file(root, facts["data"]), facts["data"]["format"]
    if path.name != f"data.{format}":
        raise ReleaseError("the recorded format is not that of the recorded file")
    return read_released(path, format, schema, Roles.from_dict(roles))


def _same_shape(masked: Table, facts: Mapping[str, Any]) -> tuple[bool, str]:
    recorded = {column["name"]: column["type"] for column in facts["data"]["columns"]}
    if masked.roles.identifiers:
        return False, f"{len(masked.roles.identifiers)} identifier columns are in the data"
    good = masked.schema == recorded and len(masked) == facts["data"]["rows"]
    return good, f"{len(masked)} rows and {len(masked.columns)} columns"


def _same_counts(masked: Table) -> tuple[bool, str]:
    same = np.array_equal(np.sort(masked.classes.sizes), masked.recounted_sizes())
    return same, f"{masked.classes.count} classes, the smallest of {masked.classes.k} records"


def _paired(
    root: Path, facts: Mapping[str, Any], masked: Table, original: Table | None, checks: _Checks
) -> tuple[Table, Table] | None:
    """Original and masked with their rows paired by the audit, where both are at hand."""
    if original is None or not (root / "private").is_dir():
        if original is not None:
            checks.append(Check("pairing", "skipped", "the private half is needed for it"))
        return None
    pairs: list[tuple[Table, Table]] = []

    def pair() -> tuple[bool, str]:
        audit = _audit(root)
        if len(original) != audit["rows_before"]:
            return False, "the original has another number of rows than the audit says"
        with_roles = original.with_roles(Roles.from_dict(audit["roles"]))
        keys = read_records(root / "private" / "records.parquet")["row_key"]
        pairs.append((with_roles, masked.paired(with_roles, keys)))
        return True, "every released row has its original"

    checks.run("pairing", pair)
    if pairs:
        checks.run("records left unmasked", lambda: _same_unchanged(root, *pairs[0]))
        checks.run("columns left as they were", lambda: _same_untouched(facts, *pairs[0]))
    return pairs[0] if pairs else None


def _same_unchanged(root: Path, original: Table, masked: Table) -> tuple[bool, str]:
    found = discover_all_measures()["unchanged_records"].function(original, masked)
    records = found.details["records"]
    return records == _audit(root)["unchanged_records"], f"{records} of {len(masked)} records"


def _same_untouched(facts: Mapping[str, Any], original: Table, masked: Table) -> tuple[bool, str]:
    """Also tells a wrong original from the right one."""
    touched = {name for step in facts["methods"] for name in step["columns"]}
    left = [name for name in masked.columns if name not in touched]
    moved = [name for name in left if masked.changed_cells(name, original).any()]
    if moved:
        return False, f"{len(moved)} columns differ from the original, though no step touched them"
    return True, f"{len(left)} columns that no step touched equal the original"


def _claim(
    recorded: Mapping[str, Any], masked: Table, paired: tuple[Table, Table] | None
) -> tuple[bool | None, str]:
    requirement = requirement_from(recorded["claim"], recorded["requirement"])
    needs = isinstance(requirement, Limit) and requirement.info.needs_original
    if needs and paired is None:
        return None, "it compares with the original: give the original and the private half"
    if needs and paired is not None:
        claim = make_claim(requirement, paired[1], paired[0])
    else:
        claim = make_claim(requirement, masked, None)
    shown = "not told" if claim.published is None else f"{claim.published:g}"
    stated = f"required {requirement.threshold:g}, measured {shown}"
    if not _close(requirement.threshold, recorded["required"]):
        return False, f"{stated}, but the release states that {recorded['required']:g} is required"
    if claim.published is None or recorded["measured"] is None:
        same = claim.published is recorded["measured"]
    else:
        same = _close(claim.published, recorded["measured"])
    if not same:
        return False, f"{stated}, but the release states another value"
    return claim.holds and bool(recorded["holds"]), stated


def _same_measures(masked: Table, facts: Mapping[str, Any]) -> tuple[bool, str]:
    infos = discover_all_measures()
    found: dict[str, float] = {"k": masked.classes.k, "classes": masked.classes.count}
    found |= {name: infos[name].function(masked).value for name in PUBLIC_MEASURES}
    stated = facts["measured"]
    wrong = [n for n in {**found, **stated} if n not in stated or not _close(found[n], stated[n])]
    return not wrong, (f"{', '.join(wrong)} differ" if wrong else f"{len(found)} recomputed")


def _audit(root: Path) -> dict[str, Any]:
    audit = json.loads((root / "private" / "audit.json").read_text(encoding="utf-8"))
    return dict(audit)


def _audit_matches(root: Path) -> tuple[bool, str]:
    audit = _audit(root)
    for path, recorded in (
        (root / "public" / "release.json", audit["release_sha256"]),
        (root / "private" / "records.parquet", audit["records_sha256"]),
    ):
        if hashlib.sha256(path.read_bytes()).hexdigest() != recorded:
            return False, f"{path.name} was changed"
    return True, "release.json and records.parquet are the ones that were written"


def _modes(root: Path) -> tuple[bool, str]:
    if os.name != "posix":
        return True, "file modes are not used on this system"
    private = root / "private"
    open_to_others = [p for p in (private, *private.iterdir()) if p.stat().st_mode & 0o077]
    return not open_to_others, f"{len(open_to_others)} that others can read"


def _same_records(root: Path, masked: Table) -> tuple[bool, str]:
    records = read_records(root / "private" / "records.parquet")
    good = np.array_equal(records["class_size"], masked.classes.record_sizes)
    unique = len(np.unique(records["row_key"])) == len(masked)
    return good and unique, f"{len(masked)} records"


def _close(found: float, stated: float) -> bool:
    return math.isclose(found, stated, rel_tol=1e-9, abs_tol=1e-12)
