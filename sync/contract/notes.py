"""Answers of notes, and how they become JSON."""

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.notes.model import NoteFile
    from sync.notes.queries import NoteList, Retrieved, SessionNotes, SharedNotes
    from sync.notes.ranking import RankedNote
    from sync.notes.service import NoteOutcome, RememberResult

OPTIONS = {"a": "confirm", "b": "cancel", "c": "write as new", "d": "compare"}
REMINDER_CHARS = 200


class QuestionJson(TypedDict):
    """A question to the user. `options`: the letters that `notes/answer` accepts, with their meaning."""

    questionId: str
    action: str
    noteId: str
    askedAt: str
    options: dict[str, str]
    diff: str


class NoteOutcomeJson(TypedDict):
    """What became of a payload or an answer. `scoredBy`: the caller's model, or this program's estimate."""

    status: Literal["written", "needsConfirmation", "known", "notWritten", "vetoed", "cancelled", "deleted", "compared"]
    action: str
    reason: str
    noteId: str
    file: str
    layer: str
    scores: dict[str, int] | None
    scoredBy: Literal["caller", "heuristic"] | None
    needsConfirmation: NotRequired[QuestionJson]


class RememberedJson(TypedDict):
    """One outcome for each payload. `hint`: what to do with an empty store."""

    outcomes: list[NoteOutcomeJson]
    notices: list[str]
    hint: str


class QuestionsJson(TypedDict):
    questions: list[QuestionJson]


class NoteJson(TypedDict):
    """A note. `file`: its path below the project."""

    id: str
    title: str
    kind: str
    status: str
    strength: str
    audience: str
    whenToLoad: list[str]
    oneLiner: str
    supersedes: str
    shared: bool
    file: str
    text: NotRequired[str]


class NoteListJson(TypedDict):
    """`notices`: what was repaired, and what is wrong in the folder. `takeable`: notes that a repository brought."""

    notes: list[NoteJson]
    notices: list[str]
    takeable: int


class NotesTakenJson(TypedDict):
    """The ids of the notes that are the person's now."""

    taken: list[str]


class ReminderJson(TypedDict):
    id: str
    title: str
    reminder: str
    file: str
    score: float


class RetrievedJson(TypedDict):
    """At most two reminders; none without a match. `semantic`: whether meaning was compared."""

    notes: list[ReminderJson]
    semantic: bool
    hint: str


class SniffedJson(TypedDict):
    """`covered`: a note decides this point, so the user need not be asked.

    `contradicting`: `notes` decide it differently, so the user is to be asked.
    """

    covered: bool
    note: ReminderJson | None
    notes: list[ReminderJson]
    contradicting: NotRequired[bool]


class SessionNotesJson(TypedDict):
    """What a session's start is given: the convention and one line for each note."""

    text: str
    notes: list[NoteJson]


class RefusedNoteJson(TypedDict):
    file: str
    reason: str


class SharedNotesJson(TypedDict):
    """An export for the team. `refused`: left as they are there; `others`: notes that are not for the team."""

    written: list[str]
    unchanged: list[str]
    refused: list[RefusedNoteJson]
    others: int


class NoteRatesJson(TypedDict):
    """The four rates, 0 to 1; null if there is nothing to compare. `drift`: INDEX.md against the notes."""

    duplicateCreation: float | None
    mergeConversion: float | None
    fragmentation: float | None
    correctionAfterInjection: float | None
    drift: list[str]


def outcome_to_json(value: "NoteOutcome") -> NoteOutcomeJson:
    card = value.card
    answer: NoteOutcomeJson = {
        "status": value.status,
        "action": str(value.action),
        "reason": value.reason,
        "noteId": value.note_id,
        "file": value.file,
        "layer": str(value.layer),
        "scores": None if card is None else {f"D{at}": score for at, score in enumerate(card.values, 1)},
        "scoredBy": None if card is None else "heuristic" if value.is_estimated else "caller",
    }
    if value.question is not None:
        answer["needsConfirmation"] = question_to_json(value)
    return answer


def question_to_json(value: "NoteOutcome") -> QuestionJson:
    question = value.question
    assert question is not None  # the caller has checked it
    may_be_new = str(question.action) in {"merge", "replace"}
    return {
        "questionId": question.question_id,
        "action": str(question.action),
        "noteId": value.note_id,
        "askedAt": question.asked_at,
        "options": {letter: name for letter, name in OPTIONS.items() if letter != "c" or may_be_new},
        "diff": value.diff,
    }


def remembered_to_json(value: "RememberResult", hint: str) -> RememberedJson:
    return {
        "outcomes": [outcome_to_json(outcome) for outcome in value.outcomes],
        "notices": list(value.notices),
        "hint": hint if value.is_empty and not value.outcomes else "",
    }


def note_to_json(file: "NoteFile", base: str) -> NoteJson:
    note = file.note
    return {
        "id": file.note_id,
        "title": note.title,
        "kind": note.meta.get("Kind", ""),
        "status": note.status,
        "strength": note.meta.get("Strength", ""),
        "audience": note.meta.get("Audience", ""),
        "whenToLoad": list(note.when_to_load),
        "oneLiner": note.one_liner,
        "supersedes": note.meta.get("Supersedes", ""),
        "shared": file.is_shared,
        "file": f"{base}/{file.file}",
    }


def note_list_to_json(value: "NoteList", *, with_text: bool = False) -> NoteListJson:
    notes = [note_to_json(file, value.base) for file in value.notes]
    if with_text:
        for shown, file in zip(notes, value.notes, strict=True):
            shown["text"] = file.note.text
    return {"notes": notes, "notices": list(value.notices), "takeable": value.takeable}


def reminder_to_json(value: "RankedNote", base: str) -> ReminderJson:
    from sync.notes.note_draft import reminder  # noqa: PLC0415 - a start need not load it
    from sync.redaction.prompt_fence import neutralise  # noqa: PLC0415

    file = value.file
    return {
        "id": file.note_id,
        "title": neutralise(file.note.title, ""),
        "reminder": value.label + neutralise(reminder(file.note, REMINDER_CHARS), ""),
        "file": f"{base}/{file.file}",
        "score": round(value.score, 4),
    }


def retrieved_to_json(value: "Retrieved", hint: str) -> RetrievedJson:
    return {
        "notes": [reminder_to_json(one, value.base) for one in value.notes],
        "semantic": any(one.semantic is not None for one in value.notes),
        "hint": hint if value.is_empty else "",
    }


def sniffed_to_json(value: "Retrieved") -> SniffedJson:
    covered = value.covered
    return {
        "covered": covered is not None,
        "contradicting": value.contradicting,
        "note": None if covered is None else reminder_to_json(covered, value.base),
        "notes": [reminder_to_json(one, value.base) for one in value.notes],
    }


def session_to_json(value: "SessionNotes") -> SessionNotesJson:
    return {"text": value.text, "notes": [note_to_json(file, value.base) for file in value.notes]}


def shared_to_json(value: "SharedNotes") -> SharedNotesJson:
    return {
        "written": value.written,
        "unchanged": value.unchanged,
        "refused": [{"file": name, "reason": reason} for name, reason in value.refused.items()],
        "others": value.others,
    }
