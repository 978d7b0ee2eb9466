"""Cut a message into sentences and clauses, and say of each whether it is the sender's own by its form. Pure.

The form decides: quoted, fenced, tagged, introduced by its carrier, written by a machine, to be worked on, asked about.
A line break alone says nothing. What has no such form may still be another's; the scorer decides that.

`read_sentences` is stable: the weights of the scorer are fitted on what it returns (`make fit-understanding`).
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec

from sync.understanding.reading import introductions

MAX_MESSAGE_LENGTH: Final = 4_000  # characters; of a longer message good part was pasted, and it states nothing
FOREIGN_SHARE: Final = 0.5  # of the letters of a clause; more of them in foreign text, and it is not the sender's own


class Foreign(StrEnum):
    """Why a clause is not the sender's own by its form."""

    QUOTED = "quoted"  # between quotation marks, or on a line that begins with >
    FENCED = "fenced"  # a code block
    TAGGED = "tagged"  # between tags, or what speaks to or of an assistant as agents do
    MACHINE = "machine"  # a line of a log, of code, of a table
    INTRODUCED = "introduced"  # its carrier or speaker is named before it
    WORKED_ON = "worked on"  # to be translated, rewritten, continued
    ASKED = "asked"  # the message asks whether it is right, safe, or what it means


class LineForm(StrEnum):
    """How the line of a sentence is written."""

    PROSE = "prose"
    ITEM = "item"  # it begins with a list mark
    FIELD = "field"  # a short name, a colon, and a value


class Clause(msgspec.Struct, frozen=True):
    """A part of a sentence between commas and the like. `start` and `end` are offsets in the message."""

    start: int
    end: int
    foreign: Foreign | None = None
    is_question: bool = False


class Sentence(msgspec.Struct, frozen=True):
    """A sentence. `start` and `end` are offsets in the message, `text` is what is between them, without outer blanks.

    `foreign`: set if all its clauses are foreign. `line`: the number of its line. `paragraph`: of its paragraph.
    """

    start: int
    end: int
    text: str
    clauses: tuple[Clause, ...]
    foreign: Foreign | None = None
    form: LineForm = LineForm.PROSE
    line: int = 0
    paragraph: int = 0

    @property
    def is_question(self) -> bool:
        """Whether its last clause asks."""
        return self.clauses[-1].is_question

    def clause_text(self, at: int) -> str:
        """The words of a clause."""
        return self.text[self.clauses[at].start - self.start : self.clauses[at].end - self.start]


_Span = tuple[int, int, Foreign]

CJK: Final = "\u3400-\u9fff"
_CHINESE: Final = re.compile(f"[{CJK}]")
_PATTERNS: Final = {
    name: re.compile(text)
    for name, text in tomllib.loads(resources.files(__package__).joinpath("segments.toml").read_text("utf-8"))[
        "patterns"
    ].items()
}
_MARKS: Final = {
    "fence": Foreign.FENCED,
    "tags": Foreign.TAGGED,
    "quotes": Foreign.QUOTED,
    "letter_from": Foreign.INTRODUCED,
}
_QUOTED_LINE: Final = re.compile(r"^\s*(?:>|＞|\|\s)")
_CUTS: Final = {
    True: re.compile(
        rf"[，,；;（）()｜|]+|[:：]+(?!//|\d)|——+|—|(?<=[{CJK}])\s+(?=[{CJK}])|\s{{2,}}|\s//\s|\s/\s|(?<=\s)[-–→]\s|[~～]+"
    ),
    False: re.compile(
        r"(?i)[,;()|]+(?=\s|$)|(?<=\S)[(]|[:]+(?=\s)|\s[-–—→/]{1,2}\s|—"
        r"|\s(?=(?:but|because|so that|since|cos|cuz|although|though|and (?:i|i'm|i've|my|we|our|he|she|they|it's))\b)"
    ),
}
_LETTER: Final = re.compile(r"[^\W_]")


def has_chinese(text: str) -> bool:
    """Whether a text has a Chinese character."""
    return _CHINESE.search(text) is not None


def read_sentences(message: str) -> tuple[Sentence, ...]:
    """The sentences of a message in their order, all of it, also those that are not the sender's own."""
    if len(message) > MAX_MESSAGE_LENGTH:
        return ()
    return _read(message)


@lru_cache(maxsize=8)
def _read(message: str) -> tuple[Sentence, ...]:
    spans = list(_marked(message))
    cut = list(_cut(message))
    spans += _introduced(message, cut, spans)
    return tuple(_finished(message, spans, cut))


# --- cutting -------------------------------------------------------------------------------------------------------


def _cut(message: str) -> Iterator[Sentence]:
    """The sentences, with nothing said about whose they are."""
    start, paragraph, was_blank = 0, 0, False
    for number, line in enumerate(message.split("\n")):
        paragraph += was_blank and bool(line.strip())
        was_blank = not line.strip()
        mark = _PATTERNS["item"].match(line)
        form = LineForm.ITEM if mark else LineForm.FIELD if _PATTERNS["field"].match(line) else LineForm.PROSE
        for begin, end in _ends(line, mark.end() if mark else 0):
            if clauses := _clauses(message, start + begin, start + end):
                text = message[start + begin : start + end]
                yield Sentence(start + begin, start + end, text, clauses, None, form, number, paragraph)
        start += len(line) + 1


def _ends(line: str, begin: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of a line begin and end."""
    for match in _PATTERNS["end"].finditer(line, begin):
        if match[0].startswith(".") and _PATTERNS["abbreviation"].search(line[begin : match.end()]):
            continue
        yield from _stripped(line, begin, match.end())
        begin = match.end()
    yield from _stripped(line, begin, len(line))


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if _LETTER.search(piece):
        yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _clauses(message: str, start: int, end: int) -> tuple[Clause, ...]:
    text = message[start:end]
    cuts = list(_CUTS[has_chinese(text)].finditer(text))
    edges = zip([0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(text)], strict=True)
    kept = [edge for left, right in edges for edge in _stripped(text, left, right)]
    asks = introductions.asks(text)
    return tuple(
        Clause(
            start + left,
            start + right,
            None,
            (asks and (left, right) == kept[-1]) or introductions.asks(text[left:right]),
        )
        for left, right in kept
    )


# --- whose it is ---------------------------------------------------------------------------------------------------


def _marked(message: str) -> Iterator[_Span]:
    """The text that is another's by its marks."""
    if introductions.speaks_as_an_agent(message):
        yield 0, len(message), Foreign.TAGGED
    for name, reason in _MARKS.items():
        yield from ((match.start(), match.end(), reason) for match in _PATTERNS[name].finditer(message))
    yield from _blocks(message)
    start = 0
    for line in message.split("\n"):
        if _QUOTED_LINE.match(line):
            yield start, start + len(line), Foreign.QUOTED
        elif _PATTERNS["machine_line"].search(_PATTERNS["quotes"].sub("", line)):
            yield start, start + len(line), Foreign.MACHINE
        start += len(line) + 1


def _blocks(message: str) -> Iterator[_Span]:
    """Lines in a row that are rows of a table, or what several people say in turn."""
    rows: list[tuple[int, int]] = []
    said: list[tuple[int, int, str]] = []
    start = 0
    for line in [*message.split("\n"), ""]:
        end = start + len(line)
        if _PATTERNS["row"].match(line):
            rows.append((start, end))
        else:
            yield from ((*row, Foreign.MACHINE) for row in rows if len(rows) > 1)
            rows = []
        match = _PATTERNS["speaker"].match(line)
        if match is not None and not introductions.is_own_head(match["who"]):
            said.append((start, end, match["words"]))
        elif line.strip() or end >= len(message):
            if len(said) > 1 and any(introductions.speaks_of_self(words) for *_, words in said):
                yield from ((begin, until, Foreign.INTRODUCED) for begin, until, _ in said)
            said = []
        start = end + 1


def _introduced(message: str, sentences: list[Sentence], marked: Iterable[_Span]) -> Iterator[_Span]:
    """The text that the words before it give to another person, or to be worked on, and what is asked about."""
    until = -1
    for number, one in enumerate(sentences):
        if one.start < until:
            continue
        if any(start <= one.start and one.end <= end for start, end, _ in marked):
            continue
        if (found := introductions.introduction(one.text)) is not None:
            at, reason = found[0], Foreign(found[1])
            begin = one.start + at
            until = one.end if at < len(one.text) else _end_of_text(sentences, number)
            if reason is Foreign.WORKED_ON and at < len(one.text):
                until = _end_of_line(message, one.end)
            yield begin, until, reason
        elif (
            number + 1 < len(sentences)
            and sentences[number + 1].line > one.line
            and introductions.points_at_a_text(one.text)
        ):
            yield one.end, _end_of_text(sentences, number), Foreign.WORKED_ON
        elif introductions.asks_about_a_statement(one.text):
            is_first = number == 0 or sentences[number - 1].line != one.line
            if is_first and len(one.clauses) == 1:  # what it asks about follows it
                yield one.start, _end_of_line(message, one.end), Foreign.ASKED
            else:
                yield (sentences[number - 1] if len(one.clauses) == 1 else one).start, one.end, Foreign.ASKED


def _end_of_text(sentences: list[Sentence], number: int) -> int:
    """The end of the paragraph after a sentence that introduces it."""
    rest = sentences[number + 1 :]
    if not rest:
        return sentences[number].end
    first = rest[0]
    if first.line == sentences[number].line:
        return first.end
    return max(one.end for one in rest if one.paragraph == first.paragraph)


def _end_of_line(message: str, at: int) -> int:
    end = message.find("\n", at)
    return len(message) if end < 0 else end


def _finished(message: str, spans: list[_Span], sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    reasons = tuple(Foreign)
    marks = bytearray(len(message))  # of each character, 0 or 1 + the place of its reason; the first span counts
    for start, end, reason in reversed(spans):
        marks[start:end] = bytes([reasons.index(reason) + 1]) * (min(end, len(message)) - start)

    def reason_of(clause: Clause) -> Foreign | None:
        letters = [
            mark
            for mark, char in zip(marks[clause.start : clause.end], message[clause.start : clause.end], strict=True)
            if char.isalnum()
        ]
        mark, count = Counter(letters).most_common(1)[0]
        return reasons[mark - 1] if mark and count > FOREIGN_SHARE * len(letters) else None

    for one in sentences:
        clauses = tuple(msgspec.structs.replace(clause, foreign=reason_of(clause)) for clause in one.clauses)
        found = [clause.foreign for clause in clauses]
        yield msgspec.structs.replace(one, clauses=clauses, foreign=found[0] if None not in found else None)
