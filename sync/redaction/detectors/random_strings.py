"""Strings that look random although nothing names them: the last resort.

Most random-looking strings are not secret: hashes, UUIDs, identifiers, checksums, pictures in base64. So a string must
have letters of both cases and digits, distributed like random base62, be outside paths and data, and not belong to one
of the families below. A word such as key or 令牌 on the same line lowers the threshold.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import Final

from sync.redaction.model import KEY, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import skip_escape
from sync.redaction.rules.secret_names import identifier_words, word_set
from sync.redaction.rules.value_tests import class_change_rate, has_digit, is_made_of_words, is_sample, shannon_entropy

_RUN: Final = Pattern(r"[A-Za-z0-9_\-+/]{20,}={0,2}")
_HINT: Final = Pattern(
    r"(?i).*(?:\bkeys?\b|_key|apikey|api key|token|secret|passw|pwd|\bauth|credential|bearer"
    r"|密|令牌|凭证|凭据|口令|授权|鉴权|钥).*"
)
_LONGEST: Final = 128  # characters; longer strings are data
_HINT_DISTANCE: Final = 32  # characters before a string to search for a hint
_MIN_LENGTH_WITH_HINT: Final = 20  # characters
_MIN_LENGTH_ALONE: Final = 32
# Prefixes of pictures, archives, public keys and certificates in base64, of checksums, and of ids of APIs.
_KNOWN_PREFIXES: Final = (
    *("iVBOR", "/9j/", "R0lGOD", "UklGR", "PHN2Zy", "Qk0", "AAABAA", "JVBERi", "UEsDB", "H4sI", "AAAAB3NzaC1", "MII"),
    *("AAAAC3NzaC1", "AAAAE2VjZHNh", "sha1-", "sha256-", "sha384-", "sha512-", "Qm", "bafy", "http"),
    *("msg_", "req_", "toolu_", "chatcmpl-", "run_", "thread_", "asst_", "file-", "resp_", "call_", "evt_", "cus_"),
    *("pi_", "sub_", "in_", "ch_", "pm_", "price_", "prod_", "pk_", "sb_publishable_", "phc_", "org-", "user-"),
)
_HARMLESS_NAMES: Final = word_set(
    """
    id ids url uri public pub csrf xsrf primary foreign hash sum checksum sha digest integrity etag nonce revision
    commit cid trace span fingerprint thumbprint
    """
)
_IDENTIFIER: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_SUMS: Final = ("h1:", "sha1:", "sha256:", "sha384:", "sha512:", "base64,", "md5:", "etag: ", "nonce-")


def random_strings(text: str) -> Iterator[SecretSpan]:
    """Strings that look like a generated secret."""
    for (begun, end), *_ in _RUN.find_all(text):
        start = skip_escape(text, begun)
        run = text[start:end]
        if (
            end - start > _LONGEST
            or run.startswith(_KNOWN_PREFIXES)
            or text[max(0, start - 8) : start].lower().endswith(_SUMS)
        ):
            continue
        if (
            _is_in_path(text, start, end, run)
            or is_made_of_words(run)
            or is_sample(run)
            or _has_harmless_name(text, start)
        ):
            continue
        if _is_random(
            run, min_length=_MIN_LENGTH_WITH_HINT if _has_hint(text, start) else _MIN_LENGTH_ALONE
        ) and not _is_encoded_text(run):
            yield SecretSpan(start, end, KEY)


def _has_hint(text: str, start: int) -> bool:
    before = text[max(0, start - _HINT_DISTANCE) : start].rpartition("\n")[2]
    return _HINT.fullmatch(before)


def _is_random(run: str, *, min_length: int) -> bool:
    core = run.rstrip("=").replace("-", "").replace("_", "")
    if len(core) < min_length or not has_digit(core):
        return False
    if core in (core.lower(), core.upper()):
        return False
    return class_change_rate(core) >= 0.42 and shannon_entropy(core) >= (3.6 if len(core) < _MIN_LENGTH_ALONE else 4.0)


def _is_in_path(text: str, start: int, end: int, run: str) -> bool:
    """Whether a string is part of the path of a URL or file."""
    before = text[max(0, start - 200) : start]
    word = before[len(before.rstrip("".join(map(chr, range(33, 127))))) :]
    if "://" in word:
        return not word.endswith("=") or end - start < _MIN_LENGTH_ALONE
    if word.endswith(("/", "\\")) or (text[end : end + 1] in ("/", ".", "\\") and text[end + 1 : end + 2].isalnum()):
        return True
    return any(len(part) >= 4 and part.isalpha() and is_made_of_words(part) for part in run.split("/")[:-1])


def _has_harmless_name(text: str, start: int) -> bool:
    """Whether a harmless name is assigned: publicToken = …, credentialId: …"""
    before = text[max(0, start - 60) : start].rstrip("\"'` \\")
    if before[-1:] not in ("=", ":"):
        return False
    name = before.rstrip("=: ").rstrip("\"'` \\")
    identifier = name[len(name.rstrip(_IDENTIFIER)) :]
    return not _HARMLESS_NAMES.isdisjoint(identifier_words(identifier))


def _is_encoded_text(run: str) -> bool:
    """Whether a string is base64 of readable text, which is not a key."""
    try:
        decoded = b64decode(run + "=" * (-len(run) % 4), validate=True).decode()
    except (NotBase64, UnicodeDecodeError, ValueError):
        return False
    return decoded.isprintable()
