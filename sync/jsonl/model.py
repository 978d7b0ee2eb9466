"""Which file an event goes into, and its line there. Pure.

A line holds the whole envelope. Only the numbers of a replica may change after the event was recorded. U+2028, U+2029
and U+0085 are escaped, because some readers take them for line ends. An id is part of a file name only if it is short
lower-case ASCII; any other is hashed behind a `~`, so two ids never share a file, even if they differ only in case.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import from_unix_ms, to_unix_ms
from sync.errors import InvalidInput
from sync.log.envelope import DECODE_ERRORS, SENT_FIELDS, event_ms, from_wire, to_wire
from sync.log.model import Event

INDEX_BLOCK: Final = 64 * 1024  # bytes; the index has the first line that begins in each block
SAFE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9_-])?")
FIRST_MONTH: Final = "0001-01"  # also for earlier times of other programs' clocks
LAST_MONTH: Final = "9999-12"  # also for later times
MAX_REFUSALS: Final = 20  # refusals of one import that are listed; all are counted
MAX_HINT_LENGTH: Final = 40  # characters of a hashed id that stay readable

_LINE_FIELDS: Final = frozenset({*SENT_FIELDS, "position"})
_RESERVED: Final = re.compile(
    r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)"
)  # reserved on Windows, with any extension
_MONTH: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")
_LINE_ENDS: Final = {"\u0085": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}
_ENDS: Final = tuple((end.encode(), escaped) for end, escaped in _LINE_ENDS.items())


class FileKey(msgspec.Struct, frozen=True, order=True):
    """The file of one project and month."""

    month: str
    project_id: str

    @property
    def stem(self) -> str:
        return f"project_{safe_file_name(self.project_id)}_events"

    def bounds_ms(self) -> tuple[int, int]:
        """Return the month as Unix milliseconds, the second exclusive."""
        first = datetime(int(self.month[:4]), int(self.month[5:]), 1, tzinfo=UTC)
        if self.month == LAST_MONTH:
            return to_unix_ms(first), 2**63 - 1
        past = to_unix_ms((first + timedelta(days=31)).replace(day=1))
        return -(2**63) if self.month == FIRST_MONTH else to_unix_ms(first), past


class IndexEntry(msgspec.Struct, frozen=True):
    """One line of an `.idx` file: the offset of a line in the `.jsonl`."""

    position: int
    offset: int
    ts: str
    event_id: str


def safe_file_name(identifier: str) -> str:
    """Return an id as part of a file name."""
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
    """Encode an event as a line: the fields of the envelope first, unknown fields last."""
    line = {**dict.fromkeys(SENT_FIELDS), "position": event.position, **to_wire(event)}
    text = msgspec.json.encode(line)
    for end, escaped in _ENDS:
        text = text.replace(end, escaped)
    return text + b"\n"


def decode_line(line: bytes) -> Event | None:
    """Decode a line of this profile's own files; None if it is no event.

    A line of format 1 has no replica number: its event becomes a replica of its own until the server numbers it.
    """
    try:
        value = msgspec.json.decode(line, type=dict[str, Any])
        event = from_wire({"replica_id": value.get("event_id"), "replica_seq": 1, **value})
        position = msgspec.convert(value.get("position"), int)
    except (*DECODE_ERRORS, InvalidInput):
        return None
    extra = {name: item for name, item in value.items() if name not in _LINE_FIELDS}
    return replace(event, position=position, extra=extra, server_seq=None, server_ts=None)


def build_index_entries(lines: Iterable[tuple[Event, int]], previous_offset: int | None) -> list[IndexEntry]:
    """Return the index entries of lines at these offsets; `previous_offset` is that of the line before them."""
    entries = []
    block = -1 if previous_offset is None else previous_offset // INDEX_BLOCK
    for event, offset in lines:
        if offset // INDEX_BLOCK != block:
            entries.append(IndexEntry(event.position, offset, event.ts, event.event_id))
            block = offset // INDEX_BLOCK
    return entries


def encode_index(entries: Sequence[IndexEntry]) -> bytes:
    return b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)


class ImportCounts(msgspec.Struct, kw_only=True):
    """What an import did; a dry run counts what would be `recorded`. `refusals`: line, event or item, and the reason.

    `shortened` counts recorded messages of which only the beginning is stored, because of the settings; `unproven`
    the lines that no known device signed, which became new events of this device.
    """

    found: int = 0
    recorded: int = 0
    known: int = 0
    refused: int = 0
    shortened: int = 0
    unproven: int = 0
    dry_run: bool = False
    refusals: list[tuple[int | str, str]] = []

    def refuse(self, which: int | str, problem: str) -> None:
        """Count a refusal, and list the first ones."""
        self.refused += 1
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append((which[:128] if isinstance(which, str) else which, problem))
