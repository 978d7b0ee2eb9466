"""The user's answers about facts: which fact an id names, whether the answer fits its status, and its event. Pure.

Every function raises InvalidInput with a hint. The document calls `verdict_draft` and `edit_draft` in its own
transaction, commands through `FactService`.
"""

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from sync.errors import InvalidInput, TooLarge
from sync.log.model import EventDraft
from sync.redaction import Redactor
from sync.understanding.fact_events import answer_draft
from sync.understanding.model import MAX_STATEMENT_LENGTH, AnswerKind, Fact, FactStatus, Statement
from sync.understanding.projection import Facts
from sync.understanding.reading.reader import extract_statements

_ID_PREFIX: Final = "evt_"
_MAX_LISTED: Final = 5  # ids that a hint names
_ALLOWED: Final = {
    AnswerKind.CONFIRMED: (FactStatus.CANDIDATE, FactStatus.RETRACTED),
    AnswerKind.REJECTED: (FactStatus.CANDIDATE,),
    AnswerKind.EDITED: (FactStatus.ACTIVE, FactStatus.CANDIDATE),
    AnswerKind.RETRACTED: (FactStatus.ACTIVE,),
}
_HINTS: Final = {
    AnswerKind.CONFIRMED: "Only a candidate, a questioned fact, or a retracted one (it comes back) can be confirmed.",
    AnswerKind.REJECTED: "Only a candidate can be rejected; retract an active fact.",
    AnswerKind.EDITED: "Only an active fact or a candidate can be edited; confirm a retracted one first.",
    AnswerKind.RETRACTED: "Only an active fact can be retracted; reject a candidate.",
}


def find_fact(facts: Facts, name: str) -> Fact:
    """The fact of an id, of the id of one of its statements, or of the beginning of an id."""
    if (known := facts.id_of_statement.get(name)) is not None:
        return facts.by_id[known]
    found = [fact for fact in facts.facts if fact.fact_id.startswith((name, _ID_PREFIX + name))] if name else []
    if not found:
        raise InvalidInput("no fact has this id", field="factId", hint="`xiaobai-memory facts list` shows the ids.")
    if len(found) > 1:
        ids = ", ".join(fact.fact_id for fact in found[:_MAX_LISTED])
        hint = f"Give more of the id: {ids}{' …' if len(found) > _MAX_LISTED else ''}"
        raise InvalidInput(f"{len(found)} facts have an id that begins like this", field="factId", hint=hint)
    return found[0]


def repeated_retractions(facts: Facts, erased: Collection[str], redactor: Redactor) -> list[EventDraft]:
    """The retractions without which a retracted fact would come back after an erasure of these events.

    A retraction names the statements that it knew. One that was made since belongs to its fact only beside them.
    """
    drafts = []
    for fact in facts.facts:
        left = [name for name in fact.statement_ids if name not in erased]
        verdicts = [one.event_id for one in facts.answers_of(fact)] if fact.status is FactStatus.RETRACTED else []
        is_affected = len(left) < len(fact.statement_ids) or any(name in erased for name in verdicts)
        if verdicts and left and is_affected:
            drafts.append(answer_draft(AnswerKind.RETRACTED, left, redactor))
    return drafts


def edit_draft(facts: Facts, fact_id: str, text: str, redactor: Redactor) -> EventDraft:
    """The event that gives a fact another text; that confirms the fact."""
    statement = _edited_statement(find_fact(facts, fact_id), redactor.clean(" ".join(text.split())))
    return verdict_draft(AnswerKind.EDITED, facts, fact_id, redactor, statement=statement)


def verdict_draft(
    kind: AnswerKind,
    facts: Facts,
    fact_id: str,
    redactor: Redactor,
    *,
    statement: Statement | None = None,
    reason: str | None = None,
) -> EventDraft:
    """The event of an answer that fits the fact's status. `reason`: a word of the program, such as `document`."""
    fact = find_fact(facts, fact_id)
    is_answer = kind is AnswerKind.CONFIRMED and fact.questioned_by is not None
    if fact.status not in _ALLOWED[kind] and not is_answer:
        if fact.is_over:
            hint = "State it again with a day that is still to come."
            raise InvalidInput(f"the last day of the fact was {fact.valid_until}", field="factId", hint=hint)
        raise InvalidInput(f"the fact is {fact.status}", field="factId", hint=_HINTS[kind])
    return answer_draft(kind, fact.statement_ids, redactor, statement=statement, reason=reason)


def _edited_statement(fact: Fact, text: str) -> Statement:
    """The statement with the new text. What the rules find in it counts, else what was known of the old one."""
    if not text:
        raise InvalidInput("a fact needs a text", field="text", hint="Give the new text, or retract the fact.")
    if len(text) > MAX_STATEMENT_LENGTH:
        hint = f"Say it in at most {MAX_STATEMENT_LENGTH} characters; nothing was changed."
        raise TooLarge(f"the text has {len(text)} characters", field="text", hint=hint)
    found = extract_statements(text)
    if len(found) == 1:
        return replace(found[0], text=text, change=None, former=None, confidence=1.0)
    return Statement(text, fact.kind, fact.section, fact.slot, fact.is_negative, valid_until=None)
