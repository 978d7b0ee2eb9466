"""The lines under 用户偏好 that show what is known about the user, and what a manual edit of them says. Pure.

A line shows one active fact; its entry id derives from the fact's id. Who deletes the line retracts the fact, who
changes it edits the fact, and who writes it again confirms it. Lines that were changed by hand are never changed or
removed by the program.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

import msgspec

from sync.document.markdown.entry_ids import fact_entry_id
from sync.document.markdown.model import (
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    Operation,
    Section,
    Snapshot,
)
from sync.document.markdown.one_line import escape_markdown, one_line, unescape_markdown
from sync.document.markdown.template import (
    COMMUNICATION_STYLE,
    PERSONAL,
    PREFERENCES,
    TECHNICAL_PREFERENCES,
    WORK_HABITS,
)
from sync.document.merge.text_equality import core_words
from sync.errors import InvalidInput
from sync.log.model import EventDraft
from sync.redaction import Redactor
from sync.understanding import answers
from sync.understanding.fact_events import ELLIPSIS
from sync.understanding.model import MAX_STATEMENT_LENGTH, USER_SUBJECT, AnswerKind, Fact, FactSection, FactStatus
from sync.understanding.projection import Facts

AT_END: Final = ""  # no entry has this id: at the end of the section
BULLET: Final = "- "
SECTION_OF: Final[dict[FactSection, Section]] = {
    FactSection.WORK_HABITS: WORK_HABITS,
    FactSection.COMMUNICATION_STYLE: COMMUNICATION_STYLE,
    FactSection.TECHNICAL_PREFERENCES: TECHNICAL_PREFERENCES,
    FactSection.PERSONAL: PERSONAL,
}
RETRACTION_REASON: Final = "document"


def fact_line(statement: str) -> str:
    """The line of a statement."""
    return BULLET + escape_markdown(one_line(statement))


class FactLines(msgspec.Struct, frozen=True):
    """The lines of facts in one document.

    `devices`: the ids of this device, which adds the lines of the facts that have its words. `today`: a fact that held
    until an earlier day is not shown. `redact`: as for the log. Another device's words are shown in its own document.
    """

    facts: Facts
    devices: Collection[str]
    today: date
    redact: Callable[[str], str]

    def changes(self, snapshot: Snapshot) -> list[Operation]:
        """What the document lacks of the facts: lines to add, change and remove."""
        by_entry = self._facts_by_entry
        present = set(snapshot.ids)
        operations: list[Operation] = []
        shown: set[str] = set()  # facts
        preferences: set[str] = set()
        for entry in snapshot.entries:
            fact = by_entry.get(entry.entry_id)
            if fact is None:
                preferences |= {core_words(entry.text)} if entry.section[:1] == (PREFERENCES,) else set()
                continue
            own_id = fact_entry_id(fact.fact_id)
            is_second = entry.entry_id != own_id and (own_id in present or fact.fact_id in shown)
            shown.add(fact.fact_id)
            operations += self._changes_of_line(entry, fact, is_second=is_second)
        for fact in self.facts.facts:
            line = fact_line(fact.statement)
            if fact.fact_id not in shown and self._belongs_here(fact) and core_words(line) not in preferences:
                operations.append(EntryAdded(fact_entry_id(fact.fact_id), AT_END, SECTION_OF[fact.section], line))
        return operations

    @property
    def _facts_by_entry(self) -> dict[str, Fact]:
        """The facts by the ids of their lines: two devices may have stated the same before they knew of each other."""
        known = self.facts.by_id
        return {fact_entry_id(name): known[fact_id] for name, fact_id in self.facts.id_of_statement.items()}

    @property
    def sources(self) -> dict[str, str]:
        """The newest event about the fact of each line, by the ids of the lines."""
        return {entry_id: self._newest_event(fact) for entry_id, fact in self._facts_by_entry.items()}

    def _newest_event(self, fact: Fact) -> str:
        if fact.superseded_by is not None:
            return fact.superseded_by
        stated = [(one.hlc, one.fact_id) for one in self.facts.statements_of(fact)]
        return max([*stated, *((one.hlc, one.event_id) for one in self.facts.answers_of(fact))])[1]

    def _changes_of_line(self, entry: Entry, fact: Fact, *, is_second: bool) -> Iterator[Operation]:
        text, statement = self._statement_in(entry.text), one_line(fact.statement)
        if text != statement and text not in self._former_texts(fact):
            return  # changed by hand
        is_foreign = (self.facts.editor_of(fact) or "") not in {"", *self.devices}
        if is_second or not self._is_shown(fact) or (is_foreign and self._is_stated_here(fact)):
            yield EntryRemoved(entry.entry_id, entry.text, entry.section)
        elif text != statement and not is_foreign:
            yield EntryEdited(entry.entry_id, entry.text, fact_line(fact.statement), entry.section)

    def answers(self, operations: Iterable[Operation], redactor: Redactor) -> list[EventDraft]:
        """The answers about facts that a manual edit gives.

        A line without an active fact gives none, except that the line of a retracted fact, written again, confirms it.
        """
        by_entry = self._facts_by_entry
        by_words = {core_words(fact_line(fact.statement)): fact for fact in self.facts.active}
        operations = list(operations)
        added = {core_words(self.redact(one.text)) for one in operations if isinstance(one, EntryAdded)}
        drafts: list[EventDraft] = []
        for operation in operations:
            if isinstance(operation, EntryAdded):
                drafts += self._confirmations(operation, redactor)
                continue
            before = operation.text if isinstance(operation, EntryRemoved) else operation.base_text
            fact = by_entry.get(operation.entry_id)
            if fact is None and operation.section[:1] == (PREFERENCES,):
                fact = by_words.get(core_words(self.redact(before)))  # a line from before there were facts
            if fact is None or fact.status is not FactStatus.ACTIVE:
                continue
            if isinstance(operation, EntryRemoved):
                if core_words(fact_line(fact.statement)) in added:
                    continue  # moved and written in another way
                retracted = AnswerKind.RETRACTED, self.facts, fact.fact_id, redactor
                drafts.append(answers.verdict_draft(*retracted, reason=RETRACTION_REASON))
            elif (text := self._statement_in(operation.text)) not in {"", one_line(fact.statement)}:
                with suppress(InvalidInput):  # the line stays; the fact keeps its text
                    drafts.append(answers.edit_draft(self.facts, fact.fact_id, _bounded(text), redactor))
        return drafts

    def _confirmations(self, added: EntryAdded, redactor: Redactor) -> Iterator[EventDraft]:
        """The confirmation of the retracted fact whose line was restored, or written again."""
        words = core_words(self.redact(added.text))
        same = [fact for fact in self.facts.facts if core_words(fact_line(fact.statement)) == words]
        is_retracted = bool(same) and all(fact.status is FactStatus.RETRACTED for fact in same)
        if is_retracted and added.section[:1] == (PREFERENCES,):
            yield answers.verdict_draft(AnswerKind.CONFIRMED, self.facts, same[-1].fact_id, redactor)

    @property
    def next_end(self) -> date | None:
        """The first day on which a fact that is shown today is over; None if none has an end."""
        ends = [end for fact in self.facts.active if self._is_shown(fact) and (end := _end_of(fact)) is not None]
        return min(ends, default=None)

    def _is_shown(self, fact: Fact) -> bool:
        end = _end_of(fact)
        return fact.status is FactStatus.ACTIVE and fact.subject == USER_SUBJECT and (end is None or end > self.today)

    def _belongs_here(self, fact: Fact) -> bool:
        editor = self.facts.editor_of(fact)
        authors = {one.device_id for one in self.facts.statements_of(fact)} if editor is None else {editor}
        return self._is_shown(fact) and not authors.isdisjoint(self.devices)

    def _is_stated_here(self, fact: Fact) -> bool:
        """Whether the line is one that this device added; other lines are of a document that devices shared."""
        return any(one.device_id in self.devices for one in self.facts.statements_of(fact))

    def _former_texts(self, fact: Fact) -> set[str]:
        stated = {one_line(one.statement.text) for one in self.facts.statements_of(fact)}
        edits = (one.statement for one in self.facts.answers_of(fact))
        return stated | {one_line(statement.text) for statement in edits if statement is not None}

    def _statement_in(self, line: str) -> str:
        """The statement that a line shows."""
        text = one_line(self.redact(line))
        return unescape_markdown(text[2:].strip() if text[:2] in {"- ", "* ", "+ "} else text)


def _end_of(fact: Fact) -> date | None:
    """The day after the last one on which a fact holds; None without one, and for a date that is none."""
    try:
        return None if fact.valid_until is None else date.fromisoformat(fact.valid_until[:10]) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_STATEMENT_LENGTH else text[: MAX_STATEMENT_LENGTH - 1] + ELLIPSIS
