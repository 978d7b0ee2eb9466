"""Turn conversations and manual edits into event drafts, and exchange events into lines of the document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.document.markdown.edits import NewExchange, edit_entry, exchange_lines, insert_entry, insert_exchanges
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.model import Entry, EntryAdded, EntryEdited, EntryRemoved, Operation, Snapshot
from sync.document.markdown.one_line import answer_summary, one_line, question_summary
from sync.document.markdown.repeat_suffix import increment_repeat_count
from sync.document.markdown.template import PREFERENCE_SECTIONS
from sync.document.markdown.version_labels import day_label
from sync.document.markdown.words import WORDS
from sync.errors import InvalidInput
from sync.log.envelope import day_of
from sync.log.event_types import (
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
    EXCHANGE_TEXT,
    MESSAGE,
    TEXT_SUFFIX,
)
from sync.log.model import MAX_EVENT_BYTES, Door, Event, EventDraft, Origin, project_id_for
from sync.redaction import Redactor
from sync.texts.language import ZH, Language, parse_language

# A summary has at most 100 characters; a secret that begins among them ends well before this.
SUMMARY_WINDOW: Final = 8_000
MAX_ENTRY_BYTES: Final = MAX_EVENT_BYTES - 4096  # bytes of an entry as JSON; the rest of its event is ids and a section
TEXT_LENGTH: Final = 4_000  # characters of each side that a device keeps of its own exchanges
MESSAGE_PART_LENGTH: Final = 12_000  # characters of a stored original in one event: below 60 KiB in any script
_QUESTION_PREFIXES: Final = tuple(words.question_prefix.rstrip() for words in WORDS.values())
_ANSWER_PREFIXES: Final = tuple(words.answer_prefix.rstrip() for words in WORDS.values())


class ExchangeInput(msgspec.Struct, frozen=True):
    """One turn of a conversation, as the caller passes it."""

    user_message: str
    ai_response: str
    session_id: str | None = None
    project_path: str | None = None
    importance: float | None = None
    idempotency_key: str | None = None
    has_tool_output: bool = False  # the answer has words of tools or web pages


class RedactedExchange(msgspec.Struct, frozen=True):
    """The two redacted summaries of an exchange, and the redacted, bounded messages they come from."""

    question: str
    answer: str
    user_message: str
    ai_response: str
    language: Language = ZH

    @classmethod
    def of(cls, exchange: ExchangeInput, redactor: Redactor, language: Language = ZH) -> "RedactedExchange":
        """Redact before shortening: half a token would not be recognised."""
        asked, answered = _summary_input(exchange.user_message), _summary_input(exchange.ai_response)
        question, answer = redactor.clean_turns([(False, asked), (True, answered)])
        shown = question_summary(question, language), answer_summary(answer, language)
        return cls(*shown, question, answer, language)

    def with_empty_sides_marked(self) -> "RedactedExchange":
        """Mark an empty side, unless both are empty."""
        if self.is_blank:
            return self
        empty = WORDS[self.language].empty_side
        return replace(self, question=self.question or empty, answer=self.answer or empty)

    @property
    def is_blank(self) -> bool:
        return not self.question and not self.answer


def draft_exchange_events(
    exchange: ExchangeInput,
    redactor: Redactor,
    *,
    device_id: str,
    store_messages: bool,
    redacted: RedactedExchange | None = None,
    policy_fields: Mapping[str, Any] | None = None,
) -> list[EventDraft]:
    """Draft the event of an exchange, and with `store_messages` those of its messages. Empty for a blank exchange.

    `policy_fields` from `CapturePolicy.decide` add to the payload or replace its fields.
    """
    redacted = redacted or RedactedExchange.of(exchange, redactor)
    if redacted.is_blank:
        return []
    if exchange.importance is not None and not 0.0 <= exchange.importance <= 1.0:
        raise InvalidInput("importance is a number from 0 to 1", field="importance")
    payload: dict[str, Any] = {
        "question": redacted.question,
        "answer": redacted.answer,
        "question_length": len(exchange.user_message),
        "answer_length": len(exchange.ai_response),
    }
    payload |= language_field(redacted.language)
    if exchange.importance is not None:
        payload["importance"] = exchange.importance
    payload |= policy_fields or {}
    path = _without_nul(exchange.project_path)
    draft = EventDraft(
        type=EXCHANGE_RECORDED,
        payload=redactor.clean_payload(payload),
        project_id=project_id_for(path),
        project_path=None if path is None else redactor.clean(path),
        session_id=_without_nul(exchange.session_id),
        event_id=keyed_event_id(device_id, exchange.idempotency_key),
        origin=Origin.MODEL,
        door=Door.UPDATE,
    )
    return [draft, *(_draft_message_events(exchange, draft, redactor) if store_messages else ())]


def draft_exchange_text(
    exchange: EventDraft,
    redacted: RedactedExchange,
    redactor: Redactor,
    echoes: Sequence[tuple[int, int]],
    *,
    tools: bool,
) -> EventDraft | None:
    """Draft the event of the whole text of an exchange, whose draft has its id; None if its summaries say all.

    `echoes`: the parts of the answer that repeat the memory. `tools`: the answer has words of tools or web pages.
    """
    given = exchange.payload.value
    sides = redacted.user_message[:TEXT_LENGTH].strip(), redacted.ai_response[:TEXT_LENGTH].strip()
    if "repeats" in given or (not tools and sides == (given["question"], given["answer"])):
        return None
    payload: dict[str, Any] = {"question": sides[0], "answer": sides[1]}
    payload |= {"echoes": [list(one) for one in echoes]} if echoes else {}
    payload |= {"tools": True} if tools else {}
    payload |= {"importance": given["importance"]} if "importance" in given else {}
    text_id = f"{exchange.event_id}{TEXT_SUFFIX}"
    return replace(exchange, type=EXCHANGE_TEXT, payload=redactor.clean_payload(payload), event_id=text_id)


def keyed_event_id(device_id: str, key: str | None) -> str | None:
    """The event id of an idempotency key: a repeated call finds the same event."""
    if key is None:
        return None
    return "evt_" + text_hash(f"{device_id}\n{key}")[:32]


def _draft_message_events(
    exchange: ExchangeInput, exchange_draft: EventDraft, redactor: Redactor
) -> Iterator[EventDraft]:
    """Draft the messages of both sides, in parts that fit into events."""
    sides = (("user", Origin.USER), ("assistant", Origin.MODEL))
    messages = (exchange.user_message.replace("\0", ""), exchange.ai_response.replace("\0", ""))
    for (role, origin), text in zip(
        sides, redactor.clean_turns(zip((False, True), messages, strict=True)), strict=True
    ):
        parts = [text[start : start + MESSAGE_PART_LENGTH] for start in range(0, len(text), MESSAGE_PART_LENGTH)]
        for number, part in enumerate(parts, start=1):
            payload = redactor.clean_payload({"role": role, "content": part, "part": number, "parts": len(parts)})
            part_id = None if exchange_draft.event_id is None else f"{exchange_draft.event_id}.{role}.{number}"
            yield replace(exchange_draft, type=MESSAGE, payload=payload, origin=origin, event_id=part_id)


def _without_nul(name: str | None) -> str | None:
    """Remove NUL, which the server's columns cannot store; None if nothing is left."""
    return None if name is None else name.replace("\0", "") or None


def _summary_input(text: str) -> str:
    return text[:SUMMARY_WINDOW].replace("\0", "")


def exchange_ids(event: Event) -> tuple[str, str]:
    """The entry ids of an exchange's question and answer."""
    return f"{event.event_id}.q", f"{event.event_id}.a"


def language_field(language: Language) -> dict[str, str]:
    """The field of a payload that names a language; Chinese has none."""
    return {} if language is ZH else {"language": str(language)}


def own_lines_of(event: Event) -> tuple[str, str] | None:
    """The two lines of an exchange; None for other events and exchanges without lines of their own."""
    if event.type != EXCHANGE_RECORDED or not is_in_document(event) or repeated_exchange_id(event) is not None:
        return None
    return lines_of_exchange(event)


def lines_of_exchange(event: Event) -> tuple[str, str]:
    """The two summaries of an exchange as lines, in the language in which it was recorded."""
    question, answer = (str(event.payload.get(side, "")) for side in ("question", "answer"))
    return exchange_lines(question, answer, parse_language(event.payload.get("language")))


def is_in_document(event: Event) -> bool:
    """Whether an exchange has lines in the document: it is not erased and not below `record.min_importance`."""
    return bool(event.payload) and event.payload.get("in_document") is not False


def repeated_exchange_id(event: Event) -> str | None:
    """The id of the exchange that this one repeats."""
    repeated = event.payload.get("repeats")
    return repeated if isinstance(repeated, str) and repeated else None


def preference_entries_of(event: Event) -> list[Entry]:
    """The preferences that the user states in an exchange, as entries. Those of another origin are ignored."""
    listed = event.payload.get("preferences")
    entries = []
    for item in listed if isinstance(listed, list) else ():
        section = item.get("section") if isinstance(item, dict) and item.get("origin") == Origin.USER else None
        if isinstance(section, list) and tuple(section) in PREFERENCE_SECTIONS:
            text, entry_id = item.get("text"), item.get("entry_id")
            if isinstance(text, str) and isinstance(entry_id, str) and entry_id:
                entries.append(Entry(entry_id, f"- {one_line(text)}", tuple(section)))
    return entries


def apply_exchanges(snapshot: Snapshot, events: Sequence[Event]) -> Snapshot:
    """Insert exchanges under their days; known ones stay as they are, repeated ones increase a count."""
    present = set(snapshot.ids)
    new: list[NewExchange] = []
    again: list[str] = []
    for event in filter(is_in_document, events):
        ids = exchange_ids(event)
        repeated = repeated_exchange_id(event)
        if repeated is not None and f"{repeated}.q" in present:
            again.append(f"{repeated}.q")
        elif ids[0] not in present:
            present.add(ids[0])
            question, answer = str(event.payload.get("question", "")), str(event.payload.get("answer", ""))
            language = parse_language(event.payload.get("language"))
            new.append(NewExchange(ids, day_label(day_of(event)), question, answer, language))
    if new:
        snapshot = insert_exchanges(snapshot, new)
    for entry_id in again:
        snapshot = edit_entry(snapshot, entry_id, increment_repeat_count(snapshot.text_of(entry_id)))
    for entry in (entry for event in filter(is_in_document, events) for entry in preference_entries_of(event)):
        if entry.entry_id not in present:
            present.add(entry.entry_id)
            snapshot = insert_entry(snapshot, entry, after="")  # no entry has this id: at the end of its section
    return snapshot


def is_too_large_for_event(text: str) -> bool:
    """Whether a redacted text is too large for an event; such a line stays on this device."""
    return len(text) > MAX_ENTRY_BYTES // 6 and len(msgspec.json.encode(text)) > MAX_ENTRY_BYTES


def draft_operation_events(
    operations: Iterable[Operation], redactor: Redactor, origin: Origin, language: Language = ZH
) -> tuple[list[EventDraft], list[str]]:
    """Draft the events of a manual edit. They are redacted whatever the local settings, for they may leave the device.

    `language`: of the document. Also returns the ids of entries that are too large for an event; they stay in the file.
    """
    drafts: list[EventDraft] = []
    too_large: list[str] = []
    for operation in operations:
        kind, value = _event_of_operation(operation, redactor)
        payload = redactor.clean_payload(value | language_field(language))
        if (
            is_too_large_for_event(str(payload.value.get("text", "")))
            or len(msgspec.json.encode(payload.value)) > MAX_EVENT_BYTES
        ):
            too_large.append(operation.entry_id)
        else:
            drafts.append(EventDraft(type=kind, payload=payload, origin=origin))
    return drafts, too_large


def draft_by_form(draft: EventDraft, *, is_found: bool) -> EventDraft:
    """The draft of an added line; one in the form of an exchange is no hand edit, for this program writes those.

    An answer is the model's. That a found question is the user's own word is not proven: it counts as imported.
    """
    if draft.type != ENTRY_ADDED or draft.door not in (Door.HAND, Door.SAVE):
        return draft
    text = str(draft.payload.value.get("text", ""))
    if text.startswith(_ANSWER_PREFIXES):
        return replace(draft, origin=Origin.MODEL)
    if is_found and text.startswith(_QUESTION_PREFIXES):
        return replace(draft, origin=Origin.IMPORTED, door=Door.IMPORT)
    return draft


def _event_of_operation(operation: Operation, redactor: Redactor) -> tuple[str, dict[str, Any]]:
    section = list(operation.section)
    match operation:
        case EntryAdded():
            added = {"entry_id": operation.entry_id, "after": operation.after, "section": section}
            return ENTRY_ADDED, {**added, "text": operation.text}
        case EntryEdited():
            base = text_hash(redactor.clean(operation.base_text))
            edited = {"entry_id": operation.entry_id, "base_hash": base, "section": section}
            return ENTRY_EDITED, {**edited, "text": operation.text}
        case EntryRemoved():
            return ENTRY_REMOVED, {"entry_id": operation.entry_id, "section": section}
