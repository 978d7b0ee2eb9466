"""Check digits and plausible parts of numbers, each with its source.

Every function takes digits without separators and runs in constant time.
"""

from datetime import date
from typing import Final

from sync.redaction.rules.secret_names import word_set

# GB/T 2260: the first two digits of a division code name a province.
_PROVINCES: Final = word_set(
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83 91"
)
_IDENTITY_WEIGHTS: Final = tuple(pow(2, 17 - place, 11) for place in range(17))
_IDENTITY_CHECKS: Final = "10X98765432"
_OLDEST_BIRTH: Final = 1900
_LATEST_BIRTH: Final = 2099

_COMPANY_ALPHABET: Final = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_COMPANY_WEIGHTS: Final = tuple(pow(3, place, 31) for place in range(17))
_COMPANY_LENGTH: Final = 18
# Registering department -> categories it gives out (GB 32100-2015, table 1, and its amendments).
_COMPANY_CATEGORIES: Final = {
    **dict.fromkeys("2468A", "19"),
    **dict.fromkeys("159", "12349"),
    "3": "123459",
    "7": "129",
    "N": "1239",
    "Y": "1",
}
_ORGANISATION_WEIGHTS: Final = (3, 7, 9, 10, 5, 8, 4, 2)

# Lengths of card numbers by their first digits (ISO/IEC 7812 ranges as the networks publish them):
# UnionPay 62 (16-19) and the older Chinese 9558, 955x and 60/68/69 series, Visa, Mastercard, American Express, JCB,
# Discover. Mastercard's 2221-2720 is left out: dates such as 2024… share its digits.
_UNIONPAY: Final = (16, 17, 18, 19)
_CARD_LENGTHS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    *((prefix, _UNIONPAY) for prefix in ("62", "9558", "9559", "603", "685", "690", "621", "622")),
    ("4", (16,)),
    *((prefix, (16,)) for prefix in ("51", "52", "53", "54", "55")),
    *((prefix, (15,)) for prefix in ("34", "37")),
    *((f"35{ten}", (16,)) for ten in ("28", "29", "3", "4", "5", "6", "7", "8")),
    *((prefix, (16,)) for prefix in ("6011", "644", "645", "646", "647", "648", "649", "65")),
)


def is_mobile_number(digits: str) -> bool:
    """Eleven digits that begin with 13 to 19 (MIIT numbering plan; the third digit is in use everywhere)."""
    return len(digits) == 11 and digits[0] == "1" and digits[1] in "3456789" and len(set(digits)) > 2


def is_identity_number(number: str) -> bool:
    """GB 11643-1999: province, real date of birth, sequence, MOD 11-2 check character (X is ten)."""
    body, check = number[:17], number[17:].upper()
    if len(number) != 18 or not body.isdecimal() or body[:2] not in _PROVINCES:
        return False
    if not _is_birth(body[6:10], body[10:14]):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(body, _IDENTITY_WEIGHTS, strict=True))
    return _IDENTITY_CHECKS[total % 11] == check


def is_bank_card_number(digits: str) -> bool:
    """A length the network of its first digits gives out, and the Luhn check (ISO/IEC 7812-1 annex B)."""
    if not any(digits.startswith(prefix) and len(digits) in lengths for prefix, lengths in _CARD_LENGTHS):
        return False
    return len(set(digits)) > 2 and luhn(digits)


def luhn(digits: str) -> bool:
    """Every second digit from the right doubled, the digits of all summed: a multiple of ten."""
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0


def is_company_code(code: str) -> bool:
    """GB 32100-2015: department, category, division, organisation and the check character modulo 31."""
    code = code.upper()
    if len(code) != _COMPANY_LENGTH or any(char not in _COMPANY_ALPHABET for char in code):
        return False
    if (
        code[1] not in _COMPANY_CATEGORIES.get(code[0], "")
        or code[2:4] not in _PROVINCES | {"10"}
        or not code[2:8].isdecimal()
    ):
        return False
    if code.isdecimal() and not _is_organisation(code[8:17]):
        return False  # eighteen digits may be anything; the inner check character decides
    values = map(_COMPANY_ALPHABET.index, code[:17])
    total = sum(value * weight for value, weight in zip(values, _COMPANY_WEIGHTS, strict=True))
    return _COMPANY_ALPHABET[-total % 31] == code[17]


def _is_organisation(code: str) -> bool:
    """GB 11714-1997: eight characters and their check digit modulo 11, here for digits only."""
    total = sum(int(digit) * weight for digit, weight in zip(code[:8], _ORGANISATION_WEIGHTS, strict=True))
    return code[8] == "0X987654321"[total % 11]


def _is_birth(year: str, month_day: str) -> bool:
    try:
        born = date(int(year), int(month_day[:2]), int(month_day[2:]))
    except ValueError:
        return False
    return _OLDEST_BIRTH <= born.year <= _LATEST_BIRTH
