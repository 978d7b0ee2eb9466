r"""Secrets in a form that identifies them: key blocks, the userinfo of URLs, HTTP headers, command lines.

Sources: RFC 7468 and RFC 4880 armour, PuTTY's key files; RFC 3986 userinfo; RFC 6750 bearer and RFC 7617 basic
credentials; the manuals of curl, mysql and sshpass.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import Final

from sync.redaction.model import KEY, PASSWORD, TOKEN, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.pattern_rules import PatternRule, find_values
from sync.redaction.rules.secret_names import identifier_words, word_set
from sync.redaction.rules.value_scoring import SecretCandidate, is_distinct, is_secret
from sync.redaction.rules.value_spans import strip_punctuation
from sync.redaction.rules.value_tests import has_digit, has_letter, is_code, is_reference

# A block may be quoted (>, *), be a string constant with \\n in it, or be cut off before its END line.
_BLOCK: Final = Pattern(
    r"(?i)-{2,5} ?BEGIN[ A-Z0-9_\-]{0,60}PRIVATE KEY(?: BLOCK)? ?-{2,5}"
    r"((?:\\[nr]|[\s>*|`\"',+\\]|[A-Z0-9+/=]|[\s>n][A-Z][A-Z\-]{1,20}: [^\n]{0,120})*)"
    r"(?:-{2,5} ?END[ A-Z0-9_\-]{0,60}PRIVATE KEY(?: BLOCK)? ?-{2,5})?"
)
_PUTTY: Final = Pattern(r"(?i)Private-Lines: ?[0-9]{1,3}((?:\s|[A-Za-z0-9+/=]|\\[nr])+)")

_USERINFO: Final = Pattern(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://([^\s/@:\"'<>?#]*):([^\s/\"'<>?]+)@[^\s@/]")
_USER_TOKEN: Final = Pattern(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://([A-Za-z0-9_\-]{16,})@[^\s@/]")
_BEARER: Final = Pattern(r"(?i)\bbearer[\s:=\"']{1,4}([A-Za-z0-9._~+/\-]{6,}={0,2})")
_AUTHORIZATION: Final = Pattern(
    r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
    r"(?:(?:bearer|basic|token|apikey|api-key|digest|negotiate|aws4-hmac-sha256)\s{1,3})?([^\s\"'`,;<>${}]{6,})"
)
_BASIC: Final = Pattern(r"(?i)\bbasic\s{1,3}([A-Za-z0-9+/]{8,}={0,2})")
# An option for a password, then the password in quotes or as one word. A placeholder counts as one, so that a command
# is examined once.
_ARGUMENT: Final = (
    r"\bcurl\b[^\n]*?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:"
    r"|\b(?:mysql(?:dump|admin|import|show)?|mariadb(?:-dump)?)\b[^\n]*?\s-p|\bsshpass\s+-p\s{0,3}"
    r"|\bredis-cli\b[^\n]*?\s-a\s+|\b(?:docker|podman|az|oc|helm\s+registry)\s+login\b[^\n]*?\s-p\s+"
    r"|\bldap(?:search|add|modify)\b[^\n]*?\s-w\s+|\bhtpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+\S+\s+\S+\s+"
    r"|\b(?:7za?|rar|unrar)\s+[a-z]{1,2}(?:\s[^\n&|;]*?)?\s-p|(?:^|[\s;&|(`])(?:un)?zip(?:\s[^\n&|;]*?)?\s-P\s*|\bopenssl\s+enc\b[^\n&|;]*?\s-k\s+"
    r"|\bmongo(?:sh|dump|restore|export|import)\b[^\n&|;]*?\s-p\s+|\bmachine\s+\S+\s+login\s+\S+\s+password\s+"
    r"|\bnet\s+user\s+\S+\s+|\bsmbclient\b[^\n]*?\s-U\s*[^\s%]+%"
    r"|(?i:convertto-securestring(?:\s+-(?:string|asplaintext|force))*\s+|\brequirepass\s+|\bwith\s+password\s+"
    r"|\battach\s+database\s+\S+\s+as\s+\S+\s+key\s+|\bset\s+password\s+for\s+\S+\s*=\s*"
    r")"
)
_COMMANDS: Final = Pattern(
    rf"(?:{_ARGUMENT})"
    r"(?:'([^'\n]{3,200})'|\"([^\"\n]{3,200})\"|([^\s\"'/$\-][^\s\"']{3,})|\x{E000})"
    r"|(?i:\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+)[\"']([^\"'\n]{3,200})[\"']"
    r"|[\"']([^\"'\n]{4,200})[\"']\s*\|\s*(?i:convertto-securestring|docker\s+login|sudo\s+-\S*S)"
    r"|\becho\s+[\"']?[\w.\-]+:([^\s\"']{3,})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd"
    r"|\becho\s+[\"']?([^\s\"']{4,})[\"']?\s*\|\s*(?:sudo\s+-\S*S\b|docker\s+login|passwd\b)"
)


# BIP 39: twelve to twenty-four words of three to eight small letters. A passphrase has four or more.
_PHRASE: Final = Pattern(
    r"(?i)(?:助记词|mnemonic|(?:seed|recovery) phrase)[^a-z\n]{0,8}(?:is |are )?"
    r"((?-i:(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8}))"
    r"|passphrase[\"']?[:= ]{1,3}[\"']?((?-i:(?:[a-z]{2,12} ){3,11}[a-z]{2,12}))(?:[\"'\n]|$)"
)


_PHRASES: Final = (PatternRule(_PHRASE, (KEY, PASSWORD)),)
_PUTTY_KEYS: Final = (PatternRule(_PUTTY, (KEY,)),)
_USER_TOKENS: Final = (PatternRule(_USER_TOKEN, (TOKEN,), is_value=has_digit),)


def passphrases(text: str) -> Iterator[SecretSpan]:
    """Wallets' mnemonics and passphrases of several words."""
    return find_values(text, _PHRASES)


_NAMES: Final = "(?:password|passwd|pwd|passphrase|passcode)"
_NEW: Final = r"[`\"'“「]?([!-~]{6,200})"
_OLD: Final = rf"{_NEW}[`\"'”」]?"
# The former and the new password, and a value used as one.
_CHANGED: Final = Pattern(
    rf"(?i)\b(?:set|reset|chang(?:e|ed|ing)|updat(?:e|ed|ing)) (?:[a-z'’]{{2,12}} ){{0,3}}{_NAMES}"
    rf" (?:from {_OLD} )?to {_NEW}"
    rf"|\b{_NAMES} (?:(?:was|is|has been|got) )?(?:set|reset|changed|updated) (?:from {_OLD} )?to {_NEW}"
    rf"|\b(?:use|using) {_OLD} as (?:[a-z]{{2,12}} ){{0,2}}{_NAMES}\b"
    rf"|(?:密码|密碼|口令) ?[从由] ?{_OLD} ?(?:修?改|换|变|更新|重置)[成为到]了? ?{_NEW}"
    rf"|[用以拿] ?{_OLD} ?(?:作为|当作?|做) ?(?:新|我的|登录|默认|初始)?(?:密码|密碼|口令)"
)


def changed_passwords(text: str) -> Iterator[SecretSpan]:
    """The password was changed from … to …, 把密码从 … 改成 …, use … as the password."""
    for whole, *groups in _CHANGED.find_all(text):
        for span in groups:
            start, end = strip_punctuation(text, *span) if span[0] >= 0 else span
            after = text[end if end == whole[1] else whole[1] :][:12]
            if end > start and is_secret(
                SecretCandidate(PASSWORD, "copula"), text[start:end], quoted=False, after=after
            ):
                yield SecretSpan(start, end, PASSWORD)


def private_key_blocks(text: str) -> Iterator[SecretSpan]:
    """Private keys in PEM, OpenSSH, PGP and PuTTY form, whole or cut off."""
    for (start, end), (body, body_end) in _BLOCK.find_all(text):
        if sum(map(str.isalnum, text[body : min(body_end, body + 200)])) >= _SHORTEST_BODY:
            yield SecretSpan(start, end, KEY)
    yield from find_values(text, _PUTTY_KEYS)


def credentials_in_urls(text: str) -> Iterator[SecretSpan]:
    """The password of scheme://user:password@host, the token of https://token@host."""
    if "://" not in text:
        return
    for _, _, (start, end) in _USERINFO.find_all(text):
        if not is_reference(text[start:end]):
            yield SecretSpan(start, end, PASSWORD)
    yield from find_values(text, _USER_TOKENS)


def authorization_headers(text: str) -> Iterator[SecretSpan]:
    """Bearer and basic credentials, and the value of an Authorization header."""
    for pattern in (_BEARER, _AUTHORIZATION):
        for groups in pattern.find_all(text):
            start, end = groups[-1]
            value = text[start:end].rstrip(".,")
            named = pattern is _AUTHORIZATION or text[groups[0][0]] == "B"
            if _is_credential(value, is_named=named and not text[end : end + 1].isspace()) and not _is_expression(
                value
            ):
                yield SecretSpan(start, start + len(value), TOKEN)
    for groups in _BASIC.find_all(text):
        start, end = groups[1]
        if _is_user_and_password(text[start : min(end, start + _LONGEST_BASIC)]):
            yield SecretSpan(start, end, TOKEN)


# admin / Hunter2!: an account and its password, as manuals write them.
_ACCOUNT: Final = Pattern(
    r"(?i)(?:^|[^A-Za-z0-9/_.\-])[`\"'“]?(?:admin|administrator|root|sa)[`\"'”]?[ ]?[/:][ ]?[`\"'“]?([!-~]{5,64})"
)


_BOTH: Final = r"[ ]?[和/、与&+]?[ ]?(?:密码|口令|pass(?:word|wd)?|pwd)s?都?"
_ACCOUNT_NAME: Final = r"[`\"']?(?:[\w.@\-]{2,40}|\x{E000})[`\"']?"
# An account by its name, then its password behind a slash, comma or colon; behind a blank if both are named.
_NAMED_ACCOUNT: Final = Pattern(
    rf"(?i)(?:(?:账号|帐号|账户|用户名?|登[录陆])(?:{_BOTH})?|(?:account|login|user(?:name)?)(?:{_BOTH}|[:=])"
    rf"|credentials?|creds)[ ]?(?:[:=是为]|is|are)?[ ]{{0,2}}{_ACCOUNT_NAME}[ ]?[/:,，、][ ]?[`\"']?([!-~]{{5,64}})"
    rf"|(?i:(?:账号|帐号|账户|用户名?|account|login|user(?:name)?){_BOTH})[ ]?(?:[:=是为]|is|are)?[ ]{{1,2}}"
    rf"{_ACCOUNT_NAME}[ ]([!-~]{{5,64}})"
    r"|(?i:\b(?:sqlplus|expdp|impdp|rman)\s+(?:-\S+\s+)*[\"']?|jdbc:oracle:thin:)[\w.\-]{1,40}/([^\s@/\"']{4,64})@"
)


def account_passwords(text: str) -> Iterator[SecretSpan]:
    """The password behind its account: admin/Hunter2!, 账号密码：li / hunter2xyz, sqlplus scott/tiger1@db."""
    for _, named, blank, oracle in _NAMED_ACCOUNT.find_all(text):
        start, end = strip_punctuation(text, *max(named, blank, oracle))
        if oracle[0] >= 0 or is_distinct(text[start:end].replace("@", "_")):
            yield SecretSpan(start, end, PASSWORD)
    for _, span in _ACCOUNT.find_all(text):
        start, end = strip_punctuation(text, *span)
        value = text[start:end]
        symbols = any(char in value for char in "@!#$%^&*")
        if (has_digit(value) and has_letter(value) and value.isalnum() and value[0] not in "vV") or (
            symbols and has_digit(value) and "/" not in value
        ):
            yield SecretSpan(start, end, PASSWORD)


def command_line_passwords(text: str) -> Iterator[SecretSpan]:
    """Passwords as arguments of well-known programs."""
    for _, *groups in _COMMANDS.find_all(text):
        start, end = max(groups)
        if start >= 0 and not is_reference(text[start:end]):
            yield SecretSpan(start, end, PASSWORD)


_LONGEST_BASIC: Final = 400  # characters that are decoded: whole groups of four
_SHORTEST_BODY: Final = 16  # characters; fewer is prose about key files


def _is_credential(value: str, *, is_named: bool) -> bool:
    """Whether a value is not a word of a sentence (bearer authentication) and not a reference."""
    if is_reference(value) or value.lower().startswith(("token", "auth")):
        return False
    mixed = any(char.isdecimal() for char in value) or value.lower() not in (value, value[:1].lower() + value[1:])
    return mixed or len(value) >= 24 or (is_named and len(value) >= 6)


def _is_expression(value: str) -> bool:
    """Whether a value is code, such as process.env.TOKEN or get_token(). Three random parts a.b.c are a token."""
    if not is_code(value):
        return False
    parts = value.split(".")
    return (
        len(parts) != _JWT_PARTS
        or not value.replace(".", "").isalnum()
        or not _VARIABLE_WORDS.isdisjoint(identifier_words(value))
    )


_JWT_PARTS: Final = 3
_VARIABLE_WORDS: Final = word_set(
    """
    env environ process config settings self this token tokens key keys secret secrets request req response res data
    auth user session state props params ctx context store headers app import meta options access response args
    """
)


def _is_user_and_password(encoded: str) -> bool:
    try:
        return b":" in b64decode(encoded, validate=True)
    except NotBase64:
        return False
