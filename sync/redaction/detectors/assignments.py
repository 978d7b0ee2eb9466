"""Assignments of secrets: a name, an operator and a value. Only the value is replaced.

The pattern finds the name and the operator. The value is judged in Python, because all three count: `password: hunter2`
is a secret, `password: required` is a schema, 密码是必填项 is prose. The first `_LONGEST` characters decide for a value
of any length.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sync.redaction.model import CODE, KEY, PASSWORD, TOKEN, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import may_end
from sync.redaction.rules.secret_names import (
    CHINESE_NAMES,
    HARMLESS_PREFIXES,
    HARMLESS_SUFFIXES,
    LATIN_NAMES,
    SHORT_NAMES,
    WEAK_NAMES,
    WEAK_WORDS,
    identifier_words,
)
from sync.redaction.rules.value_scoring import SecretCandidate, is_secret
from sync.redaction.rules.value_spans import ValueSpans, strip_punctuation
from sync.redaction.rules.value_tests import has_digit

_CLOSING: Final = r"(?:\\?[\"'`”’」』】\])）]|[*_]{2})"
_ADVERBS: Final = (
    "(?:现在|目前|暂时|默认|初始|已经?|都|就|还|也|一直|应该|大概|可能|临时|我|给你|帮我|一下|先|仍然|依然|统一|全部?)"
)
_COPULAS: Final = (
    "(?:是|为|叫|等于|(?:改|换|设|设置|设定|重置|更新|变)(?:成|为)了?|成了|用的?是|填的?是?|用|如下|发你|给你)"
)
_TYPE: Final = r"[A-Za-z][A-Za-z0-9_\[\]|.]*[?!]?"
_SYMBOL: Final = (
    rf"[ \t]*:[ \t]*(?:{_TYPE}[ \t]+|str|string)=[ \t]*|[ \t]+(?:string|str)[ \t]*:?=[ \t]*"
    r"|[ \t]*(?:=>|:{0,3}=|\?{1,2}=|[.+]=|={2,3}|->|→)[ \t]*|[ \t]*:[ \t]*(?:[|>][\-+]?)?\s*"
    r"|[ \t]*(?:&#0*(?:58|61);|&#x0*3[aAdD];|&(?:equals|colon);|%3[aAdD])[ \t]*"
    r"|>\s*|\s+value[ \t]*[:=][ \t]*|,\s*\\?[\"']?value\\?[\"']?[ \t]*[:=][ \t]*"
)
_COPULA: Final = (
    rf"[ \t]?{_ADVERBS}*[ \t]?{_COPULAS}[ \t]*[:,，]?\s*|[ \t]+(?:is|are|was|shi|wei)[ \t]*:?[ \t]+|'s[ \t]+|は[ \t]*"
    r"|[ \t]+(?:for|of|on)[ \t]+(?:the |my |our )?[\w.@\-]{1,40}(?: [a-z]{2,12})?(?:[ \t]*:|[ \t]+is)[ \t]+"
)


def _groups(names: tuple[tuple[str, str], ...], first: int) -> str:
    return "|".join(f"(?P<n{first + index}>{alternatives})" for index, (_, alternatives) in enumerate(names))


# Groups: 1-4 a Chinese name, 5-8 a Latin one, 9 a weak one, 10 its suffix, 11 what closes it, then the operator.
_NAME_AND_OPERATOR: Final = Pattern(
    rf"(?i)(?:(?:{_groups(CHINESE_NAMES, 1)})(?:号码?|值|串)?(?:的? ?(?:base64|hex|十六进制)(?:编码|值)?)?"
    rf"|(?:{_groups(LATIN_NAMES, 5)}|(?P<weak>{WEAK_NAMES}))(?P<suffix>[A-Za-z0-9_.\-]*)(?:\[[0-9]*\])?)"
    rf"(?P<closing>{_CLOSING}*(?:[ ]?[（(][^()（）\n\"'`]*[)）])?)"
    rf"(?:(?P<symbol>{_SYMBOL})|(?P<copula>{_COPULA})|(?P<list>[ \t]*,[ \t]*|\([ \t]*)"
    r"|(?P<blank>[ \t]+[|][ \t]+|[ \t]*))"
)
_KINDS: Final = dict(enumerate((kind for kind, _ in (*CHINESE_NAMES, *LATIN_NAMES)), 1))
_FIRST_LATIN, _WEAK, _SUFFIX, _CLOSED, _SYMBOLS, _IS, _LISTS = 5, 9, 10, 11, 12, 13, 14

_QUOTES: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "《": "》", "【": "】"}
_LONGEST: Final = 1_000  # characters of a value that are judged
# abc123是我的密码, "abc123" is my password; groups: the value, then the names as above.
_VALUE_BEFORE_NAME: Final = Pattern(
    r"(?i)([!-~]{6,200})[\"'`”’」]?[ \t]*(?:(?:就)?是|is|was)[ \t]*"
    r"(?:[^\s!-~，。；！？]{0,10}|(?:(?:my|the|our|your|this|new|old|[a-z]{2,12})[ \t]+){0,3})"
    rf"(?:{_groups(CHINESE_NAMES, 1)}|{_groups(LATIN_NAMES, 5)})"
)
_CODE_FIRST: Final = Pattern(
    r"(?i)(?:^|[^0-9A-Za-z.\-/])([0-9]{4,8})[ \t]?(?:[（(【\[][^\n）)】\]]{0,10}|(?:是|为|is|as)[^\n。.，,]{0,24}?)"
    r"(?:验证码|校验码|动态码|(?:verification|security|login|confirmation|access)? ?code\b|\botp\b)"
)


class _ValueSpan(NamedTuple):
    start: int
    end: int
    quoted: bool


def assignments(text: str) -> Iterator[SecretSpan]:
    """Values of named secrets, in prose, configuration and code."""
    runs, done = ValueSpans(text), 0
    for groups in _NAME_AND_OPERATOR.find_all(text):
        if groups[0][1] < done:  # a name inside a value
            continue
        value = _value_at(text, groups[0][1], runs)
        claim = _candidate(text, groups) if value else None
        if claim is None or value is None:
            continue
        if claim.operator == "list" and not value.quoted:
            continue
        written = text[value.start : min(value.end, value.start + _LONGEST)]
        after = text[value.end : value.end + 12]
        if "\n" in text[groups[_SYMBOLS][0] : groups[_SYMBOLS][1]] and not _fills_line(written, after):
            continue
        if is_secret(claim, written, quoted=value.quoted, after=after):
            done = value.end
            yield SecretSpan(value.start, value.end, claim.kind)


def reversed_assignments(text: str) -> Iterator[SecretSpan]:
    """Values that come before their names: abc123 是我的密码, 123456 is your verification code."""
    for groups in _VALUE_BEFORE_NAME.find_all(text):
        if not may_end(text, groups[0][1]):
            continue
        start, end = strip_punctuation(text, *groups[1])
        kind = next(kind for group, kind in enumerate(_BACK_KINDS, 2) if groups[group][0] >= 0)
        if is_secret(SecretCandidate(kind, "backwards"), text[start:end], quoted=False, after=""):
            if start == groups[1][0]:  # the value may be longer than the 200 characters of the pattern
                start = _start_of_run(text, start)
            yield SecretSpan(start, end, kind)
    for _, (start, end) in _CODE_FIRST.find_all(text):
        yield SecretSpan(start, end, CODE)


def _start_of_run(text: str, at: int) -> int:
    """The start of the visible ASCII before `at`, up to an opening quote."""
    while at > 0 and "!" <= text[at - 1] <= "~" and text[at - 1] not in "\"'`":
        at -= 1
    return at


_BACK_KINDS: Final = tuple(_KINDS.values())


def secret_kind(name: str, value: str) -> str | None:
    """The kind of secret of a JSON value under a key, or None."""
    quoted = f'"{name}": '
    for groups in _NAME_AND_OPERATOR.find_all(quoted):
        claim = _candidate(quoted, groups)
        if claim and groups[0][1] == len(quoted) and is_secret(claim, value, quoted=True, after=""):
            return claim.kind
    return None


def _candidate(text: str, groups: tuple[tuple[int, int], ...]) -> SecretCandidate | None:
    """The candidate that name and operator make; None if the name is not a secret's."""
    which = next(group for group in (*_KINDS, _WEAK) if groups[group][0] >= 0)
    start, end = groups[which]
    operator = _operator(groups)
    if which < _FIRST_LATIN:
        return SecretCandidate(_KINDS[which], operator, is_chinese=True)
    name, suffix = text[start:end], text[groups[_SUFFIX][0] : groups[_SUFFIX][1]]
    kind, weak = _KINDS.get(which, KEY), which == _WEAK
    if not _is_secret_name(text, start, name, suffix, short=weak or name.lower() in SHORT_NAMES):
        return None
    said = identifier_words(suffix)
    if operator == "blank" and _is_option(text, start):
        operator = "symbol"
    strong = next((word for word in reversed(said) if word in _STRONG_WORDS), None)
    if weak and strong:
        kind, weak = _STRONG_WORDS[strong], False
    if any(word in HARMLESS_SUFFIXES for word in said) or (weak and said and operator == "list"):
        return None
    if (suffix.startswith(".") and not weak and (not said or said[-1] not in _STRONG_WORDS)) or (
        operator == "blank" and (name.lower() in SHORT_NAMES or groups[0][1] == groups[_CLOSED][1])
    ):
        return None
    return SecretCandidate(
        kind,
        operator,
        is_weak=weak,
        is_service=weak and name.lower() not in WEAK_WORDS,
        has_suffix=bool(said),
        is_shell_assignment=text[groups[_SYMBOLS][0] : groups[_SYMBOLS][1]] in ("=", ":="),
    )


def _is_option(text: str, start: int) -> bool:
    """Whether the name is an option with an argument: --password x, --db-password x, -storepass x."""
    before = text[max(0, start - _LONGEST_OPTION) : start]
    begun = before[len(before.rstrip(_OPTION)) :]
    return begun.startswith("--") or (begun == "-" and before[-2:-1] in ("", " ", "\t", "\n"))


_LONGEST_OPTION: Final = 40  # characters
_OPTION: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"


def _operator(groups: tuple[tuple[int, int], ...]) -> str:
    used = (name for group, name in ((_SYMBOLS, "symbol"), (_IS, "copula"), (_LISTS, "list")) if groups[group][0] >= 0)
    return next(used, "blank")


def _fills_line(value: str, after: str) -> bool:
    """Whether a value below its name fills the line and is not a word."""
    return has_digit(value) and after.lstrip("\"'`* ")[:1] in ("", "\n", "\r", "<", "}")


_STRONG_WORDS: Final = {
    **dict.fromkeys(("password", "passwd", "pwd", "pass"), PASSWORD),
    **dict.fromkeys(("key", "secret", "apikey", "credentials", "creds"), KEY),
    **dict.fromkeys(("token", "jwt", "pat"), TOKEN),
}


def _is_secret_name(text: str, start: int, name: str, suffix: str, *, short: bool) -> bool:
    """Whether this is a whole name, and a secret's."""
    before = text[max(0, start - 24) : start]
    if short and before[-1:].isascii() and before[-1:].isalpha() and not (name[0].isupper() and before[-1].islower()):
        return False
    if suffix[:1].isalpha() and suffix[0].islower() == name[-1].islower() and suffix != "s":
        return False
    if name.lower() == "tokens" or (suffix == "s" and name.lower() == "token"):
        return False
    if before[-1:] not in ("_", "-", ".", " ") and not (before[-1:].isalpha() and name[0].isupper()):
        return True
    owner = identifier_words(before[-20:])[-1:]
    return not owner or owner[0] not in HARMLESS_PREFIXES


def _value_at(text: str, at: int, spans: ValueSpans) -> _ValueSpan | None:
    """The value at `at`: a quoted string or a run of visible ASCII."""
    limit = min(len(text), at + _LONGEST)
    while at < limit and text[at] in "*\\@" and text[at + 1 : at + 2] in ("*", '"', "'", "`"):
        at += 1
    if text[at : at + 1] == "*":
        at += 1
    closing = _QUOTES.get(text[at : at + 1])
    if closing:
        end = text.find(closing, at + 1, limit)
        if end > at + 1 and "\n" not in text[at + 1 : end]:
            end -= text[end - 1] == "\\"
            return _ValueSpan(at + 1, end, quoted=True)
        at += 1
    start, end = spans.span_at(at)
    if start == end and (phrase := _CHINESE_VALUE.match(text[at : at + _LONGEST_PHRASE])):
        return _ValueSpan(at, at + phrase[1][1], quoted=False)
    if closing and end - start >= _LONGEST:
        end = max(end, _closing_quote(text, end, closing))
    return _ValueSpan(start, end, quoted=False) if end > start else None


_LONGEST_PHRASE: Final = 24  # characters
_CHINESE_VALUE: Final = Pattern(r"(\p{Han}{2,12}[0-9]{1,8}[!@#]?)(?:[\s，。；！、,.;]|$)")  # 天王盖地虎123


def _closing_quote(text: str, at: int, closing: str) -> int:
    """The closing quote on this line; `at` if there is none."""
    end = text.find(closing, at)
    return end if end >= 0 and "\n" not in text[at:end] else at
