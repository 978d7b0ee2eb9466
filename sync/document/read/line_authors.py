"""The authors of lines: labels for those that the user did not write on this device.

The newest event that adds, edits or moves a line decides; `author_of` says who wrote it. Lines of other devices are in
a document that an earlier version kept for several devices, and where two devices imported the same line. If the user
wrote the same words here, the line is theirs. Labels are in what an assistant reads (`content`, the system prompt),
never in the document.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sync.document.capture.day_compaction import folded_authorship, has_lines_of_others
from sync.document.capture.exchange_events import exchange_ids, preference_entries_of
from sync.document.markdown.entry_ids import conflict_copy_id
from sync.document.markdown.model import Block, BlockKind, MemoryDocument, Section, Snapshot
from sync.document.markdown.positions import normalised_section
from sync.document.markdown.template import EARLIER, RECORDS, TEMPLATE_SECTIONS
from sync.document.markdown.version_labels import parse_day
from sync.log.authorship import Author, Authorship, author_of, label_key, view_label
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.envelope import event_order
from sync.log.event_types import ENTRY_ADDED, EXCHANGE_RECORDED
from sync.log.model import Event, text_in
from sync.texts.language import EN, ZH, Language

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

_MARKER: Final = re.compile(r"[-*+] |#{1,6}[ \t]+")

RunEventQuery = Callable[[str, dict[str, Any]], Sequence[Event]]


class LineAuthor(msgspec.Struct, frozen=True):
    """The newest event that wrote a line."""

    order: tuple[str, str, str]
    written: Authorship


class LineLabel(NamedTuple):
    """How a line names its author, in both languages; it is compared as the author."""

    zh: str
    en: str


AuthorLabels = Mapping[str | Section, LineLabel]
"""Entry id, or section of a heading -> who wrote it."""


class LineAuthors:
    """The author of every line that the given events wrote."""

    def __init__(self, own_device_ids: Collection[str]) -> None:
        self._own_device_ids = frozenset(own_device_ids)
        self._newest: dict[str, LineAuthor] = {}
        self._typed_here: dict[str, str] = {}  # entry id -> the text that the user wrote last, on this device
        self._sections: dict[Section, Authorship] = {}  # where lines were written, by whom the newest
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
        elif has_lines_of_others(snapshot.ids) or run_query(OTHER_AUTHORS_SQL, {"own": own, "after": self._after}):
            self.add(run_query(LINE_EVENTS_SQL, {**parameters, "after": 0}))
        self._after = position

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            order = event_order(event)
            if not self._concerns_this_document(event):
                continue
            written = author_of(event)
            if (section := event.payload.get("section")) and isinstance(section, list):
                self._sections |= dict.fromkeys(_paths(normalised_section(tuple(map(str, section)))), written)
            for entry_id, text in _written_lines(event):
                if written.seen_from(self._own_device_ids) is Author.USER:
                    self._typed_here[entry_id] = text
                known = self._newest.get(entry_id)
                if known is None or known.order < order:
                    self._newest[entry_id] = LineAuthor(order, written)

    def author_labels(self, snapshot: Snapshot, registry: DeviceRegistry) -> AuthorLabels:
        """The authors of the lines that the user did not write here, and of the headings above them alone."""
        if not self._newest and not has_lines_of_others(snapshot.ids):
            return {}
        lines = [*zip(snapshot.ids, snapshot.document.entries, strict=True)]
        written = self.other_authors(snapshot)
        own = (block for entry_id, block in lines if entry_id not in written and not entry_id.endswith(".a"))
        typed = {(block.section, block.text) for block in own}
        labels: dict[str | Section, LineLabel] = {
            entry_id: self._label(written[entry_id], registry)
            for entry_id, block in lines
            if entry_id in written and (block.section, block.text) not in typed
        }
        above: dict[Section, LineLabel | None] = {}  # None: a line of the user's is below
        for entry_id, block in lines:
            label = labels.get(entry_id)
            for path in _paths(block.section):
                above[path] = label and above.get(path, label)
        for section, author in self._sections.items():  # a heading whose lines are gone
            if not self._is_own(author):
                above.setdefault(section, self._label(author, registry))
        return labels | {path: label for path, label in above.items() if label and not _is_template_heading(path)}

    def other_authors(self, snapshot: Snapshot) -> dict[str, Authorship]:
        """Entry id -> who wrote the line, if not the user here."""
        lines = zip(snapshot.ids, snapshot.document.entries, strict=True)
        return {entry_id: found for entry_id, block in lines if (found := self._other_author(entry_id, block))}

    def _other_author(self, entry_id: str, block: Block) -> Authorship | None:
        """Who wrote a line, if not the user here. What the user wrote here too is theirs, not another device's."""
        known = self._newest.get(entry_id)
        written = folded_authorship(entry_id) if known is None else known.written
        if written is None or self._is_own(written):
            return None
        return None if written.is_users and self._typed_here.get(entry_id) == block.text else written

    def _is_own(self, written: Authorship) -> bool:
        return label_key(written, self._own_device_ids) == Author.USER

    def _label(self, written: Authorship, registry: DeviceRegistry) -> LineLabel:
        zh, en = (
            view_label(
                written,
                self._own_device_ids,
                partial(registry.name_of, is_english=is_english),
                is_english=is_english,
            )
            for is_english in (False, True)
        )
        return LineLabel(zh or "", en or "")

    def _concerns_this_document(self, event: Event) -> bool:
        """Whether it may have written a line of this document: other devices edit documents of their own."""
        is_addition = event.type in {ENTRY_ADDED, EXCHANGE_RECORDED}
        return is_addition or event.device_id in self._own_device_ids or event.payload.get("shared") is True


def other_authors_then(
    events: Sequence[Event], snapshot: Snapshot, own_device_ids: Collection[str], redact: Callable[[str], str]
) -> dict[str, Authorship]:
    """The authors that the lines of an older version had, if not the user here: of each, by the text that it had."""
    then = dict(zip(snapshot.ids, (block.text for block in snapshot.document.entries), strict=True))

    def wrote(event: Event) -> bool:
        text = then.get(text_in(event, "entry_id") or "")
        return event.type == EXCHANGE_RECORDED or (text is not None and text_in(event, "text") in (text, redact(text)))

    matching = [event for event in events if wrote(event)]
    known = {text_in(event, "entry_id") for event in matching}
    authors = LineAuthors(own_device_ids)
    authors.add([*matching, *(event for event in events if text_in(event, "entry_id") not in known)])
    return authors.other_authors(snapshot)


def _written_lines(event: Event) -> Sequence[tuple[str, str]]:
    """The lines that an event writes: their ids and texts."""
    if event.type == EXCHANGE_RECORDED:
        stated = [(entry.entry_id, entry.text) for entry in preference_entries_of(event)]
        return stated + [(entry_id, "") for entry_id in exchange_ids(event)]
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if not isinstance(entry_id, str):
        return []
    text = text if isinstance(text, str) else ""
    return [(one, text) for one in (entry_id, conflict_copy_id(entry_id, event.event_id))]


def _is_template_heading(section: Section) -> bool:
    return section in (*TEMPLATE_SECTIONS, EARLIER) or (
        section[:-1] == (RECORDS,) and parse_day(section[-1]) is not None
    )


def with_author_labels(snapshot: Snapshot, labels: AuthorLabels, language: Language = ZH) -> MemoryDocument:
    """A document in which each of these lines and headings begins with its label in 【】, after its bullet."""
    if not labels:
        return snapshot.document
    ids = iter(snapshot.ids)
    blocks: list[Block] = []
    sections: dict[Section, Section] = {}
    for block in snapshot.document.blocks:
        key = next(ids) if block.kind is BlockKind.ENTRY else block.section
        label = labels.get(key) if block.kind in (BlockKind.ENTRY, BlockKind.HEADING) else None
        shown = block if label is None else _with_label(block, label, language)
        if block.section not in sections:
            sections[block.section] = _labelled_section(block.section, labels, language)
        blocks.append(replace(shown, section=sections[block.section]))
    return MemoryDocument(tuple(blocks))


def _labelled_section(section: Section, labels: AuthorLabels, language: Language) -> Section:
    """The titles of a section as an excerpt shows them."""
    found = [labels.get(path) for path in _paths(section)]
    return tuple(
        title if label is None else _shown(label, language) + title for title, label in zip(section, found, strict=True)
    )


def _paths(section: Section) -> list[Section]:
    """The section of each heading above a line, outermost first."""
    return [section[: depth + 1] for depth in range(len(section))]


def _shown(label: LineLabel, language: Language) -> str:
    return f"【{label.en if language is EN else label.zh}】"


def _with_label(block: Block, label: LineLabel, language: Language) -> Block:
    """The entry with the label on each of its lines, as `str.splitlines` and models split them."""
    shown = _shown(label, language)
    lines = [_insert_label(line, shown) if line.strip() else line for line in block.raw.splitlines(keepends=True)]
    return replace(block, raw="".join(lines))


def _insert_label(line: str, label: str) -> str:
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)]
    bullet = found[0] if (found := _MARKER.match(body)) else ""
    return f"{indent}{bullet}{label}{body[len(bullet) :]}"
