"""Direct identifiers by name and by value: what must be found and what must not be."""

from __future__ import annotations

import json
import random
import uuid

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.table.columns._column import Column
from shoal.table.suggestion import _check_digits as check
from shoal.table.suggestion import _patterns
from shoal.table.suggestion._patterns import identifier_evidence
from shoal.table.suggestion._value_patterns import PATTERNS


def looks_like_identifier(values, name):
    return _patterns.looks_like_identifier(Column(values.alias(name)))


NEUTRAL = "v7"


def drawn(make, number=60, seed=3):
    """Values drawn with a fixed seed."""
    draw = random.Random(seed)
    return [make(draw) for _ in range(number)]


def digits(draw, number):
    return "".join(draw.choices("0123456789", k=number))


def passing(form, checked):
    """A maker of values of the form (# is a digit) whose check digits hold."""

    def make(draw):
        while True:
            value = "".join(draw.choice("0123456789") if c == "#" else c for c in form)
            if checked(value.replace("-", "").replace(" ", "").replace(".", "")):
                return value

    return make


FIRST = "Anna Bruno Carla David Elena Frank Greta Hugo Ines Jonas Laura Marco".split()
LAST = "Weber Rossi Garcia Dubois Jansen Silva Nowak Smith Meyer Santos Quux Zyxw".split()


def person(draw):
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}-{draw.choice(LAST)}"


IDENTIFIERS = {
    "email": lambda d: f"user{d.randrange(10**6)}@mail{d.randrange(9)}.example.org",
    "uuid": lambda d: str(uuid.UUID(int=d.getrandbits(128))),
    "mac_address": lambda d: ":".join(f"{d.randrange(256):02x}" for _ in range(6)),
    "ip_address": lambda d: ".".join(str(d.randrange(256)) for _ in range(4)),
    "url": lambda d: f"https://example.org/~u{d.randrange(10**6)}",
    "hash": lambda d: f"{d.getrandbits(128):032x}",
    "handle": lambda d: f"@user_{d.randrange(10**6)}",
    "coordinates": lambda d: f"{d.uniform(40, 60):.5f}, {d.uniform(0, 20):.5f}",
    "iban": passing("DE## #### #### #### #### ##", check.iban),
    "payment_card": passing("4### #### #### ####", check.luhn),
    "device": passing("35#############", check.luhn),
    "person_name": person,
    "address": lambda d: f"{d.randrange(1, 200)} {d.choice(LAST)} Street",
}
PHONES = {
    "international": lambda d: f"+49 171 {digits(d, 7)}",
    "plain international": lambda d: f"+33{digits(d, 9)}",
    "american": lambda d: f"({d.randrange(200, 990)}) {digits(d, 3)}-{digits(d, 4)}",
    "french": lambda d: f"06 {digits(d, 2)} {digits(d, 2)} {digits(d, 2)} {digits(d, 2)}",
    "german": lambda d: f"0{d.randrange(30, 99)}/{digits(d, 7)}",
}
NATIONAL = {
    "Belgian": passing("85.07.##-###.##", check.belgian_niss),
    "Dutch": passing("#########", check.dutch_bsn),
    "French": passing("2 85 05 78 ### ### ##", check.french_nir),
    "German": passing("4##########", check.german_tax_id),
    "Polish": passing("8501#######", check.polish_pesel),
    "Brazilian": passing("###.###.###-##", check.brazilian_cpf),
    "Aadhaar": passing("2### #### ####", check.verhoeff),
    "NHS": passing("### ### ####", check.uk_nhs),
    "US social": passing("1##-4#-####", bool),
    "Swedish": passing("8103##-####", check.swedish_personal),
    "Swiss": passing("756.####.####.##", check.swiss_ahv),
    "Canadian": passing("### ### ###", check.luhn),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_finds_by_value(kind):
    evidence = looks_like_identifier(pl.Series(drawn(IDENTIFIERS[kind])), NEUTRAL)
    assert evidence is not None
    assert (evidence.kind, evidence.by) == (kind, "values")
    assert evidence.share > 0.9


@pytest.mark.parametrize("form", PHONES)
def test_finds_phone_numbers(form):
    evidence = looks_like_identifier(pl.Series(drawn(PHONES[form])), NEUTRAL)
    assert evidence is not None
    assert evidence.kind == "phone"


@pytest.mark.parametrize("country", NATIONAL)
def test_finds_national_numbers(country):
    evidence = looks_like_identifier(pl.Series(drawn(NATIONAL[country])), NEUTRAL)
    assert evidence is not None
    assert evidence.kind == "national_id"
    assert country in evidence.title


def test_finds_numbers_with_letters():
    spanish = drawn(lambda d: f"{(n := d.randrange(10**8)):08d}{'TRWAGMYFPDXBNJZSQVHLCKE'[n % 23]}")
    assert looks_like_identifier(pl.Series(spanish), NEUTRAL).title == "Spanish DNI or NIE"
    fiscal = pl.Series(["RSSMRA85T10A562S"])
    assert looks_like_identifier(fiscal, NEUTRAL).title == "Italian codice fiscale"


def test_finds_numbers_stored_as_integers():
    dutch = [int(text) for text in drawn(NATIONAL["Dutch"], 200)]
    assert any(number < 10**8 for number in dutch), "leading zeros get lost"
    assert looks_like_identifier(pl.Series(dutch), NEUTRAL).title == "Dutch BSN"
    # pandas turns integers with gaps into floats
    with_gaps = pl.Series([float(number) for number in dutch] + [None])
    assert looks_like_identifier(with_gaps, NEUTRAL).title == "Dutch BSN"


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "zip": drawn(lambda d: digits(d, 5), 300),
        "plus4": drawn(lambda d: f"0{d.randrange(1000, 9999)}-{digits(d, 4)}", 15),
        NEUTRAL: drawn(lambda d: d.randrange(10**8, 10**9), 500),  # nine random digits
        "amount": drawn(lambda d: round(d.lognormvariate(8, 2), 2), 500),
        "price": drawn(lambda d: f"{d.randrange(10**6):,}.50", 300),
        "age": drawn(lambda d: d.randrange(18, 90), 500),
        "year": drawn(lambda d: d.randrange(1900, 2025), 500),
        "bracket": drawn(lambda d: f"{d.randrange(1, 9)}0000-{d.randrange(1, 9)}9999", 500),
        "when": drawn(lambda d: f"20{d.randrange(10, 25)}-0{d.randrange(1, 9)}-1{d.randrange(9)}"),
        "stamp": drawn(lambda d: f"2021-03-1{d.randrange(9)} 10:{d.randrange(10, 59)}:33", 300),
        "compact": drawn(lambda d: f"2021030412{d.randrange(10, 59)}{d.randrange(10, 59)}", 300),
        "german date": drawn(lambda d: f"0{d.randrange(1, 9)}.1{d.randrange(2)}.19{digits(d, 2)}"),
        "code": drawn(lambda d: d.choice(["A01", "B02", "C03"]), 300),
        "case": drawn(lambda d: f"{d.randrange(9)}:{d.randrange(9)}:{d.randrange(9)}", 900),
        "version": drawn(lambda d: f"1.2.{d.randrange(3)}.{d.randrange(3)}", 900),
        "country": drawn(lambda d: d.choice(["Chad", "Jordan", "Georgia", "France", "Peru"]), 300),
        "sex": drawn(lambda d: d.choice("fm"), 300),
        "icd": drawn(lambda d: f"{d.choice('ABCE')}{digits(d, 2)}.{digits(d, 1)}", 9000),
        "voice_mail_plan": drawn(lambda d: d.choice(["yes", "no"]), 300),
        "word_freq_address": drawn(lambda d: d.random(), 300),
        "admission_type_id": drawn(lambda d: d.randrange(8), 300),
        "nombre_enfants": drawn(lambda d: d.randrange(5), 300),
        "city": drawn(lambda d: d.choice(["New York", "San Jose", "Charlotte", "Houston"]), 300),
        "flag": drawn(lambda d: d.random() < 0.5, 300),
        "unix time": drawn(lambda d: d.randrange(1_500_000_000, 1_700_000_000), 500),
    }.items(),
)
def test_raises_no_false_alarm(name, values):
    assert looks_like_identifier(pl.Series(values), name) is None


def test_random_digits_of_every_length_pass_no_check():
    for length in range(6, 19):
        for seed in range(3):
            numbers = drawn(lambda d, n=length: digits(d, n), 40, seed)
            evidence = looks_like_identifier(pl.Series(numbers), NEUTRAL)
            # near-unique digits with leading zeros may count as a code, never as a known number
            assert evidence is None or evidence.kind == "unique_text"


def test_one_mail_address_among_other_texts_is_enough():
    texts = [f"remark {i % 40}" for i in range(400)] + ["please ask jo@example.org about it"]
    assert looks_like_identifier(pl.Series(texts), "remark").kind == "email"


def test_a_few_levels_are_a_code_whatever_they_look_like():
    offices = ["+49 30 1234567", "+49 40 7654321", "+49 89 1112223"] * 200
    assert looks_like_identifier(pl.Series(offices), NEUTRAL) is None
    assert looks_like_identifier(pl.Series(offices), "phone").by == "name and values"


def test_the_name_decides_about_bare_digits():
    bare = drawn(lambda d: d.randrange(10**9, 10**10), 100)
    assert looks_like_identifier(pl.Series(bare), NEUTRAL) is None
    assert looks_like_identifier(pl.Series(bare), "Telefon").kind == "phone"
    assert looks_like_identifier(pl.Series(bare), "customer_id").kind == "record_id"


def test_a_name_of_a_person_needs_no_known_name():
    odd = pl.Series(drawn(lambda d: "".join(d.choices("qxzvw", k=9)), 30))
    assert looks_like_identifier(odd, "Nachname").kind == "person_name"


def test_near_unique_text():
    codes = drawn(lambda d: f"{digits(d, 4)}-{d.choice('ABC')}{digits(d, 5)}", 100)
    assert looks_like_identifier(pl.Series(codes), NEUTRAL).kind == "unique_text"
    digits_only = drawn(lambda d: str(d.randrange(10**12, 10**13)), 100)
    assert looks_like_identifier(pl.Series(digits_only), NEUTRAL).kind == "unique_text"
    assert looks_like_identifier(pl.Series(codes[:15]), NEUTRAL) is None, "too few to tell"
    assert looks_like_identifier(pl.Series(codes[:30] * 4), NEUTRAL) is None, "they repeat"


def test_free_text():
    words = "the patient came back with pain in arm leg head since days".split()
    notes = drawn(lambda d: " ".join(d.choices(words, k=9)), 50) * 2
    assert looks_like_identifier(pl.Series(notes), NEUTRAL).kind == "free_text"


def test_running_numbers_count_only_on_request():
    running = pl.Series(range(1000, 1200))
    assert looks_like_identifier(running, NEUTRAL) is None
    found = identifier_evidence(running, 200, NEUTRAL, running_numbers=True)
    assert found is not None
    assert found.kind == "record_id"
    amounts = pl.Series([i * i for i in range(200)])
    assert identifier_evidence(amounts, 200, NEUTRAL, running_numbers=True) is None


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([], dtype=pl.String),
        pl.Series([None, None], dtype=pl.String),
        pl.Series([None], dtype=pl.Null),
        pl.Series(["", "  "]),
        pl.Series([True, False]),
        pl.Series(["2020-01-01"]).str.to_date(),
        pl.Series([float("inf"), 1.0]),
        pl.Series([1e300, 2e300]),
        pl.Series(["7"]),
    ],
)
@pytest.mark.parametrize("name", ["x", "phone", "name", "customer_id", "名前"])
def test_nothing_to_see(series, name):
    assert looks_like_identifier(series, name) is None


def test_large_columns_are_sampled_evenly():
    values = [f"u{i}@example.org" if i % 50 == 0 else f"{i}" for i in range(60_000)]
    evidence = looks_like_identifier(pl.Series(values), NEUTRAL)
    assert evidence.kind == "email"
    assert evidence.share == pytest.approx(0.02, abs=0.005)


@given(st.lists(st.text(max_size=40), max_size=30), st.sampled_from(["x", "iban", "dni", "tel"]))
def test_any_text_is_read_without_an_error_and_stays_inside(values, name):
    evidence = looks_like_identifier(pl.Series(values, dtype=pl.String), name)
    if evidence is not None:
        assert {"kind", "title", "by", "share"} == set(evidence.to_dict())
        json.dumps(evidence.to_dict())


@given(st.text(alphabet="0123456789abKxſıİK٣.-+/ ()", max_size=25))
def test_every_pattern_reads_every_sign(value):
    for pattern in PATTERNS:
        assert pattern.matches(value) in (True, False)


def test_evidence_in_words():
    evidence = looks_like_identifier(pl.Series(["a@example.org", "b@example.org"]), "contact")
    assert str(evidence) == "e-mail address (100.0 % of the distinct values)"
    assert "example.org" not in repr(evidence)
