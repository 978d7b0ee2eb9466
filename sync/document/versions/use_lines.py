"""The lines under 常用操作: what came on three different days, as entry events with `derived`.

Which lines there are is decided from the log once and recorded, so a line that was removed by hand stays away. A line
that was changed by hand stays as it is.
"""

from typing import TYPE_CHECKING, Final

from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure import erasure
from sync.document.markdown.model import Entry, EntryAdded, EntryEdited, Operation, Snapshot, Version
from sync.document.markdown.repeat_suffix import split_repeat_count
from sync.document.markdown.template import OPERATIONS
from sync.document.merge.text_equality import core_words
from sync.document.versions.derived_lines import apply_changes
from sync.document.versions.own_projection import DOCUMENT_OFFSET
from sync.document.versions.writer import VersionWriter
from sync.log import store as log_store
from sync.log.event_types import ENTRY_ADDED, RETRACTING_TYPES, USE_TYPES

if TYPE_CHECKING:  # loaded when there are uses to count
    from sync.document.capture.frequent_use import FrequentUse, UseCounter

WINDOW: Final = 2_000  # newest exchanges, and newest tool calls, that are counted
MAX_LINES: Final = 10  # in each of the two sections
MIN_GROWTH: Final = 0.2  # of a count, until it is written again
AT_END: Final = ""


class UseLines:
    """The lines of one profile's document. It counts in memory, from the newest events on."""

    def __init__(self, writer: VersionWriter) -> None:
        self._writer = writer
        self._counter: UseCounter | None = None
        self._position = self._retracted_at = 0
        self._is_counted = False
        self._known_ids: set[str] = set()  # lines that were added once
        self._settled: dict[str, int] = {}  # entry id -> the count for which its line is as it should be

    def is_behind(self, connection: Transaction) -> bool:
        """Whether there are uses that neither this process has counted nor the newest version follows."""
        known = self._position if self._is_counted else log_store.watermark(connection, DOCUMENT_OFFSET)
        return log_store.newest_position_of_types(connection, USE_TYPES) > known

    def changes(self, connection: Transaction) -> list[Operation]:
        """What the newest version lacks; nothing while an erasure is pending."""
        current = store.newest(connection, store.FILE)
        if current is None or erasure.hides_text(connection):
            return []
        self._count(connection)
        frequent = {} if self._counter is None else self._counter.frequent
        news = {name: use for name, use in frequent.items() if self._settled.get(name) != use.count}
        if not news:
            return []
        changes = self._changes(connection, current.snapshot, news)
        changed = {change.entry_id for change in changes}
        self._settled.update({name: use.count for name, use in news.items() if name not in changed})
        return changes

    def record(self, connection: Transaction) -> Version | None:
        """Write a version with the lines that are missing, and record them."""
        writer = self._writer
        current = writer.follow_log(connection)
        changes = self.changes(connection)
        if current is None or not changes:
            return current
        writer.record_own_events(connection, writer.derived_lines.use_drafts(changes))
        changed = apply_changes(current.snapshot, changes)
        return writer.append_version(connection, writer.with_footer(changed, current), "operations")

    def _count(self, connection: Transaction) -> None:
        """Count the events since the last call; all of the window again after an erasure."""
        retracted = log_store.newest_position_of_types(connection, RETRACTING_TYPES)
        if retracted != self._retracted_at:
            self._counter, self._position, self._is_counted, self._retracted_at = None, 0, False, retracted
            self._known_ids, self._settled = set(), {}
        newest = log_store.newest_position_of_types(connection, USE_TYPES)
        if newest == self._position:
            return
        if self._is_counted:
            events = list(log_store.read_by_types(connection, USE_TYPES, after=self._position))
        else:
            windows = (log_store.read_newest(connection, [kind], limit=WINDOW) for kind in USE_TYPES)
            events = sorted((event for window in windows for event in window), key=lambda event: event.position)
        counter = self._counter = self._counter or _new_counter()
        log = self._writer.log
        own = log.own_device_ids
        for event in events:
            if event.device_id in own:
                counter.add(event)
        self._position, self._is_counted = newest, True

    def _changes(
        self, connection: Transaction, snapshot: Snapshot, frequent: "dict[str, FrequentUse]"
    ) -> list[Operation]:
        blocks = zip(snapshot.ids, snapshot.document.entries, strict=True)
        lines = [(name, block) for name, block in blocks if block.section[:1] == (OPERATIONS,)]
        entries = {name: Entry(name, block.text, block.section) for name, block in lines}
        words = {core_words(split_repeat_count(entry.text)[0]) for entry in entries.values()}
        room = {use.section: MAX_LINES for use in frequent.values()}
        for shown in entries.values():
            room[shown.section] = room.get(shown.section, 0) - 1
        changes: list[Operation] = []
        for entry_id, use in sorted(frequent.items(), key=lambda item: (-item[1].count, item[0])):
            if (entry := entries.get(entry_id)) is not None:
                line, count = split_repeat_count(entry.text)
                if line == use.line and use.counted_line != entry.text and use.count >= count * (1 + MIN_GROWTH):
                    changes.append(EntryEdited(entry_id, entry.text, use.counted_line, entry.section))
            elif room[use.section] > 0 and core_words(use.line) not in words and self._is_new(connection, entry_id):
                room[use.section] -= 1
                changes.append(EntryAdded(entry_id, AT_END, use.section, use.counted_line))
        return changes

    def _is_new(self, connection: Transaction, entry_id: str) -> bool:
        """Whether no event ever added this line."""
        if entry_id not in self._known_ids:
            added = log_store.read_by_types(connection, [ENTRY_ADDED], after=0)
            found = (str(event.payload.get("entry_id")) for event in added if event.payload.get("derived"))
            self._known_ids = set(found)
        return entry_id not in self._known_ids


def _new_counter() -> "UseCounter":
    from sync.document.capture.frequent_use import UseCounter  # noqa: PLC0415 - at the first use

    return UseCounter()
