"""Find the facts that a user means by a few words: my allergy, 我周二游泳, where I live. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from sync.understanding.likeness import content_of
from sync.understanding.model import USER_SUBJECT, Fact
from sync.understanding.reading.reader import remembered

LEAST_SHARE: Final = 0.5  # of the words that a fact must have
_MIN_STEM: Final = 4
_CJK: Final = re.compile(r"[\u3400-\u9fff]")
# What a wish says besides naming the fact: 这件事, which.
_FORM: Final = re.compile(
    r"[我你的地得了着过是在不没也都就和与跟这那吗呢吧啊呀把被很哪儿啥谁]|什么|怎么|多少|(?<=.)[件回个条]?事情?$"
    r"|(?i:\b(?:where|what|when|who|which|how|do|thing|about)\b)"
)


def named_facts(words: str, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that have most of the words, in whatever form; none that has less than another, or than half."""
    wanted, about = _marks(words), _bearer(words)
    shares = [(fact, _share(wanted, fact, about)) for fact in facts]
    best = max((share for _, share in shares), default=0.0)
    return [fact for fact, share in shares if share == best >= LEAST_SHARE]


def _share(wanted: frozenset[str], fact: Fact, about: str) -> float:
    """The share of the words that a fact has; whom it is about counts as one of them."""
    known = _marks(fact.statement)
    found = [any(_is_same(word, other) for other in known) for word in wanted]
    if about != USER_SUBJECT:
        found.append(fact.about == about)
    return sum(found) / len(found) if found else 0.0


def _marks(text: str) -> frozenset[str]:
    """The content words of a text; of Chinese its content characters, too."""
    said = _FORM.sub(" ", unicodedata.normalize("NFKC", text))
    return content_of(said) | frozenset(_CJK.findall(said))


def _bearer(words: str) -> str:
    said = remembered(words)
    return USER_SUBJECT if said is None else said.about


def _is_same(one: str, other: str) -> bool:
    """Whether two words are one, or forms of one: allergy, allergic."""
    shorter = min(len(one), len(other))
    stem = max(_MIN_STEM, shorter - shorter // 4)
    return one == other or (shorter >= _MIN_STEM and one[:stem] == other[:stem])
