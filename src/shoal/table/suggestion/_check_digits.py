"""Check digits of identifying numbers.

Every function takes the compact form of a number (no separators, upper case), after a regular
expression has checked its shape, and returns whether its check digits and dates are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

_DIHEDRAL = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_SHIFT = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU_LETTERS = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25,
               24, 23)  # fmt: skip


def luhn(number: str) -> bool:
    """ISO/IEC 7812: double every second digit from the right; the sum ends in 0."""
    return luhn_sum(int(digit) for digit in reversed(number)) % 10 == 0


def luhn_sum(from_the_right: Iterable[int]) -> int:
    """The Luhn sum of digits given from the right."""
    return sum(d if i % 2 == 0 else d * 2 - 9 * (d > 4) for i, d in enumerate(from_the_right))


def verhoeff(number: str) -> bool:
    """Verhoeff's scheme over the dihedral group of order 10 (India's Aadhaar)."""
    state = 0
    for position, digit in enumerate(reversed(number)):
        state = int(_DIHEDRAL[state][int(_VERHOEFF_SHIFT[position % 8][int(digit)])])
    return state == 0


def iban(number: str) -> bool:
    """ISO 13616: move four characters to the end, read letters as numbers; 1 modulo 97."""
    return int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1


def payment_card(number: str) -> bool:
    """Luhn, and a prefix and a length that a card network uses."""
    two, four, length = int(number[:2]), int(number[:4]), len(number)
    if length == 14:
        known = two in (30, 36, 38, 39)
    elif length == 15:
        known = two in (34, 37)
    else:
        known = (
            two // 10 == 4 or 51 <= two <= 55 or 2221 <= four <= 2720 or two in (35, 60, 62, 64, 65)
        )
    return known and luhn(number)


def vehicle(number: str) -> bool:
    """Vehicle identification number with the check character of North America and China."""
    values = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(w * int(values.get(c, c)) for w, c in zip(weights, number, strict=True))
    return number[8] == "0123456789X"[total % 11]


def weighted(number: str, weights: Sequence[int]) -> int:
    """The sum of digits times weights, from the left."""
    return sum(w * int(digit) for w, digit in zip(weights, number, strict=False))


def _sums_to_0(weights: Sequence[int], modulus: int) -> Callable[[str], bool]:
    """The check that the sum of digits times weights is a multiple of a modulus."""
    return lambda number: weighted(number, weights) % modulus == 0


def _shows_rest(weights: Sequence[int], signs: str) -> Callable[[str], bool]:
    """The check that the last sign stands for the remainder of the weighted sum of the others."""
    return lambda number: signs[weighted(number, weights) % len(signs)] == number[-1]


def is_date(year: str, month: str, day: str) -> bool:
    """Whether a year of two or four digits, a month and a day are a valid date."""
    full = int(year) if len(year) == 4 else 1900 + int(year)
    return _exists(full, int(month), int(day)) or (
        len(year) == 2 and _exists(2000 + int(year), int(month), int(day))
    )


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


# --- numbers of persons, by country -------------------------------------------------------------

#: NHS number: 11 minus the remainder modulo 11; a number that would need 10 is not issued.
uk_nhs = _shows_rest(range(10, 1, -1), "0-987654321")
#: Número de identificação fiscal: the same, but 10 becomes 0.
portuguese_nif = _shows_rest(range(9, 1, -1), "00987654321")
#: Burgerservicenummer: the eleven test; the last digit has a negative weight.
dutch_bsn = _sums_to_0((9, 8, 7, 6, 5, 4, 3, 2, -1), 11)
#: AHV number: an EAN-13 that begins with 756.
swiss_ahv = _sums_to_0((1, 3) * 6 + (1,), 10)
australian_tfn = _sums_to_0((1, 4, 3, 7, 5, 8, 6, 9, 10), 11)


def belgian_niss(number: str) -> bool:
    """National register number: 97 minus the first nine digits (with a 2 before them from 2000)."""
    control, base = int(number[9:]), number[:9]
    month = int(number[2:4]) % 20  # bis numbers add 20 or 40 to the month
    plausible = month <= 12 and int(number[4:6]) <= 31
    return plausible and control in (97 - int(base) % 97, 97 - int("2" + base) % 97)


def spanish_dni(number: str) -> bool:
    """DNI and NIE: the letter is the number modulo 23 (X, Y, Z stand for 0, 1, 2)."""
    digits = number[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return number[-1] == _DNI_LETTERS[int(digits) % 23]


def italian_fiscal(number: str) -> bool:
    """Codice fiscale: a table maps characters in odd places; the sum modulo 26 is a letter."""
    ranks = [int(c) if c.isdigit() else ord(c) - ord("A") for c in number[:15]]
    total = sum(_FISCAL_ODD[r] if i % 2 == 0 else r for i, r in enumerate(ranks))
    return number[15] == chr(ord("A") + total % 26)


def french_nir(number: str) -> bool:
    """Numéro de sécurité sociale: 97 minus the first 13 digits (Corsica: 2A is 19, 2B is 18)."""
    base = number[:13].replace("2A", "19").replace("2B", "18")
    return int(number[13:]) == 97 - int(base) % 97


def german_tax_id(number: str) -> bool:
    """Steuer-Identifikationsnummer: ISO 7064 modulo 11,10; the first ten digits repeat one."""
    counts = [number[:10].count(digit) for digit in "0123456789"]
    return max(counts) in (2, 3) and iso_7064_mod_11_10(number)


def iso_7064_mod_11_10(number: str) -> bool:
    """ISO 7064 hybrid system modulo 11 and 10."""
    product = 10
    for digit in number[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[-1])


def polish_pesel(number: str) -> bool:
    """PESEL: weights 1 3 7 9, modulo 10; the month carries the century."""
    month = int(number[2:4]) % 20
    plausible = 1 <= month <= 12 and 1 <= int(number[4:6]) <= 31
    return plausible and weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def brazilian_cpf(number: str) -> bool:
    """CPF: two check digits modulo 11; numbers that repeat one digit are not issued."""
    first = weighted(number[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = weighted(number[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(number)) > 1 and number[9:] == f"{first}{second}"


def swedish_personal(number: str) -> bool:
    """Personnummer: Luhn over the last ten digits; a day above 60 is a coordination number."""
    short = number[-10:]
    day = int(short[4:6])
    return luhn(short) and is_date(short[:2], short[2:4], f"{day - 60 if day > 60 else day:02d}")


def finnish_hetu(number: str) -> bool:
    """Henkilötunnus: date and serial number modulo 31 give the last character."""
    digits = number[:6] + number[-4:-1]
    return (
        is_date(number[4:6], number[2:4], number[:2])
        and number[-1] == _HETU_LETTERS[int(digits) % 31]
    )


def danish_cpr(number: str) -> bool:
    """CPR number: begins with a date; the check digit was abandoned in 2007."""
    return is_date(number[4:6], number[2:4], number[:2])


def norwegian_birth(number: str) -> bool:
    """Fødselsnummer: two check digits modulo 11; D numbers add 40 to the day."""
    day = int(number[:2]) % 40
    return (
        is_date(number[4:6], number[2:4], f"{day:02d}")
        and weighted(number, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
        and weighted(number, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
    )


def austrian_svnr(number: str) -> bool:
    """Sozialversicherungsnummer: the fourth digit checks the others, modulo 11; ends in a date."""
    rest = weighted(number, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11
    return rest == int(number[3]) and int(number[4:6]) <= 31 and int(number[6:8]) <= 15


def chinese_id(number: str) -> bool:
    """Resident identity number: ISO 7064 modulo 11-2, with a date of birth inside."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return (
        is_date(number[6:10], number[10:12], number[12:14])
        and "10X98765432"[weighted(number[:17], weights) % 11] == number[17]
    )


def chilean_rut(number: str) -> bool:
    """RUT: weights 2 to 7 from the right, modulo 11, K for ten."""
    total = sum(int(d) * (2 + i % 6) for i, d in enumerate(reversed(number[:-1])))
    return "0123456789K0"[11 - total % 11] == number[-1]


def turkish_id(number: str) -> bool:
    """T.C. kimlik numarası: two check digits."""
    d = [int(digit) for digit in number]
    tenth = (7 * sum(d[0:9:2]) - sum(d[1:8:2])) % 10
    return d[9] == tenth and d[10] == sum(d[:10]) % 10


def south_african_id(number: str) -> bool:
    """Identity number: date of birth and Luhn."""
    return is_date(number[:2], number[2:4], number[4:6]) and luhn(number)
