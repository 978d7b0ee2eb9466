"""`notes/*`: curated notes of a project."""

from typing import Annotated, Any, Literal

import msgspec

from bridge.api.method_table import Params
from bridge.api.path_params import absolute_path
from sync.app import App
from sync.contract import notes as contract
from sync.contract.notes import (
    NoteListJson,
    NoteOutcomeJson,
    NoteRatesJson,
    NotesTakenJson,
    QuestionsJson,
    RememberedJson,
    RetrievedJson,
    SessionNotesJson,
    SharedNotesJson,
    SniffedJson,
)
from sync.errors import InvalidInput
from sync.log.model import MAX_NAME_LENGTH
from sync.log.sessions.pauses import SAVE_AGAIN_HINT
from sync.notes import texts
from sync.notes.model import AnswerOption
from sync.notes.service import take_notes
from sync.texts.table import text

Folder = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Message = Annotated[str, msgspec.Meta(max_length=100_000)]


class NotesProject(Params, frozen=True):
    """`projectPath`: the project's folder."""

    project_path: Folder


class NotesRemember(NotesProject, frozen=True):
    """Payloads as `docs/notes.md` describes them; `scores` D1 to D5 in a payload are those of the caller's model.

    `sessionId`: the conversation. `language`: of a hint.
    """

    payloads: Any = ()
    session_id: Name | None = None
    language: Literal["zh", "en"] | None = None


class NotesAnswer(NotesProject, frozen=True):
    """a confirm, b cancel, c write as new, d compare."""

    question_id: Name
    option: Literal["a", "b", "c", "d"]


class NotesRetrieve(NotesProject, frozen=True):
    """`message`: the user's message, or a summary with keywords."""

    message: Message


class NotesSniff(NotesProject, frozen=True):
    """A decision point with its options, before the user is asked."""

    decision_point: Message
    options: Annotated[tuple[Message, ...], msgspec.Meta(max_length=20)] = ()


class NotesList(NotesProject, frozen=True):
    status: Literal["active", "local", "archive"] | None = None


class NotesOne(NotesProject, frozen=True):
    id: Name


class NotesTake(NotesProject, frozen=True):
    """`ids`: the notes to take; `all`: all of the project but the team's."""

    ids: Annotated[tuple[Name, ...], msgspec.Meta(max_length=5_000)] = ()
    all: bool = False


class NotesStatus(NotesOne, frozen=True):
    status: Literal["active", "local", "archive"] = "archive"


class NotesExport(NotesProject, frozen=True):
    """`path`: the folder of the team's repository, absolute or from `~` on."""

    path: Folder


class NotesSession(NotesProject, frozen=True):
    language: Literal["zh", "en"] | None = None


async def remember(app: App, params: NotesRemember) -> RememberedJson:
    """Keep the user's judgements as notes of a project, or ask first."""
    return await _remember(app, params, creates_folder=False)


async def extract(app: App, params: NotesRemember) -> RememberedJson:
    """Keep judgements extracted from a conversation as notes, or ask first."""
    return await _remember(app, params, creates_folder=False)


async def init(app: App, params: NotesRemember) -> RememberedJson:
    """Create a project's folder of notes; keep confirmed drafts."""
    return await _remember(app, params, creates_folder=True)


async def _remember(app: App, params: NotesRemember, *, creates_folder: bool) -> RememberedJson:
    payloads = list(params.payloads) if isinstance(params.payloads, tuple) else params.payloads
    session = app.draft_builder.safe_session_id(params.session_id) or ""
    is_paused = await app.log.database.read(app.memory_service.pauses.is_paused, session)
    if session and is_paused:
        raise InvalidInput("this conversation is not to be saved", field="sessionId", hint=SAVE_AGAIN_HINT)
    done = await app.notes().service.remember(
        params.project_path, payloads, session=session, creates_folder=creates_folder
    )
    return contract.remembered_to_json(done, text(texts.COLD_START, await app.memory_service.language(params.language)))


async def answer(app: App, params: NotesAnswer) -> NoteOutcomeJson:
    """Answer a question about a note."""
    option = AnswerOption(params.option)
    return contract.outcome_to_json(await app.notes().service.answer(params.project_path, params.question_id, option))


async def questions(app: App, params: NotesProject) -> QuestionsJson:
    """The questions that wait for an answer."""
    found = await app.notes().service.questions(params.project_path)
    return {"questions": [contract.question_to_json(outcome) for outcome in found]}


async def retrieve(app: App, params: NotesRetrieve) -> RetrievedJson:
    """At most two notes for a message; none without a match."""
    found = await app.notes().queries.retrieve(params.project_path, params.message)
    return contract.retrieved_to_json(found, text(texts.COLD_START, await app.memory_service.language()))


async def sniff(app: App, params: NotesSniff) -> SniffedJson:
    """Whether a note already decides a point."""
    found = await app.notes().queries.sniff(params.project_path, params.decision_point, params.options)
    return contract.sniffed_to_json(found)


async def list_notes(app: App, params: NotesList) -> NoteListJson:
    """The notes of a project, shared ones included."""
    return contract.note_list_to_json(await app.notes().queries.list_notes(params.project_path, status=params.status))


async def show(app: App, params: NotesOne) -> NoteListJson:
    """One note with its text."""
    return contract.note_list_to_json(await app.notes().queries.show(params.project_path, params.id), with_text=True)


async def archive(app: App, params: NotesStatus) -> NoteOutcomeJson:
    """Change the status of a note."""
    return contract.outcome_to_json(await app.notes().service.set_status(params.project_path, params.id, params.status))


async def delete(app: App, params: NotesOne) -> NoteOutcomeJson:
    """Ask whether a note is to be deleted."""
    return contract.outcome_to_json(await app.notes().service.delete(params.project_path, params.id))


async def take(app: App, params: NotesTake) -> NotesTakenJson:
    """Make notes that a repository brought the person's own."""
    if not params.ids and not params.all:
        hint = "Give ids, as `notes list` shows them, or `all`; nothing was taken."
        raise InvalidInput("it is not said which notes to take", field="ids", hint=hint)
    workspace = app.notes().service.workspace
    return {"taken": await take_notes(workspace, params.project_path, params.ids, takes_all=params.all)}


async def session(app: App, params: NotesSession) -> SessionNotesJson:
    """The convention and the notes marked to load, for a session's start."""
    language = await app.memory_service.language(params.language)
    return contract.session_to_json(await app.notes().queries.session(params.project_path, language))


async def export(app: App, params: NotesExport) -> SharedNotesJson:
    """Copy the notes that are for the team into the folder of its repository."""
    target = absolute_path(params.path, "path")
    return contract.shared_to_json(await app.notes().queries.export(params.project_path, target))


async def doctor(app: App, params: NotesProject) -> NoteRatesJson:
    """The four rates of notes, and where INDEX.md differs from them."""
    queries = app.notes().queries
    rates, drift = await queries.rates(params.project_path), await queries.drift(params.project_path)
    return {
        "duplicateCreation": rates["duplicateCreation"],
        "mergeConversion": rates["mergeConversion"],
        "fragmentation": rates["fragmentation"],
        "correctionAfterInjection": rates["correctionAfterInjection"],
        "drift": drift,
    }
