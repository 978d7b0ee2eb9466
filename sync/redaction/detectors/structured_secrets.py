"""Values whose name is on another line: tables, questions and answers, .pgpass, Kubernetes Secrets."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import Final

from sync.redaction.detectors.wrapped_secrets import credentials_in_urls
from sync.redaction.model import CODE, KEY, PASSWORD, TOKEN, SecretSpan
from sync.redaction.normalised_text import BARRIER
from sync.redaction.pattern import Pattern
from sync.redaction.rules.secret_names import CHINESE_NAMES, LATIN_NAMES, word_set
from sync.redaction.rules.value_spans import strip_punctuation
from sync.redaction.rules.value_tests import has_digit, has_letter, is_code, is_not_a_word, is_reference

_SECRETS: Final = tuple((kind, names) for kind, names in (*CHINESE_NAMES, *LATIN_NAMES) if kind != CODE)
_KINDS: Final = (PASSWORD, KEY, TOKEN) * 2

# A column's head that is exactly a secret's name, and one that names the owner.
_NAMES: Final = "(?:" + "|".join(f"({names})" for _, names in _SECRETS) + ")"
_COLUMN_HEAD: Final = Pattern(
    rf"(?i)[*_` ]*(?:登[录陆]|管理员?|初始|默认|数据库|new |user |admin |login |default |initial )?{_NAMES}[*_` ]*"
)
_OWNER_COLUMN_HEAD: Final = Pattern(
    r"(?i).*(?:用户|账号|帐号|账户|帐户|姓名|登录名|主机|服务器|系统|平台|网站|邮箱"
    r"|user|login|account|e-?mail|host|server|system|site|database).*"
)
_LONGEST_CELL: Final = 200  # characters
_PAIR: Final = 2  # cells: a name and its value
_SHORTEST_NUMBER: Final = 6  # digits of a numeric password
_ROWS: Final = Pattern(r"(?m)^[ \t>]*\|.*\|.*$")

_QUESTION: Final = Pattern(
    r"(?mi)^[ \t>*\-]*(?:(?:用户|user|me|我)?[ ]?(?:问题?|question|q)|user|human|用户|我)\**[ ]?[:：]\**[^\n]{0,80}?"
    rf"{_NAMES}[^\n{BARRIER}]{{0,40}}\n\s{{0,8}}[ \t>*\-]*"
    r"(?:(?:ai|我|assistant)?[ ]?(?:回?答案?|answer|a)|assistant|ai|bot|助手|小白)\**[ ]?[:：]\**[ \t]*"
    r"(?:应该是|就是|是|它是|it'?s |it is |the password is )?[ ]?[`\"'“「]?([!-~]{4,})"
)
# 密码是 abc1: a question that contains the value asks for none.
_STATED_VALUE: Final = Pattern(r"(?i)[`*]*[ ]?(?:就?是|为|is|[:：=])[ ]?[!->@-~]*[0-9][!->@-~]*(?:[^!-~][^?？吗]*)?")
_SECRET_NAME: Final = Pattern("(?i)" + "|".join(names for _, names in _SECRETS))
# An exchange in the memory document was redacted when it was recorded. Redacting it again in the whole document, after
# an edit of the question, would make the server's copy differ from the devices' documents.
CAPTURED_EXCHANGE_PREFIX: Final = "- 用户问:"  # normalised text has ASCII punctuation
_PGPASS: Final = Pattern(
    r"(?m)^[ \t]*(?:\*|[A-Za-z0-9.\-]*[A-Za-z.][A-Za-z0-9.\-]*):(?:\*|[0-9]{4,5}):(?:\*|[A-Za-z_][\w\-]*):"
    r"(?:\*|[A-Za-z_][\w.\-]*):([^\s:]{4,})[ \t]*\r?$"
)
_FILES: Final = word_set(".py: .js: .ts: .go: .c: .h: .cpp: .rs: .java: .rb: .php: .md: .sh:")

_SECRET_KIND: Final = Pattern(r"(?m)^[ \t>]*[\"']?kind[\"']?[ ]*:[ ]*[\"']?Secret\b")
_ENCODED: Final = Pattern(r"(?:^|[^A-Za-z0-9+/=_\-.])([A-Za-z0-9+/]{8,}={0,2})")
_SCHEME_MARKS: Final = ("Oi8v", "ovL", "6Ly")  # :// in base64, at each of the three places of a group
_ENTRY: Final = Pattern(r"(?m)^[ \t]+[\w.\-]+:[ ]*[\"']?([A-Za-z0-9+/]{8,}={0,2})[\"']?[ ]*$")


def table_secrets(text: str) -> Iterator[SecretSpan]:
    """Cells of a Markdown table in a column that is named like a secret."""
    if "|" not in text:
        return
    columns: dict[int, str] = {}
    owned, last = False, -2
    for (start, end), *_ in _ROWS.find_all(text):
        cells = _cells(text, start, end)
        if start != last + 1:  # the first row of another table
            heads = [(text[first:stop], at) for at, (first, stop) in enumerate(cells)]
            columns = {at: kind for head, at in heads if (kind := _kind_of_column(head))}
            if (
                len(cells) == _PAIR
                and 0 in columns
                and has_digit(value := text[slice(*cells[1])])
                and _is_secret_cell(value, has_owner_column=False)
            ):
                yield SecretSpan(*cells[1], columns[0])
            owned = any(
                at not in columns and len(head) <= _LONGEST_CELL and _OWNER_COLUMN_HEAD.fullmatch(head)
                for head, at in heads
            )
        else:
            for at, kind in columns.items():
                if at < len(cells) and _is_secret_cell(text[slice(*cells[at])], has_owner_column=owned):
                    yield SecretSpan(*cells[at], kind)
        last = end


def answered_secrets(text: str) -> Iterator[SecretSpan]:
    """The answer on the line after a question: 问：密码多少？ 答：…"""
    for groups in _QUESTION.find_all(text):
        if text[slice(*groups[0])].lstrip().startswith(CAPTURED_EXCHANGE_PREFIX):
            continue
        start, end = strip_punctuation(text, *groups[-1])
        value = text[start:end]
        kind, named = next(named for named in zip(_KINDS, groups[1:], strict=False) if named[1][0] >= 0)
        if _STATED_VALUE.fullmatch(text[named[1] : text.index("\n", named[1])]):
            continue
        if is_not_a_word(value) and has_digit(value) and not is_reference(value) and not is_code(value):
            yield SecretSpan(start, end, kind)


def asks_for_secret(question: str) -> bool:
    """Whether a question asks for a secret."""
    return _SECRET_NAME.search(question)


def pgpass_passwords(text: str) -> Iterator[SecretSpan]:
    """The last field of host:port:database:user:password, the format of .pgpass."""
    for (start, _), (first, end) in _PGPASS.find_all(text):
        if not is_reference(text[first:end]) and not any(file in text[start:first] for file in _FILES):
            yield SecretSpan(first, end, PASSWORD)


def encoded_secrets(text: str) -> Iterator[SecretSpan]:
    """Credentials in base64, and the data of a Kubernetes Secret."""
    if _SECRET_KIND.search(text):
        for _, (start, end) in _ENTRY.find_all(text):
            if _decode_text(text[start:end]) is not None:
                yield SecretSpan(start, end, KEY)
    if not any(mark in text for mark in _SCHEME_MARKS):
        return
    for _, (start, end) in _ENCODED.find_all(text):
        decoded = _decode_text(text[start:end])
        if decoded and any(credentials_in_urls(decoded)):
            yield SecretSpan(start, end, KEY)


def _cells(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of a row's cells, without surrounding blanks and marks."""
    cells: list[tuple[int, int]] = []
    at = text.index("|", start, end) + 1
    while (stop := text.find("|", at, end)) >= 0:
        first, last = at, stop
        while first < last and text[first] in " \t*`_":
            first += 1
        while first < last and text[last - 1] in " \t*`":
            last -= 1
        cells.append((first, last))
        at = stop + 1
    return cells


def _kind_of_column(head: str) -> str | None:
    groups = _COLUMN_HEAD.match(head) if len(head) <= _LONGEST_CELL else None
    if groups is None or groups[0][1] != len(head):
        return None
    return next(kind for kind, group in zip(_KINDS, groups[1:], strict=True) if group[0] >= 0)


def _is_secret_cell(value: str, *, has_owner_column: bool) -> bool:
    """Whether a cell may be a secret: one word, of letters alone only if the table names the owner."""
    if not 4 <= len(value) <= _LONGEST_CELL or not value.isascii() or " " in value or is_reference(value):
        return False
    if is_code(value) or not value.strip("-:"):
        return False
    if not has_letter(value):
        return value.isdecimal() and len(value) >= _SHORTEST_NUMBER
    return has_digit(value) or (has_owner_column and (is_not_a_word(value) or value.isalpha()))


def _decode_text(written: str) -> str | None:
    """Decode text from base64; None if it is not text."""
    if len(written) % 4:
        return None
    try:
        decoded = b64decode(written, validate=True).decode()
    except (NotBase64, UnicodeDecodeError):
        return None
    return decoded if decoded.replace("\n", "").isprintable() else None
