"""The use cases that write notes: remember, answer a question, archive, delete.

A payload is checked, scored, compared with the nearest notes and gated; nothing is written before the answer to a
question (docs/decisions/024-notes.md).
"""

import difflib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from sync.errors import InvalidInput
from sync.log.event_types import MEMORY_QUESTION_ANSWERED, MEMORY_QUESTION_ASKED, MEMORY_QUESTION_EXPIRED
from sync.notes import governance, note_draft, score_card
from sync.notes.audit import Question, question_to_payload
from sync.notes.model import ARCHIVE, STATUSES, Action, AnswerOption, Layer, NoteFile, Payload, ScoreCard
from sync.notes.note_format import render_note, with_meta
from sync.notes.payloads import parse_payloads, payload_of, payload_to_json
from sync.notes.workspace import NoteWorkspace, OpenNotes

OutcomeStatus = Literal[
    "written", "needsConfirmation", "known", "notWritten", "vetoed", "cancelled", "deleted", "compared"
]
EraseTexts = Callable[[Sequence[str]], Awaitable[object]]  # ids of events
NearByMeaning = Callable[[str, str], Awaitable[Sequence[str]]]  # project and text to ids of notes, nearest first
TextVectors = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]  # unit vectors; none without a model
ID_BYTES: Final = 4

TEMPLATE: Final = render_note(
    {"Title": "一句话标题", "Id": "MEM-xxxxxxxx", "Status": "active", "Strength": "hypothesis"},
    when_to_load=["什么情形下需要这条记忆（1 到 3 条）"],
    one_liner="给助手的一句提醒：做什么，不做什么。",
    decision={
        "Decision": "选择了什么",
        "Signals": "依据",
        "Alternatives": "放弃了什么",
        "Counter-signals": "何时不适用",
    },
    pointers=["代码或文档的位置"],
)


class NoteOutcome(msgspec.Struct, frozen=True):
    """What became of a payload or of an answer. `diff`: what a confirmed question would change."""

    status: OutcomeStatus
    action: Action
    reason: str = ""
    note_id: str = ""
    file: str = ""
    layer: Layer = Layer.NONE
    card: ScoreCard | None = None
    is_estimated: bool = False
    question: Question | None = None
    diff: str = ""


class RememberResult(msgspec.Struct, frozen=True):
    """The outcomes in the order of the payloads. `is_empty`: the project has no notes."""

    outcomes: tuple[NoteOutcome, ...]
    notices: tuple[str, ...]
    is_empty: bool


class NotesService:
    """One profile's writing of notes. `near_by_meaning` and `vectors` ask recall; without models they find nothing."""

    def __init__(
        self,
        workspace: NoteWorkspace,
        near_by_meaning: NearByMeaning,
        erase_texts: EraseTexts,
        vectors: TextVectors,
    ) -> None:
        self._vectors = vectors
        self.workspace = workspace
        self._erase_texts = erase_texts
        self._near_by_meaning = near_by_meaning

    async def remember(
        self, project: str, payloads: object, *, session: str = "", creates_folder: bool = False
    ) -> RememberResult:
        """Keep the payloads that deserve it. Raises InvalidInput naming every fault, before anything is written."""
        parsed = [self._redacted(payload) for payload in parse_payloads(payloads)]
        async with self.workspace.open(project) as opened:
            await self._expire(opened)
            if creates_folder or parsed:
                opened.folder.create(TEMPLATE)
            outcomes = [await self._remember_one(opened, payload, self._clean(session)) for payload in parsed]
            return RememberResult(tuple(outcomes), tuple(opened.notices), not opened.notes)

    async def answer(self, project: str, question_id: str, option: AnswerOption) -> NoteOutcome:
        """Answer a question. `d` compares and leaves it pending. Raises InvalidInput if it is not pending."""
        async with self.workspace.open(project) as opened:
            await self._expire(opened)
            question = opened.audit.questions.get(question_id)
            if question is None:
                hint = "`xiaobai-memory notes questions` lists those that wait; they expire after 30 days."
                raise InvalidInput("no such question waits for an answer", field="questionId", hint=hint)
            if option is AnswerOption.COMPARE:
                before, after = (text.splitlines() for text in _texts(opened, question))
                lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=1)
                return replace(self._question_outcome(opened, question), status="compared", diff="\n".join(lines))
            if option is AnswerOption.WRITE_AS_NEW and question.action not in {Action.MERGE, Action.REPLACE}:
                raise InvalidInput("only a merge or a replacement can be written as new", field="option")
            if option is AnswerOption.CONFIRM and self._is_stale(opened, question):
                return await self._ask_again(opened, question)
            if option is AnswerOption.CANCEL:
                outcome = NoteOutcome("cancelled", question.action, "the user cancelled", question.note_id)
            else:
                outcome = await self._carry_out(opened, question, as_new=option is AnswerOption.WRITE_AS_NEW)
            closed = {"question_id": question.question_id, "option": str(option)}
            await self.workspace.record(project, (MEMORY_QUESTION_ANSWERED, closed))
            return outcome

    async def questions(self, project: str) -> list[NoteOutcome]:
        """The questions that wait, oldest first."""
        async with self.workspace.open(project) as opened:
            await self._expire(opened)
            pending = opened.audit.pending(self.workspace.clock.now())
            return [self._question_outcome(opened, question) for question in pending]

    async def set_status(self, project: str, note_id: str, status: str) -> NoteOutcome:
        """Archive a note, or make it active or local again. Raises InvalidInput."""
        if status not in STATUSES:
            raise InvalidInput(f"status is one of {', '.join(STATUSES)}", field="status")
        async with self.workspace.open(project) as opened:
            file = own_note(opened, note_id)
            text = with_meta(file.note.text, {"Status": status, "UpdatedAt": opened.now})
            if file.note.status == status:
                return NoteOutcome("known", Action.MERGE, f"it is {status} already", note_id, file.file)
            done = await self.workspace.write_note(opened, file.file, text, file.sha256, by="status")
            return NoteOutcome("written", Action.MERGE, f"it is {status} now", note_id, done.file)

    async def delete(self, project: str, note_id: str) -> NoteOutcome:
        """Ask whether a note is to be deleted. Raises InvalidInput if there is none."""
        async with self.workspace.open(project) as opened:
            file = own_note(opened, note_id)
            return await self._ask(opened, self._question(opened, Action.DELETE, file), "a deletion is always asked")

    async def _remember_one(self, opened: OpenNotes, payload: Payload, session: str) -> NoteOutcome:
        card = payload.scores or score_card.estimate(payload)
        verdict = score_card.decide(card)
        scored = NoteOutcome(
            "notWritten",
            Action.NEW,
            verdict.reason,
            layer=verdict.layer,
            card=card,
            is_estimated=payload.scores is None,
        )
        if verdict.layer is Layer.NONE:
            return scored
        decision = await self._decide(opened, payload)
        scored = replace(scored, action=decision.action, reason=f"{verdict.reason}; {decision.reason}")
        if decision.action is Action.VETO:
            assert decision.note is not None
            return replace(scored, status="vetoed", note_id=decision.note.note_id, file=decision.note.file)
        if decision.action is Action.MERGE and decision.note is not None:
            known = note_draft.merged_note_text(decision.note.note, payload, now=opened.now, session=session)
            if known == decision.note.note.text:
                return replace(scored, status="known", note_id=decision.note.note_id, file=decision.note.file)
        question = self._question(opened, decision.action, decision.note, payload, verdict.layer, session)
        if governance.must_ask(payload, decision.action):
            asked = await self._ask(opened, question, scored.reason)
            return replace(scored, status=asked.status, note_id=asked.note_id, question=question, diff=asked.diff)
        done = await self._carry_out(opened, question, as_new=False)
        return replace(scored, status=done.status, note_id=done.note_id, file=done.file)

    async def _decide(self, opened: OpenNotes, payload: Payload) -> governance.Decision:
        own = (file for file in opened.content.current if file.is_shared or opened.is_taken(file))
        current = [file for file in own if file.note.status != ARCHIVE]
        if not current:
            return governance.decide(payload, [])
        text = f"{payload.scene}\n{payload.choice}"
        meaning = await self._near_by_meaning(str(opened.folder.project), text)
        near = governance.nearest(payload, current, meaning)
        rules = [(payload.scene, payload.choice)]
        rules += [(one.scene, one.choice) for one in map(governance.as_payload, near)]
        texts = [text for scene, choice in rules for text in (scene, choice, f"{scene}：{choice}")]
        likenesses = governance.likenesses(await self._vectors(texts))
        return governance.decide(payload, near, dict(zip((file.note_id for file in near), likenesses, strict=False)))

    async def _carry_out(self, opened: OpenNotes, question: Question, *, as_new: bool) -> NoteOutcome:
        """Write what a question asked about. What a crash left half done is finished, not done twice."""
        target = opened.notes.get(question.note_id) if question.note_id else None
        if question.action is Action.DELETE:
            if target is not None:
                await self.workspace.remove_note(opened, target, "delete")
            await self._erase_texts(await self.workspace.text_events(opened, question.note_id))
            return NoteOutcome("deleted", Action.DELETE, "the user confirmed", question.note_id)
        assert question.payload is not None
        payload, layer = payload_of(question.payload), Layer(question.layer)
        if question.action is Action.MERGE and not as_new and target is not None and not target.is_shared:
            text = note_draft.merged_note_text(target.note, payload, now=opened.now, session=question.session)
            if text != target.note.text:
                await self.workspace.write_note(opened, target.file, text, target.sha256, by="merge")
            return NoteOutcome("written", Action.MERGE, "merged", target.note_id, target.file, layer)
        is_replaced = question.action is Action.REPLACE and not as_new
        done = await self._write_new(opened, question, payload, layer, target if is_replaced else None)
        if is_replaced and target is not None and not target.is_shared and target.note.status != ARCHIVE:
            text = with_meta(target.note.text, {"Status": ARCHIVE, "UpdatedAt": opened.now})
            await self.workspace.write_note(opened, target.file, text, target.sha256, by="replace")
        action = Action.REPLACE if is_replaced else Action.NEW
        return NoteOutcome("written", action, "written", done.note_id, done.file, layer)

    def _is_stale(self, opened: OpenNotes, question: Question) -> bool:
        """Whether the note changed since the question, other than by an answer that a crash cut off."""
        if not question.note_id or question.new_note_id in opened.notes:
            return False
        target = opened.notes.get(question.note_id)
        if target is None:
            return question.action is not Action.DELETE
        if target.sha256 == question.note_sha256:
            return False
        before, after = _texts(opened, question)
        return question.action is not Action.MERGE or before != after

    async def _ask_again(self, opened: OpenNotes, question: Question) -> NoteOutcome:
        """Ask with the note as it is now; the old question ends without effect."""
        project, target = str(opened.folder.project), opened.notes.get(question.note_id)
        again = replace(
            question,
            question_id=f"q-{self._new_id()}",
            action=Action.NEW if target is None else question.action,
            asked_at=opened.now,
            note_id="" if target is None else target.note_id,
            note_sha256="" if target is None else target.sha256,
        )
        ended = (MEMORY_QUESTION_EXPIRED, {"question_id": question.question_id})
        await self.workspace.record(project, ended, (MEMORY_QUESTION_ASKED, question_to_payload(again)))
        reason = "the note changed since the question was asked; nothing was written"
        return replace(self._question_outcome(opened, again), reason=reason)

    async def _write_new(
        self, opened: OpenNotes, question: Question, payload: Payload, layer: Layer, replaced: NoteFile | None
    ) -> NoteFile:
        if (written := opened.notes.get(question.new_note_id)) is not None:
            return written
        text = note_draft.new_note_text(
            payload,
            layer,
            note_id=question.new_note_id,
            now=opened.now,
            session=question.session,
            supersedes="" if replaced is None else replaced.note_id,
        )
        file = note_draft.note_file_name(question.new_note_id)
        by, duplicate = ("replace" if replaced else "remember"), (question.note_id if replaced is None else "")
        return await self.workspace.write_note(opened, file, text, None, by=by, duplicate_of=duplicate)

    async def _ask(self, opened: OpenNotes, question: Question, reason: str) -> NoteOutcome:
        project = str(opened.folder.project)
        await self.workspace.record(project, (MEMORY_QUESTION_ASKED, question_to_payload(question)))
        return replace(self._question_outcome(opened, question), reason=reason)

    def _question_outcome(self, opened: OpenNotes, question: Question) -> NoteOutcome:
        diff = note_draft.in_words(
            opened.notes.get(question.note_id), None if question.payload is None else payload_of(question.payload)
        )
        note_id = question.note_id or question.new_note_id
        return NoteOutcome("needsConfirmation", question.action, note_id=note_id, question=question, diff=diff)

    def _question(
        self,
        opened: OpenNotes,
        action: Action,
        file: NoteFile | None,
        payload: Payload | None = None,
        layer: Layer = Layer.NONE,
        session: str = "",
    ) -> Question:
        return Question(
            question_id=f"q-{self._new_id()}",
            action=action,
            asked_at=opened.now,
            note_id="" if file is None else file.note_id,
            note_sha256="" if file is None else file.sha256,
            new_note_id=f"MEM-{self._new_id()}",
            layer=str(layer),
            payload=None if payload is None else payload_to_json(payload),
            session=session,
        )

    async def _expire(self, opened: OpenNotes) -> None:
        """Record the questions that were not answered in time; they have no effect any more."""
        expired = opened.audit.expired(self.workspace.clock.now())
        await self.workspace.record(
            str(opened.folder.project),
            *((MEMORY_QUESTION_EXPIRED, {"question_id": question.question_id}) for question in expired),
        )
        for question in expired:
            opened.audit.questions.pop(question.question_id, None)

    def _new_id(self) -> str:
        return self.workspace.clock.random_bytes(ID_BYTES).hex()

    def _clean(self, text: str) -> str:
        return str(self.workspace.redactor.clean(text))

    def _redacted(self, payload: Payload) -> Payload:
        """The payload without secrets: notes travel with the project."""
        texts = {"scene": payload.scene, "principles": payload.principles, "evidence": payload.evidence}
        clean = self.workspace.redactor.clean_payload({**texts, "choice": payload.choice}).value
        return replace(payload, **{**clean, "principles": tuple(clean["principles"])})


def _texts(opened: OpenNotes, question: Question) -> tuple[str, str]:
    """The text of the note before and after a confirmed question."""
    target = opened.notes.get(question.note_id) if question.note_id else None
    before = "" if target is None or (target.is_shared and question.payload is not None) else target.note.text
    if question.payload is None:
        return before, ""
    payload = payload_of(question.payload)
    if question.action is Action.MERGE and target is not None and not target.is_shared:
        return before, note_draft.merged_note_text(target.note, payload, now=opened.now, session=question.session)
    text = note_draft.new_note_text(
        payload,
        Layer(question.layer),
        note_id=question.new_note_id,
        now=opened.now,
        session=question.session,
        supersedes=question.note_id if question.action is Action.REPLACE else "",
    )
    return before, text


async def take_notes(workspace: NoteWorkspace, project: str, note_ids: Sequence[str], *, takes_all: bool) -> list[str]:
    """Make notes of a repository the person's own: all, or those of these ids. Raises InvalidInput."""
    async with workspace.open(project) as opened:
        wanted = {own_note(opened, note_id).note_id for note_id in note_ids}
        files = [file for file in opened.takeable if takes_all or file.note_id in wanted]
        await workspace.take(opened, files)
        return [file.note_id for file in files]


def own_note(opened: OpenNotes, note_id: str) -> NoteFile:
    """A note of the project itself. Raises InvalidInput if there is none, or if it is shared."""
    file = opened.notes.get(note_id)
    if file is None:
        raise InvalidInput("there is no note of this id", field="id", hint="`xiaobai-memory notes list` shows the ids.")
    if file.is_shared:
        hint = "Change it in the repository it comes from, or write a note of the project with the same id."
        raise InvalidInput("a shared note is not changed here", field="id", hint=hint)
    return file
