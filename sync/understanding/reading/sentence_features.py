"""What the learned scorer sees of a sentence: n-grams, classes of words, and marks of form, in named groups. Pure.

The weights are fitted on exactly these (`make fit-understanding`); a change here needs new weights.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final
from zlib import crc32

import msgspec

from sync.understanding.reading.segments import Sentence

MAX_SENTENCES: Final = 60  # of a message; the others are read by the certain forms alone
COARSE: Final = 3  # digits of a word's class that name its coarse class
_OTHER: Final = "~"  # the class of a word that the list does not have
_LONGEST_WORD: Final = 4  # Chinese characters
_EDGE: Final = 8  # units at the beginning and the end of a sentence
_DIGITS: Final = re.compile(r"\d+")
_CHINESE: Final = re.compile("[\u3400-\u9fff]")
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d|[^\w\s]")
_CHARACTERS: Final = re.compile(r"[a-z]+|\s+|.")
_OPENING: Final = frozenset('“「『"')


# Groups of features and their gains: g grams, w word classes, b beginning and e end of the sentence, k marks,
# h and t grams of the sentences before and after, H and T their coarse classes, p and n the neighbours' grams,
# F and L both ends of the message, q the end of the turn before. G and C: grams and classes again, for what is stated.
GAINS: Final = {
    "g": 4.0, "w": 4.0, "b": 1.5, "e": 1.5, "k": 2.5, "h": 2.0, "t": 2.0, "H": 2.0, "T": 2.0, "p": 1.0, "n": 1.0,
    "F": 1.0, "L": 1.0, "q": 1.0, "G": 4.0, "C": 6.0,
}  # fmt: skip
KEY_BITS: Final = 24
_KEY_MASK: Final = (1 << KEY_BITS) - 1


Groups = dict[str, list[bytes]]


class SentenceFeatures(msgspec.Struct, frozen=True):
    """Features of one sentence: its own groups, and what the other sentences of the message see of it."""

    own: Groups
    context: list[bytes]
    context_classes: list[bytes]


class MessageFeatures(msgspec.Struct, frozen=True):
    """Features of a message: of each sentence, and those that all share: both its ends and the turn before."""

    sentences: list[SentenceFeatures]
    shared: Groups


def language_of(message: str) -> str:
    """`zh` if Chinese characters are at least a tenth of the letters, else `en`."""
    return "zh" if 10 * len(_CHINESE.findall(message)) >= sum(char.isalpha() for char in message) > 0 else "en"


def read_features(
    message: str, previous: str, sentences: Sequence[Sentence], language: str, classes: Mapping[str, str]
) -> MessageFeatures:
    """Read the features of a message. `classes`: the class of each known word."""
    few = sentences[:MAX_SENTENCES]
    first, last = _units(message[:48], language)[:12], _units(message[-60:], language)[-14:]
    return MessageFeatures(
        [
            _read_sentence(one.text, _marks(message, few, at, bool(previous)), language, classes)
            for at, one in enumerate(few)
        ],
        {
            "F": _encoded(grams(first, (1, 2, 3))),
            "L": _encoded(grams(last, (1, 2, 3))),
            "q": _encoded(grams(_units(previous[-100:], language)[-20:], (1, 2))) if previous else [],
        },
    )


def _read_sentence(text: str, marks: list[str], language: str, classes: Mapping[str, str]) -> SentenceFeatures:
    units, chinese = _units(text, language), language == "zh"
    words = [
        classes.get(word, _OTHER if word.isalnum() else word) for word in (cut(units, classes) if chinese else units)
    ]
    coarse = [name[:COARSE] for name in words]
    runs = {size: _encoded(grams(units, (size,))) for size in (1, 2, 3)}
    stems = [] if chinese else _encoded(f"{word[:4]}-" for word in units if len(word) > 4)
    coarse_runs = _encoded(grams(coarse, (1, 2)))
    return SentenceFeatures(
        {
            "g": [*runs[1], *runs[2], *(runs[3] if chinese else stems)],
            "w": _encoded(grams(words, (1, 2))) + [run + b"/" for run in coarse_runs] + _encoded(grams(coarse, (3,))),
            "b": _encoded(grams(units[:_EDGE], (1, 2, 3))),
            "e": _encoded(grams(units[-_EDGE:], (1, 2, 3))),
            "k": _encoded(marks),
        },
        [*runs[2], *(runs[3] if chinese else runs[1])],
        coarse_runs,
    )


def clause_groups(text: str, language: str, classes: Mapping[str, str]) -> Groups:
    """The groups that the words of a clause alone have."""
    own = _read_sentence(text, [], language, classes).own
    return {group: own[group] for group in "gw"}


def content_groups(one: SentenceFeatures) -> Groups:
    """The groups that say what a sentence states."""
    return {"G": one.own["g"], "C": one.own["w"]}


def keys_of(group: str, features: Iterable[bytes]) -> Iterator[int]:
    """The keys of features in the weights."""
    return (key & _KEY_MASK for key in map(crc32, features, repeat(crc32(group.encode()))))


def _encoded(features: Iterable[str]) -> list[bytes]:
    return [feature.encode() for feature in features]


def grams(units: Sequence[str], sizes: Iterable[int]) -> list[str]:
    """The runs of units, with the beginning and the end of the text as units."""
    whole = ["^", *units, "$"]
    return [run for size in sizes for run in map(" ".join, zip(*(whole[at:] for at in range(size)), strict=False))]


def cut(characters: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """Cut Chinese text into the longest words that the list has, from the left."""
    found, at = [], 0
    while at < len(characters):
        for size in range(_LONGEST_WORD, 0, -1):
            word = "".join(characters[at : at + size])
            if size == 1 or word in words:
                break
        found.append(word)
        at += size
    return found


def _units(text: str, language: str) -> list[str]:
    """English words; Chinese characters, Latin words, punctuation, a blank. A number is one 0."""
    folded = _DIGITS.sub("0", text.casefold())
    if language == "en":
        return _WORDS.findall(folded.replace("’", "'"))
    return [" " if unit.isspace() else unit for unit in _CHARACTERS.findall(folded)]


def _marks(message: str, sentences: Sequence[Sentence], at: int, answers: bool) -> list[str]:
    """Marks of form: where the sentence stands, how it is written, what the segments say of whose it is."""
    one, count = sentences[at], len(sentences)
    first, last = f"first{min(at, 4)}", f"last{min(count - 1 - at, 4)}"
    lines, line = message.count("\n"), one.line
    foreign = one.foreign or next((clause.foreign for clause in one.clauses if clause.foreign), None)
    of_others = [other.foreign for number, other in enumerate(sentences) if number != at and other.foreign]
    ending = message[one.end - 1]
    head = message[: one.start]
    follower = sentences[at + 1] if at + 1 < count else None
    marks = [
        first,
        last,
        first + last,
        f"count{min(count, 6)}",
        f"clauses{min(len(one.clauses), 5)}",
        f"length{min(len(one.text) // 6, 16)}",
        f"message{min(len(message) // 30, 10)}",
        f"lines{min(lines, 5)}",
        f"line{min(line, 3)}{min(lines, 3)}",
        f"paragraph{min(one.paragraph, 3)}{min(sentences[-1].paragraph, 3)}",
        f"form {one.form}",
        f"foreign {foreign} {one.foreign is not None}",
        f"end {'a' if ending.isalnum() else ending}",
        f"asks{one.is_question}{any(clause.is_question for clause in one.clauses)}",
        f"followed{follower is not None and follower.is_question}",
        f"message asks{any(other.is_question for other in sentences)}",
        f"colon{'：' in head or ': ' in head}{'：' in one.text or ': ' in one.text}",
        f"opened{not _OPENING.isdisjoint(head)}",
        f"digits{min(3, len(_DIGITS.findall(one.text)))}",
        f"answers{answers}",
        f"answers{answers}{count == 1}",
        f"emoji{any(ord(char) > 0x1F000 for char in message)}",
    ]
    return marks + [f"other {reason}" for reason in set(of_others)]
