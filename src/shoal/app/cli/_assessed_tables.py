"""The tables of ``shoal assess``: read apart, or a release with its original, and their roles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.app.cli._sources import Reading, roles_from, split_names
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.table import Roles, Table

_Names = list[str] | None


@dataclass(frozen=True)
class Declared:
    """The roles as the call gives them."""

    plan: Path | None
    quasi: _Names
    sensitive: _Names
    identifiers: _Names
    target: str | None

    def roles(self, table: Table) -> Roles:
        """The roles of a table that has none yet."""
        roles = roles_from(
            table.columns,
            plan=self.plan,
            quasi=self.quasi,
            sensitive=self.sensitive,
            identifiers=self.identifiers,
        )
        return self._with_target(roles)

    def over(self, roles: Roles, table: Table) -> Roles:
        """The roles that a release records, unless the call gives others."""
        given = self.plan is not None or self.quasi or self.sensitive or self.identifiers
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
