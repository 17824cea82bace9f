"""Checking a release again, from its files alone, by other code than made it."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError, ReleaseError
from shoal.models import PopulationModel, discover_models
from shoal.table import Roles, Table, read_records
from shoal.workflow._release import PUBLIC_MEASURES, SAMPLING_FILE
from shoal.workflow._release_files import (
    Place,
    is_plain,
    on_course,
    on_record,
    read_audit,
    read_facts,
    read_masked,
    same_digest,
    sampling_on_record,
    untouched_columns,
)
from shoal.workflow._require import Limit, discover_all_measures, make_claim, requirement_from
from shoal.workflow._swapping import swapping_of
from shoal.workflow._verification import (
    AUTHENTICITY,
    CLAIM,
    Check,
    Checks,
    Verification,
    clean,
)


def verify(folder: str | os.PathLike[str], *, original: Table | None = None) -> Verification:
    """Check a release again from its files.

    The checksum of the data, its columns and rows, every claim and every measured value are
    recomputed; where the private half is there, so is the audit, and with the original the
    claims that compare with it.

    Parameters
    ----------
    folder : path
        The release folder, with its ``public`` half and, perhaps, its ``private`` one; or the
        public half itself, under any name.
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
    place = Place.of(root)
    facts = read_facts(place)
    checks = Checks()
    checks.run("data unchanged", lambda: same_digest(place, facts["data"]))
    checks.run("report unchanged", lambda: same_digest(place, facts["report"]))
    checks.run("no other files", lambda: _only_known_files(place, facts))
    checks.run(AUTHENTICITY, lambda: _audit_matches(place))
    if any(check.status == "failed" and check.name == "data unchanged" for check in checks):
        return Verification(tuple(checks))
    try:
        masked = read_masked(place, facts)
    except Exception:  # damaged files raise whatever their readers raise
        checks.append(Check("columns and rows", "failed", "the data cannot be read as recorded"))
        return Verification(tuple(checks))
    if place.private is not None:
        masked = on_course(place.private, _with_exchanges(place.private, masked, checks))
    checks.run("columns and rows", lambda: _same_shape(masked, facts))
    checks.run("class sizes counted twice", lambda: _same_counts(masked))
    paired = _paired(place.private, facts, masked, original, checks)
    for number, recorded in enumerate(_recorded_claims(facts)):
        name = f"{CLAIM}{recorded.get('claim')}"
        checks.run(name, functools.partial(_claim, recorded, masked, paired, place.private, number))
    checks.run("measured values", lambda: _same_measures(masked, facts))
    if (private := place.private) is not None:
        checks.run("private files are private", lambda: _modes(private))
        checks.run("per-record risk", lambda: _same_records(private, masked))
    return Verification(tuple(checks))


def _recorded_claims(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    claims = facts.get("claims")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ReleaseError("The release.json records its claims in a shape that is not a list.")
    return claims


def _only_known_files(place: Place, facts: Mapping[str, Any]) -> tuple[bool, str]:
    known = {"release.json", facts["data"]["file"], facts["report"]["file"]}
    found = [(path, path.name in known, stat.S_ISREG) for path in place.public.iterdir()]
    if place.root != place.public:
        halves = ("public", "private")
        found += [(path, path.name in halves, stat.S_ISDIR) for path in place.root.iterdir()]
    others = sum(not recorded for _, recorded, _ in found)
    odd = sum(recorded and not is_plain(path, kind) for path, recorded, kind in found)
    told = f"{others} files that the release does not record"
    return not others and not odd, f"{told}, and {odd} links or the like" if odd else told


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
    private: Path | None,
    facts: Mapping[str, Any],
    masked: Table,
    original: Table | None,
    checks: Checks,
) -> tuple[Table, Table] | None:
    """Original and masked with their rows paired by the audit, where both are at hand."""
    if original is None or private is None:
        if original is not None:
            checks.append(Check("pairing", "skipped", "the private half is needed for it"))
        return None
    pairs: list[tuple[Table, Table]] = []

    def pair() -> tuple[bool, str]:
        audit = read_audit(private)
        if len(original) != audit["rows_before"]:
            return False, "the original has another number of rows than the audit says"
        with_roles = original.with_roles(Roles.from_dict(audit["roles"]))
        keys = read_records(private / "records.parquet")["row_key"]
        released = masked.paired(with_roles, keys).with_sampling(sampling_on_record(private))
        pairs.append((with_roles, released))
        return True, "every released row has its original"

    checks.run("pairing", pair)
    if pairs:
        checks.run("records left unmasked", lambda: _same_unchanged(private, *pairs[0]))
        checks.run("columns left as they were", lambda: _same_untouched(facts, *pairs[0]))
        if facts.get("swapping") is not None:
            checks.run("attacks on the swap", lambda: _same_attacks(facts["swapping"], *pairs[0]))
    return pairs[0] if pairs else None


def _same_unchanged(private: Path, original: Table, masked: Table) -> tuple[bool, str]:
    found = discover_all_measures()["unchanged_records"].function(original, masked)
    records = found.details["records"]
    return records == read_audit(private)[
        "unchanged_records"
    ], f"{records} of {len(masked)} records"


def _same_untouched(facts: Mapping[str, Any], original: Table, masked: Table) -> tuple[bool, str]:
    """Also tells a wrong original from the right one."""
    left = untouched_columns(facts, masked)
    moved = [name for name in left if masked.changed_cells(name, original).any()]
    if moved:
        return False, f"{len(moved)} columns differ from the original, though no step touched them"
    return True, f"{len(left)} columns that no step touched equal the original"


def _same_attacks(stated: Any, original: Table, masked: Table) -> tuple[bool, str]:
    """The attacks on a swap, tried again."""
    found = swapping_of(original, masked)
    same = found is not None and found.public() == stated
    return same, "the linkage and every leak as stated" if same else "the release states others"


def _with_exchanges(private: Path, masked: Table, checks: Checks) -> Table:
    """The table with the row keys and swaps that the audit has of it."""
    found: list[Table] = []

    def read() -> tuple[bool | None, str]:
        recorded = on_record(private, masked)
        found.append(recorded)
        exchanges = recorded.exchanges
        if any(exchange.origin != "entropy" for exchange in exchanges):
            return None, "a seed was given: whoever learns it can undo the swaps"
        return True, f"{len(exchanges)} permutations from 256 bits of entropy"

    if _swapped(private):
        checks.run("randomness of the swaps", read)
    return found[0] if found else masked


def _swapped(private: Path) -> bool:
    try:
        return bool(read_audit(private).get("exchanges"))
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return False  # another check says that the audit is damaged


def _claim(
    recorded: Mapping[str, Any],
    masked: Table,
    paired: tuple[Table, Table] | None,
    private: Path | None,
    number: int,
) -> tuple[bool | None, str]:
    key, value = clean(recorded["claim"]), recorded["requirement"]
    model = discover_models().get(key)
    if model is not None and issubclass(model, PopulationModel):
        return None, "the population is private, and has to be masked as the release was"
    if private is not None:
        value = read_audit(private)["requirements"][number]
    elif model is not None and model.needs_audit:
        return None, "what it holds by is in the private half"
    elif recorded.get("private_parameters"):
        return None, "its parameters are in the private half"
    requirement = requirement_from(key, value)
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
        # a share of the original is not told beside a number of removals that is not
        same = recorded["measured"] is None and (needs or claim.published is None)
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
    return not wrong, (
        f"{', '.join(map(clean, wrong))} differ" if wrong else f"{len(found)} recomputed"
    )


def _audit_matches(place: Place) -> tuple[bool | None, str]:
    if place.private is None:
        return None, "only the private half tells whether a claim was removed or weakened"
    audit = read_audit(place.private)
    stated = {
        place.public / "release.json": audit.get("release_sha256"),
        place.private / "records.parquet": audit.get("records_sha256"),
    }
    if audit.get("sampling") is not None:
        stated[place.private / SAMPLING_FILE] = audit["sampling"].get("sha256")
    for path, digest in stated.items():
        if digest is None:
            return False, f"the audit records no checksum of {path.name}"
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return False, f"{path.name} was changed"
    return True, f"{' and '.join(path.name for path in stated)} are the ones that were written"


def _modes(private: Path) -> tuple[bool, str]:
    if os.name != "posix":
        return True, "file modes are not used on this system"
    open_to_others = [p for p in (private, *private.iterdir()) if p.stat().st_mode & 0o077]
    return not open_to_others, f"{len(open_to_others)} that others can read"


def _same_records(private: Path, masked: Table) -> tuple[bool, str]:
    records = read_records(private / "records.parquet")
    good = np.array_equal(records["class_size"], masked.classes.record_sizes)
    unique = len(np.unique(records["row_key"])) == len(masked)
    return good and unique, f"{len(masked)} records"


def _close(found: float, stated: float) -> bool:
    return math.isclose(found, stated, rel_tol=1e-9, abs_tol=1e-12)
