"""Personal data that is not a bare number: company codes and e-mail addresses."""

from collections.abc import Iterator
from typing import Final

from sync.redaction.checksums import is_company
from sync.redaction.engine import Pattern
from sync.redaction.model import COMPANY, EMAIL, Span

_COMPANY: Final = Pattern(r"[0-9A-Ya-y][0-9A-Ya-y][0-9]{6}[0-9A-Ya-y]{10}")
# RFC 5321 lengths; the local part as providers give it out. The domain's last label has letters only.
_EMAIL: Final = Pattern(
    r"[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.){1,8}[A-Za-z]{2,24}"
)
_SPOKEN_EMAIL: Final = Pattern(
    r"(?i)[a-z0-9_][a-z0-9._%+\-]{0,63} ?[\[({] ?at ?[\])}] ?[a-z0-9\-]{1,63}"
    r"(?:(?: ?[\[({] ?dot ?[\])}] ?|\.)[a-z0-9\-]{2,63}){1,4}"
)
# name@2x.png is a picture for dense screens, git@host: is a way to write a repository.
_FILE_ENDINGS: Final = frozenset("png jpg jpeg gif svg webp ico js ts css json py md txt".split())
_SERVICE_USERS: Final = frozenset({"git", "hg", "svn"})


def company_codes(text: str) -> Iterator[Span]:
    """Unified social credit codes (GB 32100-2015), upper or lower case."""
    for (start, end), *_ in _COMPANY.every(text):
        if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])) and is_company(text[start:end]):
            yield Span(start, end, COMPANY)


def emails(text: str) -> Iterator[Span]:
    """Addresses, and the spoken form name(at)host(dot)com."""
    if "@" in text:
        for (start, end), *_ in _EMAIL.every(text):
            local, _, domain = text[start:end].partition("@")
            if domain.rpartition(".")[2].lower() in _FILE_ENDINGS:
                continue
            if local in _SERVICE_USERS and text[end : end + 1] in (":", "/"):
                continue
            yield Span(start, end, EMAIL)
    for (start, end), *_ in _SPOKEN_EMAIL.every(text):
        yield Span(start, end, EMAIL)


def _is_word(char: str) -> bool:
    return char.isascii() and char.isalnum()
