"""The identity of an error: its text without what differs from run to run. Standard library only; hooks import it.

Removed: paths, line and column numbers, hexadecimal numbers, addresses, quoted names, times, position prefixes.
Chinese text stays.
"""

# ruff: noqa: E501 - long patterns
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

MAX_TEXT: Final = 20_000  # characters of an output that are examined, from its end: the error comes last
MAX_MESSAGE: Final = 500  # characters of a message that count
MAX_ERRORS: Final = 6  # errors in one output
KEY_DIGITS: Final = 24

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")
_QUOTED: Final = re.compile(
    r"(?<!\w)'([^'\n]{1,200})'(?!\w)|(?<!\w)\"([^\"\n]{1,200})\"(?!\w)|`([^`\n]{1,200})`"
    r"|“([^”\n]{1,200})”|‘([^’\n]{1,200})’|「([^」\n]{1,200})」"
)
_TIMES: Final = re.compile(
    r"\b\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
)
_ADDRESSES: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://\S+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\blocalhost:\d+\b|\[?::1?\]?:\d+", re.IGNORECASE
)
_PATHS: Final = re.compile(
    r"(?<![\w/])(?:[a-z]:[\\/]|~?/|\.{1,2}[\\/])[^\s:,;()'\"<>，。；：（）]*"  # absolute, or relative with a dot
    r"|(?<![\w/])[\w.@-]+(?:[\\/][\w.@-]+)+(?:\.\w+)?"  # src/api/routes.py
    r"|(?<![\w/.])[\w-]+\.(?:py|pyi|js|mjs|cjs|ts|tsx|jsx|vue|go|rs|java|kt|c|h|cc|cpp|cs|rb|php|sh|json|toml|ya?ml|lock)\b",
    re.IGNORECASE,
)
_HEX: Final = re.compile(
    r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{9,22}\b|\b(?=[a-f]*\d)[0-9a-f]{7,64}\b", re.IGNORECASE
)
_POSITIONS: Final = re.compile(
    r"\b(?:at )?(?:line|lines|col|column|char|row)s?[ :=#]*\d+(?:[-–,]\d+)?|第\s*\d+\s*(?:行|列|个字符)|\(\d+[,:]\d+\)|:\d+(?::\d+)?(?=[:\s)]|$)",
    re.IGNORECASE,
)
_AMOUNTS: Final = re.compile(
    r"\b\d{4,}\b|\b\d+(?:\.\d+)?\s*(?:ms|s|secs?|seconds?|[kmg]i?b|bytes?|%|毫秒|秒|字节)(?!\w)", re.IGNORECASE
)
_PREFIX: Final = re.compile(
    r"^(?:\[[^\]\n]{1,40}\]|\(node:\d+\)|E(?=\s{2,})|npm (?:ERR!|error)|warning|error|err|fatal|critical|info|debug|uncaught|unhandled"
    r"|致命错误|错误|异常)(?![\w一-鿿])[:：!]*\s*|^[\s:：,，.。>|*#-]+",
    re.IGNORECASE,
)

_TYPE: Final = r"[A-Za-z_][\w$]*(?:Error|Exception|Failure|Fault|Panic|Warning|NotFound|DoesNotExist|Refused|Timeout)"
_TYPED: Final = re.compile(
    rf"^(?:E\s+|Exception in thread \"[^\"]*\" |Caused by: |Uncaught (?:\(in promise\) )?|Unhandled exception[:.] )?"
    rf"(?:[\w$]+[.:]{{1,2}})*({_TYPE}|KeyboardInterrupt|SystemExit)(?:\s*\[[\w-]+\])?(?:[:：]\s*(.*))?$"
)
_CODED: Final = re.compile(
    r"^(?:.*?[:\s-])?\s*(?:error|错误)\s*\[?\s*((?:TS|E|CS|C|LNK|MSB|SQLSTATE)[\dA-Z]{3,6})\]?\s*[:：]\s*(.+)$",
    re.IGNORECASE,
)
_POSITIONED: Final = re.compile(
    r"^\s*(?:[A-Za-z]:)?[\w./\\@-]+\.\w{1,5}[:(]\d+(?:[:,]\d+)?\)?:?\s+(?:fatal )?(?:error[:：]\s*)?(.+)$"
)
_LABELLED: Final = re.compile(
    r"^(?:.*?\b)?(?:fatal|error|ERR!|panic|failed|failure|致命错误|错误|异常|失败)\s*(?:\[\w+\])?[:：!]\s*(\S.*)$",
    re.IGNORECASE,
)
_SHELL: Final = re.compile(
    r"^(?:\S+: )?(?:line \d+: |第\s*\d+\s*行[:：]\s*)?(.+[:：]\s*(?:command not found|not found|No such file or directory"
    r"|Permission denied|Is a directory|cannot execute.*|未找到命令|没有那个文件或目录|权限不够))$"
)
_CHINESE: Final = re.compile(r"错误|异常|失败|无法|不能|找不到|未找到|没有找到|不存在|拒绝|超时|冲突|无效|非法|缺少")
_INTERRUPTS: Final = re.compile(
    r"KeyboardInterrupt|\bSIG(?:INT|TERM)\b|interrupted by (?:the )?user|^\^C$|signal (?:2|15)\b|用户(?:中断|取消|终止)",
    re.MULTILINE | re.IGNORECASE,
)
INTERRUPT_STATUSES: Final = frozenset({130, 143, -2, -15})  # 128 + SIGINT, 128 + SIGTERM, and as Python gives them


@dataclass(frozen=True, slots=True)
class ErrorText:
    """An error as it was printed. `type` is empty if none was."""

    type: str
    message: str


def plain_text(text: str) -> str:
    """The text without terminal escapes and control characters, at most `MAX_TEXT` characters from its end."""
    return _ESCAPES.sub("", text[-MAX_TEXT:].replace("\r\n", "\n"))


def short_type(name: str) -> str:
    """The last part of a dotted type: `OperationalError` of `sqlalchemy.exc.OperationalError`."""
    return re.split(r"[.:]+", name.strip().rstrip(".:："))[-1] if name.strip() else ""


def normalise_message(message: str) -> str:
    """The message without what differs from run to run; case and width are folded."""
    text = unicodedata.normalize("NFKC", plain_text(message))[: 4 * MAX_MESSAGE]
    for pattern in (_QUOTED, _TIMES, _ADDRESSES):
        text = pattern.sub(" ", text)
    text = _POSITIONS.sub(" ", _PATHS.sub(" ", text))
    text = _AMOUNTS.sub(" ", _HEX.sub(" ", text))
    text = " ".join(text.split())
    while (stripped := _PREFIX.sub("", text)) != text:
        text = stripped
    return " ".join(re.sub(r"[\s:：,，.。;；()\[\]{}<>|*#=—-]+", " ", text).casefold().split())[:MAX_MESSAGE]


def split_type(error_type: str, message: str) -> ErrorText:
    """The type and the message, also if the message begins with its type."""
    first = message.strip().split("\n", 1)[0]
    typed = _TYPED.match(first)
    if typed is not None and (not error_type or short_type(error_type) == typed[1]):
        rest = message.strip()[len(first) :]
        return ErrorText(short_type(error_type) or typed[1], ((typed[2] or "") + rest).strip())
    return ErrorText(short_type(error_type), message.strip())


def error_key(error_type: str, message: str) -> str | None:
    """The key of an error without its language; None if nothing is left that could tell it from others."""
    error = split_type(error_type, message)
    text = normalise_message(error.message)
    if not text and not error.type:
        return None
    return _digest(f"{error.type.casefold()}\n{text}")


def error_identity(language: str, error_type: str, message: str) -> str | None:
    """The identity of an error: of its language, type and normalised message."""
    key = error_key(error_type, message)
    return None if key is None else _digest(f"{language.strip().casefold()}\n{key}")


def quoted_names(text: str) -> frozenset[str]:
    """The names that a message quotes, such as the module that is missing."""
    return frozenset(name.casefold() for match in _QUOTED.finditer(text) for name in match.groups() if name)


def errors_in(output: str) -> tuple[ErrorText, ...]:
    """The errors in an output, the most telling first: those with a type, then the others, each from the end on."""
    lines = [line.rstrip() for line in plain_text(output).split("\n") if line.strip()][-400:]
    typed: dict[ErrorText, None] = {}
    other: dict[ErrorText, None] = {}
    for line in reversed(lines):
        error = _error_in_line(line)
        if error is not None:
            (typed if error.type else other).setdefault(error)
    found = [*typed, *other]
    if not found and lines:
        chinese = next((line for line in reversed(lines) if _CHINESE.search(line)), None)
        found = [ErrorText("", (chinese or lines[-1]).strip())]
    return tuple(found[:MAX_ERRORS])


def _error_in_line(line: str) -> ErrorText | None:
    text = line.strip()
    if match := _TYPED.match(text):
        return ErrorText(match[1], match[2] or "")
    if match := _CODED.match(text):
        return ErrorText(match[1].upper(), match[2])
    for pattern in (_SHELL, _POSITIONED, _LABELLED):
        if match := pattern.match(text):
            return ErrorText("", match[1])
    return None


def match_keys(error_type: str, message: str) -> tuple[str, ...]:
    """The keys under which a lesson about an error is found: its own, and those of the errors in a longer text."""
    keys = dict.fromkeys(key for key in (error_key(error_type, message),) if key)
    if "\n" in message.strip():
        keys |= dict.fromkeys(_keys_of(errors_in(message)))
    return tuple(keys)


def keys_in_output(*texts: str | None) -> tuple[str, ...]:
    """The keys of every error in the texts of a failed call, with and without the type."""
    keys: dict[str, None] = {}
    for text in texts:
        if text and text.strip():
            errors = errors_in(text)
            keys |= dict.fromkeys(_keys_of(errors))
            whole = error_key("", text) if text.count("\n") < 3 else None
            keys |= {} if whole is None else {whole: None}
    return tuple(keys)


def named_keys(*texts: str | None) -> tuple[str, ...]:
    """The keys of every error in the texts that quotes names, with its names: only the same names give the same key."""
    found = [error for text in texts if text and text.strip() for error in errors_in(text)]
    return tuple(
        dict.fromkeys(
            named
            for error in found
            for error_type in dict.fromkeys((error.type, ""))
            if (named := named_key(error_type, error.message)) is not None
        )
    )


def named_key(error_type: str, message: str) -> str | None:
    """The key of an error with the names that it quotes; None if it quotes none."""
    key, names = error_key(error_type, message), quoted_names(message)
    return _digest("\n".join((key, *sorted(names)))) if key is not None and names else None


def _keys_of(errors: tuple[ErrorText, ...]) -> Iterator[str]:
    for error in errors:
        for error_type in dict.fromkeys((error.type, "")):
            if (error_type or error.message) and (key := _key(error_type, error.message)) is not None:
                yield key


def _key(error_type: str, message: str) -> str | None:
    text = normalise_message(message)
    return _digest(f"{error_type.casefold()}\n{text}") if text or error_type else None


def is_interrupt(exit_code: int | None, text: str) -> bool:
    """Whether the user ended the call: Ctrl-C, SIGINT or SIGTERM. That is not an error."""
    if exit_code in INTERRUPT_STATUSES:
        return True
    tail = plain_text(text).rstrip()[-400:]
    return _INTERRUPTS.search(tail) is not None


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:KEY_DIGITS]
