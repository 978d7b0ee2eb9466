"""The authors of lines: labels for those that the user did not write on this device.

The newest event that adds, edits or moves a line decides; `author_of` says who wrote it. Lines of other devices are in
a document that an earlier version kept for several devices, and where two devices imported the same line. If the user
wrote the same words here, the line is theirs. Labels are in what an assistant reads (`content`, the system prompt),
never in the document.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sync.document.capture.exchange_events import exchange_ids, preference_entries_of
from sync.document.markdown.entry_ids import conflict_copy_id
from sync.document.markdown.language import EN, ZH, Language
from sync.document.markdown.model import Block, BlockKind, MemoryDocument, Snapshot
from sync.document.merge.text_equality import core_words
from sync.log.authorship import Author, Authorship, author_of, view_label
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.envelope import event_order
from sync.log.event_types import ENTRY_ADDED, EXCHANGE_RECORDED
from sync.log.model import Event

# Plain text: it runs through SQLAlchemy and, before that is imported, through sqlite3.
OTHER_AUTHORS_SQL: Final = """
select * from events indexed by events_of_others
where type in ('entry_added', 'entry_edited', 'entry_moved') and (origin not in ('user-typed', 'imported')
  or json_extract(extra, '$.door') in ('app_db', 'cloud_document', 'import', 'program', 'project'))
  and position > :after
  and (device_id in (select value from json_each(:own)) or json_extract(extra, '$.door') = 'import') limit 1
"""
LINE_EVENTS_SQL: Final = """
select * from events where position > :after and type in ('entry_added', 'entry_edited', 'entry_moved')
  and (:everyone or device_id in (select value from json_each(:own)) or json_extract(extra, '$.door') = 'import')
union all
select * from events
where :everyone and position > :after and type = 'exchange_recorded' and payload like '%"preferences"%'
order by position
"""

EXCHANGES_SQL: Final = """
select * from events where event_id in (select value from json_each(:ids)) and type = 'exchange_recorded'
  and (origin <> 'model-written' or device_id not in (select value from json_each(:own)))
"""  # those of other programs and devices; `memory/update` records the user's question with the model's answer

RunEventQuery = Callable[[str, dict[str, Any]], Sequence[Event]]


class LineAuthor(msgspec.Struct, frozen=True):
    """The newest event that wrote a line."""

    order: tuple[str, str, str]
    written: Authorship
    core_words: str


class LineLabel(NamedTuple):
    """How a line names its author, in both languages; it is compared as the author."""

    zh: str
    en: str


class LineAuthors:
    """The author of every line that the given events wrote."""

    def __init__(self, own_device_ids: Collection[str]) -> None:
        self._own_device_ids = frozenset(own_device_ids)
        self._newest: dict[str, LineAuthor] = {}
        self._typed_words: set[str] = set()  # core words that the user wrote here
        self._after = 0
        self._seen_exchanges: set[str] = set()

    def refresh(self, run_query: RunEventQuery, position: int, snapshot: Snapshot, *, formerly_shared: bool) -> None:
        """Read the log up to `position`, and the shown exchanges. `run_query` runs one of the statements above.

        In a document that was never shared, all lines are the device's own unless a program appended one.
        """
        own = msgspec.json.encode(sorted(self._own_device_ids)).decode()
        shown = {entry_id[:-2] for entry_id in snapshot.ids if entry_id.endswith((".q", ".a"))} - self._seen_exchanges
        if shown:
            self.add(run_query(EXCHANGES_SQL, {"ids": msgspec.json.encode(sorted(shown)).decode(), "own": own}))
            self._seen_exchanges |= shown
        parameters = {"own": own, "everyone": formerly_shared}
        if formerly_shared or self._newest:
            self.add(run_query(LINE_EVENTS_SQL, {**parameters, "after": self._after}))
        elif run_query(OTHER_AUTHORS_SQL, {"own": own, "after": self._after}):
            self.add(run_query(LINE_EVENTS_SQL, {**parameters, "after": 0}))
        self._after = position

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            order = event_order(event)
            if not self._concerns_this_document(event):
                continue
            for entry_id, words, written in _written_lines(event):
                if written.seen_from(self._own_device_ids) is Author.USER:
                    self._typed_words.add(words)
                known = self._newest.get(entry_id)
                if known is None or known.order < order:
                    self._newest[entry_id] = LineAuthor(order, written, words)

    def author_labels(self, snapshot: Snapshot, registry: DeviceRegistry) -> dict[str, LineLabel]:
        """Entry id -> author, for each line that the user did not write here."""
        labels: dict[str, LineLabel] = {}
        lines = zip(snapshot.ids, snapshot.document.entries, strict=True) if self._newest else ()
        for entry_id, block in lines:
            author = self._newest.get(entry_id)
            if author is None:
                continue
            zh, en = (
                view_label(
                    author.written,
                    self._own_device_ids,
                    partial(registry.name_of, is_english=is_english),
                    is_english=is_english,
                )
                for is_english in (False, True)
            )
            if zh and en and self._typed_words.isdisjoint({author.core_words, core_words(block.text)} - {""}):
                labels[entry_id] = LineLabel(zh, en)
        return labels

    def _concerns_this_document(self, event: Event) -> bool:
        """Whether it may have written a line of this document: other devices edit documents of their own."""
        is_addition = event.type in {ENTRY_ADDED, EXCHANGE_RECORDED}
        return is_addition or event.device_id in self._own_device_ids or event.payload.get("shared") is True


def _written_lines(event: Event) -> Sequence[tuple[str, str, Authorship]]:
    """The lines that an event writes: their ids, core words, and who wrote them."""
    written = author_of(event)
    if event.type == EXCHANGE_RECORDED:
        stated = [(entry.entry_id, core_words(entry.text), written) for entry in preference_entries_of(event)]
        return stated + [(entry_id, "", written) for entry_id in exchange_ids(event)]
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if not isinstance(entry_id, str):
        return []
    words = core_words(text) if isinstance(text, str) else ""
    return [(one, words, written) for one in (entry_id, conflict_copy_id(entry_id, event.event_id))]


def with_author_labels(snapshot: Snapshot, labels: Mapping[str, LineLabel], language: Language = ZH) -> MemoryDocument:
    """A document in which each line of these entries begins with its label in 【】, after its bullet."""
    if not labels:
        return snapshot.document
    ids = iter(snapshot.ids)
    blocks = []
    for block in snapshot.document.blocks:
        label = labels.get(next(ids)) if block.kind is BlockKind.ENTRY else None
        blocks.append(block if label is None else _with_label(block, label, language))
    return MemoryDocument(tuple(blocks))


def _with_label(block: Block, label: LineLabel, language: Language) -> Block:
    """The entry with the label on each of its lines, as `str.splitlines` and models split them."""
    shown = f"【{label.en if language is EN else label.zh}】"
    lines = [_insert_label(line, shown) if line.strip() else line for line in block.raw.splitlines(keepends=True)]
    return replace(block, raw="".join(lines))


def _insert_label(line: str, label: str) -> str:
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)]
    bullet = body[:2] if body[:2] in {"- ", "* ", "+ "} else ""
    return f"{indent}{bullet}{label}{body[len(bullet) :]}"
