"""Checking a release in parts again, from its files alone, by code that did not mask."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines._engine import OWNER, Engine, Rows
from shoal.engines._measures import Comparison, tally_before, tally_of, tally_with_owners
from shoal.engines._parts import Sizes
from shoal.engines._release import described_source, digest_of_parts
from shoal.engines._swaps import linked_crowd
from shoal.errors import InputError, ReleaseError
from shoal.models import discover_models
from shoal.randomness import SecretStream
from shoal.table import Course, Roles, Table
from shoal.workflow import Assessment, Limit, Verification
from shoal.workflow._assess import asked_by_name, assess_release
from shoal.workflow._plan import pseudonymized_by
from shoal.workflow._require import requirement_from
from shoal.workflow.release._release_files import Audit, Place, digest_of, is_plain, read_json
from shoal.workflow.release._release_shape import AUDIT_IN_PARTS, FACTS_IN_PARTS, check_shape
from shoal.workflow.release._signature import SIGNATURE_FILE
from shoal.workflow.release._stated_claims import UNOWNED, check_claim, close, finding_of
from shoal.workflow.release._verification import AUTHENTICITY, CLAIM, Checks, Outcome, clean
from shoal.workflow.release._verify import (
    PLAIN,
    UNCHECKED,
    check_modes,
    measured_again,
    published_texts,
    same_metadata,
)


def verify_in_parts(
    folder: str | os.PathLike[str],
    engine: Engine,
    source: Any = None,
    private: str | os.PathLike[str] | None = None,
) -> Verification:
    """All checks of a release in parts; a defect is a failed check, never an error.

    With the ``source`` and the private half, claims that compare with the original are checked.
    """
    place, checks = Place.of(Path(folder), private), Checks()
    checks.read(PLAIN, lambda: _check_plain(place))
    facts = None if checks else checks.read("release.json", lambda: _facts(place))
    if facts is None:
        return Verification(tuple(checks))
    public = place.public / "data"
    whole = checks.run("data unchanged", lambda: _unchanged(public, facts["data"]))
    report = facts["report"]
    checks.run(
        "report unchanged",
        lambda: (digest_of(place.public / report["file"]) == report["sha256"], "its checksum"),
    )
    if "metadata" in facts:
        checks.run("metadata unchanged", lambda: same_metadata(place, facts))
    audit = None
    if place.private is None:
        checks.run(AUTHENTICITY, lambda: (None, UNCHECKED))
    else:
        audit = checks.read(AUTHENTICITY, lambda: _audit_of(place))
        if audit is not None:
            checks.run(AUTHENTICITY, lambda: _audit_matches(audit, place, facts))
    checks.run("no other files", lambda: _only_known(place, facts, audit))
    if whole:
        _check_data(place, facts, audit, engine, checks, source)
    return Verification(tuple(checks))


def assess_in_parts(
    folder: str | os.PathLike[str],
    engine: Engine,
    source: Any = None,
    measures: Sequence[str] | None = None,
) -> Assessment:
    """Assess the classes of a release in parts and, with its original, what masking cost."""
    wanted = None if measures is None else list(asked_by_name(measures))
    place = Place.of(Path(folder))
    _check_plain(place)
    facts = _facts(place)
    written, roles = _rows(place, facts, engine), _roles(facts)
    audit = None if place.private is None else _audit_of(place)
    tally = _tally(place, facts, written, roles, audit)
    if source is None:
        return replace(assess_release(tally, None), columns=len(written.columns))
    if audit is None:
        raise InputError(
            "Only the private half records which released row belongs to which original row. Pass "
            "the whole release."
        )
    return _comparison(place, facts, audit, written, tally, source).assessment(wanted)


def _comparison(
    place: Place,
    facts: Mapping[str, Any],
    audit: Audit,
    written: Rows,
    tally: Table,
    source: Any,
) -> Comparison:
    """The release and its original; ReleaseError if the source is not the original."""
    recorded, found = audit.facts["source"], described_source(source)
    if recorded and found and recorded != found:
        raise ReleaseError("the release was made from other files than those of the source")
    engine = written.engine
    rows, roles = engine.source(source), Roles.from_dict(audit.facts["roles"])
    if any(name not in rows.columns for _, name in roles.items()):
        raise ReleaseError("the source lacks columns that the original had")
    names = [part["file"] for part in facts["data"]["parts"]]
    return Comparison(
        rows,
        roles,
        rows.count(),
        written,
        _private(engine, audit),
        [place.public / "data" / name for name in names],
        [audit.folder / "records" / name for name in names],
        SecretStream.from_key_hex(audit.facts["order"]),
        tally_before(rows, roles)[0],
        tally,
    )


def _audit_of(place: Place) -> Audit:
    """The private half; ReleaseError if it is not as Shoal writes it."""
    assert place.private is not None
    said = read_json(place.private / "audit.json")
    return Audit(place.private, check_shape(said, AUDIT_IN_PARTS, "audit.json"))


def _audit_matches(audit: Audit, place: Place, facts: Mapping[str, Any]) -> Outcome:
    """Whether the private half belongs to this release."""
    said = audit.facts
    if digest_of(place.public / "release.json") != said["release_sha256"]:
        return False, "release.json was changed"
    for part in said["parts"]:
        if digest_of(audit.folder / "records" / part["file"]) != part["sha256"]:
            return False, f"{part['file']} of the private half was changed"
    for page in said.get("pages", ()):
        path = audit.folder / page["file"]
        if not os.path.lexists(path):
            return False, f"{page['file']} is missing"
        if digest_of(path) != page["sha256"]:
            return False, f"{page['file']} was changed"
    counts = (
        (len(said["requirements"]), len(facts["claims"])),
        (len(said["steps"]), len(facts["methods"])),
        (len(said["identifiers"]), facts["identifiers_removed"]),
        ([p["rows"] for p in said["parts"]], [p["rows"] for p in facts["data"]["parts"]]),
        (_names_unit(said, facts), bool(_roles(facts).unit_columns)),
        (published_texts(said["plan"]), facts.get("about", {})),
    )
    same = all(one == other for one, other in counts)
    return same, "release.json and all private parts are the ones that were written"


def _names_unit(said: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether the plan gives the unit pseudonyms."""
    unit = {*Roles.from_dict(said["roles"]).unit_columns}
    by_step = bool(unit) and unit <= pseudonymized_by(facts["methods"])
    return bool(said["plan"].get("pseudonyms", False)) or by_step


def _check_plain(place: Place) -> None:
    """ReleaseError if the folder contains a link; so no file that a link names is opened."""
    walked = [each for half in (place.root, place.private) if half for each in os.walk(half)]
    for folder, _, names in walked:
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            if not is_plain(path, stat.S_ISREG) and not is_plain(path, stat.S_ISDIR):
                raise ReleaseError(f"'{clean(path.name)}' is a link or otherwise not a file")


def _facts(place: Place) -> dict[str, Any]:
    return check_shape(read_json(place.public / "release.json"), FACTS_IN_PARTS, "release.json")


def _only_known(place: Place, facts: Mapping[str, Any], audit: Audit | None) -> Outcome:
    parts = {part["file"] for part in facts["data"]["parts"]}
    known: dict[Path, set[str]] = {
        place.public: {
            *("release.json", "data", facts["report"]["file"], SIGNATURE_FILE),
            *(one["file"] for one in facts.get("metadata", ())),
        },
        place.public / "data": parts,
    }
    if place.root != place.public:
        known[place.root] = {"public", "private"}
    if place.private is not None:
        pages = {page["file"] for page in (audit.facts.get("pages", ()) if audit else ())}
        known |= {
            place.private: {"audit.json", "records", *pages},
            place.private / "records": parts,
        }
    others = 0
    for folder, names in known.items():
        if not folder.is_dir():
            return False, "a folder of the release is missing"
        others += sum(entry.name not in names for entry in os.scandir(folder))
    return not others, f"{others} files that the release does not record"


def _unchanged(folder: Path, data: Mapping[str, Any]) -> Outcome:
    import pyarrow.parquet as pq

    if digest_of_parts(data["parts"]) != data["sha256"]:
        return False, "the checksum of all parts differs"
    rows = 0
    for part in data["parts"]:
        path = folder / part["file"]
        if not os.path.lexists(path) or not is_plain(path, stat.S_ISREG):
            return False, f"{part['file']} is missing"
        if digest_of(path) != part["sha256"]:
            return False, f"{part['file']} was changed"
        rows += (found := pq.read_metadata(path).num_rows)
        if found != part["rows"]:
            return False, f"{part['file']} has another number of rows"
    count = len(data["parts"])
    return rows == data["rows"], f"{count:,} part{'s' * (count != 1)} with {rows:,} rows"


def _check_data(
    place: Place,
    facts: Mapping[str, Any],
    audit: Audit | None,
    engine: Engine,
    checks: Checks,
    source: Any,
) -> None:
    written = checks.read("columns and rows", lambda: _rows(place, facts, engine))
    if written is None:
        return
    roles = _roles(facts)
    tally = checks.read("combinations", lambda: _tally(place, facts, written, roles, audit))
    if tally is None:
        return
    if audit is not None:
        tally = _with_course(tally, written, audit)
    checks.run("class sizes counted twice", lambda: _same_counts(written, roles, tally, facts))
    if tally.has_persons:
        checks.run("number of persons", lambda: _same_persons(tally, facts))
    both = None
    if source is not None and audit is not None:
        compare = functools.partial(_comparison, place, facts, audit, written, tally, source)
        both = checks.read("original", compare)
    unowned = facts["data"]["persons"] is not None and not tally.has_persons
    for number, claim in enumerate(facts["claims"]):
        model = discover_models().get(claim["claim"])
        if model is not None and model.bounds_links and audit is not None:
            swap = functools.partial(_same_swap, claim, written.engine, audit, facts, tally)
            checks.run(f"{CLAIM}{claim['claim']}", swap)
            continue
        check = functools.partial(check_claim, claim, number, tally, None, audit, unowned)
        if both is not None and audit is not None and claim["needs_original"]:
            check = functools.partial(_same_limit, claim, number, audit, both, check)
        checks.run(f"{CLAIM}{claim['claim']}", check)
    checks.run(
        "measured values",
        lambda: (None, UNOWNED) if unowned else measured_again(tally, facts["measured"]),
    )
    if audit is not None:
        if roles.unit_columns:
            checks.run("pseudonyms", lambda: _same_names(written, roles, audit))
        checks.run("private files are private", lambda: check_modes(audit.folder))
        checks.run("per-record risk", lambda: _same_records(place, audit, roles, tally))


def _rows(place: Place, facts: Mapping[str, Any], engine: Engine) -> Rows:
    files = [place.public / "data" / part["file"] for part in facts["data"]["parts"]]
    rows = engine.read(files)
    found = Table(pl.DataFrame(schema=dict(rows.schema))).schema
    recorded = {column["name"]: column["type"] for column in facts["data"]["columns"]}
    if found != recorded:
        raise ReleaseError("the columns or types of the parts differ from those in the release")
    return rows


def _roles(facts: Mapping[str, Any]) -> Roles:
    by_role: dict[str, list[str]] = {}
    for column in facts["data"]["columns"]:
        by_role.setdefault(column["role"], []).append(column["name"])
    return Roles(
        quasi_identifiers=by_role.get("quasi_identifiers", []),
        sensitive=by_role.get("sensitive", []),
        weight=next(iter(by_role.get("weight", [])), None),
        unit=by_role.get("unit", []),
    )


def _tally(
    place: Place,
    facts: Mapping[str, Any],
    written: Rows,
    roles: Roles,
    audit: Audit | None,
) -> Table:
    if audit is not None and facts["data"]["persons"] is not None:
        unit = Roles.from_dict(audit.facts["roles"]).unit_columns
        return tally_with_owners(written, _private(written.engine, audit), unit, roles)
    return tally_of(written, roles)


def _with_course(tally: Table, written: Rows, audit: Audit) -> Table:
    """The tally with the recorded course of the table, if it covers every column."""
    said = audit.facts.get("course")
    covered = {*written.columns} == {*tally.roles.quasi_identifiers}
    return tally.on_course(Course(**said)) if said is not None and covered else tally


def _private(engine: Engine, audit: Audit) -> Rows:
    return engine.read([audit.folder / "records" / part["file"] for part in audit.facts["parts"]])


def _same_counts(written: Rows, roles: Roles, tally: Table, facts: Mapping[str, Any]) -> Outcome:
    """Count the classes with plain SQL, independently of codes and tallies."""
    names = ", ".join(map(written.engine.quote, roles.quasi_identifiers))
    group = f" GROUP BY {names}" if names else ""
    found = written.engine.query(
        "SELECT min(n) AS k, count(*) AS classes, sum(n) AS records "
        f"FROM (SELECT count(*) AS n FROM {written.name}{group})"
    )
    rows = int(tally.group(tally.roles.quasi_identifiers).rows.min())
    same = (int(found["k"][0]), int(found["classes"][0]), int(found["records"][0])) == (
        rows,
        tally.classes.count,
        facts["data"]["rows"],
    )
    return same, f"{tally.classes.count:,} classes, the smallest of {tally.classes.k}"


def _same_persons(tally: Table, facts: Mapping[str, Any]) -> Outcome:
    found, stated = tally.person_count, facts["data"]["persons"]
    return found == stated, f"{found:,} persons"


def _same_names(written: Rows, roles: Roles, audit: Audit) -> Outcome:
    """Whether each recorded person has one pseudonym, and each pseudonym belongs to one person."""
    engine = written.engine
    unit = Roles.from_dict(audit.facts["roles"]).unit_columns
    owners = [OWNER + name for name in unit]
    both = engine.joined(written, _private(engine, audit), owners)
    counts = []
    for names in (roles.unit_columns, owners, [*roles.unit_columns, *owners]):
        listed = ", ".join(map(engine.quote, names))
        found = engine.query(
            f"SELECT count(*) AS n FROM (SELECT DISTINCT {listed} FROM {both.name})"
        )
        counts.append(int(found["n"][0]))
    return len(set(counts)) == 1, f"{counts[0]:,} pseudonyms of {counts[1]:,} persons"


def _same_limit(
    recorded: Mapping[str, Any],
    number: int,
    audit: Audit,
    both: Comparison,
    check: Callable[[], Outcome],
) -> Outcome:
    """Measure a limit that compares with the original again, on the same sample if there is one."""
    outcome = check()
    if outcome[0] is not None:
        return outcome
    limit = requirement_from(recorded["claim"], audit.facts["requirements"][number])
    assert isinstance(limit, Limit)
    claim = both.claim(limit)
    stated, found = recorded["measured"], claim.published
    same = stated is None or (found is not None and close(found, stated))
    if not same or recorded.get("sampled_persons") != claim.sampled_about:
        return False, "the release states another value than the one measured"
    return claim.holds, finding_of(limit.threshold, stated)


def _same_swap(
    claim: Mapping[str, Any],
    engine: Engine,
    audit: Audit,
    facts: Mapping[str, Any],
    tally: Table,
) -> Outcome:
    """Count again what the recorded groups and sources guarantee."""
    unit = Roles.from_dict(audit.facts["roles"]).unit
    roles = _roles(facts).replacing(unit=unit)
    level = linked_crowd(_private(engine, audit), facts["methods"], roles, tally)
    same = close(level, claim["measured"]) and level >= claim["required"]
    return same, finding_of(claim["required"], level)


def _same_records(place: Place, audit: Audit, roles: Roles, tally: Table) -> Outcome:
    """Whether each key occurs once, in its place, and the recorded class sizes are correct.

    The rows of all parts are in the order of the hashes of their keys, so equal keys would be
    neighbors. The sizes in the first part are compared one by one. For all parts, the number of
    records with each size is compared.
    """
    order = SecretStream.from_key_hex(audit.facts["order"])
    last, rows, sized = -1, 0, True
    counts: dict[int, int] = {}
    for number, part in enumerate(audit.facts["parts"]):
        records = pl.read_parquet(audit.folder / "records" / part["file"])
        hashes = order.keyed_hash(records["row_key"].to_numpy(), "row-order").astype(np.uint64)
        ascending = bool((hashes[1:] > hashes[:-1]).all())
        if len(hashes) and (not ascending or int(hashes[0]) <= last):
            return False, "a row of the original is recorded twice or out of place"
        last = int(hashes[-1]) if len(hashes) else last
        rows += len(hashes)
        sized = sized and "class_size" in records.columns
        if sized and number == 0:
            file = place.public / "data" / part["file"]
            here = Sizes(tally)(pl.read_parquet(file, columns=list(roles.quasi_identifiers)))
            if not np.array_equal(here, records["class_size"].to_numpy()):
                return False, "the recorded class sizes differ from those counted"
        if sized:
            for size, count in records.group_by("class_size").len().iter_rows():
                counts[size] = counts.get(size, 0) + count
    if sized:
        sizes, places = np.unique(tally.class_sizes(), return_inverse=True)
        found = np.bincount(places, tally.times).astype(np.int64)
        if counts != dict(zip(sizes.tolist(), found.tolist(), strict=True)):
            return False, "the recorded class sizes differ from those counted"
    return True, f"{rows:,} records"
