"""The normalised view of a text that detectors search, with the way back to the original.

Each character is normalised by itself, so that the view of a redacted text is the masked view of the original; the
redactor's idempotence depends on that.

 - NFKC per character: １３８ is 138, ＠ is @, a no-break space is a space, ① is 1.
 - Format characters (zero-width, bidi, soft hyphen), variation selectors, combining marks and NUL are removed.
 - Every dash is '-'. A Cyrillic or Greek letter that looks like a Latin one becomes that one.
 - Chinese punctuation that ends a value in prose (，；！？（）…) is kept.
 - A placeholder such as [手机号] becomes one `BARRIER`, which no rule matches.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from unicodedata import category, normalize

import msgspec

from sync.redaction.model import KINDS, SecretSpan
from sync.redaction.pattern import Pattern

BARRIER: Final = "\ue000"  # private use
_UNFOLDED: Final = frozenset("，；！？（）…～｛｝。、")
MAX_REPLACED: Final = 32  # different characters; with more, one pass over the text is quicker
_MARK_CATEGORIES: Final = frozenset({"Mn", "Me"})
_PLACEHOLDER: Final = Pattern(r"\[(?:" + "|".join(KINDS) + r")\]")


class NormalisedText(msgspec.Struct, frozen=True):
    """The text to search. Its character i comes from the original's `starts[i]` up to `ends[i]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def to_original(self, span: SecretSpan) -> SecretSpan:
        """The same span in characters of the original."""
        return SecretSpan(self.starts[span.start], self.ends[span.end - 1], span.kind)

    def expand_to_characters(self, span: SecretSpan) -> SecretSpan:
        """Extend a span to whole characters of the original: ¼ is three characters of the view."""
        start, end = span.start, span.end
        while start > 0 and self.starts[start - 1] == self.starts[start]:
            start -= 1
        while end < len(self.starts) and self.starts[end] == self.starts[end - 1]:
            end += 1
        return SecretSpan(start, end, span.kind)

    def mask(self, spans: Sequence[SecretSpan]) -> "NormalisedText":
        """Replace each span by one BARRIER. `spans` are ordered, disjoint, and in characters of this view."""
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for span in spans:
            text += (self.text[done : span.start], BARRIER)
            starts += self.starts[done : span.start]
            starts.append(self.starts[span.start])
            ends += self.ends[done : span.start]
            ends.append(self.ends[span.end - 1])
            done = span.end
        text.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return NormalisedText("".join(text), starts, ends)


def normalise(text: str) -> NormalisedText:
    """Normalise a text, in time and memory linear in its length."""
    view = _fold_text(text)
    if "[" not in view.text:
        return view
    present = [SecretSpan(*groups[0], "") for groups in _PLACEHOLDER.find_all(view.text)]
    return view.mask(present) if present else view


def _fold_text(text: str) -> NormalisedText:
    if text.isascii() and "\x00" not in text:
        return NormalisedText(text, range(len(text)), range(1, len(text) + 1))
    folds = {char: _FOLDS[ord(char)] for char in set(text)}
    if all(len(folded) == 1 for folded in folds.values()):
        return NormalisedText(_replace_characters(text, folds), range(len(text)), range(1, len(text) + 1))
    pieces = [_FOLDS[ord(char)] for char in text]
    starts = [index for index, piece in enumerate(pieces) for _ in piece]
    return NormalisedText("".join(pieces), starts, [_cluster_end(text, start) for start in starts])


def _replace_characters(text: str, folds: Mapping[str, str]) -> str:
    """Replace characters by their folds. A long text has few that change, and `str.replace` finds them quickest."""
    changing = {char: folded for char, folded in folds.items() if char != folded}
    if len(changing) > MAX_REPLACED or not changing.keys().isdisjoint(changing.values()):
        return text.translate(_FOLDS)
    for char, folded in changing.items():
        text = text.replace(char, folded)
    return text


def _cluster_end(text: str, start: int) -> int:
    """The end of a character with its combining marks."""
    end = start + 1
    while end < len(text) and category(text[end]) in _MARK_CATEGORIES:
        end += 1
    return end


# Confusables of UTS 39 that NFKC keeps.
_CONFUSABLES: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u043a\u0456\u0455\u0501\u04bb\u0458\u0442\u043f\u0433"
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405"
        "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
        "\u0131\u0251\u0261",
        "aeopcyxkisdhjtnrABEKMHOPCTYXISaopvikABEZHIKMNOPTYXiag",
        strict=True,
    )
)


class _Folds(dict[int, str]):
    """A cache from code points to normalised text."""

    def __missing__(self, point: int) -> str:
        folded = self[point] = _fold(chr(point))
        return folded


def _fold(char: str) -> str:
    if char in _UNFOLDED or char in "\t\n\r":
        return char
    if char == BARRIER:
        return "\ufffd"
    if char == "\x00" or category(char) in _MARK_CATEGORIES | {"Cf"}:
        return ""
    if category(char) == "Pd" or char == "\u2212":
        return "-"
    return _CONFUSABLES.get(char) or normalize("NFKC", char)


_FOLDS: Final = _Folds()
