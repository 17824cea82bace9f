"""What the name of a column says: an identifier, a trait that others know, a secret, a weight.

Names are split into words (``dateOfBirth``, ``date_of_birth`` and ``DATE-OF-BIRTH`` say the same)
and compared with English, German, French, Spanish, Italian, Dutch and Portuguese words, and with
the codes of the large surveys. A word that ends in ``*`` stands for all words that begin with it.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

_IDENTIFIER_WORDS: dict[str, str] = {
    "person_name": """firstname lastname surname forename fullname givenname familyname
        middlename maidenname nickname username vorname nachname familienname zuname rufname
        geburtsname prenom prenoms apellido apellidos cognome naam voornaam achternaam roepnaam
        sobrenome apelido nom nome fname lname""",
    "email": "email emails mail courriel correo emailadresse emailaddress mailadresse",
    "phone": """phone phones telephone telefon* telefoon* telephon* tel mobile mobil* handy*
        cellphone celular movil cellulare fax gsm portable rufnummer phonenumber""",
    "address": """address addresses addr street streetname strasse straat anschrift adresse
        adresses adres direccion domicilio indirizzo endereco morada calle""",
    "national_id": """ssn nino nhs passport* reisepass* passeport pasaporte passaporto paspoort
        passaporte dni nie nif bsn niss insz pesel cpf aadhaar aadhar nir personnummer
        rijksregister* sozialversicherung* steuernummer steuerid steueridentifikationsnummer
        ausweis* codicefiscale burgerservicenummer curp rut sin tfn taxid nationalid
        driverslicense drivinglicence secu fuehrerschein* fuhrerschein* krankenversicherung*
        versichertennummer mrn""",
    "iban": "iban kontonummer bankkonto bankaccount rekeningnummer",
    "payment_card": "creditcard kreditkarte* kreditkartennummer cardnumber ccnumber pan",
    "ip_address": "ip ipaddress ipadresse ipv4 ipv6",
    "mac_address": "mac macaddress",
    "device": "imei imsi iccid deviceid udid",
    "vehicle": """vin licenseplate numberplate kennzeichen plate matricula immatriculation
        kenteken targa""",
    "url": "url website homepage webpage webseite",
    "uuid": "uuid guid",
    "handle": "twitter instagram facebook linkedin skype",
    "hash": "hash md5 sha1 sha256 token pseudonym",
}
_IDENTIFIER_PHRASES = {
    "social security": "national_id", "national insurance": "national_id",
    "securite sociale": "national_id", "seguridad social": "national_id",
    "national id": "national_id", "tax id": "national_id", "medical record": "national_id",
    "drivers license": "national_id", "driver license": "national_id",
    "driving licence": "national_id", "codice fiscale": "national_id",
    "credit card": "payment_card", "card number": "payment_card",
    "license plate": "vehicle", "licence plate": "vehicle", "bank account": "iban",
    "account iban": "iban", "e mail": "email", "ip address": "ip_address",
    "mac address": "mac_address", "web site": "url",
}  # fmt: skip

_QUASI_WORDS: dict[str, str] = {
    "age": "age ages agep iage alter edad eta leeftijd idade agegroup agegr altersgruppe alder",
    "birth": """birth birth* dob yob mob born geburt* geboren naissance nacimiento nascita
        geboorte* nascimento nativity""",
    "sex": "sex isex sexe sexo sesso gender* geschlecht geslacht genre genero genere male female",
    "ethnicity": """race irace racial ethnic* ethni* etni* etnia hispanic* ihispanic hisp latino
        rasse raza razza raca ancestry afam rac1p tribe caste""",
    "nationality": """nation nationality citizen* nacionalidad nazionalita nationalit* staatsang*
        nationaliteit nacionalidade cidadania cittadinanza country countries land pays pais paese
        herkunft herkunftsland origin pobp immigrant migration*""",
    "location": """zip zipcode postal postcode postcodes plz postleitzahl cep city town village
        stadt ort wohnort ville ciudad citta plaats woonplaats cidade municip* county state
        states statenum istatenum region regions regio regione province provincia provincie
        district distrito bezirk bundesland kreis landkreis departement department* commune
        gemeinde gemeente comune canton kanton fips puma tract geoid neighborhood neighbourhood
        latitude longitude lat lon lng location lieu localidad urban rural urbrur placesize
        xcoord ycoord coordinate* northing easting residence domicile borough parish prefecture""",
    "marital status": """marital* maritalstatus marriage married marstat marst familienstand
        zivilstand civil civile estadocivil matrimonial spouse divorced widow* hhcivil gehuwd casado
        casada""",
    "family": """children child childs kids familysize household householdsize family
        relationship relat dependents kinder enfants hijos figli kinderen filhos siblings
        haushalt* menage hogar famiglia famille familia gezin""",
    "education": """educ* edu school schooling schl degree diploma bildung* schul* schulabschluss
        abschluss studies estudios opleiding* escolaridad* escolaridade istruzione formation
        titulo titolo scolarite etudes instruction university college qualification""",
    "occupation": """occup* occrecode job jobs jobtitle profession* profesion beruf* metier emploi
        employ* ocupacion empleo lavoro beroep* profissao profissione professione ocupacao occp indp
        industry sector workclass arbeitgeber employer wrkstat workstatus trabajo socprof""",
    "language": "language languages sprache langue idioma lingua taal englang",
    "military service": "veteran military dvet",
    "body height": """height koerpergroesse korpergrosse groesse taille estatura altezza lengte
        altura""",
    "date of death": "deathmon deathday ideathmon ideathday deathdate",
}

_QUASI_ALONE = {  # too short to mean this inside a longer name
    "occ": "occupation", "cow": "occupation", "mar": "marital status", "mars": "marital status",
    "st": "location", "relp": "family", "wkhp": "working hours",
}  # fmt: skip

_SENSITIVE_WORDS: dict[str, str] = {
    "health": """blind* deaf* diagn* diag disease* illness health* medic* drug* treatment* therap*
        hiv aids cancer tumor disab* symptom* icd icd9 icd10 krank* maladie* enfermedad* malattia*
        ziekte* doenca* sante salud salute gesundheit* saude gezondheid* hospital* injur* iinjury
        death dead died pregnan* depress* smok* smoker alcohol* alcabuse blood* bmi insulin
        hypertension diabet* readmi* mental psych* surger* procedure* severity mortality
        fertility contracepti* goitre thyroid* cholesterol chol glucose""",
    "income and wealth": """income* salar* wage wages earning* earnings lohn gehalt einkommen*
        einkunfte revenu revenus salaire* ingreso* salario sueldo reddito stipendio inkomen*
        renda rendimento debt* loan loans credit wealth asset assets savings tax taxes steuer*
        benefit* pension* poverty povpip pincp rinc inc realinc realrinc rincome balance expend*
        rent mortgage deposit deposits money unemployment default""",
    "religion": """relig* faith church konfession* confession* glaube* culte culto godsdienst*
        denomination""",
    "politics": """politic* party vote voted voting partei* parti partito partido ideology union
        unionmember""",
    "sexual life": "sexual* orientation lgbt*",
    "criminal record": """crim* offense* offence* arrest* convict* prison* recid recidivism
        felony priors custody juv straf*""",
    "genetic or biometric": "gene genes genetic* genotype dna fingerprint* biometric*",
    "opinion": "satisfaction trust* happiness",
}  # fmt: skip

_SENSITIVE_PHRASES = {"capital gain": "income and wealth", "capital loss": "income and wealth"}

_WEIGHT_WORDS = frozenset(
    """fnlwgt afnlwgt pwgtp wgtp perwt hhwt finalwgt wgt wtssall weightvar sampleweight
    samplingweight surveyweight hochrechnung""".split()
)
_WEIGHT_COMPANIONS = frozenset(
    """sampling sample survey household households final person population expansion design hh
    calibrated grossing""".split()
)
_WEIGHT_PLAIN = frozenset("weight weights gewicht poids peso ponderation ponderacion wt".split())

_LABELS = frozenset("class label target binaryclass y".split())

_ENTITIES = frozenset(
    """acc account applicant case claim client cliente contract cust customer datensatz device
    donor dossier emp employee encounter fall family h hh hid household instance invoice klant
    klanten kranken kunde kunden matrikel member mitglied mitglieds order p paciente
    participant passenger pat patient patienten paziente pers person personal personen pol
    policy probanden rec record resident resp respondent row sample serial session student subj
    subject subscriber taxpayer teilnehmer transaction user utilisateur utility versicherten
    visit visitor voter worker""".split()
)
_ID_WORDS = frozenset(
    """id ids identifier identifiant identificador identificativo kennung key pk index idx seq
    sequence serial lfdnr rowid rownum rownumber recid caseid ident""".split()
)
_NUMBER_WORDS = frozenset("number num nbr nr no nummer numero numéro ref reference code".split())
_CODED_THINGS = frozenset(
    """type category cat class group status source disposition product store shop branch site region
    state country city zone area department level code kind method reason brand model plan priority
    specialty species currency unit color colour language location""".split()
)
_NAMED_PERSONS = frozenset(
    """first last full given family middle maiden birth second nick user patient customer client
    employee mother father mothers fathers spouse partner contact doctor physician student pupil
    member donor owner author passenger applicant guest legal preferred complete display person
    insured tenant teacher manager and of the your my in""".split()
)
_ROW_NUMBER = re.compile(r"unnamed: ?\d+|index|level_0|__index_level_\d+__|rownames?|row_?nr")


@dataclass(frozen=True)
class NameHints:
    """What a column's name speaks of."""

    identifiers: frozenset[str]
    says_id: bool
    coded: bool
    row_number: bool
    quasi: str | None
    sensitive: str | None
    weight: str | None
    label: bool


def hints_of(name: str) -> NameHints:
    """Read the name of a column.

    Examples
    --------
    >>> hints_of("dateOfBirth").quasi, hints_of("E-Mail").identifiers
    ('birth', frozenset({'email'}))
    >>> hints_of("customer_id").says_id, hints_of("covid").says_id
    (True, False)
    """
    words = words_of(name)
    whole = "".join(words)
    candidates = [*words, whole]
    identifiers = {_lookup(word, _identifier_index()) for word in candidates} - {None}
    phrase = " ".join(words)
    identifiers |= {kind for text, kind in _IDENTIFIER_PHRASES.items() if text in phrase}
    if _says_person_name(words):
        identifiers.add("person_name")
    return NameHints(
        identifiers=frozenset(kind for kind in identifiers if kind),
        says_id=_says_id(words),
        coded=any(word in _CODED_THINGS for word in words),
        row_number=_ROW_NUMBER.fullmatch(name.strip().casefold()) is not None,
        quasi=_first(candidates, _quasi_index()) or _QUASI_ALONE.get(whole.rstrip("0123456789")),
        sensitive=_first(candidates, _sensitive_index())
        or next((topic for text, topic in _SENSITIVE_PHRASES.items() if text in phrase), None),
        weight=_weight_hint(words),
        label=whole in _LABELS,
    )


def words_of(name: str) -> list[str]:
    """The words of a column name: small letters, no accents, ß as ss.

    Examples
    --------
    >>> words_of("ZIPCode"), words_of("geburts_Datum"), words_of("Straße"), words_of("RAC1P")
    (['zip', 'code'], ['geburts', 'datum'], ['strasse'], ['rac1p'])
    """
    decomposed = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    parts = re.split(r"[^\w]+|_", plain)
    words: list[str] = []
    for part in parts:
        words += [part] if part.isupper() or part.islower() else _camel(part)
    return [word.casefold() for word in words if word]


def _camel(part: str) -> list[str]:
    return re.findall(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[^\WA-Z_]+|[A-Z]+", part)


def _says_person_name(words: list[str]) -> bool:
    if "nombre" in words:  # French for "number of", so only alone or beside a family name
        return len(words) == 1 or any(word.startswith("apellido") for word in words)
    others = [word for word in words if word not in ("name", "names")]
    return len(others) < len(words) and all(word in _NAMED_PERSONS for word in others)


def _says_id(words: list[str]) -> bool:
    if any(word in _ID_WORDS for word in words):
        return True
    if any(_is_compound_id(word) for word in words):
        return True
    beside = itertools.pairwise(words)
    return any(first in _ENTITIES and second in _NUMBER_WORDS for first, second in beside)


def _is_compound_id(word: str) -> bool:
    """``caseid``, ``utilityid`` and ``kundennummer``, but not ``covid`` or ``paid``."""
    for ending in ("id", "nr", "no", "nummer", "number", "num"):
        if word.endswith(ending) and word.removesuffix(ending) in _ENTITIES:
            return True
    return False


def _weight_hint(words: list[str]) -> str | None:
    """``"sure"`` for a sampling weight, ``"maybe"`` for a weight that may be of a body."""
    if any(word in _WEIGHT_WORDS for word in words):
        return "sure"
    if any(word in _WEIGHT_PLAIN for word in words):
        return "sure" if any(word in _WEIGHT_COMPANIONS for word in words) else "maybe"
    return None


def _first(words: list[str], index: Index) -> str | None:
    return next((topic for word in words if (topic := _lookup(word, index))), None)


@dataclass(frozen=True)
class Index:
    """Words and beginnings of words with the topic they stand for."""

    exact: Mapping[str, str]
    beginnings: tuple[tuple[str, str], ...]


def _lookup(word: str, index: Index) -> str | None:
    topic = index.exact.get(word) or index.exact.get(word.rstrip("0123456789"))
    if topic is not None:
        return topic
    return next((topic for start, topic in index.beginnings if word.startswith(start)), None)


def _index(topics: Mapping[str, str]) -> Index:
    pairs = [(word, topic) for topic, words in topics.items() for word in words.split()]
    return Index(
        exact={word: topic for word, topic in pairs if not word.endswith("*")},
        beginnings=tuple((word[:-1], topic) for word, topic in pairs if word.endswith("*")),
    )


@functools.cache
def _identifier_index() -> Index:
    return _index(_IDENTIFIER_WORDS)


@functools.cache
def _quasi_index() -> Index:
    return _index(_QUASI_WORDS)


@functools.cache
def _sensitive_index() -> Index:
    return _index(_SENSITIVE_WORDS)
