"""The audit of notes in the log: what events say of notes, which questions are pending, and the four rates. Pure."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from sync.log.event_types import (
    MEMORY_NOTE_CREATED,
    MEMORY_NOTE_DELETED,
    MEMORY_NOTE_UPDATED,
    MEMORY_QUESTION_ANSWERED,
    MEMORY_QUESTION_ASKED,
    MEMORY_QUESTION_EXPIRED,
    MEMORY_RETRIEVE_PERFORMED,
)
from sync.log.model import MAX_NAME_LENGTH, Door, Event
from sync.log.retractions import Retractions
from sync.notes.model import Action, Layer, NoteFile
from sync.notes.payloads import is_stored_payload

BY_FORGET: Final = "forget"  # `by` of the deletion of a note that was erased
QUESTION_DAYS: Final = 30
EVENT_TEXT_CHARS: Final = 12_000  # of a note's text in an event; a longer file is searched by its beginning
EVENT_TEXT_BYTES: Final = 48_000  # likewise, as JSON
EVENT_TITLE_CHARS: Final = 300  # of a note's title in an event
EVENT_NAME_CHARS: Final = 64  # of a note's status in an event


class Question(msgspec.Struct, frozen=True):
    """A question to the user. `payload` is what governance asked about; None for a deletion."""

    question_id: str
    action: Action
    asked_at: str
    note_id: str  # the note that a merge, replacement or deletion changes; empty for a new one
    note_sha256: str
    new_note_id: str
    layer: str = ""
    payload: Mapping[str, Any] | None = None
    session: str = ""


class AuditState(msgspec.Struct):
    """What the log knows of a project's notes. `known`: the SHA-256 of each note as it was recorded last.

    `taken`: the SHA-256 of all texts that were written here, or that the person took; in a repository no others are
    the person's.
    `forgotten`: notes that were erased. A file of one that stayed or came back is recorded without its text.
    """

    known: dict[str, str] = msgspec.field(default_factory=dict)
    taken: set[str] = msgspec.field(default_factory=set)
    forgotten: set[str] = msgspec.field(default_factory=set)
    questions: dict[str, Question] = msgspec.field(default_factory=dict)
    closed: set[str] = msgspec.field(default_factory=set)
    proposed_merges: int = 0
    confirmed_merges: int = 0
    created: int = 0
    created_as_duplicate: int = 0
    retrieved: set[str] = msgspec.field(default_factory=set)
    corrected: set[str] = msgspec.field(default_factory=set)
    position: int = 0
    retractions: Retractions = msgspec.field(default_factory=Retractions)
    retractions_position: int = 0  # of the newest retraction that `retractions` has

    @property
    def taken_ids(self) -> dict[str, str]:
        """Each text of `taken`, with the id of the note that has it now or ""."""
        return dict.fromkeys(self.taken, "") | {text: name for name, text in self.known.items() if text in self.taken}

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self.position = max(self.position, event.position)
            effective = self.retractions.effective_event(event)
            if effective.payload:
                self._apply_one(effective)

    def pending(self, now: datetime) -> list[Question]:
        return [question for question in self.questions.values() if not is_expired(question, now)]

    def expired(self, now: datetime) -> list[Question]:
        return [question for question in self.questions.values() if is_expired(question, now)]

    def _apply_one(self, event: Event) -> None:
        payload, note_id = event.payload, str(event.payload.get("note_id", ""))
        if event.type in {MEMORY_NOTE_CREATED, MEMORY_NOTE_UPDATED}:
            self.known[note_id] = str(payload.get("sha256", ""))
            self.taken |= set() if event.door == Door.PROJECT or payload.get("shared") else {self.known[note_id]}
            self._count_change(event, note_id)
        elif event.type == MEMORY_NOTE_DELETED:
            self.known.pop(note_id, None)
            if payload.get("by") == BY_FORGET:
                self.forgotten.add(note_id)
            self._count_change(event, note_id)
        elif event.type == MEMORY_RETRIEVE_PERFORMED:
            adopted = payload.get("adopted")
            self.retrieved |= {str(name) for name in adopted} if isinstance(adopted, list | tuple) else set()
        elif event.type == MEMORY_QUESTION_ASKED:
            question = question_of(event)
            if question is not None and question.question_id not in self.closed:
                self.questions[question.question_id] = question
                self.proposed_merges += question.action is Action.MERGE
        elif event.type in {MEMORY_QUESTION_ANSWERED, MEMORY_QUESTION_EXPIRED}:
            question_id = str(payload.get("question_id", ""))
            self.closed.add(question_id)
            asked = self.questions.pop(question_id, None)
            is_confirmed = asked is not None and payload.get("option") == "a"
            self.confirmed_merges += is_confirmed and asked is not None and asked.action is Action.MERGE

    def _count_change(self, event: Event, note_id: str) -> None:
        if event.type == MEMORY_NOTE_CREATED and not event.payload.get("shared"):
            self.created += 1
            self.created_as_duplicate += bool(event.payload.get("duplicate_of"))
        elif note_id in self.retrieved and event.type != MEMORY_NOTE_CREATED:
            self.corrected.add(note_id)

    def rates(self, fragmented: int, active: int) -> dict[str, float | None]:
        """The four rates; None if there is nothing to compare."""
        return {
            "duplicateCreation": _rate(self.created_as_duplicate, self.created),
            "mergeConversion": _rate(self.confirmed_merges, self.proposed_merges),
            "fragmentation": _rate(fragmented, active),
            "correctionAfterInjection": _rate(len(self.corrected & self.retrieved), len(self.retrieved)),
        }


def is_expired(question: Question, now: datetime) -> bool:
    return datetime.fromisoformat(question.asked_at) + timedelta(days=QUESTION_DAYS) <= now


def question_to_payload(question: Question) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        "action": str(question.action),
        "asked_at": question.asked_at,
        "note_id": question.note_id,
        "note_sha256": question.note_sha256,
        "new_note_id": question.new_note_id,
        "layer": question.layer,
        "payload": None if question.payload is None else dict(question.payload),
        "session": question.session,
    }


def question_of(event: Event) -> Question | None:
    """The question of an event; None if another program wrote something else."""
    value = event.payload
    names = ("question_id", "action", "asked_at", "note_id", "note_sha256", "new_note_id", "layer", "session")
    texts = {name: text for name in names if isinstance(text := value.get(name), str)}
    if len(texts) < len(names) or not texts["question_id"]:
        return None
    try:
        action, asked_at = Action(texts.pop("action")), datetime.fromisoformat(texts["asked_at"])
        Layer(texts["layer"])
    except ValueError:
        return None
    payload = value.get("payload")
    is_sound = payload is None if action is Action.DELETE else is_stored_payload(payload)
    return Question(action=action, payload=payload, **texts) if is_sound and asked_at.tzinfo is not None else None


def note_payload(file: NoteFile, *, with_text: bool = True, **more: Any) -> dict[str, Any]:
    """What an event says of a note: enough to search it and to notice a later edit; of a forgotten one, no text."""
    note, session = file.note, file.note.meta.get("Session")
    return {
        "note_id": file.note_id,
        "file": file.file,
        "sha256": file.sha256,
        "title": note.title[:EVENT_TITLE_CHARS] if with_text else "",
        "status": note.status[:EVENT_NAME_CHARS],
        "shared": file.is_shared,
        "text": _event_text(note.searchable) if with_text else "",
        **({"session": session[:MAX_NAME_LENGTH]} if session else {}),
        **more,
    }


def _event_text(text: str) -> str:
    """The beginning of a text that fits into an event; characters that JSON escapes take more bytes."""
    text = text[:EVENT_TEXT_CHARS]
    while len(json.dumps(text, ensure_ascii=False).encode()) > EVENT_TEXT_BYTES:
        text = text[: len(text) * 3 // 4]
    return text


def _rate(part: int, whole: int) -> float | None:
    return None if whole == 0 else round(part / whole, 4)
