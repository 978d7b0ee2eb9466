"""Tests of a short string: is it a secret, or a word, a reference, a placeholder?

Each test is linear in the length of the string.
"""

from collections import Counter
from itertools import pairwise
from math import log2
from typing import Final

from sync.redaction.pattern import Pattern
from sync.redaction.rules.secret_names import word_set

# Words in the place of a secret: in documentation, templates, schemas, interfaces and prose.
_NON_SECRET_WORDS: Final = word_set(
    """
    a an the it this that here there not no none null nil undefined true false yes on off empty blank default unset
    required optional invalid valid incorrect correct wrong missing expired changed reset needed unknown forgotten
    str string text int integer number bool boolean bytes any object dict list array type varchar char nullable float
    password passwd pwd pass passphrase secret token key apikey api_key code pin hidden masked redacted removed omitted
    example sample placeholder dummy changeme change_me todo tbd fixme foo bar baz foobar value name username user email
    credential credentials creds cookie cookies session whitespace keyword operator punctuation
    admin test testing enter input prompt confirm show forgot login auth basic bearer plain plaintext encrypted hashed
    env environment config keychain keyring vault stdin self cls new old current same strong weak safe visible
    inherit buffer textfield passwordfield securestring secretstr protected encoded generated unchanged confidential
    md5 sha1 sha256 sha512 sha-256 bcrypt argon2 argon2id scrypt pbkdf2 aes aes128 aes256 aes-256 base64 base32
    utf8 utf-8
    rsa2048 rsa4096 hs256 rs256 es256 ed25519 x25519 oauth oauth2 oauth2.0 2fa mfa totp jwt http https
    available used using stored saved sent set get length size field column parameter argument option header cookie
    require undefined error failed success unauthorized forbidden must should can will is are was has have been for
    with and or of in at by to from as if then else return let var const public private static final
    """
)
_REFERENCE: Final = Pattern(
    r"(?i)"
    r"\$\{[^}]*\}?.*|\$\(.*|\$[a-z_][a-z0-9_]*(?:[.\[].*)?|\$\{?\{.*|\{\{?.*\}?\}|%[a-z_]+%|%\(?[a-z_]*\)?[sdr]"
    r"|\{[a-z_][a-z0-9_.!:]*\}?|#[0-9a-f]{3,8}|<[^>]*>?|\[[^\]]*\]?|@[a-z_]+@|#\{.*|&[a-z_]+|\*[a-z_]*|!(?:ref|sub|vault|env|secret).*"
    r"|[*x.\-_•●#?…0]{3,}|(?:x{3,}|\*{3,}|\.{3,}).*|.*(?:\*{3,}|x{5,}|\.{3}|…).*"
    r"|(?:your|the|some|a|an|put|insert|enter|replace|change|add|set|use)[ _\-].*"
    r"(?:key|token|secret|pass|pwd|here|me|value|code).*"
    r"|(?:your|replace|insert|changeme|placeholder|example)[a-z0-9_\-]*|(?:not?|none)[ _\-].*"
    r"|my[_\-]?(?:api)?[_\-]?(?:token|key)"
    r"|(?-i:\[*(?:String|ID|Int|Float|Boolean|Date|DateTime|UUID|JSON|Email|Password|Token"
    r"|[A-Z][A-Za-z]*(?:Input|Type))!?\]?!?)"
    r"|(?-i:.*EXAMPLE.*)"
)
# An identifier or a call of a programming language instead of a literal.
_CODE: Final = Pattern(
    r"(?:[A-Za-z_$][A-Za-z0-9_$]*(?:\.|::|->|\?\.))+[A-Za-z_$][A-Za-z0-9_$]*[;,)]?"
    r"|(?:await |new |not )?[A-Za-z_$][A-Za-z0-9_$.:>\-]*[(\[].*"
    r"|[a-z]+(?:_[a-z]+)+[;,)]?|[A-Z]+(?:_[A-Z]+)+[;,)]?|[a-z]+(?:[A-Z][a-z]+)+[;,)]?|(?:[A-Z]+[a-z]+){2,}[A-Z]*[;,)]?|(?:[A-Z]+[a-z]+[0-9]*)+[A-Z][a-z]+[;,)]?|[a-z]+(?:-[a-z]+)+[;,)]?"
)
_WORD: Final = Pattern(r"(?:[A-Z]?[a-z]+)+[0-9]{0,6}|[A-Z]+[0-9]{0,6}|[0-9]+[a-z]?")
_HEX: Final = Pattern(r"(?i)(?:0x)?[0-9a-f]+")
_UUID: Final = Pattern(r"(?i)\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?")


def is_reference(value: str) -> bool:
    """Whether a value is a placeholder, a template or a word for the secret."""
    return value.lower() in _NON_SECRET_WORDS or _REFERENCE.fullmatch(value)


_SAMPLE: Final = Pattern(
    r".*(?:[xX]{6}|\*{4}|\.\.\.|…|EXAMPLE|[yY]our|YOUR|[pP]laceholder|0{12}|1234567890abcdef|abcdefghij).*"
)


def is_sample(token: str) -> bool:
    """Whether a token is only a sample: sk-xxxxxxxxxxxxxxxxxxxx, AKIAIOSFODNN7EXAMPLE."""
    return _SAMPLE.fullmatch(token)


def is_code(value: str) -> bool:
    """Whether a value is an identifier made of words, an attribute or a call."""
    return _CODE.fullmatch(value)


def is_uuid(value: str) -> bool:
    return len(value) in (36, 38) and _UUID.fullmatch(value)


def is_hex(value: str) -> bool:
    return _HEX.fullmatch(value)


def is_made_of_words(value: str) -> bool:
    """Whether a value is words and numbers joined by dashes or underscores."""
    return all(not part or _WORD.fullmatch(part) for part in value.rstrip("=").replace("_", "-").split("-"))


def is_lower_alphanumeric(value: str) -> bool:
    """Whether a value is base36 in one case, with at least three digits."""
    plain = value.replace("-", "").replace("_", "").replace("=", "")
    return plain.isalnum() and plain in (plain.lower(), plain.upper()) and sum(map(str.isdecimal, plain)) >= 3


def has_digit(value: str) -> bool:
    return any(char.isdecimal() for char in value)


def has_letter(value: str) -> bool:
    return any(char.isalpha() for char in value)


def is_not_a_word(value: str) -> bool:
    """Whether a value has a digit, a symbol, or mixed case beyond its first letter."""
    inner = value[1:]
    return (
        has_digit(value)
        or (value != value.lower() and inner != inner.lower() and value != value.upper())
        or any(not char.isalnum() and char not in "-_.'" for char in value)
    )


def shannon_entropy(value: str) -> float:
    """Shannon entropy, in bits per character."""
    total = len(value)
    return -sum(count / total * log2(count / total) for count in Counter(value).values()) if total else 0.0


def class_change_rate(value: str) -> float:
    """How often the class (small, capital, digit, other) changes between neighbours, from 0 to 1.

    About .6 for random base62, .2 to .35 for camelCase with a number, less for words.
    """
    if len(value) < 2:
        return 0.0
    classes = [0 if char.islower() else 1 if char.isupper() else 2 if char.isdecimal() else 3 for char in value]
    return sum(left != right for left, right in pairwise(classes)) / (len(value) - 1)
