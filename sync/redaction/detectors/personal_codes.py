"""Company codes, e-mail addresses, and numbers introduced by a word."""

import re
from collections.abc import Iterator
from typing import Final

from sync.redaction.model import BANK_CARD, COMPANY, EMAIL, IDENTITY, LANDLINE, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import skip_escape
from sync.redaction.rules.checksums import is_company_code
from sync.redaction.rules.pattern_rules import PatternRule, find_values

_COMPANY: Final = Pattern(r"[0-9A-Ya-y]{2}(?:[0-9]{6}|[ \-][0-9]{6}[ \-])[0-9A-Ya-y]{10}")
# RFC 5321 lengths; the local part as providers give it out. The domain's last label has letters only.
_EMAIL: Final = Pattern(
    r"[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.){1,8}[A-Za-z]{2,24}"
)
_SPOKEN_EMAIL: Final = Pattern(
    r"(?i)[a-z0-9_][a-z0-9._%+\-]{0,63} ?[\[({] ?at ?[\])}] ?[a-z0-9\-]{1,63}"
    r"(?:(?: ?[\[({] ?dot ?[\])}] ?|\.)[a-z0-9\-]{2,63}){1,4}"
)
# With spaces around the sign, a plain word is not an address: zhang_san @ qq.com is one, me @ home.com is not.
_WIDE_EMAIL: Final = Pattern(
    r"[A-Za-z0-9]+(?:[._+\-][A-Za-z0-9]+|[0-9]+)[A-Za-z0-9._+\-]{0,40} {1,2}@ {1,2}"
    r"(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}\.){1,4}[A-Za-z]{2,24}"
)
# name@2x.png is a picture for dense screens, git@host: is a way to write a repository.
_FILE_ENDINGS: Final = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "ts", "css", "json", "py", "md")
)
_SERVICES: Final = frozenset({"openssh.com", "libssh.org"})  # names of algorithms: sk-ssh-…@openssh.com
_SERVICE_USERS: Final = frozenset({"git", "hg", "svn"})


# A word names the number, so its check digit may be wrong. Groups by kind.
_LABELLED_NUMBER: Final = Pattern(
    r"(?i)(?:身份证字?(?:号码?|件号)?|证件号码?|(?:id|identity) ?card(?: (?:no|number))?)[^0-9a-z\n]{0,8}"
    r"(?P<identity>[0-9]{6}[ \-]?[0-9]{8}[ \-]?[0-9]{3}[0-9x]|[0-9]{15}|[a-z][1289][0-9]{8}"
    r"|[a-z]{1,2}[0-9]{6} ?\(?[0-9a]\)?)"
    r"|(?:(?:银行|信用|储蓄|借记|工资)卡(?:号码?)?|卡号|银行账[号户]|card(?: (?:no|number))?|iban)[^0-9a-z\n]{0,8}"
    r"(?P<card>[0-9](?:[ \-]?[0-9]){14,18}|[a-z]{2}[0-9]{2}(?: ?[0-9a-z]){11,30})"
    r"|(?:信用代码|税号|纳税人识别号)[^0-9a-z\n]{0,8}(?P<company>[0-9a-z]{15,20})"
    r"|(?:电话|座机|固话|传真|热线|tel|phone|fax)[^0-9a-z\n]{0,6}"
    r"(?P<landline>\(?0[0-9]{2,4}\)?[ \-]?[0-9]{3,4}[ \-]?[0-9]{3,4})"
)
_LABELLED: Final = (PatternRule(_LABELLED_NUMBER, (IDENTITY, BANK_CARD, COMPANY, LANDLINE), ends=True),)
_CODES: Final = (
    PatternRule(
        _COMPANY, (COMPANY,), begins=True, ends=True, is_value=lambda code: is_company_code(re.sub("[ -]", "", code))
    ),
)
_ADDRESSES: Final = (PatternRule(_WIDE_EMAIL, (EMAIL,)), PatternRule(_SPOKEN_EMAIL, (EMAIL,)))


def labelled_numbers(text: str) -> Iterator[SecretSpan]:
    """Identity, card, company and landline numbers right behind the word for them, whatever their check digit."""
    return find_values(text, _LABELLED)


def company_codes(text: str) -> Iterator[SecretSpan]:
    """Unified social credit codes (GB 32100-2015), upper or lower case."""
    return find_values(text, _CODES)


def emails(text: str) -> Iterator[SecretSpan]:
    """Addresses, and the spoken form name(at)host(dot)com."""
    if "@" in text:
        for (begun, end), *_ in _EMAIL.find_all(text):
            start = skip_escape(text, begun)
            local, _, domain = text[start:end].partition("@")
            if domain.rpartition(".")[2].lower() in _FILE_ENDINGS or domain in _SERVICES:
                continue
            if local in _SERVICE_USERS and text[end : end + 1] in (":", "/"):
                continue
            yield SecretSpan(start, end, EMAIL)
    yield from find_values(text, _ADDRESSES if "@" in text else _ADDRESSES[1:])
