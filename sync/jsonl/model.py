"""Which file an event goes into, and what stands there. Pure.

Decisions
    A line begins with the fields of seed 002 §4.1 and ends with what nobody knows. It holds nothing that changes after
    the event was recorded (no number of the server, no replica that a restored backup renames), so a file that is built
    anew has the same bytes. It holds its position, so a file tells by its last line how far it has come.
    U+2028, U+2029 and U+0085 are escaped: some readers take them for ends of lines.
    An id stands in a path only where it is plain: small ASCII letters, digits, `.`, `_`, `-`. Any other is replaced by
    its hash behind a `~`, which no plain id holds: two ids never meet in one file, not even where `A` and `a` do.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from sync.clock import from_unix_ms, to_unix_ms
from sync.log.envelope import event_ms
from sync.log.model import Event

INDEX_BLOCK: Final = 64 * 1024  # bytes; the index names the first line that begins in each
SAFE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9_-])?")
FIRST_MONTH: Final = "0001-01"  # whatever was earlier by UTC stands there too: a clock of another program
LAST_MONTH: Final = "9999-12"  # and there whatever comes later
MAX_HINT_LENGTH: Final = 40  # characters of an unplain id that are kept, for people

_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")  # on Windows, with any extension
_MONTH: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")
_LINE_ENDS: Final = {"\u0085": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}
_ENDS: Final = tuple((end.encode(), escaped) for end, escaped in _LINE_ENDS.items())


@dataclass(frozen=True, slots=True, order=True)
class FileKey:
    """One file of events: a project's, of one month."""

    month: str
    project_id: str

    @property
    def stem(self) -> str:
        return f"project_{safe_file_name(self.project_id)}_events"

    def bounds_ms(self) -> tuple[int, int]:
        """The month as Unix milliseconds, from the first up to but not including the second."""
        first = datetime(int(self.month[:4]), int(self.month[5:]), 1, tzinfo=UTC)
        if self.month == LAST_MONTH:
            return to_unix_ms(first), 2**63 - 1
        past = to_unix_ms((first + timedelta(days=31)).replace(day=1))
        return -(2**63) if self.month == FIRST_MONTH else to_unix_ms(first), past


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of an `.idx` file: where a line of the `.jsonl` begins."""

    position: int
    offset: int
    ts: str
    event_id: str


def safe_file_name(identifier: str) -> str:
    """An id as part of a file's name."""
    if SAFE_NAME.fullmatch(identifier) and not _RESERVED.match(identifier):
        return identifier
    hint = re.sub(r"[^a-z0-9]+", "-", identifier[:MAX_HINT_LENGTH].lower()).strip("-")
    return f"{hint}~{hashlib.sha256(identifier.encode()).hexdigest()[:16]}"


def is_month(name: str) -> bool:
    return _MONTH.fullmatch(name) is not None


def month_of(at_ms: int) -> str:
    return f"{from_unix_ms(at_ms):%Y-%m}".zfill(7)


def file_key_of(event: Event) -> FileKey:
    return FileKey(month_of(event_ms(event)), event.project_id)


def encode_line(event: Event) -> bytes:
    """The event as it stands in its file."""
    said: dict[str, Any] = {
        "schema_version": event.schema_version,
        "event_id": event.event_id,
        "project_id": event.project_id,
        "project_path": event.project_path,
        "session_id": event.session_id,
        "ts": event.ts,
        "type": event.type,
        "payload": dict(event.payload),
        "device_id": event.device_id,
        "origin": event.origin,
        "hlc": event.hlc,
        "local_date": event.local_date,
        "utc_offset": event.utc_offset,
        "position": event.position,
    }
    more = {name: value for name, value in event.extra.items() if name not in said}
    text = msgspec.json.encode({**said, **more})
    for end, escaped in _ENDS:
        text = text.replace(end, escaped)
    return text + b"\n"


def build_index_entries(lines: Iterable[tuple[Event, int]], previous_offset: int | None) -> list[IndexEntry]:
    """The index of lines that begin at the given offsets; `before`: where the line before them begins."""
    found = []
    block = -1 if previous_offset is None else previous_offset // INDEX_BLOCK
    for event, offset in lines:
        if offset // INDEX_BLOCK != block:
            found.append(IndexEntry(event.position, offset, event.ts, event.event_id))
            block = offset // INDEX_BLOCK
    return found


def encode_index(found: Sequence[IndexEntry]) -> bytes:
    return b"".join(msgspec.json.encode(mark) + b"\n" for mark in found)
