"""The tables of ``shoal assess``: read apart, or a release with its original, and their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.app.cli._sources import Reading, roles_from, split_names
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Roles, Table
    from shoal.workflow import Assessment

_Names = list[str] | None


@dataclass(frozen=True)
class Declared:
    """The roles as the call gives them."""

    plan: Path | None
    quasi: _Names
    sensitive: _Names
    identifiers: _Names
    target: str | None
    unit: _Names = None
    household: _Names = None

    def roles(self, table: Table) -> Roles:
        """The roles of a table that has none yet."""
        roles = roles_from(
            table.columns,
            plan=self.plan,
            quasi=self.quasi,
            sensitive=self.sensitive,
            identifiers=self.identifiers,
            unit=self.unit,
            household=self.household,
        )
        return self._with_target(roles)

    def over(self, roles: Roles, table: Table) -> Roles:
        """The roles that a release records, unless the call gives others."""
        named = (self.quasi, self.sensitive, self.identifiers, self.unit, self.household)
        given = self.plan is not None or any(named)
        return self.roles(table) if given else self._with_target(roles)

    def _with_target(self, roles: Roles) -> Roles:
        return roles if self.target is None else roles.replacing(target=self.target)


def read_tables(
    reading: Reading,
    data: str,
    original: str | None,
    declared: Declared,
    *others: str | None,
    same_order: bool,
) -> tuple[Table, Table | None]:
    """The table and its original, each read by itself."""
    loaded = reading.read(data, original, *others)
    if original is None:
        if same_order:
            raise InputError("--same-order is about two tables; give the other one as --original.")
        return loaded.with_roles(declared.roles(loaded)), None
    before = reading.read_other(original)
    before = before.with_roles(declared.roles(before))
    if same_order and len(loaded) != len(before):
        raise InputError(
            f"--same-order pairs row by row, but the table has {len(loaded):,} rows and the "
            f"original {len(before):,}; leave it out, or give the folder of the release."
        )
    masked = _masked_as(loaded, before.roles)
    return (masked.paired(before) if same_order else masked), before


def read_released(
    reading: Reading, folder: str, original: str | None, declared: Declared
) -> tuple[Table, Table | None]:
    """The table of a release and its original, paired where the private half is there."""
    from shoal.workflow import read_release

    given = None if original is None else reading.read_other(original)
    masked, before = read_release(folder, original=given)
    if before is None:
        return masked.with_roles(declared.over(masked.roles, masked), released=True), None
    recorded = before.roles if before.roles.quasi_identifiers else masked.roles
    before = before.with_roles(declared.over(recorded, before))
    return _masked_as(masked, before.roles), before


def read_earlier(
    reading: Reading, folders: list[str], original: Table | None, declared: Declared
) -> list[Table]:
    """Earlier releases of the same original, each paired with it through its private half."""
    from shoal.workflow import read_release

    if original is None:
        raise InputError(
            "--earlier follows people from release to release; give the table that they were made "
            "from as --original."
        )
    tables = []
    for folder in folders:
        masked, before = read_release(folder, original=original)
        if before is None or not masked.pairs_with(original):
            raise InputError(
                f"The release at '{folder}' has no private half, which says whose its rows are; "
                "give the whole release as --earlier."
            )
        tables.append(_masked_as(masked, declared.over(masked.roles, before)))
    return tables


def measure_options(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """``MEASURE.OPTION=VALUE``, as often as given, by measure; a value is written as in TOML."""
    import tomllib

    found: dict[str, dict[str, Any]] = {}
    for word in given or ():
        names, equals, text = word.partition("=")
        measure, dot, option = names.strip().partition(".")
        if not (equals and dot and measure and option):
            raise InputError(
                f"--option is written MEASURE.OPTION=VALUE, such as "
                f"distance_linkage.known=['age']; got '{word}'."
            )
        if option in found.get(measure, {}):
            raise InputError(f"The option '{measure}.{option}' is given twice; give it once.")
        try:
            value = tomllib.loads(f"value = {text}")
        except (tomllib.TOMLDecodeError, RecursionError):
            value = {}
        if list(value) != ["value"]:
            raise InputError(
                f"The value of --option {measure}.{option} is not one value as TOML writes it: a "
                "number, true, false, a text in quotes, or a list of these in brackets."
            )
        found.setdefault(measure, {})[option] = value["value"]
    return found


def refuse_unless_measured(options: Mapping[str, Any], found: Assessment) -> None:
    """Raise InputError where a measure that options were given for was not taken."""
    for name in options:
        reason = found.failed.get(name, found.left_out.get(name))
        if reason is not None:
            raise InputError(f"--option {name}: it could not be measured. {reason.rstrip('.')}.")


def _masked_as(masked: Table, roles: Roles) -> Table:
    """The masked table under the roles of its original; masking may have taken columns out."""
    gone = [name for _, name in roles.items() if name not in masked.columns]
    return masked.with_roles(roles.without(gone), released=True)


def read_control(reading: Reading, source: str, roles: Roles) -> Table:
    read = reading.read_other(source)
    return _masked_as(read, roles)


def known_columns(given: _Names, columns: list[str]) -> list[str] | str | None:
    """Columns, or the one word that stands for some."""
    from shoal.workflow import KNOWN_WORDS

    names = split_names(given, columns)
    if len(names) == 1 and names[0] in KNOWN_WORDS and names[0] not in columns:
        return names[0]
    return names or None
