"""Decide whether a named value looks like what its name promises.

From loose to strict: a password after `=` may be nearly anything; a value after a blank must look random; a value under
a weak name (`key`, the name of a service) must look random and long.
"""

from typing import Final

import msgspec

from sync.redaction.model import CODE, PASSWORD, TOKEN
from sync.redaction.pattern import Pattern
from sync.redaction.rules.secret_names import identifier_words, word_set
from sync.redaction.rules.value_tests import (
    class_change_rate,
    has_digit,
    has_letter,
    is_code,
    is_hex,
    is_lower_alphanumeric,
    is_made_of_words,
    is_not_a_word,
    is_reference,
    is_uuid,
    shannon_entropy,
)

_PATH: Final = Pattern(
    r"(?i)(?:https?|ftp|file|s3|ws|wss)://.*|(?:\.{0,2}|~)/[\w.\-]+(?:/.*)?|[a-z]:\\.*"
    r"|[\w./\-]+\.(?:pem|key|crt|cer|p12|pfx|json|ya?ml|toml|txt|env|md|py|js|ts|go|java|ini|conf|cfg|log|sh|html?)"
)
# Units after a count: 12 位, 3600 秒, 8 characters; not the beginning of another word (个人, secret=).
_UNITS: Final = Pattern(
    r"(?i)(?:[ \t]*(?:位(?:[^置于]|$)|个(?:[^人]|$)|分(?:[^享别]|$)|次(?:[^日]|$)|天(?:[^天]|$)"
    r"|条|块|秒|字|年|月|小时|元|万)"
    r"|[ \t]+(?:char(?:acter)?|digit|sec(?:ond)?|min(?:ute)?|day|hour|time|token|byte|bit)s?(?:[^a-z0-9_=:\-]|$)"
    r"|[ \t]?k[ \t]|-(?:bit|char|digit)).*"
)
_COUNT: Final = Pattern(r"(?i)[0-9][0-9.,~\-]*[kw]?")
# Words that describe a secret instead of giving it: SHA256 加密, JWT 格式.
_MANNERS: Final = tuple(word_set("加密 算法 格式 类型 存储 编码 形式 以上 以内 左右 长度 开头 结尾"))
_ALPHABETS: Final = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NAME_VERSION: Final = Pattern(r"[A-Za-z][A-Za-z\-]*[\-@:]v?[0-9]+(?:\.[0-9]+)+[A-Za-z0-9.\-]*")
# Endings of kebab-case resource names: app-decryption-secret.
_RESOURCES: Final = ("-secret", "-secrets", "-token", "-key", "-keys", "-password", "-credentials", "-auth")


class SecretCandidate(msgspec.Struct, frozen=True):
    """The name and the operator before a value.

    `operator` is `symbol` (= : =>), `copula` (是, is), `list` (a comma or bracket), `blank`, or `backwards` if the
    value comes first. A weak name names a secret only if the value looks random; `is_service`: it is a vendor's. A
    suffix follows the word that counts. A shell assignment is = without blanks.
    """

    kind: str
    operator: str
    is_weak: bool = False
    is_service: bool = False
    is_chinese: bool = False
    has_suffix: bool = False
    is_shell_assignment: bool = False


def is_secret(candidate: SecretCandidate, value: str, *, quoted: bool, after: str) -> bool:
    """Whether `value` is what its name promises. `after` is the text behind it."""
    if len(value) < _MIN_LENGTH or is_reference(value) or _is_description(value, after):
        return False
    if candidate.kind == CODE:
        return _is_one_time_code(candidate, value)
    if not value.isascii():
        return candidate.kind == PASSWORD and _is_non_ascii_password(candidate, value, quoted=quoted)
    if _is_ordinary_value(candidate, value, quoted=quoted, after=after):
        return False
    if candidate.is_weak:
        return candidate.operator not in ("blank", "backwards") and _is_service_key(candidate, value)
    if quoted and candidate.operator == "blank" and candidate.kind == PASSWORD and not candidate.has_suffix:
        return len(value) >= _MIN_QUOTED_LENGTH and has_digit(value) and has_letter(value)
    if candidate.operator in ("blank", "list", "backwards"):
        return _is_secret_without_operator(candidate, value)
    judge = _is_password if candidate.kind == PASSWORD else _is_key
    return judge(candidate, value, quoted=quoted, after=after)


def _is_description(value: str, after: str) -> bool:
    """Whether the text behind a value makes it a count or a description."""
    return after.lstrip(" \t").startswith(_MANNERS) or (
        _COUNT.fullmatch(value) and _UNITS.fullmatch(after.partition("\n")[0])
    )


_MIN_QUOTED_LENGTH: Final = 6  # characters of a password in quotes behind its name: PASSWORD 'abc123'
_MIN_LENGTH: Final = 3  # characters: a card's check number
_MAX_NON_ASCII_LENGTH: Final = 24  # characters of a password that is not ASCII


def _is_non_ascii_password(candidate: SecretCandidate, value: str, *, quoted: bool) -> bool:
    """Whether a value is one piece in another script, with digits or in quotes: 芝麻开门123, пароль88, “芝麻开门”."""
    if len(value) > _MAX_NON_ASCII_LENGTH or any(char in "[] \n" for char in value) or _DESCRIBED.search(value):
        return False
    is_linked = candidate.operator in ("symbol", "copula")
    is_phrase = quoted and is_linked and value.isalpha()
    return (has_digit(value) and (quoted or is_linked)) or (is_phrase and _MIN_PHRASE <= len(value) <= _MAX_PHRASE)


_MIN_PHRASE, _MAX_PHRASE = 4, 12  # Chinese characters of a password without a digit
# Words that speak of a password instead of being one: 请输入密码, 8位以上数字.
_DESCRIBED: Final = Pattern(
    "[0-9] ?[位个次天年月秒条字]|请|输入|填|密码|口令|字[符母]|数字|可选|为空|错误|正确|修改|设置|默认|同上|见|确认"
    "|不[能要可是]|[大小多少]于|至少|最[多少长短]|超过|长度"
)


def _is_ordinary_value(candidate: SecretCandidate, value: str, *, quoted: bool, after: str) -> bool:
    """Whether a value is a path, an identifier or a sentence."""
    if _PATH.fullmatch(value) or _NAME_VERSION.fullmatch(value) or any(alphabet in value for alphabet in _ALPHABETS):
        return True
    if is_code(value) and not (quoted and (has_digit(value) or _is_joined_words(candidate, value))):
        kebab = candidate.operator == "symbol" and "-" in value and value.replace("-", "").isalpha()
        return (
            not kebab or candidate.has_suffix or candidate.is_weak or value.endswith(_RESOURCES) or not _at_end(after)
        )
    return " " in value and not (quoted and _is_phrase(candidate, value))


def _is_joined_words(candidate: SecretCandidate, value: str) -> bool:
    """Whether a quoted password is joined words, none of which names a secret or a field."""
    plain = value.replace("_", "").replace("-", "").isalpha()
    return (
        candidate.kind == PASSWORD
        and not candidate.has_suffix
        and plain
        and _FIELD_WORDS.isdisjoint(identifier_words(value))
    )


_FIELD_WORDS: Final = word_set(
    """
    password passwords passwd pass pwd secret secrets token key user username name db database admin app my your the new
    old current field form input text type value id env var config vault login auth api account hash hidden required
    """
)


def _is_service_key(candidate: SecretCandidate, value: str) -> bool:
    if is_uuid(value):
        return candidate.is_service
    shortest = _SERVICE_LENGTH if candidate.is_service else _BASE36_LENGTH
    if len(value) >= shortest and is_lower_alphanumeric(value):
        return class_change_rate(value) >= 0.2
    return looks_random(
        value, min_length=_SERVICE_LENGTH if candidate.is_service or candidate.has_suffix else _KEY_LENGTH
    )


_BASE36_LENGTH: Final = 20  # characters of a key in small letters and digits under a word such as `key`
_KEY_LENGTH: Final = 10  # characters of the shortest key under `key` or `sk` alone
_SERVICE_LENGTH: Final = 14  # characters of the shortest token known by its service's name alone: LinkedIn's


def _is_one_time_code(candidate: SecretCandidate, value: str) -> bool:
    """Whether a value is four to eight digits, or up to ten letters and digits after an operator."""
    if value.isdecimal():
        return 4 <= len(value) <= 8
    if candidate.operator == "blank":
        return False
    return 4 <= len(value) <= 10 and value.replace("-", "").isalnum() and has_digit(value)


def _is_password(candidate: SecretCandidate, value: str, *, quoted: bool, after: str) -> bool:
    if len(value) < 4 and not (quoted and candidate.operator == "symbol"):
        mixed = has_digit(value) and not value.isdecimal() and _at_end(after)
        if candidate.is_chinese and mixed:
            return candidate.operator != "blank"
        return candidate.is_shell_assignment and not candidate.has_suffix and value.isalnum() and _ends_word(after)
    if is_not_a_word(value):
        return not _is_date_or_version(value) or quoted
    return _is_plain_value(candidate, value, quoted=quoted, after=after)


def _is_key(candidate: SecretCandidate, value: str, *, quoted: bool, after: str) -> bool:
    if len(value) < 6:
        return candidate.is_shell_assignment and not candidate.has_suffix and value.isalnum() and _ends_word(after)
    if value.isdecimal():
        return len(value) >= (8 if candidate.kind == TOKEN else 6)
    if has_digit(value):
        return has_letter(value) and not (candidate.has_suffix and len(value) < 8) and not _is_date_or_version(value)
    return (is_not_a_word(value) and len(value) >= 8) or _is_plain_value(candidate, value, quoted=quoted, after=after)


def _is_plain_value(candidate: SecretCandidate, value: str, *, quoted: bool, after: str) -> bool:
    """Whether letters alone may be the secret: in quotes, in an environment file, or alone on a line."""
    if candidate.has_suffix:
        return False
    if candidate.is_chinese:
        return True
    if candidate.kind == PASSWORD and len(value) >= _CAPITALISED and value == value.capitalize() and _ends_line(after):
        return candidate.operator == "symbol"
    return candidate.operator == "symbol" and (
        quoted or (value == value.lower() and (_at_end(after) or (candidate.is_shell_assignment and _ends_word(after))))
    )


def _ends_word(after: str) -> bool:
    """Whether a blank, the end or the next parameter follows, not a bracket or comma of a call."""
    return not after or after[0] in " \t\n\r&;，。；"


_CAPITALISED: Final = 5  # letters of a word with a capital that is a password, at the end of its line


def _ends_line(after: str) -> bool:
    return not after.strip(" \t`*\"'") or after.lstrip(" \t`*\"'")[0] in "\r\n"


def _at_end(after: str) -> bool:
    return not after or after.startswith((" }", " --", " \\")) or after[0] in "\n\r,;&，。；！？、\"'`)\\|<"


def _is_secret_without_operator(candidate: SecretCandidate, value: str) -> bool:
    """Whether a value without an operator looks like a secret."""
    if is_uuid(value):
        return candidate.operator != "blank"
    if (
        candidate.is_chinese
        and candidate.kind == PASSWORD
        and (value.rstrip("#*").isdecimal() or len(value) >= 6)
        and has_digit(value)
    ):
        return len(value) >= 4
    if not (has_digit(value) and has_letter(value)) or len(value) < 8 or _is_date_or_version(value):
        return len(value) >= 20 and is_not_a_word(value) and value.isalnum() and candidate.operator == "backwards"
    if candidate.operator != "blank":
        return True
    symbols = sum(not char.isalnum() and char not in "-_./:" for char in value)
    return bool(symbols) or looks_random(value, min_length=8)


def looks_random(value: str, *, min_length: int) -> bool:
    """Whether a value looks random: at least 32 hexadecimal digits, or digits scattered among letters."""
    if len(value) < min_length or any(alphabet in value for alphabet in _ALPHABETS):
        return False
    if is_hex(value):
        return len(value) >= 32 or (has_letter(value) and has_digit(value) and shannon_entropy(value) > 3)
    if is_made_of_words(value):
        return False
    return (
        has_digit(value)
        and has_letter(value)
        and class_change_rate(value) >= 0.35
        and shannon_entropy(value) >= min(3.0, len(value) / 4)
    )


def _is_phrase(candidate: SecretCandidate, value: str) -> bool:
    """Whether a quoted value is a password of at most three words with a digit."""
    return candidate.kind == PASSWORD and has_digit(value) and value.count(" ") <= 2 and candidate.operator != "list"


def _is_date_or_version(value: str) -> bool:
    return all(char.isdecimal() or char in "-./:vVT+" for char in value) and any(char in "-./:" for char in value)


def is_distinct(value: str) -> bool:
    """Whether a value alone looks like a password or key: letters with scattered or several digits, no word or name."""
    if not _MIN_DISTINCT <= len(value) <= _MAX_DISTINCT or not value.isascii() or is_reference(value):
        return False
    if is_code(value) or _PATH.fullmatch(value) or _NAME_VERSION.fullmatch(value) or _TECHNICAL.fullmatch(value):
        return False
    if any(char in value for char in "/\\()[]{}<>=:,") or _is_date_or_version(value):
        return False
    return has_letter(value) and has_digit(value) and value[0] not in "&%-."


_MIN_DISTINCT, _MAX_DISTINCT = 6, 64
# A word with one digit, a measure, a version, an address: value2, 16GB, 1024x768, 3.11rc1, me@host.com.
_TECHNICAL: Final = Pattern(
    r"[A-Za-z_\-]+[0-9]|[0-9][0-9.,]*[A-Za-z%]{1,4}|[0-9]+x[0-9]+|v?[0-9]+(?:\.[0-9]+)+[A-Za-z0-9.\-+]*|.*@[\w\-]+\..*"
    r"|(?i:sha|md|aes|rsa|ed|hs|rs|es|utf|base|ipv|oauth|argon|http|python|node|win|mysql|postgres|bcrypt|scrypt|ssl|tls)"
    r"[\-_]?[0-9][0-9a-z.\-]*|[A-Z]{2,5}-[0-9]{1,6}"
)
