"""Phone, identity and card numbers: groups of digits, checked by their checksums.

A pattern finds chains of digits with single separators. Windows of groups are tried from left to right, the longest
first, so that 138 0013 8000 is one number, 13800138000 13900139000 are two, and eleven digits inside a longer number
are none. A window has at most 19 digits, so the work is linear.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from sync.redaction.model import BANK_CARD, IDENTITY, PHONE, SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.checksums import is_bank_card_number, is_identity_number, is_mobile_number
from sync.redaction.rules.secret_names import is_quantity

_CHAIN: Final = Pattern(r"[0-9](?:(?:[.·/_]| ?- ?| {1,2}|[)）] ?)?[0-9]){9,}(?:[ \-]?[xX])?")
_NUMERALS: Final = {
    ord(char): str(digit)
    for digit, chars in enumerate(("〇零", "一幺壹", "二贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖"))
    for char in chars
}
_NUMERAL: Final = "[0-9" + "".join(map(chr, _NUMERALS)) + "]"
_SPELLED: Final = Pattern(rf"{_NUMERAL}(?:[ \-]?{_NUMERAL}){{10,}}[xX]?")
_LARGER_NUMERALS: Final = frozenset("十百千万亿兆")

_COUNTRY: Final = ("0086", "86")
_MAX_DIGITS: Final = 19
_MOST_GROUPS: Final = 13  # digits one by one, with a country code
_NUMBER_LENGTHS: Final = frozenset((11, 13, 15, 16, 17, 18, 19))
# How people write a mobile number. Dots, slashes and underscores are stricter: addresses, versions and paths have
# them too.
_PHONE_GROUPS: Final = frozenset(
    {(11,), (3, 4, 4), (3, 3, 5), (3, 8), (4, 4, 3), (4, 3, 4), (5, 6), (7, 4), (3, 4, 2, 2), (3, 2, 2, 4), (1,) * 11}
)
_DOTTED_GROUPS: Final = frozenset({(11,), (3, 4, 4), (3, 3, 5), (4, 4, 3)})
_DOTS: Final = (".", "/", "_")
_CARD_GROUPS: Final = frozenset({(4, 6, 5), (6, 10), (6, 11), (6, 12), (6, 13)})
# Words written right before a number: tel13800138000, wx13800138000.
_GLUED_WORDS: Final = frozenset(
    ("tel", "phone", "mobile", "mob", "cell", "user", "wx", "weixin", "wechat", "vx", "qq", "sms", "call", "sj", "dh")
) | frozenset(("hm", "to", "no", "id", "u", "p", "t", "m", "is"))


class _DigitGroup(msgspec.Struct, frozen=True):
    """Digits `start` up to `end`, after the separator `before` (empty for the first)."""

    start: int
    end: int
    separator: str

    @property
    def separator_symbol(self) -> str:
        """The separator without surrounding blanks; one blank if it has nothing else."""
        return self.separator.strip() or " "

    @property
    def length(self) -> int:
        return self.end - self.start


def numbers(text: str) -> Iterator[SecretSpan]:
    """Mobile, identity and bank card numbers, in any grouping."""
    for (start, end), *_ in _CHAIN.find_all(text):
        yield from _in_chain(text, start, end)
    for (start, end), *_ in _SPELLED.find_all(text):
        yield from _numbers_in_numerals(text, start, end)


def _in_chain(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    groups = _groups(text, start, end)
    first = 0
    while first < len(groups):
        found = _longest_number(text, groups, first)
        if found is None:
            first += 1
        else:
            last, span = found
            yield span
            first = last + 1


def _groups(text: str, start: int, end: int) -> list[_DigitGroup]:
    """The digit groups of a chain; a final X belongs to the last one."""
    groups: list[_DigitGroup] = []
    at, before = start, ""
    while at < end:
        stop = at
        while stop < end and text[stop] in "0123456789xX":
            stop += 1
        if text[at] in "xX":  # a check character after a separator
            groups[-1] = _DigitGroup(groups[-1].start, stop, groups[-1].separator)
            break
        groups.append(_DigitGroup(at, stop, before))
        at = stop
        while at < end and text[at] not in "0123456789xX":
            at += 1
        before = text[stop:at]
    return groups


def _longest_number(text: str, groups: list[_DigitGroup], first: int) -> tuple[int, SecretSpan] | None:
    """The longest number that begins with group `first`, and the index of its last group."""
    if not _may_begin(groups, first) or not _may_start_at(text, groups[first]):
        return None
    best: tuple[int, SecretSpan] | None = None
    digits, separator = "", ""
    start = groups[first].start
    second = first + (text[start : groups[first].end] in _COUNTRY)  # the separator after +86 may differ
    for last in range(first, min(first + _MOST_GROUPS, len(groups))):
        group = groups[last]
        digits += text[group.start : group.end]
        if last > second:
            separator = separator or group.separator_symbol
            if group.separator_symbol != separator:
                break
        if len(digits) > _MAX_DIGITS:
            break
        if len(digits) not in _NUMBER_LENGTHS or not _may_end_at(text, groups, last):
            continue
        lengths = [each.length for each in groups[first : last + 1]]
        kind = _kind(_digits_only(digits), lengths, separator)
        alone = first == 0 and last + 1 == len(groups)
        if kind == PHONE and last == first and _is_measured(text, start, group.end):
            continue
        if kind and _is_separate(kind, lengths, separator, alone=alone, unionpay=digits.startswith("62")):
            best = last, SecretSpan(_with_country(text, start, group.end), group.end, kind)
    return best


def _may_begin(groups: list[_DigitGroup], first: int) -> bool:
    """Whether a number may begin here: single digits only if nothing precedes them."""
    return groups[first].length > 1 or (first == 0 and len(groups) <= _MOST_GROUPS)


def _kind(digits: str, lengths: list[int], separator: str) -> str | None:
    if len(digits) == 18 and is_identity_number(digits):
        return IDENTITY
    if digits[-1] in "xX":
        return None
    if len(digits) in (11, 13, 15) and _is_phone(digits, lengths, separator):
        return PHONE
    if len(digits) >= 15 and _is_card_grouping(lengths) and is_bank_card_number(digits):
        return BANK_CARD
    return None


def _is_phone(digits: str, lengths: list[int], separator: str) -> bool:
    for country in ("", *_COUNTRY):
        rest = digits.removeprefix(country)
        if len(rest) + len(country) == len(digits) and is_mobile_number(rest):
            own = [lengths[0] - len(country), *lengths[1:]]
            grouping = tuple(own if own[0] else own[1:])
            return grouping in (_DOTTED_GROUPS if separator in _DOTS else _PHONE_GROUPS)
    return False


def _is_card_grouping(lengths: list[int]) -> bool:
    fours = all(length == 4 for length in lengths[:-1]) and lengths[-1] <= 4
    return len(lengths) == 1 or fours or tuple(lengths) in _CARD_GROUPS


def _is_measured(text: str, start: int, end: int) -> bool:
    """Whether a name, a unit or a file listing shows that these eleven digits are a quantity."""
    line = text[max(0, start - _LONGEST_LINE) : start].rpartition("\n")[2]
    before = line.rstrip(" \t\"'")
    name = before.rstrip("=:")
    if _UNIT.match(text[end : end + 12]) or _FILE_LISTING.match(line):
        return True
    return (name != before or name.endswith(_SIZES)) and is_quantity(name.rstrip("\"' ").rpartition(" ")[2])


_LONGEST_LINE: Final = 120  # characters before a number that are examined
_UNIT: Final = Pattern(r"[ \t]?(?:(?:bytes|[nµμ]s|rows)\b|字节|毫秒|微秒|纳秒)")
_FILE_LISTING: Final = Pattern(r"[ \t]*[\-dlbcps](?:[r\-][w\-][xsStT\-]){3}[+@.]?[ \t]")
_SIZES: Final = ("size", "bytes", "大小", "字节数")


def _may_start_at(text: str, group: _DigitGroup) -> bool:
    """Whether nothing before this group is part of the number."""
    if group.separator:
        return _is_break(group.separator)
    before = text[max(0, group.start - 12) : group.start]
    if not before or not _is_word(before[-1]):
        return True
    if before[-2:-1] == "\\" or before[-3:-2] == "%":  # an escape such as \n or %3D
        return True
    word = before[len(before.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) :]
    return word.lower() in _GLUED_WORDS and not (len(word) < len(before) and _is_word(before[-len(word) - 1]))


def _may_end_at(text: str, groups: list[_DigitGroup], last: int) -> bool:
    if last + 1 < len(groups):
        return _is_break(groups[last + 1].separator)
    after = text[groups[last].end : groups[last].end + 1]
    return not _is_word(after)


def _is_break(separator: str) -> bool:
    """Whether a separator may be between two numbers."""
    return separator.isspace() or separator in ("/", "_")


def _is_separate(kind: str, lengths: list[int], separator: str, *, alone: bool, unionpay: bool) -> bool:
    """Whether a number is separate from its neighbours: the usual grouping of a phone, a card that begins with 62."""
    if alone or separator != " " or kind == IDENTITY:
        return True
    return lengths[-3:] == [3, 4, 4] if kind == PHONE else unionpay


def _with_country(text: str, start: int, end: int) -> int:
    """The start of a number with its plus sign and bracket."""
    if text[start - 1 : start] == "+":
        start -= 1
    if text[start - 1 : start] in ("(", "（") and not {")", "）"}.isdisjoint(text[start:end]):
        start -= 1
    return start


def _digits_only(text: str) -> str:
    return "".join(char for char in text if char in "0123456789xX")


def _is_word(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _numbers_in_numerals(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Numbers in Chinese numerals: 一三八零零一三八零零零, 幺三八…; a name before it may end in one (李四一三八…)."""
    if (
        2 * sum(map(str.isascii, text[start:end])) > end - start
        or {text[start - 1 : start], text[end : end + 1]} & _LARGER_NUMERALS
    ):
        return
    for begun in (start, start + 1):
        digits = _digits_only(text[begun:end].translate(_NUMERALS))
        kind = PHONE if is_mobile_number(digits) else IDENTITY if is_identity_number(digits) else None
        if kind or is_bank_card_number(digits):
            yield SecretSpan(begun, end, kind or BANK_CARD)
            return
