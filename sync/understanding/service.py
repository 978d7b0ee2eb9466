"""The use cases of facts: list, review, confirm, reject, edit, retract, explain. An answer is one event."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sync.clock import Clock, new_event_id
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.event_types import MEMORY_FACT
from sync.log.log import EventLog, resolve_ids
from sync.log.model import Door, Event, EventDraft, project_id_for
from sync.redaction import Redactor
from sync.understanding import answers
from sync.understanding.changes.service import ForeignChangeService
from sync.understanding.fact_events import statement_draft
from sync.understanding.model import REMEMBER, AnswerKind, Fact, FactAnswer, RecordedStatement, Statement
from sync.understanding.projection import FactProjection, Facts


@dataclass(frozen=True, slots=True)
class FactExplanation:
    """Why a fact is what it is: its statements, the answers about it, what it replaced, and what replaced it."""

    fact: Fact
    statements: tuple[RecordedStatement, ...]
    answers: tuple[FactAnswer, ...]
    supersedes: tuple[Fact, ...]
    replaced_by: Fact | None


class FactService:
    """One profile's facts."""

    def __init__(self, log: EventLog, redactor: Redactor, clock: Clock) -> None:
        self._log = log
        self._redactor = redactor
        self._clock = clock
        self.projection = FactProjection(lambda: log.own_device_ids, clock)
        self.changes = ForeignChangeService(log, redactor, clock, self.projection)

    async def current(self) -> Facts:
        """All facts. Raises StorageError."""
        return await self._log.database.read(self.projection.read)

    async def explain(self, fact_id: str) -> FactExplanation:
        """Why a fact is what it is. Raises InvalidInput."""
        facts = await self.current()
        fact = answers.find_fact(facts, await self._resolved(fact_id))
        replaced = tuple(one for one in facts.facts if one.superseded_by == fact.fact_id)
        statements, verdicts = tuple(facts.statements_of(fact)), tuple(facts.answers_of(fact))
        return FactExplanation(fact, statements, verdicts, replaced, facts.by_id.get(fact.superseded_by or ""))

    async def events_of(self, chosen: Sequence[Fact]) -> list[Event]:
        """The events of facts, and the exchanges in which they were stated."""
        facts = await self.current()
        statements = [one for fact in chosen for one in facts.statements_of(fact)]
        names = dict.fromkeys(name for one in statements for name in (one.event_id, one.fact_id))

        def read(connection: Transaction) -> list[Event]:
            return [event for name in names if (event := log_store.find_event(connection, name)) is not None]

        return await self._log.database.read(read)

    async def remember(self, statement: Statement, session_id: str | None, project_path: str | None) -> Fact:
        """Record what the user asks to be remembered; the fact that it makes, or repeats."""
        place = EventDraft(
            type=MEMORY_FACT,
            payload=self._redactor.clean_payload({}),
            project_id=project_id_for(project_path),
            project_path=None if project_path is None else self._redactor.clean(project_path),
            session_id=session_id,
            event_id=new_event_id(self._clock),
            door=Door.COMMAND,
        )
        draft = statement_draft(statement, place, str(place.event_id), self._redactor, extractor=REMEMBER)
        return await self._append(lambda _: draft, str(draft.event_id))

    async def confirm(self, fact_id: str) -> Fact:
        """Make a candidate active, keep a questioned fact, or bring back a retracted one. Raises InvalidInput."""
        return await self._answer(AnswerKind.CONFIRMED, fact_id)

    async def reject(self, fact_id: str) -> Fact:
        """Reject a candidate: it is not proposed again. Raises InvalidInput."""
        return await self._answer(AnswerKind.REJECTED, fact_id)

    async def retract(self, fact_id: str, *, reason: str | None = None) -> Fact:
        """Retract an active fact. Stated again, it stays retracted; `confirm` brings it back. Raises InvalidInput."""
        return await self._answer(AnswerKind.RETRACTED, fact_id, reason)

    async def edit(self, fact_id: str, text: str) -> Fact:
        """Give a fact another text, which confirms it. Raises InvalidInput."""
        fact_id = await self._resolved(fact_id)
        return await self._append(lambda facts: answers.edit_draft(facts, fact_id, text, self._redactor), fact_id)

    async def keep_retracted(self, erased: Collection[str]) -> None:
        """Retract again, before an erasure of these events, what would come back with it."""

        def work(connection: Transaction) -> None:
            drafts = answers.repeated_retractions(self.projection.read(connection), erased, self._redactor)
            if drafts:
                self._log.append_in(connection, drafts)

        await self._log.database.write(work)

    async def _resolved(self, name: str) -> str:
        """Return the id of a fact that a program may have named on this device; any other name as it is."""
        return (await resolve_ids(self._log, [name])).get(name, name)

    async def _answer(self, kind: AnswerKind, name: str, reason: str | None = None) -> Fact:
        """Record an answer that is decided on the newest facts; return the fact after it."""
        fact_id = await self._resolved(name)
        draft = partial(answers.verdict_draft, kind, fact_id=fact_id, redactor=self._redactor, reason=reason)
        return await self._append(draft, fact_id)

    async def _append(self, draft_of: Callable[[Facts], EventDraft], fact_id: str) -> Fact:
        def work(connection: Transaction) -> Fact:
            draft = draft_of(self.projection.read(connection))
            self._log.append_in(connection, [draft])
            return answers.find_fact(self.projection.read(connection), str(draft.payload.value.get("fact_id", fact_id)))

        fact = await self._log.database.write(work)
        self._log.changed.increment()
        return fact
