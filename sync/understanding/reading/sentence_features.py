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


class SentenceFeatures(msgspec.Struct, frozen=True):
    """Features of one sentence by itself: n-grams, n-grams of word classes, both ends, and marks of form."""

    grams: list[bytes]
    classes: list[bytes]
    begin: list[bytes]
    end: list[bytes]
    marks: list[bytes]
    context: list[bytes]  # what the other sentences of the message see of it
    context_classes: list[bytes]


class MessageFeatures(msgspec.Struct, frozen=True):
    """Features of a message: of each sentence, of both ends of the message, and of the turn before."""

    sentences: list[SentenceFeatures]
    begin: list[bytes]
    end: list[bytes]
    previous: list[bytes]


def language_of(message: str) -> str:
    """`zh` if Chinese characters are at least a tenth of the letters, else `en`."""
    return "zh" if 10 * len(_CHINESE.findall(message)) >= sum(char.isalpha() for char in message) > 0 else "en"


def read_features(
    message: str, previous: str, sentences: Sequence[Sentence], language: str, classes: Mapping[str, str]
) -> MessageFeatures:
    """Read the features of a message. `classes`: the class of each known word."""
    few = sentences[:MAX_SENTENCES]
    units = _characters if language == "zh" else _english_words
    first, last = (units(message[:48])[:12], units(message[-60:])[-14:])
    return MessageFeatures(
        [
            _read_sentence(units(one.text), _marks(message, few, at, bool(previous)), language, classes)
            for at, one in enumerate(few)
        ],
        _encoded(grams(first, (1, 2, 3))),
        _encoded(grams(last, (1, 2, 3))),
        _encoded(grams(units(previous[-100:])[-20:], (1, 2))) if previous else [],
    )


def _read_sentence(units: list[str], marks: list[str], language: str, classes: Mapping[str, str]) -> SentenceFeatures:
    chinese = language == "zh"
    words = [
        classes.get(word, _OTHER if word.isalnum() else word) for word in (cut(units, classes) if chinese else units)
    ]
    coarse = [name[:COARSE] for name in words]
    runs = {size: _encoded(grams(units, (size,))) for size in (1, 2, 3)}
    stems = [] if chinese else _encoded(f"{word[:4]}-" for word in units if len(word) > 4)
    coarse_runs = _encoded(grams(coarse, (1, 2)))
    return SentenceFeatures(
        [*runs[1], *runs[2], *(runs[3] if chinese else stems)],
        _encoded(grams(words, (1, 2))) + [run + b"/" for run in coarse_runs] + _encoded(grams(coarse, (3,))),
        _encoded(grams(units[:_EDGE], (1, 2, 3))),
        _encoded(grams(units[-_EDGE:], (1, 2, 3))),
        _encoded(marks),
        [*runs[2], *(runs[3] if chinese else runs[1])],
        coarse_runs,
    )


def clause_groups(text: str, language: str, classes: Mapping[str, str]) -> dict[str, list[bytes]]:
    """The groups that the words of a clause alone have."""
    units = _characters(text) if language == "zh" else _english_words(text)
    one = _read_sentence(units, [], language, classes)
    return {"g": one.grams, "w": one.classes}


def content_groups(one: SentenceFeatures) -> dict[str, list[bytes]]:
    """The groups that say what a sentence states."""
    return {"G": one.grams, "C": one.classes}


def keys_of(group: str, features: Iterable[bytes]) -> Iterator[int]:
    """The keys of features in the weights."""
    return (key & _KEY_MASK for key in map(crc32, features, repeat(crc32(group.encode()))))


def compose(features: MessageFeatures) -> Iterator[dict[str, list[bytes]]]:
    """The groups of each sentence, with those of its context."""
    every = features.sentences
    for at, one in enumerate(every):
        before, after = every[:at], every[at + 1 :]
        yield {
            "g": one.grams,
            "w": one.classes,
            "b": one.begin,
            "e": one.end,
            "k": one.marks,
            "h": [run for other in before for run in other.context],
            "t": [run for other in after for run in other.context],
            "H": [run for other in before for run in other.context_classes],
            "T": [run for other in after for run in other.context_classes],
            "p": before[-1].grams if before else [],
            "n": after[0].grams if after else [],
            "F": features.begin,
            "L": features.end,
            "q": features.previous,
        }


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


def _characters(text: str) -> list[str]:
    """Chinese characters, Latin words, punctuation; a number is one 0, a line break or blanks one blank."""
    return [" " if unit.isspace() else unit for unit in _UNITS.findall(_DIGITS.sub("0", text.casefold()))]


_UNITS: Final = re.compile(r"[a-z]+|\s+|.")


def _english_words(text: str) -> list[str]:
    return _WORDS.findall(_DIGITS.sub("0", text.casefold().replace("’", "'")))


def _marks(message: str, sentences: Sequence[Sentence], at: int, answers: bool) -> list[str]:
    """Marks of form: where the sentence stands, how it is written, what the segments say of whose it is."""
    one, count = sentences[at], len(sentences)
    place = f"first{min(at, 4)}", f"last{min(count - 1 - at, 4)}"
    lines, line = message.count("\n"), one.line
    foreign = one.foreign or next((clause.foreign for clause in one.clauses if clause.foreign), None)
    of_others = [other.foreign for number, other in enumerate(sentences) if number != at and other.foreign]
    ending = message[one.end - 1]
    head = message[: one.start]
    follower = sentences[at + 1] if at + 1 < count else None
    marks = [
        *place,
        "".join(place),
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
