"""Makes the shipped tables: people who do not exist, with the habits of people who do.

Age drives marital status, occupation, hours and diagnosis; sex drives height; occupation, age and
hours drive income. ``patients.csv``, which the demo releases, has the stays of the same people in a
hospital. Run this file to write both again.

Only ``random.Random.random`` is drawn from, since its sequence is the one thing that Python
promises to keep for a seed: the same bytes come out of every version.
"""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from statistics import NormalDist

RECORDS = 2000
SEED = 20240229  # the table is fiction: this seed protects nobody
COLUMNS = (
    "name",
    "email",
    "age",
    "sex",
    "marital",
    "zip",
    "occupation",
    "height_cm",
    "hours_per_week",
    "income",
    "diagnosis",
)

STAYS = ("name", "birth_date", "sex", "zip", "occupation", "diagnosis", "cost_eur")
#: The regions that the hospital serves, by the first digits of their postcodes.
_REGIONS = {"101": 30, "104": 22, "107": 14, "130": 12, "144": 9, "160": 6, "155": 4, "039": 3}
_TODAY = date(2026, 1, 1)

_FIRST = {
    "F": (
        "Ada Agnes Alma Anouk Bea Bridget Carla Chiara Dana Edith Elif Esther Farah Freya Greta "
        "Hana Hedda Ines Iris Jana June Karin Lea Leonie Lucia Mara Maren Mina Nadia Nora Olga "
        "Petra Ruth Sana Selma Signe Tara Thea Vera Yuki Zoe"
    ).split(),
    "M": (
        "Adrian Alan Amir Anton Basil Bruno Carlos Cedric Dario Emil Erik Felix Finn Georg Hugo "
        "Ivan Jakob Jonas Karl Kenji Leo Linus Luca Marek Matteo Nils Noah Omar Otto Pablo Paul "
        "Rafael Rolf Samir Simon Sven Theo Tom Viktor Yusuf"
    ).split(),
}
_LAST = (
    "Abbott Adeyemi Albers Andersson Arslan Becker Berg Bianchi Blom Brandt Castillo Cohen "
    "Costa Dahl Dubois Eklund Fischer Fontana Garcia Grant Haas Hansen Hoffmann Ibrahim Ito "
    "Jansen Keller Khan Kim Kowalski Laine Lang Larsen Lopez Lund Marino Meyer Moreau Murphy "
    "Nakamura Novak Okafor Olsen Patel Pereira Petit Quinn Ramos Rossi Sato Schmid Silva Singh "
    "Sommer Tanaka Torres Vogel Wagner Walsh Weber Yilmaz Young Zimmer"
).split()

_MARITAL = {  # by age up to and including
    29: {"single": 0.76, "married": 0.21, "divorced": 0.03},
    44: {"single": 0.32, "married": 0.57, "divorced": 0.11},
    64: {"single": 0.14, "married": 0.63, "divorced": 0.19, "widowed": 0.04},
    120: {"single": 0.06, "married": 0.54, "divorced": 0.13, "widowed": 0.27},
}

# Yearly income in the middle of a career, and weekly hours.
_WORK = {
    "care": (31_000, 34.0),
    "craft": (36_000, 40.0),
    "office": (41_000, 38.0),
    "sales": (34_000, 36.0),
    "teaching": (47_000, 37.0),
    "technical": (58_000, 41.0),
    "retired": (22_000, 0.0),
    "unemployed": (13_000, 0.0),
}
_OCCUPATION = {  # share of women, of men
    "care": (22, 6),
    "craft": (5, 26),
    "office": (24, 17),
    "sales": (17, 14),
    "teaching": (13, 7),
    "technical": (9, 22),
    "unemployed": (10, 8),
}

_DIAGNOSIS = {  # weights at 20 and at 80
    "healthy": (62, 18),
    "asthma": (11, 6),
    "depression": (11, 7),
    "migraine": (9, 3),
    "back pain": (5, 12),
    "diabetes": (1, 17),
    "hypertension": (1, 25),
    "cancer": (0.4, 8),
    "HIV": (0.8, 0.4),
}

_MISSING = {"marital": 0.01, "height_cm": 0.03, "hours_per_week": 0.02, "income": 0.04}


def make_people(records: int = RECORDS, seed: int = SEED) -> list[dict[str, str]]:
    """The people, each a record of texts as they stand in the file.

    Examples
    --------
    >>> people = make_people(3)
    >>> sorted(people[0]) == sorted(COLUMNS)
    True
    >>> people == make_people(3)
    True
    """
    draws = random.Random(seed)
    taken: dict[str, int] = {}
    return [_person(draws, taken) for _ in range(records)]


def make_patients() -> list[dict[str, str]]:
    """One stay in a hospital of each of the people."""
    draws = random.Random(SEED + 1)
    return [_stay(draws, person) for person in make_people()]


def people_csv() -> bytes:
    """The bytes of ``people.csv``."""
    return _csv(COLUMNS, make_people())


def patients_csv() -> bytes:
    """The bytes of ``patients.csv``."""
    return _csv(STAYS, make_patients())


def _csv(columns: Sequence[str], records: Sequence[Mapping[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def _stay(draws: random.Random, person: Mapping[str, str]) -> dict[str, str]:
    born = _TODAY - timedelta(days=int(365.25 * (int(person["age"]) + draws.random())))
    reason = "check-up" if person["diagnosis"] == "healthy" else person["diagnosis"]
    days = math.exp(_normal(draws, 1.2 if reason == "check-up" else 2.1, 0.5))
    return {
        "name": person["name"],
        "birth_date": born.isoformat(),
        "sex": person["sex"],
        "zip": f"{_weighted(draws, _REGIONS)}{int(100 * draws.random()):02d}",
        "occupation": person["occupation"],
        "diagnosis": reason,
        "cost_eur": f"{430 * days:.2f}",
    }


def _person(draws: random.Random, taken: dict[str, int]) -> dict[str, str]:
    sex = "F" if draws.random() < 0.52 else "M"
    first, last = _any(draws, _FIRST[sex]), _any(draws, _LAST)
    age = 18 + int(72 * draws.random() ** 1.4)
    occupation = _occupation(draws, sex, age)
    hours = _hours(draws, occupation)
    record = {
        "name": f"{first} {last}",
        "email": _email(first, last, taken),
        "age": str(age),
        "sex": sex,
        "marital": _weighted(draws, next(s for limit, s in _MARITAL.items() if age <= limit)),
        "zip": f"{int(100_000 * draws.random()):05d}",
        "occupation": occupation,
        "height_cm": f"{_normal(draws, 165.5 if sex == 'F' else 179.0, 6.8) - age * 0.03:.1f}",
        "hours_per_week": str(hours),
        "income": f"{_income(draws, occupation, age, hours):.2f}",
        "diagnosis": _diagnosis(draws, age),
    }
    return {
        name: "" if draws.random() < _MISSING.get(name, 0.0) else text
        for name, text in record.items()
    }


def _occupation(draws: random.Random, sex: str, age: int) -> str:
    if draws.random() < 1 / (1 + math.exp((65.5 - age) / 1.2)):
        return "retired"
    share = 0 if sex == "F" else 1
    return _weighted(draws, {name: shares[share] for name, shares in _OCCUPATION.items()})


def _hours(draws: random.Random, occupation: str) -> int:
    usual = _WORK[occupation][1]
    if usual == 0.0:
        return 0
    if draws.random() < 0.2:  # part time
        usual *= 0.55
    return max(4, min(80, round(_normal(draws, usual, 5.0))))


def _income(draws: random.Random, occupation: str, age: int, hours: int) -> float:
    middle, usual = _WORK[occupation]
    effort = hours / usual if usual else 1.0
    career = 1.0 if occupation == "retired" else 1.1 - 0.0005 * (age - 52) ** 2
    return middle * effort * max(career, 0.5) * math.exp(_normal(draws, 0.0, 0.38))


def _diagnosis(draws: random.Random, age: int) -> str:
    old = (age - 20) / 60
    return _weighted(
        draws,
        {name: max(a + (b - a) * old, 0.0) for name, (a, b) in _DIAGNOSIS.items()},
    )


def _email(first: str, last: str, taken: dict[str, int]) -> str:
    mailbox = f"{first}.{last}".lower()
    taken[mailbox] = taken.get(mailbox, 0) + 1
    number = "" if taken[mailbox] == 1 else str(taken[mailbox])
    return f"{mailbox}{number}@example.org"


def _any(draws: random.Random, choices: Sequence[str]) -> str:
    return choices[int(len(choices) * draws.random())]


def _weighted(draws: random.Random, weights: Mapping[str, float]) -> str:
    left = draws.random() * sum(weights.values())
    for name, weight in weights.items():
        left -= weight
        if left < 0:
            return name
    return next(reversed(list(weights)))


def _normal(draws: random.Random, mean: float, deviation: float) -> float:
    # inv_cdf takes neither 0 nor 1; random() can give 0.
    return NormalDist(mean, deviation).inv_cdf(min(max(draws.random(), 1e-12), 1 - 1e-12))


if __name__ == "__main__":
    from shoal.app.demo import PATIENTS, PEOPLE

    PEOPLE.write_bytes(people_csv())
    PATIENTS.write_bytes(patients_csv())
    print(f"Wrote {RECORDS} records to {PEOPLE.name} and to {PATIENTS.name}.")
