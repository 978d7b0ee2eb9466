"""A message as one line of the document: cleaned, shortened, and unable to become structure.

Lengths are in code points, and a cut never falls inside a grapheme cluster (UAX #29). A fenced block becomes
``[代码 python，12 行]``, or inline code if it is one line of a question. Summarising a summary returns it unchanged.
"""

import re
import unicodedata
from functools import cache
from typing import Any, Final

from sync.document.markdown.words import WORDS, Words
from sync.texts.language import ZH, Language

MAX_QUESTION_LENGTH: Final = 50  # both from the original app's format
MAX_ANSWER_LENGTH: Final = 100
ELLIPSIS: Final = "..."
MAX_COMBINING_MARKS: Final = 30  # combining marks on one base, the bound of Unicode's stream-safe text (UAX #15)

MAX_CODE_LANGUAGE_LENGTH: Final = 16  # characters of the name behind a fence

_ZWJ: Final = "\u200d"
_LINE_BREAKS: Final = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_VISIBLE_FORMATS: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2")  # letters in all but name
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u3164\uffa0\u2800")  # zero width or empty, yet no format characters
_SUBDIVISION_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_SPACES: Final = re.compile(" {2,}")
_BLOCK_MARK: Final = re.compile(r"#|>|\||-{3}|\*{3}|_{3}|={3}|`{3}|~{3}|[-*+](?= |\Z)")
_FENCED: Final = re.compile(  # chats open a fence behind words too, and a cut message does not close it
    r"(`{3,})([^\n`]*)\n(.*?)(?:\1`*|\Z)|^[ \t]*(~{3,})([^\n]*)\n(.*?)^[ \t]*\4~*[ \t]*$", re.DOTALL | re.MULTILINE
)
_CODE_LANGUAGE: Final = re.compile(rf"[\w+#.-]{{1,{MAX_CODE_LANGUAGE_LENGTH}}}")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)])(?= |\Z)", re.ASCII)
_ESCAPED_NUMBER: Final = re.compile(r"(\d{1,9})\\([.)])(?= |\Z)", re.ASCII)
_PICTOGRAPHS: Final = ((0x1F000, 0x1FAFF), (0x2190, 0x2BFF))


def question_summary(text: str, language: Language = ZH) -> str:
    """Summarise a question: at most `MAX_QUESTION_LENGTH` code points and the dots."""
    return summarize(_replace_code_blocks(text, WORDS[language], keeps_one_line=True), MAX_QUESTION_LENGTH)


def answer_summary(text: str, language: Language = ZH) -> str:
    """Summarise an answer: at most `MAX_ANSWER_LENGTH` code points and the dots."""
    return summarize(_replace_code_blocks(text, WORDS[language]), MAX_ANSWER_LENGTH)


def summarize(text: str, limit: int) -> str:
    """One line of at most `limit` code points, with dots if it was cut and a leading mark escaped."""
    return escape_markdown(_truncate(unescape_markdown(one_line(text)), limit))


def one_line(text: str) -> str:
    """Remove line breaks, control, bidi and zero-width characters, and repeated, leading and trailing spaces."""
    kept: list[str] = []
    marks = 0
    at = 0
    while at < len(text):
        if flag := _SUBDIVISION_FLAG.match(text, at):
            kept.append(flag[0])
            at = flag.end()
            continue
        char = " " if text[at] in _LINE_BREAKS else text[at]
        marks = marks + 1 if unicodedata.category(char) in {"Mn", "Me"} else 0
        following = text[at + 1 : at + 2]
        at += 1
        if marks <= MAX_COMBINING_MARKS and _is_kept_character(kept[-1][-1] if kept else "", char, following):
            kept.append(char)
    return _SPACES.sub(" ", "".join(kept)).strip()


def escape_markdown(text: str) -> str:
    """Put a backslash before a start of the line that Markdown would read as structure."""
    if _BLOCK_MARK.match(text):
        return "\\" + text
    return _NUMBER.sub(r"\1\\\2", text, count=1) if _NUMBER.match(text) else text


def _replace_code_blocks(text: str, words: Words, *, keeps_one_line: bool = False) -> str:
    """Put a placeholder in place of every fenced block; a block without code disappears.

    `keeps_one_line`: a block of one line, often a command, becomes inline code.
    """
    if "```" not in text and "~~~" not in text:
        return text

    def placeholder(block: re.Match[str]) -> str:
        code = (block[3] or block[6] or "").strip("\n")
        if not code.strip():
            return " "
        lines = code.count("\n") + 1
        if keeps_one_line and lines == 1 and "`" not in code:
            return f" `{code.strip()}` "
        name = _CODE_LANGUAGE.match((block[2] or block[5] or "").strip())
        shown = words.code_of_language if name else words.code_block
        return f" {shown.format(name=name and name[0], lines=lines, s='' if lines == 1 else 's')} "

    return _FENCED.sub(placeholder, text.replace("\r\n", "\n"))


def unescape_markdown(text: str) -> str:
    """Remove the backslash that `escape_markdown` added."""
    if text.startswith("\\") and _BLOCK_MARK.match(text, 1):
        return text[1:]
    return _ESCAPED_NUMBER.sub(r"\1\2", text, count=1) if _ESCAPED_NUMBER.match(text) else text


def _truncate(text: str, limit: int) -> str:
    if len(text) <= limit or (text.endswith(ELLIPSIS) and len(text) <= limit + len(ELLIPSIS)):
        return text
    end = 0
    for character in _grapheme_clusters().finditer(text):
        if character.end() > limit:
            break
        end = character.end()
    return text[:end].rstrip(_ZWJ).rstrip() + ELLIPSIS  # a ZWJ at the end joins nothing


def _is_kept_character(before: str, char: str, following: str) -> bool:
    if char == _ZWJ:
        return _continues_emoji(before) and _is_pictograph(following)
    if _is_selector(char):
        return before != "" and not _is_selector(before)
    if char in _INVISIBLE:
        return False
    category = unicodedata.category(char)
    return category not in {"Cc", "Cf", "Cs"} or char in _VISIBLE_FORMATS


@cache
def _grapheme_clusters() -> Any:
    import regex  # noqa: PLC0415  # 12 ms, and most messages are short

    return regex.compile(r"\X")


def _continues_emoji(char: str) -> bool:
    return char == "\ufe0f" or _is_pictograph(char)


def _is_pictograph(char: str) -> bool:
    if not char:
        return False
    return any(low <= ord(char) <= high for low, high in _PICTOGRAPHS) or unicodedata.category(char) == "So"


def _is_selector(char: str) -> bool:
    return bool(char) and ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")
