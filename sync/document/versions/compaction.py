"""Replace the exchanges of old days by one line a day, as events and a version."""

from datetime import date

from sync.clock import timestamp
from sync.db.engine import Transaction
from sync.document.capture.day_compaction import (
    SourceDoor,
    compact_days,
    find_compactable_days,
    imported_text_lookup,
    source_door,
)
from sync.document.capture.exchange_events import own_lines_of
from sync.document.versions.writer import VersionWriter
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.authorship import UNPROVEN, Author, author_of, label_key
from sync.log.envelope import bounded_time, day_of
from sync.log.event_types import DAY_FOLDED, ENTRY_ADDED
from sync.log.model import EventDraft, Origin


def compact_old_days(connection: Transaction, writer: VersionWriter, today: date, keep_days: int) -> bool:
    """Compact the days older than `keep_days`, a few at a time; whether there were any.

    The server's time bounds what is old: other devices compact too, even if this device's clock is years ahead.
    """
    current = writer.follow_log(connection)
    if current is None:
        return False
    now = writer.clock.now()
    bounded = bounded_time(now, outbox_store.newest_server_time(connection))

    own_ids = writer.log.own_device_ids

    def lines_of(event_id: str) -> tuple[tuple[str, str], SourceDoor] | None:
        event = log_store.find_event(connection, event_id)
        if event is None or (today - day_of(event, bounded)).days <= keep_days:
            return None
        lines, written = own_lines_of(event), author_of(event)
        is_elsewhere = label_key(written, own_ids) in (Author.DEVICE, UNPROVEN)  # these keep the lines with their label
        return None if lines is None or is_elsewhere else (lines, source_door(written))

    today = min(today, bounded.astimezone(now.tzinfo).date())
    additions = log_store.read_by_types(connection, [ENTRY_ADDED], after=0)
    imported = imported_text_lookup(additions, writer.redactor.clean)
    days = find_compactable_days(current.snapshot, today, keep_days, lines_of, imported)
    if not days:
        return False
    snapshot, payloads = compact_days(current.snapshot, days)
    ts = timestamp(bounded) if bounded < now else None
    drafts = [
        EventDraft(DAY_FOLDED, writer.redactor.clean_payload(payload), ts=ts, origin=Origin.TOOL, door=day.door)
        for day, payload in zip(days, payloads, strict=True)
    ]
    writer.record_own_events(connection, drafts)
    writer.append_version(connection, writer.with_footer(snapshot, current), "folded")
    return True
