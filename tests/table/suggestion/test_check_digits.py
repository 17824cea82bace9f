"""Check digits, tested with specimen numbers that authorities and standards publish."""

from __future__ import annotations

import random

import pytest

from shoal.table.suggestion import _check_digits as check
from shoal.table.suggestion._value_patterns import PATTERNS

# Specimens from the standards' texts and the authorities' own examples; none belongs to a person.
SPECIMENS = [
    (check.luhn, "79927398713"),
    (check.luhn, "046454286"),  # Canadian SIN in the documentation of the tax authority
    (check.verhoeff, "2363"),
    (check.iban, "GB82WEST12345698765432"),
    (check.iban, "DE89370400440532013000"),
    (check.iban, "FR1420041010050500013M02606"),
    (check.payment_card, "4111111111111111"),
    (check.payment_card, "378282246310005"),
    (check.vehicle, "1M8GDM9AXKP042788"),
    (check.uk_nhs, "9434765919"),
    (check.belgian_niss, "85073003328"),
    (check.dutch_bsn, "111222333"),
    (check.spanish_dni, "12345678Z"),
    (check.spanish_dni, "X1234567L"),
    (check.italian_fiscal, "RSSMRA85T10A562S"),
    (check.french_nir, "255081416802538"),
    (check.german_tax_id, "86095742719"),
    (check.german_tax_id, "47036892816"),
    (check.polish_pesel, "44051401458"),
    (check.portuguese_nif, "123456789"),
    (check.brazilian_cpf, "11144477735"),
    (check.swedish_personal, "8112289874"),
    (check.finnish_hetu, "131052308T"),
    (check.norwegian_birth, "01010750160"),
    (check.swiss_ahv, "7569217076985"),
    (check.austrian_svnr, "1237010180"),
    (check.australian_tfn, "123456782"),
    (check.chinese_id, "11010519491231002X"),
    (check.chilean_rut, "123456785"),
    (check.turkish_id, "10000000146"),
    (check.south_african_id, "8001015009087"),
]


@pytest.mark.parametrize(("checked", "number"), SPECIMENS)
def test_accepts_the_specimen(checked, number):
    assert checked(number)


@pytest.mark.parametrize(("checked", "number"), SPECIMENS)
def test_refuses_most_numbers_with_a_wrong_digit(checked, number):
    places = [i for i, sign in enumerate(number) if sign.isdigit()]
    changed = [
        f"{number[:i]}{digit}{number[i + 1 :]}"
        for i in places
        for digit in "0123456789"
        if digit != number[i]
    ]
    assert sum(map(checked, changed)) < 0.07 * len(changed)


@pytest.mark.parametrize(
    "checked",
    [check.luhn, check.verhoeff, check.dutch_bsn, check.australian_tfn, check.portuguese_nif],
)
def test_every_single_wrong_digit_is_caught(checked):
    draw = random.Random(5)
    number = next(
        text
        for text in (str(draw.randrange(2 * 10**8, 3 * 10**8)) for _ in range(1000))
        if checked(text)
    )
    for i in range(8):
        for digit in set("0123456789") - {number[i]}:
            wrong = f"{number[:i]}{digit}{number[i + 1 :]}"
            # 11 - remainder 10 and 11 share a check digit in the Portuguese scheme
            assert not checked(wrong) or checked is check.portuguese_nif


def test_social_security_ranges_that_are_never_issued():
    ssn = next(one for one in PATTERNS if one.title == "US social security number")
    assert ssn.matches("123-45-6789")
    for number in ("000-45-6789", "666-45-6789", "900-45-6789", "123-00-6789", "123-45-0000"):
        assert not ssn.matches(number)


def test_a_number_must_hold_a_date():
    assert check.danish_cpr("2110625629")
    assert not check.danish_cpr("3213625629")
    assert not check.chinese_id("11010519491331002X")
