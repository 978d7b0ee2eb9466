"""The formats of known tokens, read from `token_formats.txt`: issuer, kind, prefix, and what follows.

The formats are from the issuers' documentation or, if that is silent, from the public rules of secret scanners
(gitleaks `config/gitleaks.toml` v8, detect-secrets 1.5 plugins, GitHub's list of partner patterns). If a prefix is
unmistakable, lengths are minimal ones, because issuers lengthen their tokens without notice. Publishable keys
(sb_publishable_, pk_live_, phc_) are public by design and not listed.
"""

from importlib.resources import files
from typing import Final, NamedTuple

from sync.redaction.model import KEY, PASSWORD, TOKEN

_KINDS: Final = {"KEY": KEY, "PASSWORD": PASSWORD, "TOKEN": TOKEN}


class TokenFormat(NamedTuple):
    """A literal prefix, and a google-re2 pattern of what must follow it."""

    issuer: str
    kind: str
    prefix: str
    rest: str


class MarkedTokenFormat(NamedTuple):
    """A literal mark inside a token, and the pattern of the whole token."""

    issuer: str
    kind: str
    mark: str
    pattern: str


def _rows(section: str) -> list[list[str]]:
    lines = section.splitlines()[1:]
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


_, _PREFIXES, _MARKS = files(__package__).joinpath("token_formats.txt").read_text("utf-8").split("\n## ")
PREFIXED_FORMATS: Final = tuple(
    TokenFormat(issuer, _KINDS[kind], prefix, rest)
    for issuer, kind, prefixes, rest in _rows(_PREFIXES)
    for prefix in prefixes.split()
)
MARKED_FORMATS: Final = tuple(
    MarkedTokenFormat(issuer, _KINDS[kind], mark, pattern) for issuer, kind, mark, pattern in _rows(_MARKS)
)
