"""The warnings about the memory file that `status` shows.

Some are noted when the file is read, until the next read. The others are computed from the newest version: an unchanged
file is not read again, and a warning outlives the process.
"""

from enum import StrEnum
from typing import Final

from sync.document.capture.exchange_events import draft_operation_events
from sync.document.markdown.model import EntryAdded, Version
from sync.document.markdown.parse import opens_fence
from sync.log.model import MAX_EVENT_BYTES, Origin
from sync.redaction import Redactor

MERGE_MARKS: Final = ("<<<<<<<", "=======", ">>>>>>>")  # in this order, each at the start of a line
SAFE_CHARS: Final = MAX_EVENT_BYTES // 12  # characters of an entry that never make an event too large, redacted or not


class Notice(StrEnum):
    """A warning's name."""

    MASS_DELETE = "suspicious_mass_delete"
    MISSING = "document_missing"
    UNTOUCHABLE = "document_untouchable"
    UNREACHABLE = "document_unreachable"
    NOT_UTF8 = "document_not_utf8"
    LARGE_ENTRY = "entry_too_large"
    MERGE_MARKERS = "document_merge_markers"
    OPEN_FENCE = "document_open_fence"
    APP_CACHE = "app_cache_unreadable"
    STRANGER = "document_of_another_account"
    CLOUD_MASS_DELETE = "cloud_mass_delete"
    ERASURE_WAITS = "mass_erasure_waits"
    ERASURE_APPLIED = "mass_erasure_applied"
    ERASURE_REFUSED = "mass_erasure_refused"
    CORRECTION_REFUSED = "correction_refused"
    CLOUD_UNREADABLE = "cloud_document_unreadable"


BLOCKING: Final = frozenset(  # the file is not written, or cannot be
    {Notice.MISSING, Notice.MASS_DELETE, Notice.UNTOUCHABLE, Notice.UNREACHABLE}
)
FILE_QUESTIONS: Final = frozenset({Notice.MISSING, Notice.MASS_DELETE, Notice.UNTOUCHABLE})  # noted at each read
RESOLVABLE: Final = frozenset({Notice.MISSING, Notice.MASS_DELETE, Notice.CLOUD_MASS_DELETE})  # by `resolve`
VERSION_NOTICES: Final = frozenset(
    {Notice.NOT_UTF8, Notice.LARGE_ENTRY, Notice.MERGE_MARKERS, Notice.OPEN_FENCE}
)  # computed from the newest version


def version_notices(version: Version, redactor: Redactor) -> frozenset[Notice]:
    """The notices of a version, as long as it is the newest."""
    notices = set[Notice]()
    if version.snapshot.document.encoding != "utf-8":
        notices.add(Notice.NOT_UTF8)  # it keeps its encoding
    if oversized_entries(version, redactor):
        notices.add(Notice.LARGE_ENTRY)
    lines = iter([block.text for block in version.snapshot.document.entries])
    if all(any(line.split(" ", 1)[0] == mark for line in lines) for mark in MERGE_MARKS):
        notices.add(Notice.MERGE_MARKERS)
    if any(opens_fence(block.text) for block in version.snapshot.document.entries):
        notices.add(Notice.OPEN_FENCE)
    return frozenset(notices)


def oversized_entries(version: Version, redactor: Redactor) -> list[str]:
    """The ids of entries that no event can hold: they are in this file only."""
    long = [
        EntryAdded(entry.entry_id, None, entry.section, entry.text)
        for entry in version.snapshot.entries
        if len(entry.text) + sum(map(len, entry.section)) > SAFE_CHARS
    ]
    return draft_operation_events(long, redactor, Origin.USER)[1]
