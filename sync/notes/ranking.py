"""Rank notes for a message: 0.7 meaning and 0.3 words, at most two, or none. Pure.

Words decide whether a note is relevant, because something is always nearest by meaning; meaning decides the order, and
lets a note pass with less of the words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from sync.notes.model import ARCHIVE, LOCAL, NoteFile
from sync.recall.relevance.calibration import rare_weights
from sync.recall.relevance.message_signals import read_signals
from sync.recall.text.tokenizer import index_terms

SEMANTIC_WEIGHT: Final = 0.7
KEYWORD_WEIGHT: Final = 0.3
MAX_RETRIEVED: Final = 2
MIN_COVER: Final = 0.34  # of the message's weight, without meaning
MIN_COVER_WITH_MEANING: Final = 0.15  # if the note is near by meaning
MIN_MEANING: Final = 0.8  # of the best item's semantic score
COVERED: Final = 0.75  # of a decision point's weight, which a note's scene and decision hold
HEADLINE_FACTOR: Final = 1.5  # of terms in Title and When to load
LOCAL_FACTOR: Final = 0.8


class RankedNote(msgspec.Struct, frozen=True):
    """A note with its scores, 0 to 1; `semantic` is None if only words were compared.

    `label`: whose it is, if it is not the person's.
    """

    file: NoteFile
    score: float
    keyword: float
    semantic: float | None
    label: str = ""


def is_searchable(text: str) -> bool:
    """Whether a message has a subject: not a greeting, and not empty."""
    return bool(text.strip()) and not read_signals(text).is_small_talk and bool(rare_weights(text))


def rank(text: str, files: Iterable[NoteFile], meaning: Mapping[str, float] | None = None) -> list[RankedNote]:
    """The relevant notes, best first, at most two. `meaning`: semantic scores by note id; None without models."""
    terms = rare_weights(text)
    total = sum(terms.values())
    if not total:
        return []
    found = [_rank_one(terms, total, file, meaning) for file in files if file.note.status != ARCHIVE]
    relevant = [one for one in found if _is_relevant(one)]
    return sorted(relevant, key=lambda one: (-one.score, one.file.note_id))[:MAX_RETRIEVED]


def covering(decision_point: str, options: Sequence[str], ranked: Sequence[RankedNote]) -> RankedNote | None:
    """The note that covers a decision point: most of its words, and one of its options if there are any.

    If the note's decision is one of the options, as many words as make it relevant are enough.
    """
    for one in ranked:
        note, decision = one.file.note, one.file.note.decision_field("Decision")
        said = "\n".join((*note.when_to_load, note.title, note.one_liner, decision))
        is_option = not options or any(_cover(rare_weights(option), said) >= COVERED for option in options)
        is_decided = any(_cover(rare_weights(option), decision) >= COVERED for option in options)
        if is_option and _cover(rare_weights(decision_point), said) >= (MIN_COVER if is_decided else COVERED):
            return one
    return None


def _rank_one(
    terms: Mapping[str, float], total: float, file: NoteFile, meaning: Mapping[str, float] | None
) -> RankedNote:
    note = file.note
    headline = set(index_terms("\n".join((note.title, *note.when_to_load))))
    body = set(index_terms(note.searchable)) | headline
    value = sum(
        weight * (HEADLINE_FACTOR if term in headline else 1.0) for term, weight in terms.items() if term in body
    )
    keyword = min(value / total, 1.0)
    semantic = None if meaning is None else meaning.get(file.note_id, 0.0)
    score = keyword if semantic is None else SEMANTIC_WEIGHT * semantic + KEYWORD_WEIGHT * keyword
    return RankedNote(file, score * (LOCAL_FACTOR if note.status == LOCAL else 1.0), keyword, semantic)


def _is_relevant(one: RankedNote) -> bool:
    near = one.semantic is not None and one.semantic >= MIN_MEANING
    return one.keyword >= (MIN_COVER_WITH_MEANING if near else MIN_COVER)


def _cover(terms: Mapping[str, float], text: str) -> float:
    total, present = sum(terms.values()), set(index_terms(text))
    return sum(weight for term, weight in terms.items() if term in present) / total if total else 0.0
