"""The forms of identifying values: e-mail, phone, bank account, national numbers, devices.

A form alone is weak evidence: nine digits may be an amount or a Dutch BSN. Every pattern therefore
states how much a match proves. The less it proves, the more matches a column needs.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shoal.table.suggestion import _check_digits as check
from shoal.table.suggestion._column_names import known, without_accents

_SEPARATORS = re.compile(r"[\s.\-/()+]+")
_FIRST_LOOK = 200
_FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Pattern:
    """The form of one kind of identifying value.

    ``chance`` is the probability that another value of the same form passes as one; it determines
    how many distinct values are needed. ``share`` is the share of the distinct values that must
    match; ``named_share`` is enough if the column's name refers to the same kind. A ``named``
    pattern is so common that it counts only together with the name. ``integers`` allows whole
    numbers, with leading zeros restored up to ``width``.
    """

    kind: str
    title: str
    form: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    chance: float = 0.05
    share: float = 0.9
    named_share: float = 0.5
    named: bool = False
    integers: bool = False
    width: int = 0

    def matches(self, value: str) -> bool:
        """Whether a value has the form and passes the check."""
        if self.form.fullmatch(value) is None:
            return False
        return self.check is None or self.check(value)

    @cached_property
    def fewest(self) -> int:
        """The number of distinct values that makes a coincidence unlikely enough."""
        return max(1, math.ceil(math.log(_FALSE_ALARM) / math.log(self.chance)))

    @property
    def certain(self) -> bool:
        """Whether a few values of this form in a column are enough."""
        return self.share < 0.1


def best_pattern(
    values: Sequence[str], *, integers: bool, named_kinds: frozenset[str]
) -> tuple[Pattern, float] | None:
    """The pattern that most values match, with their share; None if no pattern matches enough."""
    found: list[tuple[Pattern, float]] = []
    for pattern in PATTERNS:
        named = pattern.kind in named_kinds
        if (pattern.named and not named) or (integers and not pattern.integers):
            continue
        fewest = 1 if named else pattern.fewest
        if pattern.certain:
            fewest = min(fewest, len(values))
        if len(values) < fewest:
            continue
        share = _match_share(pattern, values)
        needed = pattern.named_share if named else pattern.share
        if share >= needed and share * len(values) >= fewest:
            found.append((pattern, share))
    return max(found, key=lambda pair: pair[1], default=None)


def _match_share(pattern: Pattern, values: Sequence[str]) -> float:
    """The share of values that match, or 0 if a first sample shows that few do."""
    if pattern.integers and pattern.width:
        shortest = pattern.width - 2  # losing more than two zeros is rare; shorter ones are no ids
        values = [v.zfill(pattern.width) if len(v) >= shortest else v for v in values]
    if len(values) > 2 * _FIRST_LOOK and not pattern.certain:
        first = values[:: len(values) // _FIRST_LOOK]
        if sum(map(pattern.matches, first)) < 0.5 * pattern.named_share * len(first):
            return 0.0
    return sum(map(pattern.matches, values)) / len(values)


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents."""
    return re.findall(r"[a-z]+", without_accents(text.casefold()))


def _form(text: str) -> re.Pattern[str]:
    # ASCII only, because the check digits cannot compute with other characters
    return re.compile(text, re.IGNORECASE | re.DOTALL | re.ASCII)


def _text_form(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _compact(checked: Callable[[str], bool]) -> Callable[[str], bool]:
    """The check, applied to the value in upper case and without separators."""
    return lambda value: checked(_SEPARATORS.sub("", value).upper())


def _number(
    title: str, form: str, checked: Callable[[str], bool], chance: float, width: int = 0
) -> Pattern:
    """The pattern of a national number; with a width, it may be stored as an integer."""
    return Pattern(
        "national_id",
        title,
        _form(form),
        _compact(checked),
        chance,
        integers=width > 0,
        width=width,
    )


def _ip_address(value: str) -> bool:
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def _holds_known_name(value: str) -> bool:
    words = plain_words(value)
    return any(not known(names).isdisjoint(words) for names in ("given_names", "family_names"))


_STREET = (
    r"(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|place|pl|way|"
    r"square|terrace|highway|hwy|crescent|close)"
)
_STREET_FIRST = (
    r"(?:rue|avenue|av|boulevard|bd|place|chemin|impasse|all[ée]e|quai|via|viale|piazza|corso|"
    r"calle|c/|avenida|avda|paseo|plaza|carrer|rua|travessa|pra[çc]a|largo)"
)
_STREET_ENDING = r"(?:stra(?:ß|ss)e|str|weg|platz|allee|gasse|ring|straat|laan|plein|gracht|kade)"

_WORD = r"[^\W\d_](?:[^\W\d_]|['’-])*\.?"

# The most specific form first, because the first one wins a tie.
_CERTAIN = (
    Pattern("email", "e-mail address",
            _text_form(r"[^@]*[\w+-]@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24}\b.*"),
            None, 1e-6, 0.01, 0.01),
    Pattern("iban", "bank account (IBAN)",
            _form(r"[a-z]{2}\d\d(?: ?[a-z0-9]){11,30}"), _compact(check.iban), 0.01, 0.05, 0.01),
    Pattern("uuid", "UUID",
            _form(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?"), None, 1e-3, 0.05, 0.01),
    Pattern("mac_address", "hardware (MAC) address",
            _form(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}"), None, 1e-3, 0.05, 0.01),
    Pattern("national_id", "Italian codice fiscale",
            _form(r"[a-z]{6}\d{2}[a-ehlmprst]\d{2}[a-z]\d{3}[a-z]"),
            _compact(check.italian_fiscal), 1e-3, 0.05, 0.01),
    Pattern("national_id", "Mexican CURP",
            _form(r"[a-z]{4}\d{6}[hmx][a-z]{5}[a-z0-9]\d"), None, 1e-3, 0.05, 0.01),
)  # fmt: skip

_NATIONAL = (
    _number("Chinese resident identity number", r"[1-9]\d{5}(?:19|20)\d{9}[\dx]",
            check.chinese_id, 0.01, 18),
    _number("French numéro de sécurité sociale",
            r"[1278] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[ab]) ?\d{3} ?\d{3} ?\d\d",
            check.french_nir, 0.01, 15),
    _number("Finnish henkilötunnus", r"\d{6}[-+a-fu-y]\d{3}[0-9a-y]", check.finnish_hetu, 0.01),
    _number("Spanish DNI or NIE", r"(?:\d{8}|[xyz]-?\d{7})[ -]?[a-z]", check.spanish_dni, 0.05),
    _number("UK National Insurance number",
            r"[a-ceghj-pr-tw-z][a-ceghj-npr-tw-z] ?\d\d ?\d\d ?\d\d ?[a-d]", bool, 0.05),
    _number("Indian PAN", r"[a-z]{3}[abcfghljpt][a-z]\d{4}[a-z]", bool, 0.05),
    _number("Swiss AHV number", r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d\d", check.swiss_ahv, 0.01, 13),
    _number("US social security number",  # not in a range that is never issued
            r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", bool, 0.05),
    _number("Belgian national register number (NISS)",
            r"\d\d\.?\d\d\.?\d\d[- ]?\d{3}[. ]?\d\d", check.belgian_niss, 0.02, 11),
    _number("Brazilian CPF", r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", check.brazilian_cpf, 0.01, 11),
    _number("Norwegian fødselsnummer", r"\d{6} ?\d{5}", check.norwegian_birth, 0.01, 11),
    _number("Turkish kimlik numarası", r"[1-9]\d{10}", check.turkish_id, 0.02, 11),
    _number("Polish PESEL", r"\d{11}", check.polish_pesel, 0.1, 11),
    _number("German tax identification number",
            r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", check.german_tax_id, 0.1, 11),
    _number("South African identity number", r"\d{13}", check.south_african_id, 0.05, 13),
    _number("Swedish personnummer", r"(?:19|20)?\d{6}[-+]?\d{4}",
            check.swedish_personal, 0.05, 10),
    _number("Danish CPR number", r"\d{6}-\d{4}", check.danish_cpr, 0.1),
    _number("Austrian Sozialversicherungsnummer", r"[1-9]\d{3} ?\d{6}",
            check.austrian_svnr, 0.05, 10),
    _number("Indian Aadhaar number", r"[2-9]\d{3} ?\d{4} ?\d{4}", check.verhoeff, 0.1, 12),
    _number("UK NHS number", r"\d{3}[ -]?\d{3}[ -]?\d{4}", check.uk_nhs, 0.1, 10),
    _number("Chilean RUT", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dk]", check.chilean_rut, 0.1),
    _number("Dutch BSN", r"(?!000)\d{4}\.?\d{2}\.?\d{3}", check.dutch_bsn, 0.1, 9),
    _number("Portuguese NIF", r"[1235-9]\d{2} ?\d{3} ?\d{3}", check.portuguese_nif, 0.1, 9),
    _number("Canadian social insurance number", r"\d{3}[ -]?\d{3}[ -]?\d{3}", check.luhn, 0.1, 9),
    _number("Australian tax file number", r"\d{3} ?\d{3} ?\d{3}", check.australian_tfn, 0.1, 9),
)  # fmt: skip

_LIKELY = (
    Pattern("payment_card", "payment card number",
            _form(r"\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|\d{4}[ -]?\d{6}[ -]?\d{4,5}"),
            _compact(check.payment_card), integers=True),
    Pattern("device", "device number (IMEI)", _form(r"\d{15}"), check.luhn, 0.1, integers=True),
    Pattern("vehicle", "vehicle identification number",
            _form(r"(?=.*[a-z])(?=.*\d)[a-hj-npr-z0-9]{17}"), _compact(check.vehicle), 0.1, 0.8),
    Pattern("ip_address", "IP address",
            _form(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d\d?)?|(?=[^:]*:[^:]*:)[0-9a-f:.]{3,45}"),
            _ip_address, 0.01, 0.5),
    Pattern("phone", "phone number",
            _form(r"(?:\+|00(?=\d+[ /-]))[1-9]\d{0,2}[ .\-/]?(?:\(\d{1,4}\))?(?:[ .\-/]?\d){6,13}"),
            None, 0.01, 0.5),
    Pattern("phone", "phone number",
            _form(r"(?:1[ -])?\(?[2-9]\d\d\)?[ .\-/]{1,3}\d{3}[ .\-]\d{4}(?: ?(?:x|ext\.?) ?\d+)?"),
            None, 0.01, 0.5),
    Pattern("phone", "phone number",
            _form(r"(?!\d{5}[ -]\d{4}$)(?!\d\d[ /-]\d\d[ /-]\d{4})"
                  r"\(?0[1-9]\d{0,4}\)?(?:[ /\-]\d{2,8}|(?:\.\d\d){3,4}){1,4}"),
            _compact(lambda number: 9 <= len(number) <= 14), share=0.7),
    Pattern("url", "web address", _form(r"(?:https?://|www\.)\S+\.\S+"), None, 0.01, 0.5),
    Pattern("hash", "hash or token",
            _form(r"(?=.*\d)(?=.*[a-f])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})"),
            share=0.5),
    Pattern("handle", "user handle", _text_form(r"@[\w.]{2,30}"), share=0.5),
    Pattern("coordinates", "pair of coordinates",
            _form(r"[(\[]?-?\d{1,2}\.\d{3,}\s*[,; ]\s*-?\d{1,3}\.\d{3,}[)\]]?"), share=0.5),
    Pattern("address", "street address",
            _text_form(rf"\d+[a-z]?[ ,]+(?:[\w.'-]+ +){{1,4}}{_STREET}\b.*"
                  rf"|(?:\d+[a-z]?(?: ?(?:bis|ter))?[ ,]+)?{_STREET_FIRST}\b\.? .*"
                  rf"|(?:[\w.-]+ ){{0,4}}\w*{_STREET_ENDING}\b\.? ?\d+ ?[a-z]?\b.*"),
            None, 0.1, 0.3, 0.1),
    Pattern("person_name", "name of a person", _text_form(rf"{_WORD}(?:,? {_WORD}){{0,4}}"),
            _holds_known_name, 0.5, 0.3, 0.1),
)  # fmt: skip

_ONLY_NAMED = (
    Pattern("phone", "phone number", _form(r"\+?\(?\d(?:[ .\-/()]{0,2}\d){5,14}"),
            named=True, integers=True),
    Pattern("national_id", "national ID number",
            _form(r"(?=(?:[^\d]*\d){5})[a-z]{0,3}[ -]?\d(?:[ .\-/]?[a-z0-9]){4,20}"),
            named=True, integers=True),
    Pattern("payment_card", "payment card number", _form(r"(?:\d[ -]?){13,19}"),
            named=True, integers=True),
)  # fmt: skip

PATTERNS: tuple[Pattern, ...] = _CERTAIN + _NATIONAL + _LIKELY + _ONLY_NAMED
