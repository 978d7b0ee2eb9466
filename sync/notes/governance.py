"""Compare a payload with the nearest notes and decide: merge, replace, veto or new. Pure.

Scenes and choices are compared by their words, the rare ones more than those of any scene, and by meaning if there is a
model. Why the thresholds are what they are: docs/decisions/024-notes.md.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from operator import mul
from typing import Final, NamedTuple

import msgspec

from sync.notes.model import Action, NoteFile, Payload
from sync.recall.ranking.bm25 import term_weights
from sync.recall.relevance.calibration import rare_weights
from sync.recall.text.tokenizer import content_terms, normalise

NEAREST: Final = 5  # notes that are compared
SAME_SCENE: Final = 0.5  # of the smaller scene's weight, which the other shares
SAME_CHOICE: Final = 0.55  # likewise, of choices
SAME_OBJECT: Final = 0.6  # likewise, of what two short choices name
REJECTED_CHOICE: Final = 0.75  # a choice that the other side rejects by name
MAX_CACHED_TEXTS: Final = 2_048  # whose terms are kept between two comparisons
NEAR_SCENE: Final = 0.3  # by meaning, of scenes of one rule in other words
SAME_SCENE_BY_MEANING: Final = 0.72
SAME_CHOICE_BY_MEANING: Final = 0.55
SAME_RULE: Final = 0.58  # by meaning, of scene and choice together

_NEGATION: Final = re.compile(
    r"不要|不用|不再|不准|不得|不能|不应|不许|禁止|避免|别用|别再|别|勿|停用|弃用|拒绝|不"
    r"|\b(?:never|don't|do not|not|avoid|without|stop|no longer|no|forbid|ban|disable)\b",
    re.IGNORECASE,
)
_VERB: Final = re.compile(
    r"^(?:应该|应|要|必须|一律|统一|默认|优先|总是|先)*(?:使用|采用|选择|选用|改用|用|选|写|放在|放到|放)"
    r"|^(?:always |should |must |prefer to )*(?:prefer|use|using|choose|pick|adopt|write|keep|put)\s+",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"[A-Za-z][\w.+#-]*|\d+|[\u4e00-\u9fff]+")
MAX_OBJECT_CHARS: Final = 24  # of a short choice, such as "use PostgreSQL"


class Relation(StrEnum):
    """How a payload relates to a note."""

    SAME = "same"  # scene and conclusion
    CONFLICT = "conflict"  # the scene, and the opposite conclusion
    OTHER = "other"


class Likeness(NamedTuple):
    """How near a payload and a note are by meaning: their scenes, their choices, and both together."""

    scene: float
    choice: float
    rule: float


class Decision(msgspec.Struct, frozen=True):
    """What to do with a payload, and the note that decides it."""

    action: Action
    note: NoteFile | None
    reason: str


def overlap(one: str, other: str) -> float:
    """The weight of the terms that two texts share, as a part of the lighter text; 0 to 1."""
    return _shared(_weights(one), _weights(other))


@lru_cache(maxsize=MAX_CACHED_TEXTS)
def _weights(text: str) -> dict[str, float]:
    return term_weights(content_terms(text))


def _shared(weights: Mapping[str, float], others: Mapping[str, float]) -> float:
    smaller = min(sum(weights.values()), sum(others.values()))
    shared = sum(min(weight, others[term]) for term, weight in weights.items() if term in others)
    return min(shared / smaller, 1.0) if smaller else 0.0


def relation(payload: Payload, file: NoteFile, likeness: Likeness | None = None) -> Relation:
    """Compare the scene first; another scene is another note, whatever it concludes.

    The same rule in other words is the same; a rule is never replaced by that of a scene that is only near.
    """
    note, near = file.note, likeness or Likeness(0.0, 0.0, 0.0)
    by_words = max(
        # words of any scene (选择, 处理, choosing) are no sign of the same one
        min(overlap(payload.scene, scene), _shared(rare_weights(payload.scene), rare_weights(scene)))
        for scene in (*note.when_to_load, note.title)
    )
    is_conflict = _is_conflict(payload, note.decision, note.alternatives)
    if by_words >= SAME_SCENE or near.scene >= SAME_SCENE_BY_MEANING:
        if is_conflict:
            return Relation.CONFLICT
        if overlap(payload.choice, note.decision) >= SAME_CHOICE:
            return Relation.SAME
    is_same_rule = (
        near.scene >= NEAR_SCENE and near.choice >= SAME_CHOICE_BY_MEANING and near.rule >= SAME_RULE
        and overlap(payload.choice, note.decision) < 1.0  # the same few words fit many scenes
    )  # fmt: skip
    return Relation.SAME if is_same_rule and not is_conflict else Relation.OTHER


def contradict(one: NoteFile, other: NoteFile) -> bool:
    """Whether two notes conclude the opposite in one scene."""
    return any(
        relation(as_payload(file), against) is Relation.CONFLICT for file, against in ((one, other), (other, one))
    )


def as_payload(file: NoteFile) -> Payload:
    """A note as a judgement, to compare it with another."""
    note = file.note
    scene = next(iter(note.when_to_load), note.title)
    return Payload(scene, (note.decision, *note.alternatives), note.decision, "auto", "low")


def likenesses(vectors: Sequence[Sequence[float]]) -> list[Likeness]:
    """From the vectors of scene, choice and both, of a payload and then of each note."""
    mine, others = vectors[:3], range(3, len(vectors), 3)
    return [
        Likeness(*(sum(map(mul, one, other)) for one, other in zip(mine, vectors[at : at + 3], strict=True)))
        for at in others
    ]


def nearest(payload: Payload, files: Iterable[NoteFile], meaning: Sequence[str] = ()) -> list[NoteFile]:
    """The nearest notes, best first. `meaning`: ids of notes near by meaning, of which the first come first."""
    rank = {note_id: 1.0 - at / (len(meaning) + 1) for at, note_id in enumerate(meaning)}
    text = f"{payload.scene}\n{payload.choice}"
    scored = [(overlap(text, file.note.searchable) + rank.get(file.note_id, 0.0), file) for file in files]
    best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].note_id))
    return [file for _, file in best[:NEAREST]]


def decide(payload: Payload, near: Sequence[NoteFile], likeness: Mapping[str, Likeness] | None = None) -> Decision:
    """A conflict decides before a likeness: a note that says the opposite is never joined silently."""
    relations = [(file, relation(payload, file, (likeness or {}).get(file.note_id))) for file in near]
    conflict = next((file for file, found in relations if found is Relation.CONFLICT), None)
    same = next((file for file, found in relations if found is Relation.SAME), None)
    if conflict is not None:
        if is_user_choice(payload):
            return Decision(Action.REPLACE, conflict, "the same scene with another conclusion, and the user chose")
        return Decision(Action.VETO, conflict, "the same scene with another conclusion, and nobody decided")
    if same is not None:
        return Decision(Action.MERGE, same, "the same scene and the same conclusion")
    return Decision(Action.NEW, None, "no note of this scene says the same or the opposite")


def is_user_choice(payload: Payload) -> bool:
    """Whether the user made the choice: asked for by `/remember`, or chosen among options."""
    return payload.source in {"choice", "remember"}


def must_ask(payload: Payload, action: Action) -> bool:
    """The gate: everything but a new note of high confidence needs an answer."""
    return action is not Action.NEW or payload.confidence != "high"


def _is_conflict(payload: Payload, decision: str, alternatives: Sequence[str]) -> bool:
    if any(overlap(payload.choice, option) >= REJECTED_CHOICE and _same_sign(payload.choice, option)
           for option in alternatives):  # fmt: skip
        return overlap(payload.choice, decision) < 1.0 or not _same_sign(payload.choice, decision)
    if any(
        overlap(decision, option) >= REJECTED_CHOICE and _same_sign(decision, option) for option in payload.rejected
    ):
        return True
    if not _same_sign(payload.choice, decision):
        return overlap(_without_negation(payload.choice), _without_negation(decision)) >= SAME_CHOICE
    return _is_other_object(payload.choice, decision)


def _same_sign(one: str, other: str) -> bool:
    return bool(_NEGATION.search(one)) == bool(_NEGATION.search(other))


def _without_negation(text: str) -> str:
    return _NEGATION.sub(" ", text)


def _is_other_object(one: str, other: str) -> bool:
    """Whether both say to use one thing, and the things differ: PostgreSQL and MySQL."""
    verb, other_verb = _VERB.match(one), _VERB.match(other)
    if verb is None or other_verb is None or max(len(one), len(other)) > MAX_OBJECT_CHARS + verb.end():
        return False
    words, others = _object_words(one[verb.end() :]), _object_words(other[other_verb.end() :])
    return bool(words and others) and overlap(" ".join(words), " ".join(others)) < SAME_OBJECT


def _object_words(text: str) -> list[str]:
    return _WORDS.findall(normalise(text).lower())
