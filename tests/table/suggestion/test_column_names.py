"""What names of columns refer to, in seven languages."""

from __future__ import annotations

import pytest

from shoal.table.suggestion._column_names import hints_of, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("date_of_birth", ["date", "of", "birth"]),
        ("dateOfBirth", ["date", "of", "birth"]),
        ("DATE-OF-BIRTH", ["date", "of", "birth"]),
        ("ZIPCode", ["zip", "code"]),
        ("UserID", ["user", "id"]),
        ("prénom", ["prenom"]),
        ("Straße", ["strasse"]),
        ("名前", ["名前"]),
        ("RAC1P", ["rac1p"]),
        ("!?", []),
    ],
)
def test_words(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("person_name", "name first_name LastName surname Vorname nachname prénom apellidos "
         "cognome achternaam sobrenome patient_name Nombre"),
        ("email", "email E-Mail mail_address courriel correo"),
        ("phone", "phone phone_number Telefonnummer téléphone teléfono telefoon telefone mobile"),
        ("address", "address street Anschrift adresse dirección indirizzo adres endereço"),
        ("national_id", "SSN social_security_no Steuernummer NIR dni codice_fiscale BSN cpf nif"),
        ("iban", "IBAN Kontonummer"),
        ("ip_address", "ip ip_address"),
        ("vehicle", "license_plate Kennzeichen kenteken"),
    ],
)  # fmt: skip
def test_names_of_direct_identifiers(kind, names):
    for name in names.split():
        assert kind in hints_of(name).identifiers, name


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("age", "age Alter âge edad età leeftijd idade AGEP age_head"),
        ("birth", "dob birth_date Geburtsdatum naissance nacimiento nascita geboortedatum"),
        ("sex", "sex gender Geschlecht sexe sexo sesso geslacht"),
        ("location", "zip PLZ code_postal ciudad città plaats cidade state region fips latitude"),
        ("marital status", "marital_status Familienstand stato_civile estado_civil MARSTAT"),
        ("education", "education education-num educcat Bildung opleiding escolaridade"),
        ("occupation", "occupation job Beruf métier profesión workclass beroep profissão occ10"),
        ("nationality", "nationality native-country Staatsangehörigkeit nacionalidad"),
        ("ethnicity", "race ethnicity RAC1P hispanic_origin etnia"),
    ],
)
def test_names_of_traits_that_others_know(topic, names):
    for name in names.split():
        assert hints_of(name).quasi == topic, name


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("health", "diagnosis diag_1 Krankheit maladie enfermedad malattia ziekte doença HIV"),
        ("income and wealth", "income salary Einkommen revenu ingresos reddito inkomen renda "
         "capital-gain realrinc PINCP"),
        ("religion", "religion Konfession religión"),
        ("politics", "political_party Partei"),
        ("criminal record", "arrests prior_convictions"),
    ],
)  # fmt: skip
def test_names_of_sensitive_columns(topic, names):
    for name in names.split():
        assert hints_of(name).sensitive == topic, name


def test_names_of_ids():
    for (
        name
    ) in "id ID user_id customerId caseid RECID patient_nbr Kundennummer ori_hid h_seq".split():
        assert hints_of(name).says_id, name
    for name in "covid paid medicaid hypothyroid grid number_outpatient num_children age".split():
        assert not hints_of(name).says_id, name


def test_a_coded_thing_is_not_a_person():
    assert hints_of("admission_type_id").coded
    assert not hints_of("patient_id").coded


def test_nombre_is_a_name_in_spanish_and_a_count_in_french():
    assert "person_name" in hints_of("nombre").identifiers
    assert "person_name" in hints_of("nombre_y_apellidos").identifiers
    assert "person_name" not in hints_of("nombre_enfants").identifiers


def test_names_of_things_are_not_names_of_persons():
    for name in "product_name country_name Instance_name file name_of_drug".split():
        assert "person_name" not in hints_of(name).identifiers, name


def test_weights():
    assert hints_of("fnlwgt").weight == "sure"
    assert hints_of("sampling_weight").weight == "sure"
    assert hints_of("weight").weight == "maybe"
    assert hints_of("height").weight is None
    for name in ("Hochrechnungsfaktor", "Gewichtungsfaktor", "hochrechnungsfaktor_2024"):
        assert hints_of(name).weight == "sure", name


def test_money_is_sensitive_and_not_a_trait():
    for name in ("Kosten €", "cost_eur", "income", "Einkommen", "Behandlungskosten"):
        hints = hints_of(name)
        assert (hints.sensitive, hints.quasi) == ("income and wealth", None), name


def test_row_numbers_that_a_frame_left_behind():
    for name in ("Unnamed: 0", "__index_level_0__", "index", "level_0"):
        assert hints_of(name).row_number, name
    assert not hints_of("body mass index").row_number
