"""Checking a release again, from its files alone, with other code than made it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.table import DELIMITER_OF, ReleasedFile, Roles, Table, return_freed_memory
from shoal.workflow._leaks import swapping_of
from shoal.workflow._plan import pseudonymized_by
from shoal.workflow._plan_parts import public_texts
from shoal.workflow._require import discover_all_measures
from shoal.workflow.release._identities import same_pseudonyms, same_shifts, steps_of
from shoal.workflow.release._release import PUBLIC_MEASURES, SAMPLING_FILE
from shoal.workflow.release._release_files import (
    Audit,
    Place,
    data_file,
    digest_of,
    entries_of,
    file_of,
    formulas_of,
    read_facts,
    read_masked,
    same_digest,
    same_owners,
    untouched_columns,
)
from shoal.workflow.release._signature import SIGNATURE_FILE
from shoal.workflow.release._signing import check_signature, read_signers
from shoal.workflow.release._stated_claims import MORE_PERSONS, UNOWNED, check_claim, close
from shoal.workflow.release._verification import (
    AUTHENTICITY,
    CLAIM,
    SIGNATURE,
    Check,
    Checks,
    Outcome,
    Verification,
    clean,
)

PLAIN = "plain files"
UNCHECKED = "only the private half shows whether a claim was removed or weakened"
#: Keys that span at most this many times their number are ticked off in a list.
_RANGE = 16


def verify(
    folder: str | os.PathLike[str],
    *,
    original: Table | None = None,
    source: str | os.PathLike[str] | None = None,
    signer: str | os.PathLike[str] | None = None,
    private: str | os.PathLike[str] | None = None,
) -> Verification:
    """Check a release again from its files.

    Shoal recomputes the checksum of the data, its columns and rows, every claim and every measured
    value. If the private half is there, it also checks the audit; with the original, it checks the
    claims that compare with it. The folder may come from anyone: nothing outside it is opened, a
    table that does not fit into memory is not read, and a defect is a failed check, never an error.

    Parameters
    ----------
    folder : path
        The release folder, with its ``public`` half and perhaps its ``private`` half; or the public
        half itself, under any name.
    original : Table, optional
        The table that was released, in its original row order.
    source : path, optional
        The file from which the original was read; its checksum is compared with the recorded one.
    signer : path or str, optional
        Who must have signed: an SSH public key (the file or its line), or a file of several keys
        such as ``allowed_signers``. A release that none of them signed fails.
    private : path, optional
        The private half, if it was saved apart from the public one.

    Returns
    -------
    Verification
        All checks; ``holds`` is true if none failed.
    """
    if original is not None and not isinstance(original, Table):
        raise InputError(
            f"The original must be a shoal.Table; got {type(original).__name__}. "
            "Write sh.Table(frame) or sh.read(path)."
        )
    if source is not None and not Path(source).is_file():
        raise InputError(f"There is no source file '{source}' to compare with.")
    if signer is not None:
        read_signers(signer)  # raises before the long work
    place = Place.of(Path(folder), private)
    return with_signature(
        place.root, check_release(place, original=original, source=source), signer
    )


def with_signature(
    folder: Path, found: Verification, signer: str | os.PathLike[str] | None
) -> Verification:
    """The checks of a release, with its signature if it has or needs one."""
    signers = None if signer is None else read_signers(signer)
    place, checks, signed_by = Place.of(folder), Checks(found.checks), None
    if any(check.name == PLAIN for check in checks):
        return Verification(tuple(checks))  # links are not followed
    if signers is not None or os.path.lexists(place.public / SIGNATURE_FILE):
        signature = checks.read(SIGNATURE, lambda: check_signature(place, signers))
        if signature is not None:
            checks.run(SIGNATURE, lambda: signature[0])
            signed_by = signature[1]
    return Verification(tuple(checks), signed_by)


def check_release(
    place: Place,
    *,
    original: Table | None = None,
    source: str | os.PathLike[str] | None = None,
) -> Verification:
    """All checks except the signature."""
    checks = Checks()
    checks.read(PLAIN, place.check_plain)
    facts = None if checks else checks.read("release.json", lambda: read_facts(place))
    if facts is None:
        return Verification(tuple(checks))
    file = checks.read("data unchanged", lambda: data_file(place, facts))
    unchanged = file is not None and checks.run(
        "data unchanged", lambda: same_digest(file.path, facts["data"], lambda: file.sha256)
    )
    report = facts["report"]
    checks.run("report unchanged", lambda: same_digest(file_of(place, report), report))
    if "metadata" in facts:
        checks.run("metadata unchanged", lambda: same_metadata(place, facts))
    audit = _checked_audit(place, facts, checks)
    checks.run("no other files", lambda: _only_known_files(place, facts, audit))
    if original is not None or source is not None:
        checks.run("source of the release", lambda: _same_source(audit, source))
    if file is not None and unchanged:
        masked = checks.read("columns and rows", lambda: read_masked(file, facts))
        if masked is not None:
            return_freed_memory()  # of the fields as they were read
            _check_data(facts, masked, file, audit, original, checks)
    return Verification(tuple(checks))


def _check_data(
    facts: Mapping[str, Any],
    masked: Table,
    file: ReleasedFile,
    audit: Audit | None,
    original: Table | None,
    checks: Checks,
) -> None:
    """Checks of the data themselves, together with the records of the private half."""
    if audit is not None:
        recorded = checks.read("rows on record", lambda: audit.on_record(masked))
        masked = masked if recorded is None else recorded
    if masked.exchanges:
        checks.run("randomness of the swaps", lambda: _randomness(masked))
    checks.run("columns and rows", lambda: _same_shape(masked, facts, audit))
    checks.run("class sizes counted twice", lambda: _same_counts(file, masked))
    if facts["data"]["format"] in DELIMITER_OF:
        checks.run("formulas in the text", lambda: _no_formulas(file, facts, masked))
    paired = _paired(facts, masked, audit, original, checks)
    unowned = facts["data"]["persons"] is not None and not masked.has_persons
    for number, claim in enumerate(facts["claims"]):
        check = functools.partial(check_claim, claim, number, masked, paired, audit, unowned)
        checks.run(f"{CLAIM}{claim['claim']}", check)
    checks.run("measured values", lambda: _same_measures(masked, facts, unowned))
    if audit is not None:
        checks.run("private files are private", lambda: check_modes(audit.folder))
        checks.run("per-record risk", lambda: _same_records(audit, masked))


def _checked_audit(place: Place, facts: Mapping[str, Any], checks: Checks) -> Audit | None:
    """The content of the private half, and whether it belongs to this release."""
    private = place.private
    if private is None:
        checks.run(AUTHENTICITY, lambda: (None, UNCHECKED))
        return None
    audit = checks.read(AUTHENTICITY, lambda: Audit.read(private))
    if audit is not None:
        checks.run(AUTHENTICITY, lambda: _audit_matches(place, facts, audit))
    return audit


def _audit_matches(place: Place, facts: Mapping[str, Any], audit: Audit) -> Outcome:
    said = audit.facts
    stated = {
        place.public / "release.json": said.get("release_sha256"),
        audit.folder / "records.parquet": said.get("records_sha256"),
    }
    if said["sampling"] is not None:
        stated[audit.folder / SAMPLING_FILE] = said["sampling"]["sha256"]
    stated |= {audit.folder / page["file"]: page["sha256"] for page in said.get("pages", ())}
    for path, digest in stated.items():
        if digest is None:
            return False, f"the audit records no checksum of {path.name}"
        if not os.path.lexists(path):
            return False, f"{path.name} is missing"
        if digest_of(path) != digest:
            return False, f"{path.name} was changed"
    odd = _disagreement(facts, said)
    if odd:
        return False, f"the audit and the release differ in their {odd}"
    return True, f"{' and '.join(path.name for path in stated)} are the ones that were written"


def _disagreement(facts: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """What the two halves record differently; empty if they agree."""
    roles, pseudonyms = Roles.from_dict(said["roles"]), pseudonymized_by(facts["methods"])
    role_of: dict[str, str | None] = {name: role for role, name in reversed(roles.items())}
    named_as_unit = bool(roles.unit_columns) and pseudonyms >= {*roles.unit_columns}
    role_of |= {
        name: None
        for name in pseudonyms & {*roles.naming}
        if not (named_as_unit and name in roles.unit_columns)
    }
    removed = [name for name in roles.naming if name not in pseudonyms]
    unit = said["plan"].get("pseudonyms", False) or named_as_unit
    columns = {column["name"]: column["role"] for column in facts["data"]["columns"]}
    named = [columns.pop(name) for name, role in list(columns.items()) if role == "unit"]
    pairs = {
        "requirements": (len(said["requirements"]), len(facts["claims"])),
        "steps": (len(said["steps"]), len(facts["methods"])),
        "identifiers": (len(said["identifiers"]), facts["identifiers_removed"]),
        "identifiers in its roles": (sorted(said["identifiers"]), sorted(removed)),
        "columns to drop": (len(roles.drop), facts.get("columns_dropped", 0)),
        "roles": ({name: role_of.get(name) for name in columns}, columns),
        "pseudonyms": (unit, bool(named)),
        "title, recipient or purpose": (published_texts(said["plan"]), facts.get("about", {})),
    }
    return next((what for what, (one, other) in pairs.items() if one != other), "")


def published_texts(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The texts of [release] in a recorded plan that are published."""
    given = plan.get("release", {})
    return {name: given[name] for name in public_texts() if name in given}


def same_metadata(place: Place, facts: Mapping[str, Any]) -> Outcome:
    """Whether the metadata files are those that were written, in words."""
    told = [same_digest(file_of(place, one), one) for one in facts["metadata"]]
    return all(same for same, _ in told), "; ".join(detail for _, detail in told)


def _only_known_files(place: Place, facts: Mapping[str, Any], audit: Audit | None) -> Outcome:
    known = {
        place.public: {
            "release.json",
            SIGNATURE_FILE,
            facts["data"]["file"],
            facts["report"]["file"],
            *(one["file"] for one in facts.get("metadata", ())),
        }
    }
    if place.root != place.public:
        known[place.root] = {"public", "private"}
    if place.private is not None:
        known[place.private] = {"audit.json", "records.parquet"}
        pages = () if audit is None else audit.facts.get("pages", ())
        known[place.private] |= {page["file"] for page in pages}
        if audit is None or audit.facts["sampling"] is not None:
            known[place.private].add(SAMPLING_FILE)
    others = sum(
        entry.name not in names for folder, names in known.items() for entry in entries_of(folder)
    )
    return not others, f"{others} files that the release does not record"


def _same_source(audit: Audit | None, source: str | os.PathLike[str] | None) -> Outcome:
    """Whether the original is the very file that was released."""
    if audit is None:
        return None, "the private half has its checksum"
    if audit.facts["source_sha256"] is None:
        return None, "the release was saved without the file that it was made from"
    if source is None:
        return None, "the original is a table in memory; pass its file as source= to compare"
    if digest_of(Path(source)) == audit.facts["source_sha256"]:
        return True, "the original is the file that was released"
    return False, (
        "the original is not the file that was released: its checksum differs. A copy that was "
        "saved again, or in another format, also has a different checksum, whatever it contains"
    )


def _same_shape(masked: Table, facts: Mapping[str, Any], audit: Audit | None) -> Outcome:
    recorded = {column["name"]: column["type"] for column in facts["data"]["columns"]}
    withheld = [*masked.roles.identifiers, *masked.roles.household]
    if withheld:
        return False, f"{len(withheld)} identifier columns are in the data"
    persons, stated = masked.person_count if masked.has_persons else None, facts["data"]["persons"]
    if persons != stated and (persons is not None or audit is not None):
        return False, "the release states a different number of persons"
    good = masked.schema == recorded and len(masked) == facts["data"]["rows"]
    return good, f"{len(masked):,} rows and {len(masked.columns)} columns"


def _same_counts(file: ReleasedFile, masked: Table) -> Outcome:
    """Compares the classes of the values that were read with those of the written text.

    Fields with the same text are read as one value. So if both numbers of classes are equal, the
    classes are the same.
    """
    at = {name: place for place, name in enumerate(masked.columns)}
    persons = masked.persons if masked.has_persons else None
    seen = file.sizes([at[name] for name in masked.roles.quasi_identifiers], persons)
    same = np.array_equal(np.sort(masked.classes.sizes), seen)
    called = "persons" if masked.has_persons else "records"
    return same, f"{masked.classes.count} classes, the smallest with {masked.classes.k} {called}"


def _no_formulas(file: ReleasedFile, facts: Mapping[str, Any], masked: Table) -> Outcome:
    """Whether a spreadsheet that opens the file would run any of its texts."""
    texts = [at for at, kind in enumerate(masked.schema.values()) if kind == "string"]
    count = file.running(texts)
    if formulas_of(facts) == "neutralise":
        return not count, f"{count} texts that a spreadsheet would run"
    return True, f"{count} texts that a spreadsheet would run; the release keeps them"


def _randomness(masked: Table) -> Outcome:
    if any(exchange.origin != "entropy" for exchange in masked.exchanges):
        return None, "a seed was used: anyone who learns it can undo the swaps"
    return True, f"{len(masked.exchanges)} permutations from 256 bits of entropy"


def _paired(
    facts: Mapping[str, Any],
    masked: Table,
    audit: Audit | None,
    original: Table | None,
    checks: Checks,
) -> tuple[Table, Table] | None:
    """Original and masked table, their rows paired by the audit; None if one is missing."""
    if original is None:
        return None
    if audit is None:
        checks.append(Check("pairing", "skipped", "the private half is needed for it"))
        return None
    pair = checks.read(
        "pairing",
        lambda: _pair(masked, audit, original),
        passed="every released row has its original",
    )
    if pair is not None:
        if pair[0].has_persons or masked.has_persons:
            checks.run("whose rows they are", lambda: _same_persons(masked, pair[1]))
        checks.run("records left unmasked", lambda: _same_unchanged(audit, *pair))
        checks.run("columns left as they were", lambda: _same_untouched(facts, audit, *pair))
        if steps_of(facts, "pseudonymize"):
            checks.run("pseudonyms", lambda: same_pseudonyms(facts, *pair))
        if steps_of(facts, "shift_dates"):
            checks.run("shifted dates", lambda: same_shifts(facts, *pair))
        if facts["swapping"] is not None:
            checks.run("attacks on the swap", lambda: _same_attacks(facts["swapping"], *pair))
    return pair


def _pair(masked: Table, audit: Audit, original: Table) -> tuple[Table, Table]:
    if len(original) != audit.facts["rows_before"]:
        raise InputError("the original does not have the number of rows that the audit records")
    with_roles = original.with_roles(Roles.from_dict(audit.facts["roles"]))
    if original.has_persons and not with_roles.has_persons:
        raise InputError(
            "the original says whose its rows are, but the audit counts each row as a person"
        )
    released = masked.paired(with_roles, audit.records["row_key"])
    return with_roles, released.with_sampling(audit.sampling())


def _same_persons(recorded: Table, paired: Table) -> Outcome:
    """Whether the audit assigns the rows to the persons of the original."""
    same = recorded.has_persons == paired.has_persons and same_owners(
        recorded.persons, paired.persons
    )
    return same, f"{recorded.person_count} recorded persons, {paired.person_count} in the original"


def _same_unchanged(audit: Audit, original: Table, masked: Table) -> Outcome:
    found = discover_all_measures()["unchanged_records"].function(original, masked)
    records = found.details["records"]
    same = records == audit.facts["unchanged_records"]
    return same, f"{records} of {masked.person_count}"


def _same_untouched(
    facts: Mapping[str, Any], audit: Audit, original: Table, masked: Table
) -> Outcome:
    """This check also detects a wrong original."""
    left = untouched_columns(facts, masked)
    moved = [name for name in left if masked.changed_count(name, original)]
    if moved:
        moves = f"{len(moved)} columns differ from the original, although no step touched them"
        return False, f"{moves}{_otherwise_read(audit, original)}"
    return True, f"{len(left)} columns that no step touched equal the original"


def _otherwise_read(audit: Audit, original: Table) -> str:
    """How the original was read differently than for the release; empty if it was not."""
    recorded, manner = audit.reading, original.manner
    if recorded is None or manner is None:
        return ""
    before, now = recorded.to_dict(), manner.options.to_dict()
    other = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not other:
        return ""
    return f"; it was read with other options than for the release ({quoted(other)})"


def _same_attacks(stated: Any, original: Table, masked: Table) -> Outcome:
    """The attacks on a swap, tried again."""
    found = swapping_of(original, masked)
    same = found is not None and found.public() == stated
    return same, "the linkage and every leak as stated" if same else "the release states otherwise"


def _same_measures(masked: Table, facts: Mapping[str, Any], unowned: bool) -> Outcome:
    """The values that the release states.

    For an ``unowned`` release, whose persons are unknown, only what rows allow is checked: there
    are never more persons than rows.
    """
    if unowned:
        persons, stated = facts["data"]["persons"], facts["measured"]
        crowds = [stated.get("k", 0), stated.get("rarest_history", 0)]
        shares = [stated.get(name, 0) for name in PUBLIC_MEASURES]
        likely = max(crowds) <= persons <= len(masked) and stated.get("k", 0) <= masked.classes.k
        possible = likely and all(0 <= share <= 1 for share in shares)
        return (None, UNOWNED) if possible else (False, MORE_PERSONS)
    return measured_again(masked, facts["measured"])


def measured_again(masked: Table, stated: Mapping[str, float]) -> Outcome:
    """Whether the stated values are exactly those of the table, or of its combinations."""
    infos = discover_all_measures()
    found: dict[str, float] = {"k": masked.classes.k, "classes": masked.classes.count}
    found |= {name: infos[name].take(None, masked).value for name in PUBLIC_MEASURES}
    if masked.has_persons:
        found["rarest_history"] = masked.histories.k
    wrong = [
        name
        for name in {**found, **stated}
        if name not in stated or name not in found or not close(found[name], stated[name])
    ]
    if wrong:
        return False, f"{', '.join(map(clean, wrong[:12]))} differ"
    return True, f"{len(found)} recomputed"


def check_modes(private: Path) -> Outcome:
    """Whether only their owner can read the files of the private half."""
    if os.name != "posix":
        return True, "file modes are not used on this system"
    count = sum(bool(path.stat().st_mode & 0o077) for path in (private, *private.rglob("*")))
    return not count, f"{count} that others can read"


def _same_records(audit: Audit, masked: Table) -> Outcome:
    good = np.array_equal(audit.records["class_size"], masked.classes.record_sizes)
    keys = np.asarray(audit.records["row_key"])
    return good and len(keys) == len(masked) and _all_differ(keys), f"{len(masked)} records"


def _all_differ(keys: npt.NDArray[Any]) -> bool:
    """Whether no key occurs twice: small integers are ticked off in a list, others sorted."""
    if keys.dtype == np.int64 and len(keys):
        lowest, highest = int(keys.min()), int(keys.max())
        if highest - lowest < _RANGE * len(keys):
            seen = np.zeros(highest - lowest + 1, np.bool_)
            seen[keys - lowest] = True
            return int(np.count_nonzero(seen)) == len(keys)
    keys = np.sort(keys)
    return bool((keys[1:] != keys[:-1]).all())
