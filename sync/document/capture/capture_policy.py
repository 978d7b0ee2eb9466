"""What of an exchange goes into the document, and how: decided once, when it is recorded, and kept in its event.

Decisions
    Every view is a function of the log, so what depends on a setting, on the document as it stands or on what was said
    before is written into the event: other devices and later builds render what was decided here, whatever their
    settings. The fields: `preferences` (statements of the user's, with origin), `repeats` (the exchange that said the
    same), `recalled` (the answer gave memory back, and is not stored again), `in_document: false` and `importance`.
    A preference is added once: who takes its line away by hand does not find it again after the next time he says it.
    A call that is made again with its idempotency key is what it was: the same decisions, whatever has changed since.
    Two processes that record the same words at the same moment do not see each other: then both lines stand.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.exchange_events import ExchangeInput, RedactedExchange, keyed_event_id, repeated_exchange_id
from sync.document.capture.importance import estimate_importance
from sync.document.capture.preferences import StatedPreference, find_preferences
from sync.document.markdown.model import Block, MemoryDocument, Snapshot
from sync.document.markdown.one_line import ELLIPSIS
from sync.document.markdown.repeat_suffix import split_repeat_count
from sync.document.markdown.template import PREFERENCES, QUESTION_PREFIX
from sync.document.merge.line_index import HashedMultimap, LineIndex
from sync.document.merge.text_equality import (
    comparison_key,
    core_words,
    have_same_words,
    is_recalled_answer,
    line_letters,
)
from sync.log import store as log_store
from sync.log.event_types import EXCHANGE_RECORDED
from sync.log.log import EventLog
from sync.log.model import Event, Origin
from sync.sequences import common_prefix_length, common_suffix_length
from sync.settings.sections import RecordSettings

RECALLED_ANSWER_TEXT: Final = "（与已有记忆相同）"  # stands for an answer that gave memory back
MAX_RECENT_EXCHANGES: Final = 256  # exchanges of this process kept until the document has them
_POLICY_FIELDS: Final = ("preferences", "repeats", "recalled", "in_document", "importance")


class CapturePolicy:
    """One profile's decisions about what was said. It remembers what it has just decided."""

    def __init__(self, events: EventLog, options: RecordSettings) -> None:
        self._log = events
        self._options = options
        self._version = 0
        self._index = DocumentIndex()
        self._recent: tuple[_RecentExchange, ...] = ()  # replaced, never changed: it is read on another thread

    def remember(self, event: Event) -> None:
        """The exchange is recorded, its transaction committed: what is said next may repeat it."""
        if repeated_exchange_id(event) is None and event.payload.get("in_document") is not False:
            said = _RecentExchange(
                event.event_id, *(str(event.payload.get(side, "")) for side in ("question", "answer"))
            )
            self._recent = (*self._recent[1 - MAX_RECENT_EXCHANGES :], said)

    def decide(self, connection: Transaction, exchange: ExchangeInput, redacted: RedactedExchange) -> dict[str, Any]:
        """Fields for the payload of the exchange's event; none where there is nothing special about it.

        Inside the transaction that records it: a read of its own before it takes as long as the rest of an update.
        """
        key = keyed_event_id(self._log.device_id, exchange.idempotency_key)
        known = None if key is None else log_store.find_event(connection, key)
        if known is not None:
            return _recorded_decisions(known)
        stated = find_preferences(redacted.user_message) if self._options.preferences else ()
        if (hidden := self._below_threshold(exchange, redacted, states_preference=bool(stated))) is not None:
            return hidden
        self._refresh_index(connection)
        decided: dict[str, Any] = {}
        if new := [one for one in stated if not self._is_known_preference(connection, one)]:
            decided["preferences"] = [_preference_payload(one) for one in new]
        if self._options.deduplicate:
            decided |= self._repeat_fields(connection, exchange, redacted)
        return decided

    def _below_threshold(
        self, exchange: ExchangeInput, redacted: RedactedExchange, *, states_preference: bool
    ) -> dict[str, Any] | None:
        if self._options.min_importance <= 0.0:
            return None
        weight = exchange.importance
        if weight is None:
            weight = estimate_importance(
                redacted.user_message, redacted.ai_response, states_preference=states_preference
            )
        return None if weight >= self._options.min_importance else {"importance": weight, "in_document": False}

    def _is_known_preference(self, connection: Transaction, stated: StatedPreference) -> bool:
        """Whether it stands in the document, or was said before (and perhaps taken away by hand since)."""
        if self._index.has_preference(stated.text):
            return True
        return log_store.contains_text(connection, self._log.device_id, EXCHANGE_RECORDED, stated.entry_id)

    def _repeat_fields(
        self, connection: Transaction, exchange: ExchangeInput, redacted: RedactedExchange
    ) -> dict[str, Any]:
        words = comparison_key(redacted.question)
        recent = [said.event_id for said in self._recent if said.question_key == words]
        for event_id in (*self._index.exchanges_asking(redacted.question), *recent):  # the oldest first
            event = log_store.find_event(connection, event_id)
            if event is not None and _is_repeat(event, exchange, redacted):
                return {"repeats": event_id}
        just_said = (line for said in self._recent for line in said.lines)
        if is_recalled_answer(redacted.answer, chain(self._index.lines.candidates_in(redacted.answer), just_said)):
            return {"recalled": True, "answer": RECALLED_ANSWER_TEXT}
        return {}

    def _refresh_index(self, connection: Transaction) -> None:
        """Know the document as it stands; what a version changed is read once."""
        number = store.newest_number(connection, store.FILE)
        current = store.newest(connection, store.FILE) if number != self._version else None
        if current is not None:
            self._index.update(current.snapshot)
            self._version = current.number


class _RecentExchange:
    """An exchange that was recorded just now, ready to be compared."""

    def __init__(self, event_id: str, question: str, answer: str) -> None:
        self.event_id = event_id
        self.question_key = comparison_key(question)
        self.lines = line_letters(question), line_letters(answer)


class DocumentIndex:
    """What a document says, ready to be compared. Follows the document by what has changed in it."""

    def __init__(self) -> None:
        self.lines = LineIndex()
        self._snapshot = Snapshot(MemoryDocument())
        self._questions = HashedMultimap()  # the words of a question -> its entry ids
        self._preference_counts: Counter[str] = Counter()  # the bare words of preferences

    def exchanges_asking(self, question: str) -> list[str]:
        """The exchanges that ask this, in the order of the document."""
        entry_ids = self._questions.get(core_words(question))
        if len(entry_ids) > 1:
            entry_ids = sorted(entry_ids, key=self._snapshot.ids.index)
        return [entry_id.removesuffix(".q") for entry_id in entry_ids]

    def has_preference(self, preference: str) -> bool:
        """Whether this stands among the preferences."""
        return self._preference_counts[core_words(preference)] > 0

    def update(self, snapshot: Snapshot) -> None:
        """Be what is known of this snapshot."""
        before, now = self._snapshot, snapshot
        head = min(
            common_prefix_length(before.ids, now.ids),
            common_prefix_length(before.document.entries, now.document.entries),
        )
        most = min(len(before.ids), len(now.ids)) - head
        tail = common_suffix_length(before.ids, now.ids, most)
        tail = common_suffix_length(before.document.entries, now.document.entries, tail)
        for at in range(head, len(before.ids) - tail):
            self._remove(before.ids[at], before.document.entries[at])
        for at in range(head, len(now.ids) - tail):
            self._add(now.ids[at], now.document.entries[at])
        self._snapshot = snapshot

    def _add(self, entry_id: str, block: Block) -> None:
        self.lines.add(block.raw)
        if (words := _question_key(entry_id, block)) is not None:
            self._questions.add(words, entry_id)
        if block.section[:1] == (PREFERENCES,):
            self._preference_counts[core_words(block.text)] += 1

    def _remove(self, entry_id: str, block: Block) -> None:
        self.lines.remove(block.raw)
        if (words := _question_key(entry_id, block)) is not None:
            self._questions.remove(words, entry_id)
        if block.section[:1] == (PREFERENCES,):
            self._preference_counts[core_words(block.text)] -= 1


def _question_key(entry_id: str, block: Block) -> str | None:
    """The bare words of a line that is the question of an exchange."""
    text = block.text
    if not entry_id.endswith(".q") or not text.startswith(QUESTION_PREFIX):
        return None
    return core_words(split_repeat_count(text)[0].removeprefix(QUESTION_PREFIX))


def _is_repeat(event: Event, exchange: ExchangeInput, redacted: RedactedExchange) -> bool:
    """Question and answer alike; where one was cut, what was cut off has to have the same length."""
    sides = (("question", redacted.question, exchange.user_message), ("answer", redacted.answer, exchange.ai_response))
    for name, summary, whole in sides:
        known = event.payload.get(name)
        if not isinstance(known, str) or not have_same_words(known, summary):
            return False
        if summary.endswith(ELLIPSIS) and event.payload.get(f"{name}_length") != len(whole):
            return False
    return True


def _preference_payload(stated: StatedPreference) -> Mapping[str, Any]:
    return {
        "entry_id": stated.entry_id,
        "section": list(stated.section),
        "text": stated.text,
        "origin": str(Origin.USER),
    }


def _recorded_decisions(event: Event) -> dict[str, Any]:
    """The decisions of an event that is recorded already."""
    before = {name: event.payload[name] for name in _POLICY_FIELDS if name in event.payload}
    if before.get("recalled"):
        before["answer"] = event.payload.get("answer")
    return before
