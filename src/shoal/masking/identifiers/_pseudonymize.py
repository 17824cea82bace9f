"""Identifiers replaced by secret names: keyed, one to one, and the same wherever the key is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import numpy as np

from shoal.errors import DisclosureWarning, InputError, quoted
from shoal.masking._base import Masker, StepLog
from shoal.masking.identifiers._key_file import KeyFile, stream_of_file
from shoal.masking.identifiers._shapes import (
    SHAPES,
    SMALL,
    Form,
    forms_of,
    has_other_letters,
    hashed_names,
    permuted,
    plain_texts,
)
from shoal.parameters import ColumnNames, OneOf, Secret, Text
from shoal.randomness import SecretStream
from shoal.table import Domain, Roles, Table, scale_name

#: Values of a form that fewer others have would be told by their length and letters.
_CROWD: Final = 10
#: A form with fewer possible values hides nobody among them.
_LEAST_ROOM: Final = 100
#: With more pseudonyms that are true values than these, another key has about as many.
_FEW: Final = 10
#: So often a key is drawn again where a pseudonym is somebody's true value.
_DRAWS: Final = 32


@dataclass(kw_only=True)
class Pseudonymize(Masker):
    """Replace identifiers by pseudonyms that nobody can make or undo without the key.

    A pseudonym is a keyed hash of the value (BLAKE2b), or with the shape ``"format"`` another value
    of the same length and alphabet, from a keyed permutation. Equal values get equal pseudonyms and
    different values different ones; missing values stay missing. An identifier that this step names
    stays in the release, and no longer has the role.

    Without a key file the key is drawn, kept in the private half, and good for one release.

    Parameters
    ----------
    columns : list of str
        The columns to pseudonymize: identifiers, the unit or the household.
    shape : {"hex", "digits", "words", "format"}
        ``P`` and 20 hexadecimal digits, 18 decimal digits, four words that can be read aloud, or
        the same length and alphabet as the value.
    shared_as : str, optional
        What the values are, such as ``"patient"``. Columns of one key and one such name agree:
        equal values get equal pseudonyms, in all tables. Without it, the name of each column.
    key_file : str, optional
        The path of a file with 64 hexadecimal digits that only its owner can read. Releases made
        with one key file agree.
    random_state : int, optional
        A seed, for tests only: whoever guesses it can undo every pseudonym.

    References
    ----------
    ENISA (2019), Pseudonymisation techniques and best practices
    <https://www.enisa.europa.eu/publications/pseudonymisation-techniques-and-best-practices>.
    Dworkin (2016), Methods for format-preserving encryption
    <https://doi.org/10.6028/NIST.SP.800-38G>, NIST SP 800-38G. Wilkerson (2009), A proposal for
    proquints <https://arxiv.org/abs/0901.4016>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"patient": ["A-17", "A-18", "A-17"], "age": [40, 51, 40]})
    >>> table = Table(frame, Roles(unit="patient", quasi_identifiers=["age"]))
    >>> names = Pseudonymize(columns=["patient"]).fit_transform(table).frame["patient"]
    >>> names[0] == names[2] != names[1], names[0][0], len(names[0])
    (True, 'P', 21)
    """

    columns: Annotated[list[str], ColumnNames()] = field(kw_only=False)
    shape: Annotated[str, OneOf(SHAPES)] = "hex"
    shared_as: Annotated[str | None, Text()] = None
    key_file: Annotated[str | None, KeyFile()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "pseudonymize"
    summary = "replaces identifiers by keyed, secret names, one to one"
    reference = "ENISA 2019; NIST SP 800-38G"
    is_random = True
    names_identifiers = True

    def identifiers_needed(self, roles: Roles) -> tuple[str, ...]:
        return tuple(n for n in self.columns if n in roles.withheld and n not in roles.drop)

    @property
    def serves(self) -> tuple[str, ...]:
        """Rows that come later need no identifier: the key that would name it is not kept."""
        return ()

    def _serve(self, table: Table) -> Table:
        """New rows without the identifiers: they are made missing."""
        rows = np.zeros(len(table), np.uint8)
        for name in self.touched_:
            if name in table.columns:
                table = table.with_labels(name, [None], rows).with_pseudonymized(name)
        return table

    def _cover(self, table: Table) -> Table:
        """People of a population: no class is formed by a pseudonym."""
        return table

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        given = {name: plain_texts(table, name) for name in columns}
        for name in columns:
            if not given[name]:
                log.skipped[name] = "no value present"
        named = self._drawn(table, {n: t for n, t in given.items() if t}, log)
        for name, names in named.items():
            _refuse_twins(name, given[name], names)
            table = _with_names(table, name, names, self.shape).with_pseudonymized(name)
        _refuse_twins_of_shared(self._scopes(named), given, named)
        log.touched.extend(named)
        return table.with_roles(_roles_after(table.roles, named), released=True)

    def _drawn(
        self, table: Table, given: Mapping[str, list[str]], log: StepLog
    ) -> dict[str, list[str]]:
        """The pseudonyms that the key of a file, or one that is drawn, gives to each column."""
        if self.key_file is not None:
            stream = stream_of_file(self.key_file, log)
        else:
            stream = self._stream(table, log)
        named = self._named(table, given, stream)
        mixed = _mixed(given, named)
        if self.key_file is None:
            # with another key about as many are, and none of them with a chance of exp(-mixed)
            for draw in range(_DRAWS if self.shape == "format" and 0 < mixed <= _FEW else 0):
                again = stream.derive("again", str(draw))
                tried = self._named(table, given, again)
                if not (mixed := _mixed(given, tried)):
                    log.private["key"] = again.key_hex
                    return tried
        if mixed and self.shape != "format":
            raise InputError(
                f"{mixed:,} pseudonyms would be true values of {quoted(given)}: were these columns "
                "pseudonymized with this key before? Take another key, or leave the step out."
            )
        if mixed:
            warnings.warn(
                f"{mixed:,} pseudonyms of {quoted(given)} are also the true value of somebody "
                "else, since most possible values are in use. Nobody keeps their own value, "
                "but readers may mistake one for the other. The shapes 'hex', 'digits' and "
                "'words' are never a true value.",
                DisclosureWarning,
                stacklevel=5,
            )
        return named

    def _named(
        self, table: Table, given: Mapping[str, list[str]], stream: SecretStream
    ) -> dict[str, list[str]]:
        """For each column the pseudonyms of its values, in their order."""
        named = {}
        for scope, columns in self._scopes(given).items():
            own = stream.derive("pseudonyms", scope)
            for name in columns:
                if self.shape == "format":
                    forms = _checked_forms(table, name, given[name])
                    named[name] = permuted(given[name], forms, own)
                else:
                    key = bytes.fromhex(own.key_hex)
                    named[name] = hashed_names(given[name], key, self.shape)
        return named

    def _scopes(self, columns: Mapping[str, object]) -> dict[str, list[str]]:
        """The columns that agree, by what they are called."""
        if self.shared_as is not None:
            return {self.shared_as: list(columns)}
        return {name: [name] for name in columns}


def _with_names(table: Table, name: str, names: list[str], shape: str) -> Table:
    codes = table.codes(name).codes.astype(np.int64)
    if shape == "format" and table.kind(name) in ("integer", "float"):
        numbers = np.array([*map(int, names), 0], np.int64)
        whole = numbers if table.kind(name) == "integer" else numbers.astype(np.float64)
        return table.with_numbers({name: whole[codes]})
    # in their own order: that of the values would say something
    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.empty(len(names) + 1, np.int64)
    place[order], place[-1] = np.arange(len(names)), len(names)
    domain = Domain(
        scale_name(table.codes(name)), dict.fromkeys(names)
    )  # digits are no number here
    return table.with_labels(name, [*(names[at] for at in order), None], place[codes], domain)


def _roles_after(roles: Roles, named: Mapping[str, object]) -> Roles:
    """A pseudonym is no identifier; a unit stays one, and says whose row it is."""
    identifiers = [name for name in roles.identifiers if name not in named]
    if not set(roles.household) & set(named):
        return roles.replacing(identifiers=identifiers)
    others = [n for n in roles.household if n not in named and n not in identifiers]
    return roles.replacing(identifiers=[*identifiers, *others], household=())


def _mixed(given: Mapping[str, list[str]], named: Mapping[str, list[str]]) -> int:
    """How many pseudonyms are true values of their column."""
    return sum(len(set(given[name]) & set(names)) for name, names in named.items())


def _refuse_twins(name: str, texts: Sequence[str], names: Sequence[str]) -> None:
    twins = len(set(texts)) - len(set(names))
    if twins or len(set(texts)) < len(texts):
        raise InputError(
            f"Different values of '{name}' would get one pseudonym. Nothing was masked. Take the "
            "shape 'hex', which has room for any table."
        )


def _refuse_twins_of_shared(
    scopes: Mapping[str, Sequence[str]],
    given: Mapping[str, list[str]],
    named: Mapping[str, list[str]],
) -> None:
    """Also different values of different columns that agree."""
    for columns in scopes.values():
        texts = {text for name in columns for text in given[name]}
        names = {text for name in columns for text in named[name]}
        if len(columns) > 1 and len(texts) != len(names):
            raise InputError(
                f"Different values of {quoted(columns)} would get one pseudonym, or one value two. "
                "Nothing was masked. Give columns that agree one type, and the shape 'hex'."
            )


def _checked_forms(table: Table, name: str, texts: Sequence[str]) -> list[Form]:
    """The forms of the values; InputError where one of them hides nobody."""
    kind = table.kind(name)
    odd = sum(map(has_other_letters, texts))
    whole = all(text.lstrip("-").isdecimal() for text in texts)
    if kind not in ("text", "integer", "float") or (kind == "float" and not whole):
        raise _unfit(name, f"'{name}' is {kind}, and the shape keeps texts and whole numbers")
    if odd:
        raise _unfit(name, f"{odd:,} values of '{name}' have other letters than a to z")
    forms = forms_of(texts, whole=kind != "text")
    if long := sum(len(form.rows) for form in forms if form.is_too_long):
        raise _unfit(name, f"{long:,} values of '{name}' are longer than 18 digits or 12 letters")
    if few := sum(len(form.rows) for form in forms if form.room < _LEAST_ROOM):
        raise _unfit(
            name,
            f"{few:,} values of '{name}' have a form with fewer than {_LEAST_ROOM} possible values",
        )
    if len(forms) > 1 and (
        rare := sum(len(form.rows) for form in forms if len(form.rows) < _CROWD)
    ):
        raise _unfit(
            name,
            f"{rare:,} values of '{name}' have a length or an alphabet that fewer than {_CROWD} "
            "values have, so their form reveals who they are",
        )
    if small := sum(len(form.rows) for form in forms if form.room < SMALL):
        warnings.warn(
            f"{small:,} values of '{name}' have forms with fewer than a million possible values. "
            "Nobody finds one without the key. But whoever has the key can list them all, and "
            "whoever learns some of the pairs narrows down the others. The shape 'hex' has no "
            "such limit.",
            DisclosureWarning,
            stacklevel=7,
        )
    return forms


def _unfit(name: str, why: str) -> InputError:
    return InputError(
        f"The shape 'format' does not fit: {why}. Nothing was masked. Take the shape 'hex', "
        "'digits' or 'words'."
    )
