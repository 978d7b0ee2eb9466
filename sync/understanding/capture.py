"""Record the facts that the user states in an exchange, in the transaction that records the exchange."""

from collections.abc import Callable
from datetime import date

from msgspec.structs import replace

from sync.clock import Clock, new_event_id
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.model import EventDraft
from sync.redaction import KINDS, Redactor, placeholder
from sync.small_talk import is_small_talk
from sync.understanding import store
from sync.understanding.dates.plan_dates import last_day_of
from sync.understanding.fact_events import statement_drafts
from sync.understanding.likeness import content_of
from sync.understanding.model import UNKNOWN_BEARER, Change, FactKind, Level, Statement
from sync.understanding.reading.reader import extract_statements, points_back, remembered
from sync.understanding.reading.segments import read_sentences


def fact_extractor(
    question: str, redactor: Redactor, clock: Clock, before: store.Turn | None = None
) -> Callable[[Transaction, list[EventDraft]], list[EventDraft]]:
    """Find the facts in a redacted exchange; return what adds their events to the drafts of the exchange.

    `before`: the turn before it: a short answer means what the assistant asked, 记住这个 what the user said. The ids
    derive from the exchange's, so a call that is repeated with its idempotency key records nothing twice, even if the
    rules changed in between.
    """
    today, before = clock.now().date(), before or store.Turn()
    read = extract_statements(question, before.answer) or (_of_turn(before) if points_back(question) else [])
    statements = [_limited(one, today) for one in read if not _has_placeholder(one.text)]

    def add_facts(connection: Transaction, drafts: list[EventDraft]) -> list[EventDraft]:
        stated = [one for one in statements if _counts(connection, one)]
        if not stated or not drafts:
            return drafts
        exchange, *messages = drafts
        if exchange.event_id is None:
            exchange = replace(exchange, event_id=new_event_id(clock))
        elif log_store.find_event(connection, exchange.event_id) is not None:
            return drafts
        return [exchange, *messages, *statement_drafts(stated, exchange, redactor)]

    return add_facts


def _of_turn(turn: store.Turn) -> list[Statement]:
    """What 记住这个 means: the user's words before it; of a question its answer, as a candidate.

    Words in which nothing is read as a statement, and to which more than a nod was answered, may have been a request:
    then both are candidates.
    """
    words, answered = remembered(turn.question), remembered(turn.answer, Level.LIKELY)
    proposed = [] if answered is None else [replace(answered, about=UNKNOWN_BEARER, slot=None)]
    if words is None or all(one.is_question for one in read_sentences(turn.question)):
        return proposed
    if not proposed or is_small_talk(turn.answer) or extract_statements(turn.question):
        return [words]
    return [replace(words, level=Level.LIKELY), *proposed]


def _counts(connection: Transaction, statement: Statement) -> bool:
    """Whether a statement says something of itself, or a change that a known fact can be meant by."""
    is_named = statement.slot is not None or statement.change is Change.CORRECTS
    return not statement.is_tentative or is_named or store.names_fact(connection, content_of(statement.text))


def _limited(statement: Statement, today: date) -> Statement:
    """A plan holds until the last day that it names."""
    if statement.kind is not FactKind.PLAN or (last_day := last_day_of(statement.text, today)) is None:
        return statement
    return replace(statement, valid_until=last_day.isoformat())


def _has_placeholder(text: str) -> bool:
    """Whether redaction took a value out of the statement, which says nothing without it."""
    return any(placeholder(kind) in text for kind in KINDS)
