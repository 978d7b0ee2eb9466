"""The verdict on a named value: does it look like what its name promises?

From loose to strict: a password after `=` may be nearly anything; a value after a mere blank has to look random; a
value under a weak name (`key`, the name of a service) has to look random and long.
"""

from dataclasses import dataclass
from typing import Final

from sync.redaction.engine import Pattern
from sync.redaction.model import CODE, PASSWORD, TOKEN
from sync.redaction.names import word_set, words
from sync.redaction.values import (
    changes,
    entropy,
    has_digit,
    has_letter,
    is_code,
    is_hex,
    is_lower_alphanumeric,
    is_mixed,
    is_reference,
    is_uuid,
    is_wordy,
)

_PATH: Final = Pattern(
    r"(?i)(?:https?|ftp|file|s3|ws|wss)://.*|(?:\.{0,2}|~)/[\w.\-]+(?:/.*)?|[a-z]:\\.*"
    r"|[\w./\-]+\.(?:pem|key|crt|cer|p12|pfx|json|ya?ml|toml|txt|env|md|py|js|ts|go|java|ini|conf|cfg|log|sh|html?)"
)
# What a number before it counts: 12 位, 3600 秒, 8 characters; not the beginning of another word (个人, secret=).
_UNITS: Final = Pattern(
    r"(?i)(?:[ \t]*(?:位(?:[^置于]|$)|个(?:[^人]|$)|分(?:[^享别]|$)|次(?:[^日]|$)|天(?:[^天]|$)"
    r"|条|块|秒|字|年|月|小时|元|万)"
    r"|[ \t]+(?:char(?:acter)?|digit|sec(?:ond)?|min(?:ute)?|day|hour|time|token|byte|bit)s?(?:[^a-z0-9_=:\-]|$)"
    r"|[ \t]?k[ \t]|-(?:bit|char|digit)).*"
)
_COUNT: Final = Pattern(r"(?i)[0-9][0-9.,~\-]*[kw]?")
# What is said about a secret instead of the secret: SHA256 加密, JWT 格式.
_MANNERS: Final = (
    "加密",
    "算法",
    "格式",
    "类型",
    "存储",
    "编码",
    "形式",
    "以上",
    "以内",
    "左右",
    "长度",
    "开头",
    "结尾",
)
_ALPHABETS: Final = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NAME_VERSION: Final = Pattern(r"[A-Za-z][A-Za-z\-]*[\-@:]v?[0-9]+(?:\.[0-9]+)+[A-Za-z0-9.\-]*")
# A kebab-case word that ends like this is the name of a resource: app-decryption-secret.
_RESOURCES: Final = ("-secret", "-secrets", "-token", "-key", "-keys", "-password", "-credentials", "-auth")


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands before a value: the kind its name promises, and how.

    `operator` is `symbol` (= : =>), `copula` (是, is), `list` (a comma or bracket), `blank`, or `backwards` when the
    value comes first. `weak` names hold a secret only when the value looks random; `service` is a weak name that is a
    vendor's; `suffixed` names go on after the word that counts; `tight` is = without blanks, as in a shell.
    """

    kind: str
    operator: str
    weak: bool = False
    service: bool = False
    chinese: bool = False
    suffixed: bool = False
    tight: bool = False


def is_secret(claim: Claim, value: str, *, quoted: bool, after: str) -> bool:
    """Is `value` what `claim` promises? `after` is the text right behind it."""
    if len(value) < _SHORTEST or is_reference(value) or _is_talk(value, after):
        return False
    if claim.kind == CODE:
        return _is_code_number(claim, value)
    if not value.isascii():
        return quoted and claim.kind == PASSWORD and _is_written_password(value)
    if _is_something_else(claim, value, quoted=quoted, after=after):
        return False
    if claim.weak:
        return claim.operator not in ("blank", "backwards") and _is_of_service(claim, value)
    if quoted and claim.operator == "blank" and claim.kind == PASSWORD and not claim.suffixed:
        return len(value) >= _SHORTEST_QUOTED and has_digit(value) and has_letter(value)
    if claim.operator in ("blank", "list", "backwards"):
        return _stands_alone(claim, value)
    judge = _is_password if claim.kind == PASSWORD else _is_key
    return judge(claim, value, quoted=quoted, after=after)


def _is_talk(value: str, after: str) -> bool:
    """Does the text right behind say that this is a count or a manner?"""
    return after.lstrip(" \t").startswith(_MANNERS) or (_COUNT.whole(value) and _UNITS.whole(after.partition("\n")[0]))


_SHORTEST_QUOTED: Final = 6  # characters of a password in quotes behind its name: PASSWORD 'abc123'
_SHORTEST: Final = 3  # characters: a card's check number
_LONGEST_WRITTEN: Final = 24  # characters of a password that is not ASCII


def _is_written_password(value: str) -> bool:
    """Chinese with digits, in one piece: 芝麻开门123; not what holds a placeholder already."""
    return len(value) <= _LONGEST_WRITTEN and has_digit(value) and not any(char in "[] \n" for char in value)


def _is_something_else(claim: Claim, value: str, *, quoted: bool, after: str) -> bool:
    """A path, a name of the program, a sentence."""
    if _PATH.whole(value) or _NAME_VERSION.whole(value) or any(alphabet in value for alphabet in _ALPHABETS):
        return True
    if is_code(value) and not (quoted and (has_digit(value) or _is_joined_words(claim, value))):
        kebab = claim.operator == "symbol" and "-" in value and value.replace("-", "").isalpha()
        return not kebab or claim.suffixed or claim.weak or value.endswith(_RESOURCES) or not _at_end(after)
    return " " in value and not (quoted and _is_phrase(claim, value))


def _is_joined_words(claim: Claim, value: str) -> bool:
    """Words joined by dashes or capitals, as a password in quotes, none of which names a secret or a field."""
    plain = value.replace("_", "").replace("-", "").isalpha()
    return claim.kind == PASSWORD and not claim.suffixed and plain and _FIELD_WORDS.isdisjoint(words(value))


_FIELD_WORDS: Final = word_set(
    """
    password passwords passwd pass pwd secret secrets token key user username name db database admin app my your the new
    old current field form input text type value id env var config vault login auth api account hash hidden required
    """
)


def _is_of_service(claim: Claim, value: str) -> bool:
    if is_uuid(value):
        return claim.service
    shortest = _SERVICE_LENGTH if claim.service else _BASE36_LENGTH
    if len(value) >= shortest and is_lower_alphanumeric(value):
        return changes(value) >= 0.2
    return looks_random(value, shortest=_SERVICE_LENGTH if claim.service or claim.suffixed else _KEY_LENGTH)


_BASE36_LENGTH: Final = 20  # characters of a key in small letters and digits under a word such as `key`
_KEY_LENGTH: Final = 10  # characters of the shortest key under `key` or `sk` alone
_SERVICE_LENGTH: Final = 14  # characters of the shortest token known by its service's name alone: LinkedIn's


def _is_code_number(claim: Claim, value: str) -> bool:
    """A code is four to eight digits, or up to ten letters and digits when something says is."""
    if value.isdecimal():
        return 4 <= len(value) <= 8
    if claim.operator == "blank":
        return False
    return 4 <= len(value) <= 10 and value.replace("-", "").isalnum() and has_digit(value)


def _is_password(claim: Claim, value: str, *, quoted: bool, after: str) -> bool:
    if len(value) < 4 and not (quoted and claim.operator == "symbol"):
        return claim.tight and not claim.suffixed and value.isalnum() and _ends_word(after)
    if is_mixed(value):
        return not _is_date_or_version(value) or quoted
    return _is_plain_value(claim, value, quoted=quoted, after=after)


def _is_key(claim: Claim, value: str, *, quoted: bool, after: str) -> bool:
    if len(value) < 6:
        return claim.tight and not claim.suffixed and value.isalnum() and _ends_word(after)
    if value.isdecimal():
        return len(value) >= (8 if claim.kind == TOKEN else 6)
    if has_digit(value):
        return has_letter(value) and not (claim.suffixed and len(value) < 8) and not _is_date_or_version(value)
    return (is_mixed(value) and len(value) >= 8) or _is_plain_value(claim, value, quoted=quoted, after=after)


def _is_plain_value(claim: Claim, value: str, *, quoted: bool, after: str) -> bool:
    """May letters alone be the secret here? In quotes, in an environment file, or as all that is said."""
    if claim.suffixed:
        return False
    if claim.chinese:
        return True
    if claim.kind == PASSWORD and len(value) >= _CAPITALISED and value == value.capitalize() and _ends_line(after):
        return claim.operator == "symbol"
    return claim.operator == "symbol" and (
        quoted or (value == value.lower() and (_at_end(after) or (claim.tight and _ends_word(after))))
    )


def _ends_word(after: str) -> bool:
    """A blank, the end or the next parameter follows: no bracket of a call, no comma of its arguments."""
    return not after or after[0] in " \t\n\r&;，。；"


_CAPITALISED: Final = 5  # letters of a word with a capital that is a password, at the end of its line


def _ends_line(after: str) -> bool:
    return not after.strip(" \t`*\"'") or after.lstrip(" \t`*\"'")[0] in "\r\n"


def _at_end(after: str) -> bool:
    return not after or after.startswith((" }", " --", " \\")) or after[0] in "\n\r,;&，。；！？、\"'`)\\|<"


def _stands_alone(claim: Claim, value: str) -> bool:
    """No equals sign says so: the value has to look like one."""
    if is_uuid(value):
        return claim.operator != "blank"
    if claim.chinese and claim.kind == PASSWORD and (value.isdecimal() or len(value) >= 6) and has_digit(value):
        return len(value) >= 4
    if not (has_digit(value) and has_letter(value)) or len(value) < 8 or _is_date_or_version(value):
        return len(value) >= 20 and is_mixed(value) and value.isalnum() and claim.operator == "backwards"
    if claim.operator != "blank":
        return True
    symbols = sum(not char.isalnum() and char not in "-_./:" for char in value)
    return bool(symbols) or looks_random(value, shortest=8)


def looks_random(value: str, *, shortest: int) -> bool:
    """Is this no word and no identifier? Hexadecimal from 32 digits on, else digits strewn among letters."""
    if len(value) < shortest or any(alphabet in value for alphabet in _ALPHABETS):
        return False
    if is_hex(value):
        return len(value) >= 32 or (has_letter(value) and has_digit(value) and entropy(value) > 3)
    if is_wordy(value):
        return False
    return (
        has_digit(value) and has_letter(value) and changes(value) >= 0.35 and entropy(value) >= min(3.0, len(value) / 4)
    )


def _is_phrase(claim: Claim, value: str) -> bool:
    """Two or three words with a digit may be a password in quotes; more are a sentence."""
    return claim.kind == PASSWORD and has_digit(value) and value.count(" ") <= 2 and claim.operator != "list"


def _is_date_or_version(value: str) -> bool:
    return all(char.isdecimal() or char in "-./:vVT+" for char in value) and any(char in "-./:" for char in value)
