"""Extract keywords and compare texts, deterministically. Pure.

Terms are cut at function characters (的, 是, 把 …); what remains is mostly a word or a short phrase. Keywords, which
the user sees, are whole words if the segmenter is installed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final

from sync.chinese_words import content_words

_LATIN: Final = re.compile(r"(?<![a-z0-9])[a-z][a-z0-9]*(?:[._+#-]?[a-z0-9+#]+)*")
_CONTRACTION: Final = re.compile(r"\b[a-z]+n['’]t\b|(?<=[a-z])['’](?:ve|ll|re|s|d|m)\b")
_PRONOUNS: Final = "我你您他她它咱俺"
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_SIGNIFICANT: Final = re.compile(r"[a-z0-9]+[+#%]*|(?<=\d)[.,:/](?=\d)|[-+<>=≠≤≥]+(?=\s*\d)|[^\W_]")
_PARTICLES: Final = frozenset("的了吧呢啊嘛呀")
_FUNCTION_CHARACTERS: Final = re.compile(
    "[的了是在我你您他她它们这那有和与及就都也很还要会能吗呢吧啊嘛把被对从到给让请等用个一不没去来说为于之其所以而且或但又再先后只可该将向什么怎哪谁几多少样么]+"
)
_STOP_LATIN: Final = frozenset(
    "the a an and or but if then else of to in on at by for with from as is are was were be been being it its this that"
    " these those i you he she we they me him her us them my your our their do does did done have has had will would"
    " can could should may might must shall not no yes so too very just also than there here what which who whom when"
    " where why how all any each some more most other such only own same up down out off over under again once let"
    " please thanks thank hi hello ok okay want need use using used make makes like get got go im"
    " dont lets about into".split()
)
_STOP_HAN: Final = frozenset(
    "现在 时候 问题 今天 明天 昨天 觉得 知道 然后 因为 如果 或者 还有 已经 应该 需要 希望 帮忙 谢谢 你好".split()
)
_MAX_PHRASE_CHARS: Final = 6  # of a Chinese phrase that is one keyword


def terms(text: str) -> list[str]:
    """Every word, in order."""
    folded = _folded(text)
    words = [(match.start(), match.group()) for match in _LATIN.finditer(folded)]
    for match in _HAN.finditer(folded):
        at = match.start()
        for piece in _FUNCTION_CHARACTERS.split(match.group()):
            if 2 <= len(piece) <= _MAX_PHRASE_CHARS:
                words.append((at, piece))
            elif len(piece) > _MAX_PHRASE_CHARS:
                words += [(at, piece[index : index + 2]) for index in range(0, len(piece) - 1, 2)]
            at += len(piece) + 1
    return [word for _, word in sorted(words) if _is_significant(word)]


def named_words(text: str) -> list[str]:
    """The words that name something, in order: as `terms`, but Chinese is cut by the segmenter if it is installed."""
    folded = _folded(text)
    words = [(match.start(), [match.group()]) for match in _LATIN.finditer(folded)]
    for match in _HAN.finditer(folded):
        cut = content_words(match.group())
        if cut is None:
            return terms(text)
        words.append((match.start(), [word.lstrip(_PRONOUNS) for word in cut]))
    return [word for _, found in sorted(words) for word in found if _is_significant(word)]


def _folded(text: str) -> str:
    """A text in lower case, without what contractions end with."""
    return _CONTRACTION.sub(" ", unicodedata.normalize("NFKC", text).lower())


def keywords(texts: Iterable[str], limit: int) -> list[str]:
    """The most frequent words; of equally frequent ones the earlier."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(named_words(text))
    return [word for word, _ in counts.most_common(limit)]


def similarity(one: str, other: str) -> float:
    """The Jaccard similarity of two texts' words and pairs of Chinese characters, 0 to 1."""
    mine, theirs = _grams(one), _grams(other)
    if not mine or not theirs:
        return float(one.strip() == other.strip())
    return len(mine & theirs) / len(mine | theirs)


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts differ only in case, punctuation, spaces and Chinese particles.

    A word, a name or the sign of a number makes a difference.
    """
    mine, theirs = _significant_tokens(one), _significant_tokens(other)
    return mine == theirs if mine else one.strip() == other.strip()


def _significant_tokens(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).lower().replace("−", "-")
    return [token for token in _SIGNIFICANT.findall(folded) if token not in _PARTICLES]


def _grams(text: str) -> frozenset[str]:
    folded = unicodedata.normalize("NFKC", text).lower()
    words = {match.group() for match in re.finditer(r"[a-z0-9]+", folded)}
    pairs = {run[index : index + 2] for run in _HAN.findall(folded) for index in range(max(len(run) - 1, 1))}
    return frozenset(words | pairs)


def _is_significant(word: str) -> bool:
    return len(word) > 1 and word not in _STOP_LATIN and word not in _STOP_HAN
