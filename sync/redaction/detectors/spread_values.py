"""Values that stand apart from their name: behind a remark, a mark or a clause, and the further values of a list.

密码（测试环境）：…, 密码改了，新的是 …, the password for staging (the new one) is …, passwords: … and …. What may stand
between is a closed grammar, and the value must be distinct: letters with digits, no word, version, path or code.
"""

from collections.abc import Iterator
from typing import Final

from sync.redaction.model import SecretSpan
from sync.redaction.normalised_text import BARRIER
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import is_word_character
from sync.redaction.rules.secret_names import CHINESE_NAMES, LATIN_NAMES
from sync.redaction.rules.value_scoring import is_distinct
from sync.redaction.rules.value_spans import ValueSpans

_NAMED: Final = (*CHINESE_NAMES, *LATIN_NAMES)
_KINDS: Final = tuple(kind for kind, _ in _NAMED)
_NAMES: Final = "|".join(f"({names})" for _, names in _NAMED)
_REMARK: Final = r"[ \t]*[（(【\[][^()（）【】\[\]\n]{1,30}[)）】\]]"
_MARKS: Final = r"[ \t]*(?:[:=→⇒—–~,，是为]|-{1,2}>?|>{1,3}|\p{So}){1,4}[ \t]*"
_COUNT: Final = r"[ \t]?(?:一?共?有)?[两二三四五2-5] ?(?:个|组|套)[ \t]*(?:[:,，]|是|分别是)?[ \t]*|分别[是为][ \t]*"
_LINK: Final = (
    "(?:新的?|现在|目前|最新的?|就|已经?|改|换|变|设|重置|更新|成|了|的|暂时|临时|还|仍|应该)*(?:是|为|叫|成|用)"
)
_CHANGED: Final = r"(?:还|仍|依旧|已|现|就|改|换|更|重|设|变)[^\n。！？!?；;:A-Za-z0-9\x{E000}]{0,10}"
_CLAUSE: Final = r"[^\n。！？!?；;,，:A-Za-z0-9\x{E000}]{0,12}[,，][ \t]*"
_CHINESE_GAP: Final = rf"{_CHANGED}[:,，][ \t]*(?:{_LINK})?[: \t]*|(?:{_CLAUSE}){{1,2}}(?:{_LINK})?[: \t]*"
_WORDS: Final = r"(?: [a-z'’]{1,14}){1,8}?"
_ENGLISH_GAP: Final = (
    rf"s?(?: (?:for|of|on|to|that|which|you|we|i){_WORDS})?(?:{_REMARK})?(?:[ \t]*[:=][ \t]*"
    r"|(?: (?:is|are|was|were|has|have|had|will|now|become|became|been|be|changed|either|to|as|reset|set)){1,5}[: ]+)"
    rf"|s?,{_WORDS} ?:[ \t]*"
)
# Groups: the names; what follows is the value, or one that is replaced already and begins a list.
_APART: Final = Pattern(
    rf"(?i)(?:{_NAMES})(?:号码?|值)?(?:(?:{_REMARK})?(?:{_COUNT}|{_ENGLISH_GAP}|{_CHINESE_GAP}|{_MARKS}|[ \t]*))"
)
_NEXT: Final = Pattern(
    r"[\"'`”’」*]{0,2}[ \t]?(?:[,，、/;；|&]|和|与|或者?|以及|还有|跟|\band\b|\bor\b){1,2}"
    r"[ \t]?(?:(?:and|or|or else|或者?|和|以及) )?(?:[^\n，。、,:A-Za-z0-9\x{E000}]{0,6}是)?[ \t]?[\"'`“‘「*]{0,2}"
)
_MOST_VALUES: Final = 64


def spread_values(text: str) -> Iterator[SecretSpan]:
    """Values apart from their names, and lists of values behind one name."""
    runs, done = ValueSpans(text), 0
    for whole, *named in _APART.find_all(text):
        if whole[1] < done:
            continue
        start, end = max(named)
        if not text[end : whole[1]].strip() and text[whole[1] : whole[1] + 1] != BARRIER:
            continue  # directly behind the name: an assignment
        if is_word_character(text[start - 1 : start]) and is_word_character(text[start]):
            continue
        kind = next(kind for kind, span in zip(_KINDS, named, strict=True) if span[0] >= 0)
        for value in _values(text, whole[1], runs):
            done = value[1]
            yield SecretSpan(*value, kind)


def _values(text: str, at: int, runs: ValueSpans) -> Iterator[tuple[int, int]]:
    """The values of a list that begins here. One that is replaced already is passed over."""
    while text[at : at + 1] and text[at] in "\"'`“‘「*":
        at += 1
    for _ in range(_MOST_VALUES):
        if text[at : at + 1] == BARRIER:
            end = at + 1
        else:
            start, end = runs.span_at(at)
            if start == end or not is_distinct(text[start:end]):
                return
            yield start, end
        following = _NEXT.match(text[end : end + 40])
        if following is None:
            return
        at = end + following[0][1]
