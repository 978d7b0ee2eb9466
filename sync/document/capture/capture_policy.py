"""Decide once, when an exchange is recorded, what of it goes into the document; the event stores the decision.

Projections depend on the log alone, so other devices and later builds render what was decided here, whatever their
settings. A repeated call with the same idempotency key gets the same decision. Two processes that record the same words
at the same moment do not see each other, and both lines stay.
"""

import re
from itertools import chain
from typing import Any, Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.exchange_events import ExchangeInput, RedactedExchange, keyed_event_id, repeated_exchange_id
from sync.document.markdown.model import Block, Snapshot
from sync.document.markdown.one_line import ELLIPSIS
from sync.document.markdown.repeat_suffix import split_repeat_count
from sync.document.markdown.template import QUESTION_PREFIXES, question_of
from sync.document.markdown.words import WORDS
from sync.document.merge.line_index import HashedMultimap, LineIndex
from sync.document.merge.text_equality import (
    comparison_key,
    core_words,
    have_same_words,
    is_echo,
    is_recalled_answer,
    line_letters,
)
from sync.log import store as log_store
from sync.log.envelope import day_of
from sync.log.log import EventLog
from sync.log.model import Event
from sync.sequences import common_ends
from sync.settings.sections import RecordSettings

MAX_RECENT_EXCHANGES: Final = 256  # exchanges that the document may not contain yet
ORDINARY_IMPORTANCE: Final = 0.3  # at least that of an exchange that is no small talk
_SENTENCE: Final = re.compile(r"[^\s。！？!?][^\n。！？!?]*[。！？!?]*")
_POLICY_FIELDS: Final = ("preferences", "repeats", "recalled", "in_document", "importance")


class CapturePolicy:
    """Decides for one profile, and remembers recent decisions until the document shows them."""

    def __init__(self, events: EventLog, options: RecordSettings, clock: Clock) -> None:
        self._log = events
        self._clock = clock
        self._options = options
        self._version = 0
        self._index = DocumentIndex()
        self._recent: tuple[_RecentExchange, ...] = ()  # replaced, never changed: it is read on another thread

    def remember(self, event: Event) -> None:
        """Note an exchange after its transaction is committed: the next one may repeat it."""
        if repeated_exchange_id(event) is None and event.payload.get("in_document") is not False:
            question, answer = (str(event.payload.get(side, "")) for side in ("question", "answer"))
            exchange = _RecentExchange(event.event_id, question, answer)
            self._recent = (*self._recent[1 - MAX_RECENT_EXCHANGES :], exchange)

    def decide(self, connection: Transaction, exchange: ExchangeInput, redacted: RedactedExchange) -> dict[str, Any]:
        """Additional fields for the payload of the exchange's event; none for an ordinary exchange.

        `repeats`: the exchange of today that says the same; `recalled`: the answer only repeats the memory and is not
        stored again; `importance` with `in_document: false`. Call it in the transaction that records the exchange: a
        separate read takes as long as the rest of an update.
        """
        key = keyed_event_id(self._log.device_id, exchange.idempotency_key)
        recorded = None if key is None else log_store.find_event(connection, key)
        if recorded is not None:
            return _recorded_decisions(recorded)
        if (hidden := self._below_threshold(exchange, redacted)) is not None:
            return hidden
        if not self._options.deduplicate:
            return {}
        self._refresh_index(connection)
        return self._repeat_fields(connection, exchange, redacted)

    def echoes(self, answer: str) -> list[tuple[int, int]]:
        """The sentences of an answer that are lines of the memory, as starts and ends. Call it after `decide`."""
        known = [*self._index.lines.candidates_in(answer), *(line for one in self._recent for line in one.lines)]
        return [found.span() for found in _SENTENCE.finditer(answer) if is_echo(found[0], known)]

    def _below_threshold(self, exchange: ExchangeInput, redacted: RedactedExchange) -> dict[str, Any] | None:
        threshold = self._options.min_importance
        if threshold <= 0.0:
            return None
        weight = exchange.importance
        if weight is None:
            weight = _importance_in_document(redacted, threshold)
        return None if weight >= threshold else {"importance": weight, "in_document": False}

    def _repeat_fields(
        self, connection: Transaction, exchange: ExchangeInput, redacted: RedactedExchange
    ) -> dict[str, Any]:
        words = comparison_key(redacted.question)
        recent = [one.event_id for one in self._recent if one.question_key == words]
        today = self._clock.now().date()
        for event_id in (*self._index.exchanges_asking(redacted.question), *recent):  # the oldest first
            event = log_store.find_event(connection, event_id)
            if event is not None and day_of(event) == today and _is_repeat(event, exchange, redacted):
                return {"repeats": event_id}
        recent_lines = (line for one in self._recent for line in one.lines)
        if is_recalled_answer(redacted.answer, chain(self._index.lines.candidates_in(redacted.answer), recent_lines)):
            return {"recalled": True, "answer": WORDS[redacted.language].recalled_answer}
        return {}

    def _refresh_index(self, connection: Transaction) -> None:
        """Update the index to the newest version."""
        number = store.newest_number(connection, store.FILE)
        current = store.newest(connection, store.FILE) if number != self._version else None
        if current is not None:
            self._index.update(current.snapshot)
            self._version = current.number


class _RecentExchange:
    """An exchange recorded just now, ready to be compared."""

    def __init__(self, event_id: str, question: str, answer: str) -> None:
        self.event_id = event_id
        self.question_key = comparison_key(question)
        self.lines = line_letters(question), line_letters(answer)


class DocumentIndex:
    """The lines and questions of a document, updated by the lines that changed."""

    def __init__(self) -> None:
        self.lines = LineIndex()
        self._ids: tuple[str, ...] = ()
        self._entries: tuple[Block, ...] = ()
        self._questions = HashedMultimap()  # the words of a question -> its entry ids

    def exchanges_asking(self, question: str) -> list[str]:
        """The exchanges with this question, in document order."""
        entry_ids = self._questions.get(core_words(question))
        if len(entry_ids) > 1:
            entry_ids = sorted(entry_ids, key=self._ids.index)
        return [entry_id.removesuffix(".q") for entry_id in entry_ids]

    def update(self, snapshot: Snapshot) -> None:
        """Index this snapshot in place of the one before."""
        ids, entries = snapshot.ids, snapshot.document.entries
        head, tail = common_ends((self._ids, ids), (self._entries, entries))
        was, now = (
            dict.fromkeys(zip(names[head : len(names) - tail], blocks[head : len(blocks) - tail], strict=True))
            for names, blocks in ((self._ids, self._entries), (ids, entries))
        )
        for entry_id, block in was:  # changes far apart enclose many lines that stay
            if (entry_id, block) not in now:
                self._change(entry_id, block, add=False)
        for entry_id, block in now:
            if (entry_id, block) not in was:
                self._change(entry_id, block, add=True)
        self._ids, self._entries = ids, entries

    def _change(self, entry_id: str, block: Block, *, add: bool) -> None:
        """Add a line to the index, or remove it."""
        (self.lines.add if add else self.lines.remove)(block.raw)
        if (words := _question_key(entry_id, block)) is not None:
            (self._questions.add if add else self._questions.remove)(words, entry_id)


def _question_key(entry_id: str, block: Block) -> str | None:
    """The words of a line that is the question of an exchange."""
    text = block.text
    if not entry_id.endswith(".q") or not text.startswith(QUESTION_PREFIXES):
        return None
    return core_words(question_of(split_repeat_count(text)[0]))


def _is_repeat(event: Event, exchange: ExchangeInput, redacted: RedactedExchange) -> bool:
    """Whether question and answer have the same words; shortened ones must have had the same length."""
    sides = (("question", redacted.question, exchange.user_message), ("answer", redacted.answer, exchange.ai_response))
    for name, summary, whole in sides:
        recorded = event.payload.get(name)
        if not isinstance(recorded, str) or not have_same_words(recorded, summary):
            return False
        if summary.endswith(ELLIPSIS) and event.payload.get(f"{name}_length") != len(whole):
            return False
    return True


def _importance_in_document(redacted: RedactedExchange, threshold: float) -> float:
    """The importance of an exchange, as far as the threshold needs it: the whole estimate takes a millisecond."""
    from sync.small_talk import is_small_talk  # noqa: PLC0415
    from sync.understanding.importance import SMALL_TALK, estimate_importance  # noqa: PLC0415

    if is_small_talk(redacted.user_message):
        return SMALL_TALK
    if threshold <= ORDINARY_IMPORTANCE:
        return ORDINARY_IMPORTANCE
    return max(ORDINARY_IMPORTANCE, estimate_importance(redacted.user_message))


def _recorded_decisions(event: Event) -> dict[str, Any]:
    """The policy fields of an event that is recorded already."""
    fields = {name: event.payload[name] for name in _POLICY_FIELDS if name in event.payload}
    if fields.get("recalled"):
        fields["answer"] = event.payload.get("answer")
    return fields
