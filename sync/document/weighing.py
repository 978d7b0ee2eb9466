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

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection

from sync.document import store
from sync.document.capture import EXCHANGE, Exchange, Told, keyed_event_id, repeated_by
from sync.document.importance import importance_of
from sync.document.likeness import Lines, alike, bare, gives_back, letters, likened, parted
from sync.document.model import Block, Document, Snapshot, common, common_end
from sync.document.preferences import Preference, preferences_in
from sync.document.summary import ELLIPSIS
from sync.document.template import PREFERENCES, QUESTION
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import Event, Origin
from sync.sections import RecordSettings

KNOWN_BEFORE: Final = "（与已有记忆相同）"  # stands for an answer that gave memory back
NOT_YET_IN: Final = 256  # exchanges of this process kept until the document has them
_DECIDED: Final = ("preferences", "repeats", "recalled", "in_document", "importance")


class Weighing:
    """One profile's decisions about what was said. It remembers what it has just decided."""

    def __init__(self, events: Log, options: RecordSettings) -> None:
        self._log = events
        self._options = options
        self._version = 0
        self._known = Known()
        self._recent: tuple[_Said, ...] = ()  # replaced, never changed: it is read on another thread

    def note(self, event: Event) -> None:
        """The exchange is recorded, its transaction committed: what is said next may repeat it."""
        if repeated_by(event) is None and event.payload.get("in_document") is not False:
            said = _Said(event.event_id, *(str(event.payload.get(side, "")) for side in ("question", "answer")))
            self._recent = (*self._recent[1 - NOT_YET_IN :], said)

    def decide(self, connection: Connection, exchange: Exchange, told: Told) -> dict[str, Any]:
        """Fields for the payload of the exchange's event; none where there is nothing special about it.

        Inside the transaction that records it: a read of its own before it takes as long as the rest of an update.
        """
        key = keyed_event_id(self._log.device_id, exchange.idempotency_key)
        known = None if key is None else log_store.find(connection, key)
        if known is not None:
            return _as_before(known)
        stated = preferences_in(told.user_message) if self._options.preferences else ()
        if (hidden := self._below(exchange, told, standing=bool(stated))) is not None:
            return hidden
        self._catch_up(connection)
        decided: dict[str, Any] = {}
        if new := [one for one in stated if not self._is_known(connection, one)]:
            decided["preferences"] = [_noted(one) for one in new]
        if self._options.deduplicate:
            decided |= self._repeated(connection, exchange, told)
        return decided

    def _below(self, exchange: Exchange, told: Told, *, standing: bool) -> dict[str, Any] | None:
        if self._options.min_importance <= 0.0:
            return None
        weight = exchange.importance
        if weight is None:
            weight = importance_of(told.user_message, told.ai_response, standing=standing)
        return None if weight >= self._options.min_importance else {"importance": weight, "in_document": False}

    def _is_known(self, connection: Connection, stated: Preference) -> bool:
        """Whether it stands in the document, or was said before (and perhaps taken away by hand since)."""
        if self._known.wants(stated.text):
            return True
        return log_store.says(connection, self._log.device_id, EXCHANGE, stated.entry_id)

    def _repeated(self, connection: Connection, exchange: Exchange, told: Told) -> dict[str, Any]:
        words = likened(told.question)
        recent = [said.event_id for said in self._recent if said.words == words]
        for event_id in (*self._known.asked(told.question), *recent):  # the oldest first
            event = log_store.find(connection, event_id)
            if event is not None and _says_the_same(event, exchange, told):
                return {"repeats": event_id}
        just_said = (line for said in self._recent for line in said.lines)
        if gives_back(told.answer, chain(self._known.lines.begun_in(told.answer), just_said)):
            return {"recalled": True, "answer": KNOWN_BEFORE}
        return {}

    def _catch_up(self, connection: Connection) -> None:
        """Know the document as it stands; what a version changed is read once."""
        number = store.newest_number(connection, store.FILE)
        current = store.newest(connection, store.FILE) if number != self._version else None
        if current is not None:
            self._known.follow(current.snapshot)
            self._version = current.number


class _Said:
    """An exchange that was recorded just now, ready to be compared."""

    def __init__(self, event_id: str, question: str, answer: str) -> None:
        self.event_id = event_id
        self.words = likened(question)
        self.lines = letters(question), letters(answer)


class Known:
    """What a document says, ready to be compared. Follows the document by what has changed in it."""

    def __init__(self) -> None:
        self.lines = Lines()
        self._snapshot = Snapshot(Document())
        self._asked: defaultdict[str, set[str]] = defaultdict(set)  # the bare words of a question -> exchanges
        self._wanted: Counter[str] = Counter()  # the bare words of preferences

    def asked(self, question: str) -> list[str]:
        """The exchanges that ask this, in the order of the document."""
        found = self._asked.get(bare(question), ())
        return sorted(found, key=lambda event_id: self._snapshot.ids.index(f"{event_id}.q") if len(found) > 1 else 0)

    def wants(self, preference: str) -> bool:
        """Whether this stands among the preferences."""
        return self._wanted[bare(preference)] > 0

    def follow(self, snapshot: Snapshot) -> None:
        """Be what is known of this snapshot."""
        before, now = self._snapshot, snapshot
        head = min(common(before.ids, now.ids), common(before.document.entries, now.document.entries))
        most = min(len(before.ids), len(now.ids)) - head
        tail = common_end(before.ids, now.ids, most)
        tail = common_end(before.document.entries, now.document.entries, tail)
        for at in range(head, len(before.ids) - tail):
            self._drop(before.ids[at], before.document.entries[at])
        for at in range(head, len(now.ids) - tail):
            self._take(now.ids[at], now.document.entries[at])
        self._snapshot = snapshot

    def _take(self, entry_id: str, block: Block) -> None:
        self.lines.add(letters(block.text))
        if (words := _question(entry_id, block)) is not None:
            self._asked[words].add(entry_id.removesuffix(".q"))
        if block.section[:1] == (PREFERENCES,):
            self._wanted[bare(block.text)] += 1

    def _drop(self, entry_id: str, block: Block) -> None:
        self.lines.remove(letters(block.text))
        if (words := _question(entry_id, block)) is not None:
            self._asked[words].discard(entry_id.removesuffix(".q"))
            if not self._asked[words]:
                del self._asked[words]
        if block.section[:1] == (PREFERENCES,):
            self._wanted[bare(block.text)] -= 1


def _question(entry_id: str, block: Block) -> str | None:
    """The bare words of a line that is the question of an exchange."""
    text = block.text
    if not entry_id.endswith(".q") or not text.startswith(QUESTION):
        return None
    return bare(parted(text)[0].removeprefix(QUESTION))


def _says_the_same(event: Event, exchange: Exchange, told: Told) -> bool:
    """Question and answer alike; where one was cut, what was cut off has to have the same length."""
    sides = (("question", told.question, exchange.user_message), ("answer", told.answer, exchange.ai_response))
    for name, summary, whole in sides:
        known = event.payload.get(name)
        if not isinstance(known, str) or not alike(known, summary):
            return False
        if summary.endswith(ELLIPSIS) and event.payload.get(f"{name}_length") != len(whole):
            return False
    return True


def _noted(stated: Preference) -> Mapping[str, Any]:
    return {
        "entry_id": stated.entry_id,
        "section": list(stated.section),
        "text": stated.text,
        "origin": str(Origin.USER),
    }


def _as_before(event: Event) -> dict[str, Any]:
    """The decisions of an event that is recorded already."""
    before = {name: event.payload[name] for name in _DECIDED if name in event.payload}
    if before.get("recalled"):
        before["answer"] = event.payload.get("answer")
    return before
