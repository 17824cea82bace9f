"""Pseudonyms: one to one, in four shapes, the same wherever the key is, and only there."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Pseudonymize, Roles, Round, Table, protect
from shoal.errors import (
    DisclosureWarning,
    InputError,
    ParameterError,
    RolesError,
    ShoalWarning,
)
from shoal.masking import write_key_file
from shoal.masking.identifiers._shapes import SMALL, forms_of, hashed_names, permuted
from shoal.randomness import SecretStream

HASHED = {
    "hex": r"P[0-9a-f]{20}",
    "digits": r"[1-9][0-9]{17}",
    "words": r"([bdfghjklmnprstvz][aiou][bdfghjklmnprstvz][aiou][bdfghjklmnprstvz]-?){4}",
}


@pytest.fixture
def key(tmp_path):
    return str(write_key_file(tmp_path / "patients.key"))


def patients(numbers, **more):
    frame = pl.DataFrame({"patient": numbers, "age": [30 + n % 5 for n in range(len(numbers))]})
    return Table(frame.with_columns(**more), Roles(unit="patient", quasi_identifiers=["age"]))


def numbers(count, first=10_000_000):
    """Numbers of eight digits, far from each other."""
    return [str(first + 7_919 * n) for n in range(count)]


def names(table, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        masked = Pseudonymize(["patient"], **options).fit_transform(table)
    return masked.frame["patient"].to_list()


# -- one to one


@pytest.mark.parametrize("shape", [*HASHED, "format"])
def test_equal_values_get_equal_names_and_others_others(shape):
    given = [numbers(50)[n % 50] for n in range(120)]
    made = names(patients(given), shape=shape)
    pairs = set(zip(given, made, strict=True))
    assert len(pairs) == len(set(made)) == 50
    assert not set(made) & set(given)
    if shape in HASHED:
        assert all(re.fullmatch(HASHED[shape], name) for name in made)
    else:
        assert all(re.fullmatch("[0-9]{8}", name) for name in made)


@pytest.mark.parametrize("shape", [*HASHED, "format"])
def test_missing_values_stay_missing(shape):
    table = Table(
        pl.DataFrame({"nr": [None, *numbers(20), None], "age": range(22)}),
        Roles(identifiers=["nr"], quasi_identifiers=["age"]),
    )
    made = Pseudonymize(["nr"], shape=shape).fit_transform(table)
    assert made.present("nr").tolist() == table.present("nr").tolist()


def test_a_column_without_a_value_is_left_and_said_so():
    frame = pl.DataFrame({"nr": pl.Series([None] * 3, dtype=pl.String), "age": [1, 2, 3]})
    step = Pseudonymize(["nr"])
    with pytest.warns(ShoalWarning, match="no value"):
        step.fit_transform(Table(frame, Roles(identifiers=["nr"], quasi_identifiers=["age"])))
    assert step.touched_ == ()


def test_a_pseudonym_is_no_identifier_and_a_unit_stays_one():
    frame = pl.DataFrame({"nr": ["a", "b"], "mail": ["c", "d"], "home": ["e", "e"], "age": [1, 2]})
    roles = Roles(identifiers=["mail"], unit="nr", household=["home"], quasi_identifiers=["age"])
    masked = Pseudonymize(["nr", "mail", "home"]).fit_transform(Table(frame, roles))
    assert masked.roles == Roles(unit="nr", quasi_identifiers=["age"])
    assert masked.person_count == 2


def test_a_quasi_identifier_stays_one_since_classes_still_show():
    frame = pl.DataFrame({"ward": ["x", "x", "y"], "age": [1, 2, 3]})
    table = Table(frame, Roles(quasi_identifiers=["ward", "age"]))
    masked = Pseudonymize(["ward"]).fit_transform(table)
    assert masked.roles == table.roles
    assert sorted(masked.group(["ward"]).sizes.tolist()) == [1, 2]


def test_the_order_of_the_names_says_nothing():
    made = names(patients(numbers(200)))
    assert made != sorted(made)
    codes = Pseudonymize(["patient"]).fit_transform(patients(numbers(200))).codes("patient")
    assert codes.texts == sorted(codes.texts)  # and not the order of the numbers behind them


# -- an independent recount


def test_hex_is_a_keyed_hash_as_the_standard_library_has_it():
    """BLAKE2b of RFC 7693 with a key and ten bytes, written as P and hexadecimal digits."""
    key = bytes(range(32))
    for text in ("", "H-17", "ä" * 40):
        digest = hashlib.blake2b(text.encode(), digest_size=10, key=key)
        assert hashed_names([text], key) == [f"P{digest.hexdigest()}"]
        number = 10**17 + int(digest.hexdigest(), 16) % (9 * 10**17)
        assert hashed_names([text], key, "digits") == [str(number)]


def test_words_are_proquints():
    """As in Wilkerson's table: 127.0.0.1 is lusab-babad, 63.84.220.193 is gutih-tugad."""
    from shoal.masking.identifiers._shapes import _word

    known = {0x7F00: "lusab", 0x0001: "babad", 0x3F54: "gutih", 0xDCC1: "tugad"}
    assert {bits: _word(bits) for bits in known} == known


@pytest.mark.parametrize(("form", "whole"), [("0000", False), ("1000", True), ("a0-a", False)])
def test_all_values_of_a_form_are_permuted_and_none_is_itself(form, whole):
    """Small forms, counted out: every value comes back once."""
    if form == "a0-a":
        letters = "abcdefghijklmnopqrstuvwxyz"
        texts = [f"{a}{n}-{b}" for a in letters for n in range(10) for b in letters]
    else:
        texts = [str(n).zfill(4) for n in range(1000 if whole else 0, 10_000)]
    forms = forms_of(texts, whole=whole)
    made = permuted(texts, forms, SecretStream.from_key_hex("2a" * 32))
    assert sorted(made) == sorted(texts)
    assert not any(one == other for one, other in zip(texts, made, strict=True))


@given(
    st.lists(st.from_regex(r"[A-Z]{2}[0-9]{7}[a-z]", fullmatch=True), min_size=2, unique=True),
    st.binary(min_size=32, max_size=32),
)
def test_large_forms_are_permuted_too(texts, key):
    forms = forms_of(texts, whole=False)
    assert forms[0].room > SMALL
    made = permuted(texts, forms, SecretStream(key))
    assert len(set(made)) == len(texts)
    assert all(re.fullmatch(r"[A-Z]{2}[0-9]{7}[a-z]", one) for one in made)
    assert not any(one == other for one, other in zip(texts, made, strict=True))


def test_a_permutation_looks_like_chance():
    """Each digit of the pseudonyms of consecutive numbers is about equally often each digit."""
    texts = [str(10**9 + n) for n in range(20_000)]
    made = permuted(texts, forms_of(texts, whole=True), SecretStream.from_key_hex("2a" * 32))
    digits = np.array([list(map(int, one)) for one in made])
    for place in range(1, 10):
        counts = np.bincount(digits[:, place], minlength=10)
        chi_square = ((counts - 2000) ** 2 / 2000).sum()
        assert chi_square < 27.9, place  # 1 in 1000 of nine degrees of freedom
    # neighbours go far apart
    steps = np.abs(np.diff(np.array(made, dtype=np.int64)))
    assert np.median(steps) > 10**9


# -- shared keys


def test_two_tables_with_one_key_file_join(key):
    stays, labs = patients(numbers(60)), patients(numbers(80, 10_000_000 + 40 * 7_919))
    for shape in (*HASHED, "format"):
        one, other = (set(names(table, shape=shape, key_file=key)) for table in (stays, labs))
        assert len(one & other) == 20


def test_columns_have_names_of_their_own_unless_they_are_shared(key):
    frame = pl.DataFrame({"mother": numbers(30), "child": numbers(30)[::-1], "age": range(30)})
    table = Table(frame, Roles(identifiers=["mother", "child"], quasi_identifiers=["age"]))

    def made(**options):
        masked = Pseudonymize(["mother", "child"], key_file=key, **options).fit_transform(table)
        return masked.frame

    apart, shared = made(), made(shared_as="person")
    assert not set(apart["mother"]) & set(apart["child"])
    assert shared["mother"].to_list() == shared["child"].to_list()[::-1]
    # a column of that name in another table is of the same persons
    other = Table(
        pl.DataFrame({"person": numbers(30), "age": range(30)}),
        Roles(identifiers=["person"], quasi_identifiers=["age"]),
    )
    there = Pseudonymize(["person"], key_file=key).fit_transform(other).frame["person"]
    assert there.to_list() == shared["mother"].to_list()


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([17, 42, None]),
        pl.Series([17.0, 42.0, None]),
        pl.Series(["17", "42", None]),
        pl.Series([Decimal("17.00"), Decimal("42.00"), None]),
    ],
    ids=["integer", "float", "text", "decimal"],
)
def test_a_number_has_one_name_whatever_its_type_is(column, key):
    """A column with a gap comes out of pandas as floats."""
    table = Table(
        pl.DataFrame({"nr": column, "age": [1, 2, 3]}),
        Roles(identifiers=["nr"], quasi_identifiers=["age"]),
    )
    made = Pseudonymize(["nr"], key_file=key).fit_transform(table).frame["nr"]
    stream = SecretStream.from_key_hex(Path(key).read_text().strip())
    own = bytes.fromhex(stream.derive("pseudonyms", "nr").key_hex)
    assert made.to_list() == [*hashed_names(["17", "42"], own), None]


def test_whole_numbers_stay_whole_in_the_shape_of_the_value():
    given = [10_000_000 + 7_919 * n for n in range(40)]
    made = names(patients(given), shape="format")
    assert all(isinstance(one, int) and 10**7 <= one < 10**8 for one in made)
    assert len(set(made)) == 40


# -- what a form would tell


def test_a_rare_form_is_refused():
    given = [*numbers(40), "999"]
    with pytest.raises(InputError, match="'format' does not fit: 1 values") as caught:
        names(patients(given), shape="format")
    assert "999" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([str(n) for n in range(10)], "fewer than 100"),
        (["Müller 1", "Möller 2"], "other letters"),
        ([f"{n:030}" for n in range(12)], "longer"),
        (["-", "--"], "fewer than 100"),
    ],
)
def test_what_the_form_cannot_hide_is_refused(given, why):
    with pytest.raises(InputError, match=why):
        names(patients(given), shape="format")


def test_dates_and_fractions_have_no_form():
    for column in ([1.5, 2.5], [True, False]):
        with pytest.raises(InputError, match="whole numbers"):
            names(patients(column), shape="format")


def test_few_possible_values_are_warned_about():
    with pytest.warns(DisclosureWarning, match="million"):
        Pseudonymize(["patient"], shape="format").fit_transform(
            patients([f"{n:04}" for n in range(20)])
        )


def test_pseudonyms_that_are_true_values_are_counted_where_they_cannot_be_avoided(key):
    dense = patients([f"{n:03}" for n in range(900)])
    for options in ({"key_file": key}, {}):
        step = Pseudonymize(["patient"], shape="format", **options)
        with pytest.warns(DisclosureWarning) as caught:
            masked = step.fit_transform(dense)
        made = masked.frame["patient"].to_list()
        assert any("somebody else" in str(one.message) for one in caught)
        assert not any(one == own for one, own in zip(made, dense.frame["patient"], strict=True))


def test_where_there_is_room_no_pseudonym_is_a_true_value():
    """About one of the 300 would be, under one draw in four: another key is drawn then."""
    for draw in range(20):
        given = [str(100_000 + 2_953 * n + draw) for n in range(300)]
        assert not set(names(patients(given), shape="format")) & set(given)


# -- keys and their files


def test_a_key_file_is_for_its_owner_alone(tmp_path):
    made = write_key_file(tmp_path / "one.key")
    assert made.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"[0-9a-f]{64}\n", made.read_text())
    with pytest.raises(InputError, match="already exists"):
        write_key_file(made)


@pytest.mark.skipif(os.name != "posix", reason="file modes are not used on this system")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_file_that_others_can_use_is_refused(key, mode):
    os.chmod(key, mode)
    with pytest.raises(InputError, match="0600"):
        names(patients(numbers(5)), key_file=key)


@pytest.mark.parametrize(
    "content", ["", "ab" * 31, "ab" * 33, "zz" * 32, "ab" * 32, "\0" * 64, "secret " * 100]
)
def test_a_wrong_key_is_refused_and_not_shown(tmp_path, content):
    path = tmp_path / "wrong.key"
    path.touch(mode=0o600)
    path.write_text(content)
    with pytest.raises(InputError, match="key") as caught:
        names(patients(numbers(5)), key_file=str(path))
    assert not content or content not in str(caught.value)


def test_a_key_file_that_is_none(tmp_path):
    for path in ("nobody.key", ".", "a\0b"):
        with pytest.raises(InputError, match="key file"):
            names(patients(numbers(5)), key_file=str(tmp_path / path))


def test_a_key_file_and_a_seed_are_too_much():
    with pytest.raises(ParameterError, match="not both"):
        Pseudonymize(["a"], key_file="k", random_state=1)


def test_the_path_of_a_key_file_is_relative_to_the_plan(key, tmp_path):
    (tmp_path / "plan.toml").write_text(
        '[[steps]]\nmethod = "pseudonymize"\ncolumns = ["patient"]\nkey_file = "patients.key"\n'
    )
    (step,) = Plan.load(tmp_path / "plan.toml").steps
    assert step.key_file == key


# -- in a plan


def test_columns_to_drop_do_not_come_back_as_pseudonyms():
    frame = pl.DataFrame({"nr": ["a", "b"], "age": [1, 2]})
    table = Table(frame, Roles(drop=["nr"], quasi_identifiers=["age"]))
    with pytest.raises(InputError, match="'nr'"):
        Pseudonymize(["nr"]).fit_transform(table)


def test_a_unit_gets_one_pseudonym_not_two():
    plan = Plan([Pseudonymize(["patient"])], pseudonyms=True)
    with pytest.raises(RolesError, match="two pseudonyms"):
        protect(patients(numbers(5)), plan)


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_only_what_a_step_names_stays():
    frame = pl.DataFrame({"nr": numbers(20), "mail": numbers(20, 5 * 10**7), "age": [1, 2] * 10})
    roles = Roles(identifiers=["mail", "nr"], quasi_identifiers=["age"])
    release = protect(Table(frame, roles), Plan([Pseudonymize(["nr"])]))
    assert release.masked.columns == ["nr", "age"]
    assert release.removed_identifiers == ("mail",)
    assert release.left["nr"] == "pseudonyms"


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_a_plan_that_never_reaches_the_step_releases_no_identifier(monkeypatch):
    """Whatever a step leaves undone: a true identifier is dropped at the end."""
    frame = pl.DataFrame({"nr": numbers(20), "age": [1, 2] * 10})
    table = Table(frame, Roles(identifiers=["nr"], quasi_identifiers=["age"]))
    monkeypatch.setattr(Pseudonymize, "_mask", lambda self, table, columns, log: table)
    release = protect(table, Plan([Pseudonymize(["nr"]), Round(base=5)]))
    assert release.masked.columns == ["age"]
